"""Published intervals, the number of repeats, and the sentinel."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from iolab.stats.repeats import (
    BIAS_ALLOWANCE,
    VariancePrior,
    estimate_published_value,
    fit_variance_prior,
    sample_variance,
)
from iolab.stats.sentinel import SentinelShiftForm, judge_sentinel

MEANS = st.lists(st.floats(min_value=50, max_value=200), min_size=2, max_size=8)
PRIOR = VariancePrior(0.005**2, 8.0, 24, 48.0)


@given(MEANS)
def test_without_a_prior_it_is_students_interval_of_logs(means: list[float]) -> None:
    found = estimate_published_value(means, bias_allowance=0.0)
    logs = np.log(means)
    reach = stats.t.ppf(0.975, len(means) - 1) * logs.std(ddof=1) / math.sqrt(len(means))
    assert found.relative_half_width == pytest.approx(reach, rel=1e-7, abs=1e-12)
    assert found.value == pytest.approx(stats.gmean(means))


@given(MEANS, st.randoms(), st.floats(min_value=1e-6, max_value=1e9))
def test_neither_order_nor_unit_matters(means: list[float], random: object, unit: float) -> None:
    assert hasattr(random, "sample")
    shuffled = random.sample(means, len(means))
    one, other = (
        estimate_published_value(means, PRIOR),
        estimate_published_value([mean * unit for mean in shuffled], PRIOR),
    )
    assert other.value == pytest.approx(one.value * unit)
    assert other.relative_half_width == pytest.approx(one.relative_half_width, rel=1e-6, abs=1e-9)


@given(st.integers(min_value=2, max_value=6))
def test_it_narrows_with_the_runs(runs: int) -> None:
    few, more = (
        estimate_published_value([99.0, 101.0] * runs, PRIOR),
        estimate_published_value([99.0, 101.0] * (runs + 1), PRIOR),
    )
    assert more.relative_half_width < few.relative_half_width


def test_one_run_borrows_or_says_nothing() -> None:
    alone = estimate_published_value([100.0])
    assert (alone.low, alone.high, alone.relative_half_width) == (None, None, math.inf)
    borrowed = estimate_published_value([100.0], PRIOR)
    assert borrowed.run_count == 1
    assert borrowed.relative_half_width == pytest.approx(
        stats.t.ppf(0.975, 8) * 0.005 + BIAS_ALLOWANCE, rel=1e-6
    )


@pytest.mark.parametrize("means", [[], [0.0, 1.0], [math.nan, 1.0], [-1.0]])
def test_what_has_no_logarithm_is_refused(means: list[float]) -> None:
    with pytest.raises(ValueError, match=r"without runs|not a positive mean"):
        estimate_published_value(means)


def test_moderated_intervals_cover() -> None:
    rng = np.random.default_rng(7)
    hits = total = 0
    for _ in range(40):
        sds = 0.005 * np.exp(0.4 * rng.standard_normal(24))
        runs = np.exp(sds[:, None] * rng.standard_normal((24, 2)))
        prior = fit_variance_prior([sample_variance(list(np.log(row))) for row in runs])
        for row in runs:
            found = estimate_published_value(list(row), prior)
            assert found.low is not None
            assert found.high is not None
            hits += found.low <= 1 <= found.high
            total += 1
    assert 0.93 <= hits / total <= 0.99


def test_a_still_sentinel_is_quiet() -> None:
    rng = np.random.default_rng(4)
    alarms = 0
    for _ in range(300):
        values = list(np.exp(0.005 * rng.standard_normal(24)))
        looks = (judge_sentinel(values[:count], 0.005) for count in range(1, 25))
        alarms += any(look.movement is not SentinelShiftForm.STILL for look in looks)
    assert alarms <= 300 * 0.08


def test_a_jump_and_a_drift_are_seen() -> None:
    assert judge_sentinel([100.0, 103.0], 0.005).movement is SentinelShiftForm.JUMPED
    assert judge_sentinel([100.0, 103.0], 0.005).change == pytest.approx(math.log(1.03))
    drifting = [100 * math.exp(0.004 * step) for step in range(8)]
    assert judge_sentinel(drifting, 0.005).movement is SentinelShiftForm.DRIFTED
    assert judge_sentinel([100.0], 0.005).movement is SentinelShiftForm.STILL
    assert judge_sentinel([100 * math.exp(0.001 * step) for step in range(8)], 1e-4).movement in {
        SentinelShiftForm.STILL,
        SentinelShiftForm.JUMPED,
    }
