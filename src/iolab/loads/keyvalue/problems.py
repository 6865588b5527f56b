"""What key-value workloads are refused for: over several keys, and on hosts."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple

from iolab.core.host import DeviceFacts, HostFacts, HostRole
from iolab.core.run import Plan, Point
from iolab.core.study import Study
from iolab.errors import MAKE_ROOM, Fault
from iolab.loads.keyvalue.cost import NODE_BYTES, client_memory_needed_bytes, space_bytes_on_host
from iolab.loads.keyvalue.table import (
    DB_BENCH_OPTIONS,
    PROGRAMS,
    WRITERS_BESIDE,
    YCSB_OPTIONS,
    DbBenchTable,
    MixTable,
    ServerTable,
    YcsbTable,
    is_sum_of_shares_one,
    server_table_or_default,
    ycsb_option_text,
)
from iolab.loads.keyvalue.workload import (
    READ_RANDOM_WRITE_RANDOM,
    DbBenchJob,
    KeyJob,
    ServerKind,
    YcsbJob,
    server_settings_or_embedded,
)
from iolab.study.cost import ASSUMED_WRITE_BYTES_PER_S, with_free_space_margin
from iolab.study.document import StudyDocument
from iolab.study.file import ConfigurationTable, HostTable
from iolab.study.tables import (
    ElementFault,
    StudyTables,
    TableItem,
    add_element_faults,
    add_option_faults,
    table_name,
    table_name_capitalised,
    target_host_names,
)
from iolab.study.targets import Target, targets_of_study
from iolab.text import quote_value, suggestion
from iolab.units import format_bytes, parse_size

OVERWRITE: Final = "overwrite"
"""The one benchmark without readers whose rate db_bench limits."""

_INSTALL: Final = {
    "db_bench": "Install rocksdb-tools there, or name it in workload.*.db_bench.db_bench.",
    "sst_dump": "Install rocksdb-tools there, or name it in workload.*.db_bench.sst_dump.",
    "java": "Install openjdk-17-jre-headless there, or name its program in server.java.",
}

_ROOM: Final = f"{MAKE_ROOM}give another path, or set fewer workload.*.keys or records."


def add_key_value_faults(document: StudyDocument, tables: StudyTables) -> None:
    """Add every fault of key-value workloads and of their server that no single key shows."""
    for item in tables.items_by_section["workload"]:
        add_option_faults(document, item, "db_bench", DbBenchTable, DB_BENCH_OPTIONS)
        add_option_faults(
            document, item, "ycsb", YcsbTable, YCSB_OPTIONS, format_value=ycsb_option_text
        )
    for item, bench in tables.items_of_table("workload", DbBenchTable):
        add_element_faults(document, item, _db_bench_element_faults(bench, item.values_as_written))
    for item, mixed in tables.items_of_table("workload", YcsbTable):
        add_element_faults(document, item, _mix_element_faults(mixed))
    _add_server_faults(document, tables)


def _db_bench_element_faults(
    workload: DbBenchTable, raw_workload_table: Mapping[str, Any]
) -> Iterator[ElementFault]:
    name = workload.benchmark
    beside = name.endswith(WRITERS_BESIDE)
    if beside and workload.write_rate is None and "write_rate" not in raw_workload_table:
        hint = (
            "Write for example write_rate = '2m', the bytes it writes in a second: without a rate "
            "a faster target gets another load."
        )
        yield ElementFault(("benchmark",), f"no write_rate, but {name} has a writer", hint)
    if workload.write_rate is not None and not beside and name != OVERWRITE:
        hint = "Leave it out, or write benchmark = 'readwhilewriting'."
        yield ElementFault(("write_rate",), f"a write_rate, but {name} has no such writer", hint)
    if workload.read_percent is not None and name != READ_RANDOM_WRITE_RANDOM:
        hint = f"Leave it out, or write benchmark = '{READ_RANDOM_WRITE_RANDOM}'."
        yield ElementFault(("read_percent",), f"a read_percent, but {name} does not mix", hint)
    if workload.database is not None:
        # What it was loaded with must be said: nothing else is held against it.
        missing = [key for key in ("key_size", "value_size") if key not in raw_workload_table]
        if missing:
            has = f"a database but no {' and no '.join(missing)}"
            hint = "Say with what it was loaded: keys, key_size, value_size and block_size."
            yield ElementFault(("database",), has, hint)
        if len(workload.block_size) > 1:
            has = "several values of block_size for one database"
            hint = (
                "Give the one it was loaded with, and each further database a workload of its own."
            )
            yield ElementFault(("block_size",), has, hint)
    memory, cache = workload.memory, workload.cache_size
    # With less than its own cache the process would be killed before it has shown anything.
    if memory is not None and parse_size(memory) <= parse_size(cache):
        has = f"memory = {quote_value(memory)} for a cache_size of {quote_value(cache)}"
        hint = "Give more memory than the cache takes, or a smaller cache_size."
        yield ElementFault(("memory",), has, hint)


def _mix_element_faults(workload: YcsbTable) -> Iterator[ElementFault]:
    shares = [getattr(workload.mix, key) for key in MixTable.model_fields]
    if not is_sum_of_shares_one(shares):
        hint = "Give shares that are 1 together, as in mix = { read = 0.95, update = 0.05 }."
        yield ElementFault(("mix",), f"shares in mix that add up to {sum(shares):g}", hint)


def _add_server_faults(document: StudyDocument, tables: StudyTables) -> None:
    written = document.tree.get("server")
    if not isinstance(written, dict):
        return
    workloads = tables.items_of_table("workload", YcsbTable)
    if not any(
        item.values_as_written.get("engine") == "ycsb"
        for item in tables.items_by_section["workload"]
    ):
        message = "[server] has no effect: no workload of the study has engine = 'ycsb'."
        document.add_fault(("server",), message, "Leave it out.")
        return
    server = server_table_or_default(tables)
    if server.kind is ServerKind.EXTERNAL and "addresses" not in written:
        message = "[server] has kind = 'given' but no addresses."
        hint = "Write for example addresses = ['db-1:9042'], or --server HOST[:PORT],... ."
        document.add_fault(("server", "kind"), message, hint)
    if "kind" not in written and "addresses" in written:
        message = "[server] has addresses but no kind."
        hint = "Write kind = 'given', and the cluster there is measured."
        document.add_fault(("server", "addresses"), message, hint)
    if server.kind is not ServerKind.EMBEDDED:
        _add_differing_record_set_faults(document, workloads)
    if server.kind is ServerKind.MANAGED:
        _add_managed_server_faults(document, server)
        _add_managed_server_host_faults(document, tables, written)


def _add_differing_record_set_faults(
    document: StudyDocument, workloads: list[tuple[TableItem, YcsbTable]]
) -> None:
    """A keyspace has one table of one shape."""
    shapes = [(w.records, w.fields, parse_size(w.field_size)) for _, w in workloads]
    for (item, _), shape in zip(workloads, shapes, strict=True):
        if shape != shapes[0]:
            first = table_name(document, workloads[0][0].key_path)
            message = (
                f"{table_name_capitalised(document, item.key_path)} has other records, fields or "
                "field_size than "
                f"{first}, but a server holds one set of records."
            )
            hint = "Make them the same, or measure them as two studies."
            document.add_fault(item.key_path, message, hint)


def _add_managed_server_faults(document: StudyDocument, server: ServerTable) -> None:
    """What one node of ours cannot do."""
    if server.replication > 1:
        message = f"replication of [server] is {server.replication}, but a managed one is one node."
        document.add_fault(("server", "replication"), message, "Leave it out, or write 1.")
    if server.memory is not None and parse_size(server.memory) <= parse_size(server.heap):
        message = (
            f"memory of [server] is {quote_value(server.memory)} for a heap of "
            f"{quote_value(server.heap)}."
        )
        hint = "Give more: a node needs half a gigabyte beside its heap, and the page cache counts."
        document.add_fault(("server", "memory"), message, hint)


def _add_managed_server_host_faults(
    document: StudyDocument, tables: StudyTables, raw_server_table: Mapping[str, Any]
) -> None:
    """The node's host is one of the study, and every client can reach it there."""
    hosts = {host.name: host for _, host in tables.items_of_table("host", HostTable)}
    name = server_table_or_default(tables).host
    if name is not None and (name not in hosts or hosts[name].role is HostRole.HYPERVISOR):
        usable = [host.name for host in hosts.values() if host.role is not HostRole.HYPERVISOR]
        message = f"host of [server] is {quote_value(name)}, which is no client or storage node."
        document.add_fault(("server", "host"), message, suggestion(name, usable, "such hosts"))
        return
    if not ipaddress.ip_address(server_table_or_default(tables).listen).is_loopback:
        return
    for item, configuration in tables.items_of_table("configuration", ConfigurationTable):
        clients = target_host_names(tables, configuration)
        node = name or (clients[0] if clients else "")
        others = [client for client in clients if client != node]
        if others:
            message = (
                f"The managed server on {quote_value(node)} listens on "
                f"{server_table_or_default(tables).listen}, where "
                f"{quote_value(others[0])} of {table_name(document, item.key_path)} cannot "
                "reach it."
            )
            hint = "Write server.listen with an address of that host that the clients can reach."
            key = "listen" if "listen" in raw_server_table else "kind"
            document.add_fault(("server", key), message, hint, about="listen")


