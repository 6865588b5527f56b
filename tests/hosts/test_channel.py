"""Requests side by side, and every way in which the other side can break the wire."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from iolab.core.host import HostSpec, HostTransport
from iolab.errors import HostError
from iolab.hosts import channel
from iolab.hosts.host import AgentLink, Host
from iolab.hosts.message import AgentRefusalError, HostLostError, Message
from iolab.hosts.process import start_local_process

SCRIPT = Path(__file__).parents[1] / "fakes" / "scripted_agent.py"


class ScriptedHost(Host):
    """A host whose agent follows a script in a process of its own."""

    def __init__(self, mode: str) -> None:
        super().__init__(HostSpec("c1", HostTransport.LOCAL))
        self.mode = mode

    async def start_agent(self) -> AgentLink:
        return await start_local_process(self.name, [sys.executable, "-S", str(SCRIPT), self.mode])


def with_host(mode: str, work: Callable[[ScriptedHost], Awaitable[None]]) -> None:
    async def body() -> None:
        host = ScriptedHost(mode)
        try:
            async with asyncio.timeout(60):
                await work(host)
        finally:
            await host.close()

    asyncio.run(body())


def test_an_answer_comes_back_and_the_hello_is_told_again() -> None:
    async def work(host: ScriptedHost) -> None:
        hello = await host.connect()
        assert hello.version == "0.0.0-scripted"
        assert await host.connect() is hello
        answer = await host.request("clock", deadline_s=10)
        assert answer.message_type == "clock"
        assert answer.header["mono_ns"] == 5
        put = await host.request("put", b"four", deadline_s=10, path="/x", mode=0o600)
        assert put.header["size"] == 4
        assert host.lost_reason is None

    with_host("good", work)


def test_a_refusal_is_one_clean_line_and_the_host_lives_on() -> None:
    async def work(host: ScriptedHost) -> None:
        await host.connect()
        with pytest.raises(AgentRefusalError) as caught:
            await host.request("nonsense", deadline_s=10)
        assert caught.value.code == "ENOENT"
        assert "\x1b" not in str(caught.value)
        assert "\n" not in str(caught.value)
        assert len(str(caught.value)) < 600
        assert (await host.request("clock", deadline_s=10)).message_type == "clock"

    with_host("good", work)


def test_many_requests_run_side_by_side_each_with_its_own_answers() -> None:
    async def work(host: ScriptedHost) -> None:
        await host.connect()

        async def numbers(count: int) -> list[int]:
            stream = host.stream("run", count=count)
            return [m.header["number"] async for m in stream if m.message_type == "output"]

        counts = [0, 1, 300, 7, 200]
        found = await asyncio.gather(*(numbers(count) for count in counts))
        assert found == [list(range(count)) for count in counts]

    with_host("good", work)


def test_a_slow_reader_holds_the_host_up_instead_of_filling_memory() -> None:
    async def work(host: ScriptedHost) -> None:
        await host.connect()
        slow = host.stream("run", count=5000)
        assert (await anext(slow)).header["number"] == 0
        clock = asyncio.create_task(host.request("clock", deadline_s=30))
        await asyncio.sleep(0.2)
        assert isinstance(slow, channel.Request)
        assert len(slow._queue) <= channel.QUEUED_MESSAGES
        assert not clock.done()
        rest = [message async for message in slow]
        assert rest[-1].message_type == "exited"
        assert len(rest) == 5000
        assert (await clock).message_type == "clock"

    with_host("good", work)


def test_a_stream_closed_early_does_not_block_the_others() -> None:
    async def work(host: ScriptedHost) -> None:
        await host.connect()
        stream = host.stream("run", count=5000)
        await anext(stream)
        await stream.aclose()
        assert [message async for message in stream] == []
        assert (await host.request("clock", deadline_s=30)).message_type == "clock"

    with_host("good", work)


@pytest.mark.parametrize(
    ("mode", "sentence"),
    [
        ("garbage", "a header is not JSON"),
        ("list-header", "a header is not an object"),
        ("huge-frame", "it announced a frame of 2147483648 bytes of header"),
        ("half-frame", "it ended in the middle of a frame"),
        ("unasked", "it sent a message that answers no request: sample with id 4711"),
        ("dies-when-asked", "it ended (exit code 9; out of \\x1b[31mcheese)"),
    ],
)
def test_a_host_that_breaks_the_wire_is_given_up_with_a_sentence(mode: str, sentence: str) -> None:
    async def work(host: ScriptedHost) -> None:
        await host.connect()
        with pytest.raises(HostLostError) as caught:
            await host.request("clock", deadline_s=30)
        assert sentence in str(caught.value)
        assert host.lost_reason == caught.value.message
        with pytest.raises(HostLostError):
            await host.request("clock", deadline_s=30)

    with_host(mode, work)


@pytest.mark.parametrize(
    ("mode", "sentence"),
    [
        ("banner", "it printed text where frames should be: 'Welcome to Example OS 12"),
        ("dies", "exit code 7; cannot start: no such thing"),
        ("older-wire", "speaks wire 0, this controller speaks wire 2"),
        ("newer-wire", "speaks wire 99, this controller speaks wire 2"),
    ],
)
def test_a_host_that_does_not_begin_well_cannot_be_connected(mode: str, sentence: str) -> None:
    async def work(host: ScriptedHost) -> None:
        with pytest.raises(HostError) as caught:
            await host.connect()
        assert sentence in str(caught.value)
        with pytest.raises(HostError, match="c1"):
            await host.connect()
        assert host.lost_reason is not None

    with_host(mode, work)


def test_a_missed_deadline_gives_the_host_up_and_fails_all_its_requests() -> None:
    async def work(host: ScriptedHost) -> None:
        await host.connect()
        patient = asyncio.create_task(host.request("clock", deadline_s=30))
        with pytest.raises(HostLostError, match=r"did not answer 'clock' within 0\.2 s"):
            await host.request("clock", deadline_s=0.2)
        with pytest.raises(HostLostError, match="did not answer"):
            await patient

    with_host("silent", work)


def test_a_cancelled_request_leaves_the_others_alone() -> None:
    async def work(host: ScriptedHost) -> None:
        await host.connect()
        slow = asyncio.create_task(host.request("run", deadline_s=30, count=3000))
        await asyncio.sleep(0)
        slow.cancel()
        with pytest.raises(asyncio.CancelledError):
            await slow
        assert (await host.request("clock", deadline_s=30)).message_type == "clock"

    with_host("good", work)


class Narrow:
    """A way out that is full at first."""

    def __init__(self) -> None:
        self.room = asyncio.Event()
        self.sent: list[bytes] = []

    def write(self, data: bytes, /) -> None:
        self.sent.append(data)

    async def drain(self) -> None:
        await self.room.wait()

    def close(self) -> None:
        self.room.set()


def test_requests_that_were_called_off_before_they_left_are_forgotten() -> None:
    async def last_words() -> str:
        return ""

    async def body() -> None:
        way = Narrow()
        line = channel.Channel("c1", asyncio.StreamReader(), way, last_words)

        def ask() -> asyncio.Task[Message]:
            return asyncio.create_task(line.create_request("clock", b"", {}).__anext__())

        first = ask()
        for _ in range(channel.REQUESTS_MAX):
            late = ask()
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            late.cancel()
            await asyncio.gather(late, return_exceptions=True)
        assert line.lost is None
        assert len(way.sent) == 1
        way.room.set()
        last = ask()
        await asyncio.sleep(0.01)
        assert len(way.sent) == 2
        await line.close()
        await asyncio.gather(first, last, return_exceptions=True)

    asyncio.run(body())


def test_a_frame_above_the_limit_is_never_sent() -> None:
    async def work(host: ScriptedHost) -> None:
        await host.connect()
        with pytest.raises(ValueError, match="do not fit a frame"):
            await host.request("put", b"x" * (1 << 20 | 1), deadline_s=10)
        assert json.dumps(host.lost_reason) == "null"

    with_host("good", work)
