from __future__ import annotations

import re
import struct
import zlib
from collections.abc import Iterator
from itertools import pairwise
from typing import TypeVar

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from iolab.core.configuration import Configuration
from iolab.core.metric import Metric, VerdictLevel
from iolab.core.metric_spec import BetterDirection
from iolab.report.charts.chart import (
    LINE_GAP,
    Chart,
    LineSegments,
    Mark,
    Markers,
    non_overlapping_positions,
)
from iolab.report.charts.chart import Line as LineMark
from iolab.report.charts.distribution import (
    MARKS,
    StyledLatencyCurve,
    build_latency_distribution_chart,
    latency_ns_at_percentile,
)
from iolab.report.charts.lines import (
    LINES_MAX,
    MEAN,
    ChartLine,
    best_lines_that_fit_chart,
    rate_quantity,
    remaining_lines_in_groups,
)
from iolab.report.charts.palette import SERIES
from iolab.report.charts.rows import DOTS_MAX, Dot, DotRow, dot_chart
from iolab.report.charts.run import TABLE_ROWS, timeline_chart
from iolab.report.charts.scale import axis_number_text, linear_scale, log_scale, time_ticks
from iolab.report.charts.series import LatencyCurve, Panel, PanelLine, Timeline
from iolab.report.charts.svg import draw_inline_svg
from iolab.report.charts.tradeoff import latency_tradeoff_chart
from iolab.report.formats.render import PNG_SCALE, chart_pngs
from iolab.report.short_names import LABEL_CHARACTERS, short_configuration_names
from iolab.report.table import Table
from tests.report.charts.outcomes import WORKLOAD, points, rate_chart, result
from tests.report.charts.specs import CURVE, figures, lines

Kind = TypeVar("Kind", bound=Mark)


@pytest.mark.parametrize("name", ["throughput", "timeline", "value"])
def test_a_picture_has_the_whole_size_of_its_figure(name: str) -> None:
    figure = figures()[name]
    (picture,) = chart_pngs([figure])
    size = struct.unpack(">II", picture[16:24])  # after the signature and the head of its chunk
    assert size == pytest.approx((figure.width * PNG_SCALE, figure.height * PNG_SCALE), abs=1)


def test_a_figure_fills_its_picture() -> None:
    """A quarter was blank on the right and below: a unit of a chart is a pixel, not a point."""
    (picture,) = chart_pngs([figures()["value"]])
    rows = list(pixel_rows(picture))
    inked = [any(min(pixel[:3]) < 250 for pixel in row) for row in rows]
    columns = [any(min(pixel[:3]) < 250 for pixel in column) for column in zip(*rows, strict=True)]
    for seen in (inked, columns):
        assert len(seen) - seen[::-1].index(True) > 0.85 * len(seen)


