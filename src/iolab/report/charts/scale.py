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

WIDTH: Final = 384
"""Of a chart of four columns: a phone of 390 px shows it nearly as large."""
LEFT: Final = 46
RIGHT: Final = 96
"""Room for the labels at the end of the lines, before a chart is fitted to its own."""
PLOT_WIDTH: Final = WIDTH - LEFT - RIGHT

_LOG_STEPS_SPARSE: Final = (1, 3)
"""Ticks of a decade where 1-2-5 are too many."""

_STEPS: Final = (1.0, 2.0, 2.5, 5.0, 10.0)
_UNIT_THRESHOLD: Final = 3.0
"""This part of the largest value chooses a unit, so that it stays below 5,000: `10,000` has no room
beside a plot."""

_UNITS: Final[dict[str, tuple[tuple[float, str], ...]]] = {
    "1/s": ((1e6, "M IOPS"), (1e3, "k IOPS"), (1.0, "IOPS")),
    "ops/s": ((1e6, "M ops/s"), (1e3, "k ops/s"), (1.0, "ops/s")),
    "frames/s": ((1e6, "million/s"), (1e3, "thousand/s"), (1.0, "a second")),
    "bytes/s": ((1e9, "GB/s"), (1e6, "MB/s"), (1e3, "kB/s"), (1.0, "B/s")),
    "ns": ((1e9, "s"), (1e6, "ms"), (1e3, "µs"), (1.0, "ns")),
    "share": ((0.01, "%"),),
    "depth": ((1.0, "I/Os"),),
    "waiting": ((1.0, "waiting"),),
    "celsius": ((1.0, "°C"),),
    "TB": ((1.0, "TB"),),
    "W": ((1e3, "kW"), (1.0, "W")),
    "": ((1.0, "times"),),
}

_SIZE_AXES: Final = frozenset({"bs", "filesize", "block_size"})
_LOG_AXES: Final = _SIZE_AXES | {"iodepth", "numjobs", "threads"}

LOG_SCALE: Final = ", log scale"
"""What follows the unit of a logarithmic axis."""

_PADDING: Final = 10
"""Units between the ends of the plot and the first and the last value."""


class Scale(Record):
    """A range of values in a unit that reads well: values are divided by `divisor`.

    `stops` are values that stand equally far apart, with half of that beyond the first and last.
    """

    divisor: float
    unit: str
    low: float
    high: float
    ticks: tuple[float, ...]
    is_logarithmic: bool = False
    stops: tuple[float, ...] = ()

    def to_scale_unit(self, value: float) -> float:
        """The value in the scale's unit."""
        return value / self.divisor

    def fraction(self, value: float) -> float:
        """Where a value (in the scale's unit) stands: 0 at its low end, 1 at its high one."""
        if self.stops:
            return (_fractional_stop_index(self.stops, value) + 0.5) / len(self.stops)
        if self.high <= self.low:
            return 0.5
        if self.is_logarithmic:
            low, high = math.log(self.low), math.log(self.high)
            return (math.log(max(value, self.low)) - low) / (high - low)
        return (value - self.low) / (self.high - self.low)


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

    def offset_at(self, value: float) -> float:
        """Units from the plot's left to a value."""
        return self.start_offset + (self.end_offset - self.start_offset) * self.scale.fraction(
            value
        )

    @property
    def stop_width(self) -> float:
        """Units that each stop of its scale has."""
        return (self.end_offset - self.start_offset) / max(len(self.scale.stops), 1)


def _fractional_stop_index(stops: Sequence[float], value: float) -> float:
    """The place of a value among the stops, between two of them in proportion."""
    after = next((i for i, stop in enumerate(stops) if stop >= value), len(stops) - 1)
    if after == 0 or stops[after] <= value:
        return float(after)
    low, high = stops[after - 1], stops[after]
    return after - (high - value) / (high - low)


def axis_number_text(value: float) -> str:
    """A number beside an axis: six digits at most, and no zeros at its end."""
    if not value:
        return "0"
    decimals = max(0, DIGITS - 1 - math.floor(math.log10(abs(value))))
    text = f"{value:,.{decimals}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def unit_divisor_and_name(unit: str, largest: float) -> tuple[float, str]:
    """The divisor and name of the unit in which `largest` reads with few digits."""
    # Units of a kind of load, as "requests/s", have the prefixes of all.
    plain = ((1e6, f"M {unit}"), (1e3, f"k {unit}"), (1.0, unit))
    choices = _UNITS.get(unit, plain)
    return next((pair for pair in choices if largest >= 1.5 * pair[0]), choices[-1])


def linear_scale(unit: str, values: Sequence[float], *, tick_count: int = 4) -> Scale:
    """A scale from zero to a round number above the largest value."""
    largest = max((v for v in values if math.isfinite(v)), default=0.0)
    divisor, name = unit_divisor_and_name(unit, largest)
    top = largest / divisor if largest > 0 else 1.0
    step = _round_tick_step(top / tick_count)
    high = step * math.ceil(top / step - 1e-9)
    marks = tuple(round(step * i, 10) for i in range(round(high / step) + 1))
    return Scale(divisor, name, 0.0, high, marks)


