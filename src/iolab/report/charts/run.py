"""The charts of one run: load and telemetry over time, latency over time, and its hosts.

Panels stand over each other on one time axis; what is outside the measured window (warm-up, and
seconds when not every host ran) is shaded. In the heat map of latency a cell is the stronger, the
more of a moment's I/Os took so long: cells of one shade are the segments of one thick line, since
as rectangles they would cost five times the bytes. Shades are shares of the run's own colour, so
that they rise in light, dark and print alike and can be told apart without seeing hues.

Hosts stand in a row from the slowest to the fastest. A fleet whose hosts are alike gives a level
row; what hangs at its left end is what to look for.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Final, NamedTuple

from msgspec.structs import replace

from iolab.core.metric import RunResult
from iolab.report.charts.chart import (
    MIDDLE,
    Chart,
    Line,
    LineEndLabel,
    LineSegments,
    Mark,
    Markers,
    MarkTooltip,
    Plot,
    Rectangles,
    TextMark,
    last_known_value,
    outside_window_shading,
    timeline_marks,
)
from iolab.report.charts.palette import INK, MUTED, PAPER, ColorToken
from iolab.report.charts.scale import (
    LEFT,
    Scale,
    integer_axis,
    linear_scale,
    log_scale,
    panel_scale,
    seconds_axis,
)
from iolab.report.charts.series import HeatMap, Panel, PanelLine, Timeline
from iolab.report.numbers import DASH, value_text
from iolab.report.table import Cell, Table, row_of_cells, text_and_number_columns
from iolab.text import excerpt, percent_text
from iolab.units import format_duration_s, format_ns

PANEL_HEIGHT: Final = 54
GAP: Final = 30
HEAD: Final = 26
PANELS_MAX: Final = 16
LINES_MAX: Final = 4
"""Labels that fit beside a panel."""
TABLE_ROWS: Final = 24
"""The table under a chart over time shows this many equal spans at most."""

_DASHES: Final = ((), (4, 3), (1.5, 2.5))


TIMELINE_TITLE: Final = "Load and telemetry over time"
HEAT_MAP_TITLE: Final = "Latency over time"

HEAT_HEIGHT: Final = 160
HEAT_HEAD: Final = 50

SHADE_STEPS: Final = (0.0, 0.003, 0.01, 0.03, 0.1, 0.3)
"""The least share of a moment's I/Os of each shade; the first is for any I/O at all."""

_OPACITY: Final = (0.13, 0.26, 0.42, 0.6, 0.8, 1.0)
_KEYS: Final = ("any", "0.3", "1", "3", "10", "30 % of the I/Os, or more")
_KEY: Final = 11.0
_KEY_WIDTH: Final = 42
_KEY_UP: Final = 40

_OVERLAP: Final = 0.4
"""Units by which bands reach into each other, so that no seam shows between them."""

_NEAR_S: Final = 0.05
"""What ends so shortly before the run does ends with it."""

STRIP_HEIGHT: Final = 120

DOTS_MAX: Final = 90
"""More dots than this touch each other on a plot of this width."""

NAME_CHARACTERS: Final = 40


def timeline_chart(
    subject: str, timeline: Timeline, color: ColorToken, operation_noun: str = "I/O"
) -> Chart:
    """The panels stacked; the run's own colour for the first line, ink and grey for the others.

    `operation_noun` is what the load consists of.
    """
    panels = timeline.panels[:PANELS_MAX]
    plots = tuple(
        _panel_plot(panel, timeline, color, HEAD + number * (PANEL_HEIGHT + GAP))
        for number, panel in enumerate(panels)
    )
    last = replace(
        plots[-1],
        x=seconds_axis(_timeline_end_s(timeline), f"seconds since the first {operation_noun}"),
    )
    return Chart(
        subject=subject,
        title=TIMELINE_TITLE,
        finding=" ".join(_panel_sentence(panel, timeline) for panel in panels[:2]),
        note=(
            f"Means over {format_duration_s(timeline.cell_s)} "
            f"(p99: of all {operation_noun}s in it). "
            "Shaded: not part of the result (warm-up, or not every host ran)."
        ),
        plots=(*plots[:-1], last),
        table=_equal_span_values_table(timeline, panels),
    )


def _timeline_end_s(timeline: Timeline) -> float:
    return timeline.at_s[-1] + timeline.cell_s / 2


