"""Checks over several keys of a study: what fits together, what names what, what is too much."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any, Final

from iolab.core.configuration import AxisSampling, Objective
from iolab.core.host import HostRole, HostTransport
from iolab.core.power import ExternalMeterKind
from iolab.core.target_state import PurgeMethod
from iolab.core.workload import BY_LATENCY, HOSTS_AXIS, VMS_PER_NODE_AXIS, AnyJob, Direction
from iolab.study.document import KeyPath, StudyDocument
from iolab.study.file import (
    HYPERVISOR_HINT_KEYS,
    ITEMS,
    SSH_KEYS,
    XFS,
    ConfigurationTable,
    HostTable,
    MethodTable,
    PreconditionTable,
    TargetTable,
    add_method_faults,
    host_transport,
)
from iolab.study.kinds import StudyKinds
from iolab.study.load_tables import LoadTable, SearchTable
from iolab.study.schedule import RATE, rising_load_axes
from iolab.study.tables import (
    ElementFault,
    StudyTables,
    TableItem,
    add_element_faults,
    existing_guest_tables,
    hypervisor_names,
    smallest_fleet_client_count,
    table_name,
    table_name_capitalised,
    target_host_names,
)
from iolab.text import counted_noun, list_text, quote_value, suggestion

TARGET: Final = "target"

REQUIRED_METER_KEYS: Final[Mapping[ExternalMeterKind, tuple[str, ...]]] = {
    ExternalMeterKind.COMMAND: ("command",),
    ExternalMeterKind.DCMI: ("address", "user", "password_variable"),
    ExternalMeterKind.REDFISH: ("address",),
    ExternalMeterKind.SNMP: ("address", "object_id"),
}
OPTIONAL_METER_KEYS: Final[Mapping[ExternalMeterKind, tuple[str, ...]]] = {
    ExternalMeterKind.REDFISH: ("user", "password_variable", "ca_file"),
    ExternalMeterKind.SNMP: ("password_variable", "scale"),
    ExternalMeterKind.DCMI: ("cipher_suite",),
}
URL_PREFIXES: Final = ("http://", "https://")
COMMON_METER_KEYS: Final = ("name", "kind", "boundary")

_LOADS_MIN: Final = 4
"""Of fewer values none can be foretold from the others."""

LISTED_LOADS_MIN: Final = 2
"""Of a single one there is nothing to choose."""

FILES_PER_HOST_MAX: Final = 100_000
"""Files that one data set may have on a client: numjobs x files."""

POINTS_MAX: Final = 10_000
"""At the shortest useful run (10 s) this is more than a day; a larger product is a slip."""

RUNS_MAX: Final = 100_000
"""Points times repeats: what a session directory and its readers are made for."""

NODE_HINT: Final = "Write role = 'hypervisor' and a name for each machine that guests live on."
"""What a study with guests needs."""


def add_objective_faults(document: StudyDocument, tables: StudyTables) -> None:
    """Add every fault of objectives, adaptive axes, limits and the sentinel."""
    for item, workload in tables.items_of_table("workload", SearchTable):
        add_element_faults(document, item, _objective_element_faults(item, workload))
    _add_sentinel_faults(document, tables.method, tables)


def _objective_element_faults(
    table_item: TableItem, workload: SearchTable
) -> Iterator[ElementFault]:
    adaptive = workload.axis is AxisSampling.ADAPTIVE
    objective = workload.objective
    several = [key for key in workload.axes if len(getattr(workload, key) or ()) > 1]
    varied = list(rising_load_axes(workload.job_type, several))
    if adaptive and objective is not Objective.GRID:
        has = f"axis = 'adaptive' and objective = {quote_value(objective.value)}"
        yield ElementFault(
            ("axis",), has, "Leave axis out: the objective chooses its points itself."
        )
    elif adaptive and (
        workload.vms_per_node is not None or VMS_PER_NODE_AXIS not in table_item.values_as_written
    ):
        yield from _adaptive_axis_element_faults(workload, varied)
    if workload.headline and not adaptive:
        yield ElementFault(("headline",), "headline but no adaptive axis", "Leave headline out.")
    if objective is Objective.PEAK:
        yield from _peak_objective_element_faults(workload, varied)
    if objective is Objective.MAX_LOAD:
        yield from _max_load_element_faults(table_item, workload)
    elif workload.limit is not None:
        hint = "Write objective = 'max-load', or leave limit out."
        yield ElementFault(
            ("limit",), f"a limit but objective = {quote_value(objective.value)}", hint
        )


def _adaptive_axis_element_faults(
    workload: SearchTable, varied_axes: list[str]
) -> Iterator[ElementFault]:
    fleet = workload.vms_per_node
    if len(varied_axes) != 1:
        has = f"axis = 'adaptive' and {_varied_axes_text(varied_axes)}"
        hint = (
            f"Give several values to iodepth or to numjobs, not to both; or to {VMS_PER_NODE_AXIS}."
        )
        yield ElementFault(("axis",), has, hint)
        return
    loads = getattr(workload, varied_axes[0])
    if len(loads) < _LOADS_MIN:
        # Where the fleet has one size, the axis meant is still that of its sizes.
        name, few = (varied_axes[0], loads) if fleet is None else (VMS_PER_NODE_AXIS, fleet)
        values = counted_noun(len(few), "value")
        hint = (
            f"Give at least {_LOADS_MIN}, or write axis = 'listed': fewer are all measured anyway."
        )
        yield ElementFault(("axis",), f"axis = 'adaptive' but {values} of {name}", hint)
    for index, load in enumerate(workload.headline):
        if load not in loads:
            has = f"headline = {load}, which {varied_axes[0]} does not list"
            yield ElementFault(
                ("headline", index), has, f"Add it to {varied_axes[0]}, or leave it out."
            )


def _peak_objective_element_faults(
    workload: SearchTable, varied_axes: list[str]
) -> Iterator[ElementFault]:
    if not varied_axes:
        hint = f"Give several values to iodepth, to numjobs, to both, or to {VMS_PER_NODE_AXIS}."
        yield ElementFault(("objective",), "objective = 'peak' and no axis to search", hint)
    if workload.indicator == BY_LATENCY:
        hint = "Write indicator = 'iops' or 'bandwidth'."
        yield ElementFault(("indicator",), "objective = 'peak' and indicator = 'latency'", hint)


def _max_load_element_faults(
    table_item: TableItem, workload: SearchTable
) -> Iterator[ElementFault]:
    job = workload.build_job()
    listed = job.max_load_search_axis
    if (
        workload.limit is None
        and "limit" not in table_item.values_as_written
        and not job.search_criterion_text
    ):
        hint = "Write for example limit = 'p99 <= 2ms'."
        yield ElementFault(("objective",), "objective = 'max-load' but no limit", hint)
    if workload.limit is not None and job.search_criterion_text:
        has = f"limit = {quote_value(workload.limit)}, but keeps to {job.search_criterion_text}"
        yield ElementFault(("limit",), has, "Leave limit out.")
    if listed and len(getattr(workload, listed) or ()) < LISTED_LOADS_MIN:
        hint = f"Write for example {listed} = [1, 2, 4, 8, 16]: the search chooses among them."
        yield ElementFault(("objective",), f"objective = 'max-load' but no list of {listed}", hint)
    for key in workload.rate_keys:
        if key != listed and getattr(workload, key) is not None:
            hint = f"Leave {key} out: the search sets {RATE}."
            yield ElementFault((key,), f"objective = 'max-load' and {key}", hint)
    yield from _latency_limit_element_faults(workload, job)


def _latency_limit_element_faults(workload: SearchTable, job: AnyJob) -> Iterator[ElementFault]:
    words = (workload.limit or "").partition("<=")[0].split()
    known = {way.display_name for way in (*job.data_directions, *job.operations_for_latency_limit)}
    if len(words) < 2:
        return
    if words[0] not in known:
        has = f"a limit on {words[0]} latency, which it has none of"
        yield ElementFault(("limit",), has, "Limit a latency that the workload has.")
    for operation, names in job.operations_for_latency_limit.items():
        if words[0] == operation.display_name and words[1] not in names:
            has = f"a limit on {words[1]} of {words[0]} latency, which a run cannot tell"
            yield ElementFault(("limit",), has, f"Limit one of {', '.join(names)}.")


def _varied_axes_text(varied_axes: list[str]) -> str:
    return f"several values of {list_text(varied_axes)}" if varied_axes else "no axis of load"


def _add_sentinel_faults(document: StudyDocument, method: MethodTable, tables: StudyTables) -> None:
    loads = tables.items_of_table("workload", LoadTable)
    ids = [table.id for _, table in loads if table.job_type.can_end_by_rule]
    if method.sentinel is not None and method.sentinel not in ids:
        message = f"sentinel is {quote_value(method.sentinel)}, which is no workload of I/O."
        hint = suggestion(method.sentinel, ids, "workloads")
        document.add_fault(("method", "sentinel"), message, hint)


def add_fleet_faults(document: StudyDocument, tables: StudyTables) -> None:
    """Add every fault of storage nodes, of rotation and of hosts' own numbers of jobs."""
    _add_host_job_faults(document, tables)
    for item, workload in tables.items_of_table("workload", SearchTable):
        if workload.hosts is not None:
            _add_host_count_faults(document, item, max(workload.hosts), tables)
    roles = {host.name: host.role for _, host in tables.items_of_table("host", HostTable)}
    host_names = {
        name
        for host in tables.items_by_section["host"]
        if isinstance(name := host.values_as_written.get("name"), str)
    }
    for item, configuration in tables.items_of_table("configuration", ConfigurationTable):
        _add_configuration_storage_faults(document, item, configuration, roles)
        # A client whose table has a fault is still a client: only whole fleets can be counted.
        if len(roles) == len(host_names):
            _add_file_rotation_faults(document, item, configuration, tables)


