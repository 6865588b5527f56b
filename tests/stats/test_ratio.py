"""Comparisons, their verdicts, and many of them together."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from iolab.core.metric_spec import BetterDirection
from iolab.stats.comparison import (
    NOISE_THRESHOLD,
    RATIO_ALLOWANCE,
    Comparison,
    ComparisonVerdict,
    apply_holm_correction,
    compare_paired,
    compare_unpaired,
    holm_adjusted_p_values,
)
from iolab.stats.geometric_mean import geometric_mean_ratio
from iolab.stats.repeats import VariancePrior

PRIOR = VariancePrior(0.005**2, 10.0, 48, 96.0)
SIDE = st.lists(st.floats(min_value=80, max_value=120), min_size=2, max_size=6)


def reach(comparison: Comparison) -> float:
    assert comparison.low is not None
    assert comparison.high is not None
    return math.log(comparison.high / comparison.low) / 2


@given(SIDE, SIDE)
def test_without_a_prior_it_is_welchs_interval(a: list[float], b: list[float]) -> None:
    logs = np.log(a), np.log(b)
    if logs[0].std() < 1e-9 or logs[1].std() < 1e-9:
        return
    found = compare_unpaired(a, b)
    wanted = stats.ttest_ind(logs[1], logs[0], equal_var=False).confidence_interval()
    assert found.low is not None
    assert math.log(found.low) == pytest.approx(wanted.low - RATIO_ALLOWANCE, rel=1e-6, abs=1e-9)
    assert found.df > 0


@given(SIDE, SIDE, st.floats(min_value=1e-6, max_value=1e6))
def test_neither_unit_nor_side_matters(a: list[float], b: list[float], unit: float) -> None:
    found = compare_unpaired(a, b, prior=PRIOR)
    scaled = compare_unpaired([x * unit for x in a], [x * unit for x in b], prior=PRIOR)
    turned = compare_unpaired(b, a, prior=PRIOR)
    assert scaled.ratio == pytest.approx(found.ratio)
    assert reach(scaled) == pytest.approx(reach(found), rel=1e-6)
    assert turned.ratio == pytest.approx(1 / found.ratio)
    assert reach(turned) == pytest.approx(reach(found), rel=1e-6)


def test_ten_percent_less_is_worse_with_an_interval_that_holds_it() -> None:
    found = compare_unpaired([100.0, 100.5, 99.5], [90.0, 90.4, 89.7], prior=PRIOR)
    assert found.verdict is ComparisonVerdict.WORSE
    assert found.low is not None
    assert found.high is not None
    assert found.low < 0.9 < found.high
    latency = compare_unpaired([100.0, 100.5], [90.0, 90.4], BetterDirection.LOWER, PRIOR)
    assert latency.verdict is ComparisonVerdict.BETTER


def test_the_same_is_the_same() -> None:
    runs = [100.0, 100.3, 99.8]
    assert compare_unpaired(runs, runs, prior=PRIOR).verdict is ComparisonVerdict.SAME
    assert (
        compare_unpaired(runs, [100.1, 99.9, 100.2], prior=PRIOR).verdict is ComparisonVerdict.SAME
    )


def test_one_run_a_side_is_inconclusive_and_says_why() -> None:
    alone = compare_unpaired([100.0], [90.0])
    assert alone.verdict is ComparisonVerdict.INCONCLUSIVE
    assert "a single run" in alone.reason
    assert alone.low is None
    borrowed = compare_unpaired([100.0], [90.0], prior=PRIOR)
    assert borrowed.verdict is ComparisonVerdict.INCONCLUSIVE
    assert "borrowed" in borrowed.reason
    assert borrowed.low is not None


def test_the_p_value_is_that_of_a_difference_beyond_noise() -> None:
    within = compare_unpaired([100.0, 100.001, 100.0], [100.5, 100.501, 100.5])
    assert within.p_value == 1.0
    found = compare_unpaired([100.0, 100.5, 99.5], [103.0, 104.0, 103.5])
    beyond = math.log(found.ratio) - math.log1p(NOISE_THRESHOLD) - RATIO_ALLOWANCE
    assert found.p_value == pytest.approx(
        2 * stats.t.sf(beyond / found.log_ratio_error, found.df), rel=1e-9
    )


def test_a_wide_interval_is_inconclusive() -> None:
    found = compare_unpaired([90.0, 110.0], [95.0, 112.0])
    assert found.verdict is ComparisonVerdict.INCONCLUSIVE
    assert "too wide" in found.reason


def test_half_a_percent_is_no_difference() -> None:
    a, b = [100.0, 100.001, 100.0], [100.5, 100.501, 100.5]
    assert compare_unpaired(a, b).verdict is ComparisonVerdict.SAME


def test_pairs_take_out_what_blocks_share() -> None:
    rng = np.random.default_rng(3)
    blocks = np.exp(0.05 * rng.standard_normal(5))
    a, b = 100 * blocks, 103 * blocks * np.exp(0.001 * rng.standard_normal(5))
    paired, free = compare_paired(list(a), list(b)), compare_unpaired(list(a), list(b))
    assert reach(paired) < reach(free) / 5
    assert paired.verdict is ComparisonVerdict.BETTER
    assert free.verdict is ComparisonVerdict.INCONCLUSIVE
    with pytest.raises(ValueError, match="no pairs"):
        compare_paired([1.0], [1.0, 2.0])


def test_a_paired_interval_is_students() -> None:
    a, b = [100.0, 101.0, 99.0, 100.5], [103.0, 103.2, 102.0, 104.0]
    wanted = stats.ttest_rel(np.log(b), np.log(a)).confidence_interval()
    found = compare_paired(a, b)
    assert found.low is not None
    assert math.log(found.low) == pytest.approx(wanted.low - RATIO_ALLOWANCE, rel=1e-9)


@given(st.lists(st.floats(min_value=0, max_value=1), min_size=1, max_size=12))
def test_holm_is_its_definition(p: list[float]) -> None:
    adjusted = holm_adjusted_p_values(p)
    ranked = sorted(range(len(p)), key=lambda i: p[i])
    for rank, index in enumerate(ranked):
        steps = [min(1.0, (len(p) - r) * p[ranked[r]]) for r in range(rank + 1)]
        assert adjusted[index] == pytest.approx(max(steps))
    assert all(one >= other for one, other in zip(adjusted, p, strict=True))


def test_many_comparisons_bear_fewer_claims() -> None:
    weak = compare_unpaired([100.0, 101.0, 99.0], [104.0, 105.0, 103.2])
    assert weak.verdict is ComparisonVerdict.BETTER
    assert apply_holm_correction([weak])[0].verdict is ComparisonVerdict.BETTER
    crowd = apply_holm_correction([weak] + [compare_unpaired([100.0, 101.0], [100.0, 101.0])] * 40)
    assert crowd[0].verdict is ComparisonVerdict.INCONCLUSIVE
    assert "all comparisons" in crowd[0].reason


def test_geometric_mean_sums_variances_of_few_curves() -> None:
    cell = compare_unpaired([100.0, 100.4, 99.7], [105.0, 105.4, 104.7], prior=PRIOR)
    one, four = (
        geometric_mean_ratio([[cell]]),
        geometric_mean_ratio([[cell]] * 4, np.random.default_rng(1)),
    )
    assert one.ratio == pytest.approx(cell.ratio)
    assert not four.is_bootstrapped
    assert one.low is not None
    assert four.low is not None
    assert one.low < four.low < four.ratio
    unknown = geometric_mean_ratio([[compare_unpaired([1.0], [2.0])]])
    assert (unknown.low, unknown.high) == (None, None)
    with pytest.raises(ValueError, match="at least one"):
        geometric_mean_ratio([])


def test_geometric_mean_resamples_many_curves() -> None:
    rng = np.random.default_rng(5)
    hits = 0
    for _ in range(60):
        effects = 0.05 + 0.02 * rng.standard_normal(12)
        curves = [
            [compare_unpaired([100.0, 100.2], [100 * math.exp(e)] * 2, prior=PRIOR)]
            for e in effects
        ]
        found = geometric_mean_ratio(curves, rng)
        assert found.is_bootstrapped
        assert found.low is not None
        assert found.high is not None
        hits += found.low <= math.exp(0.05) * 0.999 <= found.high
    assert hits >= 0.9 * 60
