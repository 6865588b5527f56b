"""Latency against performance: a line a configuration, a labelled point for each value of the load.

Down and to the right is better. The points are joined in the order of the load, and arrows on the
line point to more of it, so that a line that turns back tells of more load for less performance.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Final

from iolab.analysis.points import PointSummary
from iolab.core.metric import Level, Metric
from iolab.report.charts.chart import (
    BOTTOM,
    NUMBER_FORMAT,
    PLOT_WIDTH,
    WIDTH,
    Figure,
    Scale,
    Spec,
    bar_notes,
    end_labels,
    linear_scale,
    log_scale,
    top_level,
    unit_mark,
)
from iolab.report.charts.lines import MAX_LINES, Line, Quantity, axis_value, markers, trust_of
from iolab.report.charts.lines import quantities_table as table_of
from iolab.report.numbers import count, short, show_value
from iolab.report.palette import PAPER

HEIGHT: Final = 230
HEAD: Final = 32

_ROOM: Final = 1.05
"""Beyond the last point, for its label."""

_ARROW: Final = "M0,-.6L.5,.5L-.5,.5Z"
"""A head that points up, in a unit square; it is turned to where the line goes."""

_ARROW_ROOM: Final = 26.0
"""Between nearer points the order of their numbers says it, and a head would hide the line."""

_NO_METRIC: Final = Metric(None, "")
_DASHES: Final = ((), (4, 3))

Place = tuple[str, float, float, PointSummary]
"""The load as the study writes it, performance, latency, and the point."""


def tradeoff_figure(
    subject: str,
    axis: str,
    lines: Sequence[Line],
    performance: Quantity,
    unit: str,
    latencies: Sequence[Quantity],
    *,
    note: str = "",
) -> Figure:
    """Up to two latencies (the second dashed) against `performance`, points labelled by `axis`.

    `note` is what else to know.
    """
    drawn = lines[:MAX_LINES]
    placed = {
        (index, one.key): places(line, axis, performance.key, one.key)
        for index, line in enumerate(drawn)
        for one in latencies
    }
    every = [place for found in placed.values() for place in found]
    x_scale = linear_scale(unit, [_ROOM * rate for _, rate, _, _ in every], ticks=3)
    y_scale = log_scale("ns", _latencies(every, [one.key for one in latencies]))
    layers: list[Spec] = []
    ends: list[tuple[str, float, str]] = []
    for index, line in enumerate(drawn):
        for dash, one in zip(_DASHES, latencies, strict=False):
            found = placed[index, one.key]
            layers += _layers(found, line, one.key, dash, x_scale, y_scale)
            if found:
                name = one.label if len(drawn) == 1 or dash else line.name
                ends.append((name, y_scale.of(found[-1][2]), line.token.stand_in))
    notes = [f"The number at a point is its {axis}, and arrows point to more of it; "]
    notes[0] += "down and to the right is better."
    if len(latencies) > 1:
        notes.append(f"Solid: {latencies[0].label}; dashed: {latencies[1].label}.")
    metrics = [place[3].metrics.get(one.key, _NO_METRIC) for place in every for one in latencies]
    notes += bar_notes(metrics, "Bars: 95 % interval of the latency.")
    if len(lines) > len(drawn):
        notes.append(f"{count(len(lines) - len(drawn), 'line')} more in the table.")
    notes += [note] if note else []
    named = " and ".join(one.name for one in latencies)
    return Figure(
        subject=subject,
        title=f"{named[0].upper()}{named[1:]} against {_in_words(performance.name)}",
        finding=_finding(drawn, axis, placed, latencies[-1], unit),
        note=" ".join(notes),
        spec={
            **top_level(PLOT_WIDTH, HEIGHT, top=HEAD),
            "layer": [
                *layers,
                *end_labels(ends, y_scale, HEIGHT, PLOT_WIDTH + 12),
                unit_mark(y_scale.unit),
            ],
        },
        width=WIDTH,
        height=HEAD + HEIGHT + BOTTOM,
        table=table_of(subject, axis, lines, (performance, *latencies)),
    )


def _in_words(name: str) -> str:
    """A quantity within a heading: an abbreviation stays one."""
    return name if name.isupper() else name.lower()


def places(line: Line, axis: str, rate: str, latency: str) -> list[Place]:
    """The line's points that have both, in the order of the load."""
    found = []
    for point in line.points:
        at = axis_value(point, axis)
        x, y = (point.metrics.get(key, _NO_METRIC).value for key in (rate, latency))
        if at is not None and x is not None and y is not None:
            found.append((at, (str(dict(point.key.axis)[axis]), x, y, point)))
    return [place for _, place in sorted(found, key=lambda pair: pair[0])]


def _latencies(every: Sequence[Place], keys: Sequence[str]) -> list[float]:
    """Everything that is drawn, so that it fits the scale."""
    found = [latency for _, _, latency, _ in every]
    for _, _, _, point in every:
        metrics = [point.metrics.get(key, _NO_METRIC) for key in keys]
        found += [v for one in metrics if one.value for v in (one.low, one.high) if v is not None]
    return found


