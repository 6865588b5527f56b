"""The check of coordinated omission: what a latency may be called."""

from __future__ import annotations

from typing import Final

import numpy as np

from iolab.analyse.checks.registry import (
    Numbers,
    Said,
    check,
    indicative,
    percent,
    unchecked,
    valid,
    worst,
)
from iolab.analyse.littles_law import concurrency, is_closed_loop
from iolab.analyse.view import RunView
from iolab.model.generator import GeneratorTotals
from iolab.model.workload import Job
from iolab.units import format_count, format_ns

ACHIEVED_LEAST: Final = 0.99
"""Share of the asked rate below which the target set the pace and not the rate."""

IN_FLIGHT_MOST: Final = 0.9
"""Share of the depth that may be in flight on average: beyond it, I/Os had to wait to be issued."""

FULL_TOLERABLE: Final = 0.01
"""Share of the seconds in which that many were in flight: beyond it, waits that nobody counted are
more than the hundredth part that a p99 leaves out. A stall hides from the average."""

LOST_MOST: Final = 0.001
"""Share of the I/Os that were due whose response times may be missing at the end: as many as a
p99.9 leaves out. A target that stalls there keeps its slowest I/Os out of every percentile."""


@check("coordinated-omission", "Latency of a rate that was not kept")
def coordinated_omission(view: RunView) -> Said:
    """Whether I/Os under a rate were issued when they were due, so that none waited unseen."""
    if view.job.asked_iops is None:
        loop = "Closed loop" if is_closed_loop(view.job) else "Paced by think time"
        return valid(
            f"{loop}: latencies are service times at the load's concurrency.", open_loop=False
        )
    return worst((_kept(view, index) for index in range(len(view.hosts))), least="achieved")


def _kept(view: RunView, index: int) -> Said:
    host = view.hosts[index]
    job = view.record.run.point.io_on(host.host)
    if view.service is not None:
        return _reached(view, index, job)
    found = concurrency(view.load, index, job.depth_total)
    seconds = float(view.load.seconds[index])
    if found is None or seconds <= 0 or job.asked_iops is None:
        return unchecked(f"no I/O was measured on {host.host}")
    target = job.asked_iops * job.numjobs
    achieved = float(view.load.ios[index].sum()) / seconds / target
    evidence: Numbers = {
        "host": host.host,
        "open_loop": True,
        "target_iops": target,
        "achieved": achieved,
        "in_flight": found.in_flight,
        "depth": job.depth_total,
    }
    full = _full_share(view, index, job.depth_total)
    evidence["full_seconds"] = full
    said = (
        f"{percent(achieved)} of {format_count(target)} IOPS were kept{view.on(host)} with "
        f"{found.in_flight:.3g} of {job.depth_total} I/Os in flight"
    )
    if achieved < ACHIEVED_LEAST or found.in_flight >= IN_FLIGHT_MOST * job.depth_total:
        return indicative(
            f"{said}: the latencies are service time at concurrency {found.in_flight:.3g}, not "
            "latency at that rate.",
            **evidence,
        )
    if full > FULL_TOLERABLE:
        return indicative(
            f"{said}, but in {percent(full)} of the seconds all that the depth allows: I/Os then "
            "waited unseen, and the far percentiles are too small.",
            **evidence,
        )
    return valid(f"{said}: the latencies are those at that rate.", **evidence)


def _reached(view: RunView, index: int, job: Job) -> Said:
    """Of latencies from when I/Os were due: nothing waits unseen, but a rate may be too high.

    What is due then waits ever longer, and a latency says how long the run was.
    """
    host, seconds = view.hosts[index], float(view.load.seconds[index])
    if seconds <= 0 or job.asked_iops is None:
        return unchecked(f"no I/O was measured on {host.host}")
    target = job.asked_iops * job.numjobs
    achieved = float(view.load.ios[index].sum()) / seconds / target
    generator = host.totals.generator if host.totals else None
    unreached = generator is not None and generator.unreached
    unsubmitted = generator.unsubmitted if generator else 0
    drained = generator.drained_ios if generator else 0
    evidence: Numbers = {
        "host": host.host,
        "open_loop": True,
        "target_iops": target,
        "achieved": achieved,
        "unreached": unreached,
        "unsubmitted": unsubmitted,
        "drained": drained,
    }
    said = f"{percent(achieved)} of {format_count(target)} IOPS were kept{view.on(host)}"
    if achieved < ACHIEVED_LEAST or unreached:
        return indicative(
            f"{said}: what was due waited ever longer, so the latencies say how long the run was, "
            f"not what that rate costs{_missing(generator)}.",
            **evidence,
        )
    lost = drained + unsubmitted
    share, usual = _lost(view, index, lost, job)
    evidence |= {"lost": share, "in_flight": usual}
    if share > LOST_MOST:
        return indicative(
            f"{said}, but {format_count(lost)} I/Os that were due were still under way or not "
            f"begun at the end, where {usual:.3g} were on average: their response times are "
            "missing, and the far percentiles are too small.",
            **evidence,
        )
    return valid(f"{said}, and latencies count from when each I/O was due.", **evidence)


def _lost(view: RunView, index: int, lost: int, job: Job) -> tuple[float, float]:
    """The share of `lost` I/Os, which had not ended at the end, and how many there were on average.

    So many had not ended when the window began either, and count in it: they stand for as many at
    its end, and only what is beyond them makes the share.
    """
    found = concurrency(view.load, index, job.depth_total)
    usual = found.in_flight if found else 0.0
    due = int(view.load.ios[index].sum()) + lost
    return max(lost - usual, 0.0) / max(due, 1), usual


def _missing(generator: GeneratorTotals | None) -> str:
    """What the latencies lack of I/Os that were due and never begun."""
    if generator is None:
        return ""
    if generator.hung_ios:
        return "; I/Os hung, and how many more were due and never begun is not known"
    if not generator.unsubmitted:
        return ""
    return (
        f"; {format_count(generator.unsubmitted)} more I/Os were due and never begun, the oldest "
        f"for {format_ns(generator.oldest_unsubmitted_ns)}: their response times are missing"
    )


def _full_share(view: RunView, index: int, depth: int) -> float:
    """Share of the host's measured intervals in which the depth was all but used up."""
    table = view.record.intervals
    rows = view.load.cut.intervals & (table.host == index)
    _, first, at = np.unique(table.seq[rows], return_index=True, return_inverse=True)
    waited_ns = np.bincount(at, weights=table.lat_sum_ns[rows])
    in_flight = waited_ns / np.maximum(table.span_ns[rows][first], 1)
    return float(np.mean(in_flight >= IN_FLIGHT_MOST * depth)) if len(first) else 0.0