def _add_configuration_storage_faults(
    document: StudyDocument,
    table_item: TableItem,
    configuration: ConfigurationTable,
    role_by_host: dict[str, HostRole],
) -> None:
    """Only hosts of role storage serve a target; hypervisors are watched in every run anyway."""
    nodes = [name for name, role in role_by_host.items() if role is HostRole.STORAGE]
    for index, name in enumerate(configuration.storage or ()):
        path = (*table_item.key_path, "storage", index)
        around = table_name(document, table_item.key_path)
        if name not in role_by_host:
            message = f"storage of {around} names {quote_value(name)}, which is no host."
            document.add_fault(path, message, suggestion(name, nodes, "storage nodes"))
        elif role_by_host[name] is not HostRole.STORAGE:
            message = (
                f"storage of {around} names {quote_value(name)}, which has the role "
                f"{quote_value(role_by_host[name].value)}."
            )
            hint = "Leave it out, or write role = 'storage' for that host."
            document.add_fault(path, message, hint)


def _add_file_rotation_faults(
    document: StudyDocument,
    table_item: TableItem,
    configuration: ConfigurationTable,
    tables: StudyTables,
) -> None:
    """A client can read another's files only where there is another."""
    rotate = tables.target.rotate
    every = len(target_host_names(tables, configuration))
    count = smallest_fleet_client_count(tables, configuration)
    if rotate == 0 or rotate < count or count == 0 or tables.makes_hosts:
        return
    clients = counted_noun(count, "client")
    at_least = "" if count == every else " in its smallest fleet"
    name = table_name(document, table_item.key_path)
    message = f"rotate of [target] is {rotate}, but {name} has {clients}"
    message += f"{at_least}."
    hint = (
        "Leave rotate out; one client has only files of its own."
        if count == 1
        else f"Give from 1 to {count - 1}: so far can a client's files be handed on."
    )
    document.add_fault(("target", "rotate"), message, hint)


