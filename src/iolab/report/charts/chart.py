"""What every chart shares: its size, its type, its scales and ticks, and labels that keep apart.

Charts are 420 units wide with type of 12 units: on a phone of 375 px the type is about 10 px, in a
column of a desktop about 14 px. Nothing is laid out by measured text, so that a chart is the same
on every machine whatever fonts it has: sizes are fixed, ticks are named, overlap is settled here.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from iolab.core.metric import Metric
from iolab.report.numbers import axis_word, short
from iolab.report.palette import FAINT, INK, MUTED, RAISED, RULE
from iolab.report.series import Panel
from iolab.report.table import Table

Spec = dict[str, Any]

WIDTH: Final = 420
LEFT: Final = 46
RIGHT: Final = 96
"""Room for the direct labels at the end of the lines."""
TOP: Final = 12
BOTTOM: Final = 40
FONT: Final = 12
LINE_GAP: Final = 13.5
"""The least distance of two labels' middles: a line of type of 12 units."""
LABEL_CHARACTERS: Final = 13
"""What fits into RIGHT at 12 units."""
PLOT_WIDTH: Final = WIDTH - LEFT - RIGHT

NUMBER_FORMAT: Final = ",.6~r"
"""Six digits without trailing zeros; without a precision Vega rounds to the step of the ticks."""

_STEPS: Final = (1.0, 2.0, 2.5, 5.0, 10.0)


@dataclass(frozen=True, slots=True)
class Figure:
    """A chart to be drawn: `spec` in Vega-Lite, its whole size, and what it says in words.

    `subject` is what it is a chart of, `finding` what it shows, `note` how to read it.
    """

    subject: str
    title: str
    finding: str
    note: str
    spec: Spec
    width: int
    height: int
    table: Table

    @property
    def alt(self) -> str:
        """The alternative text: subject, title and finding."""
        return f"{self.subject}: {self.title}. {self.finding}"


@dataclass(frozen=True, slots=True)
class Scale:
    """A value axis in a unit that reads well: values are divided by `divisor`."""

    divisor: float
    unit: str
    low: float
    high: float
    ticks: tuple[float, ...]
    log: bool = False

    def of(self, value: float) -> float:
        """The value in the axis's unit."""
        return value / self.divisor

    def spec(self) -> Spec:
        """The Vega-Lite scale."""
        if self.log:
            return {"type": "log", "domain": [self.low, self.high], "nice": False}
        return {"domain": [self.low, self.high], "nice": False, "zero": False}

    def axis(self) -> Spec:
        """The Vega-Lite axis on the left, with the unit over it."""
        return {
            "values": list(self.ticks),
            "format": NUMBER_FORMAT,
            "title": None,
            "domain": False,
            "ticks": False,
            "labelPadding": 6,
        }

    def share(self, value: float) -> float:
        """Where a value (in the axis's unit) stands: 0 at the bottom, 1 at the top."""
        if self.log:
            low, high = math.log(self.low), math.log(self.high)
            return (math.log(max(value, self.low)) - low) / (high - low)
        return (value - self.low) / (self.high - self.low)

    def at(self, share: float) -> float:
        """The value that stands at a share of the height; the inverse of `share`."""
        if self.log:
            low, high = math.log(self.low), math.log(self.high)
            return math.exp(low + share * (high - low))
        return self.low + share * (self.high - self.low)


_UNITS: Final[dict[str, tuple[tuple[float, str], ...]]] = {
    "1/s": ((1e6, "million IOPS"), (1e3, "thousand IOPS"), (1.0, "IOPS")),
    "ops/s": ((1e6, "million ops/s"), (1e3, "thousand ops/s"), (1.0, "ops/s")),
    "frames/s": ((1e6, "million/s"), (1e3, "thousand/s"), (1.0, "a second")),
    "bytes/s": ((1e9, "GB/s"), (1e6, "MB/s"), (1e3, "kB/s"), (1.0, "B/s")),
    "ns": ((1e9, "s"), (1e6, "ms"), (1e3, "µs"), (1.0, "ns")),
    "share": ((0.01, "%"),),
    "depth": ((1.0, "I/Os"),),
    "waiting": ((1.0, "waiting"),),
    "celsius": ((1.0, "°C"),),
    "TB": ((1.0, "TB"),),
}


def unit_of(unit: str, largest: float) -> tuple[float, str]:
    """The divisor and name of the unit in which `largest` reads with few digits."""
    choices = _UNITS[unit]
    return next((pair for pair in choices if largest >= 1.5 * pair[0]), choices[-1])


def linear_scale(unit: str, values: Sequence[float], *, ticks: int = 4) -> Scale:
    """A scale from zero to a round number above the largest value."""
    largest = max((v for v in values if math.isfinite(v)), default=0.0)
    divisor, name = unit_of(unit, largest)
    top = largest / divisor if largest > 0 else 1.0
    step = _round_step(top / ticks)
    high = step * math.ceil(top / step - 1e-9)
    marks = tuple(round(step * i, 10) for i in range(round(high / step) + 1))
    return Scale(divisor, name, 0.0, high, marks)


