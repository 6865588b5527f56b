"""What a host completed, interval by interval, as it is told and as it is kept."""

from __future__ import annotations

import ctypes
from array import array
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, Self, overload

import numpy as np
import numpy.typing as npt

from iolab.core.events import IntervalReported
from iolab.core.run import PlannedRun
from iolab.core.samples import (
    BinTable,
    IntervalTable,
    Ints,
    SignedInts,
    empty_bin_table,
    empty_interval_table,
    with_narrowest_type,
)
from iolab.core.workload import COMPOSITES_FROM, ServiceTimeDirection
from iolab.record import Record
from iolab.units import NS_PER_S

SERVICE_TIMES: Final = frozenset(ServiceTimeDirection)
"""What counts the same I/Os a second time, from their submission."""

_HEAD: Final = 4
"""Numbers of an interval: seq, end, span, how many parts it has."""

_PART: Final = 4
"""Numbers of a part: direction, I/Os, bytes, how many bins it has."""

_WIDTHS: Final = (np.dtype(np.int16), np.dtype(np.int32), np.dtype(np.int64))
"""What bins and counts are kept in: the narrowest that holds all of a host's."""


class DirectionInterval(Record):
    """What completed in one direction during an interval: `counts[i]` I/Os fell into `bins[i]`.

    `direction` is the number that stands in files: a `Direction`, a
    `ServiceTimeDirection`, or an operation of the kind of load.
    `lat_sum_ns` is the sum of their latencies from submission to completion. `bins` and `counts`
    are whole numbers of any width.
    """

    direction: int
    ios: int
    bytes: int
    lat_sum_ns: float
    bins: SignedInts
    counts: SignedInts


class Interval(Record):
    """What one host completed between two moments of its own clock.

    `directions` are those that the job asks for, also when nothing completed in one of them.
    """

    seq: int
    end_real_ns: int
    span_ns: int
    directions: tuple[DirectionInterval, ...]

    @property
    def ios(self) -> int:
        """I/Os of all directions."""
        return sum(direction.ios for direction in self._non_overlapping_directions)

    @property
    def bytes(self) -> int:
        """Bytes of all directions."""
        return sum(direction.bytes for direction in self._non_overlapping_directions)

    @property
    def iops(self) -> float:
        """I/Os a second over the interval; 0 for an interval without length."""
        return self.ios * NS_PER_S / self.span_ns if self.span_ns else 0.0

    @property
    def bw_bytes_per_s(self) -> float:
        """Bytes a second over the interval; 0 for an interval without length."""
        return self.bytes * NS_PER_S / self.span_ns if self.span_ns else 0.0

    @property
    def lat_ns_mean(self) -> float | None:
        """The mean latency over all directions; None when nothing completed."""
        ios = self.ios
        return sum(d.lat_sum_ns for d in self._non_overlapping_directions) / ios if ios else None

    @property
    def latency_bins(self) -> tuple[tuple[SignedInts, SignedInts], ...]:
        """Latency bins and the I/Os in each, of every direction."""
        return tuple((part.bins, part.counts) for part in self._non_overlapping_directions)

    def to_event(self, host_name: str, run: PlannedRun, elapsed_s: float) -> IntervalReported:
        """The same for the live view."""
        return IntervalReported(
            host_name,
            run,
            elapsed_s,
            self.iops,
            self.bw_bytes_per_s,
            self.lat_ns_mean,
            self.latency_bins,
        )

    @property
    def _non_overlapping_directions(self) -> Iterator[DirectionInterval]:
        """Each I/O once: that it is timed from its submission as well makes no second one of it."""
        return (
            part
            for part in self.directions
            if part.direction not in SERVICE_TIMES and part.direction < COMPOSITES_FROM
        )