def _add_host_count_faults(
    document: StudyDocument, table_item: TableItem, max_host_count: int, tables: StudyTables
) -> None:
    """A workload's numbers of hosts need so many clients in every configuration, and no guests."""
    path = (*table_item.key_path, HOSTS_AXIS)
    around = (
        f"{table_name_capitalised(document, table_item.key_path)} has {HOSTS_AXIS} = "
        f"{max_host_count}"
    )
    if tables.makes_hosts or existing_guest_tables(tables):
        message = (
            f"{table_name_capitalised(document, table_item.key_path)} has {HOSTS_AXIS}, but the "
            "study's clients are guests."
        )
        document.add_fault(
            path, message, f"Leave it out, or write {VMS_PER_NODE_AXIS}.", about=HOSTS_AXIS
        )
        return
    for other, configuration in tables.items_of_table("configuration", ConfigurationTable):
        count = len(target_host_names(tables, configuration))
        if 0 < count < max_host_count:
            clients = counted_noun(count, "client")
            message = f"{around}, but {table_name(document, other.key_path)} has {clients}."
            document.add_fault(
                path, message, f"Give at most {count}.", about=f"{HOSTS_AXIS} {count}"
            )


def _add_host_job_faults(document: StudyDocument, tables: StudyTables) -> None:
    """Jobs are for those who make load, and as many as their files allow."""
    sets = (
        load.build_job().data_set("") for _, load in tables.items_of_table("workload", LoadTable)
    )
    most = max((data_set.files_per_job for data_set in sets if data_set), default=0)
    for item, host in tables.items_of_table("host", HostTable):
        add_element_faults(document, item, _host_numjobs_element_faults(host, most))


