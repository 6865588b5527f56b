"""A metadata workload on the page: its best rates, its summary over iterations, its charts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from iolab.core.metric import Level, Metric, Result
from iolab.core.workload import Workload
from iolab.loads.metadata.metrics import (
    FILE_OPERATIONS,
    PointStatistics,
    point_statistics,
)
from iolab.loads.metadata.tables import (
    NAMES,
    RATE_NOTE,
    iterations_told,
    operations_distribution,
    point_name,
    rates_figure,
    summary_table,
)
from iolab.loads.metadata.workload import MetadataJob, Operation
from iolab.report.best import reason_of
from iolab.report.brief import Brief
from iolab.report.charts.chart import Figure
from iolab.report.charts.choose import ConfigurationStyle
from iolab.report.charts.series import DetailKey
from iolab.report.kinds import BestFigure, ChartGroup, Measurements
from iolab.report.numbers import axis_label, show

_HEADLINE: Final = Operation.FILE_CREATE
"""The operation by which the best point is chosen."""


def operation_figures(told: Measurements) -> tuple[BestFigure, ...]:
    """Of each workload the mean rate of each operation on files, where most files were made."""
    found: list[tuple[Operation, BestFigure]] = []
    for workload in told.study.workloads:
        results = [result for result in told.results if result.workload == workload.id]
        if isinstance(workload.job, MetadataJob) and results:
            for point in best_points(point_statistics(results)):
                own = next((one for one in told.points if one.digest == point.digest), None)
                found += _figures_of(workload, point, own.metrics if own else {})
    order = {operation: number for number, operation in enumerate(FILE_OPERATIONS)}
    return tuple(one for _, one in sorted(found, key=lambda pair: order[pair[0]]))


def _figures_of(
    workload: Workload, point: PointStatistics, told: Mapping[str, Metric]
) -> Iterator[tuple[Operation, BestFigure]]:
    """Each operation on files; `told` are the metrics of all its repeats together."""
    places = [
        axis_label(point.axis),
        f"without {', '.join(point.without)}" if point.without else "",
    ]
    for one in point.operations:
        if one.operation not in FILE_OPERATIONS:
            continue
        known = (("mean", one.latencies.get("mean")), ("p99", one.latencies.get("p99")))
        yield (
            one.operation,
            BestFigure(
                workload=f"{workload.id} {one.operation.key}",
                title=f"{workload.title}: {NAMES[one.operation].lower()}",
                configuration=point.configuration,
                value=told.get(one.metric) or Metric(one.mean, "ops/s", n=one.n),
                latencies=tuple((n, show(m)) for n, m in known if m and m.value is not None),
                at=", ".join(filter(None, places)),
                level=one.level,
                run=(one.shown.digest, one.shown.repeat),
                reason=reason_of((one.shown, *point.results), one.level),
            ),
        )


def best_points(points: Sequence[PointStatistics]) -> tuple[PointStatistics, ...]:
    """Of each configuration the point that creates most, of those that are not invalid if any."""
    found: dict[tuple[str, tuple[str, ...]], PointStatistics] = {}
    for point in points:
        key = (point.configuration, point.without)
        if key not in found or _goodness(point) > _goodness(found[key]):
            found[key] = point
    return tuple(found.values())


def _goodness(point: PointStatistics) -> tuple[bool, float]:
    create = next((one for one in point.operations if one.operation is _HEADLINE), None)
    return (False, -1.0) if create is None else (create.level is not Level.INVALID, create.mean)


def operation_charts(
    brief: Brief,
    workload: Workload,
    results: Sequence[Result],
    looks: Mapping[str, ConfigurationStyle],
    anchors: Mapping[DetailKey, str],
) -> list[ChartGroup]:
    """The workload's summary, rates of every iteration, and latencies of the median one."""
    points = [point for point in point_statistics(results) if point.operations]
    if not points:
        return []
    figures = (rates_figure(workload.title, points, brief.study, looks),)
    further: list[Figure] = []
    for point in best_points(points):
        shown = next(
            (one for one in point.operations if one.operation is _HEADLINE), point.operations[0]
        ).shown
        detail = brief.details.get((shown.digest, shown.repeat))
        if detail is None:
            continue
        name = point_name(point, brief.study)
        # The curves are of one iteration, the table's latencies of each operation's own median.
        title = f"Latency by percentile{f', {name}' if name else ''}, iteration {shown.repeat}"
        tails = {NAMES[one.operation]: one.tail for one in point.operations}
        curves = operations_distribution(workload.title, title, detail, tails)
        further += [curves] if curves else []
    table = summary_table(points, brief.study, anchors)
    told = "; ".join(dict.fromkeys(iterations_told(point) for point in points))
    note = f"{told}. {RATE_NOTE}"
    return [ChartGroup(workload.title, figures, table, note, further=tuple(further))]
