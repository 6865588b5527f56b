"""Throughput and latency against the axis: one line a configuration, one marker a point.

A marker stands at the point's published value and tells the verdict by its shape: a filled circle
is valid, a hollow diamond indicative, a cross invalid. A bar through it is its 95 % interval; where
a point has several runs, each has a small marker of its own. Lines skip points without a value.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from iolab.analysis.curves import Curve
from iolab.analysis.points import PointSummary, value_of
from iolab.core.metric import Level, Metric, Result
from iolab.core.metric_spec import spec_of
from iolab.report.charts.chart import (
    BOTTOM,
    PLOT_WIDTH,
    WIDTH,
    Figure,
    Scale,
    Spec,
    bar_notes,
    end_labels,
    linear_scale,
    log_scale,
    stacked,
    top_level,
    unit_mark,
    x_encoding,
)
from iolab.report.curves import place_words
from iolab.report.numbers import (
    axis_number,
    axis_word,
    count,
    short,
    show,
    show_interval,
    show_value,
)
from iolab.report.palette import PAPER, Token
from iolab.report.phrases import metric_words
from iolab.report.table import Cell, Table, columns, verdict_cell

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
            value = Metric(point.rate, spec_of(key).unit, point.low, point.high, 0)
            interval = show_interval(value, bare_rate=True).removesuffix(" n=0")
            texts = (name, str(point.load), "predicted", show(value), interval)
            yield (*map(Cell, texts), *[Cell("")] * others, Cell("not measured"))


HEIGHT: Final = 190
HEAD: Final = 32
PANEL_HEIGHT: Final = 90
"""Of each of two plots over each other."""
PANEL_GAP: Final = 36
"""Room for the unit over the lower one."""
MAX_LINES: Final = 8
"""More lines than this cannot be told apart; the others stand in the table alone."""

_SHAPES: Final = {
    Level.VALID: "circle",
    Level.INDICATIVE: "diamond",
    Level.INVALID: "M-.7,-.7L.7,.7M.7,-.7L-.7,.7",
}
_NO_METRIC: Final = Metric(None, "")
_FAINT: Final = 0.55
"""Single runs stand behind what is published of them."""


@dataclass(frozen=True, slots=True)
class Line:
    """One series of a chart: what it is called, its colour, its dash, and its points.

    `curve` is what is known of loads between the points, where the axis is one of load, and `knee`
    the load from which more stops paying. With several `nodes` the axis counts guests of each.
    """

    name: str
    token: Token
    dash: tuple[int, ...]
    points: tuple[PointSummary, ...]
    curve: Curve | None = None
    nodes: int = 1
    knee: int | None = None


@dataclass(frozen=True, slots=True)
class Quantity:
    """One metric drawn against the axis, by its key; `label` is what stands beside its line."""

    key: str
    name: str
    label: str = ""


MEAN: Final = Quantity("lat_ns_mean", "mean latency", "mean")
TAIL: Final = Quantity("lat_ns_p99", "p99", "p99")

_RATES: Final = {"iops": "IOPS", "bw_bytes_per_s": "Bandwidth", "ops_per_s": "Operations a second"}


def rate_of(key: str) -> Quantity:
    """A rate by its metric's key, with its name on an axis."""
    return Quantity(key, _RATES.get(key, metric_words(key)))


def shape_of(level: Level) -> str:
    """The marker of a verdict: a Vega symbol or an SVG path in a unit square."""
    return _SHAPES[level]


def quantity_figure(
    subject: str, axis: str, lines: Sequence[Line], quantity: Quantity, unit: str
) -> Figure:
    """One metric against `axis`; latencies, whose unit is ns, on a logarithmic scale."""
    drawn = lines[:MAX_LINES]
    values = [v for line in drawn for v in drawn_values(line, quantity.key)]
    scale = log_scale(unit, values) if unit == "ns" else linear_scale(unit, values)
    layers = [layer for line in drawn for layer in line_layers(line, axis, quantity.key, scale)]
    named = drawn if len(drawn) > 1 else ()
    ends = [end for line in named for end in line_ends(line, axis, quantity.key, scale, line.name)]
    spec = {**top_level(PLOT_WIDTH, HEIGHT, top=HEAD), **_panel(layers, ends, scale, HEIGHT)}
    return _figure(subject, axis, lines, (quantity,), spec, HEIGHT)


