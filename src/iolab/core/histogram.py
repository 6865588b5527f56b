"""Latency histograms in fio's log-linear bins: 64 a power of two, merged by addition.

Below 128 ns every nanosecond has a bin of its own; above, a bin spans 2^(e) ns where e grows by one
each octave, so a value differs from its bin's midpoint by at most 1/128 (0.78 %). Bins, indices and
midpoints equal fio's `plat_val_to_idx` and `plat_idx_to_val` (stat.c, FIO_IO_U_PLAT_BITS 6,
29 groups), hence json+ bins of any host merge exactly with ours.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

from iolab.core.bins import BIN_COUNT, BINS_PER_OCTAVE, BITS
from iolab.record import Record

Counts = npt.NDArray[np.int64]


def _lower_upper_and_middle_ns_of_bins() -> tuple[
    npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.int64]
]:
    index = np.arange(BIN_COUNT, dtype=np.int64)
    octave = np.maximum(index >> BITS, 1) - 1
    base = np.where(index < 2 * BINS_PER_OCTAVE, index, 1 << (octave + BITS))
    step = np.where(index < 2 * BINS_PER_OCTAVE, 0, index & (BINS_PER_OCTAVE - 1))
    width = np.int64(1) << octave
    lower = base + step * width
    middle = np.where(octave == 0, lower, lower + (width >> 1))
    edges = lower, lower + width - 1, middle
    for edge in edges:
        edge.setflags(write=False)
    return edges


LOWER_NS, UPPER_NS, MIDDLE_NS = _lower_upper_and_middle_ns_of_bins()
"""Smallest, largest and representative nanosecond of each bin, int64 of shape (BIN_COUNT,)."""

_BIN_INDEX_BY_MIDPOINT: Final = {int(value): index for index, value in enumerate(MIDDLE_NS)}


def bin_index_of_ns(latency_ns: npt.ArrayLike) -> npt.NDArray[np.int64]:
    """The bin index of each latency (whole ns); the last bin takes all that is longer.

    Raises ValueError for a negative latency.
    """
    values = np.minimum(np.asarray(latency_ns), UPPER_NS[-1]).astype(np.int64)
    if (values < 0).any():
        raise ValueError(f"{int(values.min())} ns is not a latency")
    return np.asarray(np.searchsorted(LOWER_NS, values, side="right") - 1, dtype=np.int64)


def bin_index_of_midpoint(midpoint_ns: int) -> int:
    """The bin whose representative value is `midpoint_ns`, as fio prints it; KeyError if none."""
    return _BIN_INDEX_BY_MIDPOINT[midpoint_ns]


class Histogram(Record):
    """Counts for each bin (shape (BIN_COUNT,)) and the exact extremes where they are known."""

    counts: Counts
    min_ns: int | None = None
    max_ns: int | None = None

    @property
    def total(self) -> int:
        """How many latencies were counted."""
        return int(self.counts.sum())

    def merged_with(self, other: Histogram) -> Histogram:
        """Both together: bin by bin; an extreme is known only if known on both sides."""
        if other.total == 0:
            return self
        if self.total == 0:
            return other
        low = (self.min_ns, other.min_ns)
        high = (self.max_ns, other.max_ns)
        return Histogram(
            self.counts + other.counts,
            None if None in low else min(v for v in low if v is not None),
            None if None in high else max(v for v in high if v is not None),
        )

    def percentile_ns(self, percent: float) -> float | None:
        """The midpoint of the first bin whose cumulative count reaches percent/100 x total.

        This is fio's own rank rule (`calc_clat_percentiles`); the value is kept within the known
        extremes. None for an empty histogram.
        """
        return self.percentiles_ns((percent,))[0]

    def percentiles_ns(self, percents: Sequence[float]) -> list[float | None]:
        """The same of several, for which the bins are added up once."""
        cumulative = np.cumsum(self.counts)
        total = int(cumulative[-1])
        if total == 0:
            return [None] * len(percents)
        # In whole numbers: 30% of 660 is 198, and 198.00000000000000001 would be another bin.
        ratios = (float(percent).as_integer_ratio() for percent in percents)
        ranks = [max(-(-part * total // (divisor * 100)), 1) for part, divisor in ratios]
        return [self._clamped_midpoint_ns(at) for at in np.searchsorted(cumulative, ranks).tolist()]

    def _clamped_midpoint_ns(self, index: int) -> float:
        """The midpoint of a bin, kept within the known extremes."""
        value = float(MIDDLE_NS[index])
        if self.max_ns is not None:
            value = min(value, float(self.max_ns))
        if self.min_ns is not None:
            value = max(value, float(self.min_ns))
        return value


def dense_counts(bins: npt.ArrayLike, counts: npt.ArrayLike) -> Counts:
    """Dense counts from sparse (bin, count) pairs; equal bins add up."""
    dense = np.zeros(BIN_COUNT, dtype=np.int64)
    np.add.at(dense, np.asarray(bins, dtype=np.int64), np.asarray(counts, dtype=np.int64))
    return dense
