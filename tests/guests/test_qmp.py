"""A monitor's conversation, with the words of a real QEMU and with nonsense."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Coroutine
from typing import Any, Final

import pytest

from iolab.core.limits import REPLY_BYTES_MAX
from iolab.errors import HostError
from iolab.guests.qemu import QmpClient, QmpCommandError, console_failure_text
from iolab.hosts.message import HostLostError
from tests.recorded import recorded

SAID: Final = recorded("qmp/monitor.txt").splitlines(keepends=True)
GREETING: Final = SAID[0]
PATIENCE_S: Final = 20.0
SOON_S: Final = 0.05


class Qemu:
    """Both directions of a monitor's socket in memory; `answer` is what a command makes it say."""

    def __init__(self, answer: Callable[[dict[str, Any]], bytes], first: bytes = GREETING) -> None:
        self.reader = asyncio.StreamReader(limit=REPLY_BYTES_MAX)
        self.heard: list[dict[str, Any]] = []
        self.closed = False
        self._answer = answer
        self.reader.feed_data(first)

    def write(self, data: bytes, /) -> None:
        if self.closed:
            raise BrokenPipeError
        self.heard.append(json.loads(data))
        self.reader.feed_data(self._answer(self.heard[-1]))

    async def drain(self) -> None:
        """Memory takes everything."""

    def close(self) -> None:
        self.closed = True

    async def open(self, limit_s: float = PATIENCE_S) -> QmpClient:
        return await QmpClient.open("g0", self.reader, self, limit_s)


def talk(conversation: Callable[[], Coroutine[Any, Any, None]]) -> None:
    async def within_a_minute() -> None:
        async with asyncio.timeout(60):
            await conversation()

    asyncio.run(within_a_minute())


def line(**message: object) -> bytes:
    return json.dumps(message).encode() + b"\r\n"


def done(command: dict[str, Any]) -> bytes:
    return line(**{"return": {}, "id": command["id"]})


def only_capabilities(then: bytes) -> Callable[[dict[str, Any]], bytes]:
    """What comes when anything else is asked."""
    return lambda command: done(command) if command["id"] == 1 else then


def as_recorded(command: dict[str, Any]) -> bytes:
    """The lines of the real one, up to and with the answer of that id."""
    ends = [n for n, said in enumerate(SAID) if json.loads(said).get("id") == command["id"]]
    begin = max(
        (n for n, said in enumerate(SAID) if json.loads(said).get("id") == command["id"] - 1),
        default=0,
    )
    return b"".join(SAID[begin + 1 : ends[0] + 1])


def test_the_words_of_a_real_one() -> None:
    async def conversation() -> None:
        qemu = Qemu(as_recorded)
        monitor = await qemu.open()
        with pytest.raises(QmpCommandError, match="command no-such-command has not been found"):
            await monitor.run_command("no-such-command", deadline_s=PATIENCE_S)
        with pytest.raises(QmpCommandError, match="Device 'data-disk' not found"):
            await monitor.run_command(
                "block-latency-histogram-set", {"id": "data-disk"}, deadline_s=PATIENCE_S
            )
        assert await monitor.run_command("cont", deadline_s=PATIENCE_S) == {}
        assert await monitor.run_command("query-blockstats", deadline_s=PATIENCE_S) == []
        assert await monitor.run_command("quit", deadline_s=PATIENCE_S) == {}
        await monitor.close()
        asked = [(command["execute"], command["arguments"]) for command in qemu.heard]
        assert asked[0] == ("qmp_capabilities", {})
        assert asked[2] == ("block-latency-histogram-set", {"id": "data-disk"})

    talk(conversation)


def test_answers_go_to_who_asked() -> None:
    async def conversation() -> None:
        def echo(command: dict[str, Any]) -> bytes:
            return line(**{"id": command["id"], "return": command["arguments"]})

        monitor = await Qemu(echo).open()
        asked = [
            monitor.run_command("echo", {"number": number}, deadline_s=PATIENCE_S)
            for number in range(20)
        ]
        assert await asyncio.gather(*asked) == [{"number": number} for number in range(20)]
        await monitor.close()

    talk(conversation)


class Flow(asyncio.ReadTransport):
    """What the reader tells whoever feeds it."""

    def __init__(self) -> None:
        super().__init__()
        self.read_on = asyncio.Event()
        self.paused = False

    def pause_reading(self) -> None:
        self.paused = True

    def resume_reading(self) -> None:
        self.read_on.set()


def test_events_do_not_pile_up_while_nobody_asks() -> None:
    async def conversation() -> None:
        qemu = Qemu(done)
        flow = Flow()
        qemu.reader.set_transport(flow)
        monitor = await qemu.open()
        event = line(event="BLOCK_IO_ERROR", data={"reason": "x" * 1000})
        while not flow.paused:
            qemu.reader.feed_data(event)
        await flow.read_on.wait()
        assert await monitor.run_command("query-status", deadline_s=PATIENCE_S) == {}
        await monitor.close()

    talk(conversation)


def test_an_answer_that_comes_late_is_dropped_and_the_next_one_is_not() -> None:
    async def conversation() -> None:
        def slow(command: dict[str, Any]) -> bytes:
            if command["id"] == 2:
                return b""
            late = line(**{"id": 2, "return": "late"}) if command["id"] == 3 else b""
            return late + line(**{"id": command["id"], "return": "now"})

        monitor = await Qemu(slow).open()
        with pytest.raises(HostError, match=r"did not answer 'query-status' within 0\.05") as fault:
            await monitor.run_command("query-status", deadline_s=SOON_S)
        assert not isinstance(fault.value, HostLostError)
        assert await monitor.run_command("query-status", deadline_s=PATIENCE_S) == "now"
        await monitor.close()

    talk(conversation)


