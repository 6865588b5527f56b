"""Which guests a study has, and which of them make the load of a point."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Annotated, Final

from pydantic import ValidationError

from iolab.core.host import CpuFacts, HostKind, HostSpec, NumaNode, Role
from iolab.core.study import Study
from iolab.guests.guest import (
    GUEST_DISK,
    GUEST_SERIAL,
    Accelerator,
    DiskKind,
    GuestSettings,
    Pinning,
    settings_in,
)
from iolab.study import values
from iolab.study.target_tables import StudyTable
from iolab.units import parse_size


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


RUNS: Final = 256
"""Runs at the same time of a host's agent (`MAX_RUNS` there): each guest's QEMU is one, and each
server of a copy."""

RUNS_KEPT: Final = 16
"""Of them for all else that is run on a node: images are laid out and copied."""

REQUESTS: Final = 1000
"""Requests under way at the same time to one host."""

REQUESTS_KEPT: Final = 50
"""Of them for all else that is asked of a node."""

GUEST_REQUESTS: Final = 5
"""Of each guest at most: its QEMU, the ways to its agent and to its monitor, and what is sent over
each or asked about it."""

COPIES: Final = 4096
"""Copies of images of one session: a port each, so that nodes which share an address share none."""

NAME_BYTES: Final = 64
"""Of a guest's name: its kernel takes no longer one."""


def most_guests(replicas: int) -> int:
    """How many guests a node may have, where each image lies on so many nodes.

    All nodes have as many, and so each serves as many copies of others as there are of its own.
    """
    by_runs = (RUNS - RUNS_KEPT) // replicas
    by_requests = (REQUESTS - REQUESTS_KEPT) // (GUEST_REQUESTS + replicas - 1)
    return min(by_runs, by_requests)


VCPUS_MAX: Final = 255
"""As many as QEMU gives a guest that it emulates: one more would need an x2APIC."""

MEMORY_BYTES_MIN: Final = 128 << 20
"""A kernel, its modules and fio with its buffers need more than half of that."""

MEMORY_BYTES_MAX: Final = 1 << 44
MEMORY_BYTES_MULTIPLE: Final = 1 << 20
"""QEMU takes no smaller part of memory."""

DISK_BYTES_MIN: Final = 16 << 20
"""Fewer bytes would be worked through within a second."""

DISK_BYTES_MAX: Final = 1 << 50
DISK_BYTES_MULTIPLE: Final = 4096
"""What images are read and written in at least, past the page cache."""

LATENCY_S_MIN: Final = 1e-6
LATENCY_S_MAX: Final = 10.0
"""Below, nothing is left of it beside the hypervisor's own time; above, guests report an error."""

IOPS_MAX: Final = 100_000_000
"""No disk comes near."""

REPLICAS_MAX: Final = 16
"""More nodes than any volume is mirrored on."""

BOOT_LIMIT_S_MIN: Final = 5.0
BOOT_LIMIT_S_MAX: Final = 3600.0
BOOTS_MAX: Final = 1000

_SETTINGS: Final = GuestSettings(vcpus=1, memory_bytes=0, disk_bytes=0)
"""For the defaults of what need not be written."""

Vcpus = Annotated[int, values.whole(1, VCPUS_MAX)]
Memory = Annotated[
    int | str, values.size(MEMORY_BYTES_MIN, MEMORY_BYTES_MAX, multiple=MEMORY_BYTES_MULTIPLE)
]
Disk = Annotated[
    int | str, values.size(DISK_BYTES_MIN, DISK_BYTES_MAX, multiple=DISK_BYTES_MULTIPLE)
]


class VmTable(StudyTable):
    """`[vm]`: the guests that a session boots on every hypervisor, all alike."""

    vcpus: Vcpus
    memory: Memory
    disk: Disk
    disk_kind: Annotated[DiskKind, values.choice(DiskKind, "kinds of disk")] = _SETTINGS.disk
    latency: Annotated[float, values.seconds(LATENCY_S_MIN, LATENCY_S_MAX)] | None = None
    iops: Annotated[int, values.whole(1, IOPS_MAX)] | None = None
    replicas: Annotated[int, values.whole(1, REPLICAS_MAX)] = _SETTINGS.replicas
    accel: Annotated[Accelerator, values.choice(Accelerator, "accelerators")] = (
        _SETTINGS.accelerator
    )
    pin: Annotated[Pinning, values.choice(Pinning, "kinds of pinning")] = _SETTINGS.pinning
    boots: Annotated[int, values.whole(1, BOOTS_MAX)] | None = None
    boot_limit: Annotated[float, values.seconds(BOOT_LIMIT_S_MIN, BOOT_LIMIT_S_MAX)] = (
        _SETTINGS.boot_limit_s
    )
    kernel: Annotated[str, values.absolute_path()] | None = None


