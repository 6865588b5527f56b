"""Checks of what the hosts of a study do beside each other: storage nodes, rotation, own jobs."""

from __future__ import annotations

from typing import Final

from iolab.model.host import Role
from iolab.plan.document import Document, Faults
from iolab.plan.guest_members import boots_guests, fewest_clients, guest_tables, with_paths
from iolab.plan.guest_tables import HOSTS, PER_NODE
from iolab.plan.study_file import ConfigurationTable, HostTable, WorkloadTable
from iolab.plan.tables import Item, Tables, place, start
from iolab.plan.wording import shown, suggestion

FILES_PER_HOST_MAX: Final = 100_000
"""Files that one data set may have on a client: numjobs x files."""


def check_fleet(document: Document, tables: Tables, faults: Faults) -> None:
    """Add every fault of storage nodes, of rotation and of hosts' own numbers of jobs."""
    _check_host_jobs(document, tables, faults)
    for item, workload in tables.read("workload", WorkloadTable):
        if workload.hosts is not None:
            _check_host_counts(document, item, max(workload.hosts), tables, faults)
    roles = {host.name: host.role for _, host in tables.read("host", HostTable)}
    written = {
        name for host in tables.items["host"] if isinstance(name := host.written.get("name"), str)
    }
    for item, configuration in tables.read("configuration", ConfigurationTable):
        _check_storage(document, item, configuration, roles, faults)
        # A client whose table has a fault is still a client: only whole fleets can be counted.
        if len(roles) == len(written):
            _check_rotation(document, item, configuration, tables, faults)


def _check_storage(
    document: Document,
    item: Item,
    configuration: ConfigurationTable,
    roles: dict[str, Role],
    faults: Faults,
) -> None:
    """Only hosts of role storage serve a target; hypervisors are watched in every run anyway."""
    nodes = [name for name, role in roles.items() if role is Role.STORAGE]
    for index, name in enumerate(configuration.storage or ()):
        origin = document.where((*item.path, "storage", index))
        around = place(document, item.path)
        if name not in roles:
            happened = f"storage of {around} names {shown(name)}, which is no host."
            faults.add(origin, happened, suggestion(name, nodes, "storage nodes"))
        elif roles[name] is not Role.STORAGE:
            happened = (
                f"storage of {around} names {shown(name)}, which has the role "
                f"{shown(roles[name].value)}."
            )
            do = "Leave it out, or write role = 'storage' for that host."
            faults.add(origin, happened, do)


def _check_rotation(
    document: Document,
    item: Item,
    configuration: ConfigurationTable,
    tables: Tables,
    faults: Faults,
) -> None:
    """A client can read another's files only where there is another."""
    rotate = tables.target.rotate
    whole = len(with_paths(tables, configuration))
    count = fewest_clients(tables, configuration)
    if rotate == 0 or rotate < count or count == 0 or boots_guests(tables):
        return
    one = "1 client" if count == 1 else f"{count} clients"
    at_least = "" if count == whole else " in its smallest fleet"
    happened = f"rotate of [target] is {rotate}, but {place(document, item.path)} has {one}"
    happened += f"{at_least}."
    do = (
        "Leave rotate out; one client has only files of its own."
        if count == 1
        else f"Give from 1 to {count - 1}: so far can a client's files be handed on."
    )
    faults.add(document.where(("target", "rotate")), happened, do)


def _check_host_counts(
    document: Document, item: Item, most: int, tables: Tables, faults: Faults
) -> None:
    """A workload's numbers of hosts need so many clients in every configuration, and no guests."""
    origin = document.where((*item.path, HOSTS))
    around = f"{start(document, item.path)} has {HOSTS} = {most}"
    if boots_guests(tables) or guest_tables(tables):
        happened = f"{start(document, item.path)} has {HOSTS}, but the study's clients are guests."
        faults.add_once(origin, HOSTS, happened, f"Leave it out, or write {PER_NODE}.")
        return
    for other, configuration in tables.read("configuration", ConfigurationTable):
        count = len(with_paths(tables, configuration))
        if 0 < count < most:
            clients = "1 client" if count == 1 else f"{count} clients"
            happened = f"{around}, but {place(document, other.path)} has {clients}."
            faults.add_once(origin, f"{HOSTS} {count}", happened, f"Give at most {count}.")


def _check_host_jobs(document: Document, tables: Tables, faults: Faults) -> None:
    """Jobs are for those who make load, and as many as their files allow."""
    files = [(item, load.files) for item, load in tables.read("workload", WorkloadTable)]
    most = max((count for _, count in files), default=0)
    for item, host in tables.read("host", HostTable):
        if host.numjobs is None:
            continue
        origin = document.where((*item.path, "numjobs"))
        if host.role is not Role.CLIENT:
            happened = (
                f"{start(document, item.path)} has numjobs = {host.numjobs}, but the role "
                f"{shown(host.role.value)}, which makes no load."
            )
            faults.add_once(origin, "numjobs", happened, "Leave numjobs out.")
        elif host.numjobs * most > FILES_PER_HOST_MAX:
            happened = (
                f"{start(document, item.path)} has numjobs = {host.numjobs}, which makes "
                f"{host.numjobs * most} files there."
            )
            do = f"Keep numjobs x files at most {FILES_PER_HOST_MAX}."
            faults.add_once(origin, "numjobs files", happened, do)
