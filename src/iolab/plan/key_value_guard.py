"""Whether hosts have what key-value load needs: programs, and room for databases and copies."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from iolab.errors import Fault
from iolab.model.db_bench_options import PROGRAMS
from iolab.model.host import DeviceFacts, HostFacts
from iolab.model.key_value import KeyValueJob
from iolab.model.run import Plan
from iolab.model.study import Study
from iolab.model.ycsb import YcsbJob
from iolab.plan.budget import ASSUMED_WRITE_BYTES_PER_S, with_spare
from iolab.plan.key_value_budget import key_value_space
from iolab.plan.targets import Target, targets_of
from iolab.plan.wording import shown
from iolab.units import format_bytes

MAKE_XFS: Final = "mkfs.xfs"

_INSTALL: Final = {
    "db_bench": "Install rocksdb-tools there, or name it in workload.*.db_bench.db_bench.",
    "sst_dump": "Install rocksdb-tools there, or name it in workload.*.db_bench.sst_dump.",
    "java": "Install openjdk-17-jre-headless there, or name its program in server.java.",
    MAKE_XFS: "Install xfsprogs there, or give a directory on an XFS and leave filesystem out.",
}
_ROOM: Final = "Make room, give another path, or set fewer workload.*.keys or records."


def wanted_tools(study: Study) -> dict[str, tuple[str, list[str]]]:
    """What key-value load needs on clients: by program its kind, and what asks for its version."""
    found: dict[str, tuple[str, list[str]]] = {}
    for workload in study.workloads:
        job = workload.job
        if isinstance(job, KeyValueJob):
            for kind in PROGRAMS:
                program = dict(job.options).get(kind, kind)
                found[program] = (kind, [program, "--version"])
        elif isinstance(job, YcsbJob):
            found[study.server.java] = ("java", [study.server.java, "-version"])
    if study.target.make_xfs:
        found[MAKE_XFS] = (MAKE_XFS, [MAKE_XFS, "-V"])
    return found


def key_value_faults(
    study: Study,
    plan: Plan,
    facts: Mapping[str, HostFacts],
    devices: Mapping[str, DeviceFacts],
) -> list[Fault]:
    """Programs that are missing, and targets and images too small for what the load needs.

    Both mappings are by `Target.key`. A host that was not asked for a program may have it.
    """
    faults: list[Fault] = []
    for target in targets_of(study):
        seen = facts.get(target.key)
        if seen is None:
            continue
        if target.key == target.host:
            faults += _missing(study, target.host, seen)
        fault = _room_fault(study, plan, target, seen, devices.get(target.key))
        if fault is not None:
            faults.append(fault)
    return faults


def _missing(study: Study, host: str, facts: HostFacts) -> Iterator[Fault]:
    for program, (kind, _) in wanted_tools(study).items():
        tool = facts.tool(program)
        if tool is not None and tool.path is None:
            yield Fault(f"There is no {shown(program)} on host {shown(host)}.", _INSTALL[kind])


def _room_fault(
    study: Study, plan: Plan, target: Target, seen: HostFacts, device: DeviceFacts | None
) -> Fault | None:
    need = key_value_space(study, plan.points, target.host, ASSUMED_WRITE_BYTES_PER_S)
    if not need:
        return None
    need = with_spare(need)
    where = f"{shown(target.path)} on host {shown(target.host)}"
    image = study.target.image_bytes
    if image is not None and image < need:
        happened = f"The image of {format_bytes(image)} is too small: databases, a copy and what "
        happened += f"runs write need {format_bytes(need)}."
        return Fault(happened, "Set a larger target.image, or fewer workload.*.keys or records.")
    if target.serial is not None:
        if device is None or not device.name or device.size_bytes >= need:
            return None
        happened = f"The device {where} has {format_bytes(device.size_bytes)}, databases, a copy "
        happened += f"and what runs write need {format_bytes(need)}."
        return Fault(happened, "Name a larger device, or set fewer workload.*.keys or records.")
    if image is not None:
        return None  # Whether there is room for the image is told for every load.
    if seen.target is None or seen.target.free_bytes >= need or study.target.keep_files:
        # What an earlier session kept is not needed again, and how much it is nobody knows.
        return None
    happened = f"{where} has {format_bytes(seen.target.free_bytes)} free, the databases need "
    return Fault(f"{happened}{format_bytes(need)}.", _ROOM)
