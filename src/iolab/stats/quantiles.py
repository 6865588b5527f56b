"""Latency quantiles with intervals: of one run by blocks of seconds, of several by their spread.

Order statistics would give an interval if I/Os were independent; they are not, and such an interval
of a p99 covers 13 % under stalls where it claims 95 %. So whole blocks of seconds are resampled,
and their range is widened to what batches of all sizes tell of the I/Os beyond the quantile.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

import numpy as np

from iolab.core.samples import Floats, Ints
from iolab.record import Record
from iolab.stats import batches
from iolab.stats.repeats import BIN_ERROR, CONFIDENT
from iolab.stats.special import student_quantile

BLOCK_S: Final = 30
"""Seconds resampled together: longer than most things that slow several seconds in a row."""

_BLOCK_MIN_S: Final = 10
_BLOCKS_MIN: Final = 10
"""Fewer blocks are not resampled; a short run has shorter blocks, down to 10 s."""

_BATCHES_MIN: Final = 8
"""Batches of seconds, at least, from which the interval's width is told: as rule D has it."""

_MEDIAN: Final = 0.5

_BOUND_MAX: Final = 0.05
"""A quantile whose seconds are too correlated has an interval only where it wandered by less."""

_RESAMPLES: Final = 500

EPISODES_MIN: Final = 10
"""A quantile is printed only with enough I/Os beyond it and, where the run stalled, ten stalls:
with fewer, one stall more or less decides."""


class QuantileEstimate(Record):
    """A run's latency quantile (ns) and its 95 % interval.

    The ends are None where the run is too short, or its seconds are too `is_too_correlated` to
    know.
    """

    value_ns: float
    low_ns: float | None
    high_ns: float | None
    is_too_correlated: bool = False


def has_few_stalls(episode_count: int) -> bool:
    """Whether a run stalled so few times that one stall more or less moves its far quantiles."""
    return 0 < episode_count < EPISODES_MIN


def latency_quantile_estimates(
    counts: Ints, middle_ns: Ints, qs: Sequence[float], rng: np.random.Generator
) -> tuple[QuantileEstimate, ...]:
    """Quantiles `qs` (0 < q < 1) of a run, each with its interval by a block bootstrap of seconds.

    `counts` has a row for each second of the measured window and a column for each bin whose
    representative latency `middle_ns` gives, ascending; it must hold any I/O. All quantiles are of
    the same resamples.
    """
    used = np.flatnonzero(counts.sum(axis=0))
    if used.size < counts.shape[1]:  # else no copy is made
        counts, middle_ns = counts[:, used], middle_ns[used]
    middle = middle_ns.astype(np.float64)
    total = counts.sum(axis=0)[None, :]
    cells = _quantile_bins_of_histogram(total, [*qs, _MEDIAN])
    values = [float(middle[cell]) for cell in cells]
    edges = _equal_block_starts(len(counts))
    if edges is None:
        return tuple(QuantileEstimate(value, None, None) for value in values[:-1])
    count = len(edges)
    blocks = np.asarray(np.add.reduceat(counts, edges, axis=0), dtype=np.int64)
    weights = rng.multinomial(count, np.full(count, 1 / count), size=_RESAMPLES)
    # As floats, which hold counts of I/Os exactly, a product of matrices is fast.
    drawn = weights.astype(np.float64) @ blocks.astype(np.float64)
    cumulative = np.cumsum(drawn, axis=1)
    reaches = [
        _quantile_errors(
            value,
            middle[_quantile_bins(cumulative, q)],
            _excess_ios_per_second_beyond_quantile(counts, cell, q),
            edges,
        )
        for value, cell, q in zip(values, cells, [*qs, _MEDIAN], strict=True)
    ]
    # What slows everything for a while shows best in the median, and is lost in the few I/Os of a
    # tail: where the median is only bounded, so are the others.
    wander = reaches.pop().correlated_error_bound
    return tuple(
        reach.to_estimate(value, wander) for value, reach in zip(values, reaches, strict=False)
    )


