"""Bytes on their way from guests down to the devices of their nodes."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from iolab.core.configuration import Redundancy
from iolab.core.host import HostFacts, HostRole
from iolab.core.metric import CheckResult, VerdictLevel
from iolab.core.run import DeviceDelta, MonitoredHost, RunRecord
from iolab.core.workload import Direction
from iolab.guests.analysis import check_guest_bytes
from iolab.guests.guest import GuestDiskKind, GuestSettings
from iolab.guests.nodes import fleet_byte_counts, hypervisor_runs, written_bytes_of_node_by_layer
from tests.analysis.checks_on import INDICATIVE, INVALID, VALID
from tests.analysis.records import Burst
from tests.guests.fleets import (
    GUESTS,
    NODES,
    READ,
    SETTINGS,
    WRITES,
    blocks,
    facts,
    fleet_of,
    given,
    guest,
    node,
    run,
    view,
)

MIB = 1 << 20
MIRRORED = replace(SETTINGS, replicas=2)


def ask(record: RunRecord, known: dict[str, HostFacts] | None = None) -> CheckResult:
    answer = check_guest_bytes(view(record, known))
    assert answer.message.endswith(".")
    assert answer.message[0].isupper()
    return answer


def reads(share: float, **changes: Any) -> RunRecord:
    """The nodes' devices read that share of what their guests did."""
    return run(nodes=[node(name, round(share * 2 * READ)) for name in NODES], **changes)


def writes(share: float, settings: GuestSettings = SETTINGS, **changes: Any) -> RunRecord:
    """The nodes' devices wrote so many times what their guests did."""
    served = (blocks(way=Direction.WRITE),)
    fleet = fleet_of(*(guest(name, blocks=served) for name in GUESTS), settings=settings)
    nodes = [node(name, 0, round(share * 2 * READ)) for name in NODES]
    return run(job=WRITES, fleet=fleet, nodes=nodes, **changes)


@pytest.mark.parametrize(
    ("record", "expected"),
    [
        (reads(1.0), VALID),
        (reads(0.992), VALID),
        (reads(0.98), INDICATIVE),
        (reads(0.94), INVALID),
        (reads(0.0), INVALID),
        (reads(1.1), VALID),  # the slack of two devices over 30 s is 62 MiB of 469
        (reads(1.2), INDICATIVE),
        (writes(1.0), VALID),
        (writes(0.94), INVALID),
        (writes(1.2), INDICATIVE),
        (writes(2.0), INDICATIVE),
        (writes(2.0, MIRRORED), VALID),
        (writes(1.0, MIRRORED), INVALID),
        (writes(3.0, redundancy=Redundancy(3.0)), VALID),
        (writes(3.0, MIRRORED, redundancy=Redundancy(3.0)), VALID),
        (reads(2.0, redundancy=Redundancy(3.0, 2.0)), VALID),
        (reads(1.0, redundancy=Redundancy(3.0, 2.0)), INVALID),
    ],
)
def test_devices_move_what_left_the_guests_times_the_factor(
    record: RunRecord, expected: VerdictLevel
) -> None:
    answer = ask(record)
    assert answer.level is expected, answer.message


def test_replicas_count_over_all_nodes_not_on_each() -> None:
    """All guests of the first node write; its copies lie on the second."""
    quiet = (blocks(0, Direction.WRITE),)
    busy = (blocks(way=Direction.WRITE),)
    fleet = fleet_of(
        *(guest(name, blocks=busy if name.startswith("n1") else quiet) for name in GUESTS),
        settings=MIRRORED,
    )
    load = {name: [Burst(ios=0, direction=Direction.WRITE)] for name in GUESTS[2:]}
    nodes = [node(name, 0, 2 * READ) for name in NODES]
    account = fleet_byte_counts(view(run(job=WRITES, fleet=fleet, nodes=nodes, bursts=load)))
    assert account is not None
    assert (
        account.hypervisor_read_and_write_bytes,
        account.expected_device_read_and_write_bytes,
        account.moved_device_read_and_write_bytes,
    ) == (
        (0, 2 * READ),
        (0.0, 4.0 * READ),
        (0, 4 * READ),
    )


