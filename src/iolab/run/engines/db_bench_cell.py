"""What a cell of db_bench leaves, read as one: the evidence of a run on a host. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from iolab.model.key_value import KeyOperation, KeyValueJob
from iolab.model.key_value_run import KeyValueRun, OperationCount, Statistic, StoreShape
from iolab.run.engines.base import NS_PER_S, EngineReading
from iolab.run.engines.db_bench_faults import ABSENT_BY_DESIGN, cell_faults
from iolab.run.engines.db_bench_output import Build, DbBenchOutput, parse
from iolab.run.engines.db_bench_progress import report_rows, start_bounds_s
from iolab.run.engines.db_bench_seconds import Totals, intervals_of, seconds_of

READS: Final = "rocksdb.db.get.micros"
WRITES: Final = "rocksdb.db.write.micros"
"""RocksDB's own timing of writes: the only one of a writer beside the readers."""

BYTES: Final = (
    "rocksdb.bytes.read",
    "rocksdb.bytes.written",
    "rocksdb.flush.write.bytes",
    "rocksdb.compact.read.bytes",
    "rocksdb.compact.write.bytes",
    "rocksdb.wal.bytes",
)
COUNTS: Final = (
    "rocksdb.number.keys.read",
    "rocksdb.number.keys.written",
    "rocksdb.block.cache.data.hit",
    "rocksdb.block.cache.data.miss",
    "rocksdb.bloom.filter.useful",
)
STALLED: Final = "rocksdb.stall.micros"


@dataclass(frozen=True, slots=True)
class Asked:
    """What a cell was to be: its job for so many seconds, from which seeds and which database.

    `loaded_bytes` are those of the tree after its load. `version` is what the program said of
    itself before.
    """

    job: KeyValueJob
    seconds: int
    seed: int
    load_seed: int | None
    version: str
    copied_by: str
    start: StoreShape
    loaded_bytes: int | None


@dataclass(frozen=True, slots=True)
class Left:
    """What a cell left behind.

    `report` is None for a file that is not there. `heard_ns` is the latest moment of its start by
    when its lines came, `exited_ns` when it was gone, both on the host's clock; None if unknown.
    """

    stdout: bytes
    stderr: bytes
    report: bytes | None
    heard_ns: int | None
    exited_ns: int | None


def read_cell(asked: Asked, left: Left, *, halted: bool) -> tuple[EngineReading, KeyValueRun]:
    """The evidence; a cell that was `halted` at our wish has no fault for that it is not whole."""
    job = asked.job
    output = parse(left.stdout, left.stderr)
    rows = report_rows(left.report) if left.report is not None else None
    faults = () if halted else _faults(output, asked, rows)
    totals = _totals(output, job)
    start_ns = _start_ns(output, totals, left)
    seconds = seconds_of(rows or (), output.progress, job, totals)
    heard_s = max((one.elapsed_s for one in output.progress), default=None)
    length_s = totals.seconds or heard_s or (seconds[-1].end_s if seconds else None)
    known = start_ns is not None and length_s is not None
    intervals = intervals_of(seconds, start_ns) if start_ns else ()
    if not (halted or faults or intervals):
        faults = ("db_bench told nothing of when it ran",)
    reading = EngineReading(
        version=f"db_bench {output.version or asked.version}".strip(),
        start_real_ns=start_ns if known else None,
        end_real_ns=start_ns + round(length_s * NS_PER_S) if start_ns and length_s else None,
        intervals=intervals,
        totals=None,
        faults=faults,
    )
    result = output.result(job.workload)
    run = KeyValueRun(
        counts=tuple(_counts(output, job)),
        seed=asked.seed,
        load_seed=asked.load_seed,
        build=_build(output),
        copied_by=asked.copied_by,
        start=asked.start,
        latencies=result.latencies if result else (),
        statistics=tuple(_statistics(output)),
        reported_ops_per_s=float(result.ops_per_s) if result else None,
        reported_s=result.seconds if result else None,
        faults=faults,
    )
    return reading, run