def _panel_plot(panel: Panel, timeline: Timeline, color: ColorToken, top: float) -> Plot:
    values = [v for trace in panel.lines for v in trace.values if v is not None]
    scale = (
        log_scale(panel.unit, values, max_ticks=3)
        if panel.is_logarithmic
        else panel_scale(panel, values, 2)
    )
    end = _timeline_end_s(timeline)
    marks: list[Mark] = outside_window_shading(timeline.window_begin_s, timeline.window_end_s, end)
    ends = []
    for index, trace in enumerate(panel.lines[:LINES_MAX]):
        colour, dash = _trace_color_and_dash(trace, index, color)
        width = 1.2 if dash else 1.5
        line = Line(color=colour, places=(), width=width, dash=dash, tip=MarkTooltip(trace.name))
        marks += timeline_marks(timeline.at_s, trace.values, scale, line)
        last = last_known_value(trace.values)
        ends += (
            [] if last is None else [LineEndLabel(trace.name, scale.to_scale_unit(last), colour)]
        )
    return Plot(PANEL_HEIGHT, marks, seconds_axis(end), scale, ends, title=panel.title, top=top)


def _trace_color_and_dash(
    trace: PanelLine, index: int, color: ColorToken
) -> tuple[ColorToken, tuple[float, ...]]:
    """Colour and dash: a line with a colour of its own is solid."""
    if trace.color is not None:
        return trace.color, ()
    place = min(index, len(_DASHES) - 1)
    return (color, INK, MUTED)[place], _DASHES[place]


def _values_in_measured_window(trace: PanelLine, timeline: Timeline) -> list[float]:
    """The trace's known values within the measured window."""
    return [
        v
        for at, v in zip(timeline.at_s, trace.values, strict=True)
        if v is not None and timeline.window_begin_s <= at <= timeline.window_end_s
    ]


def _panel_sentence(panel: Panel, timeline: Timeline) -> str:
    """How a panel's first line behaves within the window."""
    values = _values_in_measured_window(panel.lines[0], timeline)
    if not values:
        return f"{panel.title}: nothing known in the measured window."
    name = f"{panel.title} ({panel.lines[0].name})"
    low, high = value_text(min(values), panel.unit), value_text(max(values), panel.unit)
    if panel.unit == "ns":  # a mean of means over unequal numbers of I/Os is not their mean
        return f"{name}: between {low} and {high}."
    mean = value_text(math.fsum(values) / len(values), panel.unit)
    return f"{name}: {mean} on average, between {low} and {high}."


def _equal_span_values_table(timeline: Timeline, panels: Sequence[Panel]) -> Table:
    """Every trace over equal spans of the run: its mean, of latencies the highest cell."""
    named = [(panel, trace) for panel in panels for trace in panel.lines]
    size = max(1, math.ceil(len(timeline.at_s) / TABLE_ROWS))
    highest = " (highest)" if size > 1 else ""
    heads = text_and_number_columns(
        (),
        (
            "From",
            *(
                f"{panel.title}, {trace.name}{highest if panel.unit == 'ns' else ''}"
                for panel, trace in named
            ),
        ),
    )
    rows = []
    for start in range(0, len(timeline.at_s), size):
        cells = [Cell(format_duration_s(timeline.at_s[start] - timeline.cell_s / 2))]
        for panel, trace in named:
            values = [v for v in trace.values[start : start + size] if v is not None]
            cells.append(
                Cell(
                    value_text(_mean_or_highest_of_span(values, panel), panel.unit)
                    if values
                    else DASH
                )
            )
        rows.append(tuple(cells))
    return Table(TIMELINE_TITLE, heads, tuple(rows))


def _mean_or_highest_of_span(values: Sequence[float], panel: Panel) -> float:
    """The cells of a span as one: percentiles are never averaged."""
    return max(values) if panel.unit == "ns" else math.fsum(values) / len(values)


def heat_map_chart(subject: str, heat: HeatMap, color: ColorToken) -> Chart:
    """The map in shades of the run's colour, with p50 and p99 over it."""
    scale = _latency_axis_scale(heat)
    x = seconds_axis(heat.moment_edges_s[-1], "seconds since the first I/O")
    at_s = [(a + b) / 2 for a, b in zip(heat.moment_edges_s, heat.moment_edges_s[1:], strict=False)]
    named = (("p50", heat.p50_ns, ()), ("p99", heat.p99_ns, (4, 3)))
    marks = [
        *outside_window_shading(heat.window_begin_s, heat.window_end_s, heat.moment_edges_s[-1]),
        *_heat_map_cell_marks(heat, scale, color),
        *_window_edge_marks(heat),
    ]
    ends = []
    for name, values, dash in named:
        rim = Line(color=PAPER, places=(), width=3.6, opacity=0.75)
        line = Line(color=INK, places=(), width=1.5, dash=dash, tip=MarkTooltip(name))
        marks += [
            *timeline_marks(at_s, values, scale, rim),
            *timeline_marks(at_s, values, scale, line),
        ]
        last = last_known_value(values)
        ends += [] if last is None else [LineEndLabel(name, scale.to_scale_unit(last), INK)]
    return Chart(
        subject=subject,
        title=HEAT_MAP_TITLE,
        finding=_heat_map_sentence(heat),
        note=(
            f"Each column is {format_duration_s(heat.moment_edges_s[1] - heat.moment_edges_s[0])}; "
            "the stronger a cell, the more of that column’s I/Os took so long (key above, "
            "from that share on). Lines: p50, and p99 dashed. "
            "Beyond a dotted upright: not part of the result."
        ),
        plots=(
            Plot(HEAT_HEIGHT, marks, x, scale, ends, top=HEAT_HEAD),
            _heat_map_legend_plot(color),
        ),
        table=_heat_map_table(heat),
    )


