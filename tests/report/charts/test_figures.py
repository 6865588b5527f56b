from __future__ import annotations

import json
import re
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iolab.core.metric import Level
from iolab.report.charts.chart import LINE_GAP, linear_scale, log_scale, spread, time_ticks
from iolab.report.charts.distribution import MARKS, Drawn, at_percent, distribution_figure
from iolab.report.charts.lines import MAX_LINES, MEAN, Line, rate_of, shape_of
from iolab.report.charts.timeline import TABLE_ROWS, timeline_figure
from iolab.report.charts.tradeoff import tradeoff_figure
from iolab.report.palette import PAPER, SERIES
from iolab.report.render import figure_pdf
from iolab.report.series import Curve, Panel, Timeline, Trace
from tests.report.charts.outcomes import WORKLOAD, points, rate_figure, result
from tests.report.charts.specs import CURVE, figures, lines


@pytest.mark.parametrize("name", ["throughput", "timeline", "value"])
def test_a_figure_has_its_whole_size_on_a_page_of_its_own(name: str) -> None:
    figure = figures()[name]
    found = re.findall(rb"/MediaBox ?\[0 0 ([\d.]+) ([\d.]+)\]", figure_pdf(figure))
    assert found
    assert [float(one) for one in found[0]] == [figure.width, figure.height]


def test_each_verdict_has_a_shape_and_only_valid_is_filled() -> None:
    layers = rate_figure(WORKLOAD, "iodepth", lines()[:1]).spec["layer"]
    points = [layer for layer in layers if layer["mark"]["type"] == "point"]
    assert [layer["mark"]["shape"] for layer in points] == [shape_of(level) for level in Level]
    hollow = [layer["mark"]["fill"] == PAPER.stand_in for layer in points]
    assert hollow == [False, True, True]


def test_a_run_that_is_not_valid_is_drawn_and_never_hidden() -> None:
    figure = rate_figure(WORKLOAD, "iodepth", lines()[:1])
    drawn = [
        row
        for layer in figure.spec["layer"]
        if layer["mark"]["type"] == "point"
        for row in layer["data"]["values"]
    ]
    assert sorted(row["x"] for row in drawn) == [1, 4, 8]
    assert len(figure.table.rows) == 4
    assert [row[-1].level for row in figure.table.rows][2] is Level.INVALID


def test_depths_stand_at_doublings() -> None:
    encoding = rate_figure(WORKLOAD, "iodepth", lines()).spec["layer"][0]["encoding"]
    assert encoding["x"]["scale"]["base"] == 2
    assert encoding["x"]["axis"]["values"] == [1, 4, 8, 16]


def test_line_and_bar_tell_what_is_published_and_small_marks_the_runs() -> None:
    runs = [result(8, iops, repeat=n) for n, iops in enumerate((10e3, 11e3, 12e3), 1)]
    (point,) = points(runs)
    metric = point.metrics["iops"]
    layers = rate_figure(WORKLOAD, "iodepth", [Line("c", SERIES[0], (), (point,))]).spec["layer"]
    line, small, bar, large = layers[:4]
    assert [row["y"] for row in small["data"]["values"]] == [10.0, 11.0, 12.0]
    assert small["mark"]["size"] < large["mark"]["size"]
    assert line["data"]["values"] == large["data"]["values"]
    assert metric.value is not None
    assert line["data"]["values"][0]["y"] == pytest.approx(metric.value / 1e3)
    (ends,) = bar["data"]["values"]
    assert (ends["y"] * 1e3, ends["y2"] * 1e3) == pytest.approx((metric.low, metric.high))


def test_a_run_that_did_not_enter_is_drawn_and_tabled_with_its_verdict() -> None:
    found = points([result(8, 10e3), result(8, 90e3, Level.INVALID, repeat=2)])
    figure = rate_figure(WORKLOAD, "iodepth", [Line("c", SERIES[0], (), found)])
    drawn = [layer for layer in figure.spec["layer"] if layer["mark"]["type"] == "point"]
    shapes = [layer["mark"]["shape"] for layer in drawn]
    assert shapes == [shape_of(level) for level in (Level.VALID, Level.INVALID, Level.VALID)]
    texts = [[cell.text for cell in row[2:4]] for row in figure.table.rows]
    assert texts == [["all", "10 k IOPS"], ["1", "10 k IOPS"], ["2", "90 k IOPS"]]


def test_the_table_of_a_long_run_gives_the_highest_p99_and_averages_none() -> None:
    cells = 2 * TABLE_ROWS
    tail = Trace("p99", tuple(1e6 if cell % 2 else 9e6 for cell in range(cells)))
    load = Trace("read", tuple(1e3 if cell % 2 else 3e3 for cell in range(cells)))
    times = tuple(cell + 0.5 for cell in range(cells))
    panels = (Panel("Load", "1/s", (load,)), Panel("Latency", "ns", (tail,), log=True))
    long = Timeline(times, 1.0, 0.0, float(cells), panels)
    table = timeline_figure("A run", "Over time", long, SERIES[0]).table
    assert [column.title for column in table.columns] == [
        "From",
        "Load, read",
        "Latency, p99 (highest)",
    ]
    assert {tuple(cell.text for cell in row[1:]) for row in table.rows} == {("2 k IOPS", "9 ms")}


