"""Where the marks of each chart stand, in values of its axes, and what tells a verdict."""

from __future__ import annotations

from typing import Any, TypeVar

import pytest
from msgspec.structs import replace

from iolab.core.configuration import LatencyLimit
from iolab.core.metric import VerdictLevel
from iolab.report.charts.chart import (
    COLUMN_WIDTHS,
    Bars,
    Chart,
    LineSegments,
    Mark,
    Markers,
    MarkerStyle,
    Rectangles,
    TextMark,
)
from iolab.report.charts.chart import Line as LineMark
from iolab.report.charts.choose import chart_groups_over_load
from iolab.report.charts.lines import MEAN, ChartLine, rate_and_latency_chart, rate_quantity
from iolab.report.charts.palette import INK, MUTED, RAISED, RULE, SERIES, ColorToken
from iolab.report.charts.tradeoff import latency_tradeoff_chart
from tests.report import shared
from tests.report.charts.outcomes import points, result
from tests.report.charts.specs import figures, lines

FIRST, SECOND, THIRD = SERIES[:3]
UPPER = 151.6571798330168
"""The geometric mean of 150, 151 and 154 thousand."""
LOW, HIGH = 146.441458, 157.058667
"""Its 95 % interval."""

Kind = TypeVar("Kind", bound=Mark)


def of(
    figure: Chart, kind: type[Kind], color: ColorToken | None = None, plot: int = 0
) -> list[Kind]:
    """The marks of that kind in that colour."""
    found = [one for one in figure.plots[plot].marks if isinstance(one, kind)]
    return [one for one in found if color in (None, one.color)]


def near(*values: float | None) -> Any:
    return tuple(None if one is None else pytest.approx(one, rel=1e-5) for one in values)


def marked(figure: Chart, color: ColorToken, plot: int = 0) -> dict[str, list[tuple[float, float]]]:
    """Places of the large markers by their verdict."""
    found: dict[str, list[tuple[float, float]]] = {}
    for one in of(figure, Markers, color, plot):
        for place, level in zip(
            one.places if one.verdict_levels else (), one.verdict_levels, strict=True
        ):
            found.setdefault(level.value, []).append(place)
    return found


def scale(figure: Chart, channel: str, plot: int = 0) -> tuple[bool, Any]:
    """Whether a scale is logarithmic, and its ends."""
    own = figure.plots[plot]
    found = own.y if channel == "y" else own.x.scale if own.x else None
    assert found is not None
    return found.is_logarithmic, pytest.approx([found.low, found.high], rel=1e-4)


def texts(figure: Chart, plot: int = 0) -> list[str]:
    """The names beside the lines, and the unit."""
    own = figure.plots[plot]
    return [*(end.text for end in own.end_labels), *([own.y.unit] if own.y else [])]


def values(line: LineMark) -> list[Any]:
    return [None if y is None else pytest.approx(y) for _, y in line.places]


@pytest.mark.parametrize(("name", "title"), [("throughput", "iodepth"), ("guests", "VMs on 2")])
def test_lines_and_markers_over_an_axis(name: str, title: str) -> None:
    figure = figures()[name]
    (plot,) = figure.plots
    assert plot.x is not None
    assert plot.x.title.startswith(title)
    assert plot.x.scale.is_logarithmic is (name == "throughput")
    assert scale(figure, "y") == (False, [0, 200])
    first, second = of(figure, LineMark)
    assert first.places == [(1, 20), (4, 70)]
    assert second.places == [(1, 25), near(8, UPPER)]
    assert marked(figure, FIRST) == {
        "valid": [(1, 20)],
        "indicative": [(4, 70)],
        "invalid": [(8, 95)],
    }
    assert marked(figure, SECOND) == {"valid": [(1, 25)], "indicative": [near(8, UPPER)]}
    assert [one.segments for one in of(figure, LineSegments)] == [[near(8, LOW, 8, HIGH)]]
    assert texts(figure) == ["Mainstream", "Performance", "k IOPS"]


def test_latency_is_drawn_on_a_logarithmic_axis_in_its_unit() -> None:
    figure = figures()["latency"]
    assert scale(figure, "y") == (True, [20, 500])
    mean, tail = of(figure, LineMark)
    assert mean.places == [(1, 50), near(4, 57.142857)]
    assert tail.places == [near(1, 150), near(4, 171.428571)]
    assert (bool(mean.dash), bool(tail.dash)) == (False, True)
    assert texts(figure) == ["mean", "p99", "µs"]


