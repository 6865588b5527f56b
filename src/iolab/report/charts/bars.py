"""A rate for each value of an axis: a bar for each configuration, as published briefs show it.

A bar of a valid point is plain; others are hatched, and on them stands the marker of the verdict.
The line through a bar's end is the 95 % interval. One bar may be named: the largest gain over the
baseline.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from iolab.analysis.points import PointSummary
from iolab.core.metric import Level, Metric
from iolab.report.charts.bar_pattern import HATCHED, Box, doubt, hatching
from iolab.report.charts.chart import (
    BOTTOM,
    PLOT_WIDTH,
    WIDTH,
    Figure,
    Scale,
    Spec,
    end_labels,
    linear_scale,
    tick_labels,
    top_level,
    unit_mark,
)
from iolab.report.charts.lines import (
    MAX_LINES,
    Line,
    Quantity,
    axis_value,
    drawn_values,
    finding_of,
    line_ends,
    points_on,
    quantities_table,
)
from iolab.report.numbers import count
from iolab.report.palette import INK

HEIGHT: Final = 190
HEAD: Final = 32

_INNER: Final = 0.25
_OUTER: Final = 0.12
"""Room between and around the steps of the axis, in steps."""

_NO_METRIC: Final = Metric(None, "")


@dataclass(frozen=True, slots=True)
class Named:
    """What is written over one bar: that of the line of `name` at `at`, as the axis has it."""

    name: str
    at: float
    text: str


def bars_figure(
    subject: str,
    axis: str,
    lines: Sequence[Line],
    quantity: Quantity,
    unit: str,
    named: Named | None = None,
) -> Figure:
    """Bars grouped by the values of `axis`, one a line, all from zero."""
    drawn = lines[:MAX_LINES]
    values = [v for line in drawn for v in drawn_values(line, quantity.key)]
    scale = linear_scale(unit, values)
    found = {axis_value(point, axis) for line in drawn for point in line.points}
    places = sorted(value for value in found if value is not None)
    x = _places(axis, places, len(drawn))
    boxes = _doubted(drawn, places, axis, quantity.key, scale)
    layers = [
        *(
            layer
            for i, line in enumerate(drawn)
            for layer in _bars(line, i, axis, quantity.key, scale, x)
        ),
        *hatching(boxes),
        *(
            layer
            for i, line in enumerate(drawn)
            for layer in _over(line, i, axis, quantity.key, scale, x)
        ),
    ]
    layers += _text(named, drawn, axis, quantity.key, scale, x) if named else []
    ends = [end for line in drawn for end in line_ends(line, axis, quantity.key, scale, line.name)]
    left_out = len(lines) - len(drawn)
    note = "Bars start at zero. A line through a bar’s end is its 95 % interval."
    note += f" {HATCHED}" if boxes else ""
    note += f" {count(left_out, 'configuration')} more in the table." if left_out > 0 else ""
    return Figure(
        subject=subject,
        title=f"{quantity.name} against {axis}",
        finding=finding_of(axis, lines, quantity),
        note=note,
        spec={
            **top_level(PLOT_WIDTH, HEIGHT, top=HEAD),
            "layer": [
                *layers,
                *end_labels(ends, scale, HEIGHT, PLOT_WIDTH + 12),
                unit_mark(scale.unit),
            ],
        },
        width=WIDTH,
        height=HEAD + HEIGHT + BOTTOM,
        table=quantities_table(subject, axis, lines, (quantity,)),
    )


def _places(axis: str, places: Sequence[float], lines: int) -> Spec:
    """The axis in even steps, and the place of each line in a step."""
    return {
        "x": {
            "field": "x",
            "type": "ordinal",
            "scale": {"domain": list(places), "paddingInner": _INNER, "paddingOuter": _OUTER},
            "axis": {
                "labelAngle": 0,
                "title": axis,
                "ticks": False,
                "labelPadding": 6,
                **tick_labels(axis),
            },
        },
        "xOffset": {"field": "n", "type": "ordinal", "scale": {"domain": list(range(lines))}},
    }


def _bars(line: Line, index: int, axis: str, key: str, scale: Scale, places: Spec) -> list[Spec]:
    """A line's bars; no layer where it has none."""
    points = points_on(line, axis, key)
    rows = [{"x": at, "n": index, "y": scale.of(value)} for at, value, _ in points]
    if not rows:
        return []
    return [
        {
            "data": {"values": rows},
            "mark": {"type": "bar", "fill": line.token.stand_in, "stroke": None},
            "encoding": {**places, "y": {**_y(scale), "stack": None}},
        }
    ]


