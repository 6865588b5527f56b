"""How many times a published figure was reached: a dot a figure with its interval, 1 as the mark.

Each row has its name above it, so that names of any length fit a phone.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from iolab.core.metric import Level, Metric
from iolab.report.charts.chart import BOTTOM, WIDTH, Figure, Spec, config
from iolab.report.charts.lines import shape_of
from iolab.report.numbers import short
from iolab.report.palette import FAINT, INK, MUTED, PAPER, Token
from iolab.report.table import Table

SIDE: Final = 14
ROW: Final = 34
"""A name and its dot."""

HEAD: Final = 10
NAME_CHARACTERS: Final = 52
ROWS_MAX: Final = 24
"""More are in the table alone."""

SPAN_LEAST: Final = 1.5
"""The axis reaches at least so many times either way of 1, so that small differences look small."""


@dataclass(frozen=True, slots=True)
class Dot:
    """A row: `ratio` is how many times the published figure ours is."""

    name: str
    token: Token
    ratio: Metric
    level: Level


def beside_figure(
    subject: str, title: str, finding: str, note: str, dots: Sequence[Dot], table: Table
) -> Figure:
    """The dots one below the other on a logarithmic scale of ratios."""
    drawn = [dot for dot in dots if dot.ratio.value][:ROWS_MAX]
    height = ROW * max(len(drawn), 1)
    low, high = _ends(drawn)
    x: Spec = {
        "type": "quantitative",
        "scale": {"type": "log", "domain": [low, high], "nice": False},
        "axis": {
            "values": _ticks(low, high),
            "format": ",.6~r",
            "title": "times the published figure",
            "ticks": False,
            "domain": False,
            "labelPadding": 6,
        },
    }
    layers: list[Spec] = [_mark_of_one(x, height)]
    for number, dot in enumerate(drawn):
        layers += _row(dot, number, x, low)
    return Figure(
        subject=subject,
        title=title,
        finding=finding,
        note=note,
        spec={
            "$schema": "https://vega.github.io/schema/vega-lite/v6.json",
            "width": WIDTH - 2 * SIDE,
            "height": height,
            "padding": {"left": SIDE, "right": SIDE, "top": HEAD, "bottom": BOTTOM},
            "autosize": {"type": "none"},
            "config": config(),
            "layer": layers,
        },
        width=WIDTH,
        height=HEAD + height + BOTTOM,
        table=table,
    )


def _ends(dots: Sequence[Dot]) -> tuple[float, float]:
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


def _mark_of_one(x: Spec, height: int) -> Spec:
    return {
        "data": {"values": [{"x": 1.0}]},
        "mark": {"type": "rule", "stroke": MUTED.stand_in, "strokeDash": [3, 3]},
        "encoding": {
            "x": {"field": "x", **x},
            "y": {"value": 0},
            "y2": {"value": height},
        },
    }


def _row(dot: Dot, number: int, x: Spec, low: float) -> list[Spec]:
    """A name, a faint line to follow, the interval, and the dot in the shape of its verdict."""
    y = ROW * number + 24
    place: Spec = {"y": {"value": y}}
    layers: list[Spec] = [
        {
            "data": {"values": [{"x": low}]},
            "mark": {"type": "rule", "stroke": FAINT.stand_in},
            "encoding": {"x": {"field": "x", **x}, "x2": {"value": WIDTH - 2 * SIDE}, **place},
        },
        {
            "data": {"values": [{"text": short(dot.name, NAME_CHARACTERS)}]},
            "mark": {
                "type": "text",
                "align": "left",
                "baseline": "alphabetic",
                "fill": INK.stand_in,
            },
            "encoding": {
                "x": {"value": 0},
                "y": {"value": y - 9},
                "text": {"field": "text", "type": "nominal"},
            },
        },
    ]
    colour = dot.token.stand_in
    if dot.ratio.low is not None and dot.ratio.high is not None and dot.ratio.low > 0:
        layers.append(
            {
                "data": {"values": [{"x": dot.ratio.low, "x2": dot.ratio.high}]},
                "mark": {"type": "rule", "stroke": colour, "strokeWidth": 1.8},
                "encoding": {"x": {"field": "x", **x}, "x2": {"field": "x2"}, **place},
            }
        )
    valid = dot.level is Level.VALID
    layers.append(
        {
            "data": {"values": [{"x": dot.ratio.value}]},
            "mark": {
                "type": "point",
                "shape": shape_of(dot.level),
                "size": 46 if valid else 72,
                "filled": False,
                "fill": colour if valid else PAPER.stand_in,
                "stroke": colour,
                "strokeWidth": 1.6,
                "opacity": 1,
            },
            "encoding": {"x": {"field": "x", **x}, **place},
        }
    )
    return layers
