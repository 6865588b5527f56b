"""What is found in curves whose truth is known."""

from __future__ import annotations

from typing import TypeVar

import pytest

from iolab.analysis.findings import (
    BestPointFinding,
    CrossoverFinding,
    Finding,
    KneeFinding,
    LargestSpeedupFinding,
    PerUnitFinding,
    WinLossFinding,
)
from iolab.core.metric import VerdictLevel
from iolab.stats.comparison import ComparisonVerdict
from tests.analysis.findings.cells import LATENCY, REPEATS, curve, found_in, sized
from tests.loads.keyvalue.studies import BASE, OTHER

Kind = TypeVar("Kind")

RISING = {4: 4000.0, 16: 14_000.0, 64: 20_000.0}


def of(kind: type[Kind], found: tuple[Finding, ...]) -> list[Kind]:
    return [one for one in found if isinstance(one, kind)]


def test_the_best_is_the_highest_of_all_places_with_its_runs() -> None:
    (best,) = of(BestPointFinding, found_in(curve(BASE, RISING)))
    assert (best.axis_values, best.point_count, best.indistinguishable_axis_values) == (
        (("threads", 64),),
        3,
        (),
    )
    assert best.value.value == pytest.approx(20_000, rel=0.01)
    assert len(best.run_keys) == REPEATS
    assert {digest for digest, _ in best.run_keys} == {f"{BASE}-readrandom-4k-64"}


def test_places_whose_intervals_meet_the_best_are_named() -> None:
    flat = {4: 4000.0, 16: 20_000.0, 64: 20_010.0}
    (best,) = of(BestPointFinding, found_in(curve(BASE, flat, spread=0.01)))
    assert len(best.indistinguishable_axis_values) == 1


def test_what_no_run_supports_is_no_best() -> None:
    assert of(BestPointFinding, found_in(curve(BASE, RISING, level=VerdictLevel.INVALID))) == []


def test_the_largest_supported_gain_is_not_the_largest_noisy_one() -> None:
    sure = [curve(BASE, {4: 1000.0}), curve(OTHER, {4: 1300.0})]
    noisy = [
        curve(BASE, {16: 1000.0}, spread=0.8, workload="readrandom-16k"),
        curve(OTHER, {16: 1900.0}, spread=0.8, workload="readrandom-16k"),
    ]
    (gain,) = [
        one
        for one in of(LargestSpeedupFinding, found_in(*sure, *noisy))
        if one.metric == "ops_per_s"
    ]
    assert (gain.workload, gain.axis_values, gain.comparison_count) == (
        "readrandom-4k",
        (("threads", 4),),
        2,
    )
    assert gain.relative_gain == pytest.approx(0.3, abs=0.01)
    assert gain.low is not None
    assert gain.high is not None
    assert gain.low < 0.3 < gain.high
    assert len(gain.run_keys) == 2 * REPEATS


def test_a_gain_is_none_that_its_interval_over_all_cells_does_not_support() -> None:
    rates = {load: 1000.0 * load for load in (1, 2, 4, 8, 16, 32)}
    sure = [curve(BASE, rates), curve(OTHER, {load: 1.1 * rate for load, rate in rates.items()})]
    noisy = [curve(BASE, {64: 64_000.0}, spread=0.3), curve(OTHER, {64: 90_000.0}, spread=0.3)]
    found = found_in(*sure, *noisy)
    (tally,) = [one for one in of(WinLossFinding, found) if one.metric == "ops_per_s"]
    assert (
        dict(tally.verdict_counts)[ComparisonVerdict.BETTER] == 7
    )  # by Holm's correction, the noisy one, too
    (gain,) = [one for one in of(LargestSpeedupFinding, found) if one.metric == "ops_per_s"]
    assert gain.relative_gain == pytest.approx(0.1, abs=0.01)
    assert gain.low is not None
    assert gain.low > 0


def test_nothing_is_gained_where_nothing_differs() -> None:
    found = found_in(curve(BASE, RISING, spread=0.01), curve(OTHER, RISING, spread=0.01))
    assert of(LargestSpeedupFinding, found) == []
    (tally,) = [one for one in of(WinLossFinding, found) if one.metric == "ops_per_s"]
    assert dict(tally.verdict_counts)[ComparisonVerdict.BETTER] == 0
    assert sum(count for _, count in tally.verdict_counts) == 3


def test_a_tally_counts_each_verdict_and_what_was_skipped() -> None:
    base = curve(BASE, RISING)
    other = curve(OTHER, {4: 5000.0, 16: 9_000.0})
    (tally,) = [
        one for one in of(WinLossFinding, found_in(base, other)) if one.metric == "ops_per_s"
    ]
    counts = dict(tally.verdict_counts)
    assert (
        counts[ComparisonVerdict.BETTER],
        counts[ComparisonVerdict.WORSE],
        tally.skipped_count,
    ) == (
        1,
        1,
        1,
    )


def test_curves_that_cross_are_found_with_the_loads_on_both_sides() -> None:
    base, other = curve(BASE, RISING), curve(OTHER, {4: 4400.0, 16: 14_000.0, 64: 16_000.0})
    (crossing,) = of(CrossoverFinding, found_in(base, other))
    assert (crossing.low_load_leader, crossing.high_load_leader) == (OTHER, BASE)
    assert (crossing.last_low_load, crossing.first_high_load) == (4, 64)
    assert crossing.low_load_relative_lead == pytest.approx(0.1, abs=0.01)
    assert crossing.high_load_relative_lead == pytest.approx(
        0.25, abs=0.01
    )  # 20 k of 16 k, not 16 k of 20 k
    assert (
        crossing.leads_at_all_lower_loads,
        crossing.leads_at_all_higher_loads,
        crossing.verdict_level,
    ) == (True, True, VerdictLevel.VALID)


