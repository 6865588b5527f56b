"""Whether a resource is full: the thresholds that checks and bottleneck decisions share."""

from __future__ import annotations

from typing import Final

from iolab.core.resources import Resource
from iolab.core.run import HostRun

FULL_PORT: Final = 0.95
"""A port is full from this share of its speed: preambles, gaps and checksums, which no counter
includes, take 1.6 % of full frames, and more of smaller ones."""

FULL_PROCESSORS: Final = 0.90
"""All cores are full from this busy share: interrupts and kernel work take the rest."""

FULL_CORE: Final = 0.95
"""A core, or the core of each job, is full from this busy share: a thread that waits for storage
sleeps longer."""

ALWAYS_BUSY: Final = 0.95
"""A device is full from this share of time with an I/O in flight: the kernel counts busy time in
ticks, and short gaps between I/Os cost a per cent or two."""

FULL_IO_LIMIT: Final = 0.95
"""A control group's limit is used up from this share: it is kept over slices of time, and the I/Os
of the first and the last may miss the window."""

FULL_DISK_LIMIT: Final = 0.95
"""The same of the limit on a guest's disk."""

OWN_JOBS_MAJORITY: Final = 0.5
"""Of busy processors the load's own jobs use at least this share, or most of it is of others."""

NEAR_LIMIT: Final = 1 / 1.1
"""Of a limit on a rate that was used from this share less than a tenth is left, which is the least
that tells a rate that still rises: bursts that the limit cuts off lower the mean by as much."""

_RATE_LIMITS: Final = (Resource.IO_LIMIT, Resource.DISK_LIMIT, Resource.PORT)

_FULL: Final = {
    Resource.IO_LIMIT: FULL_IO_LIMIT,
    Resource.DISK_LIMIT: FULL_DISK_LIMIT,
    Resource.PORT: FULL_PORT,
    Resource.JOB: FULL_CORE,
    Resource.PROCESSORS: FULL_PROCESSORS,
    Resource.CORE: FULL_CORE,
    Resource.DEVICE: ALWAYS_BUSY,
}


def is_resource_full(resource: Resource, share: float | None) -> bool:
    """Whether a resource with this used share is full; False where the share is unknown."""
    return share is not None and share >= _FULL[resource]


def is_rate_limiting_resource_near_full(resource: Resource, share: float | None) -> bool:
    """Whether a resource is a limit on a rate, and so much of it was used that it may be one."""
    return resource in _RATE_LIMITS and share is not None and share >= NEAR_LIMIT


def job_share_of_its_core(host: HostRun) -> float | None:
    """The share of its core that a job used over the run, by the engine's own count.

    Of jobs that share a thread it is the share of all of them together.
    """
    totals = host.totals
    if totals is None:
        return None
    threads = totals.generator.threads if totals.generator else 0
    jobs = totals.jobs / threads if 0 < threads < totals.jobs else 1.0
    return (totals.user_cpu_percent + totals.system_cpu_percent) * jobs / 100
