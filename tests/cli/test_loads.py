"""Each kind of load on the screen: its rows, its numbers and its units."""

from __future__ import annotations

import re

import pytest
from msgspec.structs import replace

from iolab.analysis.points import summarise_points
from iolab.cli.details import detail_lines_of_runs
from iolab.cli.planning import plan_lines
from iolab.cli.progress import LoadGenerators, PointHostCounts, SessionProgress
from iolab.cli.results import result_lines
from iolab.core.events import IntervalReported, RunPreparing, SessionStarted
from iolab.core.metric import Outlier
from iolab.core.run import RunStatus
from iolab.guests.terminal import guest_node_lines, node_detail_lines
from tests.cli.screens import drawn
from tests.guests.guest_session import GuestSource, fleet
from tests.loads.keyvalue.key_value_session import cassandra, rocksdb
from tests.loads.metadata.metadata_session import kpi_with_metadata
from tests.report.hostile import EVERY

MIX = "  70 % reads, 30 % writes: 6 VMs, iodepth 8"


def test_key_value_points_stand_under_their_block_size() -> None:
    source = rocksdb(seconds=2)
    lines = drawn(result_lines(source.study, source.results()), 80)
    assert lines[0].split()[:5] == ["point", "ops/s", "read", "mean", "p99"]
    at = lines.index("Random reads, block size 4k")
    assert [line.split()[:2] for line in lines[at + 1 : at + 5]] == [
        ["threads", value] for value in ("4", "16", "32", "64")
    ]
    assert not any("IOPS" in line for line in lines)
    assert max(map(len, lines)) <= 80


def test_key_value_configurations_have_intervals_and_gains() -> None:
    source = rocksdb(("old", "new"), repeats=2, seconds=2, workload_count=1)
    lines = drawn(result_lines(source.study, source.results()), 120)
    assert "95 %" in lines[0]
    assert any("±" in line for line in lines)
    assert "old: Random reads, block size 4k" in lines
    told = lines[lines.index("New against Old") + 3].split()
    assert (told[0], told[1][:2], told[-2:]) == ("ops/s", "+2", ["better", "valid"])


def test_the_published_percentile_has_a_column_even_without_values() -> None:
    source = cassandra(rates=(1000,), seconds=2)
    heads = drawn(result_lines(source.study, source.results()), 120)[0]
    assert "p99.99" in heads
    assert "due mean" in heads


def test_each_metadata_operation_is_a_row_with_its_statistics_and_verdict() -> None:
    source = kpi_with_metadata()
    lines = drawn(result_lines(source.study, source.results()), 140)
    head = next(line for line in lines if line.startswith("Operation "))
    names = ["Verdict", "Rate over", "Max", "Min", "Arithmetic mean", "Std Dev"]
    names += ["Latency mean", "p50", "p99"]
    assert re.split(r" {2,}", head)[1:] == names
    stat = re.split(r" {2,}", next(line for line in lines if "File stat" in line).strip())
    assert stat[:3] == ["File stat", "indicative", "window"]
    assert "whole phase" in next(line for line in lines if "Tree create" in line)
    first, *others = (one for one in source.results() if one.workload == "metadata")
    failed = replace(first, status=RunStatus.FAILED, failure="The disk was full.")
    lines = drawn(result_lines(source.study, [failed, *others]))
    assert any("2 iterations, 1 not done" in line for line in lines)
    assert any("The disk was full." in line for line in lines)
    planned = drawn(plan_lines(source.study, source.plan, None))
    assert sum("4 ranks, 2,500 files each, rank shift 4" in line for line in planned) == 3


@pytest.fixture(scope="module")
def guests() -> GuestSource:
    return fleet(seconds=4)


def test_each_node_of_guests_has_its_rate_latency_and_what_stands_out(guests: GuestSource) -> None:
    points = summarise_points(guests.results(), guests.study)
    lines = drawn(guest_node_lines(guests.study, points), 120)
    at = lines.index(MIX)
    name, count, iops, _, mean, unit = lines[at + 1].split()[:6]
    assert (name, count, unit) == ("node-1", "3", "µs")
    node = guests.results()[-1].nodes[0]
    assert node.metrics["iops"].value == pytest.approx(float(iops) * 1e3, rel=0.01)
    assert node.metrics["lat_ns_mean"].value == pytest.approx(float(mean) * 1e3, rel=0.01)
    assert lines[at + 2].split()[:2] == ["node-2", "3"]
    parts = lines[max(at for at, line in enumerate(lines) if line == MIX) + 2]
    assert [word for word in parts.split() if word.isdigit()][-4:] == ["14", "16", "61", "9"]
    (told,) = [line for line in lines if "median" in line]
    for part in ("node-1: disk nvme1n1", "412 µs", "4.68 times", "88 µs", "4 of these 4 points"):
        assert part in told


def test_details_have_the_nodes_of_every_run(guests: GuestSource) -> None:
    lines = drawn(detail_lines_of_runs(guests.results()[-1:]), 120)
    at = next(number for number, line in enumerate(lines) if line.startswith("node wrote"))
    assert lines[at + 1].split() == ["node-1", "1", "GiB", "1", "GiB", "3", "GiB", "3.000", "3"]


def test_foreign_names_are_shown_and_not_obeyed(guests: GuestSource) -> None:
    run = guests.results()[-1]
    bad = Outlier("disk", EVERY, EVERY, 2.0, 1.0)
    nasty = tuple(replace(node, name=EVERY, outliers=(bad,)) for node in run.nodes)
    text = "\n".join(drawn(node_detail_lines(replace(run, nodes=nasty)), 400))
    assert "\x1b" not in text
    assert "\u202e" not in text
    assert "\\u202e" in text


def test_a_second_is_whole_when_the_guests_of_that_point_have_told_of_it(
    guests: GuestSource,
) -> None:
    run, names = guests.plan.runs[0], ("node-1-vm01", "node-2-vm01")
    point = PointHostCounts(run.point.configuration, run.point.per_node, run.point.host_count)
    makers = {point: LoadGenerators(names, ("node-1", "node-2"))}
    state = SessionProgress(
        "s", 12, 0, 8, 0.0, 10.0, 1.0, 0.0, load_generators_by_host_counts=makers, guest_count=6
    )
    state = state.after_event(SessionStarted(guests.plan, tuple(guests.facts.items()), "0"), 0.0)
    state = state.after_event(RunPreparing(run), 0.0)
    for guest in names:
        assert state.completed_load_seconds == ()
        state = state.after_event(IntervalReported(guest, run, 1.0, 100.0, 4e5, 1e3), 1.0)
    assert [load.iops for load in state.completed_load_seconds] == [200.0]
