"""Checks of guests over several keys: their nodes, their disks, and what goes with neither."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Final

from iolab.core.host import HostFacts, HostRole, HostSpec, TargetFacts, TargetProbe
from iolab.core.run import Plan
from iolab.core.study import Study
from iolab.core.target_state import PurgeMethod
from iolab.core.workload import VMS_PER_NODE_AXIS
from iolab.errors import MAKE_ROOM, Fault, HostError
from iolab.guests.guest import (
    GuestDiskKind,
    GuestSettings,
    Pinning,
    booted_guest_settings,
    guest_space_bytes_per_node,
    image_bytes_per_node,
    max_booted_guests_per_node,
)
from iolab.guests.hosts import (
    guest_specs,
    hypervisors_grouped_by_machine,
    image_directory,
    max_guests_per_node,
)
from iolab.guests.vm_table import COPIES, NAME_BYTES, VmTable, max_guests_per_agent
from iolab.study.checks import NODE_HINT
from iolab.study.cost import with_free_space_margin
from iolab.study.document import KeyPath, StudyDocument
from iolab.study.file import XFS, ConfigurationTable, HostTable
from iolab.study.host_ranges import HOSTS_MAX
from iolab.study.load_tables import LoadTable, SearchTable
from iolab.study.readiness import (
    MAKE_WRITABLE,
    NOTHING_WRITTEN,
    refusal_headline,
    unusable_target_fault,
)
from iolab.study.tables import (
    StudyTables,
    TableItem,
    existing_guest_tables,
    expand_nodes_to_clients,
    hypervisor_names,
    table_name_capitalised,
)
from iolab.study.targets import Target, hypervisors_of_study, targets_of_study, used_device_bytes
from iolab.text import counted_noun, quote_value
from iolab.units import format_bytes, parse_size

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


def add_guest_faults(document: StudyDocument, tables: StudyTables) -> None:
    """Add every fault of `[vm]`, of guests and their nodes, and of the axis of a growing fleet."""
    vm = tables.find_single_table(VmTable)
    if vm is not None:
        _add_vm_key_conflict_faults(document, vm)
        _add_existing_client_faults(document, tables)
    if vm is not None and tables.makes_hosts:
        _add_booted_guest_faults(document, tables, vm)
    _add_guest_axis_faults(document, tables)


def _add_vm_key_conflict_faults(document: StudyDocument, table: VmTable) -> None:
    """Keys of the table that do not go together."""
    modelled = table.disk_kind is GuestDiskKind.MODELLED
    if modelled and table.latency is None:
        message = "[vm] has disk_kind = 'modelled' but no latency."
        hint = "Write what an I/O takes there, as latency = '10ms'."
        document.add_fault(("vm", "disk_kind"), message, hint)
    if table.latency is not None and not modelled:
        message = f"[vm] has a latency, but disk_kind = {quote_value(table.disk_kind.value)}."
        hint = "Write disk_kind = 'modelled', or leave latency out: it is what would be measured."
        document.add_fault(("vm", "latency"), message, hint)
    if table.replicas > 1 and modelled:
        message = f"[vm] has replicas = {table.replicas}, but a modelled disk holds nothing."
        document.add_fault(("vm", "replicas"), message, "Leave replicas out.")


def _add_existing_client_faults(document: StudyDocument, tables: StudyTables) -> None:
    """Guests that exist already take the place of those of `[vm]`; other clients do not."""
    for item, host in tables.items_of_table("host", HostTable):
        written = item.values_as_written.get("role", HostRole.CLIENT)
        if written != HostRole.CLIENT or host.node is not None:
            continue  # A role that is misspelt is read as a client's, and told of by itself.
        name = table_name_capitalised(document, item.key_path)
        message = f"{name} is a client beside the guests of [vm]."
        hint = (
            "Write role = 'hypervisor' to boot guests there, or node = 'NAME' if it is a guest "
            "that exists already."
        )
        document.add_fault(item.key_path, message, hint)


def _add_booted_guest_faults(document: StudyDocument, tables: StudyTables, vm: VmTable) -> None:
    """What guests that are booted need, and what they cannot do."""
    nodes, per_node = hypervisor_names(tables), max_guests_per_node(tables)
    hosts = [host.values_as_written for host in tables.items_by_section["host"]]
    if not any(host.get("role") == HostRole.HYPERVISOR for host in hosts):
        message = "[vm] boots guests, but there is no hypervisor among the hosts."
        document.add_fault(("vm",), message, NODE_HINT)
    total = per_node * len(nodes)
    if total > HOSTS_MAX:
        message = f"{per_node} guests on each of {len(nodes)} nodes are {total}."
        document.add_fault(("vm",), message, f"Keep them at most {HOSTS_MAX} in all.")
    _add_node_limit_faults(document, tables, vm)
    _add_replica_faults(document, tables, vm)
    _add_conflicting_disk_path_faults(document, tables)
    _add_unsupported_setting_faults(document, tables)
    for item, workload in tables.items_of_table("workload", LoadTable):
        axes = workload.sweep_axes(item.values_as_written)
        most = workload.build_job().with_axis_values(
            (axis.name, max(axis.values, key=parse_size)) for axis in axes
        )
        files = most.data_set("")
        need = files.bytes_per_job * files.numjobs if files else 0
        if need > parse_size(vm.disk):
            message = (
                f"{table_name_capitalised(document, item.key_path)} uses {format_bytes(need)} "
                "of each guest's "
            )
            message += f"disk, which has {format_bytes(parse_size(vm.disk))}."
            hint = "Set a smaller filesize or numjobs, or a larger disk under [vm]."
            document.add_fault((*item.key_path, "filesize"), message, hint, about="filesize disk")


def _add_node_limit_faults(document: StudyDocument, tables: StudyTables, vm: VmTable) -> None:
    """What the agent of a node carries: so many programs and requests, and names so long."""
    nodes, per_node, most = (
        hypervisor_names(tables),
        max_guests_per_node(tables),
        max_guests_per_agent(vm.replicas),
    )
    for item, workload in tables.items_of_table("workload", SearchTable):
        if workload.vms_per_node and max(workload.vms_per_node) > most:
            with_copies = f" with replicas = {vm.replicas}" if vm.replicas > 1 else ""
            message = (
                f"{table_name_capitalised(document, item.key_path)} has "
                f"{max(workload.vms_per_node)} guests on "
            )
            message += "each node, more than one agent carries"
            path = (*item.key_path, VMS_PER_NODE_AXIS)
            document.add_fault(path, f"{message}{with_copies}.", f"Give at most {most}.")
    copies = len(nodes) * per_node * (vm.replicas - 1)
    if copies > COPIES:
        message = f"[vm] has replicas = {vm.replicas}, which are {copies} copies of "
        message += f"{len(nodes) * per_node} guests' disks."
        hint = f"Keep them at most {COPIES}, with fewer replicas or guests."
        document.add_fault(("vm", "replicas"), message, hint)
    long = [name for name in nodes if len(next(guest_specs([name], per_node)).name) > NAME_BYTES]
    for item, host in tables.items_of_table("host", HostTable):
        if host.name in long:
            message = (
                f"{table_name_capitalised(document, item.key_path)} has guests whose names "
                "are longer than "
            )
            hint = "Give that hypervisor a shorter name."
            document.add_fault(item.key_path, f"{message}{NAME_BYTES} characters.", hint)


def _add_replica_faults(document: StudyDocument, tables: StudyTables, vm: VmTable) -> None:
    """A volume on several nodes needs so many, and a way from each to each."""
    if vm.replicas == 1:
        return
    every = hypervisor_names(tables)
    for _, configuration in tables.items_of_table("configuration", ConfigurationTable):
        nodes = configuration.hosts or every
        if 0 < len(nodes) < vm.replicas:
            there = "is 1 node" if len(nodes) == 1 else f"are {len(nodes)} nodes"
            message = f"[vm] has replicas = {vm.replicas}, but there {there}."
            hint = f"Give at most {len(nodes)}: each replica lies on a node of its own."
            document.add_fault(("vm", "replicas"), message, hint)
    for item, host in tables.items_of_table("host", HostTable):
        if host.role is HostRole.HYPERVISOR and "storage_address" not in item.values_as_written:
            message = (
                f"{table_name_capitalised(document, item.key_path)} has no storage_address, "
                "but [vm] has "
            )
            hint = "Give the IP address at which the other nodes reach its disks."
            document.add_fault(item.key_path, f"{message}replicas = {vm.replicas}.", hint)


def _add_conflicting_disk_path_faults(document: StudyDocument, tables: StudyTables) -> None:
    """A guest has one disk: configurations that share its node cannot each have their own."""
    own = {host.name for _, host in tables.items_of_table("host", HostTable) if host.path}
    first: dict[str, tuple[str, str | None]] = {}
    for item, configuration in tables.items_of_table("configuration", ConfigurationTable):
        for name in configuration.hosts or hypervisor_names(tables):
            before, path = first.setdefault(name, (configuration.id, configuration.path))
            if path == configuration.path or name in own:
                continue
            message = (
                f"{table_name_capitalised(document, item.key_path)} and {quote_value(before)} "
                "keep the guests' disks "
            )
            message += f"of {quote_value(name)} at two paths."
            hint = "Give both the same path, or each nodes of its own."
            document.add_fault(item.key_path, message, hint, about="path")


def _add_unsupported_setting_faults(document: StudyDocument, tables: StudyTables) -> None:
    """What is done on file systems, or to devices of one's own."""
    target = tables.target
    for key in ("rotate", "keep_files"):
        if getattr(target, key):
            message = f"{key} of [target] does not go with [vm]: guests' disks are made for the "
            document.add_fault(("target", key), f"{message}session.", f"Leave {key} out.")
    if target.filesystem == XFS:
        message = f"filesystem of [target] is '{XFS}', but the guests of [vm] have bare disks."
        document.add_fault(("target", "filesystem"), message, "Leave filesystem out.")
    devices: list[tuple[KeyPath, str]] = [(("target",), "[target]")] if target.device else []
    for item, configuration in tables.items_of_table("configuration", ConfigurationTable):
        devices += (
            [(item.key_path, table_name_capitalised(document, item.key_path))]
            if configuration.device
            else []
        )
    for path, where in devices:
        message = f"{where} has a device, but nodes keep the disks of [vm] in a directory."
        document.add_fault((*path, "device"), message, "Give a directory as the path.")
    if tables.precondition.purge is not PurgeMethod.NONE:
        message = "purge of [precondition] does not go with [vm]: guests' disks are always new."
        document.add_fault(("precondition", "purge"), message, "Leave purge out.")
    for item, table in tables.items_of_table("workload", LoadTable):
        if table.build_job().data_set("") is None:
            message = (
                f"{table_name_capitalised(document, item.key_path)} needs files, but the "
                "guests of [vm] have "
            )
            hint = "Leave it out, or measure it on guests that exist already."
            document.add_fault(item.key_path, f"{message}bare disks.", hint)


