"""Which processors of a node each guest is pinned to."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Final

from iolab.core.host import CpuFacts, NumaNode
from iolab.guests.guest import (
    Pinning,
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