class _QuantileErrors(Record):
    """How far a quantile may lie from its value, down and up, as logarithms.

    `correlated_mean_error_bound` is how far it may have wandered where its seconds are too
    correlated to tell more, 0 where they are not.
    """

    down: float
    up: float
    correlated_error_bound: float

    def to_estimate(self, value: float, correlated_error_bound: float) -> QuantileEstimate:
        """The quantile with its interval, unless what is known is too little."""
        more = max(self.correlated_error_bound, correlated_error_bound)
        if more > _BOUND_MAX:
            return QuantileEstimate(value, None, None, is_too_correlated=True)
        down, up = self.down + more + BIN_ERROR, self.up + more + BIN_ERROR
        return QuantileEstimate(value, value * math.exp(-down), value * math.exp(up))


def _quantile_errors(
    value: float, resampled_quantiles: Floats, beyond: Floats, edges: Ints
) -> _QuantileErrors:
    """The range of the resampled quantiles, stretched around the value.

    At least by Student's t of the few blocks and the n of a plug-in variance; more where batches of
    all sizes tell of a wider interval than those blocks do, which are cut as if independent.
    """
    logs = np.log(np.maximum(resampled_quantiles, 1.0))
    low, high = np.quantile(logs, [1 - CONFIDENT, CONFIDENT])
    at = math.log(max(value, 1.0))
    down, up = max(at - float(low), 0.0), max(float(high) - at, 0.0)
    count = len(edges)
    stretch = student_quantile(CONFIDENT, count - 1.0) / 1.96 * math.sqrt(count / (count - 1))
    resampled = 1.96 * math.sqrt(count) * float(np.add.reduceat(beyond, edges).std()) / len(beyond)
    if resampled <= 0:
        return _QuantileErrors(down * stretch, up * stretch, 0.0)
    octaves = batches.batch_statistics_by_size(beyond, _BATCHES_MIN)
    refused = batches.find_too_correlated_batches(octaves)
    if refused is not None:
        bound = batches.correlated_mean_error_bound(refused) / resampled * max(down, up)
        return _QuantileErrors(down * stretch, up * stretch, bound)
    stretch = max(stretch, batches.widest_variance_of_mean(octaves).half_width_95 / resampled)
    return _QuantileErrors(down * stretch, up * stretch, 0.0)


def _excess_ios_per_second_beyond_quantile(
    counts_by_second_and_bin: Ints, quantile_bin: int, quantile: float
) -> Floats:
    """By how many more I/Os of each second lie beyond a quantile's bin than of the whole run.

    The mean of this decides the quantile: to first order, it is as uncertain as that is. The bin
    itself counts as beyond where that comes closer to the share asked for.
    """
    each = counts_by_second_and_bin.sum(axis=1).astype(np.float64)
    above = counts_by_second_and_bin[:, quantile_bin + 1 :].sum(axis=1).astype(np.float64)
    within = above + counts_by_second_and_bin[:, quantile_bin]
    far = min((above, within), key=lambda counted: abs(counted.sum() / each.sum() - (1 - quantile)))
    excess: Floats = far - far.sum() / each.sum() * each
    return excess


def bootstrap_block_count(seconds: int) -> int:
    """How many blocks a run of that length is cut into; 0 where it is too short to be resampled."""
    length = min(BLOCK_S, seconds // _BLOCKS_MIN)
    return seconds // length if length >= _BLOCK_MIN_S else 0


def _quantile_bins(cumulative: Ints | Floats, q: float) -> Ints:
    """The first bin of each row whose cumulative count reaches q of the row's total."""
    needed = np.maximum(np.ceil(q * cumulative[:, -1:] * (1 - 1e-15)), 1)
    return np.asarray((cumulative >= needed).argmax(axis=1), dtype=np.int64)


def _quantile_bins_of_histogram(total: Ints, qs: Sequence[float]) -> list[int]:
    """The bin of each quantile of one histogram."""
    cumulative = np.cumsum(total, axis=1)
    return [int(_quantile_bins(cumulative, q)[0]) for q in qs]


def _equal_block_starts(seconds: int) -> Ints | None:
    """Where blocks of nearly equal length begin; None for too short a run."""
    count = bootstrap_block_count(seconds)
    if count == 0:
        return None
    return np.linspace(0, seconds, count + 1).astype(np.int64)[:-1]