NONSENSE: Final = {
    "bytes": (b"\xff\xfe\x00\n", "said what is not QMP: "),
    "a list": (b"[]\n", r"said what is not QMP: \[\]"),
    "deep": (b"[" * 100_000 + b"\n", "said what is not QMP: "),
    "half a line": (b'{"QMP"', "ended"),
    "endless": (b"x" * 3 * REPLY_BYTES_MAX, "said a line without an end"),
    "too long": (b'"' + b"x" * (REPLY_BYTES_MAX + 99) + b'"\n', "said "),
}


@pytest.mark.parametrize(("said", "sentence"), NONSENSE.values(), ids=NONSENSE)
def test_a_nonsense_answer_is_the_end(said: bytes, sentence: str) -> None:
    async def conversation() -> None:
        qemu = Qemu(only_capabilities(said))
        monitor = await qemu.open()
        asking = asyncio.create_task(monitor.run_command("query-status", deadline_s=PATIENCE_S))
        while len(qemu.heard) < 2:  # noqa: ASYNC110 - until it has asked
            await asyncio.sleep(0)
        qemu.reader.feed_eof()
        with pytest.raises(HostLostError, match=f"The hypervisor of guest 'g0' {sentence}"):
            await asking
        with pytest.raises(HostLostError, match=sentence):
            await monitor.run_command("query-status", deadline_s=PATIENCE_S)
        assert qemu.closed
        await monitor.close()

    talk(conversation)


@pytest.mark.parametrize("number", [0, 99, None, "2", [], 1.5])
def test_an_answer_to_nothing_is_the_end(number: object) -> None:
    async def conversation() -> None:
        monitor = await Qemu(only_capabilities(line(**{"id": number, "return": {}}))).open()
        with pytest.raises(HostLostError, match="answered what was not asked"):
            await monitor.run_command("query-status", deadline_s=PATIENCE_S)
        await monitor.close()

    talk(conversation)


@pytest.mark.parametrize("error", [None, "no", {}, {"desc": 5}, {"desc": "bad\x1b[31m"}])
def test_a_refusal_says_what_it_can_and_the_monitor_goes_on(error: object) -> None:
    async def conversation() -> None:
        def refuse(command: dict[str, Any]) -> bytes:
            return line(id=command["id"], error=error) if command["id"] == 2 else done(command)

        monitor = await Qemu(refuse).open()
        with pytest.raises(QmpCommandError) as fault:
            await monitor.run_command("query-status", deadline_s=PATIENCE_S)
        assert "guest 'g0' refused 'query-status': " in fault.value.message
        assert fault.value.message.isprintable()
        assert await monitor.run_command("query-status", deadline_s=PATIENCE_S) == {}
        await monitor.close()

    talk(conversation)


def test_who_does_not_greet_is_left() -> None:
    async def conversation() -> None:
        silent = Qemu(done, first=b"")
        with pytest.raises(HostLostError, match=r"guest 'g0' said nothing for 0\.05 s"):
            await silent.open(SOON_S)
        assert silent.closed
        other = Qemu(done, first=b'{"hello": "\\u001b"}\n')
        with pytest.raises(HostLostError, match="else than a greeting") as fault:
            await other.open()
        assert fault.value.message.isprintable()
        assert other.closed

    talk(conversation)


def test_capabilities_that_are_refused_leave_no_task() -> None:
    async def conversation() -> None:
        qemu = Qemu(lambda command: line(id=command["id"], error={"desc": "no"}))
        with pytest.raises(QmpCommandError):
            await qemu.open()
        assert qemu.closed
        assert asyncio.all_tasks() == {asyncio.current_task()}

    talk(conversation)


def test_a_command_that_waits_is_told_of_the_end() -> None:
    async def conversation() -> None:
        monitor = await Qemu(only_capabilities(b"")).open()
        asking = asyncio.create_task(monitor.run_command("query-status", deadline_s=PATIENCE_S))
        await asyncio.sleep(0)
        await monitor.close()
        with pytest.raises(HostLostError, match="was closed"):
            await asking
        assert asyncio.all_tasks() == {asyncio.current_task()}

    talk(conversation)


NO_PCI = b"[    0.699477] PCI: Fatal: No config space access function found\r\n"
KILLED = b"[    4.137971] Out of memory: Killed process 84 (fio) total-vm:23560kB\r\n"
PANIC = (
    b"[    2.1] Kernel panic - not syncing: VFS: Unable to mount root fs\r\n[    2.2] CPU: 0\r\n"
)
OURS = b"iolab-agent: the machine showed no port named agent within 60 s\n"


def test_what_every_guest_says_explains_nothing() -> None:
    assert console_failure_text(NO_PCI) == ""
    assert console_failure_text(NO_PCI + KILLED) == KILLED.decode().strip()


def test_a_panic_and_our_own_words_come_before_all_else() -> None:
    said = console_failure_text(NO_PCI + KILLED + OURS + PANIC + b"[    2.3] Rebooting\r\n")
    assert said == f"{OURS.decode().strip()} / {PANIC.decode().splitlines()[0]}"


def test_else_the_last_lines_are_told() -> None:
    assert console_failure_text(b"a\r\nb\n\nc\nd\x1b[0m\n") == "b / c / d\\x1b[0m"
    assert console_failure_text(b"") == ""
