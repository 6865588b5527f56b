"""A chart as SVG: for a page, whose style has the colours, or as a document with those of paper.

Each mark is one group. On a page it says what a pointer may ask of it (`data-m`, an index into the
JSON beside the drawing; empty where it only moves with the axis) and whose it is (`data-c`); plots
and their axes are `data-plot` and `data-x`.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import singledispatchmethod
from html import escape
from typing import Any, Final

from iolab.core.metric import Level
from iolab.dataclass import dataclass
from iolab.report.charts.chart import (
    ABOVE,
    LINE_GAP,
    MIDDLE,
    Arrows,
    Band,
    Boxes,
    DotStyle,
    Figure,
    Line,
    Mark,
    Plot,
    Points,
    Rules,
    TextMark,
    label,
    spread,
)
from iolab.report.charts.palette import FAINT, INK, MUTED, PAPER, RULE, SERIES, Token
from iolab.report.charts.scale import number_text
from iolab.report.numbers import clean, few_digits

FONT: Final = 12
HATCH_GAP: Final = 6.0
"""Units from stroke to stroke, along an edge: two or three cross the narrowest bar."""

_LABEL_LEFT: Final = -6.0
_LABEL_DOWN: Final = 15.0
_TITLE_DOWN: Final = 30.0
_TICK: Final = 4.0
_END_GAP: Final = 10.0
"""From a plot to the labels beside it: half a marker has room."""
_UNIT_LEFT: Final = -42.0
_SMALL: Final = 0.55
"""How strong single runs stand behind what is published of them."""

Paint = Callable[[Token], str]


@dataclass(frozen=True, slots=True)
class Drawing:
    """A chart as an SVG element, and as JSON what its marks stand for (empty for nothing)."""

    svg: str
    marks: str


def draw(figure: Figure) -> Drawing:
    """The figure for an HTML page, in the page's own colours and type.

    The JSON holds no `<`, so that it can stand in a page as a block of data.
    """
    pen = _Pen(lambda token: token.css, _toggled(figure))
    body = pen.plots(figure)
    head = f'class="chart" role="img" aria-label="{escape(clean(figure.alt))}"'
    return Drawing(_svg(figure, head, body), _tips(figure))


def document(figure: Figure, *, font: str = "sans-serif") -> str:
    """The figure as an SVG document of its own, in the colours of light paper."""
    body = _Pen(lambda token: token.light, frozenset()).plots(figure)
    head = (
        f'xmlns="http://www.w3.org/2000/svg" width="{figure.width}" height="{figure.whole_height}" '
        f'font-family="{font}"'
    )
    return _svg(figure, head, body)


def _svg(figure: Figure, head: str, body: str) -> str:
    size = f'viewBox="0 0 {figure.width} {figure.whole_height}" font-size="{FONT}"'
    return f'<svg {head} {size} fill="none">{body}</svg>'


def _owner(mark: Mark) -> Token | None:
    """The series that a mark is of."""
    return mark.of or (mark.token if mark.token in SERIES else None)


def _toggled(figure: Figure) -> frozenset[Token]:
    """The configurations that can be hidden: where there are several of them."""
    if not figure.by_configuration:
        return frozenset()
    owners = {_owner(mark) for plot in figure.plots for mark in plot.marks} - {None}
    return frozenset(owner for owner in owners if owner and len(owners) > 1)


class _Pen:
    """Writes a chart's elements: `paint` names colours, `toggled` are marked as configurations."""

    def __init__(self, paint: Paint, toggled: frozenset[Token]) -> None:
        self.paint = paint
        self.toggled = toggled
        self.tips = 0
        self.key: Mapping[str, str] = {}

    def plots(self, figure: Figure) -> str:
        self.key = figure.key
        drawn = [self._plot(plot, index) for index, plot in enumerate(figure.plots)]
        lines = (
            self._text(text, 0, figure.height + LINE_GAP * (number + 1), INK)
            for number, text in enumerate(figure.key_lines)
        )
        return "".join((*drawn, *lines))

    def _plot(self, plot: Plot, index: int) -> str:
        inside = [
            self._grid(plot),
            *(self._mark(mark, plot) for mark in plot.marks),
            *self._below(plot),
            *self._beside(plot),
        ]
        place = f"translate({_n(plot.left)},{_n(plot.top)})"
        return _tag("g", "".join(inside), data_plot=index, transform=place)

    def _grid(self, plot: Plot) -> str:
        """Lines at the ticks, behind everything."""
        drawn = ""
        if plot.y:
            path = "".join(f"M0,{_n(plot.down(tick))}h{_n(plot.width)}" for tick in plot.y.ticks)
            drawn += _tag("path", d=path, stroke=self.paint(FAINT))
        if plot.x and plot.x.grid:
            drawn += self._uprights(plot, "grid", 0, plot.height, FAINT)
        return drawn

    def _uprights(self, plot: Plot, name: str, y: float, length: float, token: Token) -> str:
        """A line for each tick of the axis, each with a place of its own, since they move."""
        lines = [
            _tag("line", transform=f"translate({_n(x)},{_n(y)})", y2=_n(length))
            for x, _ in _ticks(plot)
        ]
        return _tag("g", "".join(lines), data_x=name, stroke=self.paint(token))

    def _below(self, plot: Plot) -> Iterator[str]:
        """The axis of x: its line with ticks, its labels and its title."""
        axis, muted = plot.x, self.paint(MUTED)
        if axis is None:
            return
        if axis.line:
            yield _tag("path", d=f"M0,{_n(plot.height)}h{_n(plot.width)}", stroke=self.paint(RULE))
            yield self._uprights(plot, "tick", plot.height, _TICK, RULE)
        if not axis.labels:
            return
        down = _n(plot.height + _LABEL_DOWN)
        labels = [
            _tag("text", _escaped(text), transform=f"translate({_n(x)},{down})")
            for x, text in _ticks(plot)
        ]
        yield _tag("g", "".join(labels), data_x="label", fill=muted, text_anchor="middle")
        x, anchor = ((axis.first + axis.last) / 2, "middle")
        if axis.title_left:
            x, anchor = axis.first, "start"
        yield self._text(axis.title, x, plot.height + _TITLE_DOWN, MUTED, anchor)

    def _beside(self, plot: Plot) -> Iterator[str]:
        """The scale of y with its unit, the heading, and the labels at the ends of lines."""
        if plot.y:
            labels = [
                _tag("text", number_text(tick), x=_n(_LABEL_LEFT), y=_n(plot.down(tick) + MIDDLE))
                for tick in plot.y.ticks
            ]
            yield _tag("g", "".join(labels), fill=self.paint(MUTED), text_anchor="end")
        unit = unit_of(plot)
        if plot.title:
            yield self._text(f"{plot.title}, {unit}", 0, ABOVE - 7, INK)
        elif unit:
            yield self._text(unit, _UNIT_LEFT, ABOVE - 10, MUTED)
        wanted = [plot.down(end.value) for end in plot.ends]
        for end, y in zip(plot.ends, spread(wanted, LINE_GAP, 0, plot.height), strict=True):
            whose = self._whose(end.token)
            name = clean(end.text)
            name = self.key.get(name) or label(name)
            text = self._text(name, plot.width + _END_GAP, y + MIDDLE, end.token)
            yield f"<g{_attributes(data_c=whose)}>{text}</g>" if whose else text

    def _text(self, text: str, x: float, y: float, token: Token, anchor: str = "start") -> str:
        if not text:
            return ""
        place = {"x": _n(x), "y": _n(y), "text_anchor": None if anchor == "start" else anchor}
        return _tag("text", _escaped(text), **place, fill=self.paint(token))

    def _whose(self, token: Token | None) -> str | None:
        return token.name if token in self.toggled and token else None

    def _mark(self, mark: Mark, plot: Plot) -> str:
        """The mark's group."""
        index: int | str | None = None if isinstance(mark, TextMark) and mark.fixed else ""
        if mark.tip is not None:
            index, self.tips = self.tips, self.tips + 1
        if plot.x is None and mark.tip is None:
            index = None
        opacity = mark.opacity * (_SMALL if isinstance(mark, Points) and mark.small else 1)
        group: dict[str, object] = {
            "data_m": index,
            "data_c": self._whose(_owner(mark)),
        }
        if opacity != 1:  # of pieces that are parted by a rim not of that
            faint = "fill_opacity" if isinstance(mark, Boxes) and mark.rim else "opacity"
            group[faint] = f"{opacity:g}"
        more = self._upon(mark, plot)
        if more:  # in a group of its own, so that a pointer finds the mark's places alone
            more = _tag("g", more, **{**group, "data_m": None if index is None else ""})
        return _tag("g", self._drawn(mark, plot), **group) + more

    def _upon(self, mark: Mark, plot: Plot) -> str:
        """What lies upon a mark: dots on a short line, hatching of boxes that are not valid."""
        match mark:
            case Line(dots=True):
                return self._drawn(
                    Points(token=mark.token, places=_known(mark), dot=DotStyle.PLAIN, size=14), plot
                )
            case Boxes():
                doubted = [
                    piece
                    for box, level in zip(_corners(mark, plot), mark.levels, strict=False)
                    if level not in (None, Level.VALID)
                    for piece in strokes(*box)
                ]
                path = "".join(f"M{_n(x)},{_n(y)}L{_n(x2)},{_n(y2)}" for x, y, x2, y2 in doubted)
                look = {"stroke": self.paint(PAPER), "stroke_width": _width(1.6)}
                return _tag("path", d=path, **look) if path else ""
        return ""

    @singledispatchmethod
    def _drawn(self, mark: Mark, plot: Plot) -> str:
        """What is in the mark's group."""
        raise NotImplementedError

    @_drawn.register
    def _(self, mark: Line, plot: Plot) -> str:
        return _tag(
            "path",
            d=_path((plot.across(x), None if y is None else plot.down(y)) for x, y in mark.places),
            stroke=self.paint(mark.token),
            stroke_width=_width(mark.width),
            stroke_linecap="round",
            stroke_linejoin="round",
            stroke_dasharray=_dashes(mark.dash),
        )

    @_drawn.register
    def _(self, mark: Points, plot: Plot) -> str:
        stroke: Token | None = mark.token
        width = 1.6
        fill: str | None = self.paint(mark.token)
        if mark.dot is DotStyle.OPEN:
            fill, width = self.paint(PAPER), 1.2
        elif mark.dot is DotStyle.RING:
            fill, width = None, 1.0
        elif not mark.levels:
            stroke, width = (PAPER, 0.9) if mark.dot is DotStyle.SOLID else (None, 1.0)
        dots = []
        for place, (x, y) in enumerate(mark.places):
            level, size, own = Level.VALID, mark.size, fill
            if mark.levels:
                level = mark.levels[place]
                size = (42 if level is Level.VALID else 70) / (3 if mark.small else 1)
                own = fill if level is Level.VALID else self.paint(PAPER)
            move = f"translate({_n(plot.across(x))},{_n(plot.down(y))})"
            dots.append(_tag("path", transform=move, d=_shape(level, size), fill=own))
        return _tag(
            "g",
            "".join(dots),
            stroke=stroke and self.paint(stroke),
            stroke_width=_width(0.8 if mark.small else width),
        )

    @_drawn.register
    def _(self, mark: Arrows, plot: Plot) -> str:
        heads = [
            _tag(
                "path",
                transform=f"translate({_n(plot.across(x))},{_n(plot.down(y))}) rotate({angle:.0f})",
                d="M0,-2.3L1.9,1.9L-1.9,1.9Z",
                fill=self.paint(mark.token),
            )
            for x, y, angle in mark.places
        ]
        return "".join(heads)

    @_drawn.register
    def _(self, mark: Rules, plot: Plot) -> str:
        path = []
        for x, y, x2, y2 in mark.pieces:
            left, right = plot.across(x), plot.across(x2, plot.width)
            top, bottom = plot.down(y), plot.down(y2, plot.height)
            end = f"V{_n(bottom)}" if _n(left) == _n(right) else f"H{_n(right)}"
            path.append(f"M{_n(left)},{_n(top)}{end}")
        return _tag(
            "path",
            d="".join(path),
            stroke=self.paint(mark.token),
            stroke_width=_width(mark.width),
            stroke_dasharray=_dashes(mark.dash),
        )

    @_drawn.register
    def _(self, mark: Boxes, plot: Plot) -> str:
        look = {"fill": self.paint(mark.token), "stroke": self.paint(PAPER) if mark.rim else None}
        drawn = [
            _tag("path", d=f"M{_n(x)},{_n(y)}h{_n(x2 - x)}v{_n(y2 - y)}h{_n(x - x2)}Z", **look)
            for x, y, x2, y2 in _corners(mark, plot)
        ]
        return "".join(drawn)

    @_drawn.register
    def _(self, mark: Band, plot: Plot) -> str:
        lower = [(plot.across(x), plot.down(low)) for x, low, _ in mark.places]
        upper = [(plot.across(x), plot.down(high)) for x, _, high in reversed(mark.places)]
        return _tag("path", d=f"{_path([*lower, *upper])}Z", fill=self.paint(mark.token))

    @_drawn.register
    def _(self, mark: TextMark, plot: Plot) -> str:
        texts = [
            _tag(
                "text",
                _escaped(text),
                transform=f"translate({_n((x if mark.fixed else plot.across(x)) + mark.dx)},"
                f"{_n(plot.down(y) + mark.dy)})",
            )
            for x, y, text in mark.places
        ]
        anchor = None if mark.align == "start" else mark.align
        inside, paper = "".join(texts), self.paint(PAPER)
        rim = _tag("g", inside, fill=paper, stroke=paper, stroke_width=3) if mark.rim else ""
        return _tag("g", f"{rim}{inside}", fill=self.paint(mark.token), text_anchor=anchor)