def _host_numjobs_element_faults(host: HostTable, files_per_job: int) -> Iterator[ElementFault]:
    if host.numjobs is None:
        return
    has = f"numjobs = {host.numjobs}"
    if host.role is not HostRole.CLIENT:
        has += f", but the role {quote_value(host.role.value)}, which makes no load"
        yield ElementFault(("numjobs",), has, "Leave numjobs out.")
    elif host.numjobs * files_per_job > FILES_PER_HOST_MAX:
        has += f", which makes {host.numjobs * files_per_job} files there"
        yield ElementFault(("numjobs",), has, f"Keep numjobs x files at most {FILES_PER_HOST_MAX}.")


def add_cross_table_faults(document: StudyDocument, tables: StudyTables, kinds: StudyKinds) -> None:
    """Add every fault that no single key shows."""
    for section in ("configuration", "workload", "phase", "event", "action", "witness"):
        _add_duplicate_name_faults(document, tables.items_by_section[section], ITEMS[section][1])
    add_host_faults(document, tables.items_by_section["host"])
    for item, configuration in tables.items_of_table("configuration", ConfigurationTable):
        _add_unknown_host_faults(document, item, configuration, tables)
        add_element_faults(document, item, _usable_over_raw_capacity_element_faults(configuration))
    for kind in kinds.loads:
        kind.add_workload_faults(document, tables)
    add_fleet_faults(document, tables)
    kinds.hosts.add_host_faults(document, tables)
    add_objective_faults(document, tables)
    add_method_faults(document, tables.method)
    _add_point_count_faults(document, tables, kinds.file_schema.axis_keys)


def add_host_faults(document: StudyDocument, items: tuple[TableItem, ...]) -> None:
    """Add the faults of hosts among themselves: twins, and keys that do not go together."""
    _add_duplicate_name_faults(document, items, ITEMS["host"][1])
    _add_guest_and_hypervisor_faults(document, items)
    first: dict[object, str] = {}
    for item in items:
        if not isinstance(item.table, HostTable):
            continue
        host = item.table
        add_element_faults(
            document, item, (*_host_table_element_faults(item, host), *_meter_element_faults(host))
        )
        if host_transport(host) is not HostTransport.SSH:
            continue
        machine = (host.address or host.name, host.port, tuple(host.jump or ()))
        other = first.setdefault(machine, host.name)
        if other != host.name:
            message = (
                f"{table_name_capitalised(document, item.key_path)} is the same machine as "
                f"{quote_value(other)}."
            )
            hint = "Give each its own address; a machine that counts twice doubles nothing."
            document.add_fault(item.key_path, message, hint)


def _meter_element_faults(host: HostTable) -> Iterator[ElementFault]:
    """What its meters lack, or have beside what their kind reads."""
    names = [meter.name for meter in host.meters]
    for name in sorted({name for name in names if names.count(name) > 1}):
        yield ElementFault(("meters",), f"two meters {quote_value(name)}", "Name each once.")
    for meter in host.meters:
        title = f"a meter {quote_value(meter.name)} of kind {quote_value(meter.kind.value)}"
        required = REQUIRED_METER_KEYS[meter.kind]
        for key in required:
            if not getattr(meter, key):
                yield ElementFault(("meters",), f"{title} without {key}", f"Write its {key}.")
        valid = {*required, *OPTIONAL_METER_KEYS.get(meter.kind, ()), *COMMON_METER_KEYS}
        for key in sorted(meter.model_fields_set - valid):
            yield ElementFault(("meters",), f"{title} with {key}", f"Leave {key} out.")
        if meter.kind is ExternalMeterKind.REDFISH and not meter.address.startswith(URL_PREFIXES):
            has = f"{title} at {quote_value(meter.address)}"
            yield ElementFault(("meters",), has, "Give its URL, as in 'https://bmc1.example'.")


