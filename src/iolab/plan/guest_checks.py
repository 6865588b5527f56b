"""Checks of guests over several keys: their nodes, their disks, and what goes with neither."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Final

from iolab.model.guest import DiskKind
from iolab.model.host import Role
from iolab.model.state import Purge
from iolab.plan.document import Document, Faults
from iolab.plan.guest_limits import COPIES, NAME_BYTES, most_guests
from iolab.plan.guest_members import (
    boots_guests,
    guest_tables,
    largest_per_node,
    members,
    node_names,
)
from iolab.plan.guest_tables import PER_NODE, VmTable
from iolab.plan.guests import guests_of
from iolab.plan.locate import Path
from iolab.plan.ranges import HOSTS_MAX
from iolab.plan.study_file import ROOM_KEYS, ConfigurationTable, HostTable, WorkloadTable
from iolab.plan.tables import Item, Tables, start
from iolab.plan.target_tables import XFS, Table
from iolab.plan.wording import shown, suggestion
from iolab.units import format_bytes, parse_size

NODE_DO: Final = "Write role = 'hypervisor' and a name for each machine that guests live on."
"""What a study with guests needs."""


def check_guests(document: Document, tables: Tables, faults: Faults) -> None:
    """Add every fault of `[vm]`, of guests and their nodes, and of the axis of a growing fleet."""
    if tables.vm is not None:
        _check_vm(document, tables.vm, faults)
        _check_own_clients(document, tables, faults)
    if tables.vm is not None and boots_guests(tables):
        _check_booted(document, tables, tables.vm, faults)
    _check_axis(document, tables, faults)


def check_nodes(document: Document, items: tuple[Item, ...], faults: Faults) -> None:
    """Add the faults of hosts among themselves: guests of no node, keys for nodes elsewhere."""
    hosts = [(item, item.table) for item in items if isinstance(item.table, HostTable)]
    roles = {host.name: host.role for _, host in hosts}
    nodes = [name for name, role in roles.items() if role is Role.HYPERVISOR]
    for item, host in hosts:
        for key, happened, do in _host_faults(host, roles, nodes):
            origin = document.where((*item.path, key))
            faults.add_once(origin, key, f"{start(document, item.path)} {happened}.", do)


def _host_faults(
    host: HostTable, roles: dict[str, Role], nodes: list[str]
) -> Iterator[tuple[str, str, str]]:
    """Each fault's key, what happened after the host's name, and what to do."""
    role = shown(host.role.value)
    if host.role is Role.HYPERVISOR:
        if host.device is not None:
            do = "Give a directory as its path: guests' disks are files there."
            yield "device", "is a hypervisor and has a device", do
    else:
        for key in ROOM_KEYS:
            if getattr(host, key) is not None:
                happened = f"has {key}, but the role {role}"
                yield key, happened, f"Leave {key} out, or write role = 'hypervisor'."
    if host.node is None:
        return
    if host.role is not Role.CLIENT:
        happened = f"has node = {shown(host.node)}, but the role {role}"
        yield "node", happened, "Leave node out: it says where a guest that makes load lives."
    elif host.node not in roles:
        do = suggestion(host.node, nodes, "hypervisors") if nodes else NODE_DO
        yield "node", f"has node = {shown(host.node)}, which is no host", do
    elif roles[host.node] is not Role.HYPERVISOR:
        happened = f"has node = {shown(host.node)}, which has the role "
        happened += shown(roles[host.node].value)
        yield "node", happened, "Name a hypervisor, or write role = 'hypervisor' for that host."


def _check_vm(document: Document, table: VmTable, faults: Faults) -> None:
    """Keys of the table that do not go together."""
    modelled = table.disk_kind is DiskKind.MODELLED
    if modelled and table.latency is None:
        happened = "[vm] has disk_kind = 'modelled' but no latency."
        do = "Write what an I/O takes there, as latency = '10ms'."
        faults.add(document.where(("vm", "disk_kind")), happened, do)
    if table.latency is not None and not modelled:
        happened = f"[vm] has a latency, but disk_kind = {shown(table.disk_kind.value)}."
        do = "Write disk_kind = 'modelled', or leave latency out: it is what would be measured."
        faults.add(document.where(("vm", "latency")), happened, do)
    if table.replicas > 1 and modelled:
        happened = f"[vm] has replicas = {table.replicas}, but a modelled disk holds nothing."
        faults.add(document.where(("vm", "replicas")), happened, "Leave replicas out.")


def _check_own_clients(document: Document, tables: Tables, faults: Faults) -> None:
    """Guests that exist already take the place of those of `[vm]`; other clients do not."""
    for item, host in tables.read("host", HostTable):
        written = item.written.get("role", Role.CLIENT)
        if written != Role.CLIENT or host.node is not None:
            continue  # A role that is misspelt is read as a client's, and told of by itself.
        happened = f"{start(document, item.path)} is a client beside the guests of [vm]."
        do = (
            "Write role = 'hypervisor' to boot guests there, or node = 'NAME' if it is a guest "
            "that exists already."
        )
        faults.add(document.where(item.path), happened, do)


def _check_booted(document: Document, tables: Tables, vm: VmTable, faults: Faults) -> None:
    """What guests that are booted need, and what they cannot do."""
    nodes, per_node = node_names(tables), largest_per_node(tables)
    hosts = [host.written for host in tables.items["host"]]
    if not any(host.get("role") == Role.HYPERVISOR for host in hosts):
        happened = "[vm] boots guests, but there is no hypervisor among the hosts."
        faults.add(document.where(("vm",)), happened, NODE_DO)
    total = per_node * len(nodes)
    if total > HOSTS_MAX:
        happened = f"{per_node} guests on each of {len(nodes)} nodes are {total}."
        faults.add(document.where(("vm",)), happened, f"Keep them at most {HOSTS_MAX} in all.")
    _check_carried(document, tables, vm, faults)
    _check_replicas(document, tables, vm, faults)
    _check_shared_nodes(document, tables, faults)
    for path, happened, do in _impossible(document, tables):
        faults.add(document.where(path), happened, do)
    for item, workload in tables.read("workload", WorkloadTable):
        size = max(parse_size(text) for text in workload.filesize)
        jobs = max(workload.numjobs)
        need = size * jobs * workload.files
        if need > parse_size(vm.disk):
            happened = f"{start(document, item.path)} uses {format_bytes(need)} of each guest's "
            happened += f"disk, which has {format_bytes(parse_size(vm.disk))}."
            do = "Set a smaller filesize or numjobs, or a larger disk under [vm]."
            origin = document.where((*item.path, "filesize"))
            faults.add_once(origin, "filesize disk", happened, do)


def _check_carried(document: Document, tables: Tables, vm: VmTable, faults: Faults) -> None:
    """What the agent of a node carries: so many programs and requests, and names so long."""
    nodes, per_node, most = node_names(tables), largest_per_node(tables), most_guests(vm.replicas)
    for item, workload in tables.read("workload", WorkloadTable):
        if workload.vms_per_node and max(workload.vms_per_node) > most:
            with_copies = f" with replicas = {vm.replicas}" if vm.replicas > 1 else ""
            happened = f"{start(document, item.path)} has {max(workload.vms_per_node)} guests on "
            happened += "each node, more than one agent carries"
            origin = document.where((*item.path, PER_NODE))
            faults.add(origin, f"{happened}{with_copies}.", f"Give at most {most}.")
    copies = len(nodes) * per_node * (vm.replicas - 1)
    if copies > COPIES:
        happened = f"[vm] has replicas = {vm.replicas}, which are {copies} copies of "
        happened += f"{len(nodes) * per_node} guests' disks."
        do = f"Keep them at most {COPIES}, with fewer replicas or guests."
        faults.add(document.where(("vm", "replicas")), happened, do)
    long = [name for name in nodes if len(next(guests_of([name], per_node)).name) > NAME_BYTES]
    for item, host in tables.read("host", HostTable):
        if host.name in long:
            happened = f"{start(document, item.path)} has guests whose names are longer than "
            do = "Give that hypervisor a shorter name."
            faults.add(document.where(item.path), f"{happened}{NAME_BYTES} characters.", do)


def _check_replicas(document: Document, tables: Tables, vm: VmTable, faults: Faults) -> None:
    """A volume on several nodes needs so many, and a way from each to each."""
    if vm.replicas == 1:
        return
    every = node_names(tables)
    for _, configuration in tables.read("configuration", ConfigurationTable):
        nodes = configuration.hosts or every
        if 0 < len(nodes) < vm.replicas:
            there = "is 1 node" if len(nodes) == 1 else f"are {len(nodes)} nodes"
            happened = f"[vm] has replicas = {vm.replicas}, but there {there}."
            do = f"Give at most {len(nodes)}: each replica lies on a node of its own."
            faults.add(document.where(("vm", "replicas")), happened, do)
    for item, host in tables.read("host", HostTable):
        if host.role is Role.HYPERVISOR and "storage_address" not in item.written:
            happened = f"{start(document, item.path)} has no storage_address, but [vm] has "
            do = "Give the IP address at which the other nodes reach its disks."
            faults.add(document.where(item.path), f"{happened}replicas = {vm.replicas}.", do)


def _check_shared_nodes(document: Document, tables: Tables, faults: Faults) -> None:
    """A guest has one disk: configurations that share its node cannot each have their own."""
    own = {host.name for _, host in tables.read("host", HostTable) if host.path}
    first: dict[str, tuple[str, str | None]] = {}
    for item, configuration in tables.read("configuration", ConfigurationTable):
        for name in configuration.hosts or node_names(tables):
            before, path = first.setdefault(name, (configuration.id, configuration.path))
            if path == configuration.path or name in own:
                continue
            happened = f"{start(document, item.path)} and {shown(before)} keep the guests' disks "
            happened += f"of {shown(name)} at two paths."
            do = "Give both the same path, or each nodes of its own."
            faults.add_once(document.where(item.path), "path", happened, do)


def _impossible(document: Document, tables: Tables) -> Iterator[tuple[Path, str, str]]:
    """What is done on file systems, or to devices of one's own."""
    target = tables.target
    for key in ("rotate", "keep_files"):
        if getattr(target, key):
            happened = f"{key} of [target] does not go with [vm]: guests' disks are made for the "
            yield ("target", key), f"{happened}session.", f"Leave {key} out."
    if target.filesystem == XFS:
        happened = f"filesystem of [target] is '{XFS}', but the guests of [vm] have bare disks."
        yield ("target", "filesystem"), happened, "Leave filesystem out."
    devices: list[tuple[Path, str]] = [(("target",), "[target]")] if target.device else []
    for item, configuration in tables.read("configuration", ConfigurationTable):
        devices += [(item.path, start(document, item.path))] if configuration.device else []
    for path, where in devices:
        happened = f"{where} has a device, but nodes keep the disks of [vm] in a directory."
        yield (*path, "device"), happened, "Give a directory as the path."
    if tables.precondition.purge is not Purge.NONE:
        happened = "purge of [precondition] does not go with [vm]: guests' disks are made anew."
        yield ("precondition", "purge"), happened, "Leave purge out."
    for item, table in tables.read("workload", Table):
        if not isinstance(table, WorkloadTable):
            happened = f"{start(document, item.path)} needs files, but the guests of [vm] have "
            do = "Leave it out, or measure it on guests that exist already."
            yield item.path, f"{happened}bare disks.", do