class IntervalLog(Sequence[Interval]):
    """Intervals in order, each made anew when it is looked at; their parts are by direction."""

    def __init__(self, intervals: Iterable[Interval] = ()) -> None:
        self._heads = array("q")
        self._parts = array("q")
        self._sums = array("d")
        self._bins = _GrowingColumn()
        self._counts = _GrowingColumn()
        for interval in intervals:
            self.append(interval)

    @classmethod
    def from_intervals(cls, intervals: Iterable[Interval]) -> Self:
        """The intervals as a log: themselves if they are one."""
        return intervals if isinstance(intervals, cls) else cls(intervals)

    def append(self, interval: Interval) -> None:
        """Take one more."""
        parts = interval.directions
        if len(parts) > 1:
            parts = tuple(sorted(parts, key=lambda part: part.direction))
        self._heads.extend((interval.seq, interval.end_real_ns, interval.span_ns, len(parts)))
        for part in parts:
            self._parts.extend((part.direction, part.ios, part.bytes, len(part.bins)))
            self._sums.append(part.lat_sum_ns)
            self._bins.extend(part.bins)
            self._counts.extend(part.counts)

    def extend(self, intervals: Iterable[Interval]) -> None:
        """Take more."""
        for interval in intervals:
            self.append(interval)

    def replace_times(self, ends_ns: Ints, spans_ns: Ints) -> None:
        """Put these ends and lengths, one an interval, in the place of those that were taken."""
        self._heads[1::_HEAD] = array("q", ends_ns.tolist())
        self._heads[2::_HEAD] = array("q", spans_ns.tolist())

    def replace_part_bytes(self, part_bytes: Sequence[int]) -> None:
        """Put these bytes, one a part, in the place of those that were taken."""
        self._parts[2::_PART] = array("q", part_bytes)

    @property
    def seq_end_span_and_part_count_rows(self) -> Ints:
        """A row an interval: seq, end_real_ns, span_ns, number of parts."""
        return np.array(self._heads, dtype=np.int64).reshape(-1, _HEAD)

    @property
    def direction_ios_bytes_and_bin_count_rows(self) -> Ints:
        """A row a part, in the order of the intervals: direction, ios, bytes, number of bins."""
        return np.array(self._parts, dtype=np.int64).reshape(-1, _PART)

    @property
    def lat_sums_ns(self) -> npt.NDArray[np.float64]:
        """A value a part."""
        return np.array(self._sums, dtype=np.float64)

    @property
    def bins(self) -> SignedInts:
        """The bins of all parts, one after the other."""
        return self._bins.values().copy()

    @property
    def counts(self) -> SignedInts:
        """The counts of all parts, one after the other."""
        return self._counts.values().copy()

    def pop_bins(self) -> SignedInts:
        """The bins of all parts, which are no longer here then."""
        taken, self._bins = self._bins.values(), _GrowingColumn()
        return taken

    def pop_counts(self) -> SignedInts:
        """The counts of all parts, which are no longer here then."""
        taken, self._counts = self._counts.values(), _GrowingColumn()
        return taken

    def __len__(self) -> int:
        return len(self._heads) // _HEAD

    @overload
    def __getitem__(self, index: int) -> Interval: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Interval]: ...
    def __getitem__(self, index: int | slice) -> Interval | Sequence[Interval]:
        return list(self)[index]

    def __iter__(self) -> Iterator[Interval]:
        bins, counts = self.bins, self.counts
        parts = self.direction_ios_bytes_and_bin_count_rows.tolist()
        part = start = 0
        for seq, end_ns, span_ns, size in self.seq_end_span_and_part_count_rows.tolist():
            made = []
            for way, ios, moved, width in parts[part : part + size]:
                inside = slice(start, start + width)
                sum_ns = self._sums[part]
                made.append(
                    DirectionInterval(way, ios, moved, sum_ns, bins[inside], counts[inside])
                )
                part, start = part + 1, start + width
            yield Interval(seq, end_ns, span_ns, tuple(made))


