"""db_bench's command lines, and every way in which it measures something else than was asked."""

from __future__ import annotations

from itertools import pairwise
from typing import Final

import pytest
from msgspec.structs import replace

from iolab.errors import EngineError
from iolab.loads.keyvalue.db_bench.engine import (
    LOAD,
    SEED_MAX,
    SEED_STEP,
    bench_command,
    bench_seed_range,
    build_level_statistics_command,
    database_fill_command,
    derived_seed,
    fill_seed_range,
    next_free_seed,
    parse_version,
    table_shape_command,
    version_command,
)
from iolab.loads.keyvalue.db_bench.evidence import bench_run_faults, fill_faults
from iolab.loads.keyvalue.db_bench.output import DbBenchOutput, parse_db_bench_output
from iolab.loads.keyvalue.db_bench.run import parse_sst_dump_properties, table_shape_faults
from iolab.loads.keyvalue.table import DB_BENCH_OPTIONS, PROGRAMS
from iolab.loads.keyvalue.workload import DatabaseSpec, DbBenchJob
from tests.recorded import recorded

LOADED: Final = DatabaseSpec(keys=60000, key_bytes=16, value_bytes=1024, block_bytes=4096)
JOB: Final = DbBenchJob("readrandom", LOADED, threads=4, cache_bytes=8388608)
WRITING: Final = replace(JOB, workload="readwhilewriting", write_bytes_per_s=4194304)
MIXED: Final = replace(JOB, workload="readrandomwriterandom")
TREE_BYTES: Final = round(60.44 * (1 << 20))


def raw(name: str) -> bytes:
    return recorded(f"db_bench/{name}")


def golden(name: str, old: bytes = b"", new: bytes = b"") -> DbBenchOutput:
    """The output of that name, with one thing in it made another."""
    text = raw(f"{name}.txt")
    assert old in text
    return parse_db_bench_output(text.replace(old, new) if old else text, raw(f"{name}.err"))


def test_the_published_cell_is_what_is_run() -> None:
    loaded = DatabaseSpec(keys=10**9, key_bytes=16, value_bytes=1024, block_bytes=16384)
    job = replace(MIXED, loaded=loaded, threads=64)
    command = bench_command(job, "/mnt/x", "run-7", seconds=60, seed=7000, report_file="r.csv")
    assert command.argv == (
        *("db_bench", "--benchmarks=readrandomwriterandom,stats"),
        *("--db=run-7", "--num=1000000000", "--key_size=16", "--value_size=1024"),
        *("--block_size=16384", "--bloom_bits=10", "--compression_type=none"),
        *("--use_existing_db=1", "--cache_size=8388608", "--threads=64", "--duration=60"),
        *("--ops_between_duration_checks=1", "--histogram=1", "--statistics=1"),
        *("--stats_interval_seconds=1", "--readwritepercent=80", "--seed=7000"),
        *("--report_interval_seconds=1", "--report_file=r.csv"),
    )
    assert command.cwd == "/mnt/x"
    assert command.env == (("TZ", "UTC0"),)
    assert command.wall_limit_s > 60
    assert command.memory_limit_bytes is None
    bounded = replace(job, memory_bytes=1 << 28)
    command = bench_command(bounded, "/mnt/x", "run-7", seconds=60, seed=7, report_file="r.csv")
    assert command.memory_limit_bytes == 1 << 28


def test_the_load_writes_every_key_once_and_compacts() -> None:
    command = database_fill_command(JOB, "/mnt/x", "golden", seed=5096)
    assert command.argv == (
        "db_bench",
        f"--benchmarks={LOAD}",
        *("--db=golden", "--num=60000", "--key_size=16", "--value_size=1024"),
        *("--block_size=4096", "--bloom_bits=10", "--compression_type=none"),
        *("--use_existing_db=0", "--disable_wal=1", "--threads=1", "--histogram=1"),
        *("--progress_reports=0", "--seed=5096"),
    )
    huge = replace(JOB, loaded=replace(LOADED, keys=10**9))
    assert database_fill_command(huge, "/", "x", seed=1).wall_limit_s > 10**12 / 5e6