@pytest.mark.parametrize(
    ("served", "expected"),
    [
        (READ, VALID),
        (READ - MIB, VALID),
        (round(0.98 * READ), INVALID),
        (0, INVALID),
        (round(1.04 * READ), VALID),
        (round(1.07 * READ), INDICATIVE),
    ],
)
def test_a_hypervisor_serves_what_its_guest_asks_for(served: int, expected: VerdictLevel) -> None:
    odd = guest(GUESTS[3], blocks=(blocks(served),))
    fleet = fleet_of(*map(guest, GUESTS[:3]), odd)
    total = 3 * READ + served
    answer = ask(run(fleet=fleet, nodes=[node("n1", total // 2), node("n2", total - total // 2)]))
    assert answer.level is expected, answer.message
    if expected is not VALID:
        assert answer.evidence["guest"] == GUESTS[3]
        assert answer.evidence["guest_served_bytes"] == served


def test_what_the_guests_own_page_cache_answered_is_told_elsewhere() -> None:
    """The guest's device moved half of what its engine claims, and so did all below."""
    record = run(
        fleet=fleet_of(*(guest(name, blocks=(blocks(READ // 2),)) for name in GUESTS)),
        nodes=[node(name, READ) for name in NODES],
    )
    half = tuple(
        replace(host, devices=(replace(host.devices[0], read_bytes=READ // 2),))
        for host in record.hosts
    )
    assert ask(replace(record, hosts=half)).level is VALID
    # Without counts of its device the engine's word stands.
    bare = tuple(replace(host, devices=()) for host in record.hosts)
    assert ask(replace(record, hosts=bare)).level is INVALID


def test_devices_of_nodes_that_share_a_kernel_count_once() -> None:
    record = run(nodes=[node("n1", 4 * READ - MIB), node("n2", 4 * READ)])
    assert ask(record).level is INDICATIVE
    answer = ask(record, facts(one_kernel=True))
    assert answer.level is VALID
    assert (answer.evidence["devices"], answer.evidence["devices_read_bytes"]) == (1, 4 * READ)
    assert ask(reads(1.0), facts(one_kernel=True)).level is INVALID


@pytest.mark.parametrize(
    ("nodes", "blind"),
    [
        ([node("n1"), node("n2", error="It broke off.")], "n2"),
        ([node("n1", devices=()), node("n2")], "n1"),
        ([node("n1")], "n2"),
        ([], "n1"),
    ],
)
def test_a_node_that_was_not_counted_leaves_it_open(nodes: list[MonitoredHost], blind: str) -> None:
    answer = ask(run(nodes=nodes))
    assert answer.level is INDICATIVE
    assert f"the devices of {blind} were not counted" in answer.message


def test_a_node_without_guests_in_this_run_may_hold_their_copies() -> None:
    third = node("n3", 0, 4 * READ)
    record = writes(1.0, MIRRORED)
    record = replace(record, monitored_hosts=(*record.monitored_hosts, third))
    assert ask(record).level is VALID


def test_guests_of_somebody_else_are_held_only_against_what_is_declared() -> None:
    theirs = fleet_of(*map(given, GUESTS), settings=None)
    bare = ask(run(fleet=theirs, nodes=[node(name, 7) for name in NODES]))
    assert bare.level is None
    assert "no redundancy is declared" in bare.message
    assert ask(reads(0.5, fleet=theirs, redundancy=Redundancy(3.0))).level is INVALID
    assert ask(reads(1.0, fleet=theirs, redundancy=Redundancy(3.0))).level is VALID


def test_modelled_disks_have_no_devices_to_be_asked() -> None:
    modelled = replace(SETTINGS, disk=GuestDiskKind.MODELLED, latency_ns=1_000_000)
    assert ask(reads(0.0, fleet=fleet_of(*map(guest, GUESTS), settings=modelled))).level is None
    few = (blocks(READ // 2),)
    fleet = fleet_of(*(guest(name, blocks=few) for name in GUESTS), settings=modelled)
    assert ask(reads(0.0, fleet=fleet)).level is INVALID


def test_storage_nodes_answer_in_their_place() -> None:
    store = MonitoredHost(
        "s1", HostRole.STORAGE, None, (DeviceDelta("sda", 4 * READ, 0, 1, 0),), 0, 0
    )
    theirs = fleet_of(*map(given, GUESTS), settings=None)
    record = run(
        fleet=theirs,
        nodes=[store, *(node(name, devices=()) for name in NODES)],
        redundancy=Redundancy(3.0),
    )
    answer = ask(record)
    assert answer.level is None
    assert "storage nodes" in answer.message


def test_guests_of_one_kernel_each_count_what_they_did_alone() -> None:
    # Containers: the one device that all of them see has moved what all of them read.
    shared = facts()
    shared |= {name: replace(shared[name], kernel=shared["n1"].kernel) for name in GUESTS}
    record = run(fleet=fleet_of(*map(given, GUESTS), settings=None))
    hosts = [
        replace(host, devices=tuple(replace(one, read_bytes=4 * READ) for one in host.devices))
        for host in record.hosts
    ]
    account = fleet_byte_counts(view(replace(record, hosts=tuple(hosts)), shared))
    assert account is not None
    assert account.hypervisor_read_and_write_bytes == (4 * READ, 0)
    assert {one.guest_read_and_write_bytes for one in account.guests} == {(READ, 0)}


def test_writes_of_a_node_are_told_of_devices_that_are_its_own() -> None:
    own = DeviceDelta("nvme9n1", 0, 2 * READ, 0, 1)
    apart = view(
        run(job=WRITES, nodes=[node("n1", 0, 2 * READ), node("n2", devices=(own,))]),
        facts(one_kernel=True),
    )
    assert [
        written_bytes_of_node_by_layer(apart, one).devices for one in hypervisor_runs(apart.record)
    ] == [2 * READ] * 2
    together = view(writes(1.0), facts(one_kernel=True))
    assert [
        written_bytes_of_node_by_layer(together, one).devices
        for one in hypervisor_runs(together.record)
    ] == [None] * 2