def _faults(
    output: DbBenchOutput, asked: Asked, rows: tuple[tuple[int, int], ...] | None
) -> tuple[str, ...]:
    faults = cell_faults(output, asked.job, asked.seconds, asked.loaded_bytes)
    if rows is None and output.result(asked.job.workload) is not None:
        return (*faults, "db_bench left no report of its seconds")
    return faults


def _totals(output: DbBenchOutput, job: KeyValueJob) -> Totals:
    result = output.result(job.workload)
    if result is None:
        return Totals(None, None, None)
    timed = sum(latency.count for latency in result.latencies)
    writes = output.timed.get(WRITES)
    beside = (writes.count if writes else None) if job.has_writer else None
    return Totals(result.seconds, result.operations or timed or None, beside)


def _start_ns(output: DbBenchOutput, totals: Totals, left: Left) -> int | None:
    """When the threads began.

    Lines are heard some ms after they are printed at most, and the stamps in them, of whole
    seconds, say that they were not heard before. A cell too slow for any line ends with its
    process, but for what closing the database takes.
    """
    if left.heard_ns is not None:
        bounds = start_bounds_s(output.progress)
        if bounds is None:
            return left.heard_ns
        low_ns, high_ns = (round(bound * NS_PER_S) for bound in bounds)
        return min(max(left.heard_ns, low_ns), high_ns)
    if left.exited_ns is not None and totals.seconds is not None:
        return left.exited_ns - round(totals.seconds * NS_PER_S)
    return None


def _build(output: DbBenchOutput) -> str:
    """What is to be remarked of the build: nothing of a release."""
    build = output.header.build
    return "" if build is None or build is Build.RELEASE else build.value


def _counts(output: DbBenchOutput, job: KeyValueJob) -> Iterator[OperationCount]:
    result = output.result(job.workload)
    reads = output.tickers.get("rocksdb.number.keys.read")
    read_bytes = output.tickers.get("rocksdb.bytes.read")
    absent = None
    if reads and read_bytes is not None and job.workload not in ABSENT_BY_DESIGN:
        absent = max(reads - read_bytes // job.loaded.value_bytes, 0)
    for latency in result.latencies if result else ():
        reading = latency.operation is KeyOperation.READ
        yield OperationCount(latency.operation, latency.count, absent=absent if reading else None)
    writes = output.timed.get(WRITES)
    if job.has_writer and writes is not None:
        yield OperationCount(KeyOperation.WRITE, writes.count)


def _statistics(output: DbBenchOutput) -> Iterator[Statistic]:
    for names, unit in ((BYTES, "B"), (COUNTS, ""), ((STALLED,), "us")):
        for name in names:
            if name in output.tickers:
                yield Statistic(name, float(output.tickers[name]), unit)
    for name in (READS, WRITES):
        timed = output.timed.get(name)
        if timed is not None and timed.count:
            yield Statistic(f"{name} COUNT", float(timed.count), "")
            yield Statistic(f"{name} SUM", float(timed.sum), "us")
            for percent, value in timed.percentiles:
                yield Statistic(f"{name} P{percent}", value, "us")
    yield from _compaction(output)


def _compaction(output: DbBenchOutput) -> Iterator[Statistic]:
    """Of the whole tree, and how often and for how long writers were stalled."""
    for row in output.compaction:
        if row.name == "Sum":
            yield Statistic("compaction W-Amp", row.write_amplification, "")
            yield Statistic("compaction Comp(cnt)", float(row.compactions), "")
            yield Statistic("compaction Comp(sec)", row.seconds, "s")
            yield Statistic("compaction Size", float(row.bytes), "B")
    if output.stalls is None:
        return
    yield Statistic("Stalls(count)", float(output.stalls.total), "")
    for name, count in output.stalls.counts:
        if count:
            yield Statistic(f"Stalls(count) {name}", float(count), "")
    if output.stalls.seconds is not None:
        yield Statistic("Cumulative stall", output.stalls.seconds, "s")
