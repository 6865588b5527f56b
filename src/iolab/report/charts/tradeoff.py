"""Latency against performance: a line a configuration, a labelled point for each value of the load.

Down and to the right is better. The points are joined in the order of the load, and arrows on the
line point to more of it, so that a line that turns back tells of more load for less performance.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Final

from iolab.analysis.points import PointSummary
from iolab.core.configuration import LatencyLimit
from iolab.report.best import UNKNOWN_METRIC
from iolab.report.charts.chart import (
    ABOVE,
    BELOW,
    HEAD,
    MIDDLE,
    Arrows,
    Figure,
    LineEndLabel,
    LineSegments,
    Mark,
    MarkerStyle,
    MarkTip,
    Plot,
    Points,
    TextMark,
    error_bar_notes,
)
from iolab.report.charts.lines import (
    PANEL_GAP,
    PANEL_HEIGHT,
    ChartLine,
    ChartQuantity,
    best_lines,
    connecting_line,
    hidden_lines_note,
    markers_with_intervals,
    places_not_invalid,
    point_axis_value,
    scale_interval,
    verdicts_text,
)
from iolab.report.charts.lines import quantities_table as table_of
from iolab.report.charts.palette import MUTED
from iolab.report.charts.scale import (
    PLOT_WIDTH,
    Scale,
    linear_scale,
    log_scale,
    value_axis_of_scale,
)
from iolab.report.numbers import axis_name_text, value_text
from iolab.report.phrases import metric_phrase
from iolab.text import capitalised, escape_invisible, list_text

FEW_LINES: Final = 2
"""Lines whose points all have their loads beside them."""

HEIGHT: Final = 2 * PANEL_HEIGHT + PANEL_GAP

_ROOM: Final = 1.05
"""Beyond the last point, for its label."""

_ARROW_ROOM: Final = 26.0
"""Between nearer points the order of their numbers says it, and a head would hide the line."""

_CHARACTER: Final = 7.6
_UP: Final = 11.0
_DOWN: Final = 4.0
"""Units that a label takes: of a character's width, above its base line, below it."""
_MARKER: Final = 5.0
"""From a point to the edge of its marker."""
_BESIDE: Final = (("start", 5.0, BELOW + 4), ("end", -6.0, ABOVE - 2), ("end", -7.0, MIDDLE))
"""Where a point's load may stand, the best place first: its side, and units from the point."""
_REMARK_PLACES: Final = (
    ("end", -7.0, ABOVE - 5),
    ("end", -7.0, BELOW + 6),
    ("start", 7.0, ABOVE - 7),
    ("end", -13.0, MIDDLE),
    ("start", 13.0, MIDDLE),
)
"""Where a remark may stand, the best place first: its side, and units from the point."""

_DASHES: Final = ((), (4, 3))

Place = tuple[str, float, float, PointSummary]
"""The load as the study writes it, performance, latency, and the point."""


def latency_tradeoff_chart(
    subject: str,
    axis: str,
    lines: Sequence[ChartLine],
    performance: ChartQuantity,
    unit: str,
    latencies: Sequence[ChartQuantity],
    *,
    note: str = "",
    limit: LatencyLimit | None = None,
) -> Figure:
    """Up to two latencies (the second dashed) against `performance`, points labelled by `axis`.

    The knees of the lines are named, and of a `limit` on one of the latencies the most that stays
    under it. `note` is what else to know.
    """
    drawn = best_lines(lines, performance.key)
    keys = [latency.key for latency in latencies]
    placed = {
        (index, key): points_along_line(line, axis, performance.key, key)
        for index, line in enumerate(drawn)
        for key in keys
    }
    every = [place for line_places in placed.values() for place in line_places]
    x_scale = linear_scale(unit, [_ROOM * rate for _, rate, _, _ in every], ticks=3)
    held = limit if limit is not None and limit.metric in keys else None
    drawn_latencies = _latencies_and_intervals(every, keys)
    y_scale = log_scale("ns", [*drawn_latencies, *([held.latency_ns] if held else [])])
    marks: list[Mark] = []
    if held:
        level = y_scale.scaled(held.latency_ns)
        across = [(None, level, None, level)]
        marks.append(LineSegments(token=MUTED, segments=across, dash=(1, 3), width=1.2))
    taken = [
        box
        for line_places in placed.values()
        for box in _marker_boxes(line_places, x_scale, y_scale)
    ]
    ends: list[LineEndLabel] = []
    for index, line in enumerate(drawn):
        for dash, latency in zip(_DASHES, latencies, strict=False):
            line_places = placed[index, latency.key]
            if not line_places:
                continue
            several = latency.label if len(drawn) == 1 else line.full_name if not dash else ""
            tip_name = several or f"{line.full_name}, {latency.label}"
            marks += _line_marks(line_places, line, latency.key, dash, tip_name, (x_scale, y_scale))
            few = len(drawn) <= FEW_LINES
            marks += _load_labels(line_places, line, (x_scale, y_scale), taken, few=few)
            name = latency.label if len(drawn) == 1 or dash else line.name
            ends.append(LineEndLabel(name, y_scale.scaled(line_places[-1][2]), line.token))
    for (index, key), line_places in placed.items():  # the loads of every line come first
        remarks = _remarkable_places(line_places, drawn[index], key, held)
        marks += _remark_marks(remarks, x_scale, y_scale, drawn[index], taken)
    notes = [
        f"The number at a point is its {axis_name_text(axis)}, and arrows point to more of it; "
    ]
    notes[0] += "down and to the right is better."
    if len(latencies) > 1:
        notes.append(f"Solid: {latencies[0].label}; dashed: {latencies[1].label}.")
    metrics = [place[3].metrics.get(key, UNKNOWN_METRIC) for place in every for key in keys]
    notes += error_bar_notes(metrics, "Bars: 95 % interval of the latency.")
    if any(line.knee is not None for line in drawn):
        notes.append("Ringed, knee: from here on more load costs more latency than it gains rate.")
    if held is not None:
        name = f"{metric_phrase(held.metric)} of {value_text(held.latency_ns, 'ns')}"
        notes.append(f"Dotted: the limit, {name}; ringed is the most that stays under it.")
    notes += hidden_lines_note(lines, drawn)
    notes += [note] if note else []
    words = list_text(latency.name for latency in latencies)
    return Figure(
        subject=subject,
        title=f"{capitalised(words)} against {_heading_phrase(performance.name)}",
        finding=_tradeoff_sentence(drawn, axis, placed, latencies[-1], unit),
        note=" ".join(notes),
        plots=(Plot(HEIGHT, marks, value_axis_of_scale(x_scale), y_scale, ends),),
        table=table_of(subject, axis, lines, (performance, *latencies)),
        by_configuration=True,
    )


