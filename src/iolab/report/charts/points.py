"""What a pointer can ask of a chart: the values behind its marks, read from the chart's own spec.

Pure, and by rules that hold for any figure: rows with a place on both axes are points, rules and
areas with two ends in a point's colour are its interval, a marker's shape is its verdict, labels at
the ends of lines are names. A new figure is asked like the others without a line of code here.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final
from xml.etree import ElementTree as ET

from iolab.core.metric import Level
from iolab.report.charts.chart import LEFT, Figure, Spec
from iolab.report.charts.lines import shape_of
from iolab.report.numbers import clean, few_digits
from iolab.report.palette import INK, PAPER, SERIES

Row = dict[str, Any]

SECONDS: Final = "seconds since"
"""How the title of every axis of time begins."""

_NINES: Final = "percentile"
"""How the title of the percentile axis begins, whose values are decades of 1/(1-q)."""

_UNIT_X: Final = -LEFT + 4
"""Where `unit_mark` writes; a plot's heading begins at 0."""

_WIDEST: Final = 4.0
"""Lines wider than this are areas of one colour, as in heat maps, and no series."""

_LEVELS: Final = {shape_of(level): level.value for level in Level if level is not Level.VALID}
_PAPER: Final = PAPER.stand_in
_SERIES: Final = {token.stand_in: token.name for token in SERIES}
_ELLIPSIS: Final = "…"
_DRAWN: Final = frozenset({"line", "trail", "area", "point", "bar", "rect", "rule", "circle"})
_POINTS: Final = frozenset({"line", "trail", "point", "circle", "bar", "rect"})


@dataclass(frozen=True, slots=True)
class Layer:
    """One layer: its group's name in the drawing, mark, channels, and rows with their places."""

    name: str
    view: int
    mark: Spec
    encoding: Spec
    rows: tuple[Row, ...]

    @property
    def kind(self) -> str:
        """The type of its marks."""
        return str(self.mark.get("type", ""))

    @property
    def colour(self) -> str:
        """The colour that tells what it belongs to: of filled marks the fill, else the stroke."""
        fill, stroke = (str(self.mark.get(key) or "") for key in ("fill", "stroke"))
        return fill if fill in _SERIES or not stroke or (fill and stroke == _PAPER) else stroke

    def field(self, channel: str) -> str | None:
        """The field that a channel takes its values from."""
        found = self.encoding.get(channel)
        return found.get("field") if isinstance(found, dict) else None

    def value(self, channel: str) -> str | None:
        """The field of a channel that is a quantity, and not a mere place in the plot.

        Of a piece that lies across the plot, as a bar from zero, its end is what it stands for.
        """
        found = self.encoding.get(channel)
        if not isinstance(found, dict) or None in (found.get("scale", 0), found.get("axis", 0)):
            return None
        lies = channel == "x" and self.kind in {"rect", "bar"} and not self.value("y")
        return (self.field("x2") if lies else None) or self.field(channel)

    def at(self, channel: str) -> float | None:
        """The constant pixel of a channel."""
        found = self.encoding.get(channel)
        value = found.get("value") if isinstance(found, dict) else None
        return float(value) if isinstance(value, int | float) else None


@dataclass(frozen=True, slots=True)
class View:
    """One plot: its place in the drawing, its size, what its axes measure, its layers."""

    group: str
    width: float
    height: float
    title: str
    unit: str
    x_title: str
    x_kind: str
    domain: tuple[float, float] | None
    layers: tuple[Layer, ...]


@dataclass(frozen=True, slots=True)
class Marks:
    """Points of one series in one plot, in the order in which they are drawn.

    `series` is the colour's token, empty for another one. Of each point: its place on either axis
    (None where the axis has none), the ends of its interval, its verdict, and what it is called.
    """

    layer: str
    view: int
    name: str
    series: str
    x: tuple[float | str | None, ...]
    y: tuple[float | str | None, ...]
    ends: tuple[tuple[float, float] | None, ...]
    verdicts: tuple[str, ...]
    texts: tuple[str, ...]
    single_run: bool


