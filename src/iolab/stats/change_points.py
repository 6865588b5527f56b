"""Where a series of seconds changed its level: a cross-check of what witnesses say.

Optimal partitioning (Jackson and others, 2005): of all ways to cut the series into levels, the one
with the least squared error, where each further level costs a penalty. Seconds depend on one
another, which the penalty allows for; a cut is no proof that anything changed, but one that no
event explains is worth a look.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from iolab.core.samples import Floats, Ints
from iolab.record import Record
from iolab.stats.steady_state import MAD_TO_SD

SEGMENT_MIN: Final = 3
"""Values of the shortest level: a stall and what catches up with it are no levels."""

PENALTY: Final = 12.0
"""What a further level costs, in variances times ln(n): in series of mirrors and of Ceph it found
each fault within 2 s, with one to three cuts more beside rebuilds."""

INTERVAL_CHI2: Final = 3.84
"""How much worse, in variances, a cut may fit elsewhere and be as likely there: 95 % of chi2(1)."""

PLACES_MAX: Final = 1200
"""Places of a cut that are weighed at once: time grows with the square of their number. In longer
series cuts are looked for at equal distances, then nearer and nearer to those that were found."""

AUTOCORRELATION_MARGIN: Final = 2.5
"""An autocorrelation nearer to 1 than this over the root of the number of values is not known from
them: a short and quiet series would else have no change, however large."""

STEP_SIGMAS: Final = 3.5
"""A larger step between neighbours is a change of level, or an outlier."""


class ChangePoint(Record):
    """A cut before value `index`, which may as well lie anywhere from `low` to `high`.

    `before` and `after` are the means of the levels beside it.
    """

    index: int
    low: int
    high: int
    before: float
    after: float


def level_noise_sd(values: Floats, noisier_part: Floats | None = None) -> float:
    """How far means over long stretches of a level scatter, as the deviation of one value.

    Values that depend on their neighbours keep away from their level for longer than independent
    ones do: they are taken to be of an AR(1) process. Both of its figures come from differences,
    which know nothing of levels, without those that are changes of one. Of a `noisier_part`
    that scatters more than the whole that scatter is taken.
    """
    if values.size < 2:
        return 0.0
    steps = _differences_less_median(values)
    sigma = _mad_standard_deviation(steps)
    rho = _autocorrelation(steps, sigma)
    if noisier_part is not None and noisier_part.size > 1:
        sigma = max(sigma, _mad_standard_deviation(_differences_less_median(noisier_part)))
    # Steps have the variance 2 (1 - rho), means of n values (1 + rho) / (1 - rho) / n.
    return float(sigma * np.sqrt((1.0 + rho) / 2.0) / (1.0 - rho))


def _differences_less_median(values: Floats) -> Floats:
    steps = np.diff(values)
    return np.asarray(steps - np.median(steps))


def _mad_standard_deviation(steps: Floats) -> float:
    return float(MAD_TO_SD * np.median(np.abs(steps)))


def _autocorrelation(steps: Floats, sigma: float) -> float:
    """What neighbours have in common, from steps between them; 0 for what swings to and fro."""
    usual = np.abs(steps) <= STEP_SIGMAS * sigma
    pairs = usual[1:] & usual[:-1]
    square = float((steps[usual] ** 2).mean())
    if not pairs.any() or not square:
        return 0.0
    rho = 1.0 + 2.0 * float((steps[1:] * steps[:-1])[pairs].mean()) / square
    return max(min(rho, 1.0 - AUTOCORRELATION_MARGIN / math.sqrt(steps.size + 1)), 0.0)


class _SeriesSegments:
    """A series with the mean and the squared error of any stretch of it."""

    def __init__(self, values: Floats) -> None:
        self.count = values.size
        self._sums = np.concatenate(([0.0], np.cumsum(values)))
        self._squares = np.concatenate(([0.0], np.cumsum(values**2)))

    def means(self, starts: Ints, ends: Ints) -> Floats:
        """The level of each stretch."""
        return np.asarray((self._sums[ends] - self._sums[starts]) / (ends - starts))

    def errors(self, starts: Ints, ends: Ints) -> Floats:
        """The squared error of each about its level."""
        squares = self._squares[ends] - self._squares[starts]
        return np.asarray(squares - (ends - starts) * self.means(starts, ends) ** 2)


def find_change_points(values: Floats, sigma: float) -> tuple[ChangePoint, ...]:
    """The cuts of a series whose values scatter by `sigma` (> 0) about their level."""
    if values.size < 2 * SEGMENT_MIN:
        return ()
    levels, penalty = _SeriesSegments(values), PENALTY * sigma**2 * np.log(values.size)
    step = -(-values.size // PLACES_MAX)
    cuts = _best_cuts(levels, np.arange(step, values.size, step), penalty)
    while step > 1 and cuts:
        places, step = _candidate_cuts_and_spacing(cuts, step, values.size)
        cuts = _best_cuts(levels, places, penalty)
    edges = [0, *cuts, values.size]
    return tuple(
        _change_point(levels, left, cut, right, sigma**2)
        for left, cut, right in zip(edges, edges[1:], edges[2:], strict=False)
    )


def _candidate_cuts_and_spacing(cuts: list[int], step: int, count: int) -> tuple[Ints, int]:
    """Places within a step of a cut, and how far apart they are: less than before."""
    spacing = min(-(-len(cuts) * (2 * step + 1) // (2 * PLACES_MAX)), step // 2)
    near = np.arange(-step, step + 1, spacing)
    places = np.unique(np.array(cuts)[:, np.newaxis] + near)
    return np.asarray(places[(places > 0) & (places < count)]), spacing


def _change_point(
    levels: _SeriesSegments, left: int, cut: int, right: int, variance: float
) -> ChangePoint:
    """The cut with where it may lie between those beside it."""
    places = np.arange(left + 1, right)
    errors = levels.errors(np.array(left), places) + levels.errors(places, np.array(right))
    near = places[errors <= errors[cut - left - 1] + INTERVAL_CHI2 * variance]
    before, after = levels.means(np.array([left, cut]), np.array([cut, right])).tolist()
    return ChangePoint(cut, int(near[0]), int(near[-1]), before, after)


def _best_cuts(levels: _SeriesSegments, places: Ints, penalty: float) -> list[int]:
    """The cuts at some of these places with the least error and penalty."""
    edges = np.concatenate(([0], places, [levels.count]))
    best = np.full(edges.size, np.inf)
    best[0] = -penalty
    previous = np.zeros(edges.size, dtype=np.int64)
    for number in range(1, edges.size):
        end = edges[number]
        starts = edges[: np.searchsorted(edges, end - SEGMENT_MIN, side="right")]
        if not starts.size:
            continue
        costs = best[: starts.size] + levels.errors(starts, end) + penalty
        chosen = int(np.argmin(costs))
        best[number], previous[number] = costs[chosen], chosen
    cuts: list[int] = []
    number = edges.size - 1
    while (number := int(previous[number])) > 0:
        cuts.append(int(edges[number]))
    return cuts[::-1]
