"""Gains of a candidate, cell by cell: held against scipy, and the largest one by its cell."""

from __future__ import annotations

import numpy as np
import pytest
from msgspec.structs import replace
from scipy import stats

from iolab.analysis.pairs import (
    ConfigurationGains,
    GainsByPair,
    compare_configurations,
    missing_default_metric_reasons,
)
from iolab.analysis.resume_checks import SEGMENTS_PER_SESSION
from iolab.core.metric import Metric, RunResult, VerdictLevel
from iolab.stats.comparison import RATIO_ALLOWANCE, ComparisonVerdict
from tests.loads.keyvalue.studies import BASE, OTHER, STUDY, rates, results, summarised

LOW = [10_000.0, 10_300.0, 9_900.0]


def of(*cells: list[RunResult]) -> ConfigurationGains:
    (found,) = compare_configurations(STUDY, summarised(*cells))
    return found


def pair(factor: float, threads: int, workload: str = "readrandom-4k") -> list[RunResult]:
    random = np.random.default_rng([threads, len(workload)])
    values = [factor * value * random.lognormal(0, 0.002) for value in LOW]
    base = results(BASE, rates([threads * value for value in LOW]), threads, workload)
    return base + results(OTHER, rates([threads * value for value in values]), threads, workload)


def test_a_cell_is_compared_with_itself_by_pairs_of_repeats() -> None:
    high = [12_900.0, 13_500.0, 12_700.0]
    found = of(results(BASE, rates(LOW)), results(OTHER, rates(high)))
    (cell,) = found.cells_of_metric("ops_per_s")
    wanted = stats.ttest_rel(np.log(high), np.log(LOW)).confidence_interval()
    low, high_end = np.exp(wanted.low - RATIO_ALLOWANCE), np.exp(wanted.high + RATIO_ALLOWANCE)
    assert cell.relative_gain_interval == pytest.approx((low - 1, high_end - 1))
    assert cell.comparison.is_paired
    assert cell.comparison.verdict is ComparisonVerdict.BETTER
    assert (found.baseline, found.candidate) == (BASE, OTHER)


def test_a_pair_is_told_either_way_round_as_the_comparison_of_both_has_it() -> None:
    runs = [*results(BASE, rates(LOW)), *results(OTHER, rates([12_900.0, 13_500.0, 12_700.0]))]
    points = summarised(runs)
    gains = GainsByPair(STUDY, points)
    for names in ((BASE, OTHER), (OTHER, BASE)):
        (whole,) = compare_configurations(STUDY, points, baseline=names[0])
        (cell,) = whole.cells_of_metric("ops_per_s")
        found = gains.comparison(names, (cell.workload, cell.axis_values), cell.metric)
        assert found is not None
        told = cell.comparison
        assert (found.verdict, found.run_counts) == (told.verdict, told.run_counts)
        ends = (told.ratio, told.low, told.high)
        assert (found.ratio, found.low, found.high) == pytest.approx(ends)
        assert whole.cells == gains.gains_over_first()[0].cells or names[0] == OTHER
        assert gains.comparison(names, ("another", ()), cell.metric) is None
    assert (
        gains.comparison((BASE, "nobody"), (cell.workload, cell.axis_values), cell.metric) is None
    )


def test_a_metric_beside_the_default_ones_is_held_together_with_them() -> None:
    """By itself it would be one comparison, and among many one such lead comes by chance."""
    cells = [
        results(owner, rates(LOW), threads) for owner in (BASE, OTHER) for threads in (1, 2, 4, 8)
    ]
    for index, values in ((0, (100.0, 103.0, 99.0)), (4, (85.0, 82.0, 77.0))):
        cells[index] = [
            replace(run, metrics={**run.metrics, "read_lat_ns_max": Metric(value, "ns")})
            for run, value in zip(cells[index], values, strict=True)
        ]
    points = summarised(*cells)
    (alone,) = compare_configurations(STUDY, points, ("read_lat_ns_max",))
    (cell,) = alone.cells
    assert cell.comparison.verdict is ComparisonVerdict.BETTER
    assert 0.05 / 5 < cell.comparison.p_value < 0.05
    held = GainsByPair(STUDY, points).comparison(
        (BASE, OTHER), (cell.workload, cell.axis_values), "read_lat_ns_max"
    )
    assert held is not None
    assert held.is_significant_only_alone
    assert (held.low, held.high) == (cell.comparison.low, cell.comparison.high)


