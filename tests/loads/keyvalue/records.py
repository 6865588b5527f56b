"""Records of load on a key-value store made operation by operation, so that all can be recounted.

Each host does the operations that it is given; what an engine would tell (intervals, bins, counts,
its own bins) is derived from them. The healthy runs: db_bench with 16 threads on 1 KiB values whose
device read 4.5 KiB for each key, and YCSB half reads, half updates against an embedded store.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from msgspec.structs import replace

from iolab.core.histogram import bin_index_of_ns
from iolab.core.host import HostFacts
from iolab.core.run import (
    CacheDropProof,
    DeviceDelta,
    HostRun,
    PlannedRun,
    Point,
    RunRecord,
)
from iolab.core.samples import BinTable, IntervalTable, Ints
from iolab.guests.analysis import GuestAnalysis
from iolab.hosts.rates import CounterSeries
from iolab.loads.keyvalue.analysis import KeyValueAnalysis
from iolab.loads.keyvalue.metrics import KeyValueView
from iolab.loads.keyvalue.workload import (
    READ_RANDOM,
    BinnedLatency,
    DatabaseSpec,
    DbBenchJob,
    KeyOperation,
    KeyValueHostDetails,
    LatencyBin,
    LevelShape,
    OperationCount,
    StoreShape,
    TableShape,
    YcsbJob,
)
from iolab.record import Record
from tests.analysis.records import (
    DEVICE,
    GO_NS,
    SECOND,
    facts_of,
    host_run,
    record_of,
    series,
    tables_of_rows,
)

READ, UPDATE, INSERT = KeyOperation.READ, KeyOperation.UPDATE, KeyOperation.INSERT
WRITE, ALL, RMW = KeyOperation.WRITE, KeyOperation.ALL, KeyOperation.READ_MODIFY_WRITE
INTENDED = KeyOperation.INTENDED_READ

LOADED: Final = DatabaseSpec(keys=400_000, key_bytes=16, value_bytes=1024, block_bytes=4096)
BENCH: Final = DbBenchJob(
    READ_RANDOM, LOADED, threads=16, cache_bytes=8 << 20, memory_bytes=64 << 20
)
YCSB: Final = YcsbJob(
    mix=((READ, 0.5), (UPDATE, 0.5)), records=100_000, threads=8, memory_bytes=64 << 20
)

TABLES: Final = TableShape(
    files=7,
    entries=LOADED.keys,
    blocks=100_000,
    block_bytes_sum=428_800_000,
    key_bytes_sum=LOADED.keys * 24,
    value_bytes_sum=LOADED.keys * 1024,
    compression=("NoCompression",),
)
SHAPE: Final = StoreShape(levels=(LevelShape(1, 7, 430 << 20, 0.5),), tables=TABLES)

EDGES_US: Final = (0, 1, 2, 3, 4, 6, 10, 15, 22, 34, 51, 76, 110, 170, 250, 380, 580, 870, 1300)
EDGES_US_FAR: Final = (1900, 2900, 4400, 6600, 9900, 14000, 22000, 33000, 50000, 75000, 110000)


class Did(Record):
    """Operations of one kind on one host: when each ended (controller's clock) and how long."""

    operation: KeyOperation
    ends: Ints
    lats: Ints


def steadily(
    operation: KeyOperation,
    *,
    per_s: int = 2_000,
    seconds: float = 24.0,
    lat_ns: float = 500_000.0,
    start_s: float = 0.0,
    seed: int = 1,
) -> Did:
    """Operations at a steady rate with lognormal latencies."""
    random = np.random.default_rng([seed, int(operation)])
    count = int(per_s * seconds)
    at = start_s + (np.arange(count) + random.random(count)) / per_s
    ends = (GO_NS + at * SECOND).astype(np.int64)
    lats = np.maximum(random.lognormal(0.0, 0.5, count) * lat_ns, 1.0).astype(np.int64)
    return Did(operation, ends, lats)


def told_in_us(did: Did) -> BinnedLatency:
    """What db_bench prints of those latencies."""
    edges = np.array((*EDGES_US, *EDGES_US_FAR), dtype=np.int64) * 1000
    micros = np.maximum(did.lats // 1000, 1) * 1000
    place = np.searchsorted(edges, micros, side="left")
    bins = tuple(
        LatencyBin(int(edges[one - 1]), int(edges[one]), int((place == one).sum()))
        for one in np.unique(place)
    )
    return BinnedLatency(
        operation=did.operation,
        count=micros.size,
        mean_ns=float(micros.mean()),
        std_dev_ns=float(micros.std()),
        min_ns=int(micros.min()),
        max_ns=int(micros.max()),
        resolution_ns=1000,
        bins=bins,
    )


def tables(
    hosts: Sequence[Sequence[Did]],
    offsets: Sequence[int] | None = None,
    *,
    binned: bool = True,
    apart: bool = False,
) -> tuple[IntervalTable, BinTable]:
    """Intervals of a second; `apart` gives each operation intervals of its own, 3 ms later."""
    rows: list[tuple[int, ...]] = []
    bins: list[tuple[int, ...]] = []
    for host, done in enumerate(hosts):
        offset = offsets[host] if offsets else 0
        start = min(int(did.ends.min()) for did in done) // SECOND * SECOND
        last = max(int(did.ends.max()) for did in done)
        seconds = -(-(last - start) // SECOND)
        for place, did in enumerate(done):
            late = 3_000_000 * place if apart else 0
            for second in range(seconds):
                low = start + second * SECOND
                lats = did.lats[(did.ends > low) & (did.ends <= low + SECOND)]
                seq = second + (place * 10_000 if apart else 0)
                end, way = low + SECOND + offset + late, int(did.operation)
                rows.append((host, seq, end, SECOND, way, lats.size, 0, int(lats.sum())))
                if binned and lats.size:
                    index, counts = np.unique(bin_index_of_ns(lats), return_counts=True)
                    pairs = zip(index, counts, strict=True)
                    bins += [(host, seq, way, int(b), int(c)) for b, c in pairs]
    intervals, sparse = tables_of_rows(rows, bins)
    return replace(intervals, lat_sum_ns=intervals.lat_sum_ns * binned), sparse


def key_host(name: str, told: KeyValueHostDetails | None, reads: int, **changes: Any) -> HostRun:
    """A healthy host of which the engine told that."""
    run = host_run(name, totals=None, extents=None, details=told)
    run = replace(
        run,
        argv=("engine",),
        engine_version="7.8.3",
        clock_offset_after_ns=0,
        clock_error_after_ns=0,
        cache_drop=CacheDropProof(
            requested=True, resident_bytes_before=1 << 30, resident_bytes_after=0, methods=()
        ),
        devices=(DeviceDelta(DEVICE, reads * 4_600, 0, reads, 0),),
    )
    return replace(run, **changes)


def key_record(
    hosts: Sequence[HostRun],
    intervals: IntervalTable,
    bins: BinTable,
    job: DbBenchJob | YcsbJob,
    **changes: Any,
) -> RunRecord:
    point = Point("00000000000000ab", "default", "keys", (("threads", job.threads),), job, "")
    own = {"run": PlannedRun(1, 1, point), "warmup_s": 4.0, "runtime_s": 20.0}
    return record_of(hosts, intervals, bins, job, **{**own, **changes})


def bench_record(
    hosts: int = 1,
    job: DbBenchJob = BENCH,
    *,
    writer_per_s: int = 0,
    **changes: Any,
) -> RunRecord:
    """db_bench on so many hosts: `ALL` by second, reads in its own bins."""
    runs, done = [], []
    for host in range(hosts):
        reads = steadily(READ, per_s=13_000, seed=host + 1)
        each = [replace(reads, operation=ALL)]
        counts = [OperationCount(READ, reads.ends.size, absent=0)]
        if writer_per_s:
            each.append(steadily(WRITE, per_s=writer_per_s, seed=host + 1))
            counts.append(OperationCount(WRITE, each[1].ends.size))
        done.append(each)
        told = KeyValueHostDetails(
            counts=tuple(counts),
            seed=1000 * (host + 1),
            load_seed=7,
            copied_by="reflink",
            start=SHAPE,
            latencies=(told_in_us(reads),),
            reported_ops_per_s=13_000.0,
            reported_s=24.0,
        )
        runs.append(key_host(f"c{host + 1}", told, reads.ends.size))
    intervals, bins = tables(done, binned=False)
    return key_record(runs, intervals, bins, job, **changes)


def ycsb_record(
    hosts: Sequence[Sequence[Did]] | None = None,
    job: YcsbJob = YCSB,
    *,
    offsets: Sequence[int] | None = None,
    apart: bool = False,
    **changes: Any,
) -> RunRecord:
    """YCSB that did those operations, by default one host of reads and updates."""
    done = hosts or [[steadily(READ), steadily(UPDATE, lat_ns=300_000.0)]]
    runs = []
    for host, each in enumerate(done):
        reads = sum(did.ends.size for did in each if did.operation is READ)
        real = [did for did in each if not did.operation.is_intended]
        told = KeyValueHostDetails(
            counts=tuple(OperationCount(did.operation, did.ends.size) for did in real),
            seed=0,
            copied_by="reflink",
            start=SHAPE,
        )
        offset = offsets[host] if offsets else 0
        runs.append(key_host(f"c{host + 1}", told, reads, clock_offset_ns=offset))
        runs[-1] = replace(runs[-1], clock_offset_after_ns=offset)
    return key_record(runs, *tables(done, offsets, apart=apart), job, **changes)


CALM: Final = tuple(
    series(metric, [share] * 40, host)
    for host in ("c1", "c2", "c3")
    for metric, share in (("busy_share", 0.3), ("steal_share", 0.0))
)


def key_view(
    record: RunRecord,
    facts: dict[str, HostFacts] | None = None,
    telemetry: tuple[CounterSeries, ...] = CALM,
) -> KeyValueView:
    """The record as checks see it, by default with the facts of every host."""
    known = {host.host: facts_of(host.host) for host in record.hosts} if facts is None else facts
    return KeyValueAnalysis().build_view(record, known, telemetry, (GuestAnalysis(),))
