"""A session that never ran: plausible load, latencies and telemetry of any size, from a seed.

Tests and benchmarks of everything behind a run (store, analysis, report) stand on it. Rates follow
from the latency and the depth by Little's law, devices move what the engine claims, and every
second has a histogram as full as a real one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from bench.synthetic_study import Shape, digest_of, make_facts, make_plan, make_study
from iolab.core import histogram
from iolab.core.bins import BIN_COUNT
from iolab.core.compressed import CompressedBytes
from iolab.core.metric import CheckResult, HostResult, Metric, RunResult, Verdict, VerdictLevel
from iolab.core.run import (
    CacheDropProof,
    DeviceDelta,
    DirectionTotals,
    EngineOutput,
    EngineTotals,
    ExtentProof,
    HostRun,
    PlannedRun,
    PreRunActivity,
    ProcessUse,
    RunRecord,
    RunStatus,
)
from iolab.core.samples import BinTable, CounterTable, IntervalTable, Ints
from iolab.core.workload import Direction
from iolab.loads.fileio.workload import Job
from iolab.units import NS_PER_S

__all__ = [
    "Shape",
    "make_counters",
    "make_facts",
    "make_plan",
    "make_record",
    "make_result",
    "make_study",
]

START_NS: Final = 1_750_000_000_000_000_000
LATENCY_KEYS: Final = ("mean", "p50", "p99", "p99_5", "p99_9", "p99_99", "max")


def make_record(run: PlannedRun, shape: Shape) -> RunRecord:
    """All evidence of a run that is done; the same run and shape give the same record."""
    rng = np.random.default_rng(int(digest_of(f"{run.point.digest} {run.repeat}"), 16))
    start_ns = START_NS + run.order * (shape.seconds + 5) * NS_PER_S
    loads = [_load(Job.require_type(run.point.job), shape, rng) for _ in shape.host_names]
    hosts = tuple(
        _host_run(name, Job.require_type(run.point.job), load, start_ns)
        for name, load in zip(shape.host_names, loads, strict=True)
    )
    return RunRecord(
        run=run,
        status=RunStatus.DONE,
        failure=None,
        started_real_ns=start_ns - 3 * NS_PER_S,
        ended_real_ns=start_ns + (shape.seconds + 1) * NS_PER_S,
        warmup_s=0.0,
        runtime_s=float(shape.seconds),
        telemetry_interval_ms=1000,
        hosts=hosts,
        intervals=_intervals(loads, Job.require_type(run.point.job), start_ns),
        bins=_bins(loads),
        counters=make_counters(shape, start_ns, rng),
        outputs=tuple(
            EngineOutput(name, "fio.json", CompressedBytes.compress(_engine_text(load)))
            for name, load in zip(shape.host_names, loads, strict=True)
        ),
    )


def make_result(record: RunRecord) -> RunResult:
    """A result with every metric and a dozen checks, taken from the record's totals."""
    merged = histogram.Histogram(histogram.dense_counts(record.bins.bin, record.bins.count))
    rate = float(record.intervals.ios.sum()) / record.runtime_s
    block = Job.require_type(record.run.point.job).block_bytes
    metrics = {
        "iops": Metric(rate, "1/s"),
        "read_iops": Metric(_rate(record, Direction.READ), "1/s"),
        "write_iops": Metric(_rate(record, Direction.WRITE), "1/s"),
        "bw_bytes_per_s": Metric(rate * block, "bytes/s"),
        "read_bw_bytes_per_s": Metric(_rate(record, Direction.READ) * block, "bytes/s"),
        "write_bw_bytes_per_s": Metric(_rate(record, Direction.WRITE) * block, "bytes/s"),
    }
    for prefix in ("", "read_", "write_"):
        for key in LATENCY_KEYS:
            metrics[f"{prefix}lat_ns_{key}"] = Metric(_latency(merged, key), "ns")
    checks = tuple(
        CheckResult(
            f"check-{number}", VerdictLevel.VALID, "Nothing speaks against it.", {"share": 0.25}
        )
        for number in range(12)
    )
    return RunResult(
        configuration=record.run.point.configuration,
        workload=record.run.point.workload,
        axis_values=record.run.point.axis_values,
        repeat=record.run.repeat,
        digest=record.run.point.digest,
        status=record.status,
        failure=record.failure,
        window_s=record.runtime_s,
        metrics=metrics,
        hosts=tuple(HostResult(name, metrics) for name in record.host_names),
        verdict=Verdict(VerdictLevel.VALID, checks),
    )


