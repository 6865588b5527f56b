"""The pieces of rule D, each for itself."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from iolab.analyse.method import batches, cycles, mser, stalls, transient
from tests.analyse.method.made import LEVEL, cycling, decaying, noise, stalling

SEEDS = st.integers(min_value=0, max_value=10_000)


def naive_mser(z: list[float]) -> int:
    scores = []
    for j in range(len(z) // 2 + 1):
        rest = np.array(z[j:])
        scores.append(float(((rest - rest.mean()) ** 2).sum()) / len(rest) ** 2)
    return int(np.argmin(scores))


@given(st.lists(st.floats(min_value=0, max_value=1000), min_size=4, max_size=60))
def test_mser_is_its_definition(z: list[float]) -> None:
    found = mser.truncation(np.array(z))
    rest = np.array(z[found.blocks :])
    best = np.array(z[naive_mser(z) :])
    score = ((rest - rest.mean()) ** 2).sum() / len(rest) ** 2
    wanted = ((best - best.mean()) ** 2).sum() / len(best) ** 2
    assert score == pytest.approx(wanted, rel=1e-6, abs=1e-6)


def test_mser_cuts_a_plateau() -> None:
    series = noise(300)
    series[:60] *= 2
    assert mser.truncation(mser.blocks_of(series)) == mser.Truncation(12, converged=True)


def test_mser_says_when_its_search_ended_first() -> None:
    assert not mser.truncation(np.linspace(2, 1, 60)).converged
    assert mser.truncation(np.array([])) == mser.Truncation(0, converged=False)


def test_stalls_do_not_attract_the_cut() -> None:
    series = noise(300, share=0.005)
    series[100:110] = 0
    assert mser.truncation(mser.blocks_of(series)).blocks < 5


def test_a_rise_in_a_series_without_noise_is_seen() -> None:
    series = np.full(300, LEVEL)
    series[:50] = LEVEL / 2
    assert mser.truncation(mser.blocks_of(series)).blocks == 10


def test_the_fit_finds_the_decay_that_was_put_in() -> None:
    found = transient.fit(mser.blocks_of(decaying(600, 0.3, 40)))
    assert found is not None
    assert found.is_clear
    assert found.level == pytest.approx(LEVEL, rel=0.01)
    assert found.tau_s == pytest.approx(40, rel=0.3)
    assert found.settled_s(0.0025) == pytest.approx(40 * math.log(0.3 / 0.0025), rel=0.2)


def test_the_fit_is_that_of_a_general_solver() -> None:
    z = mser.blocks_of(decaying(400, 0.2, 30))
    found = transient.fit(z)
    assert found is not None
    shape = np.exp(-(np.arange(len(z)) + 0.5) * 5 / found.tau_s)
    design = np.column_stack([np.ones(len(z)), shape])
    solved = np.linalg.lstsq(design, z, rcond=None)[0]
    assert [found.level, found.amplitude] == pytest.approx(list(solved), rel=1e-6)


def test_noise_is_no_transient() -> None:
    clear = 0
    for seed in range(100):
        found = transient.fit(mser.blocks_of(noise(300, seed=seed)))
        clear += found is not None and found.is_clear
    assert clear <= 10
    assert transient.fit(np.ones(3)) is None


@given(SEEDS)
@settings(max_examples=30, deadline=None)
def test_batch_means_know_the_variance_of_white_noise(seed: int) -> None:
    x = noise(1024, seed=seed)
    found = batches.of_batches(x, 8)
    assert found is not None
    plain = x.var(ddof=1) / len(x)
    assert 0.9 * plain <= found.variance <= 8 * plain


def test_batch_means_widen_with_correlation() -> None:
    rng = np.random.default_rng(5)
    walk = np.convolve(rng.standard_normal(2000), np.ones(20), mode="valid")
    found = batches.of_batches(walk, 8)
    assert found is not None
    assert found.variance > 8 * walk.var() / len(walk)
    assert batches.of_batches(walk[:7], 8) is None


def test_whole_cycles_hold_no_swing() -> None:
    variance, whole = batches.of_cycles(cycling(650, 0.2, 100), 100)
    assert len(whole) == 600
    assert variance.df == 5
    assert math.sqrt(variance.variance) < 0.002 * LEVEL


@pytest.mark.parametrize("period_s", [20, 60, 120])
def test_a_cycle_is_found(period_s: int) -> None:
    found = cycles.period(cycling(600, 0.1, period_s))
    assert found == pytest.approx(period_s, abs=2)


def test_noise_has_no_cycle() -> None:
    assert [cycles.period(noise(400, seed=seed)) for seed in range(40)] == [None] * 40
    assert cycles.period(np.full(400, 7.0)) is None
    assert cycles.period(noise(10)) is None


def test_autocorrelation_is_its_definition() -> None:
    x = decaying(200, 0.2, 30)
    centred = x - x.mean()
    wanted = [
        (centred[: len(x) - lag] * centred[lag:]).mean() / (centred**2).mean() for lag in range(50)
    ]
    assert cycles.autocorrelation(x, 49) == pytest.approx(np.array(wanted), abs=1e-9)


def test_stalls_are_counted_as_episodes() -> None:
    found = stalls.find(stalling(600, 60, 4))
    assert found.episodes == 10
    assert found.lost_mean == pytest.approx(LEVEL * 0.9 * 4 / 60, rel=0.05)
    variance = found.variance
    assert variance is not None
    assert variance.df == 10
    assert variance.variance == pytest.approx(2 * found.lost_mean**2 / 10)


def test_without_stalls_they_say_nothing() -> None:
    assert stalls.find(noise(300)).variance is None


def test_the_compound_poisson_variance_is_that_of_many_runs() -> None:
    rng = np.random.default_rng(3)
    lost = [rng.exponential(1.0, rng.poisson(20)).sum() for _ in range(20_000)]
    assert np.var(lost) == pytest.approx(2 * 20.0**2 / 20, rel=0.05)
