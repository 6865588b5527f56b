"""Charts of metadata load: each operation by itself, its rate in every iteration, its latencies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final

import numpy as np
from msgspec.structs import replace

from iolab.core.metric import RunResult, VerdictLevel
from iolab.core.run import RunRecord
from iolab.core.study import Study
from iolab.core.workload import Workload
from iolab.loads.metadata.iterations import (
    HEADLINE,
    OperationStatistics,
    PointStatistics,
    fastest_creating_point_per_configuration,
    statistics_of_points,
)
from iolab.loads.metadata.metrics import sum_metadata_phases
from iolab.loads.metadata.tables import (
    OPERATION_NAMES,
    iteration_and_left_out_counts_text,
    iteration_summary_table,
    mean_rate_or_dash_text,
    point_label,
    rate_text_without_unit,
    rate_window_text,
    rates_and_latencies_note,
)
from iolab.loads.metadata.workload import FILE_OPERATIONS, MetadataOperation
from iolab.report.brief import Brief, LatencyCurves
from iolab.report.charts.chart import (
    Chart,
    ChartGroup,
    LineEndLabel,
    LineSegments,
    Mark,
    Markers,
    MarkTooltip,
    Plot,
    SeriesStyles,
    TextMark,
)
from iolab.report.charts.distribution import StyledLatencyCurve, build_latency_distribution_chart
from iolab.report.charts.palette import FAINT, INK, MUTED, ColorToken, series_color_token
from iolab.report.charts.run_series import (
    distribute_over_cells,
    inverse_tail_fraction,
    latency_curve,
    operation_record,
    p99_ns_by_cell,
)
from iolab.report.charts.scale import ChartAxis, log_scale
from iolab.report.charts.series import (
    LatencyCurve,
    Panel,
    RunChartData,
    TimeGrid,
    panel_line_from_array,
)
from iolab.report.numbers import DASH
from iolab.report.table import Table, row_of_cells, text_and_number_columns
from iolab.text import capitalised, counted_noun
from iolab.units import format_count

NAME_ROOM: Final = 24
"""Units over a row's markers for the operation's name."""

LINE: Final = 15
"""Units of each point's markers in a row."""

POINTS_MAX: Final = 4
"""Points drawn in a row; the others stand in the table alone."""

HEAD: Final = 8
_AXIS: Final = "operations a second"


def operation_chart_groups(
    brief: Brief,
    workload: Workload,
    results: Sequence[RunResult],
) -> list[ChartGroup]:
    """The workload's summary, rates of every iteration, and latencies of the median one."""
    points = [point for point in statistics_of_points(results) if point.operations]
    if not points:
        return []
    # Of invalid runs alone the table has the rates, and a chart nothing to compare.
    are_usable = any(
        own.verdict_level is not VerdictLevel.INVALID
        for point in points
        for own in point.operations
    )
    figures = (
        (iteration_rates_chart(workload.title, points, brief.study, brief.series_styles),)
        if are_usable
        else ()
    )
    further: list[Chart] = []
    for point in fastest_creating_point_per_configuration(points):
        shown = next(
            (operation for operation in point.operations if operation.operation is HEADLINE),
            point.operations[0],
        ).median_result
        chart_data = brief.chart_data_by_run.get((shown.digest, shown.repeat))
        if chart_data is None:
            continue
        name = point_label(point, brief.study)
        # The curves are of one iteration, the table's latencies of each operation's own median.
        title = f"Latency by percentile{f', {name}' if name else ''}, iteration {shown.repeat}"
        tails = {
            OPERATION_NAMES[operation.operation]: operation.highest_supported_percentile
            for operation in point.operations
        }
        curves = operation_latency_distribution_chart(workload.title, title, chart_data, tails)
        further += [curves] if curves else []
    table = iteration_summary_table(points, brief.study, brief.run_anchors)
    iterations = "; ".join(
        dict.fromkeys(iteration_and_left_out_counts_text(point) for point in points)
    )
    note = f"{iterations}. {rates_and_latencies_note(table)}"
    return [ChartGroup(workload.title, figures, table, note, appendix_charts=tuple(further))]


def operation_color_token(operation: MetadataOperation) -> ColorToken:
    """The colour of an operation where lines are told apart by it."""
    return series_color_token(list(MetadataOperation).index(operation) - 1)


