"""A chart as data: plots over each other, marks in values of their axes, and what marks stand for.

`svg` draws it, for a page, for paper and for files. A mark knows the configuration that it belongs
to and what a pointer is told of it, so that nothing is found out from a drawing.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from enum import Enum, auto
from string import ascii_uppercase
from textwrap import wrap
from typing import Final

from msgspec.structs import replace

from iolab.core.metric import Level, Metric
from iolab.core.study import Study
from iolab.record import Record
from iolab.report.charts.palette import RAISED, Token, series_token
from iolab.report.charts.scale import LEFT, PLOT_WIDTH, WIDTH, ChartAxis, Scale
from iolab.report.numbers import REPEATS_TOO_FAR_APART, TOO_FEW_REPEATS, missing_interval_reason
from iolab.report.table import Table
from iolab.text import escape_invisible, excerpt

HEAD: Final = 32
"""Room for the unit over a plot."""
BOTTOM: Final = 40
"""Room for the labels and the title under a plot."""
LINE_GAP: Final = 13.5
"""The least distance of two labels' middles: a line of type of 12 units."""
LABEL_CHARACTERS: Final = 13
"""What fits beside a plot at 12 units."""
KEY_CHARACTERS: Final = 58
"""What fits into a line as wide as a chart."""
KEY_INDENT: Final = "\N{NO-BREAK SPACE}" * 4
KEY_ROOM: Final = 6
"""Room under the key."""

MIDDLE: Final = 4.0
BELOW: Final = 9.0
ABOVE: Final = -3.0
"""From a place down to the base line of a text that is to stand beside, below or above it."""

FEW: Final = 3
"""Known values up to which a line has dots: a short phase has one, which is no line."""

NO_INTERVAL: Final = (TOO_FEW_REPEATS.capitalize(), REPEATS_TOO_FAR_APART.capitalize())
"""How a note begins on values without an interval."""

OVER_RUNS: Final = "Bars: 95 % interval over the runs, which are the small marks."
OF_BINS: Final = "Bars of percentiles: the engine’s own bin that holds it."


class MarkTip(Record):
    """What a pointer is told of a mark: the name of its series, and of each of its places more.

    `intervals` are 95 % intervals in the plot's unit, `verdicts` words (of markers those of their
    levels), `texts` what places are called. `is_single_run` is for one run of several.
    """

    name: str = ""
    intervals: Sequence[tuple[float, float] | None] = ()
    verdicts: Sequence[str] = ()
    texts: Sequence[str] = ()
    is_single_run: bool = False


class Mark(Record, kw_only=True):
    """What all marks have: a colour, whose they are (by default their colour's), what is told."""

    token: Token
    opacity: float = 1.0
    series: Token | None = None
    tip: MarkTip | None = None


class Line(Mark, kw_only=True):
    """A line through places in their order, with gaps where there is no value."""

    places: Sequence[tuple[float, float | None]]
    width: float = 1.8
    dash: Sequence[float] = ()
    has_dots: bool = False


class MarkerStyle(Enum):
    """How a marker without a verdict looks: filled with a rim of paper or none, open, or a ring."""

    SOLID = auto()
    PLAIN = auto()
    OPEN = auto()
    RING = auto()


class Points(Mark, kw_only=True):
    """Markers, by the verdicts of their places in shape and filling, or all by `marker_style`.

    `size` is an area in square units; `is_small` ones are single runs.
    """

    places: Sequence[tuple[float, float]]
    levels: Sequence[Level] = ()
    marker_style: MarkerStyle = MarkerStyle.SOLID
    size: float = 34
    is_small: bool = False


class Arrows(Mark, kw_only=True):
    """Heads of arrows: x, y, and degrees clockwise from upwards."""

    places: Sequence[tuple[float, float, float]]


class LineSegments(Mark, kw_only=True):
    """Straight pieces (x, y, x2, y2), each end at the plot's own where it is None."""

    segments: Sequence[tuple[float | None, float | None, float | None, float | None]]
    width: float = 1.4
    dash: Sequence[float] = ()


