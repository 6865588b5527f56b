"""The highest load under a latency limit, by inverse regression instead of bisection.

Bisection takes a decision at each run that noise can make wrong for good. Here every run teaches
a fit of the latency quantile over load, ln q = a + b (-ln(1 - x / (1.02 X_sat))), weighted
towards the limit; its root is the answer, with an interval. Runs go where the root is most in
doubt.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import product
from statistics import NormalDist
from typing import Final

import numpy as np

from iolab.core.samples import Floats
from iolab.record import Record
from iolab.stats.curve import Z95, GaussianProcess, fit_gaussian_process, scale_to_span
from iolab.stats.repeats import NO_PRIOR, Variance, VariancePrior
from iolab.stats.seeds import LOAD_RUNS_MAX, PEAK_RUNS_MAX, initial_peak_points
from iolab.stats.special import student_quantile

_FIRST_SHARES: Final = (0.3, 0.6, 0.8, 0.9)
"""Of the rate at saturation: from idle to where a queue's latency has multiplied."""
_HEADROOM: Final = 1.02
"""Saturation itself is measured with noise; the pole lies 2 % above it."""
_NEAR: Final = 0.5
"""Runs within a factor of e^0.5 of the limit tell of the spread there."""
_WEIGHT_WIDTH: Final = 0.7
_WEIGHT_FLOOR: Final = 0.02
_NEAR_WANTED: Final = 3
_PRECISION: Final = 0.02
_STEP_MAX: Final = 0.03
"""Runs beside the root: two standard errors off, at most 3 %."""
_SHARE_LEAST, _SHARE_MOST = 0.02, 1.0
_SD_UNKNOWN: Final = 0.10
"""Spread of a p99 between runs before anything is known of it."""
_PARAMETERS: Final = 2
_SLOPE_MIN: Final = 1e-3
"""A latency that does not rise with load has no root: the limit is never reached."""
_CONFIRM_SHARE: Final = 0.98

_AXES_MAX: Final = 2

_GAIN_MIN: Final = 0.002
"""Expected improvement below which another run is not worth its time: a fifth of a percent."""

_ALIKE: Final = 0.01
"""Points within 1 % of the best are as good: the cheapest of them is the one to use."""


class LoadRun(Record):
    """One open-loop run: the load achieved (I/Os a second) and the latency quantile it had (ns)."""

    load: float
    latency_ns: float


class MaxLoadEstimate(Record):
    """The highest load under the limit with its 95 % interval, and how it stands.

    `verified` is the largest load measured whose own upper 95 % bound lies below the limit, None
    for none. `is_settled` tells that the interval is narrow enough; `confirmation_load` is the load
    for the full runs that confirm it. `is_bounded` is False where the limit is never or always
    exceeded: the load then is the axis' end, without an interval (low and high are None).
    """

    load: float
    low: float | None
    high: float | None
    verified: float | None
    run_count: int
    is_settled: bool
    is_bounded: bool

    @property
    def confirmation_load(self) -> float:
        """Where full runs confirm the answer: 2 % below it."""
        return self.load * _CONFIRM_SHARE


class _LatencyFit(Record):
    """ln q = a + b u(x), the spread of runs around it, and their number near the limit."""

    intercept: float
    slope: float
    variance: Variance
    near_run_count: int


