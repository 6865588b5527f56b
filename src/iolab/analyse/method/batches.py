"""The variance of a mean of correlated seconds: batch means over all octaves of batch size.

The largest over the octaves is taken (a Flyvbjerg-Petersen blocking without its plateau search);
where it still grows at the last octave, one more octave is extrapolated.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from iolab.analyse.method.mser import Floats

_GROWTH_LIMIT: Final = 2.0
"""White noise does not grow, a random walk doubles its variance of the mean with each octave."""


@dataclass(frozen=True, slots=True)
class MeanVariance:
    """The variance of a mean, and how many degrees of freedom its estimate has."""

    variance: float
    df: int


def of_batches(x: Floats, batches_min: int) -> MeanVariance | None:
    """The variance of the mean of x by batch means; None with fewer than `batches_min` values.

    Batches are counted from the end, so that what does not fill one is at the start, where a
    transient might be left.
    """
    found = _octaves(x, batches_min)
    if not found:
        return None
    best = max(found, key=lambda octave: octave.variance)
    if len(found) > 1 and found[-1].variance > found[-2].variance > 0:
        last, before = found[-1], found[-2]
        growth = min(last.variance / before.variance, _GROWTH_LIMIT)
        ahead = MeanVariance(last.variance * growth, last.df)
        best = max(best, ahead, key=lambda octave: octave.variance)
    return best


def of_cycles(x: Floats, period_s: int) -> tuple[MeanVariance, Floats]:
    """The variance of the mean over the last whole cycles of x, and those cycles' samples.

    The means of whole cycles hold no swing of the cycle itself. Their spread cannot be less than
    what the noise from second to second alone makes (von Neumann's difference estimator), which
    guards the few cycles' estimate. x must hold at least two cycles.
    """
    count = len(x) // period_s
    whole = x[len(x) - count * period_s :]
    means = whole.reshape(count, period_s).mean(axis=1)
    spread = float(means.var(ddof=1)) / count
    steps = np.diff(whole)
    noise = float(steps @ steps) / (2 * (len(whole) - 1) * len(whole))
    return MeanVariance(max(spread, noise), count - 1), whole


def _octaves(x: Floats, batches_min: int) -> list[MeanVariance]:
    found = []
    size = 1
    while len(x) // size >= batches_min:
        count = len(x) // size
        means = x[len(x) - count * size :].reshape(count, size).mean(axis=1)
        found.append(MeanVariance(float(means.var(ddof=1)) / count, count - 1))
        size *= 2
    return found