class Boxes(Mark, kw_only=True):
    """Rectangles (x, y, x2, y2), likewise; `has_rim` parts neighbours by a rim of paper.

    Those whose level is not valid are hatched, by strokes of paper in every one alike.
    """

    boxes: Sequence[tuple[float | None, float | None, float | None, float | None]]
    levels: Sequence[Level | None] = ()
    has_rim: bool = False


class Band(Mark, kw_only=True):
    """The area between low and high along x."""

    places: Sequence[tuple[float, float, float]]


class TextMark(Mark, kw_only=True):
    """Texts at places; `dx` and `dy` are units from there to the base line, `has_rim` is of paper.

    `is_fixed` ones have x in units of the plot: they stand still when a part is enlarged.
    """

    places: Sequence[tuple[float, float, str]]
    align: str = "start"
    dx: float = 0.0
    dy: float = 0.0
    has_rim: bool = False
    is_fixed: bool = False


class LineEndLabel(Record):
    """What stands beside the end of a line, at its last value."""

    text: str
    value: float
    token: Token


class Plot(Record):
    """Marks on two axes; without an axis their places are units from the upper left corner.

    `title` is what it shows, where that is not the chart's own title; `top` its place in the chart.
    """

    height: float
    marks: Sequence[Mark]
    x: ChartAxis | None = None
    y: Scale | None = None
    end_labels: Sequence[LineEndLabel] = ()
    title: str = ""
    unit: str = ""
    top: float = HEAD
    left: float = LEFT
    width: float = PLOT_WIDTH

    def x_position(self, value: float | None, edge: float = 0.0) -> float:
        """Units from the left to a value of x."""
        if value is None:
            return edge
        return self.x.offset_of(value) if self.x else value

    def y_position(self, value: float | None, edge: float = 0.0) -> float:
        """Units from the top to a value of y."""
        if value is None:
            return edge
        return self.height * (1 - self.y.fraction(value)) if self.y else value


class Figure(Record):
    """A chart with its words and its numbers.

    `subject` is what it is a chart of, `finding` what it shows, `note` how to read it. With
    `by_configuration` its colours tell configurations apart.
    """

    subject: str
    title: str
    finding: str
    note: str
    plots: tuple[Plot, ...]
    table: Table
    by_configuration: bool = False

    @property
    def width(self) -> int:
        """All charts are equally wide."""
        return WIDTH

    @property
    def height(self) -> int:
        """Down to the lowest plot's end, with what stands under it where it has an axis."""
        ends = (plot.top + plot.height + (BOTTOM if plot.x else 0) for plot in self.plots)
        return round(max(ends))

    @property
    def long_label_letters(self) -> dict[str, str]:
        """The labels beside plots that are too long to stand there, each with the letter that does.

        They are written out below the plots.
        """
        ends = (escape_invisible(end.text) for plot in self.plots for end in plot.end_labels)
        long = dict.fromkeys(text for text in ends if len(text) > LABEL_CHARACTERS)
        return dict(zip(long, ascii_uppercase, strict=False))

    @property
    def label_key_lines(self) -> tuple[str, ...]:
        """The key as it is written below the plots, lines of what fits there."""
        return tuple(
            line
            for text, letter in self.long_label_letters.items()
            for line in wrap(f"{letter}: {text}", KEY_CHARACTERS, subsequent_indent=KEY_INDENT)
        )

    @property
    def height_with_key(self) -> int:
        """With the key."""
        lines = len(self.label_key_lines)
        return self.height + (round(lines * LINE_GAP) + KEY_ROOM if lines else 0)

    @property
    def alt_text(self) -> str:
        """The alternative text: subject, title and finding."""
        return f"{self.subject}: {self.title}. {self.finding}"


def spread_positions(wanted: Sequence[float], gap: float, low: float, high: float) -> list[float]:
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


def plot_label(text: str) -> str:
    """A label beside a plot: cleaned and cut to what fits there."""
    return excerpt(text, LABEL_CHARACTERS)


def outside_window_shading(begin_s: float, end_s: float, run_end_s: float) -> list[Mark]:
    """What is before and after the measured window, up to the last second."""
    spans = [(0.0, begin_s), (end_s, run_end_s)]
    kept = [(max(a, 0.0), min(b, run_end_s)) for a, b in spans if min(b, run_end_s) - a > 1e-3]
    return [Boxes(token=RAISED, boxes=[(a, None, b, None) for a, b in kept])] if kept else []


