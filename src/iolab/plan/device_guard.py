"""The last look at block devices before they are destroyed: every reason against it at once."""

from __future__ import annotations

from typing import Final

from iolab.errors import Fault
from iolab.model.host import DeviceFacts, HostFacts
from iolab.model.run import Plan
from iolab.model.state import Purge
from iolab.model.study import Study
from iolab.model.workload import Job
from iolab.plan.targets import Target, region_bytes
from iolab.plan.wording import shown
from iolab.units import format_bytes

NVME: Final = "nvme"
"""nvme-cli, which formats and sanitizes."""

NVME_ARGV: Final = (NVME, "version")
NVME_PURGES: Final = (Purge.NVME_FORMAT, Purge.SANITIZE)

_REMEDIES: Final = {
    "mounted": "Unmount it, if nothing there is needed any more; or name another device.",
    "partitioned": "Name a device without partitions; 'wipefs' removes a table nobody needs.",
    "partition": "Name a whole device.",
    "held": "Take it out of what holds it (dm, md, LVM), or name another device.",
    "swap": "Turn that swap off with 'swapoff', or name another device.",
    "read-only": "Name a device that may be written.",
    "no-serial": "Name a device that has a serial, a world-wide name or a backing file.",
    "other-serial": "Look which device is meant: 'lsblk -o NAME,SERIAL,SIZE' lists them.",
    "signature": "Name another device; 'wipefs' removes a signature that means nothing any more.",
    "file-system": "Name another device; or set target.overwrite = true to lose that file system.",
    "in-use": "See who uses it ('lsof', 'fuser'), or name another device.",
    "closed": "Run the agent there as a user who may open the device, as root.",
    "empty": "Give it a size, or name another device.",
    "missing": "See how the device is called there: 'lsblk -o NAME,SERIAL,SIZE' lists them.",
}


def device_faults(
    study: Study, plan: Plan, target: Target, seen: DeviceFacts | None, facts: HostFacts
) -> list[Fault]:
    """Why this device may not or cannot serve; nothing when it can."""
    where = f"The device {shown(target.path)} of host {shown(target.host)}"
    if seen is None:
        return [Fault(f"{where} was not looked at.", "Run again; this host gave no answer.")]
    faults = [
        Fault(
            f"{where} is refused: {objection.says}.",
            _REMEDIES.get(objection.code, "Name another device."),
        )
        for objection in seen.objections
    ]
    if not seen.name:
        return faults
    need = region_bytes(plan, target)
    if need > seen.size_bytes:
        happened = f"{where} has {format_bytes(seen.size_bytes)}, the jobs use {format_bytes(need)}"
        do = "Set a smaller workload.*.filesize or numjobs, or name a larger device."
        faults.append(Fault(f"{happened}.", do))
    faults += _purge_faults(study.precondition.purge, where, seen, facts)
    faults += _trim_faults(plan, target, where, seen)
    return faults + _block_faults(plan, target, where, seen)


def _purge_faults(purge: Purge, where: str, seen: DeviceFacts, facts: HostFacts) -> list[Fault]:
    if purge is Purge.DISCARD and not seen.discards:
        return [Fault(f"{where} takes no discards.", "Leave precondition.purge out.")]
    if purge not in NVME_PURGES:
        return []
    faults = []
    if not seen.name.startswith(NVME):
        happened = f"{where} is no NVMe device, and has no purge {shown(purge.value)}."
        faults.append(Fault(happened, "Set precondition.purge to 'discard' or leave it out."))
    tool = facts.tool(NVME)
    if tool is None or tool.path is None:
        happened = f"There is no nvme-cli on the host of {where[:1].lower()}{where[1:]}."
        faults.append(Fault(happened, "Install it there, as with 'apt-get install nvme-cli'."))
    return faults


def _trim_faults(plan: Plan, target: Target, where: str, seen: DeviceFacts) -> list[Fault]:
    jobs = (p.job for p in plan.points if p.configuration in target.configurations)
    if seen.discards or not any(isinstance(job, Job) and job.access.trims for job in jobs):
        return []
    happened = f"{where} takes no discards, which rw = 'trim' and 'randtrim' are."
    return [Fault(happened, "Name a device that does, or leave those workloads out.")]


def _block_faults(plan: Plan, target: Target, where: str, seen: DeviceFacts) -> list[Fault]:
    jobs = (p.job for p in plan.points if p.configuration in target.configurations)
    align = seen.logical_block_bytes
    odd = sorted({j.block_bytes for j in jobs if isinstance(j, Job) and j.block_bytes % align})
    if not odd:
        return []
    happened = f"{where} has blocks of {align} bytes, bs is {odd[0]}."
    return [Fault(happened, f"Set bs to multiples of {align}.")]
