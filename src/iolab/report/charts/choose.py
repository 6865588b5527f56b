"""Which charts a workload gets: rate and latency over the load, and latency by percentile."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from iolab.analysis.curves import findings
from iolab.analysis.findings import LoadCurve, bends
from iolab.analysis.points import Axis, PointSummary
from iolab.core.metric import Result
from iolab.core.metric_spec import spec_of
from iolab.core.run import RunKey
from iolab.core.workload import Workload
from iolab.report.best import Headline, headlines_of
from iolab.report.charts.chart import ChartGroup, Figure, Looks
from iolab.report.charts.distribution import MAX_CURVES, DrawnCurve, distribution_figure
from iolab.report.charts.lines import (
    MAX_LINES,
    MEAN,
    TAIL,
    ChartLine,
    ChartQuantity,
    further_lines,
    latency_figure,
    load_figure,
    quantity_figure,
    rate_of,
)
from iolab.report.charts.palette import Token
from iolab.report.charts.series import RunDetail
from iolab.report.charts.tradeoff import tradeoff_figure
from iolab.report.numbers import axis_label, axis_names, axis_number, clean
from iolab.report.phrases import metric_words

if TYPE_CHECKING:
    from iolab.report.brief import Brief, Charts

DASHES: Final = ((), (6, 3), (2, 3), (8, 3, 2, 3))
"""Lines of one configuration that differ in a second parameter differ in their dash."""

_MAIN_AXES: Final = (
    *("vms_per_node", "iodepth", "numjobs", "threads", "rate_iops", "fleet_rate_iops", "rate"),
    *("bs", "filesize", "block_size", "rwmixread"),
)
"""Which parameter becomes the axis when several are varied."""

_FAINTEST: Final = 0.45

Knees = Mapping[tuple[str, Axis], int]
"""The load from which more stops paying, by configuration and what else of the axes is held."""


def load_charts(brief: Brief, workloads: Sequence[Workload]) -> Charts:
    """Of each of these workloads rate and latency over the load, and latency by percentile."""
    knees = {
        (bend.workload, bend.configuration, bend.fixed): bend.load
        for bend in bends(brief.study, brief.points)
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
    own_knees = {
        (configuration, fixed): load
        for (workload_id, configuration, fixed), load in knees.items()
        if workload_id == workload.id
    }
    figures, others = axis_figures(workload, own, brief.looks, curves, own_knees)
    results = [result for result in brief.results if result.workload == workload.id]
    best = headlines_of(brief.study, own)
    by_percentile = workload_distribution(workload, best, results, brief.details, brief.looks)
    further = (*others, *by_percentile)
    if figures or further:
        yield ChartGroup(workload.title, tuple(figures), further=further)


def axis_figures(
    workload: Workload,
    points: Sequence[PointSummary],
    looks: Looks,
    curves: Sequence[LoadCurve] = (),
    knees: Knees = MappingProxyType({}),
) -> tuple[list[Figure], list[Figure]]:
    """Rate and latency over the load, and one against the other; none for a workload of one point.

    Against sizes and mixes only the former: their points are different loads, and no curve. Of many
    lines the best stand in the first charts, and the others in further ones.
    """
    axis = main_axis([point.key.axis for point in points])
    if axis is None:
        return [], []
    own = {
        (curve.search.configuration, curve.search.fixed): curve
        for curve in curves
        if curve.search.workload.id == workload.id and curve.axis == axis
    }
    lines = _lines(points, axis, looks, own, knees)
    others = [
        figure
        for further in further_lines(lines, workload.rate)
        for figure in _line_figures(workload, axis, further)
    ]
    return _line_figures(workload, axis, lines), others


def _line_figures(workload: Workload, axis: str, lines: Sequence[ChartLine]) -> list[Figure]:
    points = [point for line in lines for point in line.points]
    has_latency = any(_known(point, "lat_ns_mean") for point in points)
    has_load = any(_known(point, "iops") for point in points)
    rate = rate_of(workload.rate)
    if not has_latency:
        title = workload.title
        return (
            [quantity_figure(title, axis, lines, rate, spec_of(rate.key).unit)] if has_load else []
        )
    if not has_load:
        return [latency_figure(workload.title, axis, lines)]
    figures = [load_figure(workload.title, axis, lines, rate)]
    if axis not in workload.job.load_axes:
        return figures
    shown = (MEAN, TAIL) if len(lines) == 1 else (MEAN,)
    limit = workload.aim.limit
    if limit is not None and limit.metric not in {quantity.key for quantity in shown}:
        name = metric_words(limit.metric)
        shown = (*shown[:1], ChartQuantity(limit.metric, name, name))
    unit = spec_of(rate.key).unit
    return [
        *figures,
        tradeoff_figure(workload.title, axis, lines, rate, unit, shown, limit=limit),
    ]


def main_axis(axes: Sequence[Axis]) -> str | None:
    """The varied parameter to draw against; None if none has two values that are numbers."""
    varied = {}
    for name in dict.fromkeys(name for axis in axes for name, _ in axis):
        values = {dict(axis).get(name) for axis in axes}
        numbers = {axis_number(name, value) for value in values if value is not None}
        if len(numbers) > 1 and None not in numbers:
            varied[name] = len(numbers)
    ranked = sorted(
        varied, key=lambda n: _MAIN_AXES.index(n) if n in _MAIN_AXES else len(_MAIN_AXES)
    )
    return ranked[0] if ranked else None


def _lines(
    points: Sequence[PointSummary],
    axis: str,
    looks: Looks,
    curves: Mapping[tuple[str, Axis], LoadCurve],
    knees: Knees,
) -> list[ChartLine]:
    """One line for each configuration and each combination of the other parameters."""
    grouped: dict[tuple[str, Axis], list[PointSummary]] = {}
    for point in points:
        fixed = tuple(pair for pair in point.key.axis if pair[0] != axis)
        grouped.setdefault((point.key.configuration, fixed), []).append(point)
    combinations = list(dict.fromkeys(fixed for _, fixed in grouped))
    several = len({configuration for configuration, _ in grouped}) > 1
    lines = []
    for (configuration, fixed), own in grouped.items():
        look = looks[configuration]
        dash = DASHES[combinations.index(fixed) % len(DASHES)]
        values = [str(value) for _, value in fixed]
        named = several or not fixed
        name, title = (
            " ".join([*([text] if named else []), *values]) for text in (look.name, look.title)
        )
        curve = curves.get((configuration, fixed))
        knee = curve.knee.load if curve else knees.get((configuration, fixed))
        lines.append(ChartLine(name, look.token, dash, tuple(own), curve, knee=knee, title=title))
    return lines


def workload_distribution(
    workload: Workload,
    headlines: Sequence[Headline],
    results: Sequence[Result],
    details: Mapping[RunKey, RunDetail],
    looks: Looks,
) -> list[Figure]:
    """A workload's latency by percentile: of one configuration each point, of several the best.

    As many curves together as a chart has room for.
    """
    keys = {headline.best.shown.key for headline in headlines if headline.best}
    several = len(headlines) > 1
    by_point: dict[str, RunDetail] = {}
    for result in results:
        detail = details.get(result.key)
        if detail is None or not detail.whole.tail:
            continue
        if detail.key in keys or (not several and result.digest not in by_point):
            by_point[result.digest] = detail
    chosen = list(by_point.values())
    if len(chosen) < 2:
        return []
    drawn = [
        DrawnCurve(
            curve=detail.whole,
            label=looks[detail.result.configuration].name
            if several
            else _axis_values(detail.result),
            token=looks[detail.result.configuration].token,
            opacity=1.0 if several else _FAINTEST + (1 - _FAINTEST) * index / (len(chosen) - 1),
            title=looks[detail.result.configuration].title if several else "",
        )
        for index, detail in enumerate(chosen)
    ]
    title = "at the best point" if several else f"by {' and '.join(axis_names(results)) or 'point'}"
    heading = f"Latency by percentile, {title}"
    most = MAX_LINES if several else MAX_CURVES
    return [
        distribution_figure(
            workload.title, heading, drawn[start : start + most], by_configuration=several
        )
        for start in range(0, len(drawn), most)
    ]


def _axis_values(result: Result) -> str:
    """A point beside its curve: `iodepth 8`, or of several axes the values alone, for room."""
    if len(result.axis) > 1:
        return clean(", ".join(str(value) for _, value in result.axis))
    return clean(axis_label(result.axis)) or "all I/Os"


def run_distribution(subject: str, detail: RunDetail, token: Token) -> Figure | None:
    """One run's latency by percentile: reads, and writes dashed."""
    dashes: Sequence[tuple[int, ...]] = ((), (5, 3), (1, 3))
    curves = [curve for curve in detail.curves if curve.tail]
    drawn = [
        DrawnCurve(curve, curve.name, token, 1.0, dash)
        for curve, dash in zip(curves, dashes, strict=False)
    ]
    return distribution_figure(subject, "Latency by percentile", drawn) if drawn else None


def curve_name(result: Result, configuration: str) -> str:
    """What a run is called on a chart; `configuration` is empty where there is only one."""
    return clean(f"{configuration} {axis_label(result.axis[:1])}") or "all I/Os"


def _known(point: PointSummary, key: str) -> bool:
    metric = point.metrics.get(key)
    return metric is not None and metric.value is not None