@dataclass(slots=True)
class _Naming:
    """The names of the lines of one plot, in the order of their labels."""

    labels: dict[str, list[str]]
    seen: dict[str, list[tuple[float, ...]]] = field(default_factory=dict)

    def of(self, layer: Layer) -> str:
        """The label of the line, or of the line before this layer in its colour."""
        known = self.seen.setdefault(layer.colour, [])
        if layer.kind in {"line", "trail"}:
            dash = tuple(layer.mark.get("strokeDash") or ())
            if dash not in known:
                known.append(dash)
            index = known.index(dash)
        else:
            index = len(known) - 1
        labels = self.labels.get(layer.colour, [])
        return labels[min(max(index, 0), len(labels) - 1)] if labels else ""


def views_of(spec: Spec) -> tuple[View, ...]:
    """The plots of a spec: itself, or those that it stacks."""
    stacked = spec.get("vconcat") or spec.get("hconcat")
    if not stacked:
        return (_view(spec, "", 0),)
    return tuple(_view(one, f"concat_{index}_", index) for index, one in enumerate(stacked))


def _view(spec: Spec, prefix: str, index: int) -> View:
    layers = tuple(_layers(spec, prefix, index, {}, None))
    title, unit = _heading(layers)
    x: Spec = next((one.encoding["x"] for one in layers if one.field("x")), {})
    x_title = str((x.get("axis") or {}).get("title") or "")
    domain = _range((x.get("scale") or {}).get("domain"))
    linear = x.get("type") == "quantitative" and (x.get("scale") or {}).get("type") != "log"
    kind = "ordinal" if x.get("type") in {"ordinal", "nominal"} else ""
    kind = "nines" if x_title.startswith(_NINES) else kind
    y: Spec = next((one.encoding["y"] for one in layers if one.field("y")), {})
    unit = unit or str((y.get("axis") or {}).get("title") or "")
    return View(
        group=prefix,
        width=float(spec.get("width", 0)),
        height=float(spec.get("height", 0)),
        title=title,
        unit=unit,
        x_title=x_title,
        x_kind=kind,
        domain=domain if linear else None,
        layers=layers,
    )


def _range(domain: object) -> tuple[float, float] | None:
    """The ends of a domain of numbers; None for one of names."""
    match domain:
        case [int() | float() as low, int() | float() as high]:
            return float(low), float(high)
    return None


def _layers(
    spec: Spec, prefix: str, view: int, encoding: Spec, rows: tuple[Row, ...] | None
) -> Iterator[Layer]:
    """The layers without layers of their own; channels and rows come down from above."""
    encoding = {**encoding, **spec.get("encoding", {})}
    values = spec.get("data", {}).get("values")
    rows = tuple(values) if isinstance(values, list) else rows
    if "layer" in spec:
        for index, one in enumerate(spec["layer"]):
            yield from _layers(one, f"{prefix}layer_{index}_", view, encoding, rows)
    elif "mark" in spec:
        mark = spec["mark"] if isinstance(spec["mark"], dict) else {"type": spec["mark"]}
        yield Layer(f"{prefix}marks", view, mark, encoding, _placed(encoding, rows or ()))


def _placed(encoding: Spec, rows: Sequence[Row]) -> tuple[Row, ...]:
    """The rows that are drawn, in the order of a line."""
    fields = [
        encoding[key].get("field") for key in ("x", "y") if isinstance(encoding.get(key), dict)
    ]
    kept = [row for row in rows if all(row.get(name) is not None for name in fields if name)]
    return tuple(kept)


def _heading(layers: Sequence[Layer]) -> tuple[str, str]:
    """What a plot shows and in which unit, as it stands over its upper left corner."""
    title = unit = ""
    for layer in layers:
        x, y = layer.at("x"), layer.at("y")
        if layer.kind != "text" or not layer.rows or x is None or y is None or y >= 0:
            continue
        text = str(layer.rows[0].get(layer.field("text") or "", ""))
        if x == _UNIT_X:
            unit = text
        elif x == 0 and layer.mark.get("fill") == INK.stand_in:
            title, _, unit = text.rpartition(", ")
    return title, unit


