"""Where the transient ends: MSER-5 on medians of five seconds, with stalls clipped.

MSER picks the cut that makes the standard error of the mean of what remains smallest (White 1997;
its equivalence to a CUSUM: Wang and Glynn 2013). Medians and the clip keep stalls from attracting
the cut: a raw MSER cuts at a stall and so leaves out what stalls cost.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Final

import numpy as np

from iolab.core.samples import Floats
from iolab.record import Record

BLOCK_S: Final = 5
"""Seconds of a block as a rule: the 5 of MSER-5."""

MAD_TO_SD: Final = 1.4826
"""1 / normal quantile at 3/4: makes a median absolute deviation a standard deviation."""

_CLIP_SDS: Final = 3.0
"""How far below the second half's median a block may lie before it is clipped."""

_SPREAD_FLOOR: Final = 1e-3
"""Smallest spread that the clip assumes, as a share of the median: in a series without any noise
the clip would otherwise hide every transient that comes from below."""

_LAG_FIRST_S: Final = 8

_LAG_LAST_S: Final = 600
"""Shorter swings average out within any batch; longer ones are no cycle within a run's limit."""

_LAG_SHARE: Final = 2 / 3
"""Lags up to two thirds of the series. Half would do for cycles that can be resolved, but a cycle
that is seen one and a half times must be called one: in simulated slow cycles (S4) two thirds named
63 % as CYCLE instead of 35 %."""

_BEYOND_PART: Final = 10
"""Where the autocorrelation is highest at the last lag and a tenth beyond it higher still, its peak
is further on, and no cycle of that length is there."""

_PEAK: Final = 0.30

_TROUGH: Final = -0.05
"""A peak counts from 0.30 on and only after the autocorrelation went below -0.05: noise that merely
decays slowly never does."""

_PEAK_SDS: Final = 4.0
"""Of white noise, an autocorrelation over m pairs has the standard deviation 1/sqrt(m); where few
pairs speak of a lag, a peak must stand out of that by four of them."""

_SECOND_PEAK: Final = 0.5

_SECOND_PEAK_SHARE: Final = 0.2
"""The second peak has half of the first's height, within a fifth of a period of its place: cycles
whose lengths differ by 10 % keep four fifths."""

_TAU_FIRST_BLOCKS: Final = 0.8
_TAU_FACTOR: Final = 1.3

_TAU_LAST_SHARE: Final = 0.75
"""The grid: 0.8 blocks (4 s of the usual 5 s ones) x 1.3^k, up to three quarters of the series; a
slower decay cannot be told from a drift, which the comparison of halves sees."""

_F_LIMIT: Final = 6.0
"""F of (2, K-3) above which the transient is taken to be there: p < 0.01 for 20 blocks or more."""

_PARAMETERS: Final = 3

_BLOCKS_MIN: Final = 8
"""Fewer blocks than this say nothing of three parameters."""

FALL_MIN: Final = 0.15
"""Share of the plateau that the rate must have been above it; less is no other kind of service."""

EXPLAINED_MIN: Final = 0.85
"""Share of the variance that the step explains; of an exponential decay it is three quarters."""

BEFORE_S: Final = 3

PLATEAU_S: Final = 6
"""Seconds that each level lasts at the least: fewer tell no level."""

FALL_S: Final = 3
"""Seconds that the fall itself may take, which are of neither level."""

PLATEAU_SPREAD_MAX: Final = 0.1
"""Standard deviation of the plateau's seconds: a limit that is enforced is kept evenly."""

SECONDS_MIN: Final = BEFORE_S + FALL_S + PLATEAU_S
"""Of fewer seconds nothing is said."""

DRIFT_MAX: Final = 0.2
"""Share of the step by which a level's two halves may differ."""


class MserTruncation(Record):
    """Where MSER would cut, in blocks, and whether it found a minimum before its search ended."""

    blocks: int
    has_converged: bool


