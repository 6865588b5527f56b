"""Throughput and latency against the axis: one line a configuration, one marker a run.

The marker tells the verdict by its shape: a filled circle is valid, a hollow diamond indicative,
a cross invalid. Lines join the median repeats, since percentiles are never averaged, and skip
points that have no value.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from iolab.model.metric import Level, Metric, Result
from iolab.model.workload import Indicator, Workload
from iolab.report.figures.frame import (
    BOTTOM,
    NUMBER_FORMAT,
    PLOT_WIDTH,
    WIDTH,
    Figure,
    Scale,
    Spec,
    end_labels,
    linear_scale,
    log_scale,
    top_level,
    unit_mark,
)
from iolab.report.palette import PAPER, Token
from iolab.report.table import Cell, Table, columns, verdict_cell
from iolab.report.wording import axis_number, count, short, show_value

HEIGHT: Final = 190
HEAD: Final = 32
MAX_LINES: Final = 8
"""More lines than this cannot be told apart; the others stand in the table alone."""

_SHAPES: Final = {
    Level.VALID: "circle",
    Level.INDICATIVE: "diamond",
    Level.INVALID: "M-.7,-.7L.7,.7M.7,-.7L-.7,.7",
}
_LOG_AXES: Final = frozenset({"iodepth", "numjobs", "bs", "filesize"})


@dataclass(frozen=True, slots=True)
class Line:
    """One series of a chart: what it is called, its colour, its dash, and its results."""

    name: str
    token: Token
    dash: tuple[int, ...]
    results: tuple[Result, ...]


@dataclass(frozen=True, slots=True)
class Quantity:
    """One metric drawn against the axis, by its key."""

    key: str
    name: str


def shape_of(level: Level) -> str:
    """The marker of a verdict: a Vega symbol or an SVG path in a unit square."""
    return _SHAPES[level]


def throughput_figure(workload: Workload, axis: str, lines: Sequence[Line]) -> Figure:
    """IOPS or bandwidth, as the workload's indicator says, against `axis`."""
    bandwidth = workload.indicator is Indicator.BANDWIDTH
    quantity = Quantity("bw_bytes_per_s", "Bandwidth") if bandwidth else Quantity("iops", "IOPS")
    drawn = lines[:MAX_LINES]
    values = [v for line in drawn for v in _values(line, quantity.key)]
    scale = linear_scale("bytes/s" if bandwidth else "1/s", values)
    layers = [layer for line in drawn for layer in _layers(line, axis, quantity.key, scale)]
    named = drawn if len(drawn) > 1 else ()
    ends = [end for line in named for end in _ends(line, axis, quantity.key, scale, line.name)]
    return _figure(workload, axis, lines, (quantity,), scale, layers, ends)


def latency_figure(workload: Workload, axis: str, lines: Sequence[Line]) -> Figure:
    """Mean and 99th percentile latency against `axis`, on a logarithmic scale."""
    mean, tail = Quantity("lat_ns_mean", "mean latency"), Quantity("lat_ns_p99", "p99")
    drawn = lines[:MAX_LINES]
    values = [v for line in drawn for key in (mean.key, tail.key) for v in _values(line, key)]
    scale = log_scale("ns", values)
    layers: list[Spec] = []
    ends: list[tuple[str, float, str]] = []
    for line in drawn:
        thin = Line(line.name, line.token, (4, 3), line.results)
        alone = len(drawn) == 1
        layers += _layers(line, axis, mean.key, scale) + _layers(thin, axis, tail.key, scale)
        ends += _ends(line, axis, mean.key, scale, "mean" if alone else line.name)
        ends += _ends(thin, axis, tail.key, scale, "p99")
    return _figure(workload, axis, lines, (mean, tail), scale, layers, ends)


