"""Guests that really boot: what they tell, what their nodes count, and that nothing stays."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from iolab.analysis.window import find_measured_part
from iolab.core.bins import BIN_COUNT
from iolab.core.histogram import Histogram
from iolab.core.metric import LatencyLayer, VerdictLevel
from iolab.core.run import RunRecord, RunStatus
from iolab.core.workload import Direction
from iolab.guests.guest import Accelerator, guest_fleet_of_run
from tests.e2e.guest_sessions import NODES, Stored, iolab, left_on, study, workload
from tests.e2e.targets import Target, xfs_on_loop

pytestmark = [pytest.mark.e2e, pytest.mark.long]

LIMIT_IOPS = 60
"""Of each guest; so low that emulated processors carry it on a machine with other work."""
RUNTIME_S = 6
GUESTS = ("node-1-vm01", "node-2-vm01")


@pytest.fixture(scope="module")
def target() -> Iterator[Target]:
    with xfs_on_loop(1 << 30) as made:
        yield made


@pytest.fixture(scope="module")
def said(target: Target, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A session of two nodes with a guest each, and what it said while it went."""
    folder = tmp_path_factory.mktemp("fleet")
    file = study(
        folder,
        f'disk = "32m"\niops = {LIMIT_IOPS}',
        workload("mix", "randrw", more="rwmixread = 70\n"),
        workload("write", "randwrite"),
        hosts=NODES.format(path=target.path, device=target.device),
        runtime=f"{RUNTIME_S}s",
    )
    done = iolab("run", file, "--out", folder / "S", "--report")
    return folder / "S", done.stderr


@pytest.fixture(scope="module")
def stored(said: tuple[Path, str]) -> Stored:
    return Stored.at(said[0])


def merged(record: RunRecord, direction: Direction, hosts: list[int]) -> Histogram:
    """The bins of those guests in the window that all share, added up anew."""
    table, counts = record.bins, np.zeros(BIN_COUNT, dtype=np.int64)
    measured = find_measured_part(record)
    rows = np.repeat(measured.bin_group_mask, measured.bin_groups.size)
    rows &= (table.direction == direction) & np.isin(table.host, hosts)
    np.add.at(counts, table.bin[rows].astype(np.int64), table.count[rows].astype(np.int64))
    return Histogram(counts, None, None)


def test_every_run_is_done_by_a_guest_of_each_node(stored: Stored) -> None:
    runs = list(stored.runs())
    assert [run.point.workload for run, _, _ in runs] == ["mix", "write"]
    for run, record, result in runs:
        assert result.status is RunStatus.DONE, result.failure
        assert run.point.per_node == 1
        assert tuple(host.host for host in record.hosts) == GUESTS
        assert tuple(host.name for host in result.hosts) == GUESTS


def test_the_record_knows_all_of_its_guests(stored: Stored) -> None:
    for _, record, _ in stored.runs():
        fleet = guest_fleet_of_run(record)
        assert fleet is not None
        assert fleet.settings is not None
        assert (fleet.per_node, fleet.idle) == (1, ())
        assert (fleet.settings.iops_limit, fleet.settings.vcpus) == (LIMIT_IOPS, 1)
        assert [(one.guest, one.node) for one in fleet.guests] == [
            (GUESTS[0], "node-1"),
            (GUESTS[1], "node-2"),
        ]
        for one in fleet.guests:
            assert one.accelerator in (Accelerator.KVM, Accelerator.TCG)
            assert one.booted_s is not None
            assert one.booted_s > 0
            assert one.use is not None
            assert 0 < one.use.vcpu_run_s <= one.use.cpu_s + 0.1
            assert {block.direction for block in one.blocks} >= {Direction.READ, Direction.WRITE}
            for block in one.blocks:
                assert sum(count for *_, count in block.bins) in (0, block.ios)


def test_an_emulated_fleet_says_so_and_is_no_more_than_indicative(
    said: tuple[Path, str], stored: Stored
) -> None:
    for _, record, result in stored.runs():
        guest_fleet = guest_fleet_of_run(record)
        assert guest_fleet is not None
        if any(one.accelerator is Accelerator.TCG for one in guest_fleet.guests):
            assert stored.level_of(result, "emulated-guest").startswith("indicative")
            assert result.verdict.level is not VerdictLevel.VALID
            assert "Its guests are emulated" in said[1]


def test_percentiles_are_those_of_all_guests_together(stored: Stored) -> None:
    for _, record, result in stored.runs():
        compared = 0
        for direction, name in ((Direction.READ, "read"), (Direction.WRITE, "write")):
            metric = f"{name}_lat_ns_p50"
            told = [(result.metrics[metric], [0, 1])]
            told += [(node.metrics[metric], [index]) for index, node in enumerate(result.nodes)]
            for printed, hosts in told:
                # Of too few I/Os no percentile is printed.
                if printed.value is not None:
                    assert printed.value == merged(record, direction, hosts).percentile_ns(50)
                    compared += 1
        assert compared or result.window_s < 2


