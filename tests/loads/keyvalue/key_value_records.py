"""Runs on key-value stores as db_bench and YCSB leave them, drawn from a fixed seed.

Operations follow a saturating curve over the threads; db_bench gives its own wide bins and one
row a second for all operations, YCSB every operation with fine bins and, under a rate, its latency
from when it was due.
"""

from __future__ import annotations

import itertools

import numpy as np
from msgspec.structs import replace

from iolab.core.histogram import bin_index_of_ns
from iolab.core.run import DeviceDelta, HostRun, PlannedRun, Point, RunRecord
from iolab.core.run import RunStatus as Status
from iolab.core.samples import CounterTable, IntervalTable
from iolab.loads.keyvalue.workload import (
    READ_RANDOM,
    READ_RANDOM_WRITE_RANDOM,
    READ_WHILE_WRITING,
    BinnedLatency,
    DatabaseSpec,
    DbBenchJob,
    KeyOperation,
    KeyValueHostDetails,
    LatencyBin,
    LevelShape,
    OperationCount,
    ReportedStatistic,
    ServerKind,
    ServerRunDetails,
    ServerSettings,
    StoreShape,
    TableShape,
    YcsbJob,
    server_settings_or_embedded,
)
from tests.analysis.records import tables_of_rows
from tests.report.counters import counters
from tests.report.synthetic import GO_NS, WARMUP_S, Source

KIB = 1024
LOADED = DatabaseSpec(keys=400_000, key_bytes=16, value_bytes=1024, block_bytes=4 * KIB)
READS = DbBenchJob(READ_RANDOM, LOADED, threads=4, cache_bytes=8 << 20, memory_bytes=256 << 20)
DB_BENCH_EDGES_US = (
    *(0, 1, 2, 3, 4, 6, 10, 15, 22, 34, 51, 76, 110, 170, 250, 380, 580, 870, 1300, 1900, 2900),
    *(4400, 6600, 9900, 14000, 22000, 33000, 50000, 75000, 110_000, 170_000),
)
READ, UPDATE, WRITE, ALL = (
    KeyOperation.READ,
    KeyOperation.UPDATE,
    KeyOperation.WRITE,
    KeyOperation.ALL,
)


def speed_of(point: Point) -> tuple[float, float]:
    """(operations a second of a client, median latency in ns) at this point."""
    job = point.job
    assert isinstance(job, DbBenchJob | YcsbJob)
    ycsb = isinstance(job, YcsbJob)
    limit, base_s = (9_000.0, 900e-6) if ycsb else (82_000.0, 95e-6)
    if isinstance(job, DbBenchJob) and job.loaded.block_bytes > 4 * KIB:
        limit *= 0.7
    if (
        isinstance(job, YcsbJob) and job.operation_share(READ) < 1
    ) or point.workload == "read-write":
        limit *= 0.6
    if point.configuration == "new":
        limit, base_s = limit * (1.2 + 0.05 * (job.threads > 16)), base_s * 0.8
    rate = 1 / (1 / limit + base_s / job.threads)
    if isinstance(job, YcsbJob) and job.rate_ops_per_s is not None:
        busy = min(job.rate_ops_per_s / rate, 1.0)
        rate = min(rate, job.rate_ops_per_s)
        return rate, base_s * 1e9 * (1 + busy)
    return rate, job.threads / rate * 1e9


