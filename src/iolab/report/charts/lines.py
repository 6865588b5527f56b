"""Figures against an axis: one line a configuration, one marker a point; rates also as bars.

A marker stands at the point's published value and tells the verdict by its shape: a filled circle
is valid, a hollow diamond indicative, a cross invalid. An upright through it is its 95 % interval.
Lines skip points without a value and invalid ones, which stand alone.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple

from msgspec.structs import replace

from iolab.analysis.findings import LoadCurve
from iolab.analysis.points import PointSummary
from iolab.core.metric import Metric, VerdictLevel, worst_verdict_level
from iolab.core.metric_spec import BetterDirection, metric_spec
from iolab.record import Record
from iolab.report.best import UNKNOWN_METRIC
from iolab.report.charts.chart import (
    HEAD,
    Band,
    Bars,
    Chart,
    LineEndLabel,
    LineSegments,
    Mark,
    Markers,
    MarkerStyle,
    MarkTooltip,
    Plot,
    notes_on_error_bars,
    notes_on_marks_of_not_valid_points,
    notes_on_points_without_interval,
)
from iolab.report.charts.chart import Line as LineMark
from iolab.report.charts.palette import MUTED, ColorToken
from iolab.report.charts.scale import ChartAxis, Scale, linear_scale, log_scale, parameter_axis
from iolab.report.numbers import (
    axis_name_text,
    axis_value_as_number,
    interval_and_runs_text,
    metric_value_text,
    value_text,
)
from iolab.report.phrases import load_with_interval_text, metric_phrase
from iolab.report.short_names import LABEL_CHARACTERS
from iolab.report.table import (
    Cell,
    Table,
    row_of_cells,
    select_columns,
    table_with_constants_in_title,
    text_and_number_columns,
)
from iolab.text import capitalised, distinct_parts_and_common_part, escape_invisible, list_text

HEIGHT: Final = 190
PANEL_HEIGHT: Final = 104
"""Of each of two plots over each other."""
LATENCY_TICKS_MAX: Final = 6
"""Names that stand apart beside such a plot."""
PANEL_GAP: Final = 36
"""Room for the unit over the lower one."""
LINES_MAX: Final = 6
"""More lines than this cannot be told apart: the best of them are drawn, and the others in charts
of their own (`remaining_lines_in_groups`)."""
TAILS_MAX: Final = 4
"""Of more lines than this the tails would hide the means, and stand in the table."""
BARS_MAX: Final = 40
BAR_GROUPS_MAX: Final = 8
"""Bars, and values of the axis, that have room in four columns."""
DASHED_BAR_OPACITY: Final = 0.55
"""Of the bars of lines that are dashed."""

_BAND: Final = 0.14
_KNEE_LINE_OPACITY: Final = 0.6

POINTS_TITLE: Final = "The points"
_POINT_COLUMNS: Final = 3
"""Columns that say which point it is: workload, configuration and place of the axis."""

_RATES: Final = {"iops": "IOPS", "bw_bytes_per_s": "Bandwidth", "ops_per_s": "Operations a second"}
PREDICTED: Final = "predicted"


class ChartLine(Record):
    """One series of a chart: what it is called, its colour, its dash, and its points.

    `title` is its whole name, where the one beside the line is a short one. `curve` is what is
    known of loads between the points, where the axis is one of load, and `knee` the load from which
    more stops paying. With several of `node_count` the axis counts guests of each.
    """

    name: str
    color: ColorToken
    dash: tuple[int, ...]
    points: tuple[PointSummary, ...]
    curve: LoadCurve | None = None
    node_count: int = 1
    knee: int | None = None
    title: str = ""

    @property
    def full_name(self) -> str:
        """What a pointer is told that it is."""
        return self.title or self.name


class ChartQuantity(Record):
    """One metric drawn against the axis, by its key; `label` is what stands beside its line.

    `unit` is that of a metric that no catalogue has. A reference is what the others of its plot
    are held against: a dotted line without markers.
    """

    key: str
    name: str
    label: str = ""
    unit: str = ""
    is_reference: bool = False


MEAN: Final = ChartQuantity("lat_ns_mean", "mean latency", "mean")
TAIL: Final = ChartQuantity("lat_ns_p99", "p99", "p99")


def rate_quantity(metric_key: str) -> ChartQuantity:
    """A rate by its metric's key, with its name on an axis."""
    return ChartQuantity(metric_key, _RATES.get(metric_key, metric_phrase(metric_key)))