def _layers(
    found: Sequence[Place],
    line: Line,
    key: str,
    dash: tuple[int, ...],
    x_scale: Scale,
    y_scale: Scale,
) -> list[Spec]:
    """The line through the points, intervals, markers by verdict, and the loads beside them."""
    colour = line.token.stand_in
    encoding = {"x": _x(x_scale), "y": _y(y_scale)}
    rows = [
        {"x": x_scale.of(rate), "y": y_scale.of(latency), "n": number, "t": text}
        for number, (text, rate, latency, _) in enumerate(found)
    ]
    layers: list[Spec] = [
        {
            "data": {"values": rows},
            "mark": {"type": "line", "stroke": colour, "strokeDash": list(dash)},
            "encoding": {**encoding, "order": {"field": "n", "type": "quantitative"}},
        }
    ]
    bars = [
        {"x": x_scale.of(rate), "y": ends[0], "y2": ends[1]}
        for _, rate, _, point in found
        if (ends := _interval(point, key, y_scale))
    ]
    if bars:
        layers.append(
            {
                "data": {"values": bars},
                "mark": {"type": "rule", "stroke": colour, "strokeWidth": 1.4},
                "encoding": {**encoding, "y2": {"field": "y2"}},
            }
        )
    for level in Level:
        held = [
            {"x": x_scale.of(rate), "y": y_scale.of(latency)}
            for _, rate, latency, point in found
            if point.level is level
        ]
        if held:
            layers.append(markers(held, level, colour, encoding, small=False))
    shares = [
        (x_scale.share(x_scale.of(rate)), y_scale.share(y_scale.of(latency)))
        for _, rate, latency, _ in found
    ]
    arrows = _arrows([(x * PLOT_WIDTH, (1 - y) * HEIGHT) for x, y in shares], colour)
    return [*layers, *arrows, *_loads(rows, colour, encoding)] if rows else []


def _arrows(pixels: Sequence[tuple[float, float]], colour: str) -> list[Spec]:
    """A head in the middle of every stretch between two points that has room for it."""
    rows = [
        {
            "x": round((x + x2) / 2, 1),
            "y": round((y + y2) / 2, 1),
            "a": round(math.degrees(math.atan2(x2 - x, y - y2))),
        }
        for (x, y), (x2, y2) in pairwise(pixels)
        if math.hypot(x2 - x, y2 - y) >= _ARROW_ROOM
    ]
    if not rows:
        return []
    plain = {"type": "quantitative", "scale": None, "axis": None}
    angle = {"field": "a", "type": "quantitative", "scale": None}
    return [
        {
            "data": {"values": rows},
            "mark": {
                "type": "point",
                "shape": _ARROW,
                "size": 60,
                "filled": True,
                "fill": colour,
                "stroke": None,
                "opacity": 1,
            },
            "encoding": {
                "x": {"field": "x", **plain},
                "y": {"field": "y", **plain},
                "angle": angle,
            },
        }
    ]


def _loads(rows: list[dict[str, object]], colour: str, encoding: Spec) -> list[Spec]:
    """The load of each point below it, on a rim of paper, so that lines do not cross it out."""
    text = {"type": "text", "align": "left", "baseline": "top", "dx": 5, "dy": 4}
    shown = {**encoding, "text": {"field": "t", "type": "nominal"}}
    rim = {**text, "fill": PAPER.stand_in, "stroke": PAPER.stand_in, "strokeWidth": 3}
    return [
        {"data": {"values": rows}, "mark": rim, "encoding": shown},
        {"data": {"values": rows}, "mark": {**text, "fill": colour}, "encoding": shown},
    ]


def _interval(point: PointSummary, key: str, scale: Scale) -> tuple[float, float] | None:
    metric = point.metrics.get(key, _NO_METRIC)
    if metric.value is None or metric.low is None or metric.high is None:
        return None
    return scale.of(metric.low), scale.of(metric.high)


def _x(scale: Scale) -> Spec:
    return {
        "field": "x",
        "type": "quantitative",
        "scale": scale.spec(),
        "axis": {
            "values": list(scale.ticks),
            "format": NUMBER_FORMAT,
            "title": scale.unit,
            "grid": False,
            "tickSize": 4,
        },
    }


def _y(scale: Scale) -> Spec:
    return {"field": "y", "type": "quantitative", "scale": scale.spec(), "axis": scale.axis()}


def _finding(
    lines: Sequence[Line],
    axis: str,
    placed: dict[tuple[int, str], list[Place]],
    latency: Quantity,
    unit: str,
) -> str:
    """One sentence a line: its first and its last point."""
    sentences = []
    for index, line in enumerate(lines):
        found = placed[index, latency.key]
        name = f"{short(line.name, 40)}: " if len(lines) > 1 else ""
        if not found:
            sentences.append(f"{name}{'no' if name else 'No'} point has both values.")
            continue
        told = [
            f"{show_value(rate, unit)} at {latency.label} {show_value(value, 'ns')} ({axis} {text})"
            for text, rate, value, _ in (found[0], found[-1])[: len(found)]
        ]
        trust = trust_of([place[3].level for place in found])
        start = "From " if not name else "from "
        joined = f"{start}{' to '.join(told)}" if len(told) > 1 else told[0]
        sentences.append(f"{name}{joined}; {trust}.")
    return " ".join(sentences)
