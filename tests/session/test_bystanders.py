"""Storage nodes and hypervisors: watched while others work, and never the end of anything."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from iolab.core.events import Notice, SessionStarted, SessionStatus
from iolab.core.host import HostRole
from iolab.core.run import RunStatus
from iolab.session.context import SessionContext
from iolab.session.driver import LoadDriver
from iolab.session.process_driver import ProcessDriver
from tests.fakes.machine import DEVICE, machine_facts
from tests.fakes.script import FakeScript
from tests.session.stage import HOST, STUDY, Stage

MIB = 1 << 20


def storage(name: str, *, devices: str = DEVICE, role: str = "storage") -> str:
    lines = HOST.format(name=name) + f'role = "{role}"\n'
    return lines + (f'devices = ["{devices}"]\n' if devices else "")


def play(scripts: dict[str, FakeScript], tables: str) -> Stage:
    clients = "".join(HOST.format(name=name) for name in scripts if name.startswith("c"))
    return Stage(scripts, text=STUDY.format(hosts=clients + tables)).play()


def test_a_storage_node_is_watched_and_counted_in_every_run() -> None:
    busy = FakeScript(offset_ns=3_600_000_000_000, idle_bytes_per_sample=MIB)
    stage = play({"c1": FakeScript(), "c2": FakeScript(), "s1": busy}, storage("s1"))
    assert stage.status is SessionStatus.DONE, stage.fault
    assert len(stage.records) == 3
    for record in stage.records:
        assert record.host_names == ("c1", "c2", "s1")
        (node,) = record.monitored_hosts
        assert (node.host, node.role, node.error) == ("s1", HostRole.STORAGE, None)
        assert abs(node.clock_offset_ns - busy.offset_ns) <= node.clock_error_ns
        # The disk reads a MiB a sample, and several samples lie between the two looks.
        (moved,) = node.devices
        assert moved.device == DEVICE
        assert moved.read_bytes >= 4 * MIB
        watched = record.counters.host == 2
        assert watched.sum() > 0
        times = record.counters.real_ns[watched] - busy.offset_ns
        assert times.min() >= record.started_real_ns - node.clock_error_ns
        assert times.max() <= record.ended_real_ns + node.clock_error_ns
    asked = {verb for verb, _ in stage.hosts["s1"].agent.asked}
    assert asked.isdisjoint({"probe", "scratch_open", "run", "extents", "evict"})
    (started,) = stage.notes.of(SessionStarted)
    assert dict(started.facts)["s1"].target is None
    stage.assert_left_clean()


def test_what_follows_the_load_begins_when_nothing_is_watched(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    watches: list[list[int]] = []
    while_measured: list[int] = []
    measure = ProcessDriver.measure

    async def count_watches_of_load(
        self: ProcessDriver, session: SessionContext, *rest: Any
    ) -> None:
        await measure(self, session, *rest)
        while_measured.append(len(stage.hosts["s1"].agent.open_watches))

    async def count_watches(*_: object) -> None:
        watches.append([len(host.agent.open_watches) for host in stage.hosts.values()])

    monkeypatch.setattr(ProcessDriver, "measure", count_watches_of_load)
    monkeypatch.setattr(LoadDriver, "do_steps_after_load", count_watches)
    tables = HOST.format(name="c1") + storage("s1")
    stage = Stage({"c1": FakeScript(), "s1": FakeScript()}, text=STUDY.format(hosts=tables))
    assert stage.play().status is SessionStatus.DONE, stage.fault
    assert while_measured == [1] * 3
    assert watches == [[0, 0]] * 3


def test_a_node_is_watched_only_for_the_configurations_that_it_serves() -> None:
    tables = storage("s1") + storage("s2") + storage("hv", devices="", role="hypervisor")
    tables += '[[configuration]]\nid = "a"\nstorage = ["s1"]\n'
    tables += '[[configuration]]\nid = "b"\nstorage = ["s2"]\n'
    stage = play({name: FakeScript() for name in ("c1", "s1", "s2", "hv")}, tables)
    assert stage.status is SessionStatus.DONE, stage.fault
    for record in stage.records:
        node = {"a": "s1", "b": "s2"}[record.run.point.configuration]
        assert [item.host for item in record.monitored_hosts] == [node, "hv"]


def test_a_node_that_dies_is_told_once_and_the_session_goes_on() -> None:
    dying = FakeScript(dies=frozenset({"snapshot"}))
    stage = play({"c1": FakeScript(), "s1": dying, "s2": FakeScript()}, storage("s[1-2]"))
    assert stage.status is SessionStatus.DONE, stage.fault
    assert [record.status for record in stage.records] == [RunStatus.DONE] * 3
    for record in stage.records:
        lost, living = record.monitored_hosts
        assert lost.error is not None
        assert "s1" in lost.error
        assert lost.devices == ()
        assert living.error is None
        assert living.devices
    told = [note.text for note in stage.notes.of(Notice) if "s1" in note.text]
    assert len(told) == 1


def test_a_node_that_falls_silent_while_others_work_is_an_error_of_its_own() -> None:
    facts = machine_facts(None)
    mute = FakeScript(facts=facts, garbage=frozenset({"watch"}))
    stage = play({"c1": FakeScript(), "s1": mute}, storage("s1"))
    assert stage.status is SessionStatus.DONE, stage.fault
    assert all(record.monitored_hosts[0].error for record in stage.records)
    assert all(record.status is RunStatus.DONE for record in stage.records)


def test_a_node_that_cannot_be_reached_at_all_is_refused_with_the_others() -> None:
    stage = play({"c1": FakeScript(), "s1": FakeScript(dies=frozenset({"facts"}))}, storage("s1"))
    assert stage.fault is not None
    assert "s1" in str(stage.fault)
    assert stage.records == []


def test_a_device_that_is_not_there_is_told_before_anything_is_written() -> None:
    stage = play({"c1": FakeScript(), "s1": FakeScript()}, storage("s1", devices="sdz"))
    assert str(stage.fault).startswith("Host 's1' has no block device 'sdz'.")
    assert DEVICE in str(stage.fault)
    assert stage.hosts["c1"].asked("scratch_open") == []


def test_a_client_counts_the_devices_that_its_table_names() -> None:
    facts = machine_facts("/mnt/bench")
    other = replace(facts.disks[0], name="sdb")
    assert facts.target is not None
    network = replace(facts.target, device=None, devices=(), network=True)
    script = FakeScript(facts=replace(facts, disks=(*facts.disks, other), target=network))
    named = HOST.format(name="d1") + f'devices = ["{DEVICE}"]\n'
    stage = play({"d1": script}, named)
    assert stage.status is SessionStatus.DONE, stage.fault
    (started,) = stage.notes.of(SessionStarted)
    target = dict(started.facts)["d1"].target
    assert target is not None
    assert (target.device, target.devices) == (DEVICE, (DEVICE,))
    assert [delta.device for delta in stage.records[0].hosts[0].devices] == [DEVICE]


def test_a_member_that_a_client_names_is_not_all_that_its_target_is_on() -> None:
    facts = machine_facts("/mnt/bench")
    assert facts.target is not None
    members = tuple(replace(facts.disks[0], name=name) for name in ("sdb", "sdc", "sdd"))
    both = replace(facts.target, device="sdb", devices=("sdb", "sdc"))
    script = FakeScript(facts=replace(facts, disks=(*facts.disks, *members), target=both))
    for named, expected in (("sdc", ("sdb", "sdc")), ("sdd", ("sdd",))):
        stage = play({"d1": script}, HOST.format(name="d1") + f'devices = ["{named}"]\n')
        (started,) = stage.notes.of(SessionStarted)
        target = dict(started.facts)["d1"].target
        assert target is not None
        assert target.devices == expected


def test_every_host_is_asked_for_its_counters_once_at_the_end_of_a_run() -> None:
    stage = play({"c1": FakeScript(), "s1": FakeScript()}, storage("s1"))
    assert stage.status is SessionStatus.DONE, stage.fault
    for name in ("c1", "s1"):
        asked = [verb for verb, _ in stage.hosts[name].agent.asked]
        runs = " ".join(asked).split(" watch ")[1:]
        # One look before the load, one after it; the next run's own looks follow the unwatch.
        looks = [run.rsplit(" unwatch", 1)[0].count("snapshot") for run in runs]
        assert looks == [2, 2, 2], name
