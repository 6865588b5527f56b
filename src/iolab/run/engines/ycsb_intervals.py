"""YCSB's latency logs as intervals of the run, in our own bins: pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from iolab.model.histogram import bin_of_ns
from iolab.model.key_value import KeyOperation
from iolab.model.sample import narrow
from iolab.run.engines.base import DirectionInterval, Interval
from iolab.run.engines.hdr_log import HdrInterval, HdrLog

CRUMB_NS: Final = 200_000_000
"""An interval that is shorter is joined to its neighbour: YCSB writes one at its very beginning and
two at its end, whose rates would be noise."""

TOGETHER_NS: Final = 500_000_000
"""Logs are written one after the other; half a second apart is another interval of a second."""


def intervals_of(logs: Sequence[HdrLog]) -> tuple[Interval, ...]:
    """The logs of a client as intervals, each of all operations that we know, in our own bins.

    YCSB writes an interval of every operation at each status line, one after the other: those that
    belong together are found from the end on. They get the same end and length.
    """
    known = {log.operation: log for log in logs if log.operation is not None and log.intervals}
    groups = _joined(_grouped(list(known.values())))
    made: list[Interval] = []
    end_ns = min((one.start_real_ns for _, one in groups[0]), default=0) if groups else 0
    for seq, group in enumerate(groups):
        start_ns = end_ns
        end_ns = max(start_ns, *(one.end_real_ns for _, one in group))
        parts = (
            _part(operation, [one for other, one in group if other is operation])
            for operation in sorted(known)
        )
        made.append(Interval(seq, end_ns, end_ns - start_ns, tuple(parts)))
    return tuple(made)


Group = list[tuple[KeyOperation, HdrInterval]]


def _grouped(logs: Sequence[HdrLog]) -> list[Group]:
    """Intervals that were written at the same moment, in order."""
    if not logs:
        return []
    longest = max(logs, key=lambda log: (log.intervals[-1].end_real_ns, len(log.intervals)))
    groups: list[Group] = [[] for _ in range(max(len(log.intervals) for log in logs))]
    ends_ns = [one.end_real_ns for one in longest.intervals]
    for log in logs:
        if log.operation is None:
            continue
        # A log that was cut short lacks its last ones.
        last_ns = log.intervals[-1].end_real_ns + TOGETHER_NS
        lacking = sum(end_ns > last_ns for end_ns in ends_ns)
        for place, one in enumerate(reversed(log.intervals)):
            at = len(groups) - 1 - place - lacking
            groups[max(at, 0)].append((log.operation, one))
    return groups


def _joined(groups: Sequence[Group]) -> list[Group]:
    """The groups with crumbs joined to the one before, the first one's to the one after."""
    made: list[Group] = []
    for group in groups:
        if made and (_is_crumb(group) or _is_crumb(made[-1])):
            made[-1] = [*made[-1], *group]
        else:
            made.append(list(group))
    return made


def _is_crumb(group: Group) -> bool:
    start_ns = min((one.start_real_ns for _, one in group), default=0)
    end_ns = max((one.end_real_ns for _, one in group), default=0)
    return end_ns - start_ns < CRUMB_NS


def _part(operation: KeyOperation, intervals: Sequence[HdrInterval]) -> DirectionInterval:
    none = np.zeros(0, dtype=np.int64)
    values_ns = np.concatenate([none, *(one.values_ns for one in intervals)])
    counts = np.concatenate([none, *(one.counts for one in intervals)])
    bins, places = np.unique(bin_of_ns(values_ns), return_inverse=True)
    held = np.zeros(bins.size, dtype=np.int64)
    np.add.at(held, places, counts)
    return DirectionInterval(
        direction=operation,
        ios=int(counts.sum()),
        bytes=0,
        lat_sum_ns=float((values_ns * counts).sum(dtype=np.float64)),
        bins=narrow(bins),
        counts=narrow(held),
    )
