"""Latency against performance: a line a configuration through its loads in their order.

Down and to the right is better. A line that turns back tells of more load for less performance.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from iolab.analysis.points import PointSummary
from iolab.core.configuration import LatencyLimit
from iolab.core.metric_spec import metric_spec
from iolab.report.best import UNKNOWN_METRIC
from iolab.report.charts.chart import (
    Chart,
    LineEndLabel,
    LineSegments,
    Mark,
    Markers,
    MarkerStyle,
    MarkTooltip,
    Plot,
    TextMark,
    notes_on_error_bars,
    notes_on_marks_of_not_valid_points,
)
from iolab.report.charts.lines import (
    PANEL_GAP,
    PANEL_HEIGHT,
    ChartLine,
    ChartQuantity,
    best_lines_that_fit_chart,
    connecting_line_marks,
    interval_in_scale_unit,
    lines_with_short_names_and_common_part,
    markers_with_intervals,
    notes_on_hidden_lines,
    point_axis_value,
    quantities_table,
    shared_or_worst_verdict_text,
)
from iolab.report.charts.palette import MUTED
from iolab.report.charts.scale import Scale, linear_scale, log_scale, value_axis_of_scale
from iolab.report.numbers import axis_name_text, value_text
from iolab.report.phrases import metric_phrase
from iolab.text import capitalised, escape_invisible, list_text

HEIGHT: Final = 2 * PANEL_HEIGHT + PANEL_GAP

_DASHES: Final = ((), (4, 3))


class TradeoffPoint(NamedTuple):
    """A point of a line; `load_text` is its load as the study writes it."""

    load_text: str
    rate: float
    latency: float
    point: PointSummary


def latency_tradeoff_chart(
    subject: str,
    axis_name: str,
    lines: Sequence[ChartLine],
    rate_quantity: ChartQuantity,
    latencies: Sequence[ChartQuantity],
    *,
    note: str = "",
    latency_limit: LatencyLimit | None = None,
) -> Chart:
    """Up to two latencies (the second dashed) against `rate_quantity`, over the loads of an axis.

    The knees of the lines are named, and of a `latency_limit` on one of the latencies the most that
    stays under it. `note` is what else to know.
    """
    drawn, common = lines_with_short_names_and_common_part(
        best_lines_that_fit_chart(lines, rate_quantity.key)
    )
    keys = [latency.key for latency in latencies]
    placed = {
        (index, key): points_along_line(line, axis_name, rate_quantity.key, key)
        for index, line in enumerate(drawn)
        for key in keys
    }
    every = [place for places in placed.values() for place in places]
    unit = metric_spec(rate_quantity.key).unit
    x_scale = linear_scale(unit, [rate for _, rate, _, _ in every], tick_count=3)
    held = latency_limit if latency_limit is not None and latency_limit.metric in keys else None
    heights = [*_latencies_and_interval_ends(every, keys), *([held.latency_ns] if held else [])]
    scales = x_scale, log_scale("ns", heights, max_ticks=6)
    marks: list[Mark] = []
    if held:
        level = scales[1].to_scale_unit(held.latency_ns)
        across = [(None, level, None, level)]
        marks.append(LineSegments(color=MUTED, segments=across, dash=(1, 3), width=1.2))
    ends: list[LineEndLabel] = []
    for (index, key), places in placed.items():
        line, latency = drawn[index], latencies[keys.index(key)]
        if not places:
            continue
        dash = _DASHES[keys.index(key)]
        alone = len(drawn) == 1
        name = latency.label if alone else f"{line.full_name}, {latency.label}"
        marks += _line_marks(places, line, key, dash, name, scales)
        marks += _knee_and_limit_marks(places, line, key, held, scales)
        label = latency.label if alone or dash else line.name
        ends.append(LineEndLabel(label, scales[1].to_scale_unit(places[-1][2]), line.color))
    return Chart(
        subject=subject,
        title=f"{capitalised(list_text(latency.name for latency in latencies))} against "
        f"{_lower_unless_abbreviation(rate_quantity.name)}{f', {common}' if common else ''}",
        finding=_tradeoff_sentence(drawn, axis_name, placed, latencies[-1], unit),
        note=" ".join(
            [
                f"Points are joined in the order of {axis_name_text(axis_name)}.",
                *([f"Dashed: {latencies[1].label}."] if len(latencies) > 1 else []),
                *notes_on_marks_of_not_valid_points({point.verdict_level for *_, point in every}),
                *_notes_on_error_bars(every, keys),
                *_knee_and_limit_legend(drawn, held),
                *notes_on_hidden_lines(lines, drawn),
                *([note] if note else []),
            ]
        ),
        plots=(Plot(HEIGHT, marks, value_axis_of_scale(x_scale), scales[1], ends),),
        table=quantities_table(subject, axis_name, lines, (rate_quantity, *latencies)),
        has_configuration_colors=True,
    )


def _lower_unless_abbreviation(name: str) -> str:
    """A quantity within a heading: an abbreviation stays one."""
    return name if name.isupper() else name.lower()


def points_along_line(
    line: ChartLine, axis_name: str, rate_key: str, latency_key: str
) -> list[TradeoffPoint]:
    """The line's points that have both, in the order of the load."""
    ordered = []
    for point in line.points:
        at = point_axis_value(point, axis_name)
        x, y = (point.metrics.get(key, UNKNOWN_METRIC).value for key in (rate_key, latency_key))
        if at is not None and x is not None and y is not None:
            ordered.append(
                (at, TradeoffPoint(str(dict(point.key.axis_values)[axis_name]), x, y, point))
            )
    return [place for _, place in sorted(ordered, key=lambda pair: pair[0])]


