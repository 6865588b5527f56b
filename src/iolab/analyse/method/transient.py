"""An exponential transient: c + a exp(-t/tau) by least squares over a grid of time constants.

For each tau the model is linear, so the fit is exact and needs no optimiser. The transient counts
only where it explains the series better than a constant by an F test.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import numpy as np

from iolab.analyse.method.mser import BLOCK_S, Floats

_TAU_FIRST_BLOCKS: Final = 0.8
_TAU_FACTOR: Final = 1.3
_TAU_LAST_SHARE: Final = 0.75
"""The grid: 0.8 blocks (4 s of the usual 5 s ones) x 1.3^k, up to three quarters of the series; a
slower decay cannot be told from a drift, which the comparison of halves sees."""

_F_LIMIT: Final = 6.0
"""F of (2, K-3) above which the transient is taken to be there: p < 0.01 for 20 blocks or more."""

_PARAMETERS: Final = 3
_MIN_BLOCKS: Final = 8
"""Fewer blocks than this say nothing of three parameters."""


@dataclass(frozen=True, slots=True)
class Transient:
    """A fitted decay: the level that remains, what is added at the start, tau in seconds, and F."""

    level: float
    amplitude: float
    tau_s: float
    f: float

    @property
    def is_clear(self) -> bool:
        """Whether it explains more than chance would."""
        return self.f > _F_LIMIT

    def settled_s(self, share: float) -> float:
        """When it has decayed to `share` of the level, in seconds from the start; 0 if never above.

        Infinite for a level of zero or less: such a fit has no steady state.
        """
        if self.level <= 0:
            return math.inf
        return self.tau_s * math.log(max(abs(self.amplitude / self.level) / share, 1.0))


def fit(blocks: Floats, block_s: int = BLOCK_S) -> Transient | None:
    """The best fit to block medians that begin at second 0; None for too few of them."""
    count = len(blocks)
    if count < _MIN_BLOCKS:
        return None
    taus, shapes, norms = _grid(count, block_s)
    mean = float(blocks.mean())
    centred = blocks - mean
    total = float(centred @ centred)
    slopes = shapes @ centred / norms
    gains = slopes * slopes * norms
    best = int(np.argmax(gains))
    amplitude = float(slopes[best])
    offset = float(np.exp(-_centres(count, block_s) / taus[best]).mean())
    remaining = max(total - float(gains[best]), 1e-12 * total)
    f = float(gains[best]) / remaining * (count - _PARAMETERS) / 2 if total > 0 else 0.0
    return Transient(mean - amplitude * offset, amplitude, float(taus[best]), f)


def _centres(count: int, block_s: int) -> Floats:
    centres: Floats = (np.arange(count, dtype=np.float64) + 0.5) * block_s
    return centres


@lru_cache(maxsize=512)
def _grid(count: int, block_s: int) -> tuple[Floats, Floats, Floats]:
    """The time constants, their centred shapes (taus x blocks) and the shapes' squared norms."""
    first = _TAU_FIRST_BLOCKS * block_s
    last = _TAU_LAST_SHARE * count * block_s
    steps = int(math.log(last / first) / math.log(_TAU_FACTOR)) + 1
    taus: Floats = first * _TAU_FACTOR ** np.arange(steps, dtype=np.float64)
    shapes: Floats = np.exp(-_centres(count, block_s)[None, :] / taus[:, None])
    shapes -= shapes.mean(axis=1, keepdims=True)
    norms: Floats = (shapes * shapes).sum(axis=1)
    return taus, shapes, norms
