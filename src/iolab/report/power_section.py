"""Charts of power and wear: rate against watts, and each drive's bytes by layer as one bar."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from iolab.core.metric import DriveWear, Metric, RunResult
from iolab.core.power import NODE_POWER_METRIC, OPERATIONS_PER_JOULE
from iolab.report.charts.chart import (
    Chart,
    ChartGroup,
    ReportSection,
    charts_filling_page_width,
    notes_on_error_bars,
    notes_on_marks_of_not_valid_points,
)
from iolab.report.charts.palette import MUTED
from iolab.report.charts.rows import (
    LabelledPoint,
    StackedBar,
    StackedBarPart,
    labelled_points_plot,
    legend_and_stacked_bar_plots,
)
from iolab.report.drives import drive_wear_table
from iolab.report.numbers import (
    DASH,
    axis_values_text,
    interval_and_runs_text,
    metric_value_text,
)
from iolab.report.phrases import id_by_configuration_if_several, run_with_configuration_text
from iolab.report.table import Table, row_of_cells, text_and_number_columns
from iolab.text import capitalised, counted_noun, escape_invisible, list_text
from iolab.units import format_bytes, significant_digits_text

if TYPE_CHECKING:
    from iolab.analysis.points import PointSummary
    from iolab.core.workload import Workload
    from iolab.report.brief import Brief

POINTS_MAX: Final = 16
"""Points of one chart; more names have no room, and stand in the table."""

BARS_MAX: Final = 12

LAYERS: Final = (
    ("application", 1.0),
    ("engine", 0.6),
    ("above the drive", 0.44),
    ("flash", 0.28),
)
"""What wrote, or wrote more, with its shade: short names fit a phone. Only engines with a log and
compaction have a second."""

ENGINE_LAYER: Final = 1

_POWER_INTRODUCTION: Final = (
    "Watts are those of all machines that carry the target, at their inputs. Up and to the left is "
    "more for less."
)
_BYTES_BY_LAYER_INTRODUCTION: Final = (
    "What the load wrote, what an engine's log and compaction, file system and block layer added, "
    "and what the drive's flash wrote beyond that, by the counters of each layer."
)


def power_section(brief: Brief) -> ReportSection | None:
    """Rate against watts of each workload; None where no workload has two points with power."""
    figures = [
        figure
        for workload in brief.study.workloads
        if (figure := _rate_against_watts_chart(brief, workload)) is not None
    ]
    if not figures:
        return None
    group = ChartGroup("Rate against watts", charts_filling_page_width(figures))
    return ReportSection("power", "Power", _POWER_INTRODUCTION, (group,), in_appendix=False)


def _rate_against_watts_chart(brief: Brief, workload: Workload) -> Chart | None:
    rate_key = workload.rate_metric
    rated = [
        point
        for point in brief.points
        if point.key.workload == workload.id
        and point.is_trusted
        and point.metric_value(NODE_POWER_METRIC)
        and point.metric_value(rate_key)
        and point.metric_value(OPERATIONS_PER_JOULE)
    ]
    if len(rated) < 2:
        return None
    several = len({point.key.configuration for point in rated}) > 1
    drawn = sorted(rated, key=_operations_per_joule, reverse=True)[:POINTS_MAX]
    plot = labelled_points_plot(
        [
            LabelledPoint(
                _configuration_and_axis_text(brief, point, with_configuration=several),
                brief.series_styles[point.key.configuration].color,
                point.metrics[NODE_POWER_METRIC],
                point.metrics[rate_key],
                point.verdict_level,
            )
            for point in drawn
        ]
    )
    notes = notes_on_marks_of_not_valid_points({point.verdict_level for point in drawn})
    notes += notes_on_error_bars(
        point.metrics[key] for point in drawn for key in (NODE_POWER_METRIC, rate_key)
    )
    if len(drawn) < len(rated):
        notes.append(f"The {len(drawn)} with most operations a joule; the table has all.")
    return Chart(
        subject="Power",
        title=f"{workload.title} against watts",
        finding=_efficiency_sentence(brief, rated),
        note=" ".join(notes),
        plots=(plot,),
        table=_power_points_table(brief, rated, rate_key),
        has_configuration_colors=True,
    )


def _operations_per_joule(point: PointSummary) -> float:
    return point.metric_value(OPERATIONS_PER_JOULE) or 0.0


def _configuration_and_axis_text(
    brief: Brief, point: PointSummary, *, with_configuration: bool
) -> str:
    axis = axis_values_text(point.key.axis_values)
    label = brief.series_styles[point.key.configuration].label
    return f"{label} {axis}".strip() if with_configuration or not axis else axis


def _efficiency_sentence(brief: Brief, points: Sequence[PointSummary]) -> str:
    """Which point does most with a joule."""
    best = max(points, key=_operations_per_joule)
    title = escape_invisible(brief.series_styles[best.key.configuration].title)
    place = axis_values_text(best.key.axis_values)
    efficiency = metric_value_text(best.metrics.get(OPERATIONS_PER_JOULE))
    watts = metric_value_text(best.metrics[NODE_POWER_METRIC])
    who = f"{title} at {place}" if place else title
    return f"{who} does most with a joule: {efficiency} at {watts}."


def _power_points_table(brief: Brief, points: Sequence[PointSummary], rate_key: str) -> Table:
    keys = (rate_key, NODE_POWER_METRIC, OPERATIONS_PER_JOULE, "node_j_per_gb")
    has_measured_load = any(point.key.axis_values for point in points)
    texts = ("Configuration", "Load") if has_measured_load else ("Configuration",)
    rows = tuple(
        row_of_cells(
            brief.series_styles[point.key.configuration].title,
            *((axis_values_text(point.key.axis_values),) if has_measured_load else ()),
            *(metric_value_text(point.metrics.get(key)) for key in keys),
            interval_and_runs_text(point.metrics.get(OPERATIONS_PER_JOULE)) or DASH,
        )
        for point in points
    )
    numbers = ("Rate", "Power", "Ops/J", "J/GB", "95 % of ops/J")
    return Table("Power", text_and_number_columns(texts, numbers), rows)


def bytes_by_layer_section(brief: Brief) -> ReportSection | None:
    """The bytes by layer of the drives whose flash's share is known; None without one."""
    known = list(_drives_with_known_layers(brief.results))
    if not known:
        return None
    drawn = known[:BARS_MAX]
    table = drive_wear_table([result for result, _ in known], does_omit_unknown_amplification=True)
    has_engine = any(wear.engine_bytes is not None for _, wear in drawn)
    legend = [
        (layer, StackedBarPart(0.0, MUTED, opacity=shade))
        for number, (layer, shade) in enumerate(LAYERS)
        if has_engine or number != ENGINE_LAYER
    ]
    left_out = len(known) - len(drawn)
    figure = Chart(
        subject="Writes",
        title="From the application to the flash",
        finding=f"{capitalised(list_text([_bytes_by_layer_text(wear) for _, wear in drawn], 4))}.",
        note=f"{counted_noun(left_out, 'drive')} more in the table." if left_out else "",
        plots=legend_and_stacked_bar_plots(
            [_bytes_by_layer_bar(brief, *each) for each in drawn], legend
        ),
        table=table or Table("Drives", (), ()),
        has_configuration_colors=True,
    )
    group = ChartGroup("Bytes by layer", charts_filling_page_width((figure,)))
    return ReportSection(
        "bytes-by-layer", "Bytes down to the flash", _BYTES_BY_LAYER_INTRODUCTION, (group,)
    )


