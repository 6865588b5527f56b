"""A cycle in the rate: the first pronounced peak of the autocorrelation.

Garbage collection, checkpoints and flushes make the rate swing with a period. Batches of another
length than the cycle's beat against it; whole cycles do not.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from iolab.analyse.method.mser import MAD_TO_SD, Floats

_LAG_FIRST_S: Final = 8
_LAG_LAST_S: Final = 600
"""Shorter swings average out within any batch; longer ones are no cycle within a run's limit."""

_LAG_SHARE: Final = 2 / 3
"""Lags up to two thirds of the series. Half would do for cycles that can be resolved, but a cycle
that is seen one and a half times must be called one: in simulated slow cycles (S4) two thirds named
63 % as CYCLE instead of 35 %."""

_PEAK: Final = 0.30
_TROUGH: Final = -0.05
"""A peak counts from 0.30 on and only after the autocorrelation went below -0.05: noise that merely
decays slowly never does."""

_PEAK_SDS: Final = 4.0
"""Of white noise, an autocorrelation over m pairs has the standard deviation 1/sqrt(m); where few
pairs speak of a lag, a peak must stand out of that by four of them."""

_CLIP_SDS: Final = 3.0
"""Stalls are clipped to this many robust standard deviations, lest two of them make a cycle."""


def period(x: Floats) -> int | None:
    """The cycle's length in seconds, None where there is none to be seen."""
    last = min(_LAG_LAST_S, int(len(x) * _LAG_SHARE))
    if last <= _LAG_FIRST_S:
        return None
    r = autocorrelation(_clipped(x), last)
    below = np.flatnonzero(r < _TROUGH)
    if below.size == 0:
        return None
    start = max(int(below[0]), _LAG_FIRST_S)
    limit = np.maximum(_PEAK, _PEAK_SDS / np.sqrt(len(x) - np.arange(last + 1)))
    above = np.flatnonzero(r[start:] > limit[start:])
    if above.size == 0:
        return None
    first = start + int(above[0])
    ends = np.flatnonzero(r[first:] <= _PEAK)
    end = first + int(ends[0]) if ends.size else len(r)
    return first + int(np.argmax(r[first:end]))


def autocorrelation(x: Floats, last: int) -> Floats:
    """The autocorrelation at lags 0 to `last`, each over the pairs that it has.

    Zero throughout for a series that never changes.
    """
    centred = x - x.mean()
    count = len(x)
    size = 1 << (count + last).bit_length()
    power = np.abs(np.fft.rfft(centred, size)) ** 2
    sums = np.fft.irfft(power, size)[: last + 1]
    if sums[0] <= 0:
        return np.zeros(last + 1)
    scaled: Floats = sums / sums[0] * count / (count - np.arange(last + 1))
    return scaled


def _clipped(x: Floats) -> Floats:
    middle = float(np.median(x))
    spread = MAD_TO_SD * float(np.median(np.abs(x - middle)))
    return np.clip(x, middle - _CLIP_SDS * spread, middle + _CLIP_SDS * spread)
