"""Figures side by side, lying bars: a group for each workload, a bar for each configuration.

Names stand before the bars and values behind them, so that no legend is needed. Bars start at zero;
a line through a bar's end is its interval.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from iolab.core.metric import Level, Metric
from iolab.report.charts.bar_pattern import HATCHED, Box, doubt, hatching
from iolab.report.charts.chart import (
    BOTTOM,
    NUMBER_FORMAT,
    PLOT_WIDTH,
    WIDTH,
    Figure,
    Scale,
    Spec,
    linear_scale,
    top_level,
)
from iolab.report.charts.lines import MAX_LINES
from iolab.report.numbers import clean, count, short
from iolab.report.palette import INK, MUTED, Token
from iolab.report.table import Table

HEAD: Final = 8
BAR: Final = 11
STEP: Final = 16
TITLE: Final = 19
GAP: Final = 7

NAMES_END: Final = 54
BARS_START: Final = 60
BARS_END: Final = 250
"""Pixels of the plot: names end, bars start, and the longest bar ends; values stand behind."""

NAME_CHARACTERS: Final = 13
TOLD_CHARACTERS: Final = 19
TITLE_CHARACTERS: Final = 48

_BEYOND: Final = 6
_BEYOND_MARK: Final = 10
"""How far values stand behind a bar's end, or its interval's; a verdict's marker takes room."""

GROUPS_MAX: Final = 12
"""More workloads than this make a chart longer than a page; the others stand in the table."""


@dataclass(frozen=True, slots=True)
class Bar:
    """One configuration's figure; `told` stands behind the number, as where it was reached.

    `level` is None for what nobody judged.
    """

    name: str
    token: Token
    value: Metric
    level: Level | None = None
    told: str = ""


@dataclass(frozen=True, slots=True)
class BarGroup:
    """Bars of one workload."""

    title: str
    bars: tuple[Bar, ...]


@dataclass(frozen=True, slots=True)
class _Plot:
    """The scale of the values, the unit in words, and the height of all bars."""

    scale: Scale
    unit: str
    height: int

    def x(self) -> Spec:
        """A value along the bars."""
        return {
            "field": "x",
            "type": "quantitative",
            "scale": {**self.scale.spec(), "range": [BARS_START, BARS_END]},
            "axis": {
                "values": list(self.scale.ticks),
                "format": NUMBER_FORMAT,
                "title": self.unit,
                "titleAnchor": "start",
                "titleX": BARS_START,
                "titleAlign": "left",
                "domain": False,
                "ticks": False,
                "labelPadding": 6,
            },
        }

    def y(self) -> Spec:
        """A place in pixels from the top; strokes of hatching break only where there is a scale."""
        ends = [0, self.height]
        scale = {"domain": ends, "range": ends, "nice": False, "zero": False}
        return {"field": "y", "type": "quantitative", "scale": scale, "axis": None}


@dataclass(frozen=True, slots=True)
class _Row:
    """A bar with the middle of its place."""

    bar: Bar
    y: float


def lying_bars(
    subject: str,
    title: str,
    groups: Sequence[BarGroup],
    *,
    finding: str,
    table: Table,
    per: str = "",
    named: bool = True,
) -> Figure | None:
    """The bars of all groups on one scale; None where none has a value.

    All values have one unit. `per` is what they are told for: `TB raw`. Without
    `named` bars have no names: there is one configuration.
    """
    known = [
        BarGroup(one.title, tuple(bar for bar in one.bars[:MAX_LINES] if _ends(bar)))
        for one in groups
    ]
    drawn = [one for one in known if one.bars][:GROUPS_MAX]
    if not drawn:
        return None
    bars = [bar for one in drawn for bar in one.bars]
    scale = linear_scale(bars[0].value.unit, [end for bar in bars for end in _ends(bar)], ticks=3)
    rows, titles, height = _places(drawn)
    unit = short(f"{scale.unit} for each {per}", TITLE_CHARACTERS) if per else scale.unit
    plot = _Plot(scale, unit, height)
    layers = [
        *_bars(rows, plot),
        *hatching([_box(row, scale) for row in rows if _is_doubted(row.bar)]),
        *_intervals(rows, plot),
        *_doubts(rows, plot),
        *_texts(rows, titles, plot, named=named),
    ]
    return Figure(
        subject=subject,
        title=title,
        finding=finding,
        note=_note(bars, sum(len(one.bars) for one in groups) - len(bars)),
        spec={**top_level(PLOT_WIDTH, height, top=HEAD), "layer": layers},
        width=WIDTH,
        height=HEAD + height + BOTTOM,
        table=table,
    )


def _ends(bar: Bar) -> list[float]:
    """Everything of a bar that must fit the scale; empty where it has no value."""
    if bar.value.value is None:
        return []
    return [bar.value.value, *(bar.value.interval or ())]


def _places(groups: Sequence[BarGroup]) -> tuple[list[_Row], list[tuple[str, float]], int]:
    """Each bar with its place, each title with its base line, and the height of all."""
    rows: list[_Row] = []
    titles = []
    top = 0.0
    for group in groups:
        if group.title:
            titles.append((group.title, top + TITLE - 5))
            top += TITLE
        for bar in group.bars:
            rows.append(_Row(bar, top + STEP / 2))
            top += STEP
        top += GAP
    return rows, titles, round(top)


