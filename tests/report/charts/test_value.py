from __future__ import annotations

import json
import re

from msgspec.structs import replace

from iolab.core.configuration import ProcurementCost
from iolab.core.metric import Level, Metric
from iolab.report.charts.bars import GROUPS_MAX, Bar, BarGroup, horizontal_bar_chart
from iolab.report.charts.chart import Boxes, Figure, LineSegments, Mark, Points, TextMark
from iolab.report.charts.cost import ROWS_MAX, SHADES, procurement_cost_chart
from iolab.report.charts.palette import SERIES
from iolab.report.charts.svg import draw_inline_svg
from tests.report.charts.values import TABLE, bought, groups


def drawn(*given: BarGroup) -> Figure | None:
    return horizontal_bar_chart("S", "T", given, finding="F.", table=TABLE)


def marks(figure: Figure) -> tuple[Mark, ...]:
    (plot,) = figure.plots
    return tuple(plot.marks)


def texts(figure: Figure) -> list[str]:
    words = [one for one in marks(figure) if isinstance(one, TextMark)]
    return [text for one in words for *_, text in one.places]


def test_every_bar_is_drawn_with_its_name_its_number_and_its_place() -> None:
    figure = drawn(*groups())
    assert figure is not None
    bars = [one for one in marks(figure) if isinstance(one, Boxes)]
    assert sum(len(one.boxes) for one in bars) == 4
    assert [one.token for one in bars] == list(SERIES[:3])
    assert "642 at iodepth 16" in texts(figure)
    assert {"Mainstream", "High capacity", "Printed", "Random read"} <= set(texts(figure))


def test_bars_that_are_not_valid_are_hatched_and_marked() -> None:
    figure = drawn(*groups())
    assert figure is not None
    doubts = [one for one in marks(figure) if isinstance(one, Points)]
    assert [one.levels for one in doubts] == [[Level.INDICATIVE], [Level.INVALID]]
    assert "Hatched" in figure.note
    valid = drawn(BarGroup("", (Bar("a", SERIES[0], Metric(1.0, "1/s"), Level.VALID),)))
    assert valid is not None
    assert "Hatched" not in valid.note


def test_intervals_of_chance_and_of_rounding_are_told_apart() -> None:
    figure = drawn(*groups())
    assert figure is not None
    rules = [one for one in marks(figure) if isinstance(one, LineSegments)]
    ends = [(x, x2) for one in rules for x, _, x2, _ in one.segments]
    assert ends == [(600, 700), (1000, 1100)]
    assert "95 % interval" in figure.note
    assert "rounding" in figure.note


def test_one_configuration_needs_no_names() -> None:
    one = (BarGroup("Reads", (Bar("Only", SERIES[0], Metric(5.0, "1/s")),)),)
    for named in (True, False):
        figure = horizontal_bar_chart("S", "T", one, finding="F.", table=TABLE, show_names=named)
        assert figure is not None
        assert ("Only" in texts(figure)) is named


def test_nothing_is_drawn_of_no_values_and_no_more_than_fits() -> None:
    assert drawn() is None
    assert drawn(BarGroup("x", (Bar("a", SERIES[0], Metric(None, "1/s")),))) is None
    one = groups()[0]
    many = drawn(*[one] * (GROUPS_MAX + 2))
    assert many is not None
    assert "36 of 42 bars" in many.note


def test_parts_of_a_cost_are_as_long_as_their_share_and_shades_of_one_colour() -> None:
    figure = procurement_cost_chart("EUR", bought(), TABLE)
    assert figure is not None
    pieces = [one for one in marks(figure) if isinstance(one, Boxes)][:3]
    assert [one.opacity for one in pieces] == list(SHADES)
    assert {one.token for one in pieces} == {SERIES[0]}
    servers, network, storage = (
        (x2 or 0) - (x or 0) for one in pieces for x, _, x2, _ in one.boxes
    )
    assert abs(servers / network - 180 / 40) < 0.1
    assert abs(storage / network - 130 / 40) < 0.1
    assert "461 TB raw" in texts(figure)
    assert "Mainstream: 350 k" in texts(figure)


def test_a_long_name_stands_whole_above_the_bar_and_the_capacity() -> None:
    name = " ".join(f"word-{number}" for number in range(20))
    (first, *_) = bought()
    named = replace(first, configuration=replace(first.configuration, title=name))
    figure = procurement_cost_chart("EUR", [named], TABLE)
    assert figure is not None
    assert name in " ".join(texts(figure))
    words = [one for one in marks(figure) if isinstance(one, TextMark)]
    heights = {text: y for one in words for _, y, text in one.places}
    capacity = min(y for text, y in heights.items() if "TB" in text)
    assert all(y < capacity for text, y in heights.items() if "word-" in text)


def test_a_chart_of_costs_has_one_currency() -> None:
    euros, yen = (procurement_cost_chart(money, bought(), TABLE) for money in ("EUR", "JPY"))
    assert euros is not None
    assert yen is not None
    assert "Elsewhere" not in str(texts(euros)) + euros.finding
    assert "Mainstream" not in str(texts(yen)) + yen.finding
    assert procurement_cost_chart("USD", bought(), TABLE) is None


def test_a_cost_of_nothing_is_none_and_many_are_counted() -> None:
    (first, *_) = bought()
    free = replace(first.configuration, cost=ProcurementCost("EUR", 0.0, 0.0, 0.0))
    assert procurement_cost_chart("EUR", [replace(first, configuration=free)], TABLE) is None
    many = procurement_cost_chart("EUR", [first] * (ROWS_MAX + 1), TABLE)
    assert many is not None
    assert "1 configuration more" in many.note


def test_hostile_names_are_text() -> None:
    name = "<b>'+alert(1)+'\u202e"
    figure = drawn(BarGroup(name, (Bar(name, SERIES[0], Metric(5.0, "1/s"), None, name),)))
    assert figure is not None
    made = draw_inline_svg(figure)
    assert "<b>" not in made.svg + made.marks_json
    assert "\u202e" not in made.svg + made.marks_json


def test_strokes_of_hatching_do_not_run_on_into_each_other() -> None:
    figure = drawn(*groups())
    assert figure is not None
    path = re.search(r'<path d="([^"]+)" stroke="var\(--paper\)"', draw_inline_svg(figure).svg)
    assert path is not None
    assert all(part.count("L") == 1 for part in path[1].split("M") if part)


def test_a_pointer_is_told_the_values_of_bars_and_not_their_places() -> None:
    figure = drawn(*groups())
    assert figure is not None
    told = json.loads(draw_inline_svg(figure).marks_json)
    ends = [
        round(x2 or 0) for one in marks(figure) if isinstance(one, Boxes) for *_, x2, _ in one.boxes
    ]
    assert [round(x) for one in told["marks"] for x in told["axes"][one["x"]]] == ends
    assert not [one for one in told["marks"] if "y" in one]
    assert [one["n"] for one in told["marks"]] == ["Mainstream", "High capacity", "Printed"]
