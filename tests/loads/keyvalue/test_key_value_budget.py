"""What key-value load is foretold to cost, what a plan notes of it, and what refuses it."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from iolab.core.host import DeviceFacts, HostFacts, ToolFacts
from iolab.core.run import Point
from iolab.core.study import Study
from iolab.errors import HostError
from iolab.loads.keyvalue.cost import (
    client_memory_needed_bytes,
    compacted_store_bytes,
    fill_and_compaction_seconds,
    jobs_of_distinct_stores,
    max_client_write_bytes_per_s,
    space_bytes_on_host,
)
from iolab.loads.keyvalue.problems import notes_on_tight_memory_limits, required_tools_by_program
from iolab.loads.keyvalue.workload import DatabaseSpec, DbBenchJob, KeyJob, KeyOperation, YcsbJob
from iolab.registry import study_kinds
from iolab.study.cost import run_overhead_seconds
from iolab.study.schedule import expand_points
from tests.loads.keyvalue.key_value_studies import db_bench, ycsb
from tests.plans import check_ready, make_plan
from tests.study.studies import SMALL, load
from tests.study.test_guard import FACTS, PROBE, TARGET

LOADED = DatabaseSpec(1_000_000, 16, 984, 4096, bloom_bits=8)
BENCH = DbBenchJob("readrandom", LOADED, 16, 8 << 20)
MIX = ((KeyOperation.READ, 0.5), (KeyOperation.UPDATE, 0.25), (KeyOperation.INSERT, 0.25))
YCSB = YcsbJob(MIX, 1_000_000, 16, fields=4, field_bytes=975)
TWO = '[[host]]\nname = "a"\n[[host]]\nname = "b"\n'


def test_a_store_takes_what_it_holds_and_a_little_more() -> None:
    assert compacted_store_bytes(BENCH) == 1_060_000_000 + 1_000_000
    assert compacted_store_bytes(YCSB) == 4_240_000_000


def test_a_load_inserts_writes_twice_and_waits_for_its_compaction() -> None:
    assert fill_and_compaction_seconds(BENCH, 2 * compacted_store_bytes(BENCH)) == pytest.approx(
        10 + 5 + 1
    )
    assert fill_and_compaction_seconds(YCSB, 2 * compacted_store_bytes(YCSB)) == pytest.approx(
        80 + 1
    )
    assert fill_and_compaction_seconds(
        YCSB, 2 * compacted_store_bytes(YCSB), is_embedded=False
    ) == pytest.approx(280 + 1)


@pytest.mark.parametrize(
    ("job", "expected"),
    [
        (BENCH, 0.0),
        (replace(BENCH, workload="seekrandom"), 0.0),
        (replace(BENCH, workload="overwrite"), 1000.0),
        (replace(BENCH, workload="updaterandom"), 1000.0),
        (replace(BENCH, workload="readrandomwriterandom", read_percent=80), 200.0),
        (replace(BENCH, workload="readwhilewriting", write_bytes_per_s=30), 30.0),
        (YCSB, 500.0),
        (replace(YCSB, mix=((KeyOperation.READ, 1.0),)), 0.0),
        (replace(YCSB, rate_ops_per_s=10, field_bytes=1), 20.0),
    ],
)
def test_what_a_client_writes_at_most(job: KeyJob, expected: float) -> None:
    assert max_client_write_bytes_per_s(job, 1000.0) == pytest.approx(expected)


def test_memory_grows_with_caches_filters_threads_and_memtables() -> None:
    base = client_memory_needed_bytes(BENCH)
    assert client_memory_needed_bytes(replace(BENCH, cache_bytes=1 << 30)) - base == (1 << 30) - (
        8 << 20
    )
    assert client_memory_needed_bytes(replace(BENCH, threads=64)) > base
    assert (
        client_memory_needed_bytes(replace(BENCH, loaded=replace(LOADED, bloom_bits=80))) - base
        == 9_000_000
    )
    assert client_memory_needed_bytes(replace(BENCH, workload="overwrite")) - base == 128 << 20
    slow = replace(BENCH, workload="readwhilewriting", write_bytes_per_s=1000)
    assert client_memory_needed_bytes(slow) - base < 1 << 20
    assert client_memory_needed_bytes(YCSB) > 256 << 20


def reasons(text: str, *sets: str) -> dict[str, float]:
    """Where the seconds of the plan go."""
    return dict(
        make_plan(load(text, "method.warmup=1", "method.runtime=4", *sets)).demand.time_items
    )


def of(found: dict[str, float], words: str) -> float:
    """The seconds of the one reason that has these words."""
    (seconds,) = [part for why, part in found.items() if words in why]
    return seconds


def test_the_time_of_db_bench_is_told_by_its_parts() -> None:
    text = db_bench(block_size='["4k", "16k"]', threads="[4, 16]")
    found = reasons(text)
    assert of(found, "load and compact 2 databases") == pytest.approx(20, abs=0.5)
    assert of(found, "4 runs of db_bench: warm-up") == 4 * (1 + 4 + 1)
    assert of(found, "4 runs of db_bench: copy") == pytest.approx(4 * 1.1)
    assert not any("verify" in why or "lay out" in why for why in found)
    made = reasons(text, "target.filesystem=xfs", "target.image=1g")
    assert of(made, "make an XFS") == 2


def test_a_rule_does_not_lengthen_runs_on_keys() -> None:
    found = reasons(db_bench(), "method.kind=adaptive", "method.repeats_max=4")
    assert of(found, "2 runs of db_bench: warm-up") == 2 * 6
    more = of(found, "more runs")
    assert more < 3 * 12


def test_a_database_of_the_user_is_not_loaded() -> None:
    text = db_bench('database = "/mnt/db"\nkey_size = 16\nvalue_size = 1024')
    assert not any("load and compact" in why for why in reasons(text))


def test_a_managed_node_costs_its_starts() -> None:
    embedded = reasons(ycsb(threads="[1, 2]"))
    managed = reasons(ycsb(threads="[1, 2]"), "server.kind=managed")
    given = reasons(ycsb(threads="[1, 2]"), "server.kind=given", "server.addresses=x")
    assert of(embedded, "2 runs of YCSB: copy") == 2 * 1
    assert of(managed, "2 runs of YCSB: restore") == 2 * 13
    assert of(given, "2 runs of YCSB: start") == 2 * 1
    assert of(embedded, "load and compact") < of(given, "load and compact") + 0.5
    assert of(managed, "load and compact") > of(given, "load and compact") + 20
    # All of them need a while to connect, a server longer than an embedded store.
    lengths = [of(found, "2 runs of YCSB: warm-up") for found in (embedded, managed, given)]
    assert 2 * 5 < lengths[0] < lengths[1] < lengths[2]


def seconds_of(study: Study, point: Point) -> float:
    return study_kinds().kind_for_engine(point.job.engine).expected_run_seconds(study, point)


def test_a_session_foretells_its_runs_as_the_plan_does() -> None:
    times = ("method.warmup=1", "method.runtime=4", "method.settle=0")
    for text, sets in (
        (db_bench(threads="[1, 2]"), ()),
        (ycsb(threads="[1, 2]"), ("server.kind=managed",)),
    ):
        study = load(text, *times, *sets)
        plan = make_plan(study)
        runs = sum(part for why, part in plan.demand.time_items if "2 runs of" in why)
        foretold = [
            seconds_of(study, point) + run_overhead_seconds(study.method) for point in plan.points
        ]
        assert sum(foretold) == pytest.approx(runs)
    mixed = load(SMALL, "method.kind=adaptive")
    assert seconds_of(mixed, expand_points(mixed)[0]) == mixed.method.load_seconds_range[1]


def test_bytes_are_of_loads_and_of_what_runs_write() -> None:
    reads = make_plan(load(db_bench())).demand
    (job,) = jobs_of_distinct_stores(expand_points(load(db_bench())))
    assert reads.write_bytes_estimate == 2 * compacted_store_bytes(job)
    assert make_plan(
        load(db_bench() + TWO)
    ).demand.write_bytes_estimate == 4 * compacted_store_bytes(job)
    text = db_bench("write_rate = 1000000", benchmark="readwhilewriting")
    writes = make_plan(load(text, "method.warmup=1", "method.runtime=4")).demand
    assert writes.write_bytes_estimate == 2 * compacted_store_bytes(job) + 3 * 5 * 10**6
    # One database, one copy, and two writes' worth of the run.
    study = load(text, "method.warmup=1", "method.runtime=4")
    space = space_bytes_on_host(study, expand_points(study), "local", 200e6)
    assert space == 2 * compacted_store_bytes(job) + 2 * 5 * 10**6
    assert writes.free_bytes_needed_per_host > space


def test_a_store_on_a_server_takes_space_where_the_server_is() -> None:
    text = ycsb(more=TWO + '[server]\nlisten = "192.0.2.7"\nhost = "b"\n', mix="{ read = 1 }")
    managed = load(text, "server.kind=managed")
    points = expand_points(managed)
    assert space_bytes_on_host(managed, points, "a", 1.0) == 0
    assert space_bytes_on_host(managed, points, "b", 1.0) > 2 * 1000 * 4096
    given = load(text, "server.kind=given", "server.addresses=x")
    assert space_bytes_on_host(given, expand_points(given), "b", 1.0) == 0
    own = load(text)
    assert space_bytes_on_host(own, expand_points(own), "a", 1.0) == space_bytes_on_host(
        own, expand_points(own), "b", 1.0
    )


def test_little_memory_is_noted_once_a_workload() -> None:
    text = db_bench('memory = "32m"', threads="[4, 8]")
    study = load(text)
    (message,) = notes_on_tight_memory_limits(study, expand_points(study))
    assert message.startswith("w threads=4 has 32 MiB, but")
    assert (
        list(
            notes_on_tight_memory_limits(
                load(db_bench('memory = "1g"')), expand_points(load(db_bench()))
            )
        )
        == []
    )
    node = load(ycsb(more='[server]\nheap = "1g"\nmemory = "1200m"\n'), "server.kind=managed")
    (message,) = notes_on_tight_memory_limits(node, expand_points(node))
    assert message.startswith("the managed server has 1.17 GiB")
    assert "need 1.5 GiB" in message
    small = load(ycsb('memory = "64m"'))
    assert len(list(notes_on_tight_memory_limits(small, expand_points(small)))) == 1
    # The client's own memory does not matter where the store is elsewhere.
    elsewhere = load(ycsb('memory = "64m"'), "server.kind=managed")
    assert list(notes_on_tight_memory_limits(elsewhere, expand_points(elsewhere))) == []


def test_what_hosts_are_asked_for() -> None:
    assert required_tools_by_program(load(SMALL)) == {}
    own = db_bench('db_bench = { db_bench = "/opt/rocksdb/db_bench" }')
    assert required_tools_by_program(load(own)) == {
        "/opt/rocksdb/db_bench": ("db_bench", ["/opt/rocksdb/db_bench", "--version"]),
        "sst_dump": ("sst_dump", ["sst_dump", "--version"]),
    }
    assert required_tools_by_program(load(ycsb(), "server.java=/opt/java")) == {
        "/opt/java": ("java", ["/opt/java", "-version"])
    }


def refusal(
    text: str, facts: HostFacts, *sets: str, device: DeviceFacts | None = None
) -> list[str] | None:
    """Why the plan may not run on that host; None when it may."""
    study = load(text, *sets, path=None if device else "/mnt/t")
    devices = {"local": device} if device else None
    try:
        check_ready(study, make_plan(study), {"local": facts}, {"local": PROBE}, devices=devices)
    except HostError as error:
        return [str(fault) for fault in error.faults]
    return None


def having(*tools: tuple[str, str | None]) -> HostFacts:
    """A host that was requested these programs."""
    return replace(FACTS, tools=tuple(ToolFacts(name, path, "1") for name, path in tools))


def test_a_program_that_is_missing_is_told_before_anything_runs() -> None:
    both = having(("db_bench", "/usr/bin/db_bench"), ("sst_dump", "/usr/bin/sst_dump"))
    assert refusal(db_bench(), both) is None
    lacking = refusal(db_bench(), having(("db_bench", None), ("sst_dump", None))) or []
    for message, program in zip(lacking, ("db_bench", "sst_dump"), strict=True):
        assert message.startswith(f"There is no '{program}' on host 'local'. Install rocksdb-tools")
    (message,) = refusal(ycsb(), having(("java", None))) or []
    assert message.startswith("There is no 'java' on host 'local'.")


def test_databases_need_room() -> None:
    small = replace(FACTS, target=replace(TARGET, free_bytes=65 << 20))
    assert refusal(db_bench(), FACTS) is None
    (message,) = refusal(db_bench("value_size = 10000"), small) or []
    assert message.startswith("'/mnt/t' on host 'local' has 65 MiB free")
    assert refusal(db_bench("value_size = 10000"), small, "target.keep_files=true") is None


def test_an_image_must_hold_the_databases_and_have_room_itself() -> None:
    made = ("target.filesystem=xfs", "target.image=1g")
    assert refusal(db_bench(), FACTS, *made) is None
    (message,) = refusal(db_bench("value_size = 500000"), FACTS, *made) or []
    assert "1 GiB is too small" in message
    little = replace(FACTS, target=replace(TARGET, free_bytes=1 << 30))
    (message,) = refusal(db_bench(), little, *made) or []
    assert "1 GiB free" in message
    assert "1.11 GiB" in message


def test_a_device_must_hold_the_databases() -> None:
    text = db_bench("value_size = 500000") + (
        '[target]\nfilesystem = "xfs"\ndevice = "/dev/x"\nserial = "S"\n'
    )
    seen = DeviceFacts(
        path="/dev/x",
        real_path="/dev/x",
        name="x",
        serial="S",
        size_bytes=1 << 40,
        logical_block_bytes=512,
        discards=True,
        devices=("x",),
        memory_backed=False,
        objections=(),
    )
    assert refusal(text, FACTS, device=seen) is None
    (message,) = refusal(text, FACTS, device=replace(seen, size_bytes=1 << 30)) or []
    assert "has 1 GiB, databases" in message
