"""Hatching over bars whose result is not valid: strokes of paper, aslant, in every bar alike.

The strokes are marks of the chart, since a drawing has no patterns: they follow light, dark and
print, and are there in a PDF. All of a chart are one broken line.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from iolab.core.metric import Level
from iolab.report.charts.chart import Spec
from iolab.report.charts.lines import shape_of
from iolab.report.palette import INK, PAPER

GAP: Final = 6.0
"""Units from stroke to stroke, along an edge: two or three cross the narrowest bar."""

HATCHED: Final = "Hatched: not valid, as the mark on it tells."
"""What a note says of a chart with such bars."""

_STROKE: Final = 1.6


@dataclass(frozen=True, slots=True)
class Box:
    """Where a bar stands, in units of the plot from its upper left corner."""

    left: float
    top: float
    right: float
    bottom: float


def hatching(boxes: Sequence[Box]) -> list[Spec]:
    """One layer of strokes within the boxes; none where there is no room for any."""
    rows: list[dict[str, float | None]] = []
    for box in boxes:
        for x, y, x2, y2 in strokes(box):
            rows.append({"n": len(rows), "x": x, "y": y})
            rows.append({"n": len(rows), "x": x2, "y": y2})
            rows.append({"n": len(rows), "x": x2, "y": None})
    if not rows:
        return []
    plain = {"type": "quantitative", "scale": None, "axis": None}
    return [
        {
            "data": {"values": rows},
            "mark": {
                "type": "line",
                "stroke": PAPER.stand_in,
                "strokeWidth": _STROKE,
                "strokeCap": "butt",
                "invalid": "break-paths-show-path-domains",
            },
            "encoding": {
                "x": {"field": "x", **plain},
                "y": {"field": "y", **plain},
                "order": {"field": "n", "type": "quantitative"},
            },
        }
    ]


def strokes(box: Box) -> Iterator[tuple[float, float, float, float]]:
    """Parallel lines from lower left to upper right, each (x, y, x2, y2), ending at the edges."""
    width, height = box.right - box.left, box.bottom - box.top
    count = int((width + height) / GAP)
    for index in range(count):
        # Lines on which (height over the bottom) - (distance from the left) is the same.
        level = GAP * (index + 0.5) - width
        first, last = max(0.0, -level), min(width, height - level)
        if last > first:
            yield (
                round(box.left + first, 1),
                round(box.bottom - first - level, 1),
                round(box.left + last, 1),
                round(box.bottom - last - level, 1),
            )


def doubt(level: Level) -> Spec:
    """The marker that stands on the end of a bar that is not valid."""
    return {
        "type": "point",
        "shape": shape_of(level),
        "size": 60,
        "filled": False,
        "fill": PAPER.stand_in,
        "stroke": INK.stand_in,
        "strokeWidth": 1.6,
        "opacity": 1,
    }