def best_lines_that_fit_chart(lines: Sequence[ChartLine], metric_key: str) -> list[ChartLine]:
    """The lines that one chart has room for: of many those with the best values, in their order."""
    if len(lines) <= LINES_MAX:
        return list(lines)
    sign = 1.0 if metric_spec(metric_key).better is BetterDirection.HIGHER else -1.0

    def best_value_sort_key(line: ChartLine) -> tuple[bool, float]:
        sound = [point for point in line.points if point.verdict_level is not VerdictLevel.INVALID]
        values = [
            point.metrics.get(metric_key, UNKNOWN_METRIC).value for point in sound or line.points
        ]
        signed = [sign * value for value in values if value is not None]
        return bool(sound and signed), max(signed, default=-math.inf)

    ranked = sorted(lines, key=best_value_sort_key, reverse=True)[:LINES_MAX]
    return [line for line in lines if line in ranked]


def lines_with_short_names_and_common_part(
    lines: Sequence[ChartLine],
) -> tuple[list[ChartLine], str]:
    """The lines by names that fit beside a plot, and what all names have in common.

    Where names are too long only what tells them apart stands there.
    """
    names = [escape_invisible(line.name) for line in lines]
    if all(len(name) <= LABEL_CHARACTERS for name in names):
        return list(lines), ""
    short, common = distinct_parts_and_common_part(names)
    return [
        replace(line, name=name, title=line.full_name)
        for line, name in zip(lines, short, strict=True)
    ], common


def remaining_lines_in_groups(
    lines: Sequence[ChartLine], metric_key: str
) -> Iterator[list[ChartLine]]:
    """The other lines, as many together as a chart has room for."""
    drawn = best_lines_that_fit_chart(lines, metric_key)
    rest = [line for line in lines if line not in drawn]
    for start in range(0, len(rest), LINES_MAX):
        yield rest[start : start + LINES_MAX]


def notes_on_hidden_lines(
    lines: Sequence[ChartLine], rendered_lines: Sequence[ChartLine]
) -> list[str]:
    """That lines are missing, and where they are."""
    if len(rendered_lines) == len(lines):
        return []
    return [
        f"The best {len(rendered_lines)} of {len(lines)} lines; the others are in the appendix."
    ]


def quantity_chart(
    subject: str, axis_name: str, lines: Sequence[ChartLine], quantity: ChartQuantity
) -> Chart:
    """One metric against `axis_name`; latencies on a logarithmic scale."""
    return line_chart(subject, axis_name, lines, ((quantity,),))


def latency_chart(
    subject: str,
    axis_name: str,
    lines: Sequence[ChartLine],
    mean: ChartQuantity = MEAN,
    tail: ChartQuantity = TAIL,
) -> Chart:
    """Two latencies against `axis_name`, solid and dashed, on a logarithmic scale: mean and p99."""
    return line_chart(subject, axis_name, lines, ((mean, tail),))


def rate_and_latency_chart(
    subject: str,
    axis_name: str,
    lines: Sequence[ChartLine],
    rate: ChartQuantity,
    mean: ChartQuantity = MEAN,
    tail: ChartQuantity | None = TAIL,
) -> Chart:
    """What is done a second, and under it what that takes: rate and two latencies.

    Without a `tail` the mean stands alone.

    Its title is the workload's: charts of several workloads stand side by side.
    """
    latencies = (mean,) if tail is None else (mean, tail)
    return replace(line_chart(subject, axis_name, lines, ((rate,), latencies)), title=subject)


