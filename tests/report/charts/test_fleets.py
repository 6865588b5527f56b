"""Charts of a fleet of guests: what their bars, lines and labels stand on, and what they say."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from iolab.core.metric import CheckResult, LatencyLayer, Outlier, Verdict, VerdictLevel
from iolab.guests.charts import node_other_load_text, node_timeline_charts
from iolab.guests.latency_breakdown import (
    RUNS_MAX,
    latency_breakdown_chart,
    latency_layers_table,
    latency_parts_and_clipped_layers,
)
from iolab.guests.node_chart import NAMED_MAX, PROCESSOR_METRICS, node_timeline_chart
from iolab.report.charts.chart import Line, Rectangles
from iolab.report.charts.palette import MUTED
from iolab.report.charts.scale import PLOT_WIDTH, parameter_axis
from iolab.report.charts.series import NodePanel, Panel, panel_line_from_array
from iolab.report.charts.svg import draw_inline_svg, ticks_that_fit
from tests.facts import tells
from tests.report.charts.fleets import accounts, node, wide_node
from tests.report.charts.outcomes import result
from tests.report.hostile import EVERY


def test_disks_that_do_many_times_the_load_of_guests_serve_others() -> None:
    inside = wide_node(2)  # two disks of 50 k IOPS each
    idle = replace(inside, result=result(8, 349.0))
    assert tells(
        node_other_load_text(idle), "node-1", "nvme0n1", "nvme1n1", "100 k IOPS", "349 IOPS"
    )
    own = replace(inside, result=result(8, 40_000.0))
    assert node_other_load_text(own) == ""
    rest = tuple(panel for panel in own.panels if panel.metrics != PROCESSOR_METRICS)
    for share, is_full in ((0.97, True), (0.5, False)):
        cores = panel_line_from_array("all cores", np.full(len(own.at_s), share))
        busy = NodePanel(Panel("Processors busy", "share", (cores,)), "cpu", PROCESSOR_METRICS)
        text = node_other_load_text(replace(own, panels=(*rest, busy)))
        assert (tells(text, "node-1", "processors", "97 %") if is_full else not text) is True
    assert node_other_load_text(node()) == ""  # its disks' I/O was not counted


def test_the_node_of_an_invalid_run_is_called_so() -> None:
    doubtful = CheckResult("start-skew", VerdictLevel.INVALID, "They started apart.")
    run = result(8, 349.0, VerdictLevel.INVALID)
    lost = replace(run, verdict=Verdict(VerdictLevel.INVALID, (doubtful,)))
    charts = node_timeline_charts(replace(wide_node(2), result=lost), "", "read-70")
    assert charts is not None
    assert tells(
        charts.charts[0].note,
        "read-70",
        "invalid: hosts that did not start together",
        "100 k IOPS",
    )
    sound = node_timeline_charts(replace(wide_node(2), result=result(8, 9e4)), "", "read-70")
    assert sound is not None
    assert "invalid" not in sound.charts[0].note


def test_parts_of_a_latency_add_up_to_it() -> None:
    seen = ((LatencyLayer.ENGINE, 100.0), (LatencyLayer.GUEST, 80.0), (LatencyLayer.DEVICE, 30.0))
    parts, capped = latency_parts_and_clipped_layers(seen)
    assert [(part.name, part.duration_ns) for part in parts] == [
        ("device", 30.0),
        ("hypervisor, network", 50.0),
        ("in the guest", 20.0),
    ]
    assert capped == ()


@given(st.lists(st.floats(1.0, 1e9), min_size=1, max_size=4))
def test_no_part_is_negative_and_the_whole_stays_whole(means: list[float]) -> None:
    parts, capped = latency_parts_and_clipped_layers(tuple(zip(LatencyLayer, means, strict=False)))
    assert all(part.duration_ns >= 0 for part in parts)
    assert sum(part.duration_ns for part in parts) == pytest.approx(means[0])
    assert bool(capped) == any(low > min(means[:i]) for i, low in enumerate(means) if i)


def test_without_a_device_the_lowest_layer_has_all_below_it() -> None:
    parts, _ = latency_parts_and_clipped_layers(
        ((LatencyLayer.ENGINE, 100.0), (LatencyLayer.HYPERVISOR, 60.0))
    )
    assert [part.name for part in parts] == ["hypervisor", "guest, virtual disk"]
    assert [
        part.name for part in latency_parts_and_clipped_layers(((LatencyLayer.ENGINE, 9.0),))[0]
    ] == ["not known"]


def test_below_guests_of_others_is_virtualisation_too() -> None:
    seen = ((LatencyLayer.ENGINE, 100.0), (LatencyLayer.GUEST, 80.0), (LatencyLayer.DEVICE, 30.0))
    (one, *_) = accounts()
    told = replace(one, parts=latency_parts_and_clipped_layers(seen)[0], total_ns=100.0)
    figure = latency_breakdown_chart("Reads", [told])
    assert figure is not None
    where = "between the guest’s block device and the devices (virtualisation, host storage, "
    assert f"most of it (50 %) {where}" in figure.finding
    assert f"hypervisor, network: {where}" in figure.note


def test_the_account_says_where_latency_arises() -> None:
    figure = latency_breakdown_chart("Reads", accounts(), "Guests emulated. ")
    assert figure is not None
    facts = ("Guests emulated", "96 VMs", "read", "1 ms", "50 %", "hypervisor", "90 µs", "9 %")
    assert tells(figure.finding, *facts, "write", "3 ms", "67 %", "devices"), figure.finding
    assert "longer a piece" in figure.note


def test_bars_of_all_latencies_have_one_length() -> None:
    figure = latency_breakdown_chart("Reads", accounts())
    assert figure is not None
    bars: dict[float, float] = {}
    for mark in figure.plots[1].marks:
        for _, y, x2, _ in mark.boxes if isinstance(mark, Rectangles) else ():
            if y is not None and x2 is not None and y >= 0:
                bars[y] = max(bars.get(y, 0.0), x2)
    assert len(bars) == 3
    assert list(bars.values()) == pytest.approx([1.0] * 3)


def test_the_table_of_the_account_has_what_each_layer_saw() -> None:
    table = latency_layers_table(accounts())
    heads = [column.title for column in table.columns]
    told = dict(zip(heads, (cell.text for cell in table.rows[2]), strict=True))
    assert (told["Devices saw"], told["Device"], told["Host, network"]) == (
        "2.20 ms",
        "67 %",
        "0 %",
    )
    assert table.rows[2][-1].verdict_level is VerdictLevel.INDICATIVE


def test_runs_beyond_the_limit_stand_in_the_table_alone() -> None:
    (one, *_) = accounts()
    many = [replace(one, run_name=f"{number} VMs") for number in range(RUNS_MAX + 2)]
    figure = latency_breakdown_chart("Reads", many)
    assert figure is not None
    assert figure.note.endswith("2 runs more in the table.")
    assert len(figure.table.rows) == RUNS_MAX + 2


def test_nothing_is_drawn_where_no_layer_is_known() -> None:
    parts, _ = latency_parts_and_clipped_layers(((LatencyLayer.ENGINE, 9.0),))
    assert latency_breakdown_chart("Reads", [replace(accounts()[0], parts=parts)]) is None


def test_a_node_from_inside_says_what_stands_out() -> None:
    figure = node_timeline_chart("node-1", "node-1 from inside", node())
    disks = ("Write latency", "90 µs", "nvme0n1", "410 µs", "nvme1n1", "nvme1n1 stands out")
    ports = ("Sent", "100 MB/s", "eth1", "186 MB/s", "eth0", "3.2 %", "6 %")
    assert tells(figure.finding, *disks, *ports), figure.finding
    last = [cell.text for cell in figure.table.rows[2]]
    assert last == ["Sent by each port", "eth0", "186 MB/s", "186 MB/s", "186 MB/s", "6 %", ""]


def test_what_is_before_the_window_is_shaded_and_does_not_count() -> None:
    figure = node_timeline_chart("node-1", "inside", node())
    shade = figure.plots[0].marks[0]
    assert isinstance(shade, Rectangles)
    assert shade.boxes == [(0.0, None, 1.0, None)]
    assert figure.table.rows[1][3].text == "400 µs"


def test_a_gap_is_no_zero() -> None:
    figure = node_timeline_chart("node-1", "inside", node())
    lines = [one for one in figure.plots[1].marks if isinstance(one, Line)]
    assert [y for _, y in lines[0].places] == [100.0, 186.0, None, 186.0]


def test_of_many_devices_those_that_matter_have_a_colour() -> None:
    figure = node_timeline_chart("node-1", "inside", wide_node())
    lines = [one for one in figure.plots[0].marks if isinstance(one, Line)]
    grey = [line for line in lines if line.color is MUTED]
    assert (len(lines), len(grey)) == (24, 21)
    labels = {end.text for end in figure.plots[0].end_labels}
    assert labels == {"nvme5n1", "nvme23n1", "nvme0n1"}
    assert f"Of more than {NAMED_MAX} devices" in figure.note


def test_a_core_that_stands_out_is_named_where_no_line_is_drawn_of_it() -> None:
    out = Outlier("cpu", "12@1", "busy_share", 0.99, 0.2)
    seen = node()
    (first, *_) = seen.panels
    panel = replace(first.panel, title="Processors busy by NUMA node", unit="share")
    cpu = replace(first, panel=panel, scope="cpu", metrics=("busy_share",))
    figure = node_timeline_chart("n", "inside", replace(seen, panels=(cpu,), outliers=(out,)))
    assert figure.finding.endswith("core 12 of NUMA 1 stands out.")


def test_hostile_names_of_devices_are_text() -> None:
    seen = node()
    (first, *_) = seen.panels
    traces = tuple(replace(trace, name=EVERY) for trace in first.panel.lines[:1])
    nasty = replace(first, panel=replace(first.panel, lines=traces))
    drawn = draw_inline_svg(node_timeline_chart(EVERY, EVERY, replace(seen, panels=(nasty,))))
    assert "<script" not in drawn.svg + drawn.marks_json
    assert "\u202e" not in drawn.svg + drawn.marks_json


def test_labels_of_guests_tell_those_of_all_nodes_and_of_one() -> None:
    axis = parameter_axis("vms_per_node", (1.0, 2.0, 3.0), 4)
    assert axis.title == "VMs on 4 nodes (on each)"
    assert axis.ticks == ((1, "4 (1)"), (2, "8 (2)"), (3, "12 (3)"))
    assert parameter_axis("vms_per_node", (1.0, 2.0)).title == "VMs per node"


@given(st.sets(st.integers(1, 200), min_size=1, max_size=60), st.integers(1, 16))
def test_labels_of_an_axis_do_not_touch(values: set[int], nodes: int) -> None:
    axis = parameter_axis("vms_per_node", map(float, values), nodes)
    placed = [(axis.offset_at(value), text) for value, text in axis.ticks]
    kept = ticks_that_fit(placed)
    assert {kept[0], kept[-1]} == {placed[0], placed[-1]}
    for (left, text), (right, other) in pairwise(kept[:-1]):
        assert right - left > 3 * (len(text) + len(other))
    assert kept[-1][0] - kept[0][0] <= PLOT_WIDTH


def test_sizes_on_an_axis_are_written_as_in_study_files() -> None:
    axis = parameter_axis("bs", (512.0, 4096.0, 1.5 * 2**20, 2.0**30))
    assert [text for _, text in axis.ticks] == ["512", "4k", "1.5m", "1g"]
