"""A latency of reads and writes together is named as one."""

from __future__ import annotations

from iolab.analysis.comparison import compare_sides
from iolab.analysis.differences import ComparisonSide
from iolab.report.comparison import compared_operations_text, comparison_markdown
from tests.report import shared


def test_a_latency_of_reads_and_writes_says_so() -> None:
    brief = shared.brief("sweep")
    places = {(run.point.workload, run.point.axis): run.point for run in brief.plan.runs}
    one, other = (
        ComparisonSide(
            name=name,
            session=name,
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
    compared = compare_sides(one, other, metrics=["lat_ns_mean", "iops"])
    named = {
        (row.workload, row.metric): compared_operations_text(compared, row) for row in compared.rows
    }
    assert named["rand-70-30-4k", "lat_ns_mean"]
    assert not named["rand-70-30-4k", "iops"]
    assert not named["rand-read-4k", "lat_ns_mean"]
    assert named["rand-70-30-4k", "lat_ns_mean"] in comparison_markdown(compared)