def _add_guest_and_hypervisor_faults(
    document: StudyDocument, host_items: tuple[TableItem, ...]
) -> None:
    """Add the faults of hosts among themselves: guests of no node, keys for nodes elsewhere."""
    hosts = [(item, item.table) for item in host_items if isinstance(item.table, HostTable)]
    roles = {host.name: host.role for _, host in hosts}
    nodes = [name for name, role in roles.items() if role is HostRole.HYPERVISOR]
    for item, host in hosts:
        add_element_faults(document, item, _host_role_and_node_element_faults(host, roles, nodes))


def _host_role_and_node_element_faults(
    host: HostTable, role_by_host: dict[str, HostRole], nodes: list[str]
) -> Iterator[ElementFault]:
    role = quote_value(host.role.value)
    if host.role is HostRole.HYPERVISOR:
        if host.device is not None:
            hint = "Give a directory as its path: guests' disks are files there."
            yield ElementFault(("device",), "a device, but is a hypervisor", hint)
    else:
        for key in HYPERVISOR_HINT_KEYS:
            if getattr(host, key) is not None:
                has = f"{key}, but the role {role}"
                yield ElementFault((key,), has, f"Leave {key} out, or write role = 'hypervisor'.")
    if host.node is None:
        return
    if host.role is not HostRole.CLIENT:
        has = f"node = {quote_value(host.node)}, but the role {role}"
        yield ElementFault(
            ("node",), has, "Leave node out: it says where a guest that makes load lives."
        )
    elif host.node not in role_by_host:
        hint = suggestion(host.node, nodes, "hypervisors") if nodes else NODE_HINT
        yield ElementFault(("node",), f"node = {quote_value(host.node)}, which is no host", hint)
    elif role_by_host[host.node] is not HostRole.HYPERVISOR:
        has = f"node = {quote_value(host.node)}, which has the role "
        has += quote_value(role_by_host[host.node].value)
        yield ElementFault(
            ("node",), has, "Name a hypervisor, or write role = 'hypervisor' for that host."
        )


def add_path_and_object_store_faults(
    document: StudyDocument, tables: StudyTables, kinds: StudyKinds, *, is_required: bool
) -> None:
    """Add the faults of target paths and object stores: none, or two for one place."""
    stores = tuple(
        table for kind in kinds.loads if kind.uses_object_store for table in kind.engines_by_table
    )
    uses_store = [isinstance(item.table, stores) for item in tables.items_by_section["workload"]]
    needs_path = is_required and (not uses_store or not all(uses_store))
    _add_object_store_faults(document, tables, is_required=is_required and any(uses_store))
    hosts = {host.name: (item, host) for item, host in tables.items_of_table("host", HostTable)}
    target = document.tree.get("target")
    common = isinstance(target, dict) and ("path" in target or "device" in target)
    for item, configuration in tables.items_of_table("configuration", ConfigurationTable):
        for name in target_host_names(tables, configuration):
            host = hosts[name][1] if name in hosts else None
            if host is not None and _path_or_device(host) and _path_or_device(configuration):
                document.add_fault(
                    (*item.key_path, "path"),
                    f"Host {quote_value(name)} of {table_name(document, item.key_path)} "
                    "has two target paths, "
                    f"{quote_value(_path_or_device(configuration))} and its own "
                    f"{quote_value(_path_or_device(host))}.",
                    "Leave one of them out.",
                )
            elif needs_path and not common and not _has_path_or_device(item, hosts.get(name)):
                document.add_fault(
                    item.key_path,
                    "There is no target path.",
                    "Give --path DIR, or path = 'DIR' under [target].",
                    about="path",
                )


