"""What a plan destroys: sentences for people, shown before anything is done."""

from __future__ import annotations

from typing import Final

from iolab.model.host import HostKind
from iolab.model.state import Purge
from iolab.model.study import Study
from iolab.model.workload import Job
from iolab.plan.targets import targets_of
from iolab.plan.wording import shown

_WAYS: Final = {
    Purge.NONE: "written over",
    Purge.DISCARD: "discarded and written over",
    Purge.NVME_FORMAT: "erased by nvme format and written over",
    Purge.SANITIZE: "erased by nvme sanitize and written over",
}


def destroyed(study: Study) -> tuple[str, ...]:
    """One sentence for each device whose content will be lost."""
    way = _WAYS.get(study.precondition.purge, _WAYS[Purge.NONE])
    if any(isinstance(one.job, Job) and one.job.access.trims for one in study.workloads):
        way = f"{way} and trimmed"
    if study.target.make_xfs:
        way = "formatted: an XFS is made on it"
    return tuple(
        f"All that is on the device {shown(target.path)} (serial {shown(target.serial)}) of host "
        f"{shown(target.host)}: it is {way}."
        for target in targets_of(study)
        # The disks of guests that are booted are files of the session.
        if target.serial is not None and study.host(target.host).kind is not HostKind.VM
    )
