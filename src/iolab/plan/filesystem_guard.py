"""Whether hosts can have a file system of the session's own, and can bound memory. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from iolab.errors import Fault
from iolab.model.host import TargetFacts, TargetProbe
from iolab.model.key_value import KeyValueJob
from iolab.model.metadata import MetadataJob
from iolab.model.run import Plan
from iolab.model.study import Study
from iolab.model.ycsb import ServerKind, YcsbJob
from iolab.plan.budget import with_spare
from iolab.plan.targets import Target, data_sets_at
from iolab.plan.wording import shown
from iolab.units import format_bytes

LEAST_IMAGE_BYTES: Final = 300 << 20
"""mkfs.xfs makes nothing smaller since xfsprogs 5.19."""

XFS_OVERHEAD: Final = 1.05
"""What a file system needs beside its files: its log and its tables, in an image of gigabytes."""


def asks_rights(study: Study) -> bool:
    """Whether hosts need a right that not every user there has."""
    return study.target.make_xfs or bounds_memory(study)


def bounds_memory(study: Study) -> bool:
    """Whether any process of the study is to have a bound of memory."""
    jobs = (workload.job for workload in study.workloads)
    if any(isinstance(job, KeyValueJob | YcsbJob) and job.memory_bytes for job in jobs):
        return True
    return study.server.kind is ServerKind.MANAGED and bool(study.server.memory_bytes)


def rights_faults(study: Study, target: Target, probe: TargetProbe | None) -> list[Fault]:
    """What the host's agent may not do there; nothing where it may, or was not tried."""
    host = shown(target.host)
    if probe is None:
        return []
    faults = []
    if study.target.make_xfs and probe.mount_error is not None:
        happened = f"Host {host} cannot have a file system of its own: {shown(probe.mount_error)}."
        do = "Run the agent there as root, or give a directory on an XFS and leave filesystem out."
        faults.append(Fault(happened, do))
    if bounds_memory(study) and probe.memory_error is not None:
        happened = f"Host {host} cannot bound memory: {shown(probe.memory_error)}."
        do = "Run the agent there as root, where control groups of memory are handed on; or leave "
        faults.append(Fault(happened, f"{do}workload.*.memory and server.memory out."))
    return faults


def filesystem_faults(
    study: Study, plan: Plan, target: Target, seen: TargetFacts | None, present_bytes: int
) -> list[Fault]:
    """Why no file system of the session's own can be made on a target that may be written.

    `seen` is the directory for the image, None for a device. `present_bytes` is what the image that
    an earlier session kept there has already.
    """
    faults = list(_unfit(study, plan, target))
    image = study.target.image_bytes
    if target.serial is not None or seen is None:
        return faults
    where = f"{shown(target.path)} on host {shown(target.host)}"
    if image is None:
        happened = f"The XFS in {where} has no size."
        return [*faults, Fault(happened, "Set target.image, or name a device.")]
    if image < LEAST_IMAGE_BYTES:
        happened = f"An image of {format_bytes(image)} is too small for an XFS in {where}."
        do = f"Set target.image to at least {format_bytes(LEAST_IMAGE_BYTES)}."
        return [*faults, Fault(happened, do)]
    files = sum(item.bytes_per_host for item in data_sets_at(plan, target))
    if files * XFS_OVERHEAD > image:
        happened = (
            f"The image of {format_bytes(image)} in {where} is too small for files of "
            f"{format_bytes(files)}."
        )
        do = "Set a larger target.image, or a smaller workload.*.filesize or numjobs."
        faults.append(Fault(happened, do))
    missing = max(image - present_bytes, 0)
    if missing and seen.free_bytes < with_spare(missing):
        happened = (
            f"{where} has {format_bytes(seen.free_bytes)} free, the image needs "
            f"{format_bytes(with_spare(missing))}."
        )
        faults.append(Fault(happened, "Make room, give another path, or set a smaller image."))
    return faults


def _unfit(study: Study, plan: Plan, target: Target) -> Iterator[Fault]:
    """What a file system that only one host sees, inside its scratch folder, cannot serve."""
    here = [point.job for point in plan.points if point.configuration in target.configurations]
    if any(isinstance(job, MetadataJob) for job in here):
        happened = "Metadata load is to run on an XFS that the session makes, which it cannot."
        yield Fault(happened, "Give a directory on an XFS, and leave target.filesystem out.")
    if study.target.rotate:
        happened = "With target.rotate clients read each other's files, which each has on its own."
        yield Fault(happened, "Leave target.rotate or target.filesystem out.")