def _add_object_store_faults(
    document: StudyDocument, tables: StudyTables, *, is_required: bool
) -> None:
    """Add the faults of object stores: none where one is `is_required`, or half of one."""
    target = document.tree.get(TARGET)
    common = target if isinstance(target, dict) else {}
    configurations = [
        (item.key_path, item.values_as_written) for item in tables.items_by_section["configuration"]
    ]
    for path, written in (((TARGET,), common), *configurations):
        if ("endpoint" in written) != ("bucket" in written):
            has, lacks = ("endpoint", "bucket") if "endpoint" in written else ("bucket", "endpoint")
            where = "[target]" if path == (TARGET,) else table_name_capitalised(document, path)
            message = f"{where} has {'an' if has[0] == 'e' else 'a'} {has} but no {lacks}."
            document.add_fault((*path, has), message, f"Give its {lacks} too.")
    for item in tables.items_by_section["configuration"]:
        if is_required and "endpoint" not in common and "endpoint" not in item.values_as_written:
            hint = (
                "Write endpoint = 'http://HOST:PORT' and bucket = 'NAME' under [target], or give "
                "--set target.endpoint=URL --set target.bucket=NAME."
            )
            document.add_fault(item.key_path, "There is no object store.", hint, about="endpoint")


def point_count(workload_values: dict[str, Any], axes: Collection[str]) -> int:
    """How many points a workload makes, counted without making them."""
    lists = [workload_values[axis] for axis in axes if isinstance(workload_values.get(axis), list)]
    return math.prod(len(values) for values in lists)


def _has_path_or_device(
    configuration_item: TableItem, host_item_and_table: tuple[TableItem, HostTable] | None
) -> bool:
    """Whether there is a path at all; one with a fault of its own is not missing as well."""
    items = (
        configuration_item,
        *(host_item_and_table[:1] if host_item_and_table is not None else ()),
    )
    return any(key in item.values_as_written for item in items for key in ("path", "device"))


def _path_or_device(table: ConfigurationTable | HostTable) -> str | None:
    return table.path or table.device


def _add_duplicate_name_faults(
    document: StudyDocument, items: Iterable[TableItem], key: str
) -> None:
    first: dict[str, TableItem] = {}
    for item in items:
        name = item.values_as_written.get(key)
        if not isinstance(name, str):
            continue
        if name in first:
            line = document.origin_of((*first[name].key_path, key)).line
            before = f" at line {line}" if line else ""
            owner = table_name_capitalised(document, item.key_path)
            message = f"{owner} has the {key} of another{before}."
            document.add_fault((*item.key_path, key), message, f"Give each an {key} of its own.")
        first.setdefault(name, item)


def _host_table_element_faults(
    table_item: TableItem, host_table: HostTable
) -> Iterator[ElementFault]:
    kind = host_transport(host_table)
    if host_table.kind is HostTransport.COMMAND and not table_item.values_as_written.get("command"):
        hint = "Give the arguments that reach it, as in command = ['ssh', 'client-1']."
        yield ElementFault(("kind",), "kind = 'command' but no command", hint)
    elif table_item.values_as_written.get("command") == []:
        hint = "Give the arguments that reach it, or leave the command out for this machine."
        yield ElementFault(("command",), "a command without a word", hint)
    if kind is not HostTransport.COMMAND and host_table.command:
        hint = "Leave the command out, or write kind = 'command'."
        yield ElementFault(
            ("command",), f"a command but is of kind {quote_value(kind.value)}", hint
        )
    for key in SSH_KEYS:
        if kind is not HostTransport.SSH and getattr(host_table, key) is not None:
            hint = f"Leave {key} out, or write kind = 'ssh'."
            yield ElementFault((key,), f"{key} but is of kind {quote_value(kind.value)}", hint)


def _usable_over_raw_capacity_element_faults(
    configuration: ConfigurationTable,
) -> Iterator[ElementFault]:
    raw, usable = configuration.capacity.raw_tb, configuration.capacity.usable_tb
    if raw is not None and usable is not None and usable > raw:
        has = f"usable_tb = {usable:g}, more than raw_tb = {raw:g}"
        yield ElementFault(("capacity",), has, "Give both in the same unit, 10^12 bytes.")


