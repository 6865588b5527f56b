"""The guests that a study boots, as hosts, and where a growing fleet must be measured."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from iolab.core.host import HostFacts, HostKind, HostSpec, Role, Room
from iolab.core.run import Point
from iolab.core.study import Study
from iolab.guests.guest import (
    GUEST_DISK,
    GUEST_SERIAL,
    Accelerator,
    DiskKind,
    GuestSettings,
    Pinning,
    guests_per_node,
    settings_in,
)
from iolab.guests.pinning import pins, unpinned
from iolab.study.file import ConfigurationTable
from iolab.study.load_tables import SearchTable
from iolab.study.tables import Tables
from iolab.study.targets import nodes_of
from iolab.units import format_bytes, format_ns


def boots_guests(study: Study) -> bool:
    """Whether the session boots guests, rather than use what is there."""
    return settings_in(study) is not None


def booted(study: Study, node: str = "") -> tuple[HostSpec, ...]:
    """The guests that the session boots: all of them, or those of a node."""
    names = dict.fromkeys(name for item in study.configurations for name in item.hosts)
    specs = (study.host(name) for name in names)
    return tuple(
        spec for spec in specs if spec.kind is HostKind.VM and (not node or spec.node == node)
    )


def node_path(study: Study, node: HostSpec) -> str | None:
    """Where images of guests go on a node, whose devices carry them; None where it has no path.

    A hypervisor without a path of its own has that of the first configuration with guests of it.
    """
    if node.path or not boots_guests(study):
        return node.path
    here = {spec.name for spec in booted(study, node.name)}
    paths = (item.path for item in study.configurations if here.intersection(item.hosts))
    return next(paths, None)


def machines_of(study: Study, facts: Mapping[str, HostFacts]) -> list[list[HostSpec]]:
    """The nodes that told of themselves, those that are one machine (one kernel) together."""
    found: dict[str, list[HostSpec]] = {}
    for node in nodes_of(study):
        if node.name in facts:
            key = facts[node.name].kernel.boot_or(node.name)
            found.setdefault(key, []).append(node)
    return list(found.values())


def guests_of(nodes: Iterable[str], per_node: int) -> Iterator[HostSpec]:
    """The guests that a session boots, node after node: `node-1-vm01` and so on."""
    width = max(2, len(str(per_node)))
    for node in nodes:
        for number in range(1, per_node + 1):
            yield HostSpec(
                name=f"{node}-vm{number:0{width}}",
                kind=HostKind.VM,
                role=Role.CLIENT,
                path=GUEST_DISK,
                serial=GUEST_SERIAL,
                node=node,
            )


def largest_per_node(tables: Tables) -> int:
    """How many guests a node has at most; 1 where no workload says how many it wants."""
    lists = [load.vms_per_node or [1] for _, load in tables.read("workload", SearchTable)]
    return max((most for found in lists for most in found), default=1)


def guest_hosts(tables: Tables, hosts: Iterable[HostSpec]) -> tuple[HostSpec, ...]:
    """The guests on the hypervisors that some configuration measures; none where none are booted.

    They are as many on each as the largest point wants.
    """
    if not tables.makes_hosts:
        return ()
    lists = [table.hosts for _, table in tables.read("configuration", ConfigurationTable)]
    nodes = [
        host.name
        for host in hosts
        if host.role is Role.HYPERVISOR
        and any(names is None or host.name in names for names in lists)
    ]
    return tuple(guests_of(nodes, largest_per_node(tables)))


def forced_loads(rooms: Iterable[Room], vcpus: int, loads: Sequence[int]) -> tuple[int, ...]:
    """The numbers of guests a node, of those listed, at which its load may turn.

    They are the first whose vCPUs together fill a NUMA node's cores, all cores, or the queues of
    the storage, as far as these are known.
    """
    found = {
        next((load for load in sorted(loads) if load * vcpus >= bound), None)
        for room in rooms
        for bound in _bounds(room)
    }
    return tuple(sorted(load for load in found if load is not None))


def _bounds(room: Room) -> Iterator[float]:
    if room.cores is not None:
        yield room.cores
        if room.numa_nodes is not None:
            yield room.cores / room.numa_nodes
    if room.queues is not None:
        yield room.queues


def fleet_lines(study: Study) -> Iterator[tuple[str, str]]:
    """Lines on the guests of a study, each under its heading; none where it has no guests."""
    nodes = nodes_of(study)
    if not nodes:
        return
    guests = settings_in(study)
    if guests is None:
        counts = Counter(spec.node for spec in study.hosts if spec.node)
        listed = ", ".join(f"{counts[node.name]} on {node.name}" for node in nodes)
        yield "guests", f"{listed}; they exist already and are only used"
        return
    each = guests_per_node(study)
    where = f"each of {len(nodes)} nodes" if len(nodes) > 1 else nodes[0].name
    yield "guests", f"{each} on {where}, {_machine(guests)}; booted for this session"
    yield "disks", f"{format_bytes(guests.disk_bytes)} for each guest, {_disk(guests)}"


def guest_notes(
    study: Study, points: Iterable[Point], facts: Mapping[str, HostFacts] | None
) -> Iterator[str]:
    """What should be known before guests are booted, and is no reason against it."""
    guests = settings_in(study)
    if guests is None:
        return
    match guests.accelerator:
        case Accelerator.AUTO:
            yield (
                "whether KVM works is found out by booting a guest; where it does not, guests are "
                "emulated and their results are at most indicative"
            )
        case Accelerator.TCG:
            yield "guests are emulated, as vm.accel says: results are at most indicative"
        case Accelerator.KVM:
            pass
    if guests.disk is DiskKind.MODELLED:
        yield "no storage is measured: guests' disks are modelled, and what they do is known"
    elif guests.iops_limit is not None:
        yield f"disks are limited to {guests.iops_limit} IOPS each, which is what is seen of them"
    most = guests_per_node(study)
    if any(0 < point.per_node < most for point in points):
        yield f"all {most} guests of a node stay up; those that make no load are idle"
    yield from _machine_notes(study, guests, most, facts or {})


def _machine(guests: GuestSettings) -> str:
    vcpus = "1 vCPU" if guests.vcpus == 1 else f"{guests.vcpus} vCPUs"
    pinned = {
        Pinning.NONE: "",
        Pinning.CORES: " on processors of its own",
        Pinning.NUMA: " on one NUMA node",
    }[guests.pinning]
    return f"each {vcpus}{pinned} and {format_bytes(guests.memory_bytes)} of memory"


def _disk(guests: GuestSettings) -> str:
    if guests.disk is DiskKind.MODELLED:
        return f"modelled: {format_ns(guests.latency_ns or 0)} for each I/O"
    copies = f" on {guests.replicas} nodes" if guests.replicas > 1 else ""
    limit = f", at most {guests.iops_limit} IOPS" if guests.iops_limit is not None else ""
    return f"an image laid out in full{copies}{limit}"


def _machine_notes(
    study: Study, guests: GuestSettings, most: int, facts: Mapping[str, HostFacts]
) -> Iterator[str]:
    """What is known of the nodes: that several are one machine, or have too few processors."""
    for nodes in machines_of(study, facts):
        names = [node.name for node in nodes]
        cpu, count = facts[names[0]].cpu, most * len(names)
        together = " and ".join([*([", ".join(names[:-1])] if names[1:] else []), names[-1]])
        if len(names) > 1:
            yield f"{together} are one machine: their guests share its processors and its disks"
        if count * guests.vcpus > cpu.threads:
            yield (
                f"{count * guests.vcpus} vCPUs share the {cpu.threads} processors of {together}: "
                "guests may wait for them"
            )
        free = unpinned(pins(cpu, count, guests.vcpus, guests.pinning))
        if guests.pinning is Pinning.CORES and free:
            yield (
                f"{together}: for {free} of {count} guests no processors of their own are left; "
                "they may use all"
            )