def _check_axis(document: Document, tables: Tables, faults: Faults) -> None:
    """The axis needs guests: those that are booted, or enough of those that exist."""
    if boots_guests(tables):
        return
    guests = guest_tables(tables)
    clients = {
        host.name: host.node or ""
        for _, host in tables.read("host", HostTable)
        if host.role is Role.CLIENT
    }
    for item, workload in tables.read("workload", WorkloadTable):
        origin = document.where((*item.path, PER_NODE))
        if workload.vms_per_node is None:
            continue
        if not guests:
            happened = f"{start(document, item.path)} has {PER_NODE}, but the study has no guests."
            do = "Describe them under [vm], or give each guest of the inventory its node."
            faults.add_once(origin, PER_NODE, happened, do)
            continue
        most = max(workload.vms_per_node)
        for _, configuration in tables.read("configuration", ConfigurationTable):
            _check_enough(document, item, most, members(configuration.hosts, clients), faults)


def _check_enough(
    document: Document, item: Item, most: int, names: tuple[str, ...], faults: Faults
) -> None:
    """Every node of these clients has so many guests."""
    tables = {host["name"]: host for host in document.tree["host"] if _is_named(host)}
    nodes = Counter(str(tables[name].get("node", "")) for name in names if name in tables)
    origin = document.where((*item.path, PER_NODE))
    around = f"{start(document, item.path)} has {PER_NODE} = {most}"
    for node, count in nodes.items():
        if not node:
            happened = f"{around}, but some of its clients are guests of no node."
            do = "Give each client its node, or leave those out that are no guests."
            faults.add_once(origin, f"{PER_NODE} node", happened, do)
        elif count < most:
            guests = "1 guest" if count == 1 else f"{count} guests"
            happened = f"{around}, but node {shown(node)} has {guests}."
            do = f"Give at most {min(nodes.values())}, or add guests."
            faults.add_once(origin, f"{PER_NODE} {node}", happened, do)


def _is_named(host: object) -> bool:
    return isinstance(host, dict) and isinstance(host.get("name"), str)