class _GrowingColumn:
    """Whole numbers that grow in one place, as wide as the largest of them needs."""

    def __init__(self) -> None:
        self._held = bytearray()
        self._width = 0

    def extend(self, values: SignedInts) -> None:
        """Take more; those of a narrow type need no look at each."""
        kind = _WIDTHS[self._width]
        held = values.astype(kind)
        if values.dtype.itemsize > kind.itemsize and (held != values).any():
            self._widen_type()
            self.extend(values)
        else:
            self._held += held.data

    def values(self) -> SignedInts:
        """All of them, as a view: while it is looked at nothing can be added."""
        return np.frombuffer(self._held, dtype=_WIDTHS[self._width])

    def _widen_type(self) -> None:
        wider = self.values().astype(_WIDTHS[self._width + 1])
        self._width += 1
        self._held = bytearray(wider.data)


class IntervalCollector:
    """Takes each host's intervals as they come; gives the tables when the run is over.

    `host` is the host's index in the run's order. Intervals of one host must be added in order.
    """

    def __init__(self) -> None:
        self._logs: list[tuple[int, IntervalLog]] = []

    def add(self, host_index: int, intervals: Iterable[Interval]) -> None:
        """Take further intervals of one host; a log is looked at when the tables are made."""
        self._logs.append((host_index, IntervalLog.from_intervals(intervals)))

    def build_interval_table(self) -> IntervalTable:
        """One row a (host, interval, direction), in the order of (host, seq, direction)."""
        logs = self._logs_by_host()
        if not logs:
            return empty_interval_table()
        host, seq, direction = _host_seq_direction_columns(logs)
        heads = np.concatenate(
            [
                np.repeat(
                    log.seq_end_span_and_part_count_rows,
                    log.seq_end_span_and_part_count_rows[:, 3],
                    axis=0,
                )
                for _, log in logs
            ]
        )
        parts = np.concatenate([log.direction_ios_bytes_and_bin_count_rows for _, log in logs])
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

    def pop_bin_table(self) -> BinTable:
        """One row a (host, interval, direction, bin) that counted anything, in that order.

        The logs keep none of them: they are most of what a run holds, and are not held twice. Each
        column of theirs is gone before the next is made.
        """
        logs = self._logs_by_host()
        if not logs:
            return empty_bin_table()
        bins = np.concatenate([log.pop_bins() for _, log in logs])
        trim_malloc_heap()
        counts = np.concatenate([log.pop_counts() for _, log in logs])
        trim_malloc_heap()
        sizes = np.concatenate(
            [log.direction_ios_bytes_and_bin_count_rows[:, 3] for _, log in logs]
        )
        # Narrowed before they are repeated: this is the longest table of a run.
        host, seq, direction = (
            np.repeat(with_narrowest_type(column), sizes)
            for column in _host_seq_direction_columns(logs)
        )
        return BinTable(host, seq, direction, bins, counts)

    def _logs_by_host(self) -> list[tuple[int, IntervalLog]]:
        return sorted(self._logs, key=lambda host_log: host_log[0])


def _host_seq_direction_columns(logs: list[tuple[int, IntervalLog]]) -> tuple[Ints, Ints, Ints]:
    """Host, seq and direction of every part."""
    sizes = np.array(
        [log.direction_ios_bytes_and_bin_count_rows.shape[0] for _, log in logs], dtype=np.int64
    )
    host = np.repeat(np.array([host for host, _ in logs], dtype=np.int64), sizes)
    seq = np.concatenate(
        [
            np.repeat(
                log.seq_end_span_and_part_count_rows[:, 0],
                log.seq_end_span_and_part_count_rows[:, 3],
            )
            for _, log in logs
        ]
    )
    direction = np.concatenate(
        [log.direction_ios_bytes_and_bin_count_rows[:, 0] for _, log in logs]
    )
    return host, seq, direction.copy()


def trim_malloc_heap() -> None:
    """Pieces that were freed go back to the system, where its C library can be asked for that.

    The reports of a thousand hosts leave half of a process's memory free in pieces, of which the
    large tables that are made next can use none.
    """
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)
