"""From the tree of a study file to its tables, each checked key by key."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, NamedTuple, TypeVar

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from iolab.core.engine import EngineOption
from iolab.core.host import HostRole
from iolab.record import Record
from iolab.study.document import KeyPath, StudyDocument
from iolab.study.file import (
    EXAMPLES,
    ITEMS,
    ConfigurationTable,
    HeadingTable,
    HostTable,
    MetersTable,
    MethodTable,
    PreconditionTable,
    StudyFileSchema,
    TargetTable,
    TelemetryTable,
)
from iolab.study.load_tables import SearchTable, StudyTable
from iolab.study.values import FAULT, program_option_text
from iolab.text import capitalised, quote_value, suggestion

ELEMENTS_MAX: Final = 1000
"""More workloads, hosts or configurations than any study has."""

TableT = TypeVar("TableT", bound=StudyTable)


class TableItem(Record):
    """An element of an array of tables: where it is, as written, and read (None if it has faults).

    A key with a fault counts as left out in `table`, so that checks over several keys go on.
    """

    key_path: KeyPath
    values_as_written: dict[str, Any]
    table: StudyTable | None


class StudyTables(Record):
    """All tables of a study file; `kind_tables` are those of single kinds of load or host.

    With `makes_hosts` the session makes the clients, rather than use those that exist.
    """

    heading: HeadingTable | None
    target: TargetTable
    precondition: PreconditionTable
    method: MethodTable
    telemetry: TelemetryTable
    meters: MetersTable
    kind_tables: tuple[StudyTable, ...]
    makes_hosts: bool
    items_by_section: dict[str, tuple[TableItem, ...]]

    def find_single_table(self, table_type: type[TableT]) -> TableT | None:
        """The table of that kind which stands once; None where nothing is to be had of it."""
        return next((table for table in self.kind_tables if isinstance(table, table_type)), None)

    def items_of_table(
        self, section: str, table_type: type[TableT]
    ) -> list[tuple[TableItem, TableT]]:
        """The elements of `section` that could be read, as tables of their kind."""
        return [
            (item, item.table)
            for item in self.items_by_section[section]
            if isinstance(item.table, table_type)
        ]


def existing_guest_tables(tables: StudyTables) -> list[HostTable]:
    """The guests that exist already: clients whose node is written."""
    return [host for host in _host_tables(tables) if _is_existing_guest(host)]


def hypervisor_names(tables: StudyTables) -> list[str]:
    """The hypervisors."""
    return [host.name for host in _host_tables(tables) if host.role is HostRole.HYPERVISOR]


def target_host_names(tables: StudyTables, configuration: ConfigurationTable) -> list[str]:
    """The hosts that need a path in a configuration: clients, or the nodes of guests to boot."""
    if tables.makes_hosts:
        return configuration.hosts or hypervisor_names(tables)
    every = {
        host.name: host.node or "" for host in _host_tables(tables) if host.role is HostRole.CLIENT
    }
    return list(expand_nodes_to_clients(configuration.hosts, every))


def smallest_fleet_client_count(tables: StudyTables, configuration: ConfigurationTable) -> int:
    """How many clients a configuration's smallest fleet has; all where no workload says how many.

    Of guests that are booted their nodes count.
    """
    names = target_host_names(tables, configuration)
    nodes = {host.node for host in _host_tables(tables) if host.name in names and host.node}
    lists = [load.vms_per_node for _, load in tables.items_of_table("workload", SearchTable)]
    fleets = [min(numbers) * len(nodes) for numbers in lists if numbers and nodes]
    counts = [
        min(load.hosts) for _, load in tables.items_of_table("workload", SearchTable) if load.hosts
    ]
    return min([len(names), *fleets, *counts])


def expand_nodes_to_clients(
    host_or_node_names: Iterable[str] | None, node_by_client: Mapping[str, str]
) -> tuple[str, ...]:
    """The clients of a configuration that names hosts or their nodes, or None for all.

    `node_by_client` are the node of each, "" where it has none.
    """
    if host_or_node_names is None:
        return tuple(node_by_client)
    chosen: dict[str, None] = {}
    for name in host_or_node_names:
        here = [client for client, node in node_by_client.items() if node == name]
        chosen |= dict.fromkeys(here if name not in node_by_client and here else [name])
    return tuple(chosen)


def _host_tables(tables: StudyTables) -> list[HostTable]:
    return [host for _, host in tables.items_of_table("host", HostTable)]


def read_tables_and_add_faults(
    document: StudyDocument, file_schema: StudyFileSchema
) -> StudyTables:
    """Every table of the document; what is wrong is added to `faults`."""
    tree = document.tree
    sections = {*file_schema.single_table_type_by_name, *ITEMS, "scale"}
    heading = {key: value for key, value in tree.items() if key not in sections}
    making = {section.name for section in file_schema.sections if section.makes_hosts}
    single = {
        name: _read_section_or_add_fault(document, name, table)
        for name, table in file_schema.single_table_type_by_name.items()
        if name in tree or name not in file_schema.optional_table_names
    }
    target, method, telemetry = (single[name] for name in ("target", "method", "telemetry"))
    before, meters = single["precondition"], single["meters"]
    own = {
        section.name: single[section.name] or section.fallback_table(tree.get(section.name))
        for section in file_schema.sections
        if section.name in single
    }
    items = {name: read_table_array_and_add_faults(document, name, file_schema) for name in ITEMS}
    if not items["workload"] and "workload" not in tree:
        hint = "Describe at least one under [[workload]]."
        document.add_fault((), "The study has no workload.", hint)
    return StudyTables(
        validate_table_and_add_faults(document, HeadingTable, heading, (), file_schema),
        target if isinstance(target, TargetTable) else TargetTable(),
        before if isinstance(before, PreconditionTable) else PreconditionTable(),
        method if isinstance(method, MethodTable) else MethodTable(),
        telemetry if isinstance(telemetry, TelemetryTable) else TelemetryTable(),
        meters if isinstance(meters, MetersTable) else MetersTable(),
        tuple(own.values()),
        # Guests that exist already take the place of those that would be made.
        not making.isdisjoint(own)
        and not any(_is_existing_guest(item.table) for item in items["host"]),
        items,
    )


def _is_existing_guest(host: StudyTable | None) -> bool:
    return isinstance(host, HostTable) and host.role is HostRole.CLIENT and host.node is not None


def validate_table_and_add_faults(
    document: StudyDocument,
    table_type: type[TableT],
    raw_values: dict[str, Any],
    key_path: KeyPath,
    file_schema: StudyFileSchema | None = None,
) -> TableT | None:
    """The table written there, without the keys that have faults; None if it needs those."""
    try:
        return table_type.model_validate(raw_values)
    except ValidationError as error:
        details = error.errors(include_url=False, include_input=True)
        for detail in details:
            _add_pydantic_fault(document, table_type, detail, key_path, file_schema)
        wrong = {detail["loc"][0] for detail in details if detail["loc"]}
    rest = copy.copy({key: value for key, value in raw_values.items() if key not in wrong})
    try:
        return table_type.model_validate(rest)
    except ValidationError:
        return None


def read_table_array_and_add_faults(
    document: StudyDocument, name: str, file_schema: StudyFileSchema | None = None
) -> tuple[TableItem, ...]:
    """The elements of an array of tables."""
    elements = document.tree.get(name, [])
    hint = f"Write [[{name}]] on a line of its own before each, with double brackets."
    if not isinstance(elements, list):
        document.add_fault(
            (name,), f"{name} is {quote_value(elements)}, not a list of tables.", hint
        )
        return ()
    if len(elements) > ELEMENTS_MAX:
        message = f"There are {len(elements)} {name}s."
        document.add_fault((name,), message, f"Give at most {ELEMENTS_MAX}.")
        return ()
    items = []
    for index, element in enumerate(elements):
        path: KeyPath = (name, index)
        if isinstance(element, dict):
            kind = file_schema.element_table_type(name, element) if file_schema else ITEMS[name][0]
            table = validate_table_and_add_faults(document, kind, element, path, file_schema)
            items.append(TableItem(path, element, table))
        else:
            document.add_fault(path, f"{name} {index + 1} is {quote_value(element)}.", hint)
    return tuple(items)


def table_name(document: StudyDocument, key_path: KeyPath) -> str:
    """What people call the table there: `workload 'x'`, `[method]`, or nothing for the root."""
    if not key_path:
        return ""
    section = str(key_path[0])
    if section not in ITEMS:
        return f"[{section}]"
    if len(key_path) < 2 or not isinstance(key_path[1], int):
        return section
    item = document.tree[section][key_path[1]]
    name = item.get(ITEMS[section][1]) if isinstance(item, dict) else None
    return (
        f"{section} {quote_value(name)}"
        if isinstance(name, str)
        else f"{section} {key_path[1] + 1}"
    )


def table_name_capitalised(document: StudyDocument, key_path: KeyPath) -> str:
    """The table at `key_path` as a sentence begins with it."""
    return capitalised(table_name(document, key_path))


class ElementFault(NamedTuple):
    """What an element of an array of tables has and cannot have together.

    `key_path` is the one at fault within the element, `conflict_text` what follows "workload 'x'
    has", `hint` a sentence.
    """

    key_path: tuple[str | int, ...]
    conflict_text: str
    hint: str


def add_element_faults(
    document: StudyDocument, table_item: TableItem, problems: Iterable[ElementFault]
) -> None:
    """Add each problem of an element as a fault, where its key was written.

    Of what one option or line set on many elements, those that need the same change are one.
    """
    for problem in problems:
        path = (*table_item.key_path, *problem.key_path)
        message = (
            f"{table_name_capitalised(document, table_item.key_path)} has {problem.conflict_text}."
        )
        document.add_fault(path, message, problem.hint, about=f"{problem.key_path} {problem.hint}")


def add_option_faults(
    document: StudyDocument,
    table_item: TableItem,
    key: str,
    table_type: type[StudyTable],
    allowed_options: Mapping[str, EngineOption],
    *,
    format_value: Callable[[float | str], str] = program_option_text,
    advice_for_name: Callable[[str], str | None] = lambda _: None,
) -> None:
    """Add every fault of the options under `key`, which tables of that model have.

    They are read as written, so that they are told of also where another key is at fault.
    `format_value` gives the text that an engine gets, `advice_for_name` what to do about
    a name of another place.
    """
    user_value = table_item.values_as_written.get(key)
    if table_item.table is not None and not isinstance(table_item.table, table_type):
        return  # the key itself is told of
    for name, value in user_value.items() if isinstance(user_value, dict) else ():
        if not isinstance(value, str | int | float):
            continue  # it is told of where the table is read
        path = (*table_item.key_path, key, name)
        if name not in allowed_options:
            message = (
                f"{key} option {quote_value(name)} of {table_name(document, table_item.key_path)} "
                "is not allowed."
            )
            hint = advice_for_name(name) or suggestion(name, allowed_options, "allowed options")
            if name in table_type.model_fields:
                hint = f"Write {name} as a key of the workload itself."
            document.add_fault(path, message, hint, about=name)
        elif not allowed_options[name].accepts_value(format_value(value)):
            whose = table_name(document, table_item.key_path)
            message = f"{key} option {name} of {whose} is {quote_value(value)}."
            hint = f"Write for example {quote_value(allowed_options[name].example)}."
            document.add_fault(path, message, hint, about=name)


def _read_section_or_add_fault(
    document: StudyDocument, name: str, table_type: type[StudyTable]
) -> StudyTable | None:
    if name not in document.tree:
        return table_type.model_construct()  # its defaults, without building the model's validator
    user_value = document.tree[name]
    if isinstance(user_value, dict):
        return validate_table_and_add_faults(document, table_type, user_value, (name,))
    document.add_fault(
        (name,),
        f"{name} is {quote_value(user_value)}, not a table.",
        f"Write [{name}] on a line of its own, its keys below.",
    )
    return None


def _add_pydantic_fault(
    document: StudyDocument,
    table_type: type[StudyTable],
    detail: ErrorDetails,
    key_path: KeyPath,
    file_schema: StudyFileSchema | None,
) -> None:
    """One fault that pydantic found, in our words."""
    full = (*key_path, *detail["loc"])
    name = ".".join(str(part) for part in detail["loc"] if isinstance(part, str))
    around = table_name(document, key_path)
    subject = f"{printable_key(name)} of {around}" if around else printable_key(name)
    kind = detail["type"]
    if kind == FAULT:
        context = detail["ctx"]
        message, hint = f"{subject} {context['message']}.", str(context["hint"])
    elif kind == "extra_forbidden":
        message = (
            f"Unknown key {quote_value(str(detail['loc'][-1]))}{f' in {around}' if around else ''}."
        )
        at_root = file_schema is not None and table_type is HeadingTable
        keys = (
            file_schema.root_keys
            if file_schema and at_root
            else _known_keys(table_type, detail["loc"])
        )
        advice = (
            file_schema.advice_by_table_and_key.get(table_type, {})
            if file_schema and len(detail["loc"]) == 1
            else {}
        )
        hint = advice.get(name) or suggestion(str(detail["loc"][-1]), keys, "keys here")
        engines = (
            file_schema.other_engines_with_key_text(name, table_type)
            if file_schema and len(detail["loc"]) == 1
            else None
        )
        if engines:
            message = f"{name} of {around} does not go with its engine."
            hint = f"Leave it out; it is a key of workloads with engine = {engines}."
    elif kind == "missing":
        message = (
            f"{table_name_capitalised(document, key_path)} has no {name}."
            if around
            else f"There is no {name}."
        )
        examples = {**EXAMPLES, **file_schema.example_by_key} if file_schema else EXAMPLES
        hint = f"Write for example {name} = {examples.get(name, '...')}."
    else:
        wanted = "a list" if kind == "list_type" else "a table"
        message, hint = f"{subject} is {quote_value(detail['input'])}.", f"Give {wanted}."
    document.add_fault(full, message, hint, about=f"{name} {message.removeprefix(subject)}")


def printable_key(name: str) -> str:
    """A key as messages name it: plain when it is a plain word, quoted and escaped otherwise."""
    return name if name.replace(".", "").replace("_", "").isalnum() else quote_value(name)


def _known_keys(table_type: type[StudyTable], location: tuple[int | str, ...]) -> list[str]:
    """The keys of the (nested) table that the unknown key was found in."""
    if table_type.part_of is not None:
        return list(table_type.part_of.model_fields)
    if len(location) < 2:
        return list(table_type.model_fields)
    described = table_type.model_fields[str(location[0])].annotation
    inner = [kind for kind in (described, *getattr(described, "__args__", ())) if kind is not None]
    for kind in inner:
        if isinstance(kind, type) and issubclass(kind, StudyTable):
            return list(kind.model_fields)
    return []
