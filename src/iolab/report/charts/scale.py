"""Scales and axes: where a value stands in a plot, which are named, and how they are written.

Nothing here measures text, so that a chart is the same on every machine whatever fonts it has.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Final

from iolab.record import Record
from iolab.report.charts.series import Panel
from iolab.report.numbers import DIGITS, axis_name_text

WIDTH: Final = 420
"""Of every chart: on a phone of 375 px type of 12 units is about 10 px, in a column 14 px."""
LEFT: Final = 46
RIGHT: Final = 96
"""Room for the labels at the end of the lines."""
PLOT_WIDTH: Final = WIDTH - LEFT - RIGHT

_STEPS: Final = (1.0, 2.0, 2.5, 5.0, 10.0)
_OF_LARGEST: Final = 3.0
"""This part of the largest value chooses a unit, so that it stays below 5,000: `10,000` has no room
beside a plot."""

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

LABELS_MAX: Final = 8
"""Up to so many values are all labelled, as study files choose them."""

_SIZE_AXES: Final = frozenset({"bs", "filesize", "block_size"})
_LOG_AXES: Final = _SIZE_AXES | {"iodepth", "numjobs", "threads"}

_CHARACTER: Final = 6.6
"""Units of a digit at 12 units."""

_GAP: Final = 9.0
"""The least room between two labels."""

_PADDING: Final = 10
"""Units between the ends of the plot and the first and the last value."""


class Scale(Record):
    """A range of values in a unit that reads well: values are divided by `divisor`."""

    divisor: float
    unit: str
    low: float
    high: float
    ticks: tuple[float, ...]
    is_logarithmic: bool = False

    def scaled(self, value: float) -> float:
        """The value in the scale's unit."""
        return value / self.divisor

    def fraction(self, value: float) -> float:
        """Where a value (in the scale's unit) stands: 0 at its low end, 1 at its high one."""
        if self.high <= self.low:
            return 0.5
        if self.is_logarithmic:
            low, high = math.log(self.low), math.log(self.high)
            return (math.log(max(value, self.low)) - low) / (high - low)
        return (value - self.low) / (self.high - self.low)

    def value_at(self, fraction: float) -> float:
        """The value that stands at a share of the length; the inverse of `fraction`."""
        if self.is_logarithmic:
            low, high = math.log(self.low), math.log(self.high)
            return math.exp(low + fraction * (high - low))
        return self.low + fraction * (self.high - self.low)


class ChartAxis(Record):
    """What stands under a plot: the scale of its places, and the names of some of them.

    `start_offset` and `end_offset` are where the scale begins and ends, in units of the plot from
    its left. `tip_kind` is how a pointer is told a place: "time" in seconds, "nines" as a
    percentile.
    """

    scale: Scale
    ticks: tuple[tuple[float, str], ...]
    title: str = ""
    tip_kind: str = ""
    has_grid: bool = False
    has_line: bool = True
    has_labels: bool = True
    start_offset: float = 0.0
    end_offset: float = float(PLOT_WIDTH)
    is_title_left: bool = False

    def offset_of(self, value: float) -> float:
        """Units from the plot's left to a value."""
        return self.start_offset + (self.end_offset - self.start_offset) * self.scale.fraction(
            value
        )


def axis_number_text(value: float) -> str:
    """A number beside an axis: six digits at most, and no zeros at its end."""
    if not value:
        return "0"
    decimals = max(0, DIGITS - 1 - math.floor(math.log10(abs(value))))
    text = f"{value:,.{decimals}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def scaled_unit(unit: str, largest: float) -> tuple[float, str]:
    """The divisor and name of the unit in which `largest` reads with few digits."""
    choices = _UNITS[unit]
    return next((pair for pair in choices if largest >= 1.5 * pair[0]), choices[-1])


def linear_scale(unit: str, values: Sequence[float], *, ticks: int = 4) -> Scale:
    """A scale from zero to a round number above the largest value."""
    largest = max((v for v in values if math.isfinite(v)), default=0.0)
    divisor, name = scaled_unit(unit, largest)
    top = largest / divisor if largest > 0 else 1.0
    step = _round_step(top / ticks)
    high = step * math.ceil(top / step - 1e-9)
    marks = tuple(round(step * i, 10) for i in range(round(high / step) + 1))
    return Scale(divisor, name, 0.0, high, marks)


def _round_step(step: float) -> float:
    power = 10.0 ** math.floor(math.log10(step))
    return next(s * power for s in _STEPS if s * power >= step * (1 - 1e-9))


