"""What a curve of rate over load says of a load that was not measured: a law, and an interval.

The rate is that of the Universal Scalability Law where this describes the curve, else the middle of
all that the points allow. The interval weighs some ten thousand curves of three kinds (the law,
growth that bends into saturation, a law with a step down) by how well each goes through the points.
The scatter is that of all repeats together, and grows where no curve goes through the points. No
curve fitted below a bend can know of it, so beyond the largest load the interval widens as well.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from enum import StrEnum
from functools import lru_cache
from typing import Final

import numpy as np

from iolab.core.samples import Floats
from iolab.record import Record
from iolab.stats.curve import Z95, UslFit, fit_usl
from iolab.stats.special import student_quantile

POINTS_MIN: Final = 4
"""Of fewer measured loads a law of three parameters says nothing."""

REACH: Final = 2.0
"""How many times the largest measured load a prediction may be of, unless more is asked for."""

COVERED: Final = 0.90
"""The share of loads that intervals of predictions hold; bench/predict.py counts them."""

SCATTER_MIN: Final = 0.005
"""Standard deviation of runs, as a share, at the least: a few repeats agree by chance too."""

DF_MAX: Final = 10
"""Degrees of freedom that repeats count for at most, so that points that no curve goes through
widen the interval however often they were repeated."""

UNSEEN: Final = 0.06
"""Standard deviation of the logarithm of the rate at e times the largest load, for what no points
foretell; of the values tried the one with nearest to 90 % of simulated points within."""

_NODES: Final = 40
"""Quantiles of Student's law by which each curve enters the mixture."""

_WEIGHT_MIN: Final = 1e-5
"""Curves with less of the whole weight change no quantile."""


class PredictionLaw(StrEnum):
    """What a prediction follows."""

    USL = "universal scalability law"
    SATURATION = "proportional up to saturation"


class MeasuredLoad(Record):
    """A measured load: its rate, and the standard deviation of so many runs' logarithms.

    `relative_half_width` is half of the rate's 95 % interval as a share of it, 0 where none is
    known.
    """

    load: float
    rate: float
    log_rate_sd: float
    run_count: int
    relative_half_width: float = 0.0


class Prediction(Record):
    """A rate that was not measured, with its 90 % interval.

    `bottleneck_rate` caps it where it is known.
    """

    load: float
    rate: float
    low: float
    high: float
    law: PredictionLaw
    bottleneck_rate: float | None


def predict_rate(
    measured: Sequence[MeasuredLoad], load: float, bottleneck_rate: float | None = None
) -> Prediction:
    """The rate at a load. `bottleneck_rate` is the largest rate that a measured bottleneck leaves.

    The interval is that of a mean of as many runs as a measured load has. Raises ValueError for
    fewer than four measured loads, or where none was measured twice.
    """
    points = sorted(measured, key=lambda point: point.load)
    if len(points) < POINTS_MIN:
        raise ValueError(f"{len(points)} loads were measured; at least {POINTS_MIN} are needed")
    freedom = sum(point.run_count - 1 for point in points)
    if freedom < 1:
        raise ValueError("no load was measured twice")
    pooled = sum((point.run_count - 1) * point.log_rate_sd**2 for point in points) / freedom
    log_rate_sd = max(math.sqrt(pooled), SCATTER_MIN)
    loads = tuple(point.load for point in points)
    widths = [Z95 * log_rate_sd / math.sqrt(point.run_count) for point in points]
    law = _usl_fit(loads, tuple(point.rate for point in points), tuple(widths))
    middle, low, high = _log_rate_median_and_ends(points, log_rate_sd, min(freedom, DF_MAX), load)
    value = math.log(law.predicted_rate(load)) if law.fits_well else middle
    ends = [math.exp(end) for end in (value, min(low, value), max(high, value))]
    rate, low, high = (
        end if bottleneck_rate is None else min(end, bottleneck_rate) for end in ends
    )
    kind = PredictionLaw.USL if law.fits_well else PredictionLaw.SATURATION
    return Prediction(load, rate, low, high, kind, bottleneck_rate)


@lru_cache(maxsize=1)
def _usl_fit(
    loads: tuple[float, ...], rates: tuple[float, ...], relative_half_widths: tuple[float, ...]
) -> UslFit:
    """The law of a curve, fitted once for all loads that are predicted from it."""
    return fit_usl(loads, rates, relative_half_widths)


