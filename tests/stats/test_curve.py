"""Surrogates, adaptive axes, and what is read off a curve."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
import pytest
from scipy import optimize

from iolab.core.samples import Floats
from iolab.stats import curve
from iolab.stats.curve import (
    SPAN,
    AdaptiveCurve,
    bounds_crossing_load,
    fit_gaussian_process,
    knee_load,
    saturation_load,
    scale_to_span,
)
from iolab.stats.seeds import initial_loads

LOADS = tuple(range(1, 25))
NOISE = 0.003


def soft(load: float) -> float:
    """A curve that saturates softly at 2000 from 200 a load."""
    return 2000 * (1 - math.exp(-load / 10))


def explored(truth: Callable[[float], float], seed: int = 1) -> AdaptiveCurve:
    rng = np.random.default_rng(seed)
    axis = AdaptiveCurve(LOADS, rng)
    for _ in LOADS:
        load = axis.next_load()
        if load is None:
            break
        axis.add_measurement(load, truth(load) * math.exp(NOISE * rng.standard_normal()), NOISE)
    return axis


def test_the_surrogate_interpolates_and_knows_where_it_is_blind() -> None:
    x = np.array([[0.0], [1.0], [2.0], [3.0]])
    y = np.array([0.0, 0.5, 0.7, 0.75])
    surrogate = fit_gaussian_process(x, y, np.full(4, 0.001))
    mean, sd = surrogate.predict(x)
    assert mean == pytest.approx(y, abs=0.01)
    assert surrogate.predict(np.array([[1.5]]))[1][0] > 3 * sd.max()
    assert surrogate.predict(np.array([[6.0]]))[1][0] > surrogate.predict(np.array([[1.5]]))[1][0]
    with pytest.raises(ValueError, match="2 points are too few"):
        fit_gaussian_process(x[:2], y[:2], np.full(2, 0.001))


def test_the_surrogate_is_the_textbooks_for_a_single_hyperparameter() -> None:
    x = np.array([[0.0], [0.7], [1.9], [3.0], [3.9]])
    y = np.array([0.0, 0.3, 0.1, 0.4, 0.2])
    surrogate = fit_gaussian_process(x, y, np.full(5, 0.01))
    index, at = 20, np.array([[1.2]])
    length, variance = surrogate.lengths[index], surrogate.variances[index]

    def kernel(a: float, b: float) -> float:
        r = math.sqrt(5) * abs(a - b) / length
        return float(variance * (1 + r + r * r / 3) * math.exp(-r))

    k = np.array([[kernel(a, b) for b in x[:, 0]] for a in x[:, 0]]) + 1e-4 * np.eye(5)
    # A flat prior is the limit of a wide one.
    h = np.column_stack([np.ones(5), x])
    wide = k + h @ h.T * 1e6
    cross = np.array([kernel(a, 1.2) for a in x[:, 0]]) + 1e6 * h @ np.array([1.0, 1.2])
    wanted = cross @ np.linalg.solve(wide, y)
    means, _ = surrogate._posterior_means_and_covariances(at)
    assert means[index, 0] == pytest.approx(wanted, abs=1e-4)


def test_draws_have_the_predicted_moments() -> None:
    x = scale_to_span(np.array([1.0, 2.0, 4.0, 5.0]), 1.0, 5.0).reshape(-1, 1)
    assert x.max() == SPAN
    surrogate = fit_gaussian_process(x, np.array([0.0, 0.2, 0.3, 0.2]), np.full(4, 0.01))
    at = np.array([[0.5], [2.0]])
    draws = surrogate.sample_curves(at, 20_000, np.random.default_rng(1))
    mean, sd = surrogate.predict(at)
    assert draws.mean(axis=0) == pytest.approx(mean, abs=0.02)
    assert draws.std(axis=0) == pytest.approx(sd, rel=0.05)


def test_seeds_are_ends_and_doublings() -> None:
    assert initial_loads(LOADS) == (1, 2, 4, 8, 16, 24)
    assert initial_loads((3,)) == (3,)
    assert initial_loads((1, 10, 100, 1000)) == (1, 10, 100, 1000)


@pytest.mark.parametrize("seed", range(6))
def test_a_smooth_curve_takes_few_points(seed: int) -> None:
    axis = explored(soft, seed)
    assert len(axis.measured_loads) <= 14
    for point in axis.curve_points():
        assert point.rate == pytest.approx(soft(point.load), rel=0.04)
    assert {point.load for point in axis.curve_points()} == set(LOADS)
    assert {point.load for point in axis.curve_points() if point.is_measured} == set(
        axis.measured_loads
    )


def test_a_cliff_is_measured_around() -> None:
    axis = explored(lambda load: 100 * load if load < 11 else 60 * load)
    assert {10, 11} <= set(axis.measured_loads)
    assert all(
        point.rate == pytest.approx((100 if point.load < 11 else 60) * point.load, rel=0.03)
        for point in axis.curve_points()
    )


def test_headlines_are_always_measured() -> None:
    axis = AdaptiveCurve(LOADS, np.random.default_rng(1), must=(13,))
    while (load := axis.next_load()) is not None:
        axis.add_measurement(load, soft(load), NOISE)
    assert 13 in axis.measured_loads
    with pytest.raises(ValueError, match="99 must be measured"):
        AdaptiveCurve(LOADS, np.random.default_rng(1), must=(99,))
    with pytest.raises(ValueError, match="no point"):
        axis.add_measurement(99, 1.0, NOISE)
    with pytest.raises(ValueError, match="at least one load"):
        AdaptiveCurve((), np.random.default_rng(1))


def test_a_tiny_axis_is_measured_whole() -> None:
    axis = AdaptiveCurve((1, 2), np.random.default_rng(1))
    for load in (1, 2):
        assert axis.next_load() == load
        axis.add_measurement(load, 100.0 * load, NOISE)
    assert axis.next_load() is None
    assert len(axis.curve_points()) == 2


def drawn(
    rates: Sequence[float], noise: Sequence[float], count: int, rng: np.random.Generator
) -> Floats:
    """Curves drawn around rates with those standard errors of their logarithms."""
    shocks = rng.standard_normal((count, len(rates))) * np.array(noise)
    return np.asarray(np.array(rates) * np.exp(shocks), dtype=np.float64)


def test_the_bounds_cross_where_little_says() -> None:
    assert bounds_crossing_load(0.001, 10_000) == 10


def test_saturation_and_knee_are_where_they_were_put() -> None:
    rng = np.random.default_rng(2)
    hard = [100.0 * min(load, 12) for load in LOADS]
    curves = drawn(hard, [0.002] * 24, 2000, rng)
    found = knee_load(LOADS, curves)
    assert (found.low, found.load, found.high) == (12, 12, 12)
    saturated = saturation_load(LOADS, curves)
    assert saturated is not None
    assert saturated.load == 12
    assert saturated.low <= 12 <= saturated.high
    rising = drawn([100.0 * load for load in LOADS], [0.002] * 24, 500, rng)
    assert saturation_load(LOADS, rising) is None


def test_knee_of_an_explored_curve() -> None:
    axis = explored(soft)
    found = knee_load(LOADS, axis.sample_rate_curves(1000))
    power = [soft(load) ** 2 / load for load in LOADS]
    assert found.low <= LOADS[int(np.argmax(power))] <= found.high
    with pytest.raises(ValueError, match="too few"):
        AdaptiveCurve(LOADS, np.random.default_rng(1)).sample_rate_curves(10)


def test_usl_is_found_again() -> None:
    law = curve.UslFit(100.0, 0.05, 0.001, 0.0, fits_well=True)
    found = curve.fit_usl(LOADS, [law.predicted_rate(load) for load in LOADS], [0.01] * 24)
    assert (found.gamma, found.sigma, found.kappa) == pytest.approx((100, 0.05, 0.001), rel=1e-4)
    assert found.fits_well
    assert found.best_load == pytest.approx(math.sqrt(0.95 / 0.001), rel=1e-3)


def test_usl_is_scipys_soft_l1_fit() -> None:
    rates = np.array([soft(load) for load in LOADS])
    n = np.array(LOADS, dtype=float)

    def residuals(p: np.typing.NDArray[np.float64]) -> np.typing.NDArray[np.float64]:
        law = p[0] + np.log(n / (1 + p[1] * (n - 1) + p[2] * n * (n - 1)))
        return np.asarray(law - np.log(rates))

    solved = optimize.least_squares(
        residuals, [5, 0.02, 5e-4], loss="soft_l1", f_scale=0.02, bounds=([0, 0, 0], np.inf)
    )
    found = curve.fit_usl(LOADS, list(rates), [0.01] * 24)
    assert found.sigma == pytest.approx(solved.x[1], rel=0.02, abs=1e-4)
    assert found.kappa == pytest.approx(solved.x[2], rel=0.02, abs=1e-6)


def test_usl_does_not_describe_a_hard_knee() -> None:
    found = curve.fit_usl(LOADS, [100.0 * min(load, 12) for load in LOADS], [0.005] * 24)
    assert not found.fits_well
    assert curve.fit_usl([1, 2, 3, 4], [1.0, 2.0, 3.0, 4.0], [0.01] * 4).best_load > 4
    with pytest.raises(ValueError, match="3 points"):
        curve.fit_usl([1, 2, 3], [1.0, 2.0, 3.0], [0.01] * 3)