def _add_guest_axis_faults(document: StudyDocument, tables: StudyTables) -> None:
    """The axis needs guests: those that are booted, or enough of those that exist."""
    if tables.makes_hosts:
        return
    guests = existing_guest_tables(tables)
    clients = {
        host.name: host.node or ""
        for _, host in tables.items_of_table("host", HostTable)
        if host.role is HostRole.CLIENT
    }
    for item, workload in tables.items_of_table("workload", SearchTable):
        path = (*item.key_path, VMS_PER_NODE_AXIS)
        if workload.vms_per_node is None:
            continue
        if not guests:
            message = (
                f"{table_name_capitalised(document, item.key_path)} has {VMS_PER_NODE_AXIS}, "
                "but the "
                "study has no guests."
            )
            hint = "Describe them under [vm], or give each guest of the inventory its node."
            document.add_fault(path, message, hint, about=VMS_PER_NODE_AXIS)
            continue
        most = max(workload.vms_per_node)
        for _, configuration in tables.items_of_table("configuration", ConfigurationTable):
            _add_guest_count_faults(
                document, item, most, expand_nodes_to_clients(configuration.hosts, clients)
            )


def _add_guest_count_faults(
    document: StudyDocument, table_item: TableItem, max_guests: int, client_names: tuple[str, ...]
) -> None:
    """Every node of these clients has so many guests."""
    tables = {
        host["name"]: host for host in document.tree["host"] if _is_host_table_with_name(host)
    }
    nodes = Counter(str(tables[name].get("node", "")) for name in client_names if name in tables)
    path = (*table_item.key_path, VMS_PER_NODE_AXIS)
    name = table_name_capitalised(document, table_item.key_path)
    around = f"{name} has {VMS_PER_NODE_AXIS} = {max_guests}"
    for node, count in nodes.items():
        if not node:
            message = f"{around}, but some of its clients are guests of no node."
            hint = "Give each client its node, or leave those out that are no guests."
            document.add_fault(path, message, hint, about=f"{VMS_PER_NODE_AXIS} node")
        elif count < max_guests:
            guests = counted_noun(count, "guest")
            message = f"{around}, but node {quote_value(node)} has {guests}."
            hint = f"Give at most {min(nodes.values())}, or add guests."
            document.add_fault(path, message, hint, about=f"{VMS_PER_NODE_AXIS} {node}")


