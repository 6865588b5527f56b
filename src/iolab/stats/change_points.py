"""Where a series of seconds changed its level: a cross-check of what witnesses say.

Optimal partitioning (Jackson and others, 2005): of all ways to cut the series into levels, the one
with the least squared error, where each further level costs a penalty. Seconds depend on one
another, so a cut is no proof that anything changed; one that no event explains is worth a look.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from iolab.core.samples import Floats, Ints
from iolab.record import Record

SEGMENT_MIN: Final = 3
"""Values of the shortest level: a stall and what catches up with it are no levels."""

PENALTY: Final = 12.0
"""What a further level costs, in variances times ln(n): in series of mirrors and of Ceph it found
each fault within 2 s, with one to three cuts more beside rebuilds."""

INTERVAL_CHI2: Final = 3.84
"""How much worse, in variances, a cut may fit elsewhere and be as likely there: 95 % of chi2(1)."""

CELLS_MAX: Final = 1200
"""Longer series are joined first: time grows with the square of their length."""

_MAD_TO_SIGMA: Final = 1.4826


class ChangePoint(Record):
    """A cut before value `index`, which may as well lie anywhere from `low` to `high`.

    `before` and `after` are the means of the levels beside it.
    """

    index: int
    low: int
    high: int
    before: float
    after: float


def noise_of_differences(values: Floats) -> float:
    """The standard deviation of a series about its level, whatever changes that has."""
    if values.size < 2:
        return 0.0
    steps = np.diff(values)
    return float(_MAD_TO_SIGMA * np.median(np.abs(steps - np.median(steps))) / np.sqrt(2.0))


class _Cells:
    """A series in equal cells of `width` values, with the squared error of any stretch of it."""

    def __init__(self, values: Floats) -> None:
        self.width = max(-(-values.size // CELLS_MAX), 1)
        self.count = values.size // self.width
        whole = values[: self.count * self.width].reshape(self.count, self.width).mean(axis=1)
        self._sums = np.concatenate(([0.0], np.cumsum(whole)))
        self._squares = np.concatenate(([0.0], np.cumsum(whole**2)))

    def means(self, starts: Ints, ends: Ints) -> Floats:
        """The level of each stretch."""
        return np.asarray((self._sums[ends] - self._sums[starts]) / (ends - starts))

    def errors(self, starts: Ints, ends: Ints) -> Floats:
        """The squared error of each about its level."""
        squares = self._squares[ends] - self._squares[starts]
        return np.asarray(squares - (ends - starts) * self.means(starts, ends) ** 2)


def find_change_points(values: Floats, sigma: float) -> tuple[ChangePoint, ...]:
    """The cuts of a series whose values scatter by `sigma` (> 0) about their level."""
    cells = _Cells(values)
    if cells.count < 2 * SEGMENT_MIN:
        return ()
    variance = sigma**2 / cells.width
    cuts = _best_cuts(cells, PENALTY * variance * np.log(cells.count))
    edges = [0, *cuts, cells.count]
    return tuple(
        _change_point(cells, left, cut, right, variance)
        for left, cut, right in zip(edges, edges[1:], edges[2:], strict=False)
    )


def _change_point(cells: _Cells, left: int, cut: int, right: int, variance: float) -> ChangePoint:
    """The cut with where it may lie between those beside it."""
    places = np.arange(left + 1, right)
    errors = cells.errors(np.array(left), places) + cells.errors(places, np.array(right))
    near = places[errors <= errors[cut - left - 1] + INTERVAL_CHI2 * variance]
    before, after = cells.means(np.array([left, cut]), np.array([cut, right])).tolist()
    index, low, high = (int(place) * cells.width for place in (cut, near[0], near[-1]))
    return ChangePoint(index, low, high, before, after)


def _best_cuts(cells: _Cells, penalty: float) -> list[int]:
    """The cuts with the least error and penalty."""
    count = cells.count
    best = np.full(count + 1, np.inf)
    best[0] = -penalty
    previous = np.zeros(count + 1, dtype=np.int64)
    for end in range(SEGMENT_MIN, count + 1):
        starts = np.arange(0, end - SEGMENT_MIN + 1)
        costs = best[starts] + cells.errors(starts, np.array(end)) + penalty
        chosen = int(np.argmin(costs))
        best[end], previous[end] = costs[chosen], starts[chosen]
    cuts: list[int] = []
    while (count := int(previous[count])) > 0:
        cuts.append(count)
    return cuts[::-1]