def _ticks(plot: Plot) -> list[tuple[float, str]]:
    """The places and names of the ticks of x that are within it."""
    axis = plot.x
    if axis is None:
        return []
    low, high = axis.scale.low, axis.scale.high
    return [(axis.across(at), text) for at, text in axis.ticks if low <= at <= high * (1 + 1e-9)]


def unit_of(plot: Plot) -> str:
    """The unit of its values."""
    return plot.unit or (plot.y.unit if plot.y else "")


def _corners(boxes: Boxes, plot: Plot) -> Iterator[tuple[float, float, float, float]]:
    """Left, top, right and bottom of each box, in units of the plot."""
    for x, y, x2, y2 in boxes.boxes:
        top, bottom = sorted((plot.down(y), plot.down(y2, plot.height)))
        yield plot.across(x), top, plot.across(x2, plot.width), bottom


def _known(line: Line) -> list[tuple[float, float]]:
    return [(x, y) for x, y in line.places if y is not None]


def _shape(level: Level, size: float) -> str:
    """The marker of a verdict: a circle is valid, a diamond indicative, a cross invalid."""
    r = _n(math.sqrt(size) / 2)
    if level is Level.VALID:
        return f"M{r},0A{r},{r},0,1,1,-{r},0A{r},{r},0,1,1,{r},0Z"
    if level is Level.INDICATIVE:
        return f"M0,-{r}L{r},0L0,{r}L-{r},0Z"
    r = _n(0.35 * math.sqrt(size))
    return f"M-{r},-{r}L{r},{r}M{r},-{r}L-{r},{r}"


