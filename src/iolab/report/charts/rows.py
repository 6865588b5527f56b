"""Rows below each other on one axis: dots of configurations, and bars stacked of parts.

A row of dots is a workload with a lane for each configuration, so that dots of nearly the same
value stay apart; a line through a dot is its interval, and its value stands beside it. The workload
stands over its lanes and each configuration beside its own, so that no legend is needed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import accumulate
from textwrap import wrap
from typing import Final, NamedTuple, TypeVar

from msgspec.structs import replace

from iolab.core.metric import Metric, VerdictLevel
from iolab.core.metric_spec import BetterDirection
from iolab.record import Record
from iolab.report.charts.chart import (
    CHARACTER,
    LINE_GAP,
    MIDDLE,
    Chart,
    LineSegments,
    Mark,
    Markers,
    MarkTooltip,
    Plot,
    Rectangles,
    TextMark,
    charts_filling_page_width,
    non_overlapping_positions,
    notes_on_marks_of_not_valid_points,
    notes_on_points_without_interval,
    notes_on_uninformative_intervals,
)
from iolab.report.charts.palette import INK, MUTED, PAPER, RULE, ColorToken
from iolab.report.charts.scale import (
    LOG_SCALE,
    PLOT_WIDTH,
    ChartAxis,
    Scale,
    linear_scale,
    log_scale,
    unit_divisor_and_name,
    value_axis_of_scale,
)
from iolab.report.numbers import metric_value_text
from iolab.report.short_names import short_plot_label
from iolab.report.table import Table
from iolab.text import counted_noun, distinct_parts_and_common_part, escape_invisible, excerpt
from iolab.units import significant_digits_text

HEAD: Final = 10
LANE: Final = 15.0
"""The height of a dot with its value."""
ROW_GAP: Final = 9.0
ROW_NAME_CHARACTERS: Final = 26
"""Of a name in one line."""
UNIT_CHARACTERS: Final = 40
"""Of what stands below the dots."""
NAME_LINES: Final = 3
"""A longer name is cut."""
VALUE_CHARACTERS: Final = 8
VALUE_MARGIN: Final = CHARACTER * VALUE_CHARACTERS + 12
BESIDE: Final = 9.0
"""From a dot to what stands beside it."""

ROWS_MAX: Final = 16
"""More rows make a chart longer than a page; the others stand in the table."""
DOTS_MAX: Final = 36
"""Dots of all rows together that a page has room for."""
ROW_DOTS_LEAST: Final = 4
"""Of each row."""

LOGARITHMIC_RATIO: Final = 30
"""Values that are so many times as large as others would hide them on a linear axis."""
SMALL_RATIO: Final = 1.5
"""An axis of ratios reaches so far either way of 1, so that small differences look small."""

BAR: Final = 15.0
BAR_MAX: Final = 32.0
"""Of bars that fill a chart; thicker ones look like areas."""
LEGEND: Final = 16.0
BARS_TOP: Final = LEGEND + 10
HEADING_CHARACTERS: Final = 46
"""What a figure of four columns has room for."""
POINTS_HEIGHT: Final = 190
PIECE_LEAST: Final = 0.002
"""The least share of a bar that is drawn."""

UNITS_FIRST: Final = ("1/s", "ops/s", "bytes/s")

T = TypeVar("T")
K = TypeVar("K")


def rows_by_key(rows: Iterable[T], key_of_row: Callable[[T], K]) -> dict[K, list[T]]:
    """Rows of one key together, keys and rows in their order."""
    groups: dict[K, list[T]] = {}
    for row in rows:
        groups.setdefault(key_of_row(row), []).append(row)
    return groups


def charts_by_unit(
    rows: Iterable[T],
    unit_of_row: Callable[[T], str],
    draw_chart: Callable[[list[T]], Chart | None],
) -> tuple[Chart, ...]:
    """A chart for each unit that rows have, those of rates first, over the width of a page."""
    by_unit = rows_by_key(rows, unit_of_row)
    units = sorted(by_unit, key=lambda name: UNITS_FIRST.index(name) if name in UNITS_FIRST else 9)
    drawn = (draw_chart(by_unit[name]) for name in units)
    return charts_filling_page_width([figure for figure in drawn if figure is not None])


class Dot(Record):
    """One configuration's figure; `note` is told of it, as where it was reached.

    `verdict_level` is None for what nobody judged, `title` the whole name where `name` is a short
    one.
    """

    name: str
    color: ColorToken
    value: Metric
    verdict_level: VerdictLevel | None = None
    note: str = ""
    title: str = ""


class DotRow(Record):
    """The dots of one workload."""

    title: str
    dots: tuple[Dot, ...]


class _DotLane(Record):
    """A dot with its row and the middle of its place."""

    dot: Dot
    row: DotRow
    y: float


def dot_chart(
    subject: str,
    title: str,
    rows: Sequence[DotRow],
    *,
    finding: str,
    table: Table,
    divisor_unit: str = "",
    better: BetterDirection = BetterDirection.HIGHER,
    note: str = "",
) -> Chart | None:
    """The dots of all rows on one scale, of many the best; None where none has a value.

    All values have one unit, none for ratios, which have a line at 1. `divisor_unit` is what they
    are told for: `TB raw`.
    """
    most = max(ROW_DOTS_LEAST, DOTS_MAX // max(min(len(rows), ROWS_MAX), 1))
    leading = [replace(row, dots=_best_dots_in_order(row.dots, most, better)) for row in rows]
    drawn = [row for row in leading if row.dots][:ROWS_MAX]
    if not drawn:
        return None
    dots = [dot for row in drawn for dot in row.dots]
    scale = _value_scale(dots)
    titles = [escape_invisible(row.title) for row in drawn]
    names, common = distinct_parts_and_common_part(titles)
    are_named = len({dot.color for dot in dots}) > 1
    if are_named or " " not in common:  # a word alone tells nothing without the rest of its title
        names, common = titles, ""
    lanes, texts, height = (
        _lane_layout_under_headings(drawn, names) if are_named else _lane_layout(drawn, names)
    )
    unit = f"{scale.unit} for each {divisor_unit}" if divisor_unit else scale.unit
    unit = f"{unit}{LOG_SCALE}" if scale.is_logarithmic else unit
    x = replace(
        value_axis_of_scale(scale),
        title=excerpt(unit, UNIT_CHARACTERS),
        has_grid=True,
        has_line=False,
        is_title_left=True,
    )
    beside = [mark for mark in texts if mark.align == "end"]
    left = 16 + CHARACTER * max(len(text) for mark in beside for *_, text in mark.places)
    texts = [
        mark
        if mark.align == "end"
        else replace(mark, places=[(x - left + 2, y, text) for x, y, text in mark.places])
        for mark in texts
    ]
    marks = [*_ratio_one_line_marks(dots), *_lane_marks(lanes, scale), *texts]
    total = sum(bool(_value_and_interval_ends(dot)) for row in rows for dot in row.dots)
    notes = [note, _dot_chart_notes_text(dots, total)]
    return Chart(
        subject=subject,
        title=title if not common or common.lower() in title.lower() else f"{title}: {common}",
        finding=finding,
        note=" ".join(filter(None, notes)),
        plots=(Plot(height, marks, x, top=HEAD, left=left, right=VALUE_MARGIN),),
        table=table,
        has_configuration_colors=True,
    )


def _best_dots_in_order(
    dots: Sequence[Dot], max_count: int, better: BetterDirection
) -> tuple[Dot, ...]:
    """As many of the dots that have a value, in their order; those that are invalid last."""
    sign = 1.0 if better is BetterDirection.HIGHER else -1.0
    measured = [dot for dot in dots if _value_and_interval_ends(dot)]
    ranked = sorted(
        measured,
        key=lambda dot: (
            dot.verdict_level is VerdictLevel.INVALID,
            -sign * (dot.value.value or 0.0),
        ),
    )[:max_count]
    return tuple(dot for dot in measured if dot in ranked)


def _value_and_interval_ends(dot: Dot) -> list[float]:
    """Everything of a dot that must fit the scale; empty where it has no value."""
    if dot.value.value is None:
        return []
    return [dot.value.value, *(dot.value.displayable_interval or ())]


def _value_scale(dots: Sequence[Dot]) -> Scale:
    """From zero; logarithmic for ratios, and where the largest would hide the smallest."""
    values = [end for dot in dots for end in _value_and_interval_ends(dot)]
    positive = [value for value in values if value > 0]
    if not dots[0].value.unit:
        scale = log_scale("", [*positive, 1 / SMALL_RATIO, SMALL_RATIO], max_ticks=7)
        return replace(scale, ticks=tuple(sorted({*scale.ticks, 1.0})))
    if positive and max(positive) > LOGARITHMIC_RATIO * min(positive):
        return log_scale(dots[0].value.unit, positive, max_ticks=5)
    return linear_scale(dots[0].value.unit, values, tick_count=4)


class _LaneLayout(NamedTuple):
    """Each dot with its place, the names left of their rows, and the height of all."""

    lanes: list[_DotLane]
    row_names: list[TextMark]
    height: float


def _lane_layout(rows: Sequence[DotRow], names: Sequence[str]) -> _LaneLayout:
    """The lanes of all rows, one below the other."""
    lanes: list[_DotLane] = []
    texts: list[TextMark] = []
    top = 0.0
    for row, name in zip(rows, names, strict=True):
        lines = wrap(name, ROW_NAME_CHARACTERS)[:NAME_LINES] or [""]
        height = max(LANE * len(row.dots), LINE_GAP * len(lines))
        first = top + (height - LANE * (len(row.dots) - 1)) / 2
        lanes += [_DotLane(dot, row, first + LANE * i) for i, dot in enumerate(row.dots)]
        start = top + (height - LINE_GAP * (len(lines) - 1)) / 2
        places = [(0.0, start + LINE_GAP * i, line) for i, line in enumerate(lines)]
        texts.append(
            TextMark(color=INK, places=places, align="end", dx=-12, dy=MIDDLE, is_fixed=True)
        )
        top += height + ROW_GAP
    return _LaneLayout(lanes, texts, round(top))


def _lane_layout_under_headings(rows: Sequence[DotRow], names: Sequence[str]) -> _LaneLayout:
    """The same with the names over their rows, and those of configurations left of their dots."""
    lanes: list[_DotLane] = []
    texts: list[TextMark] = []
    top = 0.0
    for row, name in zip(rows, names, strict=True):
        heading = (0.0, top + LANE / 2, excerpt(name, HEADING_CHARACTERS))
        texts.append(TextMark(color=INK, places=[heading], dy=MIDDLE, has_rim=True, is_fixed=True))
        for dot in row.dots:
            top += LANE
            lanes.append(_DotLane(dot, row, top + LANE / 2))
            place = (0.0, top + LANE / 2, short_plot_label(dot.name))
            texts.append(
                TextMark(
                    color=dot.color, places=[place], align="end", dx=-12, dy=MIDDLE, is_fixed=True
                )
            )
        top += LANE + ROW_GAP
    return _LaneLayout(lanes, texts, round(top))


def _ratio_one_line_marks(dots: Sequence[Dot]) -> list[Mark]:
    """Of ratios an upright where both are the same."""
    upright = LineSegments(color=MUTED, segments=[(1.0, None, 1.0, None)], width=1, dash=(3, 3))
    return [] if dots[0].value.unit else [upright]


def _lane_marks(lanes: Sequence[_DotLane], scale: Scale) -> Iterator[Mark]:
    """Under all dots a line to follow; then those of each configuration with their values."""
    base = None if scale.is_logarithmic else 0.0
    for lane in lanes:
        end = None if base is None else scale.to_scale_unit(lane.dot.value.value or 0.0)
        yield LineSegments(color=RULE, segments=[(base, lane.y, end, lane.y)], width=1)
    for color in dict.fromkeys(lane.dot.color for lane in lanes):
        own = [lane for lane in lanes if lane.dot.color == color]
        places = [(scale.to_scale_unit(lane.dot.value.value or 0.0), lane.y) for lane in own]
        spread = [
            (scale.to_scale_unit(ends[0]), lane.y, scale.to_scale_unit(ends[1]), lane.y)
            for lane in own
            if (ends := lane.dot.value.displayable_interval) is not None
        ]
        if spread:
            yield LineSegments(color=color, segments=spread, width=3, opacity=0.45)
        texts = [", ".join(filter(None, (lane.row.title, lane.dot.note))) for lane in own]
        tip = MarkTooltip(own[0].dot.title or own[0].dot.name, texts=texts)
        levels = [lane.dot.verdict_level or VerdictLevel.VALID for lane in own]
        known = [lane.dot.value.displayable_interval is not None for lane in own]
        yield Markers(
            color=color, places=places, verdict_levels=levels, have_intervals=known, tip=tip
        )
        rights = [max((x, *(s[2] for s in spread if s[1] == y))) for x, y in places]
        values = [
            (end, y, _dot_value_text(lane.dot, scale))
            for lane, end, (_, y) in zip(own, rights, places, strict=True)
        ]
        yield TextMark(color=INK, series=color, places=values, dx=BESIDE, dy=MIDDLE)


def _dot_value_text(dot: Dot, scale: Scale) -> str:
    own_unit = unit_divisor_and_name(dot.value.unit, dot.value.value or 0.0)[1]
    if dot.value.unit == "bytes/s" and own_unit != scale.unit:
        return metric_value_text(dot.value)  # as the rest of the page has it
    value = scale.to_scale_unit(dot.value.value or 0.0)
    return f"{value:,.0f}" if value >= 999.5 else significant_digits_text(value)


def _dot_chart_notes_text(dots: Sequence[Dot], total_dot_count: int) -> str:
    notes = []
    spread = [dot.value for dot in dots if dot.value.displayable_interval is not None]
    if any(not value.has_bin_edge_interval for value in spread):
        alone = " of each alone" if len({dot.name for dot in dots}) > 1 else ""
        notes.append(f"Lines through dots: 95 % intervals{alone}.")
    if any(value.has_bin_edge_interval for value in spread):
        notes.append("A line through a dot is what rounding leaves open.")
    notes += notes_on_points_without_interval([dot.value for dot in dots])
    notes += notes_on_uninformative_intervals([dot.value for dot in dots], "dots")
    notes += notes_on_marks_of_not_valid_points(
        {dot.verdict_level for dot in dots if dot.verdict_level}
    )
    if len(dots) < total_dot_count:
        notes.append(
            f"The best of each, {len(dots)} of {counted_noun(total_dot_count, 'dot')}; "
            "the table has all."
        )
    return " ".join(notes)


class StackedBarPart(Record):
    """A part of a bar: `text` stands in it where it has room."""

    amount: float
    color: ColorToken
    text: str = ""
    opacity: float = 1.0


class StackedBar(Record):
    """A bar of parts; `heading` stands over it, `name` before and `total` behind it."""

    parts: tuple[StackedBarPart, ...]
    heading: str = ""
    name: str = ""
    total: str = ""


def legend_and_stacked_bar_plots(
    bars_of_parts: Sequence[StackedBar],
    legend: Sequence[tuple[str, StackedBarPart]],
    height_min: float = 0.0,
) -> tuple[Plot, Plot]:
    """What the parts are, and the bars below each other on one scale.

    Few bars are thicker and further apart, so that the last ends `height_min` below the first
    heading, as the plot of a chart beside them does.
    """
    high = (
        max((sum(piece.amount for piece in row.parts) for row in bars_of_parts), default=0.0) or 1.0
    )
    x = ChartAxis(Scale(1.0, "", 0.0, high, ()), (), has_line=False, has_labels=False)
    marks: list[Mark] = []
    number = len(bars_of_parts)
    used = sum(BAR + ROW_GAP + _heading_height(row) for row in bars_of_parts) - ROW_GAP
    room = max(height_min - used, 0.0)
    thickness = min(BAR + room / 2 / max(number, 1), BAR_MAX)
    gap = ROW_GAP + (room - number * (thickness - BAR)) / max(number - 1, 1)
    top = 0.0
    for row in bars_of_parts:
        if row.heading:
            text = (0.0, top + 11, excerpt(row.heading, HEADING_CHARACTERS))
            marks.append(TextMark(color=INK, places=[text], is_fixed=True))
        top += _heading_height(row)
        marks += _stacked_bar_marks(row, top, thickness, high)
        top += thickness + gap
    top -= gap - ROW_GAP
    left = CHARACTER * max((len(row.name) for row in bars_of_parts), default=0)
    right = CHARACTER * max((len(row.total) for row in bars_of_parts), default=0)
    keys = Plot(LEGEND, list(_legend_marks(legend)), top=4, left=2)
    bars = Plot(
        round(top), marks, x, top=BARS_TOP, left=left + 8 if left else 2, right=right + BESIDE
    )
    return keys, bars


def _heading_height(row: StackedBar) -> float:
    return LINE_GAP + 3 if row.heading else 0.0


def _legend_marks(legend: Sequence[tuple[str, StackedBarPart]]) -> Iterator[Mark]:
    """The parts in the order in which bars have them, a square of colour before each."""
    widths = [24 + CHARACTER * len(name) for name, _ in legend]
    for (name, piece), left in zip(legend, accumulate([0.0, *widths]), strict=False):
        square = [(left, 2.0, left + 9, 11.0)]
        yield Rectangles(color=piece.color, boxes=square, opacity=piece.opacity, has_rim=True)
        yield TextMark(color=MUTED, places=[(left + 13, 11, name)])


def _stacked_bar_marks(
    row: StackedBar, bar_top: float, thickness: float, axis_end: float
) -> Iterator[Mark]:
    """A bar's parts with their texts where they have room, before and behind it what it is."""
    middle, start = bar_top + thickness / 2, 0.0
    for piece in row.parts:
        end = start + piece.amount
        if piece.amount > PIECE_LEAST * axis_end:
            box = [(start, bar_top, end, bar_top + thickness)]
            yield Rectangles(color=piece.color, boxes=box, opacity=piece.opacity, has_rim=True)
        if PLOT_WIDTH * piece.amount / axis_end > CHARACTER * len(piece.text) + 6:
            color = PAPER if piece.opacity == 1 else INK
            place = [((start + end) / 2, middle, piece.text)]
            yield TextMark(color=color, places=place, align="middle", dy=MIDDLE)
        start = end
    if row.name:
        place = [(0.0, middle, row.name)]
        yield TextMark(color=MUTED, places=place, align="end", dx=-6, dy=MIDDLE, is_fixed=True)
    if row.total:
        yield TextMark(color=INK, places=[(start, middle, row.total)], dx=6, dy=MIDDLE)


