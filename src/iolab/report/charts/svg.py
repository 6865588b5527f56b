"""A chart as SVG: for a page, whose style has the colours, or as a document with those of paper.

Each mark is one group. On a page it says what a pointer may ask of it (`data-m`, an index into the
JSON beside the drawing; empty where it only moves with the axis) and whose it is (`data-c`); plots
and their axes are `data-plot` and `data-x`.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import singledispatchmethod
from html import escape
from typing import Any, Final

from iolab.core.metric import VerdictLevel
from iolab.record import Record
from iolab.report.charts.chart import (
    ABOVE,
    CHARACTER,
    LABEL_GAP,
    LINE_GAP,
    MIDDLE,
    Band,
    Bars,
    Chart,
    Line,
    LineSegments,
    Mark,
    Markers,
    MarkerStyle,
    Plot,
    Rectangles,
    TextMark,
    non_overlapping_positions,
)
from iolab.report.charts.palette import FAINT, INK, MUTED, PAPER, RULE, SERIES, ColorToken
from iolab.report.charts.scale import LOG_SCALE, axis_number_text
from iolab.report.numbers import round_floats
from iolab.report.short_names import short_plot_label
from iolab.text import escape_invisible

FONT: Final = 12
HATCH_GAP: Final = 6.0
"""Units from stroke to stroke, along an edge: two or three cross the narrowest bar."""

_LABEL_LEFT: Final = -6.0
_LABEL_DOWN: Final = 15.0
_TITLE_DOWN: Final = 30.0
_TICK: Final = 4.0
_TICK_GAP: Final = 9.0
"""The least room between two names of ticks."""
_BARE_DASH: Final = (2.2, 1.8)
"""The rim of a marker without an interval."""

_PALE: Final = 0.18
"""The opacity of bars that are invalid."""
_SMALL_MARKER: Final = 0.5
"""The area of small markers, as a share of others'."""

Paint = Callable[[ColorToken], str]


class SvgDrawing(Record):
    """A chart as an SVG element, and as JSON what its marks stand for (empty for nothing)."""

    svg: str
    marks_json: str


def draw_inline_svg(chart: Chart) -> SvgDrawing:
    """The figure for an HTML page, in the page's own colours and type.

    The JSON holds no `<`, so that it can stand in a page as a block of data.
    """
    views = [(chart, "")]
    if chart.page_columns > chart.narrowed.page_columns:
        views = [(chart, " wide"), (chart.narrowed, " narrow")]
    toggled = _colors_of_hideable_configurations(chart)
    alt = escape(escape_invisible(chart.alt_text))
    drawings = [
        _svg_element(
            view,
            f'class="chart{name}" role="img" aria-label="{alt}"',
            _SvgWriter(lambda color: color.css, toggled).chart_body(view),
        )
        for view, name in views
    ]
    return SvgDrawing("".join(drawings), _marks_json(chart))


def svg_document(chart: Chart, *, font: str = "sans-serif") -> str:
    """The figure as an SVG document of its own, in the colours of light paper."""
    body = _SvgWriter(lambda color: color.light, frozenset()).chart_body(chart)
    head = f'xmlns="http://www.w3.org/2000/svg" font-family="{font}"'
    return _svg_element(chart, head, body)


def _svg_element(chart: Chart, attributes: str, body: str) -> str:
    size = f'width="{chart.width}" height="{chart.height}"'
    box = f'viewBox="0 0 {chart.width} {chart.height}" font-size="{FONT}"'
    return f'<svg {attributes} {size} {box} fill="none">{body}</svg>'


def _series_color_of_mark(mark: Mark) -> ColorToken | None:
    """The series that a mark is of."""
    return mark.series or (mark.color if mark.color in SERIES else None)


def _colors_of_hideable_configurations(chart: Chart) -> frozenset[ColorToken]:
    """The configurations that can be hidden: where there are several of them."""
    if not chart.has_configuration_colors:
        return frozenset()
    owners = {_series_color_of_mark(mark) for plot in chart.plots for mark in plot.marks} - {None}
    return frozenset(owner for owner in owners if owner and len(owners) > 1)