def strokes(
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


def _path(places: Iterator[tuple[float, float | None]] | Sequence[tuple[float, float]]) -> str:
    """Lines from place to place, broken where there is none; a lone place is a dot."""
    path: list[str] = []
    pen = "M"
    for x, y in places:
        if y is None:
            pen = "M"
            continue
        if pen == "M" and path and path[-1][0] == "M":
            path.append("Z")
        path.append(f"{pen}{_n(x)},{_n(y)}")
        pen = "L"
    if path and path[-1][0] == "M":
        path.append("Z")
    return "".join(path)


def _n(value: float) -> str:
    """A length to a tenth of a unit, which is less than a pixel."""
    text = f"{value:.1f}"
    return text[:-2] if text.endswith(".0") else text


def _width(value: float) -> str | None:
    return None if value == 1 else f"{value:g}"


def _dashes(dash: Sequence[float]) -> str | None:
    return ",".join(f"{length:g}" for length in dash) or None


def _escaped(text: str) -> str:
    return escape(clean(text), quote=False)


def _attributes(**items: object) -> str:
    """Those that have a value; `_` in a name is a hyphen."""
    return "".join(
        f' {name.replace("_", "-")}="{value}"' for name, value in items.items() if value is not None
    )


def _tag(name: str, inside: str = "", /, **items: object) -> str:
    body = f">{inside}</{name}>" if inside else "/>"
    return f"<{name}{_attributes(**items)}{body}"


def _tips(figure: Figure) -> str:
    """The JSON: plots with their axes, and the points of each series."""
    axes: list[list[float]] = []
    marks: list[dict[str, Any]] = []
    for index, plot in enumerate(figure.plots):
        asked = (mark for mark in plot.marks if mark.tip is not None)
        marks += [_points(mark, plot, index, axes) for mark in asked]
    if not marks:
        return ""
    document = {
        "title": clean(figure.title),
        "x": next((clean(plot.x.title) for plot in reversed(figure.plots) if plot.x), ""),
        "plots": [_about(plot) for plot in figure.plots],
        "axes": axes,
        "marks": marks,
    }
    text = json.dumps(
        few_digits(document), separators=(",", ":"), allow_nan=False, ensure_ascii=False
    )
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _about(plot: Plot) -> dict[str, Any]:
    """A plot's size, what it shows, and what its axis is."""
    document: dict[str, Any] = {"w": plot.width, "h": plot.height}
    document |= {
        "t": clean(plot.title),
        "u": clean(unit_of(plot)),
        "k": plot.x.kind if plot.x else "",
    }
    if plot.x and plot.x.kind == "time":
        document["d"] = [plot.x.scale.low, plot.x.scale.high]
    return document


def _points(mark: Mark, plot: Plot, index: int, axes: list[list[float]]) -> dict[str, Any]:
    """A mark's places in values, without what says nothing; marks at the same places share them."""
    tip = mark.tip
    assert tip is not None  # noqa: S101 - the caller knows
    x, y = _values(mark)
    if x not in axes:
        axes.append(x)
    points: dict[str, Any] = {"p": index, "x": axes.index(x)}
    levels = getattr(mark, "levels", ())
    verdicts = tip.verdicts or [level.value if level else "" for level in levels]
    if tip.name:
        points["n"] = clean(tip.name)
    if plot.y:
        points["y"] = y
    if any(tip.ends):
        points["e"] = [list(ends) if ends else 0 for ends in tip.ends]
    if any(verdicts):
        points["v"] = list(verdicts if len(set(verdicts)) > 1 else verdicts[:1])
    if any(tip.texts):
        points["s"] = [clean(text) for text in tip.texts]
    if tip.single:
        points["r"] = 1
    return points


def _values(mark: Mark) -> tuple[list[float], list[float]]:
    """The places of a mark; of a box its end, since it lies across the plot from zero."""
    match mark:
        case Line():
            places = _known(mark)
        case Points():
            places = list(mark.places)
        case Boxes():
            places = [(x2 or 0.0, y or 0.0) for _, y, x2, _ in mark.boxes]
        case _:
            raise TypeError(f"Nothing can be told of a {type(mark).__name__}.")
    return [x for x, _ in places], [y for _, y in places]
