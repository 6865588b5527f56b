"""Which guests a study has, and which of them make the load of a point."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from iolab.model.guest import GUEST_DISK, GUEST_SERIAL
from iolab.model.host import HostKind, HostSpec, Role
from iolab.model.run import Point
from iolab.model.study import Study


def boots_guests(study: Study) -> bool:
    """Whether the session boots guests, rather than use what is there."""
    return study.guests is not None


def nodes_of(study: Study) -> tuple[HostSpec, ...]:
    """The hypervisors on which guests of the study live, in the order of their first guest."""
    names = (study.host(name).node for item in study.configurations for name in item.hosts)
    return tuple(study.host(name) for name in dict.fromkeys(names) if name)


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


def makers_of(study: Study, point: Point) -> tuple[str, ...]:
    """The hosts that make the load of a point."""
    return participants(study, point.configuration, point.per_node, point.host_count)


def participants(
    study: Study, configuration: str, per_node: int, host_count: int = 0
) -> tuple[str, ...]:
    """The configuration's hosts that make load where so many do; 0 for all of them.

    They are the first in the configuration's order; of guests, `per_node` the first of each node.
    """
    (names,) = (item.hosts for item in study.configurations if item.id == configuration)
    if host_count:
        return names[:host_count]
    if not per_node:
        return names
    nodes = {spec.name: spec.node for spec in study.hosts}
    taken: dict[str, int] = {}
    found = []
    for name in names:
        node = nodes[name]
        taken[node] = taken.get(node, 0) + 1
        if taken[node] <= per_node:
            found.append(name)
    return tuple(found)
