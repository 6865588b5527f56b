"""A chart as data: plots over each other, marks in values of their axes, and what marks stand for.

`svg` draws it, for a page, for paper and for files. A mark knows the configuration that it belongs
to and what a pointer is told of it, so that nothing is found out from a drawing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from enum import Enum, auto
from typing import Final

from msgspec.structs import replace

from iolab.core.metric import Metric, VerdictLevel
from iolab.core.study import Study
from iolab.record import Record
from iolab.report.charts.palette import RAISED, ColorToken, series_color_token
from iolab.report.charts.scale import LEFT, PLOT_WIDTH, WIDTH, ChartAxis, Scale
from iolab.report.numbers import REPEATS_TOO_FAR_APART, TOO_FEW_REPEATS, missing_interval_reason
from iolab.report.short_names import short_configuration_names, short_plot_label
from iolab.report.table import Table

HEAD: Final = 32
"""Room for the unit over a plot."""
BOTTOM: Final = 40
"""Room for the labels and the title under a plot."""
LINE_GAP: Final = 13.5
"""The least distance of two labels' middles: a line of type of 12 units."""
CHARACTER: Final = 6.6
"""The width of a character of 12 units, generously."""
LABEL_GAP: Final = 10.0
"""From a plot to the labels beside it: half a marker has room."""
LEAST_RIGHT: Final = 14.0
"""Beside a plot without labels: half of its last tick's name."""

COLUMN_WIDTHS: Final = {4: WIDTH, 6: 608, 12: 1240}
"""Units of a figure by its columns: a page is 12 columns of 81 units with 24 between them.

A drawing is never scaled there, so that all letters of a page have one size. A phone shows every
figure with the width of four columns, and paper two of these side by side.
"""

MIDDLE: Final = 4.0
BELOW: Final = 9.0
ABOVE: Final = -3.0
"""From a place down to the base line of a text that is to stand beside, below or above it."""

FEW_METRICS: Final = 3
"""Known values up to which a line has dots: a short phase has one, which is no line."""

NO_INTERVAL: Final = (TOO_FEW_REPEATS.capitalize(), REPEATS_TOO_FAR_APART.capitalize())
"""How a note begins on values without an interval."""

RUN_INTERVAL_NOTE: Final = "Whiskers: 95 % intervals over the runs."
BIN_EDGE_NOTE: Final = "Bars of percentiles: the engine’s own bin that holds it."


class MarkTooltip(Record):
    """What a pointer is told of a mark: the name of its series, and of each of its places more.

    `intervals` are 95 % intervals in the plot's unit, `verdicts` words (of markers those of their
    levels), `texts` what places are called.
    """

    name: str = ""
    intervals: Sequence[tuple[float, float] | None] = ()
    verdicts: Sequence[str] = ()
    texts: Sequence[str] = ()


BAR_GAP: Final = 0.24
"""The part of the room of an x that its bars leave free."""
BAR_WIDTH_MAX: Final = 48.0


class Mark(Record, kw_only=True):
    """What all marks have: a colour, whose they are (by default their colour's), what is told.

    `slot` is which of how many series that stand side by side at each stop of the axis it is of.
    """

    color: ColorToken
    slot: tuple[int, int] = (0, 1)
    opacity: float = 1.0
    series: ColorToken | None = None
    tip: MarkTooltip | None = None


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


class Markers(Mark, kw_only=True):
    """Markers, by the verdicts of their places in shape and filling, or all by `marker_style`.

    Those that have no interval are open with a broken rim: a bare dot would look the most exact.
    `size` is an area in square units, of those without a verdict; `is_small` makes any smaller.
    """

    places: Sequence[tuple[float, float]]
    verdict_levels: Sequence[VerdictLevel] = ()
    have_intervals: Sequence[bool] = ()
    marker_style: MarkerStyle = MarkerStyle.SOLID
    size: float = 34
    is_small: bool = False


class LineSegments(Mark, kw_only=True):
    """Straight pieces (x, y, x2, y2), each end at the plot's own where it is None."""

    segments: Sequence[tuple[float | None, float | None, float | None, float | None]]
    width: float = 1.4
    dash: Sequence[float] = ()


class Rectangles(Mark, kw_only=True):
    """Rectangles (x, y, x2, y2), likewise; `has_rim` parts adjacent ones by a rim of paper."""

    boxes: Sequence[tuple[float | None, float | None, float | None, float | None]]
    has_rim: bool = False


class Bars(Mark, kw_only=True):
    """Bars from zero up to each place, side by side with those of other series.

    Indicative ones are hatched by strokes of paper, unless `has_hatching` is False, since no bar
    of the page is valid; invalid ones are pale and crossed out. A tip's intervals are lines
    through their ends.
    """

    places: Sequence[tuple[float, float]]
    verdict_levels: Sequence[VerdictLevel | None] = ()
    has_hatching: bool = True


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
    color: ColorToken


