"""The guests that a study boots, as hosts, and where a growing fleet must be measured."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from iolab.model.guest import GuestSettings
from iolab.model.host import HostSpec, Role, Room
from iolab.plan.guest_members import boots_guests, largest_per_node
from iolab.plan.guest_tables import settings_of
from iolab.plan.guests import guests_of
from iolab.plan.study_file import ConfigurationTable
from iolab.plan.tables import Tables


def guest_settings(tables: Tables) -> GuestSettings | None:
    """The guests that the session boots; None where it boots none."""
    return settings_of(tables.vm) if tables.vm is not None and boots_guests(tables) else None


def guest_hosts(tables: Tables, hosts: Iterable[HostSpec]) -> tuple[HostSpec, ...]:
    """The guests on the hypervisors that some configuration measures; none where none are booted.

    They are as many on each as the largest point wants.
    """
    if not boots_guests(tables):
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
