"""The search for a load under a limit, and for the best point."""

from __future__ import annotations

import math

import numpy as np
import pytest

from iolab.stats.repeats import VariancePrior
from iolab.stats.search import GridPoint, LoadRun, MaxLoadSearch, PeakSearch

SATURATION = 100_000.0
IDLE_NS = 200_000.0


def queue_ns(load: float) -> float:
    """A p99 that multiplies as the load nears 1.03 times saturation."""
    return IDLE_NS / (1 - load / (1.03 * SATURATION))


def searched(
    limit_ns: float, sd: float, seed: int, prior: VariancePrior | None = None
) -> MaxLoadSearch:
    rng = np.random.default_rng(seed)
    search = (
        MaxLoadSearch(SATURATION, limit_ns)
        if prior is None
        else MaxLoadSearch(SATURATION, limit_ns, prior)
    )
    while (load := search.next_load()) is not None:
        search.add_run(LoadRun(load, queue_ns(load) * math.exp(sd * rng.standard_normal())))
    return search


def test_the_limit_is_found_with_an_honest_interval() -> None:
    limit_ns = 1_000_000.0
    truth = 1.03 * SATURATION * (1 - IDLE_NS / limit_ns)
    hits, errors, runs = 0, [], []
    for seed in range(100):
        found = searched(
            limit_ns, 0.05, seed, VariancePrior(0.05**2, 12.0, 24, 48.0)
        ).max_load_estimate()
        assert found.low is not None
        assert found.high is not None
        hits += found.low <= truth <= found.high
        errors.append(found.load / truth - 1)
        runs.append(found.run_count)
    assert hits >= 92
    assert np.sqrt(np.mean(np.square(errors))) < 0.012
    assert np.mean(runs) < 10


def test_what_is_verified_was_measured_below_the_limit() -> None:
    found = searched(1_000_000.0, 0.02, 3).max_load_estimate()
    assert found.verified is not None
    assert found.verified < found.load * 1.01
    assert queue_ns(found.verified) < 1_000_000.0
    assert found.confirmation_load == pytest.approx(0.98 * found.load)


def test_a_limit_out_of_reach_is_said_to_be_so() -> None:
    never = searched(50_000.0, 0.02, 1).max_load_estimate()
    assert not never.is_bounded
    assert never.low is None
    assert never.verified is None
    assert never.load < 0.05 * SATURATION
    always = searched(1e12, 0.02, 1).max_load_estimate()
    assert not always.is_bounded
    assert always.load == SATURATION
    assert always.verified is not None


def test_the_search_ends() -> None:
    assert searched(1_000_000.0, 1.0, 5).max_load_estimate().run_count <= 12


def test_what_is_no_run_is_refused() -> None:
    with pytest.raises(ValueError, match="must be positive"):
        MaxLoadSearch(0.0, 1.0)
    search = MaxLoadSearch(SATURATION, 1e6)
    with pytest.raises(ValueError, match="is no run"):
        search.add_run(LoadRun(1.0, 0.0))
    with pytest.raises(ValueError, match="0 runs are too few"):
        search.max_load_estimate()


def rate(point: GridPoint) -> float:
    """A rate that is best at a total of 128 in flight and falls off on both sides."""
    return 1e5 * math.exp(-0.05 * (math.log2(math.prod(point)) - 7) ** 2)


def peaked(axes: list[list[int]], seed: int, sd: float = 0.005) -> PeakSearch:
    rng = np.random.default_rng(seed)
    search = PeakSearch(axes)
    while (point := search.next_point()) is not None:
        search.add_measurement(point, rate(point) * math.exp(sd * rng.standard_normal()), sd)
    return search


@pytest.mark.parametrize("seed", range(8))
def test_the_best_of_one_axis_is_found_in_few_runs(seed: int) -> None:
    axis = [2**k for k in range(11)]
    found = peaked([axis], seed).best_point()
    assert rate(found.point) >= 0.98 * rate((128,))
    assert found.run_count < len(axis)
    assert found.low <= found.rate <= found.high
    assert not found.at_edge


@pytest.mark.parametrize("seed", range(8))
def test_the_best_of_two_axes_is_found_in_few_runs(seed: int) -> None:
    axes = [[2**k for k in range(9)], [1, 2, 4, 8, 16]]
    found = peaked(axes, seed).best_point()
    assert rate(found.point) >= 0.98 * rate((128, 1))
    assert found.run_count <= 24
    assert found.point in found.indistinguishable_points
    cheapest = math.prod(found.indistinguishable_points[0])
    assert cheapest == min(math.prod(point) for point in found.indistinguishable_points)


def test_a_peak_at_the_edge_says_so() -> None:
    assert peaked([[1, 2, 4, 8, 16]], 1).best_point().at_edge


def test_a_tiny_search_measures_all() -> None:
    search = peaked([[4, 8]], 1)
    assert search.best_point().run_count == 2
    assert peaked([[4]], 1).best_point().point == (4,)


def test_repeated_runs_of_a_point_are_joined() -> None:
    search = PeakSearch([[1, 2]])
    for value in (100.0, 110.0):
        search.add_measurement((1,), value, 0.01)
    assert search.best_point().rate == pytest.approx(math.sqrt(100 * 110))
    assert search.best_point().run_count == 2


def test_what_is_no_point_is_refused() -> None:
    wrong: list[list[list[int]]] = [[], [[]], [[1], [2], [3]], [[0, 1]]]
    for axes in wrong:
        with pytest.raises(ValueError, match="one or two axes"):
            PeakSearch(axes)
    with pytest.raises(ValueError, match="not on these axes"):
        PeakSearch([[1, 2]]).add_measurement((3,), 1.0, 0.01)
    with pytest.raises(ValueError, match="no run"):
        PeakSearch([[1, 2]]).best_point()