class Plot(Record):
    """Marks on two axes; without an axis their places are units from the upper left corner.

    `title` is what it shows, where that is not the chart's own title; `top` its place in the chart.
    `right` is what it leaves free beside it, by default what its labels take.
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
    right: float | None = None

    def x_in_plot(self, value: float | None, offset_if_none: float = 0.0) -> float:
        """Units from the left to a value of x."""
        if value is None:
            return offset_if_none
        return self.x.offset_at(value) if self.x else value

    def y_in_plot(self, value: float | None, offset_if_none: float = 0.0) -> float:
        """Units from the top to a value of y."""
        if value is None:
            return offset_if_none
        return self.height * (1 - self.y.fraction(value)) if self.y else value

    def series_slot_width(self, slot: tuple[int, int]) -> float:
        """Units that each of several series has at a stop of the axis."""
        room = self.x.stop_width if self.x else self.width
        return min(room * (1 - BAR_GAP) / slot[1], BAR_WIDTH_MAX)

    def series_slot_offset(self, slot: tuple[int, int]) -> float:
        """Units from a stop of the axis to the middle of a series' place beside the others."""
        index, count = slot
        return (index - (count - 1) / 2) * self.series_slot_width(slot) if count > 1 else 0.0

    def resized(self, width: float) -> Plot:
        """The plot that wide; without an axis of x it stays as it is."""
        if self.x is None:
            return self
        end = self.x.end_offset + width - self.width
        return replace(self, width=width, x=replace(self.x, end_offset=end))


class Chart(Record):
    """A chart with its words and its numbers.

    `table` has every number, `points_table` those of points alone, without intervals, if it is one
    over a load.
    `subject` is what it is a chart of, `finding` what it shows, `note` how to read it. With
    `has_configuration_colors` its colours tell configurations apart. It is as wide as so many
    `page_columns` of the 12 that a page has, or has a `fixed_width` in units.
    """

    subject: str
    title: str
    finding: str
    note: str
    plots: tuple[Plot, ...]
    table: Table
    points_table: Table | None = None
    has_configuration_colors: bool = False
    page_columns: int = 4
    fixed_width: int = 0

    @property
    def width(self) -> int:
        """How many units wide it is drawn."""
        return self.fixed_width or COLUMN_WIDTHS[self.page_columns]

    @property
    def height(self) -> int:
        """Down to the lowest plot's end, with what stands under it where it has an axis."""
        ends = (
            plot.top + plot.height + (BOTTOM if plot.x and plot.x.has_labels else 0)
            for plot in self.plots
        )
        return round(max(ends))

    @property
    def narrowed(self) -> Chart:
        """The same as phones and paper show it: four columns wide."""
        return replace(self, page_columns=4)

    @property
    def fitted_plots(self) -> tuple[Plot, ...]:
        """Its plots as wide as the figure and the labels beside them allow."""
        labels = [short_plot_label(end.text) for plot in self.plots for end in plot.end_labels]
        longest = max(map(len, labels), default=0)
        right = LABEL_GAP + CHARACTER * (longest + 1) if labels else LEAST_RIGHT
        right = max((plot.right for plot in self.plots if plot.right is not None), default=right)
        return tuple(plot.resized(self.width - plot.left - right) for plot in self.plots)

    @property
    def alt_text(self) -> str:
        """The alternative text: subject, title and finding."""
        return f"{self.heading}. {self.finding}"

    @property
    def heading(self) -> str:
        """Subject and title, once where they are the same."""
        return self.title if self.title == self.subject else f"{self.subject}: {self.title}"


def charts_filling_page_width(charts: Sequence[Chart]) -> tuple[Chart, ...]:
    """The figures so wide that rows of three, of two at the end, leave nothing of a page free."""
    pairs = {0: 0, 1: 4, 2: 2}[len(charts) % 3]  # of four figures two rows, not three and one
    thirds = max(len(charts) - pairs, 0)
    columns = [4] * thirds + [6] * (len(charts) - thirds) if len(charts) > 1 else [12]
    return tuple(
        replace(chart, page_columns=wide) for chart, wide in zip(charts, columns, strict=False)
    )


def non_overlapping_positions(
    wanted_positions: Sequence[float], gap: float, low: float, high: float
) -> list[float]:
    """Positions as near as possible to `wanted_positions`, in the same order, at least `gap` apart.

    All within [low, high] where they fit; the classic one pass down, one pass up.
    """
    order = sorted(range(len(wanted_positions)), key=lambda i: wanted_positions[i])
    placed = [0.0] * len(wanted_positions)
    edge = low - gap
    for i in order:
        placed[i] = max(wanted_positions[i], edge + gap)
        edge = placed[i]
    edge = high + gap
    for i in reversed(order):
        placed[i] = min(placed[i], edge - gap)
        edge = placed[i]
    return placed


def outside_window_shading(
    window_begin_s: float, window_end_s: float, run_end_s: float
) -> list[Mark]:
    """What is before and after the measured window, up to the last second."""
    spans = [(0.0, window_begin_s), (window_end_s, run_end_s)]
    kept = [(max(a, 0.0), min(b, run_end_s)) for a, b in spans if min(b, run_end_s) - a > 1e-3]
    return [Rectangles(color=RAISED, boxes=[(a, None, b, None) for a, b in kept])] if kept else []