def _add_unknown_host_faults(
    document: StudyDocument,
    table_item: TableItem,
    configuration: ConfigurationTable,
    tables: StudyTables,
) -> None:
    names = [
        name
        for host in tables.items_by_section["host"]
        if isinstance(name := host.values_as_written.get("name"), str)
    ]
    others = {
        host.name: host.role
        for _, host in tables.items_of_table("host", HostTable)
        if host.role is not HostRole.CLIENT
    }
    booting = tables.makes_hosts
    nodes = (
        hypervisor_names(tables)
        if booting
        else [guest.node for guest in existing_guest_tables(tables)]
    )
    for index, name in enumerate(configuration.hosts or ()):
        if name in nodes and name in names:
            continue
        if name not in names:
            message = (
                f"hosts of {table_name(document, table_item.key_path)} names "
                f"{quote_value(name)}, which is no host."
            )
            hint = suggestion(name, names, "hosts")
            document.add_fault((*table_item.key_path, "hosts", index), message, hint)
        elif name in others:
            message = (
                f"hosts of {table_name(document, table_item.key_path)} names {quote_value(name)}, "
                f"which has the role {quote_value(others[name].value)} and makes no load."
            )
            hint = "Leave it out, or write role = 'client'."
            document.add_fault((*table_item.key_path, "hosts", index), message, hint)
    if configuration.hosts is None and names and len(others) == len(names) and not booting:
        name = table_name_capitalised(document, table_item.key_path)
        message = f"{name} has no client among its hosts."
        document.add_fault(table_item.key_path, message, "Write role = 'client' for at least one.")


def _workload_repeats(table_item: TableItem, tables: StudyTables) -> int:
    """How often each point of a workload runs."""
    own = table_item.table.repeats if isinstance(table_item.table, LoadTable) else None
    return own or tables.method.repeats


def _add_point_count_faults(
    document: StudyDocument, tables: StudyTables, axes: Collection[str]
) -> None:
    """Too large a product is found by multiplying, before any point is made."""
    configurations = max(len(tables.items_by_section["configuration"]), 1)
    counts = [
        point_count(item.values_as_written, axes) for item in tables.items_by_section["workload"]
    ]
    points = configurations * sum(counts)
    runs = configurations * sum(
        count * _workload_repeats(item, tables)
        for count, item in zip(counts, tables.items_by_section["workload"], strict=True)
    )
    if points > POINTS_MAX:
        largest = tables.items_by_section["workload"][counts.index(max(counts))]
        name = table_name(document, largest.key_path)
        message = f"The study has {points} points, {max(counts)} in {name}."
        document.add_fault(
            largest.key_path, message, f"Vary less: at most {POINTS_MAX} are planned."
        )
    elif runs > RUNS_MAX:
        repeats = max(
            _workload_repeats(item, tables) for item in tables.items_by_section["workload"]
        )
        message = f"The study has {runs} runs: {points} points, {repeats} repeats."
        document.add_fault(("method", "repeats"), message, f"At most {RUNS_MAX} are planned.")


def add_filesystem_faults(
    document: StudyDocument,
    tables: StudyTables,
    kinds: StudyKinds,
    devices: list[KeyPath],
    folders: list[KeyPath],
) -> None:
    """Add every fault of `filesystem` and `image`; `devices`, `folders` are tables with targets."""
    target = tables.target
    written = document.tree.get("target")
    keys = written if isinstance(written, dict) else {}
    image = ("target", "image")
    if target.filesystem != XFS:
        if target.image is not None and "filesystem" not in keys:
            message = "[target] has an image but no filesystem to make in it."
            document.add_fault(
                image, message, f"Write filesystem = '{XFS}', or leave the image out."
            )
        return
    path = ("target", "filesystem")
    if "image" not in keys and (folders or not devices):
        message = f"filesystem of [target] is '{XFS}', but nothing is said to make it on."
        hint = "Write for example image = '4g', or give a device with its serial."
        document.add_fault(path, message, hint)
    if target.image is not None and devices:
        message = "[target] has an image, which is a file, but a target is a device."
        document.add_fault(
            image, message, "Leave the image out: the file system is made on the device."
        )
    if target.rotate:
        message = f"rotate of [target] does not go with filesystem = '{XFS}': each client has its "
        document.add_fault(("target", "rotate"), message + "own.", "Leave one of them out.")
    if devices:
        unfit = [
            t
            for kind in kinds.loads
            if not kind.on_device_filesystem
            for t in kind.engines_by_table
        ]
        for table in unfit:
            for item, _ in tables.items_of_table("workload", table):
                message = (
                    f"{table_name_capitalised(document, item.key_path)} does not go with a "
                    "file system on a device."
                )
                hint = "Leave it out, or measure it as a study of its own."
                document.add_fault(item.key_path, message, hint)


