"""What a curve of rate over concurrency says: its bounds, where it saturates, where its knee is.

Points come as draws of whole curves (`AdaptiveCurve.draws`), so that every answer has an interval.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Final

import numpy as np

from iolab.core.samples import Floats
from iolab.record import Record
from iolab.stats.repeats import BIAS_ALLOWANCE
from iolab.stats.seeds import initial_loads
from iolab.stats.special import student_quantile

_LENGTHS: Final = np.array([0.25, 0.4, 0.6, 0.9, 1.3, 2.0, 3.0])
"""Length scales, in units of inputs scaled to 0 .. SPAN."""
_SCALES: Final = np.array([0.02, 0.05, 0.1, 0.2, 0.4, 0.8])
"""Standard deviations around the linear mean, in units of the (log) output."""

SPAN: Final = 3.9
"""sqrt(24) - sqrt(1): the axis for which the length scales were chosen spans this."""

_NOISE_MIN: Final = 1e-4
"""Smallest noise assumed: none is measured better than 0.01 %, and it keeps matrices regular."""

_DRAW_JITTER: Final = 1e-10

_SATURATED: Final = 0.95
"""Share of the largest rate from which on a curve counts as saturated."""

_ONE_SIDED: Final = 0.05
_TAIL: Final = 0.025

_STARTS: Final = ((0.02, 5e-4), (0.1, 1e-3), (0.3, 1e-4))
"""(sigma, kappa) from which the fit starts; the best of the three ends counts."""

_STEPS_MAX: Final = 200
_DAMPING_FIRST: Final = 1e-3
_DAMPING_LAST: Final = 1e12

_LOSS_SCALE: Final = 0.02
"""Residuals of ln X above 2 % count linearly, not squared."""

_CONVERGED: Final = 1e-14
_FITS_WITHIN: Final = 2.0
_POINTS_MIN: Final = 4

_UNCERTAIN: Final = 0.02
"""A load whose 95 % half-width is above 2 % is measured."""

_HIT_ALWAYS: Final = 0.02
_HIT_NEVER: Final = 0.04

_HIT_SDS: Final = 2.5
"""A prediction came true within 2 %, or within 2.5 standard deviations but never beyond 4 %."""

_HITS_WANTED: Final = 2

_JUMP_MAX: Final = 0.06
"""A step of ln(X/N) between measured loads that is 6 % off the slopes on both sides is looked into:
a surrogate alone put a load beside a cliff 6 % off with an interval of 1.4 % (simulated)."""

_GAP_MAX: Final = 4
"""Loads of the axis between two measured neighbours, counted as steps: a cliff would hide there."""

Z95: Final = student_quantile(0.975, math.inf)


class GaussianProcess(Record):
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

    def predict(self, inputs: Floats) -> tuple[Floats, Floats]:
        """Mean and standard deviation of the process at those inputs, without measurement noise."""
        means, covariances = self._posterior_means_and_covariances(inputs)
        spread = np.maximum(np.diagonal(covariances, axis1=1, axis2=2), 0.0)
        mean = self.weights @ means
        second = self.weights @ (spread + means * means)
        return mean, np.sqrt(np.maximum(second - mean * mean, 0.0))

    def sample_curves(self, inputs: Floats, count: int, rng: np.random.Generator) -> Floats:
        """Whole curves drawn from the process at those inputs; shape (count, points)."""
        means, covariances = self._posterior_means_and_covariances(inputs)
        chosen = rng.multinomial(count, self.weights)
        parts = []
        for index in np.flatnonzero(chosen):
            values, vectors = np.linalg.eigh(covariances[index])
            root = vectors * np.sqrt(np.maximum(values, _DRAW_JITTER))
            parts.append(means[index] + rng.standard_normal((chosen[index], len(inputs))) @ root.T)
        return np.concatenate(parts)

    def _posterior_means_and_covariances(self, inputs: Floats) -> tuple[Floats, Floats]:
        """Means (h, m) and covariances (h, m, m) for each of the hyperparameters."""
        cross = _matern_kernel(self.inputs, inputs, self.lengths, self.variances)
        own = _matern_kernel(inputs, inputs, self.lengths, self.variances)
        basis, basis_at = _linear_basis_matrix(self.inputs), _linear_basis_matrix(inputs)
        solved = self.inverse @ cross
        rest = self.targets - self.beta @ basis.T
        means = self.beta @ basis_at.T + np.einsum("hn,hnm->hm", rest, solved)
        left = basis_at.T - np.einsum("np,hnm->hpm", basis, solved)
        covariances = own - np.swapaxes(cross, 1, 2) @ solved
        covariances += np.swapaxes(left, 1, 2) @ self.beta_cov @ left
        return means, covariances


def fit_gaussian_process(inputs: Floats, targets: Floats, noise_sds: Floats) -> GaussianProcess:
    """Fit the process to measured targets (n,) with known noise (n,) at inputs (n, d).

    Raises ValueError for fewer points than the linear mean has terms plus one.
    """
    basis = _linear_basis_matrix(inputs)
    count, terms = basis.shape
    if count <= terms:
        raise ValueError(f"{count} points are too few for a surrogate; {terms + 1} are needed")
    lengths = np.repeat(_LENGTHS, len(_SCALES))
    variances = np.tile(_SCALES**2, len(_LENGTHS))
    noise = np.maximum(noise_sds, _NOISE_MIN) ** 2
    covariance = _matern_kernel(inputs, inputs, lengths, variances) + np.diag(noise)
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
    return GaussianProcess(inputs, targets, lengths, variances, weights, inverse, beta, beta_cov)


def scale_to_span(values: Floats, low: float, high: float) -> Floats:
    """Values between low and high brought to 0 .. SPAN; all zero where low is high."""
    if high <= low:
        return np.zeros_like(values)
    result: Floats = (values - low) / (high - low) * SPAN
    return result


def _linear_basis_matrix(inputs: Floats) -> Floats:
    return np.column_stack([np.ones(len(inputs)), inputs])


def _matern_kernel(a: Floats, b: Floats, lengths: Floats, variances: Floats) -> Floats:
    """Matern 5/2 for each of the hyperparameters; shape (h, len(a), len(b))."""
    distance = np.sqrt(((a[:, None, :] - b[None, :, :]) ** 2).sum(axis=2))
    r = np.sqrt(5.0) * distance[None] / lengths[:, None, None]
    kernel: Floats = variances[:, None, None] * (1 + r + r * r / 3) * np.exp(-r)
    return kernel


class LoadEstimate(Record):
    """A load at which something happens, and the 95 % interval of that load."""

    load: int
    low: int
    high: int


def bounds_crossing_load(least_response_s: float, largest_rate: float) -> float:
    """Where both bounds meet, N_K = X_max R_min: a knee far from it wants an explanation."""
    return largest_rate * least_response_s


def saturation_load(loads: Sequence[int], curves: Floats) -> LoadEstimate | None:
    """The smallest load whose rate is, with 95 % confidence, at least 95 % of the largest.

    None where that is within 5 % of the axis' last load, as it is for a straight line: the curve
    was not seen to saturate.
    """
    shares = curves / curves.max(axis=1, keepdims=True)
    sure = np.flatnonzero(np.quantile(shares, _ONE_SIDED, axis=0) >= _SATURATED)
    if sure.size == 0 or loads[int(sure[0])] >= _SATURATED * loads[-1]:
        return None
    low, high = _load_interval(loads, (shares >= _SATURATED).argmax(axis=1))
    return LoadEstimate(loads[int(sure[0])], low, max(high, loads[int(sure[0])]))


def knee_load(loads: Sequence[int], curves: Floats) -> LoadEstimate:
    """Where rate over response time is largest ("power"); X^2 / N in a closed loop.

    The load is the one that most curves have; the axis' ends mean that the knee is not on it.
    """
    power = curves * curves / np.array(loads)
    best = power.argmax(axis=1)
    low, high = _load_interval(loads, best)
    return LoadEstimate(loads[int(np.bincount(best, minlength=len(loads)).argmax())], low, high)


def _load_interval(loads: Sequence[int], places: np.typing.NDArray[np.intp]) -> tuple[int, int]:
    low, high = np.quantile(places, [_TAIL, 1 - _TAIL], method="nearest")
    return loads[int(low)], loads[int(high)]


class UslFit(Record):
    """A fitted law: the rate of one, contention sigma, coherency kappa, and whether it describes.

    `fits_well` is False where a residual exceeds twice the point's 95 % half-width; the law is then
    not shown. `worst_residual` is the largest residual of ln X.
    """

    gamma: float
    sigma: float
    kappa: float
    worst_residual: float
    fits_well: bool

    @property
    def best_load(self) -> float:
        """Where the rate is largest, sqrt((1 - sigma) / kappa); infinite without coherency cost."""
        return math.sqrt(max(1 - self.sigma, 0) / self.kappa) if self.kappa > 0 else math.inf

    def predicted_rate(self, load: float) -> float:
        """The rate that the law gives to that load."""
        return self.gamma * load / (1 + usl_contention_and_coherency(load, self.sigma, self.kappa))


def usl_contention_and_coherency(load: float, sigma: float, kappa: float) -> float:
    """What contention and coherency add: sigma (N - 1) + kappa N (N - 1)."""
    return sigma * (load - 1) + kappa * load * (load - 1)


def fit_usl(
    loads: Sequence[float], rates: Sequence[float], tolerated_relative_residuals: Sequence[float]
) -> UslFit:
    """Fit the law to measured rates with those relative 95 % half-widths.

    Raises ValueError for fewer than four points, which any law of three parameters fits.
    """
    if len(loads) < _POINTS_MIN:
        raise ValueError(f"{len(loads)} points fit any law; at least {_POINTS_MIN} are needed")
    n, y = np.array(loads, dtype=np.float64), np.log(np.array(rates))
    ends = [_levenberg_marquardt(n, y, start) for start in _STARTS]
    best = min(ends, key=lambda end: _soft_l1_loss(_usl_log_residuals(n, y, end)))
    residuals = np.abs(_usl_log_residuals(n, y, best))
    describes = bool((residuals <= _FITS_WITHIN * np.array(tolerated_relative_residuals)).all())
    gamma, sigma, kappa = math.exp(best[0]), float(best[1]), float(best[2])
    return UslFit(gamma, sigma, kappa, float(residuals.max()), describes)


def _usl_log_residuals(n: Floats, y: Floats, p: Floats) -> Floats:
    result: Floats = p[0] + np.log(n / (1 + p[1] * (n - 1) + p[2] * n * (n - 1))) - y
    return result


def _soft_l1_loss(residuals: Floats) -> float:
    """Soft L1: 2 (sqrt(1 + (r/s)^2) - 1)."""
    return float((2 * (np.sqrt(1 + (residuals / _LOSS_SCALE) ** 2) - 1)).sum())


def _levenberg_marquardt(n: Floats, y: Floats, start: tuple[float, float]) -> Floats:
    """Levenberg-Marquardt with the loss as weights; sigma and kappa are kept at zero or above."""
    p = np.array([float(y[0]) - math.log(n[0]), *start])
    damping = _DAMPING_FIRST
    loss = _soft_l1_loss(_usl_log_residuals(n, y, p))
    for _ in range(_STEPS_MAX):
        residuals = _usl_log_residuals(n, y, p)
        weights = 1 / np.sqrt(1 + (residuals / _LOSS_SCALE) ** 2)
        cost = 1 + p[1] * (n - 1) + p[2] * n * (n - 1)
        jacobian = np.column_stack([np.ones_like(n), -(n - 1) / cost, -n * (n - 1) / cost])
        normal = jacobian.T @ (weights[:, None] * jacobian)
        normal += damping * np.diag(np.maximum(np.diag(normal), 1e-12))
        step = np.linalg.solve(normal, -(jacobian.T @ (weights * residuals)))
        trial = p + step
        trial[1:] = np.maximum(trial[1:], 0.0)
        trial_loss = _soft_l1_loss(_usl_log_residuals(n, y, trial))
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


class CurvePoint(Record):
    """A load's rate with its 95 % interval, measured or predicted.

    A measured load's interval here is by the noise it was recorded with; what is published of it
    comes from its own runs (`between.publish`).
    """

    load: int
    rate: float
    low: float
    high: float
    is_measured: bool


class AdaptiveCurve:
    """A curve in the making: ask `next_load` for the next load, `add_measurement` what it gave."""

    def __init__(
        self, loads: Sequence[int], rng: np.random.Generator, must: Iterable[int] = ()
    ) -> None:
        """Take the axis' loads (positive) and those of it that are measured in any case.

        Raises ValueError for an empty axis, a load below 1, or one in `must` that is not on it.
        """
        if not loads or min(loads) < 1:
            raise ValueError("an axis has at least one load, and none below 1")
        self._axis = tuple(sorted(set(loads)))
        if strange := set(must) - set(self._axis):
            raise ValueError(f"load {min(strange)} must be measured but is not on the axis")
        self._first = sorted({*initial_loads(self._axis), *must})
        self._rng = rng
        self._rates: dict[int, tuple[float, float]] = {}
        self._hits = 0
        self._surrogate: GaussianProcess | None = None

    @property
    def first_loads(self) -> tuple[int, ...]:
        """The loads measured before any is chosen: the seeds and those that must be."""
        return tuple(self._first)

    @property
    def measured_loads(self) -> tuple[int, ...]:
        """The loads recorded so far, ascending."""
        return tuple(sorted(self._rates))

    def next_load(self) -> int | None:
        """The load to measure next; None when the curve is known."""
        for load in self._first:
            if load not in self._rates:
                return load
        left = [load for load in self._axis if load not in self._rates]
        surrogate = self._cached_surrogate()
        if not left or surrogate is None:
            return left[0] if left else None
        sds = surrogate.predict(self._scaled_inputs(left))[1]
        if Z95 * sds.max() > _UNCERTAIN:
            return left[int(np.argmax(sds))]
        return (
            self._load_in_largest_jump()
            or self._middle_axis_load_of_widest_gap()
            or self._load_to_test_prediction(left)
        )

    def add_measurement(self, load: int, rate: float, log_rate_error: float) -> None:
        """Take the measured rate (> 0) of a load and the standard error of its logarithm.

        A load that is recorded again replaces what was known of it. ValueError for a load that is
        not on the axis or a rate that is not positive.
        """
        if load not in self._axis or not rate > 0:
            raise ValueError(f"load {load} with rate {rate} is no point of this axis")
        value = math.log(rate / load)
        surrogate = self._cached_surrogate() if load not in self._rates else None
        if surrogate is not None and load not in self._first:
            mean, sd = surrogate.predict(self._scaled_inputs([load]))
            error = abs(value - float(mean[0]))
            allowed = max(_HIT_ALWAYS, _HIT_SDS * math.hypot(float(sd[0]), log_rate_error))
            self._hits = self._hits + 1 if error <= min(allowed, _HIT_NEVER) else 0
        self._rates[load] = (value, log_rate_error)
        self._surrogate = None

    def curve_points(self) -> tuple[CurvePoint, ...]:
        """Every load of the axis; what was measured stands as measured, the rest as predicted.

        Without enough points for a surrogate, only what was measured.
        """
        surrogate = self._cached_surrogate()
        points = [self._measured_point(load) for load in self.measured_loads]
        left = [load for load in self._axis if load not in self._rates]
        if left and surrogate is not None:
            means, sds = surrogate.predict(self._scaled_inputs(left))
            points += [
                _curve_point_from_log_rate_per_load(load, float(mean), float(sd), is_measured=False)
                for load, mean, sd in zip(left, means, sds, strict=True)
            ]
        return tuple(sorted(points, key=lambda point: point.load))

    def sample_rate_curves(self, count: int) -> Floats:
        """Whole curves that the measurements allow: rates of shape (count, loads of the axis)."""
        surrogate = self._cached_surrogate()
        if surrogate is None:
            raise ValueError(f"{len(self._rates)} measured loads are too few to draw curves")
        logs = surrogate.sample_curves(self._scaled_inputs(self._axis), count, self._rng)
        rates: Floats = np.exp(logs) * np.array(self._axis)
        return rates

    def _measured_point(self, load: int) -> CurvePoint:
        return _curve_point_from_log_rate_per_load(load, *self._rates[load], is_measured=True)

    def _cached_surrogate(self) -> GaussianProcess | None:
        """The surrogate of what is recorded; None for too few points."""
        loads = self.measured_loads
        if self._surrogate is None and len(loads) > 2:
            values = np.array([self._rates[load] for load in loads])
            self._surrogate = fit_gaussian_process(
                self._scaled_inputs(loads), values[:, 0], values[:, 1]
            )
        return self._surrogate

    def _scaled_inputs(self, loads: Sequence[int]) -> Floats:
        roots = np.sqrt(np.array(loads, dtype=np.float64))
        first, last = math.sqrt(self._axis[0]), math.sqrt(self._axis[-1])
        return scale_to_span(roots, first, last).reshape(-1, 1)

    def _load_in_largest_jump(self) -> int | None:
        """The middle of the largest jump between measured loads with others between, else None.

        A jump is a step of ln(X/N) that the slopes on neither side foretell: a cliff or a kink,
        which a smooth surrogate draws too softly and too surely.
        """
        loads = self.measured_loads
        y = [self._rates[load][0] for load in loads]
        places = [self._axis.index(load) for load in loads]
        slopes = [(y[i + 1] - y[i]) / (places[i + 1] - places[i]) for i in range(len(loads) - 1)]
        largest, middle = _JUMP_MAX, None
        for i, slope in enumerate(slopes):
            width = places[i + 1] - places[i]
            beside = slopes[max(i - 1, 0) : i] + slopes[i + 1 : i + 2]
            jump = min((abs(slope - other) * width for other in beside), default=0.0)
            if width > 1 and jump > largest:
                largest, middle = jump, self._axis[places[i] + width // 2]
        return middle

    def _middle_axis_load_of_widest_gap(self) -> int | None:
        """The middle of the widest gap between measured loads, None where none is too wide."""
        places = [index for index, load in enumerate(self._axis) if load in self._rates]
        gaps = [(right - left, left) for left, right in pairwise(places)]
        width, left = max(gaps)
        return self._axis[left + width // 2] if width > _GAP_MAX else None

    def _load_to_test_prediction(self, unmeasured: Sequence[int]) -> int | None:
        """An unmeasured load far from measured ones, until predictions have come true."""
        if self._hits >= _HITS_WANTED:
            return None
        places = {load: index for index, load in enumerate(self._axis)}
        measured = [places[load] for load in self._rates]
        distances = [min(abs(places[load] - place) for place in measured) for load in unmeasured]
        farthest = [
            load
            for load, distance in zip(unmeasured, distances, strict=True)
            if distance == max(distances)
        ]
        return farthest[int(self._rng.integers(len(farthest)))]


def _curve_point_from_log_rate_per_load(
    load: int, log_rate_per_load: float, log_sd: float, *, is_measured: bool
) -> CurvePoint:
    rate = load * math.exp(log_rate_per_load)
    reach = math.exp(Z95 * log_sd + BIAS_ALLOWANCE)
    return CurvePoint(load, rate, rate / reach, rate * reach, is_measured)
