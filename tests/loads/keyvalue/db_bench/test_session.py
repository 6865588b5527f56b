"""Sessions of db_bench: databases loaded once, cells on copies, and all that may go wrong."""

from __future__ import annotations

import pytest

from iolab.core.events import SessionPhase
from iolab.core.run import RunStatus
from iolab.loads.keyvalue.db_bench.engine import SeedRange
from iolab.loads.keyvalue.workload import KeyOperation, key_value_details_of_host
from tests.fakes.script import BEGINNING_NS, FakeScript
from tests.loads.keyvalue.db_bench.stage import MIXED, RATE, WRITING, done, phases, stage, workload
from tests.session.fake_db_bench import KEYS, FakeDbBench


def test_caches_are_left_alone_where_the_method_says_so() -> None:
    played = stage(FakeDbBench(), sets=("method.drop_caches=false",))
    (record,) = played.records
    assert record.failure is None
    assert record.hosts[0].cache_drop is not None
    assert record.hosts[0].cache_drop.requested is False
    assert record.hosts[0].cache_drop.resident_bytes_after is None
    assert played.hosts["local"].asked("evict") == []
    assert SessionPhase.DROP_CACHES not in phases(played)


def test_each_cell_of_a_study_is_measured_on_a_copy_of_one_database() -> None:
    bench = FakeDbBench()
    played = stage(bench, workload(), workload(MIXED), workload(WRITING, RATE))
    assert played.fault is None
    assert [record.failure for record in played.records] == [None] * 3
    assert [record.status for record in played.records] == [RunStatus.DONE] * 3
    assert len(bench.loads) == 1
    databases = {flags["db"] for flags in bench.measured}
    assert len(databases) == 1
    assert bench.loads[0]["db"] not in databases
    assert [flags["duration"] for flags in bench.measured] == ["3"] * 3
    every = [
        SessionPhase.PROVE,
        SessionPhase.LAY_OUT,
        SessionPhase.DROP_CACHES,
        SessionPhase.IDLE,
        SessionPhase.MEASURE,
    ]
    assert phases(played) == [SessionPhase.PROVE, SessionPhase.LAY_OUT, *every[1:], *every, *every]
    assert [len(flags) for flags in played.hosts["local"].asked("sync")] == [0]
    played.assert_left_clean()


def test_a_record_has_what_the_engine_told() -> None:
    (record,) = stage(FakeDbBench()).records
    (host,) = record.hosts
    assert host.engine_version == "db_bench 7.8.3"
    told = key_value_details_of_host(host)
    assert told is not None
    assert told.build == "assertions enabled"
    assert told.copied_by == "reflink"
    assert told.faults == ()
    (read,) = told.counts
    assert (read.operation, read.completed, read.failed, read.absent) == (33, 664513, 0, 0)
    assert told.latencies[0].count == 664513
    assert told.reported_ops_per_s == 221459
    assert told.reported_s == 3.001
    assert told.start is not None
    assert told.start.tables is not None
    assert told.start.tables.entries == KEYS
    assert told.start.pending_bytes == 0
    assert [level.files for level in told.start.levels] == [0, 1]
    values = {one.name: (one.value, one.unit) for one in told.statistics}
    assert values["rocksdb.number.keys.read"] == (664513, "")
    assert values["Cumulative stall"] == (0, "s")
    assert values["compaction W-Amp"] == (0, "")
    assert host.cache_drop is not None
    assert (host.cache_drop.requested, host.cache_drop.resident_bytes_after) == (True, 0)
    names = [output.name for output in record.outputs]
    assert names == ["db_bench.stdout", "db_bench.stderr", "db_bench.report.csv"]


def test_seconds_are_those_of_the_report_and_end_with_the_cell() -> None:
    (record,) = stage(FakeDbBench()).records
    (host,) = record.hosts
    counts = done(record, KeyOperation.ALL)
    assert len(counts) == 3
    assert sum(counts) == 664513
    assert done(record, KeyOperation.WRITE) == []
    assert host.start_real_ns is not None
    assert host.end_real_ns == host.start_real_ns + 3_001_000_000
    ends = [int(end) - host.start_real_ns for end in record.intervals.end_real_ns]
    assert ends == [1_000_000_000, 2_000_000_000, 3_001_000_000]
    assert not record.intervals.bytes.any()
    assert len(record.bins) == 0


