"""Audits of sessions of ours."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import pytest
from bench.synthetic import Shape, make_facts, make_plan, make_record
from msgspec.structs import replace

from iolab.core.metric import Metric, RunResult, VerdictLevel
from iolab.core.run import Point
from iolab.published.audit.audit import audit_session
from iolab.published.audit.relations import Agreement, AuditOutcome
from tests.judging import judge

SHAPE: Final = Shape(points=3, seconds=2, hosts=2, cores=2, disks=1, nics=1)
PLAN: Final = make_plan(SHAPE)
FACTS: Final = make_facts(SHAPE)
RESULTS: Final = tuple(judge(make_record(run, SHAPE), FACTS) for run in PLAN.runs)

POINTS: Final[Mapping[str, Point]] = {point.digest: point for point in PLAN.points}


def wrong(result: RunResult) -> list[AuditOutcome]:
    return [one for one in audit_session((result,), POINTS) if one.agreement.severity]


def test_results_as_they_are_made_agree_with_themselves() -> None:
    outcomes = audit_session(RESULTS, POINTS)
    rules = {one.rule for one in outcomes}
    assert rules >= {"sum-of-hosts", "rate-times-size", "littles-law", "order", "verdict"}
    assert [one.message for one in outcomes if one.agreement is not Agreement.AGREES] == []


def changed(key: str, factor: float) -> RunResult:
    """The first result with one metric of the fleet multiplied."""
    result = RESULTS[0]
    metric = result.metrics[key]
    assert metric.value is not None
    made = replace(metric, value=metric.value * factor, low=None, high=None)
    return replace(result, metrics={**result.metrics, key: made})


@pytest.mark.parametrize(
    ("key", "factor", "rules"),
    [
        ("iops", 1.01, {"sum-of-hosts", "rate-times-size"}),
        ("bw_bytes_per_s", 1.00007, {"sum-of-hosts"}),
        ("bw_bytes_per_s", 0.99, {"sum-of-hosts", "rate-times-size"}),
        ("lat_ns_p99", 1e6, {"order"}),
        ("lat_ns_mean", 1e6, {"littles-law"}),
    ],
)
def test_a_number_that_was_changed_is_found(key: str, factor: float, rules: set[str]) -> None:
    assert {one.rule for one in wrong(changed(key, factor))} == rules


def test_a_value_outside_of_its_interval_is_found() -> None:
    result = RESULTS[0]
    metric = Metric(2.0, "1/s", low=3.0, high=4.0, n=5)
    made = replace(result, metrics={**result.metrics, "write_lat_ns_mean": metric})
    assert [one.rule for one in wrong(made)] == ["intervals"]


def test_a_verdict_better_than_its_worst_check_is_found() -> None:
    result = RESULTS[0]
    other = next(level for level in VerdictLevel if level is not result.verdict.level)
    made = replace(result, verdict=replace(result.verdict, level=other))
    assert [one.rule for one in wrong(made)] == ["verdict"]


def test_results_of_points_that_are_not_known_are_left_out() -> None:
    assert audit_session(RESULTS, {}) == ()