AnyTarget = TargetTable | ConfigurationTable | HostTable


def add_device_faults(document: StudyDocument, tables: StudyTables, kinds: StudyKinds) -> None:
    """Add every fault of device targets and of preconditioning that no single key shows."""
    places = list(tables_with_targets(tables))
    for path, table in places:
        _add_device_target_faults(document, path, table)
    devices = [path for path, table in places if table.device]
    folders = [path for path, table in places if table.path]
    if devices:
        _add_device_conflict_faults(document, tables, kinds)
    _add_precondition_faults(document, tables.precondition, devices, folders)
    add_filesystem_faults(document, tables, kinds, devices, folders)


def tables_with_targets(tables: StudyTables) -> Iterator[tuple[KeyPath, AnyTarget]]:
    """The tables that may name a target, each with its path in the file."""
    yield ("target",), tables.target
    for item, configuration in tables.items_of_table("configuration", ConfigurationTable):
        yield item.key_path, configuration
    for item, host in tables.items_of_table("host", HostTable):
        yield item.key_path, host


def _add_device_target_faults(document: StudyDocument, key_path: KeyPath, table: AnyTarget) -> None:
    """A device is opted into by its path and its serial, both."""
    where = (
        "[target]" if isinstance(table, TargetTable) else table_name_capitalised(document, key_path)
    )
    if table.device and table.path:
        message = f"{where} has two targets, the device {quote_value(table.device)} and "
        message += f"the directory {quote_value(table.path)}."
        document.add_fault((*key_path, "device"), message, "Leave one of them out.")
    if table.device and not table.serial:
        message = f"{where} has the device {quote_value(table.device)} but no serial."
        hint = "Give its serial too: all that is on that device will be destroyed."
        document.add_fault((*key_path, "device"), message, hint)
    if table.serial and not table.device:
        message = f"{where} has the serial {quote_value(table.serial)} but no device."
        document.add_fault((*key_path, "serial"), message, "Give the device's path too.")


def _add_device_conflict_faults(
    document: StudyDocument, tables: StudyTables, kinds: StudyKinds
) -> None:
    """What needs files cannot be done on a device."""
    for key in ("rotate", "keep_files"):
        if getattr(tables.target, key):
            message = f"{key} of [target] does not go with a device, which holds no files."
            document.add_fault(("target", key), message, "Leave one of them out.")
    for kind in kinds.loads:
        kind.add_device_faults(document, tables)
    for item, workload in tables.items_of_table("workload", LoadTable):
        ways = workload.build_job().data_directions
        if tables.precondition.fill == 0 and ways and Direction.WRITE not in ways:
            message = f"{table_name_capitalised(document, item.key_path)} {ways[0].key}s, "
            message += "but with fill = 0 nothing was written."
            hint = "Set precondition.fill = 1 or more, or keep to workloads that write."
            document.add_fault(item.key_path, message, hint)


def _add_precondition_faults(
    document: StudyDocument,
    table: PreconditionTable,
    devices: list[KeyPath],
    folders: list[KeyPath],
) -> None:
    purge = table.purge
    path = ("precondition", "purge")
    if purge is not PurgeMethod.NONE and purge.purges_devices and folders:
        message = (
            f"purge of [precondition] is {quote_value(purge.value)}, but a target is a directory."
        )
        document.add_fault(
            path, message, "Use 'fstrim' or 'recreate', or give a device as the target."
        )
    if purge is not PurgeMethod.NONE and not purge.purges_devices and devices:
        message = (
            f"purge of [precondition] is {quote_value(purge.value)}, but a target is a device."
        )
        document.add_fault(path, message, "Use 'discard', 'nvme-format' or 'sanitize'.")
    if 0 < table.fill < 1 or (table.fill == 0 and folders):
        message = f"fill of [precondition] is {table.fill:g}."
        hint = "Give 1 or more; 0, which leaves a purged device fresh, is for devices alone."
        document.add_fault(("precondition", "fill"), message, hint)
    for key in ("round", "rounds"):
        if not table.steady and ("precondition", key) in document.lines:
            message = f"{key} of [precondition] has no effect without steady = true."
            document.add_fault(("precondition", key), message, "Leave it out, or add it.")
