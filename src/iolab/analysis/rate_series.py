"""A run as rule D sees it: I/Os of the whole fleet in each second that all hosts shared.

Of loads whose operations have rows of their own they are whole operations, each counted once.

Second k lies between k and k + 1 seconds after the latest first I/O of any host, on the
controller's clock; the last whole one ends before the earliest end, which is where a host submits
nothing more, as in the window: what drains is no load any more. Engines report about once a second,
each at moments of its own: an interval's I/Os are taken as spread evenly over it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np

from iolab.analysis.window import EDGE_SLACK_NS, controller_ns, submitted_until_ns
from iolab.core.run import HostRun, RunRecord
from iolab.core.samples import Floats, Ints, counted_once

SECOND_NS: Final = 1_000_000_000

Weights = Mapping[int, int]
"""How often a row of each operation counts as a whole one; 0 for those that are not named."""

EVERY_ROW: Final[Weights] = {}
"""Where the rows of an interval are of one operation, each counts once."""

_Line = tuple[Ints, Floats]
"""Moments on the controller's clock (ns), and what was done until each."""


@dataclass(frozen=True, slots=True)
class FleetSeconds:
    """I/Os of each second, shape (seconds,), and when the first began (controller's clock, ns)."""

    start_ns: int
    counts: Floats

    def at_ns(self, second: float) -> int:
        """The moment so many seconds after the start."""
        return self.start_ns + round(second * SECOND_NS)


def fleet_seconds(record: RunRecord, weights: Weights = EVERY_ROW) -> FleetSeconds | None:
    """The series of a record; None where its hosts shared no whole second."""
    hosts = [_lines(record, index, weights) for index in range(len(record.hosts))]
    if not hosts or not all(hosts):
        return None
    start_ns = max(min(int(times[0]) for times, _ in lines) for lines in hosts)
    end_ns = min(_end_ns(host, lines) for host, lines in zip(record.hosts, hosts, strict=True))
    whole = (end_ns - start_ns) // SECOND_NS
    if whole < 1:
        return None
    edges = np.arange(whole + 1, dtype=np.float64) * SECOND_NS
    # Subtracted first: nanoseconds since the epoch have no exact floats.
    each = [line for lines in hosts for line in lines]
    done = sum(np.interp(edges, times - start_ns, counts) for times, counts in each)
    return FleetSeconds(start_ns, np.asarray(np.diff(done), dtype=np.float64))


def _end_ns(host: HostRun, lines: list[_Line]) -> int:
    """A host's last second may end by the slack of edges after its last submission."""
    last_ns = max(int(times[-1]) for times, _ in lines)
    return min(last_ns, submitted_until_ns(host, last_ns) + EDGE_SLACK_NS)


def _lines(record: RunRecord, host: int, weights: Weights) -> list[_Line]:
    """What a host did over time; empty for nothing.

    I/Os of both directions come in one interval. Operations with weights may have intervals of
    their own, so that each has a line, with what makes a whole operation of it.
    """
    table = record.intervals
    mine = np.flatnonzero((table.host == host) & counted_once(table.direction))
    if mine.size == 0:
        return []
    if not weights:
        return [_line(record, host, mine)]
    parts = ((mine[table.direction[mine] == way], weight) for way, weight in weights.items())
    lines = ((_line(record, host, rows), weight) for rows, weight in parts if rows.size)
    return [(times, until * weight) for (times, until), weight in lines]


def _line(record: RunRecord, host: int, rows: Ints) -> _Line:
    """What those rows of a host's intervals add up to over time."""
    table = record.intervals
    _, first, each = np.unique(table.seq[rows], return_index=True, return_inverse=True)
    ios = np.bincount(each, weights=table.ios[rows].astype(np.float64))
    ends = controller_ns(table.end_real_ns[rows][first], record.hosts[host].clock_offset_ns)
    starts = ends - table.span_ns[rows][first]
    # Both ends of each interval: where one is missing, nothing is known to have completed.
    times = np.maximum.accumulate(np.column_stack([starts, ends]).reshape(-1))
    until = np.cumsum(ios)
    counts = np.column_stack([until - ios, until]).reshape(-1)
    return times, counts