def test_every_i_o_of_each_guest_is_in_its_bins_and_its_intervals(stored: Stored) -> None:
    """Of the whole run, so that it holds where guests had no second in common, too."""
    for run, record, _ in stored.runs():
        for index, host in enumerate(record.hosts):
            assert host.totals is not None
            ways = ((Direction.READ, host.totals.read), (Direction.WRITE, host.totals.write))
            assert sum(totals.ios for _, totals in ways if totals) > 0
            for direction, totals in ways:
                ios = totals.ios if totals else 0
                assert ios > 0 or (run.point.workload, direction) == ("write", Direction.READ)
                bins, intervals = record.bins, record.intervals
                binned = (bins.host == index) & (bins.direction == direction)
                assert int(bins.count[binned].astype(np.int64).sum()) == ios
                told = (intervals.host == index) & (intervals.direction == direction)
                assert int(intervals.ios[told].sum()) == ios


def test_rates_of_nodes_add_up_to_the_fleet(stored: Stored) -> None:
    for _, _, result in stored.runs():
        assert [(node.name, node.guests) for node in result.nodes] == [
            ("node-1", (GUESTS[0],)),
            ("node-2", (GUESTS[1],)),
        ]
        # Without a second that all had in common, on a very busy machine, there is no fleet rate.
        if result.window_s:
            rates = [node.metrics["iops"].value or 0.0 for node in result.nodes]
            assert min(rates) > 0
            assert sum(rates) == pytest.approx(result.metrics["iops"].value)
        else:
            assert result.metrics["iops"].value is None


def test_a_limit_on_disks_is_what_each_guest_reaches(stored: Stored) -> None:
    for _, record, _ in stored.runs():
        guest_fleet = guest_fleet_of_run(record)
        assert guest_fleet is not None
        for guest in guest_fleet.guests:
            # Four jobs at depth 1 could do more; emulation on a very busy machine may do less.
            served = sum(block.ios for block in guest.blocks)
            assert 0.7 <= served / (LIMIT_IOPS * RUNTIME_S) <= 1.2


def test_bytes_are_the_same_on_every_layer(stored: Stored) -> None:
    for _, record, result in stored.runs():
        assert not stored.level_of(result, "guest-bytes").startswith("invalid")
        guest_fleet = guest_fleet_of_run(record)
        assert guest_fleet is not None
        for host, guest in zip(record.hosts, guest_fleet.guests, strict=True):
            assert host.totals is not None
            ways = ((Direction.READ, host.totals.read), (Direction.WRITE, host.totals.write))
            for direction, claimed in ways:
                served = sum(one.bytes for one in guest.blocks if one.direction is direction)
                assert served == pytest.approx(claimed.bytes if claimed else 0, abs=1 << 20)


def test_latency_is_told_layer_by_layer(stored: Stored) -> None:
    for run, record, result in stored.runs():
        guest_fleet = guest_fleet_of_run(record)
        assert guest_fleet is not None
        for host, guest in zip(record.hosts, guest_fleet.guests, strict=True):
            assert host.totals is not None
            assert host.totals.write is not None
            (below,) = (one for one in guest.blocks if one.direction is Direction.WRITE)
            assert below.ios >= host.totals.write.ios > 0
            assert 0 < below.total_time_ns / below.ios <= host.totals.write.lat_mean_ns * 1.1
        if not result.window_s:
            continue
        for node in result.nodes:
            writes = {
                one.layer: one.mean_ns for one in node.layers if one.direction is Direction.WRITE
            }
            assert {LatencyLayer.ENGINE, LatencyLayer.GUEST, LatencyLayer.HYPERVISOR} <= set(
                writes
            ), run.point
            # The limit makes them wait at the hypervisor, so that those above it see that, too.
            assert writes[LatencyLayer.HYPERVISOR] <= writes[LatencyLayer.ENGINE] * 1.1


def test_it_is_shown_and_reported(said: tuple[Path, str]) -> None:
    session = said[0]
    document = json.loads(iolab("show", session, "--json").stdout)
    assert len(document["results"]) == 2
    assert "emulated-guest" in iolab("show", session, "--details").stdout
    assert [node["name"] for node in document["results"][0]["nodes"]] == ["node-1", "node-2"]
    page = (session / "report.html").read_text(encoding="utf-8")
    assert "node-1-vm01" in page
    assert "A few guests" in page


def test_nothing_is_left(said: tuple[Path, str], target: Target) -> None:
    assert said[0].is_dir()
    assert left_on(target.path) == []
    assert list(target.path.iterdir()) == []