def clipped_block_medians(series: Floats, block_s: int = BLOCK_S) -> Floats:
    """The medians of whole blocks of the series, clipped below; shape (seconds // block_s,)."""
    count = len(series) // block_s
    cells = series[: count * block_s].reshape(count, block_s)
    medians = np.partition(cells, block_s // 2, axis=1)[:, block_s // 2]
    later = medians[count // 2 :]
    if later.size == 0:
        return medians
    middle = float(np.median(later))
    spread = MAD_TO_SD * float(np.median(np.abs(later - middle)))
    spread = max(spread, _SPREAD_FLOOR * abs(middle))
    return np.maximum(medians, middle - _CLIP_SDS * spread)


def mser_truncation(blocks: Floats) -> MserTruncation:
    """Argmin over j <= K/2 of sum_{i>=j} (z_i - mean_j)^2 / (K-j)^2."""
    count = len(blocks)
    limit = count // 2
    if limit == 0:
        return MserTruncation(0, has_converged=False)
    centred = blocks - blocks.mean()
    kept = np.arange(count, 0, -1)[: limit + 1]
    sums = np.cumsum(centred[::-1])[::-1][: limit + 1]
    squares = np.cumsum((centred * centred)[::-1])[::-1][: limit + 1]
    spread = np.maximum(squares - sums * sums / kept, 0.0)
    best = int(np.argmin(spread / kept.astype(np.float64) ** 2))
    return MserTruncation(best, has_converged=best < limit)


def find_cycle_period(x: Floats) -> int | None:
    """The cycle's length in seconds, None where there is none to be seen."""
    last = min(_LAG_LAST_S, int(len(x) * _LAG_SHARE))
    if last <= _LAG_FIRST_S:
        return None
    beyond = last + max(last // _BEYOND_PART, 1)
    r = autocorrelation(_clip_outliers(x), beyond)
    after, r = float(r[beyond]), r[: last + 1]
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
    period = first + int(np.argmax(r[first:end]))
    if period == last and after > r[last]:
        return None
    return period if _has_second_peak(r, period) else None


def _has_second_peak(r: Floats, period_s: int) -> bool:
    """Whether the autocorrelation has a second peak at twice the period, where it reaches so far.

    A wander, which has no period, comes back once by chance, but seldom twice at the same distance.
    """
    reach = round(_SECOND_PEAK_SHARE * period_s)
    around = r[2 * period_s - reach : 2 * period_s + reach + 1]
    if len(around) <= 2 * reach:
        return True
    return bool(around.max() >= _SECOND_PEAK * r[period_s])


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


def _clip_outliers(x: Floats) -> Floats:
    middle = float(np.median(x))
    spread = MAD_TO_SD * float(np.median(np.abs(x - middle)))
    return np.clip(x, middle - _CLIP_SDS * spread, middle + _CLIP_SDS * spread)


class FittedTransient(Record):
    """A fitted decay: the level that remains, what is added at the start, tau in seconds, and F."""

    level: float
    amplitude: float
    tau_s: float
    f_statistic: float

    @property
    def is_significant(self) -> bool:
        """Whether it explains more than chance would."""
        return self.f_statistic > _F_LIMIT

    def settling_time_s(self, share_of_level: float) -> float:
        """When it has decayed to that share of the level, in seconds from the start; 0 if never so.

        Infinite for a level of zero or less: such a fit has no steady state.
        """
        if self.level <= 0:
            return math.inf
        return self.tau_s * math.log(max(abs(self.amplitude / self.level) / share_of_level, 1.0))


def fit_transient(blocks: Floats, block_s: int = BLOCK_S) -> FittedTransient | None:
    """The best fit to block medians that begin at second 0; None for too few of them."""
    count = len(blocks)
    if count < _BLOCKS_MIN:
        return None
    taus, shapes, norms = _decay_shapes_and_norms(count, block_s)
    mean = float(blocks.mean())
    centred = blocks - mean
    total = float(centred @ centred)
    slopes = shapes @ centred / norms
    gains = slopes * slopes * norms
    best = int(np.argmax(gains))
    amplitude = float(slopes[best])
    offset = float(np.exp(-_block_centres_s(count, block_s) / taus[best]).mean())
    remaining = max(total - float(gains[best]), 1e-12 * total)
    f = float(gains[best]) / remaining * (count - _PARAMETERS) / 2 if total > 0 else 0.0
    return FittedTransient(mean - amplitude * offset, amplitude, float(taus[best]), f)


def _block_centres_s(count: int, block_s: int) -> Floats:
    centres: Floats = (np.arange(count, dtype=np.float64) + 0.5) * block_s
    return centres


@lru_cache(maxsize=512)
def _decay_shapes_and_norms(count: int, block_s: int) -> tuple[Floats, Floats, Floats]:
    """The time constants, their centred shapes (taus x blocks) and the shapes' squared norms."""
    first = _TAU_FIRST_BLOCKS * block_s
    last = _TAU_LAST_SHARE * count * block_s
    steps = int(math.log(last / first) / math.log(_TAU_FACTOR)) + 1
    taus: Floats = first * _TAU_FACTOR ** np.arange(steps, dtype=np.float64)
    shapes: Floats = np.exp(-_block_centres_s(count, block_s)[None, :] / taus[:, None])
    shapes -= shapes.mean(axis=1, keepdims=True)
    norms: Floats = (shapes * shapes).sum(axis=1)
    return taus, shapes, norms


class RateFall(Record):
    """What a volume does whose burst credits ran out: one fall to a level that then holds.

    It came after `second` seconds, from the mean rate `rate_before` to `plateau_rate`.

    That second is the first one below the middle of both. `plateau_relative_spread` is the
    standard deviation of the plateau's seconds as a share of it.
    """

    second: int
    rate_before: float
    plateau_rate: float
    plateau_relative_spread: float


def find_fall_to_plateau(rates: Floats) -> RateFall | None:
    """The fall of a series of rates, one a second; None where it does not fall to a plateau."""
    count = len(rates)
    if count < SECONDS_MIN:
        return None
    places = np.arange(BEFORE_S, count - FALL_S - PLATEAU_S + 1)
    place = int(
        places[np.argmin([_two_level_residual_sum(rates, place) for place in places.tolist()])]
    )
    before, after = _split_at_fall(rates, place)
    step = float(before.mean() - after.mean())
    plateau = float(after.mean())
    if plateau <= 0 or step < FALL_MIN * plateau:
        return None
    used = np.concatenate([before, after])
    total = float(((used - used.mean()) ** 2).sum())
    spread = float(after.std() / plateau)
    if (
        _two_level_residual_sum(rates, place) > (1 - EXPLAINED_MIN) * total
        or spread > PLATEAU_SPREAD_MAX
    ):
        return None
    if max(_halves_difference(before), _halves_difference(after)) > DRIFT_MAX * step:
        return None
    low = np.flatnonzero(rates[place:] < plateau + step / 2)
    return RateFall(place + int(low[0]), float(before.mean()), plateau, spread)


def _split_at_fall(rates: Floats, split_index: int) -> tuple[Floats, Floats]:
    """What lies before and after a fall that begins there."""
    return rates[:split_index], rates[split_index + FALL_S :]


def _two_level_residual_sum(rates: Floats, split_index: int) -> float:
    """The squares that two levels leave."""
    before, after = _split_at_fall(rates, split_index)
    squares = ((before - before.mean()) ** 2).sum() + ((after - after.mean()) ** 2).sum()
    return float(squares)


def _halves_difference(level: Floats) -> float:
    """How far the halves of a level differ."""
    half = len(level) // 2
    return abs(float(level[:half].mean() - level[-half:].mean())) if half else 0.0