def iteration_rates_chart(
    subject: str,
    points: Sequence[PointStatistics],
    study: Study,
    styles: SeriesStyles,
) -> Chart:
    """The rate of every iteration, a row for each operation, and beside it the mean."""
    drawn = points[:POINTS_MAX]
    operations = [
        op
        for op in MetadataOperation
        if any(_statistics_of_operation(point, op) for point in drawn)
    ]
    step = NAME_ROOM + LINE * len(drawn)
    height = step * len(operations)
    values = [v for point in drawn for operation in point.operations for v in operation.rates]
    marks: list[Mark] = []
    ends: list[LineEndLabel] = []
    for index, operation in enumerate(operations):
        top = index * step
        marks.append(_text_mark(OPERATION_NAMES[operation], 0, top + 16, INK))
        for line, point in enumerate(drawn):
            own = _statistics_of_operation(point, operation)
            if own is not None:
                y = top + NAME_ROOM + LINE * line + LINE / 2 - 3
                color = styles[point.configuration].color
                marks += _iteration_markers(own, point, y, color)
                text = _axis_values_and_mean_rate_label(own, point, points)
                ends += [LineEndLabel(text, y, color)] if text != DASH else []
    left_out = len(points) - len(drawn)
    mean = "; beside it stands the arithmetic mean of a row, in operations a second" if ends else ""
    note = f"One marker is one iteration{mean}."
    note += f" {counted_noun(left_out, 'point')} more in the table." if left_out > 0 else ""
    return Chart(
        subject=subject,
        title="Rate of each operation",
        finding=_mean_rates_sentence(drawn, study),
        note=note,
        plots=(Plot(height, marks, _rate_axis(values), end_labels=ends, top=HEAD),),
        table=_iteration_rates_table(points, study),
        has_configuration_colors=True,
    )


def _rate_axis(rates: Sequence[float]) -> ChartAxis:
    """In plain operations a second: rates of operations share no unit that reads well."""
    scale = log_scale("ops/s", rates, max_ticks=6)
    low, high, divisor = scale.low * scale.divisor, scale.high * scale.divisor, scale.divisor
    plain = replace(scale, divisor=1.0, unit=_AXIS, low=low, high=high)
    ticks = tuple((tick * divisor, format_count(tick * divisor)) for tick in scale.ticks)
    return ChartAxis(plain, ticks, _AXIS, has_grid=True)


def _statistics_of_operation(
    point: PointStatistics, operation: MetadataOperation
) -> OperationStatistics | None:
    return next(
        (statistics for statistics in point.operations if statistics.operation is operation), None
    )


def _iteration_markers(
    statistics: OperationStatistics, point: PointStatistics, y: float, color: ColorToken
) -> list[Mark]:
    """A guide and a marker for each iteration, by its verdict."""
    marks: list[Mark] = [LineSegments(color=FAINT, segments=[(None, y, None, y)], width=1)]
    rates = [
        (value, level) for value, level in _rates_and_verdict_levels(statistics, point) if value > 0
    ]
    if rates:
        places = [(value, y) for value, _ in rates]
        levels = [level for _, level in rates]
        tip = MarkTooltip(OPERATION_NAMES[statistics.operation])
        marks.append(Markers(color=color, places=places, verdict_levels=levels, tip=tip))
    return marks


def _axis_values_and_mean_rate_label(
    statistics: OperationStatistics, point: PointStatistics, points: Sequence[PointStatistics]
) -> str:
    """The mean, before it what tells the points of a configuration apart; none where invalid."""
    several = len({other.axis_values for other in points}) > 1
    values = " ".join(str(value) for _, value in point.axis_values)
    mean = mean_rate_or_dash_text(statistics)
    return f"{values}: {mean}" if several else mean


def _rates_and_verdict_levels(
    statistics: OperationStatistics, point: PointStatistics
) -> list[tuple[float, VerdictLevel]]:
    """(rate, verdict) of each iteration."""
    return [
        (value, result.verdict.level)
        for result in point.results
        if (value := result.metrics[statistics.rate_key].value) is not None
    ]


def _text_mark(text: str, x: float, y: float, color: ColorToken) -> Mark:
    return TextMark(color=color, places=[(x, y, text)], is_fixed=True)