def log_scale(unit: str, values: Sequence[float], *, max_ticks: int = 8) -> Scale:
    """A logarithmic scale over the values, with 1-2-5 ticks thinned to at most `max_ticks`."""
    positive = [v for v in values if math.isfinite(v) and v > 0] or [1.0]
    divisor, name = scaled_unit(
        unit, max(math.sqrt(min(positive) * max(positive)), max(positive) / _OF_LARGEST)
    )
    low, high = min(positive) / divisor / 1.08, max(positive) / divisor * 1.08
    decades = range(math.floor(math.log10(low)) - 1, math.ceil(math.log10(high)) + 1)
    fives = [m * 10.0**d for d in decades for m in (1, 2, 5)]
    low = max([v for v in fives if v <= low], default=low)
    high = min([v for v in fives if v >= high], default=high)
    marks = [v for v in fives if low <= v <= high]
    if len(marks) > max_ticks:
        tens = [v for v in marks if f"{v:e}".startswith("1.0")]
        marks = tens if len(tens) > 1 else marks
    step = math.ceil(len(marks) / max_ticks)
    ticks = tuple(float(f"{v:.6g}") for v in marks[::step])
    return Scale(divisor, name, low, high, ticks, is_logarithmic=True)


def panel_scale(panel: Panel, values: Sequence[float], ticks: int) -> Scale:
    """A linear scale; of shares it ends at the whole."""
    scale = linear_scale(panel.unit, values, ticks=ticks)
    if panel.unit == "share" and scale.high > 100:
        return Scale(scale.divisor, scale.unit, 0.0, 100.0, (0.0, 50.0, 100.0))
    return scale


def value_axis_of_scale(scale: Scale) -> ChartAxis:
    """A scale of values under a plot, as what they are plotted against."""
    return ChartAxis(
        scale, tuple((tick, axis_number_text(tick)) for tick in scale.ticks), scale.unit
    )


def integer_axis(
    last: float, title: str, labelled_values: Iterable[float], *, low: float
) -> ChartAxis:
    """Whole numbers: runs or rounds in their order, hosts by their rank."""
    ticks = tuple((float(value), axis_number_text(value)) for value in labelled_values)
    return ChartAxis(Scale(1.0, "", low, last, ()), ticks, title)


def seconds_axis(end: float, title: str = "") -> ChartAxis:
    """Time: grid lines in every panel, labels only under one that has a title."""
    ticks = tuple((tick, axis_number_text(tick)) for tick in time_ticks(end))
    scale = Scale(1.0, "s", 0.0, end, ())
    return ChartAxis(
        scale, ticks, title, "time", has_grid=True, has_line=False, has_labels=bool(title)
    )


def time_ticks(span_s: float) -> tuple[float, ...]:
    """Round seconds from 0 to the end: at most seven."""
    steps = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400)
    step = next((s for s in steps if span_s / s <= 6), 28800)
    return tuple(float(i * step) for i in range(int(span_s // step) + 1))


def parameter_axis(axis: str, values: Iterable[float], nodes: int = 1) -> ChartAxis:
    """A varied parameter: doublings for depths and sizes, even steps otherwise.

    With several `nodes` its values are of each of them: labels tell those of all, then of one.
    """
    ordered = sorted(set(values)) or [1.0]
    log = axis in _LOG_AXES and ordered[0] > 0
    text = _axis_label_formatter(axis, nodes)
    kept = _values_with_label_space(
        ordered, text, show_all=len(ordered) <= LABELS_MAX and nodes == 1, is_logarithmic=log
    )
    return ChartAxis(
        Scale(1.0, "", ordered[0], ordered[-1], (), log),
        tuple((value, text(value)) for value in kept),
        f"VMs on {nodes} nodes (on each)" if nodes > 1 else axis_name_text(axis),
        start_offset=_PADDING,
        end_offset=PLOT_WIDTH - _PADDING,
    )


def _axis_label_formatter(axis: str, nodes: int) -> Callable[[float], str]:
    """How values of an axis are written: sizes as study files have them, `12 (3)` for guests."""
    if nodes > 1:
        return lambda value: f"{axis_number_text(value * nodes)} ({axis_number_text(value)})"
    return _size_text if axis in _SIZE_AXES else axis_number_text


def _size_text(value: float) -> str:
    units = ((2**30, "g"), (2**20, "m"), (2**10, "k"))
    size, name = next((unit for unit in units if value >= unit[0]), (1, ""))
    return f"{value / size:.6g}{name}"


def _values_with_label_space(
    values: Sequence[float],
    label_of: Callable[[float], str],
    *,
    show_all: bool,
    is_logarithmic: bool,
) -> list[float]:
    """The first, the last, and as many between them as have room."""
    if show_all:
        return list(values)
    places = [math.log2(value) if is_logarithmic else value for value in values]
    span = max(places[-1] - places[0], 1e-9)
    room = PLOT_WIDTH - 2 * _PADDING
    at = [room * (place - places[0]) / span for place in places]
    widths = [_CHARACTER * len(label_of(value)) for value in values]
    last = len(values) - 1
    kept = [0]
    for index in range(1, last):
        before = at[index] - at[kept[-1]] - (widths[index] + widths[kept[-1]]) / 2
        after = at[last] - at[index] - (widths[index] + widths[last]) / 2
        if min(before, after) >= _GAP:
            kept.append(index)
    return [values[index] for index in dict.fromkeys([*kept, last])]
