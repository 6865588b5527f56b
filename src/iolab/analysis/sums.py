"""What the hosts did: plain sums for each host and operation, of which everything follows.

Operations of every kind of load are rows of one table, by their numbers: reads, writes and trims,
those on files and trees, those on keys. Sums of different hosts add, and their bins merge.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from iolab.analysis.window import Mask, MeasuredPart, Window, find_measured_part
from iolab.core.bins import BIN_COUNT
from iolab.core.histogram import Histogram
from iolab.core.run import DirectionTotals, HostRun, RunRecord
from iolab.core.samples import BinGroups, Floats, Ints
from iolab.core.workload import Direction
from iolab.record import Record

DIRECTIONS: Final = (Direction.READ, Direction.WRITE, Direction.TRIM)
"""The directions that have numbers, in the order of the arrays' second axis."""

_DIRECTION_COUNT: Final = len(DIRECTIONS)


class OperationSums(Record):
    """Sums of rows of a record; H hosts, axis 1 is the O operations that were requested.

    `completed`, `bytes` and `lat_sum_ns` are (H, O), `bins` is (H, O, BIN_COUNT).
    """

    completed: Ints
    bytes: Ints
    lat_sum_ns: Floats
    bins: Ints


def sum_operations(
    record: RunRecord, operations: Sequence[int], interval_mask: Mask, bin_groups: BinGroups
) -> OperationSums:
    """The sums of these operations over the intervals that are marked and these parts of the bins.

    They are exact: of whole numbers, and of latencies in the order of the rows.
    """
    table, shape = record.intervals, (len(record.hosts), len(operations))
    last = max(int(table.direction.max(initial=0)), int(bin_groups.direction.max(initial=0)))
    places = np.full(max((*operations, last)) + 1, -1, dtype=np.int64)
    places[list(operations)] = np.arange(len(operations))
    rows = np.flatnonzero(interval_mask & (places[table.direction] >= 0))
    width = len(operations)
    where = table.host[rows] * width + places[table.direction[rows]]
    sums = OperationSums(
        np.zeros(shape, dtype=np.int64),
        np.zeros(shape, dtype=np.int64),
        np.zeros(shape, dtype=np.float64),
        np.zeros((*shape, BIN_COUNT), dtype=np.int64),
    )
    if not operations:
        return sums
    # Flat, which numpy adds up many times as fast.
    np.add.at(sums.completed.reshape(-1), where, table.ios[rows])
    np.add.at(sums.bytes.reshape(-1), where, table.bytes[rows])
    np.add.at(sums.lat_sum_ns.reshape(-1), where, table.lat_sum_ns[rows])
    asked = bin_groups.select_groups(places[bin_groups.direction] >= 0)
    cells = asked.host * width + places[asked.direction]
    record.bins.add_counts_to(sums.bins.reshape(-1, BIN_COUNT), asked, cells)
    return sums


def sum_operations_in_window(
    record: RunRecord, operations: Sequence[int], measured_part: MeasuredPart
) -> OperationSums:
    """The sums of these operations over what was measured of a run."""
    parts = measured_part.bin_groups.select_groups(measured_part.bin_group_mask)
    return sum_operations(record, operations, measured_part.interval_mask, parts)


class LoadSums(Record):
    """Sums over the measured intervals; H hosts, axis 1 is read, write, trim.

    `seconds` (H,) is the time covered by the intervals; `ios`, `bytes`, `lat_sum_ns` are (H, 3);
    `bins` is (H, 3, BIN_COUNT); `lat_min_ns` and `lat_max_ns` (H, 3) are the engine's own extremes
    of the whole run, -1 where it gave none. `find_measured_part` says which intervals were summed.
    """

    measured_part: MeasuredPart
    seconds: Floats
    ios: Ints
    bytes: Ints
    lat_sum_ns: Floats
    bins: Ints
    lat_min_ns: Ints
    lat_max_ns: Ints

    @property
    def has_common_window(self) -> bool:
        """Whether the hosts had a window in common, so that their rates may be added."""
        return self.measured_part.common_window is not None

    @property
    def window_s(self) -> float:
        """The least time that the intervals of any host cover; 0 without a common window."""
        return float(self.seconds.min()) if self.has_common_window else 0.0

    def histogram(self, host_indexes: list[int], directions: list[int]) -> Histogram:
        """The latencies of those hosts and directions merged bin by bin, with known extremes."""
        busy = [
            (host, way) for host in host_indexes for way in directions if self.bins[host, way].any()
        ]
        counts = np.zeros(BIN_COUNT, dtype=np.int64)
        for place in busy:  # picked out together, those of a thousand hosts would be 30 MB more
            counts += self.bins[place]
        lows = [int(self.lat_min_ns[place]) for place in busy]
        highs = [int(self.lat_max_ns[place]) for place in busy]
        return Histogram(
            counts,
            min(lows) if lows and min(lows) >= 0 else None,
            max(highs) if highs and min(highs) >= 0 else None,
        )


def sum_measured_window(record: RunRecord, window: Window | None = None) -> LoadSums:
    """The sums of a record's measured window, which is what a rule says where one does."""
    measured = find_measured_part(record, window)
    sums = sum_operations_in_window(record, DIRECTIONS, measured)
    lows, highs = _engine_latency_extremes(record.hosts)
    covered_ns = record.intervals.watched_ns_by_host(
        len(record.hosts), np.flatnonzero(measured.interval_mask)
    )
    return LoadSums(
        measured_part=measured,
        seconds=covered_ns / 1e9,
        ios=sums.completed,
        bytes=sums.bytes,
        lat_sum_ns=sums.lat_sum_ns,
        bins=sums.bins,
        lat_min_ns=lows,
        lat_max_ns=highs,
    )


def engine_totals_by_direction(host: HostRun) -> tuple[DirectionTotals | None, ...]:
    """The engine's own totals in the order of DIRECTIONS."""
    totals = host.totals
    return (
        (None,) * _DIRECTION_COUNT if totals is None else (totals.read, totals.write, totals.trim)
    )


def _engine_latency_extremes(hosts: tuple[HostRun, ...]) -> tuple[Ints, Ints]:
    """The engine's smallest and largest latency, -1 where it tells none."""
    totals = [engine_totals_by_direction(host) for host in hosts]
    lows = [[-1 if way is None or not way.ios else way.lat_min_ns for way in t] for t in totals]
    highs = [[-1 if way is None or not way.ios else way.lat_max_ns for way in t] for t in totals]
    shape = (len(hosts), _DIRECTION_COUNT)
    return (
        np.array(lows, dtype=np.int64).reshape(shape),
        np.array(highs, dtype=np.int64).reshape(shape),
    )
