"""Workloads of db_bench and YCSB: their keys, points and options, and what refuses them."""

from __future__ import annotations

import pytest

from iolab.core.workload import Axis
from iolab.loads.keyvalue.table import DB_BENCH_OPTIONS, YCSB_OPTIONS
from iolab.loads.keyvalue.workload import (
    BY_KEY_OPERATIONS,
    DatabaseSpec,
    DbBenchJob,
    KeyDistribution,
    KeyOperation,
    YcsbJob,
)
from iolab.study.schedule import expand_points
from tests.loads.keyvalue.key_value_studies import db_bench, ycsb
from tests.study.studies import SMALL, load, told


def test_the_defaults_of_db_bench_are_those_of_the_documentation() -> None:
    (workload,) = load(db_bench()).workloads
    loaded = DatabaseSpec(1000, 16, 1024, 4096, bloom_bits=10)
    assert workload.job == DbBenchJob("readrandom", loaded, 4, 8 << 20, read_percent=80)
    assert (workload.indicator, workload.repeats) == (BY_KEY_OPERATIONS, None)


def test_every_key_of_db_bench_reaches_the_job() -> None:
    extra = (
        'key_size = 20\nvalue_size = "2k"\ncache_size = "1m"\nmemory = "64m"\nbloom_bits = 0\n'
        'write_rate = "2m"\ndatabase = "/mnt/db"\ndb_bench = { mmap_read = true }'
    )
    (workload,) = load(db_bench(extra, benchmark="readwhilewriting")).workloads
    assert workload.job == DbBenchJob(
        workload="readwhilewriting",
        loaded=DatabaseSpec(1000, 20, 2048, 4096, bloom_bits=0),
        threads=4,
        cache_bytes=1 << 20,
        write_bytes_per_s=2 << 20,
        memory_bytes=64 << 20,
        database="/mnt/db",
        options=(("mmap_read", "1"),),
    )
    mixed = load(db_bench("read_percent = 70", benchmark="readrandomwriterandom")).workloads[0].job
    assert isinstance(mixed, DbBenchJob)
    assert mixed.read_percent == 70


def test_the_defaults_of_ycsb_are_those_of_the_documentation() -> None:
    (workload,) = load(ycsb()).workloads
    mix = ((KeyOperation.READ, 0.5), (KeyOperation.UPDATE, 0.5))
    assert workload.job == YcsbJob(mix, 1000, 8, 4, 1024, KeyDistribution.UNIFORM)
    assert workload.indicator == BY_KEY_OPERATIONS


def test_every_key_of_ycsb_reaches_the_job() -> None:
    extra = (
        'fields = 10\nfield_size = 100\ndistribution = "latest"\nrate = 500\nmemory = "1g"\n'
        'title = "People"'
    )
    mix = "{ scan = 0.5, insert = 0.25, read_modify_write = 0.25 }"
    (workload,) = load(ycsb(extra, mix=mix)).workloads
    assert workload.title == "People"
    assert workload.job == YcsbJob(
        mix=(
            (KeyOperation.INSERT, 0.25),
            (KeyOperation.SCAN, 0.5),
            (KeyOperation.READ_MODIFY_WRITE, 0.25),
        ),
        records=1000,
        threads=8,
        fields=10,
        field_bytes=100,
        distribution=KeyDistribution.LATEST,
        rate_ops_per_s=500,
        memory_bytes=1 << 30,
    )


def test_block_sizes_and_threads_are_axes_and_block_sizes_vary_slowest() -> None:
    text = db_bench(block_size='["4k", "16k"]', threads="[4, 64]")
    assert load(text).workloads[0].sweep == (
        Axis("block_size", ("4k", "16k")),
        Axis("threads", (4, 64)),
    )
    points = expand_points(load(text))
    jobs = [point.job for point in points if isinstance(point.job, DbBenchJob)]
    assert [(job.loaded.block_bytes, job.threads) for job in jobs] == [
        (4096, 4),
        (4096, 64),
        (16384, 4),
        (16384, 64),
    ]
    assert [point.title_text for point in points][:2] == [
        "w block_size=4k threads=4",
        "w block_size=4k threads=64",
    ]
    assert len({point.digest for point in points}) == 4