def _heading_phrase(name: str) -> str:
    """A quantity within a heading: an abbreviation stays one."""
    return name if name.isupper() else name.lower()


def points_along_line(line: ChartLine, axis: str, rate_key: str, latency_key: str) -> list[Place]:
    """The line's points that have both, in the order of the load."""
    ordered = []
    for point in line.points:
        at = point_axis_value(point, axis)
        x, y = (point.metrics.get(key, UNKNOWN_METRIC).value for key in (rate_key, latency_key))
        if at is not None and x is not None and y is not None:
            ordered.append((at, (str(dict(point.key.axis)[axis]), x, y, point)))
    return [place for _, place in sorted(ordered, key=lambda pair: pair[0])]


def _remarkable_places(
    line_places: Sequence[Place], line: ChartLine, key: str, limit: LatencyLimit | None
) -> list[tuple[str, Place]]:
    """Which points have a name of their own: the knee, and the most that stays under a limit."""
    remarks = [
        ("knee", place)
        for place in line_places
        if line.knee is not None and place[0] == str(line.knee)
    ]
    under = [
        place
        for place in line_places
        if limit and key == limit.metric and place[2] <= limit.latency_ns
    ]
    if under and len(under) < len(line_places):
        most = max(under, key=lambda place: place[1])
        both = [(f"{name}, limit", place) for name, place in remarks if place == most]
        remarks = both or [*remarks, ("limit", most)]
    return remarks


LabelBox = tuple[float, float, float, float]
"""Left, top, right and bottom, in units of the plot."""


def _plot_position(place: Place, x_scale: Scale, y_scale: Scale) -> tuple[float, float]:
    """Units of the plot from its left and its top to a point."""
    _, rate, latency, _ = place
    across, up = x_scale.fraction(x_scale.scaled(rate)), y_scale.fraction(y_scale.scaled(latency))
    return across * PLOT_WIDTH, (1 - up) * HEIGHT


def _label_box(text: str, x: float, y: float, align: str = "start") -> LabelBox:
    """What a label takes whose base line begins, or ends, at a place."""
    width = _CHARACTER * len(text)
    left = x - width if align == "end" else x
    return left, y - _UP, left + width, y + _DOWN


def _marker_boxes(
    line_places: Sequence[Place], x_scale: Scale, y_scale: Scale
) -> Iterator[LabelBox]:
    """What the markers of a line take."""
    for place in line_places:
        x, y = _plot_position(place, x_scale, y_scale)
        yield x - _MARKER, y - _MARKER, x + _MARKER, y + _MARKER


def _load_labels(
    line_places: Sequence[Place],
    line: ChartLine,
    scales: tuple[Scale, Scale],
    taken: list[LabelBox],
    *,
    few: bool,
) -> list[Mark]:
    """The load beside each point that has room for it, the last and the first before others.

    Of `few` lines there are several places for each. `taken` is where nothing can stand, to which
    they are added.
    """
    x_scale, y_scale = scales
    marks: dict[tuple[str, float, float], list[tuple[float, float, str]]] = {}
    for place in (*line_places[-1:], *line_places[:-1]):
        x, y = _plot_position(place, x_scale, y_scale)
        own = (x - _MARKER, y - _MARKER, x + _MARKER, y + _MARKER)
        for align, dx, dy in _BESIDE if few else _BESIDE[:1]:
            box = _label_box(place[0], x + dx, y + dy, align)
            if not any(_boxes_overlap(box, other) for other in taken if other != own):
                taken.append(box)
                at = (x_scale.scaled(place[1]), y_scale.scaled(place[2]), place[0])
                marks.setdefault((align, dx, dy), []).append(at)
                break
    return [
        TextMark(token=line.token, places=places, align=align, dx=dx, dy=dy, has_rim=True)
        for (align, dx, dy), places in marks.items()
    ]


