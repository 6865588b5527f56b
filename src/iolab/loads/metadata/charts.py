"""A metadata workload on the page: its card, its summary over iterations, its charts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from iolab.core.metric import Level, Result
from iolab.core.workload import Workload
from iolab.loads.metadata.metrics import (
    FILE_OPERATIONS,
    OperationStatistics,
    PointStatistics,
    point_statistics,
)
from iolab.loads.metadata.report import (
    NAMES,
    RATE_NOTE,
    iterations_told,
    operations_distribution,
    point_name,
    rate_text,
    rates_figure,
    summary_table,
)
from iolab.loads.metadata.workload import MetadataJob, Operation
from iolab.report.brief import Brief
from iolab.report.charts.chart import Figure
from iolab.report.charts.choose import Look
from iolab.report.numbers import show
from iolab.report.page_parts import Card, ChartGroup, Entry
from iolab.report.series import DetailKey

_HEADLINE: Final = Operation.FILE_CREATE
"""The operation that a card shows large."""


def operation_cards(
    brief: Brief, looks: Mapping[str, Look], anchors: Mapping[DetailKey, str]
) -> tuple[Card, ...]:
    """A card for each metadata workload: the mean rate of creates, and what goes with it."""
    cards = []
    for workload in brief.study.workloads:
        results = [result for result in brief.results if result.workload == workload.id]
        if isinstance(workload.job, MetadataJob) and results:
            points = point_statistics(results)
            entries = (
                _entry(point, brief, looks, anchors, _siblings(point, points))
                for point in best_points(points)
            )
            cards.append(Card(workload.title, tuple(entries)))
    return tuple(cards)


def best_points(points: Sequence[PointStatistics]) -> tuple[PointStatistics, ...]:
    """Of each configuration the point that creates most, of those that are not invalid if any."""
    found: dict[tuple[str, tuple[str, ...]], PointStatistics] = {}
    for point in points:
        key = (point.configuration, point.without)
        if key not in found or _goodness(point) > _goodness(found[key]):
            found[key] = point
    return tuple(found.values())


def _siblings(point: PointStatistics, points: Sequence[PointStatistics]) -> int:
    """How many points there are of the same configuration and hosts."""
    key = (point.configuration, point.without)
    return sum(1 for other in points if (other.configuration, other.without) == key)


def _goodness(point: PointStatistics) -> tuple[bool, float]:
    create = next((one for one in point.operations if one.operation is _HEADLINE), None)
    return (False, -1.0) if create is None else (create.level is not Level.INVALID, create.mean)


def _entry(
    point: PointStatistics,
    brief: Brief,
    looks: Mapping[str, Look],
    anchors: Mapping[DetailKey, str],
    point_count: int,
) -> Entry:
    name, colour = point_name(point, brief.study), looks[point.configuration].token.css
    by_operation = {one.operation: one for one in point.operations}
    create = by_operation.get(_HEADLINE)
    if create is None:
        return Entry(name, colour, "not measured", "", None, None, ())
    others = [by_operation[op] for op in FILE_OPERATIONS[1:] if op in by_operation]
    rows = [(f"{NAMES[one.operation].lower()}", _rate(one)) for one in others]
    if create.latencies["p99"].value is not None:
        rows.append(("file create p99", show(create.latencies["p99"])))
    if create.std_dev is not None:
        rows.append(("std dev of creates", f"{rate_text(create.std_dev)} ops/s"))
    rows.append(("mean of", iterations_told(point)))
    if point_count > 1:
        rows.append(("points", f"the best of {point_count}"))
    anchor = anchors.get((create.shown.digest, create.shown.repeat))
    return Entry(
        name, colour, rate_text(create.mean), "creates/s", create.level, anchor, tuple(rows)
    )


def _rate(one: OperationStatistics) -> str:
    return f"{rate_text(one.mean)} ops/s"


def operation_charts(
    brief: Brief,
    workload: Workload,
    results: Sequence[Result],
    looks: Mapping[str, Look],
    anchors: Mapping[DetailKey, str],
) -> list[ChartGroup]:
    """The workload's summary, rates of every iteration, and latencies of the median one."""
    points = [point for point in point_statistics(results) if point.operations]
    if not points:
        return []
    figures: list[Figure] = [rates_figure(workload.title, points, brief.study, looks)]
    for point in best_points(points):
        shown = next(
            (one for one in point.operations if one.operation is _HEADLINE), point.operations[0]
        ).shown
        detail = brief.details.get((shown.digest, shown.repeat))
        if detail is None:
            continue
        name = point_name(point, brief.study)
        title = f"Latency by percentile{f', {name}' if name else ''}"
        curves = operations_distribution(workload.title, title, detail)
        figures += [curves] if curves else []
    table = summary_table(points, brief.study, anchors)
    told = "; ".join(dict.fromkeys(iterations_told(point) for point in points))
    return [ChartGroup(workload.title, tuple(figures), table, f"{told}. {RATE_NOTE}")]