@pytest.mark.parametrize(
    "changed",
    [
        db_bench('value_size = "2k"'),
        db_bench("bloom_bits = 8"),
        db_bench('memory = "1g"'),
        db_bench("db_bench = { open_files = -1 }"),
        db_bench(benchmark="seekrandom"),
    ],
)
def test_what_changes_the_load_makes_another_point(changed: str) -> None:
    assert expand_points(load(changed))[0].digest != expand_points(load(db_bench()))[0].digest


def test_values_are_set_from_the_command_line() -> None:
    study = load(
        db_bench(threads="[4, 16]"),
        "workload.w.threads=8",
        "workload.*.block_size=4k,16k",
        "workload.w.db_bench.open_files=-1",
    )
    assert study.workloads[0].sweep == (Axis("block_size", ("4k", "16k")), Axis("threads", (8,)))
    assert study.workloads[0].job.options == (("open_files", "-1"),)
    mixed = load(ycsb(), "workload.w.mix.read=0.9", "workload.w.mix.update=0.1").workloads[0].job
    assert isinstance(mixed, YcsbJob)
    assert mixed.operation_share(KeyOperation.READ) == 0.9


@pytest.mark.parametrize("name", sorted(DB_BENCH_OPTIONS))
def test_every_allowed_option_of_db_bench_is_taken(name: str) -> None:
    example = DB_BENCH_OPTIONS[name].example
    (workload,) = load(db_bench(f'db_bench = {{ {name} = "{example}" }}')).workloads
    assert workload.job.options == ((name, example),)


@pytest.mark.parametrize("name", sorted(YCSB_OPTIONS))
def test_every_allowed_option_of_ycsb_is_taken(name: str) -> None:
    example = YCSB_OPTIONS[name].example
    (workload,) = load(ycsb(f'ycsb = {{ "{name}" = "{example}" }}')).workloads
    assert workload.job.options == ((name, example),)
    assert load(ycsb(), f"workload.w.ycsb.{name}={example}").workloads == (workload,)


def test_true_is_told_to_ycsb_in_its_own_word_and_to_db_bench_as_a_number() -> None:
    (workload,) = load(ycsb("ycsb = { readallfields = false, timeout_ms = 5000 }")).workloads
    assert workload.job.options == (("readallfields", "false"), ("timeout_ms", "5000"))
    (workload,) = load(db_bench("db_bench = { mmap_read = true }")).workloads
    assert workload.job.options == (("mmap_read", "1"),)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("keys = 0", "s.toml:10: keys of workload 'w' is 0."),
        ("key_size = 4", "key_size of workload 'w' is 4."),
        ('value_size = "1x"', "value_size of workload 'w' is '1x', which is not a size."),
        ('memory = "1m"', "memory of workload 'w' is '1m'."),
        (
            'memory = "16m"\ncache_size = "16m"',
            "Workload 'w' has memory = '16m' for a cache_size of '16m'.",
        ),
        ("bloom_bits = 101", "bloom_bits of workload 'w' is 101."),
        ('write_rate = "2m"', "Workload 'w' has a write_rate, but readrandom has no such writer."),
        ("read_percent = 70", "Workload 'w' has a read_percent, but readrandom does not mix."),
        ("records = 5", "records of workload 'w' does not go with its engine."),
        ("block_sizes = 5", "Unknown key 'block_sizes' in workload 'w'. Did you mean 'block_size'"),
        ('indicator = "iops"', "indicator of workload 'w' is 'iops'."),
        (
            "db_bench = { open_file = 1 }",
            "db_bench option 'open_file' of workload 'w' is not allowed. Did you mean 'open_files'",
        ),
        ("db_bench = { threads = 1 }", "db_bench option 'threads' of workload 'w' is not allowed."),
        ("db_bench = { mmap_read = 2 }", "db_bench option mmap_read of workload 'w' is 2."),
        ('database = "/mnt/db"\nvalue_size = 100', "Workload 'w' has a database but no key_size."),
        ('database = "db"', "database of workload 'w' is 'db'."),
    ],
)
def test_a_wrong_value_of_a_db_bench_workload(line: str, message: str) -> None:
    text = db_bench(line).replace("keys = 1000\n", "") if "keys" in line else db_bench(line)
    (fault,) = told(text)
    assert message.replace("s.toml:10", "s.toml:9") in fault


