"""What a curve of rate over load says of a load that was not measured: a law, and an interval.

The law is the Universal Scalability Law where it describes the curve, else proportional growth up
to the rate at which the curve saturates. No law fitted below a bend can know of it. So the interval
spans what several laws say that the points allow, each with the points' own uncertainty, and beyond
the measured loads also a curve that stops growing there.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

import numpy as np

from iolab.core.samples import Floats
from iolab.stats.curve import Z95, Usl, fit_usl, load_cost
from iolab.stats.special import student_quantile

POINTS_LEAST: Final = 4
"""Of fewer measured loads a law of three parameters says nothing."""

REACH: Final = 2.0
"""How many times the largest measured load a prediction may be of, unless more is asked for."""

COVERED: Final = 0.90
"""The share of loads that intervals of predictions hold; bench/predict.py counts them."""

WIDTH_LEAST: Final = 0.003
"""Half-width, as a share, that a measured rate has at the least: repeats agree by chance too."""

_Z: Final = student_quantile((1 + COVERED) / 2, math.inf)

_KNEES: Final = 200
"""Loads that are tried for the bend, from half the smallest to eight times the largest."""

_SHARPNESS: Final = (1.5, 3.0, 8.0)
"""How sharply growth bends into saturation: as with a shared queue, and as with a hard limit."""


class Law(StrEnum):
    """What a prediction follows."""

    USL = "universal scalability law"
    SATURATION = "proportional up to saturation"


@dataclass(frozen=True, slots=True)
class Known:
    """A measured load: its rate, and half of its 95 % interval as a share of it."""

    load: float
    rate: float
    half_width: float


@dataclass(frozen=True, slots=True)
class Prediction:
    """A rate that was not measured, with its 90 % interval; `limit` caps it where it is known."""

    load: float
    rate: float
    low: float
    high: float
    law: Law
    limit: float | None


def predict(known: Sequence[Known], load: float, limit: float | None = None) -> Prediction:
    """The rate at a load. `limit` is the largest rate that a measured bottleneck leaves.

    Raises ValueError for fewer than four measured loads.
    """
    points = sorted(known, key=lambda one: one.load)
    if len(points) < POINTS_LEAST:
        raise ValueError(f"{len(points)} loads were measured; at least {POINTS_LEAST} are needed")
    loads = np.array([one.load for one in points])
    rates = np.log([one.rate for one in points])
    widths = np.maximum([one.half_width for one in points], WIDTH_LEAST)
    law = fit_usl(loads.tolist(), np.exp(rates).tolist(), widths.tolist())
    bend, left = _bend(loads, rates, load)
    value = math.log(law.rate(load)) if law.describes else bend
    ends = list(_ends(loads, rates, widths, load, law if law.describes else None))
    ends += [(bend - left, bend + left)]
    low, high = min(low for low, _ in ends), max(high for _, high in ends)
    # A rate that is redrawn has its own chance beside that of the law.
    own = _Z * float(np.max(widths)) / Z95
    ends_of = [math.exp(value), math.exp(min(low, value) - own), math.exp(max(high, value) + own)]
    rate, low, high = (one if limit is None else min(one, limit) for one in ends_of)
    kind = Law.USL if law.describes else Law.SATURATION
    return Prediction(load, rate, low, high, kind, limit)


def _ends(
    loads: Floats, rates: Floats, widths: Floats, load: float, law: Usl | None
) -> Iterator[tuple[float, float]]:
    """What each way to go on says, of the logarithm of the rate."""
    if law is not None:
        middle, error = math.log(law.rate(load)), _Z * _usl_error(loads, widths, load, law)
        yield middle - error, middle + error
    if load <= loads[-1]:
        middle = float(np.interp(math.log(load), np.log(loads), rates))
        yield middle, middle + _bulge(loads, rates, load)
        return
    last, before = float(rates[-1]), float(rates[-2])
    reach = math.log(load / loads[-1])
    step = math.log(loads[-1] / loads[-2])
    slope = min((last - before) / step, 1.0)
    chance = _Z * math.hypot(widths[-1], widths[-2]) / Z95 / step
    # It stops growing here, or falls as it fell last; or it goes on as it did last.
    yield last + min(slope, 0.0) * reach, last + min(slope + chance, 1.0) * reach


def _bulge(loads: Floats, rates: Floats, load: float) -> float:
    """How far a bent curve may lie above its chord: as far as growth in proportion would lead."""
    after = int(np.searchsorted(loads, load))
    before = after - 1
    up = float(rates[before]) + math.log(load / loads[before])
    chord = float(np.interp(math.log(load), np.log(loads), rates))
    return max(min(up, max(float(rates[after]), float(rates[before]))) - chord, 0.0)


def _usl_error(loads: Floats, widths: Floats, load: float, law: Usl) -> float:
    """The standard error of the law's logarithm at a load, by that of its parameters."""
    weights = (Z95 / widths)[:, None]
    gradients = _gradients(loads, law)
    covariance = np.linalg.pinv((weights * gradients).T @ (weights * gradients))
    at = _gradients(np.array([load]), law)[0]
    return math.sqrt(max(float(at @ covariance @ at), 0.0))


def _gradients(loads: Floats, law: Usl) -> Floats:
    cost = 1 + np.array([load_cost(load, law.sigma, law.kappa) for load in loads.tolist()])
    n = loads
    return np.column_stack([np.ones_like(n), -(n - 1) / cost, -n * (n - 1) / cost])


def _bend(loads: Floats, rates: Floats, load: float) -> tuple[float, float]:
    """The logarithm of the rate by growth that bends into saturation, and its largest residual."""
    knees = np.geomspace(loads[0] / 2, loads[-1] * 8, _KNEES)
    best = (math.inf, 0.0, 0.0)
    for sharp in _SHARPNESS:
        shapes = _rise(loads[None, :] / knees[:, None], sharp)
        tops = (rates[None, :] - shapes).mean(axis=1)
        residuals = np.abs(rates[None, :] - shapes - tops[:, None])
        place = int(np.argmin((residuals**2).sum(axis=1)))
        squares = float((residuals[place] ** 2).sum())
        if squares < best[0]:
            at = float(tops[place] + _rise(np.array(load / knees[place]), sharp))
            best = (squares, at, float(residuals[place].max()))
    return best[1], best[2]


def _rise(share: Floats, sharp: float) -> Floats:
    """The logarithm of the share of the top that is reached at a share of the bend's load."""
    return np.asarray(-np.log1p(share**-sharp) / sharp)
