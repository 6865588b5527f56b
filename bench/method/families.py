"""Curves of rate over load, of the families that storage shows, each with drawn parameters."""

from __future__ import annotations

from typing import Final

import numpy as np

from bench.method.scenarios import Floats

LOADS: Final = tuple(range(1, 25))
_N: Floats = np.array(LOADS, dtype=np.float64)

SHARES: Final = {"usl": 0.30, "soft": 0.40, "retrograde": 0.20, "cliff": 0.05, "knee": 0.05}
"""How often each family occurs in a study."""


def draw(family: str, rng: np.random.Generator) -> Floats:
    """The true rates at LOADS, 1 at load 1 or nearly so."""
    if family == "usl":
        sigma, kappa = rng.uniform(0.01, 0.15), rng.uniform(1e-4, 2e-3)
        law: Floats = _N / (1 + sigma * (_N - 1) + kappa * _N * (_N - 1))
        return law
    if family == "retrograde":
        falling: Floats = np.exp(-rng.uniform(0.2, 0.5) * (_N / 24) ** rng.uniform(2, 4))
        retrograde: Floats = _soft(rng) * falling
        return retrograde
    if family == "cliff":
        lost = np.where(rng.integers(6, 21) <= _N, rng.uniform(0.1, 0.3), 0.0)
        broken: Floats = _soft(rng) * (1 - lost)
        return broken
    if family == "knee":
        return np.minimum(_N, rng.uniform(4, 16))
    return _soft(rng)


def any_family(rng: np.random.Generator) -> Floats:
    """A curve of a family drawn by SHARES."""
    names = list(SHARES)
    return draw(names[int(rng.choice(len(names), p=list(SHARES.values())))], rng)


def _soft(rng: np.random.Generator) -> Floats:
    """N / (1 + (N/Ns)^p)^(1/p): linear at first, level at last."""
    turn, sharpness = rng.uniform(4, 16), rng.uniform(1.5, 4)
    curve: Floats = _N / (1 + (_N / turn) ** sharpness) ** (1 / sharpness)
    return curve
