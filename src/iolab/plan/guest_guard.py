"""Whether hypervisors can carry the guests of a study: programs, memory, and room for images."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from iolab.errors import Fault
from iolab.model.guest import DiskKind, GuestSettings, Pinning
from iolab.model.host import HostFacts, HostSpec, TargetFacts, TargetProbe
from iolab.model.run import Plan
from iolab.model.study import Study
from iolab.plan.budget import with_spare
from iolab.plan.guest_cost import guests_per_node, image_bytes, node_bytes
from iolab.plan.guests import node_path, nodes_of
from iolab.plan.targets import Target, region_bytes, targets_of
from iolab.plan.wording import shown
from iolab.units import format_bytes

QEMU: Final = "qemu-system-x86_64"
QEMU_IMG: Final = "qemu-img"
QEMU_NBD: Final = "qemu-nbd"
TASKSET: Final = "taskset"
FIO: Final = "fio"

ARCHITECTURE: Final = "x86_64"
"""What our kernel, our agent and the programs in guests are made for."""

QEMU_BYTES: Final = 192 << 20
"""What QEMU takes beside a guest's memory: measured at 155 MiB beside 192 MiB of an emulated guest
that had worked, most of them translated code."""

MEMORY_SHARE: Final = 0.9
"""Of a node's memory for guests; the rest is for its kernel and everybody else."""

_INSTALL: Final = {
    QEMU: "Install it there, as with 'apt-get install qemu-system-x86'.",
    QEMU_IMG: "Install it there, as with 'apt-get install qemu-utils'; or leave vm.replicas out.",
    QEMU_NBD: "Install it there, as with 'apt-get install qemu-utils'; or leave vm.replicas out.",
    TASKSET: "Install it there, as with 'apt-get install util-linux'; or leave vm.pin out.",
    FIO: "Install it there, as with 'apt-get install fio': it lays out the disks of guests.",
}


def guest_tools(study: Study) -> dict[str, list[str]]:
    """What guests need on their nodes: each program with what asks for its version."""
    guests = study.guests
    if guests is None:
        return {}
    found = [QEMU]
    if guests.disk is DiskKind.IMAGE:
        found.append(FIO)
    if guests.replicas > 1:
        found += [QEMU_IMG, QEMU_NBD]
    if guests.pinning is not Pinning.NONE:
        found.append(TASKSET)
    return {name: [name, "--version"] for name in found}


def node_targets(study: Study) -> tuple[Target, ...]:
    """Where images of guests go, on each node that boots any."""
    if study.guests is None:
        return ()
    return tuple(
        Target(node.name, node.name, node_path(study, node) or "", ()) for node in nodes_of(study)
    )


def guest_faults(
    study: Study,
    plan: Plan,
    node_facts: Mapping[str, HostFacts],
    probes: Mapping[str, TargetProbe] | None = None,
    *,
    owner: str | None = None,
) -> list[Fault]:
    """Why the nodes cannot carry the study's guests; nothing when they can, or none are booted.

    `node_facts` and `probes` are by the node's name, the facts with the target at its `node_path`.
    A path held under the name of `owner` is the session's own. Without `probes` nothing is said of
    what only trying tells.
    """
    guests = study.guests
    if guests is None:
        return []
    faults: list[Fault] = []
    for node in nodes_of(study):
        facts = node_facts.get(node.name)
        if facts is None:
            do = "See that it can be reached, or leave it out of the configuration."
            faults.append(Fault(f"Node {shown(node.name)} told nothing of itself.", do))
            continue
        faults += _program_faults(study, node, facts)
        faults += _place_faults(study, node, facts)
        if probes is not None:
            faults += _probe_faults(study, node, probes.get(node.name), owner)
    faults += _memory_faults(study, guests, node_facts)
    faults += _room_faults(study, node_facts)
    return faults + list(_disk_faults(study, guests, plan))


def _program_faults(study: Study, node: HostSpec, facts: HostFacts) -> Iterator[Fault]:
    architecture = facts.kernel.architecture
    if architecture != ARCHITECTURE:
        happened = f"Node {shown(node.name)} is of architecture {shown(architecture)}, the guests "
        yield Fault(f"{happened}are of {ARCHITECTURE}.", "Boot guests on other nodes.")
    for name in guest_tools(study):
        tool = facts.tool(name)
        if tool is None or tool.path is None:
            yield Fault(f"There is no {name} on node {shown(node.name)}.", _INSTALL[name])


def _where(study: Study, node: HostSpec) -> str:
    return f"{shown(node_path(study, node) or '')} on node {shown(node.name)}"


