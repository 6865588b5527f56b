"""Guests that do not boot, die, fall silent or speak nonsense; nodes that cannot have them."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import pytest
from msgspec.structs import replace

from iolab.core.events import (
    Event,
    GuestBooted,
    Notice,
    SessionPhase,
    SessionPhaseStarted,
    SessionStatus,
)
from iolab.core.run import RunStatus
from iolab.errors import EngineError, HostError
from iolab.guests.guest import guest_fleet_of_run
from iolab.guests.kit.build import GuestKit
from iolab.hosts.barrier import StopRequest
from tests.fakes.fio import FakeLoad
from tests.fakes.script import FakeGuest, FakeScript
from tests.guests.fleet import NODES, Boots, boots_of, fleet, node_script, well
from tests.session.stage import Stage

PANIC = b"[    0.9] Kernel panic - not syncing: Attempted to kill init!\r\n[    0.9] CPU: 0\r\n"
AT_BOOT_ONE = "node-1-vm01"


def first_boot(of: str, guest: FakeGuest, then: FakeGuest | None = None) -> Boots:
    """The first boot of one guest goes so, the next ones well or as `then`."""

    def boots(name: str, number: int) -> FakeGuest:
        if name != of:
            return FakeGuest()
        return guest if number == 1 else then or FakeGuest()

    return boots


def assert_nothing_left(stage: Stage) -> None:
    for node in NODES:
        assert stage.hosts[node].left_behind == []
        assert stage.hosts[node].agent.swept == []


def test_boots_at_a_time_are_bounded_over_all_nodes_of_a_machine() -> None:
    stage = fleet(vm="boots = 1").play()
    assert stage.status is SessionStatus.DONE, stage.fault
    began = sorted(qemu.began_s for node in NODES for qemu in boots_of(stage, node))
    assert len(began) == 6  # those with which KVM is tried, too
    assert all(later - earlier >= 2.0 for earlier, later in pairwise(began))


def test_guests_boot_together_where_there_are_processors() -> None:
    stage = fleet().play()
    began = [qemu.began_s for node in NODES for qemu in boots_of(stage, node)[1:]]
    assert max(began) - min(began) < 2.0


def test_a_panic_at_boot_is_told_with_the_words_of_the_console() -> None:
    stage = fleet(first_boot(AT_BOOT_ONE, FakeGuest(console=PANIC, ends=True))).play()
    assert stage.fault is not None
    assert stage.fault.message.startswith("Guest 'node-1-vm01' did not boot")
    assert "code 0; [    0.9] Kernel panic" in stage.fault.message
    assert stage.records == []
    assert_nothing_left(stage)


def test_a_guest_that_hangs_is_started_once_more() -> None:
    hung = FakeGuest(console=b"tsc: Unable to calibrate\r\n", hangs=True)
    stage = fleet(first_boot(AT_BOOT_ONE, hung)).play()
    assert stage.status is SessionStatus.DONE, stage.fault
    first, second = [one for one in boots_of(stage, "node-1") if one.name == AT_BOOT_ONE]
    assert first.signal == "KILL"
    assert first.ended_s is not None
    assert first.ended_s <= second.began_s
    notes = [note.text for note in stage.notes.of(Notice)]
    assert any("'node-1-vm01' on node 'node-1' said nothing" in text for text in notes)
    stage.assert_left_clean()


def test_a_guest_that_hangs_twice_ends_the_session_at_its_limit() -> None:
    hung = FakeGuest(console=b"tsc: Unable to calibrate\r\n", hangs=True)
    stage = fleet(first_boot(AT_BOOT_ONE, hung, hung)).play()
    assert stage.fault is not None
    assert stage.fault.message.endswith("tsc: Unable to calibrate.")
    assert "nothing for 60 s" in stage.fault.message
    assert_nothing_left(stage)


@pytest.mark.parametrize("garbage", [b"\xff" * 64, b"Welcome to a login prompt\r\n"])
def test_garbage_on_the_channel_is_the_guests_fault(garbage: bytes) -> None:
    stage = fleet(first_boot(AT_BOOT_ONE, FakeGuest(garbage=garbage))).play()
    assert isinstance(stage.fault, HostError)
    assert "Host 'node-1-vm01' broke off: it " in stage.fault.message
    assert_nothing_left(stage)


def test_a_guest_that_dies_in_a_run_fails_it_and_is_booted_for_the_next() -> None:
    dying = FakeGuest(dies_at_s=6.0, last_words=PANIC)
    stage = fleet(first_boot(AT_BOOT_ONE, dying)).play()
    assert stage.status is SessionStatus.DONE, stage.fault
    failed, after = stage.records
    assert failed.status is RunStatus.FAILED
    assert failed.failure is not None
    assert "Host 'node-1-vm01' broke off" in failed.failure
    assert "Kernel panic" in failed.failure
    assert after.status is RunStatus.DONE
    assert len(after.hosts) == 4
    assert [qemu.name for qemu in boots_of(stage, "node-1")].count(AT_BOOT_ONE) == 2
    assert_nothing_left(stage)


def test_a_run_without_its_guest_is_tried_again_where_the_study_says_so() -> None:
    dying = FakeGuest(dies_at_s=6.0, last_words=PANIC)
    method = 'on_failure = "retry"\nretries = 1'
    stage = fleet(first_boot(AT_BOOT_ONE, dying), method=method).play()
    statuses = [record.status for record in stage.records]
    assert statuses == [RunStatus.FAILED, RunStatus.DONE, RunStatus.DONE]


def test_the_session_goes_on_without_a_guest_where_the_study_says_so() -> None:
    dying = FakeGuest(dies_at_s=6.0, last_words=PANIC)
    stage = fleet(first_boot(AT_BOOT_ONE, dying), method='on_failure = "without-host"').play()
    assert stage.status is SessionStatus.DONE, stage.fault
    last = stage.records[-1]
    assert last.excluded_hosts == (AT_BOOT_ONE,)
    assert [host.host for host in last.hosts] == ["node-1-vm02", "node-2-vm01", "node-2-vm02"]
    guest_fleet = guest_fleet_of_run(last)
    assert guest_fleet is not None
    assert len(guest_fleet.guests) == 3


def test_a_channel_that_stalls_loses_the_guest_and_not_its_node() -> None:
    mute = FakeScript(loads=(FakeLoad(host_silent_at_s=2.0),))
    silent = FakeGuest(script=mute, stays=True)
    stage = fleet(first_boot(AT_BOOT_ONE, silent)).play()
    assert stage.status is SessionStatus.DONE, stage.fault
    failed, after = stage.records
    assert failed.failure is not None
    assert "'node-1-vm01' showed no sign of life" in failed.failure
    assert failed.monitored_hosts[0].error is None
    assert after.status is RunStatus.DONE
    first, second = [one for one in boots_of(stage, "node-1") if one.name == AT_BOOT_ONE]
    assert first.ended_s is not None
    assert (first.signal, first.ended_s <= second.began_s) == ("KILL", True)
    assert_nothing_left(stage)


def test_a_hypervisor_that_is_not_spoken_to_ends_nothing() -> None:
    stage = fleet(first_boot(AT_BOOT_ONE, FakeGuest(monitor=False)), per_node="[1]").play()
    assert stage.status is SessionStatus.DONE, stage.fault
    (record,) = stage.records
    guest_fleet = guest_fleet_of_run(record)
    assert guest_fleet is not None
    mute, other = guest_fleet.guests
    assert (mute.blocks, bool(other.blocks)) == ((), True)
    assert mute.use is not None


def test_a_hypervisor_that_is_lost_later_leaves_what_the_node_itself_tells() -> None:
    boots = first_boot(AT_BOOT_ONE, FakeGuest(answers=3))
    (record,) = fleet(boots, per_node="[1]").play().records
    guest_fleet = guest_fleet_of_run(record)
    assert guest_fleet is not None
    mute, other = guest_fleet.guests
    assert (mute.blocks, bool(other.blocks)) == ((), True)
    assert mute.use is not None


def test_a_guest_that_does_not_power_off_is_killed() -> None:
    stage = fleet(first_boot(AT_BOOT_ONE, FakeGuest(stays=True))).play()
    assert stage.status is SessionStatus.DONE, stage.fault
    signals = {qemu.name: qemu.signal for qemu in boots_of(stage, "node-1")}
    assert signals == {"kvm-trial": "KILL", AT_BOOT_ONE: "KILL", "node-1-vm02": ""}
    stage.assert_left_clean()


def test_a_node_that_is_lost_loses_its_guests() -> None:
    boots = first_boot(AT_BOOT_ONE, FakeGuest())
    stage = fleet(boots, per_node="[1]")
    lost = node_script(boots, garbage=frozenset({"use"}))
    stage.scripts = {**stage.scripts, "node-1": lost}
    stage.play()
    assert stage.records[0].status is RunStatus.FAILED
    assert stage.records[0].failure is not None
    assert "node-1-vm01" in stage.records[0].failure
    assert stage.hosts["node-2"].left_behind == []


def test_a_node_that_comes_back_has_its_guests_again() -> None:
    stage = fleet(per_node="[1, 2]")
    stage.scripts = {**stage.scripts, "node-1": node_script(well, dies=frozenset({"use"}))}
    stage.again = {"node-1": [node_script(well)]}
    stage.play()
    assert stage.status is SessionStatus.DONE, stage.fault
    failed, after = stage.records
    assert failed.status is RunStatus.FAILED
    assert after.status is RunStatus.DONE
    assert len(after.hosts) == 4
    (again,) = stage.reached
    assert again.asked("scratch_open")
    assert again.left_behind == []
    assert after.monitored_hosts[0].error is None


def test_no_guest_is_booted_on_a_node_that_comes_back_as_another() -> None:
    stage = fleet(per_node="[1, 2]")
    other = node_script(well)
    assert other.facts is not None
    cpu = replace(other.facts.cpu, model="another")
    changed = replace(other, facts=replace(other.facts, cpu=cpu))
    stage.scripts = {**stage.scripts, "node-1": node_script(well, dies=frozenset({"use"}))}
    stage.again = {"node-1": [changed]}
    stage.play()
    assert stage.fault is not None
    assert stage.fault.message.startswith("Node 'node-1' was lost")
    (again,) = stage.reached
    assert not again.asked("scratch_open")
    assert again.left_behind == []


def test_two_sessions_on_the_same_images_refuse_each_other() -> None:
    held = {"scratch_open": ("busy", "/mnt/bench/iolab-scratch-node-2 is held by iolab session x")}
    stage = fleet()
    stage.scripts = {**stage.scripts, "node-2": node_script(well, refuses=held)}
    stage.play()
    assert stage.fault is not None
    assert "held by iolab session x" in stage.fault.message
    assert boots_of(stage, "node-1") == []
    assert_nothing_left(stage)


def test_a_kit_that_cannot_be_made_leaves_nothing() -> None:
    stage = fleet()

    async def none(_: Callable[[str], None], *, package: str = "") -> GuestKit:
        raise EngineError(f"There is no kernel {package}.", "Install apt.")

    stage.kit = none
    stage.play()
    assert isinstance(stage.fault, EngineError)
    assert stage.hosts["node-1"].asked("scratch_close")
    assert_nothing_left(stage)


def test_images_that_find_no_room_are_told_and_nothing_is_left() -> None:
    full = FakeLoad(exit_code=1, error=28, stderr=b"fio: No space left on device\n")
    stage = fleet(layouts=(full,)).play()
    assert stage.fault is not None
    assert any("ran full while guests (128 MiB)" in one.message for one in stage.fault.faults)
    assert_nothing_left(stage)


def test_a_node_without_qemu_is_refused_before_anything_is_done() -> None:
    script = node_script(well)
    assert script.facts is not None
    bare = replace(script, facts=replace(script.facts, tools=()))
    stage = fleet()
    stage.scripts = {**stage.scripts, "node-1": bare}
    stage.play()
    assert stage.fault is not None
    assert "There is no qemu-system-x86_64 on node 'node-1'." in [
        fault.message for fault in stage.fault.faults
    ]
    assert stage.hosts["node-2"].asked("scratch_open") == []


def test_a_request_to_stop_kills_guests_that_are_up_and_those_that_are_not() -> None:
    stop = StopRequest()

    def react(event: Event) -> None:
        if isinstance(event, GuestBooted) and not stop.is_requested:
            stop.request_stop()

    stage = fleet(first_boot(AT_BOOT_ONE, FakeGuest(hangs=True)))
    stage.stop, stage.notes.react = stop, react
    stage.play()
    assert stage.status is SessionStatus.INTERRUPTED
    assert [qemu.name for qemu in boots_of(stage, "node-1")].count(AT_BOOT_ONE) == 1
    assert_nothing_left(stage)


@pytest.mark.parametrize("requests", [1, 2])
def test_a_request_to_stop_ends_boots(requests: int) -> None:
    stop = StopRequest()

    def react(event: Event) -> None:
        if isinstance(event, SessionPhaseStarted) and event.phase is SessionPhase.BOOT:
            for _ in range(requests):
                stop.request_stop()

    stage = fleet(first_boot(AT_BOOT_ONE, FakeGuest(hangs=True)))
    stage.stop, stage.notes.react = stop, react
    stage.play()
    assert stage.status is SessionStatus.INTERRUPTED
    for node in NODES:
        ran = [str(run["argv"]) for run in stage.hosts[node].asked("run")]
        assert not any("fio" in words for words in ran)  # no image is laid out any more
        assert stage.hosts[node].left_behind == []
