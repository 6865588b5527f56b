"""Latency by percentile: the tail stretched out, so that p99.9 has as much room as p90.

The axis is logarithmic in 1/(1-q): each step to the right is one more nine. Every curve ends at the
highest percentile that its number of I/Os supports.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from iolab.report.charts.chart import (
    BOTTOM,
    PLOT_WIDTH,
    WIDTH,
    Figure,
    Scale,
    Spec,
    end_labels,
    log_scale,
    top_level,
    unit_mark,
)
from iolab.report.numbers import NOTHING, count, short
from iolab.report.palette import PAPER, Token
from iolab.report.series import Curve
from iolab.report.table import Cell, Table, columns
from iolab.units import format_ns

HEIGHT: Final = 210
HEAD: Final = 32
MAX_CURVES: Final = 8
"""More curves than this cannot be told apart; the others stand in the table alone."""

MAX_SENTENCES: Final = 2

MARKS: Final = (50.0, 90.0, 99.0, 99.5, 99.9, 99.99, 99.999)
"""The percentiles that the table names."""

_TICKS: Final[tuple[tuple[float, str], ...]] = (
    (2, "50 %"),
    (1e4, "99.99 %"),
    (100, "99 %"),
    (10, "90 %"),
    (1000, "99.9 %"),
    (1e5, "99.999 %"),
    (1e6, "99.9999 %"),
)
"""Percentiles and their names, those first that no axis may lack: published ones end at 99.99."""
_SLACK: Final = 1e-6
"""Percentiles and their tails are inverse to each other only up to rounding."""

_CHARACTER: Final = 7.2
"""The width of a character of 12 units, generously."""
_BETWEEN: Final = 2.0
"""The least room between two names."""


@dataclass(frozen=True, slots=True)
class Drawn:
    """A curve with its look; `opacity` tells the axis's steps of one configuration apart."""

    curve: Curve
    label: str
    token: Token
    opacity: float = 1.0
    dash: tuple[int, ...] = ()


def distribution_figure(
    subject: str, title: str, drawn: Sequence[Drawn], noun: str = "I/Os"
) -> Figure:
    """The curves of one run (read, write) or of one workload (its axis values).

    `noun` is what has the latency.
    """
    shown = [one for one in drawn[:MAX_CURVES] if one.curve.tail]
    scale = log_scale("ns", [v for one in shown for v in one.curve.lat_ns])
    reach = max((one.curve.tail[-1] for one in shown), default=10.0) * (1 + _SLACK)
    layers = [layer for one in shown for layer in _layers(one, scale, reach, noun)]
    ends = [(one.label, scale.of(one.curve.lat_ns[-1]), one.token.stand_in) for one in shown]
    labels = end_labels(ends, scale, HEIGHT, PLOT_WIDTH + 10)
    left_out = len(drawn) - len(shown)
    note = "To the right, each step is one more nine. A curve ends where its " + noun
    note += " become too few."
    if left_out > 0:
        note += f" {count(left_out, 'curve')} more in the table."
    return Figure(
        subject=subject,
        title=title,
        finding=_finding([one.curve for one in shown], noun),
        note=note,
        spec={
            **top_level(PLOT_WIDTH, HEIGHT, top=HEAD),
            "layer": [*layers, *labels, unit_mark(scale.unit)],
        },
        width=WIDTH,
        height=HEAD + HEIGHT + BOTTOM,
        table=_table(title, [one.curve for one in drawn], noun),
    )


def at_percent(curve: Curve, percent: float) -> float | None:
    """The curve's latency (ns) at a percentile, None beyond what its I/Os support."""
    tail = 100.0 / (100.0 - percent)
    if not curve.tail or tail > curve.tail[-1] * (1 + _SLACK):
        return None
    index = next(i for i, t in enumerate(curve.tail) if t >= tail * (1 - _SLACK))
    return curve.lat_ns[index]