def make_counters(shape: Shape, start_ns: int, rng: np.random.Generator) -> CounterTable:
    """Telemetry of every host once a second: counters that only grow."""
    rows = [
        *(("cpu", f"{core}@0", metric) for core in range(shape.cores) for metric in _CPU),
        *(("disk", f"nvme{disk}n1", metric) for disk in range(shape.disks) for metric in _DISK),
        *(("nic", f"eth{nic}", metric) for nic in range(shape.nics) for metric in _NIC),
        *(("memory", "", metric) for metric in _MEMORY),
        *(("pressure", "", metric) for metric in _PRESSURE),
        ("thermal", "", "throttle_events"),
        ("agent", "", "cpu_ns"),
        ("agent", "", "rss_bytes"),
    ]
    steps = rng.integers(0, 50_000_000, size=(shape.hosts, shape.seconds, len(rows)))
    value = np.cumsum(steps, axis=1).astype(np.int64)
    host, seq, row = (index.ravel() for index in np.indices(value.shape))
    names = np.array(rows, dtype=np.object_)
    return CounterTable(
        host=host.astype(np.int64),
        seq=seq.astype(np.int64),
        real_ns=start_ns + (seq.astype(np.int64) + 1) * NS_PER_S,
        scope=names[row, 0],
        name=names[row, 1],
        metric=names[row, 2],
        value=value.ravel(),
    )


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


_CPU: Final = _words("user_ns nice_ns system_ns idle_ns iowait_ns irq_ns softirq_ns steal_ns")
_DISK: Final = _words(
    "read_ios read_bytes read_time_ns write_ios write_bytes write_time_ns in_flight busy_time_ns "
    "queue_time_ns discard_ios discard_bytes flush_ios temperature_mc"
)
_NIC: Final = _words("rx_bytes rx_frames rx_drops tx_bytes tx_frames tx_drops")
_MEMORY: Final = _words(
    "total_bytes free_bytes available_bytes page_cache_bytes dirty_bytes writeback_bytes"
)
_PRESSURE: Final = _words("cpu_some_ns io_some_ns io_full_ns memory_some_ns memory_full_ns")


@dataclass(frozen=True, slots=True)
class _Load:
    """One host's I/Os: for each direction the counts of (second, bin)."""

    seconds: dict[Direction, Ints]

    def ios(self, direction: Direction) -> int:
        return int(self.seconds[direction].sum())


def _load(job: Job, shape: Shape, rng: np.random.Generator) -> _Load:
    """Log-normal latencies that grow with the depth, counted each second."""
    median_ns = (
        80_000.0 * (1.0 + job.iodepth_per_client / 32.0) * (1.0 + job.block_bytes / 65_536.0)
    )
    rate = job.iodepth_per_client / (median_ns * 1.1) * NS_PER_S
    spread = 0.45
    edges = np.log(np.maximum(histogram.LOWER_NS.astype(float), 0.5))
    cumulative = 0.5 * (
        1.0 + np.vectorize(math.erf)((edges - math.log(median_ns)) / spread / math.sqrt(2.0))
    )
    share = np.diff(np.append(cumulative, 1.0))
    reads = 0.7 if job.access.is_mixed else 1.0
    parts = {
        direction: part
        for direction, part, present in (
            (Direction.READ, reads, job.access.has_reads),
            (Direction.WRITE, 1.0 - reads if job.access.is_mixed else 1.0, job.access.has_writes),
        )
        if present
    }
    return _Load(
        {
            direction: rng.poisson(share * rate * part, size=(shape.seconds, BIN_COUNT)).astype(
                np.int64
            )
            for direction, part in parts.items()
        }
    )


def _intervals(loads: Sequence[_Load], job: Job, start_ns: int) -> IntervalTable:
    """The interval table of all hosts."""
    host, seq, direction, ios, lat_sum = [], [], [], [], []
    for number, load in enumerate(loads):
        for way, counts in load.seconds.items():
            seconds = counts.shape[0]
            host.append(np.full(seconds, number))
            seq.append(np.arange(seconds))
            direction.append(np.full(seconds, int(way)))
            ios.append(counts.sum(axis=1))
            lat_sum.append((counts * histogram.MIDDLE_NS).sum(axis=1).astype(np.float64))
    seqs = np.concatenate(seq).astype(np.int64)
    done = np.concatenate(ios).astype(np.int64)
    return IntervalTable(
        host=np.concatenate(host).astype(np.int64),
        seq=seqs,
        end_real_ns=start_ns + (seqs + 1) * NS_PER_S,
        span_ns=np.full(seqs.size, NS_PER_S, dtype=np.int64),
        direction=np.concatenate(direction).astype(np.int64),
        ios=done,
        bytes=done * job.block_bytes,
        lat_sum_ns=np.concatenate(lat_sum),
    )


def _bins(loads: Sequence[_Load]) -> BinTable:
    """The bin table of all hosts."""
    columns: list[list[Ints]] = [[], [], [], [], []]
    for number, load in enumerate(loads):
        for way, counts in load.seconds.items():
            seq, bins = np.nonzero(counts)
            for column, values in zip(
                columns,
                (
                    np.full(seq.size, number),
                    seq,
                    np.full(seq.size, int(way)),
                    bins,
                    counts[seq, bins],
                ),
                strict=True,
            ):
                column.append(values.astype(np.int64))
    return BinTable(*(np.concatenate(column) for column in columns))