def _figure(
    workload: Workload,
    axis: str,
    lines: Sequence[Line],
    quantities: tuple[Quantity, ...],
    scale: Scale,
    layers: list[Spec],
    ends: list[tuple[str, float, str]],
) -> Figure:
    """The chart around its layers, with its sentence and its table."""
    name = " and ".join(quantity.name for quantity in quantities)
    labels = end_labels(ends, scale, HEIGHT, PLOT_WIDTH + 12)
    spec = {
        **top_level(PLOT_WIDTH, HEIGHT, top=HEAD),
        "layer": [*layers, *labels, unit_mark(scale.unit)],
    }
    left_out = len(lines) - MAX_LINES
    notes = ["Solid: mean; dashed: 99th percentile."] if len(quantities) > 1 else []
    notes += [f"{count(left_out, 'line')} more in the table."] if left_out > 0 else []
    return Figure(
        subject=workload.title,
        title=f"{name[0].upper()}{name[1:]} against {axis}",
        finding=_finding(axis, lines, quantities[0]),
        note=" ".join(notes),
        spec=spec,
        width=WIDTH,
        height=HEAD + HEIGHT + BOTTOM,
        table=_table(workload, axis, lines, quantities),
    )


def _layers(line: Line, axis: str, key: str, scale: Scale) -> list[Spec]:
    """A line through the medians, its interval bars, and a marker for each run, by verdict."""
    x = _x_encoding(axis, line)
    y = {"field": "y", "type": "quantitative", "scale": scale.spec(), "axis": scale.axis()}
    colour = line.token.stand_in
    layers: list[Spec] = [
        {
            "data": {"values": [{"x": a, "y": scale.of(v)} for a, v in _medians(line, axis, key)]},
            "mark": {"type": "line", "stroke": colour, "strokeDash": list(line.dash)},
            "encoding": {"x": x, "y": y},
        }
    ]
    bars = _bars(line, axis, key, scale)
    if bars:
        layers.append(
            {
                "data": {"values": bars},
                "mark": {"type": "rule", "stroke": colour, "strokeWidth": 1.4},
                "encoding": {"x": x, "y": y, "y2": {"field": "y2"}},
            }
        )
    for level in Level:
        points = [
            {"x": a, "y": scale.of(v)} for a, v, of in _points(line, axis, key) if of is level
        ]
        if points:
            layers.append(_markers(points, level, colour, {"x": x, "y": y}))
    return layers


def _markers(points: list[dict[str, float]], level: Level, colour: str, encoding: Spec) -> Spec:
    filled = level is Level.VALID
    return {
        "data": {"values": points},
        "mark": {
            "type": "point",
            "shape": _SHAPES[level],
            "size": 42 if filled else 70,
            "filled": False,
            "fill": colour if filled else PAPER.stand_in,
            "stroke": colour,
            "strokeWidth": 1.6,
            "opacity": 1,
        },
        "encoding": encoding,
    }


def _bars(line: Line, axis: str, key: str, scale: Scale) -> list[dict[str, float]]:
    """The confidence intervals of the runs that have one."""
    bars = []
    for result in line.results:
        metric = result.metrics[key]
        x = _axis_value(result, axis)
        if metric.low is not None and metric.high is not None and x is not None:
            bars.append({"x": x, "y": scale.of(metric.low), "y2": scale.of(metric.high)})
    return bars


def _x_encoding(axis: str, line: Line) -> Spec:
    """The axis by its own scale: doublings for depths and sizes, even steps otherwise."""
    found = {v for result in line.results if (v := _axis_value(result, axis)) is not None}
    log = axis in _LOG_AXES and min(found, default=0) > 0
    scale = {"type": "log", "base": 2} if log else {"type": "linear", "zero": False}
    labels = {"labelExpr": _SIZE_LABEL} if axis in {"bs", "filesize"} else {"format": NUMBER_FORMAT}
    return {
        "field": "x",
        "type": "quantitative",
        "scale": {**scale, "nice": False, "padding": 10},
        "axis": {"values": sorted(found), "grid": False, "title": axis, "tickSize": 4, **labels},
    }


_SIZE_LABEL: Final = (
    "datum.value >= 1073741824 ? format(datum.value / 1073741824, '.6~r') + 'g' : "
    "datum.value >= 1048576 ? format(datum.value / 1048576, '.6~r') + 'm' : "
    "datum.value >= 1024 ? format(datum.value / 1024, '.6~r') + 'k' : format(datum.value, '.6~r')"
)
"""Sizes on the axis as study files write them."""