class MaxLoadSearch:
    """The search as it goes: ask `next_load` for the next load, `add_run` what it gave."""

    def __init__(self, saturation: float, limit_ns: float, prior: VariancePrior = NO_PRIOR) -> None:
        """Take the closed-loop maximum (I/Os a second) and the limit of the latency quantile.

        `prior` is what is known of the spread of ln q between runs. Raises ValueError
        where saturation or limit are not positive.
        """
        if not (saturation > 0 and limit_ns > 0):
            raise ValueError(f"saturation {saturation} and limit {limit_ns} ns must be positive")
        self._saturation = saturation
        self._log_limit = math.log(limit_ns)
        self._prior = prior
        self._runs: list[LoadRun] = []

    def add_run(self, run: LoadRun) -> None:
        """Take a run; ValueError where its load or latency is not positive."""
        if not (run.load > 0 and run.latency_ns > 0):
            raise ValueError(f"load {run.load} with {run.latency_ns} ns is no run")
        self._runs.append(run)

    def next_load(self) -> float | None:
        """The load to run next, None when the answer is settled or twelve runs were made."""
        count = len(self._runs)
        if count < len(_FIRST_SHARES):
            return _FIRST_SHARES[count] * self._saturation
        estimate = self.max_load_estimate()
        if estimate.is_settled or count >= LOAD_RUNS_MAX:
            return None
        if not estimate.is_bounded:
            return self._clip_to_searched_loads(estimate.load)
        fitted = self._fit_latency()
        step = min(_STEP_MAX, 2 * self._load_standard_error(fitted, estimate.load) / estimate.load)
        side = -1 if count % 2 == 0 else 1
        return self._clip_to_searched_loads(estimate.load * (1 + side * step))

    def max_load_estimate(self) -> MaxLoadEstimate:
        """The answer from the runs so far; ValueError before there are enough for a fit."""
        if len(self._runs) <= _PARAMETERS:
            raise ValueError(f"{len(self._runs)} runs are too few for a fit")
        fitted = self._fit_latency()
        verified = self._verified_load(fitted)
        rises = fitted.slope > _SLOPE_MIN
        share = (
            self._load_share_from_transform((self._log_limit - fitted.intercept) / fitted.slope)
            if rises
            else math.nan
        )
        if not _SHARE_LEAST < share < _SHARE_MOST:
            return self._max_load_beyond_range(fitted, verified)
        load = share * self._saturation
        reach = student_quantile(0.975, fitted.variance.df) * self._load_standard_error(
            fitted, load
        )
        settled = fitted.near_run_count >= _NEAR_WANTED and reach <= _PRECISION * load
        count = len(self._runs)
        return MaxLoadEstimate(
            load, load - reach, load + reach, verified, count, settled, is_bounded=True
        )

    def _fit_latency(self) -> _LatencyFit:
        """Weighted least squares, with weights that fall off with the distance from the limit."""
        u = np.array([self._utilization_transform(run.load) for run in self._runs])
        y = np.log([run.latency_ns for run in self._runs])
        distance = (y - self._log_limit) / _WEIGHT_WIDTH
        weights = np.exp(-0.5 * distance**2) + _WEIGHT_FLOOR
        design = np.column_stack([np.ones(len(u)), u])
        root = np.sqrt(weights)
        solved = np.linalg.lstsq(design * root[:, None], y * root, rcond=None)[0]
        residuals = y - design @ solved
        own = _weighted_residual_variance(residuals, weights)
        variance = self._prior.moderated_variance(own) if self._prior.df else own
        near = int((np.abs(y - self._log_limit) < _NEAR).sum())
        return _LatencyFit(float(solved[0]), float(solved[1]), variance, near)

    def _load_standard_error(self, fitted: _LatencyFit, load: float) -> float:
        """The standard error of the root: s / sqrt(n_near) over the slope of ln q there."""
        gap = _HEADROOM * self._saturation - load
        return fitted.variance.sd / math.sqrt(max(fitted.near_run_count, 1)) * gap / fitted.slope

    def _verified_load(self, fitted: _LatencyFit) -> float | None:
        reach = student_quantile(0.95, fitted.variance.df) * fitted.variance.sd
        below = [
            run.load for run in self._runs if math.log(run.latency_ns) + reach <= self._log_limit
        ]
        return max(below, default=None)

    def _max_load_beyond_range(
        self, fitted: _LatencyFit, verified: float | None
    ) -> MaxLoadEstimate:
        """The limit is beyond either end of the loads; which one, the fit at the middle tells."""
        middle = fitted.intercept + fitted.slope * self._utilization_transform(
            0.5 * self._saturation
        )
        load = self._saturation if middle < self._log_limit else _SHARE_LEAST * self._saturation
        tried = sum(abs(run.load / load - 1) < _STEP_MAX for run in self._runs)
        settled = tried >= _NEAR_WANTED
        return MaxLoadEstimate(
            load, None, None, verified, len(self._runs), is_settled=settled, is_bounded=False
        )

    def _clip_to_searched_loads(self, load: float) -> float:
        return min(max(load, _SHARE_LEAST * self._saturation), _SHARE_MOST * self._saturation)

    def _utilization_transform(self, load: float) -> float:
        share = min(load / (_HEADROOM * self._saturation), 1 - 1e-3)
        return -math.log(1 - share)

    def _load_share_from_transform(self, u: float) -> float:
        return _HEADROOM * (1 - math.exp(-min(u, 700.0))) if u > 0 else 0.0


def _weighted_residual_variance(residuals: Floats, weights: Floats) -> Variance:
    """The runs' spread around the fit where it matters, from residuals weighted as the fit was.

    Two parameters are estimated; degrees of freedom count runs by their weights (Kish 1965). Never
    below one degree, with the usual spread of a p99 as if of one run more.
    """
    effective = float(weights.sum() ** 2 / (weights @ weights))
    df = max(effective - _PARAMETERS, 0.0)
    mean = float((weights @ residuals**2) / weights.sum())
    own = mean * effective / df if df > 0 else 0.0
    return Variance((own * df + _SD_UNKNOWN**2) / (df + 1), df + 1)