def _boxes_overlap(box: LabelBox, other: LabelBox) -> bool:
    return box[0] < other[2] and other[0] < box[2] and box[1] < other[3] and other[1] < box[3]


def _remark_marks(
    remarks: Sequence[tuple[str, Place]],
    x_scale: Scale,
    y_scale: Scale,
    line: ChartLine,
    taken: list[LabelBox],
) -> list[Mark]:
    """A ring around each remarkable point, and its name where one finds room.

    `taken` is where nothing can stand, to which the names are added.
    """
    if not remarks:
        return []
    rings = [
        (x_scale.scaled(rate), y_scale.scaled(latency)) for _, (_, rate, latency, _) in remarks
    ]
    marks: list[Mark] = [
        Points(token=line.token, places=rings, marker_style=MarkerStyle.RING, size=190)
    ]
    for (name, place), (x, y) in zip(remarks, rings, strict=True):
        across, down = _plot_position(place, x_scale, y_scale)
        for align, dx, dy in _REMARK_PLACES:
            box = _label_box(name, across + dx, down + dy, align)
            inside = box[0] >= 0 and box[2] <= PLOT_WIDTH and box[1] >= -HEAD and box[3] <= HEIGHT
            if inside and not any(_boxes_overlap(box, other) for other in taken):
                taken.append(box)
                marks.append(
                    TextMark(
                        token=line.token,
                        places=[(x, y, name)],
                        align=align,
                        dx=dx,
                        dy=dy,
                        has_rim=True,
                    )
                )
                break
    return marks


def _latencies_and_intervals(every: Sequence[Place], keys: Sequence[str]) -> list[float]:
    """Everything that is drawn, so that it fits the scale."""
    values = [latency for _, _, latency, _ in every]
    for _, _, _, point in every:
        metrics = [point.metrics.get(key, UNKNOWN_METRIC) for key in keys]
        values += [v for metric in metrics for v in metric.interval_to_show or ()]
    return values


def _line_marks(
    line_places: Sequence[Place],
    line: ChartLine,
    key: str,
    dash: tuple[int, ...],
    name: str,
    scales: tuple[Scale, Scale],
) -> list[Mark]:
    """The line through the points, intervals, and markers by verdict."""
    (x_scale, y_scale), token = scales, line.token
    places = [
        (x_scale.scaled(rate), y_scale.scaled(latency)) for _, rate, latency, _ in line_places
    ]
    loads = [text for text, *_ in line_places]
    ends = [
        scale_interval(point.metrics.get(key, UNKNOWN_METRIC).interval_to_show, y_scale)
        for *_, point in line_places
    ]
    levels = [point.level for *_, point in line_places]
    marks = connecting_line(token, places, levels, dash)
    marks += markers_with_intervals(token, places, levels, MarkTip(name, ends, texts=loads))
    heads = _arrow_heads(places_not_invalid(places, levels), x_scale, y_scale)
    return [*marks, *([Arrows(token=token, places=heads)] if heads else [])]


def _arrow_heads(
    places: Sequence[tuple[float, float]], x_scale: Scale, y_scale: Scale
) -> list[tuple[float, float, float]]:
    """A head in the middle of every stretch between two points that has room for it."""
    shares = [(x_scale.fraction(x), y_scale.fraction(y)) for x, y in places]
    return [
        (
            x_scale.value_at((x + x2) / 2),
            y_scale.value_at((y + y2) / 2),
            math.degrees(math.atan2((x2 - x) * PLOT_WIDTH, (y2 - y) * HEIGHT)),
        )
        for (x, y), (x2, y2) in pairwise(shares)
        if math.hypot((x2 - x) * PLOT_WIDTH, (y2 - y) * HEIGHT) >= _ARROW_ROOM
    ]


def _tradeoff_sentence(
    lines: Sequence[ChartLine],
    axis: str,
    placed: dict[tuple[int, str], list[Place]],
    latency: ChartQuantity,
    unit: str,
) -> str:
    """One sentence a line: its first and its last point."""
    sentences = []
    for index, line in enumerate(lines):
        line_places = placed[index, latency.key]
        name = f"{escape_invisible(line.name)}: " if len(lines) > 1 else ""
        if not line_places:
            sentences.append(f"{name}{'no' if name else 'No'} point has both values.")
            continue
        parts = [
            f"{value_text(rate, unit)} at {latency.label} {value_text(value, 'ns')} ({axis} {text})"
            for text, rate, value, _ in (line_places[0], line_places[-1])[: len(line_places)]
        ]
        trust = verdicts_text([place[3].level for place in line_places])
        start = "From " if not name else "from "
        joined = f"{start}{' to '.join(parts)}" if len(parts) > 1 else parts[0]
        sentences.append(f"{name}{joined}; {trust}.")
    return " ".join(sentences)