def timeline_marks(
    at_s: Sequence[float],
    values: Sequence[float | None],
    scale: Scale,
    line_style: Line,
) -> list[Mark]:
    """The line over time, in its look; nothing where nothing is known at all."""
    places = [
        (at, None if value is None else scale.to_scale_unit(value))
        for at, value in zip(at_s, values, strict=True)
    ]
    measured = sum(1 for _, value in places if value is not None)
    return (
        [replace(line_style, places=places, has_dots=measured <= FEW_METRICS)] if measured else []
    )


def last_known_value(values: Sequence[float | None]) -> float | None:
    """The last value that is known."""
    return next((v for v in reversed(values) if v is not None), None)


def notes_on_error_bars(
    metrics: Iterable[Metric], interval_note: str = RUN_INTERVAL_NOTE
) -> list[str]:
    """A sentence for intervals of chance, one for edges of bins, as far as any is drawn.

    And one where an interval would say nothing, and is not drawn.
    """
    every = list(metrics)
    drawn = [metric for metric in every if metric.displayable_interval is not None]
    return [
        *([interval_note] if any(not metric.has_bin_edge_interval for metric in drawn) else []),
        *([BIN_EDGE_NOTE] if any(metric.has_bin_edge_interval for metric in drawn) else []),
        *notes_on_uninformative_intervals(every, "values"),
    ]


HATCHED_NOTE: Final = "Hatched or hollow: indicative, shows the direction only."
HOLLOW_NOTE: Final = "Hollow: indicative, shows the direction only."
"""What indicative marks say, with bars and without."""

ALL_INDICATIVE_NOTE: Final = "All points are indicative: they show the direction only."
NONE_VALID_NOTE: Final = (
    "No point is valid: those that are not crossed are indicative and show the direction only."
)
"""The same where no point of a page is valid, and indicative marks need not be told apart."""


def chart_without_hatching(chart: Chart, note: str) -> Chart:
    """The figure of a page without valid points: bars are whole, and `note` says what they are."""
    sentences = (HATCHED_NOTE, HOLLOW_NOTE)
    found = next((sentence for sentence in sentences if sentence in chart.note), None)
    return replace(
        chart,
        note=chart.note if found is None else chart.note.replace(found, note),
        plots=tuple(
            replace(
                plot,
                marks=[
                    replace(mark, has_hatching=False) if isinstance(mark, Bars) else mark
                    for mark in plot.marks
                ],
            )
            for plot in chart.plots
        ),
    )


def notes_on_marks_of_not_valid_points(
    verdict_levels: Iterable[VerdictLevel], *, has_bars: bool = False
) -> list[str]:
    """What marks of points that are not valid say, as far as there are any."""
    found = set(verdict_levels)
    hollow = HATCHED_NOTE if has_bars else HOLLOW_NOTE
    crossed = "Pale or crossed" if has_bars else "Crossed"
    return [
        *([hollow] * (VerdictLevel.INDICATIVE in found)),
        *([f"{crossed}: invalid, not what was asked."] * (VerdictLevel.INVALID in found)),
    ]


def notes_on_points_without_interval(metrics: Iterable[Metric]) -> list[str]:
    """What a broken rim says, where any marker has one."""
    is_any_bare = any(metric.displayable_interval is None for metric in metrics)
    return ["Broken outline: no interval known."][:is_any_bare]


def notes_on_uninformative_intervals(metrics: Sequence[Metric], noun: str) -> list[str]:
    """Of how many of what is drawn the interval would say nothing, and why."""
    lacking = Counter(
        missing_interval_reason(metric) for metric in metrics if metric.has_uninformative_interval
    )
    return [
        f"{why.capitalize()} for an interval of {number} of {len(metrics)} {noun}."
        for why, number in lacking.items()
    ]


class ChartGroup(Record):
    """Charts that belong together, as those of one workload, with their table and its note.

    `tables_below_with_notes` stand below that table, `detail_tables_with_notes` are folded, and
    `appendix_charts` go to the appendix.
    """

    title: str
    charts: tuple[Chart, ...]
    table: Table | None = None
    note: str = ""
    detail_tables_with_notes: tuple[tuple[Table, str], ...] = ()
    appendix_charts: tuple[Chart, ...] = ()
    tables_below_with_notes: tuple[tuple[Table, str], ...] = ()


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
    color: ColorToken
    short_name: str = ""

    @property
    def label(self) -> str:
        """What is written beside its lines and bars."""
        return self.short_name or self.title

    @property
    def legend_text(self) -> str:
        """Its title, with what charts call it where that is another name."""
        is_told = self.title.startswith(self.label)
        return self.title if is_told else f"{self.label}: {self.title}"


SeriesStyles = Mapping[str, ConfigurationStyle]
"""How each configuration is called and coloured."""


def series_styles(study: Study) -> SeriesStyles:
    """Each configuration's look, the colours in the study's order."""
    names = short_configuration_names(study.configurations)
    return {
        configuration.id: ConfigurationStyle(
            configuration.title,
            series_color_token(index),
            "" if name == configuration.title else name,
        )
        for index, (configuration, name) in enumerate(zip(study.configurations, names, strict=True))
    }
