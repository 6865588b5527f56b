"""Checks of targets that are whole block devices, and of what is done to targets beforehand."""

from __future__ import annotations

from collections.abc import Iterator

from iolab.model.state import Purge
from iolab.plan.document import Document, Faults
from iolab.plan.filesystem_checks import check_filesystem
from iolab.plan.guest_members import boots_guests
from iolab.plan.key_value_tables import DbBenchTable, YcsbTable
from iolab.plan.locate import Path
from iolab.plan.study_file import ConfigurationTable, HostTable, MetadataTable, WorkloadTable
from iolab.plan.tables import Tables, start
from iolab.plan.target_tables import XFS, PreconditionTable, Table, TargetTable
from iolab.plan.wording import shown

AnyTarget = TargetTable | ConfigurationTable | HostTable


def check_devices(document: Document, tables: Tables, faults: Faults) -> None:
    """Add every fault of device targets and of preconditioning that no single key shows."""
    places = list(_places(tables))
    for path, table in places:
        _check_pair(document, path, table, faults)
    devices = [path for path, table in places if table.device]
    folders = [path for path, table in places if table.path]
    if devices:
        _check_with_devices(document, tables, faults)
    _check_trims(document, tables, faults, has_folder=bool(folders))
    _check_precondition(document, tables.precondition, devices, folders, faults)
    check_filesystem(document, tables, devices, folders, faults)


def _places(tables: Tables) -> Iterator[tuple[Path, AnyTarget]]:
    yield ("target",), tables.target
    for item, configuration in tables.read("configuration", ConfigurationTable):
        yield item.path, configuration
    for item, host in tables.read("host", HostTable):
        yield item.path, host


def _check_pair(document: Document, path: Path, table: AnyTarget, faults: Faults) -> None:
    """A device is opted into by its path and its serial, both."""
    where = "[target]" if isinstance(table, TargetTable) else start(document, path)
    if table.device and table.path:
        happened = f"{where} has two targets, the device {shown(table.device)} and "
        happened += f"the directory {shown(table.path)}."
        faults.add(document.where((*path, "device")), happened, "Leave one of them out.")
    if table.device and not table.serial:
        happened = f"{where} has the device {shown(table.device)} but no serial."
        do = "Give its serial too: all that is on that device will be destroyed."
        faults.add(document.where((*path, "device")), happened, do)
    if table.serial and not table.device:
        happened = f"{where} has the serial {shown(table.serial)} but no device."
        faults.add(document.where((*path, "serial")), happened, "Give the device's path too.")


def _check_with_devices(document: Document, tables: Tables, faults: Faults) -> None:
    """What needs files cannot be done on a device."""
    for key in ("rotate", "keep_files"):
        if getattr(tables.target, key):
            happened = f"{key} of [target] does not go with a device, which holds no files."
            faults.add(document.where(("target", key)), happened, "Leave one of them out.")
    for item, _ in tables.read("workload", MetadataTable):
        happened = f"{start(document, item.path)} works on files, but the target is a device."
        do = "Leave it out, or give a directory as the target."
        faults.add(document.where(item.path), happened, do)
    for item, key_value in tables.read("workload", Table):
        if not isinstance(key_value, DbBenchTable | YcsbTable) or tables.target.filesystem == XFS:
            continue
        happened = f"{start(document, item.path)} needs a file system, but the target is a device."
        do = f"Write filesystem = '{XFS}' under [target] to make one there, or give a directory."
        faults.add(document.where(item.path), happened, do)
    for item, workload in tables.read("workload", WorkloadTable):
        if tables.precondition.fill == 0 and not workload.rw.writes:
            what = "trims" if workload.rw.trims else "reads"
            happened = (
                f"{start(document, item.path)} {what}, but with fill = 0 nothing was written."
            )
            do = "Set precondition.fill = 1 or more, or keep to workloads that write."
            faults.add(document.where(item.path), happened, do)


def _check_trims(document: Document, tables: Tables, faults: Faults, *, has_folder: bool) -> None:
    """Trims are of a block device: fio has none of files, and those of guests stay in the guest."""
    if boots_guests(tables):
        where = "the disks of booted guests do not pass on"
    elif tables.target.filesystem == XFS:
        where = "files on an XFS do not take"
    elif has_folder:
        where = "files in a directory do not take"
    else:
        return
    for item, workload in tables.read("workload", WorkloadTable):
        if workload.rw.trims:
            happened = f"{start(document, item.path)} has rw = {shown(workload.rw.value)}, "
            happened += f"which {where}."
            do = "Give a block device as the target (device and serial), or another rw."
            faults.add_once(document.where((*item.path, "rw")), "rw trims", happened, do)


def _check_precondition(
    document: Document,
    table: PreconditionTable,
    devices: list[Path],
    folders: list[Path],
    faults: Faults,
) -> None:
    purge = table.purge
    origin = document.where(("precondition", "purge"))
    if purge is not Purge.NONE and purge.of_device and folders:
        happened = f"purge of [precondition] is {shown(purge.value)}, but a target is a directory."
        faults.add(origin, happened, "Use 'fstrim' or 'recreate', or give a device as the target.")
    if purge is not Purge.NONE and not purge.of_device and devices:
        happened = f"purge of [precondition] is {shown(purge.value)}, but a target is a device."
        faults.add(origin, happened, "Use 'discard', 'nvme-format' or 'sanitize'.")
    if 0 < table.fill < 1 or (table.fill == 0 and folders):
        happened = f"fill of [precondition] is {table.fill:g}."
        do = "Give 1 or more; 0, which leaves a purged device fresh, is for devices alone."
        faults.add(document.where(("precondition", "fill")), happened, do)
    for key in ("round", "rounds"):
        if not table.steady and ("precondition", key) in document.lines:
            happened = f"{key} of [precondition] has no effect without steady = true."
            faults.add(document.where(("precondition", key)), happened, "Leave it out, or add it.")
