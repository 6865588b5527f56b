"""QEMU of a guest, reached through the agent of its node: its sockets, its monitor, its run.

Whoever listens too slowly is cut off, and not the node: its one channel is everybody's, and must
never wait for one guest.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, Final, Self

from iolab.core.limits import (
    PAYLOAD_BYTES_MAX,
    REPLY_BYTES_MAX,
    STREAM_BYTES_MAX,
    UNREAD_BYTES_MAX,
)
from iolab.errors import HostError
from iolab.hosts.answers import ExitedAnswer, read_answer
from iolab.hosts.channel import FrameWriter
from iolab.hosts.host import Host
from iolab.hosts.message import AgentRefusalError, HostLostError, ReplyStream
from iolab.text import excerpt

READER_BYTES: Final = 1 << 20
"""What may wait for its reader before it counts as slow: twice this, as asyncio has it."""


UNSENT_BYTES: Final = 256 << 10
"""What may wait to be sent before whoever writes has to wait too."""

BUSY_RETRY_S: Final = 0.05
"""Between two tries to send to somebody who does not read just now."""

ANSWER_ALLOWANCE_S: Final = 30.0
"""Beyond what a connection may take, until the node counts as lost: a host under full load."""

DISCONNECT_LIMIT_S: Final = 30.0
"""For the node's agent to call the connection off, which it does at once; under load later."""

FLUSH_LIMIT_S: Final = 2.0
"""For the last bytes to leave; who does not read loses them."""


GREETING_LIMIT_S: Final = 60.0
"""From the connection to the greeting: a QEMU that starts among many, on processors under load."""

SAID_CHARACTERS: Final = 200
"""Of what QEMU said that go into a sentence."""

_CONSOLE_HINT: Final = "See the last words of the guest's console, and run again."

CONSOLE_TAIL_BYTES: Final = 16 << 10
"""The end of what a guest's kernel and its first process said: a whole panic is 4 kB."""


LAST_LINES: Final = 3
LINE_CHARACTERS: Final = 160

KILL_LIMIT_S: Final = 30.0
"""For the node's agent to hear of it, which it does at once: on a node under full load one that is
late is not lost, and all of its guests with it."""

KILL_TRIES: Final = 50

KILL_RETRY_S: Final = 0.1
"""A signal may overtake the request to run; it is refused then, and tried anew for five seconds."""

GONE_LIMIT_S: Final = 10.0
"""From SIGKILL to the end of a process that may have I/O in flight."""

PANIC: Final = "Kernel panic"

AGENT_PREFIX: Final = "iolab-agent:"
"""How our own process in the guest begins what it says on the console."""

HARMLESS_LINE: Final = "PCI: Fatal: No config space access function found"
"""What every kernel says on a machine without PCI, such as ours: it explains no end."""