def marks_of(figure: Figure, views: Sequence[View], names: Mapping[str, str]) -> tuple[Marks, ...]:
    """The points of all plots; `names` are the titles of configurations by the token of colour."""
    judged = any(cell.level is not None for row in figure.table.rows for cell in row)
    own = configured(figure, views, names)
    found: list[Marks] = []
    for view in views:
        naming = _Naming(_labels(view))
        told = {layer.name: naming.of(layer) for layer in view.layers if layer.kind in _DRAWN}
        for layer in view.layers:
            if _is_asked(layer, view):
                name = _name(told[layer.name], _SERIES.get(layer.colour, ""), names, own)
                found.append(_marks(layer, view, name, judged=judged))
    return tuple(one for one in found if one.x)


def configured(figure: Figure, views: Sequence[View], names: Mapping[str, str]) -> frozenset[str]:
    """The tokens by which this figure tells configurations, and not something else, apart."""
    labels: dict[str, list[str]] = {}
    drawn: set[str] = set()
    for view in views:
        drawn |= {_SERIES[one.colour] for one in view.layers if one.colour in _SERIES}
        for colour, texts in _labels(view).items():
            labels.setdefault(_SERIES.get(colour, ""), []).extend(texts)
    labelled = {token for token in drawn if labels.get(token)}
    if not labelled:
        heads = {column.title.casefold() for column in figure.table.columns}
        return frozenset(drawn & set(names) if "configuration" in heads else ())
    return frozenset(
        token
        for token in labelled & set(names)
        if any(_is_called(text, names[token]) for text in labels[token])
    )


def _labels(view: View) -> dict[str, list[str]]:
    """The texts to the right of the plot by their colour."""
    found: dict[str, list[str]] = {}
    for layer in view.layers:
        x = layer.at("x")
        if layer.kind == "text" and layer.rows and x is not None and x >= view.width:
            text = str(layer.rows[0].get(layer.field("text") or "", ""))
            found.setdefault(str(layer.mark.get("fill", "")), []).append(text)
    return found


def _is_called(label: str, title: str) -> bool:
    """Whether a label, which may be cut, is a title or begins with it."""
    title, short = " ".join(clean(title).split()), label.removesuffix(_ELLIPSIS)
    return bool(short) and (title.startswith(short) or label.startswith(title))


def _name(label: str, series: str, names: Mapping[str, str], own: frozenset[str]) -> str:
    """A line's name: its label whole, with its configuration where the label is another word."""
    if series not in own:
        return label
    title = " ".join(clean(names[series]).split())
    if not label or title.startswith(label.removesuffix(_ELLIPSIS)):
        return title
    return label if label.startswith(title) else f"{title}, {label}"


def _is_asked(layer: Layer, view: View) -> bool:
    """Whether its rows are points by themselves, and no other layer tells more of them."""
    fields = (layer.field("x"), layer.field("y"))
    if layer.kind not in _POINTS or not layer.rows or not any(fields):
        return False
    if layer.kind == "rect" and not all(fields):
        return False
    if layer.kind == "line" and layer.field("order") and layer.mark.get("invalid"):
        return False  # pieces that have no order of their own, as the cells of a heat map
    if layer.colour == _PAPER or float(layer.mark.get("strokeWidth") or 0) > _WIDEST:
        return False
    alike = [one for one in view.layers if one.colour == layer.colour and one is not layer]
    if layer.kind in {"line", "trail"}:
        marked = {_place(one, row) for one in alike if _shown(one) for row in one.rows}
        return not all(_place(layer, row) in marked for row in layer.rows)
    lines = any(one.kind in {"line", "trail"} for one in alike)
    pieces = any(one.kind in {"bar", "rect"} for one in view.layers)
    doubts = layer.kind == "point" and pieces and layer.colour not in _SERIES
    return not doubts and (_shown(layer) or not lines)


def _shown(layer: Layer) -> bool:
    """Whether it has markers that tell a verdict, or that a point is predicted."""
    return layer.kind == "point" and bool(_verdict(layer))


