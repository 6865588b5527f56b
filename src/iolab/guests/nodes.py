"""Which hosts of a run are guests, and on which node each of them lives."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Final

import numpy as np
from msgspec.structs import replace

from iolab.analysis.checks.bytes import counted_device_deltas
from iolab.analysis.storage_bytes import deltas_of_devices_on_no_other, distinct_device_deltas
from iolab.analysis.view import RunView
from iolab.analysis.window import to_controller_clock_ns
from iolab.core.host import HostFacts, HostRole
from iolab.core.metric import BytesWrittenByLayer
from iolab.core.run import DeviceDelta, MonitoredHost, RunRecord
from iolab.core.samples import Floats
from iolab.core.workload import Direction
from iolab.guests.guest import (
    BlockCounts,
    GuestDiskKind,
    GuestRun,
    booted_guest_settings_of_run,
    guest_fleet_of_run,
)
from iolab.hosts.rates import ALL_CORES
from iolab.record import Record

if TYPE_CHECKING:
    from iolab.hosts.rates import CounterSeries

LOOPBACK: Final = "lo"
BITS_PER_BYTE: Final = 8
BITS_PER_MBIT: Final = 1_000_000


class Guest(Record):
    """One guest that made load: `host_index` is its place among the run's hosts."""

    host_index: int
    run: GuestRun

    @property
    def name(self) -> str:
        """As in the inventory."""
        return self.run.guest


class HypervisorRun(Record):
    """A node with its guests of one run; `monitored_host` is None where it was not watched."""

    name: str
    guests: tuple[Guest, ...]
    monitored_host: MonitoredHost | None

    @property
    def guest_host_indexes(self) -> list[int]:
        """The places of its guests among the run's hosts."""
        return [guest.host_index for guest in self.guests]

    def block_counts_of_guest_disks(self, direction: Direction) -> list[BlockCounts] | None:
        """What hypervisors counted of its guests' disks; None where one of them did not."""
        if not all(guest.run.blocks for guest in self.guests):
            return None
        runs = [guest.run for guest in self.guests]
        return [block for run in runs for block in run.blocks if block.direction is direction]


def guests_of_run(record: RunRecord) -> tuple[Guest, ...]:
    """The hosts of a run that are known to be guests of a node, in its order."""
    fleet = guest_fleet_of_run(record)
    if fleet is None:
        return ()
    by_name = {guest.guest: guest for guest in fleet.guests}
    return tuple(
        Guest(place, by_name[host.host])
        for place, host in enumerate(record.hosts)
        if host.host in by_name
    )


def hypervisor_runs(record: RunRecord) -> tuple[HypervisorRun, ...]:
    """The nodes that a run's guests live on, in the order of their first guest."""
    guests = guests_of_run(record)
    watched = {bystander.host: bystander for bystander in record.monitored_hosts}
    return tuple(
        HypervisorRun(
            name, tuple(guest for guest in guests if guest.run.node == name), watched.get(name)
        )
        for name in dict.fromkeys(guest.run.node for guest in guests)
    )


def monitored_hypervisors(record: RunRecord) -> tuple[MonitoredHost, ...]:
    """All nodes that were to be watched, also those without a guest in this run."""
    return tuple(
        bystander for bystander in record.monitored_hosts if bystander.role is HostRole.HYPERVISOR
    )


def are_disks_modelled(record: RunRecord) -> bool:
    """Whether the guests' disks are no storage at all."""
    settings = booted_guest_settings_of_run(record)
    return settings is not None and settings.disk is GuestDiskKind.MODELLED


def vcpu_count_of_guest(view: RunView, guest: Guest) -> int | None:
    """How many processors a guest has; None where nobody knows."""
    settings = booted_guest_settings_of_run(view.record)
    if settings is not None:
        return settings.vcpus
    facts = view.facts_of_host(view.hosts[guest.host_index])
    return facts.cpu.threads if facts is not None else None


