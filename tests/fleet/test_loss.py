"""Hosts that are lost: told within a stated time, and nothing of ours lives on there."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from pathlib import Path

import pytest

from iolab.hosts.host import Host
from iolab.hosts.message import HostLostError
from iolab.hosts.ssh import SshLinkSettings
from iolab.session.session import SILENCE_SHOWN_AFTER_S
from tests.fleet.bed import Bed, run, sleeper, visit

pytestmark = pytest.mark.e2e

QUICK = SshLinkSettings(login_timeout_s=10.0, keepalive_s=0.3, keepalives=2, close_timeout_s=1.0)
ROOT = Path(__file__).parents[2]


def busy(fleet: Bed, name: str) -> None:
    """The agent and its child run there; an agent is named by the checksum in its path."""
    commands = set(fleet.sessions(name).values())
    assert "sleep" in commands
    assert any(path.name.startswith(comm) for path in fleet.agents(name) for comm in commands)


def test_nothing_is_left_when_the_controller_closes(fleet: Bed) -> None:
    async def work(host: Host) -> None:
        await sleeper(host)
        busy(fleet, "c01")

    visit(work, fleet.specs["c01"])
    fleet.wait_until_alone("c01")


def test_nothing_is_left_when_the_controller_is_killed(fleet: Bed) -> None:
    script = (
        "import asyncio, sys\n"
        "from pathlib import Path\n"
        "from tests.fleet.bed import sleeper, visit\n"
        "from iolab.study.inventory import parse_inventory\n"
        "specs = parse_inventory(Path(sys.argv[1]).read_text(), sys.argv[1])\n"
        "async def work(*hosts):\n"
        "    for host in hosts:\n"
        "        await sleeper(host)\n"
        "    print('ready', flush=True)\n"
        "    await asyncio.sleep(1000)\n"
        "visit(work, *specs)\n"
    )
    words = [sys.executable, "-c", script, str(fleet.inventory)]
    with subprocess.Popen(words, cwd=ROOT, stdout=subprocess.PIPE, text=True) as controller:
        assert controller.stdout is not None
        assert controller.stdout.readline() == "ready\n"
        for name in fleet.specs:
            busy(fleet, name)
        controller.kill()
    for name in fleet.specs:
        fleet.wait_until_alone(name)


def test_an_sshd_that_dies_is_told_and_its_agent_goes(fleet: Bed) -> None:
    async def work(host: Host) -> str:
        await sleeper(host)
        busy(fleet, "c01")
        fleet.kill_sshd("c01")
        with pytest.raises(HostLostError) as caught:
            await host.request("clock", deadline_s=20)
        return str(caught.value)

    try:
        told = visit(work, fleet.specs["c01"])
        assert told.startswith("Host 'c01' broke off: it ended (its sshd closed the connection).")
        deadline = time.monotonic() + 10
        while left := fleet.processes("c01"):
            assert time.monotonic() < deadline, left
    finally:
        fleet.start_sshd("c01")


@pytest.mark.long
def test_a_link_that_carries_nothing_ends_both_sides(fleet: Bed) -> None:
    """Half open: no side is told anything, and sshd would wait for hours."""

    async def work(host: Host) -> str:
        await sleeper(host)
        with fleet.unplugged("c01"):
            with pytest.raises(HostLostError) as caught:
                await host.request("clock", deadline_s=60)
            fleet.wait_until_alone("c01")
        return str(caught.value)

    told = visit(work, fleet.specs["c01"], link_timeout_s=5.0)
    assert told.startswith("Host 'c01' has been silent for 5 s.")


@pytest.mark.long
def test_a_host_that_stands_still_for_less_is_heard_again(fleet: Bed) -> None:
    async def work(host: Host) -> str | None:
        await sleeper(host)
        with fleet.stopped("c01", sessions=True):
            while host.silent_s < SILENCE_SHOWN_AFTER_S:  # noqa: ASYNC110 - it is counted, not told
                await asyncio.sleep(0.1)
        assert (await host.request("clock", deadline_s=20)).message_type == "clock"
        assert host.silent_s < SILENCE_SHOWN_AFTER_S
        busy(fleet, "c01")
        return host.lost_reason

    assert visit(work, fleet.specs["c01"], link_timeout_s=30.0) is None


@pytest.mark.long
def test_a_controller_that_stands_still_for_less_loses_nobody(fleet: Bed) -> None:
    """Its process does nothing at all meanwhile, as when it is stopped."""

    async def work(host: Host) -> str | None:
        await sleeper(host)
        time.sleep(8)  # noqa: ASYNC251 - the whole loop is to stand still
        assert (await host.request("clock", deadline_s=20)).message_type == "clock"
        assert host.silent_s < SILENCE_SHOWN_AFTER_S
        busy(fleet, "c01")
        return host.lost_reason

    assert visit(work, fleet.specs["c01"], link_timeout_s=30.0) is None


@pytest.mark.long
def test_a_cable_that_is_pulled_is_noticed_on_both_sides(fleet: Bed) -> None:
    async def work(host: Host) -> str:
        await sleeper(host)
        with fleet.unplugged("c01"):
            with pytest.raises(HostLostError) as caught:
                await host.request("clock", deadline_s=20)
            await host.close()
            fleet.wait_until_alone("c01")
        return str(caught.value)

    told = visit(work, fleet.specs["c01"], limits=QUICK)
    assert "Host 'c01' broke off: it ended (it gave no sign of life for 0.9 s)." in told


@pytest.mark.long
def test_a_host_that_stands_still_is_lost_like_one_that_is_gone(fleet: Bed) -> None:
    async def work(host: Host) -> str:
        await sleeper(host)
        with fleet.stopped("c01", sessions=True), pytest.raises(HostLostError) as caught:
            await host.request("clock", deadline_s=20)
        return str(caught.value)

    assert "it gave no sign of life for 0.9 s" in visit(work, fleet.specs["c01"], limits=QUICK)


def test_a_host_that_is_idle_is_not_taken_for_lost(fleet: Bed) -> None:
    """Longer than the silence that is allowed: sshd answers, the agent has nothing to say."""

    async def work(host: Host) -> None:
        deadline = time.monotonic() + 2 * QUICK.silence_s
        stream = run(host, ["sleep", str(2 * QUICK.silence_s)])
        assert [message.message_type async for message in stream] == ["started", "exited"]
        assert time.monotonic() >= deadline
        assert host.lost_reason is None

    visit(work, fleet.specs["c01"], limits=QUICK)


def test_one_lost_host_leaves_the_others_alone(fleet: Bed) -> None:
    async def work(*hosts: Host) -> list[str | None]:
        with fleet.unplugged("c02"):
            with pytest.raises(HostLostError):
                await hosts[1].request("clock", deadline_s=20)
            for host in (hosts[0], hosts[2]):
                assert (await host.request("clock", deadline_s=10)).message_type == "clock"
        return [host.lost_reason for host in hosts]

    lost = visit(work, *fleet.specs.values(), limits=QUICK)
    assert [reason is not None for reason in lost] == [False, True, False]