def line_chart(
    subject: str,
    axis_name: str,
    lines: Sequence[ChartLine],
    quantities_of_plots: Sequence[tuple[ChartQuantity, ...]],
) -> Chart:
    """Plots over each other on one axis, each of one quantity or of two, the second dashed.

    Over another plot rates are bars where they have room, so that they start at zero and few
    lines cross.
    """
    quantities = tuple(quantity for panel in quantities_of_plots for quantity in panel)
    drawn, common = lines_with_short_names_and_common_part(
        best_lines_that_fit_chart(lines, quantities[0].key)
    )
    if len({line.color for line in drawn}) == len(drawn):
        drawn = [replace(line, dash=()) for line in drawn]  # colours tell them apart
    in_steps = len(quantities_of_plots) > 1 and _do_bars_fit(drawn, axis_name)
    x = parameter_axis_of_lines(drawn, axis_name, *quantities, is_equally_spaced=in_steps)
    height = HEIGHT if len(quantities_of_plots) == 1 else PANEL_HEIGHT
    plots = []
    for index, panel in enumerate(quantities_of_plots):
        is_last = index == len(quantities_of_plots) - 1
        draw = _bars_plot if in_steps and not is_last else _lines_plot
        plot = draw(drawn, axis_name, panel, replace(x, has_labels=is_last), height)
        plots.append(replace(plot, top=HEAD + index * (PANEL_HEIGHT + PANEL_GAP)))
    *others, last = [quantity.name for quantity in quantities if not quantity.is_reference]
    name = f"{', '.join(others)} and {last}" if others else last
    return Chart(
        subject=subject,
        title=", ".join(
            filter(None, (f"{capitalised(name)} against {axis_name_text(axis_name)}", common))
        ),
        finding=lines_sentence(axis_name, drawn, quantities[0]),
        note=" ".join(
            _line_chart_notes(lines, drawn, quantities_of_plots, axis_name, has_bars=in_steps)
        ),
        plots=tuple(plots),
        table=quantities_table(subject, axis_name, lines, quantities),
        points_table=_points_table(subject, axis_name, lines, quantities),
        has_configuration_colors=True,
    )


def _do_bars_fit(lines: Sequence[ChartLine], axis_name: str) -> bool:
    """Whether a bar for each line and value is wide enough, and nothing stands between values."""
    values = {point_axis_value(point, axis_name) for line in lines for point in line.points} - {
        None
    }
    return (
        len(values) * len(lines) <= BARS_MAX
        and len(values) <= BAR_GROUPS_MAX
        and all(line.curve is None for line in lines)
    )


def _bars_plot(
    drawn_lines: Sequence[ChartLine],
    axis_name: str,
    quantities: tuple[ChartQuantity, ...],
    x_axis: ChartAxis,
    height: float,
) -> Plot:
    """Bars of one quantity, those of all lines side by side at each value of the axis."""
    (quantity,) = quantities
    scale = _scale_of_quantities(drawn_lines, quantities)
    marks: list[Mark] = []
    for index, line in enumerate(drawn_lines):
        points = points_on_axis(line, axis_name, quantity.key)
        ends = [interval_in_scale_unit(interval, scale) for _, _, interval, _ in points]
        marks.append(
            Bars(
                color=line.color,
                places=[(at, scale.to_scale_unit(value)) for at, value, _, _ in points],
                slot=(index, len(drawn_lines)),
                verdict_levels=[level for *_, level in points],
                tip=MarkTooltip(line.full_name if len(drawn_lines) > 1 else "", ends),
                opacity=1.0 if not line.dash else DASHED_BAR_OPACITY,
            )
        )
    has_invalid = any(
        VerdictLevel.INVALID in bars.verdict_levels for bars in marks if isinstance(bars, Bars)
    )
    unit = f"{scale.unit}; crossed: invalid" if has_invalid else ""
    return Plot(height, marks, replace(x_axis, has_line=True), scale, unit=unit)