def log_scale(unit: str, values: Sequence[float], *, most: int = 8) -> Scale:
    """A logarithmic scale over the values, with 1-2-5 ticks thinned to at most `most`."""
    found = [v for v in values if math.isfinite(v) and v > 0] or [1.0]
    divisor, name = unit_of(unit, math.sqrt(min(found) * max(found)))
    low, high = min(found) / divisor / 1.08, max(found) / divisor * 1.08
    decades = range(math.floor(math.log10(low)) - 1, math.ceil(math.log10(high)) + 1)
    fives = [m * 10.0**d for d in decades for m in (1, 2, 5)]
    low = max([v for v in fives if v <= low], default=low)
    high = min([v for v in fives if v >= high], default=high)
    marks = [v for v in fives if low <= v <= high]
    if len(marks) > most:
        tens = [v for v in marks if f"{v:e}".startswith("1.0")]
        marks = tens if len(tens) > 1 else marks
    step = math.ceil(len(marks) / most)
    ticks = tuple(float(f"{v:.6g}") for v in marks[::step])
    return Scale(divisor, name, low, high, ticks, log=True)


def _round_step(step: float) -> float:
    power = 10.0 ** math.floor(math.log10(step))
    return next(s * power for s in _STEPS if s * power >= step * (1 - 1e-9))