def test_runs_of_two_sessions_are_no_pairs() -> None:
    high = [12_900.0, 13_500.0, 12_700.0]
    later = [replace(run, segment=SEGMENTS_PER_SESSION) for run in results(OTHER, rates(high))]
    (cell,) = of(results(BASE, rates(LOW)), later).cells_of_metric("ops_per_s")
    wanted = stats.ttest_ind(np.log(high), np.log(LOW), equal_var=False).confidence_interval()
    low, high_end = np.exp(wanted.low - RATIO_ALLOWANCE), np.exp(wanted.high + RATIO_ALLOWANCE)
    assert cell.relative_gain_interval == pytest.approx((low - 1, high_end - 1))
    assert not cell.comparison.is_paired
    resumed = [replace(run, segment=2) for run in later]
    (cell,) = of(results(BASE, rates(LOW)), resumed).cells_of_metric("ops_per_s")
    assert cell.comparison.is_paired


@pytest.mark.parametrize("key", ["node_ops_per_j", "drive_ops_per_j", "node_net_ops_per_j"])
def test_operations_a_joule_are_compared_where_both_were_metered_alike(key: str) -> None:
    one = [{"ops_per_s": 1.0, key: value} for value in (100.0, 101.0)]
    other = [{"ops_per_s": 1.0, key: value} for value in (120.0, 121.0)]
    (cell,) = of(results(BASE, one), results(OTHER, other)).cells_of_metric(key)
    assert cell.relative_gain == pytest.approx(0.2, abs=0.01)
    # Another boundary is another quantity.
    unlike = [{"ops_per_s": 1.0, "processors_ops_per_j": value} for value in (120.0, 121.0)]
    found = of(results(BASE, one), results(OTHER, unlike))
    assert set(found.metrics) == {"ops_per_s"}


def test_what_is_left_out_is_said_though_something_is_known() -> None:
    one = [{"ops_per_s": 1.0, "node_ops_per_j": 100.0, "read_lat_ns_mean": 1e6}]
    other = [{"ops_per_s": 1.0, "drive_ops_per_j": 900.0, "read_lat_ns_mean": 1e6}]
    first, second = summarised(results(BASE, one), results(OTHER, other))
    bound = Metric(None, "ns", 2e9)
    second = replace(second, metrics={**second.metrics, "read_lat_ns_p99": bound})
    assert list(missing_default_metric_reasons((first, second))) == [
        "of the candidate's read p99 latency only 'more than 2 s' is known",
        "meters saw of the baseline its node, of the candidate its drive: unlike boundaries are "
        "not compared",
    ]
    assert list(missing_default_metric_reasons((first, first))) == []


def test_of_latency_less_is_a_gain() -> None:
    key = "read_lat_ns_mean"
    one = [{"ops_per_s": 1.0, key: value} for value in (1e6, 1.1e6)]
    other = [{"ops_per_s": 1.0, key: value} for value in (0.5e6, 0.55e6)]
    (cell,) = of(results(BASE, one), results(OTHER, other)).cells_of_metric(key)
    assert (cell.relative_gain, cell.improvement_factor) == pytest.approx((0.5, 2.0))
    assert cell.relative_gain_interval is not None
    assert cell.relative_gain_interval[0] <= cell.relative_gain <= cell.relative_gain_interval[1]


def test_the_largest_gain_names_its_cell_and_is_less_sure_than_a_single_one() -> None:
    far = "readrandom-16k"
    found = of(pair(1.1, 4), pair(1.5, 16), pair(1.3, 64), pair(1.2, 4, far), pair(1.25, 64, far))
    best = found.largest_gain("ops_per_s")
    assert best is not None
    assert (best.cell.workload, best.cell.axis_values) == ("readrandom-4k", (("threads", 16),))
    assert best.cell_count == 5
    own = best.cell.relative_gain_interval
    assert own is not None
    assert best.low is not None
    assert best.high is not None
    assert best.low < own[0] < best.cell.relative_gain < own[1] < best.high
    assert [cell.axis_values for cell in found.cells_of_metric("ops_per_s", far)] == [
        (("threads", 4),),
        (("threads", 64),),
    ]


def test_the_largest_gain_of_a_latency_is_the_largest_reduction() -> None:
    key = "read_lat_ns_mean"
    cells = []
    for threads, factor in ((4, 0.8), (16, 0.5), (64, 0.9)):
        for name, scale in ((BASE, 1.0), (OTHER, factor)):
            values = [{"ops_per_s": 1.0, key: scale * value} for value in LOW]
            cells.append(results(name, values, threads))
    best = of(*cells).largest_gain(key)
    assert best is not None
    assert best.cell.axis_values == (("threads", 16),)
    assert best.cell.relative_gain == pytest.approx(0.5)
    assert best.low is not None
    assert best.high is not None
    assert best.low <= 0.5 <= best.high