class LabelledPoint(NamedTuple):
    """A point of two figures with the name that stands beside it."""

    name: str
    color: ColorToken
    x: Metric
    y: Metric
    verdict_level: VerdictLevel | None


def labelled_points_plot(points: Sequence[LabelledPoint], divisor_unit: str = "") -> Plot:
    """One figure against another, each point with its name beside it and its intervals through it.

    `notes_on_error_bars` says what the intervals are.
    """
    x_scale, y_scale = (
        linear_scale(
            figures[0].unit,
            [end for each in figures for end in _metric_value_and_ends(each)],
            tick_count=3,
        )
        for figures in ([x for _, _, x, _, _ in points], [y for *_, y, _ in points])
    )
    places = [
        (x_scale.to_scale_unit(x.value or 0.0), y_scale.to_scale_unit(y.value or 0.0))
        for _, _, x, y, _ in points
    ]
    heights = [POINTS_HEIGHT * (1 - y_scale.fraction(y)) for _, y in places]
    spread = non_overlapping_positions(heights, LINE_GAP, 0, POINTS_HEIGHT)
    marks: list[Mark] = []
    for (name, color, x, y, level), place, height, label in zip(
        points, places, heights, spread, strict=True
    ):
        is_right = x_scale.fraction(place[0]) > 0.5
        dots = Markers(
            color=color,
            places=[place],
            verdict_levels=[level or VerdictLevel.VALID],
            tip=MarkTooltip(name),
        )
        bars = [(low, place[1], high, place[1]) for low, high in _interval_ends(x, x_scale)]
        # Beside its interval, which would strike it through.
        words_at = bars[0][0 if is_right else 2] if bars else place[0]
        words = TextMark(
            color=color,
            places=[(words_at, place[1], short_plot_label(name))],
            align="end" if is_right else "start",
            dx=-BESIDE if is_right else BESIDE,
            dy=MIDDLE + label - height,
            has_rim=True,
        )
        bars += [(place[0], low, place[0], high) for low, high in _interval_ends(y, y_scale)]
        # Below all words, whose rims part them from the bars of other points.
        marks = [LineSegments(color=color, segments=bars), *marks] if bars else marks
        marks += [dots, words]
    across = replace(
        value_axis_of_scale(x_scale), has_grid=True, title=f"{x_scale.unit} {divisor_unit}".rstrip()
    )
    return Plot(
        POINTS_HEIGHT, marks, across, y_scale, unit=f"{y_scale.unit} {divisor_unit}".rstrip()
    )


def _metric_value_and_ends(metric: Metric) -> tuple[float, ...]:
    """What a plot needs room for: the value, and its interval where that is shown."""
    return (metric.value or 0.0, *(metric.displayable_interval or ()))


def _interval_ends(metric: Metric, scale: Scale) -> Iterator[tuple[float, float]]:
    """The interval in the scale's unit, where there is one to show."""
    if metric.displayable_interval is not None:
        low, high = metric.displayable_interval
        yield scale.to_scale_unit(low), scale.to_scale_unit(high)