def kernel_key_of_host(host_name: str, facts_by_host: Mapping[str, HostFacts]) -> str:
    """What tells kernels apart: nodes of one (containers, network namespaces) share its devices."""
    host_facts = facts_by_host.get(host_name)
    return host_facts.kernel.boot_id_or_host(host_name) if host_facts else host_name


def distinct_node_device_deltas(
    nodes: Iterable[MonitoredHost], facts_by_host: Mapping[str, HostFacts]
) -> tuple[DeviceDelta, ...]:
    """The leaves of all those nodes, each of a kernel once: as the node that saw the most of it."""
    leaves = (
        (node.host, deltas_of_devices_on_no_other(node, facts_by_host.get(node.host)))
        for node in nodes
    )
    return distinct_device_deltas(leaves, facts_by_host)


def declared_read_and_write_amplification(record: RunRecord) -> tuple[float, float] | None:
    """Bytes that devices read, and write, for one of a guest; None where nothing declares it.

    The configuration's redundancy has the last word. The images of our own guests lie on as many
    nodes as they have replicas, and are read from one.
    """
    if record.redundancy is not None:
        return record.redundancy.read_factor, record.redundancy.write_factor
    settings = booted_guest_settings_of_run(record)
    return None if settings is None else (1.0, float(settings.replicas))


def written_bytes_of_node_by_layer(view: RunView, node: HypervisorRun) -> BytesWrittenByLayer:
    """What a node's guests wrote in the whole run, and what became of it on the node.

    Devices are those of this node alone: where it shares them with another nobody can tell.
    """
    record, factors = view.record, declared_read_and_write_amplification(view.record)
    served = node.block_counts_of_guest_disks(Direction.WRITE)
    return BytesWrittenByLayer(
        guests=sum(
            view.claimed_run_bytes_with_neighbours(host, Direction.WRITE)
            for host in node.guest_host_indexes
        ),
        hypervisor=None if served is None else sum(block.bytes for block in served),
        devices=_bytes_written_by_devices_of_node(view, node),
        factor=None if are_disks_modelled(record) or factors is None else factors[1],
    )


def _bytes_written_by_devices_of_node(view: RunView, node: HypervisorRun) -> int | None:
    if node.monitored_host is None or are_disks_modelled(view.record):
        return None
    leaves = deltas_of_devices_on_no_other(node.monitored_host, view.facts.get(node.name))
    if not leaves or _are_devices_counted_by_another_node(
        view, node, {delta.device for delta in leaves}
    ):
        return None
    return sum(delta.write_bytes for delta in leaves)


def _are_devices_counted_by_another_node(
    view: RunView, node: HypervisorRun, devices: set[str]
) -> bool:
    """Whether another node of the same kernel counts any of these devices, too."""
    kernel = kernel_key_of_host(node.name, view.facts)
    return any(
        not devices.isdisjoint(
            delta.device
            for delta in deltas_of_devices_on_no_other(other, view.facts.get(other.host))
        )
        for other in monitored_hypervisors(view.record)
        if other.host != node.name and kernel_key_of_host(other.host, view.facts) == kernel
    )


class GuestBytes(Record):
    """The bytes of one guest over the whole run, as the guest and its hypervisor count them.

    Both are (read, written). Where the guest's device was not counted, or by a kernel that is not
    its alone, `guest_read_and_write_bytes` is what its engine claims;
    `hypervisor_read_and_write_bytes` is None where the hypervisor is not ours.
    """

    name: str
    guest_read_and_write_bytes: tuple[int, int]
    hypervisor_read_and_write_bytes: tuple[int, int] | None