class SocketRelay:
    """One connection: `reader` has what comes, and it is itself the way there (`FrameWriter`)."""

    def __init__(self, node: Host, stream: ReplyStream) -> None:
        self._node = node
        self._stream = stream
        self._flow = FlowControl()
        self.reader = asyncio.StreamReader(limit=READER_BYTES)
        self.reader.set_transport(self._flow)
        self.has_received = asyncio.Event()
        """Set once anything came."""
        self.ended = asyncio.Event()
        """Set once nothing more comes."""
        self._unsent = bytearray()
        self._has_unsent = asyncio.Event()
        self._can_write = asyncio.Event()
        self._can_write.set()
        self._is_closing = False
        self._is_broken = False
        name = f"relay on {node.name}"
        self._pumping = asyncio.create_task(self._receive_all(), name=name)
        self._sending = asyncio.create_task(self._send_until_closing(), name=name)

    @classmethod
    async def connect(cls, node: Host, folder: str, socket_name: str, wait_s: float) -> Self:
        """Connected to the socket of that name in a scratch folder of the session on the node.

        It is waited for until it is there. Raises HostError.
        """
        stream = node.stream("connect", dir=folder, name=socket_name, wait_s=wait_s)
        try:
            async with asyncio.timeout(wait_s + ANSWER_ALLOWANCE_S):
                await anext(stream)
        except TimeoutError:
            raise node.end_as_lost(f"did not answer 'connect' within {wait_s:g} s") from None
        except StopAsyncIteration:
            raise node.end_as_lost("gave no answer to 'connect'") from None
        except HostError:
            raise
        except BaseException:
            # Else it waits on, and takes the socket of whoever has that name next.
            await stream.aclose()
            await _cancel_stream(node, stream)
            raise
        return cls(node, stream)

    @property
    def writer(self) -> SocketRelay:
        """The way there."""
        return self

    def write(self, data: bytes, /) -> None:
        """Take bytes to send. BrokenPipeError when nobody hears them any more."""
        if self._is_broken or self._is_closing:
            raise BrokenPipeError
        self._unsent += data
        self._has_unsent.set()

    async def drain(self) -> None:
        """Wait until most of them have left."""
        while len(self._unsent) > UNSENT_BYTES and not self._is_broken:
            self._can_write.clear()
            await self._can_write.wait()
        if self._is_broken:
            raise BrokenPipeError

    def close(self) -> None:
        """Call the connection off once everything was sent that can be."""
        self._is_closing = True
        self._has_unsent.set()

    async def close_and_wait(self) -> None:
        """Close it and wait until nothing of it is left here."""
        self.close()
        await asyncio.wait({self._sending}, timeout=FLUSH_LIMIT_S)
        if not self._sending.done():
            self._sending.cancel()
            await asyncio.gather(self._sending, return_exceptions=True)
            await self._disconnect()
        await self._stream.aclose()
        self._pumping.cancel()
        await asyncio.gather(self._sending, self._pumping, return_exceptions=True)

    async def _receive_all(self) -> None:
        """Hand on what comes; it never waits for the reader."""
        try:
            async for message in self._stream:
                if message.message_type == "received":
                    self._receive_piece(message.payload)
        except HostError:
            # The node is lost, or it refused: to the reader both are the end.
            pass
        finally:
            self._is_broken = True
            self._can_write.set()
            self._has_unsent.set()
            self.reader.feed_eof()
            self.ended.set()

    def _receive_piece(self, piece: bytes) -> None:
        if self._flow.is_cut_off:
            return
        self.has_received.set()
        self.reader.feed_data(piece)
        if self._flow.count_unread_and_is_over_limit(len(piece)):
            self._flow.is_cut_off = True
            self.reader.set_exception(ConnectionResetError("nobody listened to it"))
            self.close()

    async def _send_until_closing(self) -> None:
        while True:
            await self._has_unsent.wait()
            self._has_unsent.clear()
            while self._unsent and not self._is_broken:
                await self._send_piece()
            if self._is_closing or self._is_broken:
                break
        await self._disconnect()

    async def _disconnect(self) -> None:
        if not self.ended.is_set():
            await _cancel_stream(self._node, self._stream)

    async def _send_piece(self) -> None:
        """The next piece, which waits its turn: an order of bytes is all that a stream has.

        It may wait for ever, as does a guest that reads nothing; who asked it has a deadline.
        """
        piece = bytes(self._unsent[:PAYLOAD_BYTES_MAX])
        sent = self._node.stream("send", piece, connection=self._stream.id)
        try:
            async for _ in sent:
                pass
        except AgentRefusalError as refused:
            if refused.code != "busy" or self._is_closing:
                self._mark_broken()
                return
            await asyncio.sleep(BUSY_RETRY_S)
            return
        except HostLostError:
            self._mark_broken()
            return
        finally:
            await sent.aclose()
        del self._unsent[: len(piece)]
        self._can_write.set()

    def _mark_broken(self) -> None:
        self._is_broken = True
        self._unsent.clear()
        self._can_write.set()


async def _cancel_stream(node: Host, stream: ReplyStream) -> None:
    """Have the node's agent end a connection, or no longer wait for one."""
    if not node.lost_reason:
        with suppress(HostError):
            await node.request("disconnect", deadline_s=DISCONNECT_LIMIT_S, connection=stream.id)


class FlowControl(asyncio.ReadTransport):
    """What a stream reader tells of itself: whether it has more than it wants."""

    def __init__(self) -> None:
        super().__init__()
        self.is_cut_off = False
        self._is_reader_full = False
        self._beyond = 0

    def pause_reading(self) -> None:
        """The reader has too much."""
        self._is_reader_full = True
        self._beyond = 0

    def resume_reading(self) -> None:
        """It has read most of it."""
        self._is_reader_full = False

    def count_unread_and_is_over_limit(self, size: int) -> bool:
        """Count bytes given to the reader; returns whether it has left too much unread by now."""
        self._beyond = self._beyond + size if self._is_reader_full else 0
        return self._beyond > UNREAD_BYTES_MAX


class QmpCommandError(HostError):
    """A command that QEMU answered with an error; the monitor goes on."""


