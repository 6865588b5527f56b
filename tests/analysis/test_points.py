"""Repeats of one point together: its value, its interval, and which runs stand behind them."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pytest
from bench.synthetic import Shape, make_plan, make_record, make_result, make_study
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from scipy import stats

from iolab.analysis.points import NO_REPLICATE, PointSummary, summarise_points
from iolab.core.metric import Metric, RunResult, Verdict, VerdictLevel
from iolab.core.run import RunStatus
from iolab.core.stopping import Steadiness, SteadinessStatus
from iolab.stats.repeats import BIAS_ALLOWANCE, BIN_ERROR

SHAPE = Shape(points=1, seconds=2, hosts=2, cores=2, disks=1, nics=1)
STUDY = make_study(SHAPE)
RUN = make_plan(SHAPE).runs[0]
RESULT = make_result(make_record(RUN, SHAPE))


def repeats(values: Sequence[float | None], key: str = "iops", depth: int = 1) -> list[RunResult]:
    return [
        replace(
            RESULT,
            axis_values=(("iodepth", depth),),
            digest=f"{depth:016x}",
            repeat=repeat,
            metrics={key: Metric(value, "1/s")},
        )
        for repeat, value in enumerate(values, start=1)
    ]


def only(results: Sequence[RunResult]) -> PointSummary:
    (summary,) = summarise_points(results, STUDY)
    return summary


@pytest.mark.parametrize(
    ("key", "allowance"), [("iops", BIAS_ALLOWANCE), ("lat_ns_p99", BIAS_ALLOWANCE + BIN_ERROR)]
)
def test_the_interval_is_students_on_the_logarithms(key: str, allowance: float) -> None:
    values = [100.0, 104.0, 99.0]
    metric = only(repeats(values, key)).metrics[key]
    logs = np.log(values)
    reach = stats.t.ppf(0.975, 2) * stats.sem(logs) + allowance
    expected = [math.exp(logs.mean() + side * reach) for side in (-1, 0, 1)]
    assert [metric.low, metric.value, metric.high] == pytest.approx(expected)
    assert metric.n == 3


def test_invalid_and_failed_runs_stay_out_and_are_counted() -> None:
    results = repeats([100.0, 101.0, 500.0, 900.0])
    results[2] = replace(results[2], verdict=Verdict(VerdictLevel.INVALID, ()))
    results[3] = replace(results[3], status=RunStatus.FAILED)
    results[1] = replace(results[1], verdict=Verdict(VerdictLevel.INDICATIVE, ()))
    found = only(results)
    assert [run.repeat for run in found.results] == [1, 2]
    assert found.interval_note_texts == ("2 of 4 runs left out",)
    assert (found.verdict_level, found.metrics["iops"].n) == (VerdictLevel.INDICATIVE, 2)
    assert found.metrics["iops"].value == pytest.approx(math.sqrt(100.0 * 101.0))


def test_one_run_has_no_interval_and_says_so() -> None:
    found = only(repeats([100.0]))
    assert found.metrics["iops"] == Metric(100.0, "1/s", None, None, 1)
    assert found.interval_note_texts == (NO_REPLICATE,)


def test_one_run_among_replicated_points_borrows_their_spread() -> None:
    rng = np.random.default_rng(4)
    results = [
        result
        for depth in range(2, 16)
        for result in repeats((1000.0 * np.exp(rng.normal(0, 0.01, 3))).tolist(), depth=depth)
    ]
    summaries = summarise_points([*repeats([100.0]), *results], STUDY)
    first = summaries[0].metrics["iops"]
    assert summaries[0].interval_note_texts == (NO_REPLICATE,)
    assert first.low is not None
    assert 0.97 < first.low / 100.0 < 0.985


def test_fourteen_points_moderate_one_another() -> None:
    rng = np.random.default_rng(5)
    results = [
        result
        for depth in range(1, 15)
        for result in repeats((1000.0 * np.exp(rng.normal(0, 0.01, 3))).tolist(), depth=depth)
    ]
    widths = [
        metric.high / metric.low
        for one in summarise_points(results, STUDY)
        if (metric := one.metrics["iops"]).high is not None and metric.low is not None
    ]
    alone = [only(results[index : index + 3]).metrics["iops"] for index in range(0, 42, 3)]
    bare = [one.high / one.low for one in alone if one.high and one.low]
    assert len(widths) == len(bare) == 14
    assert max(widths) / min(widths) < max(bare) / min(bare)
    assert np.median(widths) < np.median(bare)


def test_a_point_whose_runs_are_all_invalid_shows_them_without_an_interval() -> None:
    invalid = [
        replace(run, verdict=Verdict(VerdictLevel.INVALID, ())) for run in repeats([100.0, 400.0])
    ]
    found = only(invalid)
    assert (found.is_trusted, found.verdict_level, found.results) == (
        False,
        VerdictLevel.INVALID,
        (),
    )
    metric = found.metrics["iops"]
    assert metric.value == pytest.approx(200.0)
    assert (metric.low, metric.high, metric.n) == (None, None, 2)


def test_runs_that_were_not_steady_are_counted() -> None:
    ok = Steadiness(SteadinessStatus.OK, 10, 60, 100.0, 0.01, 8, None, 0, None)
    results = [
        replace(run, steadiness=replace(ok, status=status))
        for run, status in zip(
            repeats([100.0, 101.0, 99.0]),
            (SteadinessStatus.OK, SteadinessStatus.IMPRECISE, SteadinessStatus.OK),
            strict=True,
        )
    ]
    found = only(results)
    assert found.run_count_by_steadiness == {SteadinessStatus.OK: 2, SteadinessStatus.IMPRECISE: 1}
    assert found.interval_note_texts == ("1 of 3 runs imprecise",)


def test_zeros_have_a_mean_and_no_interval() -> None:
    assert only(repeats([0.0, 4.0])).metrics["iops"] == Metric(2.0, "1/s", None, None, 2)


def test_runs_without_the_value_do_not_count() -> None:
    assert only(repeats([100.0, None, 100.0])).metrics["iops"].n == 2
    assert only(repeats([None, None])).metrics["iops"] == Metric(None, "1/s")


def test_a_percentile_that_some_runs_lack_does_not_stand_beside_the_mean_of_all() -> None:
    mean, tail = "lat_ns_mean", "lat_ns_p99"
    both = [
        replace(one, metrics={**one.metrics, **other.metrics})
        for one, other in zip(repeats([10.0, 10.0], mean), repeats([90.0, None], tail), strict=True)
    ]
    found = only(both).metrics
    assert found[mean].n == 2
    assert found[tail].value is None


def test_a_percentile_that_one_run_only_bounds_is_no_better_known_of_the_point() -> None:
    key = "lat_ns_p99_9"
    stalled = replace(RESULT, digest=f"{1:016x}", axis_values=(("iodepth", 1),), repeat=3)
    stalled = replace(stalled, metrics={key: Metric(None, "1/s", low=400.0)})
    found = only([*repeats([100.0, 100.0], key), stalled]).metrics[key]
    assert found.value is None
    assert found.low == pytest.approx((100.0 * 100.0 * 400.0) ** (1 / 3))
    assert (found.high, found.n) == (None, 3)


def test_a_zero_is_part_of_a_lower_bound() -> None:
    """One run was back at once, another never: the mean is more than half of what is known."""
    key = "scenario.baseline_s"
    never = replace(RESULT, digest=f"{1:016x}", axis_values=(("iodepth", 1),), repeat=2)
    never = replace(never, metrics={key: Metric(None, "s", low=10.0)})
    found = only([*repeats([0.0], key), never]).metrics[key]
    assert (found.value, found.low, found.n) == (None, 5.0, 2)


def test_of_maxima_the_largest_is_shown() -> None:
    found = only(repeats([5.0, 9.0], "lat_ns_max")).metrics["lat_ns_max"]
    assert found == Metric(9.0, "1/s", None, None, 2)


def test_results_without_a_host_stand_apart() -> None:
    results = repeats([100.0, 101.0])
    results[1] = replace(results[1], excluded_hosts=("client-2",))
    assert [one.key.excluded_hosts for one in summarise_points(results, STUDY)] == [
        (),
        ("client-2",),
    ]


@given(st.lists(st.floats(1.0, 1e6), min_size=2, max_size=5), st.floats(1e-3, 1e3))
def test_unit_and_order_change_nothing(values: list[float], unit: float) -> None:
    metric = only(repeats(values)).metrics["iops"]
    other = only(repeats([value * unit for value in reversed(values)])).metrics["iops"]
    for mine, theirs in zip(
        (metric.low, metric.value, metric.high), (other.low, other.value, other.high), strict=True
    ):
        assert mine is not None
        assert theirs == pytest.approx(mine * unit)


def test_points_stand_as_the_study_names_them_in_whatever_order_they_ran() -> None:
    shape = Shape(points=4, seconds=2, hosts=2, cores=2, disks=1, nics=1)
    plan, study = make_plan(shape), make_study(shape)
    results = [make_result(make_record(run, shape)) for run in plan.runs]
    other = replace(study.configurations[0], id="other")
    study = replace(study, configurations=(study.configurations[0], other))
    results += [replace(result, configuration="other") for result in results]
    keys = [point.key for point in summarise_points(results, study)]
    assert keys == [point.key for point in summarise_points(results[::-1], study)]
    pairs = [
        (
            (first.workload, first.axis_values),
            (second.workload, second.axis_values),
            second.configuration,
        )
        for first, second in zip(keys[::2], keys[1::2], strict=True)
    ]
    assert all(first == second and owner == "other" for first, second, owner in pairs)
    depths = [
        dict(key.axis_values)["iodepth"] for key in keys[::2] if key.workload == keys[0].workload
    ]
    assert depths == sorted(depths, key=int)