def _doubted(
    lines: Sequence[Line], places: Sequence[float], axis: str, key: str, scale: Scale
) -> list[Box]:
    """Where the bars of points that are not valid stand: by Vega's formula for a band scale."""
    step = PLOT_WIDTH / max(len(places) - _INNER + 2 * _OUTER, 1)
    start = (PLOT_WIDTH - step * (len(places) - _INNER)) / 2
    width = step * (1 - _INNER) / max(len(lines), 1)
    return [
        Box(left, HEIGHT * (1 - scale.share(scale.of(value))), left + width, HEIGHT)
        for index, line in enumerate(lines)
        for at, value, level in points_on(line, axis, key)
        if level is not Level.VALID
        for left in [start + step * places.index(at) + width * index]
    ]


def _over(line: Line, index: int, axis: str, key: str, scale: Scale, places: Spec) -> list[Spec]:
    """The intervals of a line's bars, and the markers of those that are not valid."""
    y = _y(scale)
    points = points_on(line, axis, key)
    layers: list[Spec] = []
    ends = [row for point in line.points for row in _interval(point, index, axis, key, scale)]
    if ends:
        layers.append(
            {
                "data": {"values": ends},
                "mark": {"type": "rule", "stroke": INK.stand_in, "strokeWidth": 1.2},
                "encoding": {**places, "y": y, "y2": {"field": "y2"}},
            }
        )
    for level in (Level.INDICATIVE, Level.INVALID):
        doubted = [
            {"x": at, "n": index, "y": scale.of(value)} for at, value, of in points if of is level
        ]
        if doubted:
            layers.append(
                {
                    "data": {"values": doubted},
                    "mark": doubt(level),
                    "encoding": {**places, "y": y},
                }
            )
    return layers


def _y(scale: Scale) -> Spec:
    return {"field": "y", "type": "quantitative", "scale": scale.spec(), "axis": scale.axis()}


def _interval(
    point: PointSummary, index: int, axis: str, key: str, scale: Scale
) -> list[dict[str, float]]:
    metric, at = point.metrics.get(key, _NO_METRIC), axis_value(point, axis)
    if metric.low is None or metric.high is None or at is None:
        return []
    return [{"x": at, "n": index, "y": scale.of(metric.low), "y2": scale.of(metric.high)}]


def _text(
    named: Named, lines: Sequence[Line], axis: str, key: str, scale: Scale, places: Spec
) -> list[Spec]:
    """The words over the named bar; nothing when it is not drawn."""
    for index, line in enumerate(lines):
        for point in line.points:
            metric = point.metrics.get(key, _NO_METRIC)
            if line.name != named.name or axis_value(point, axis) != named.at:
                continue
            if metric.value is None:
                continue
            top = scale.of(metric.value if metric.high is None else metric.high)
            return [
                {
                    "data": {"values": [{"x": named.at, "n": index, "y": top, "t": named.text}]},
                    "mark": {
                        "type": "text",
                        "baseline": "bottom",
                        "dy": -5,
                        "fill": INK.stand_in,
                    },
                    "encoding": {
                        **places,
                        "y": _y(scale),
                        "text": {"field": "t", "type": "nominal"},
                    },
                }
            ]
    return []