def pixel_rows(picture: bytes) -> Iterator[list[tuple[int, ...]]]:
    """The pixels of a PNG of 8 bits a channel."""
    width, _, _, colour = struct.unpack(">IIBB", picture[16:26])
    channels = {2: 3, 6: 4}[colour]
    place, packed = 8, b""
    while place < len(picture):
        (size,) = struct.unpack(">I", picture[place : place + 4])
        if picture[place + 4 : place + 8] == b"IDAT":
            packed += picture[place + 8 : place + 8 + size]
        place += size + 12
    raw, stride = zlib.decompress(packed), width * channels
    above = bytes(stride)
    for start in range(0, len(raw), stride + 1):
        row = bytearray(raw[start + 1 : start + 1 + stride])
        for at in range(stride):
            left = row[at - channels] if at >= channels else 0
            corner = above[at - channels] if at >= channels else 0
            near = left + above[at] - corner
            paeth = min((left, above[at], corner), key=lambda value: abs(near - value))
            guess = (0, left, above[at], (left + above[at]) // 2, paeth)[raw[start]]
            row[at] = (row[at] + guess) & 255
        above = bytes(row)
        yield [tuple(row[at : at + channels]) for at in range(0, stride, channels)]


def marks(figure: Chart, kind: type[Kind]) -> list[Kind]:
    return [one for one in figure.plots[0].marks if isinstance(one, kind)]


def test_each_verdict_has_a_shape_and_only_valid_is_filled() -> None:
    svg = draw_inline_svg(rate_chart(WORKLOAD, "iodepth", lines()[:1])).svg
    found = re.findall(r'transform="[^"]*" d="([^"]*)" fill="([^"]*)"', svg)
    assert [shape.count("A") for shape, _ in found] == [2, 0, 0]
    assert [shape.count("Z") for shape, _ in found] == [1, 1, 0]
    assert [fill == "var(--paper)" for _, fill in found] == [True, True, True]  # single runs


def test_a_value_without_an_interval_looks_no_more_exact_than_one_with() -> None:
    figure = rate_chart(WORKLOAD, "iodepth", lines()[:1])
    (drawn,) = marks(figure, Markers)
    assert not any(drawn.have_intervals)
    assert "Broken outline" in figure.note
    known = replace(drawn, have_intervals=[True, False, True])
    (plot,) = figure.plots
    others = [one for one in plot.marks if not isinstance(one, Markers)]
    svg = draw_inline_svg(replace(figure, plots=(replace(plot, marks=[*others, known]),))).svg
    found = re.findall(r'transform="[^"]*" d="[^"]*" fill="([^"]*)"( stroke-dash)?', svg)
    assert [(fill == "var(--paper)", bool(dash)) for fill, dash in found] == [
        (False, False),
        (True, True),
        (True, False),  # invalid
    ]


def test_a_run_that_is_not_valid_is_drawn_and_never_hidden() -> None:
    figure = rate_chart(WORKLOAD, "iodepth", lines()[:1])
    (drawn,) = marks(figure, Markers)
    assert [x for x, _ in drawn.places] == [1, 4, 8]
    assert len(figure.table.rows) == 4
    assert [row[-1].verdict_level for row in figure.table.rows][2] is VerdictLevel.INVALID


def test_depths_stand_at_doublings() -> None:
    (plot,) = rate_chart(WORKLOAD, "iodepth", lines()).plots
    assert plot.x is not None
    assert plot.x.scale.is_logarithmic
    assert plot.x.ticks == ((1, "1"), (4, "4"), (8, "8"))


def test_marker_and_upright_tell_what_is_published_of_several_runs() -> None:
    runs = [result(8, iops, repeat=n) for n, iops in enumerate((10e3, 11e3, 12e3), 1)]
    (point,) = points(runs)
    metric = point.metrics["iops"]
    figure = rate_chart(WORKLOAD, "iodepth", [ChartLine("c", SERIES[0], (), (point,))])
    lines, (large,), (bar,) = (marks(figure, kind) for kind in (LineMark, Markers, LineSegments))
    assert isinstance(large, Markers)
    assert not lines  # The point is invalid, and no line leads to it.
    assert metric.value is not None
    assert large.places[0][1] == pytest.approx(metric.value / 1e3)
    assert isinstance(bar, LineSegments)
    ((_, low, _, high),) = bar.segments
    assert (low, high) == pytest.approx(((metric.low or 0) / 1e3, (metric.high or 0) / 1e3))


def test_a_run_that_did_not_enter_is_tabled_with_its_verdict() -> None:
    found = points([result(8, 10e3), result(8, 90e3, VerdictLevel.INVALID, repeat=2)])
    figure = rate_chart(WORKLOAD, "iodepth", [ChartLine("c", SERIES[0], (), found)])
    (large,) = marks(figure, Markers)
    assert large.verdict_levels == [VerdictLevel.VALID]
    texts = [[cell.text for cell in row[2:4]] for row in figure.table.rows]
    assert texts == [["all", "10 k IOPS"], ["1", "10 k IOPS"], ["2", "90 k IOPS"]]


def test_the_table_of_a_long_run_gives_the_highest_p99_and_averages_none() -> None:
    cells = 2 * TABLE_ROWS
    tail = PanelLine("p99", tuple(1e6 if cell % 2 else 9e6 for cell in range(cells)))
    load = PanelLine("read", tuple(1e3 if cell % 2 else 3e3 for cell in range(cells)))
    times = tuple(cell + 0.5 for cell in range(cells))
    panels = (Panel("Load", "1/s", (load,)), Panel("Latency", "ns", (tail,), is_logarithmic=True))
    long = Timeline(times, 1.0, 0.0, float(cells), panels)
    table = timeline_chart("A run", long, SERIES[0]).table
    assert [column.title for column in table.columns] == [
        "From",
        "Load, read",
        "Latency, p99 (highest)",
    ]
    assert {tuple(cell.text for cell in row[1:]) for row in table.rows} == {("2 k IOPS", "9 ms")}


def test_of_many_lines_the_best_are_drawn_and_the_others_beside() -> None:
    many = [
        ChartLine(f"c{i}", SERIES[0], (), points((result(1, 1e3 + i), result(2, 2e3 + i))))
        for i in range(11)
    ]
    figure = rate_chart(WORKLOAD, "iodepth", many)
    assert (len(marks(figure, LineMark)), len(figure.table.rows)) == (LINES_MAX, 22)
    assert f"best {LINES_MAX} of 11 lines" in figure.note
    drawn = best_lines_that_fit_chart(many, "iops")
    assert [line.name for line in drawn] == [f"c{i}" for i in range(11 - LINES_MAX, 11)]
    (rest,) = remaining_lines_in_groups(many, "iops")
    assert [line.name for line in rest] == [f"c{i}" for i in range(11 - LINES_MAX)]
    assert best_lines_that_fit_chart(many[:2], "iops") == many[:2]


def test_of_many_dots_the_best_are_drawn() -> None:
    dots = tuple(
        Dot(f"c{i}", SERIES[0], Metric(1.0 + i, "1/s"), VerdictLevel.VALID) for i in range(40)
    )
    for better, least in ((BetterDirection.HIGHER, 41 - DOTS_MAX), (BetterDirection.LOWER, 1)):
        rows = [DotRow("reads", dots)]
        table = Table("t", (), ())
        figure = dot_chart("s", "t", rows, finding="", table=table, better=better)
        assert figure is not None
        assert f"{DOTS_MAX} of 40 dots" in figure.note
        (drawn,) = marks(figure, Markers)
        assert min(x for x, _ in drawn.places) == least


def test_of_long_names_what_tells_them_apart_stands_beside_the_lines() -> None:
    names = (
        "array-of-the-cellar small blocks, queue 16",
        "array-of-the-cellar large blocks, queue 16",
    )
    many = [
        ChartLine(name, color, (), lines()[0].points)
        for name, color in zip(names, SERIES, strict=False)
    ]
    figure = rate_chart(WORKLOAD, "iodepth", many)
    assert [end.text for end in figure.plots[0].end_labels] == ["small", "large"]
    assert "array-of-the-cellar" in figure.title
    svg = draw_inline_svg(figure).svg
    assert ">small<" in svg
    assert "…" not in svg


def test_configurations_are_called_by_what_tells_them_apart() -> None:
    def names(*titles: str) -> list[str]:
        return short_configuration_names(
            [Configuration(f"c-{i}", title, ("h",), "/t") for i, title in enumerate(titles)]
        )

    assert names("Alpha", "Beta") == ["Alpha", "Beta"]
    assert names("Mainstream (7450 PRO 7.68 TB)", "Fast (9400 PRO 7.68 TB)") == [
        "Mainstream",
        "Fast",
    ]
    assert names("One and the same chassis, 7450", "One and the same chassis, 9400") == [
        "7450",
        "9400",
    ]
    same = names(*["a long title that nothing tells from another"] * 2)
    assert len(set(same)) == 2
    assert max(map(len, same)) <= LABEL_CHARACTERS


def test_a_hostile_name_is_text_in_what_a_pointer_is_told() -> None:
    name = "</script><script>alert(1)</script>\u202e\x1b"
    many = [ChartLine(name, SERIES[0], (), lines()[0].points), lines()[1]]
    drawn = draw_inline_svg(rate_chart(WORKLOAD, "iodepth", many))
    assert "alert" in drawn.marks_json
    assert not re.search("[<>&\u202e\x1b]", drawn.marks_json)
    assert not re.search("<script|[\u202e\x1b]", drawn.svg)


@pytest.mark.parametrize(
    ("value", "text"),
    [(0, "0"), (0.25, "0.25"), (1, "1"), (2500, "2,500"), (1e6, "1,000,000"), (1e-4, "0.0001")],
)
def test_numbers_beside_an_axis_have_few_digits(value: float, text: str) -> None:
    assert axis_number_text(value) == text


def test_a_curve_tells_nothing_beyond_what_its_ios_support() -> None:
    assert latency_ns_at_percentile(CURVE, 99.9) == 2e6
    assert latency_ns_at_percentile(CURVE, 99.99) is None
    assert latency_ns_at_percentile(LatencyCurve("read", 5, (), ()), MARKS[0]) is None


@given(st.lists(st.floats(min_value=0, max_value=190), min_size=1, max_size=8))
def test_labels_keep_apart_and_keep_their_order(wanted: list[float]) -> None:
    placed = non_overlapping_positions(wanted, LINE_GAP, 0, 190)
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
        log_scale("ns", values, max_ticks=3),
    ):
        shares = [scale.fraction(scale.to_scale_unit(value)) for value in values]
        assert min(shares) >= -1e-9
        assert max(shares) <= 1 + 1e-9
        assert scale.low <= scale.ticks[0] <= scale.ticks[-1] <= scale.high * (1 + 1e-9)