def _layers(one: Drawn, scale: Scale, reach: float, noun: str) -> list[Spec]:
    """The curve, and a dot at each percentile that the axis names."""
    encoding = {
        "x": {
            "field": "x",
            "type": "quantitative",
            "scale": {"domain": [0, math.log10(reach)], "nice": False, "zero": False},
            "axis": _axis(reach, noun),
        },
        "y": {"field": "y", "type": "quantitative", "scale": scale.spec(), "axis": scale.axis()},
    }
    line = [
        {"x": round(math.log10(tail), 4), "y": float(f"{scale.of(lat):.5g}")}
        for tail, lat in zip(one.curve.tail, one.curve.lat_ns, strict=True)
    ]
    dots = [
        {"x": math.log10(tick), "y": float(f"{scale.of(lat):.5g}")}
        for tick, _ in _ticks(reach)
        if (lat := at_percent(one.curve, 100.0 - 100.0 / tick)) is not None
    ]
    colour = one.token.stand_in
    curve = {
        "data": {"values": line},
        "mark": {
            "type": "line",
            "stroke": colour,
            "strokeDash": list(one.dash),
            "strokeOpacity": one.opacity,
        },
        "encoding": encoding,
    }
    points = {
        "data": {"values": dots},
        "mark": {
            "type": "point",
            "size": 26,
            "fill": colour,
            "stroke": PAPER.stand_in,
            "strokeWidth": 1,
            "opacity": 1,
        },
        "encoding": encoding,
    }
    return [curve, points] if dots else [curve]


def _ticks(reach: float) -> list[tuple[float, str]]:
    """The named percentiles within reach, in their order, as far as their names have room."""
    decades = max(math.log10(reach), 1.0)
    kept: list[tuple[float, float, str]] = []
    for tail, text in _TICKS:
        at, half = math.log10(tail) / decades * PLOT_WIDTH, _CHARACTER * len(text) / 2
        fits = all(
            abs(at - other) >= half + _CHARACTER * len(name) / 2 + _BETWEEN
            for _, other, name in kept
        )
        if tail <= reach and fits:
            kept.append((tail, at, text))
    return [(tail, text) for tail, _, text in sorted(kept)]


def _axis(reach: float, noun: str) -> Spec:
    """The percentile axis: names by a table of constants, since the scale is in decades."""
    ticks = _ticks(reach)
    names = " : ".join(f"abs(datum.value - {math.log10(t):.6f}) < 0.01 ? '{n}'" for t, n in ticks)
    return {
        "values": [round(math.log10(tail), 6) for tail, _ in ticks],
        "labelExpr": f"{names} : ''",
        "title": f"percentile of the {noun}",
        "grid": True,
        "tickSize": 4,
    }


def _finding(curves: Sequence[Curve], noun: str) -> str:
    """Each curve in a sentence; of many only the first and the last."""
    if len(curves) > MAX_SENTENCES:
        curves = (curves[0], curves[-1])
    return " ".join(_sentence(curve, noun) for curve in curves)


def _sentence(curve: Curve, noun: str) -> str:
    """What a curve says: its median and its last supported percentile."""
    median = at_percent(curve, 50.0)
    last = next((p for p in reversed(MARKS) if at_percent(curve, p) is not None), None)
    if median is None or last is None:
        return f"{short(curve.name, 40)}: too few {noun} for a percentile."
    tail = at_percent(curve, last)
    return (
        f"{short(curve.name, 40)}: half of the {noun} within {format_ns(median)}, "
        f"{last:g} % within {format_ns(tail or 0.0)}."
    )


def _table(title: str, curves: Sequence[Curve], noun: str) -> Table:
    heads = columns(
        ("Curve",), (noun[0].upper() + noun[1:], *(f"p{percent:g}" for percent in MARKS))
    )
    rows = tuple(
        (
            Cell(curve.name),
            Cell(f"{curve.total:,}"),
            *(
                Cell(NOTHING if (v := at_percent(curve, percent)) is None else format_ns(v))
                for percent in MARKS
            ),
        )
        for curve in curves
    )
    return Table(title, heads, rows)
