"""Records made by hand: a healthy run to begin with, and bursts of known I/Os.

The healthy run: one host, randread 4k, iodepth 8 x 4 jobs = 32 in flight at 0.8 ms each, so 40 000
IOPS, for 30 s; its device moved exactly what was read.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from msgspec.structs import replace

from iolab.analysis.service_time import sum_service_times
from iolab.analysis.sums import sum_measured_window
from iolab.analysis.view import RunView
from iolab.core import host as h
from iolab.core.generator import GeneratorTotals
from iolab.core.histogram import bin_index_of_ns
from iolab.core.run import (
    CacheDropProof,
    DeviceDelta,
    DirectionTotals,
    EngineTotals,
    ExtentProof,
    HostLoadDetails,
    HostRun,
    NeighbourRun,
    PlannedRun,
    Point,
    PreRunActivity,
    ProcessUse,
    RunRecord,
    RunStatus,
)
from iolab.core.samples import (
    BinTable,
    IntervalTable,
    empty_bin_table,
    empty_counter_table,
    empty_interval_table,
)
from iolab.core.workload import AnyJob, Direction, OperationEnum
from iolab.guests.analysis import GuestAnalysis
from iolab.hosts.rates import CounterSeries
from iolab.loads.fileio.engine_facts import FIO_ENGINE
from iolab.loads.fileio.workload import AccessPattern, Job
from iolab.record import Record
from tests.histograms import of_latencies

GO_NS: Final = 1_700_000_000_000_000_000
SECOND: Final = 1_000_000_000
BLOCK: Final = 4096
GIB: Final = 1 << 30
DEVICE: Final = "nvme0n1"

JOB: Final = Job(
    engine=FIO_ENGINE,
    access=AccessPattern.RANDREAD,
    block_bytes=BLOCK,
    iodepth=8,
    numjobs=4,
    file_bytes=GIB,
)
WRITES: Final = replace(JOB, access=AccessPattern.RANDWRITE)
MIXED: Final = replace(JOB, access=AccessPattern.RANDRW, read_percent=50)
TRIMS: Final = replace(JOB, access=AccessPattern.RANDTRIM)


GENERATOR: Final = GeneratorTotals(
    method="io_uring",
    threads=4,
    clock="tsc",
    notes=(),
    errors=(),
    retries=(),
    lateness=None,
    unreached=False,
    measured_ns=30 * SECOND,
    drain_ns=0,
    drained_ios=0,
    verify=None,
    voluntary_switches=0,
    involuntary_switches=0,
    steal_ticks=0,
)
"""What an engine of ours tells of itself when all is well."""


class Burst(Record):
    """Equal seconds of I/O of one direction: `ios` of `lat_ns` each in every `span_s`."""

    start_s: float = 0.0
    spans: int = 30
    ios: int = 40_000
    lat_ns: int = 800_000
    span_s: float = 1.0
    direction: OperationEnum = Direction.READ
    offset_ns: int = 0
    first_seq: int = 0


class Spell(Record):
    """One interval of one host in one direction with the latency of every I/O."""

    host: int
    seq: int
    direction: Direction
    start_ns: int
    span_ns: int
    latencies: tuple[int, ...]


def tables(spells: Sequence[Spell]) -> tuple[IntervalTable, BinTable]:
    """The evidence that an engine would leave of those spells."""
    if not spells:
        return empty_interval_table(), empty_bin_table()
    rows = []
    for spell in spells:
        counts = (
            np.bincount(bin_index_of_ns(spell.latencies)) if spell.latencies else np.zeros(0, int)
        )
        rows += [
            (spell.host, spell.seq, int(spell.direction), b, int(counts[b]))
            for b in np.flatnonzero(counts)
        ]
    columns = np.array(rows, dtype=np.int64).reshape(-1, 5).T
    intervals = IntervalTable(
        host=np.array([s.host for s in spells], dtype=np.int64),
        seq=np.array([s.seq for s in spells], dtype=np.int64),
        end_real_ns=np.array([s.start_ns + s.span_ns for s in spells], dtype=np.int64),
        span_ns=np.array([s.span_ns for s in spells], dtype=np.int64),
        direction=np.array([int(s.direction) for s in spells], dtype=np.int64),
        ios=np.array([len(s.latencies) for s in spells], dtype=np.int64),
        bytes=np.array([len(s.latencies) * BLOCK for s in spells], dtype=np.int64),
        lat_sum_ns=np.array([float(sum(s.latencies)) for s in spells]),
    )
    return intervals, BinTable(*columns)


def tables_of_rows(
    rows: Sequence[tuple[int, ...]], bins: Sequence[tuple[int, ...]]
) -> tuple[IntervalTable, BinTable]:
    """The tables with those rows, each with its values in the order of the columns."""
    columns = np.array(rows, dtype=np.int64).reshape(-1, 8).T
    sparse = np.array(bins, dtype=np.int64).reshape(-1, 5).T
    intervals = IntervalTable(*columns)
    return replace(intervals, lat_sum_ns=columns[7].astype(np.float64)), BinTable(*sparse)


def burst_tables(hosts: Sequence[Sequence[Burst]]) -> tuple[IntervalTable, BinTable]:
    """The evidence of bursts, without making every I/O."""
    rows, bins = [], []
    for host, bursts in enumerate(hosts):
        for burst in bursts:
            for i in range(burst.spans):
                seq, way = burst.first_seq + i, int(burst.direction)
                end = GO_NS + round((burst.start_s + (i + 1) * burst.span_s) * SECOND)
                span = round(burst.span_s * SECOND)
                moved, waited = burst.ios * BLOCK, burst.ios * burst.lat_ns
                rows.append((host, seq, end + burst.offset_ns, span, way, burst.ios, moved, waited))
                if burst.ios:
                    bins.append((host, seq, way, int(bin_index_of_ns(burst.lat_ns)), burst.ios))
    return tables_of_rows(rows, bins)


def direction_totals(ios: int, low_ns: int, high_ns: int, mean_ns: float) -> DirectionTotals:
    return DirectionTotals(
        ios=ios,
        bytes=ios * BLOCK,
        runtime_ms=30_000,
        iops=ios / 30,
        bw_bytes_per_s=ios * BLOCK / 30,
        lat_min_ns=low_ns,
        lat_max_ns=high_ns,
        lat_mean_ns=mean_ns,
        slat_mean_ns=0.0,
        clat_mean_ns=mean_ns,
        percentiles=(),
        short_ios=0,
        dropped_ios=0,
    )


def engine_totals(
    read: DirectionTotals | None, write: DirectionTotals | None, level: str = "8"
) -> EngineTotals:
    return EngineTotals(
        read=read,
        write=write,
        depth_percent=((level, 100.0),),
        user_cpu_percent=10.0,
        system_cpu_percent=20.0,
        error=0,
        jobs=4,
    )


def host_run(name: str = "local", bursts: Sequence[Burst] = (), **changes: Any) -> HostRun:
    """A healthy host that ran those bursts."""
    ways = {}
    for way in Direction:
        mine = [b for b in bursts if b.direction is way]
        ios = sum(b.ios * b.spans for b in mine)
        lats = [b.lat_ns for b in mine] or [0]
        mean = sum(b.ios * b.spans * b.lat_ns for b in mine) / max(ios, 1)
        ways[way] = direction_totals(ios, min(lats), max(lats), mean) if ios else None
    read, write = ways[Direction.READ], ways[Direction.WRITE]
    run = HostRun(
        host=name,
        error=None,
        argv=("fio", "job.fio"),
        job_file="[job]\n",
        engine_version="fio-3.33",
        start_real_ns=None,
        end_real_ns=None,
        exit_code=0,
        exit_signal=None,
        stopped_early=False,
        totals=replace(engine_totals(read, write), trim=ways[Direction.TRIM]),
        devices=(
            DeviceDelta(
                DEVICE,
                read.bytes if read else 0,
                write.bytes if write else 0,
                read.ios if read else 0,
                write.ios if write else 0,
                read_merges=0,
                write_merges=0,
            ),
        ),
        extents=ExtentProof("fiemap", 4, 4 * GIB, 4 * GIB, 0, 0),
        cache_drop=CacheDropProof(
            requested=True, resident_bytes_before=GIB, resident_bytes_after=0, methods=()
        ),
        pre_run_activity=PreRunActivity(watched_s=1.0, bytes_per_s=0.0, ios_per_s=0.0),
        process=ProcessUse(user_s=1.0, system_s=1.0, max_rss_bytes=1 << 20),
        clock_offset_ns=bursts[0].offset_ns if bursts else 0,
        clock_error_ns=100_000,
        stderr_tail="",
    )
    return replace(run, **changes)


def record_of(
    hosts: Sequence[HostRun],
    intervals: IntervalTable,
    bins: BinTable,
    job: AnyJob = JOB,
    **changes: Any,
) -> RunRecord:
    point = Point("0123456789abcdef", "default", "rand-read-4k", (), job, "s1g")
    record = RunRecord(
        run=PlannedRun(1, 1, point),
        status=RunStatus.DONE,
        failure=None,
        started_real_ns=GO_NS,
        ended_real_ns=GO_NS + 30 * SECOND,
        warmup_s=0.0,
        runtime_s=30.0,
        telemetry_interval_ms=1000,
        hosts=tuple(hosts),
        intervals=intervals,
        bins=bins,
        counters=empty_counter_table(),
        outputs=(),
    )
    return replace(record, **changes)


def bursts_record(*hosts: Sequence[Burst], job: AnyJob = JOB, **changes: Any) -> RunRecord:
    """The record of hosts `c1`, `c2`, ... that ran those bursts, all else being well."""
    runs = [host_run(f"c{number}", bursts) for number, bursts in enumerate(hosts, 1)]
    return record_of(runs, *burst_tables(hosts), job=job, **changes)


def told_record(
    record: RunRecord, details: HostLoadDetails, generator: GeneratorTotals, **changes: Any
) -> RunRecord:
    """The record of hosts that each told that, whose clocks went well; `changes` of each host."""
    hosts = tuple(
        replace(
            host,
            details=details,
            totals=replace(host.totals, generator=generator) if host.totals else None,
            clock_offset_after_ns=host.clock_offset_ns,
            clock_error_after_ns=0,
            **changes,
        )
        for host in record.hosts
    )
    return replace(record, hosts=hosts)


def with_neighbour(record: RunRecord, *bursts: Burst, job: Job, host: str = "c1") -> RunRecord:
    """The record with a load that an event began on a host, and that claims those bursts."""
    intervals, bins = burst_tables([bursts])
    point = replace(record.run.point, workload="noise", job=job)
    return replace(
        record,
        neighbours=(NeighbourRun("noise", point, host_run(host, bursts)),),
        neighbour_intervals=intervals,
        neighbour_bins=bins,
    )


def healthy(job: Job = JOB, **changes: Any) -> RunRecord:
    """The healthy run of one host; `changes` are of its HostRun."""
    bursts = {
        AccessPattern.RANDREAD: [Burst()],
        AccessPattern.RANDWRITE: [Burst(direction=Direction.WRITE)],
        AccessPattern.RANDRW: [Burst(ios=20_000), Burst(ios=20_000, direction=Direction.WRITE)],
        AccessPattern.RANDTRIM: [Burst(direction=Direction.TRIM)],
    }[job.access]
    record = bursts_record(bursts, job=job)
    return replace(record, hosts=(replace(record.hosts[0], **changes),))


def facts_of(name: str = "c1", **target_changes: Any) -> h.HostFacts:
    """A host with 16 GiB of memory and its target, an XFS on one NVMe device."""
    target = h.TargetFacts(
        path="/mnt/t",
        fs_type="xfs",
        mount_point="/mnt/t",
        mount_source=f"/dev/{DEVICE}",
        mount_options="rw",
        total_bytes=1000 * GIB,
        free_bytes=900 * GIB,
        free_inodes=1000,
        device=DEVICE,
        devices=(DEVICE,),
        in_memory=False,
        memory_backed=False,
        network=False,
        writable=True,
    )
    return h.HostFacts(
        cpu=h.CpuFacts("cpu", 1, 4, 4, None, None, ()),
        memory=h.MemoryFacts(16 * GIB, ()),
        disks=(disk(DEVICE),),
        nics=(),
        kernel=h.KernelFacts("6.1", "os", "x86_64", name, f"boot-{name}", None, None, None),
        target=replace(target, **target_changes),
        tools=(),
        faults=(),
    )


def disk(name: str, *parents: str) -> h.DiskFacts:
    return h.DiskFacts(
        name=name,
        model=None,
        serial=None,
        firmware=None,
        size_bytes=1000 * GIB,
        rotational=False,
        scheduler=None,
        logical_block_bytes=512,
        physical_block_bytes=4096,
        pcie_link=None,
        parents=parents,
        backing_file=None,
    )


def btrfs_over(**parents: Sequence[str]) -> dict[str, h.HostFacts]:
    """A btrfs over those devices, each on its parents, as the agent tells of it."""
    devices = tuple(dict.fromkeys(n for name, below in parents.items() for n in (name, *below)))
    disks = tuple(disk(name, *parents.get(name, ())) for name in devices)
    facts = facts_of(device=devices[0], devices=devices, fs_type="btrfs")
    return {"c1": replace(facts, disks=tuple(replace(d, max_io_bytes=1 << 20) for d in disks))}


def series(metric: str, values: Sequence[float], host: str = "c1", **named: str) -> CounterSeries:
    """A telemetry series of one value a second, the first at the end of the first second."""
    span = np.full(len(values), SECOND, dtype=np.int64)
    at = GO_NS + np.cumsum(span)
    scope, name = named.get("scope", "cpu"), named.get("name", "all")
    return CounterSeries(host, scope, name, metric, at, np.asarray(values, dtype=np.float64), span)


QUIET: Final = (series("busy_share", [0.3] * 30), series("steal_share", [0.0] * 30))
"""Telemetry of cores that have nothing much to do."""


def view_of(
    record: RunRecord,
    facts: dict[str, h.HostFacts] | None = None,
    telemetry: tuple[CounterSeries, ...] = QUIET,
) -> RunView:
    """The record as checks see it, by default with the facts of every host."""
    known = {host.host: facts_of(host.host) for host in record.hosts} if facts is None else facts
    load = sum_measured_window(record)
    service = sum_service_times(record, load)
    return RunView(record, known, load, telemetry, None, service, (GuestAnalysis(),))


def spell_record(spells: Sequence[Spell], hosts: int, job: Job = MIXED) -> RunRecord:
    """A record of spells whose engine totals tell the exact extremes."""
    runs = []
    for host in range(hosts):
        ways = []
        for way in (Direction.READ, Direction.WRITE):
            mine = [v for s in spells if (s.host, s.direction) == (host, way) for v in s.latencies]
            exact = of_latencies(mine)
            mean = float(np.mean(mine)) if mine else 0.0
            ways.append(
                direction_totals(len(mine), exact.min_ns or 0, exact.max_ns or 0, mean)
                if mine
                else None
            )
        runs.append(host_run(f"c{host + 1}", totals=engine_totals(ways[0], ways[1])))
    return record_of(runs, *tables(spells), job=job)