def test_percentiles_stand_at_their_nines() -> None:
    figure = figures()["distribution"]
    (line,) = of(figure, LineMark)
    wanted = [(0, 50), (pytest.approx(0.301, abs=1e-3), 80), (1, 100), (2, 300), (3, 2000)]
    assert line.places == wanted
    assert scale(figure, "y") == (True, [20, 5000])
    assert texts(figure) == ["read", "µs"]


def test_rates_are_bars_over_their_latencies_at_the_same_loads() -> None:
    figure = figures()["load"]
    above, below = figure.plots
    first, second = of(figure, Bars)
    assert first.places == [(1, 20), (4, 70), (8, 95)]
    assert second.places == [(1, 25), near(8, UPPER)]
    assert (first.slot, second.slot) == ((0, 2), (1, 2))
    assert first.verdict_levels == [
        VerdictLevel.VALID,
        VerdictLevel.INDICATIVE,
        VerdictLevel.INVALID,
    ]
    mean, tail = of(figure, LineMark, FIRST, plot=1)
    assert mean.places == [(1, 50), near(4, 57.142857)]
    assert tail.places == [near(1, 150), near(4, 171.428571)]
    assert above.x is not None
    assert below.x == replace(above.x, has_labels=True)
    assert not above.x.has_labels
    steps = [above.x.offset_at(load) for load in (1, 4, 8)]
    assert steps[2] - steps[1] == pytest.approx(steps[1] - steps[0])


def test_loads_that_have_no_room_for_bars_are_lines() -> None:
    many = [
        replace(line, points=points(tuple(result(depth, 1e3 * depth) for depth in range(1, 20))))
        for line in lines()
    ]
    figure = rate_and_latency_chart("s", "iodepth", many, rate_quantity("iops"))
    assert not of(figure, Bars)
    assert len(of(figure, LineMark)) == 2


def test_an_interval_that_says_nothing_is_not_drawn_and_does_not_stretch_an_axis() -> None:
    pair = (result(8, 150_000.0), result(8, 200.0, repeat=2))
    wild = [ChartLine("c", SERIES[0], (), points(pair))]
    (point,) = wild[0].points
    assert (point.metrics["iops"].high or 0.0) > 1e9
    figure = rate_and_latency_chart("s", "iodepth", wild, rate_quantity("iops"))
    assert not [one for plot in (0, 1) for one in of(figure, LineSegments, plot=plot)]
    (upper, _) = figure.plots
    assert upper.y is not None
    assert upper.y.high <= 200
    assert "Too few repeats" in figure.note


def test_the_knee_and_the_most_under_a_limit_are_named_at_their_points() -> None:
    first = replace(lines()[0], knee=4)
    limit = LatencyLimit("lat_ns_mean", 60_000.0)
    rate = rate_quantity("iops")
    figure = latency_tradeoff_chart("s", "iodepth", [first], rate, (MEAN,), latency_limit=limit)
    named = [place for one in of(figure, TextMark) for place in one.places if "limit" in place[2]]
    assert named == [(*near(70, 57.142857), "knee at 4, limit")]
    (ring,) = [one for one in of(figure, Markers) if one.marker_style is MarkerStyle.RING]
    assert ring.places == [near(70, 57.142857)]
    (line,) = of(figure, LineSegments, MUTED)
    assert line.segments == [(None, 60, None, 60)]


def test_latency_against_rate_joins_points_in_the_order_of_the_load() -> None:
    figure = figures()["tradeoff"]
    assert scale(figure, "x") == (False, [0, 200])
    assert scale(figure, "y") == (True, [20, 500])
    mean, tail, *others = of(figure, LineMark)
    assert mean.places == [(20, 50), near(70, 57.142857)]
    assert tail.places[0] == near(20, 150)
    assert others[0].places == [near(25, 40), near(UPPER, 52.75055)]
    told = [one.tip.texts for one in of(figure, Markers, FIRST) if one.tip]
    assert told == [["1", "4", "8"]] * 2
    assert not of(figure, TextMark)
    (first, *_) = of(figure, LineSegments)
    assert first.segments == [near(UPPER, 50.93638, UPPER, 54.62934)]
    assert marked(figure, FIRST)["invalid"] == [near(95, 84.210526), near(95, 252.631579)]
    assert [text for text in texts(figure) if text != "p99"] == ["Mainstream", "Performance", "µs"]


