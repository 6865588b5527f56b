"""One grid of times for everything that a run's timeline shows."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np

from iolab.analyse.window import controller_ns
from iolab.model.run import RunRecord
from iolab.model.sample import Floats, Ints
from iolab.report.detail import Trace

MAX_CELLS: Final = 180
"""Cells of a timeline: more than its width in pixels on a phone can show is only bytes."""


@dataclass(frozen=True, slots=True)
class Grid:
    """Equal cells over the run, counted from its first I/O on the controller's clock.

    `edges_ns` are relative to `start_ns` (ns since the epoch), so that they keep every nanosecond;
    `offsets_ns` is how far each host's clock is ahead of the controller's, in the order of the
    record's `host_names`.
    """

    start_ns: int
    span_ns: int
    edges_ns: Floats
    cell_s: float
    offsets_ns: Ints

    @property
    def middles_s(self) -> Floats:
        """The middle of each cell in seconds."""
        return np.asarray((self.edges_ns[:-1] + self.edges_ns[1:]) / 2e9, dtype=np.float64)

    @property
    def covered_s(self) -> Floats:
        """The part of each cell that the run covers: all of it but for the last."""
        edges = np.minimum(self.edges_ns, float(self.span_ns))
        return np.asarray(np.diff(edges) / 1e9, dtype=np.float64)

    @property
    def size(self) -> int:
        """How many cells there are."""
        return int(self.edges_ns.size - 1)

    @staticmethod
    def over(record: RunRecord) -> Grid:
        """Cells as long as the run's intervals, or longer where that would be too many."""
        table = record.intervals
        ahead = [host.clock_offset_ns for host in record.hosts]
        ahead += [host.clock_offset_ns for host in record.bystanders]
        offsets = np.array(ahead, dtype=np.int64)
        ends = controller_ns(table.end_real_ns, offsets[table.host])
        start = int((ends - table.span_ns).min())
        span = int(ends.max()) - start
        step = max(float(np.median(table.span_ns)), 1.0)
        cells = max(1, min(MAX_CELLS, round(span / step)))
        width = step * math.ceil(span / step / cells) if cells == MAX_CELLS else span / cells
        count = math.ceil(span / width - 1e-6)
        edges = width * np.arange(count + 1, dtype=np.float64)
        return Grid(start, span, edges, round(width / 1e9, 3), offsets)

    def since_start_ns(self, host_ns: Ints, host: Ints | int) -> Floats:
        """Times of hosts' own clocks, in ns since the first I/O."""
        times = controller_ns(host_ns, self.offsets_ns[host]) - self.start_ns
        return np.asarray(times, dtype=np.float64)

    def cell_of(self, times_ns: Floats) -> Ints:
        """The cell that each time since the start falls into, -1 outside."""
        index = np.searchsorted(self.edges_ns, times_ns, side="right") - 1
        return np.where((index >= 0) & (index < self.size), index, -1).astype(np.int64)


def trace(name: str, values: Floats) -> Trace:
    """The values with four digits; what is not a number is unknown."""
    return Trace(
        name, tuple(float(f"{v:.4g}") if math.isfinite(v) else None for v in values.tolist())
    )