_LEAST: Final[Mapping[str, object]] = {"vcpus": 1, "memory": "1g", "disk": DISK_BYTES_MAX}


def stand_in(written: object) -> VmTable:
    """What a [vm] that cannot be read counts as, so that its faults bring no others with them."""
    keys = written if isinstance(written, dict) else {}
    good = {key: value for key, value in keys.items() if _is_right(key, value)}
    return VmTable.model_validate({**_LEAST, **good})


def _is_right(key: str, value: object) -> bool:
    try:
        VmTable.model_validate({**_LEAST, key: value})
    except ValidationError:
        return False
    return True


def settings_of(table: VmTable) -> GuestSettings:
    """The settings that the keys say."""
    return GuestSettings(
        vcpus=table.vcpus,
        memory_bytes=parse_size(table.memory),
        disk_bytes=parse_size(table.disk),
        disk=table.disk_kind,
        latency_ns=None if table.latency is None else round(table.latency * 1e9),
        iops_limit=table.iops,
        replicas=table.replicas,
        accelerator=table.accel,
        pinning=table.pin,
        boots_at_once=table.boots or 0,
        boot_limit_s=table.boot_limit,
        kernel=table.kernel or "",
    )


CPU_LIMIT: Final = 8192
"""NR_CPUS of the largest kernels; a list that says more is not one."""


@dataclass(frozen=True, slots=True)
class Pin:
    """The processors of a guest, empty for all; the NUMA node of its memory, None for any."""

    cpus: tuple[int, ...] = ()
    memory_node: int | None = None


def pins(facts: CpuFacts, guests: int, vcpus: int, pinning: Pinning) -> tuple[Pin, ...]:
    """A pin for each guest of a machine, in their order.

    Nodes that are one machine (of one boot id) share its processors: ask once for all their guests.
    With CORES no processor is in two pins, and those of a pin are of one NUMA node where one has as
    many left; a guest for which too few are left may use all. With NUMA the nodes take turns. Where
    the kernel tells of no NUMA node, or of none that makes sense, there is nothing to choose.
    """
    nodes = [(node.id, cpus) for node in facts.numa if (cpus := _processors(node))]
    if pinning is Pinning.NUMA and nodes:
        turns = [Pin(cpus, number) for number, cpus in nodes]
        return tuple(turns[guest % len(turns)] for guest in range(guests))
    if pinning is Pinning.CORES:
        free = [list(cpus) for _, cpus in nodes] or [list(range(facts.threads))]
        return tuple(Pin(_take(free, vcpus)) for _ in range(guests))
    return (Pin(),) * guests


def pins_of(
    facts: CpuFacts, nodes: Iterable[Sequence[str]], vcpus: int, pinning: Pinning
) -> dict[str, Pin]:
    """The pin of each guest by name, on a machine that is one node or several with their guests.

    Every node's first guests come first, as a small fleet is made of them.
    """
    turns = zip_longest(*nodes)
    names = [name for turn in turns for name in turn if name is not None]
    return dict(zip(names, pins(facts, len(names), vcpus, pinning), strict=True))


def unpinned(given: Sequence[Pin]) -> int:
    """How many guests may use all processors."""
    return sum(not pin.cpus for pin in given)


def cpu_numbers(text: str) -> tuple[int, ...]:
    """The processors of a kernel's list (`0-3,8`), ascending. ValueError when it is none."""
    found: set[int] = set()
    for piece in text.strip().split(",") if text.strip() else ():
        first, dash, last = piece.partition("-")
        last = last if dash else first
        if not (_is_number(first) and _is_number(last)):
            raise ValueError(f"{text[:100]!r} is no list of processors")
        found.update(range(int(first), int(last) + 1))
    return tuple(sorted(found))


def _processors(node: NumaNode) -> tuple[int, ...]:
    """Those of a NUMA node; what a host says that is no list counts as none."""
    try:
        return cpu_numbers(node.cpus)
    except ValueError:
        return ()


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= 6 and int(text) < CPU_LIMIT


def _take(free: list[list[int]], count: int) -> tuple[int, ...]:
    """Processors out of those that are free, () where there are too few."""
    for node in free:
        if len(node) >= count:
            taken, node[:] = node[:count], node[count:]
            return tuple(taken)
    if sum(map(len, free)) < count:
        return ()
    found: list[int] = []
    for node in free:
        part = count - len(found)
        found += node[:part]
        node[:] = node[part:]
    return tuple(found)
