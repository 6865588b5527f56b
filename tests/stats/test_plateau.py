"""A fall to a plateau is found where it is, and nothing else is taken for one."""

from __future__ import annotations

import numpy as np
import pytest

from iolab.core.samples import Floats
from iolab.stats.steady_state import find_fall_to_plateau

SERIES = 300


def noisy(rates: Floats, spread: float, seed: int) -> Floats:
    return np.asarray(rates * np.random.default_rng(seed).normal(1.0, spread, len(rates)))


def step(count: int, at: int, ratio: float) -> Floats:
    return np.where(np.arange(count) < at, ratio, 1.0) * 3000.0


@pytest.mark.parametrize("ratio", [1.2, 2.0, 10.0])
@pytest.mark.parametrize("at", [3, 20, 50])
def test_a_step_is_found_at_its_second(at: int, ratio: float) -> None:
    fall = find_fall_to_plateau(noisy(step(60, at, ratio), 0.01, seed=at))
    assert fall is not None
    assert abs(fall.second - at) <= 1
    assert fall.plateau_rate == pytest.approx(3000.0, rel=0.02)
    assert fall.rate_before == pytest.approx(3000.0 * ratio, rel=0.02)


def test_a_second_that_is_half_of_each_is_of_neither() -> None:
    rates = step(60, 20, 2.0)
    rates[20] = 4500.0
    fall = find_fall_to_plateau(rates)
    assert fall is not None
    assert (fall.plateau_rate, fall.rate_before) == (3000.0, 6000.0)


def test_a_fall_on_a_real_device_that_took_two_seconds() -> None:
    """The block layer's limit was lowered from 1,500 reads a second to 500."""
    burst = [1373.0, 1485, 1500, 1500, 1493, 1065, 667]
    fall = find_fall_to_plateau(np.array([*burst, 500, 495, 513, 492, *[500.0] * 9]))
    assert fall is not None
    assert fall.second == 6
    assert fall.plateau_rate == pytest.approx(500, rel=0.01)
    assert fall.rate_before == pytest.approx(1470, rel=0.02)
    uneven = [1358.0, 1500, 1500, 1500, 1500, 1532, 694, 500, 542, 490, 468, 542, 458, 500, 500]
    again = find_fall_to_plateau(np.array([*uneven, 495.0, 505, 542, 458]))
    assert again is not None
    assert again.second == 6


@pytest.mark.parametrize("spread", [0.01, 0.05, 0.3])
def test_noise_alone_is_no_fall(spread: float) -> None:
    found = [find_fall_to_plateau(noisy(step(60, 0, 1.0), spread, seed)) for seed in range(SERIES)]
    assert not any(found)


def test_other_ways_to_change_are_no_fall() -> None:
    at = np.arange(60.0)
    others = {
        "a decay": 3000 * (1 + np.exp(-at / 10)),
        "a slower decay": 3000 * (1 + np.exp(-at / 30)),
        "a line": 6000 - 50 * at,
        "a swing": 3000 * (1 + 0.3 * np.sin(2 * np.pi * at / 20)),
        "a rise": step(60, 30, 0.5),
        "a stall": np.where((at > 20) & (at < 25), 100.0, 3000.0),
        "a step back": np.where((at > 20) & (at < 40), 2000.0, 3000.0),
        "too little": step(60, 30, 1.1),
        "its end": step(60, 58, 3.0),
    }
    for name, rates in others.items():
        falls = [find_fall_to_plateau(noisy(rates, 0.01, seed)) for seed in range(30)]
        assert not any(falls), name
    assert find_fall_to_plateau(step(11, 4, 3.0)) is None
    assert find_fall_to_plateau(np.zeros(60)) is None
