"""Checks of the file system that a session makes for itself, over several keys."""

from __future__ import annotations

from iolab.plan.document import Document, Faults
from iolab.plan.locate import Path
from iolab.plan.study_file import MetadataTable, WorkloadTable
from iolab.plan.tables import Tables, start
from iolab.plan.target_tables import XFS


def check_filesystem(
    document: Document,
    tables: Tables,
    devices: list[Path],
    folders: list[Path],
    faults: Faults,
) -> None:
    """Add every fault of `filesystem` and `image`; `devices`, `folders` are tables with targets."""
    target = tables.target
    written = document.tree.get("target")
    keys = written if isinstance(written, dict) else {}
    image = document.where(("target", "image"))
    if target.filesystem != XFS:
        if target.image is not None and "filesystem" not in keys:
            happened = "[target] has an image but no filesystem to make in it."
            faults.add(image, happened, f"Write filesystem = '{XFS}', or leave the image out.")
        return
    origin = document.where(("target", "filesystem"))
    if "image" not in keys and (folders or not devices):
        happened = f"filesystem of [target] is '{XFS}', but nothing is said to make it on."
        do = "Write for example image = '4g', or give a device with its serial."
        faults.add(origin, happened, do)
    if target.image is not None and devices:
        happened = "[target] has an image, which is a file, but a target is a device."
        faults.add(image, happened, "Leave the image out: the file system is made on the device.")
    if target.rotate:
        happened = f"rotate of [target] does not go with filesystem = '{XFS}': each client has its "
        faults.add(
            document.where(("target", "rotate")), happened + "own.", "Leave one of them out."
        )
    if devices:
        for kind in (WorkloadTable, MetadataTable):
            for item, _ in tables.read("workload", kind):
                happened = (
                    f"{start(document, item.path)} does not go with a file system on a device."
                )
                do = "Leave it out, or measure it as a study of its own."
                faults.add(document.where(item.path), happened, do)
