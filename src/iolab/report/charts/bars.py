"""Figures side by side, a row each: horizontal bars of configurations, and dots of ratios.

Bars have a group for each workload and a bar for each configuration. Names stand before the bars
and values behind them, so that no legend is needed. Bars start at zero; a line through a bar's end
is its interval.

Dots tell how many times a published figure was reached, with 1 as the mark. Each row has its name
above it, so that names of any length fit a phone.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from textwrap import wrap
from typing import Final, TypeVar

from msgspec.structs import replace

from iolab.core.metric import Level, Metric
from iolab.core.metric_spec import Better
from iolab.record import Record
from iolab.report.charts.chart import (
    LINE_GAP,
    MIDDLE,
    Boxes,
    Figure,
    LineSegments,
    Mark,
    MarkTip,
    Plot,
    Points,
    TextMark,
    missing_interval_notes,
)
from iolab.report.charts.palette import FAINT, INK, MUTED, Token
from iolab.report.charts.scale import (
    WIDTH,
    ChartAxis,
    Scale,
    axis_number_text,
    linear_scale,
    value_axis_of_scale,
)
from iolab.report.table import Table
from iolab.text import counted_noun, escape_invisible, excerpt

HATCHED: Final = "Hatched: not valid."
"""What a note says of a chart with such bars."""

HEAD: Final = 8
BAR: Final = 11
STEP: Final = 16
TITLE: Final = 19
GAP: Final = 7

NAMES_END: Final = 54
BARS_START: Final = 60
BARS_END: Final = 250
"""Pixels of the plot: names end, bars start, and the longest bar ends; values stand behind."""

VALUE_CHARACTERS: Final = 19
TITLE_CHARACTERS: Final = 48

_BEYOND: Final = 6
_BEYOND_MARK: Final = 10
"""How far values stand behind a bar's end, or its interval's; a verdict's marker takes room."""

GROUPS_MAX: Final = 12
"""More workloads than this make a chart longer than a page; the others stand in the table."""

BARS_MAX: Final = 24
"""Bars of all workloads together that a page has room for beside other things."""

BARS_LEAST: Final = 4
"""Of each workload."""


T = TypeVar("T")
K = TypeVar("K")

SIDE: Final = 14

DOT_ROW: Final = 34
"""A name of one line and its dot."""

DOTS_HEAD: Final = 10

NAME_CHARACTERS: Final = 54
"""What fits into a line; longer names go on in the next."""

ROWS_MAX: Final = 24
"""More are in the table alone."""

SPAN_LEAST: Final = 1.5
"""The axis reaches at least so many times either way of 1, so that small differences look small."""


def group_by(rows: Iterable[T], key: Callable[[T], K]) -> dict[K, list[T]]:
    """Rows of one key together, keys and rows in their order."""
    groups: dict[K, list[T]] = {}
    for row in rows:
        groups.setdefault(key(row), []).append(row)
    return groups


def charts_by_unit(
    rows: Iterable[T], unit: Callable[[T], str], draw: Callable[[list[T]], Figure | None]
) -> tuple[Figure, ...]:
    """A chart for each unit that rows have: bars of different units have no common scale."""
    figures = map(draw, group_by(rows, unit).values())
    return tuple(figure for figure in figures if figure is not None)


class Bar(Record):
    """One configuration's figure; `note` stands behind the number, as where it was reached.

    `level` is None for what nobody judged, `title` the whole name where `name` is a short one.
    """

    name: str
    token: Token
    value: Metric
    level: Level | None = None
    note: str = ""
    title: str = ""


class BarGroup(Record):
    """Bars of one workload."""

    title: str
    bars: tuple[Bar, ...]


class _PlacedBar(Record):
    """A bar with its group's title and the middle of its place."""

    bar: Bar
    title: str
    y: float


