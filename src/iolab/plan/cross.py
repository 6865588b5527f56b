"""Checks over several keys of a study: what fits together, what names what, what is too much."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, Final

from iolab.model.engine import EngineName
from iolab.model.fio_options import FIO_OPTIONS, SYNC_IOENGINES, option_text, value_fits
from iolab.model.host import HostKind, Role
from iolab.model.native_options import WHOLE, whole_percent_of
from iolab.plan.aim_checks import check_aims
from iolab.plan.document import Document, Faults
from iolab.plan.fleet import FILES_PER_HOST_MAX, check_fleet
from iolab.plan.guest_checks import check_guests, check_nodes
from iolab.plan.guest_members import boots_guests, guest_tables, node_names, with_paths
from iolab.plan.key_value_checks import check_key_values
from iolab.plan.metadata_checks import check_metadata
from iolab.plan.method_table import check_method
from iolab.plan.native_checks import check_native
from iolab.plan.rate_checks import check_rates
from iolab.plan.study_file import (
    EVERY_AXIS,
    ITEMS,
    SSH_KEYS,
    ConfigurationTable,
    HostTable,
    MetadataTable,
    WorkloadTable,
    kind_of,
)
from iolab.plan.tables import Item, Tables, place, start
from iolab.plan.wording import nearest, shown, suggestion
from iolab.units import format_bytes, parse_size

POINTS_MAX: Final = 10_000
"""At the shortest useful run (10 s) this is more than a day; a larger product is a slip."""

RUNS_MAX: Final = 100_000
"""Points times repeats: what a session directory and its readers are made for."""


def check_tables(document: Document, tables: Tables, faults: Faults) -> None:
    """Add every fault that no single key shows."""
    for section in ("configuration", "workload"):
        _check_names(document, tables.items[section], ITEMS[section][1], faults)
    check_hosts(document, tables.items["host"], faults)
    for item, configuration in tables.read("configuration", ConfigurationTable):
        _check_hosts_known(document, item, configuration, tables, faults)
    for item, workload in tables.read("workload", WorkloadTable):
        _check_mix(document, item, workload, faults)
        check_rates(document, item, workload, faults)
        _check_depth(document, item, workload, faults)
        _check_sizes(document, item, workload, faults)
    for item in tables.items["workload"]:
        _check_options(document, item, faults)
    check_native(document, tables, faults)
    check_fleet(document, tables, faults)
    check_guests(document, tables, faults)
    check_metadata(document, tables, faults)
    check_key_values(document, tables, faults)
    check_aims(document, tables, faults)
    check_method(document, tables.method, faults)
    _check_count(document, tables, faults)


def check_hosts(document: Document, items: tuple[Item, ...], faults: Faults) -> None:
    """Add the faults of hosts among themselves: twins, and keys that do not go together."""
    _check_names(document, items, ITEMS["host"][1], faults)
    check_nodes(document, items, faults)
    first: dict[object, str] = {}
    for item in items:
        if not isinstance(item.table, HostTable):
            continue
        host = item.table
        _check_host(document, item, host, faults)
        if kind_of(host) is not HostKind.SSH:
            continue
        machine = (host.address or host.name, host.port, tuple(host.jump or ()))
        other = first.setdefault(machine, host.name)
        if other != host.name:
            happened = f"{start(document, item.path)} is the same machine as {shown(other)}."
            do = "Give each its own address; a machine that counts twice doubles nothing."
            faults.add(document.where(item.path), happened, do)


def check_paths(document: Document, tables: Tables, *, required: bool, faults: Faults) -> None:
    """Add the faults of target paths: none, or two for one place."""
    hosts = {host.name: (item, host) for item, host in tables.read("host", HostTable)}
    target = document.tree.get("target")
    common = isinstance(target, dict) and ("path" in target or "device" in target)
    for item, configuration in tables.read("configuration", ConfigurationTable):
        for name in with_paths(tables, configuration):
            host = hosts[name][1] if name in hosts else None
            if host is not None and _target_of(host) and _target_of(configuration):
                faults.add(
                    document.where((*item.path, "path")),
                    f"Host {shown(name)} of {place(document, item.path)} has two target paths, "
                    f"{shown(_target_of(configuration))} and its own {shown(_target_of(host))}.",
                    "Leave one of them out.",
                )
            elif required and not common and not _path_written(item, hosts.get(name)):
                faults.add_once(
                    document.where(item.path),
                    "path",
                    "There is no target path.",
                    "Give --path DIR, or path = 'DIR' under [target].",
                )


def point_count(workload: dict[str, Any]) -> int:
    """How many points a workload makes, counted without making them."""
    lists = [workload[axis] for axis in EVERY_AXIS if isinstance(workload.get(axis), list)]
    return math.prod(len(values) for values in lists)


def _path_written(configuration: Item, host: tuple[Item, HostTable] | None) -> bool:
    """Whether there is a path at all; one with a fault of its own is not missing as well."""
    items = (configuration, *(host[:1] if host is not None else ()))
    return any(key in item.written for item in items for key in ("path", "device"))


def _target_of(table: ConfigurationTable | HostTable) -> str | None:
    return table.path or table.device


def _check_names(document: Document, items: Iterable[Item], key: str, faults: Faults) -> None:
    first: dict[str, Item] = {}
    for item in items:
        name = item.written.get(key)
        if not isinstance(name, str):
            continue
        if name in first:
            line = document.where((*first[name].path, key)).line
            before = f" at line {line}" if line else ""
            happened = f"{start(document, item.path)} has the {key} of another{before}."
            faults.add(
                document.where((*item.path, key)), happened, f"Give each an {key} of its own."
            )
        first.setdefault(name, item)


def _check_host(document: Document, item: Item, host: HostTable, faults: Faults) -> None:
    if host.kind is HostKind.COMMAND and not item.written.get("command"):
        do = "Give the arguments that reach it, as in command = ['ssh', 'client-1']."
        happened = f"{start(document, item.path)} is of kind 'command' but has no command."
        faults.add(document.where((*item.path, "kind")), happened, do)
    kind = kind_of(host)
    if kind is not HostKind.COMMAND and host.command:
        happened = f"{start(document, item.path)} is of kind {shown(kind.value)} but has a command."
        do = "Leave the command out, or write kind = 'command'."
        faults.add(document.where((*item.path, "command")), happened, do)
    for key in SSH_KEYS:
        if kind is not HostKind.SSH and getattr(host, key) is not None:
            happened = f"{start(document, item.path)} is of kind {shown(kind.value)} but has {key}."
            do = f"Leave {key} out, or write kind = 'ssh'."
            faults.add(document.where((*item.path, key)), happened, do)


def _check_hosts_known(
    document: Document,
    item: Item,
    configuration: ConfigurationTable,
    tables: Tables,
    faults: Faults,
) -> None:
    known = [
        name for host in tables.items["host"] if isinstance(name := host.written.get("name"), str)
    ]
    others = {
        host.name: host.role
        for _, host in tables.read("host", HostTable)
        if host.role is not Role.CLIENT
    }
    booting = boots_guests(tables)
    nodes = node_names(tables) if booting else [guest.node for guest in guest_tables(tables)]
    for index, name in enumerate(configuration.hosts or ()):
        if name in nodes and name in known:
            continue
        if name not in known:
            happened = (
                f"hosts of {place(document, item.path)} names {shown(name)}, which is no host."
            )
            do = suggestion(name, known, "hosts")
            faults.add(document.where((*item.path, "hosts", index)), happened, do)
        elif name in others:
            happened = (
                f"hosts of {place(document, item.path)} names {shown(name)}, "
                f"which has the role {shown(others[name].value)} and makes no load."
            )
            do = "Leave it out, or write role = 'client'."
            faults.add(document.where((*item.path, "hosts", index)), happened, do)
    if configuration.hosts is None and known and len(others) == len(known) and not booting:
        happened = f"{start(document, item.path)} has no client among its hosts."
        faults.add(document.where(item.path), happened, "Write role = 'client' for at least one.")


def _check_mix(document: Document, item: Item, workload: WorkloadTable, faults: Faults) -> None:
    if workload.rwmixread is not None and not workload.rw.mixed:
        happened = (
            f"{start(document, item.path)} has rwmixread = {shown(item.written['rwmixread'])} "
            f"but rw = {shown(workload.rw.value)} does not mix."
        )
        do = "Leave rwmixread out, or write rw = 'randrw' or 'rw'."
        origin = document.where((*item.path, "rwmixread"))
        faults.add_once(origin, "rwmixread", happened, do)


def _check_depth(document: Document, item: Item, workload: WorkloadTable, faults: Faults) -> None:
    if workload.ioengine in SYNC_IOENGINES and max(workload.iodepth) > 1:
        happened = (
            f"{start(document, item.path)} has iodepth = {max(workload.iodepth)} but ioengine = "
            f"{shown(workload.ioengine)} keeps one I/O in flight."
        )
        do = "Write iodepth = 1 and raise numjobs, or use ioengine = 'libaio' or 'io_uring'."
        faults.add_once(document.where((*item.path, "ioengine")), "ioengine", happened, do)


def _check_sizes(document: Document, item: Item, workload: WorkloadTable, faults: Faults) -> None:
    """Whole blocks only: a last part of a block would never be read or written."""
    for index, filesize in enumerate(workload.filesize):
        blocks = [bs for bs in workload.bs if parse_size(filesize) % parse_size(bs)]
        if blocks:
            happened = (
                f"filesize of {place(document, item.path)} is {shown(filesize)}, "
                f"which is not a multiple of bs = {shown(blocks[0])}."
            )
            do = f"Give a multiple of {format_bytes(parse_size(blocks[0]))}."
            origin = document.where((*item.path, "filesize", index))
            faults.add_once(origin, "filesize", happened, do)
    if workload.shared_file and workload.files > 1:
        happened = f"{start(document, item.path)} has shared_file and files = {workload.files}."
        do = "Leave one of them out: all jobs share one file, or each has its own."
        faults.add_once(document.where((*item.path, "shared_file")), "shared_file", happened, do)
    files = max(workload.numjobs) * workload.files
    if files > FILES_PER_HOST_MAX:
        happened = f"{start(document, item.path)} makes {files} files on each host."
        do = f"Keep numjobs x files at most {FILES_PER_HOST_MAX}."
        faults.add(document.where((*item.path, "files")), happened, do)


def _check_options(document: Document, item: Item, faults: Faults) -> None:
    """The options by themselves, so that they are told also where another key is at fault."""
    written = item.written.get("fio")
    workload = item.table if isinstance(item.table, WorkloadTable) else None
    for name, value in written.items() if isinstance(written, dict) else ():
        if not isinstance(value, str | int | float):
            continue  # it is told of where the table is read
        origin = document.where((*item.path, "fio", name))
        if name not in FIO_OPTIONS:
            happened = f"fio option {shown(name)} of {place(document, item.path)} is not allowed."
            faults.add_once(origin, name, happened, _instead_of(name))
            continue
        option = FIO_OPTIONS[name]
        if not value_fits(name, option_text(value)):
            happened = f"fio option {name} of {place(document, item.path)} is {shown(value)}."
            faults.add_once(origin, name, happened, f"Write for example {shown(option.example)}.")
        by_fio = workload if workload and workload.engine is EngineName.FIO else None
        if by_fio and name == "bssplit" and value_fits(name, option_text(value)):
            _check_split(document, item, option_text(value), faults)
        if by_fio and option.ioengines and by_fio.ioengine not in option.ioengines:
            happened = (
                f"fio option {name} of {place(document, item.path)} does not go with "
                f"ioengine = {shown(by_fio.ioengine)}."
            )
            do = f"It belongs to {' and '.join(option.ioengines)}."
            faults.add_once(origin, f"{name} ioengine", happened, do)


def _check_split(document: Document, item: Item, split: str, faults: Faults) -> None:
    """Shares of blocks that fio can draw; what the native engine cannot is told with the rest."""
    for side in split.split(","):
        percent = whole_percent_of(side)
        if not 0 < percent <= WHOLE:
            happened = f"The shares of fio option bssplit of {place(document, item.path)} come to "
            happened += f"{percent} % in {shown(side)}."
            origin = document.where((*item.path, "fio", "bssplit"))
            faults.add_once(origin, "bssplit shares", happened, "Give shares of 1 to 100 %.")


def _instead_of(option: str) -> str:
    if option in WorkloadTable.model_fields:
        return f"Write {option} as a key of the workload itself."
    if nearest(option, FIO_OPTIONS) is not None:
        return suggestion(option, FIO_OPTIONS, "allowed options")
    return "docs/reference/study.md lists the options that are."


def _repeats(item: Item, tables: Tables) -> int:
    """How often each point of a workload runs."""
    own = item.table.iterations if isinstance(item.table, MetadataTable) else None
    return own or tables.method.repeats


def _check_count(document: Document, tables: Tables, faults: Faults) -> None:
    """Too large a product is found by multiplying, before any point is made."""
    configurations = max(len(tables.items["configuration"]), 1)
    counts = [point_count(item.written) for item in tables.items["workload"]]
    points = configurations * sum(counts)
    runs = configurations * sum(
        count * _repeats(item, tables)
        for count, item in zip(counts, tables.items["workload"], strict=True)
    )
    if points > POINTS_MAX:
        largest = tables.items["workload"][counts.index(max(counts))]
        happened = (
            f"The study has {points} points, {max(counts)} in {place(document, largest.path)}."
        )
        faults.add(
            document.where(largest.path), happened, f"Vary less: at most {POINTS_MAX} are planned."
        )
    elif runs > RUNS_MAX:
        repeats = max(_repeats(item, tables) for item in tables.items["workload"])
        happened = f"The study has {runs} runs: {points} points, {repeats} repeats."
        faults.add(
            document.where(("method", "repeats")), happened, f"At most {RUNS_MAX} are planned."
        )
