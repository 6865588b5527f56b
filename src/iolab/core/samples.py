"""Columnar evidence of a run: intervals of load, their latency bins, and counters of the hosts.

Each table is a set of numpy columns of one length; nothing here is a Python object per I/O, second
or device. `host` columns index the run's host names. The columns of the long tables are of the
narrowest type that holds their values: arithmetic on them has to widen them first, since numpy
would wrap around without a word.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from msgspec.structs import astuple

from iolab.core.bins import BIN_COUNT
from iolab.core.workload import COMPOSITES_FROM, ServiceTimeDirection
from iolab.record import Record

Ints = npt.NDArray[np.int64]
SignedInts = npt.NDArray[np.signedinteger[Any]]
"""Whole numbers of any width: int64, or the narrowest that holds them (see `narrow`)."""

Floats = npt.NDArray[np.float64]
Names = npt.NDArray[np.object_]

CHUNK_ROWS: Final = 1 << 16
"""Rows looked at together where a table is too long to be widened as a whole: 512 KiB a column."""


def unique_io_mask(directions: SignedInts) -> npt.NDArray[np.bool_]:
    """Which rows tell each I/O once: none of `ServiceTimeDirection`, none made of others."""
    later = (directions > ServiceTimeDirection.TRIM) & (directions < COMPOSITES_FROM)
    return (directions < ServiceTimeDirection.READ) | later


class IntervalTable(Record):
    """What each host completed in each interval and direction.

    One row a (host, seq, direction): `seq` counts a host's intervals from 0, `end_real_ns` is the
    host's own clock at the interval's end, `span_ns` its length, `ios` and `bytes` what completed,
    `lat_sum_ns` the sum of their latencies (submission to completion). An I/O stands once more
    under its `ServiceTimeDirection` where that is told beside the time from when it was due.
    """

    host: Ints
    seq: Ints
    end_real_ns: Ints
    span_ns: Ints
    direction: Ints
    ios: Ints
    bytes: Ints
    lat_sum_ns: Floats

    def __len__(self) -> int:
        return int(self.host.size)

    def watched_ns_by_host(self, host_count: int, rows: Ints) -> Ints:
        """How long each of so many hosts was watched by these rows, each interval once."""
        stride = int(self.seq.max(initial=0)) + 1
        _, first = np.unique(self.host[rows] * stride + self.seq[rows], return_index=True)
        rows = rows[first]
        spans = np.zeros(host_count, dtype=np.int64)
        np.add.at(spans, self.host[rows], self.span_ns[rows])
        return spans


class BinGroups(Record):
    """Stretches of a `BinTable`: `size` rows from `start` on are of one (host, seq, direction).

    What is asked of a host or an interval is asked of these, some hundred times fewer than rows.
    """

    host: Ints
    seq: Ints
    direction: Ints
    start: Ints
    size: Ints

    def __len__(self) -> int:
        return int(self.host.size)

    def select_groups(self, mask_or_indexes: Ints | npt.NDArray[np.bool_]) -> BinGroups:
        """Those parts alone, by a mask or by their places."""
        return BinGroups(*(column[mask_or_indexes] for column in astuple(self)))

    def batch_slices(self) -> Iterator[slice]:
        """The parts some at a time, of about `CHUNK_ROWS` rows together; none is empty."""
        ends = np.cumsum(self.size)
        steps = np.arange(0, ends[-1] if len(self) else 0, CHUNK_ROWS)
        firsts = np.unique(np.searchsorted(ends, steps, side="right")).tolist()
        yield from map(slice, firsts, [*firsts[1:], len(self)])


class BinTable(Record):
    """Sparse latency bins: `count` I/Os of (host, seq, direction) fell into `bin`.

    The sum over all intervals is the run's whole histogram, exactly.
    """

    host: SignedInts
    seq: SignedInts
    direction: SignedInts
    bin: SignedInts
    count: SignedInts

    def __len__(self) -> int:
        return int(self.host.size)

    def bin_groups(self) -> BinGroups:
        """All parts of the table, in its order; a table in any other order has more of them."""
        starts = [np.zeros(min(len(self), 1), dtype=np.int64)]
        keys = (self.host, self.seq, self.direction)
        for first in range(0, len(self) - 1, CHUNK_ROWS):
            last = min(first + CHUNK_ROWS, len(self) - 1)
            changes = [key[first:last] != key[first + 1 : last + 1] for key in keys]
            starts.append(first + 1 + np.flatnonzero(changes[0] | changes[1] | changes[2]))
        start = np.concatenate(starts)
        host, seq, direction = (key[start].astype(np.int64) for key in keys)
        return BinGroups(host, seq, direction, start, np.diff(start, append=len(self)))

    def io_count_by_group(self, groups: BinGroups) -> Ints:
        """How many I/Os each of all the table's parts counts."""
        totals = np.zeros(len(groups), dtype=np.int64)
        for group in groups.batch_slices():
            start, size = groups.start[group], groups.size[group]
            first = int(start[0])
            counts = self.count[first : int(start[-1] + size[-1])]
            # Not all of it at once, which would widen it as a whole.
            np.add.reduceat(counts, start - first, dtype=np.int64, out=totals[group])
        return totals

    def nonempty_bins(self, groups: BinGroups) -> Ints:
        """The bins in which any of the parts counts an I/O, ascending."""
        is_used = np.zeros(BIN_COUNT, dtype=np.bool_)
        for group in groups.batch_slices():
            is_used[self.bin[_row_indexes_of_ranges(groups.start[group], groups.size[group])]] = (
                True
            )
        return np.flatnonzero(is_used)

    def add_counts_to(
        self, sums: Ints, groups: BinGroups, rows: Ints, columns: Ints | None = None
    ) -> None:
        """Add the counts of each part to its row of `sums`, of shape (rows, bins), in place.

        `columns` has the column of each bin, where `sums` has not all of them. What was just
        widened is still in the processor's cache when it is used.
        """
        flat, width = sums.reshape(-1), sums.shape[1]
        for group in groups.batch_slices():
            size = groups.size[group]
            inside = _row_indexes_of_ranges(groups.start[group], size)
            # Flat, which numpy adds up many times as fast.
            bins = self.bin[inside] if columns is None else columns[self.bin[inside]]
            where = np.repeat(rows[group] * width, size) + bins
            np.add.at(flat, where, self.count[inside].astype(sums.dtype))