class FleetByteCounts(Record):
    """All guests and the devices of all nodes, (read, written) over the whole run.

    `hypervisor_read_and_write_bytes` is what left the guests: served where that is known, else
    asked. `expected_device_read_and_write_bytes` of devices is that times the declared factors,
    None without a declaration; `moved_device_read_and_write_bytes` is None unless every node was
    counted, `unmonitored_node` names one that was not. Devices of nodes that share a kernel count
    once; `device_count` is how many there are.
    """

    guests: tuple[GuestBytes, ...]
    hypervisor_read_and_write_bytes: tuple[int, int]
    expected_device_read_and_write_bytes: tuple[float, float] | None
    moved_device_read_and_write_bytes: tuple[int, int] | None
    device_count: int
    unmonitored_node: str | None


def fleet_byte_counts(view: RunView) -> FleetByteCounts | None:
    """The account of a run that guests made, else None."""
    guests = tuple(_guest_bytes(view, guest) for guest in guests_of_run(view.record))
    if not guests:
        return None
    below = [
        guest.hypervisor_read_and_write_bytes or guest.guest_read_and_write_bytes
        for guest in guests
    ]
    total = sum(read for read, _ in below), sum(written for _, written in below)
    factors = declared_read_and_write_amplification(view.record)
    nodes = monitored_hypervisors(view.record)
    blind = next(
        (n.host for n in nodes if not deltas_of_devices_on_no_other(n, view.facts.get(n.host))),
        None,
    )
    blind = blind or _first_unmonitored_hypervisor_name(view)
    once = distinct_node_device_deltas(nodes, view.facts)
    return FleetByteCounts(
        guests=guests,
        hypervisor_read_and_write_bytes=total,
        expected_device_read_and_write_bytes=None
        if factors is None or are_disks_modelled(view.record)
        else (total[0] * factors[0], total[1] * factors[1]),
        moved_device_read_and_write_bytes=None
        if blind is not None
        else (sum(d.read_bytes for d in once), sum(d.write_bytes for d in once)),
        device_count=len(once),
        unmonitored_node=blind,
    )


def _guest_bytes(view: RunView, guest: Guest) -> GuestBytes:
    host = view.hosts[guest.host_index]
    counted = counted_device_deltas(view.facts_of_host(host), host.devices)
    own = () if _shares_kernel_with_other_host(view, guest) else counted
    blocks = guest.run.blocks
    claimed = (
        view.claimed_run_bytes(guest.host_index, Direction.READ),
        view.claimed_run_bytes(guest.host_index, Direction.WRITE),
    )
    return GuestBytes(
        name=guest.name,
        guest_read_and_write_bytes=(
            sum(moved.read_bytes for moved in own),
            sum(moved.write_bytes for moved in own),
        )
        if own
        else claimed,
        hypervisor_read_and_write_bytes=(
            sum(block.bytes for block in blocks if block.direction is Direction.READ),
            sum(block.bytes for block in blocks if block.direction is Direction.WRITE),
        )
        if blocks
        else None,
    )


def _shares_kernel_with_other_host(view: RunView, guest: Guest) -> bool:
    """Whether its devices count what others move, too: a container, or a network namespace."""
    kernel = kernel_key_of_host(guest.name, view.facts)
    return any(
        kernel_key_of_host(name, view.facts) == kernel
        for name in view.record.host_names
        if name != guest.name
    )


def _first_unmonitored_hypervisor_name(view: RunView) -> str | None:
    """A node that guests live on and that is no host of the study."""
    fleet = guest_fleet_of_run(view.record)
    watched = {bystander.host for bystander in view.record.monitored_hosts}
    return next((node for node in (fleet.nodes if fleet else ()) if node not in watched), None)


class HypervisorCounters(Record):
    """What a node's own counters say of it, each thing by its name, in the order of names.

    `real_ns` of every series is the controller's time at the end of each step. Devices are the
    leaves of those that serve the guests' images. `cpu_busy_by_numa_node` are `node<N>` for each
    NUMA node, or `all` where there is one. Ports are all but the loopback; `tx_share`, of what the
    link can carry, is there where the port's speed is known.
    """

    node: str
    iops: Mapping[str, CounterSeries]
    lat_ns: Mapping[Direction, Mapping[str, CounterSeries]]
    cpu_busy_by_numa_node: Mapping[str, CounterSeries]
    tx_bytes_per_s: Mapping[str, CounterSeries]
    tx_frames_per_s: Mapping[str, CounterSeries]
    tx_share: Mapping[str, CounterSeries]