def _line_marks(
    line_points: Sequence[TradeoffPoint],
    line: ChartLine,
    metric_key: str,
    dash: tuple[int, ...],
    name: str,
    scales: tuple[Scale, Scale],
) -> list[Mark]:
    """The line through the points, intervals, and markers by verdict."""
    places = [
        (scales[0].to_scale_unit(rate), scales[1].to_scale_unit(latency))
        for _, rate, latency, _ in line_points
    ]
    ends = [
        interval_in_scale_unit(
            point.metrics.get(metric_key, UNKNOWN_METRIC).displayable_interval, scales[1]
        )
        for *_, point in line_points
    ]
    levels = [point.verdict_level for *_, point in line_points]
    tip = MarkTooltip(name, ends, texts=[text for text, *_ in line_points])
    return [
        *connecting_line_marks(line.color, places, levels, dash),
        *markers_with_intervals(line.color, places, levels, tip),
    ]


def _knee_and_limit_marks(
    line_points: Sequence[TradeoffPoint],
    line: ChartLine,
    metric_key: str,
    latency_limit: LatencyLimit | None,
    scales: tuple[Scale, Scale],
) -> Iterator[Mark]:
    """A ring with its name around the knee, and around the most that stays under a limit."""
    remarks: dict[int, list[str]] = {}
    for index, place in enumerate(line_points):
        if line.knee is not None and place[0] == str(line.knee):
            remarks.setdefault(index, []).append(f"knee at {place[0]}")
    under = [
        index
        for index, place in enumerate(line_points)
        if latency_limit
        and metric_key == latency_limit.metric
        and place[2] <= latency_limit.latency_ns
    ]
    if under and len(under) < len(line_points):
        most = max(under, key=lambda index: line_points[index][1])
        remarks.setdefault(most, []).append("limit")
    for index, names in remarks.items():
        _, rate, latency, _ = line_points[index]
        at = scales[0].to_scale_unit(rate), scales[1].to_scale_unit(latency)
        ring = Markers(color=line.color, places=[at], marker_style=MarkerStyle.RING, size=190)
        yield ring
        yield TextMark(
            color=line.color,
            places=[(*at, ", ".join(names))],
            align="end",
            dx=-11,
            dy=-3,
            has_rim=True,
        )


def _knee_and_limit_legend(
    lines: Sequence[ChartLine], latency_limit: LatencyLimit | None
) -> Iterator[str]:
    if any(line.knee is not None for line in lines):
        yield "Knee: from here on more load costs more latency than it gains rate."
    if latency_limit is not None:
        name = (
            f"{metric_phrase(latency_limit.metric)} of {value_text(latency_limit.latency_ns, 'ns')}"
        )
        yield f"Dotted: the limit, {name}; ringed is the most that stays under it."


def _notes_on_error_bars(points: Sequence[TradeoffPoint], latency_keys: Sequence[str]) -> list[str]:
    metrics = (
        place[3].metrics.get(key, UNKNOWN_METRIC) for place in points for key in latency_keys
    )
    return notes_on_error_bars(metrics, "Bars: 95 % interval of the latency.")


def _latencies_and_interval_ends(
    points: Sequence[TradeoffPoint], latency_keys: Sequence[str]
) -> list[float]:
    """Everything that is drawn, so that it fits the scale."""
    values = [latency for _, _, latency, _ in points]
    for *_, point in points:
        metrics = [point.metrics.get(key, UNKNOWN_METRIC) for key in latency_keys]
        values += [v for metric in metrics for v in metric.displayable_interval or ()]
    return values


def _tradeoff_sentence(
    lines: Sequence[ChartLine],
    axis_name: str,
    points_by_line_and_metric: dict[tuple[int, str], list[TradeoffPoint]],
    latency: ChartQuantity,
    unit: str,
) -> str:
    """One sentence a line: its first and its last point."""
    sentences = []
    for index, line in enumerate(lines):
        line_places = points_by_line_and_metric[index, latency.key]
        name = f"{escape_invisible(line.name)}: " if len(lines) > 1 else ""
        if not line_places:
            sentences.append(f"{name}{'no' if name else 'No'} point has both values.")
            continue
        parts = [
            f"{value_text(rate, unit)} at {latency.label} {value_text(value, 'ns')} "
            f"({axis_name} {text})"
            for text, rate, value, _ in (line_places[0], line_places[-1])[: len(line_places)]
        ]
        trust = shared_or_worst_verdict_text([place[3].verdict_level for place in line_places])
        start = "From " if not name else "from "
        joined = f"{start}{' to '.join(parts)}" if len(parts) > 1 else parts[0]
        sentences.append(f"{name}{joined}; {trust}.")
    return " ".join(sentences)
