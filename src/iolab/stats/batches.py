"""The variance of a mean of correlated seconds, and how many independent ones they are worth.

Batch means over all octaves of batch size. Of each octave the autocorrelation at lag 1 says by how
much the batches still hang together, so that a long correlation is seen although batches of that
length would be too few; the octave of the widest interval counts. Sample autocorrelations are too
small by about (1 + 3 rho) / m (Kendall 1954) and are put right by that. Marriott and Pope (1954)
have 1 + 4 rho for a mean that is estimated itself; the thresholds were found with the former.
Skart (Tafazzoli and Wilson 2011) does the same with one batch size.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

import numpy as np

from iolab.core.samples import Floats
from iolab.record import Record
from iolab.stats.special import student_quantile

EFFECTIVE_MIN: Final = 20.0
"""Effective independent batches below which a series has no interval: with fewer, autocorrelations
of AR(1) series are known too badly, and rules that wait for a narrow interval find one by chance
(simulated, `bench/method/coverage.py`)."""

_JUDGED_MIN: Final = 40
"""Batches whose autocorrelation tells whether there are enough effective ones; of fewer, white
noise would often be refused. Series of fewer seconds, which are for demonstrations, are not."""

_CORRECTED_MIN: Final = 16
"""Batches whose variance is corrected for their autocorrelation; of fewer it would be noise."""

_BOUND_SDS: Final = 6.0
"""Standard deviations of batches, however correlated, within which the mean of an AR(1) series of
up to rho = 0.98 lies from a minute on, also where the rule waits until they are small."""

_CORRECTED_DF: Final = 3.0
"""Degrees of freedom that a corrected variance has at the least. Sixteen batches of white noise
look correlated now and then; with one degree of freedom (a quantile of 12.7) one such series of
sixty had an interval six times too wide. Simulated coverage is the same with three."""

_RHO_MAX: Final = 0.999
"""A random walk has an autocorrelation of 1 and no variance of the mean."""

_CONFIDENT: Final = 0.975


class VarianceOfMean(Record):
    """The variance of a mean, and how many degrees of freedom its estimate has."""

    variance: float
    df: float

    @property
    def half_width_95(self) -> float:
        """Half the 95 % interval of the mean."""
        return student_quantile(_CONFIDENT, self.df) * math.sqrt(self.variance)


class BatchStatistics(Record):
    """Means of `batch_count` batches of `batch_s` seconds: variance, autocorrelation, kurtosis.

    `rho` is the autocorrelation at lag 1 with its bias put right, from 0 to nearly 1. Negative ones
    count as 0: a series that takes back what it gave is not believed to do so for ever.
    """

    batch_s: int
    batch_count: int
    variance: float
    rho: float
    kurtosis: float

    @property
    def variance_inflation(self) -> float:
        """By how much correlation enlarges the variance of the mean: (1 + rho) / (1 - rho)."""
        return (1 + self.rho) / (1 - self.rho)

    @property
    def effective_count(self) -> float:
        """How many independent batches these are worth."""
        return self.batch_count / self.variance_inflation

    @property
    def variance_of_mean(self) -> VarianceOfMean:
        """What this octave tells of the variance of the series' mean."""
        if self.batch_count < _CORRECTED_MIN:
            return VarianceOfMean(
                self.variance / self.batch_count, self._df_limited_by_kurtosis(self.batch_count - 1)
            )
        # The sample's variance is itself too small by what its mean took with it.
        variance = self.variance / (1 - min(1 / self.effective_count, 0.5))
        # A variance that rests on an estimated autocorrelation is known half as well.
        df = self._df_limited_by_kurtosis(
            max((self.batch_count - 1) / self.variance_inflation / 2, _CORRECTED_DF)
        )
        return VarianceOfMean(variance / self.effective_count, df)

    def _df_limited_by_kurtosis(self, max_df: float) -> float:
        """No more than the few large deviations bear on which a variance of long tails rests."""
        if self.kurtosis > 1:
            max_df = min(max_df, 2 * self.batch_count / (self.kurtosis - 1))
        return max(max_df, 1.0)


def widest_variance_of_mean(batch_statistics: Sequence[BatchStatistics]) -> VarianceOfMean:
    """What the octave says that gives the mean the widest interval."""
    variances = (octave.variance_of_mean for octave in batch_statistics)
    return max(variances, key=lambda variance: variance.half_width_95)


def batch_statistics_by_size(x: Floats, batches_min: int) -> tuple[BatchStatistics, ...]:
    """All batch sizes 1, 2, 4, ... of which x holds at least `batches_min` batches, four or more.

    Batches are counted from the end, so that what does not fill one is at the start, where a
    transient might be left.
    """
    octaves = []
    size = 1
    while len(x) // size >= batches_min:
        count = len(x) // size
        octaves.append(
            _batch_statistics(x[len(x) - count * size :].reshape(count, size).mean(axis=1), size)
        )
        size *= 2
    return tuple(octaves)


def effective_sample_count(batch_statistics: Sequence[BatchStatistics]) -> float:
    """How many independent seconds or batches a series is worth: the fewest of any size."""
    return min(
        octave.effective_count
        for octave in _statistics_of_enough_batches(batch_statistics) or batch_statistics[:1]
    )


def find_too_correlated_batches(
    batch_statistics: Sequence[BatchStatistics],
) -> BatchStatistics | None:
    """The shortest batches of which there are too few effective ones; None where there are none."""
    return next(
        (
            octave
            for octave in _statistics_of_enough_batches(batch_statistics)
            if octave.effective_count < EFFECTIVE_MIN
        ),
        None,
    )


def correlated_mean_error_bound(batch_statistics: BatchStatistics) -> float:
    """How far the mean may be off, seen from batches that are too correlated for an interval."""
    return _BOUND_SDS * math.sqrt(batch_statistics.variance)


def _statistics_of_enough_batches(
    batch_statistics: Sequence[BatchStatistics],
) -> tuple[BatchStatistics, ...]:
    return tuple(octave for octave in batch_statistics if octave.batch_count >= _JUDGED_MIN)


def variance_of_mean_and_whole_cycles(
    samples_of_seconds: Floats, period_s: int
) -> tuple[VarianceOfMean, Floats]:
    """The variance of the mean over the last whole cycles of x, and those cycles' samples.

    The means of whole cycles hold no swing of the cycle itself. Their spread cannot be less than
    what the noise from second to second alone makes (von Neumann's difference estimator), which
    guards the few cycles' estimate. x must hold at least two cycles.
    """
    count = len(samples_of_seconds) // period_s
    cycles = samples_of_seconds[len(samples_of_seconds) - count * period_s :]
    means = cycles.reshape(count, period_s).mean(axis=1)
    spread = float(means.var(ddof=1)) / count
    steps = np.diff(cycles)
    noise = float(steps @ steps) / (2 * (len(cycles) - 1) * len(cycles))
    return VarianceOfMean(max(spread, noise), (count - 1) / 2), cycles


def _batch_statistics(means: Floats, size: int) -> BatchStatistics:
    count = len(means)
    centred = means - means.mean()
    squares = centred * centred
    total = float(squares.sum())
    if total <= 0:
        return BatchStatistics(size, count, 0.0, 0.0, 0.0)
    rho = (float(centred[1:] @ centred[:-1]) / total * count + 1) / (count - 3)
    kurtosis = float(squares @ squares) * count / total**2
    return BatchStatistics(size, count, total / (count - 1), min(max(rho, 0.0), _RHO_MAX), kurtosis)
