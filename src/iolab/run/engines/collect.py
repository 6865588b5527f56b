"""Intervals of all hosts gathered into the columns of a run's record."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from iolab.model.sample import BinTable, IntervalTable, Ints, narrow, no_bins, no_intervals
from iolab.run.engines.base import Interval
from iolab.run.engines.log import IntervalLog


class IntervalCollector:
    """Takes each host's intervals as they come; gives the tables when the run is over.

    `host` is the host's index in the run's order. Intervals of one host must be added in order.
    """

    def __init__(self) -> None:
        self._logs: list[tuple[int, IntervalLog]] = []

    def add(self, host: int, intervals: Iterable[Interval]) -> None:
        """Take further intervals of one host; a log is looked at when the tables are made."""
        self._logs.append((host, IntervalLog.of(intervals)))

    def intervals(self) -> IntervalTable:
        """One row a (host, interval, direction), in the order of (host, seq, direction)."""
        logs = self._ordered()
        if not logs:
            return no_intervals()
        host, seq, direction = _keys(logs)
        heads = np.concatenate([np.repeat(log.heads, log.heads[:, 3], axis=0) for _, log in logs])
        parts = np.concatenate([log.parts for _, log in logs])
        return IntervalTable(
            host=host,
            seq=seq,
            end_real_ns=heads[:, 1].copy(),
            span_ns=heads[:, 2].copy(),
            direction=direction,
            ios=parts[:, 1].copy(),
            bytes=parts[:, 2].copy(),
            lat_sum_ns=np.concatenate([log.lat_sums_ns for _, log in logs]),
        )

    def bins(self) -> BinTable:
        """One row a (host, interval, direction, bin) that counted anything, in that order."""
        logs = self._ordered()
        if not logs:
            return no_bins()
        sizes = np.concatenate([log.parts[:, 3] for _, log in logs])
        # Narrowed before they are repeated: this is the longest table of a run.
        host, seq, direction = (np.repeat(narrow(column), sizes) for column in _keys(logs))
        bins = np.concatenate([log.bins for _, log in logs])
        counts = np.concatenate([log.counts for _, log in logs])
        return BinTable(host, seq, direction, bins, counts)

    def _ordered(self) -> list[tuple[int, IntervalLog]]:
        return sorted(self._logs, key=lambda one: one[0])


def _keys(logs: list[tuple[int, IntervalLog]]) -> tuple[Ints, Ints, Ints]:
    """Host, seq and direction of every part."""
    sizes = np.array([log.parts.shape[0] for _, log in logs], dtype=np.int64)
    host = np.repeat(np.array([host for host, _ in logs], dtype=np.int64), sizes)
    seq = np.concatenate([np.repeat(log.heads[:, 0], log.heads[:, 3]) for _, log in logs])
    direction = np.concatenate([log.parts[:, 0] for _, log in logs])
    return host, seq, direction.copy()