def _axis_value(result: Result, axis: str) -> float | None:
    return next((axis_number(name, v) for name, v in result.axis if name == axis), None)


def _points(line: Line, axis: str, key: str) -> list[tuple[float, float, Level]]:
    """(axis value, metric's value, verdict) of each run that has both."""
    return [
        (x, metric.value, result.verdict.level)
        for result in line.results
        if (x := _axis_value(result, axis)) is not None
        and (metric := result.metrics.get(key, Metric(None, ""))).value is not None
    ]


def _values(line: Line, key: str) -> list[float]:
    found = [result.metrics[key] for result in line.results if key in result.metrics]
    return [v for metric in found for v in (metric.value, metric.high) if v is not None]


def _medians(line: Line, axis: str, key: str) -> list[tuple[float, float]]:
    """(axis value, the median repeat's value, of two the lower) in the axis's order."""
    repeats: dict[float, list[float]] = {}
    for x, value, _ in _points(line, axis, key):
        repeats.setdefault(x, []).append(value)
    return [(x, statistics.median_low(values)) for x, values in sorted(repeats.items())]


def _ends(line: Line, axis: str, key: str, scale: Scale, name: str) -> list[tuple[str, float, str]]:
    medians = _medians(line, axis, key)
    return [(name, scale.of(medians[-1][1]), line.token.stand_in)] if medians else []


def _finding(axis: str, lines: Sequence[Line], quantity: Quantity) -> str:
    """One sentence a line of what the chart shows, with the worst verdict in it."""
    sentences = []
    for line in lines[:MAX_LINES]:
        sentence = _sentence(axis, line, quantity)
        name = f"{short(line.name, 40)}: " if len(lines) > 1 else ""
        sentences.append(name + (sentence if name else sentence[0].upper() + sentence[1:]))
    return " ".join(sentences)


def _sentence(axis: str, line: Line, quantity: Quantity) -> str:
    medians = _medians(line, axis, quantity.key)
    if not medians:
        return "no run has a value."
    unit = next(r.metrics[quantity.key].unit for r in line.results if quantity.key in r.metrics)
    levels = [level for _, _, level in _points(line, axis, quantity.key)]
    worst = max(levels, key=lambda level: level.rank)
    trust = f"all {worst.value}" if len(set(levels)) == 1 else f"at worst {worst.value}"
    (first_x, first), (last_x, last) = medians[0], medians[-1]
    if len(medians) == 1:
        return f"{show_value(first, unit)} at {axis} {first_x:g}; {trust}."
    best_x, best = max(medians, key=lambda pair: pair[1])
    peak = (
        "" if best_x in {first_x, last_x} else f", at most {show_value(best, unit)} at {best_x:g}"
    )
    return (
        f"from {show_value(first, unit)} at {axis} {first_x:g} to "
        f"{show_value(last, unit)} at {last_x:g}{peak}; {trust}."
    )


def _table(
    workload: Workload, axis: str, lines: Sequence[Line], quantities: tuple[Quantity, ...]
) -> Table:
    """Every plotted number with its verdict, also of the lines that were left out."""
    heads = columns(("Configuration", axis, "Repeat"), tuple(q.name for q in quantities))
    rows = tuple(
        (
            Cell(line.name),
            Cell(str(dict(result.axis).get(axis, ""))),
            Cell(str(result.repeat)),
            *(Cell(_shown(result.metrics, quantity.key)) for quantity in quantities),
            verdict_cell(result.verdict.level),
        )
        for line in lines
        for result in line.results
    )
    return Table(f"{workload.title} against {axis}", (*heads, *columns(("Verdict",))), rows)


def _shown(metrics: Mapping[str, Metric], key: str) -> str:
    metric = metrics.get(key)
    if metric is None or metric.value is None:
        return "–"
    return show_value(metric.value, metric.unit)