def test_panels_over_time_have_units_gaps_and_shades() -> None:
    figure = figures()["timeline"]
    for plot in range(3):
        assert scale(figure, "x", plot) == (False, [0, 6])
        (shade,) = of(figure, Rectangles, RAISED, plot)
        assert shade.boxes == [(0, None, 2, None), (5, None, 6, None)]
    (load,), (mean, tail), (cores,) = (of(figure, LineMark, plot=plot) for plot in range(3))
    assert values(load) == [10, 20, 30, 30, 31, 30]
    assert [x for x, _ in load.places] == [0.5, 1.5, 2.5, 3.5, 4.5, 5.5]
    assert values(mean) == [300, 200, None, 100, 100, 100]
    assert values(tail) == [3000, 2000, None, 1000, 1000, 1000]
    assert values(cores) == [10, 50, 60, 90, 100, 40]
    assert [scale(figure, "y", plot)[0] for plot in range(3)] == [False, True, False]
    heads = [(one.title, one.y and one.y.unit) for one in figure.plots]
    assert heads == [("Load", "k IOPS"), ("Latency", "µs"), ("Processors busy", "%")]


def test_ratios_stand_on_a_logarithmic_axis_with_their_intervals() -> None:
    figure = figures()["beside"]
    assert scale(figure, "x")[0]
    (points,) = of(figure, Markers, FIRST)
    assert points.verdict_levels == [VerdictLevel.VALID, VerdictLevel.INDICATIVE]
    assert [x for x, _ in points.places] == [0.5, 2]
    assert [(x, x2) for one in of(figure, LineSegments, FIRST) for x, _, x2, _ in one.segments] == [
        (0.4, 0.6)
    ]
    assert [x for one in of(figure, LineSegments, MUTED) for x, *_ in one.segments] == [1]
    assert len(of(figure, LineSegments, RULE)) == 2
    names = [text for one in of(figure, TextMark) for *_, text in one.places]
    assert {"figure-0", "figure-1", "0.500", "2.00"} == set(names)


def test_cells_of_a_heat_map_are_as_strong_as_their_share() -> None:
    figure = figures()["heat"]
    assert scale(figure, "y") == (True, [100, 800])
    assert scale(figure, "x") == (False, [0, 4])
    middles = {141: "lowest", 283: "middle", 566: "highest"}
    found = {
        (middles[round(y or 0)], start, end, one.opacity)
        for one in of(figure, LineSegments, FIRST)
        for start, y, end, _ in one.segments
    }
    assert found == {
        ("lowest", 0, 2, 1.0),
        ("lowest", 3, 4, 1.0),
        ("middle", 0, 1, 0.6),
        ("middle", 1, 2, 0.42),
        ("middle", 3, 4, 0.42),
        ("highest", 0, 1, 0.6),
        ("highest", 3, 4, 0.13),
    }
    p50, p99 = of(figure, LineMark, INK)
    assert values(p50) == [140, 130, None, 120]
    assert values(p99) == [None, 200, None, 300]


def test_devices_of_a_node_have_a_line_each() -> None:
    figure = figures()["inside"]
    disks, ports = (of(figure, LineMark, plot=plot) for plot in range(2))
    assert values(disks[1]) == [90, 400, 420, 410]
    assert values(ports[0]) == [100, 186, None, 186]
    assert [scale(figure, "y", plot) for plot in range(2)] == [
        (False, [0, 600]),
        (False, [0, 200]),
    ]
    assert texts(figure, 0)[:2] == ["nvme0n1", "nvme1n1"]
    assert texts(figure, 1)[:2] == ["eth0", "eth1"]
    assert figure.plots[1].unit.startswith("MB/s (")


def test_growth_stands_beside_its_ideal_and_its_law() -> None:
    figure = figures()["scaling"]
    (ideal,) = of(figure, LineMark, MUTED)
    law, line = of(figure, LineMark, FIRST)
    assert ideal.places == [near(1, 9.9996667), near(8, 79.997333)]
    assert line.places == [
        near(1, 9.9996667),
        near(2, 19.032226),
        near(4, 33.065023),
        near(8, 40.161844),
    ]
    (_, start), *_, (end, last) = law.places
    assert start == pytest.approx(9.9489, rel=1e-3)
    assert end == 8
    assert last == pytest.approx(40.1, rel=0.02)
    bars = [piece for one in of(figure, LineSegments, FIRST) for piece in one.segments]
    assert bars[:2] == [near(1, 9.7445626, 1, 10.261449), near(2, 18.399589, 2, 19.686615)]
    assert sum(len(one.places) for one in of(figure, Markers)) == 4
    assert scale(figure, "y") == (False, [0, 80])


