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
from iolab.core.configuration import Limit
from iolab.core.metric import Level, Metric
from iolab.report.charts.chart import (
    BOTTOM,
    LINE_GAP,
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
from iolab.report.charts.lines import (
    MAX_LINES,
    PANEL_GAP,
    PANEL_HEIGHT,
    Line,
    Quantity,
    axis_value,
    markers,
    trust_of,
)
from iolab.report.charts.lines import quantities_table as table_of
from iolab.report.numbers import count, short, show_value
from iolab.report.palette import MUTED, PAPER
from iolab.report.phrases import metric_words

HEIGHT: Final = 2 * PANEL_HEIGHT + PANEL_GAP
HEAD: Final = 32

_ROOM: Final = 1.05
"""Beyond the last point, for its label."""

_ARROW: Final = "M0,-.6L.5,.5L-.5,.5Z"
"""A head that points up, in a unit square; it is turned to where the line goes."""

_ARROW_ROOM: Final = 26.0
"""Between nearer points the order of their numbers says it, and a head would hide the line."""

_NAME_ROOM: Final = 40.0
"""Units that `limit` takes beside its point."""

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
    limit: Limit | None = None,
) -> Figure:
    """Up to two latencies (the second dashed) against `performance`, points labelled by `axis`.

    The knees of the lines are named, and of a `limit` on one of the latencies the most that stays
    under it. `note` is what else to know.
    """
    drawn = lines[:MAX_LINES]
    placed = {
        (index, one.key): places(line, axis, performance.key, one.key)
        for index, line in enumerate(drawn)
        for one in latencies
    }
    every = [place for found in placed.values() for place in found]
    x_scale = linear_scale(unit, [_ROOM * rate for _, rate, _, _ in every], ticks=3)
    held = limit if limit is not None and limit.metric in {one.key for one in latencies} else None
    drawn_latencies = _latencies(every, [one.key for one in latencies])
    y_scale = log_scale("ns", [*drawn_latencies, *([held.latency_ns] if held else [])])
    layers: list[Spec] = _limit_line(held, y_scale) if held else []
    named: list[Place] = []
    ends: list[tuple[str, float, str]] = []
    for index, line in enumerate(drawn):
        for dash, one in zip(_DASHES, latencies, strict=False):
            found = placed[index, one.key]
            layers += _layers(found, line, one.key, dash, x_scale, y_scale)
            remarks = [
                (name, at)
                for name, at in _remarks(found, line, one.key, held)
                if not any(_near(at, other, x_scale, y_scale) for other in named)
            ]
            named += [at for _, at in remarks]
            layers += _named(remarks, x_scale, y_scale, line)
            if found:
                name = one.label if len(drawn) == 1 or dash else line.name
                ends.append((name, y_scale.of(found[-1][2]), line.token.stand_in))
    notes = [f"The number at a point is its {axis}, and arrows point to more of it; "]
    notes[0] += "down and to the right is better."
    if len(latencies) > 1:
        notes.append(f"Solid: {latencies[0].label}; dashed: {latencies[1].label}.")
    metrics = [place[3].metrics.get(one.key, _NO_METRIC) for place in every for one in latencies]
    notes += bar_notes(metrics, "Bars: 95 % interval of the latency.")
    if any(line.knee is not None for line in drawn):
        notes.append("Knee: from here on more load costs more latency than it gains rate.")
    if held is not None:
        name = f"{metric_words(held.metric)} of {show_value(held.latency_ns, 'ns')}"
        notes.append(f"Dotted: the limit, {name}; ringed is the most that stays under it.")
    if len(lines) > len(drawn):
        notes.append(f"{count(len(lines) - len(drawn), 'line')} more in the table.")
    notes += [note] if note else []
    words = " and ".join(one.name for one in latencies)
    return Figure(
        subject=subject,
        title=f"{words[0].upper()}{words[1:]} against {_in_words(performance.name)}",
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


def _limit_line(limit: Limit, scale: Scale) -> list[Spec]:
    """A dotted line across the plot at the limit."""
    y = {"field": "y", "type": "quantitative", "scale": scale.spec(), "axis": scale.axis()}
    rule = {"type": "rule", "stroke": MUTED.stand_in, "strokeDash": [1, 3], "strokeWidth": 1.2}
    ends = {"x": {"value": 0}, "x2": {"value": PLOT_WIDTH}, "y": y}
    return [
        {"data": {"values": [{"y": scale.of(limit.latency_ns)}]}, "mark": rule, "encoding": ends}
    ]


def _remarks(
    found: Sequence[Place], line: Line, key: str, limit: Limit | None
) -> list[tuple[str, Place]]:
    """Which points have a name of their own: the knee, and the most that stays under a limit."""
    remarks = [("knee", one) for one in found if line.knee is not None and one[0] == str(line.knee)]
    under = [one for one in found if limit and key == limit.metric and one[2] <= limit.latency_ns]
    if under and len(under) < len(found):
        most = max(under, key=lambda one: one[1])
        remarks = [(f"{name}, limit", one) for name, one in remarks if one == most] or [
            *remarks,
            ("limit", most),
        ]
    return remarks


def _near(one: Place, other: Place, x_scale: Scale, y_scale: Scale) -> bool:
    """Whether names at two points would stand on each other."""
    x, y = (
        abs(scale.share(scale.of(a)) - scale.share(scale.of(b)))
        for scale, a, b in ((x_scale, one[1], other[1]), (y_scale, one[2], other[2]))
    )
    return x * PLOT_WIDTH < _NAME_ROOM and y * HEIGHT < LINE_GAP


def _named(
    remarks: Sequence[tuple[str, Place]], x_scale: Scale, y_scale: Scale, line: Line
) -> list[Spec]:
    """The names above their points, each with a ring around its marker."""
    if not remarks:
        return []
    rows = [
        {"x": x_scale.of(rate), "y": y_scale.of(latency), "t": name}
        for name, (_, rate, latency, _) in remarks
    ]
    encoding = {"x": _x(x_scale), "y": _y(y_scale)}
    ring = {"type": "point", "shape": "circle", "size": 190, "filled": False, "opacity": 1}
    text = {"type": "text", "align": "right", "baseline": "bottom", "dx": -7, "dy": -5}
    colour = line.token.stand_in
    shown = {**encoding, "text": {"field": "t", "type": "nominal"}}
    return [
        {
            "data": {"values": rows},
            "mark": {**ring, "fill": None, "stroke": colour, "strokeWidth": 1},
            "encoding": encoding,
        },
        {"data": {"values": rows}, "mark": {**text, "fill": colour}, "encoding": shown},
    ]


def _latencies(every: Sequence[Place], keys: Sequence[str]) -> list[float]:
    """Everything that is drawn, so that it fits the scale."""
    found = [latency for _, _, latency, _ in every]
    for _, _, _, point in every:
        metrics = [point.metrics.get(key, _NO_METRIC) for key in keys]
        found += [v for one in metrics for v in one.interval or ()]
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
    ends = point.metrics.get(key, _NO_METRIC).interval
    return None if ends is None else (scale.of(ends[0]), scale.of(ends[1]))


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
