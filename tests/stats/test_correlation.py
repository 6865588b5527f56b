"""Correlated seconds: how many independent ones they are worth, and whether a mean is known."""

from __future__ import annotations

import math

import numpy as np
import pytest
from bench.method.coverage import DONE, LENGTHS, LatencyTask, Task, play, play_latency, row
from bench.method.processes import HELD_OUT, PROCESSES, correlated
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from iolab.core.samples import Floats
from iolab.stats import batches
from iolab.stats.batches import EFFECTIVE_MIN, BatchStatistics, VarianceOfMean
from iolab.stats.stopping import StoppingStatus, judge_series, replay_stopping_rule
from tests.stats.made import LEVEL, noise

RUNS = 80


def wandering(rho: float, share: float, seconds: int, seed: int) -> Floats:
    """AR(1) around the level."""
    rng = np.random.default_rng([seed, 77])
    return np.maximum(LEVEL * correlated(rho, share)(rng, seconds), 0.0)


def test_an_octave_is_its_definition() -> None:
    x = wandering(0.8, 0.05, 203, 1)
    (one,) = [octave for octave in batches.batch_statistics_by_size(x, 8) if octave.batch_s == 4]
    means = np.array([x[at : at + 4].mean() for at in range(3, 203, 4)])
    raw = ((means[1:] - means.mean()) * (means[:-1] - means.mean())).sum()
    raw /= ((means - means.mean()) ** 2).sum()
    assert one.batch_count == 50
    assert one.variance == pytest.approx(means.var(ddof=1))
    assert one.kurtosis == pytest.approx(stats.kurtosis(means, fisher=False))
    # Inverting E[r] = rho - (1 + 3 rho) / m.
    assert one.rho == pytest.approx((raw + 1 / 50) / (1 - 3 / 50))
    assert one.effective_count == pytest.approx(50 * (1 - one.rho) / (1 + one.rho))


@pytest.mark.parametrize("rho", [0.5, 0.8, 0.9])
def test_autocorrelations_of_short_series_are_not_biased(rho: float) -> None:
    found = [
        batches.batch_statistics_by_size(wandering(rho, 0.05, 120, seed), 8)[0].rho
        for seed in range(400)
    ]
    assert np.mean(found) == pytest.approx(rho, abs=0.02)


@pytest.mark.parametrize(("rho", "seconds"), [(0.5, 400), (0.9, 2000)])
def test_the_variance_of_a_mean_is_that_of_many_means(rho: float, seconds: int) -> None:
    runs = [wandering(rho, 0.05, seconds, seed) for seed in range(200)]
    known = [batches.batch_statistics_by_size(run, 8)[0].variance_of_mean.variance for run in runs]
    assert np.median(known) == pytest.approx(np.var([run.mean() for run in runs]), rel=0.3)


@given(st.floats(min_value=1, max_value=1e4), st.floats(min_value=1, max_value=300))
def test_a_half_width_is_students(variance: float, df: float) -> None:
    wanted = stats.t.ppf(0.975, df) * math.sqrt(variance)
    assert VarianceOfMean(variance, df).half_width_95 == pytest.approx(wanted, rel=1e-6)


def test_one_large_deviation_leaves_few_degrees_of_freedom() -> None:
    calm, shot = noise(128), noise(128)
    shot[64] *= 3
    ours, theirs = (
        batches.batch_statistics_by_size(x, 8)[0].variance_of_mean.df for x in (calm, shot)
    )
    assert ours > 30
    assert theirs == pytest.approx(2.0, abs=0.1)


def test_the_shortest_batches_with_too_few_effective_ones_are_told() -> None:
    found = [
        BatchStatistics(1, 400, 1.0, 0.5, 3.0),
        BatchStatistics(2, 200, 1.0, 0.9, 3.0),
        BatchStatistics(4, 100, 1, 0.8, 3),
    ]
    assert batches.find_too_correlated_batches(found) is found[1]
    assert batches.effective_sample_count(found) == pytest.approx(200 / 19)
    # Of few batches the autocorrelation would be noise.
    assert (
        batches.find_too_correlated_batches([*found[:1], BatchStatistics(16, 25, 1.0, 0.9, 3.0)])
        is None
    )


