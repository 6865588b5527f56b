"""A Gaussian process through few measured points: a mean and its uncertainty everywhere.

Linear mean with a flat prior (integrated out), Matern 5/2 kernel, the measurements' own noise, and
hyperparameters averaged over a grid by their marginal likelihood, so that no optimiser can fail.
Rasmussen and Williams 2006, "Gaussian Processes for Machine Learning", sections 2.7 and 4.2.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

_LENGTHS: Final = np.array([0.25, 0.4, 0.6, 0.9, 1.3, 2.0, 3.0])
"""Length scales, in units of inputs scaled to 0 .. SPAN."""
_SCALES: Final = np.array([0.02, 0.05, 0.1, 0.2, 0.4, 0.8])
"""Standard deviations around the linear mean, in units of the (log) output."""

SPAN: Final = 3.9
"""sqrt(24) - sqrt(1): the axis for which the length scales were chosen spans this."""

_NOISE_LEAST: Final = 1e-4
"""Smallest noise assumed: none is measured better than 0.01 %, and it keeps matrices regular."""

_DRAW_JITTER: Final = 1e-10


@dataclass(frozen=True, slots=True)
class Surrogate:
    """A fitted process; inputs have shape (points, dimensions) and are scaled to 0 .. SPAN.

    The arrays' first axis is the hyperparameters (h), weighted by `weights`: for n points and a
    mean of p terms, `inverse` (h, n, n) of the covariance, `beta` (h, p), `beta_cov` (h, p, p).
    """

    inputs: Floats
    targets: Floats
    lengths: Floats
    variances: Floats
    weights: Floats
    inverse: Floats
    beta: Floats
    beta_cov: Floats

    def predict(self, at: Floats) -> tuple[Floats, Floats]:
        """Mean and standard deviation of the process at those inputs, without measurement noise."""
        means, covariances = self._posterior(at)
        spread = np.maximum(np.diagonal(covariances, axis1=1, axis2=2), 0.0)
        mean = self.weights @ means
        second = self.weights @ (spread + means * means)
        return mean, np.sqrt(np.maximum(second - mean * mean, 0.0))

    def draws(self, at: Floats, count: int, rng: np.random.Generator) -> Floats:
        """Whole curves drawn from the process at those inputs; shape (count, points)."""
        means, covariances = self._posterior(at)
        chosen = rng.multinomial(count, self.weights)
        parts = []
        for index in np.flatnonzero(chosen):
            values, vectors = np.linalg.eigh(covariances[index])
            root = vectors * np.sqrt(np.maximum(values, _DRAW_JITTER))
            parts.append(means[index] + rng.standard_normal((chosen[index], len(at))) @ root.T)
        return np.concatenate(parts)

    def _posterior(self, at: Floats) -> tuple[Floats, Floats]:
        """Means (h, m) and covariances (h, m, m) for each of the hyperparameters."""
        cross = _kernel(self.inputs, at, self.lengths, self.variances)
        own = _kernel(at, at, self.lengths, self.variances)
        basis, basis_at = _basis(self.inputs), _basis(at)
        solved = self.inverse @ cross
        rest = self.targets - self.beta @ basis.T
        means = self.beta @ basis_at.T + np.einsum("hn,hnm->hm", rest, solved)
        left = basis_at.T - np.einsum("np,hnm->hpm", basis, solved)
        covariances = own - np.swapaxes(cross, 1, 2) @ solved
        covariances += np.swapaxes(left, 1, 2) @ self.beta_cov @ left
        return means, covariances


def fit(inputs: Floats, targets: Floats, noise_sds: Floats) -> Surrogate:
    """Fit the process to measured targets (n,) with known noise (n,) at inputs (n, d).

    Raises ValueError for fewer points than the linear mean has terms plus one.
    """
    basis = _basis(inputs)
    count, terms = basis.shape
    if count <= terms:
        raise ValueError(f"{count} points are too few for a surrogate; {terms + 1} are needed")
    lengths = np.repeat(_LENGTHS, len(_SCALES))
    variances = np.tile(_SCALES**2, len(_LENGTHS))
    noise = np.maximum(noise_sds, _NOISE_LEAST) ** 2
    covariance = _kernel(inputs, inputs, lengths, variances) + np.diag(noise)
    inverse = np.asarray(np.linalg.inv(covariance), dtype=np.float64)
    projected = np.einsum("np,hnm->hpm", basis, inverse)
    information = projected @ basis
    beta_cov = np.asarray(np.linalg.inv(information), dtype=np.float64)
    beta = np.einsum("hpq,hqm,m->hp", beta_cov, projected, targets)
    squares = np.einsum("n,hnm,m->h", targets, inverse, targets)
    squares -= np.einsum("hp,hpq,hq->h", beta, information, beta)
    logs = -0.5 * (squares + np.linalg.slogdet(covariance)[1] + np.linalg.slogdet(information)[1])
    weights = np.exp(logs - logs.max())
    weights /= weights.sum()
    return Surrogate(inputs, targets, lengths, variances, weights, inverse, beta, beta_cov)


def scaled(values: Floats, low: float, high: float) -> Floats:
    """Values between low and high brought to 0 .. SPAN; all zero where low is high."""
    if high <= low:
        return np.zeros_like(values)
    result: Floats = (values - low) / (high - low) * SPAN
    return result


def _basis(inputs: Floats) -> Floats:
    return np.column_stack([np.ones(len(inputs)), inputs])


def _kernel(a: Floats, b: Floats, lengths: Floats, variances: Floats) -> Floats:
    """Matern 5/2 for each of the hyperparameters; shape (h, len(a), len(b))."""
    distance = np.sqrt(((a[:, None, :] - b[None, :, :]) ** 2).sum(axis=2))
    r = np.sqrt(5.0) * distance[None] / lengths[:, None, None]
    kernel: Floats = variances[:, None, None] * (1 + r + r * r / 3) * np.exp(-r)
    return kernel