class QmpClient:
    """One guest's monitor. Commands go one after the other; what nobody asked for is dropped.

    Once it is lost it stays lost, and says why.
    """

    def __init__(self, guest_name: str, reader: asyncio.StreamReader, writer: FrameWriter) -> None:
        self._guest = excerpt(guest_name)
        self._reader = reader
        self._writer = writer
        self._turn = asyncio.Lock()
        self._last_id = 0
        self._waiting: asyncio.Future[dict[str, Any]] | None = None
        self._lost: HostLostError | None = None
        self._listening: asyncio.Task[None] | None = None

    @classmethod
    async def open(
        cls,
        guest_name: str,
        reader: asyncio.StreamReader,
        writer: FrameWriter,
        limit_s: float = GREETING_LIMIT_S,
    ) -> Self:
        """A monitor that takes commands, over a connection to its socket.

        HostLostError without one.
        """
        monitor = cls(guest_name, reader, writer)
        try:
            async with asyncio.timeout(limit_s):
                greeting = await monitor._read_message()
        except TimeoutError:
            raise monitor._mark_lost(f"said nothing for {limit_s:g} s") from None
        if "QMP" not in greeting:
            text = excerpt(json.dumps(greeting), SAID_CHARACTERS)
            raise monitor._mark_lost(f"began with something else than a greeting: {text}")
        monitor._listening = asyncio.create_task(
            monitor._receive_replies(), name=f"monitor of {guest_name}"
        )
        try:
            await monitor.run_command("qmp_capabilities", deadline_s=limit_s)
        except BaseException:
            await monitor.close()
            raise
        return monitor

    async def run_command(
        self, name: str, arguments: Mapping[str, object] | None = None, *, deadline_s: float
    ) -> object:
        """What QEMU returns, any JSON. QmpCommandError when it answers with an error.

        HostLostError when the monitor is lost, HostError when the answer misses the deadline: it
        may be asked again, and what comes late is dropped.
        """
        try:
            async with asyncio.timeout(deadline_s), self._turn:
                answer = await self._send_and_wait(name, arguments or {})
        except TimeoutError:
            message = f"The hypervisor of guest '{self._guest}' did not answer '{name}' within "
            raise HostError(f"{message}{deadline_s:g} s.", _CONSOLE_HINT) from None
        if "return" in answer:
            return answer["return"]
        error = answer.get("error")
        detail = error.get("desc") if isinstance(error, dict) else None
        text = excerpt(str(detail or "it gave no reason"), SAID_CHARACTERS).rstrip(".")
        message = f"The hypervisor of guest '{self._guest}' refused '{name}': {text}."
        raise QmpCommandError(message, "Use a QEMU of at least version 7.2 on its node.")

    async def close(self) -> None:
        """Listen no more, and end the connection; the guest goes on."""
        self._mark_lost("was closed")
        if self._listening:
            await asyncio.gather(self._listening, return_exceptions=True)

    async def _send_and_wait(self, name: str, arguments: Mapping[str, object]) -> dict[str, Any]:
        if self._lost:
            raise HostLostError(self._lost.message, self._lost.hint)
        self._last_id += 1
        asked = {"execute": name, "arguments": dict(arguments), "id": self._last_id}
        self._waiting = asyncio.get_running_loop().create_future()
        try:
            self._writer.write(json.dumps(asked).encode() + b"\n")
            await self._writer.drain()
            return await self._waiting
        except OSError:
            raise self._mark_lost("does not listen any more") from None
        finally:
            self._waiting = None

    async def _receive_replies(self) -> None:
        """Hand answers to who waits; read on even when nobody does, or the node would stall."""
        try:
            while True:
                self._deliver_reply(await self._read_message())
        except HostLostError:
            # Whoever asks is told.
            pass

    def _deliver_reply(self, message: dict[str, Any]) -> None:
        if "event" in message:
            return
        number = message.get("id")
        if not isinstance(number, int) or not 0 < number <= self._last_id:
            text = excerpt(json.dumps(message), SAID_CHARACTERS)
            raise self._mark_lost(f"answered what was not asked: {text}")
        # An older one is of somebody who was cancelled meanwhile.
        if number == self._last_id and self._waiting and not self._waiting.done():
            self._waiting.set_result(message)

    async def _read_message(self) -> dict[str, Any]:
        """The next line; HostLostError when there is none, or none that makes sense."""
        try:
            line = await self._reader.readline()
        except ValueError:
            raise self._mark_lost("said a line without an end") from None
        except OSError as fault:
            raise self._mark_lost(f"broke off: {fault}") from None
        if not line.endswith(b"\n"):
            raise self._mark_lost("ended")
        try:
            message = json.loads(line) if len(line) <= REPLY_BYTES_MAX else None
        except (ValueError, RecursionError):
            message = None
        if not isinstance(message, dict):
            text = excerpt(line[:SAID_CHARACTERS], SAID_CHARACTERS)
            raise self._mark_lost(f"said what is not QMP: {text}")
        return message

    def _mark_lost(self, reason: str) -> HostLostError:
        """The monitor is lost, for the first such reason; whoever waits is told."""
        if self._lost is None:
            message = f"The hypervisor of guest '{self._guest}' {reason.rstrip('.')}."
            self._lost = HostLostError(message, _CONSOLE_HINT)
            self._writer.close()
        if self._waiting and not self._waiting.done():
            self._waiting.set_exception(HostLostError(self._lost.message, self._lost.hint))
        if self._listening and self._listening is not asyncio.current_task():
            self._listening.cancel()
        return self._lost


