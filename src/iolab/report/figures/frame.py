"""What every chart shares: its size, its type, its scales and ticks, and labels that keep apart.

Charts are 420 units wide with type of 12 units: on a phone of 375 px the type is about 10 px, in a
column of a desktop about 14 px. Nothing is laid out by measured text, so that a chart is the same
on every machine whatever fonts it has: sizes are fixed, ticks are named, overlap is settled here.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from iolab.report.palette import FAINT, INK, MUTED, RULE
from iolab.report.table import Table
from iolab.report.wording import short

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
