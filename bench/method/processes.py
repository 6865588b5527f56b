"""Stationary processes whose mean is known, for the coverage of one run's interval.

AR(1) was used to choose the constants of `iolab.stats.batches`, and AR(2) beside it for
the degrees of freedom of cycles; the others hold them against other kinds. All have a mean of 1.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final

import numpy as np

from bench.method.scenarios import Floats, ar1

Process = Callable[[np.random.Generator, int], Floats]

_SETTLING: Final = 2000
"""Seconds after which an AR(2) process has forgotten how it began."""


def correlated(rho: float, sd: float, noise: float = 0.0) -> Process:
    """AR(1), with independent noise of each second on top."""

    def draw(rng: np.random.Generator, seconds: int) -> Floats:
        wander = sd * rng.standard_normal(seconds) if rho == 0 else _ar1(rng, seconds, sd, rho)
        values: Floats = 1 + wander + noise * rng.standard_normal(seconds)
        return values

    return draw


def cyclic(period_s: float, radius: float, sd: float) -> Process:
    """AR(2) with complex roots of that radius: cycles whose phase and height wander."""
    first, second = 2 * radius * math.cos(2 * math.pi / period_s), -(radius**2)
    gain = (1 - second) / ((1 + second) * ((1 - second) ** 2 - first**2))

    def draw(rng: np.random.Generator, seconds: int) -> Floats:
        shocks = rng.standard_normal(_SETTLING + seconds)
        values = np.zeros(len(shocks))
        for at in range(2, len(shocks)):
            values[at] = first * values[at - 1] + second * values[at - 2] + shocks[at]
        swings: Floats = 1 + sd / math.sqrt(gain) * values[_SETTLING:]
        return swings

    return draw


def switching(sojourn_s: float, step: float, noise: float = 0.01) -> Process:
    """Two levels, `step` above and below, each held for an exponential time of that mean."""

    def draw(rng: np.random.Generator, seconds: int) -> Floats:
        edges = np.cumsum(rng.exponential(sojourn_s, 50 + int(4 * seconds / sojourn_s)))
        state = np.searchsorted(edges, np.arange(seconds) + 0.5) + rng.integers(2)
        values: Floats = 1 + step * (2 * (state % 2) - 1) + noise * rng.standard_normal(seconds)
        return values

    return draw


def long_tailed(shape: float, share: float) -> Process:
    """Seconds slowed by independent Pareto amounts of that shape; their mean is `share` below."""

    def draw(rng: np.random.Generator, seconds: int) -> Floats:
        lost = rng.pareto(shape, seconds) * (shape - 1) * share
        values: Floats = 1 + share - lost
        return values

    return draw


def log_normal(sd: float) -> Process:
    """Independent log-normal seconds."""

    def draw(rng: np.random.Generator, seconds: int) -> Floats:
        values: Floats = np.exp(sd * rng.standard_normal(seconds) - sd * sd / 2)
        return values

    return draw


def dipping(every_s: float, length_s: int, depth: float, *, periodic: bool) -> Process:
    """Dips by garbage collection, at equal or at exponential distances, in noise of 1 %."""
    share = depth * length_s / every_s

    def draw(rng: np.random.Generator, seconds: int) -> Floats:
        values = np.ones(seconds)
        at = rng.uniform(0, every_s) - length_s if periodic else _gap(rng, every_s, length_s)
        while at < seconds:
            values[max(int(at), 0) : max(int(at) + length_s, 0)] = 1 - depth
            at += every_s if periodic else length_s + rng.exponential(every_s - length_s)
        noisy: Floats = values / (1 - share) * (1 + 0.01 * rng.standard_normal(seconds))
        return noisy

    return draw


RHOS: Final = (0.0, 0.5, 0.8, 0.9, 0.95, 0.98)

TUNED: Final[dict[str, Process]] = {
    f"AR(1) {rho:g}, {100 * sd:g} %": correlated(rho, sd) for rho in RHOS for sd in (0.01, 0.05)
}
"""What the constants were chosen by."""

HELD_OUT: Final[dict[str, Process]] = {
    "AR(2) 20 s, 1 %": cyclic(20, 0.95, 0.01),
    "AR(2) 20 s, 5 %": cyclic(20, 0.95, 0.05),
    "AR(2) 60 s, 1 %": cyclic(60, 0.98, 0.01),
    "AR(2) 60 s, 5 %": cyclic(60, 0.98, 0.05),
    "two levels 3 s, 1 %": switching(3, 0.01),
    "two levels 3 s, 5 %": switching(3, 0.05),
    "two levels 10 s, 1 %": switching(10, 0.01),
    "two levels 10 s, 5 %": switching(10, 0.05),
    "Pareto 2.5, 3 %": long_tailed(2.5, 0.03),
    "log-normal 20 %": log_normal(0.2),
    "dips 20 s, equal": dipping(20, 2, 0.2, periodic=True),
    "dips 20 s, Poisson": dipping(20, 2, 0.2, periodic=False),
    "dips 60 s, equal": dipping(60, 3, 0.2, periodic=True),
    "drift 50 s, 5 % + 1 %": correlated(math.exp(-1 / 50), 0.05, 0.01),
}

UNSEEN: Final[dict[str, Process]] = {
    "dips 60 s, Poisson": dipping(60, 3, 0.2, periodic=False),
    "two levels 30 s, 1 %": switching(30, 0.01),
    "two levels 60 s, 1 %": switching(60, 0.01),
    "two levels 60 s, 5 %": switching(60, 0.05),
    "drift 50 s, 1 % + 1 %": correlated(math.exp(-1 / 50), 0.01, 0.01),
    "drift 50 s, 1 % + 5 %": correlated(math.exp(-1 / 50), 0.01, 0.05),
    "drift 300 s, 5 % + 2 %": correlated(math.exp(-1 / 300), 0.05, 0.02),
}
"""Changes that a run of minutes often does not show, for they are as slow or as rare as itself, or
below its noise; its interval cannot know of them, and the table says how often it is wrong."""

PROCESSES: Final = TUNED | HELD_OUT | UNSEEN


def _ar1(rng: np.random.Generator, seconds: int, sd: float, rho: float) -> Floats:
    """Stationary from its first second on, as the scenarios' truncated sum is not quite."""
    settling = 1 + int(math.log(1e-4) / math.log(rho))
    return ar1(rng, seconds + settling, sd, rho)[settling:]


def _gap(rng: np.random.Generator, every_s: float, length_s: int) -> float:
    """When the first dip begins: as if dips had come for ever, it may already be under way."""
    if rng.uniform() < length_s / every_s:
        return -rng.uniform(0, length_s)
    return rng.exponential(every_s - length_s)
