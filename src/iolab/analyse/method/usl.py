"""The Universal Scalability Law, as a description of a curve and never as its interpolation.

X = gamma N / (1 + sigma (N - 1) + kappa N (N - 1)) (Gunther 1993). Fitted on ln X with a soft-L1
loss by Levenberg-Marquardt; shown only where every point fits within twice its half-width: of six
points of other families it is wrong by 7 to 18 % in between.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from iolab.analyse.method.gaussian import Floats

_STARTS: Final = ((0.02, 5e-4), (0.1, 1e-3), (0.3, 1e-4))
"""(sigma, kappa) from which the fit starts; the best of the three ends counts."""
_STEPS_MOST: Final = 200
_DAMPING_FIRST: Final = 1e-3
_DAMPING_LAST: Final = 1e12
_LOSS_SCALE: Final = 0.02
"""Residuals of ln X above 2 % count linearly, not squared."""
_CONVERGED: Final = 1e-14
_FITS_WITHIN: Final = 2.0
_POINTS_MIN: Final = 4


@dataclass(frozen=True, slots=True)
class Usl:
    """A fitted law: the rate of one, contention sigma, coherency kappa, and whether it describes.

    `describes` is False where a residual exceeds twice the point's 95 % half-width; the law is then
    not shown. `worst` is the largest residual of ln X.
    """

    gamma: float
    sigma: float
    kappa: float
    worst: float
    describes: bool

    @property
    def best_load(self) -> float:
        """Where the rate is largest, sqrt((1 - sigma) / kappa); infinite without coherency cost."""
        return math.sqrt(max(1 - self.sigma, 0) / self.kappa) if self.kappa > 0 else math.inf

    def rate(self, load: float) -> float:
        """The rate that the law gives to that load."""
        return self.gamma * load / (1 + load_cost(load, self.sigma, self.kappa))


def load_cost(load: float, sigma: float, kappa: float) -> float:
    """What contention and coherency add: sigma (N - 1) + kappa N (N - 1)."""
    return sigma * (load - 1) + kappa * load * (load - 1)


def fit(loads: Sequence[float], rates: Sequence[float], half_widths: Sequence[float]) -> Usl:
    """Fit the law to measured rates with those relative 95 % half-widths.

    Raises ValueError for fewer than four points, which any law of three parameters fits.
    """
    if len(loads) < _POINTS_MIN:
        raise ValueError(f"{len(loads)} points fit any law; at least {_POINTS_MIN} are needed")
    n, y = np.array(loads, dtype=np.float64), np.log(np.array(rates))
    ends = [_descended(n, y, start) for start in _STARTS]
    best = min(ends, key=lambda end: _loss(_residuals(n, y, end)))
    residuals = np.abs(_residuals(n, y, best))
    describes = bool((residuals <= _FITS_WITHIN * np.array(half_widths)).all())
    gamma, sigma, kappa = math.exp(best[0]), float(best[1]), float(best[2])
    return Usl(gamma, sigma, kappa, float(residuals.max()), describes)


def _residuals(n: Floats, y: Floats, p: Floats) -> Floats:
    result: Floats = p[0] + np.log(n / (1 + p[1] * (n - 1) + p[2] * n * (n - 1))) - y
    return result


def _loss(residuals: Floats) -> float:
    """Soft L1: 2 (sqrt(1 + (r/s)^2) - 1)."""
    return float((2 * (np.sqrt(1 + (residuals / _LOSS_SCALE) ** 2) - 1)).sum())


def _descended(n: Floats, y: Floats, start: tuple[float, float]) -> Floats:
    """Levenberg-Marquardt with the loss as weights; sigma and kappa are kept at zero or above."""
    p = np.array([float(y[0]) - math.log(n[0]), *start])
    damping = _DAMPING_FIRST
    loss = _loss(_residuals(n, y, p))
    for _ in range(_STEPS_MOST):
        residuals = _residuals(n, y, p)
        weights = 1 / np.sqrt(1 + (residuals / _LOSS_SCALE) ** 2)
        cost = 1 + p[1] * (n - 1) + p[2] * n * (n - 1)
        jacobian = np.column_stack([np.ones_like(n), -(n - 1) / cost, -n * (n - 1) / cost])
        normal = jacobian.T @ (weights[:, None] * jacobian)
        normal += damping * np.diag(np.maximum(np.diag(normal), 1e-12))
        step = np.linalg.solve(normal, -(jacobian.T @ (weights * residuals)))
        trial = p + step
        trial[1:] = np.maximum(trial[1:], 0.0)
        trial_loss = _loss(_residuals(n, y, trial))
        if trial_loss < loss:
            settled = loss - trial_loss <= _CONVERGED * loss
            p, loss, damping = trial, trial_loss, damping / 3
            if settled:
                break
        else:
            damping *= 4
            if damping > _DAMPING_LAST:
                break
    return p
