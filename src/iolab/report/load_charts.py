"""Rate and latency over the load, and latency by percentile, as charts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from iolab.analysis.curves import LoadCurve, findings
from iolab.analysis.findings import bends
from iolab.analysis.points import Axis
from iolab.core.workload import Workload
from iolab.report.best import headlines_of
from iolab.report.brief import Charts
from iolab.report.charts.chart import ChartGroup
from iolab.report.charts.choose import axis_figures, workload_distribution

if TYPE_CHECKING:
    from iolab.report.brief import Brief


def load_charts(brief: Brief, workloads: Sequence[Workload]) -> Charts:
    """Of each of these workloads rate and latency over the load, and latency by percentile."""
    knees = {
        (one.workload, one.configuration, one.fixed): one.load
        for one in bends(brief.study, brief.points)
    }
    curves = findings(brief.study, brief.results).curves
    return {workload.id: list(_charts(brief, workload, curves, knees)) for workload in workloads}


def _charts(
    brief: Brief,
    workload: Workload,
    curves: Sequence[LoadCurve],
    knees: Mapping[tuple[str, str, Axis], int],
) -> Iterator[ChartGroup]:
    """Rate and latency over the load; apart from these, latency by percentile."""
    own = [point for point in brief.points if point.key.workload == workload.id]
    best = headlines_of(brief.study, own, (type(workload.job),))
    best = tuple(one for one in best if one.workload is workload)
    mine = {(who, fixed): at for (what, who, fixed), at in knees.items() if what == workload.id}
    figures, others = axis_figures(workload, own, brief.looks, curves, mine)
    results = [result for result in brief.results if result.workload == workload.id]
    by_percentile = workload_distribution(workload, best, results, brief.details, brief.looks)
    further = (*others, *by_percentile)
    if figures or further:
        yield ChartGroup(workload.title, tuple(figures), further=further)