def _drives_with_known_layers(
    results: Sequence[RunResult],
) -> Iterator[tuple[RunResult, DriveWear]]:
    for result in results:
        for wear in result.drives:
            if wear.write_amplification is not None and wear.media_bytes is not None:
                yield result, wear


def _bytes_by_layer_bar(brief: Brief, result: RunResult, wear: DriveWear) -> StackedBar:
    """Each layer's own part; where a lower one wrote less than the one above, none is left."""
    color = brief.series_styles[result.configuration].color
    media = _rounded_value_or_zero(wear.media_bytes)
    application = wear.block_bytes if wear.application_bytes is None else wear.application_bytes
    engine = application if wear.engine_bytes is None else wear.engine_bytes
    pieces, reached = [], 0
    for (_, shade), amount in zip(
        LAYERS, (application, engine, wear.block_bytes, media), strict=True
    ):
        part = max(min(amount, media) - reached, 0)
        reached += part
        pieces.append(StackedBarPart(float(part), color, format_bytes(part), shade))
    titles = id_by_configuration_if_several(brief.results)
    run = run_with_configuration_text(result, titles)
    heading = f"{run}: {wear.host} {wear.device}"
    return StackedBar(tuple(pieces), escape_invisible(heading), total=format_bytes(media))


def _bytes_by_layer_text(wear: DriveWear) -> str:
    amplification = wear.write_amplification
    factor = significant_digits_text((amplification and amplification.value) or 0.0)
    above = format_bytes(wear.block_bytes)
    flash = format_bytes(_rounded_value_or_zero(wear.media_bytes))
    text = f"the flash of {wear.device} wrote {flash} for {above}, {factor} times as much"
    return escape_invisible(text)


def _rounded_value_or_zero(metric: Metric | None) -> int:
    return round((metric and metric.value) or 0.0)
