"""Where the marks of each chart stand, in values of its axes, and what tells a verdict."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, Final

import pytest

from iolab.core.configuration import Limit
from iolab.core.metric import Level
from iolab.report.charts.chart import Figure, Spec
from iolab.report.charts.lines import MEAN, Line, load_figure, rate_of, shape_of
from iolab.report.charts.tradeoff import tradeoff_figure
from iolab.report.palette import FAINT, INK, MUTED, PAPER, RAISED, SERIES, Token
from tests.report.charts.outcomes import points, result
from tests.report.charts.specs import figures, lines

CROSS: Final = "M-.7,-.7L.7,.7M.7,-.7L-.7,.7"
FIRST, SECOND, THIRD = SERIES[:3]
UPPER = 151.6571798330168
"""The geometric mean of 150, 151 and 154 thousand."""
LOW, HIGH = 146.441458, 157.058667
"""Its 95 % interval."""


def layers(figure: Figure, plot: int = 0) -> list[Spec]:
    spec = figure.spec
    own: list[Spec] = (spec["vconcat"][plot] if "vconcat" in spec else spec)["layer"]
    return own


def of(figure: Figure, kind: str, token: Token | None = None, plot: int = 0) -> list[Spec]:
    """The layers of that kind of mark, in that colour."""
    colours = (None,) if token is None else (token.stand_in,)
    return [
        one
        for one in layers(figure, plot)
        if one["mark"]["type"] == kind
        and (token is None or {one["mark"].get("fill"), one["mark"].get("stroke")} & {*colours})
    ]


def rows(found: Sequence[Spec], *keys: str) -> Iterator[tuple[Any, ...]]:
    for one in found:
        for row in one["data"]["values"]:
            yield tuple(row.get(key) for key in keys)


def near(*values: float | None) -> Any:
    return tuple(None if one is None else pytest.approx(one, rel=1e-5) for one in values)


def marked(figure: Figure, token: Token) -> dict[str, list[tuple[Any, ...]]]:
    """Places of the large markers by the verdict that their shape and filling tell."""
    shapes = {"circle": "valid", "diamond": "indicative", CROSS: "invalid"}
    found: dict[str, list[tuple[Any, ...]]] = {}
    for one in of(figure, "point", token):
        mark = one["mark"]
        if mark.get("shape") in shapes and mark.get("opacity", 1) == 1:
            level = shapes[mark["shape"]]
            assert (mark["fill"] == PAPER.stand_in) is (level != "valid")
            found.setdefault(level, []).extend(rows([one], "x", "y"))
    return found


def axis(figure: Figure, channel: str, plot: int = 0) -> Spec:
    """The encoding of the first layer that has a scale there."""
    found: Spec = next(
        one["encoding"][channel]
        for one in layers(figure, plot)
        if "field" in one["encoding"].get(channel, {}) and one["encoding"][channel].get("scale")
    )
    return found


def domain(figure: Figure, channel: str, plot: int = 0) -> tuple[str, Any]:
    scale = axis(figure, channel, plot)["scale"]
    return scale.get("type", "linear"), pytest.approx(scale["domain"], rel=1e-4)


def texts(figure: Figure, plot: int = 0) -> list[str]:
    return [text for (text,) in rows(of(figure, "text", plot=plot), "text") if text]


def test_shapes_are_those_that_readers_learnt() -> None:
    assert [shape_of(level) for level in Level] == ["circle", "diamond", CROSS]


@pytest.mark.parametrize(("name", "title"), [("throughput", "iodepth"), ("guests", "VMs on 2")])
def test_lines_and_markers_over_an_axis(name: str, title: str) -> None:
    figure = figures()[name]
    assert axis(figure, "x")["axis"]["title"].startswith(title)
    assert axis(figure, "x")["scale"]["type"] == ("log" if name == "throughput" else "linear")
    assert domain(figure, "y") == ("linear", [0, 200])
    first, second = of(figure, "line")
    assert list(rows([first], "x", "y")) == [(1, 20), (4, 70), (8, 95)]
    assert list(rows([second], "x", "y")) == [(1, 25), near(8, UPPER)]
    assert marked(figure, FIRST) == {
        "valid": [(1, 20)],
        "indicative": [(4, 70)],
        "invalid": [(8, 95)],
    }
    assert marked(figure, SECOND) == {"valid": [(1, 25)], "indicative": [near(8, UPPER)]}
    assert list(rows(of(figure, "rule"), "x", "y", "y2")) == [near(8, LOW, HIGH)]
    assert texts(figure) == ["Mainstream", "Performance", "thousand IOPS"]


def test_latency_is_drawn_on_a_logarithmic_axis_in_its_unit() -> None:
    figure = figures()["latency"]
    assert domain(figure, "y") == ("log", [20, 500])
    mean, tail = of(figure, "line")
    assert list(rows([mean], "x", "y")) == [(1, 50), near(4, 57.142857), near(8, 84.210526)]
    assert list(rows([tail], "x", "y")) == [(1, 150), near(4, 171.428571), near(8, 252.631579)]
    assert (mean["mark"]["strokeDash"], bool(tail["mark"]["strokeDash"])) == ([], True)
    assert texts(figure) == ["mean", "p99", "µs"]


def test_percentiles_stand_at_their_nines() -> None:
    figure = figures()["distribution"]
    (line,) = of(figure, "line")
    wanted = [(0, 50), (pytest.approx(0.301, abs=1e-3), 80), (1, 100), (2, 300), (3, 2000)]
    assert list(rows([line], "x", "y")) == wanted
    assert domain(figure, "y") == ("log", [20, 5000])
    assert texts(figure) == ["read", "µs"]


def test_rate_and_latency_stand_over_each_other_on_the_same_loads() -> None:
    figure = figures()["load"]
    above, below = figure.spec["vconcat"]
    assert list(rows(of(figure, "line", FIRST), "x", "y")) == [(1, 20), (4, 70), (8, 95)]
    mean, tail = of(figure, "line", FIRST, plot=1)
    assert list(rows([mean], "x", "y")) == [(1, 50), near(4, 57.142857), near(8, 84.210526)]
    assert list(rows([tail], "x", "y")) == [(1, 150), near(4, 171.428571), near(8, 252.631579)]
    labels = [plot["layer"][0]["encoding"]["x"]["axis"].get("labels") for plot in (above, below)]
    assert labels == [False, None]


def test_an_interval_that_says_nothing_is_not_drawn_and_does_not_stretch_an_axis() -> None:
    pair = (result(8, 150_000.0), result(8, 200.0, repeat=2))
    wild = [Line("c", SERIES[0], (), points(pair))]
    (point,) = wild[0].points
    assert (point.metrics["iops"].high or 0.0) > 1e9
    figure = load_figure("s", "iodepth", wild, rate_of("iops"))
    assert not [one for plot in (0, 1) for one in of(figure, "rule", plot=plot)]
    ends = [
        plot["layer"][0]["encoding"]["y"]["scale"]["domain"][1] for plot in figure.spec["vconcat"]
    ]
    assert ends[0] <= 200
    assert "Too few repeats" in figure.note


def test_the_knee_and_the_most_under_a_limit_are_named_at_their_points() -> None:
    first = replace(lines()[0], knee=4)
    limit = Limit("lat_ns_mean", 60_000.0)
    rate = rate_of("iops")
    figure = tradeoff_figure("s", "iodepth", [first], rate, "1/s", (MEAN,), limit=limit)
    named = [one for one in rows(of(figure, "text"), "x", "y", "t") if "limit" in (one[2] or "")]
    assert named == [(*near(70, 57.142857), "knee, limit")]
    (line,) = [one for one in of(figure, "rule") if "x2" in one["encoding"]]
    assert list(rows([line], "y")) == [(60,)]


def test_latency_against_rate_has_each_load_beside_its_point() -> None:
    figure = figures()["tradeoff"]
    assert domain(figure, "x") == ("linear", [0, 200])
    assert domain(figure, "y") == ("log", [20, 500])
    mean, tail, *others = of(figure, "line")
    assert list(rows([mean], "x", "y", "t")) == [
        (20, 50, "1"),
        (70, pytest.approx(57.142857), "4"),
        (95, pytest.approx(84.210526), "8"),
    ]
    assert next(rows([tail], "x", "y")) == (20, 150)
    assert list(rows(others[:1], "x", "y")) == [(25, 40), near(UPPER, 52.75055)]
    (first, *_) = of(figure, "rule")
    assert list(rows([first], "x", "y", "y2")) == [near(UPPER, 50.93638, 54.62934)]
    assert marked(figure, FIRST)["invalid"] == [near(95, 84.210526), near(95, 252.631579)]
    assert [text for text in texts(figure) if text != "p99"] == ["Mainstream", "Performance", "µs"]


def test_panels_over_time_have_units_gaps_and_shades() -> None:
    figure = figures()["timeline"]
    for plot in range(3):
        assert domain(figure, "x", plot) == ("linear", [0, 6])
        (shade,) = of(figure, "rect", RAISED, plot)
        assert list(rows([shade], "x", "x2")) == [(0, 2), (5, 6)]
    (load,), (mean, tail), (cores,) = (of(figure, "line", plot=plot) for plot in range(3))
    assert [y for (y,) in rows([load], "y")] == [10, 20, 30, 30, 31, 30]
    assert [x for (x,) in rows([load], "x")] == [0.5, 1.5, 2.5, 3.5, 4.5, 5.5]
    assert [y for (y,) in rows([mean], "y")] == [300, 200, None, 100, 100, 100]
    assert [y for (y,) in rows([tail], "y")] == [3000, 2000, None, 1000, 1000, 1000]
    assert [y for (y,) in rows([cores], "y")] == [10, 50, 60, 90, 100, 40]
    assert [domain(figure, "y", plot)[0] for plot in range(3)] == ["linear", "log", "linear"]
    heads = [texts(figure, plot)[-1] for plot in range(3)]
    assert heads == ["Load, thousand IOPS", "Latency, µs", "Processors busy, %"]


def test_ratios_stand_on_a_logarithmic_axis_with_their_intervals() -> None:
    figure = figures()["beside"]
    kind, _ = domain(figure, "x")
    assert kind == "log"
    points = of(figure, "point", FIRST)
    assert [one["mark"]["shape"] for one in points] == ["circle", "diamond"]
    assert list(rows(points, "x")) == [(0.5,), (2,)]
    assert list(rows(of(figure, "rule", FIRST), "x", "x2")) == [(0.4, 0.6)]
    assert list(rows(of(figure, "rule", MUTED), "x")) == [(1,)]
    assert len(of(figure, "rule", FAINT)) == 2
    assert texts(figure) == ["read-iops, IOPS", "write-iops, IOPS"]


def test_cells_of_a_heat_map_are_as_strong_as_their_share() -> None:
    figure = figures()["heat"]
    assert domain(figure, "y") == ("log", [100, 800])
    assert domain(figure, "x") == ("linear", [0, 4])
    middles = {141: "lowest", 283: "middle", 566: "highest"}
    found = {
        (middles[round(y)], start, end, one["mark"]["opacity"])
        for one in of(figure, "line", FIRST)
        for (start, y), (end, _), _ in zip(*[rows([one], "x", "y")] * 3, strict=True)
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
    p50, p99 = of(figure, "line", INK)
    assert [y for (y,) in rows([p50], "y")] == [140, 130, None, 120]
    assert [y for (y,) in rows([p99], "y")] == [None, 200, None, 300]


def test_devices_of_a_node_have_a_line_each() -> None:
    figure = figures()["inside"]
    disks, ports = (of(figure, "line", plot=plot) for plot in range(2))
    assert [y for (y,) in rows(disks[1:], "y")] == [90, 400, 420, 410]
    assert [y for (y,) in rows(ports[:1], "y")] == [100, 186, None, 186]
    assert [domain(figure, "y", plot) for plot in range(2)] == [
        ("linear", [0, 600]),
        ("linear", [0, 200]),
    ]
    assert texts(figure, 0)[:2] == ["nvme0n1", "nvme1n1"]
    assert texts(figure, 1)[:2] == ["eth0", "eth1"]
    assert "MB/s" in texts(figure, 1)[-1]


def test_growth_stands_beside_its_ideal_and_its_law() -> None:
    figure = figures()["scaling"]
    (ideal,) = of(figure, "line", MUTED)
    law, line = of(figure, "line", FIRST)
    assert list(rows([ideal], "x", "y")) == [near(1, 9.9996667), near(8, 79.997333)]
    assert list(rows([line], "x", "y")) == [
        near(1, 9.9996667),
        near(2, 19.032226),
        near(4, 33.065023),
        near(8, 40.161844),
    ]
    (_, start), *_, (end, last) = rows([law], "x", "y")
    assert start == pytest.approx(9.9489, rel=1e-3)
    assert (end, last) == (8, pytest.approx(40.1, rel=0.02))
    bars = list(rows(of(figure, "rule", FIRST), "x", "y", "y2"))
    assert bars[:2] == [near(1, 9.7445626, 10.261449), near(2, 18.399589, 19.686615)]
    assert (
        len(list(rows([one for one in of(figure, "point") if "opacity" in one["mark"]], "x"))) == 16
    )
    assert domain(figure, "y") == ("linear", [0, 80])


def test_parts_of_a_latency_are_as_long_as_their_share() -> None:
    figure = figures()["account"]
    pieces: dict[float, list[tuple[str, float]]] = {}
    names = {token.stand_in: token.name for token in SERIES}
    for one in of(figure, "rect"):
        at = {key: one["encoding"][key]["value"] for key in ("x", "x2", "y")}
        if at["y"] >= 0:
            share = (at["x2"] - at["x"]) / 278
            pieces.setdefault(at["y"], []).append((names[one["mark"]["fill"]], round(share, 2)))
    device, host, disk, guest = (SERIES[i].name for i in (0, 4, 2, 5))
    assert list(pieces.values()) == [
        [(device, 0.6), (host, 0.1), (disk, 0.1), (guest, 0.2)],
        [(device, 0.09), (host, 0.31), (disk, 0.5), (guest, 0.1)],
        [(device, 0.67), (disk, 0.17), (guest, 0.17)],
    ]
    assert texts(figure)[:4] == ["device", "host, network", "virtual disk", "in the guest"]
    assert {"100 µs", "1 ms", "3 ms", "500 µs"} <= set(texts(figure))


def test_lying_bars_end_at_their_values() -> None:
    figure = figures()["value"]
    assert domain(figure, "x") == ("linear", [0, 1500])
    ends = {
        token.name: [x for (x,) in rows(of(figure, "rect", token), "x2")] for token in SERIES[:3]
    }
    assert list(ends.values()) == [[642, 308], [202], [1052]]
    assert list(rows(of(figure, "rule"), "x", "x2")) == [(600, 700), (1000, 1100)]
    assert {level: x for level, ((x, _),) in marked(figure, INK).items()} == {
        "indicative": 308,
        "invalid": 202,
    }


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
        ("scaling", ("10 k IOPS of 1 host to 40.2 k IOPS of 8", "4.02 times", "all valid")),
        ("account", ("a read takes 1 ms", "(50 %)", "90 µs (9 %)")),
        ("cost", ("350 k EUR, 51 % of it servers", "300 k EUR, 87 % of it storage")),
    ],
)
def test_the_words_of_a_chart_hold_its_numbers(name: str, numbers: tuple[str, ...]) -> None:
    assert [one for one in numbers if one not in figures()[name].alt] == []


@pytest.mark.parametrize("name", figures())
def test_every_chart_has_its_size_words_and_table(name: str) -> None:
    figure = figures()[name]
    assert figure.width == 420
    assert figure.height > 100
    assert figure.alt.startswith(f"{figure.subject}: {figure.title}. ")
    assert {len(row) for row in figure.table.rows} <= {len(figure.table.columns)}