def test_options_reach_db_bench_and_programs_are_named() -> None:
    options = (("use_direct_reads", "1"), ("disable_wal", "0"), ("db_bench", "/opt/r/db_bench"))
    job = replace(JOB, options=(*options, ("sst_dump", "/opt/r/sst_dump-9")))
    argv = bench_command(job, "/t", "d", seconds=3, report_file="r.csv", seed=1).argv
    assert argv[0] == "/opt/r/db_bench"
    assert {"--use_direct_reads=1", "--disable_wal=0"} <= set(argv)
    assert not any("sst_dump" in word for word in argv)
    load = database_fill_command(job, "/t", "d", seed=1).argv
    assert [word for word in load if "disable_wal" in word] == ["--disable_wal=1"]
    assert table_shape_command(job, "/t", "d").argv == (
        *("/opt/r/sst_dump-9", "--file=d", "--command=none", "--show_properties"),
    )
    assert version_command(job.options, "/t").argv == ("/opt/r/db_bench", "--version")
    asked = version_command(job.options, "/t", "sst_dump")
    assert asked.argv == ("/opt/r/sst_dump-9", "--version")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("db_bench", "/bin/sh"),
        ("db_bench", "-db_bench"),
        ("sst_dump", "/opt/-x/sst_dump"),
        ("sync", "yes"),
        ("seed", "1"),
        ("db", "/home"),
        ("report_file", "/etc/passwd"),
        ("cache_type", "lru_cache --db=/"),
        ("write_buffer_size", "64m"),
    ],
)
def test_anything_else_is_refused(name: str, value: str) -> None:
    assert name in (*PROGRAMS, *DB_BENCH_OPTIONS, "seed", "db", "report_file")
    job = replace(JOB, options=((name, value),))
    with pytest.raises(EngineError, match=name):
        bench_command(job, "/t", "d", seconds=3, report_file="r.csv", seed=1)
    with pytest.raises(EngineError, match=name):
        database_fill_command(job, "/t", "d", seed=1)


@pytest.mark.parametrize(
    "workload", ["fillrandom", "compact", "readrandom,fillseq", "-x", "", "deleterandom", "Read"]
)
def test_a_workload_that_makes_another_database_is_refused(workload: str) -> None:
    with pytest.raises(EngineError, match="cannot measure the workload"):
        bench_command(
            replace(JOB, workload=workload), "/t", "d", seconds=3, report_file="r.csv", seed=1
        )


def test_the_writer_beside_the_readers_must_have_a_rate() -> None:
    argv = bench_command(WRITING, "/t", "d", seconds=3, report_file="r.csv", seed=1).argv
    assert "--benchmark_write_rate_limit=4194304" in argv
    assert "--readwritepercent=80" not in argv
    with pytest.raises(EngineError, match="has no rate"):
        bench_command(
            replace(WRITING, write_bytes_per_s=None),
            "/t",
            "d",
            seconds=3,
            report_file="r.csv",
            seed=1,
        )


@pytest.mark.parametrize("seed", [0, -1, SEED_MAX + 1])
def test_a_seed_that_db_bench_would_not_use_is_refused(seed: int) -> None:
    with pytest.raises(EngineError, match="is not a seed"):
        bench_command(JOB, "/t", "d", seconds=3, report_file="r.csv", seed=seed)
    with pytest.raises(EngineError, match="is not a seed"):
        database_fill_command(JOB, "/t", "d", seed=seed)


def test_a_seed_goes_on_until_no_thread_has_a_stream_in_common() -> None:
    used = [
        bench_seed_range(JOB, 90201),
        fill_seed_range(5096),
        bench_seed_range(JOB, 90205),
        fill_seed_range(99999),
    ]
    assert next_free_seed(used, bench_seed_range(JOB, 90199)) == 90209
    assert next_free_seed(used, bench_seed_range(JOB, 5092)) == 5092
    assert next_free_seed(used, bench_seed_range(JOB, 5093)) == 5097
    assert next_free_seed([], fill_seed_range(17)) == 17


def test_a_derived_seed_is_always_the_same_and_far_from_all_others() -> None:
    what = [
        ("point", repeat, attempt, host) for repeat in (1, 2) for attempt in (1, 2) for host in "ab"
    ]
    seeds = sorted(derived_seed(study, *words) for study in (1, 2) for words in what)
    assert seeds == sorted(derived_seed(study, *words) for study in (1, 2) for words in what)
    assert min(b - a for a, b in pairwise(seeds)) >= SEED_STEP
    assert all(1 <= seed <= SEED_MAX - SEED_STEP for seed in seeds)


def test_a_writer_of_any_kind_draws_from_a_stream_of_its_own() -> None:
    assert replace(JOB, workload="seekrandomwhilewriting").seed_stream_count == 5
    assert WRITING.seed_stream_count == 5
    assert JOB.seed_stream_count == MIXED.seed_stream_count == 4


@pytest.mark.parametrize(
    ("words", "version"),
    [
        (b"db_bench version 7.8.3\n", "7.8.3"),
        (b"db_bench version 10.2.1.4\n", "10.2.1.4"),
        (b"db_bench\n", ""),
        (b"", ""),
        (b"\xff version what", ""),
    ],
)
def test_the_version_is_read_where_it_is_told(words: bytes, version: str) -> None:
    assert parse_version(words) == version


