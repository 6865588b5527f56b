"""What the hosts did in the measured window: plain sums for each host and direction.

Everything that is printed of a run's load follows from these sums; sums of different hosts add.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from iolab.analysis.window import Cut, Window, cut
from iolab.core.histogram import BIN_COUNT, Histogram
from iolab.core.run import DirectionTotals, HostRun, RunRecord
from iolab.core.samples import Direction, Floats, Ints

DIRECTIONS: Final = (Direction.READ, Direction.WRITE, Direction.TRIM)
"""The directions that have numbers, in the order of the arrays' second axis."""

_DIRECTION_COUNT: Final = len(DIRECTIONS)


@dataclass(frozen=True, slots=True)
class Load:
    """Sums over the measured intervals; H hosts, axis 1 is read, write, trim.

    `seconds` (H,) is the time covered by the intervals; `ios`, `bytes`, `lat_sum_ns` are (H, 3);
    `bins` is (H, 3, BIN_COUNT); `lat_min_ns` and `lat_max_ns` (H, 3) are the engine's own extremes
    of the whole run, -1 where it gave none. `cut` says which intervals were summed.
    """

    cut: Cut
    seconds: Floats
    ios: Ints
    bytes: Ints
    lat_sum_ns: Floats
    bins: Ints
    lat_min_ns: Ints
    lat_max_ns: Ints

    @property
    def shared(self) -> bool:
        """Whether the hosts had a window in common, so that their rates may be added."""
        return self.cut.common is not None

    @property
    def window_s(self) -> float:
        """The least time that the intervals of any host cover; 0 without a common window."""
        return float(self.seconds.min()) if self.shared else 0.0

    def histogram(self, hosts: list[int], ways: list[int]) -> Histogram:
        """The latencies of those hosts and directions merged bin by bin, with known extremes."""
        picked = np.ix_(hosts, ways)
        bins = self.bins[picked]
        busy = bins.any(axis=2)
        lows = self.lat_min_ns[picked][busy]
        highs = self.lat_max_ns[picked][busy]
        return Histogram(
            bins.sum(axis=(0, 1)),
            int(lows.min()) if lows.size and lows.min() >= 0 else None,
            int(highs.max()) if highs.size and highs.min() >= 0 else None,
        )


def measure(record: RunRecord, window: Window | None = None) -> Load:
    """The sums of a record's measured window, which is what a rule says where one does."""
    measured = cut(record, window)
    table = record.intervals
    rows = measured.intervals & (table.direction < _DIRECTION_COUNT)
    count = len(record.hosts)
    cell = table.host[rows] * _DIRECTION_COUNT + table.direction[rows]
    lows, highs = _extremes(record.hosts)
    return Load(
        cut=measured,
        seconds=_covered_seconds(record, measured),
        ios=_sums(cell, table.ios[rows], count),
        bytes=_sums(cell, table.bytes[rows], count),
        lat_sum_ns=_latency_sums(cell, table.lat_sum_ns[rows], count),
        bins=_dense_bins(record, measured),
        lat_min_ns=lows,
        lat_max_ns=highs,
    )


def _sums(cell: Ints, amounts: Ints, hosts: int) -> Ints:
    """Exact integer sums by cell; bincount would sum in floating point."""
    sums = np.zeros(hosts * _DIRECTION_COUNT, dtype=np.int64)
    np.add.at(sums, cell, amounts)
    return sums.reshape(hosts, _DIRECTION_COUNT)


def _latency_sums(cell: Ints, sums_ns: Floats, hosts: int) -> Floats:
    sums = np.bincount(cell, weights=sums_ns, minlength=hosts * _DIRECTION_COUNT)
    return np.asarray(sums, dtype=np.float64).reshape(hosts, _DIRECTION_COUNT)


def _covered_seconds(record: RunRecord, measured: Cut) -> Floats:
    """The spans of each host's measured intervals together, each interval once."""
    table = record.intervals
    rows = np.flatnonzero(measured.intervals)
    stride = int(table.seq.max(initial=0)) + 1
    _, first = np.unique(table.host[rows] * stride + table.seq[rows], return_index=True)
    rows = rows[first]
    spans = np.zeros(len(record.hosts), dtype=np.int64)
    np.add.at(spans, table.host[rows], table.span_ns[rows])
    return np.asarray(spans / 1e9, dtype=np.float64)


def _dense_bins(record: RunRecord, measured: Cut) -> Ints:
    shape = (len(record.hosts), _DIRECTION_COUNT, BIN_COUNT)
    counts = np.zeros(shape, dtype=np.int64)
    start = 0
    for part in record.bins.chunks():
        rows = measured.bins[start : start + len(part)] & (part.direction < _DIRECTION_COUNT)
        start += len(part)
        where = (part.host * _DIRECTION_COUNT + part.direction) * BIN_COUNT + part.bin
        np.add.at(counts.reshape(-1), where[rows], part.count[rows])
    return counts


def totals_by_way(host: HostRun) -> tuple[DirectionTotals | None, ...]:
    """The engine's own totals in the order of DIRECTIONS."""
    totals = host.totals
    return (
        (None,) * _DIRECTION_COUNT if totals is None else (totals.read, totals.write, totals.trim)
    )


def _extremes(hosts: tuple[HostRun, ...]) -> tuple[Ints, Ints]:
    """The engine's smallest and largest latency, -1 where it tells none."""
    totals = [totals_by_way(host) for host in hosts]
    lows = [[-1 if way is None or not way.ios else way.lat_min_ns for way in t] for t in totals]
    highs = [[-1 if way is None or not way.ios else way.lat_max_ns for way in t] for t in totals]
    shape = (len(hosts), _DIRECTION_COUNT)
    return (
        np.array(lows, dtype=np.int64).reshape(shape),
        np.array(highs, dtype=np.int64).reshape(shape),
    )