def _mean_rates_sentence(points: Sequence[PointStatistics], study: Study) -> str:
    """The mean of every operation; of several points that of creates; with the worst verdict.

    Operations that are invalid have none.
    """
    sentences = []
    for point in points:
        name = point_label(point, study)
        own = [
            operation
            for operation in point.operations
            if len(points) == 1 or operation.operation is MetadataOperation.FILE_CREATE
        ]
        means = [
            f"{OPERATION_NAMES[statistics.operation].lower()} {mean_rate_or_dash_text(statistics)}"
            for statistics in own
            if statistics.verdict_level is not VerdictLevel.INVALID
        ]
        worst = max(
            (operation.verdict_level for operation in point.operations),
            key=lambda level: level.rank,
        )
        text = f"arithmetic mean of operations a second: {', '.join(means)}; "
        text = f"{text if means else 'no mean: '}at worst {worst.value}."
        sentences.append(f"{name}: {text}" if name else capitalised(text))
    return " ".join(sentences)


def _iteration_rates_table(points: Sequence[PointStatistics], study: Study) -> Table:
    heads = text_and_number_columns(
        ("Operation", "Point", "Rate over"), ("Repeat", "Operations/s"), ("Verdict",)
    )
    rows = tuple(
        row_of_cells(
            OPERATION_NAMES[operation.operation],
            point_label(point, study) or DASH,
            rate_window_text(operation),
            str(result.repeat),
            rate_text_without_unit(result.metrics[operation.rate_key].value),
            result.verdict.level,
        )
        for point in points
        for operation in point.operations
        for result in point.results
    )
    return Table("Rate of each operation", heads, rows)


def operation_latency_distribution_chart(
    subject: str,
    title: str,
    chart_data: RunChartData,
    highest_percentiles: Mapping[str, float] = MappingProxyType({}),
) -> Chart | None:
    """One run's latency by percentile, a curve for each operation; None without any.

    `highest_percentiles` are the highest percentiles of operations that go no further, by their
    names.
    """
    tokens = {name: operation_color_token(operation) for operation, name in OPERATION_NAMES.items()}
    curves = [
        curve
        if curve.name not in highest_percentiles
        else curve.truncated_at_one_in(inverse_tail_fraction(highest_percentiles[curve.name]))
        for curve in chart_data.per_operation
    ]
    drawn = [
        StyledLatencyCurve(curve, curve.name.removeprefix("File "), tokens.get(curve.name, MUTED))
        for curve in curves
        if curve.inverse_tail_fractions
    ]
    return build_latency_distribution_chart(subject, title, drawn, "operations") if drawn else None


def file_operation_latency_curves(record: RunRecord, whole_curve_name: str) -> LatencyCurves:
    """The latencies of one run, of each operation on files."""
    phases = sum_metadata_phases(record)
    hosts = list(range(len(record.hosts)))
    curves = tuple(
        latency_curve(OPERATION_NAMES[phase.operation], phase.histogram(hosts))
        for phase in phases.file_phases
    )
    return LatencyCurves(LatencyCurve(whole_curve_name, 0, (), ()), curves, phases.span())


def operation_panels_of_run(record: RunRecord, grid: TimeGrid) -> list[Panel]:
    """Rate and p99 of each operation on files, all hosts together, while its phase ran."""
    rates, tails = [], []
    for operation in FILE_OPERATIONS:
        own = operation_record(record, operation)
        if len(own.intervals) == 0:
            continue
        ends = grid.since_start_ns(own.intervals.end_real_ns, own.intervals.host)
        begun, ended = (ends - own.intervals.span_ns).min(), ends.max()
        edges = np.clip(grid.edges_ns, begun, ended)
        seconds = np.diff(edges) / 1e9
        done = distribute_over_cells(own, grid, own.intervals.ios.astype(np.float64), operation)
        with np.errstate(divide="ignore", invalid="ignore"):
            rate = np.where(seconds > 0, done / seconds, np.nan)
        name, color = operation.key.removeprefix("file_"), operation_color_token(operation)
        rates.append(replace(panel_line_from_array(name, rate), color=color))
        tails.append(replace(panel_line_from_array(name, p99_ns_by_cell(own, grid)), color=color))
    return [
        Panel("Operations", "ops/s", tuple(rates), is_logarithmic=True),
        Panel("Latency p99", "ns", tuple(tails), is_logarithmic=True),
    ]