class _SvgWriter:
    """Writes a chart's elements: `paint` names colours, `toggled` are marked as configurations."""

    def __init__(self, paint: Paint, toggled: frozenset[ColorToken]) -> None:
        self.paint = paint
        self.hideable_series = toggled
        self.tips = 0

    def chart_body(self, chart: Chart) -> str:
        plots = enumerate(chart.fitted_plots)
        return "".join(self._plot_group(plot, index) for index, plot in plots)

    def _plot_group(self, plot: Plot, index: int) -> str:
        inside = [
            self._grid_lines(plot),
            *(self._number_and_render_mark_group(mark, plot) for mark in plot.marks),
            *self._x_axis_elements(plot),
            *self._y_axis_and_end_labels(plot),
        ]
        place = f"translate({_coord_text(plot.left)},{_coord_text(plot.top)})"
        return _svg_markup(
            "g", "".join(inside), data_plot=index, data_w=_coord_text(plot.width), transform=place
        )

    def _grid_lines(self, plot: Plot) -> str:
        """Lines at the ticks, behind everything."""
        drawn = ""
        if plot.y:
            path = "".join(
                f"M0,{_coord_text(plot.y_in_plot(tick))}h{_coord_text(plot.width)}"
                for tick in plot.y.ticks
            )
            drawn += _svg_markup("path", d=path, stroke=self.paint(FAINT))
        if plot.x and plot.x.has_grid:
            drawn += self._tick_lines(plot, "grid", 0, plot.height, FAINT)
        return drawn

    def _tick_lines(
        self, plot: Plot, group_name: str, y: float, length: float, color: ColorToken
    ) -> str:
        """A line for each tick of the axis, each with a place of its own, since they move."""
        lines = [
            _svg_markup(
                "line",
                transform=f"translate({_coord_text(x)},{_coord_text(y)})",
                y2=_coord_text(length),
            )
            for x, _ in _visible_x_ticks(plot)
        ]
        return _svg_markup("g", "".join(lines), data_x=group_name, stroke=self.paint(color))

    def _x_axis_elements(self, plot: Plot) -> Iterator[str]:
        """The axis of x: its line with ticks, its labels and its title."""
        axis, muted = plot.x, self.paint(MUTED)
        if axis is None:
            return
        if axis.has_line:
            yield _svg_markup(
                "path",
                d=f"M0,{_coord_text(plot.height)}h{_coord_text(plot.width)}",
                stroke=self.paint(RULE),
            )
            yield self._tick_lines(plot, "tick", plot.height, _TICK, RULE)
        if not axis.has_labels:
            return
        down = _coord_text(plot.height + _LABEL_DOWN)
        labels = [
            _svg_markup("text", _escape_xml(text), transform=f"translate({_coord_text(x)},{down})")
            for x, text in ticks_that_fit(_visible_x_ticks(plot))
        ]
        yield _svg_markup("g", "".join(labels), data_x="label", fill=muted, text_anchor="middle")
        x, anchor = ((axis.start_offset + axis.end_offset) / 2, "middle")
        if axis.is_title_left:
            x, anchor = axis.start_offset, "start"
        yield self._text_element(axis.title, x, plot.height + _TITLE_DOWN, MUTED, anchor)

    def _y_axis_and_end_labels(self, plot: Plot) -> Iterator[str]:
        """The scale of y with its unit, the heading, and the labels at the ends of lines."""
        if plot.y:
            labels = [
                _svg_markup(
                    "text",
                    axis_number_text(tick),
                    x=_coord_text(_LABEL_LEFT),
                    y=_coord_text(plot.y_in_plot(tick) + MIDDLE),
                )
                for tick in plot.y.ticks
            ]
            yield _svg_markup("g", "".join(labels), fill=self.paint(MUTED), text_anchor="end")
        unit = plot_y_unit_text(plot)
        if plot.title:
            yield self._text_element(f"{plot.title}, {unit}", 0, ABOVE - 7, INK)
        elif unit:
            yield self._text_element(unit, 4 - plot.left, ABOVE - 10, MUTED)
        wanted = [plot.y_in_plot(end.value) for end in plot.end_labels]
        for end, y in zip(
            plot.end_labels,
            non_overlapping_positions(wanted, LINE_GAP, 0, plot.height),
            strict=True,
        ):
            whose = self._color_name_if_hideable(end.color)
            name = short_plot_label(end.text)
            text = self._text_element(name, plot.width + LABEL_GAP, y + MIDDLE, end.color)
            yield f"<g{_attributes_text(data_c=whose)}>{text}</g>" if whose else text

    def _text_element(
        self, text: str, x: float, y: float, color: ColorToken, anchor: str = "start"
    ) -> str:
        if not text:
            return ""
        place = {
            "x": _coord_text(x),
            "y": _coord_text(y),
            "text_anchor": None if anchor == "start" else anchor,
        }
        return _svg_markup("text", _escape_xml(text), **place, fill=self.paint(color))

    def _color_name_if_hideable(self, color: ColorToken | None) -> str | None:
        return color.name if color in self.hideable_series and color else None

    def _number_and_render_mark_group(self, mark: Mark, plot: Plot) -> str:
        """The mark's group."""
        index: int | str | None = None if isinstance(mark, TextMark) and mark.is_fixed else ""
        if mark.tip is not None:
            index, self.tips = self.tips, self.tips + 1
        if plot.x is None and mark.tip is None:
            index = None
        opacity = mark.opacity
        group: dict[str, object] = {
            "data_m": index,
            "data_c": self._color_name_if_hideable(_series_color_of_mark(mark)),
        }
        if opacity != 1:  # of pieces that are parted by a rim not of that
            faint = "fill_opacity" if isinstance(mark, Rectangles) and mark.has_rim else "opacity"
            group[faint] = f"{opacity:g}"
        more = self._overlay_elements(mark, plot)
        if more:  # in a group of its own, so that a pointer finds the mark's places alone
            more = _svg_markup("g", more, **{**group, "data_m": None if index is None else ""})
        return _svg_markup("g", self._elements_of_mark(mark, plot), **group) + more

    def _overlay_elements(self, mark: Mark, plot: Plot) -> str:
        """What lies upon a mark: dots on a short line, hatching of bars that are indicative."""
        match mark:
            case Line(has_dots=True):
                return self._elements_of_mark(
                    Markers(
                        color=mark.color,
                        places=_places_with_value(mark),
                        marker_style=MarkerStyle.PLAIN,
                        size=14,
                    ),
                    plot,
                )
            case Bars():
                corners = list(_bar_corners(mark, plot))
                indicative = [
                    box
                    for box, level in zip(corners, mark.verdict_levels, strict=False)
                    if level is VerdictLevel.INDICATIVE
                ]
                return (
                    (self._hatching_element(indicative) if mark.has_hatching else "")
                    + self._invalid_bar_cross_element(mark, corners)
                    + self._bar_interval_elements(mark, corners, plot)
                )
        return ""

    def _hatching_element(self, corners: Iterable[tuple[float, float, float, float]]) -> str:
        """Strokes of paper over boxes."""
        lines = [piece for box in corners for piece in hatching_line_ends(*box)]
        path = "".join(
            f"M{_coord_text(x)},{_coord_text(y)}L{_coord_text(x2)},{_coord_text(y2)}"
            for x, y, x2, y2 in lines
        )
        look = {"stroke": self.paint(PAPER), "stroke_width": _stroke_width_text(1.6)}
        return _svg_markup("path", d=path, **look) if path else ""

    def _invalid_bar_cross_element(
        self, mark: Bars, corners: Sequence[tuple[float, float, float, float]]
    ) -> str:
        """The frames of invalid bars, each crossed out."""
        path = "".join(
            f"M{_coord_text(x)},{_coord_text(y2)}V{_coord_text(y)}H{_coord_text(x2)}"
            f"V{_coord_text(y2)}L{_coord_text(x)},{_coord_text(y)}"
            f"M{_coord_text(x2)},{_coord_text(y)}L{_coord_text(x)},{_coord_text(y2)}"
            for (x, y, x2, y2), level in zip(corners, mark.verdict_levels, strict=False)
            if level is VerdictLevel.INVALID
        )
        return _svg_markup("path", d=path, stroke=self.paint(mark.color)) if path else ""

    def _bar_interval_elements(
        self, mark: Bars, corners: Sequence[tuple[float, float, float, float]], plot: Plot
    ) -> str:
        intervals = mark.tip.intervals if mark.tip else ()
        path = "".join(
            f"M{_coord_text((x + x2) / 2)},{_coord_text(plot.y_in_plot(ends[1]))}"
            f"V{_coord_text(plot.y_in_plot(ends[0]))}"
            for (x, _, x2, _), ends in zip(corners, intervals, strict=False)
            if ends
        )
        return _svg_markup("path", d=path, stroke=self.paint(INK)) if path else ""

    @singledispatchmethod
    def _elements_of_mark(self, mark: Mark, plot: Plot) -> str:
        """What is in the mark's group."""
        raise NotImplementedError

    @_elements_of_mark.register
    def _line_mark_elements(self, mark: Line, plot: Plot) -> str:
        return _svg_markup(
            "path",
            d=_path_data(
                (
                    plot.x_in_plot(x) + plot.series_slot_offset(mark.slot),
                    None if y is None else plot.y_in_plot(y),
                )
                for x, y in mark.places
            ),
            stroke=self.paint(mark.color),
            stroke_width=_stroke_width_text(mark.width),
            stroke_linecap="round",
            stroke_linejoin="round",
            stroke_dasharray=_dash_array_text(mark.dash),
        )

    @_elements_of_mark.register
    def _marker_elements(self, mark: Markers, plot: Plot) -> str:
        stroke: ColorToken | None = mark.color
        width = 1.6
        fill: str | None = self.paint(mark.color)
        if mark.marker_style is MarkerStyle.OPEN:
            fill, width = self.paint(PAPER), 1.2
        elif mark.marker_style is MarkerStyle.RING:
            fill, width = None, 1.0
        elif not mark.verdict_levels:
            stroke, width = (PAPER, 0.9) if mark.marker_style is MarkerStyle.SOLID else (None, 1.0)
        dots = []
        for place, (x, y) in enumerate(mark.places):
            level, size, own = VerdictLevel.VALID, mark.size, fill
            is_bare = bool(mark.have_intervals) and not mark.have_intervals[place]
            if mark.verdict_levels:
                level = mark.verdict_levels[place]
                is_open = is_bare or level is not VerdictLevel.VALID
                size = 70 if is_open else 42
                size *= _SMALL_MARKER if mark.is_small else 1.0
                own = self.paint(PAPER) if is_open else fill
            is_broken = is_bare and level is not VerdictLevel.INVALID
            move = (
                f"translate({_coord_text(plot.x_in_plot(x) + plot.series_slot_offset(mark.slot))}"
                ","
                f"{_coord_text(plot.y_in_plot(y))})"
            )
            dots.append(
                _svg_markup(
                    "path",
                    transform=move,
                    d=_verdict_marker_svg_path(level, size),
                    fill=own,
                    stroke_dasharray=_dash_array_text(_BARE_DASH) if is_broken else None,
                )
            )
        return _svg_markup(
            "g",
            "".join(dots),
            stroke=stroke and self.paint(stroke),
            stroke_width=_stroke_width_text(width),
        )

    @_elements_of_mark.register
    def _line_segment_elements(self, mark: LineSegments, plot: Plot) -> str:
        path = []
        for x, y, x2, y2 in mark.segments:
            aside = plot.series_slot_offset(mark.slot)
            left, right = plot.x_in_plot(x) + aside, plot.x_in_plot(x2, plot.width) + aside
            top, bottom = plot.y_in_plot(y), plot.y_in_plot(y2, plot.height)
            end = (
                f"V{_coord_text(bottom)}"
                if _coord_text(left) == _coord_text(right)
                else f"H{_coord_text(right)}"
            )
            path.append(f"M{_coord_text(left)},{_coord_text(top)}{end}")
        return _svg_markup(
            "path",
            d="".join(path),
            stroke=self.paint(mark.color),
            stroke_width=_stroke_width_text(mark.width),
            stroke_dasharray=_dash_array_text(mark.dash),
        )

    @_elements_of_mark.register
    def _bar_elements(self, mark: Bars, plot: Plot) -> str:
        corners = list(_bar_corners(mark, plot))
        levels = mark.verdict_levels or [None] * len(corners)
        fill = self.paint(mark.color)
        return "".join(
            self._rectangle_elements(
                [box],
                {
                    "fill": fill,
                    "fill_opacity": f"{_PALE:g}" if level is VerdictLevel.INVALID else None,
                },
            )
            for box, level in zip(corners, levels, strict=True)
        )

    @_elements_of_mark.register
    def _rectangle_mark_elements(self, mark: Rectangles, plot: Plot) -> str:
        look = {
            "fill": self.paint(mark.color),
            "stroke": self.paint(PAPER) if mark.has_rim else None,
        }
        return self._rectangle_elements(_box_corners(mark, plot), look)

    def _rectangle_elements(
        self,
        corners: Iterable[tuple[float, float, float, float]],
        attributes: Mapping[str, str | None],
    ) -> str:
        drawn = (
            _svg_markup(
                "path",
                d=f"M{_coord_text(x)},{_coord_text(y)}h{_coord_text(x2 - x)}"
                f"v{_coord_text(y2 - y)}h{_coord_text(x - x2)}Z",
                **attributes,
            )
            for x, y, x2, y2 in corners
        )
        return "".join(drawn)

    @_elements_of_mark.register
    def _band_elements(self, mark: Band, plot: Plot) -> str:
        lower = [(plot.x_in_plot(x), plot.y_in_plot(low)) for x, low, _ in mark.places]
        upper = [(plot.x_in_plot(x), plot.y_in_plot(high)) for x, _, high in reversed(mark.places)]
        return _svg_markup(
            "path", d=f"{_path_data([*lower, *upper])}Z", fill=self.paint(mark.color)
        )

    @_elements_of_mark.register
    def _text_mark_elements(self, mark: TextMark, plot: Plot) -> str:
        texts = [
            _svg_markup(
                "text",
                _escape_xml(text),
                transform="translate("
                f"{_coord_text((x if mark.is_fixed else plot.x_in_plot(x)) + mark.dx)},"
                f"{_coord_text(plot.y_in_plot(y) + mark.dy)})",
            )
            for x, y, text in mark.places
        ]
        anchor = None if mark.align == "start" else mark.align
        inside, paper = "".join(texts), self.paint(PAPER)
        rim = (
            _svg_markup("g", inside, fill=paper, stroke=paper, stroke_width=3)
            if mark.has_rim
            else ""
        )
        return _svg_markup("g", f"{rim}{inside}", fill=self.paint(mark.color), text_anchor=anchor)