def horizontal_bar_chart(
    subject: str,
    title: str,
    groups: Sequence[BarGroup],
    *,
    finding: str,
    table: Table,
    per_unit: str = "",
    show_names: bool = True,
    better: Better = Better.HIGHER,
) -> Figure | None:
    """The bars of all groups on one scale, of many the best; None where none has a value.

    All values have one unit. `per_unit` is what they are told for: `TB raw`. Without
    `show_names` bars have no names: there is one configuration.
    """
    most = max(BARS_LEAST, BARS_MAX // max(min(len(groups), GROUPS_MAX), 1))
    leading = [BarGroup(group.title, _best_bars(group.bars, most, better)) for group in groups]
    drawn = [group for group in leading if group.bars][:GROUPS_MAX]
    if not drawn:
        return None
    bars = [bar for group in drawn for bar in group.bars]
    scale = linear_scale(
        bars[0].value.unit, [end for bar in bars for end in _bar_value_and_interval(bar)], ticks=3
    )
    rows, titles, height = _place_bars(drawn)
    unit = (
        excerpt(f"{scale.unit} for each {per_unit}", TITLE_CHARACTERS) if per_unit else scale.unit
    )
    x = replace(
        value_axis_of_scale(scale),
        title=unit,
        has_grid=True,
        has_line=False,
        start_offset=BARS_START if show_names else 0.0,
        end_offset=BARS_END,
    )
    marks = [*_bar_marks(rows, scale), *_text_marks(rows, titles, scale, show_names=show_names)]
    return Figure(
        subject=subject,
        title=title,
        finding=finding,
        note=_bar_chart_note(
            bars, sum(bool(_bar_value_and_interval(bar)) for group in groups for bar in group.bars)
        ),
        plots=(Plot(height, marks, replace(x, is_title_left=True), top=HEAD),),
        table=table,
        by_configuration=True,
    )


def _best_bars(bars: Sequence[Bar], max_bars: int, better: Better) -> tuple[Bar, ...]:
    """As many of the bars that have a value, in their order; those that are invalid last."""
    sign = 1.0 if better is Better.HIGHER else -1.0
    measured = [bar for bar in bars if _bar_value_and_interval(bar)]
    ranked = sorted(
        measured, key=lambda bar: (bar.level is Level.INVALID, -sign * (bar.value.value or 0.0))
    )[:max_bars]
    return tuple(bar for bar in measured if bar in ranked)


def _bar_value_and_interval(bar: Bar) -> list[float]:
    """Everything of a bar that must fit the scale; empty where it has no value."""
    if bar.value.value is None:
        return []
    return [bar.value.value, *(bar.value.interval_to_show or ())]


def _place_bars(
    groups: Sequence[BarGroup],
) -> tuple[list[_PlacedBar], list[tuple[str, float]], int]:
    """Each bar with its place, each line of a title with its base line, and the height of all."""
    rows: list[_PlacedBar] = []
    titles = []
    top = 0.0
    for group in groups:
        for number, line in enumerate(wrap(escape_invisible(group.title), TITLE_CHARACTERS)):
            top += TITLE if number == 0 else LINE_GAP
            titles.append((line, top - 5))
        for bar in group.bars:
            rows.append(_PlacedBar(bar, group.title, top + STEP / 2))
            top += STEP
        top += GAP
    return rows, titles, round(top)


def _bar_marks(rows: Sequence[_PlacedBar], scale: Scale) -> Iterator[Mark]:
    """The bars of each colour, over them their intervals and the verdicts of doubted ones."""
    for token in dict.fromkeys(row.bar.token for row in rows):
        own = [row for row in rows if row.bar.token == token]
        name = own[0].bar.title or own[0].bar.name
        ends = [scale.scaled(row.bar.value.value or 0.0) for row in own]
        places = [
            (0.0, row.y - BAR / 2, end, row.y + BAR / 2) for row, end in zip(own, ends, strict=True)
        ]
        texts = [", ".join(filter(None, (row.title, row.bar.note))) for row in own]
        tip = MarkTip(name, texts=texts)
        yield Boxes(token=token, boxes=places, levels=[row.bar.level for row in own], tip=tip)
        spread = [
            (
                scale.scaled(row.bar.value.low or 0.0),
                row.y,
                scale.scaled(row.bar.value.high or 0.0),
                row.y,
            )
            for row in own
            if _has_interval(row.bar)
        ]
        if spread:
            yield LineSegments(token=INK, series=token, segments=spread, width=1.2)
        doubts = [
            (end, row.y, row.bar.level)
            for row, end in zip(own, ends, strict=True)
            if row.bar.level and _has_objection(row.bar)
        ]
        if doubts:
            yield Points(
                token=INK,
                series=token,
                places=[(end, y) for end, y, _ in doubts],
                levels=[level for _, _, level in doubts],
            )


def _has_objection(bar: Bar) -> bool:
    return bar.level in (Level.INDICATIVE, Level.INVALID)


def _text_marks(
    rows: Sequence[_PlacedBar],
    titles: Sequence[tuple[str, float]],
    scale: Scale,
    *,
    show_names: bool,
) -> Iterator[Mark]:
    """Titles over the groups, names before the bars, values behind them."""
    for row in rows:
        beyond = _BEYOND_MARK if _has_objection(row.bar) else _BEYOND
        place = (
            scale.scaled(max(_bar_value_and_interval(row.bar))),
            row.y,
            _bar_value_text(row.bar, scale),
        )
        of = row.bar.token
        yield TextMark(token=INK, series=of, places=[place], dx=beyond, dy=MIDDLE + 0.5)
    if show_names:
        names = [(float(NAMES_END), row.y, escape_invisible(row.bar.name)) for row in rows]
        yield TextMark(token=MUTED, places=names, align="end", dy=MIDDLE + 0.5, is_fixed=True)
    start = float(BARS_START) if show_names else 0.0
    over = [(start, y, text) for text, y in titles]
    if over:
        yield TextMark(token=INK, places=over, is_fixed=True)


def _bar_value_text(bar: Bar, scale: Scale) -> str:
    value = scale.scaled(bar.value.value or 0.0)
    number = f"{value:,.0f}" if value >= 99.95 else f"{value:.3g}"
    text = escape_invisible(f"{number} {bar.note}".strip())
    return text if len(text) <= VALUE_CHARACTERS else number


def _has_interval(bar: Bar) -> bool:
    ends = bar.value.interval_to_show
    return ends is not None and ends[1] > ends[0]


def _bar_chart_note(bars: Sequence[Bar], total_bars: int) -> str:
    notes = []
    spread = [bar.value for bar in bars if _has_interval(bar)]
    if any(not value.is_bin_bound for value in spread):
        notes.append("A line through a bar’s end is its 95 % interval.")
    if any(value.is_bin_bound for value in spread):
        notes.append("A line through a bar’s end is what rounding leaves open.")
    notes += missing_interval_notes([bar.value for bar in bars], "bars")
    if any(_has_objection(bar) for bar in bars):
        notes.append(HATCHED)
    if len(bars) < total_bars:
        notes.append(
            f"The best of each, {len(bars)} of {counted_noun(total_bars, 'bar')}; the table has "
            "all."
        )
    return " ".join(notes)


class RatioDot(Record):
    """A row: `ratio` is how many times the published figure ours is."""

    name: str
    token: Token
    ratio: Metric
    level: Level


def ratio_dot_chart(
    subject: str, title: str, finding: str, note: str, dots: Sequence[RatioDot], table: Table
) -> Figure:
    """The dots one below the other on a logarithmic scale of ratios."""
    drawn = [dot for dot in dots if dot.ratio.value][:ROWS_MAX]
    low, high = _ratio_axis_range(drawn)
    length = WIDTH - 2 * SIDE
    x = ChartAxis(
        Scale(1.0, "", low, high, (), is_logarithmic=True),
        tuple((tick, axis_number_text(tick)) for tick in _ratio_ticks(low, high)),
        "times the published figure",
        has_grid=True,
        has_line=False,
        end_offset=length,
    )
    marks: list[Mark] = [
        LineSegments(token=MUTED, segments=[(1.0, None, 1.0, None)], width=1, dash=(3, 3))
    ]
    height = 0.0
    for dot in drawn:
        names = wrap(escape_invisible(dot.name), NAME_CHARACTERS) or [""]
        marks += _ratio_dot_marks(dot, names, height)
        height += DOT_ROW + LINE_GAP * (len(names) - 1)
    height = height or DOT_ROW
    plot = Plot(height, marks, x, top=DOTS_HEAD, left=SIDE, width=length)
    return Figure(
        subject=subject,
        title=title,
        finding=finding,
        note=note,
        plots=(plot,),
        table=table,
        by_configuration=True,
    )


def _ratio_axis_range(dots: Sequence[RatioDot]) -> tuple[float, float]:
    """The axis from the lowest to the highest end, on both sides of 1, with a little room."""
    ends = [
        end
        for dot in dots
        for end in (dot.ratio.value, dot.ratio.low, dot.ratio.high)
        if end is not None and end > 0
    ]
    low, high = min(ends, default=1.0), max(ends, default=1.0)
    return min(low / 1.15, 1 / SPAN_LEAST), max(high * 1.15, SPAN_LEAST)


def _ratio_ticks(low: float, high: float) -> list[float]:
    """At most seven round ratios: 1-2-5 over few decades, powers of ten over many."""
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    fine = [m * 10.0**d for d in decades for m in (1, 2, 5) if low <= m * 10.0**d <= high]
    tens = [10.0**d for d in decades if low <= 10.0**d <= high]
    ticks = fine if len(fine) <= 7 else tens
    step = math.ceil(len(ticks) / 7)
    # Counted from 1 both ways, so that 1 itself is always named.
    first = next((i for i, tick in enumerate(ticks) if tick == 1.0), 0) % step
    return [float(f"{tick:.6g}") for tick in ticks[first::step]]


def _ratio_dot_marks(dot: RatioDot, name_lines: Sequence[str], top: float) -> list[Mark]:
    """A name, a faint line to follow, the interval, and the dot in the shape of its verdict."""
    y, token, ratio = top + LINE_GAP * (len(name_lines) - 1) + 24.0, dot.token, dot.ratio
    lines = [(0.0, top + 15 + LINE_GAP * number, name) for number, name in enumerate(name_lines)]
    marks: list[Mark] = [
        LineSegments(token=FAINT, segments=[(None, y, None, y)], width=1),
        TextMark(token=INK, places=lines, has_rim=True, is_fixed=True),
    ]
    if ratio.low is not None and ratio.high is not None and ratio.low > 0:
        marks.append(LineSegments(token=token, segments=[(ratio.low, y, ratio.high, y)], width=1.8))
    place = (ratio.value or 1.0, y)
    tip = MarkTip(dot.name)
    return [*marks, Points(token=token, places=[place], levels=[dot.level], tip=tip)]
