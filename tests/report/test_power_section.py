"""Charts of watts and of the bytes of each layer, with numbers computed by hand."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from iolab.core.metric import DriveWear, MediaCounter, Metric, PowerUse
from iolab.core.power import NODE_POWER_METRIC, PowerBoundary
from iolab.report.brief import Brief
from iolab.report.charts.chart import Chart, LineSegments, Markers, Rectangles
from iolab.report.drives import drive_wear_table
from iolab.report.power import meter_power_table
from iolab.report.power_section import bytes_by_layer_section, power_section
from tests.report import shared
from tests.report.made import build_brief
from tests.report.priced import configuration, session

GB = 10**9
RATES = {
    ("plain", "rand-read-4k", 8): 300_000.0,
    ("fast", "rand-read-4k", 8): 900_000.0,
    ("plain", "seq-write-1m", 8): 6e9,
    ("fast", "seq-write-1m", 1): 12e9,
}
TWO = (configuration("plain"), configuration("fast"))
WATTS = {"plain": 300.0, "fast": 600.0}


def metered_brief(*workloads: str) -> Brief:
    """Points of these workloads have watts by configuration, and operations a joule from them."""
    brief = build_brief(session(TWO, RATES))
    points = []
    for point in brief.points:
        rate = point.metric_value("iops") or 0.0
        watts = WATTS[point.key.configuration]
        own = {
            NODE_POWER_METRIC: Metric(watts, "W"),
            "node_ops_per_j": Metric(rate / watts, "ops/J"),
        }
        metered = point.key.workload in workloads
        points.append(replace(point, metrics={**point.metrics, **own}) if metered else point)
    return replace(brief, points=tuple(points))


def only_figure(brief: Brief) -> Chart:
    section = power_section(brief)
    assert section is not None
    (group,) = section.groups
    (figure,) = group.charts
    return figure


def test_rate_stands_against_watts_where_they_are_known() -> None:
    figure = only_figure(metered_brief("rand-read-4k"))
    (plot,) = figure.plots
    places = {place for mark in plot.marks if isinstance(mark, Markers) for place in mark.places}
    assert (300.0, 300.0) in places
    assert (600.0, 900.0) in places
    assert (plot.x and plot.x.title, plot.unit) == ("W", "k IOPS")
    assert "Fast at iodepth 8 does most with a joule: 1.50 k ops/J at 600 W." in figure.finding
    rows = [[cell.text for cell in row] for row in figure.table.rows]
    assert len(rows) == len(places)


def test_an_interval_of_rate_or_watts_is_drawn_and_said() -> None:
    brief = metered_brief("rand-read-4k")
    bare = only_figure(brief)
    assert not any(isinstance(mark, LineSegments) for mark in bare.plots[0].marks)
    watts = Metric(300.0, "W", 290.0, 310.0, 3)
    points = tuple(
        replace(point, metrics={**point.metrics, NODE_POWER_METRIC: watts})
        if point.metric_value(NODE_POWER_METRIC) == 300
        else point
        for point in brief.points
    )
    figure = only_figure(replace(brief, points=points))
    bars = [mark for mark in figure.plots[0].marks if isinstance(mark, LineSegments)]
    assert [list(mark.segments) for mark in bars] == [[(290.0, 300.0, 310.0, 300.0)]]
    assert "95 % intervals" in figure.note
    assert "95 % intervals" not in bare.note


def test_the_chart_stands_on_the_page() -> None:
    assert "Random read against watts" in shared.drawn(metered_brief("rand-read-4k"))


def test_without_power_nothing_is_drawn() -> None:
    brief = metered_brief()
    assert power_section(brief) is None
    alone = metered_brief("rand-read-4k")
    first = next(point for point in alone.points if NODE_POWER_METRIC in point.metrics)
    others = [point for point in alone.points if NODE_POWER_METRIC not in point.metrics]
    assert power_section(replace(alone, points=(first, *others))) is None


def worn_brief(**changes: object) -> Brief:
    wear = DriveWear(
        host="client-1",
        device="nvme0n1",
        model="M",
        is_emulated=False,
        application_bytes=100 * GB,
        block_bytes=150 * GB,
        media_bytes=Metric(450.0 * GB, "bytes"),
        media_counter=MediaCounter.OCP,
        write_amplification=Metric(3.0, "", 2.99, 3.01),
    )
    brief = build_brief(session(TWO, RATES))
    first, *others = brief.results
    worn = replace(first, drives=(replace(wear, **changes),))
    return replace(brief, results=(worn, *others))


def bar_parts(brief: Brief) -> list[float]:
    section = bytes_by_layer_section(brief)
    assert section is not None
    figure = section.groups[0].charts[0]
    boxes = [
        box for mark in figure.plots[1].marks if isinstance(mark, Rectangles) for box in mark.boxes
    ]
    return [((right or 0.0) - (left or 0.0)) / GB for left, _, right, _ in boxes]


@pytest.mark.parametrize(
    ("changes", "parts"),
    [
        ({}, [100, 50, 300]),
        ({"application_bytes": None}, [150, 300]),
        # A drive that compresses wrote less than it was given.
        ({"media_bytes": Metric(80.0 * GB, "bytes")}, [80]),
        ({"application_bytes": 200 * GB}, [200, 250]),
        ({"engine_bytes": 130 * GB}, [100, 30, 20, 300]),
    ],
)
def test_a_bar_is_what_each_layer_added(changes: dict[str, object], parts: list[float]) -> None:
    assert bar_parts(worn_brief(**changes)) == pytest.approx(parts)


def test_the_bytes_by_layer_are_told_in_a_sentence_and_on_the_page() -> None:
    brief = worn_brief()
    section = bytes_by_layer_section(brief)
    assert section is not None
    assert "419 GiB for 140 GiB, 3.00 times as much" in section.groups[0].charts[0].finding
    page = shared.drawn(brief)
    assert "Bytes down to the flash" in page
    assert ">engine<" not in page
    assert ">engine<" in shared.drawn(worn_brief(engine_bytes=130 * GB))
    assert bytes_by_layer_section(worn_brief(write_amplification=None)) is None


@pytest.mark.parametrize(
    ("lag_s", "note"),
    [
        (None, ""),
        (0.0, "Shows the load at most 1 s late"),
        (0.4, "Shows the load at most 1 s late"),
        (7.0, "Shows the load 7 s late"),
    ],
)
def test_a_meter_is_late_by_a_time_that_is_known_to_its_period(
    lag_s: float | None, note: str
) -> None:
    use = PowerUse(host="n", meter="bmc", boundary=PowerBoundary.NODE, period_s=1.0, lag_s=lag_s)
    brief = build_brief(session(TWO, RATES))
    table = meter_power_table([replace(brief.results[0], power=(use,))])
    assert table is not None
    assert [cell.text for cell in table.rows[0]][-1] == note


def test_of_several_meters_the_table_says_which_do_not_count() -> None:
    counted = PowerUse(
        host="n", meter="bmc", boundary=PowerBoundary.NODE, watts=Metric(9, "W"), is_counted=True
    )
    other = replace(counted, meter="pdu", is_counted=False)
    brief = build_brief(session(TWO, RATES))
    table = meter_power_table([replace(brief.results[0], power=(counted, other))])
    assert table is not None
    notes = [[cell.text for cell in row][-1] for row in table.rows]
    assert notes == ["", "Not counted in node power"]


def test_tables_of_meters_and_drives_name_the_configuration_of_several() -> None:
    use = PowerUse(host="n", meter="bmc", boundary=PowerBoundary.NODE)
    wear = DriveWear(host="n", device="nvme0n1", model="M", is_emulated=False, block_bytes=GB)
    brief = build_brief(session(TWO, RATES))
    results = [replace(result, power=(use,), drives=(wear,)) for result in brief.results]
    for table in (meter_power_table(results), drive_wear_table(results)):
        assert table is not None
        runs = [row[0].text for row in table.rows]
        assert {text.rpartition(" of ")[2] for text in runs} == {"plain", "fast"}
    only = meter_power_table([result for result in results if result.configuration == "fast"])
    assert only is not None
    assert not any(" of " in row[0].text for row in only.rows)
