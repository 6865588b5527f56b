"""What a cell of db_bench leaves, read as one: the evidence of a run on a host. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from iolab.hosts.engine import ParsedEngineOutput
from iolab.loads.keyvalue.db_bench.output import (
    BenchmarkResult,
    BuildKind,
    DbBenchOutput,
    parse_db_bench_output,
)
from iolab.loads.keyvalue.db_bench.run import (
    BenchTotals,
    ReportRow,
    bench_intervals,
    bench_seconds,
    block_size_fault,
    parse_report_rows,
    thread_start_bounds_s,
)
from iolab.loads.keyvalue.workload import (
    READ_RANDOM,
    READ_RANDOM_WRITE_RANDOM,
    READ_WHILE_WRITING,
    DatabaseSpec,
    DbBenchJob,
    KeyOperation,
    KeyValueHostDetails,
    OperationCount,
    ReportedStatistic,
    StoreShape,
)
from iolab.record import Record
from iolab.units import NS_PER_S

DURATION_TOLERANCE_S: Final = 0.1
"""How much sooner than asked for a cell may end: db_bench looks at whole microseconds."""

SIZE_TOLERANCE: Final = 0.02
"""Sizes of levels are printed with three or more digits, rounded."""

OPERATIONS: Final = {
    READ_RANDOM: (KeyOperation.READ,),
    READ_RANDOM_WRITE_RANDOM: (KeyOperation.READ, KeyOperation.WRITE),
    READ_WHILE_WRITING: (KeyOperation.READ,),
}
"""What is timed by workload; of any other whatever db_bench times. The writer of readwhilewriting
is left out by db_bench itself."""


BENCHMARKS_OF_ABSENT_KEYS: Final = (
    "readmissing",
    "readrandomfast",
    "randomwithverify",
    "appendrandom",
)
"""What looks for keys that are not there, or changes the size of values, by which found keys are
counted."""

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

STALL_COUNTER: Final = "rocksdb.stall.micros"


def fill_faults(output: DbBenchOutput, database_spec: DatabaseSpec) -> tuple[str, ...]:
    """Why a load did not leave the database that was requested; empty when it did.

    What db_bench itself said of an error comes first.
    """
    return (
        *output.messages,
        *output.faults,
        *_header_faults(output, database_spec),
        *_fill_result_faults(output, database_spec),
        *_uncompacted_tree_faults(output),
    )


def bench_run_faults(
    output: DbBenchOutput, job: DbBenchJob, seconds: float, loaded_tree_bytes: int | None = None
) -> tuple[str, ...]:
    """Why a cell is not the job's load over so many seconds; empty when it is.

    `loaded_tree_bytes` are those of the tree after its load, where they are known.
    """
    faults = [*output.messages, *output.faults, *_header_faults(output, job.loaded)]
    result = output.result(job.workload)
    if result is None:
        return (*faults, _no_result_and_last_progress_text(output, job.workload))
    if result.seconds is not None and result.seconds < seconds - DURATION_TOLERANCE_S:
        faults.append(f"db_bench ran for {result.seconds:g} s, and {seconds:g} s were requested")
    return (
        *faults,
        *_missing_key_faults(output, result, job),
        *_latency_faults(result),
        *_block_size_faults(output, job),
        *_faults_of_write_load(output, job),
        *_tree_size_faults(output, job, loaded_tree_bytes),
    )


def _header_faults(output: DbBenchOutput, database_spec: DatabaseSpec) -> Iterator[str]:
    header = output.header
    for quantity, measured, asked in (
        ("keys", header.keys, database_spec.keys),
        ("bytes a key", header.key_bytes, database_spec.key_bytes),
        ("bytes a value", header.value_bytes, database_spec.value_bytes),
    ):
        if measured is not None and measured != asked:
            yield f"db_bench used {measured} {quantity}, and {asked} were requested"
    if header.compression not in {None, "NoCompression"}:
        yield f"db_bench used the compression {header.compression}, and none was requested"


def _no_result_and_last_progress_text(output: DbBenchOutput, benchmark: str) -> str:
    if output.progress:
        heard = max(line.elapsed_s for line in output.progress)
        return f"db_bench gave no result for {benchmark}; it was last heard of after {heard:.1f} s"
    return f"db_bench gave no result for {benchmark}"


def _fill_result_faults(output: DbBenchOutput, database_spec: DatabaseSpec) -> Iterator[str]:
    written = output.result("filluniquerandom")
    if written is None:
        yield _no_result_and_last_progress_text(output, "filluniquerandom")
    elif written.operations is not None and written.operations != database_spec.keys:
        yield f"db_bench wrote {written.operations} keys, and {database_spec.keys} were requested"
    elif written.operations is None and not written.latencies:
        yield "db_bench did not say how many keys it wrote"
    for latency in written.latencies if written is not None else ():
        if latency.count != database_spec.keys:
            yield f"db_bench timed {latency.count} writes, and {database_spec.keys} were requested"
    if output.result("compact") is None:
        yield _no_result_and_last_progress_text(output, "compact")


def _uncompacted_tree_faults(output: DbBenchOutput) -> Iterator[str]:
    if not output.levels:
        yield "db_bench did not print the levels of the tree"
        return
    if not sum(level.files for level in output.levels):
        yield "the tree has no file after its load"
    for level in output.levels:
        if level.level == 0 and level.files:
            yield f"level 0 has {level.files} files left to compact after the load"
    for row in output.compaction_rows:
        if row.name.startswith("L") and row.score >= 1:
            yield f"level {row.name[1:]} is at {row.score:g} of its limit after the load"


def _missing_key_faults(
    output: DbBenchOutput, result: BenchmarkResult, job: DbBenchJob
) -> Iterator[str]:
    """Keys that were not there: reading what is absent costs next to nothing."""
    if job.workload in BENCHMARKS_OF_ABSENT_KEYS:
        return
    reads = output.tickers.get("rocksdb.number.keys.read")
    read_bytes = output.tickers.get("rocksdb.bytes.read")
    first = result.first_thread
    whose = ""
    if reads and read_bytes is not None:
        found = read_bytes // job.loaded.value_bytes
    elif first is not None:
        reads, found, whose = first.reads, first.found_count, " of its first thread"
    else:
        return
    if found == 0:
        yield f"none of {reads} keys{whose} was found: there was no database, or an empty one"
    elif found < reads:
        yield (
            f"{reads - found} of {reads} keys{whose} were not found: the database is not whole, "
            "or was loaded with keys that repeat"
        )


def _latency_faults(result: BenchmarkResult) -> Iterator[str]:
    expected = OPERATIONS.get(result.benchmark)
    if expected is None:
        if not result.latencies:
            yield f"db_bench timed no operation of {result.benchmark}"
        return
    for operation in expected:
        if result.latency(operation) is None:
            yield f"db_bench gave no whole histogram for {operation.display_name}"
    timed = sum(latency.count for latency in result.latencies)
    if result.operations is not None and timed != result.operations:
        yield f"db_bench counted {result.operations} operations, and timed {timed}"


def _block_size_faults(output: DbBenchOutput, job: DbBenchJob) -> Iterator[str]:
    """Blocks of another size, as they came into the cache: the option is of no use by then."""
    blocks = output.tickers.get("rocksdb.block.cache.data.add", 0)
    filled = output.tickers.get("rocksdb.block.cache.data.bytes.insert", 0)
    if blocks and (fault := block_size_fault(filled / blocks, job.loaded)):
        yield fault


def _faults_of_write_load(output: DbBenchOutput, job: DbBenchJob) -> Iterator[str]:
    if job.workload == READ_RANDOM_WRITE_RANDOM:
        yield from _operation_share_faults(output, job)
    if job.workload != READ_WHILE_WRITING:
        return
    rate = output.header.write_bytes_per_s
    if rate is not None and rate != (job.write_bytes_per_s or 0):
        yield f"the writer's limit was {rate} bytes/s, and {job.write_bytes_per_s} were requested"
    writes = output.statistic_histograms.get("rocksdb.db.write.micros")
    if writes is None or not writes.count:
        yield "nothing was written while db_bench read"


def _operation_share_faults(output: DbBenchOutput, job: DbBenchJob) -> Iterator[str]:
    result = output.result(job.workload)
    read = result.latency(KeyOperation.READ) if result else None
    write = result.latency(KeyOperation.WRITE) if result else None
    if read is None or write is None:
        return
    operations = read.count + write.count
    percent = 100 * read.count / operations
    # Of every hundred operations a thread does the reads first, and it stops in the middle.
    excess = read.count - operations * job.read_percent / 100
    if not -0.5 <= excess <= job.threads * job.read_percent * (100 - job.read_percent) / 100:
        yield f"{percent:.1f} % of operations were reads, and {job.read_percent} % were requested"


def _tree_size_faults(
    output: DbBenchOutput, job: DbBenchJob, loaded_tree_bytes: int | None
) -> Iterator[str]:
    """A tree of another size than was loaded; writes may make it larger."""
    total = next((row.bytes for row in output.compaction_rows if row.name == "Sum"), None)
    if total is None or loaded_tree_bytes is None:
        return
    least = loaded_tree_bytes * (1 - SIZE_TOLERANCE)
    most = loaded_tree_bytes * (1 + SIZE_TOLERANCE)
    if total < least or (job.workload == READ_RANDOM and total > most):
        yield f"the tree had {total} bytes at the end, and {loaded_tree_bytes} after its load"


class BenchRunRequest(Record):
    """What a cell was to be: its job for so many seconds, from which seeds and which database.

    `loaded_tree_bytes` are those of the tree after its load. `version` is what the program said of
    itself before.
    """

    job: DbBenchJob
    seconds: int
    seed: int
    load_seed: int | None
    version: str
    copy_method: str
    start_shape: StoreShape
    loaded_tree_bytes: int | None


class BenchRunOutput(Record):
    """What a cell left behind.

    `report` is None for a file that is not there. `latest_possible_start_ns` is the latest moment
    of its start by when its lines came, `exited_ns` when it was gone, both on the host's clock;
    None if unknown.
    """

    stdout: bytes
    stderr: bytes
    report: bytes | None
    latest_possible_start_ns: int | None
    exited_ns: int | None


def read_bench_run(
    request: BenchRunRequest, raw_output: BenchRunOutput, *, was_halted: bool
) -> tuple[ParsedEngineOutput, KeyValueHostDetails]:
    """The evidence; one that `was_halted` at our wish has no fault for not being whole."""
    job = request.job
    output = parse_db_bench_output(raw_output.stdout, raw_output.stderr)
    rows = parse_report_rows(raw_output.report) if raw_output.report is not None else None
    faults = () if was_halted else _bench_run_and_report_faults(output, request, rows)
    totals = _bench_totals(output, job)
    start_ns = _threads_start_ns(output, totals, raw_output)
    seconds = bench_seconds(rows or (), output.progress, job, totals)
    heard_s = max((line.elapsed_s for line in output.progress), default=None)
    length_s = totals.seconds or heard_s or (seconds[-1].end_s if seconds else None)
    is_timed = start_ns is not None and length_s is not None
    intervals = bench_intervals(seconds, start_ns) if start_ns else ()
    if not (was_halted or faults or intervals):
        faults = ("db_bench told nothing of when it ran",)
    reading = ParsedEngineOutput(
        version=f"db_bench {output.version or request.version}".strip(),
        start_real_ns=start_ns if is_timed else None,
        end_real_ns=start_ns + round(length_s * NS_PER_S) if start_ns and length_s else None,
        intervals=intervals,
        totals=None,
        faults=faults,
    )
    result = output.result(job.workload)
    run = KeyValueHostDetails(
        counts=tuple(_operation_counts(output, job)),
        seed=request.seed,
        load_seed=request.load_seed,
        build=_build_warning_text(output),
        copied_by=request.copy_method,
        start=request.start_shape,
        latencies=result.latencies if result else (),
        statistics=tuple(_engine_statistics(output)),
        reported_ops_per_s=float(result.ops_per_s) if result else None,
        reported_s=result.seconds if result else None,
        faults=faults,
    )
    return reading, run


def _bench_run_and_report_faults(
    output: DbBenchOutput, request: BenchRunRequest, report_rows: tuple[ReportRow, ...] | None
) -> tuple[str, ...]:
    faults = bench_run_faults(output, request.job, request.seconds, request.loaded_tree_bytes)
    if report_rows is None and output.result(request.job.workload) is not None:
        return (*faults, "db_bench left no report of its seconds")
    return faults


def _bench_totals(output: DbBenchOutput, job: DbBenchJob) -> BenchTotals:
    result = output.result(job.workload)
    if result is None:
        return BenchTotals(None, None, None)
    timed = sum(latency.count for latency in result.latencies)
    writes = output.statistic_histograms.get(WRITES)
    beside = (writes.count if writes else None) if job.has_writer else None
    return BenchTotals(result.seconds, result.operations or timed or None, beside)


def _threads_start_ns(
    output: DbBenchOutput, totals: BenchTotals, raw_output: BenchRunOutput
) -> int | None:
    """When the threads began.

    Lines are heard some ms after they are printed at most, and the stamps in them, of whole
    seconds, say that they were not heard before. A cell too slow for any line ends with its
    process, but for what closing the database takes.
    """
    if raw_output.latest_possible_start_ns is not None:
        bounds = thread_start_bounds_s(output.progress)
        if bounds is None:
            return raw_output.latest_possible_start_ns
        low_ns, high_ns = (round(bound * NS_PER_S) for bound in bounds)
        return min(max(raw_output.latest_possible_start_ns, low_ns), high_ns)
    if raw_output.exited_ns is not None and totals.seconds is not None:
        return raw_output.exited_ns - round(totals.seconds * NS_PER_S)
    return None


def _build_warning_text(output: DbBenchOutput) -> str:
    """What is to be remarked of the build: nothing of a release."""
    build = output.header.build
    return "" if build is None or build is BuildKind.RELEASE else build.value


def _operation_counts(output: DbBenchOutput, job: DbBenchJob) -> Iterator[OperationCount]:
    result = output.result(job.workload)
    reads = output.tickers.get("rocksdb.number.keys.read")
    read_bytes = output.tickers.get("rocksdb.bytes.read")
    absent = None
    if reads and read_bytes is not None and job.workload not in BENCHMARKS_OF_ABSENT_KEYS:
        absent = max(reads - read_bytes // job.loaded.value_bytes, 0)
    for latency in result.latencies if result else ():
        reading = latency.operation is KeyOperation.READ
        yield OperationCount(latency.operation, latency.count, absent=absent if reading else None)
    writes = output.statistic_histograms.get(WRITES)
    if job.has_writer and writes is not None:
        yield OperationCount(KeyOperation.WRITE, writes.count)


def _engine_statistics(output: DbBenchOutput) -> Iterator[ReportedStatistic]:
    for names, unit in ((BYTES, "B"), (COUNTS, ""), ((STALL_COUNTER,), "us")):
        for name in names:
            if name in output.tickers:
                yield ReportedStatistic(name, float(output.tickers[name]), unit)
    for name in (READS, WRITES):
        timed = output.statistic_histograms.get(name)
        if timed is not None and timed.count:
            yield ReportedStatistic(f"{name} COUNT", float(timed.count), "")
            yield ReportedStatistic(f"{name} SUM", float(timed.sum), "us")
            for percent, value in timed.percentiles:
                yield ReportedStatistic(f"{name} P{percent}", value, "us")
    yield from _compaction_statistics(output)


def _compaction_statistics(output: DbBenchOutput) -> Iterator[ReportedStatistic]:
    """Of the whole tree, and how often and for how long writers were stalled."""
    for row in output.compaction_rows:
        if row.name == "Sum":
            yield ReportedStatistic("compaction W-Amp", row.write_amplification, "")
            yield ReportedStatistic("compaction Comp(cnt)", float(row.compactions), "")
            yield ReportedStatistic("compaction Comp(sec)", row.seconds, "s")
            yield ReportedStatistic("compaction Size", float(row.bytes), "B")
    if output.stalls is None:
        return
    yield ReportedStatistic("Stalls(count)", float(output.stalls.total), "")
    for name, count in output.stalls.counts:
        if count:
            yield ReportedStatistic(f"Stalls(count) {name}", float(count), "")
    if output.stalls.seconds is not None:
        yield ReportedStatistic("Cumulative stall", output.stalls.seconds, "s")
