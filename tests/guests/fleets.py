"""Runs of guests made by hand: two nodes with two guests each, all in order, to be spoiled.

Each guest does 1000 reads a second of 8 ms with 8 in flight, for 30 s. Its own block device sees
7 ms of it, its hypervisor 6 ms and the devices of its node 1 ms. Clocks of nodes are an hour ahead.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from msgspec.structs import replace

from iolab.analysis.kinds import JUDGED_WITH_RESOURCES
from iolab.analysis.sums import sum_measured_window
from iolab.analysis.view import RunView
from iolab.core.host import HostFacts, HostRole
from iolab.core.run import DeviceDelta, MonitoredHost, RunRecord
from iolab.core.workload import Direction
from iolab.guests.analysis import GuestAnalysis
from iolab.guests.guest import (
    Accelerator,
    BlockCounts,
    GuestCpuTime,
    GuestFleet,
    GuestRun,
    GuestSettings,
)
from iolab.hosts.counter_names import CPU, DISK, GUEST, NIC
from iolab.hosts.counter_names import GUESTS as COUNTED_GUESTS
from iolab.hosts.rates import derive_counter_series
from iolab.hosts.telemetry import CounterCollector
from iolab.loads.fileio.workload import AccessPattern, Job
from tests.analysis.records import (
    BLOCK,
    DEVICE,
    GO_NS,
    JOB,
    SECOND,
    Burst,
    burst_tables,
    facts_of,
    host_run,
    record_of,
)

NODES: Final = ("n1", "n2")
GUESTS: Final = ("n1-vm01", "n1-vm02", "n2-vm01", "n2-vm02")
PLACES: Final = dict(zip(GUESTS, ("n1", "n1", "n2", "n2"), strict=True))
SECONDS: Final = 30
IOPS: Final = 1000
READ: Final = IOPS * SECONDS * BLOCK
"""Bytes that one guest reads."""

AHEAD_NS: Final = 3600 * SECOND

SETTINGS: Final = GuestSettings(vcpus=1, memory_bytes=1 << 28, disk_bytes=1 << 26)
READS: Final = replace(JOB, iodepth=8, numjobs=1, block_bytes=BLOCK)
WRITES: Final = replace(READS, access=AccessPattern.RANDWRITE)
IDLE: Final = GuestCpuTime(wall_s=32.0, vcpu_run_s=8.0, vcpu_wait_s=0.0, cpu_s=9.0)


def blocks(bytes_: int = READ, way: Direction = Direction.READ, lat_ms: float = 6) -> BlockCounts:
    ios = bytes_ // BLOCK
    return BlockCounts(way, ios, bytes_, round(ios * lat_ms * 1e6))


def guest(name: str, **changes: Any) -> GuestRun:
    """A guest with KVM that had the processors it wanted."""
    run = GuestRun(name, PLACES[name], Accelerator.KVM, (blocks(),), IDLE, 1.5)
    return replace(run, **changes)


def given(name: str) -> GuestRun:
    """A guest that somebody else made: its node is all that is known."""
    return GuestRun(name, PLACES[name])


def node(name: str, read: int = 2 * READ, write: int = 0, **changes: Any) -> MonitoredHost:
    """A node whose one device moved what its guests did."""
    devices = (DeviceDelta("nvme0n1", read, write, read // BLOCK, write // BLOCK),)
    return replace(MonitoredHost(name, HostRole.HYPERVISOR, None, devices, AHEAD_NS, 0), **changes)


def fleet_of(*guests: GuestRun, **changes: Any) -> GuestFleet:
    return replace(GuestFleet(guests, SETTINGS, per_node=2), **changes)


def run(
    *,
    job: Job = READS,
    fleet: GuestFleet | None = None,
    nodes: Sequence[MonitoredHost] | None = None,
    bursts: Mapping[str, Sequence[Burst]] | None = None,
    **changes: Any,
) -> RunRecord:
    """The healthy run, or one with other guests, nodes or load."""
    way = Direction.WRITE if job.access is AccessPattern.RANDWRITE else Direction.READ
    usual = [Burst(ios=IOPS, lat_ns=8_000_000, direction=way)]
    load = [(bursts or {}).get(name, usual) for name in GUESTS]
    hosts = [host_run(name, one) for name, one in zip(GUESTS, load, strict=True)]
    if fleet is None:
        fleet = fleet_of(*(guest(name, blocks=(blocks(way=way),)) for name in GUESTS))
    if nodes is None:
        moved = (2 * READ, 0) if way is Direction.READ else (0, 2 * READ)
        nodes = [node(name, *moved) for name in NODES]
    table, bins = burst_tables(load)
    record = record_of(hosts, table, bins, job=job, **changes)
    return replace(record, fleet=fleet, monitored_hosts=tuple(nodes))


def facts(*, one_kernel: bool = False) -> dict[str, HostFacts]:
    """Of every guest and node; with `one_kernel` the nodes are namespaces of one machine."""
    found = {name: facts_of(name) for name in (*GUESTS, *NODES)}
    if one_kernel:
        found |= {name: replace(found[name], kernel=found["n1"].kernel) for name in NODES}
    return found


def samples(
    collector: CounterCollector,
    host: int,
    rows: Mapping[str, Mapping[str, Mapping[str, int]]],
    *,
    offset_ns: int = 0,
    seconds: int = SECONDS,
) -> None:
    """Counters that grow evenly by those amounts a second: kind of row, its name, its metrics."""
    kinds = {"disks": DISK, "nics": NIC, "guests": GUEST}
    for at in range(-1, seconds + 2):
        sample: dict[str, object] = {"seq": at + 1, "real_ns": GO_NS + at * SECOND + offset_ns}
        for kind, named in rows.items():
            if kind == "cpu":
                sample["cpu"] = [
                    [*map(int, name.split("@")), *((at + 1) * grown.get(m, 0) for m in CPU)]
                    for name, grown in named.items()
                ]
            else:
                sample[kind] = [
                    [name, *((at + 1) * grown.get(m, 0) for m in kinds[kind])]
                    for name, grown in named.items()
                ]
        collector.add(host, sample)


def counted(record: RunRecord, way: str = "read", **node_rows: Any) -> RunRecord:
    """The run with the counters that its guests and nodes would leave; `node_rows` of `n1`."""
    collector = CounterCollector()
    for place in range(len(GUESTS)):
        disk = {f"{way}_ios": IOPS, f"{way}_time_ns": IOPS * 7_000_000}
        samples(collector, place, {"disks": {DEVICE: disk}, "cpu": {"0@0": {"idle_ns": SECOND}}})
    for place, name in enumerate(NODES, len(GUESTS)):
        mine = [one for one in GUESTS if PLACES[one] == name]
        served = {
            f"{way}_ios": IOPS,
            f"{way}_bytes": IOPS * BLOCK,
            f"{way}_ns": IOPS * 6_000_000,
            "vcpu_run_ns": SECOND // 4,
        }
        disk = {f"{way}_ios": 2 * IOPS, f"{way}_time_ns": 2 * IOPS * 1_000_000}
        rows: dict[str, Any] = {
            "disks": {"nvme0n1": disk},
            "guests": dict.fromkeys(mine, served),
            "cpu": {"0@0": {"idle_ns": SECOND}},
        }
        if name == "n1":
            rows |= node_rows
        samples(collector, place, rows, offset_ns=AHEAD_NS)
    return replace(record, counters=collector.pop_table())


def view(record: RunRecord, known: dict[str, HostFacts] | None = None) -> RunView:
    """The run as its checks see it, with the telemetry that a judge derives."""
    wanted = {**JUDGED_WITH_RESOURCES, COUNTED_GUESTS: None}
    telemetry = derive_counter_series(record.counters, record.host_names, wanted)
    known = facts() if known is None else known
    return RunView(
        record, known, sum_measured_window(record), telemetry, host_kinds=(GuestAnalysis(),)
    )