def _lines_plot(
    drawn_lines: Sequence[ChartLine],
    axis_name: str,
    quantities: tuple[ChartQuantity, ...],
    x_axis: ChartAxis,
    height: float,
) -> Plot:
    """One or two quantities of all lines, of many lines the first alone; and their references."""
    references = [quantity for quantity in quantities if quantity.is_reference]
    solid, *dashed = [quantity for quantity in quantities if not quantity.is_reference]
    if len(drawn_lines) > TAILS_MAX:
        dashed = []
    scale = _scale_of_quantities(drawn_lines, (solid, *dashed, *references))
    alone = len(drawn_lines) == 1
    marks: list[Mark] = []
    ends: list[LineEndLabel] = []
    tails: list[LineEndLabel] = []
    for index, line in enumerate(drawn_lines):
        own = solid.label if alone else line.full_name
        # Under bars side by side points stand so too.
        slot = (index, len(drawn_lines)) if x_axis.scale.stops else (0, 1)
        drawn = line_and_point_marks(line, axis_name, solid.key, scale, own)
        marks += [replace(mark, slot=slot) for mark in drawn]
        if dashed or not alone:
            ends += line_end_labels(line, axis_name, solid.key, scale, own if alone else line.name)
        for tail in dashed:
            thin = replace(line, dash=(4, 3), curve=None)
            name = tail.label if alone else f"{line.full_name}, {tail.label}"
            drawn = line_and_point_marks(thin, axis_name, tail.key, scale, name)
            marks += [
                replace(mark, slot=slot, is_small=True)
                if isinstance(mark, Markers)
                else replace(mark, slot=slot)
                for mark in drawn
            ]
            tails += line_end_labels(thin, axis_name, tail.key, scale, tail.label)
    highest = max(tails, key=lambda end: end.value, default=None)
    if highest is not None:  # one name for all that are dashed
        ends.append(highest if alone else replace(highest, color=MUTED))
    for reference in references:
        marks += _reference_line_marks(drawn_lines, axis_name, reference.key, scale)
        labels = [
            end
            for line in drawn_lines
            for end in line_end_labels(line, axis_name, reference.key, scale, reference.label)
        ]
        ends += [replace(end, color=MUTED) for end in labels[:1]]
    words = f"{solid.label}; {dashed[0].label} small, dashed" if dashed and not alone else ""
    unit = f"{scale.unit}, {words}" if words else ""
    return Plot(height, marks, x_axis, scale, ends, unit=unit)


def _reference_line_marks(
    lines: Sequence[ChartLine], axis_name: str, metric_key: str, scale: Scale
) -> Iterator[Mark]:
    """Dotted lines of a quantity that others are held against, each distinct one once."""
    drawn: set[tuple[tuple[float, float], ...]] = set()
    for line in lines:
        points = points_on_axis(line, axis_name, metric_key)
        places = tuple((at, scale.to_scale_unit(value)) for at, value, *_ in points)
        if places and places not in drawn:
            drawn.add(places)
            color = MUTED if len(drawn) == 1 else line.color
            yield LineMark(color=color, places=places, dash=(1, 3))


def _scale_of_quantities(lines: Sequence[ChartLine], quantities: Sequence[ChartQuantity]) -> Scale:
    """The scale of everything that is drawn of them."""
    values = [
        v
        for line in lines
        for quantity in quantities
        for v in drawn_values_and_interval_ends(line, quantity.key)
    ]
    unit = quantities[0].unit or metric_spec(quantities[0].key).unit
    return (
        log_scale(unit, values, max_ticks=LATENCY_TICKS_MAX)
        if unit == "ns"
        else linear_scale(unit, values, tick_count=3)
    )


def _line_chart_notes(
    lines: Sequence[ChartLine],
    drawn_lines: Sequence[ChartLine],
    quantities_of_plots: Sequence[tuple[ChartQuantity, ...]],
    axis_name: str,
    *,
    has_bars: bool,
) -> Iterator[str]:
    """How to read marks that are in the chart, and what is not in it."""
    quantities = [quantity for panel in quantities_of_plots for quantity in panel]
    own = [quantity for quantity in quantities_of_plots[-1] if not quantity.is_reference]
    if len(own) > 1 and len(drawn_lines) > TAILS_MAX:
        yield f"{capitalised(own[0].name)}; {own[1].label} is in the table."
    if dotted := [quantity.name for quantity in quantities if quantity.is_reference]:
        yield f"Dotted: {list_text(dotted)}."
    if differing := _differing_loads_text(drawn_lines, quantities[0].key, axis_name):
        yield differing
    points = [point for line in lines for point in line.points]
    levels = {point.verdict_level for line in drawn_lines for point in line.points}
    yield from notes_on_marks_of_not_valid_points(levels, has_bars=has_bars)
    yield from notes_on_error_bars(
        (p.metrics.get(quantity.key, UNKNOWN_METRIC) for p in points for quantity in quantities),
    )
    marked = (
        [quantity.key for quantity in quantities_of_plots[-1]]
        if has_bars
        else [q.key for q in quantities]
    )
    values = (p.metrics.get(key, UNKNOWN_METRIC) for p in points for key in marked)
    yield from notes_on_points_without_interval(
        metric for metric in values if metric.value is not None
    )
    curves = [line.curve for line in drawn_lines if line.curve is not None]
    yield from (text for quantity in quantities if (text := prediction_note(curves, quantity.key)))
    yield from notes_on_hidden_lines(lines, drawn_lines)


