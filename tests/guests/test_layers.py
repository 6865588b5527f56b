"""The latency account: layers, what is between them, and what is missing."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from iolab.analysis.view import RunView, io_time_in_window
from iolab.analysis.window import Window
from iolab.core.metric import LatencyLayer
from iolab.core.run import DeviceDelta, RunRecord
from iolab.core.samples import empty_counter_table
from iolab.core.workload import Direction
from iolab.guests.guest import GuestDiskKind
from iolab.guests.metrics import guest_mean_latency_ns, layer_latencies_of_node
from iolab.guests.nodes import guests_of_run, hypervisor_runs
from tests.analysis.records import GO_NS, SECOND, disk
from tests.guests.fleets import (
    AHEAD_NS,
    GUESTS,
    IOPS,
    NODES,
    READ,
    SETTINGS,
    WRITES,
    blocks,
    counted,
    facts,
    fleet_of,
    given,
    guest,
    node,
    run,
    view,
)

MS = 1_000_000


def layers(record: RunRecord, seen: RunView | None = None) -> dict[LatencyLayer, float]:
    """The means of the first node in ms."""
    found = layer_latencies_of_node(seen or view(record), hypervisor_runs(record)[0])
    return {one.layer: round(one.mean_ns / MS, 6) for one in found}


def test_every_layer_tells_what_it_saw_of_the_same_ios() -> None:
    record = counted(run())
    found = layer_latencies_of_node(view(record), hypervisor_runs(record)[0])
    assert [(one.layer, one.direction) for one in found] == [
        (layer, Direction.READ) for layer in LatencyLayer
    ]
    means = [one.mean_ns / MS for one in found]
    assert means == pytest.approx([8.0, 7.0, 6.0, 1.0])
    assert [one.ios for one in found] == [2 * IOPS * 30] * 4


def test_writes_are_an_account_of_their_own() -> None:
    record = counted(run(job=WRITES), way="write")
    found = layer_latencies_of_node(view(record), hypervisor_runs(record)[0])
    assert {one.direction for one in found} == {Direction.WRITE}
    assert [one.mean_ns / MS for one in found] == pytest.approx([8.0, 7.0, 6.0, 1.0])


def test_what_others_read_of_a_device_is_no_layer_of_writes() -> None:
    disk_rows = {"nvme0n1": {"read_ios": 5, "read_time_ns": MS, "write_ios": 5}}
    record = counted(run(job=WRITES), way="write", disks=disk_rows)
    found = layer_latencies_of_node(view(record), hypervisor_runs(record)[0])
    assert {one.direction for one in found} == {Direction.WRITE}


def test_a_hypervisor_that_was_not_sampled_tells_of_the_whole_run() -> None:
    record = replace(counted(run()), counters=empty_counter_table())
    assert layers(record) == {LatencyLayer.ENGINE: 8.0, LatencyLayer.HYPERVISOR: 6.0}
    fleet = fleet_of(
        guest(GUESTS[0], blocks=(blocks(READ, lat_ms=2),)),
        guest(GUESTS[1], blocks=(blocks(3 * READ, lat_ms=6),)),
    )
    # Each I/O weighs the same.
    assert layers(run(fleet=fleet))[LatencyLayer.HYPERVISOR] == 5.0


def test_a_layer_is_left_out_where_anything_of_it_was_not_counted() -> None:
    fleet = fleet_of(guest(GUESTS[0]), given(GUESTS[1]))
    assert LatencyLayer.HYPERVISOR not in layers(run(fleet=fleet))
    record = counted(run())
    blind = {**facts()}
    del blind[GUESTS[0]]
    assert LatencyLayer.GUEST not in layers(record, view(record, blind))
    lost = counted(run(nodes=[node(name, error="It broke off.") for name in NODES]))
    assert set(layers(lost)) == {LatencyLayer.ENGINE, LatencyLayer.GUEST, LatencyLayer.HYPERVISOR}
    modelled = replace(SETTINGS, disk=GuestDiskKind.MODELLED, latency_ns=MS)
    fleet = fleet_of(*map(guest, GUESTS), settings=modelled)
    assert LatencyLayer.DEVICE not in layers(counted(run(fleet=fleet)))


def test_of_stacked_devices_the_lowest_count() -> None:
    deltas = tuple(DeviceDelta(name, READ, 0, 1, 0) for name in ("dm-0", "nvme0n1"))
    record = counted(
        run(nodes=[node(name, devices=deltas) for name in NODES]),
        disks={
            "dm-0": {"read_ios": IOPS, "read_time_ns": IOPS * 9 * MS},
            "nvme0n1": {"read_ios": IOPS, "read_time_ns": IOPS * 2 * MS},
        },
    )
    known = facts()
    known["n1"] = replace(known["n1"], disks=(disk("dm-0", "nvme0n1"), disk("nvme0n1")))
    assert layers(record, view(record, known))[LatencyLayer.DEVICE] == 2.0


def test_a_step_that_reaches_out_of_the_window_counts_by_its_part() -> None:
    record = counted(run())
    # The node's clock is an hour ahead: its samples are found all the same.
    window = Window(GO_NS + SECOND // 2, GO_NS + 2 * SECOND)
    seen = io_time_in_window(view(record), ("n1", "guest"), GUESTS[:1], Direction.READ, window)
    assert seen is not None
    assert seen.ios == pytest.approx(1500)
    assert seen.mean_ns == pytest.approx(6 * MS)
    late = Window(GO_NS + AHEAD_NS, GO_NS + AHEAD_NS + SECOND)
    assert (
        io_time_in_window(view(record), ("n1", "guest"), GUESTS[:1], Direction.READ, late) is None
    )
    assert io_time_in_window(view(record), ("n1", "guest"), [], Direction.READ, window) is None


def test_reads_and_writes_of_one_guest_are_one_latency() -> None:
    record = counted(run())
    (first, *_) = guests_of_run(record)
    assert guest_mean_latency_ns(view(record), first, LatencyLayer.ENGINE) == pytest.approx(8 * MS)
    assert guest_mean_latency_ns(view(record), first, LatencyLayer.HYPERVISOR) == pytest.approx(
        6 * MS
    )
    alone = run(fleet=fleet_of(*map(given, GUESTS)))
    (first, *_) = guests_of_run(alone)
    assert guest_mean_latency_ns(view(alone), first, LatencyLayer.HYPERVISOR) is None