def _is_host_table_with_name(host: object) -> bool:
    return isinstance(host, dict) and isinstance(host.get("name"), str)


def version_arguments_by_node_program(study: Study) -> dict[str, list[str]]:
    """What guests need on their nodes: each program with what asks for its version."""
    guests = booted_guest_settings(study)
    if guests is None:
        return {}
    programs = [QEMU]
    if guests.disk is GuestDiskKind.IMAGE:
        programs.append(FIO)
    if guests.replicas > 1:
        programs += [QEMU_IMG, QEMU_NBD]
    if guests.pinning is not Pinning.NONE:
        programs.append(TASKSET)
    return {name: [name, "--version"] for name in programs}


def node_targets(study: Study) -> tuple[Target, ...]:
    """Where images of guests go, on each node that boots any."""
    if booted_guest_settings(study) is None:
        return ()
    return tuple(
        Target(node.name, node.name, image_directory(study, node) or "", ())
        for node in hypervisors_of_study(study)
    )


def hypervisor_readiness_faults(
    study: Study,
    plan: Plan,
    facts_by_hypervisor: Mapping[str, HostFacts],
    probes: Mapping[str, TargetProbe] | None = None,
    *,
    owner: str | None = None,
) -> list[Fault]:
    """Why the nodes cannot carry the study's guests; nothing when they can, or none are booted.

    `facts_by_hypervisor` and `probes` are by the node's name, the facts with the target at its
    `image_directory`. A path held under the name of `owner` is the session's own. Without `probes`
    nothing is said of what only trying tells.
    """
    guests = booted_guest_settings(study)
    if guests is None:
        return []
    faults: list[Fault] = []
    for node in hypervisors_of_study(study):
        facts = facts_by_hypervisor.get(node.name)
        if facts is None:
            hint = "See that it can be reached, or leave it out of the configuration."
            faults.append(Fault(f"Node {quote_value(node.name)} told nothing of itself.", hint))
            continue
        faults += _architecture_and_program_faults(study, node, facts)
        faults += _image_directory_faults(study, node, facts)
        if probes is not None:
            faults += _node_probe_faults(study, node, probes.get(node.name), owner)
    faults += _guest_memory_faults(study, guests, facts_by_hypervisor)
    faults += _image_space_faults(study, facts_by_hypervisor)
    return faults + list(_guest_disk_size_faults(study, guests, plan))