def _round_tick_step(step: float) -> float:
    power = 10.0 ** math.floor(math.log10(step))
    return next(s * power for s in _STEPS if s * power >= step * (1 - 1e-9))


def log_scale(unit: str, values: Sequence[float], *, max_ticks: int = 8) -> Scale:
    """A logarithmic scale over the values, with 1-2-5, 1-3 or 1 ticks, at most `max_ticks`."""
    positive = [v for v in values if math.isfinite(v) and v > 0] or [1.0]
    divisor, name = unit_divisor_and_name(
        unit, max(math.sqrt(min(positive) * max(positive)), max(positive) / _UNIT_THRESHOLD)
    )
    low, high = min(positive) / divisor / 1.08, max(positive) / divisor * 1.08
    decades = range(math.floor(math.log10(low)) - 1, math.ceil(math.log10(high)) + 1)
    fives = [m * 10.0**d for d in decades for m in (1, 2, 5)]
    low = max([v for v in fives if v <= low], default=low)
    high = min([v for v in fives if v >= high], default=high)
    marks = [v for v in fives if low <= v <= high]
    for steps in (_LOG_STEPS_SPARSE, (1,)):
        if len(marks) > max_ticks:
            sparse = [m * 10.0**d for d in decades for m in steps]
            kept = [v for v in sparse if low <= v <= high]
            marks = kept if len(kept) > 1 else marks
    step = math.ceil(len(marks) / max_ticks)
    ticks = tuple(float(f"{v:.6g}") for v in marks[::step])
    return Scale(divisor, name, low, high, ticks, is_logarithmic=True)


def panel_scale(panel: Panel, values: Sequence[float], tick_count: int) -> Scale:
    """A linear scale; of shares it ends at the whole."""
    scale = linear_scale(panel.unit, values, tick_count=tick_count)
    if panel.unit == "share" and scale.high > 100:
        return Scale(scale.divisor, scale.unit, 0.0, 100.0, (0.0, 50.0, 100.0))
    return scale


def value_axis_of_scale(scale: Scale) -> ChartAxis:
    """A scale of values under a plot, as what they are plotted against."""
    title = f"{scale.unit}{LOG_SCALE}" if scale.is_logarithmic else scale.unit
    return ChartAxis(scale, tuple((tick, axis_number_text(tick)) for tick in scale.ticks), title)


def integer_axis(
    high: float, title: str, labelled_values: Iterable[float], *, low: float
) -> ChartAxis:
    """Whole numbers: runs or rounds in their order, hosts by their rank."""
    ticks = tuple((float(value), axis_number_text(value)) for value in labelled_values)
    return ChartAxis(Scale(1.0, "", low, high, ()), ticks, title)


def seconds_axis(end_s: float, title: str = "") -> ChartAxis:
    """Time: grid lines in every panel, labels only under one that has a title."""
    ticks = tuple((tick, axis_number_text(tick)) for tick in time_ticks(end_s))
    scale = Scale(1.0, "s", 0.0, end_s, ())
    return ChartAxis(
        scale, ticks, title, "time", has_grid=True, has_line=False, has_labels=bool(title)
    )


def time_ticks(span_s: float) -> tuple[float, ...]:
    """Round seconds from 0 to the end: at most seven."""
    steps = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400)
    step = next((s for s in steps if span_s / s <= 6), 28800)
    return tuple(float(i * step) for i in range(int(span_s // step) + 1))


def parameter_axis(
    axis_name: str, values: Iterable[float], node_count: int = 1, *, is_equally_spaced: bool = False
) -> ChartAxis:
    """A varied parameter: doublings for depths and sizes, even steps otherwise.

    With several `node_count` its values are of each of them: labels tell those of all, then of one.
    With `is_equally_spaced` values stand equally far apart, as bars do.
    """
    ordered = sorted(set(values)) or [1.0]
    log = axis_name in _LOG_AXES and ordered[0] > 0
    text = _create_axis_label_formatter(axis_name, node_count)
    padding = 0 if is_equally_spaced else _PADDING
    stops = tuple(ordered) if is_equally_spaced else ()
    return ChartAxis(
        Scale(1.0, "", ordered[0], ordered[-1], (), log, stops),
        tuple((value, text(value)) for value in ordered),
        f"VMs on {node_count} nodes (on each)" if node_count > 1 else axis_name_text(axis_name),
        start_offset=padding,
        end_offset=PLOT_WIDTH - padding,
    )


def _create_axis_label_formatter(axis_name: str, node_count: int) -> Callable[[float], str]:
    """How values of an axis are written: sizes as study files have them, `12 (3)` for guests."""
    if node_count > 1:
        return lambda value: f"{axis_number_text(value * node_count)} ({axis_number_text(value)})"
    return _size_text if axis_name in _SIZE_AXES else axis_number_text


def _size_text(value: float) -> str:
    units = ((2**30, "g"), (2**20, "m"), (2**10, "k"))
    size, name = next((unit for unit in units if value >= unit[0]), (1, ""))
    return f"{value / size:.6g}{name}"