def _visible_x_ticks(plot: Plot) -> list[tuple[float, str]]:
    """The places and names of the ticks of x that are within it."""
    axis = plot.x
    if axis is None:
        return []
    low, high = axis.scale.low, axis.scale.high
    return [(axis.offset_at(at), text) for at, text in axis.ticks if low <= at <= high * (1 + 1e-9)]


def ticks_that_fit(ticks: Sequence[tuple[float, str]]) -> list[tuple[float, str]]:
    """The first name, the last one, and as many between them as have room."""
    if not ticks:
        return []
    last = ticks[-1]
    kept = [ticks[0]] if len(ticks) > 1 else []
    for tick in ticks[1:-1]:
        if _do_tick_labels_fit(kept[-1], tick) and _do_tick_labels_fit(tick, last):
            kept.append(tick)
    return [*kept, last]


def _do_tick_labels_fit(left: tuple[float, str], right: tuple[float, str]) -> bool:
    """Whether both names have room beside each other."""
    width = CHARACTER * (len(left[1]) + len(right[1])) / 2
    return right[0] - left[0] - width >= _TICK_GAP


def plot_y_unit_text(plot: Plot) -> str:
    """The unit of its values, and whether their scale is logarithmic."""
    unit = plot.unit or (plot.y.unit if plot.y else "")
    return f"{unit}{LOG_SCALE}" if unit and plot.y and plot.y.is_logarithmic else unit


