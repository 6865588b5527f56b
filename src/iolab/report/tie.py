"""Ties the marks of a drawn chart to the values behind them, for the page's script.

The drawing gets `data-` attributes: which group is a plot, what moves with its x axis, what belongs
to which configuration, which group holds the marks of which series. The values go beside it as
JSON. Where a drawing has another number of marks than its spec has rows, nothing is said of them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final
from xml.etree import ElementTree as ET

from iolab.report.figures.frame import Figure
from iolab.report.marks import (
    SECONDS,
    Layer,
    Marks,
    View,
    configured,
    marks_of,
    views_of,
)
from iolab.report.palette import SERIES
from iolab.report.wording import clean

TIES: Final = frozenset({"data-plot", "data-x", "data-m", "data-c"})
"""The attributes that a drawing gets."""

_DIGITS: Final = 6
_VERTEX: Final = re.compile(r"[MLCQ]")
_GROUP: Final = re.compile(r"(\S*?)marks$")
_NESTED: Final = re.compile(r"layer_\d+_$")
_SERIES: Final = {token.stand_in: token.name for token in SERIES}


def tie(root: ET.Element, figure: Figure, names: Mapping[str, str]) -> str:
    """Mark up the drawing in place; what its marks stand for as JSON, empty for nothing to tell.

    `names` are the titles of configurations by the token of their colour; empty for one alone.
    The JSON holds no `<`, so that it can stand in a page as a block of data.
    """
    views = views_of(figure.spec)
    groups = _groups(root)
    found = [one for one in marks_of(figure, views, names) if _fits(groups.get(one.layer, []), one)]
    if not found:
        return ""
    _tie_plots(root, views)
    own = configured(figure, views, names)
    toggled = own if len(own) > 1 else frozenset()
    for view in views:
        _tie_marks(view, groups, toggled)
    for index, one in enumerate(found):
        for group in groups[one.layer]:
            group.set("data-m", str(index))
    return _told(figure, views, found)


def _groups(root: ET.Element) -> dict[str, list[ET.Element]]:
    """The groups of marks by the layer they are drawn of; a line and its dots are one layer's."""
    found: dict[str, list[ET.Element]] = {}
    for element in root.iter():
        for name in element.get("class", "").split():
            if match := _GROUP.fullmatch(name):
                found.setdefault(match[0], []).append(element)
    for name in list(found):
        above = _NESTED.sub("", name.removesuffix("marks")) + "marks"
        if above != name and above not in found and _NESTED.search(above.removesuffix("marks")):
            found[above] = [
                one
                for key in (f"{above[:-5]}layer_{i}_marks" for i in range(2))
                for one in found.get(key, [])
            ]
    return found


def _fits(groups: Sequence[ET.Element], marks: Marks) -> bool:
    """Whether the drawing has as many places as there are values."""
    return bool(groups) and any(_places(group) == len(marks.x) for group in groups[:1])


def _places(group: ET.Element) -> int:
    """The vertices of a line, or the number of marks."""
    if "mark-line" in group.get("class", ""):
        return sum(len(_VERTEX.findall(path.get("d", ""))) for path in group)
    return len(group)


def _tie_plots(root: ET.Element, views: Sequence[View]) -> None:
    """Name the plots, and what of each moves with its x axis."""
    for index, view in enumerate(views):
        name = f"{view.group}group" if view.group else "role-frame"
        for element in root.iter():
            if name in element.get("class", "").split():
                element.set("data-plot", str(index))
                _tie_axes(element)
                break


def _tie_axes(plot: ET.Element) -> None:
    for element in plot.iter():
        role = element.get("class", "")
        first = next(iter(element), None)
        if first is None:
            continue
        upright = first.get("x2") == "0" and first.get("y2") != "0"
        if "role-axis-label" in role and first.get("text-anchor") == "middle":
            element.set("data-x", "label")
        elif "role-axis-grid" in role and upright:
            element.set("data-x", "grid")
        elif "role-axis-tick" in role and upright:
            element.set("data-x", "tick")


def _tie_marks(
    view: View, groups: Mapping[str, Sequence[ET.Element]], toggled: Iterable[str]
) -> None:
    """What moves with the axis, and what belongs to which configuration.

    Marks without a series' colour (intervals in ink, rims of text) belong to the series before.
    """
    last: Layer | None = None
    for layer in view.layers:
        token = _SERIES.get(layer.colour, "")
        if token:
            last = layer
        elif last is not None and _stands_on(layer, last):
            token = _SERIES[last.colour]
        for group in groups.get(layer.name, ()):
            if layer.field("x"):
                group.set("data-m", "")
            if token in toggled:
                group.set("data-c", token)


def _stands_on(layer: Layer, below: Layer) -> bool:
    """Whether all its marks stand at places of the layer below."""
    places = {_at(below, row) for row in below.rows}
    return bool(layer.field("x")) and all(_at(layer, row) in places for row in layer.rows)


def _at(layer: Layer, row: Mapping[str, Any]) -> tuple[object, object]:
    return row.get(layer.field("x") or ""), row.get(layer.field("xOffset") or "")


def _told(figure: Figure, views: Sequence[View], found: Sequence[Marks]) -> str:
    """The JSON: plots with their axes, and the points of each series."""
    times = any(view.x_title.startswith(SECONDS) for view in views)
    axes: list[list[Any]] = []
    marks = []
    for one in found:
        at = [_number(value) for value in one.x]
        if at not in axes:
            axes.append(at)
        marks.append(_compact(one, axes.index(at)))
    title = next((view.x_title for view in reversed(views) if view.x_title), "")
    told = {
        "title": clean(figure.title),
        "x": clean(title),
        "plots": [_plot(view, times=times) for view in views],
        "axes": axes,
        "marks": marks,
    }
    text = json.dumps(told, separators=(",", ":"), allow_nan=False, ensure_ascii=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _plot(view: View, *, times: bool) -> dict[str, Any]:
    kind = "time" if times and view.domain else view.x_kind
    told = {"w": view.width, "h": view.height, "t": clean(view.title), "u": clean(view.unit)}
    return told | {"k": kind} | ({"d": list(view.domain)} if view.domain else {})


def _compact(one: Marks, axis: int) -> dict[str, Any]:
    """A series without what says nothing."""
    told: dict[str, Any] = {"p": one.view, "x": axis}
    if one.name:
        told["n"] = clean(one.name)
    if one.series:
        told["c"] = one.series
    if any(value is not None for value in one.y):
        told["y"] = [_number(value) for value in one.y]
    if any(one.ends):
        told["e"] = [[_number(end) for end in ends] if ends else 0 for ends in one.ends]
    if any(one.verdicts):
        told["v"] = list(_shared(one.verdicts))
    if any(one.texts):
        told["s"] = list(one.texts)
    if one.single_run:
        told["r"] = 1
    return told


def _shared(values: Sequence[str]) -> Iterator[str]:
    """One value where all are the same."""
    yield from values[:1] if len(set(values)) == 1 else values


def _number(value: float | str | None) -> float | int | str | None:
    """A number with as many digits as a reader can use; text made harmless."""
    if isinstance(value, str):
        return clean(value)
    if value is None:
        return None
    short = float(f"{value:.{_DIGITS}g}")
    return int(short) if short.is_integer() and abs(short) < 1e15 else short
