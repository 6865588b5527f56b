"""Hatching is where the bars are that are not valid, and nowhere else."""

from __future__ import annotations

import math
import re
from collections.abc import Collection
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from iolab.analysis.points import PointSummary
from iolab.core.metric import VerdictLevel
from iolab.report.brief import Brief
from iolab.report.charts.chart import Chart, ChartGroup
from iolab.report.charts.lines import ChartLine, rate_and_latency_chart, rate_quantity
from iolab.report.charts.palette import SERIES
from iolab.report.charts.svg import HATCH_GAP, draw_inline_svg, hatching_line_ends
from iolab.report.page import groups_with_distinguishing_marks
from tests.facts import tells
from tests.report import shared
from tests.report.charts.outcomes import points, result

UNITS = st.floats(min_value=0, max_value=200)


def bars(*levels: VerdictLevel) -> Chart:
    """A point of each level, in turn of one of two configurations."""
    found = [
        ChartLine(
            f"c{turn}",
            SERIES[turn],
            (),
            points(
                [
                    result(depth, 1e5 - 1e4 * depth, level)
                    for depth, level in enumerate(levels, 1)
                    if depth % 2 != turn
                ]
            ),
        )
        for turn in (0, 1)
    ]
    lines = [line for line in found if line.points]
    return rate_and_latency_chart("s", "iodepth", lines, rate_quantity("iops"))


Box = tuple[float, float, float, float]
"""Left, top, right and bottom."""


def hatches(figure: Chart) -> list[tuple[float, float]]:
    """The ends of all strokes of paper."""
    found = re.findall(r'd="([^"]*)" stroke="var\(--paper\)"', draw_inline_svg(figure).svg)
    return [
        (float(x), float(y)) for d in found for x, y in re.findall(r"[ML](-?[\d.]+),(-?[\d.]+)", d)
    ]


def drawn_boxes(figure: Chart, *tokens: int) -> list[Box]:
    """The bars as they are drawn, read from the drawing."""
    names = "|".join(SERIES[index].name for index in tokens)
    pattern = rf'd="M([\d.]+),([\d.]+)h([\d.]+)v([\d.]+)h[^"]*" fill="var\(--(?:{names})\)"'
    found = [tuple(map(float, match)) for match in re.findall(pattern, draw_inline_svg(figure).svg)]
    return [(x, y, x + width, y + height) for x, y, width, height in found]


@given(UNITS, UNITS, UNITS, UNITS)
def test_strokes_end_at_the_edges_and_rise_to_the_right(
    a: float, b: float, c: float, d: float
) -> None:
    box = (min(a, b), min(c, d), max(a, b), max(c, d))
    left, top, right, bottom = box
    for x, y, x2, y2 in hatching_line_ends(*box):
        assert left - 0.1 <= x <= x2 <= right + 0.1
        assert top - 0.1 <= y2 <= y <= bottom + 0.1
        assert abs((x2 - x) - (y - y2)) <= 0.21


def test_strokes_are_evenly_apart_and_cross_the_whole_box() -> None:
    levels = [(120 - y) - (x - 10) for x, y, _, _ in hatching_line_ends(10, 20, 40, 120)]
    assert all(math.isclose(b - a, HATCH_GAP, abs_tol=0.3) for a, b in pairwise(levels))
    assert levels[0] <= -30 + 1.5 * HATCH_GAP
    assert levels[-1] >= 100 - 1.5 * HATCH_GAP


def test_nothing_is_hatched_where_all_is_valid() -> None:
    figure = bars(VerdictLevel.VALID, VerdictLevel.VALID)
    assert hatches(figure) == []
    assert "atched" not in figure.note
    assert list(hatching_line_ends(0, 10, 2, 11)) == []


def test_bars_that_are_indicative_are_hatched_where_they_are_drawn() -> None:
    figure = bars(
        VerdictLevel.VALID, VerdictLevel.INDICATIVE, VerdictLevel.VALID, VerdictLevel.INDICATIVE
    )
    assert "atched" in figure.note
    boxes = drawn_boxes(figure, 1)
    assert len(boxes) == 2
    for x, y in hatches(figure):
        assert sum(_holds(box, x, y) for box in boxes) == 1
    for box in boxes:
        inside = [x for x, y in hatches(figure) if _holds(box, x, y)]
        assert max(inside) > box[2] - HATCH_GAP


def test_a_page_without_valid_points_says_so_once_and_hatches_nothing() -> None:
    figure = bars(VerdictLevel.INDICATIVE, VerdictLevel.INDICATIVE)
    assert hatches(figure)
    brief = shared.brief("sweep")
    marked = {
        name: groups_with_distinguishing_marks(
            replace(brief, points=_points_of_levels(brief, levels)), [ChartGroup("", (figure,))]
        )[0].charts[0]
        for name, levels in {
            "all": {VerdictLevel.INDICATIVE},
            "some": {VerdictLevel.INDICATIVE, VerdictLevel.VALID},
            "crossed": {VerdictLevel.INDICATIVE, VerdictLevel.INVALID},
        }.items()
    }
    assert marked["some"] == figure
    assert not hatches(marked["all"])
    assert not hatches(marked["crossed"])
    assert "All points are indicative" in marked["all"].note
    assert "not crossed are indicative" in marked["crossed"].note
    assert "atched" not in marked["all"].note + marked["crossed"].note


def _points_of_levels(brief: Brief, levels: Collection[VerdictLevel]) -> tuple[PointSummary, ...]:
    return tuple(replace(brief.points[0], verdict_level=level) for level in levels)


def test_invalid_bars_are_pale_and_crossed_out_and_not_hatched() -> None:
    figure = bars(VerdictLevel.INVALID, VerdictLevel.INVALID)
    assert hatches(figure) == []
    assert tells(figure.note, "Pale or crossed: invalid")
    svg = draw_inline_svg(figure).svg
    corners = drawn_boxes(figure, 0, 1)
    assert len(corners) == svg.count('fill-opacity="0.18"') == 2
    for left, top, right, bottom in corners:
        # From corner to corner, both ways.
        strokes = [
            [tuple(map(float, place)) for place in re.findall(r"([\d.]+),([\d.]+)", path)]
            for path in re.findall(r'<path d="(M[^"]*L[^"]*)" stroke="var\(--series', svg)
        ]
        ends = [place for path in strokes for place in path]
        assert (left, top) in ends
        assert (right, top) in ends
        assert (left, bottom) in ends


def test_hatching_lies_over_the_bars() -> None:
    svg = draw_inline_svg(bars(VerdictLevel.INDICATIVE)).svg
    bar = svg.index('fill="var(--series-1)"')
    hatching = svg.index('stroke="var(--paper)"')
    assert bar < hatching


def _holds(box: Box, x: float, y: float) -> bool:
    """Whether the place lies in the box, to the rounding of a drawing."""
    left, top, right, bottom = box
    return left - 0.2 <= x <= right + 0.2 and top - 0.2 <= y <= bottom + 0.2


def test_lines_at_unlike_loads_say_where_they_can_be_compared() -> None:
    def line(turn: int, *depths: int) -> ChartLine:
        found = points([result(depth, 1e4 * depth) for depth in depths])
        return ChartLine(f"c{turn}", SERIES[turn], (), found)

    def note(*lines: ChartLine) -> str:
        return rate_and_latency_chart("s", "iodepth", lines, rate_quantity("iops")).note

    assert "ompare" not in note(line(0, 1, 8), line(1, 1, 8))
    assert tells(note(line(0, 1, 8), line(1, 1, 16)), "Compare at iodepth 1:")
    assert "none can be compared" in note(line(0, 8), line(1, 16))