def time_line(
    at_s: Sequence[float],
    values: Sequence[float | None],
    scale: Scale,
    line: Line,
) -> list[Mark]:
    """The line over time, in its look; nothing where nothing is known at all."""
    places = [
        (at, None if value is None else scale.scaled(value))
        for at, value in zip(at_s, values, strict=True)
    ]
    measured = sum(1 for _, value in places if value is not None)
    return [replace(line, places=places, has_dots=measured <= FEW)] if measured else []


def last_known_value(values: Sequence[float | None]) -> float | None:
    """The last value that is known."""
    return next((v for v in reversed(values) if v is not None), None)


def error_bar_notes(metrics: Iterable[Metric], intervals: str = OVER_RUNS) -> list[str]:
    """A sentence for intervals of chance, one for edges of bins, as far as any is drawn.

    And one where an interval would say nothing, and is not drawn.
    """
    every = list(metrics)
    drawn = [metric for metric in every if metric.interval_to_show is not None]
    return [
        *([intervals] if any(not metric.is_bin_bound for metric in drawn) else []),
        *([OF_BINS] if any(metric.is_bin_bound for metric in drawn) else []),
        *missing_interval_notes(every, "values"),
    ]


def missing_interval_notes(metrics: Sequence[Metric], noun: str) -> list[str]:
    """Of how many of what is drawn the interval would say nothing, and why."""
    lacking = Counter(
        missing_interval_reason(metric) for metric in metrics if metric.has_too_wide_interval
    )
    return [
        f"{why.capitalize()} for an interval of {number} of {len(metrics)} {noun}."
        for why, number in lacking.items()
    ]


class ChartGroup(Record):
    """Charts that belong together, as those of one workload, with their table and its note.

    `detail_tables` are tables, each with a note, and `appendix_figures` figures that go to the
    appendix.
    """

    title: str
    figures: tuple[Figure, ...]
    table: Table | None = None
    note: str = ""
    detail_tables: tuple[tuple[Table, str], ...] = ()
    appendix_figures: tuple[Figure, ...] = ()


class ReportSection(Record):
    """A part of the report under a heading of its own; `introduction` says what it is about.

    What only backs the answer stands in the appendix.
    """

    anchor: str
    title: str
    introduction: str
    groups: tuple[ChartGroup, ...]
    in_appendix: bool = True


class ConfigurationStyle(Record):
    """How a configuration is called and coloured on every chart.

    `short_name` stands on charts where a long title would be cut.
    """

    title: str
    token: Token
    short_name: str = ""

    @property
    def label(self) -> str:
        """What is written beside its lines and bars."""
        return self.short_name or self.title

    @property
    def legend_text(self) -> str:
        """Its title, with what charts call it where that is another name."""
        return self.title if self.label == self.title else f"{self.label}: {self.title}"


SeriesStyles = Mapping[str, ConfigurationStyle]
"""How each configuration is called and coloured."""


def series_styles(study: Study) -> SeriesStyles:
    """Each configuration's look, the colours in the study's order."""
    ids = _short_configuration_names([configuration.id for configuration in study.configurations])
    return {
        configuration.id: ConfigurationStyle(
            configuration.title,
            series_token(index),
            "" if len(configuration.title) <= LABEL_CHARACTERS else name,
        )
        for index, (configuration, name) in enumerate(zip(study.configurations, ids, strict=True))
    }


def _short_configuration_names(ids: Sequence[str]) -> list[str]:
    """Names that fit beside a plot: the ids, what tells them apart, or else their numbers."""
    if all(len(text) <= LABEL_CHARACTERS for text in ids):
        return list(ids)
    parts = [re.findall(r"[^-_.]+[-_.]*", text) or [text] for text in ids]
    alike = 0
    while len(ids) > 1 and all(len(part) > alike + 1 for part in parts):
        if len({part[alike] for part in parts}) > 1:
            break
        alike += 1
    names = ["".join(part[alike:]) for part in parts]
    if all(len(name) <= LABEL_CHARACTERS for name in names):
        return names
    return [f"No. {number}" for number in range(1, len(ids) + 1)]