def _differing_loads_text(lines: Sequence[ChartLine], metric_key: str, axis_name: str) -> str:
    """That lines have points at unlike loads, so that they can be compared at few; else empty."""
    loads = [
        {point.axis_value for point in points_on_axis(each, axis_name, metric_key)}
        for each in lines
    ]
    measured = [own for own in loads if own]
    every = set().union(*measured)
    common = every.intersection(*measured)
    if common == every:
        return ""
    name = axis_name_text(axis_name)
    if not common:
        return f"No {name} was measured of all lines: none can be compared at the same load."
    return f"Compare at {name} {list_text([f'{load:g}' for load in sorted(common)])}: all have it."


def parameter_axis_of_lines(
    lines: Sequence[ChartLine],
    axis_name: str,
    *quantities: ChartQuantity,
    is_equally_spaced: bool = False,
) -> ChartAxis:
    """The axis over all points of which any quantity is known."""
    keys = {quantity.key for quantity in quantities}
    points = [
        point
        for line in lines
        for point in line.points
        if any(point.metrics.get(key, UNKNOWN_METRIC).value is not None for key in keys)
    ]
    measured = [v for point in points if (v := point_axis_value(point, axis_name)) is not None]
    curves = [line.curve for line in lines if line.curve and line.curve.metric in keys]
    guessed = [float(point.load) for curve in curves for point in curve.points]
    return parameter_axis(
        axis_name,
        [*measured, *guessed],
        max((line.node_count for line in lines), default=1),
        is_equally_spaced=is_equally_spaced,
    )


def line_and_point_marks(
    line: ChartLine,
    axis_name: str,
    metric_key: str,
    scale: Scale,
    tooltip_name: str = "",
) -> list[Mark]:
    """A line through the points, the runs behind them, interval bars, and markers by verdict.

    `tooltip_name` is what a pointer is told that they are of.
    """
    color, points = line.color, points_on_axis(line, axis_name, metric_key)
    marks = prediction_marks(line.curve, metric_key, scale, color, tooltip_name)
    if not points:
        return marks
    places = [(at, scale.to_scale_unit(value)) for at, value, _, _ in points]
    levels = [level for _, _, _, level in points]
    marks += connecting_line_marks(color, places, levels, line.dash)
    ends = [interval_in_scale_unit(interval, scale) for _, _, interval, _ in points]
    return [*marks, *markers_with_intervals(color, places, levels, MarkTooltip(tooltip_name, ends))]


def markers_with_intervals(
    color: ColorToken,
    places: Sequence[tuple[float, float]],
    verdict_levels: Sequence[VerdictLevel],
    tip: MarkTooltip,
) -> list[Mark]:
    """Markers by verdict at these places, over the bars of the intervals that the tip tells."""
    bars = [
        (x, ends[0], x, ends[1]) for (x, _), ends in zip(places, tip.intervals, strict=True) if ends
    ]
    known = [bool(ends) for ends in tip.intervals]
    drawn = Markers(
        color=color, places=places, verdict_levels=verdict_levels, have_intervals=known, tip=tip
    )
    return [LineSegments(color=color, segments=bars), drawn] if bars else [drawn]