def require_capable_nodes(
    study: Study,
    plan: Plan,
    facts_by_host: Mapping[str, HostFacts],
    probes: Mapping[str, TargetProbe] | None = None,
    *,
    owner: str | None = None,
) -> None:
    """Nothing when the hypervisors can carry the study's guests, before any is booted.

    Mappings are by the node's name; else as `hypervisor_readiness_faults`. HostError with every
    reason why not.
    """
    faults = tuple(hypervisor_readiness_faults(study, plan, facts_by_host, probes, owner=owner))
    if faults:
        raise HostError(refusal_headline(faults), NOTHING_WRITTEN, faults)


def _architecture_and_program_faults(
    study: Study, node: HostSpec, facts: HostFacts
) -> Iterator[Fault]:
    architecture = facts.kernel.architecture
    if architecture != ARCHITECTURE:
        message = (
            f"Node {quote_value(node.name)} is of architecture "
            f"{quote_value(architecture)}, the guests "
        )
        yield Fault(f"{message}are of {ARCHITECTURE}.", "Boot guests on other nodes.")
    for name in version_arguments_by_node_program(study):
        tool = facts.tool_facts(name)
        if tool is None or tool.path is None:
            yield Fault(f"There is no {name} on node {quote_value(node.name)}.", _INSTALL[name])


def _image_directory_on_node_text(study: Study, node: HostSpec) -> str:
    return f"{quote_value(image_directory(study, node) or '')} on node {quote_value(node.name)}"


def _image_directory_faults(study: Study, node: HostSpec, facts: HostFacts) -> Iterator[Fault]:
    where, target = _image_directory_on_node_text(study, node), facts.target
    if target is None:
        yield unusable_target_fault(facts, where)
    elif not target.writable:
        yield Fault(f"Nothing may be written to {where}.", MAKE_WRITABLE)
    elif target.in_memory and not study.target.allow_memory and image_bytes_per_node(study, 1):
        hint = (
            "Give a path on storage; or set target.allow_memory=true, and every result is invalid."
        )
        yield Fault(f"{where} is {target.layers_or_fs_type_text}, which lives in memory.", hint)


