"""Which charts a workload gets: rate and latency over the load, and latency by percentile."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, NamedTuple

from msgspec.structs import replace

from iolab.analysis.curves import session_load_findings
from iolab.analysis.findings import LoadCurve, knee_findings
from iolab.analysis.points import AxisValues, PointSummary
from iolab.core.metric import RunResult
from iolab.core.run import RunKey
from iolab.core.study import Study
from iolab.core.workload import Workload
from iolab.report.best import BestPointHeadline, best_point_headlines
from iolab.report.charts.chart import Chart, ChartGroup, SeriesStyles
from iolab.report.charts.distribution import (
    CURVES_MAX,
    StyledLatencyCurve,
    build_latency_distribution_chart,
)
from iolab.report.charts.lines import (
    LINES_MAX,
    MEAN,
    TAIL,
    ChartLine,
    ChartQuantity,
    latency_chart,
    quantity_chart,
    rate_and_latency_chart,
    rate_quantity,
    remaining_lines_in_groups,
)
from iolab.report.charts.palette import ColorToken
from iolab.report.charts.series import RunChartData
from iolab.report.charts.tradeoff import latency_tradeoff_chart
from iolab.report.low_load import common_lowest_load_axis_values
from iolab.report.numbers import (
    all_axis_names,
    axis_name_text,
    axis_value_as_number,
    axis_values_text,
)
from iolab.report.phrases import metric_phrase
from iolab.text import escape_invisible, list_text

if TYPE_CHECKING:
    from iolab.report.brief import Brief, Charts

DASHES: Final = ((), (6, 3), (2, 3), (8, 3, 2, 3))
"""Lines of one configuration that differ in a second parameter differ in their dash."""

_MAIN_AXES: Final = (
    *("vms_per_node", "iodepth", "numjobs", "threads", "rate_iops", "fleet_rate_iops", "rate"),
    *("bs", "filesize", "block_size", "rwmixread"),
)
"""Which parameter becomes the axis when several are varied."""

_OPACITY_MIN: Final = 0.45

Knees = Mapping[tuple[str, AxisValues], int]
"""The load from which more stops paying, by configuration and what else of the axes is held."""


def chart_groups_over_load(brief: Brief, workloads: Sequence[Workload]) -> Charts:
    """Of each of these workloads rate and latency over the load, and latency by percentile."""
    knees = {
        (bend.workload, bend.configuration, bend.fixed_axis_values): bend.load
        for bend in knee_findings(brief.study, brief.points)
    }
    curves = session_load_findings(brief.study, brief.results).curves
    return {
        workload.id: list(_workload_chart_groups(brief, workload, curves, knees))
        for workload in workloads
    }


def _workload_chart_groups(
    brief: Brief,
    workload: Workload,
    curves: Sequence[LoadCurve],
    knees: Mapping[tuple[str, str, AxisValues], int],
) -> Iterator[ChartGroup]:
    """Rate and latency over the load; apart from these, latency by percentile."""
    own = [point for point in brief.points if point.key.workload == workload.id]
    own_knees = {
        (configuration, fixed): load
        for (workload_id, configuration, fixed), load in knees.items()
        if workload_id == workload.id
    }
    figures, others = charts_over_axis(workload, own, brief.series_styles, curves, own_knees)
    results = [result for result in brief.results if result.workload == workload.id]
    best = _headlines_at_common_load(brief.study, own) or best_point_headlines(brief.study, own)
    by_percentile = latency_distribution_charts(
        workload, best, results, brief.chart_data_by_run, brief.series_styles
    )
    further = (*others, *by_percentile)
    if figures or further:
        yield ChartGroup(workload.title, tuple(figures), appendix_charts=further)


class BriefAndAppendixCharts(NamedTuple):
    """Charts of the brief, and those that its appendix has."""

    in_brief: list[Chart]
    in_appendix: list[Chart]


def charts_over_axis(
    workload: Workload,
    points: Sequence[PointSummary],
    styles: SeriesStyles,
    curves: Sequence[LoadCurve] = (),
    knees: Knees = MappingProxyType({}),
) -> BriefAndAppendixCharts:
    """Rate and latency over the load, then what is for the appendix; none for one point alone.

    That is one against the other, but of sizes and mixes, whose points are different loads and no
    curve, and the lines that the first chart has no room for.
    """
    axis = horizontal_axis_name([point.key.axis_values for point in points])
    if axis is None:
        return BriefAndAppendixCharts([], [])
    own = {
        (curve.search.configuration, curve.search.fixed_axis_values): curve
        for curve in curves
        if curve.search.workload.id == workload.id and curve.axis_name == axis
    }
    lines = chart_lines_over_axis(points, axis, styles, own, knees)
    figures, others = _load_and_tradeoff_charts(workload, axis, lines)
    for further in remaining_lines_in_groups(lines, workload.rate_metric):
        for part in _load_and_tradeoff_charts(workload, axis, further):
            others += part
    return BriefAndAppendixCharts(figures, others)


def _load_and_tradeoff_charts(
    workload: Workload, axis_name: str, lines: Sequence[ChartLine]
) -> BriefAndAppendixCharts:
    """Rate and latency over the load, and for the appendix one against the other."""
    points = [point for line in lines for point in line.points]
    has_latency = any(_has_metric_value(point, "lat_ns_mean") for point in points)
    has_measured_load = any(_has_metric_value(point, "iops") for point in points)
    rate = rate_quantity(workload.rate_metric)
    if not has_latency:
        chart = quantity_chart(workload.title, axis_name, lines, rate)
        drawn = [replace(chart, title=workload.title)] if has_measured_load else []
        return BriefAndAppendixCharts(drawn, [])
    if not has_measured_load:
        return BriefAndAppendixCharts([latency_chart(workload.title, axis_name, lines)], [])
    figures = [rate_and_latency_chart(workload.title, axis_name, lines, rate)]
    if axis_name not in workload.job.load_axes:
        return BriefAndAppendixCharts(figures, [])
    shown = (MEAN, TAIL) if len(lines) == 1 else (MEAN,)
    limit = workload.search_goal.latency_limit
    if limit is not None and limit.metric not in {quantity.key for quantity in shown}:
        name = metric_phrase(limit.metric)
        shown = (*shown[:1], ChartQuantity(limit.metric, name, name))
    tradeoff = latency_tradeoff_chart(
        workload.title, axis_name, lines, rate, shown, latency_limit=limit
    )
    return BriefAndAppendixCharts(figures, [tradeoff])


def horizontal_axis_name(axis_values_of_points: Sequence[AxisValues]) -> str | None:
    """The varied parameter to draw against; None if none has two values that are numbers."""
    varied = {}
    for name in dict.fromkeys(name for axis in axis_values_of_points for name, _ in axis):
        values = {dict(axis).get(name) for axis in axis_values_of_points}
        numbers = {axis_value_as_number(name, value) for value in values if value is not None}
        if len(numbers) > 1 and None not in numbers:
            varied[name] = len(numbers)
    ranked = sorted(
        varied, key=lambda n: _MAIN_AXES.index(n) if n in _MAIN_AXES else len(_MAIN_AXES)
    )
    return ranked[0] if ranked else None


def chart_lines_over_axis(
    points: Sequence[PointSummary],
    axis_name: str,
    styles: SeriesStyles,
    curves: Mapping[tuple[str, AxisValues], LoadCurve] = MappingProxyType({}),
    knees: Knees = MappingProxyType({}),
) -> list[ChartLine]:
    """One line for each configuration and each combination of the other parameters."""
    grouped: dict[tuple[str, AxisValues], list[PointSummary]] = {}
    order = list(styles)
    for point in sorted(points, key=lambda summary: order.index(summary.key.configuration)):
        fixed = tuple(pair for pair in point.key.axis_values if pair[0] != axis_name)
        grouped.setdefault((point.key.configuration, fixed), []).append(point)
    combinations = list(dict.fromkeys(fixed for _, fixed in grouped))
    several = len({configuration for configuration, _ in grouped}) > 1
    lines = []
    for (configuration, fixed), own in grouped.items():
        style = styles[configuration]
        dash = DASHES[combinations.index(fixed) % len(DASHES)]
        values = [str(value) for _, value in fixed]
        named = several or not fixed
        name, title = (
            " ".join([*([text] if named else []), *values]) for text in (style.label, style.title)
        )
        curve = curves.get((configuration, fixed))
        knee = curve.knee.load if curve else knees.get((configuration, fixed))
        lines.append(ChartLine(name, style.color, dash, tuple(own), curve, knee=knee, title=title))
    return lines


def latency_distribution_charts(
    workload: Workload,
    headlines: Sequence[BestPointHeadline],
    results: Sequence[RunResult],
    chart_data_by_run: Mapping[RunKey, RunChartData],
    styles: SeriesStyles,
) -> list[Chart]:
    """A workload's latency by percentile: of each point, or of several configurations a headline's.

    As many curves together as a chart has room for.
    """
    keys = {headline.best.median_run.key for headline in headlines if headline.best}
    several = len(headlines) > 1
    by_point: dict[str, RunChartData] = {}
    for result in results:
        chart_data = chart_data_by_run.get(result.key)
        if chart_data is None or not chart_data.all_operations.inverse_tail_fractions:
            continue
        if chart_data.key in keys or (not several and result.digest not in by_point):
            by_point[result.digest] = chart_data
    chosen = list(by_point.values())
    if len(chosen) < 2:
        return []
    places = {chart_data.result.axis_values for chart_data in chosen}
    drawn = [
        StyledLatencyCurve(
            curve=chart_data.all_operations,
            label=_configuration_and_load_label(
                styles[chart_data.result.configuration].label,
                chart_data.result if len(places) > 1 else None,
            )
            if several
            else _axis_values_label(chart_data.result),
            color=styles[chart_data.result.configuration].color,
            opacity=1.0
            if several
            else _OPACITY_MIN + (1 - _OPACITY_MIN) * index / (len(chosen) - 1),
            title=styles[chart_data.result.configuration].title if several else "",
        )
        for index, chart_data in enumerate(chosen)
    ]
    common = axis_values_text(places.pop()) if len(places) == 1 else ""
    title = (
        f"at {common or 'the best point'}"
        if several
        else f"by {list_text(map(axis_name_text, all_axis_names(results))) or 'point'}"
    )
    heading = f"Latency by percentile, {title}"
    if len({result.digest for result in results}) < len(results):  # elsewhere stand their means
        heading += ", of its median run" if several else ", of the first run of each"
    most = LINES_MAX if several else CURVES_MAX
    return [
        build_latency_distribution_chart(
            workload.title, heading, drawn[start : start + most], has_configuration_colors=several
        )
        for start in range(0, len(drawn), most)
    ]


def _headlines_at_common_load(
    study: Study, points: Sequence[PointSummary]
) -> tuple[BestPointHeadline, ...]:
    """Of each configuration the point at the load to compare latencies at.

    None where not all configurations have a latency there, or there is only one.
    """
    place = common_lowest_load_axis_values(points)
    owners = {point.key.configuration for point in points}
    there = [point for point in points if point.key.axis_values == place and point.is_trusted]
    if len(owners) < 2 or {point.key.configuration for point in there} != owners:
        return ()
    return best_point_headlines(study, there)


def _configuration_and_load_label(label: str, result_at_own_load: RunResult | None) -> str:
    """`a`, or `a, iodepth 4` where curves are of unlike loads."""
    if result_at_own_load is None or not result_at_own_load.axis_values:
        return label
    return f"{label}, {_axis_values_label(result_at_own_load)}"


def _axis_values_label(result: RunResult) -> str:
    """A point beside its curve: `iodepth 8`, or of several axes the values alone, for room."""
    if len(result.axis_values) > 1:
        return escape_invisible(", ".join(str(value) for _, value in result.axis_values))
    return escape_invisible(axis_values_text(result.axis_values)) or "all I/Os"


def run_latency_distribution_chart(
    subject: str, chart_data: RunChartData, color: ColorToken
) -> Chart | None:
    """One run's latency by percentile: reads, and writes dashed."""
    dashes: Sequence[tuple[int, ...]] = ((), (5, 3), (1, 3))
    curves = [curve for curve in chart_data.per_operation if curve.inverse_tail_fractions]
    drawn = [
        StyledLatencyCurve(curve, curve.name, color, 1.0, dash)
        for curve, dash in zip(curves, dashes, strict=False)
    ]
    return (
        build_latency_distribution_chart(subject, "Latency by percentile", drawn) if drawn else None
    )


def run_curve_label(result: RunResult, configuration_title: str) -> str:
    """What a run is called on a chart; `configuration_title` is empty where there is only one."""
    label = f"{configuration_title} {axis_values_text(result.axis_values[:1])}".strip()
    return escape_invisible(label) or "all I/Os"


def _has_metric_value(point: PointSummary, metric_key: str) -> bool:
    metric = point.metrics.get(metric_key)
    return metric is not None and metric.value is not None