@pytest.mark.parametrize("name", ["readwhilewriting", "seekrandomwhilewriting"])
def test_a_writer_beside_the_readers_needs_a_rate(name: str) -> None:
    (fault,) = told(db_bench(benchmark=name))
    assert fault.startswith(f"s.toml:6: Workload 'w' has no write_rate, but {name} has a writer.")
    assert load(db_bench("write_rate = 1000", benchmark=name)).workloads
    (fault,) = told(db_bench("write_rate = 0", benchmark=name))
    assert "write_rate of workload 'w' is 0." in fault


@pytest.mark.parametrize(
    ("name", "near"),
    [
        ("readrandm", "readrandom"),
        ("read-while-writing", "readwhilewriting"),
        ("fillrandom", ""),
        ("readseq", ""),
    ],
)
def test_a_benchmark_that_db_bench_has_not_on_a_loaded_database(name: str, near: str) -> None:
    (fault,) = told(db_bench(benchmark=name))
    assert f"benchmark of workload 'w' is '{name}'." in fault
    assert not near or f"Did you mean '{near}'?" in fault


def test_a_database_of_the_user_has_one_block_size() -> None:
    extra = 'database = "/mnt/db"\nkey_size = 16\nvalue_size = 1024'
    (fault,) = told(db_bench(extra, block_size='["4k", "16k"]'))
    assert "several values of block_size" in fault


@pytest.mark.parametrize(
    ("mix", "message"),
    [
        ("{ read = 0.5, update = 0.4 }", "Workload 'w' has shares in mix that add up to 0.9."),
        ("{ }", "Workload 'w' has shares in mix that add up to 0."),
        ("{ read = 1.5 }", "mix.read of workload 'w' is 1.5."),
        ("{ reed = 1 }", "Unknown key 'reed' in workload 'w'. Did you mean 'read'?"),
        ("{ readmodifywrite = 1 }", "Did you mean 'read_modify_write'?"),
        ("5", "mix of workload 'w' is 5."),
    ],
)
def test_a_wrong_mix(mix: str, message: str) -> None:
    (fault,) = told(ycsb(mix=mix))
    assert message in fault
    assert fault.startswith("s.toml:6: ")


def test_thirds_and_tenths_are_a_whole() -> None:
    assert load(ycsb(mix="{ read = 0.7, update = 0.2, insert = 0.1 }")).workloads


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (
            'distribution = "unifrom"',
            "distribution of workload 'w' is 'unifrom'. Did you mean 'uniform'?",
        ),
        ("rate = 0", "rate of workload 'w' is 0."),
        (
            "ycsb = { readalfields = true }",
            "ycsb option 'readalfields' of workload 'w' is not allowed. Did you mean",
        ),
        ("ycsb = { records = 5 }", "ycsb option 'records' of workload 'w' is not allowed."),
        ("ycsb = { timeout_ms = 1 }", "ycsb option timeout_ms of workload 'w' is 1."),
        ("db_bench = { sync = 1 }", "db_bench of workload 'w' does not go with its engine."),
        ("fields = 0", "fields of workload 'w' is 0."),
        ('bs = "4k"', "bs of workload 'w' does not go with its engine."),
        ("filed_size = 5", "Unknown key 'filed_size' in workload 'w'. Did you mean 'field_size'?"),
    ],
)
def test_a_wrong_value_of_a_ycsb_workload(line: str, message: str) -> None:
    (fault,) = told(ycsb(line))
    assert message in fault


def test_required_keys_are_told_with_an_example() -> None:
    text = 'format = 1\nid = "s"\n[[workload]]\nid = "w"\nengine = "{}"\n'
    said = [fault.split(": ", 1)[1] for fault in told(text.format("db_bench"))]
    keys = ("benchmark", "keys", "block_size", "threads")
    for fault, key in zip(said, keys, strict=True):
        assert fault.startswith(f"Workload 'w' has no {key}. Write for example {key} = ")


def test_a_key_of_several_engines_names_them_all() -> None:
    said = told(SMALL, "workload.*.threads=4")
    assert "engine = 'db_bench' or 'ycsb'" in said[0]
