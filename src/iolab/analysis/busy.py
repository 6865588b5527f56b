"""From when on a resource has nothing to spare: one answer for checks and for bottlenecks."""

from __future__ import annotations

from typing import Final

from iolab.core.resources import Resource
from iolab.core.run import HostRun

FULL_PORT: Final = 0.95
"""Share of a link's speed from which it is full: preambles, gaps and checksums that no counter sees
take 1.6 % of full frames, and more of smaller ones."""

FULL_PROCESSORS: Final = 0.90
"""Busy share of all cores from which none is left: interrupts and the kernel's own work take what
remains before 100 %."""

FULL_CORE: Final = 0.95
"""Busy share of one core, or of one by each job, from which a thread that waits for storage at all
would have slept more."""

ALWAYS_BUSY: Final = 0.95
"""Share of the time with an I/O in flight from which a device has none to spare: the kernel counts
busy time at its ticks, and gaps between I/Os of an idle moment cost a per cent or two."""

_FULL: Final = {
    Resource.PORT: FULL_PORT,
    Resource.JOB: FULL_CORE,
    Resource.PROCESSORS: FULL_PROCESSORS,
    Resource.CORE: FULL_CORE,
    Resource.DEVICE: ALWAYS_BUSY,
}


def is_full(resource: Resource, share: float | None) -> bool:
    """Whether a resource that was used so much has nothing to spare; not where nobody knows."""
    return share is not None and share >= _FULL[resource]


def job_core_share(host: HostRun) -> float | None:
    """What the jobs of a core used of it, as their engine counts it over the whole run.

    Jobs that share a thread are together what one core can do.
    """
    totals = host.totals
    if totals is None:
        return None
    threads = totals.generator.threads if totals.generator else 0
    jobs = totals.jobs / threads if 0 < threads < totals.jobs else 1.0
    return (totals.user_cpu_percent + totals.system_cpu_percent) * jobs / 100