def _node_probe_faults(
    study: Study, node: HostSpec, probe: TargetProbe | None, owner_text: str | None
) -> Iterator[Fault]:
    where = _image_directory_on_node_text(study, node)
    if probe is None:
        return  # A directory that is missing or closed was not tried, and is told of already.
    if probe.held_by is not None and probe.held_by != owner_text:
        message = f"{where} is held by another session, {quote_value(probe.held_by)}."
        yield Fault(message, "Wait for its end, or give another path.")
    if probe.direct_error is not None and image_bytes_per_node(study, 1):
        message = f"{where} takes no O_DIRECT: {quote_value(probe.direct_error)}."
        yield Fault(message, "Give a path on another file system: guests' disks are read past it.")


def _node_names_and_text_by_machine(
    study: Study, facts_by_host: Mapping[str, HostFacts]
) -> Iterator[tuple[list[str], str]]:
    """Nodes that are one machine, together, and half a sentence that names them."""
    for nodes in hypervisors_grouped_by_machine(study, facts_by_host):
        names = [node.name for node in nodes]
        alone = len(names) == 1
        listed = ", ".join(quote_value(name) for name in names)
        yield names, f"Node {listed} has" if alone else f"Nodes {listed} are one machine with"


def _guest_memory_faults(
    study: Study, guests: GuestSettings, facts_by_host: Mapping[str, HostFacts]
) -> Iterator[Fault]:
    """The memory of all guests of a machine, those that are idle too: all are up at once."""
    each = guests.memory_bytes + QEMU_BYTES
    wanted = max_booted_guests_per_node(study)
    for names, machine in _node_names_and_text_by_machine(study, facts_by_host):
        total = facts_by_host[names[0]].memory.total_bytes
        fit = int(total * MEMORY_SHARE / each / len(names))
        if wanted <= fit:
            continue
        need = format_bytes(each * wanted * len(names))
        message = (
            f"{machine} {format_bytes(total)} of memory; {wanted} guests on each take {need}, and "
            f"{fit or 'none'} would fit."
        )
        hint = f"Set workload.*.vms_per_node to at most {fit}, or a smaller vm.memory."
        yield Fault(message, hint if fit else "Set a smaller vm.memory.")


def _image_space_faults(study: Study, facts_by_host: Mapping[str, HostFacts]) -> Iterator[Fault]:
    """Room for images, on file systems that several nodes of one machine may share."""
    by_file_system: dict[tuple[str, str], list[str]] = {}
    for names, _ in _node_names_and_text_by_machine(study, facts_by_host):
        for name in names:
            target = facts_by_host[name].target
            if target is not None:
                by_file_system.setdefault((names[0], target.mount_point), []).append(name)
    each = guest_space_bytes_per_node(study)
    for names in by_file_system.values():
        need = with_free_space_margin(each * len(names))
        free = _free_bytes_or_zero(facts_by_host[names[0]].target)
        if free >= need:
            continue
        (node,) = (spec for spec in hypervisors_of_study(study) if spec.name == names[0])
        others = ", ".join(quote_value(name) for name in names[1:])
        also = f", which {others} {'shares' if len(names) == 2 else 'share'}," if others else ""
        message = (
            f"{_image_directory_on_node_text(study, node)}{also} has {format_bytes(free)} "
            "free, the disks "
            "of guests need "
            f"{format_bytes(need)}."
        )
        hint = f"{MAKE_ROOM}give another path, or set a smaller vm.disk or workload.*.vms_per_node."
        yield Fault(message, hint)


def _guest_disk_size_faults(study: Study, guests: GuestSettings, plan: Plan) -> Iterator[Fault]:
    """What the jobs of a guest use of its disk: the widest point decides."""
    own = [target for target in targets_of_study(study) if study.host(target.host).hypervisor]
    need = max((used_device_bytes(plan, target) for target in own), default=0)
    if need > guests.disk_bytes:
        message = f"Guests' disks have {format_bytes(guests.disk_bytes)}, the jobs of each use "
        hint = "Set a larger vm.disk, or a smaller workload.*.filesize or numjobs."
        yield Fault(f"{message}{format_bytes(need)}.", hint)


def _free_bytes_or_zero(target_facts: TargetFacts | None) -> int:
    return target_facts.free_bytes if target_facts is not None else 0