def made(source: Source, run: PlannedRun) -> RunRecord:
    """The evidence of a run: one interval a second for each operation that is told apart."""
    names = next(c.hosts for c in source.study.configurations if c.id == run.point.configuration)
    seconds = source.seconds + int(WARMUP_S)
    random = np.random.default_rng(int(run.point.digest[:8], 16) + run.repeat)
    rate, median_ns = speed_of(run.point)
    rows: list[tuple[int, ...]] = []
    sums: list[float] = []
    bins: list[tuple[int, ...]] = []
    latencies: dict[KeyOperation, list[np.ndarray]] = {}
    for host, second in itertools.product(range(len(names)), range(seconds)):
        ramp = 1 - 0.3 * np.exp(-second / 2.0) + random.normal(0, 0.01)
        for operation, share, slow in _told(run.point):
            count = round(rate * share * ramp)
            lat = median_ns * slow * random.lognormal(0.0, 0.5, count)
            lat *= np.where(random.random(count) < 0.01, random.uniform(2, 12, count), 1.0)
            latencies.setdefault(operation, []).append(lat)
            fine = isinstance(run.point.job, YcsbJob)
            end = GO_NS + (second + 1) * 1_000_000_000 + host * 3_000_000
            rows.append((host, second, end, 1_000_000_000, int(operation), count, 0))
            sums.append(float(lat.sum()) if fine else 0.0)
            if fine:
                where, many = np.unique(bin_index_of_ns(lat.astype(np.int64)), return_counts=True)
                bins += [
                    (host, second, int(operation), int(b), int(n))
                    for b, n in zip(where, many, strict=True)
                ]
    table, sparse = tables_of_rows([(*row, 0) for row in rows], bins)
    table = replace(table, lat_sum_ns=np.array(sums))
    hosts = tuple(_host_run(name, run, latencies, seconds) for name in names)
    return RunRecord(
        run=run,
        status=Status.DONE,
        failure=None,
        started_real_ns=GO_NS,
        ended_real_ns=GO_NS + seconds * 1_000_000_000,
        warmup_s=WARMUP_S,
        runtime_s=float(source.seconds),
        telemetry_interval_ms=1000,
        hosts=hosts,
        intervals=table,
        bins=sparse,
        counters=_device(table, len(names), seconds, rate),
        outputs=(),
        details=_server(server_settings_or_embedded(source.study))
        if isinstance(run.point.job, YcsbJob)
        else None,
    )


def _told(point: Point) -> list[tuple[KeyOperation, float, float]]:
    """(operation, its share of the whole rate, how slow it is) for each row of a second."""
    job = point.job
    if isinstance(job, DbBenchJob):
        beside = [(WRITE, 0.05, 0.1)] if job.workload == READ_WHILE_WRITING else []
        return [(ALL, 1.0, 1.0), *beside]
    assert isinstance(job, YcsbJob)
    modify = job.operation_share(KeyOperation.READ_MODIFY_WRITE)
    update = job.operation_share(UPDATE) + modify
    found = [(READ, job.operation_share(READ) + modify, 1.0)]
    found += [(UPDATE, update, 0.5)] if update else []
    found += [(KeyOperation.READ_MODIFY_WRITE, modify, 1.5)] if modify else []
    if job.rate_ops_per_s is not None:
        due = [
            (one.intended_variant, share, slow * 9)
            for one, share, slow in found
            if one.intended_variant
        ]
        found += due
    return found


