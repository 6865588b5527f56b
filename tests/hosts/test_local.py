"""The real agent on this machine, reached as a session reaches it."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from iolab.core.host import HostSpec, HostTransport, TargetProbe
from iolab.errors import HostError
from iolab.hosts.answers import read_answer, read_facts
from iolab.hosts.clock import SYSTEM_CLOCK, measure_clock_offset
from iolab.hosts.connect import CommandHost, LocalHost
from iolab.hosts.drive_logs import read_drive_logs
from iolab.hosts.host import Host
from iolab.hosts.message import AgentRefusalError, HostLostError

pytestmark = pytest.mark.e2e


def local() -> LocalHost:
    return LocalHost(HostSpec("local", HostTransport.LOCAL))


def with_host(host: Host, work: Callable[[Host], Awaitable[None]]) -> None:
    async def body() -> None:
        try:
            async with asyncio.timeout(60):
                await host.connect()
                await work(host)
        finally:
            await host.close()

    asyncio.run(body())


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_log_pages_of_drives_are_read_and_those_that_are_not_there_said() -> None:
    async def work(host: Host) -> None:
        assert await read_drive_logs(host, ["sda", "nvme4095n1p1"]) == ()
        (drive,) = await read_drive_logs(host, ["sda", "nvme4095n1"])
        assert drive.device == "nvme4095n1"
        assert drive.fault
        assert drive.pages == ()

    with_host(local(), work)


def test_facts_and_probe_fit_the_model(tmp_path: Path) -> None:
    async def work(host: Host) -> None:
        tools = {"fio": ["fio", "--version"]}
        told = await host.request("facts", deadline_s=30, path=str(tmp_path), tools=tools)
        facts = read_facts(host.name, told)
        assert facts.cpu.threads == os.cpu_count()
        assert facts.target is not None
        assert facts.target.writable
        tool = facts.tool_facts("fio")
        assert tool is not None
        assert (tool.version or "").startswith("fio-")
        told = await host.request("probe", deadline_s=30, path=str(tmp_path))
        probe = read_answer(host.name, TargetProbe, told)
        assert probe.held_by is None

    with_host(local(), work)


def test_the_clock_of_this_machine_is_our_own() -> None:
    async def work(host: Host) -> None:
        offset = await measure_clock_offset(host, SYSTEM_CLOCK)
        assert abs(offset.offset_ns) <= offset.error_ns
        assert 0 < offset.rtt_ns < 1_000_000_000

    with_host(local(), work)


def test_a_refusal_of_the_agent_is_told_with_what_to_do(tmp_path: Path) -> None:
    async def work(host: Host) -> None:
        missing = str(tmp_path / "no" / "such")
        with pytest.raises(AgentRefusalError) as caught:
            await host.request("probe", deadline_s=30, path=missing)
        assert caught.value.code == "ENOENT"
        assert missing in caught.value.message
        assert host.lost_reason is None

    with_host(local(), work)


def test_nothing_is_left_when_a_host_is_closed_while_it_runs_something(tmp_path: Path) -> None:
    pids: list[int] = []

    async def work(host: Host) -> None:
        opened = await host.request(
            "scratch_open",
            deadline_s=30,
            path=str(tmp_path),
            name="iolab-scratch-trial",
            owner="a test",
        )
        assert opened.header["dir"] == f"{tmp_path}/iolab-scratch-trial"
        stream = host.stream(
            "run",
            argv=["sleep", "600"],
            env={},
            cwd=None,
            start_at_real_ns=None,
            wall_limit_s=None,
            output_limit_bytes=1000,
        )
        started = await anext(stream)
        pids.append(started.header["pid"])
        assert alive(pids[0])

    with_host(local(), work)
    assert not alive(pids[0])
    assert list(tmp_path.iterdir()) == []


def test_a_killed_agent_is_a_lost_host() -> None:
    async def work(host: Host) -> None:
        hello = await host.connect()
        watch = host.stream("watch", interval_ms=100)
        await anext(watch)
        os.kill(hello.pid, 9)
        with pytest.raises(HostLostError, match="Host 'local' broke off"):
            async for _ in watch:
                pass

    with_host(local(), work)


def test_the_agent_is_pushed_through_a_prefix_and_speaks() -> None:
    async def work(host: Host) -> None:
        assert (await host.request("clock", deadline_s=30)).message_type == "clock"

    with_host(CommandHost(HostSpec("c1", HostTransport.COMMAND, command_prefix=("env",))), work)


def test_a_missing_agent_is_named(tmp_path: Path) -> None:
    host = LocalHost(HostSpec("local", HostTransport.LOCAL), tmp_path / "nothing")
    with pytest.raises(HostError, match=r"'local' cannot be reached.*nothing' does not start"):
        asyncio.run(host.connect())