class RequiredTool(NamedTuple):
    """What a program of a client has to be, by its usual name, and what asks for its version."""

    tool_name: str
    version_argv: list[str]


def required_tools_by_program(study: Study) -> dict[str, RequiredTool]:
    """What key-value load needs on clients, by the name or path of the program."""
    programs: dict[str, RequiredTool] = {}
    for workload in study.workloads:
        job = workload.job
        if isinstance(job, DbBenchJob):
            for tool_name in PROGRAMS:
                program = dict(job.options).get(tool_name, tool_name)
                programs[program] = RequiredTool(tool_name, [program, "--version"])
        elif isinstance(job, YcsbJob):
            java = server_settings_or_embedded(study).java
            programs[java] = RequiredTool("java", [java, "-version"])
    return programs


def missing_tool_and_space_faults(
    study: Study,
    plan: Plan,
    facts_by_target: Mapping[str, HostFacts],
    device_facts_by_target: Mapping[str, DeviceFacts],
) -> list[Fault]:
    """Programs that are missing, and targets and images too small for what the load needs.

    Both mappings are by `Target.key`. A host that was not asked for a program may have it.
    """
    faults: list[Fault] = []
    for target in targets_of_study(study):
        host_facts = facts_by_target.get(target.key)
        if host_facts is None:
            continue
        if target.key == target.host:
            faults += _missing_tool_faults(study, target.host, host_facts)
        fault = _space_fault(
            study, plan, target, host_facts, device_facts_by_target.get(target.key)
        )
        if fault is not None:
            faults.append(fault)
    return faults