def _bars(rows: Sequence[_Row], plot: _Plot) -> list[Spec]:
    """One layer for each colour."""
    tokens = dict.fromkeys(row.bar.token for row in rows)
    return [
        {
            "data": {
                "values": [
                    {
                        "x": 0,
                        "x2": _of(plot.scale, row.bar.value.value),
                        "y": row.y - BAR / 2,
                        "y2": row.y + BAR / 2,
                    }
                    for row in rows
                    if row.bar.token == token
                ]
            },
            "mark": {"type": "rect", "fill": token.stand_in, "stroke": None, "opacity": 1},
            "encoding": {
                "x": plot.x(),
                "x2": {"field": "x2"},
                "y": plot.y(),
                "y2": {"field": "y2"},
            },
        }
        for token in tokens
    ]


def _is_doubted(bar: Bar) -> bool:
    return bar.level in (Level.INDICATIVE, Level.INVALID)


def _box(row: _Row, scale: Scale) -> Box:
    """Where a bar stands."""
    end = BARS_START + (BARS_END - BARS_START) * scale.share(_of(scale, row.bar.value.value))
    return Box(BARS_START, row.y - BAR / 2, end, row.y + BAR / 2)


def _intervals(rows: Sequence[_Row], plot: _Plot) -> list[Spec]:
    values = [
        {
            "x": _of(plot.scale, row.bar.value.low),
            "x2": _of(plot.scale, row.bar.value.high),
            "y": row.y,
        }
        for row in rows
        if _has_interval(row.bar)
    ]
    if not values:
        return []
    return [
        {
            "data": {"values": values},
            "mark": {"type": "rule", "stroke": INK.stand_in, "strokeWidth": 1.2},
            "encoding": {"x": plot.x(), "x2": {"field": "x2"}, "y": plot.y()},
        }
    ]


def _doubts(rows: Sequence[_Row], plot: _Plot) -> list[Spec]:
    """The marker of the verdict on bars that are not valid."""
    layers: list[Spec] = []
    for level in (Level.INDICATIVE, Level.INVALID):
        values = [
            {"x": _of(plot.scale, row.bar.value.value), "y": row.y}
            for row in rows
            if row.bar.level is level
        ]
        if values:
            layers.append(
                {
                    "data": {"values": values},
                    "mark": doubt(level),
                    "encoding": {"x": plot.x(), "y": plot.y()},
                }
            )
    return layers


def _texts(
    rows: Sequence[_Row],
    titles: Sequence[tuple[str, float]],
    plot: _Plot,
    *,
    named: bool,
) -> list[Spec]:
    """Titles over the groups, names before the bars, values behind them."""
    before = [
        {"y": row.y + 0.5, "text": short(row.bar.name, NAME_CHARACTERS)} for row in rows if named
    ]
    over = [{"y": y, "text": short(text, TITLE_CHARACTERS)} for text, y in titles]
    mark = {"type": "text", "align": "left", "baseline": "middle", "fill": INK.stand_in}
    text = {"field": "text", "type": "nominal"}
    layers: list[Spec] = []
    for doubted, beyond in ((False, _BEYOND), (True, _BEYOND_MARK)):
        behind = [
            {
                "x": _of(plot.scale, max(_ends(one.bar))),
                "y": one.y + 0.5,
                "text": _told(one.bar, plot.scale),
            }
            for one in rows
            if _is_doubted(one.bar) is doubted
        ]
        if behind:
            layers.append(
                {
                    "data": {"values": behind},
                    "mark": {**mark, "dx": beyond},
                    "encoding": {"x": plot.x(), "y": plot.y(), "text": text},
                }
            )
    if before:
        layers.append(
            {
                "data": {"values": before},
                "mark": {**mark, "align": "right", "fill": MUTED.stand_in},
                "encoding": {"x": {"value": NAMES_END}, "y": plot.y(), "text": text},
            }
        )
    if over:
        start = BARS_START if named else 0
        layers.append(
            {
                "data": {"values": over},
                "mark": {**mark, "baseline": "alphabetic"},
                "encoding": {"x": {"value": start}, "y": plot.y(), "text": text},
            }
        )
    return layers


def _told(bar: Bar, scale: Scale) -> str:
    value = scale.of(bar.value.value or 0.0)
    number = f"{value:,.0f}" if value >= 99.95 else f"{value:.3g}"
    told = clean(f"{number} {bar.told}")
    return told if len(told) <= TOLD_CHARACTERS else number


def _of(scale: Scale, value: float | None) -> float:
    """A value in the scale's unit, to six digits."""
    return float(f"{scale.of(value or 0.0):.6g}")


def _has_interval(bar: Bar) -> bool:
    ends = bar.value.interval
    return ends is not None and ends[1] > ends[0]


def _note(bars: Sequence[Bar], left_out: int) -> str:
    notes = []
    spread = [bar.value for bar in bars if _has_interval(bar)]
    if any(not one.bounded for one in spread):
        notes.append("A line through a bar’s end is its 95 % interval.")
    if any(one.bounded for one in spread):
        notes.append("A line through a bar’s end is what rounding leaves open.")
    few = sum(bar.value.lacks_repeats for bar in bars)
    if few:
        notes.append(f"Too few repeats for an interval of {few} of {len(bars)} bars.")
    if any(_is_doubted(bar) for bar in bars):
        notes.append(HATCHED)
    if left_out > 0:
        notes.append(f"{count(left_out, 'bar')} more in the table, or without a value.")
    return " ".join(notes)
