"""One grid of times for everything that a run's timeline shows."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np

from iolab.model.run import RunRecord
from iolab.model.sample import Floats, Ints
from iolab.report.detail import Trace

MAX_CELLS: Final = 180
"""Cells of a timeline: more than its width in pixels on a phone can show is only bytes."""


@dataclass(frozen=True, slots=True)
class Grid:
    """Equal cells over the run on the controller's clock, from the first I/O.

    `offsets_ns` is how far each host's clock is ahead of the controller's.
    """

    start_ns: int
    edges_ns: Floats
    cell_s: float
    offsets_ns: Ints

    @property
    def middles_s(self) -> Floats:
        """The middle of each cell in seconds since the first I/O."""
        middles = (self.edges_ns[:-1] + self.edges_ns[1:]) / 2
        return np.asarray((middles - self.start_ns) / 1e9, dtype=np.float64)

    @property
    def size(self) -> int:
        """How many cells there are."""
        return int(self.edges_ns.size - 1)

    @staticmethod
    def over(record: RunRecord) -> Grid:
        """Cells as long as the run's intervals, or longer where that would be too many."""
        table = record.intervals
        offsets = np.array([host.clock_offset_ns for host in record.hosts], dtype=np.int64)
        ends = table.end_real_ns - offsets[table.host]
        start = int((ends - table.span_ns).min())
        span = int(ends.max()) - start
        step = float(np.median(table.span_ns)) if len(table) else 1e9
        cells = max(1, min(MAX_CELLS, round(span / max(step, 1.0))))
        width = step * math.ceil(span / step / cells) if cells == MAX_CELLS else span / cells
        count = math.ceil(span / width - 1e-6)
        edges = start + width * np.arange(count + 1, dtype=np.float64)
        return Grid(start, edges, round(width / 1e9, 3), offsets)

    def cell_of(self, times_ns: Floats) -> Ints:
        """The cell that each time falls into, -1 outside."""
        index = np.searchsorted(self.edges_ns, times_ns, side="right") - 1
        return np.where((index >= 0) & (index < self.size), index, -1).astype(np.int64)


def trace(name: str, values: Floats) -> Trace:
    """The values with four digits; what is not a number is unknown."""
    return Trace(
        name, tuple(float(f"{v:.4g}") if math.isfinite(v) else None for v in values.tolist())
    )