def _missing_tool_faults(study: Study, host_name: str, host_facts: HostFacts) -> Iterator[Fault]:
    for program, required in required_tools_by_program(study).items():
        tool = host_facts.tool_facts(program)
        if tool is not None and tool.path is None:
            yield Fault(
                f"There is no {quote_value(program)} on host {quote_value(host_name)}.",
                _INSTALL[required.tool_name],
            )


def _space_fault(
    study: Study,
    plan: Plan,
    target: Target,
    host_facts: HostFacts,
    device_facts: DeviceFacts | None,
) -> Fault | None:
    need = space_bytes_on_host(study, plan.points, target.host, ASSUMED_WRITE_BYTES_PER_S)
    if not need:
        return None
    need = with_free_space_margin(need)
    where = f"{quote_value(target.path)} on host {quote_value(target.host)}"
    image = study.target.image_bytes
    if image is not None and image < need:
        message = f"The image of {format_bytes(image)} is too small: databases, a copy and what "
        message += f"runs write need {format_bytes(need)}."
        return Fault(message, "Set a larger target.image, or fewer workload.*.keys or records.")
    if target.serial is not None:
        if device_facts is None or not device_facts.name or device_facts.size_bytes >= need:
            return None
        message = (
            f"The device {where} has {format_bytes(device_facts.size_bytes)}, databases, a copy "
        )
        message += f"and what runs write need {format_bytes(need)}."
        return Fault(message, "Name a larger device, or set fewer workload.*.keys or records.")
    if image is not None:
        return None  # Whether there is room for the image is told for every load.
    if host_facts.target is None or host_facts.target.free_bytes >= need or study.target.keep_files:
        # What an earlier session kept is not needed again, and how much it is nobody knows.
        return None
    message = f"{where} has {format_bytes(host_facts.target.free_bytes)} free, the databases need "
    return Fault(f"{message}{format_bytes(need)}.", _ROOM)


def notes_on_tight_memory_limits(study: Study, points: Iterable[Point]) -> Iterator[str]:
    """What is told of bounds of memory that are less than a process is likely to need."""
    server = server_settings_or_embedded(study)
    noted: set[str] = set()
    bounded = [point for point in points if isinstance(point.job, KeyJob)]
    for point in bounded:
        job = point.job
        if not isinstance(job, KeyJob) or job.memory_bytes is None:
            continue
        if isinstance(job, YcsbJob) and server.kind is not ServerKind.EMBEDDED:
            continue
        need = client_memory_needed_bytes(job)
        if job.memory_bytes < need and point.workload not in noted:
            noted.add(point.workload)
            yield (
                f"{point.title_text} has {format_bytes(job.memory_bytes)}, but is likely to need "
                f"{format_bytes(need)} before any of its files is kept; it may be killed"
            )
    if server.kind is ServerKind.MANAGED and server.memory_bytes is not None:
        need = server.heap_bytes + NODE_BYTES
        if server.memory_bytes < need and any(isinstance(p.job, YcsbJob) for p in bounded):
            yield (
                f"the managed server has {format_bytes(server.memory_bytes)}, but is likely to "
                f"need {format_bytes(need)} before any of its files is kept; it may be killed"
            )
