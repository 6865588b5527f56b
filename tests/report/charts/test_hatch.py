"""Hatching is where the bars are that are not valid, and nowhere else."""

from __future__ import annotations

import math
import re
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from iolab.core.metric import Level, Metric
from iolab.report.charts.bar_pattern import GAP, HATCHED, Box, hatching, strokes
from iolab.report.charts.chart import Figure, Spec
from iolab.report.charts.value import Bar, BarGroup, lying_bars
from iolab.report.palette import PAPER, SERIES
from iolab.report.render import draw
from iolab.report.table import Table

UNITS = st.floats(min_value=0, max_value=200)


def bars(*levels: Level) -> Figure:
    found = tuple(
        Bar(f"b{i}", SERIES[i % 2], Metric(1e5 - 1e4 * i, "1/s"), level)
        for i, level in enumerate(levels)
    )
    made = lying_bars("s", "t", [BarGroup("g", found)], finding="", table=Table("", (), ()))
    assert made is not None
    return made


def hatches(figure: Figure) -> list[Spec]:
    return [
        layer
        for layer in figure.spec["layer"]
        if layer["mark"]["type"] == "line" and layer["mark"].get("stroke") == PAPER.stand_in
    ]


def ends(layer: Spec) -> list[tuple[float, float]]:
    return [(row["x"], row["y"]) for row in layer["data"]["values"] if row["y"] is not None]


def drawn_boxes(figure: Figure, tokens: tuple[int, ...] = (0, 1)) -> list[Box]:
    """The bars as they are drawn, read from the drawing."""
    names = "|".join(SERIES[index].name for index in tokens)
    pattern = rf'd="M([\d.]+),([\d.]+)h([\d.]+)v([\d.]+)h[^"]*"[^>]*fill="var\(--(?:{names})\)"'
    found = [tuple(map(float, match)) for match in re.findall(pattern, draw(figure, "f"))]
    return [Box(x, y, x + width, y + height) for x, y, width, height in found]


@given(UNITS, UNITS, UNITS, UNITS)
def test_strokes_end_at_the_edges_and_rise_to_the_right(
    a: float, b: float, c: float, d: float
) -> None:
    box = Box(min(a, b), min(c, d), max(a, b), max(c, d))
    for x, y, x2, y2 in strokes(box):
        assert box.left - 0.1 <= x <= x2 <= box.right + 0.1
        assert box.top - 0.1 <= y2 <= y <= box.bottom + 0.1
        assert abs((x2 - x) - (y - y2)) <= 0.21


def test_strokes_are_evenly_apart_and_cross_the_whole_box() -> None:
    box = Box(10, 20, 40, 120)
    levels = [(120 - y) - (x - 10) for x, y, _, _ in strokes(box)]
    assert all(math.isclose(b - a, GAP, abs_tol=0.3) for a, b in pairwise(levels))
    assert levels[0] <= -30 + 1.5 * GAP
    assert levels[-1] >= 100 - 1.5 * GAP


def test_nothing_is_hatched_where_all_is_valid() -> None:
    figure = bars(Level.VALID, Level.VALID)
    assert hatches(figure) == []
    assert HATCHED not in figure.note
    assert hatching([]) == hatching([Box(0, 10, 2, 11)]) == []


def test_bars_that_are_not_valid_are_hatched_where_they_are_drawn() -> None:
    figure = bars(Level.VALID, Level.INDICATIVE, Level.VALID, Level.INVALID)
    assert HATCHED in figure.note
    (layer,) = hatches(figure)
    boxes = drawn_boxes(figure, (1,))
    assert len(boxes) == 2
    for x, y in ends(layer):
        assert sum(_holds(box, x, y) for box in boxes) == 1
    for box in boxes:
        inside = [x for x, y in ends(layer) if _holds(box, x, y)]
        assert max(inside) > box.right - GAP


def test_hatching_lies_over_the_bars_and_under_their_marks() -> None:
    kinds = [layer["mark"]["type"] for layer in bars(Level.VALID, Level.INVALID).spec["layer"]]
    at = next(
        place
        for place, layer in enumerate(bars(Level.VALID, Level.INVALID).spec["layer"])
        if layer in hatches(bars(Level.VALID, Level.INVALID))
    )
    assert "rect" in kinds[:at]
    assert "rect" not in kinds[at:]
    assert "point" in kinds[at:]


def _holds(box: Box, x: float, y: float) -> bool:
    """Whether the place lies in the box, to the rounding of a drawing."""
    return box.left - 0.2 <= x <= box.right + 0.2 and box.top - 0.2 <= y <= box.bottom + 0.2