def hypervisor_counters(
    record: RunRecord, telemetry: Sequence[CounterSeries], facts: HostFacts | None, node_name: str
) -> HypervisorCounters | None:
    """The node from inside; None where it was not watched.

    `telemetry` are the series derived from the record's counters, `facts` those of the node.
    """
    watched = next(
        (bystander for bystander in record.monitored_hosts if bystander.host == node_name), None
    )
    if watched is None:
        return None
    own_series = [
        _series_on_controller_clock(series, watched)
        for series in telemetry
        if series.host == node_name
    ]

    def series_by_name(
        scope: str, metric_key: str, is_wanted_name: Callable[[str], bool]
    ) -> dict[str, CounterSeries]:
        matching = [
            s
            for s in own_series
            if (s.scope, s.metric) == (scope, metric_key) and is_wanted_name(s.name)
        ]
        return {s.name: s for s in sorted(matching, key=lambda s: _numa_sort_key(s.name))}

    disks = {delta.device for delta in deltas_of_devices_on_no_other(watched, facts)}
    reads = series_by_name("disk", "read_iops", disks.__contains__)
    writes = series_by_name("disk", "write_iops", disks.__contains__)
    numa = series_by_name("cpu", "busy_share", _is_numa_row)
    sent = series_by_name("nic", "tx_bytes_per_s", lambda name: name != LOOPBACK)
    return HypervisorCounters(
        node=node_name,
        iops={
            name: _sum_read_and_write_series(reads[name], writes[name])
            for name in reads
            if name in writes
        },
        lat_ns={
            direction: series_by_name("disk", f"{direction.key}_lat_ns", disks.__contains__)
            for direction in (Direction.READ, Direction.WRITE)
        },
        cpu_busy_by_numa_node=numa
        if len(numa) > 1
        else series_by_name("cpu", "busy_share", ALL_CORES.__eq__),
        tx_bytes_per_s=sent,
        tx_frames_per_s=series_by_name("nic", "tx_frames_per_s", lambda name: name != LOOPBACK),
        tx_share=_link_use_share_by_port(sent, facts),
    )


def link_bytes_per_s(facts: HostFacts | None, port: str) -> float | None:
    """What a port's link carries each way; None where the kernel does not know its speed."""
    ports = facts.nics if facts else ()
    speed = next((nic.speed_mbit_s for nic in ports if nic.name == port), None)
    return speed * BITS_PER_MBIT / BITS_PER_BYTE if speed and speed > 0 else None


def _series_on_controller_clock(series: CounterSeries, watched: MonitoredHost) -> CounterSeries:
    return replace(series, real_ns=to_controller_clock_ns(series.real_ns, watched.clock_offset_ns))


def _sum_read_and_write_series(reads: CounterSeries, writes: CounterSeries) -> CounterSeries:
    """Both directions of one device, which were counted in the same steps."""
    total: Floats = np.asarray(reads.value + writes.value)
    return replace(reads, metric="iops", value=total)


def _link_use_share_by_port(
    ports: Mapping[str, CounterSeries], facts: HostFacts | None
) -> dict[str, CounterSeries]:
    shares = {}
    for name, series in ports.items():
        link = link_bytes_per_s(facts, name)
        if link is not None:
            share: Floats = np.asarray(series.value / link)
            shares[name] = replace(series, metric="tx_share", value=share)
    return shares


def _is_numa_row(name: str) -> bool:
    return name.startswith("node") and name[4:].isdigit()


def _numa_sort_key(name: str) -> tuple[str, int]:
    """`node2` before `node10`."""
    words = name.rstrip("0123456789")
    return words, int(name[len(words) :] or 0)