def time_ticks(span_s: float) -> tuple[float, ...]:
    """Round seconds from 0 to the end: at most seven."""
    steps = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400)
    step = next((s for s in steps if span_s / s <= 6), 28800)
    return tuple(float(i * step) for i in range(int(span_s // step) + 1))


def spread(wanted: Sequence[float], gap: float, low: float, high: float) -> list[float]:
    """Positions as near as possible to `wanted`, in the same order, at least `gap` apart.

    All within [low, high] where they fit; the classic one pass down, one pass up.
    """
    order = sorted(range(len(wanted)), key=lambda i: wanted[i])
    placed = [0.0] * len(wanted)
    edge = low - gap
    for i in order:
        placed[i] = max(wanted[i], edge + gap)
        edge = placed[i]
    edge = high + gap
    for i in reversed(order):
        placed[i] = min(placed[i], edge - gap)
        edge = placed[i]
    return placed


def label(text: str) -> str:
    """A direct label: cleaned and cut to what fits beside the plot."""
    return short(text, LABEL_CHARACTERS)


def end_labels(
    ends: Sequence[tuple[str, float, str]], scale: Scale, height: float, x_pixel: float
) -> list[Spec]:
    """Text layers beside the ends of lines: each (text, value in the axis's unit, colour).

    One layer a label, since each has a colour of its own; no two overlap.
    """
    wanted = [height * (1 - scale.share(value)) for _, value, _ in ends]
    placed = spread(wanted, LINE_GAP, 0, height)
    return [
        {
            "data": {"values": [{"text": label(text), "y": round(y, 1)}]},
            "mark": {"type": "text", "align": "left", "baseline": "middle", "fill": colour},
            "encoding": {
                "x": {"value": x_pixel},
                "y": {"field": "y", "type": "quantitative", "scale": None, "axis": None},
                "text": {"field": "text", "type": "nominal"},
            },
        }
        for (text, _, colour), y in zip(ends, placed, strict=True)
    ]


def unit_mark(text: str) -> Spec:
    """The unit of the value axis, over its upper end."""
    return {
        "data": {"values": [{"text": text}]},
        "mark": {"type": "text", "align": "left", "baseline": "bottom", "fill": MUTED.stand_in},
        "encoding": {
            "x": {"value": -LEFT + 4},
            "y": {"value": -10},
            "text": {"field": "text", "type": "nominal"},
        },
    }


def config() -> Spec:
    """The look of all charts: thin rules, muted axes, no legend."""
    text = {"font": "sans-serif", "fontSize": FONT, "fontWeight": "normal"}
    return {
        "aria": False,
        "background": None,
        "view": {"stroke": None, "fill": None},
        "text": text,
        "axis": {
            "labelFont": "sans-serif",
            "labelFontSize": FONT,
            "labelColor": MUTED.stand_in,
            "titleFont": "sans-serif",
            "titleFontSize": FONT,
            "titleFontWeight": "normal",
            "titleColor": MUTED.stand_in,
            "gridColor": FAINT.stand_in,
            "domainColor": RULE.stand_in,
            "tickColor": RULE.stand_in,
            "labelOverlap": False,
            "labelLimit": 0,
            "labelBound": False,
            "labelFlush": False,
        },
        "line": {"strokeWidth": 1.8, "strokeJoin": "round", "strokeCap": "round"},
        "rule": {"stroke": INK.stand_in},
    }


def stacked(panels: Sequence[Spec], width: int, height: int, *, top: int, gap: int) -> Spec:
    """The frame of a spec of plots over each other, `gap` apart, within that size as a whole.

    The size is stated as Vega's own signals: a drawing on its own page would else have the size of
    the first plot alone.
    """
    size = {"width": width, "height": height}
    return {
        "$schema": "https://vega.github.io/schema/vega-lite/v6.json",
        "padding": {"left": LEFT, "right": RIGHT, "top": top, "bottom": BOTTOM},
        "autosize": {"type": "none"},
        "params": [{"name": name, "value": value} for name, value in size.items()],
        "bounds": "flush",
        "spacing": gap,
        "vconcat": list(panels),
        "config": config(),
    }


def top_level(width: int, height: int, *, top: int, bottom: int = BOTTOM) -> Spec:
    """The frame of a spec with a plot of that size; the layers are to be added."""
    return {
        "$schema": "https://vega.github.io/schema/vega-lite/v6.json",
        "width": width,
        "height": height,
        "padding": {"left": LEFT, "right": RIGHT, "top": top, "bottom": bottom},
        "autosize": {"type": "none"},
        "config": config(),
    }


TOO_FEW_RUNS: Final = "Too few repeats"
OVER_RUNS: Final = "Bars: 95 % interval over the runs, which are the small marks."
OF_BINS: Final = "Bars of percentiles: the engine’s own bin that holds it."


def bar_notes(metrics: Iterable[Metric], intervals: str = OVER_RUNS) -> list[str]:
    """A sentence for intervals of chance, one for edges of bins, as far as any is drawn.

    And one where an interval would say nothing, and is not drawn.
    """
    found = list(metrics)
    drawn = [one for one in found if one.interval is not None]
    few = sum(one.lacks_repeats for one in found)
    return [
        *([intervals] if any(not one.bounded for one in drawn) else []),
        *([OF_BINS] if any(one.bounded for one in drawn) else []),
        *([f"{TOO_FEW_RUNS} for an interval of {few} of {len(found)} values."] if few else []),
    ]


LABELS_MAX: Final = 8
"""Up to so many values are all labelled, as study files choose them."""

_SIZE_AXES: Final = frozenset({"bs", "filesize", "block_size"})
_LOG_AXES: Final = _SIZE_AXES | {"iodepth", "numjobs", "threads"}
_CHARACTER: Final = 6.6
"""Units of a digit at 12 units."""
_GAP: Final = 9.0
"""The least room between two labels."""
_PADDING: Final = 10


def x_encoding(axis: str, values: Iterable[float], nodes: int = 1) -> Spec:
    """The axis by its own scale: doublings for depths and sizes, even steps otherwise.

    With several `nodes` its values are of each of them: labels tell those of all, then of one.
    """
    found = sorted(set(values))
    log = axis in _LOG_AXES and min(found, default=0) > 0
    scale = {"type": "log", "base": 2} if log else {"type": "linear", "zero": False}
    return {
        "field": "x",
        "type": "quantitative",
        "scale": {**scale, "nice": False, "padding": _PADDING},
        "axis": {
            "values": _labelled(found, nodes, log=log),
            "grid": False,
            "title": _title(axis, nodes),
            "tickSize": 4,
            **(_of_nodes(nodes) if nodes > 1 else tick_labels(axis)),
        },
    }


def tick_labels(axis: str) -> Spec:
    """How values of the axis are written: sizes as study files have them, others as numbers."""
    return {"labelExpr": _SIZE_LABEL} if axis in _SIZE_AXES else {"format": NUMBER_FORMAT}


_SIZE_LABEL: Final = (
    "datum.value >= 1073741824 ? format(datum.value / 1073741824, '.6~r') + 'g' : "
    "datum.value >= 1048576 ? format(datum.value / 1048576, '.6~r') + 'm' : "
    "datum.value >= 1024 ? format(datum.value / 1024, '.6~r') + 'k' : format(datum.value, '.6~r')"
)
"""Sizes on the axis as study files write them."""


def _of_nodes(nodes: int) -> Spec:
    """`12 (3)`: those of all nodes, and of each."""
    return {"labelExpr": f"datum.value * {nodes} + ' (' + datum.value + ')'"}


def _title(axis: str, nodes: int) -> str:
    return f"VMs on {nodes} nodes (on each)" if nodes > 1 else axis_word(axis)


def _labelled(values: Sequence[float], nodes: int, *, log: bool) -> list[float]:
    """The first, the last, and as many between them as have room."""
    if len(values) <= LABELS_MAX and nodes == 1:
        return list(values)
    if not values:
        return []
    places = [math.log2(value) if log else value for value in values]
    span = max(places[-1] - places[0], 1e-9)
    room = PLOT_WIDTH - 2 * _PADDING
    pixels = [room * (place - places[0]) / span for place in places]
    widths = [_CHARACTER * len(_text(value, nodes)) for value in values]
    last = len(values) - 1
    kept = [0]
    for index in range(1, last):
        before = pixels[index] - pixels[kept[-1]] - (widths[index] + widths[kept[-1]]) / 2
        after = pixels[last] - pixels[index] - (widths[index] + widths[last]) / 2
        if min(before, after) >= _GAP:
            kept.append(index)
    return [values[index] for index in dict.fromkeys([*kept, last])]


def _text(value: float, nodes: int) -> str:
    return f"{value * nodes:g} ({value:g})" if nodes > 1 else f"{value:,g}"


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
