"""Operations a second over a declared window; db_bench's own rate is over its whole run.

The report file counts everything to the second, but the writer of readwhilewriting among the
readers. The threads' own lines tell them apart, but only every thousand operations: enough for a
writer of constant rate, and for fast readers in a long window.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from iolab.model.key_value import READ_WHILE_WRITING, KeyValueJob, ThreadProgress

WRITER_THREAD: Final = 0
"""The writer's number in readwhilewriting; the readers follow it."""


@dataclass(frozen=True, slots=True)
class ThreadRate:
    """What one thread did in the window.

    Its lines do not stand at the edges of the window; `operations` are read off the straight line
    between the two around each edge. `widest_s` is the longest time between lines that was so
    bridged at an edge.
    """

    thread: int
    operations: float
    widest_s: float


@dataclass(frozen=True, slots=True)
class WindowRate:
    """What several threads did together between two moments after their start.

    `unheard` are threads that told nothing of before the window's start or after its end. With
    any of them there is no rate.
    """

    start_s: float
    end_s: float
    threads: tuple[ThreadRate, ...]
    unheard: tuple[int, ...]

    @property
    def operations(self) -> float | None:
        """All operations in the window; None when a thread was not heard over all of it."""
        if self.unheard or not self.threads:
            return None
        return sum(one.operations for one in self.threads)

    @property
    def ops_per_s(self) -> float | None:
        """Operations a second; None as above."""
        operations = self.operations
        return None if operations is None else operations / (self.end_s - self.start_s)


def job_threads(job: KeyValueJob) -> tuple[range, range]:
    """The numbers of the threads that count, and of the writer beside them, if there is one."""
    if job.workload == READ_WHILE_WRITING:
        return range(1, job.threads + 1), range(WRITER_THREAD, WRITER_THREAD + 1)
    return range(job.threads), range(0)


def window_rate(
    progress: Sequence[ThreadProgress], threads: Collection[int], start_s: float, end_s: float
) -> WindowRate:
    """What these threads did from `start_s` to `end_s`, each counted from its own start.

    They start within a ms of each other. ValueError for a window without length.
    """
    if not 0 <= start_s < end_s:
        raise ValueError(f"{start_s} s to {end_s} s is not a window")
    points_of = {thread: [(0.0, 0)] for thread in sorted(threads)}
    for one in progress:
        if one.thread in points_of:
            points_of[one.thread].append((one.elapsed_s, one.operations))
    rates: list[ThreadRate] = []
    unheard: list[int] = []
    for thread, points in points_of.items():
        before, after = _done_at(points, start_s), _done_at(points, end_s)
        if before is None or after is None:
            unheard.append(thread)
        else:
            done = after[0] - before[0]
            rates.append(ThreadRate(thread, done, max(before[1], after[1])))
    return WindowRate(start_s, end_s, tuple(rates), tuple(unheard))


def report_rate(
    rows: Sequence[tuple[int, int]],
    job: KeyValueJob,
    writer: WindowRate | None,
    start_s: int,
    end_s: int,
) -> float | None:
    """Operations a second between two whole seconds, from the report file's rows of one second.

    The file counts all threads, so in readwhilewriting the `writer`'s own operations in that
    window are taken off.
    None when a second is missing or counted twice, or the writer is not known. The file's seconds
    begin some ms before the threads do.
    """
    within = [count for second, count in rows if start_s < second <= end_s]
    seconds = {second for second, _ in rows if start_s < second <= end_s}
    if len(within) != end_s - start_s or len(seconds) != len(within):
        return None
    written: float | None = 0.0
    if job_threads(job)[1]:
        known = writer is not None and (writer.start_s, writer.end_s) == (start_s, end_s)
        written = writer.operations if writer is not None and known else None
    if written is None:
        return None
    return max(sum(within) - written, 0.0) / (end_s - start_s)


def _done_at(points: Sequence[tuple[float, int]], at_s: float) -> tuple[float, float] | None:
    """Operations done by then and the span between the lines around it; None when it is past all.

    Lines that go back, in time or in operations, count as never said.
    """
    if any(b[0] <= a[0] or b[1] < a[1] for a, b in pairwise(points)):
        return None
    index = bisect_left(points, at_s, key=lambda point: point[0])
    if index == len(points):
        return None
    if points[index][0] == at_s:
        return float(points[index][1]), 0.0
    (low_s, low), (high_s, high) = points[index - 1], points[index]
    share = (at_s - low_s) / (high_s - low_s)
    return low + (high - low) * share, high_s - low_s
