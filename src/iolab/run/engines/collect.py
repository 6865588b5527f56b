"""Intervals of all hosts gathered into the columns of a run's record."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from iolab.model.sample import BinTable, IntervalTable, narrow
from iolab.run.engines.base import DirectionInterval, Interval

_Row = tuple[int, Interval, DirectionInterval]


class IntervalCollector:
    """Takes each host's intervals as they come; gives the tables when the run is over.

    `host` is the host's index in the run's order. Intervals of one host must be added in order.
    """

    def __init__(self) -> None:
        self._rows: list[_Row] = []

    def add(self, host: int, intervals: Iterable[Interval]) -> None:
        """Take further intervals of one host."""
        for interval in intervals:
            self._rows.extend((host, interval, part) for part in interval.directions)

    def intervals(self) -> IntervalTable:
        """One row a (host, interval, direction), in the order of (host, seq, direction)."""
        rows = self._ordered()
        columns = [
            [host, one.seq, one.end_real_ns, one.span_ns, part.direction, part.ios, part.bytes]
            for host, one, part in rows
        ]
        table = np.array(columns, dtype=np.int64).reshape(-1, 7)
        sums = np.array([part.lat_sum_ns for _, _, part in rows], dtype=np.float64)
        host, seq, end, span, direction, ios, moved = (column.copy() for column in table.T)
        return IntervalTable(host, seq, end, span, direction, ios, moved, sums)

    def bins(self) -> BinTable:
        """One row a (host, interval, direction, bin) that counted anything, in that order."""
        rows = self._ordered()
        sizes = np.array([part.bins.size for _, _, part in rows], dtype=np.int64)
        keys = np.array([[host, one.seq, part.direction] for host, one, part in rows], np.int64)
        # Narrowed before they are repeated: this is the longest table of a run.
        host, seq, direction = (
            np.repeat(narrow(column), sizes) for column in keys.reshape(-1, 3).T
        )
        none = np.zeros(0, dtype=np.int8)
        bins = np.concatenate([none, *(part.bins for _, _, part in rows)])
        counts = np.concatenate([none, *(part.counts for _, _, part in rows)])
        return BinTable(host, seq, direction, bins, counts)

    def _ordered(self) -> list[_Row]:
        return sorted(self._rows, key=lambda row: (row[0], row[1].seq, row[2].direction))