def test_a_lead_is_claimed_of_no_load_where_it_is_not_supported() -> None:
    rates = {1: 1000.0, 4: 4000.0, 16: 14_000.0, 64: 20_000.0}
    base, other = curve(BASE, rates), curve(OTHER, {**rates, 4: 4400.0, 16: 12_000.0})
    (crossing,) = of(CrossoverFinding, found_in(base, other))
    assert (crossing.last_low_load, crossing.first_high_load) == (4, 16)
    assert (crossing.leads_at_all_lower_loads, crossing.leads_at_all_higher_loads) == (False, False)


@pytest.mark.parametrize(
    "other",
    [
        {4: 4400.0, 16: 15_000.0, 64: 22_000.0},
        {4: 4400.0, 16: 12_000.0, 64: 22_000.0},
        {4: 4000.0, 16: 14_000.0, 64: 16_000.0},
    ],
)
def test_curves_that_do_not_cross_once_are_no_crossing(other: dict[int, float]) -> None:
    assert of(CrossoverFinding, found_in(curve(BASE, RISING), curve(OTHER, other))) == []


def test_a_bend_is_the_first_step_that_no_longer_pays() -> None:
    (bend,) = of(KneeFinding, found_in(curve(BASE, RISING)))
    assert (bend.axis_name, bend.load, bend.next_load) == ("threads", 16, 64)
    assert bend.rate_ratio == pytest.approx(20 / 14, rel=0.01)
    assert bend.latency_ratio == pytest.approx(4 * 14 / 20, rel=0.01)
    assert (bend.has_single_runs, bend.is_certain, bend.verdict_level) == (
        False,
        True,
        VerdictLevel.VALID,
    )


def test_a_bend_within_the_intervals_is_not_sure() -> None:
    (bend,) = of(KneeFinding, found_in(curve(BASE, RISING, spread=0.3)))
    assert (bend.has_single_runs, bend.is_certain) == (False, False)


def test_a_curve_that_bends_below_its_first_load_has_no_knee() -> None:
    early = {4: 4000.0, 16: 5000.0, 64: 5100.0}
    assert of(KneeFinding, found_in(curve(BASE, early))) == []


def test_a_curve_that_keeps_paying_does_not_bend() -> None:
    assert of(KneeFinding, found_in(curve(BASE, {4: 4000.0, 16: 15_000.0, 64: 50_000.0}))) == []


def test_two_loads_do_not_show_where_a_curve_bends() -> None:
    last = {load: RISING[load] for load in (16, 64)}
    points = curve(BASE, last)
    assert of(KneeFinding, found_in(points)) == []
    (three,) = of(KneeFinding, found_in(curve(BASE, {4: RISING[4], **last})))
    assert three.load == 16


def test_a_bend_of_single_runs_says_so() -> None:
    (bend,) = of(KneeFinding, found_in(curve(BASE, RISING, repeats=1)))
    assert bend.has_single_runs


def test_prices_are_ranked_and_sure_only_where_intervals_lie_apart() -> None:
    study = sized(base=1000.0, other=4000.0)
    found = found_in(curve(BASE, RISING), curve(OTHER, {4: 9000.0, 64: 40_000.0}), study=study)
    money = [
        one for one in of(PerUnitFinding, found) if one.divisor_unit == "1000 EUR" and one.workload
    ]
    assert [(one.configuration, one.rank, one.is_certain) for one in money] == [
        (BASE, 1, True),
        (OTHER, 2, True),
    ]
    assert money[0].value == pytest.approx(20_000, rel=0.01)
    assert money[1].value == pytest.approx(10_000, rel=0.01)
    capacity = [one for one in of(PerUnitFinding, found) if not one.workload]
    assert [(one.configuration, one.value, one.rank) for one in capacity] == [
        (BASE, 100.0, 1),
        (OTHER, 25.0, 2),
    ]
    per_tb = [one for one in of(PerUnitFinding, found) if one.divisor_unit == "TB usable"]
    assert [one.configuration for one in per_tb] == [OTHER, BASE]
    assert {one.divisor_unit for one in of(PerUnitFinding, found)} == {
        "1000 EUR",
        "TB usable",
        "node",
    }


def test_a_price_that_no_interval_supports_is_not_sure() -> None:
    study = sized(base=1000.0, other=1000.0)
    found = found_in(
        curve(BASE, {4: 1000.0}, spread=0.05), curve(OTHER, {4: 1010.0}, spread=0.05), study=study
    )
    first = next(
        one for one in of(PerUnitFinding, found) if one.divisor_unit == "node" and one.rank == 1
    )
    assert not first.is_certain


def test_gains_of_latency_are_reductions() -> None:
    found = found_in(curve(BASE, {4: 1000.0}), curve(OTHER, {4: 2000.0}))
    (gain,) = [one for one in of(LargestSpeedupFinding, found) if one.metric == LATENCY]
    assert (gain.relative_gain, gain.factor) == pytest.approx((0.5, 2.0), rel=0.01)