def _latency_axis_scale(heat: HeatMap) -> Scale:
    """From the first band's lower end to the last one's upper: all bands are equally high."""
    scale = log_scale("ns", [heat.latency_edges_ns[0], heat.latency_edges_ns[-1]])
    low, high = (
        scale.to_scale_unit(end) for end in (heat.latency_edges_ns[0], heat.latency_edges_ns[-1])
    )
    ticks = [tick for tick in scale.ticks if low <= tick <= high]
    middle = float(f"{math.sqrt(low * high):.3g}")
    return replace(scale, low=low, high=high, ticks=tuple(ticks) or (middle,))


def heat_map_shade_index(count: int, total: int) -> int | None:
    """Which of `SHADE_STEPS` a cell of so many of its moment's I/Os has; None for an empty one."""
    if not count:
        return None
    return max(i for i, least in enumerate(SHADE_STEPS) if count >= least * total)


class HeatMapSegment(NamedTuple):
    """Cells of one shade in one band of latency, from a moment to the one before `end_moment`."""

    band: int
    first_moment: int
    end_moment: int


def heat_map_segments_by_shade(heat: HeatMap) -> dict[int, list[HeatMapSegment]]:
    """The segments of each shade, equal cells that follow each other joined."""
    totals = [sum(row) for row in heat.counts]
    by_shade: dict[int, list[HeatMapSegment]] = {step: [] for step in range(len(SHADE_STEPS))}
    for band in range(len(heat.latency_edges_ns) - 1):
        row = [heat_map_shade_index(heat.counts[i][band], total) for i, total in enumerate(totals)]
        start = 0
        for moment in range(1, len(row) + 1):
            if moment < len(row) and row[moment] == row[start]:
                continue
            shade = row[start]
            if shade is not None:
                by_shade[shade].append(HeatMapSegment(band, start, moment))
            start = moment
    return by_shade


def _heat_map_cell_marks(heat: HeatMap, scale: Scale, color: ColorToken) -> Iterator[Mark]:
    """One mark a shade: lines as thick as a band."""
    edges = [scale.to_scale_unit(edge) for edge in heat.latency_edges_ns]
    middles = [math.sqrt(low * high) for low, high in pairwise(edges)]
    thick = HEAT_HEIGHT / len(middles) + _OVERLAP
    for shade, spans in heat_map_segments_by_shade(heat).items():
        pieces = [
            (heat.moment_edges_s[start], middles[band], heat.moment_edges_s[after], middles[band])
            for band, start, after in spans
        ]
        if pieces:
            yield LineSegments(color=color, segments=pieces, width=thick, opacity=_OPACITY[shade])


def _window_edge_marks(heat: HeatMap) -> list[Mark]:
    """Uprights where the measured window begins and ends: cells hide the shade beside it."""
    edges = [
        at
        for at in (heat.window_begin_s, heat.window_end_s)
        if 0 < at < heat.moment_edges_s[-1] - _NEAR_S
    ]
    pieces = [(at, None, at, None) for at in edges]
    return [LineSegments(color=INK, segments=pieces, width=1, dash=(1, 3))] if edges else []


def _heat_map_legend_plot(color: ColorToken) -> Plot:
    """The shades and from which share on they stand, over the plot."""
    marks: list[Mark] = []
    for index, (text, opacity) in enumerate(zip(_KEYS, _OPACITY, strict=True)):
        left = 4.0 - LEFT + index * _KEY_WIDTH
        box = (left, 0.0, left + _KEY, _KEY)
        marks.append(Rectangles(color=color, boxes=[box], opacity=opacity))
        marks.append(TextMark(color=MUTED, places=[(left + 15, _KEY / 2, text)], dy=MIDDLE))
    return Plot(_KEY, marks, top=HEAT_HEAD - _KEY_UP)