def connecting_line_marks(
    color: ColorToken,
    places: Sequence[tuple[float, float]],
    verdict_levels: Sequence[VerdictLevel],
    dash: Sequence[float],
) -> list[Mark]:
    """The line through places that are not invalid; those stand alone."""
    joined = not_invalid_places(places, verdict_levels)
    return [LineMark(color=color, places=joined, dash=dash)] if len(joined) > 1 else []


def not_invalid_places(
    places: Sequence[tuple[float, float]], verdict_levels: Sequence[VerdictLevel]
) -> list[tuple[float, float]]:
    """The places whose points are not invalid."""
    both = zip(places, verdict_levels, strict=True)
    return [place for place, level in both if level is not VerdictLevel.INVALID]


def interval_in_scale_unit(
    interval: tuple[float, float] | None, scale: Scale
) -> tuple[float, float] | None:
    """An interval in the scale's unit."""
    return (
        None
        if interval is None
        else (scale.to_scale_unit(interval[0]), scale.to_scale_unit(interval[1]))
    )


def prediction_marks(
    curve: LoadCurve | None, metric_key: str, scale: Scale, color: ColorToken, tooltip_name: str
) -> list[Mark]:
    """The band, an upright at the knee, and open circles at predicted loads."""
    if curve is None or curve.metric != metric_key:
        return []
    knee = float(curve.knee.load)
    upright = LineSegments(
        color=color,
        segments=[(knee, None, knee, None)],
        dash=(1, 4),
        width=1,
        opacity=_KNEE_LINE_OPACITY,
    )
    guessed = [point for point in curve.points if not point.is_measured]
    if not guessed:
        return [upright]
    band = [
        (float(p.load), scale.to_scale_unit(p.low), scale.to_scale_unit(p.high))
        for p in curve.points
    ]
    ends = [(scale.to_scale_unit(point.low), scale.to_scale_unit(point.high)) for point in guessed]
    circles = Markers(
        color=color,
        places=[(float(point.load), scale.to_scale_unit(point.rate)) for point in guessed],
        marker_style=MarkerStyle.OPEN,
        tip=MarkTooltip(tooltip_name, ends, [PREDICTED] * len(guessed)),
    )
    return [Band(color=color, places=band, opacity=_BAND), upright, circles]


def _predicted_interval_values(curve: LoadCurve | None, metric_key: str) -> list[float]:
    """What is drawn of predictions, so that it fits the scale."""
    if curve is None or curve.metric != metric_key:
        return []
    guessed = [point for point in curve.points if not point.is_measured]
    return [value for point in guessed for value in (point.low, point.high)]


def prediction_note(curves: Sequence[LoadCurve], metric_key: str) -> str:
    """What the reader must know of predictions; empty where the chart has no curve."""
    drawn = [curve for curve in curves if curve.metric == metric_key]
    if not drawn:
        return ""
    knees = ", ".join(load_with_interval_text(curve.knee) for curve in drawn)
    guessed = any(not point.is_measured for curve in drawn for point in curve.points)
    dots = "Open circles: predicted, not measured, with their 95 % band. " if guessed else ""
    unit = " VMs per node" if any(curve.axis_name == "vms_per_node" for curve in drawn) else ""
    return f"{dots}Dotted upright: the knee, at {knees}{unit}."


def point_axis_value(point: PointSummary, axis_name: str) -> float | None:
    """The point's value of that axis as a number, None when it has none."""
    return next(
        (axis_value_as_number(name, v) for name, v in point.key.axis_values if name == axis_name),
        None,
    )


class PlottedPoint(NamedTuple):
    """A point on a chart: its place on the axis, its published value with interval, its verdict."""

    axis_value: float
    metric_value: float
    interval: tuple[float, float] | None
    verdict_level: VerdictLevel


def points_on_axis(line: ChartLine, axis_name: str, metric_key: str) -> list[PlottedPoint]:
    """Each point that has both values, by its place on the axis."""
    places = [
        PlottedPoint(x, metric.value, metric.displayable_interval, point.verdict_level)
        for point in line.points
        if (x := point_axis_value(point, axis_name)) is not None
        and (metric := point.metrics.get(metric_key, UNKNOWN_METRIC)).value is not None
    ]
    return sorted(places, key=lambda place: place.axis_value)