def load_figure(
    subject: str,
    axis: str,
    lines: Sequence[Line],
    rate: Quantity,
    mean: Quantity = MEAN,
    tail: Quantity = TAIL,
) -> Figure:
    """What is done a second, and under it what that takes: rate and two latencies against `axis`.

    The mean is solid, the tail dashed, on a logarithmic scale.
    """
    drawn = lines[:MAX_LINES]
    if len({line.token for line in drawn}) == len(drawn):
        drawn = [replace(line, dash=()) for line in drawn]  # colours tell them apart
    unit = spec_of(rate.key).unit
    scale = linear_scale(unit, _drawn(drawn, rate), ticks=3)
    layers = [layer for line in drawn for layer in line_layers(line, axis, rate.key, scale)]
    named = drawn if len(drawn) > 1 else ()
    ends = [end for line in named for end in line_ends(line, axis, rate.key, scale, line.name)]
    above = _panel(layers, ends, scale, PANEL_HEIGHT)
    for layer in above["layer"]:
        x = layer.get("encoding", {}).get("x", {})
        if x.get("axis"):  # the loads stand under the latencies, on the same places
            x["axis"] = {**x["axis"], "labels": False, "title": None}
    scale, layers, ends = _latencies(drawn, axis, mean, tail)
    below = _panel(layers, ends, scale, PANEL_HEIGHT)
    height = 2 * PANEL_HEIGHT + PANEL_GAP
    spec = stacked([above, below], PLOT_WIDTH, height, top=HEAD, gap=PANEL_GAP)
    return _figure(subject, axis, lines, (rate, mean, tail), spec, height)


def latency_figure(
    subject: str,
    axis: str,
    lines: Sequence[Line],
    mean: Quantity = MEAN,
    tail: Quantity = TAIL,
) -> Figure:
    """Two latencies against `axis`, solid and dashed, on a logarithmic scale: mean and p99."""
    scale, layers, ends = _latencies(lines[:MAX_LINES], axis, mean, tail)
    spec = {**top_level(PLOT_WIDTH, HEIGHT, top=HEAD), **_panel(layers, ends, scale, HEIGHT)}
    return _figure(subject, axis, lines, (mean, tail), spec, HEIGHT)


def _drawn(lines: Sequence[Line], *quantities: Quantity) -> list[float]:
    return [v for line in lines for one in quantities for v in drawn_values(line, one.key)]


def _latencies(
    drawn: Sequence[Line], axis: str, mean: Quantity, tail: Quantity
) -> tuple[Scale, list[Spec], list[tuple[str, float, str]]]:
    """The scale of two latencies of these lines, what draws them, and the labels of their ends."""
    scale = log_scale("ns", _drawn(drawn, mean, tail), most=5)
    layers: list[Spec] = []
    ends: list[tuple[str, float, str]] = []
    for line in drawn:
        thin = replace(line, dash=(4, 3), curve=None)
        alone = len(drawn) == 1
        layers += line_layers(line, axis, mean.key, scale)
        layers += line_layers(thin, axis, tail.key, scale)
        ends += line_ends(line, axis, mean.key, scale, mean.label if alone else line.name)
        ends += line_ends(thin, axis, tail.key, scale, tail.label)
    return scale, layers, ends


def _panel(
    layers: list[Spec], ends: list[tuple[str, float, str]], scale: Scale, height: int
) -> Spec:
    """One plot with the labels of its lines."""
    labels = end_labels(ends, scale, height, PLOT_WIDTH + 12)
    return {
        "width": PLOT_WIDTH,
        "height": height,
        "layer": [*layers, *labels, unit_mark(scale.unit)],
    }


def _figure(
    subject: str,
    axis: str,
    lines: Sequence[Line],
    quantities: tuple[Quantity, ...],
    spec: Spec,
    height: int,
) -> Figure:
    """The chart around its plots, with its sentence and its table."""
    *others, last = [quantity.name for quantity in quantities]
    name = f"{', '.join(others)} and {last}" if others else last
    known = [line.curve for line in lines[:MAX_LINES] if line.curve is not None]
    left_out = len(lines) - MAX_LINES
    notes = [_dashes(quantities[-2:])] if len(quantities) > 1 else []
    points = [point for line in lines for point in line.points]
    notes += bar_notes(p.metrics.get(one.key, _NO_METRIC) for p in points for one in quantities)
    notes += [text for one in quantities if (text := predicted_note(known, one.key))]
    notes += [f"{count(left_out, 'line')} more in the table."] if left_out > 0 else []
    return Figure(
        subject=subject,
        title=f"{name[0].upper()}{name[1:]} against {axis_word(axis)}",
        finding=finding_of(axis, lines, quantities[0]),
        note=" ".join(notes),
        spec=spec,
        width=WIDTH,
        height=HEAD + height + BOTTOM,
        table=quantities_table(subject, axis, lines, quantities),
    )


