"""The inventory: a file of hosts, given with `--hosts`, that takes the place of a study's own.

The same `[[host]]` tables as in a study, and `[defaults]` for what all of them share, so that a
study of one host becomes a study of a fleet without a change.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Final

from pydantic import Field

from iolab.errors import StudyError
from iolab.model.host import HostSpec, Role
from iolab.plan import routes, values
from iolab.plan.build import host_spec
from iolab.plan.cross import check_hosts
from iolab.plan.document import Document, Faults, Origin, read_document
from iolab.plan.expand import expand_hosts
from iolab.plan.locate import Path
from iolab.plan.study_file import (
    FORMAT,
    Devices,
    HostTable,
    NumJobs,
    Port,
    Room,
    WrittenKind,
)
from iolab.plan.tables import read_items, read_table
from iolab.plan.target_tables import Table, TargetPath
from iolab.plan.wording import shown


@dataclass(frozen=True, slots=True)
class Inventory:
    """The text of an inventory and the name by which its faults call it."""

    text: str
    file_name: str


class DefaultsTable(Table):
    """`[defaults]`: what every host has that does not say otherwise."""

    kind: WrittenKind | None = None
    path: TargetPath | None = None
    user: Annotated[str, routes.user()] | None = None
    port: Port | None = None
    jump: Annotated[list[Annotated[str, routes.hop()]], values.Listed(lone=True)] | None = None
    key: Annotated[str, routes.file()] | None = None
    known_hosts: Annotated[str, routes.file()] | None = None
    devices: Devices | None = None
    numjobs: NumJobs | None = None
    cores: Room | None = None
    numa_nodes: Room | None = None
    queues: Room | None = None


class InventoryHeading(Table):
    """The keys before the first table."""

    format: Annotated[int, values.exactly(FORMAT, f"This iolab reads format = {FORMAT}.")]


class InventoryFile(InventoryHeading):
    """The whole file."""

    defaults: DefaultsTable = DefaultsTable()
    host: Annotated[list[HostTable], Field(min_length=1)]


InventoryHeading.whole = InventoryFile

SSH_DEFAULTS: Final = ("user", "port", "jump", "key", "known_hosts")
"""Defaults that a host of another kind than ssh does without."""

ROOM_DEFAULTS: Final = ("cores", "numa_nodes", "queues")
"""Defaults that are for hypervisors alone."""


def parse_inventory(text: str, file_name: str) -> tuple[HostSpec, ...]:
    """The hosts of an inventory; StudyError with every fault, each with its line."""
    faults = Faults()
    document = read_inventory(Inventory(text, file_name), faults)
    if document is None:
        raise StudyError(faults.all)
    expand_hosts(document, faults)
    items = read_items(document, "host", faults)
    check_hosts(document, items, faults)
    if faults.all:
        raise StudyError(faults.all)
    return tuple(host_spec(item.table) for item in items if isinstance(item.table, HostTable))


def inventory_schema() -> dict[str, Any]:
    """JSON Schema of an inventory file."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "An iolab inventory",
        **InventoryFile.model_json_schema(),
    }


def read_inventory(inventory: Inventory, faults: Faults) -> Document | None:
    """The inventory's hosts as a study would have them, their ranges not yet expanded.

    None when the text is no TOML; else every fault outside of the hosts has been added.
    """
    document = read_document(inventory.text, inventory.file_name, faults)
    if document is None:
        return None
    tree = document.tree
    heading = {key: value for key, value in tree.items() if key not in ("defaults", "host")}
    read_table(document, InventoryHeading, heading, (), faults)
    defaults = tree.get("defaults", {})
    if not isinstance(defaults, dict):
        happened = f"defaults is {shown(defaults)}, not a table."
        do = "Write [defaults] on a line of its own, its keys below."
        faults.add(document.where(("defaults",)), happened, do)
        defaults = {}
    good = read_table(document, DefaultsTable, defaults, ("defaults",), faults)
    kept = good.model_fields_set if good is not None else set()
    hosts = tree.get("host", [])
    if not hosts:
        do = "Describe at least one under [[host]]."
        faults.add(document.where(()), "The inventory has no host.", do)
    _share(document, {key: value for key, value in defaults.items() if key in kept})
    return document


def take_hosts(document: Document, hosts: Document) -> None:
    """Put the hosts of an inventory in place of a study's; their faults keep their own lines."""
    written = hosts.tree.get("host", [])
    document.tree["host"] = written
    origins: dict[Path, Origin] = {("host",): hosts.where(("host",))}
    for index, element in enumerate(written if isinstance(written, list) else ()):
        origins["host", index] = hosts.where(("host", index))
        for key in element if isinstance(element, dict) else ():
            origins["host", index, key] = hosts.where(("host", index, key))
    document.overrides.update(origins)


def _share(document: Document, defaults: Mapping[str, Any]) -> None:
    """Give every host the defaults that it does not write itself; without a kind it is ssh's."""
    written = document.tree.get("host")
    for index, element in enumerate(written if isinstance(written, list) else ()):
        if not isinstance(element, dict):
            continue
        kind = element.get("kind", defaults.get("kind"))
        if kind is None:
            kind = "command" if "command" in element else "ssh"
        for key, value in {**defaults, "kind": kind}.items():
            if key in element or (key in SSH_DEFAULTS and kind != "ssh"):
                continue
            if key == "numjobs" and element.get("role", Role.CLIENT) != Role.CLIENT:
                continue  # a default for all who make load
            if key in ROOM_DEFAULTS and element.get("role") != Role.HYPERVISOR:
                continue
            element[key] = value
            at: Path = ("defaults", key) if key in defaults else ("host", index)
            document.overrides["host", index, key] = document.where(at)