def _box_corners(boxes: Rectangles, plot: Plot) -> Iterator[tuple[float, float, float, float]]:
    """Left, top, right and bottom of each box, in units of the plot."""
    for x, y, x2, y2 in boxes.boxes:
        top, bottom = sorted((plot.y_in_plot(y), plot.y_in_plot(y2, plot.height)))
        yield plot.x_in_plot(x), top, plot.x_in_plot(x2, plot.width), bottom


def _bar_corners(bars: Bars, plot: Plot) -> Iterator[tuple[float, float, float, float]]:
    """Likewise of each bar: those of one x stand side by side about its middle."""
    width = plot.series_slot_width(bars.slot)
    for x, value in bars.places:
        left = plot.x_in_plot(x) + plot.series_slot_offset(bars.slot) - width / 2
        yield left + 0.5, plot.y_in_plot(value), left + width - 0.5, plot.height


def _places_with_value(line: Line) -> list[tuple[float, float]]:
    return [(x, y) for x, y in line.places if y is not None]


def _verdict_marker_svg_path(verdict_level: VerdictLevel, size: float) -> str:
    """The marker of a verdict: a circle is valid, a diamond indicative, a cross invalid."""
    r = _coord_text(math.sqrt(size) / 2)
    if verdict_level is VerdictLevel.VALID:
        return f"M{r},0A{r},{r},0,1,1,-{r},0A{r},{r},0,1,1,{r},0Z"
    if verdict_level is VerdictLevel.INDICATIVE:
        return f"M0,-{r}L{r},0L0,{r}L-{r},0Z"
    r = _coord_text(0.35 * math.sqrt(size))
    return f"M-{r},-{r}L{r},{r}M{r},-{r}L-{r},{r}"


