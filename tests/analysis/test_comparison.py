"""Comparisons held against scipy, and of metadata load."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from msgspec.structs import replace
from scipy import stats

from iolab.analysis.comparison import build_session_history, compare_sides
from iolab.analysis.differences import ComparisonSide
from iolab.analysis.pairs import ComparedMetric
from iolab.core.metric import Metric, RunResult, VerdictLevel
from iolab.core.metric_spec import SERVICE_MEAN
from iolab.loads.metadata.workload import FILE_OPERATIONS, MetadataOperation
from iolab.stats.comparison import RATIO_ALLOWANCE, ComparisonVerdict
from iolab.stats.repeats import BIN_ERROR
from tests.analysis.test_points import RUN, STUDY, repeats
from tests.loads.metadata.metadata_session import kpi_with_metadata
from tests.report.synthetic import Source


def side(name: str, results: Sequence[RunResult], session: str = "") -> ComparisonSide:
    """One configuration, `only`, of a session of that name."""
    configuration = replace(STUDY.configurations[0], id=name)
    return ComparisonSide(
        name=name,
        session_id=session or name,
        created_real_ns=0,
        versions={},
        study=STUDY,
        configuration=configuration,
        points={(RUN.point.workload, RUN.point.axis_values): RUN.point},
        facts={},
        results=tuple(results),
    )


def only(one: ComparisonSide, other: ComparisonSide) -> ComparedMetric:
    (row,) = compare_sides(one, other).compared_metrics
    return row


def widened(interval: object, allowance: float) -> list[float]:
    """scipy's interval of a difference of logarithms as one of the ratio."""
    low, high = interval.low - allowance, interval.high + allowance  # type: ignore[attr-defined]
    return [float(np.exp(low)), float(np.exp(high))]


BASE, OTHER = [100.0, 104.0, 99.0], [113.0, 110.0, 116.0, 111.0]


def test_independent_sessions_are_compared_as_welch_does() -> None:
    row = only(side("a", repeats(BASE)), side("b", repeats(OTHER)))
    wanted = stats.ttest_ind(np.log(OTHER), np.log(BASE), equal_var=False).confidence_interval()
    found = row.comparison
    assert [found.low, found.high] == pytest.approx(widened(wanted, RATIO_ALLOWANCE))
    assert (found.verdict, found.run_counts, found.is_paired) == (
        ComparisonVerdict.BETTER,
        (3, 4),
        False,
    )


def test_configurations_of_one_session_are_compared_in_pairs() -> None:
    # The last repeat has no partner.
    row = only(side("a", repeats(BASE), "s"), side("b", repeats(OTHER), "s"))
    wanted = stats.ttest_rel(np.log(OTHER[:3]), np.log(BASE)).confidence_interval()
    found = row.comparison
    assert [found.low, found.high] == pytest.approx(widened(wanted, RATIO_ALLOWANCE))
    assert (found.is_paired, found.run_counts) == (True, (3, 3))


def test_response_times_are_not_held_against_service_times() -> None:
    plain = repeats(BASE, "lat_ns_p99")
    service = {SERVICE_MEAN: Metric(50.0, "ns")}
    both = [replace(one, metrics={**one.metrics, **service}) for one in plain]
    found = compare_sides(side("a", plain), side("b", both), metrics=["lat_ns_p99"])
    assert not found.compared_metrics
    assert "from when I/Os were due" in found.skipped[0].reason
    assert compare_sides(side("a", both), side("b", both), metrics=["lat_ns_p99"]).compared_metrics


def test_of_percentiles_less_is_better_and_their_bins_widen_the_interval() -> None:
    one, other = (
        side(name, [tail(result) for result in repeats(values, "lat_ns_p99")])
        for name, values in (("a", BASE), ("b", [value * 0.8 for value in BASE]))
    )
    (row,) = compare_sides(one, other, metrics=["lat_ns_p99"]).compared_metrics
    logs = np.log(BASE)
    wanted = stats.ttest_ind(logs + np.log(0.8), logs, equal_var=False).confidence_interval()
    allowance = RATIO_ALLOWANCE + 2 * BIN_ERROR
    found = row.comparison
    assert [found.low, found.high] == pytest.approx(widened(wanted, allowance))
    assert found.verdict is ComparisonVerdict.BETTER


def test_the_worse_verdict_of_both_points_stands_beside_the_ratio() -> None:
    doubtful = [
        replace(run, verdict=replace(run.verdict, level=VerdictLevel.INDICATIVE))
        for run in repeats(OTHER)
    ]
    assert (
        only(side("a", repeats(BASE)), side("b", doubtful)).verdict_level is VerdictLevel.INDICATIVE
    )


def test_of_many_comparisons_chance_claims_little() -> None:
    rng = np.random.default_rng(7)
    claims = 0
    for _ in range(40):
        one, other = (
            side(
                name,
                [
                    run
                    for depth in range(1, 13)
                    for run in repeats(np.exp(rng.normal(0, 0.03, 3)).tolist(), depth=depth)
                ],
            )
            for name in ("a", "b")
        )
        found = compare_sides(one, other)
        assert len(found.compared_metrics) == 12
        claims += any(
            row.comparison.verdict in {ComparisonVerdict.BETTER, ComparisonVerdict.WORSE}
            for row in found.compared_metrics
        )
    assert claims <= 5


def test_each_operation_of_metadata_load_is_compared_and_tracked_by_itself() -> None:
    one = metadata_side(kpi_with_metadata(io=False))
    compared = compare_sides(one, replace(one, session_id="another"))
    keys = [row.metric for row in compared.compared_metrics]
    assert len(keys) == len(set(keys)) == len(MetadataOperation)
    # Operations on trees are too short for a common window.
    assert {one.rate_key for one in FILE_OPERATIONS} < set(keys)
    trees = (MetadataOperation.TREE_CREATE, MetadataOperation.TREE_REMOVE)
    assert {one.phase_rate_key for one in trees} < set(keys)
    assert all(row.comparison.ratio == 1 for row in compared.compared_metrics)
    tracked = build_session_history([one, replace(one, session_id="another")])
    assert [series.metric for series in tracked.metric_histories] == keys


def metadata_side(source: Source) -> ComparisonSide:
    return ComparisonSide(
        name="m",
        session_id="m",
        created_real_ns=0,
        versions={},
        study=source.study,
        configuration=source.study.configurations[0],
        points={(point.workload, point.axis_values): point for point in source.plan.points},
        facts={},
        results=source.results(),
    )


def tail(result: RunResult) -> RunResult:
    return replace(result, metrics={"lat_ns_p99": Metric(result.metrics["lat_ns_p99"].value, "ns")})
