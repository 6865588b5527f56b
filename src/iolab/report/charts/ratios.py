"""How many times a published figure was reached: a dot a figure with its interval, 1 as the mark.

Each row has its name above it, so that names of any length fit a phone.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from textwrap import wrap
from typing import Final

from iolab.core.metric import Level, Metric
from iolab.report.charts.chart import LINE_GAP, Figure, Mark, MarkTip, Plot, Points, Rules, TextMark
from iolab.report.charts.palette import FAINT, INK, MUTED, Token
from iolab.report.charts.scale import WIDTH, ChartAxis, Scale, number_text
from iolab.report.numbers import clean
from iolab.report.table import Table

SIDE: Final = 14
ROW: Final = 34
"""A name of one line and its dot."""

HEAD: Final = 10
NAME_CHARACTERS: Final = 54
"""What fits into a line; longer names go on in the next."""

ROWS_MAX: Final = 24
"""More are in the table alone."""

SPAN_LEAST: Final = 1.5
"""The axis reaches at least so many times either way of 1, so that small differences look small."""


@dataclass(frozen=True, slots=True)
class RatioRow:
    """A row: `ratio` is how many times the published figure ours is."""

    name: str
    token: Token
    ratio: Metric
    level: Level


def beside_figure(
    subject: str, title: str, finding: str, note: str, dots: Sequence[RatioRow], table: Table
) -> Figure:
    """The dots one below the other on a logarithmic scale of ratios."""
    drawn = [dot for dot in dots if dot.ratio.value][:ROWS_MAX]
    low, high = _ends(drawn)
    length = WIDTH - 2 * SIDE
    x = ChartAxis(
        Scale(1.0, "", low, high, (), log=True),
        tuple((tick, number_text(tick)) for tick in _ticks(low, high)),
        "times the published figure",
        grid=True,
        line=False,
        last=length,
    )
    marks: list[Mark] = [Rules(token=MUTED, pieces=[(1.0, None, 1.0, None)], width=1, dash=(3, 3))]
    height = 0.0
    for dot in drawn:
        names = wrap(clean(dot.name), NAME_CHARACTERS) or [""]
        marks += _row(dot, names, height)
        height += ROW + LINE_GAP * (len(names) - 1)
    height = height or ROW
    plot = Plot(height, marks, x, top=HEAD, left=SIDE, width=length)
    return Figure(
        subject=subject,
        title=title,
        finding=finding,
        note=note,
        plots=(plot,),
        table=table,
        by_configuration=True,
    )


def _ends(dots: Sequence[RatioRow]) -> tuple[float, float]:
    """The axis from the lowest to the highest end, on both sides of 1, with a little room."""
    found = [
        end
        for dot in dots
        for end in (dot.ratio.value, dot.ratio.low, dot.ratio.high)
        if end is not None and end > 0
    ]
    low, high = min(found, default=1.0), max(found, default=1.0)
    return min(low / 1.15, 1 / SPAN_LEAST), max(high * 1.15, SPAN_LEAST)


def _ticks(low: float, high: float) -> list[float]:
    """At most seven round ratios: 1-2-5 over few decades, powers of ten over many."""
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    fine = [m * 10.0**d for d in decades for m in (1, 2, 5) if low <= m * 10.0**d <= high]
    tens = [10.0**d for d in decades if low <= 10.0**d <= high]
    found = fine if len(fine) <= 7 else tens
    step = math.ceil(len(found) / 7)
    # Counted from 1 both ways, so that 1 itself is always named.
    first = next((i for i, tick in enumerate(found) if tick == 1.0), 0) % step
    return [float(f"{tick:.6g}") for tick in found[first::step]]


def _row(dot: RatioRow, names: Sequence[str], top: float) -> list[Mark]:
    """A name, a faint line to follow, the interval, and the dot in the shape of its verdict."""
    y, token, ratio = top + LINE_GAP * (len(names) - 1) + 24.0, dot.token, dot.ratio
    lines = [(0.0, top + 15 + LINE_GAP * number, name) for number, name in enumerate(names)]
    marks: list[Mark] = [
        Rules(token=FAINT, pieces=[(None, y, None, y)], width=1),
        TextMark(token=INK, places=lines, rim=True, fixed=True),
    ]
    if ratio.low is not None and ratio.high is not None and ratio.low > 0:
        marks.append(Rules(token=token, pieces=[(ratio.low, y, ratio.high, y)], width=1.8))
    place = (ratio.value or 1.0, y)
    tip = MarkTip(dot.name)
    return [*marks, Points(token=token, places=[place], levels=[dot.level], tip=tip)]