def test_parts_of_a_latency_are_as_long_as_their_share() -> None:
    figure = figures()["account"]
    pieces: dict[float, list[tuple[str, float]]] = {}
    for one in of(figure, Rectangles, plot=1):
        for x, y, x2, _ in one.boxes:
            if y is not None:
                share = (x2 or 0) - (x or 0)
                pieces.setdefault(y, []).append((one.color.name, round(share, 2)))
    device, host, disk, guest = (SERIES[i].name for i in (0, 4, 2, 5))
    assert list(pieces.values()) == [
        [(device, 0.6), (host, 0.1), (disk, 0.1), (guest, 0.2)],
        [(device, 0.09), (host, 0.31), (disk, 0.5), (guest, 0.1)],
        [(device, 0.67), (disk, 0.17), (guest, 0.17)],
    ]
    told = [
        text
        for plot in (0, 1)
        for one in of(figure, TextMark, plot=plot)
        for *_, text in one.places
    ]
    assert told[:4] == ["device", "host, network", "virtual disk", "in the guest"]
    assert {"100 µs", "1 ms", "3 ms", "500 µs"} <= set(told)


def test_dots_stand_at_their_values() -> None:
    figure = figures()["value"]
    assert scale(figure, "x") == (False, [0, 1500])  # a tick beyond the largest value
    ends = [[x for x, _ in one.places] for one in of(figure, Markers)]
    assert ends == [[642, 308], [202], [1052]]
    spans = [(x, x2) for one in of(figure, LineSegments) for x, _, x2, _ in one.segments]
    assert [span for span in spans if span[0]] == [(600, 700), (1000, 1100)]
    levels = [level for one in of(figure, Markers) for level in one.verdict_levels]
    assert levels == [
        VerdictLevel.VALID,
        VerdictLevel.INDICATIVE,
        VerdictLevel.INVALID,
        VerdictLevel.VALID,
    ]


def test_a_mark_tells_a_pointer_its_series_its_interval_and_its_verdicts() -> None:
    (plot,) = figures()["throughput"].plots
    told = {one.tip.name: one for one in plot.marks if isinstance(one, Markers) and one.tip}
    assert list(told) == ["Mainstream", "Performance"]
    assert told["Performance"].tip is not None
    assert told["Performance"].tip.intervals == [None, near(LOW, HIGH)]


@pytest.mark.parametrize(
    ("name", "numbers"),
    [
        ("throughput", ("20 k IOPS at iodepth 1 to 95 k", "25 k IOPS at iodepth 1 to 152 k")),
        ("guests", ("20 k IOPS at 2 VMs to 95 k IOPS at 16", "at worst invalid")),
        ("latency", ("50 µs at iodepth 1 to 84.2 µs at 8",)),
        ("distribution", ("within 80 µs", "99.9 % within 2 ms")),
        ("load", ("Performance: from 25 k", "at worst indicative")),
        ("tradeoff", ("20 k IOPS at p99 150 µs", "95 k IOPS at p99 253 µs")),
        ("timeline", ("30.3 k IOPS on average", "30 k IOPS and 31 k", "100 µs and 100 µs")),
        ("heat", ("110 µs and 130 µs", "second 3", "300 µs")),
        ("inside", ("90 µs (nvme0n1) to 410 µs (nvme1n1)", "3.2 % to 6 %")),
        ("scaling", ("10.0 k IOPS of 1 host to 40.2 k IOPS of 8", "4.02 times", "all valid")),
        ("account", ("a read takes 1 ms", "(50 %)", "90 µs (9 %)")),
        ("cost", ("350 k EUR, 51 % of it servers", "300 k EUR, 87 % of it storage")),
    ],
)
def test_the_words_of_a_chart_hold_its_numbers(name: str, numbers: tuple[str, ...]) -> None:
    assert [one for one in numbers if one not in figures()[name].alt_text] == []


@pytest.mark.parametrize("name", figures())
def test_every_chart_has_its_size_words_and_table(name: str) -> None:
    figure = figures()[name]
    assert figure.width == COLUMN_WIDTHS[4]
    assert figure.height >= 60
    assert figure.alt_text.startswith(f"{figure.heading}. ")
    assert {len(row) for row in figure.table.rows} <= {len(figure.table.columns)}


def test_percentiles_of_configurations_are_held_against_each_other_at_one_load() -> None:
    brief = shared.brief("two")
    groups = chart_groups_over_load(brief, brief.study.workloads)
    titles = [
        figure.title
        for own in groups.values()
        for group in own
        for figure in group.appendix_charts
        if figure.title.startswith("Latency by percentile")
    ]
    assert titles
    assert all("at iodepth 1" in title for title in titles), titles