def _place_faults(study: Study, node: HostSpec, facts: HostFacts) -> Iterator[Fault]:
    where, seen = _where(study, node), facts.target
    if seen is None:
        do = "Make the directory, or give another with --path."
        yield Fault(f"There is no directory {where}.", do)
    elif not seen.writable:
        do = "Give the directory to the user who runs iolab, or run it as one who may write."
        yield Fault(f"Nothing may be written to {where}.", do)
    elif seen.in_memory and not study.target.allow_memory and image_bytes(study, 1):
        do = "Give a path on storage; or set target.allow_memory=true, and every result is invalid."
        yield Fault(f"{where} is {seen.fs_type}, which lives in memory.", do)


def _probe_faults(
    study: Study, node: HostSpec, probe: TargetProbe | None, owner: str | None
) -> Iterator[Fault]:
    where = _where(study, node)
    if probe is None:
        return  # A directory that is missing or closed was not tried, and is told of already.
    if probe.held_by is not None and probe.held_by != owner:
        happened = f"{where} is held by another session, {shown(probe.held_by)}."
        yield Fault(happened, "Wait for its end, or give another path.")
    if probe.direct_error is not None and image_bytes(study, 1):
        happened = f"{where} takes no O_DIRECT: {shown(probe.direct_error)}."
        yield Fault(happened, "Give a path on another file system: guests' disks are read past it.")


def _machines(study: Study, facts: Mapping[str, HostFacts]) -> Iterator[tuple[list[str], str]]:
    """Nodes that are one machine, together, and half a sentence that names them."""
    found: dict[str, list[str]] = {}
    for node in nodes_of(study):
        if node.name in facts:
            key = facts[node.name].kernel.boot_id or f"of {node.name}"
            found.setdefault(key, []).append(node.name)
    for names in found.values():
        one = len(names) == 1
        listed = ", ".join(shown(name) for name in names)
        yield names, f"Node {listed} has" if one else f"Nodes {listed} are one machine with"


def _memory_faults(
    study: Study, guests: GuestSettings, facts: Mapping[str, HostFacts]
) -> Iterator[Fault]:
    """The memory of all guests of a machine, those that are idle too: all are up at once."""
    each = guests.memory_bytes + QEMU_BYTES
    wanted = guests_per_node(study)
    for names, says in _machines(study, facts):
        total = facts[names[0]].memory.total_bytes
        fit = int(total * MEMORY_SHARE / each / len(names))
        if wanted <= fit:
            continue
        need = format_bytes(each * wanted * len(names))
        happened = (
            f"{says} {format_bytes(total)} of memory; {wanted} guests on each take {need}, and "
            f"{fit or 'none'} would fit."
        )
        do = f"Set workload.*.vms_per_node to at most {fit}, or a smaller vm.memory."
        yield Fault(happened, do if fit else "Set a smaller vm.memory.")


def _room_faults(study: Study, facts: Mapping[str, HostFacts]) -> Iterator[Fault]:
    """Room for images, on file systems that several nodes of one machine may share."""
    found: dict[tuple[str, str], list[str]] = {}
    for names, _ in _machines(study, facts):
        for name in names:
            seen = facts[name].target
            if seen is not None:
                found.setdefault((names[0], seen.mount_point), []).append(name)
    each = node_bytes(study)
    for names in found.values():
        need = with_spare(each * len(names))
        free = _free(facts[names[0]].target)
        if free >= need:
            continue
        (node,) = (spec for spec in nodes_of(study) if spec.name == names[0])
        others = ", ".join(shown(name) for name in names[1:])
        also = f", which {others} {'shares' if len(names) == 2 else 'share'}," if others else ""
        happened = (
            f"{_where(study, node)}{also} has {format_bytes(free)} free, the disks of guests need "
            f"{format_bytes(need)}."
        )
        do = "Make room, give another path, or set a smaller vm.disk or workload.*.vms_per_node."
        yield Fault(happened, do)


def _disk_faults(study: Study, guests: GuestSettings, plan: Plan) -> Iterator[Fault]:
    """What the jobs of a guest use of its disk: the widest point decides."""
    own = [target for target in targets_of(study) if study.host(target.host).node]
    need = max((region_bytes(plan, target) for target in own), default=0)
    if need > guests.disk_bytes:
        happened = f"Guests' disks have {format_bytes(guests.disk_bytes)}, the jobs of each use "
        do = "Set a larger vm.disk, or a smaller workload.*.filesize or numjobs."
        yield Fault(f"{happened}{format_bytes(need)}.", do)


def _free(seen: TargetFacts | None) -> int:
    return seen.free_bytes if seen is not None else 0
