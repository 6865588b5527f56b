"""The guests that a study boots, as hosts, and where a growing fleet must be measured."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import zip_longest

from iolab.core.host import (
    CpuFacts,
    HostFacts,
    HostRole,
    HostSpec,
    HostTransport,
    HypervisorHints,
    NumaNode,
)
from iolab.core.limits import CPUS_MAX
from iolab.core.run import Point
from iolab.core.study import Study
from iolab.guests.guest import (
    GUEST_DISK,
    GUEST_SERIAL,
    Accelerator,
    GuestDiskKind,
    GuestSettings,
    Pinning,
    booted_guest_settings,
    max_booted_guests_per_node,
)
from iolab.record import Record
from iolab.study.file import ConfigurationTable
from iolab.study.load_tables import SearchTable
from iolab.study.tables import StudyTables
from iolab.study.targets import hypervisors_of_study
from iolab.text import list_text
from iolab.units import format_bytes, format_ns


def booted_guest_specs(study: Study, node_name: str = "") -> tuple[HostSpec, ...]:
    """The guests that the session boots: all of them, or those of a node."""
    names = dict.fromkeys(name for item in study.configurations for name in item.hosts)
    specs = (study.host(name) for name in names)
    return tuple(
        spec
        for spec in specs
        if spec.transport is HostTransport.VM and (not node_name or spec.hypervisor == node_name)
    )


def image_directory(study: Study, node: HostSpec) -> str | None:
    """Where images of guests go on a node, whose devices carry them; None where it has no path.

    A hypervisor without a path of its own has that of the first configuration with guests of it.
    """
    if node.path or booted_guest_settings(study) is None:
        return node.path
    guests = {spec.name for spec in booted_guest_specs(study, node.name)}
    paths = (item.path for item in study.configurations if guests.intersection(item.hosts))
    return next(paths, None)


def hypervisors_grouped_by_machine(
    study: Study, facts_by_host: Mapping[str, HostFacts]
) -> list[list[HostSpec]]:
    """The nodes that told of themselves, those that are one machine (one kernel) together."""
    machines: dict[str, list[HostSpec]] = {}
    for node in hypervisors_of_study(study):
        if node.name in facts_by_host:
            key = facts_by_host[node.name].kernel.boot_id_or_host(node.name)
            machines.setdefault(key, []).append(node)
    return list(machines.values())


def guest_specs(node_names: Iterable[str], guests_per_node: int) -> Iterator[HostSpec]:
    """The guests that a session boots, node after node: `node-1-vm01` and so on."""
    width = max(2, len(str(guests_per_node)))
    for node in node_names:
        for number in range(1, guests_per_node + 1):
            yield HostSpec(
                name=f"{node}-vm{number:0{width}}",
                transport=HostTransport.VM,
                role=HostRole.CLIENT,
                path=GUEST_DISK,
                serial=GUEST_SERIAL,
                hypervisor=node,
            )


def max_guests_per_node(tables: StudyTables) -> int:
    """How many guests a node has at most; 1 where no workload says how many it wants."""
    lists = [load.vms_per_node or [1] for _, load in tables.items_of_table("workload", SearchTable)]
    return max((most for loads in lists for most in loads), default=1)


def guest_specs_of_study(tables: StudyTables, hosts: Iterable[HostSpec]) -> tuple[HostSpec, ...]:
    """The guests on the hypervisors that some configuration measures; none where none are booted.

    They are as many on each as the largest point wants.
    """
    if not tables.makes_hosts:
        return ()
    lists = [table.hosts for _, table in tables.items_of_table("configuration", ConfigurationTable)]
    nodes = [
        host.name
        for host in hosts
        if host.role is HostRole.HYPERVISOR
        and any(names is None or host.name in names for names in lists)
    ]
    return tuple(guest_specs(nodes, max_guests_per_node(tables)))


def knee_guest_counts_per_node(
    hypervisor_hints: Iterable[HypervisorHints], vcpu_count: int, guest_counts: Sequence[int]
) -> tuple[int, ...]:
    """The numbers of guests a node, of those listed, at which its load may turn.

    They are the first whose vCPUs together fill a NUMA node's cores, all cores, or the queues of
    the storage, as far as these are known.
    """
    turning = {
        next((load for load in sorted(guest_counts) if load * vcpu_count >= bound), None)
        for room in hypervisor_hints
        for bound in _node_saturating_vcpu_counts(room)
    }
    return tuple(sorted(load for load in turning if load is not None))


def _node_saturating_vcpu_counts(hints: HypervisorHints) -> Iterator[float]:
    if hints.cores is not None:
        yield hints.cores
        if hints.numa_nodes is not None:
            yield hints.cores / hints.numa_nodes
    if hints.queues is not None:
        yield hints.queues


def guest_plan_headings_and_texts(study: Study) -> Iterator[tuple[str, str]]:
    """Lines on the guests of a study, each under its heading; none where it has no guests."""
    nodes = hypervisors_of_study(study)
    if not nodes:
        return
    guests = booted_guest_settings(study)
    if guests is None:
        counts = Counter(spec.hypervisor for spec in study.hosts if spec.hypervisor)
        listed = ", ".join(f"{counts[node.name]} on {node.name}" for node in nodes)
        yield "guests", f"{listed}; they exist already and are only used"
        return
    each = max_booted_guests_per_node(study)
    where = f"each of {len(nodes)} nodes" if len(nodes) > 1 else nodes[0].name
    yield "guests", f"{each} on {where}, {_vcpu_and_memory_text(guests)}; booted for this session"
    yield "disks", f"{format_bytes(guests.disk_bytes)} for each guest, {_guest_disk_text(guests)}"


def guest_plan_notes(
    study: Study, points: Iterable[Point], facts_by_host: Mapping[str, HostFacts] | None
) -> Iterator[str]:
    """What should be known before guests are booted, and is no reason against it."""
    guests = booted_guest_settings(study)
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
    if guests.disk is GuestDiskKind.MODELLED:
        yield "no storage is measured: guests' disks are modelled, and what they do is known"
    elif guests.iops_limit is not None:
        yield f"disks are limited to {guests.iops_limit} IOPS each, which is what is seen of them"
    most = max_booted_guests_per_node(study)
    if any(0 < point.per_node < most for point in points):
        yield f"all {most} guests of a node stay up; those that make no load are idle"
    yield from _notes_on_shared_machines_and_few_cpus(study, guests, most, facts_by_host or {})


def _vcpu_and_memory_text(guests: GuestSettings) -> str:
    vcpus = "1 vCPU" if guests.vcpus == 1 else f"{guests.vcpus} vCPUs"
    pinned = {
        Pinning.NONE: "",
        Pinning.CORES: " on processors of its own",
        Pinning.NUMA: " on one NUMA node",
    }[guests.pinning]
    return f"each {vcpus}{pinned} and {format_bytes(guests.memory_bytes)} of memory"


def _guest_disk_text(guests: GuestSettings) -> str:
    if guests.disk is GuestDiskKind.MODELLED:
        return f"modelled: {format_ns(guests.latency_ns or 0)} for each I/O"
    copies = f" on {guests.replicas} nodes" if guests.replicas > 1 else ""
    limit = f", at most {guests.iops_limit} IOPS" if guests.iops_limit is not None else ""
    return f"an image laid out in full{copies}{limit}"


def _notes_on_shared_machines_and_few_cpus(
    study: Study, guests: GuestSettings, max_guests: int, facts_by_host: Mapping[str, HostFacts]
) -> Iterator[str]:
    """What is known of the nodes: that several are one machine, or have too few processors."""
    for nodes in hypervisors_grouped_by_machine(study, facts_by_host):
        names = [node.name for node in nodes]
        cpu, count = facts_by_host[names[0]].cpu, max_guests * len(names)
        together = list_text(names)
        if len(names) > 1:
            yield f"{together} are one machine: their guests share its processors and its disks"
        if count * guests.vcpus > cpu.threads:
            yield (
                f"{count * guests.vcpus} vCPUs share the {cpu.threads} processors of {together}: "
                "guests may wait for them"
            )
        free = unpinned_guest_count(assign_cpu_pins(cpu, count, guests.vcpus, guests.pinning))
        if guests.pinning is Pinning.CORES and free:
            yield (
                f"{together}: for {free} of {count} guests no processors of their own are left; "
                "they may use all"
            )


class CpuPin(Record):
    """The processors of a guest, empty for all; the NUMA node of its memory, None for any."""

    cpus: tuple[int, ...] = ()
    memory_numa_node: int | None = None


def assign_cpu_pins(
    cpu_facts: CpuFacts, guest_count: int, vcpu_count: int, pinning: Pinning
) -> tuple[CpuPin, ...]:
    """A pin for each guest of a machine, in their order.

    Nodes that are one machine (of one boot id) share its processors: ask once for all their guests.
    With CORES no processor is in two pins, and those of a pin are of one NUMA node where one has as
    many left; a guest for which too few are left may use all. With NUMA the nodes take turns. Where
    the kernel tells of no NUMA node, or of none that makes sense, there is nothing to choose.
    """
    nodes = [(node.id, cpus) for node in cpu_facts.numa if (cpus := _cpus_of_numa_node(node))]
    if pinning is Pinning.NUMA and nodes:
        turns = [CpuPin(cpus, number) for number, cpus in nodes]
        return tuple(turns[guest % len(turns)] for guest in range(guest_count))
    if pinning is Pinning.CORES:
        free = [list(cpus) for _, cpus in nodes] or [list(range(cpu_facts.threads))]
        return tuple(CpuPin(_reserve_free_cpus(free, vcpu_count)) for _ in range(guest_count))
    return (CpuPin(),) * guest_count


def guest_pins_of_machine(
    cpu_facts: CpuFacts, guests_by_node: Iterable[Sequence[str]], vcpu_count: int, pinning: Pinning
) -> dict[str, CpuPin]:
    """The pin of each guest by name, on a machine that is one node or several with their guests.

    Every node's first guests come first, as a small fleet is made of them.
    """
    turns = zip_longest(*guests_by_node)
    names = [name for turn in turns for name in turn if name is not None]
    return dict(
        zip(names, assign_cpu_pins(cpu_facts, len(names), vcpu_count, pinning), strict=True)
    )


def unpinned_guest_count(pins: Sequence[CpuPin]) -> int:
    """How many guests may use all processors."""
    return sum(not pin.cpus for pin in pins)


def parse_cpu_list(text: str) -> tuple[int, ...]:
    """The processors of a kernel's list (`0-3,8`), ascending. ValueError when it is none."""
    numbers: set[int] = set()
    for piece in text.strip().split(",") if text.strip() else ():
        first, dash, last = piece.partition("-")
        last = last if dash else first
        if not (_is_cpu_number(first) and _is_cpu_number(last)):
            raise ValueError(f"{text[:100]!r} is no list of processors")
        numbers.update(range(int(first), int(last) + 1))
    return tuple(sorted(numbers))


def _cpus_of_numa_node(node: NumaNode) -> tuple[int, ...]:
    """Those of a NUMA node; what a host says that is no list counts as none."""
    try:
        return parse_cpu_list(node.cpus)
    except ValueError:
        return ()


def _is_cpu_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= 6 and int(text) < CPUS_MAX


def _reserve_free_cpus(free_cpus_by_numa_node: list[list[int]], count: int) -> tuple[int, ...]:
    """Processors out of those that are free, () where there are too few."""
    for node in free_cpus_by_numa_node:
        if len(node) >= count:
            taken, node[:] = node[:count], node[count:]
            return tuple(taken)
    if sum(map(len, free_cpus_by_numa_node)) < count:
        return ()
    processors: list[int] = []
    for node in free_cpus_by_numa_node:
        part = count - len(processors)
        processors += node[:part]
        node[:] = node[part:]
    return tuple(processors)