def _host_run(
    name: str,
    run: PlannedRun,
    latencies: dict[KeyOperation, list[np.ndarray]],
    seconds: int,
) -> HostRun:
    job = run.point.job
    ycsb = isinstance(job, YcsbJob)
    whole = {one: np.concatenate(parts) for one, parts in latencies.items()}
    mixed = isinstance(job, DbBenchJob) and job.workload == READ_RANDOM_WRITE_RANDOM
    told = {} if ycsb else {READ: whole[ALL]}
    if mixed:
        told = {READ: whole[ALL][::5], WRITE: whole[ALL][::20] * 0.2}
    counts = {one: lat.size for one, lat in whole.items() if ycsb and not one.is_intended}
    counts = counts or {one: lat.size for one, lat in told.items()}
    total = sum(counts.values())
    return HostRun(
        host=name,
        error=None,
        argv=("java", "site.ycsb.Client") if ycsb else ("db_bench", "--benchmarks=readrandom"),
        job_file="",
        engine_version="YCSB 0.17.0, cassandra-driver-core 3.0.0" if ycsb else "db_bench 7.8.3",
        start_real_ns=GO_NS,
        end_real_ns=GO_NS + seconds * 1_000_000_000,
        exit_code=0,
        exit_signal=None,
        stopped_early=False,
        totals=None,
        devices=(
            DeviceDelta("nvme1n1", total * 5200, total * 900, round(total * 0.8), total // 9),
        ),
        extents=None,
        cache_drop=None,
        pre_run_activity=None,
        process=None,
        clock_offset_ns=0,
        clock_error_ns=100_000,
        stderr_tail="",
        details=KeyValueHostDetails(
            counts=tuple(OperationCount(one, number) for one, number in counts.items()),
            seed=90_202 + run.order,
            build="" if ycsb else "assertions enabled",
            copied_by="reflink",
            start=None if ycsb else SHAPE,
            latencies=tuple(binned(one, lat) for one, lat in told.items()),
            statistics=STATISTICS if not ycsb else (),
            reported_ops_per_s=total / seconds,
            reported_s=float(seconds),
        ),
    )


SHAPE = StoreShape(
    levels=(LevelShape(1, 3, 200 << 20, 0.8), LevelShape(2, 4, 212 << 20, 0.1)),
    tables=TableShape(7, 400_000, 100_120, 429_314_560, 6_400_000, 409_600_000, ("NoCompression",)),
    pending_bytes=0,
)
STATISTICS = (
    ReportedStatistic("rocksdb.db.write.micros COUNT", 11_898, ""),
    ReportedStatistic("rocksdb.db.write.micros P50", 5.53, "us"),
    ReportedStatistic("rocksdb.db.write.micros P95", 13.7, "us"),
    ReportedStatistic("rocksdb.db.write.micros P99", 106.95, "us"),
    ReportedStatistic("rocksdb.db.write.micros P100", 104_204, "us"),
    ReportedStatistic("rocksdb.flush.write.bytes", 4 << 20, "B"),
    ReportedStatistic("rocksdb.compact.write.bytes", 12 << 20, "B"),
    ReportedStatistic("Stalls(count)", 3, ""),
    ReportedStatistic("Cumulative stall", 0.2, "s"),
)


def _server(settings: ServerSettings) -> ServerRunDetails | None:
    if settings.kind is ServerKind.EMBEDDED:
        return None
    return ServerRunDetails(
        product="Apache Cassandra",
        version=settings.version,
        address="127.0.0.1:9042",
        host=settings.host,
        java="17.0.13",
        rows=100_000,
        rows_by="count",
        restored_by="reflink",
        statistics_before=(
            ReportedStatistic("SSTable count", 3, ""),
            ReportedStatistic("Space used", 4e8, "bytes"),
        ),
        statistics_after=(
            ReportedStatistic("SSTable count", 4, ""),
            ReportedStatistic("Space used", 4.4e8, "bytes"),
        ),
    )


def binned(operation: KeyOperation, lat_ns: np.ndarray) -> BinnedLatency:
    """Latencies as db_bench keeps them."""
    edges = np.array(DB_BENCH_EDGES_US) * 1000
    counts, _ = np.histogram(lat_ns, bins=edges)
    return BinnedLatency(
        operation=operation,
        count=int(counts.sum()),
        mean_ns=float(lat_ns.mean()),
        std_dev_ns=float(lat_ns.std()),
        min_ns=int(lat_ns.min()),
        max_ns=int(lat_ns.max()),
        resolution_ns=1000,
        bins=tuple(
            LatencyBin(int(low), int(high), int(count))
            for low, high, count in zip(edges[:-1], edges[1:], counts, strict=True)
            if count
        ),
    )


def _device(table: IntervalTable, hosts: int, seconds: int, rate: float) -> CounterTable:
    """Counters of a device that reads a block for four operations in five."""
    first = table.direction == table.direction[0]
    ios = (table.ios[first] * 0.8).astype(np.int64)
    reads = replace(
        table,
        **{
            name: getattr(table, name)[first]
            for name in ("host", "seq", "end_real_ns", "span_ns", "lat_sum_ns")
        },
        direction=np.zeros(ios.size, dtype=np.int64),
        ios=ios,
        bytes=ios * 6500,
    )
    return counters(reads, hosts, GO_NS, seconds)
