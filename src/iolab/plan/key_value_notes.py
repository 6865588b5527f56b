"""What a plan says of key-value load that is no fault: little memory, copies that take time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from iolab.model.run import Point
from iolab.model.study import Study
from iolab.model.ycsb import ServerKind, YcsbJob
from iolab.plan.key_value_budget import on_clients
from iolab.plan.key_value_cost import NODE_BYTES, KeyJob, memory_needed, store_bytes
from iolab.plan.wording import shown
from iolab.units import format_bytes, format_duration_s, format_rate_bytes


def memory_notes(study: Study, points: Iterable[Point]) -> Iterator[str]:
    """What is told of bounds of memory that are less than a process is likely to need."""
    server = study.server
    told: set[str] = set()
    bounded = [point for point in points if isinstance(point.job, KeyJob)]
    for point in bounded:
        job = point.job
        if not isinstance(job, KeyJob) or job.memory_bytes is None:
            continue
        if isinstance(job, YcsbJob) and server.kind is not ServerKind.EMBEDDED:
            continue
        need = memory_needed(job)
        if job.memory_bytes < need and point.workload not in told:
            told.add(point.workload)
            yield (
                f"{point.label} has {format_bytes(job.memory_bytes)}, but is likely to need "
                f"{format_bytes(need)} before any of its files is kept; it may be killed"
            )
    if server.kind is ServerKind.MANAGED and server.memory_bytes is not None:
        need = server.heap_bytes + NODE_BYTES
        if server.memory_bytes < need and any(isinstance(p.job, YcsbJob) for p in bounded):
            yield (
                f"the managed server has {format_bytes(server.memory_bytes)}, but is likely to "
                f"need {format_bytes(need)} before any of its files is kept; it may be killed"
            )


def copy_notes(
    study: Study, points: Iterable[Point], reflinks: Mapping[str, bool], rate: float
) -> Iterator[str]:
    """What is told of hosts whose file systems share no extents; `reflinks` is by host's name."""
    without = [host for host, shares in reflinks.items() if not shares]
    jobs = [p.job for p in points if isinstance(p.job, KeyJob) and on_clients(study, p.job)]
    if study.target.make_xfs or not without or not jobs:
        return
    each_s = max(store_bytes(job) for job in jobs) / rate
    yield (
        f"each run copies its database whole on {shown(without[0])}, whose file system has no "
        f"reflinks: {format_duration_s(each_s)} each at {format_rate_bytes(rate)}"
    )