def test_a_database_is_asked_for_its_levels_without_compacting_it() -> None:
    job = replace(JOB, options=(("num_levels", "4"), ("disable_auto_compactions", "0")))
    argv = build_level_statistics_command(job, "/t", "d").argv
    assert "--benchmarks=levelstats,stats" in argv
    assert "--use_existing_db=1" in argv
    assert "--num_levels=4" in argv
    assert [word for word in argv if "auto_comp" in word] == ["--disable_auto_compactions=1"]


@pytest.mark.parametrize(
    ("name", "job"),
    [
        ("readrandom-4096", JOB),
        ("readrandom-16384", replace(JOB, loaded=replace(LOADED, block_bytes=16384))),
        ("readrandomwriterandom", MIXED),
        ("readwhilewriting", WRITING),
    ],
)
def test_a_cell_that_is_as_asked_for_has_no_fault(name: str, job: DbBenchJob) -> None:
    assert bench_run_faults(golden(name), job, 3, TREE_BYTES) == ()


@pytest.mark.parametrize("block_bytes", [4096, 16384])
def test_a_load_that_is_as_asked_for_has_no_fault(block_bytes: int) -> None:
    loaded = replace(LOADED, block_bytes=block_bytes)
    assert fill_faults(golden(f"load-{block_bytes}"), loaded) == ()
    shape = parse_sst_dump_properties(raw(f"sst-{block_bytes}.txt"))
    assert shape is not None
    assert (shape.files, shape.entries) == (1, 60000)
    assert table_shape_faults(shape, loaded) == ()


@pytest.mark.parametrize(
    ("name", "job", "message"),
    [
        ("missing", JOB, "none of 15877389 keys was found: there was no database"),
        (
            "half-loaded",
            replace(JOB, loaded=replace(LOADED, keys=120000)),
            "of 1293017 keys were not found",
        ),
        ("fillrandom", JOB, "of 2255191 keys were not found"),
        (
            "wrong-block",
            replace(JOB, loaded=replace(LOADED, block_bytes=16384)),
            "blocks of 4288 bytes on average, and was to have 16384",
        ),
        ("unthrottled", WRITING, "the writer's limit was 0 bytes/s"),
        ("unknown-benchmark", JOB, "unknown benchmark 'readrandm'"),
        ("unknown-flag", JOB, "unknown command line flag"),
        ("disk-full", JOB, "No space left on device"),
        ("killed", JOB, "no result for readrandom; it was last heard of after 1.0 s"),
        ("readrandomwriterandom", replace(MIXED, read_percent=90), "80.0 % of operations were"),
        ("readrandom-4096", WRITING, "no result for readwhilewriting"),
        ("readrandom-4096", replace(JOB, loaded=replace(LOADED, keys=9)), "used 60000 keys"),
    ],
)
def test_a_cell_that_is_not_as_asked_for_says_why(name: str, job: DbBenchJob, message: str) -> None:
    assert message in " / ".join(bench_run_faults(golden(name), job, 3))


def test_reads_come_before_writes_in_each_hundred() -> None:
    """So threads that stop in the middle have read up to 16 too many each, at 80 %."""
    mixed = bench_run_faults(golden("readrandomwriterandom"), MIXED, 3)
    assert mixed == ()
    more = replace(MIXED, read_percent=81)
    assert (
        "80.0 % of operations were reads, and 81 %"
        in bench_run_faults(golden("readrandomwriterandom"), more, 3)[0]
    )
    fewer = replace(MIXED, read_percent=79)
    assert "79 % were requested" in bench_run_faults(golden("readrandomwriterandom"), fewer, 3)[0]
    many = replace(fewer, threads=512)
    assert bench_run_faults(golden("readrandomwriterandom"), many, 3) == ()