def _dashes(quantities: Sequence[Quantity]) -> str:
    """Which line is which."""
    solid, dashed = quantities
    return f"Solid: {solid.label}; dashed: {dashed.label}."


def line_layers(line: Line, axis: str, key: str, scale: Scale) -> list[Spec]:
    """A line through the points, the runs behind them, interval bars, and markers by verdict."""
    found = (v for point in line.points if (v := axis_value(point, axis)) is not None)
    x = x_encoding(axis, found, line.nodes)
    y = {"field": "y", "type": "quantitative", "scale": scale.spec(), "axis": scale.axis()}
    colour = line.token.stand_in
    points = points_on(line, axis, key)
    layers: list[Spec] = [
        *predicted_layers(line.curve, key, {"x": x, "y": y}, scale, colour),
        {
            "data": {"values": [{"x": a, "y": scale.of(v)} for a, v, _ in points]},
            "mark": {"type": "line", "stroke": colour, "strokeDash": list(line.dash)},
            "encoding": {"x": x, "y": y},
        },
    ]
    for marked, small in ((_runs(line, axis, key), True), (points, False)):
        bars = [] if small else interval_bars(line, axis, key, scale)
        if bars:
            layers.append(
                {
                    "data": {"values": bars},
                    "mark": {"type": "rule", "stroke": colour, "strokeWidth": 1.4},
                    "encoding": {"x": x, "y": y, "y2": {"field": "y2"}},
                }
            )
        for level in Level:
            values = [{"x": a, "y": scale.of(v)} for a, v, of in marked if of is level]
            if values:
                layers.append(markers(values, level, colour, {"x": x, "y": y}, small=small))
    return layers


def markers(
    points: list[dict[str, float]], level: Level, colour: str, encoding: Spec, *, small: bool
) -> Spec:
    """A layer of markers of one verdict; `small` ones are single runs."""
    filled = level is Level.VALID
    size = 42 if filled else 70
    return {
        "data": {"values": points},
        "mark": {
            "type": "point",
            "shape": _SHAPES[level],
            "size": size / 3 if small else size,
            "filled": False,
            "fill": colour if filled else PAPER.stand_in,
            "stroke": colour,
            "strokeWidth": 0.8 if small else 1.6,
            "opacity": _FAINT if small else 1,
        },
        "encoding": encoding,
    }


def interval_bars(line: Line, axis: str, key: str, scale: Scale) -> list[dict[str, float]]:
    """The 95 % intervals of the points that have one worth showing."""
    bars = []
    for point in line.points:
        ends = point.metrics.get(key, _NO_METRIC).interval
        x = axis_value(point, axis)
        if ends is not None and x is not None:
            bars.append({"x": x, "y": scale.of(ends[0]), "y2": scale.of(ends[1])})
    return bars


def axis_value(point: PointSummary, axis: str) -> float | None:
    """The point's value of that axis as a number, None when it has none."""
    return next((axis_number(name, v) for name, v in point.key.axis if name == axis), None)


def points_on(line: Line, axis: str, key: str) -> list[tuple[float, float, Level]]:
    """(axis value, published value, verdict) of each point that has both, along the axis."""
    found = [
        (x, metric.value, point.level)
        for point in line.points
        if (x := axis_value(point, axis)) is not None
        and (metric := point.metrics.get(key, _NO_METRIC)).value is not None
    ]
    return sorted(found, key=lambda one: one[0])


def _runs(line: Line, axis: str, key: str) -> list[tuple[float, float, Level]]:
    """(axis value, own value, verdict) of each run of the points that have several."""
    return [
        (x, value, run.verdict.level)
        for point in line.points
        if len(_runs_of(point)) > 1 and (x := axis_value(point, axis)) is not None
        for run in _runs_of(point)
        if (value := value_of(run, key)) is not None
    ]


def _runs_of(point: PointSummary) -> list[Result]:
    return sorted((*point.results, *point.left_out), key=lambda run: run.repeat)


