"""A look at several hosts at once, of which some fail."""

from __future__ import annotations

import asyncio

import pytest

from iolab.errors import Fault
from iolab.hosts.barrier import HostOutcomes
from iolab.session.discovery import InspectedHost, device_busy_share, inspect_hosts
from tests.fakes.host import FakeHost
from tests.fakes.machine import DEVICE, machine_facts
from tests.fakes.script import FakeScript, LoopClock
from tests.fakes.virtual_time import run_virtually

PATH = "/mnt/target"
FACTS = machine_facts(PATH)
HOUR_NS = 3600 * 10**9


def inspect(
    *hosts: FakeHost, path: str | None = PATH, cloud: bool = False
) -> HostOutcomes[InspectedHost]:
    async def body() -> HostOutcomes[InspectedHost]:
        named = {host.name: host for host in hosts}
        try:
            tools = {"fio": ["fio", "--version"]}
            return await inspect_hosts(named, path, tools, LoopClock(), reads_cloud_metadata=cloud)
        finally:
            await asyncio.gather(*(host.close() for host in hosts))

    return run_virtually(body())


def test_every_host_is_asked_and_watched() -> None:
    host = FakeHost("a", FakeScript(FACTS, offset_ns=HOUR_NS, idle_bytes_per_sample=8192))
    seen = inspect(host).results["a"]
    assert seen.facts == FACTS
    assert seen.path == PATH
    assert seen.probe is not None
    assert abs(seen.clock_offset.offset_ns - HOUR_NS) <= seen.clock_offset.error_ns
    assert seen.activity.pre_run_activity is not None
    assert seen.activity.pre_run_activity.watched_s >= 1
    assert seen.activity.pre_run_activity.bytes_per_s > 0
    assert seen.activity.cpu_busy_share is not None
    assert 0.09 < seen.activity.cpu_busy_share < 0.11
    assert seen.activity.device_busy_share is not None
    assert 0.09 < seen.activity.device_busy_share < 0.11


@pytest.mark.parametrize("cloud", [False, True])
def test_the_cloud_is_asked_where_that_is_wanted(*, cloud: bool) -> None:
    host = FakeHost("a", FakeScript(FACTS))
    inspect(host, cloud=cloud)
    (asked,) = host.asked("facts")
    assert asked["cloud"] is cloud


def test_hosts_that_fail_are_told_and_the_others_still_seen() -> None:
    seen = inspect(
        FakeHost("a", FakeScript(FACTS, dies=frozenset({"facts"}))),
        FakeHost("b", FakeScript(FACTS)),
        FakeHost("c", FakeScript(FACTS, silent=frozenset({"snapshot"}))),
        FakeHost("d", FakeScript(FACTS, garbage=frozenset({"clock"}))),
    )
    assert set(seen.results) == {"b"}
    assert set(seen.errors) == {"a", "c", "d"}
    for name, error in seen.errors.items():
        assert f"'{name}'" in error.message
        assert Fault(error.message, error.hint).hint


def test_nobody_is_watched_before_all_were_asked() -> None:
    slow, quick = FakeHost("slow", FakeScript(FACTS, delay_s=3.0)), FakeHost("quick")
    seen = inspect(slow, quick)
    assert set(seen.results) == {"slow", "quick"}
    verbs = [verb for verb, _ in quick.agent.asked]
    assert verbs.index("facts") < verbs.index("snapshot") < verbs.index("clock")


def test_without_a_directory_nothing_is_tried() -> None:
    host = FakeHost("a", FakeScript(machine_facts(None)))
    assert inspect(host, path=None).results["a"].probe is None
    assert host.asked("probe") == []


def disks(*rows: tuple[str, int | None]) -> dict[str, list[list[object]]]:
    return {"disks": [[name, 0, 0, 0, 0, 0, 0, 0, busy] for name, busy in rows]}


def test_the_busiest_device_of_the_target_counts() -> None:
    before, after = disks((DEVICE, 100), ("md0", 0)), disks((DEVICE, 600), ("md0", 300))
    assert device_busy_share(before, after, (DEVICE, "md0"), 1000) == 0.5
    assert device_busy_share(before, after, ("md0",), 1000) == 0.3
    assert device_busy_share(before, after, (DEVICE,), 100) == 1.0
    assert device_busy_share(before, after, ("sdz",), 1000) is None
    assert device_busy_share(before, disks((DEVICE, None)), (DEVICE,), 1000) is None
    assert device_busy_share(before, after, (DEVICE,), 0) is None
