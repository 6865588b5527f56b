"""What a chart of rate over load has beside measurements: predicted loads, their band, the knee."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from iolab.analyse.curves import Curve
from iolab.analyse.summary import METRIC_UNITS
from iolab.model.metric import Metric
from iolab.report.curves import place_words
from iolab.report.figures.frame import Scale, Spec
from iolab.report.palette import PAPER
from iolab.report.table import Cell
from iolab.report.wording import show, show_interval

_BAND: Final = 0.14
_UPRIGHT: Final = 0.6


def predicted_values(curve: Curve | None, key: str) -> list[float]:
    """What is drawn of predictions, so that it fits the scale."""
    if curve is None or curve.metric != key:
        return []
    guessed = [point for point in curve.points if not point.measured]
    return [value for point in guessed for value in (point.low, point.high)]


def predicted_layers(
    curve: Curve | None, key: str, encoding: Spec, scale: Scale, colour: str
) -> list[Spec]:
    """The band, open circles at predicted loads, and an upright at the knee."""
    if curve is None or curve.metric != key:
        return []
    guessed = [p for p in curve.points if not p.measured]
    layers: list[Spec] = [
        {
            "data": {"values": [{"x": curve.knee.load}]},
            "mark": {
                "type": "rule",
                "stroke": colour,
                "strokeDash": [1, 4],
                "opacity": _UPRIGHT,
            },
            "encoding": {"x": encoding["x"]},
        }
    ]
    if not guessed:
        return layers
    band = [
        {"x": point.load, "y": scale.of(point.low), "y2": scale.of(point.high)}
        for point in curve.points
    ]
    dots = [{"x": point.load, "y": scale.of(point.rate)} for point in guessed]
    return [
        {
            "data": {"values": band},
            "mark": {"type": "area", "fill": colour, "opacity": _BAND, "line": False},
            "encoding": {**encoding, "y2": {"field": "y2"}},
        },
        *layers,
        {
            "data": {"values": dots},
            "mark": {
                "type": "point",
                "shape": "circle",
                "size": 34,
                "filled": False,
                "fill": PAPER.stand_in,
                "stroke": colour,
                "strokeWidth": 1.2,
            },
            "encoding": encoding,
        },
    ]


def predicted_note(curves: list[Curve], key: str) -> str:
    """What the reader must know of predictions; empty where the chart has no curve."""
    drawn = [curve for curve in curves if curve.metric == key]
    if not drawn:
        return ""
    knees = ", ".join(place_words(one.knee) for one in drawn)
    guessed = any(not point.measured for one in drawn for point in one.points)
    dots = "Open circles: predicted, not measured, with their 95 % band. " if guessed else ""
    each = " VMs per node" if any(one.axis == "vms_per_node" for one in drawn) else ""
    return f"{dots}Dotted upright: the knee, at {knees}{each}."


def predicted_rows(
    name: str, curve: Curve | None, key: str, others: int
) -> Iterator[tuple[Cell, ...]]:
    """A row for each predicted load; `others` are the columns between its interval and its end."""
    if curve is None or curve.metric != key:
        return
    for point in curve.points:
        if not point.measured:
            value = Metric(point.rate, METRIC_UNITS[key], point.low, point.high, 0)
            interval = show_interval(value, bare_rate=True).removesuffix(" n=0")
            texts = (name, str(point.load), "predicted", show(value), interval)
            yield (*map(Cell, texts), *[Cell("")] * others, Cell("not measured"))
