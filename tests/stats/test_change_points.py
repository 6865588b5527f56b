"""Cuts of a series of seconds: found where they are, and not invented."""

from __future__ import annotations

import numpy as np

from iolab.core.samples import Floats
from iolab.stats.change_points import CELLS_MAX, find_change_points, noise_of_differences


def series(seed: int, *levels: tuple[int, float], sd: float = 0.02) -> Floats:
    rng = np.random.default_rng(seed)
    truth = np.concatenate([np.full(count, level) for count, level in levels])
    return np.asarray(truth + sd * rng.standard_normal(truth.size))


def test_a_fault_and_its_repair_are_found_where_they_are() -> None:
    for seed in range(50):
        values = series(seed, (15, 0.0), (15, -0.6), (26, -1.15), (15, 0.0))
        found = find_change_points(values, noise_of_differences(values))
        for truth in (15, 30, 56):
            assert any(cut.low <= truth <= cut.high for cut in found)
        assert len(found) <= 4


def test_noise_has_no_changes() -> None:
    alarms = sum(bool(find_change_points(series(seed, (60, 1.0)), 0.02)) for seed in range(100))
    assert alarms <= 2


def test_a_slow_change_says_that_it_may_lie_elsewhere() -> None:
    sharp = series(1, (30, 0.0), (30, -0.5))
    slow = np.concatenate((np.zeros(30), np.linspace(0.0, -0.1, 10), np.full(30, -0.1)))
    (cut,) = find_change_points(sharp, 0.02)
    assert (cut.low, cut.index, cut.high) == (30, 30, 30)
    assert any(cut.high > cut.low for cut in find_change_points(slow, 0.05))


def test_a_day_of_seconds_is_joined_first() -> None:
    values = series(3, (40_000, 0.0), (40_000, -0.5))
    (cut,) = find_change_points(values, 0.02)
    assert abs(cut.index - 40_000) <= 80_000 / CELLS_MAX + 1


def test_few_seconds_have_none() -> None:
    assert find_change_points(np.array([1.0, 2.0]), 0.1) == ()
    assert noise_of_differences(np.array([1.0])) == 0.0
