"""Guests and their nodes on the screen: results, and the live view while they boot and load."""

from __future__ import annotations

import io
from collections.abc import Iterable
from dataclasses import replace

import pytest
from rich.console import Console, RenderableType

from iolab.analyse.points import summarise
from iolab.cli.live import LinesView
from iolab.cli.nodes import NODES_MAX, node_details, nodes_screen
from iolab.cli.panel import panel
from iolab.cli.progress import Makers, Progress
from iolab.cli.results import details_screen, results_screen
from iolab.model.event import (
    GuestUp,
    IntervalSeen,
    Phase,
    PhaseStarted,
    RunStarted,
    SessionStarted,
)
from iolab.model.metric import Outlier
from tests.report.guest_session import GuestSource, fleet
from tests.report.hostile import EVERY
from tests.report.studies import kpi

MIX = "70 % reads, 30 % writes: 6 VMs, iodepth 8"


@pytest.fixture(scope="module")
def source() -> GuestSource:
    return fleet(seconds=4)


def drawn(parts: Iterable[RenderableType], width: int = 120) -> list[str]:
    out = io.StringIO()
    console = Console(file=out, width=width, markup=False, highlight=False, color_system=None)
    for part in parts:
        console.print(part)
    return [line.rstrip() for line in out.getvalue().splitlines()]


def nodes(source: GuestSource, width: int = 120) -> list[str]:
    return drawn(nodes_screen(source.study, summarise(source.results(), source.study)), width)


def test_points_are_told_with_their_guests_a_node(source: GuestSource) -> None:
    lines = drawn(results_screen(source.study, source.results()))
    assert any(line.startswith("  vms_per_node 3, iodepth 8 ") for line in lines)


def test_each_node_is_told_at_the_most_guests(source: GuestSource) -> None:
    lines = nodes(source)
    at = lines.index(f"  {MIX}")
    name, guests, iops, _, mean, unit = lines[at + 1].split()[:6]
    assert (name, guests) == ("node-1", "3")
    node = source.results()[-1].nodes[0]
    assert node.metrics["iops"].value == pytest.approx(float(iops) * 1e3, rel=0.01)
    latency = node.metrics["lat_ns_mean"].value
    assert latency == pytest.approx(float(mean) * 1e3, rel=0.01)
    assert unit == "µs"
    assert lines[at + 2].split()[:2] == ["node-2", "3"]


def test_latency_is_told_by_its_parts(source: GuestSource) -> None:
    lines = nodes(source)
    heads = next(line for line in lines if "virtual disk" in line)
    assert heads.split("  ")[-1] == "device"
    last = max(at for at, line in enumerate(lines) if line == f"  {MIX}")
    assert lines[last + 1].split()[0] == "read"
    assert [word for word in lines[last + 2].split() if word.isdigit()][-4:] == [
        "14",
        "16",
        "61",
        "9",
    ]


def test_what_stands_out_is_told_once_however_often_it_does(source: GuestSource) -> None:
    told = [line for line in nodes(source) if "median" in line]
    assert told == [
        "  node-1: disk nvme1n1, write latency 412 µs, 4.68 times the median of 88 µs "
        "(in 4 of these 4 points)"
    ]


def test_details_have_the_nodes_of_every_run(source: GuestSource) -> None:
    lines = drawn(details_screen(source.results()[-1:]))
    assert any(line.startswith("node-2 ") for line in lines)
    at = next(number for number, line in enumerate(lines) if line.startswith("node wrote"))
    assert lines[at].split("  ")[-1] == "declared factor"
    assert lines[at + 1].split() == ["node-1", "1", "GiB", "1", "GiB", "3", "GiB", "3.000", "3"]


def test_hosts_that_are_no_guests_have_no_nodes() -> None:
    plain = kpi()
    results = plain.results()
    assert drawn(nodes_screen(plain.study, summarise(results, plain.study))) == []
    assert drawn(node_details(results[0])) == []


def test_of_many_nodes_the_slowest_and_the_fastest_are_told() -> None:
    many = fleet(tuple(f"n{i}" for i in range(NODES_MAX + 3)), counts=(1,), depths=(1,), seconds=2)
    lines = nodes(many)
    assert sum(line.strip().startswith("n") for line in lines if "valid" in line) == 2 * NODES_MAX
    assert "    3 nodes between" in lines


def test_foreign_names_are_shown_and_not_obeyed(source: GuestSource) -> None:
    run = source.results()[-1]
    bad = Outlier("disk", EVERY, EVERY, 2.0, 1.0)
    nasty = tuple(replace(node, name=EVERY, outliers=(bad,)) for node in run.nodes)
    text = "\n".join(drawn(node_details(replace(run, nodes=nasty)), 400))
    assert "\x1b" not in text
    assert "\u202e" not in text
    assert "\\u202e" in text


def watched(source: GuestSource) -> Progress:
    run = source.plan.runs[0].point
    hosts = ("node-1-vm01", "node-2-vm01")
    return Progress(
        *("s", 12, 0, 8, 0.0, 10.0, 1.0, 0.0),
        makers={
            (run.configuration, run.per_node, run.host_count): Makers(hosts, ("node-1", "node-2"))
        },
        guest_count=6,
    )


def lines_of(state: Progress) -> list[str]:
    console = Console(file=io.StringIO(), width=100)
    return drawn([panel(state, console.options)], 100)


def test_boots_are_counted_until_the_first_run(source: GuestSource) -> None:
    state = watched(source).after(PhaseStarted(Phase.CONNECT, None, "8 hosts", None), 0.0)
    assert lines_of(state)[1].endswith("8 hosts")
    for guest in ("a", "b", "b"):
        state = state.after(GuestUp(guest, "node-1", 1.6), 1.0)
    assert lines_of(state)[1].endswith("2 of 6 guests up")
    assert state.after(RunStarted(source.plan.runs[0]), 2.0).boots == ""


def test_a_second_is_whole_when_the_guests_of_that_point_have_told_of_it(
    source: GuestSource,
) -> None:
    run = source.plan.runs[0]
    facts = tuple(source.facts.items())
    state = watched(source).after(SessionStarted(source.plan, facts, "0"), 0.0)
    assert state.host_count == len(facts)
    state = state.after(RunStarted(run), 0.0)
    for guest in ("node-1-vm01", "node-2-vm01"):
        assert state.loads == ()
        state = state.after(IntervalSeen(guest, run, 1.0, 100.0, 4e5, 1e3), 1.0)
    assert [load.iops for load in state.loads] == [200.0]


def test_who_makes_the_load_is_told_while_it_is_measured(
    source: GuestSource, capsys: pytest.CaptureFixture[str]
) -> None:
    run = source.plan.runs[0]
    state = watched(source).after(RunStarted(run), 0.0)
    measuring = state.after(PhaseStarted(Phase.MEASURE, run, "", 10.0), 0.0)
    assert lines_of(measuring)[1].endswith("2 guests on 2 nodes")
    view = LinesView(watched(source), clock=lambda: 0.0)
    view.see(GuestUp("node-1-vm01", "node-1", 1.64))
    view.see(RunStarted(run))
    view.see(PhaseStarted(Phase.MEASURE, run, "", 10.0))
    said = capsys.readouterr().err.splitlines()
    assert said[0] == "node-1-vm01 is up after 1.6 s: 1 of 6 guests up"
    assert said[1].endswith("measure, 2 guests on 2 nodes (about 10 s)")