@given(st.lists(st.floats(min_value=1, max_value=1e12), min_size=1, max_size=9))
def test_numbers_beside_a_logarithmic_axis_have_room(values: list[float]) -> None:
    assert max(log_scale("ns", values).ticks) < 10_000


@given(st.floats(min_value=0.5, max_value=100_000))
def test_times_have_few_round_ticks(span_s: float) -> None:
    ticks = time_ticks(span_s)
    assert ticks[0] == 0
    assert ticks[-1] <= span_s
    assert len(ticks) <= 8


def test_a_line_without_points_is_told_by_its_name_as_it_is_written() -> None:
    none = ChartLine("SSD A", SERIES[0], (), points([result(1, None, VerdictLevel.INVALID)]))
    for drawn, message in (
        ([none, lines()[1]], "SSD A: no point has both values. Performance: from "),
        ([none], "No point has both values."),
    ):
        figure = latency_tradeoff_chart("s", "iodepth", drawn, rate_quantity("iops"), (MEAN,))
        assert figure.finding.startswith(message)


@pytest.mark.parametrize("decades", [4, 5, 6, 7])
def test_an_axis_of_percentiles_names_99_99_wherever_it_is_reached(decades: int) -> None:
    tail = tuple(10.0**step for step in range(decades + 1))
    curve = LatencyCurve("read", 10 ** (decades + 2), (1.0, 2.0, *tail[1:]), (1e4,) * (decades + 2))
    figure = build_latency_distribution_chart(
        "s", "t", [StyledLatencyCurve(curve, "read", SERIES[0])]
    )
    (plot,), (dots,) = figure.plots, marks(figure, Markers)
    assert plot.x is not None
    assert {"50 %", "99.99 %"} <= {text for _, text in plot.x.ticks}
    assert 4.0 in [x for x, _ in dots.places]


def test_an_axis_of_percentiles_ends_where_ios_become_too_few() -> None:
    figure = build_latency_distribution_chart(
        "s", "t", [StyledLatencyCurve(CURVE, "read", SERIES[0])]
    )
    (plot,) = figure.plots
    assert plot.x is not None
    names = [text for _, text in plot.x.ticks]
    assert "99.9 %" in names
    assert "99.99 %" not in names
    assert plot.x.scale.high == pytest.approx(3.0, abs=1e-3)