def test_lines_beyond_the_limit_stand_in_the_table_alone() -> None:
    many = [
        Line(f"c{i}", SERIES[0], (), points((result(1, 1e3), result(2, 2e3)))) for i in range(11)
    ]
    figure = rate_figure(WORKLOAD, "iodepth", many)
    drawn = [layer for layer in figure.spec["layer"] if layer["mark"]["type"] == "line"]
    assert (len(drawn), len(figure.table.rows)) == (MAX_LINES, 22)
    assert "3 lines more" in figure.note


def test_a_hostile_name_reaches_no_expression() -> None:
    name = "'+alert(1)+'\u202e\x1b"
    many = [Line(name, SERIES[0], (), lines()[0].points), lines()[1]]
    spec = rate_figure(WORKLOAD, "iodepth", many).spec
    text = json.dumps([layer["encoding"] for layer in spec["layer"]])
    assert "alert" not in text
    assert "\\u202e" not in json.dumps(spec).replace("\\\\u202e", "")


def test_a_curve_tells_nothing_beyond_what_its_ios_support() -> None:
    assert at_percent(CURVE, 99.9) == 2e6
    assert at_percent(CURVE, 99.99) is None
    assert at_percent(Curve("read", 5, (), ()), MARKS[0]) is None


@given(st.lists(st.floats(min_value=0, max_value=190), min_size=1, max_size=8))
def test_labels_keep_apart_and_keep_their_order(wanted: list[float]) -> None:
    placed = spread(wanted, LINE_GAP, 0, 190)
    ordered = sorted(placed)
    assert all(b - a >= LINE_GAP - 1e-6 for a, b in pairwise(ordered))
    pairs = sorted(zip(wanted, placed, strict=True))
    assert [place for _, place in pairs] == pytest.approx(ordered)
    assert max(placed) <= 190 + 1e-6


@given(st.lists(st.floats(min_value=1e-3, max_value=1e12), min_size=1, max_size=9))
def test_every_value_lies_within_its_scale(values: list[float]) -> None:
    for scale in (
        linear_scale("1/s", values),
        log_scale("ns", values),
        log_scale("ns", values, most=3),
    ):
        shares = [scale.share(scale.of(value)) for value in values]
        assert min(shares) >= -1e-9
        assert max(shares) <= 1 + 1e-9
        assert scale.at(scale.share(scale.of(values[0]))) == pytest.approx(scale.of(values[0]))
        assert scale.low <= scale.ticks[0] <= scale.ticks[-1] <= scale.high * (1 + 1e-9)


@given(st.floats(min_value=0.5, max_value=100_000))
def test_times_have_few_round_ticks(span_s: float) -> None:
    ticks = time_ticks(span_s)
    assert ticks[0] == 0
    assert ticks[-1] <= span_s
    assert len(ticks) <= 8


def test_a_line_without_points_is_told_by_its_name_as_it_is_written() -> None:
    none = Line("SSD A", SERIES[0], (), points([result(1, None, Level.INVALID)]))
    for drawn, says in (
        ([none, lines()[1]], "SSD A: no point has both values. Performance: from "),
        ([none], "No point has both values."),
    ):
        figure = tradeoff_figure("s", "iodepth", drawn, rate_of("iops"), "1/s", (MEAN,))
        assert figure.finding.startswith(says)


def test_arrows_on_a_tradeoff_point_to_more_load_also_where_the_line_turns_back() -> None:
    found = points([result(1, 20_000.0), result(4, 90_000.0), result(8, 50_000.0)])
    drawn = [Line("c", SERIES[0], (), found)]
    figure = tradeoff_figure("s", "iodepth", drawn, rate_of("iops"), "1/s", (MEAN,))
    (heads,) = [layer for layer in figure.spec["layer"] if "angle" in layer["encoding"]]
    forth, back = heads["data"]["values"]
    assert 0 < forth["a"] < 180
    assert -180 < back["a"] < 0
    assert figure.title.endswith("against IOPS")


@pytest.mark.parametrize("decades", [4, 5, 6, 7])
def test_an_axis_of_percentiles_names_99_99_wherever_it_is_reached(decades: int) -> None:
    tail = tuple(10.0**step for step in range(decades + 1))
    curve = Curve("read", 10 ** (decades + 2), (1.0, 2.0, *tail[1:]), (1e4,) * (decades + 2))
    figure = distribution_figure("s", "t", [Drawn(curve, "read", SERIES[0])])
    line, dots = figure.spec["layer"][:2]
    names = line["encoding"]["x"]["axis"]["labelExpr"]
    assert "'50 %'" in names
    assert "'99.99 %'" in names
    assert 4.0 in [row["x"] for row in dots["data"]["values"]]


def test_an_axis_of_percentiles_ends_where_ios_become_too_few() -> None:
    figure = distribution_figure("s", "t", [Drawn(CURVE, "read", SERIES[0])])
    axis = figure.spec["layer"][0]["encoding"]["x"]
    assert "99.9 %" in axis["axis"]["labelExpr"]
    assert "99.99 %" not in axis["axis"]["labelExpr"]
    assert axis["scale"]["domain"][1] == pytest.approx(3.0, abs=1e-3)