def drawn_values(line: Line, key: str) -> list[float]:
    """Everything that is drawn, so that it fits the scale."""
    found = [point.metrics.get(key, _NO_METRIC) for point in line.points]
    ends = [v for one in found for v in (one.value, *(one.interval or ())) if v is not None]
    runs = [value_of(run, key) for point in line.points for run in _runs_of(point)]
    measured = [*ends, *(v for v in runs if v is not None)]
    return [*measured, *predicted_values(line.curve, key)]


def line_ends(
    line: Line, axis: str, key: str, scale: Scale, name: str
) -> list[tuple[str, float, str]]:
    """What stands beside the line's last point, as `end_labels` takes it."""
    points = points_on(line, axis, key)
    return [(name, scale.of(points[-1][1]), line.token.stand_in)] if points else []


def finding_of(axis: str, lines: Sequence[Line], quantity: Quantity) -> str:
    """One sentence a line of what the chart shows, with the worst verdict in it."""
    sentences = []
    for line in lines[:MAX_LINES]:
        sentence = _sentence(axis, line, quantity)
        name = f"{short(line.name, 40)}: " if len(lines) > 1 else ""
        sentences.append(name + (sentence if name else sentence[0].upper() + sentence[1:]))
    return " ".join(sentences)


def _sentence(axis: str, line: Line, quantity: Quantity) -> str:
    points = points_on(line, axis, quantity.key)
    if not points:
        return "no run has a value."
    unit = next(p.metrics[quantity.key].unit for p in line.points if quantity.key in p.metrics)
    trust = trust_of([level for _, _, level in points])
    (first_x, first, _), (last_x, last, _) = points[0], points[-1]
    if len(points) == 1:
        return f"{show_value(first, unit)} at {_place(axis, first_x, line)}; {trust}."
    best_x, best, _ = max(points, key=lambda one: one[1])
    peak = (
        ""
        if best_x in {first_x, last_x}
        else f", at most {show_value(best, unit)} at {best_x * line.nodes:g}"
    )
    return (
        f"from {show_value(first, unit)} at {_place(axis, first_x, line)} to "
        f"{show_value(last, unit)} at {last_x * line.nodes:g}{peak}; {trust}."
    )


def _place(axis: str, value: float, line: Line) -> str:
    """`iodepth 8`; of guests of several nodes all of them: `12 VMs`."""
    return f"{value * line.nodes:g} VMs" if line.nodes > 1 else f"{axis_word(axis)} {value:g}"


def trust_of(levels: Sequence[Level]) -> str:
    """How far several points can be trusted: `all valid`, or the worst of them."""
    worst = max(levels, key=lambda level: level.rank)
    return f"all {worst.value}" if len(set(levels)) == 1 else f"at worst {worst.value}"


def quantities_table(
    subject: str, axis: str, lines: Sequence[Line], quantities: tuple[Quantity, ...]
) -> Table:
    """Every plotted number with its verdict, also of the lines that were left out."""
    names = [name for q in quantities for name in (q.name, f"{q.name}, 95 % interval")]
    heads = columns(("Configuration", axis_word(axis), "Repeat"), tuple(names))
    rows = [
        row
        for line in lines
        for point in line.points
        for row in _point_rows(
            line.name, str(dict(point.key.axis).get(axis, "")), point, quantities
        )
    ]
    first = quantities[0].key
    others = 2 * (len(quantities) - 1)
    rows += [row for line in lines for row in predicted_rows(line.name, line.curve, first, others)]
    title = f"{subject} against {axis_word(axis)}"
    return Table(title, (*heads, *columns(("Verdict",))), tuple(rows))


def _point_rows(
    name: str, at: str, point: PointSummary, quantities: tuple[Quantity, ...]
) -> Iterator[tuple[Cell, ...]]:
    """The point's row, and one for each of its runs where there are several."""
    runs = _runs_of(point)
    told = [(str(runs[0].repeat) if len(runs) == 1 else "all", point.metrics, point.level)]
    if len(runs) > 1:
        told += [(str(run.repeat), run.metrics, run.verdict.level) for run in runs]
    for repeat, metrics, level in told:
        found = [metrics.get(quantity.key, _NO_METRIC) for quantity in quantities]
        texts = [text for one in found for text in (show(one), show_interval(one, bare_rate=True))]
        yield (Cell(name), Cell(at), Cell(repeat), *map(Cell, texts), verdict_cell(level))
