"""Why an output of db_bench is not that of the run that was asked for. Pure.

db_bench ends with 0 when it found no key, made an empty database, or was given one of other
blocks; and what it says of keys found is of its first thread. So every run is held against what
was asked for, by the statistics of all threads.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from iolab.model.key_value import (
    READ_RANDOM,
    READ_RANDOM_WRITE_RANDOM,
    READ_WHILE_WRITING,
    KeyOperation,
    KeyValueJob,
    KeyValueSet,
)
from iolab.run.engines.db_bench_output import DbBenchOutput, Result
from iolab.run.engines.db_bench_tables import block_fault

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


ABSENT_BY_DESIGN: Final = ("readmissing", "readrandomfast", "randomwithverify", "appendrandom")
"""What looks for keys that are not there, or changes the size of values, by which found keys are
counted."""


def load_faults(output: DbBenchOutput, loaded: KeyValueSet) -> tuple[str, ...]:
    """Why a load did not leave the database that was asked for; empty when it did.

    What db_bench itself said of an error comes first.
    """
    return (
        *output.said,
        *output.faults,
        *_header_faults(output, loaded),
        *_load_result_faults(output, loaded),
        *_tree_faults(output),
    )


def cell_faults(
    output: DbBenchOutput, job: KeyValueJob, seconds: float, loaded_bytes: int | None = None
) -> tuple[str, ...]:
    """Why a cell is not the job's load over so many seconds; empty when it is.

    `loaded_bytes` are those of the tree after its load, where they are known.
    """
    faults = [*output.said, *output.faults, *_header_faults(output, job.loaded)]
    result = output.result(job.workload)
    if result is None:
        return (*faults, _no_result(output, job.workload))
    if result.seconds is not None and result.seconds < seconds - DURATION_TOLERANCE_S:
        faults.append(f"db_bench ran for {result.seconds:g} s, and {seconds:g} s were asked for")
    return (
        *faults,
        *_key_faults(output, result, job),
        *_latency_faults(result),
        *_block_faults(output, job),
        *_writer_faults(output, job),
        *_size_faults(output, job, loaded_bytes),
    )


def _header_faults(output: DbBenchOutput, loaded: KeyValueSet) -> Iterator[str]:
    header = output.header
    for what, got, asked in (
        ("keys", header.keys, loaded.keys),
        ("bytes a key", header.key_bytes, loaded.key_bytes),
        ("bytes a value", header.value_bytes, loaded.value_bytes),
    ):
        if got is not None and got != asked:
            yield f"db_bench used {got} {what}, and {asked} were asked for"
    if header.compression not in {None, "NoCompression"}:
        yield f"db_bench used the compression {header.compression}, and none was asked for"


def _no_result(output: DbBenchOutput, benchmark: str) -> str:
    if output.progress:
        heard = max(one.elapsed_s for one in output.progress)
        return f"db_bench gave no result for {benchmark}; it was last heard of after {heard:.1f} s"
    return f"db_bench gave no result for {benchmark}"


def _load_result_faults(output: DbBenchOutput, loaded: KeyValueSet) -> Iterator[str]:
    written = output.result("filluniquerandom")
    if written is None:
        yield _no_result(output, "filluniquerandom")
    elif written.operations is not None and written.operations != loaded.keys:
        yield f"db_bench wrote {written.operations} keys, and {loaded.keys} were asked for"
    elif written.operations is None and not written.latencies:
        yield "db_bench did not say how many keys it wrote"
    for latency in written.latencies if written is not None else ():
        if latency.count != loaded.keys:
            yield f"db_bench timed {latency.count} writes, and {loaded.keys} were asked for"
    if output.result("compact") is None:
        yield _no_result(output, "compact")


def _tree_faults(output: DbBenchOutput) -> Iterator[str]:
    if not output.levels:
        yield "db_bench did not print the levels of the tree"
        return
    if not sum(level.files for level in output.levels):
        yield "the tree has no file after its load"
    for level in output.levels:
        if level.level == 0 and level.files:
            yield f"level 0 has {level.files} files left to compact after the load"
    for row in output.compaction:
        if row.name.startswith("L") and row.score >= 1:
            yield f"level {row.name[1:]} is at {row.score:g} of its limit after the load"


def _key_faults(output: DbBenchOutput, result: Result, job: KeyValueJob) -> Iterator[str]:
    """Keys that were not there: reading what is absent costs next to nothing."""
    if job.workload in ABSENT_BY_DESIGN:
        return
    reads = output.tickers.get("rocksdb.number.keys.read")
    read_bytes = output.tickers.get("rocksdb.bytes.read")
    first = result.first_thread
    whose = ""
    if reads and read_bytes is not None:
        found = read_bytes // job.loaded.value_bytes
    elif first is not None:
        reads, found, whose = first.reads, first.found, " of its first thread"
    else:
        return
    if found == 0:
        yield f"none of {reads} keys{whose} was found: there was no database, or an empty one"
    elif found < reads:
        yield (
            f"{reads - found} of {reads} keys{whose} were not found: the database is not whole, "
            "or was loaded with keys that repeat"
        )


def _latency_faults(result: Result) -> Iterator[str]:
    expected = OPERATIONS.get(result.benchmark)
    if expected is None:
        if not result.latencies:
            yield f"db_bench timed no operation of {result.benchmark}"
        return
    for operation in expected:
        if result.latency(operation) is None:
            yield f"db_bench gave no whole histogram for {operation.word}"
    timed = sum(latency.count for latency in result.latencies)
    if result.operations is not None and timed != result.operations:
        yield f"db_bench counted {result.operations} operations, and timed {timed}"


def _block_faults(output: DbBenchOutput, job: KeyValueJob) -> Iterator[str]:
    """Blocks of another size, as they came into the cache: the option is of no use by then."""
    blocks = output.tickers.get("rocksdb.block.cache.data.add", 0)
    filled = output.tickers.get("rocksdb.block.cache.data.bytes.insert", 0)
    if blocks and (fault := block_fault(filled / blocks, job.loaded)):
        yield fault


def _writer_faults(output: DbBenchOutput, job: KeyValueJob) -> Iterator[str]:
    if job.workload == READ_RANDOM_WRITE_RANDOM:
        yield from _share_faults(output, job)
    if job.workload != READ_WHILE_WRITING:
        return
    rate = output.header.write_bytes_per_s
    if rate is not None and rate != (job.write_bytes_per_s or 0):
        yield f"the writer's limit was {rate} bytes/s, and {job.write_bytes_per_s} were asked for"
    writes = output.timed.get("rocksdb.db.write.micros")
    if writes is None or not writes.count:
        yield "nothing was written while db_bench read"


def _share_faults(output: DbBenchOutput, job: KeyValueJob) -> Iterator[str]:
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
        yield f"{percent:.1f} % of operations were reads, and {job.read_percent} % were asked for"


def _size_faults(
    output: DbBenchOutput, job: KeyValueJob, loaded_bytes: int | None
) -> Iterator[str]:
    """A tree of another size than was loaded; writes may make it larger."""
    total = next((row.bytes for row in output.compaction if row.name == "Sum"), None)
    if total is None or loaded_bytes is None:
        return
    least = loaded_bytes * (1 - SIZE_TOLERANCE)
    most = loaded_bytes * (1 + SIZE_TOLERANCE)
    if total < least or (job.workload == READ_RANDOM and total > most):
        yield f"the tree had {total} bytes at the end, and {loaded_bytes} after its load"