class QemuRun:
    """It lives until the guest powers off, it is killed, or its node's agent ends."""

    def __init__(self, node: Host, stream: ReplyStream) -> None:
        self._node = node
        self._stream = stream
        self._console = b""
        self._stderr = b""
        self._end = ""
        self.ended = asyncio.Event()
        """Set once it is gone, or nothing is known of it any more."""
        self._listening = asyncio.create_task(self._follow_output(), name=f"a guest on {node.name}")

    @classmethod
    def start(cls, node: Host, argv: Sequence[str], folder: str) -> Self:
        """Begin; what speaks against it is told by `exit_and_console_text` once it has ended."""
        stream = node.stream(
            "run",
            argv=list(argv),
            env={},
            cwd=folder,
            start_at_real_ns=None,
            wall_limit_s=None,
            output_limit_bytes=STREAM_BYTES_MAX,
        )
        return cls(node, stream)

    @property
    def run_id(self) -> int:
        """By which the node's agent knows the run."""
        return self._stream.id

    def exit_and_console_text(self) -> str:
        """How it ended, if it has, and what its console and it said last, for people."""
        last_words = console_failure_text(self._console) or console_failure_text(self._stderr)
        return "; ".join(part for part in (self._end, last_words) if part)

    async def kill(self) -> None:
        """End it by force and wait until it is gone."""
        for _ in range(KILL_TRIES):
            if self.ended.is_set() or self._node.lost_reason or await self._try_send_kill():
                break
            await asyncio.sleep(KILL_RETRY_S)
        await self.wait_for_exit(GONE_LIMIT_S)
        await self._stream.aclose()
        self._listening.cancel()
        await asyncio.gather(self._listening, return_exceptions=True)

    async def wait_for_exit(self, limit_s: float) -> bool:
        """Whether it ends within so many seconds."""
        with suppress(TimeoutError):
            async with asyncio.timeout(limit_s):
                await self.ended.wait()
        return self.ended.is_set()

    async def _try_send_kill(self) -> bool:
        with suppress(HostError):
            await self._node.request(
                "signal", deadline_s=KILL_LIMIT_S, run=self.run_id, signal="KILL"
            )
            return True
        return False

    async def _follow_output(self) -> None:
        try:
            async for message in self._stream:
                if message.message_type == "output" and message.header.get("stream") == "stderr":
                    self._stderr = (self._stderr + message.payload)[-CONSOLE_TAIL_BYTES:]
                elif message.message_type == "output":
                    self._console = (self._console + message.payload)[-CONSOLE_TAIL_BYTES:]
                elif message.message_type == "exited":
                    exited = read_answer(self._node.name, ExitedAnswer, message)
                    self._end = _exit_text(exited)
        except HostError as fault:
            self._end = fault.message.rstrip(".")
        finally:
            self.ended.set()


def console_failure_text(console: bytes) -> str:
    """The lines of a console that say why a guest ended: of a panic, of our agent, or the last."""
    text = console.decode("utf-8", "replace")
    lines = [line for line in (excerpt(raw, LINE_CHARACTERS) for raw in text.splitlines()) if line]
    lines = [line for line in lines if HARMLESS_LINE not in line]
    panics = [line for line in lines if PANIC in line]
    ours = [line for line in lines if line.startswith(AGENT_PREFIX)]
    return " / ".join((*ours[-1:], *panics[:1]) or lines[-LAST_LINES:])


def _exit_text(exited: ExitedAnswer) -> str:
    if exited.signal is not None:
        return f"QEMU was killed by signal {exited.signal}"
    return f"QEMU ended with code {exited.code}"