def _log_rate_median_and_ends(
    points: Sequence[MeasuredLoad], log_rate_sd: float, degrees_of_freedom: int, load: float
) -> tuple[float, float, float]:
    """Median and ends of the logarithm of the rate, by the weight of every curve.

    Top and scatter of each curve have their conjugate laws (normal, inverse gamma), the scatter
    from `degrees_of_freedom` repeats; the rate is then Student's around each curve.
    """
    loads = tuple(point.load for point in points)
    shapes, priors = _candidate_log_rates_and_weights(loads, load)
    rates = np.log([point.rate for point in points])
    weights = np.array([point.run_count for point in points]) / log_rate_sd**2
    residuals = rates - shapes[:, :-1]
    tops = residuals @ weights / weights.sum()
    squares = (residuals - tops[:, None]) ** 2 @ weights
    df = degrees_of_freedom + len(points) - 1
    chances = np.log(priors) - df / 2 * np.log(degrees_of_freedom + squares)
    chances = np.exp(chances - chances.max())
    kept = chances > _WEIGHT_MIN * chances.sum()
    own = (degrees_of_freedom + squares[kept]) / df * (1 / weights.mean() + 1 / weights.sum())
    unseen = UNSEEN * max(math.log(load / loads[-1]), 0.0)
    nodes = [student_quantile((node + 0.5) / _NODES, df) for node in range(_NODES)]
    values = (tops + shapes[:, -1])[kept, None] + np.sqrt(own + unseen**2)[:, None] * nodes
    order = np.argsort(values, axis=None)
    shares = np.cumsum(np.repeat(chances[kept], _NODES)[order])
    asked = np.array([0.5, (1 - COVERED) / 2, (1 + COVERED) / 2]) * shares[-1]
    middle, low, high = np.interp(asked, shares, values.ravel()[order]).tolist()
    return middle, low, high


@lru_cache(maxsize=8)
def _candidate_log_rates_and_weights(
    loads: tuple[float, ...], load: float
) -> tuple[Floats, Floats]:
    """Logarithms of rates at those loads and the last one, a row a curve, and each one's weight."""
    kinds = list(
        _prior_weights_and_log_rates_by_family(np.array([*loads, load]), loads[0], loads[-1])
    )
    shares = [np.full(len(shapes), weight / len(shapes)) for weight, shapes in kinds]
    return np.concatenate([shapes for _, shapes in kinds]), np.concatenate(shares)


def _prior_weights_and_log_rates_by_family(
    n: Floats, first: float, last: float
) -> Iterator[tuple[float, Floats]]:
    """Each kind of curve with its weight in the whole before anything was measured.

    Bends may lie from half the smallest load to eight times the largest; steps to four times.
    """
    sigma, kappa = _value_combinations(
        np.append(0.0, np.geomspace(1e-3, 0.5, 80)), np.append(0.0, np.geomspace(1e-5, 0.03, 60))
    )
    yield 0.40, np.log(n) - np.log1p(sigma * (n - 1) + kappa * n * (n - 1))
    bend, sharp, power, fall = _value_combinations(
        np.geomspace(first / 2, last * 8, 160),
        np.append(np.geomspace(1, 12, 10), 40.0),
        np.linspace(0.88, 1, 5),
        np.array([0, 0.03, 0.1, 0.25]),
    )
    share = np.log(n / bend)
    rise = power * (np.log(n) - np.logaddexp(0, sharp * share) / sharp)
    yield 0.45, rise - fall * np.maximum(n / bend - 1, 0)
    step, drop, sigma = _value_combinations(
        np.geomspace(first, last * 4, 24),
        np.array([0.08, 0.15, 0.22, 0.3]),
        np.linspace(0, 0.15, 12),
    )
    fallen = np.where(n > step, np.log1p(-drop), 0.0)
    yield 0.15, np.log(n) - np.log1p(sigma * (n - 1)) + fallen


def _value_combinations(*axes: Floats) -> list[Floats]:
    """Every combination of these values, as columns."""
    return [column.reshape(-1, 1) for column in np.meshgrid(*axes, indexing="ij")]