def hatching_line_ends(
    left: float, top: float, right: float, bottom: float
) -> Iterator[tuple[float, float, float, float]]:
    """Hatching: parallel lines from lower left to upper right (x, y, x2, y2), up to the edges."""
    width, height = right - left, bottom - top
    for index in range(int((width + height) / HATCH_GAP)):
        # Lines on which (height over the bottom) - (distance from the left) is the same.
        level = HATCH_GAP * (index + 0.5) - width
        first, last = max(0.0, -level), min(width, height - level)
        if last > first:
            yield left + first, bottom - first - level, left + last, bottom - last - level


def _path_data(places: Iterator[tuple[float, float | None]] | Sequence[tuple[float, float]]) -> str:
    """Lines from place to place, broken where there is none; a lone place is a dot."""
    path: list[str] = []
    pen = "M"
    for x, y in places:
        if y is None:
            pen = "M"
            continue
        if pen == "M" and path and path[-1][0] == "M":
            path.append("Z")
        path.append(f"{pen}{_coord_text(x)},{_coord_text(y)}")
        pen = "L"
    if path and path[-1][0] == "M":
        path.append("Z")
    return "".join(path)


def _coord_text(value: float) -> str:
    """A length to a tenth of a unit, which is less than a pixel."""
    text = f"{value:.1f}"
    return text[:-2] if text.endswith(".0") else text