def _verdict(layer: Layer) -> str:
    """What the shape of its markers says; empty for mere dots."""
    mark = layer.mark
    if mark.get("shape") in _LEVELS:
        return _LEVELS[mark["shape"]]
    if mark.get("shape") != "circle":
        return ""
    if mark.get("fill") == _PAPER:
        return "predicted"
    return Level.VALID.value if mark.get("fill") == mark.get("stroke") else ""


def _place(layer: Layer, row: Row) -> tuple[object, ...]:
    return tuple(row.get(layer.field(key) or "") for key in ("x", "y", "xOffset"))


def _marks(layer: Layer, view: View, name: str, *, judged: bool) -> Marks:
    order = layer.field("order") if layer.kind == "line" else None
    by = order or layer.field("x")
    rows = layer.rows
    if layer.kind in {"line", "trail"} and by:
        rows = tuple(sorted(rows, key=lambda row: row[by]))
    x, y = layer.value("x"), layer.value("y")
    return Marks(
        layer=layer.name,
        view=layer.view,
        name=name,
        series=_SERIES.get(layer.colour, ""),
        x=tuple(row[x] if x else None for row in rows),
        y=tuple(row[y] if y else None for row in rows),
        ends=tuple(_ends(layer, row, view) for row in rows),
        verdicts=tuple(_judged(layer, row, view) if judged else "" for row in rows),
        texts=tuple(_text(layer, row, view) for row in rows),
        single_run=layer.kind == "point" and float(layer.mark.get("opacity", 1)) < 1,
    )


def _judged(layer: Layer, row: Row, view: View) -> str:
    """The verdict of a row; of a bar that of the marker on it, and valid without one."""
    if layer.kind != "bar":
        return _verdict(layer)
    place = _place(layer, row)
    return next(
        (
            _verdict(one)
            for one in view.layers
            if _shown(one) and any(_place(one, other) == place for other in one.rows)
        ),
        Level.VALID.value,
    )


def _ends(layer: Layer, row: Row, view: View) -> tuple[float, float] | None:
    """The narrowest interval at the row's place that holds its value, in its colour or in none."""
    y, at = layer.field("y"), _place(layer, row)
    value = row.get(y or "")
    if not isinstance(value, int | float):
        return None
    found = []
    for one in view.layers:
        if one.kind not in {"rule", "area"} or not one.field("y2"):
            continue
        if one.colour != layer.colour and one.colour in _SERIES:
            continue
        for other in one.rows:
            place = _place(one, other)
            if (place[0], place[2]) == (at[0], at[2]):
                low, high = sorted((float(other[one.field("y") or ""]), _high(one, other)))
                if low * (1 - 1e-4) <= value <= high * (1 + 1e-4):
                    found.append((low, high))
    return min(found, key=lambda ends: ends[1] - ends[0], default=None)


def _high(layer: Layer, row: Row) -> float:
    return float(row[layer.field("y2") or ""])


def _text(layer: Layer, row: Row, view: View) -> str:
    """Words that stand at the row's place, or that the row itself has."""
    place = _place(layer, row)[:2]
    for one in view.layers:
        name = one.field("text")
        if one.kind == "text" and name and one.field("x") and one.field("y"):
            for other in one.rows:
                if _place(one, other)[:2] == place:
                    return clean(str(other.get(name, "")))
    return ""


TIES: Final = frozenset({"data-plot", "data-x", "data-m", "data-c"})
"""The attributes that a drawing gets."""

_VERTEX: Final = re.compile(r"[MLCQ]")
_GROUP: Final = re.compile(r"(\S*?)marks$")
_NESTED: Final = re.compile(r"layer_\d+_$")


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
        at = [_harmless(value) for value in one.x]
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
    short = few_digits(told)
    text = json.dumps(short, separators=(",", ":"), allow_nan=False, ensure_ascii=False)
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
        told["y"] = [_harmless(value) for value in one.y]
    if any(one.ends):
        told["e"] = [list(ends) if ends else 0 for ends in one.ends]
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


def _harmless(value: float | str | None) -> float | str | None:
    """A place or a value; text without what cannot be seen."""
    return clean(value) if isinstance(value, str) else value