GridPoint = tuple[int, ...]


class PeakEstimate(Record):
    """The best point, its rate with a 95 % interval, and what is as good.

    `indistinguishable_points` are the measured points within 1 % of it, cheapest (least product of
    its coordinates) first; `at_edge` tells that an axis ends there, so that more may lie beyond.
    """

    point: GridPoint
    rate: float
    low: float
    high: float
    indistinguishable_points: tuple[GridPoint, ...]
    at_edge: bool
    run_count: int


class PeakSearch:
    """A running search: `next_point` is what to measure, `add_measurement` takes the result."""

    def __init__(self, axes: Sequence[Sequence[int]]) -> None:
        """Take one or two axes of positive values; ValueError for anything else."""
        if not 1 <= len(axes) <= _AXES_MAX or not all(axes) or min(map(min, axes)) < 1:
            raise ValueError("a peak is searched on one or two axes, whose values are 1 or more")
        self._axes = tuple(tuple(sorted(set(axis))) for axis in axes)
        self._points: tuple[GridPoint, ...] = tuple(product(*self._axes))
        self._first = initial_peak_points(self._axes)
        self._runs: dict[GridPoint, list[tuple[float, float]]] = {}

    def next_point(self) -> GridPoint | None:
        """The point to measure next; None when no other promises to be better."""
        for point in self._first:
            if point not in self._runs:
                return point
        left = [point for point in self._points if point not in self._runs]
        if (
            not left
            or self._measurement_count() >= PEAK_RUNS_MAX
            or len(self._runs) <= len(self._axes) + 1
        ):
            return left[0] if left and self._measurement_count() < PEAK_RUNS_MAX else None
        surrogate = self._fitted_process()
        best = float(surrogate.predict(self._scaled_inputs(list(self._runs)))[0].max())
        gains = _expected_improvements(*surrogate.predict(self._scaled_inputs(left)), best)
        where = int(np.argmax(gains))
        return left[where] if gains[where] > _GAIN_MIN else None

    def add_measurement(self, point: GridPoint, rate: float, log_rate_sd: float) -> None:
        """Take a run's rate (> 0) and the standard deviation of its logarithm between runs.

        ValueError for a point that is not on the axes or a rate that is not positive.
        """
        if point not in self._points or not rate > 0:
            raise ValueError(f"point {point} with rate {rate} is not on these axes")
        self._runs.setdefault(point, []).append((math.log(rate), log_rate_sd))

    def best_point(self) -> PeakEstimate:
        """The best of the measured points; ValueError before any run."""
        if not self._runs:
            raise ValueError("no run has been recorded")
        measured = sorted(self._runs)
        means, sds = self._estimated_rates(measured)
        where = int(np.argmax(means))
        best, mean, reach = measured[where], float(means[where]), Z95 * float(sds[where])
        alike = [
            point for point, value in zip(measured, means, strict=True) if value >= mean - _ALIKE
        ]
        edges = zip(best, self._axes, strict=True)
        return PeakEstimate(
            best,
            math.exp(mean),
            math.exp(mean - reach),
            math.exp(mean + reach),
            tuple(sorted(alike, key=lambda point: (math.prod(point), point))),
            any(len(axis) > 1 and value in {axis[0], axis[-1]} for value, axis in edges),
            self._measurement_count(),
        )

    def _estimated_rates(self, points: list[GridPoint]) -> tuple[Floats, Floats]:
        """Mean and standard deviation of ln X at measured points."""
        if len(self._runs) > len(self._axes) + 1:
            return self._fitted_process().predict(self._scaled_inputs(points))
        values = np.array([self._pooled_mean_and_error(point) for point in points])
        return values[:, 0], values[:, 1]

    def _fitted_process(self) -> GaussianProcess:
        points = list(self._runs)
        values = np.array([self._pooled_mean_and_error(point) for point in points])
        return fit_gaussian_process(self._scaled_inputs(points), values[:, 0], values[:, 1])

    def _pooled_mean_and_error(self, point: GridPoint) -> tuple[float, float]:
        """A point's runs as one: their mean and its standard error."""
        runs = self._runs[point]
        noise = math.sqrt(sum(sd * sd for _, sd in runs)) / len(runs)
        return sum(value for value, _ in runs) / len(runs), noise

    def _scaled_inputs(self, points: list[GridPoint]) -> Floats:
        columns = [
            scale_to_span(
                np.log2([point[index] for point in points]), *np.log2([axis[0], axis[-1]])
            )
            for index, axis in enumerate(self._axes)
        ]
        return np.column_stack(columns)

    def _measurement_count(self) -> int:
        return sum(len(runs) for runs in self._runs.values())


def _expected_improvements(means: Floats, sds: Floats, best: float) -> Floats:
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
