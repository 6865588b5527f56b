"""Cuts of a series of seconds: found where they are, and not invented."""

from __future__ import annotations

import numpy as np
import pytest

from iolab.core.samples import Floats
from iolab.stats.change_points import find_change_points, level_noise_sd


def series(seed: int, *levels: tuple[int, float], sd: float = 0.02) -> Floats:
    rng = np.random.default_rng(seed)
    truth = np.concatenate([np.full(count, level) for count, level in levels])
    return np.asarray(truth + sd * rng.standard_normal(truth.size))


def test_a_fault_and_its_repair_are_found_where_they_are() -> None:
    for seed in range(50):
        values = series(seed, (15, 0.0), (15, -0.6), (26, -1.15), (15, 0.0))
        found = find_change_points(values, level_noise_sd(values))
        for truth in (15, 30, 56):
            assert any(cut.low <= truth <= cut.high for cut in found)
        assert len(found) <= 4


def test_the_loss_of_a_disk_of_a_mirror_and_its_rebuild_are_found() -> None:
    """I/Os of each second of a real run: a disk was lost after 10 s, and rebuilt from 20 s on."""
    before = [1077, 1091, 1093, 1102, 1078, 1086, 1064, 1051, 1064, 1102]
    degraded = [701, 600, 573, 574, 600, 600, 599, 563, 565, 599]
    after = [396, 355, 350, 329, 547, 1051, 1076, 1097, 1088, 1049, 1071, 1088, 1083, 1086, 1026]
    values = np.log(np.array([*before, *degraded, *after], dtype=np.float64))
    found = find_change_points(values, level_noise_sd(values, values[:10]))
    assert [cut.index for cut in found] == [10, 20, 25]


def dependent(seed: int, count: int, rho: float) -> Floats:
    """Seconds of one level, each of which has so much of the one before (AR(1))."""
    rng = np.random.default_rng(seed)
    values = [0.0]
    for shock in rng.standard_normal(count + 100):
        values.append(rho * values[-1] + 0.02 * float(np.sqrt(1 - rho**2) * shock))
    return np.array(values[-count:])


@pytest.mark.parametrize(("count", "rho"), [(60, 0.0), (300, 0.0), (300, 0.5), (300, 0.8)])
def test_seconds_of_one_level_have_no_changes(count: int, rho: float) -> None:
    found = [
        find_change_points(values, level_noise_sd(values))
        for values in (dependent(seed, count, rho) for seed in range(50))
    ]
    assert sum(map(bool, found)) <= 2


def test_a_change_is_found_among_seconds_that_depend_on_each_other() -> None:
    for seed in range(20):
        values = dependent(seed, 300, 0.5)
        values[150:] -= 0.6
        (cut,) = find_change_points(values, level_noise_sd(values))
        assert abs(cut.index - 150) <= 1


def test_noise_is_that_of_means_over_a_long_stretch() -> None:
    """Of AR(1) it is sqrt((1 + rho) / (1 - rho)) times that of a value."""
    for rho in (0.0, 0.5, 0.8):
        truth = 0.02 * np.sqrt((1 + rho) / (1 - rho))
        found = [level_noise_sd(dependent(seed, 2000, rho)) for seed in range(5)]
        assert np.median(found) == pytest.approx(truth, rel=0.15)


def test_a_part_that_scatters_more_counts() -> None:
    values = np.concatenate((series(1, (100, 0.0), sd=0.01), series(2, (30, 0.0), sd=0.1)))
    assert level_noise_sd(values, values[100:]) > 3 * level_noise_sd(values)


def test_a_slow_change_says_that_it_may_lie_elsewhere() -> None:
    sharp = series(1, (30, 0.0), (30, -0.5))
    slow = np.concatenate((np.zeros(30), np.linspace(0.0, -0.1, 10), np.full(30, -0.1)))
    (cut,) = find_change_points(sharp, 0.02)
    assert (cut.low, cut.index, cut.high) == (30, 30, 30)
    assert any(cut.high > cut.low for cut in find_change_points(slow, 0.05))


def test_a_long_series_is_cut_at_the_very_second() -> None:
    for step in (5, 12_000, 12_011, 28_790):
        values = series(step, (step, 0.0), (28_800 - step, -0.5))
        (cut,) = find_change_points(values, level_noise_sd(values))
        assert cut.low <= step <= cut.high
        assert cut.high - cut.low <= 1


def test_many_changes_of_a_long_series_are_all_found() -> None:
    values = series(4, *[(100, 0.5 * (number % 2)) for number in range(288)])
    found = find_change_points(values, 0.02)
    assert len(found) == 287
    assert all(cut.low <= round(cut.index, -2) <= cut.high for cut in found)


def test_few_seconds_have_none() -> None:
    assert find_change_points(np.array([1.0, 2.0]), 0.1) == ()
    assert level_noise_sd(np.array([1.0])) == 0.0
