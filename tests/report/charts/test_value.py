from __future__ import annotations

import json
from collections import Counter

import pytest
from msgspec.structs import replace

from iolab.core.configuration import ProcurementCost
from iolab.core.metric import Metric, VerdictLevel
from iolab.report.charts.chart import (
    HEAD,
    Chart,
    LineSegments,
    Mark,
    Markers,
    Rectangles,
    TextMark,
)
from iolab.report.charts.cost import CONFIGURATIONS_MAX, SHADES, procurement_cost_chart
from iolab.report.charts.palette import SERIES
from iolab.report.charts.rows import (
    BARS_TOP,
    NAME_LINES,
    POINTS_HEIGHT,
    ROWS_MAX,
    Dot,
    DotRow,
    dot_chart,
)
from iolab.report.charts.svg import draw_inline_svg
from tests.facts import tells
from tests.report.charts.values import TABLE, bought, groups, styles


def drawn(*given: DotRow) -> Chart | None:
    return dot_chart("S", "T", given, finding="F.", table=TABLE)


def cost_chart(currency: str) -> Chart | None:
    return procurement_cost_chart(currency, bought(), styles(*bought()), TABLE)


def marks(figure: Chart) -> tuple[Mark, ...]:
    return tuple(mark for plot in figure.plots for mark in plot.marks)


def texts(figure: Chart) -> list[str]:
    words = [one for one in marks(figure) if isinstance(one, TextMark)]
    return [text for one in words for *_, text in one.places]


def test_every_value_has_a_dot_a_number_and_the_name_of_its_configuration() -> None:
    figure = drawn(*groups())
    assert figure is not None
    dots = [one for one in marks(figure) if isinstance(one, Markers)]
    assert sum(len(one.places) for one in dots) == 4
    assert [one.color for one in dots] == list(SERIES[:3])
    assert {"642", "Random read", "Random write"} <= set(texts(figure))
    measured = [dot for row in groups() for dot in row.dots if dot.value.value is not None]
    dots_of = Counter(dot.name for dot in measured)
    assert {name: texts(figure).count(name) for name in dots_of} == dots_of
    named = [
        replace(row, title=f"4 KiB {row.title.lower()}", dots=row.dots[:1]) for row in groups()
    ]
    alike = drawn(*(replace(row, dots=(named[0].dots[0],)) for row in named))
    assert alike is not None
    assert alike.title.endswith(": 4 KiB random")
    assert {"read", "write"} <= set(texts(alike))


def test_dots_of_one_row_have_a_lane_each() -> None:
    figure = drawn(*groups())
    assert figure is not None
    heights = [y for one in marks(figure) if isinstance(one, Markers) for _, y in one.places]
    assert len(set(heights)) == len(heights)


def test_dots_that_are_not_valid_have_marks_of_their_own_that_a_note_explains() -> None:
    figure = drawn(*groups())
    assert figure is not None
    levels = [one.verdict_levels for one in marks(figure) if isinstance(one, Markers)]
    assert levels == [
        [VerdictLevel.VALID, VerdictLevel.INDICATIVE],
        [VerdictLevel.INVALID],
        [VerdictLevel.VALID],
    ]
    assert "indicative" in figure.note
    assert "invalid" in figure.note
    valid = drawn(DotRow("", (Dot("a", SERIES[0], Metric(1.0, "1/s"), VerdictLevel.VALID),)))
    assert valid is not None
    assert "invalid" not in valid.note


def test_intervals_of_chance_and_of_rounding_are_told_apart() -> None:
    figure = drawn(*groups())
    assert figure is not None
    spread = [one for one in marks(figure) if isinstance(one, LineSegments) and one.width > 1]
    assert [(x, x2) for one in spread for x, _, x2, _ in one.segments] == [(600, 700), (1000, 1100)]
    assert "95 % interval" in figure.note
    assert "rounding" in figure.note


def test_one_configuration_needs_no_names() -> None:
    figure = drawn(DotRow("Reads", (Dot("Only", SERIES[0], Metric(5.0, "1/s")),)))
    assert figure is not None
    assert "Only" not in texts(figure)


def test_nothing_is_drawn_of_no_values_and_no_more_than_fits() -> None:
    assert drawn() is None
    assert drawn(DotRow("x", (Dot("a", SERIES[0], Metric(None, "1/s")),))) is None
    one = groups()[0]
    many = drawn(*[one] * (ROWS_MAX + 2))
    assert many is not None
    assert f"{3 * ROWS_MAX} of {3 * ROWS_MAX + 6} dots" in many.note


def test_a_long_name_takes_few_lines() -> None:
    name = " ".join(f"word-{number}" for number in range(20))
    figure = drawn(DotRow(name, (Dot("a", SERIES[0], Metric(1.0, "1/s")),)))
    assert figure is not None
    assert sum("word" in text for text in texts(figure)) == NAME_LINES


