from __future__ import annotations

import json
import re
from dataclasses import replace

from iolab.core.configuration import Cost
from iolab.core.metric import Level, Metric
from iolab.report.charts.chart import Figure
from iolab.report.charts.cost import ROWS_MAX, SHADES, cost_figure
from iolab.report.charts.points import marks_of, views_of
from iolab.report.charts.value import BARS_END, BARS_START, GROUPS_MAX, Bar, BarGroup, lying_bars
from iolab.report.palette import SERIES
from iolab.report.render import draw
from tests.report.charts.values import TABLE, bought, groups


def drawn(*given: BarGroup) -> Figure | None:
    return lying_bars("S", "T", given, finding="F.", table=TABLE)


def texts(figure: Figure) -> list[str]:
    return [
        row["text"]
        for layer in figure.spec["layer"]
        if layer["mark"]["type"] == "text"
        for row in layer["data"]["values"]
    ]


def test_every_bar_is_drawn_with_its_name_its_number_and_its_place() -> None:
    figure = drawn(*groups())
    assert figure is not None
    bars = [layer for layer in figure.spec["layer"] if layer["mark"]["type"] == "rect"]
    assert sum(len(layer["data"]["values"]) for layer in bars) == 4
    assert [layer["mark"]["fill"] for layer in bars] == [one.stand_in for one in SERIES[:3]]
    assert "642 at iodepth 16" in texts(figure)
    assert {"Mainstream", "High capacity", "Printed", "Random read"} <= set(texts(figure))


def test_bars_that_are_not_valid_are_hatched_and_marked_within_themselves() -> None:
    figure = drawn(*groups())
    assert figure is not None
    strokes = [layer for layer in figure.spec["layer"] if layer["mark"]["type"] == "line"]
    xs = [row["x"] for row in strokes[0]["data"]["values"]]
    assert len(strokes) == 1
    assert min(xs) >= BARS_START
    assert max(xs) <= BARS_END
    marks = [layer for layer in figure.spec["layer"] if layer["mark"]["type"] == "point"]
    assert [len(layer["data"]["values"]) for layer in marks] == [1, 1]
    assert "Hatched" in figure.note
    valid = drawn(BarGroup("", (Bar("a", SERIES[0], Metric(1.0, "1/s"), Level.VALID),)))
    assert valid is not None
    assert "Hatched" not in valid.note


def test_intervals_of_chance_and_of_rounding_are_told_apart() -> None:
    figure = drawn(*groups())
    assert figure is not None
    (rules,) = (layer for layer in figure.spec["layer"] if layer["mark"]["type"] == "rule")
    assert [(row["x"], row["x2"]) for row in rules["data"]["values"]] == [(600, 700), (1000, 1100)]
    assert "95 % interval" in figure.note
    assert "rounding" in figure.note


def test_one_configuration_needs_no_names() -> None:
    one = (BarGroup("Reads", (Bar("Only", SERIES[0], Metric(5.0, "1/s")),)),)
    for named in (True, False):
        figure = lying_bars("S", "T", one, finding="F.", table=TABLE, named=named)
        assert figure is not None
        assert ("Only" in texts(figure)) is named


def test_nothing_is_drawn_of_no_values_and_no_more_than_fits() -> None:
    assert drawn() is None
    assert drawn(BarGroup("x", (Bar("a", SERIES[0], Metric(None, "1/s")),))) is None
    one = groups()[0]
    many = drawn(*[one] * (GROUPS_MAX + 2))
    assert many is not None
    assert "6 bars more" in many.note


def test_parts_of_a_cost_are_as_long_as_their_share_and_shades_of_one_colour() -> None:
    figure = cost_figure("Cost", "EUR", bought(), TABLE)
    assert figure is not None
    pieces = [
        (layer["encoding"]["x2"]["value"] - layer["encoding"]["x"]["value"], layer["mark"])
        for layer in figure.spec["layer"]
        if layer["mark"]["type"] == "rect"
    ]
    servers, network, storage = pieces[:3]
    assert [mark["fillOpacity"] for _, mark in pieces[:3]] == list(SHADES)
    assert {mark["fill"] for _, mark in pieces[:3]} == {SERIES[0].stand_in}
    assert abs(servers[0] / network[0] - 180 / 40) < 0.1
    assert abs(storage[0] / network[0] - 130 / 40) < 0.1
    assert "461 TB raw" in texts(figure)
    assert "Mainstream: 350 k" in texts(figure)


def test_a_chart_of_costs_has_one_currency() -> None:
    euros, yen = (cost_figure("Cost", money, bought(), TABLE) for money in ("EUR", "JPY"))
    assert euros is not None
    assert yen is not None
    assert "Elsewhere" not in json.dumps(euros.spec) + euros.finding
    assert "Mainstream" not in json.dumps(yen.spec) + yen.finding
    assert cost_figure("Cost", "USD", bought(), TABLE) is None


def test_a_cost_of_nothing_is_none_and_many_are_counted() -> None:
    (first, *_) = bought()
    free = replace(first.configuration, cost=Cost("EUR", 0.0, 0.0, 0.0))
    assert cost_figure("Cost", "EUR", [replace(first, configuration=free)], TABLE) is None
    many = cost_figure("Cost", "EUR", [first] * (ROWS_MAX + 1), TABLE)
    assert many is not None
    assert "1 configuration more" in many.note


def test_hostile_names_reach_no_expression() -> None:
    name = "'+alert(1)+'\u202e"
    figure = drawn(BarGroup(name, (Bar(name, SERIES[0], Metric(5.0, "1/s"), None, name),)))
    assert figure is not None
    encoded = json.dumps([layer["encoding"] for layer in figure.spec["layer"]])
    assert "alert" not in encoded
    assert "\u202e" not in json.dumps(figure.spec, ensure_ascii=False)


def test_strokes_of_hatching_do_not_run_on_into_each_other() -> None:
    figure = drawn(*groups())
    assert figure is not None
    path = re.search(r'<path d="([^"]+)" stroke="var\(--paper\)"', draw(figure, "f"))
    assert path is not None
    assert all(part.count("L") == 1 for part in path[1].split("M") if part)


def test_a_pointer_is_told_the_values_of_bars_and_not_their_places() -> None:
    figure = drawn(*groups())
    assert figure is not None
    views = views_of(figure.spec)
    asked = marks_of(figure, views, {})
    ends = [row["x2"] for one in views[0].layers if one.kind == "rect" for row in one.rows]
    assert [x for one in asked for x in one.x] == ends
    assert {y for one in asked for y in one.y} == {None}
