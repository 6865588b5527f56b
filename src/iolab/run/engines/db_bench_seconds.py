"""Operations of a cell second by second: for the record, and while it runs. Pure.

The report file counts every operation of every thread to the second, and so the writer beside the
readers too. What the threads themselves tell is exact in time, but they only speak every thousand
operations: it serves to take the writer off, and to show how a cell goes.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

import numpy as np

from iolab.model.key_value import KeyOperation, KeyValueJob, ThreadProgress
from iolab.run.engines.base import NS_PER_S, DirectionInterval, Interval
from iolab.run.engines.db_bench_progress import progress_of

WRITER_THREAD: Final = 0
"""The writer's number where there is one; those that count follow it."""

LEAST_LAST_S: Final = 0.5
"""What a cell did after the last row of its report is an interval if it is at least so long: the
rate of a few ms is noise."""

LINE_LIMIT_BYTES: Final = 4096
"""A line of progress has 150; what is longer is none."""

_NONE: Final = np.zeros(0, dtype=np.int16)


@dataclass(frozen=True, slots=True)
class Totals:
    """A cell at its end: after how long, operations of the threads that count, and the writer's.

    None for what is not known: all of it when db_bench was killed.
    """

    seconds: float | None
    operations: int | None
    writes: int | None


@dataclass(frozen=True, slots=True)
class Second:
    """What was done from `end_s - span_s` to `end_s` after the start; `written` beside it."""

    end_s: float
    span_s: float
    done: int
    written: int | None


def seconds_of(
    rows: Sequence[tuple[int, int]],
    progress: Iterable[ThreadProgress],
    job: KeyValueJob,
    totals: Totals,
) -> tuple[Second, ...]:
    """The rows of the report file as operations that count, and the writer's beside them.

    Where a row is late the next one stands for two seconds. After the last row comes what is
    missing to the totals, unless that is too short. The writer's operations are read off the
    straight line between what it told; where it was not heard up to a second, that second and all
    after it are left out.
    """
    marks = _marks(rows, totals)
    if not job.has_writer:
        return tuple(
            Second(end_s, end_s - start_s, end - start, None)
            for (start_s, start), (end_s, end) in pairwise(marks)
        )
    writer = [one for one in progress if one.thread == WRITER_THREAD]
    points = _points(writer, totals)
    found: list[Second] = []
    for (start_s, start), (end_s, end) in pairwise(marks):
        before, after = _done_at(points, start_s), _done_at(points, end_s)
        if before is None or after is None:
            break
        written = round(after) - round(before)
        found.append(Second(end_s, end_s - start_s, max(end - start - written, 0), written))
    return tuple(found)


def intervals_of(seconds: Iterable[Second], start_real_ns: int) -> tuple[Interval, ...]:
    """The same as intervals on the host's clock, on which the cell began at `start_real_ns`."""
    return tuple(
        Interval(
            seq=seq,
            end_real_ns=start_real_ns + round(one.end_s * NS_PER_S),
            span_ns=round(one.span_s * NS_PER_S),
            directions=tuple(_directions(one)),
        )
        for seq, one in enumerate(seconds)
    )


class LiveProgress:
    """Hears standard error while it comes: when the cell began, and how fast it goes.

    `start_real_ns` is the latest moment at which it can have begun by what was heard so far, None
    while nothing was: every line says how long its thread had worked when it was printed.
    """

    def __init__(self, job: KeyValueJob) -> None:
        self.start_real_ns: int | None = None
        self._counting = range(1, job.threads + 1) if job.has_writer else range(job.threads)
        self._rest = b""
        self._last: dict[int, tuple[float, int]] = {}
        self._rates: dict[int, float] = {}
        self._second = 0

    def feed(self, piece: bytes, now_real_ns: int) -> list[tuple[int, float]]:
        """Take the next bytes, heard now: the seconds that are over, each with its ops/s."""
        *lines, rest = (self._rest + piece).split(b"\n")
        self._rest = rest[-LINE_LIMIT_BYTES:]
        told: list[tuple[int, float]] = []
        for one in progress_of(line.decode("utf-8", "replace") for line in lines):
            began_ns = now_real_ns - round(one.elapsed_s * NS_PER_S)
            self.start_real_ns = min(began_ns, self.start_real_ns or began_ns)
            if one.thread not in self._counting:
                continue
            if int(one.elapsed_s) > self._second:
                if self._rates:
                    told.append((int(one.elapsed_s) - 1, sum(self._rates.values())))
                self._second = int(one.elapsed_s)
            self._take(one)
        return told

    def _take(self, one: ThreadProgress) -> None:
        """How fast that thread was since it last spoke."""
        before_s, before = self._last.get(one.thread, (0.0, 0))
        if one.elapsed_s > before_s:
            self._rates[one.thread] = max(one.operations - before, 0) / (one.elapsed_s - before_s)
            self._last[one.thread] = one.elapsed_s, one.operations


def _marks(rows: Sequence[tuple[int, int]], totals: Totals) -> list[tuple[float, int]]:
    """How much all threads had done by when, from nothing at the start on."""
    marks: list[tuple[float, int]] = [(0.0, 0)]
    for second, count in rows:
        at_s, done = marks[-1]
        if second > at_s:
            marks.append((float(second), done + count))
        elif len(marks) > 1:
            # Two rows within the same second by its rounding.
            marks[-1] = (at_s, done + count)
    at_s, done = marks[-1]
    if totals.seconds is not None and totals.operations is not None:
        missing = totals.operations + (totals.writes or 0) - done
        if totals.seconds - at_s >= LEAST_LAST_S and missing >= 0:
            marks.append((totals.seconds, done + missing))
    return marks


def _points(writer: Iterable[ThreadProgress], totals: Totals) -> list[tuple[float, int]]:
    """What the writer had done by when; lines that go back count as never said."""
    points: list[tuple[float, int]] = [(0.0, 0)]
    for one in writer:
        if one.elapsed_s > points[-1][0] and one.operations >= points[-1][1]:
            points.append((one.elapsed_s, one.operations))
    end_s, writes = totals.seconds, totals.writes
    if end_s is not None and writes is not None and writes >= points[-1][1]:
        # The last row of the report may be some ms past the end.
        points.append((max(end_s + 1, points[-1][0] + 1), writes))
        points.insert(-1, (max(end_s, points[-2][0]), writes))
    return points


def _done_at(points: Sequence[tuple[float, int]], at_s: float) -> float | None:
    """Operations done by then; None when it is past all that is known."""
    index = bisect_left(points, at_s, key=lambda point: point[0])
    if index == len(points):
        return None
    if points[index][0] == at_s:
        return float(points[index][1])
    (low_s, low), (high_s, high) = points[index - 1], points[index]
    return low + (high - low) * (at_s - low_s) / (high_s - low_s)


def _directions(one: Second) -> Iterable[DirectionInterval]:
    yield DirectionInterval(KeyOperation.ALL, one.done, 0, 0.0, _NONE, _NONE)
    if one.written is not None:
        yield DirectionInterval(KeyOperation.WRITE, one.written, 0, 0.0, _NONE, _NONE)