@pytest.mark.parametrize("columns", [4, 6, 12])
def test_a_chart_is_as_wide_as_its_columns_and_its_letters_stay_as_large(columns: int) -> None:
    figure = drawn(*groups())
    assert figure is not None
    wide = replace(figure, page_columns=columns)
    svg = draw_inline_svg(wide).svg
    assert f'width="{wide.width}"' in svg
    assert f'viewBox="0 0 {wide.width} ' in svg
    assert (f'width="{wide.narrowed.width}"' in svg) is True
    for view in (wide, wide.narrowed):
        (plot,) = view.fitted_plots
        assert plot.left + plot.width < view.width


def test_parts_of_a_cost_are_as_long_as_their_share_and_shades_of_one_colour() -> None:
    figure = cost_chart("EUR")
    assert figure is not None
    bars = [one for one in figure.plots[1].marks if isinstance(one, Rectangles)]
    assert [one.opacity for one in bars[:3]] == list(SHADES)
    assert {one.color for one in bars[:3]} == {SERIES[0]}
    lengths = [(x2 or 0) - (x or 0) for one in bars for x, _, x2, _ in one.boxes]
    assert lengths == [180e3, 40e3, 130e3, 40e3, 260e3]
    assert {"350 k", "servers", "network 40,000", "storage"} <= set(texts(figure))
    assert any(tells(text, "Mainstream", "TB usable") for text in texts(figure))


def test_a_chart_of_costs_has_one_currency() -> None:
    euros, yen = (cost_chart(money) for money in ("EUR", "JPY"))
    assert euros is not None
    assert yen is not None
    assert "Elsewhere" not in str(texts(euros)) + euros.finding
    assert "Mainstream" not in str(texts(yen)) + yen.finding
    assert cost_chart("USD") is None


def test_a_cost_of_nothing_is_none_and_many_are_counted() -> None:
    first, own = bought()[0], styles(bought()[0])
    free = replace(first, cost=ProcurementCost("EUR", 0.0, 0.0, 0.0))
    assert procurement_cost_chart("EUR", [free], own, TABLE) is None
    many = procurement_cost_chart("EUR", [first] * (CONFIGURATIONS_MAX + 1), own, TABLE)
    assert many is not None
    assert "1 configuration more" in many.note


def test_hostile_names_are_text() -> None:
    name = "<b>'+alert(1)+'\u202e"
    figure = drawn(DotRow(name, (Dot(name, SERIES[0], Metric(5.0, "1/s"), None, name),)))
    assert figure is not None
    made = draw_inline_svg(figure)
    assert "<b>" not in made.svg + made.marks_json
    assert "\u202e" not in made.svg + made.marks_json


def test_a_pointer_is_told_the_values_of_dots_and_not_their_places() -> None:
    figure = drawn(*groups())
    assert figure is not None
    told = json.loads(draw_inline_svg(figure).marks_json)
    values = [round(x) for one in marks(figure) if isinstance(one, Markers) for x, _ in one.places]
    assert [round(x) for one in told["marks"] for x in told["axes"][one["x"]]] == values
    assert not [one for one in told["marks"] if "y" in one]
    assert [one["n"] for one in told["marks"]] == ["Mainstream", "High capacity", "Printed"]


def test_a_few_bars_of_cost_fill_the_height_of_the_charts_beside_them() -> None:
    ends = {}
    for number in (2, 3, 12):
        own = bought()[:1] * number
        figure = procurement_cost_chart("EUR", own, styles(*bought()), TABLE)
        assert figure is not None
        boxes = [
            box
            for mark in figure.plots[1].marks
            if isinstance(mark, Rectangles)
            for box in mark.boxes
        ]
        bottoms = [bottom for *_, bottom in boxes if bottom is not None]
        ends[number] = max(bottoms)
        assert ends[number] <= figure.plots[1].height
    beside = HEAD + POINTS_HEIGHT - BARS_TOP
    assert ends[2] == pytest.approx(beside)
    assert ends[3] == pytest.approx(beside)
    assert ends[12] > beside


def test_an_axis_ends_at_a_tick_beyond_the_data_and_values_keep_the_unit_of_the_page() -> None:
    rates = tuple(
        Dot("a", SERIES[0], Metric(rate, "bytes/s"), VerdictLevel.VALID) for rate in (9.01e8, 1.8e9)
    )
    figure = drawn(DotRow("reads", rates))
    assert figure is not None
    (plot,) = figure.plots
    assert plot.x is not None
    assert plot.x.ticks[-1][0] >= 1.8
    assert plot.x.scale.high == plot.x.ticks[-1][0]
    assert {"901 MB/s", "1.80"} <= set(texts(figure))