def _host_run(name: str, job: Job, load: _Load, start_ns: int) -> HostRun:
    """What happened on one host: nothing out of the ordinary."""
    seconds = next(iter(load.seconds.values())).shape[0]
    ways = {way: _totals(load, way, job, seconds) for way in load.seconds}
    read, write = ways.get(Direction.READ), ways.get(Direction.WRITE)
    moved = DeviceDelta(
        "nvme0n1",
        read.bytes if read else 0,
        write.bytes if write else 0,
        read.ios if read else 0,
        write.ios if write else 0,
    )
    size = job.file_bytes * job.numjobs
    return HostRun(
        host=name,
        error=None,
        argv=("/usr/bin/fio", "--output-format=json+", "--status-interval=1", "/srv/target/x.fio"),
        job_file=f"[job]\nrw={job.access.value}\nbs={job.block_bytes}\niodepth={job.iodepth}\n",
        engine_version="fio-3.33",
        start_real_ns=start_ns,
        end_real_ns=start_ns + seconds * NS_PER_S,
        exit_code=0,
        exit_signal=None,
        stopped_early=False,
        totals=EngineTotals(
            read=read,
            write=write,
            depth_percent=((_depth_level(job.iodepth), 100.0),),
            user_cpu_percent=8.0 + 1 / 3,
            system_cpu_percent=21.5,
            error=0,
            jobs=job.numjobs,
        ),
        devices=(moved,),
        extents=ExtentProof("fiemap", job.numjobs, size, size, 0, 0),
        cache_drop=CacheDropProof(
            requested=True,
            resident_bytes_before=0,
            resident_bytes_after=0,
            methods=("fadvise", "drop_caches"),
        ),
        pre_run_activity=PreRunActivity(1.0, 0.0, 0.0),
        process=ProcessUse(5.0, 13.0, 40 << 20),
        clock_offset_ns=-1200,
        clock_error_ns=35_000,
        stderr_tail="",
    )


def _depth_level(iodepth: int) -> str:
    """fio's name of the level that a full queue of this depth falls into."""
    return ">=64" if iodepth >= 64 else str(1 << (iodepth.bit_length() - 1))


def _totals(load: _Load, way: Direction, job: Job, seconds: int) -> DirectionTotals:
    """The engine's own words on one direction."""
    counts = load.seconds[way].sum(axis=0)
    seen = np.flatnonzero(counts)
    whole = histogram.Histogram(counts)
    ios = load.ios(way)
    mean = float((counts * histogram.MIDDLE_NS).sum() / ios) if ios else 0.0
    return DirectionTotals(
        ios=ios,
        bytes=ios * job.block_bytes,
        runtime_ms=seconds * 1000,
        iops=ios / seconds,
        bw_bytes_per_s=ios * job.block_bytes / seconds,
        lat_min_ns=int(histogram.LOWER_NS[seen[0]]) if ios else 0,
        lat_max_ns=int(histogram.UPPER_NS[seen[-1]]) if ios else 0,
        lat_mean_ns=mean,
        slat_mean_ns=1800.5,
        clat_mean_ns=max(mean - 1800.5, 0.0),
        percentiles=tuple(
            (percent, int(whole.percentile_ns(percent) or 0))
            for percent in (1.0, 5.0, 50.0, 90.0, 95.0, 99.0, 99.5, 99.9, 99.95, 99.99)
        ),
        short_ios=0,
        dropped_ios=0,
    )


def _engine_text(load: _Load) -> bytes:
    """Output in the likeness of json+: repetitive text of a realistic size."""
    lines = ['{ "fio version" : "fio-3.33", "jobs" : [']
    for way, counts in load.seconds.items():
        cumulative = np.cumsum(counts, axis=0)
        for second in cumulative:
            seen = np.flatnonzero(second)
            lines += [
                f'      "{middle}" : {count},'
                for middle, count in zip(
                    histogram.MIDDLE_NS[seen].tolist(), second[seen].tolist(), strict=True
                )
            ]
            lines.append(f'    "{way.name.lower()}" : {int(second.sum())},')
    return "\n".join([*lines, "] }", ""]).encode()


def _rate(record: RunRecord, way: Direction) -> float:
    """I/Os of one direction a second."""
    return float(record.intervals.ios[record.intervals.direction == way].sum()) / record.runtime_s


def _latency(merged: histogram.Histogram, key: str) -> float | None:
    """A latency of the merged histogram by the end of its metric's name."""
    if key == "mean":
        return float((merged.counts * histogram.MIDDLE_NS).sum() / max(merged.total, 1))
    if key == "max":
        return merged.percentile_ns(100.0)
    return merged.percentile_ns(float(key[1:].replace("_", ".")))