def _row_indexes_of_ranges(start: Ints, size: Ints) -> slice | Ints:
    """The rows of several stretches, one after the other."""
    if (start[1:] == start[:-1] + size[:-1]).all():
        first = int(start[0]) if start.size else 0
        return slice(first, first + int(size.sum()))
    before = np.cumsum(size) - size
    return np.asarray(np.repeat(start - before, size) + np.arange(int(size.sum())))


class EncodedNames:
    """A column of text as `codes` into `words`, for tables in which few words stand often.

    It can stand wherever an array of names can be read: it has a size and a list, can be indexed,
    and turns into an array of objects when numpy asks for one.
    """

    __slots__ = ("codes", "words")

    def __init__(self, codes: SignedInts, words: Sequence[str]) -> None:
        self.codes = codes
        self.words: Names = np.array([*words, None], dtype=np.object_)[:-1]

    @property
    def size(self) -> int:
        """How many rows."""
        return int(self.codes.size)

    def __len__(self) -> int:
        return self.size

    def __getitem__(self, rows: Any) -> Any:  # noqa: ANN401 - as numpy's own
        return self.words[self.codes[rows]]

    def __array__(
        self,
        dtype: Any = None,  # noqa: ANN401
        copy: bool | None = None,  # noqa: FBT001
    ) -> Names:
        return np.asarray(self.words[self.codes], dtype=dtype)

    def __iter__(self) -> Iterator[str]:
        return iter(self.tolist())

    def tolist(self) -> list[str]:
        """Every row's word."""
        words: list[str] = self.words[self.codes].tolist()
        return words


class CounterTable(Record):
    """Telemetry as the kernel counts it, one value a row; rates are derived, never stored.

    `scope` is cpu, disk, nic, memory, pressure, thermal, agent, target or guest; `name` the core,
    device, port or guest;
    `metric` the counter's name with its unit last (see docs/reference/telemetry.md). CPU rows are
    named `<core>@<numa node>`.
    """

    host: SignedInts
    seq: SignedInts
    real_ns: Ints
    scope: Names | EncodedNames
    name: Names | EncodedNames
    metric: Names | EncodedNames
    value: Ints

    def __len__(self) -> int:
        return int(self.host.size)


def row_indexes_by_host(hosts: SignedInts, count: int) -> list[Ints]:
    """The rows of each of `count` hosts, in the order of the table."""
    order = np.argsort(hosts, kind="stable")
    edges = np.searchsorted(hosts[order], np.arange(count + 1)).tolist()
    return [order[first:last] for first, last in pairwise(edges)]


def with_narrowest_type(values: SignedInts) -> SignedInts:
    """The same values in the narrowest signed type that holds all of them."""
    if values.size == 0:
        return values.astype(np.int8)
    low, high = int(values.min()), int(values.max())
    for kind in (np.int8, np.int16, np.int32):
        limits = np.iinfo(kind)
        if limits.min <= low and high <= limits.max:
            return values.astype(kind)
    return values.astype(np.int64)


def empty_interval_table() -> IntervalTable:
    """A table of no interval."""
    none = np.zeros(0, dtype=np.int64)
    return IntervalTable(none, none, none, none, none, none, none, np.zeros(0))


def empty_bin_table() -> BinTable:
    """A table of no bin."""
    none = np.zeros(0, dtype=np.int64)
    return BinTable(none, none, none, none, none)


def empty_counter_table() -> CounterTable:
    """A table of no counter."""
    none = np.zeros(0, dtype=np.int64)
    names = np.zeros(0, dtype=np.object_)
    return CounterTable(none, none, none, names, names, names, none)