def test_keys_are_counted_over_all_threads() -> None:
    """What db_bench prints as found is its first thread's: 713699 of 1130080 here."""
    (fault,) = bench_run_faults(golden("fillrandom"), JOB, 3)
    missing, _, rest = fault.partition(" of ")
    assert rest.startswith("2255191 keys")
    assert 0.3 < int(missing) / 2255191 < 0.4
    without = raw("fillrandom.txt").split(b"STATISTICS:")[0]
    (fault,) = bench_run_faults(parse_db_bench_output(without, b""), JOB, 3)
    assert fault.startswith("416381 of 1130080 keys")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (b"664513 operations", b"664514 operations", "counted 664514 operations, and timed 664513"),
        (b"Microseconds per read", b"Microseconds per hash", "no whole histogram for read"),
        (b"3.001 seconds", b"2.001 seconds", "ran for 2.001 s, and 3 s were requested"),
        (b"60.44 MB", b"30.44 MB", "the tree had 31918653 bytes at the end"),
        (b"Values:     1024", b"Values:     512 ", "used 512 bytes a value"),
        (b"Compression: NoCompression", b"Compression: Snappy", "the compression Snappy"),
    ],
)
def test_a_cell_that_contradicts_itself_says_so(old: bytes, new: bytes, message: str) -> None:
    faults = bench_run_faults(golden("readrandom-4096", old, new), JOB, 3, TREE_BYTES)
    assert message in " / ".join(faults)


def test_a_workload_that_looks_for_absent_keys_on_purpose_may_find_none() -> None:
    text = raw("fillrandom.txt").replace(b"readrandom   :", b"readrandomfast :")
    output = parse_db_bench_output(text, raw("fillrandom.err"))
    assert "were not found" in bench_run_faults(golden("fillrandom"), JOB, 3)[0]
    assert bench_run_faults(output, replace(JOB, workload="readrandomfast"), 3) == ()


def test_a_tree_that_only_reads_must_not_grow_and_one_that_writes_may() -> None:
    grown = golden("readrandom-4096", b"60.44 MB", b"90.44 MB")
    assert "the tree had" in bench_run_faults(grown, JOB, 3, TREE_BYTES)[0]
    grown = golden("readwhilewriting", b"60.44 MB", b"90.44 MB")
    assert bench_run_faults(grown, WRITING, 3, TREE_BYTES) == ()


def test_a_writer_that_wrote_nothing_is_a_fault() -> None:
    text = raw("readwhilewriting.txt").replace(b"rocksdb.db.write.micros", b"rocksdb.db.other")
    assert (
        "nothing was written" in bench_run_faults(parse_db_bench_output(text, b""), WRITING, 3)[0]
    )


def test_another_workload_must_be_timed_at_all() -> None:
    seek = replace(JOB, workload="seekrandom")
    text = raw("readrandom-4096.txt").replace(b"readrandom  ", b"seekrandom  ")
    assert bench_run_faults(parse_db_bench_output(text, b""), seek, 3) == ()
    faults = bench_run_faults(
        parse_db_bench_output(text.replace(b"Microseconds per", b"Percent per"), b""), seek, 3
    )
    assert faults == ("db_bench timed no operation of seekrandom",)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (b"60000 operations", b"59999 operations", "wrote 59999 keys, and 60000"),
        (b"filluniquerandom :", b"fillrandom :", "no result for filluniquerandom"),
        (b"compact      :", b"compactall :", "no result for compact"),
        (b"Level Files Size(MB)", b"Level Blobs", "did not print the levels"),
        (b"  0        0        0\n", b"  0        3        9\n", "level 0 has 3 files left"),
        (b"  1        1       60\n", b"  1        0        0\n", "has no file after its load"),
        (b"60.44 MB   0.2", b"60.44 MB   1.7", "level 1 is at 1.7 of its limit"),
        (b"Entries:    60000", b"Entries:    600", "used 600 keys"),
    ],
)
def test_a_load_that_is_not_as_asked_for_says_why(old: bytes, new: bytes, message: str) -> None:
    assert message in " / ".join(fill_faults(golden("load-4096", old, new), LOADED))


def test_the_files_tell_what_the_database_is() -> None:
    other = replace(LOADED, keys=120000, value_bytes=512, block_bytes=16384)
    faults = table_shape_faults(parse_sst_dump_properties(raw("sst-4096.txt")), other)
    numbers = [[int(one) for one in fault.split() if one.isdigit()] for fault in faults]
    assert numbers == [[60000, 120000], [16, 1024, 16, 512], [4200, 16384]]
    small = table_shape_faults(parse_sst_dump_properties(raw("sst-16384.txt")), LOADED)
    assert "blocks of 15695 bytes" in small[0]
    packed = raw("sst-4096.txt").replace(b"algo: NoCompression", b"algo: Snappy")
    assert table_shape_faults(parse_sst_dump_properties(packed), LOADED) == (
        "the database is compressed: Snappy",
    )


def test_several_files_are_added_up() -> None:
    two = raw("sst-4096.txt") + raw("sst-16384.txt")
    shape = parse_sst_dump_properties(two)
    assert shape is not None
    assert (shape.files, shape.entries, shape.compression) == (2, 120000, ("NoCompression",))
    assert parse_sst_dump_properties(two[: len(two) - 1400]) is None