def drawn_values_and_interval_ends(line: ChartLine, metric_key: str) -> list[float]:
    """Everything that is drawn, so that it fits the scale."""
    metrics = [point.metrics.get(metric_key, UNKNOWN_METRIC) for point in line.points]
    ends = [
        v
        for metric in metrics
        for v in (metric.value, *(metric.displayable_interval or ()))
        if v is not None
    ]
    return [*ends, *_predicted_interval_values(line.curve, metric_key)]


def line_end_labels(
    line: ChartLine, axis_name: str, metric_key: str, scale: Scale, text: str
) -> list[LineEndLabel]:
    """What stands beside the line's last point, where it has one."""
    points = points_on_axis(line, axis_name, metric_key)
    return [LineEndLabel(text, scale.to_scale_unit(points[-1][1]), line.color)] if points else []


def lines_sentence(axis_name: str, lines: Sequence[ChartLine], quantity: ChartQuantity) -> str:
    """One sentence a line of what the chart shows, with the worst verdict in it."""
    sentences = []
    for line in lines:
        sentence = _line_sentence(axis_name, line, quantity)
        name = f"{escape_invisible(line.name)}: " if len(lines) > 1 else ""
        sentences.append(name + (sentence if name else capitalised(sentence)))
    return " ".join(sentences)


def _line_sentence(axis_name: str, line: ChartLine, quantity: ChartQuantity) -> str:
    points = points_on_axis(line, axis_name, quantity.key)
    if not points:
        return "no run has a value."
    unit = next(p.metrics[quantity.key].unit for p in line.points if quantity.key in p.metrics)
    trust = shared_or_worst_verdict_text([level for *_, level in points])
    (first_x, first, *_), (last_x, last, *_) = points[0], points[-1]
    if len(points) == 1:
        return (
            f"{value_text(first, unit)} at {_axis_place_text(axis_name, first_x, line)}; {trust}."
        )
    best_x, best, *_ = max(points, key=lambda point: point[1])
    peak = (
        ""
        if best_x in {first_x, last_x}
        else f", at most {value_text(best, unit)} at {best_x * line.node_count:g}"
    )
    return (
        f"from {value_text(first, unit)} at {_axis_place_text(axis_name, first_x, line)} to "
        f"{value_text(last, unit)} at {last_x * line.node_count:g}{peak}; {trust}."
    )


def _axis_place_text(axis_name: str, value: float, line: ChartLine) -> str:
    """`iodepth 8`; of guests of several nodes all of them: `12 VMs`."""
    return (
        f"{value * line.node_count:g} VMs"
        if line.node_count > 1
        else f"{axis_name_text(axis_name)} {value:g}"
    )


def shared_or_worst_verdict_text(verdict_levels: Sequence[VerdictLevel]) -> str:
    """How far several points can be trusted: `all valid`, or the worst of them."""
    worst = worst_verdict_level(verdict_levels)
    return f"all {worst.value}" if len(set(verdict_levels)) == 1 else f"at worst {worst.value}"


def quantities_table(
    subject: str, axis_name: str, lines: Sequence[ChartLine], quantities: tuple[ChartQuantity, ...]
) -> Table:
    """Every plotted number with its verdict, also of the lines that were left out."""
    names = [name for q in quantities for name in (q.name, f"{q.name}, 95 % interval")]
    heads = text_and_number_columns(
        ("Configuration", axis_name_text(axis_name), "Repeat"), names, ("Verdict",)
    )
    rows = [
        row
        for line in lines
        for point in line.points
        for row in _point_and_run_rows(
            line.name, str(dict(point.key.axis_values).get(axis_name, "")), point, quantities
        )
    ]
    first = quantities[0].key
    others = 2 * (len(quantities) - 1)
    rows += [row for line in lines for row in prediction_rows(line.name, line.curve, first, others)]
    title = f"{subject} against {axis_name_text(axis_name)}"
    return Table(title, heads, tuple(rows))


