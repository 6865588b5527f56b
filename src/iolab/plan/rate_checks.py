"""Checks of how fast a workload goes: its rate, how I/Os arrive under it, and what each job has."""

from __future__ import annotations

import math
from collections.abc import Iterable

from iolab.model.objective import Objective
from iolab.model.study import Study
from iolab.plan.document import Document, Faults
from iolab.plan.guests import makers_of
from iolab.plan.study_file import FLEET_RATE_MAX, RATE_MAX, RATES, WorkloadTable
from iolab.plan.sweep import expand
from iolab.plan.tables import Item, place, start
from iolab.plan.wording import shown
from iolab.units import format_bytes, parse_size


def check_rates(document: Document, item: Item, workload: WorkloadTable, faults: Faults) -> None:
    """Add the faults of one workload's rates and arrivals among themselves."""
    written = [key for key in RATES if getattr(workload, key) is not None]
    if len(written) > 1:
        happened = f"{start(document, item.path)} has {' and '.join(written)}."
        do = "Leave all but one of them out."
        faults.add_once(document.where((*item.path, written[1])), "rates", happened, do)
    _check_block(document, item, workload, faults)
    if workload.arrivals is None:
        return
    if not written and workload.objective is not Objective.MAX_LOAD:
        happened = f"{start(document, item.path)} has arrivals but no rate_iops."
        do = (
            "Write rate_iops, the I/Os that arrive at a job in a second, or rate in bytes, or "
            "fleet_rate_iops; or leave arrivals out."
        )
        faults.add_once(document.where((*item.path, "arrivals")), "arrivals", happened, do)
    option = "rate_process"
    if option in workload.fio:
        happened = f"{start(document, item.path)} has both arrivals and fio option {option}."
        do = "Leave one of them out: arrivals sets the option."
        faults.add_once(document.where((*item.path, "fio", option)), option, happened, do)


def check_shares(document: Document, study: Study, faults: Faults) -> None:
    """Add the faults of rates of the fleet that its jobs cannot share in whole I/Os a second."""
    places = {workload.id: index for index, workload in enumerate(study.workloads)}
    shares: dict[tuple[str, int], set[int]] = {}
    if not any(getattr(one.job, "fleet_rate_iops", None) for one in study.workloads):
        return
    for point in expand(study):
        whole = getattr(point.job, "fleet_rate_iops", None)
        if whole is not None:
            jobs = sum(point.io_on(host).numjobs for host in makers_of(study, point))
            shares.setdefault((point.workload, whole), set()).add(jobs)
    for (workload, whole), counts in shares.items():
        says = _unshared(whole, counts)
        if says:
            where = ("workload", places[workload])
            happened = f"fleet_rate_iops of {place(document, where)} is {whole}, {says}."
            origin = document.where((*where, "fleet_rate_iops"))
            faults.add_once(origin, f"share {whole}", happened, f"Give {_nearest(whole, counts)}.")


def _unshared(whole: int, counts: Iterable[int]) -> str:
    """Why so many jobs cannot share it: not in whole I/Os a second, or more than one may have."""
    odd = sorted(jobs for jobs in counts if whole % max(jobs, 1))
    if odd:
        return f"which {odd[0]} jobs of all hosts cannot share in whole I/Os a second"
    share = whole // max(min(counts), 1)
    return f"{share} for each job, which may have {RATE_MAX}" if share > RATE_MAX else ""


def _check_block(document: Document, item: Item, workload: WorkloadTable, faults: Faults) -> None:
    """Less than a block a second is no rate: fio divides by whole I/Os a second."""
    if not workload.rate:
        return
    least, most = min(map(parse_size, workload.rate)), max(map(parse_size, workload.bs))
    if least < most:
        slow = next(one for one in workload.rate if parse_size(one) == least)
        happened = f"rate of {place(document, item.path)} is {shown(slow)}, "
        happened += f"less than one block of {format_bytes(most)} a second."
        do = f"Give at least {format_bytes(most)}, or smaller blocks."
        faults.add_once(document.where((*item.path, "rate")), "rate block", happened, do)


def _nearest(whole: int, counts: Iterable[int]) -> str:
    """The nearest rates that all of those numbers of jobs can share."""
    unit, most = math.lcm(*counts), min(FLEET_RATE_MAX, RATE_MAX * min(counts))
    below = min(whole, most) // unit * unit
    near = [str(rate) for rate in (below, below + unit) if 0 < rate <= most]
    return " or ".join(near) or "rate_iops, the rate of each job, instead"
