"""What a cell leaves, read as evidence: when it began, what it counted, what it says of itself."""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from iolab.loads.keyvalue.db_bench.evidence import BenchRunOutput, BenchRunRequest, read_bench_run
from iolab.loads.keyvalue.workload import DatabaseSpec, DbBenchJob, KeyOperation, StoreShape
from tests.recorded import is_recorded, recorded

LOADED: Final = DatabaseSpec(keys=60000, key_bytes=16, value_bytes=1024, block_bytes=4096)
JOB: Final = DbBenchJob("readrandom", LOADED, threads=4, cache_bytes=8388608)
WRITING: Final = replace(JOB, workload="readwhilewriting", write_bytes_per_s=4194304)
S: Final = 1_000_000_000


def asked(job: DbBenchJob = JOB) -> BenchRunRequest:
    return BenchRunRequest(job, 3, 9, 5, "7.8.3", "reflink", StoreShape(), None)


def left(name: str, *, heard_ns: int | None = None, exited_ns: int | None = None) -> BenchRunOutput:
    report = f"db_bench/{name}.csv"
    return BenchRunOutput(
        recorded(f"db_bench/{name}.txt"),
        recorded(f"db_bench/{name}.err"),
        recorded(report) if is_recorded(report) else None,
        heard_ns,
        exited_ns,
    )


def stamped_bounds(name: str) -> tuple[int, int]:
    """Between which moments the recorded cell began by its own stamps."""
    far, _ = read_bench_run(asked(), left(name, heard_ns=1 << 62), was_halted=False)
    early, _ = read_bench_run(asked(), left(name, heard_ns=1), was_halted=False)
    assert early.start_real_ns is not None
    assert far.start_real_ns is not None
    return early.start_real_ns, far.start_real_ns


def test_it_began_when_its_lines_were_heard_within_what_their_stamps_allow() -> None:
    low, high = stamped_bounds("readrandom-4096")
    assert 0 < high - low < S
    middle = (low + high) // 2
    reading, _ = read_bench_run(asked(), left("readrandom-4096", heard_ns=middle), was_halted=False)
    assert reading.start_real_ns == middle
    assert reading.end_real_ns == middle + 3_001_000_000


def test_one_without_a_line_ended_with_its_process() -> None:
    mute = replace(left("readrandom-4096", exited_ns=100 * S), stderr=b"")
    reading, told = read_bench_run(asked(), mute, was_halted=False)
    assert (reading.start_real_ns, reading.end_real_ns) == (96_999_000_000, 100 * S)
    assert len(reading.intervals) == 3
    assert told.counts[0].completed == 664513


def test_one_that_was_killed_has_its_seconds_and_says_so() -> None:
    reading, told = read_bench_run(asked(), left("killed", heard_ns=1), was_halted=False)
    assert any("no result for readrandom" in fault for fault in reading.faults)
    assert told.faults == reading.faults
    assert told.counts == ()
    assert told.reported_s is None
    assert reading.start_real_ns is not None
    assert reading.end_real_ns is not None
    assert reading.end_real_ns > reading.start_real_ns
    assert len(reading.intervals) >= 1
    halted, _ = read_bench_run(asked(), left("killed", heard_ns=1), was_halted=True)
    assert halted.faults == ()


def test_one_that_left_nothing_is_read_too() -> None:
    nothing = BenchRunOutput(b"", b"", None, None, None)
    reading, told = read_bench_run(asked(), nothing, was_halted=False)
    assert (reading.start_real_ns, reading.end_real_ns, len(reading.intervals)) == (None, None, 0)
    assert reading.version == "db_bench 7.8.3"
    assert told.seed == 9
    assert told.load_seed == 5


def test_writes_beside_readers_are_counted_and_have_no_bins() -> None:
    _, told = read_bench_run(asked(WRITING), left("readwhilewriting", heard_ns=1), was_halted=False)
    assert [(one.operation, one.completed, one.absent) for one in told.counts] == [
        (KeyOperation.READ, 556689, 0),
        (KeyOperation.WRITE, 12099, None),
    ]
    assert [one.operation for one in told.latencies] == [KeyOperation.READ]
    values = {one.name: one.value for one in told.statistics}
    assert values["rocksdb.db.write.micros COUNT"] == 12099
    assert values["rocksdb.db.write.micros P99"] > values["rocksdb.db.write.micros P50"] > 0


def test_keys_that_were_not_there_are_counted() -> None:
    _, told = read_bench_run(asked(), left("fillrandom", heard_ns=1), was_halted=False)
    (reads,) = told.counts
    assert reads.absent is not None
    assert 0.3 < reads.absent / reads.completed < 0.4
    assert "were not found" in told.faults[0]


def test_an_old_version_of_which_nobody_knows_when_it_ran_is_a_fault() -> None:
    whole = left("readrandom-4096", exited_ns=100 * S)
    old = whole.stdout.replace(b" 3.001 seconds 664513 operations", b"")
    reading, told = read_bench_run(
        asked(), replace(whole, stdout=old, stderr=b""), was_halted=False
    )
    assert ["when it ran" in fault for fault in reading.faults + told.faults] == [True] * 2
    reading, _ = read_bench_run(
        asked(), replace(whole, stdout=old, latest_possible_start_ns=1), was_halted=False
    )
    assert reading.faults == ()
    assert len(reading.intervals) == 2