def _stroke_width_text(value: float) -> str | None:
    return None if value == 1 else f"{value:g}"


def _dash_array_text(dash: Sequence[float]) -> str | None:
    return ",".join(f"{length:g}" for length in dash) or None


def _escape_xml(text: str) -> str:
    return escape(escape_invisible(text), quote=False)


def _attributes_text(**items: object) -> str:
    """Those that have a value; `_` in a name is a hyphen."""
    return "".join(
        f' {name.replace("_", "-")}="{value}"' for name, value in items.items() if value is not None
    )


def _svg_markup(name: str, inside: str = "", /, **items: object) -> str:
    body = f">{inside}</{name}>" if inside else "/>"
    return f"<{name}{_attributes_text(**items)}{body}"


def _marks_json(chart: Chart) -> str:
    """The JSON: plots with their axes, and the points of each series."""
    axes: list[list[float]] = []
    marks: list[dict[str, Any]] = []
    for index, plot in enumerate(chart.plots):
        asked = (mark for mark in plot.marks if mark.tip is not None)
        marks += [_mark_points_document(mark, plot, index, axes) for mark in asked]
    if not marks:
        return ""
    document = {
        "title": escape_invisible(chart.title),
        "x": next((escape_invisible(plot.x.title) for plot in reversed(chart.plots) if plot.x), ""),
        "plots": [_plot_document(plot) for plot in chart.plots],
        "axes": axes,
        "marks": marks,
    }
    text = json.dumps(
        round_floats(document), separators=(",", ":"), allow_nan=False, ensure_ascii=False
    )
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _plot_document(plot: Plot) -> dict[str, Any]:
    """A plot's size, what it shows, and what its axis is."""
    document: dict[str, Any] = {
        "h": plot.height,
        "t": escape_invisible(plot.title),
        "u": escape_invisible(plot.y.unit if plot.y else plot_y_unit_text(plot)),
        "k": plot.x.tip_kind if plot.x else "",
    }
    if plot.x and plot.x.tip_kind == "time":
        document["d"] = [plot.x.scale.low, plot.x.scale.high]
    return document


