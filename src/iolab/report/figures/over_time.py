"""What charts over time share: the axis, lines with gaps, the shade over what does not count."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from iolab.report.detail import Panel
from iolab.report.figures.frame import NUMBER_FORMAT, Scale, Spec, linear_scale, time_ticks
from iolab.report.palette import INK, RAISED

FEW: Final = 3
"""Known values up to which a line has dots: a short phase has one, which is no line."""


@dataclass(frozen=True, slots=True)
class Stroke:
    """How a line is drawn; `opacity` None for a full one."""

    colour: str
    width: float
    dash: Sequence[float] = ()
    opacity: float | None = None


def seconds_axis(end: float, title: str | None) -> Spec:
    """The channel of time: grid lines in every panel, labels only under one that has a title."""
    return {
        "field": "x",
        "type": "quantitative",
        "scale": {"domain": [0, end], "nice": False, "zero": False},
        "axis": {
            "values": list(time_ticks(end)),
            "format": NUMBER_FORMAT,
            "labels": title is not None,
            "ticks": False,
            "domain": False,
            "labelPadding": 6,
            "title": title,
        },
    }


def panel_scale(panel: Panel, values: Sequence[float], ticks: int) -> Scale:
    """A linear scale; of shares it ends at the whole."""
    scale = linear_scale(panel.unit, values, ticks=ticks)
    if panel.unit == "share" and scale.high > 100:
        return Scale(scale.divisor, scale.unit, 0.0, 100.0, (0.0, 50.0, 100.0))
    return scale


def broken_line(
    at_s: Sequence[float],
    values: Sequence[float | None],
    scale: Scale,
    x: Spec,
    stroke: Stroke,
) -> list[Spec]:
    """A line with gaps where nothing is known; no layer where nothing is known at all."""
    rows = [
        {"x": round(at, 3), "y": None if v is None else float(f"{scale.of(v):.5g}")}
        for at, v in zip(at_s, values, strict=True)
    ]
    known = sum(1 for row in rows if row["y"] is not None)
    if not known:
        return []
    mark: Spec = {
        "type": "line",
        "stroke": stroke.colour,
        "strokeWidth": stroke.width,
        "strokeDash": list(stroke.dash),
        **({} if stroke.opacity is None else {"opacity": stroke.opacity}),
        "invalid": "break-paths-show-path-domains",
    }
    if known <= FEW:
        mark["point"] = {"size": 14, "fill": stroke.colour, "stroke": None, "opacity": 1}
    y = {"field": "y", "type": "quantitative", "scale": scale.spec(), "axis": scale.axis()}
    return [{"data": {"values": rows}, "mark": mark, "encoding": {"x": x, "y": y}}]


def shades(begin_s: float, end_s: float, last_s: float, x: Spec) -> list[Spec]:
    """What is before and after the measured window, up to the last second."""
    spans = [(0.0, begin_s), (end_s, last_s)]
    rows = [{"x": max(a, 0.0), "x2": min(b, last_s)} for a, b in spans if min(b, last_s) - a > 1e-3]
    if not rows:
        return []
    return [
        {
            "data": {"values": rows},
            "mark": {"type": "rect", "fill": RAISED.stand_in, "stroke": None},
            "encoding": {"x": x, "x2": {"field": "x2"}},
        }
    ]


def panel_heading(text: str) -> Spec:
    """What a panel shows and in which unit, over its upper left corner."""
    return {
        "data": {"values": [{"text": text}]},
        "mark": {"type": "text", "align": "left", "baseline": "bottom", "fill": INK.stand_in},
        "encoding": {
            "x": {"value": 0},
            "y": {"value": -7},
            "text": {"field": "text", "type": "nominal"},
        },
    }


def last_known(values: Sequence[float | None]) -> float | None:
    """The last value that is known."""
    return next((v for v in reversed(values) if v is not None), None)
