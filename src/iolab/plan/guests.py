"""Which guests a study has, and which of them make the load of a point."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from iolab.model.guest import GUEST_DISK, GUEST_SERIAL
from iolab.model.host import HostKind, HostSpec, Role
from iolab.model.study import Study


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


def participants(study: Study, configuration: str, per_node: int) -> tuple[str, ...]:
    """The configuration's hosts that make load with so many guests a node; 0 for all of them.

    They are the first of each node, in the configuration's order.
    """
    (names,) = (item.hosts for item in study.configurations if item.id == configuration)
    if not per_node:
        return names
    taken: dict[str, int] = {}
    found = []
    for name in names:
        node = study.host(name).node
        taken[node] = taken.get(node, 0) + 1
        if taken[node] <= per_node:
            found.append(name)
    return tuple(found)