def test_of_many_cells_chance_claims_little() -> None:
    even = [
        cell
        for threads in (4, 16, 64)
        for workload in ("readrandom-4k", "readrandom-16k")
        for cell in (pair(1.0, threads, workload),)
    ]
    base, other = [100.0, 101.0, 100.5], [106.5, 105.5, 106.3]
    few = of(results(BASE, rates(base), 4), results(OTHER, rates(other), 4))
    assert few.cells[0].comparison.verdict is ComparisonVerdict.BETTER
    assert 0.05 / 7 < few.cells[0].comparison.p_value < 0.05
    many = of(*even, results(BASE, rates(base), 128), results(OTHER, rates(other), 128))
    (row,) = (
        row for row in many.cells_of_metric("ops_per_s") if dict(row.axis_values)["threads"] == 128
    )
    said = row.comparison
    assert (said.verdict, "chance alone" in said.reason) == (ComparisonVerdict.INCONCLUSIVE, True)


def test_the_interval_of_the_largest_holds_for_all_cells_at_once() -> None:
    random = np.random.default_rng(3)
    missed = missed_alone = 0
    for _ in range(60):
        cells = []
        for threads in (4, 16, 64):
            base, other = random.normal(0, 0.02, (2, 4))
            cells.append(results(BASE, rates(np.exp(base).tolist()), threads))
            cells.append(results(OTHER, rates((1.3 * np.exp(other)).tolist()), threads))
        best = of(*cells).largest_gain("ops_per_s")
        assert best is not None
        assert best.low is not None
        assert best.cell.relative_gain_interval is not None
        missed += best.low > 0.3
        missed_alone += best.cell.relative_gain_interval[0] > 0.3
    assert missed <= 4
    assert missed <= missed_alone


def test_where_nothing_is_better_there_is_no_largest_gain() -> None:
    found = of(pair(0.8, 4), pair(0.9, 16))
    assert found.largest_gain("ops_per_s") is None
    assert found.largest_gain("no_such_metric") is None
    assert [cell.comparison.verdict for cell in found.cells] == [ComparisonVerdict.WORSE] * 2


def test_cells_that_one_side_lacks_are_named_and_never_matched_with_others() -> None:
    lonely = results(BASE, rates(LOW), 64)
    spoilt = results(OTHER, rates(LOW), 16, level=VerdictLevel.INVALID)
    found = of(pair(1.2, 4), lonely, results(BASE, rates(LOW), 16), spoilt)
    assert [cell.axis_values for cell in found.cells] == [(("threads", 4),)]
    assert {(one.axis_values, one.reason) for one in found.skipped} == {
        ((("threads", 64),), f"{OTHER} has no such point"),
        ((("threads", 16),), f"no run of {OTHER} is done and not invalid"),
    }


def test_a_single_run_a_side_has_a_gain_without_an_interval() -> None:
    found = of(results(BASE, rates([100.0])), results(OTHER, rates([150.0])))
    best = found.largest_gain("ops_per_s")
    assert best is not None
    assert best.cell.relative_gain == pytest.approx(0.5)
    assert (best.low, best.high, best.cell.relative_gain_interval) == (None, None, None)
    assert best.cell.comparison.verdict is ComparisonVerdict.INCONCLUSIVE


def test_a_gain_smaller_than_a_bin_is_not_claimed() -> None:
    key = "read_lat_ns_p99"

    def bench(at: float, low: float, high: float) -> list[dict[str, float | Metric]]:
        known = Metric(at, "ns", low, high)
        return [{"ops_per_s": 1.0, "read_lat_ns_mean": at, key: known} for _ in range(3)]

    same_bin = of(
        results(BASE, bench(1.8e6, 1.3e6, 1.9e6)), results(OTHER, bench(1.4e6, 1.3e6, 1.9e6))
    )
    (cell,) = same_bin.cells_of_metric(key)
    assert cell.relative_gain == pytest.approx(1 - 1.4 / 1.8)
    assert cell.comparison.verdict is ComparisonVerdict.INCONCLUSIVE
    far = of(results(BASE, bench(6.0e6, 4.4e6, 6.6e6)), results(OTHER, bench(1.4e6, 1.3e6, 1.9e6)))
    (cell,) = far.cells_of_metric(key)
    assert cell.comparison.verdict is ComparisonVerdict.BETTER
    # Between the edges: 1.3/6.6 at best, 1.9/4.4 at worst; the interval has them all in it.
    assert cell.relative_gain_interval is not None
    assert cell.relative_gain_interval[0] <= 1 - 1.9 / 4.4
    assert cell.relative_gain_interval[1] >= 1 - 1.3 / 6.6


def test_one_configuration_and_an_unknown_baseline_give_none() -> None:
    cells = summarised(results(BASE, rates(LOW)))
    assert compare_configurations(STUDY, cells) == ()
    assert compare_configurations(STUDY, summarised(pair(1.2, 4)), baseline="nobody") == ()
    (turned,) = compare_configurations(STUDY, summarised(pair(1.2, 4)), baseline=OTHER)
    assert (turned.baseline, turned.cells[0].relative_gain < 0) == (OTHER, True)
