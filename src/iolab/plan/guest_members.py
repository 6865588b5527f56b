"""Which hosts a study file with hypervisors measures, before there are guests to name."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from iolab.model.host import Role
from iolab.plan.study_file import ConfigurationTable, HostTable, WorkloadTable
from iolab.plan.tables import Tables


def boots_guests(tables: Tables) -> bool:
    """Whether the session boots guests: those that exist already take their place."""
    return tables.vm is not None and not guest_tables(tables)


def guest_tables(tables: Tables) -> list[HostTable]:
    """The guests that exist already: clients whose node is written."""
    return [host for host in _hosts(tables) if host.role is Role.CLIENT and host.node is not None]


def node_names(tables: Tables) -> list[str]:
    """The hypervisors."""
    return [host.name for host in _hosts(tables) if host.role is Role.HYPERVISOR]


def largest_per_node(tables: Tables) -> int:
    """How many guests a node has at most; 1 where no workload says how many it wants."""
    lists = [load.vms_per_node or [1] for _, load in tables.read("workload", WorkloadTable)]
    return max((most for found in lists for most in found), default=1)


def with_paths(tables: Tables, configuration: ConfigurationTable) -> list[str]:
    """The hosts that need a path in a configuration: clients, or the nodes of guests to boot."""
    if boots_guests(tables):
        return configuration.hosts or node_names(tables)
    every = {host.name: host.node or "" for host in _hosts(tables) if host.role is Role.CLIENT}
    return list(members(configuration.hosts, every))


def fewest_clients(tables: Tables, configuration: ConfigurationTable) -> int:
    """How many clients a configuration's smallest fleet has; all where no workload says how many.

    Of guests that are booted their nodes count.
    """
    names = with_paths(tables, configuration)
    nodes = {host.node for host in _hosts(tables) if host.name in names and host.node}
    lists = [load.vms_per_node for _, load in tables.read("workload", WorkloadTable)]
    fleets = [min(found) * len(nodes) for found in lists if found and nodes]
    counts = [min(load.hosts) for _, load in tables.read("workload", WorkloadTable) if load.hosts]
    return min([len(names), *fleets, *counts])


def members(written: Iterable[str] | None, clients: Mapping[str, str]) -> tuple[str, ...]:
    """The clients of a configuration that names hosts or their nodes, or None for all.

    `clients` are the node of each, "" where it has none.
    """
    if written is None:
        return tuple(clients)
    found: dict[str, None] = {}
    for name in written:
        here = [client for client, node in clients.items() if node == name]
        found |= dict.fromkeys(here if name not in clients and here else [name])
    return tuple(found)


def _hosts(tables: Tables) -> list[HostTable]:
    return [host for _, host in tables.read("host", HostTable)]