def _points_table(
    subject: str, axis_name: str, lines: Sequence[ChartLine], quantities: Sequence[ChartQuantity]
) -> Table:
    """The published values alone, with the workload, so that several workloads make one table."""
    names = [
        capitalised(quantity.name) if " " in quantity.name else quantity.name
        for quantity in quantities
    ]
    heads = text_and_number_columns(
        ("Workload", "Configuration", axis_name_text(axis_name)), names, ("Verdict",)
    )
    rows = tuple(
        row_of_cells(
            subject,
            line.full_name,
            str(dict(point.key.axis_values).get(axis_name, "")),
            *(
                metric_value_text(point.metrics.get(quantity.key, UNKNOWN_METRIC))
                for quantity in quantities
            ),
            point.verdict_level,
        )
        for line in lines
        for point in line.points
    )
    return Table(POINTS_TITLE, heads, rows)


def joined_point_tables(figures: Iterable[Chart]) -> list[Table]:
    """The points behind charts over a load: one table for all charts over the same axis.

    Charts of the same quantities add rows, others of the same points columns.
    """
    by_heads: dict[tuple[str, ...], list[Table]] = {}
    for figure in figures:
        if (own := figure.points_table) is not None and own.rows:
            by_heads.setdefault(tuple(column.title for column in own.columns), []).append(own)
    tables: dict[tuple[tuple[str, ...], ...], Table] = {}
    for own_tables in by_heads.values():
        rows = tuple(row for table in own_tables for row in table.rows)
        table = replace(own_tables[0], rows=rows)
        key = (
            tuple(column.title for column in table.columns[:_POINT_COLUMNS]),
            *(tuple(cell.text for cell in row[:_POINT_COLUMNS]) for row in rows),
        )
        tables[key] = (
            _join_quantity_columns_by_point(tables[key], table) if key in tables else table
        )
    return [
        table_with_constants_in_title(_table_without_constant_name_columns(t))
        for t in tables.values()
    ]


def _join_quantity_columns_by_point(table: Table, table_of_more_quantities: Table) -> Table:
    """The table with the quantities of another of the same points, before the verdict."""
    more = slice(_POINT_COLUMNS, -1)
    return replace(
        table,
        columns=(*table.columns[:-1], *table_of_more_quantities.columns[more], table.columns[-1]),
        rows=tuple(
            (*row[:-1], *same[more], row[-1])
            for row, same in zip(table.rows, table_of_more_quantities.rows, strict=True)
        ),
    )


def _table_without_constant_name_columns(table: Table) -> Table:
    """The table without the columns of workload and configuration where these have one alone."""
    places = range(len(table.columns))
    names = (0, 1)
    single = [at for at in names if len({row[at].text for row in table.rows}) == 1]
    return select_columns(table, [at for at in places if at not in single])


def prediction_rows(
    name: str, curve: LoadCurve | None, metric_key: str, blank_column_count: int
) -> Iterator[tuple[Cell, ...]]:
    """A row for each predicted load.

    `blank_column_count` are the columns between its interval and its end.
    """
    if curve is None or curve.metric != metric_key:
        return
    for point in curve.points:
        if not point.is_measured:
            value = Metric(point.rate, metric_spec(metric_key).unit, point.low, point.high, 0)
            interval = interval_and_runs_text(value, is_rate_unit_omitted=True).removesuffix(" n=0")
            texts = (name, str(point.load), "predicted", metric_value_text(value), interval)
            yield (*map(Cell, texts), *[Cell("")] * blank_column_count, Cell("not measured"))


def _point_and_run_rows(
    name: str, axis_text: str, point: PointSummary, quantities: tuple[ChartQuantity, ...]
) -> Iterator[tuple[Cell, ...]]:
    """The point's row, and one for each of its runs where there are several."""
    runs = point.runs
    rows = [(str(runs[0].repeat) if len(runs) == 1 else "all", point.metrics, point.verdict_level)]
    if len(runs) > 1:
        rows += [(str(run.repeat), run.metrics, run.verdict.level) for run in runs]
    for repeat, metrics, level in rows:
        values = [metrics.get(quantity.key, UNKNOWN_METRIC) for quantity in quantities]
        texts = [
            text
            for value in values
            for text in (
                metric_value_text(value),
                interval_and_runs_text(value, is_rate_unit_omitted=True),
            )
        ]
        yield row_of_cells(name, axis_text, repeat, *texts, level)
