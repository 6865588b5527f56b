"""A latency of reads and writes together is named as one."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from iolab.analysis.comparison import compare_sides
from iolab.analysis.differences import ComparisonSide
from iolab.core.metric import Metric
from iolab.report.comparison import (
    compared_operations_suffix,
    comparison_markdown,
    comparison_sentences,
)
from iolab.stats.comparison import ComparisonVerdict
from tests.report import shared

BETTER, WORSE = ComparisonVerdict.BETTER, ComparisonVerdict.WORSE


def two_sides() -> tuple[ComparisonSide, ComparisonSide]:
    """The same results twice, as `a` and `b`."""
    brief = shared.brief("sweep")
    places = {(run.point.workload, run.point.axis_values): run.point for run in brief.plan.runs}
    one, other = (
        ComparisonSide(
            name=name,
            session_id=name,
            created_real_ns=0,
            versions={},
            study=brief.study,
            configuration=brief.study.configurations[0],
            points=places,
            facts={},
            results=brief.results,
        )
        for name in ("a", "b")
    )
    return one, other


@pytest.mark.parametrize(
    ("metric", "unit", "verdict", "told"),
    [
        ("iops", "1/s", ComparisonVerdict.BETTER, "b is 1.20 (1.10–1.30) times as fast as a"),
        ("node_ops_per_j", "ops/J", ComparisonVerdict.BETTER, "b has 1.20 (1.10–1.30) times the "),
        (
            "node_power_w",
            "W",
            ComparisonVerdict.WORSE,
            "b has 1.20 (1.10–1.30) times the node power",
        ),
    ],
)
def test_watts_are_no_speed(metric: str, unit: str, verdict: ComparisonVerdict, told: str) -> None:
    compared = compare_sides(*two_sides(), metrics=["iops"])
    row = replace(
        compared.compared_metrics[0],
        metric=metric,
        baseline=Metric(100.0, unit),
        comparison=replace(
            compared.compared_metrics[0].comparison,
            ratio=1.2,
            low=1.1,
            high=1.3,
            verdict=verdict,
        ),
    )
    (sentence,) = comparison_sentences(replace(compared, compared_metrics=(row,)))
    assert told in sentence


def test_each_later_phase_has_a_sentence_on_its_rate() -> None:
    compared = compare_sides(*two_sides(), metrics=["iops"])
    row = compared.compared_metrics[0]
    degraded = [
        replace(row, metric=f"phase.degraded.{figure}") for figure in ("iops", "longest_stall_s")
    ]
    rows = replace(compared, compared_metrics=(row, *degraded))
    first, second = comparison_sentences(rows)
    assert second == f"{first.removesuffix(')')}, phase degraded)"


def test_a_latency_of_reads_and_writes_says_so() -> None:
    compared = compare_sides(*two_sides(), metrics=["lat_ns_mean", "iops"])
    named = {
        (row.workload, row.metric): compared_operations_suffix(compared, row)
        for row in compared.compared_metrics
    }
    assert named["rand-70-30-4k", "lat_ns_mean"]
    assert not named["rand-70-30-4k", "iops"]
    assert not named["rand-read-4k", "lat_ns_mean"]
    assert named["rand-70-30-4k", "lat_ns_mean"] in comparison_markdown(compared)
