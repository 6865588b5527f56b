"""The best point of one axis or of two (iodepth, numjobs) in few runs.

A Gaussian process on ln X over the logarithms of the axes says where a better point may still be:
measured is where the expected improvement is largest (Mockus 1978; Jones, Schonlau and Welch
1998), until none promises a fifth of a percent. The best is judged by the process' mean, not by
the luckiest measurement, whose value is too high by the choice itself.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from statistics import NormalDist
from typing import Final

import numpy as np

from iolab.analyse.method.axis import Z95
from iolab.analyse.method.gaussian import Floats, Surrogate, fit, scaled
from iolab.plan.searches import PEAK_RUNS_MOST, peak_seeds

Point = tuple[int, ...]

_AXES_MOST: Final = 2
_GAIN_LEAST: Final = 0.002
"""Expected improvement below which another run is not worth its time: a fifth of a percent."""
_ALIKE: Final = 0.01
"""Points within 1 % of the best are as good: the cheapest of them is the one to use."""


@dataclass(frozen=True, slots=True)
class Peak:
    """The best point, its rate with a 95 % interval, and what is as good.

    `alike` are the measured points within 1 % of it, cheapest (least product of its coordinates)
    first; `at_edge` tells that an axis ends there, so that more may lie beyond.
    """

    point: Point
    rate: float
    low: float
    high: float
    alike: tuple[Point, ...]
    at_edge: bool
    runs: int


class PeakSearch:
    """The search as it goes: ask `wanted` for the next point, `record` what it gave."""

    def __init__(self, axes: Sequence[Sequence[int]]) -> None:
        """Take one or two axes of positive values; ValueError for anything else."""
        if not 1 <= len(axes) <= _AXES_MOST or not all(axes) or min(map(min, axes)) < 1:
            raise ValueError("a peak is searched on one or two axes, whose values are 1 or more")
        self._axes = tuple(tuple(sorted(set(axis))) for axis in axes)
        self._points: tuple[Point, ...] = tuple(product(*self._axes))
        self._first = peak_seeds(self._axes)
        self._runs: dict[Point, list[tuple[float, float]]] = {}

    def wanted(self) -> Point | None:
        """The point to measure next; None when no other promises to be better."""
        for point in self._first:
            if point not in self._runs:
                return point
        left = [point for point in self._points if point not in self._runs]
        if not left or self._count() >= PEAK_RUNS_MOST or len(self._runs) <= len(self._axes) + 1:
            return left[0] if left and self._count() < PEAK_RUNS_MOST else None
        surrogate = self._fitted()
        best = float(surrogate.predict(self._inputs(list(self._runs)))[0].max())
        gains = _expected_gains(*surrogate.predict(self._inputs(left)), best)
        where = int(np.argmax(gains))
        return left[where] if gains[where] > _GAIN_LEAST else None

    def record(self, point: Point, rate: float, noise: float) -> None:
        """Take a run's rate (> 0) and the standard deviation of its logarithm between runs.

        ValueError for a point that is not on the axes or a rate that is not positive.
        """
        if point not in self._points or not rate > 0:
            raise ValueError(f"point {point} with rate {rate} is not on these axes")
        self._runs.setdefault(point, []).append((math.log(rate), noise))

    def peak(self) -> Peak:
        """The best of the measured points; ValueError before any run."""
        if not self._runs:
            raise ValueError("no run has been recorded")
        measured = sorted(self._runs)
        means, sds = self._estimates(measured)
        where = int(np.argmax(means))
        best, mean, reach = measured[where], float(means[where]), Z95 * float(sds[where])
        alike = [
            point for point, value in zip(measured, means, strict=True) if value >= mean - _ALIKE
        ]
        edges = zip(best, self._axes, strict=True)
        return Peak(
            best,
            math.exp(mean),
            math.exp(mean - reach),
            math.exp(mean + reach),
            tuple(sorted(alike, key=lambda point: (math.prod(point), point))),
            any(len(axis) > 1 and value in {axis[0], axis[-1]} for value, axis in edges),
            self._count(),
        )

    def _estimates(self, points: list[Point]) -> tuple[Floats, Floats]:
        """Mean and standard deviation of ln X at measured points."""
        if len(self._runs) > len(self._axes) + 1:
            return self._fitted().predict(self._inputs(points))
        values = np.array([self._joined(point) for point in points])
        return values[:, 0], values[:, 1]

    def _fitted(self) -> Surrogate:
        points = list(self._runs)
        values = np.array([self._joined(point) for point in points])
        return fit(self._inputs(points), values[:, 0], values[:, 1])

    def _joined(self, point: Point) -> tuple[float, float]:
        """A point's runs as one: their mean and its standard error."""
        runs = self._runs[point]
        noise = math.sqrt(sum(sd * sd for _, sd in runs)) / len(runs)
        return sum(value for value, _ in runs) / len(runs), noise

    def _inputs(self, points: list[Point]) -> Floats:
        columns = [
            scaled(np.log2([point[index] for point in points]), *np.log2([axis[0], axis[-1]]))
            for index, axis in enumerate(self._axes)
        ]
        return np.column_stack(columns)

    def _count(self) -> int:
        return sum(len(runs) for runs in self._runs.values())


def _expected_gains(means: Floats, sds: Floats, best: float) -> Floats:
    """E[max(f - best, 0)] for a normal f of each mean and standard deviation."""
    normal = NormalDist()
    gains = []
    for mean, sd in zip(means.tolist(), sds.tolist(), strict=True):
        if sd <= 0:
            gains.append(max(mean - best, 0.0))
            continue
        z = (mean - best) / sd
        gains.append((mean - best) * normal.cdf(z) + sd * normal.pdf(z))
    return np.array(gains)
