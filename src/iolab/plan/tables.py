"""From the tree of a study file to its tables, each checked key by key."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from iolab.plan.document import Document, Faults
from iolab.plan.guest_tables import VmTable, stand_in
from iolab.plan.key_value_tables import ServerTable
from iolab.plan.locate import Path
from iolab.plan.method_table import MethodTable
from iolab.plan.study_file import (
    EXAMPLES,
    ITEMS,
    SECTIONS,
    HeadingTable,
    TelemetryTable,
    engines_with,
    table_of,
)
from iolab.plan.target_tables import PreconditionTable, Table, TargetTable
from iolab.plan.values import FAULT
from iolab.plan.wording import shown, suggestion

ELEMENTS_MAX: Final = 1000
"""More workloads, hosts or configurations than any study has."""

TableT = TypeVar("TableT", bound=Table)


@dataclass(frozen=True, slots=True)
class Item:
    """An element of an array of tables: where it is, as written, and read (None if it has faults).

    A key with a fault counts as left out in `table`, so that checks over several keys go on.
    """

    path: Path
    written: dict[str, Any]
    table: Table | None


@dataclass(frozen=True, slots=True)
class Tables:
    """All tables of a study file; `vm` is None where no guests are to be booted."""

    heading: HeadingTable | None
    target: TargetTable
    precondition: PreconditionTable
    method: MethodTable
    telemetry: TelemetryTable
    server: ServerTable
    vm: VmTable | None
    items: dict[str, tuple[Item, ...]]

    def read(self, section: str, kind: type[TableT]) -> list[tuple[Item, TableT]]:
        """The elements of `section` that could be read, as tables of their kind."""
        return [(item, item.table) for item in self.items[section] if isinstance(item.table, kind)]


def read_tables(document: Document, faults: Faults) -> Tables:
    """Every table of the document; what is wrong is added to `faults`."""
    tree = document.tree
    sections = {*SECTIONS, *ITEMS, "scale"}
    heading = {key: value for key, value in tree.items() if key not in sections}
    single = {
        name: _section(document, name, table, faults)
        for name, table in SECTIONS.items()
        if name in tree or table is not VmTable
    }
    target, method, telemetry = (single[name] for name in ("target", "method", "telemetry"))
    before, server, vm = single["precondition"], single["server"], single.get("vm")
    items = {name: read_items(document, name, faults) for name in ITEMS}
    if not items["workload"] and "workload" not in tree:
        do = "Describe at least one under [[workload]]."
        faults.add(document.where(()), "The study has no workload.", do)
    return Tables(
        read_table(document, HeadingTable, heading, (), faults),
        target if isinstance(target, TargetTable) else TargetTable(),
        before if isinstance(before, PreconditionTable) else PreconditionTable(),
        method if isinstance(method, MethodTable) else MethodTable(),
        telemetry if isinstance(telemetry, TelemetryTable) else TelemetryTable(),
        server if isinstance(server, ServerTable) else ServerTable(),
        vm if isinstance(vm, VmTable) else (stand_in(tree["vm"]) if "vm" in tree else None),
        items,
    )


def read_table(
    document: Document, model: type[TableT], written: dict[str, Any], path: Path, faults: Faults
) -> TableT | None:
    """The table written at `path`, without the keys that have faults; None if it needs those."""
    try:
        return model.model_validate(written)
    except ValidationError as error:
        details = error.errors(include_url=False, include_input=True)
        for detail in details:
            _tell(document, model, detail, path, faults)
        wrong = {detail["loc"][0] for detail in details if detail["loc"]}
    rest = copy.copy({key: value for key, value in written.items() if key not in wrong})
    try:
        return model.model_validate(rest)
    except ValidationError:
        return None


def read_items(document: Document, name: str, faults: Faults) -> tuple[Item, ...]:
    """The elements of an array of tables."""
    written = document.tree.get(name, [])
    origin = document.where((name,))
    do = f"Write [[{name}]] on a line of its own before each, with double brackets."
    if not isinstance(written, list):
        faults.add(origin, f"{name} is {shown(written)}, not a list of tables.", do)
        return ()
    if len(written) > ELEMENTS_MAX:
        faults.add(origin, f"There are {len(written)} {name}s.", f"Give at most {ELEMENTS_MAX}.")
        return ()
    items = []
    for index, element in enumerate(written):
        path: Path = (name, index)
        if isinstance(element, dict):
            table = read_table(document, table_of(name, element), element, path, faults)
            items.append(Item(path, element, table))
        else:
            faults.add(document.where(path), f"{name} {index + 1} is {shown(element)}.", do)
    return tuple(items)


def place(document: Document, path: Path) -> str:
    """What people call the table at `path`: `workload 'x'`, `[method]`, or nothing for the root."""
    if not path:
        return ""
    section = str(path[0])
    if section not in ITEMS:
        return f"[{section}]"
    if len(path) < 2 or not isinstance(path[1], int):
        return section
    item = document.tree[section][path[1]]
    name = item.get(ITEMS[section][1]) if isinstance(item, dict) else None
    return f"{section} {shown(name)}" if isinstance(name, str) else f"{section} {path[1] + 1}"


def start(document: Document, path: Path) -> str:
    """The table at `path` as a sentence begins with it."""
    name = place(document, path)
    return name[:1].upper() + name[1:]


def _section(document: Document, name: str, table: type[Table], faults: Faults) -> Table | None:
    written = document.tree.get(name, {})
    if isinstance(written, dict):
        return read_table(document, table, written, (name,), faults)
    faults.add(
        document.where((name,)),
        f"{name} is {shown(written)}, not a table.",
        f"Write [{name}] on a line of its own, its keys below.",
    )
    return None


def _tell(
    document: Document, model: type[Table], detail: ErrorDetails, path: Path, faults: Faults
) -> None:
    """One fault that pydantic found, in our words."""
    full = (*path, *detail["loc"])
    name = ".".join(str(part) for part in detail["loc"] if isinstance(part, str))
    around = place(document, path)
    subject = f"{printable_key(name)} of {around}" if around else printable_key(name)
    kind = detail["type"]
    if kind == FAULT:
        context = detail["ctx"]
        happened, do = f"{subject} {context['happened']}.", str(context["do"])
    elif kind == "extra_forbidden":
        happened = (
            f"Unknown key {shown(str(detail['loc'][-1]))}{f' in {around}' if around else ''}."
        )
        do = suggestion(str(detail["loc"][-1]), _known_keys(model, detail["loc"]), "keys here")
        if len(detail["loc"]) == 1 and (engines := engines_with(name, model)):
            happened = f"{name} of {around} does not go with its engine."
            do = f"Leave it out; it is a key of workloads with engine = {engines}."
    elif kind == "missing":
        happened = f"{start(document, path)} has no {name}." if around else f"There is no {name}."
        do = f"Write for example {name} = {EXAMPLES.get(name, '...')}."
    else:
        what = "a list" if kind == "list_type" else "a table"
        happened, do = f"{subject} is {shown(detail['input'])}.", f"Give {what}."
    faults.add_once(document.where(full), f"{name} {happened.removeprefix(subject)}", happened, do)


def printable_key(name: str) -> str:
    """A key as messages name it: plain when it is a plain word, quoted and escaped otherwise."""
    return name if name.replace(".", "").replace("_", "").isalnum() else shown(name)


def _known_keys(model: type[Table], location: tuple[int | str, ...]) -> list[str]:
    """The keys of the (nested) table that the unknown key was found in."""
    if model.whole is not None:
        return list(model.whole.model_fields)
    if len(location) < 2:
        return list(model.model_fields)
    described = model.model_fields[str(location[0])].annotation
    inner = [kind for kind in (described, *getattr(described, "__args__", ())) if kind is not None]
    for kind in inner:
        if isinstance(kind, type) and issubclass(kind, Table):
            return list(kind.model_fields)
    return []