def _mark_points_document(
    mark: Mark, plot: Plot, index: int, shared_x_values_to_extend: list[list[float]]
) -> dict[str, Any]:
    """A mark's places in values, without what says nothing; marks at the same places share them."""
    tip = mark.tip
    assert tip is not None  # noqa: S101 - the caller knows
    x, y = _mark_coordinates(mark)
    if x not in shared_x_values_to_extend:
        shared_x_values_to_extend.append(x)
    points: dict[str, Any] = {"p": index, "x": shared_x_values_to_extend.index(x)}
    levels = getattr(mark, "verdict_levels", ())
    verdicts = tip.verdicts or [level.value if level else "" for level in levels]
    if tip.name:
        points["n"] = escape_invisible(tip.name)
    if plot.y:
        points["y"] = y
    if any(tip.intervals):
        points["e"] = [list(ends) if ends else 0 for ends in tip.intervals]
    if any(verdicts):
        points["v"] = list(verdicts if len(set(verdicts)) > 1 else verdicts[:1])
    if any(tip.texts):
        points["s"] = [escape_invisible(text) for text in tip.texts]
    return points


def _mark_coordinates(mark: Mark) -> tuple[list[float], list[float]]:
    """The places of a mark; of a box its end, since it lies across the plot from zero."""
    match mark:
        case Line():
            places = _places_with_value(mark)
        case Markers() | Bars():
            places = list(mark.places)
        case Rectangles():
            places = [(x2 or 0.0, y or 0.0) for _, y, x2, _ in mark.boxes]
        case _:
            raise TypeError(f"Nothing can be told of a {type(mark).__name__}.")
    return [x for x, _ in places], [y for _, y in places]