def _heat_map_sentence(heat: HeatMap) -> str:
    """Where half of the I/Os lie, and the moment with the highest p99 beside the usual one."""
    if heat.interquartile_ns is None:
        return "No I/O completed in the measured window."
    low, high = (format_ns(value) for value in heat.interquartile_ns)
    middle = f"between {low} and {high}" if low != high else low
    text = f"Half of the I/Os took {middle}."
    tails = _p99_and_start_of_window_moments(heat)
    if not tails:
        return f"{text} No moment has enough of them for a p99."
    worst, at_s = max(tails)
    usual = sorted(value for value, _ in tails)[len(tails) // 2]
    return (
        f"{text} The slowest moment, from second {at_s:.3g}, had a p99 of {format_ns(worst)}; "
        f"the middle one {format_ns(usual)}."
    )


def _p99_and_start_of_window_moments(heat: HeatMap) -> list[tuple[float, float]]:
    """(p99, begin) of each moment within the measured window."""
    return [
        (value, start)
        for value, start, end in zip(
            heat.p99_ns, heat.moment_edges_s, heat.moment_edges_s[1:], strict=False
        )
        if value is not None and heat.window_begin_s <= (start + end) / 2 <= heat.window_end_s
    ]


def _heat_map_table(heat: HeatMap) -> Table:
    """Equal spans of the run: I/Os, highest percentiles, and the band that most of them took."""
    moments = len(heat.counts)
    size = max(1, math.ceil(moments / TABLE_ROWS))
    highest = " (highest)" if size > 1 else ""
    heads = text_and_number_columns(
        (), ("From", "I/Os", f"p50{highest}", f"p99{highest}", "Most took", "Share")
    )
    rows = []
    for start in range(0, moments, size):
        bands = [sum(column) for column in zip(*heat.counts[start : start + size], strict=True)]
        total, most = sum(bands), max(bands)
        band = bands.index(most)
        low, high = (format_ns(edge) for edge in heat.latency_edges_ns[band : band + 2])
        rows.append(
            row_of_cells(
                format_duration_s(heat.moment_edges_s[start]),
                f"{total:,}",
                _highest_latency_text(heat.p50_ns[start : start + size]),
                _highest_latency_text(heat.p99_ns[start : start + size]),
                f"{low} to {high}" if total else DASH,
                percent_text(most / total) if total else DASH,
            )
        )
    return Table(HEAT_MAP_TITLE, heads, tuple(rows))


def _highest_latency_text(values: Sequence[float | None]) -> str:
    """Percentiles are never averaged."""
    measured = [value for value in values if value is not None]
    return format_ns(max(measured)) if measured else DASH


def host_rates_chart(
    subject: str, result: RunResult, metric_key: str, color: ColorToken, table: Table
) -> Chart | None:
    """The hosts' values of the metric `metric_key`; None where fewer than two have one.

    `table` is what the chart's readers without eyes get.
    """
    rates = sorted(metric_value_by_host(result, metric_key).items(), key=lambda pair: pair[1])
    if len(rates) < 2:
        return None
    unit = next(
        host.metrics[metric_key].unit for host in result.hosts if metric_key in host.metrics
    )
    values = [value for _, value in rates]
    scale = linear_scale(unit, values, tick_count=3)
    mean = sum(values) / len(values)
    (slow, least), (fast, most) = rates[0], rates[-1]
    ends = [
        LineEndLabel(slow, scale.to_scale_unit(least), INK),
        LineEndLabel(fast, scale.to_scale_unit(most), color),
        LineEndLabel("mean", scale.to_scale_unit(mean), MUTED),
    ]
    places = [(float(rank), scale.to_scale_unit(value)) for rank, value in enumerate(values, 1)]
    tip = MarkTooltip(texts=[name for name, _ in rates])
    level = scale.to_scale_unit(mean)
    marks: list[Mark] = [
        LineSegments(color=MUTED, segments=[(None, level, None, level)], width=1, dash=(4, 3)),
        Markers(color=color, places=places, size=40, tip=tip)
        if len(values) <= DOTS_MAX
        else Line(color=color, places=places, width=2, tip=tip),
    ]
    count = len(values)
    named = sorted({1, count, *(round(count * part) for part in (0.25, 0.5, 0.75))} - {0})
    x = replace(integer_axis(count + 1, "hosts, slowest first", named, low=0), has_line=False)
    return Chart(
        subject=subject,
        title="Each host's rate, from the slowest to the fastest",
        finding=(
            f"Slowest: {excerpt(slow, NAME_CHARACTERS)} with {value_text(least, unit)}. "
            f"Fastest: {excerpt(fast, NAME_CHARACTERS)} with {value_text(most, unit)}. "
            f"Mean of {len(rates)} hosts: {value_text(mean, unit)}."
        ),
        note="Rates over the window that all hosts share.",
        plots=(Plot(STRIP_HEIGHT, marks, x, scale, ends),),
        table=table,
    )


def metric_value_by_host(result: RunResult, metric_key: str) -> Mapping[str, float]:
    """The hosts' values of a metric, without those that have none."""
    return {
        host.name: metric.value
        for host in result.hosts
        if (metric := host.metrics.get(metric_key)) is not None and metric.value is not None
    }
