"""The pieces of rule D, each for itself."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from iolab.core.samples import Floats
from iolab.stats import batches, steady_state
from iolab.stats.stopping import find_stall_episodes
from tests.stats.made import LEVEL, cycling, decaying, noise, stalling

SEEDS = st.integers(min_value=0, max_value=10_000)


def naive_mser(z: list[float]) -> int:
    scores = []
    for j in range(len(z) // 2 + 1):
        rest = np.array(z[j:])
        scores.append(float(((rest - rest.mean()) ** 2).sum()) / len(rest) ** 2)
    return int(np.argmin(scores))


@given(st.lists(st.floats(min_value=0, max_value=1000), min_size=4, max_size=60))
def test_mser_is_its_definition(z: list[float]) -> None:
    found = steady_state.mser_truncation(np.array(z))
    rest = np.array(z[found.blocks :])
    best = np.array(z[naive_mser(z) :])
    score = ((rest - rest.mean()) ** 2).sum() / len(rest) ** 2
    wanted = ((best - best.mean()) ** 2).sum() / len(best) ** 2
    assert score == pytest.approx(wanted, rel=1e-6, abs=1e-6)


def test_mser_cuts_a_plateau() -> None:
    series = noise(300)
    series[:60] *= 2
    assert steady_state.mser_truncation(
        steady_state.clipped_block_medians(series)
    ) == steady_state.MserTruncation(12, has_converged=True)


def test_mser_says_when_its_search_ended_first() -> None:
    assert not steady_state.mser_truncation(np.linspace(2, 1, 60)).has_converged
    assert steady_state.mser_truncation(np.array([])) == steady_state.MserTruncation(
        0, has_converged=False
    )


def test_stalls_do_not_attract_the_cut() -> None:
    series = noise(300, share=0.005)
    series[100:110] = 0
    assert steady_state.mser_truncation(steady_state.clipped_block_medians(series)).blocks < 5


def test_a_rise_in_a_series_without_noise_is_seen() -> None:
    series = np.full(300, LEVEL)
    series[:50] = LEVEL / 2
    assert steady_state.mser_truncation(steady_state.clipped_block_medians(series)).blocks == 10


def test_the_fit_finds_the_decay_that_was_put_in() -> None:
    found = steady_state.fit_transient(steady_state.clipped_block_medians(decaying(600, 0.3, 40)))
    assert found is not None
    assert found.is_significant
    assert found.level == pytest.approx(LEVEL, rel=0.01)
    assert found.tau_s == pytest.approx(40, rel=0.3)
    assert found.settling_time_s(0.0025) == pytest.approx(40 * math.log(0.3 / 0.0025), rel=0.2)


def test_the_fit_is_that_of_a_general_solver() -> None:
    z = steady_state.clipped_block_medians(decaying(400, 0.2, 30))
    found = steady_state.fit_transient(z)
    assert found is not None
    shape = np.exp(-(np.arange(len(z)) + 0.5) * 5 / found.tau_s)
    design = np.column_stack([np.ones(len(z)), shape])
    solved = np.linalg.lstsq(design, z, rcond=None)[0]
    assert [found.level, found.amplitude] == pytest.approx(list(solved), rel=1e-6)


def test_noise_is_no_transient() -> None:
    clear = 0
    for seed in range(100):
        found = steady_state.fit_transient(
            steady_state.clipped_block_medians(noise(300, seed=seed))
        )
        clear += found is not None and found.is_significant
    assert clear <= 10
    assert steady_state.fit_transient(np.ones(3)) is None


def plain_half_width(x: Floats) -> float:
    return 1.96 * math.sqrt(x.var(ddof=1) / len(x))


@given(SEEDS)
@settings(max_examples=30)
def test_batch_means_know_the_variance_of_white_noise(seed: int) -> None:
    x = noise(1024, seed=seed)
    found = batches.widest_variance_of_mean(batches.batch_statistics_by_size(x, 8))
    assert found.half_width_95 >= 0.99 * plain_half_width(x)


def test_batch_means_of_white_noise_are_seldom_much_too_wide() -> None:
    wider = []
    for seed in range(400):
        x = noise(1024, seed=seed)
        found = batches.widest_variance_of_mean(batches.batch_statistics_by_size(x, 8))
        wider.append(found.half_width_95 / plain_half_width(x))
    assert np.median(wider) < 1.6
    assert np.quantile(wider, 0.95) < 3.5
    assert max(wider) < 12


def test_batch_means_widen_with_correlation() -> None:
    rng = np.random.default_rng(5)
    walk = np.convolve(rng.standard_normal(2000), np.ones(20), mode="valid")
    found = batches.widest_variance_of_mean(batches.batch_statistics_by_size(walk, 8))
    assert found.variance > 8 * walk.var() / len(walk)
    assert batches.batch_statistics_by_size(walk[:7], 8) == ()


def test_whole_cycles_hold_no_swing() -> None:
    variance, whole = batches.variance_of_mean_and_whole_cycles(cycling(650, 0.2, 100), 100)
    assert len(whole) == 600
    assert variance.df == 2.5
    assert math.sqrt(variance.variance) < 0.002 * LEVEL


@pytest.mark.parametrize("period_s", [20, 60, 120])
def test_a_cycle_is_found(period_s: int) -> None:
    found = steady_state.find_cycle_period(cycling(600, 0.1, period_s))
    assert found == pytest.approx(period_s, abs=2)


@pytest.mark.parametrize(("seconds", "period_s"), [(600, 400), (2400, 600)])
def test_a_cycle_is_seen_at_one_and_a_half_rounds_and_up_to_ten_minutes(
    seconds: int, period_s: int
) -> None:
    found = steady_state.find_cycle_period(cycling(seconds, 1.0, period_s))
    assert found == pytest.approx(period_s, abs=2)


@pytest.mark.parametrize(
    ("seconds", "period_s"), [(600, 450), (600, 600), (2400, 700), (2700, 900)]
)
def test_a_swing_that_is_seen_once_or_is_longer_is_no_cycle(seconds: int, period_s: int) -> None:
    assert steady_state.find_cycle_period(cycling(seconds, 1.0, period_s)) is None


@pytest.mark.parametrize(("share", "is_found"), [(0.2, False), (0.4, True)])
def test_a_cycle_is_one_from_three_tenths_of_the_variance_on(
    share: float, *, is_found: bool
) -> None:
    # A sine has an eighth of the square of its swing as variance; the noise is one percent.
    swing = 0.01 * math.sqrt(8 * share / (1 - share))
    found = [
        steady_state.find_cycle_period(cycling(1800, swing, 50, seed=seed)) for seed in range(5)
    ]
    assert found == [pytest.approx(50, abs=2) if is_found else None] * 5


def test_a_slope_has_no_cycle() -> None:
    assert steady_state.find_cycle_period(np.arange(400.0)) is None


def test_noise_has_no_cycle() -> None:
    assert [steady_state.find_cycle_period(noise(400, seed=seed)) for seed in range(40)] == [
        None
    ] * 40
    assert steady_state.find_cycle_period(np.full(400, 7.0)) is None
    assert steady_state.find_cycle_period(noise(10)) is None


def test_autocorrelation_is_its_definition() -> None:
    x = decaying(200, 0.2, 30)
    centred = x - x.mean()
    wanted = [
        (centred[: len(x) - lag] * centred[lag:]).mean() / (centred**2).mean() for lag in range(50)
    ]
    assert steady_state.autocorrelation(x, 49) == pytest.approx(np.array(wanted), abs=1e-9)


def test_stalls_are_counted_as_episodes() -> None:
    found = find_stall_episodes(stalling(600, 60, 4))
    assert found.count == 10
    assert found.mean_loss == pytest.approx(LEVEL * 0.9 * 4 / 60, rel=0.05)
    variance = found.variance_of_mean_by_stalls
    assert variance is not None
    assert variance.df == 10
    assert variance.variance == pytest.approx(2 * found.mean_loss**2 / 10)


def test_without_stalls_they_say_nothing() -> None:
    assert find_stall_episodes(noise(300)).variance_of_mean_by_stalls is None


def test_the_compound_poisson_variance_is_that_of_many_runs() -> None:
    rng = np.random.default_rng(3)
    lost = [rng.exponential(1.0, rng.poisson(20)).sum() for _ in range(20_000)]
    assert np.var(lost) == pytest.approx(2 * 20.0**2 / 20, rel=0.05)


def test_the_f_of_a_fit_is_that_of_the_sums_of_squares() -> None:
    z = steady_state.clipped_block_medians(decaying(100, 0.02, 20))
    found = steady_state.fit_transient(z)
    assert found is not None
    shape = found.level + found.amplitude * np.exp(-(np.arange(len(z)) + 0.5) * 5 / found.tau_s)
    level, fitted = ((z - z.mean()) ** 2).sum(), ((z - shape) ** 2).sum()
    assert found.f_statistic == pytest.approx(
        (level - fitted) / fitted * (len(z) - 3) / 2, rel=1e-6
    )
