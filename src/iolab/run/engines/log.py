"""One host's intervals as they come, in a few growing columns and no object for each second.

A thousand hosts make 60,000 intervals a minute. As objects with arrays of their own they take
several times the memory of what they hold, in pieces that leave holes when they are freed.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, Self, overload

import numpy as np
import numpy.typing as npt

from iolab.model.key_value import KeyOperation
from iolab.model.metadata import Operation
from iolab.model.sample import Direction, Ints, ServiceTime, Whole
from iolab.run.engines.base import DirectionInterval, Interval

_HEAD: Final = 4
"""Numbers of an interval: seq, end, span, how many parts it has."""

_PART: Final = 4
"""Numbers of a part: direction, I/Os, bytes, how many bins it has."""

_WIDTHS: Final = (np.dtype(np.int16), np.dtype(np.int32), np.dtype(np.int64))
"""What bins and counts are kept in: the narrowest that holds all of a host's."""


class IntervalLog(Sequence[Interval]):
    """Intervals in order, each made anew when it is looked at; their parts are by direction."""

    def __init__(self, intervals: Iterable[Interval] = ()) -> None:
        self._heads = array("q")
        self._parts = array("q")
        self._sums = array("d")
        self._bins = _Column()
        self._counts = _Column()
        for interval in intervals:
            self.append(interval)

    @classmethod
    def of(cls, intervals: Iterable[Interval]) -> Self:
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

    def correct_times(self, ends_ns: Ints, spans_ns: Ints) -> None:
        """Put these ends and lengths, one an interval, in the place of those that were taken."""
        self._heads[1::_HEAD] = array("q", ends_ns.tolist())
        self._heads[2::_HEAD] = array("q", spans_ns.tolist())

    def correct_bytes(self, moved: Sequence[int]) -> None:
        """Put these bytes, one a part, in the place of those that were taken."""
        self._parts[2::_PART] = array("q", moved)

    @property
    def heads(self) -> Ints:
        """A row an interval: seq, end_real_ns, span_ns, number of parts."""
        return np.array(self._heads, dtype=np.int64).reshape(-1, _HEAD)

    @property
    def parts(self) -> Ints:
        """A row a part, in the order of the intervals: direction, ios, bytes, number of bins."""
        return np.array(self._parts, dtype=np.int64).reshape(-1, _PART)

    @property
    def lat_sums_ns(self) -> npt.NDArray[np.float64]:
        """A value a part."""
        return np.array(self._sums, dtype=np.float64)

    @property
    def bins(self) -> Whole:
        """The bins of all parts, one after the other."""
        return self._bins.values()

    @property
    def counts(self) -> Whole:
        """The counts of all parts, one after the other."""
        return self._counts.values()

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
        parts = self.parts.tolist()
        part = start = 0
        for seq, end_ns, span_ns, size in self.heads.tolist():
            made = []
            for way, ios, moved, width in parts[part : part + size]:
                inside = slice(start, start + width)
                sum_ns = self._sums[part]
                made.append(
                    DirectionInterval(_WAYS[way], ios, moved, sum_ns, bins[inside], counts[inside])
                )
                part, start = part + 1, start + width
            yield Interval(seq, end_ns, span_ns, tuple(made))


_WAYS: Final[dict[int, Direction | ServiceTime | Operation | KeyOperation]] = {
    int(way): way for ways in (Direction, ServiceTime, Operation, KeyOperation) for way in ways
}


class _Column:
    """Whole numbers that grow in one place, as wide as the largest of them needs."""

    def __init__(self) -> None:
        self._held = bytearray()
        self._width = 0

    def extend(self, values: Whole) -> None:
        """Take more; those of a narrow type need no look at each."""
        kind = _WIDTHS[self._width]
        if values.dtype.itemsize > kind.itemsize and values.size:
            limits = np.iinfo(kind)
            if values.max() > limits.max or values.min() < limits.min:
                self._widen()
                self.extend(values)
                return
        self._held += values.astype(kind).data

    def values(self) -> Whole:
        """All of them."""
        return np.frombuffer(bytes(self._held), dtype=_WIDTHS[self._width])

    def _widen(self) -> None:
        wider = self.values().astype(_WIDTHS[self._width + 1])
        self._width += 1
        self._held = bytearray(wider.data)
