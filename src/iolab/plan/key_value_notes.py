"""What a plan says of key-value load that is no fault: bounds of memory that may be too low."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from iolab.model.run import Point
from iolab.model.study import Study
from iolab.model.ycsb import ServerKind, YcsbJob
from iolab.plan.key_value_cost import NODE_BYTES, KeyJob, memory_needed
from iolab.units import format_bytes


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