@given(st.integers(min_value=0, max_value=10_000), st.integers(min_value=120, max_value=780))
@settings(max_examples=60)
def test_a_random_walk_has_no_interval(seed: int, seconds: int) -> None:
    steps = np.random.default_rng(seed).standard_normal(seconds)
    walk = LEVEL * np.exp(0.02 * np.cumsum(steps))
    seen = judge_series(walk)
    assert seen.status is not StoppingStatus.OK
    if seen.period_s is None:
        assert seen.half_width == math.inf
        assert seen.effective_count < EFFECTIVE_MIN


def test_a_wander_within_the_precision_is_bounded_instead() -> None:
    quiet = wandering(0.98, 0.001, 300, 3)
    seen = judge_series(quiet)
    assert seen.effective_count < EFFECTIVE_MIN
    assert seen.status is StoppingStatus.OK
    assert 3 * quiet.std() < seen.half_width < 0.02 * LEVEL


@pytest.mark.parametrize(("rho", "share"), [(0.5, 0.02), (0.9, 0.05), (0.98, 0.05), (0.98, 0.005)])
def test_intervals_hold_or_are_refused(rho: float, share: float) -> None:
    # Of batch means that are not corrected, 10, 48 and 47 of the last three's 80 were wrong.
    given_, wrong = 0, 0
    for seed in range(RUNS):
        seen = judge_series(wandering(rho, share, 240, seed))
        if math.isfinite(seen.half_width):
            given_ += 1
            wrong += abs(seen.mean - LEVEL) > seen.half_width
    assert wrong <= stats.binom.ppf(0.999, RUNS, 0.05)
    assert given_ >= RUNS / 2 or rho > 0.8


def test_the_rule_is_not_done_because_a_narrow_interval_came_by_chance() -> None:
    seen = [replay_stopping_rule(wandering(0.98, 0.05, 780, seed)) for seed in range(12)]
    assert StoppingStatus.OK not in {one.status for one in seen}
    assert StoppingStatus.CORRELATED in {one.status for one in seen}


def test_the_price_of_independent_seconds_is_nothing() -> None:
    ended = [replay_stopping_rule(noise(780, share=0.02, seed=seed)).seconds for seed in range(20)]
    assert np.median(ended) == 195


def test_the_table_of_coverage_tells_refused_from_wrong() -> None:
    found = row("x", 120, [(True, True, 100.0), (True, False, 200.0), (False, True, 300.0)])
    assert (round(found.given, 3), found.held) == (0.667, 0.5)
    assert (round(found.wrong, 3), found.seconds) == (0.333, 200.0)
    played = play(Task("AR(1) 0, 1 %", 0, 2))
    assert sorted(played) == sorted((DONE, *LENGTHS))
    assert all(len(outcomes) == 2 for outcomes in played.values())


def test_percentiles_of_seconds_that_hang_together_have_no_interval() -> None:
    assert [one.given for one in play_latency(LatencyTask(0.95, 0.3, 120, 6))] == [0.0, 0.0]
    assert [one.given for one in play_latency(LatencyTask(0.0, 0.3, 120, 6))] == [1.0, 1.0]


@pytest.mark.parametrize("name", [name for name in HELD_OUT if "dips" in name or "AR(2)" in name])
def test_processes_have_a_mean_of_one(name: str) -> None:
    draws = [PROCESSES[name](np.random.default_rng([seed, 5]), 780).mean() for seed in range(150)]
    assert np.mean(draws) == pytest.approx(1, abs=4 * np.std(draws) / math.sqrt(150) + 1e-4)