def test_the_writer_beside_the_readers_is_told_apart() -> None:
    (record,) = stage(FakeDbBench(), workload(WRITING, RATE)).records
    told = key_value_details_of_host(record.hosts[0])
    assert told is not None
    counts = {count.operation: count.completed for count in told.counts}
    assert set(counts) == {KeyOperation.READ, KeyOperation.WRITE}
    reads, writes = done(record, KeyOperation.ALL), done(record, KeyOperation.WRITE)
    assert sum(reads) == pytest.approx(counts[KeyOperation.READ], rel=0.01)
    assert sum(writes) == pytest.approx(counts[KeyOperation.WRITE], rel=0.03)
    assert writes[1] == pytest.approx(4 * (1 << 20) / 1040, rel=0.05)


def test_databases_of_other_blocks_are_loaded_apart_and_seeds_never_meet() -> None:
    bench = FakeDbBench()
    played = stage(bench, workload(blocks='["4k", "16k"]'), sets=("method.repeats=2",))
    assert [record.failure for record in played.records] == [None] * 4
    assert sorted(flags["block_size"] for flags in bench.loads) == ["16384", "4096"]
    streams = [SeedRange(int(flags["seed"]), int(flags["threads"])) for flags in bench.started]
    assert len(streams) == 6
    assert not any(a.overlaps(b) for a in streams for b in streams if a is not b)
    seeds = {flags["seed"] for flags in bench.measured}
    recorded = [key_value_details_of_host(record.hosts[0]) for record in played.records]
    assert {str(told.seed) for told in recorded if told} == seeds
    assert {str(told.load_seed) for told in recorded if told} == {
        flags["seed"] for flags in bench.loads
    }


def test_hosts_begin_together_with_keys_of_their_own() -> None:
    benches = {"a": FakeDbBench(), "b": FakeDbBench()}
    played = stage(benches)
    (record,) = played.records
    assert record.failure is None
    starts = [host.start_real_ns or 0 for host in record.hosts]
    assert abs(starts[0] - starts[1]) < 5_000_000
    assert min(starts) > BEGINNING_NS
    assert benches["a"].measured[0]["seed"] != benches["b"].measured[0]["seed"]
    assert benches["a"].loads[0]["seed"] != benches["b"].loads[0]["seed"]
    played.assert_left_clean()


def test_a_clock_that_is_ahead_moves_the_evidence_with_it() -> None:
    (record,) = stage(FakeDbBench(), script=FakeScript(offset_ns=3600 * 10**9)).records
    (host,) = record.hosts
    assert host.start_real_ns is not None
    ahead_ns = host.start_real_ns - record.started_real_ns
    assert 3600 * 10**9 < ahead_ns < 3660 * 10**9


def test_without_reflinks_the_database_is_copied_and_that_is_recorded() -> None:
    bench = FakeDbBench()
    script = FakeScript(programs=bench.programs(reflinks=False))
    (record,) = stage(bench, script=script).records
    assert record.failure is None
    told = key_value_details_of_host(record.hosts[0])
    assert told is not None
    assert told.copied_by == "copy"


def test_memory_is_bounded_for_the_cell_alone() -> None:
    played = stage(FakeDbBench(), workload(extra='memory = "256m"'))
    assert played.records[0].failure is None
    bounds = {
        request.get("memory_limit_bytes")
        for request in played.hosts["local"].asked("run")
        if "--duration=3" in request["argv"]  # type: ignore[operator]
    }
    assert bounds == {256 << 20}
    others = [
        request
        for request in played.hosts["local"].asked("run")
        if "--duration=3" not in request["argv"]  # type: ignore[operator]
    ]
    assert others
    assert not any("memory_limit_bytes" in request for request in others)
