"""A run as rule D sees it: I/Os of the whole fleet in each second that all hosts shared.

Second k lies between k and k + 1 seconds after the latest first I/O of any host, on the
controller's clock; the last whole one ends before the earliest end. Engines report about once a
second, each at moments of its own: an interval's I/Os are taken as spread evenly over it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from iolab.analyse.window import controller_ns
from iolab.model.run import RunRecord
from iolab.model.sample import Floats, IntervalTable

SECOND_NS: Final = 1_000_000_000


@dataclass(frozen=True, slots=True)
class FleetSeconds:
    """I/Os of each second, shape (seconds,), and when the first began (controller's clock, ns)."""

    start_ns: int
    counts: Floats

    def at_ns(self, second: float) -> int:
        """The moment so many seconds after the start."""
        return self.start_ns + round(second * SECOND_NS)


def fleet_seconds(record: RunRecord) -> FleetSeconds | None:
    """The series of a record; None where its hosts shared no whole second."""
    lines = [_line(record, index) for index in range(len(record.hosts))]
    known = [line for line in lines if line is not None]
    if not known or len(known) < len(lines):
        return None
    start_ns = max(int(times[0]) for times, _ in known)
    end_ns = min(int(times[-1]) for times, _ in known)
    whole = (end_ns - start_ns) // SECOND_NS
    if whole < 1:
        return None
    edges = np.arange(whole + 1, dtype=np.float64) * SECOND_NS
    # Subtracted first: nanoseconds since the epoch have no exact floats.
    done = sum(np.interp(edges, times - start_ns, counts) for times, counts in known)
    return FleetSeconds(start_ns, np.asarray(np.diff(done), dtype=np.float64))


def _line(record: RunRecord, host: int) -> tuple[np.ndarray, Floats] | None:
    """A host's moments on the controller's clock (int64, ns), and its I/Os until then."""
    table: IntervalTable = record.intervals
    rows = np.flatnonzero(table.host == host)
    if rows.size == 0:
        return None
    _, first, each = np.unique(table.seq[rows], return_index=True, return_inverse=True)
    ios = np.bincount(each, weights=table.ios[rows].astype(np.float64))
    ends = controller_ns(table.end_real_ns[rows][first], record.hosts[host].clock_offset_ns)
    starts = ends - table.span_ns[rows][first]
    # Both ends of each interval: where one is missing, nothing is known to have completed.
    times = np.maximum.accumulate(np.column_stack([starts, ends]).reshape(-1))
    until = np.cumsum(ios)
    counts = np.column_stack([until - ios, until]).reshape(-1)
    return times, counts
