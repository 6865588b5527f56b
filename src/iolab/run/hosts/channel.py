"""Requests side by side over two byte streams: the table of who waits for what."""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, Protocol, Self

from iolab.run.hosts.base import HostLost, Message, Refusal
from iolab.run.hosts.frames import ProtocolFault, encode_frame, read_frame
from iolab.run.hosts.text import printable

QUEUED_MESSAGES: Final = 64
"""Messages of one request that wait for their reader. Then nothing more is read from the host, its
pipe fills, and the engine's output waits in the engine's own pipe."""

STALL_LIMIT_S: Final = 60.0
"""How long a full queue may hold up the whole host before it is given up: its reader has died."""

WRITE_LIMIT_S: Final = 30.0
"""How long a request may take to leave: a host that reads nothing for so long is gone."""

MAX_REQUESTS: Final = 1000
"""Requests of one host under way at a time: about five, and five more for each guest on it."""

FINAL: Final[Mapping[str, str]] = {
    "clock": "clock",
    "facts": "facts",
    "snapshot": "sample",
    "run": "exited",
    "probe": "probed",
    "scratch_open": "scratch",
    "extents": "extents",
    "evict": "evicted",
    "device": "device",
    "device_open": "device",
    "filesystem_open": "filesystem",
    "ledger_open": "ledger",
    "discard": "purged",
    "trim": "purged",
    "metadata": "measured",
    "connect": "closed",
    "use": "use",
}
"""What the final message of a verb is, where it is not `done`."""


class Outgoing(Protocol):
    """The way to the host, as asyncio.StreamWriter has it."""

    def write(self, data: bytes, /) -> None:
        """Take bytes to send."""

    async def drain(self) -> None:
        """Wait until most of them have left."""

    def close(self) -> None:
        """End the host's standard input: the lease."""


class Channel:
    """One host's requests. `last_words` tells, when the stream ended, what the other side said."""

    def __init__(
        self,
        host: str,
        reader: asyncio.StreamReader,
        writer: Outgoing,
        last_words: Callable[[], Awaitable[str]],
    ) -> None:
        self._host = printable(host)
        self._reader = reader
        self._writer = writer
        self._last_words = last_words
        self._requests: dict[int, Request] = {}
        self._next_id = 1
        self._task: asyncio.Task[None] | None = None
        self._sending = asyncio.Lock()
        self.lost: HostLost | None = None

    async def hello(self, limit_s: float) -> Message:
        """The agent's first message; from then on the channel reads by itself. HostLost else."""
        try:
            async with asyncio.timeout(limit_s):
                frame = await read_frame(self._reader)
        except TimeoutError:
            raise self.give_up(f"said nothing for {limit_s:g} s") from None
        except (ProtocolFault, OSError) as fault:
            raise self.give_up(await self._epitaph(str(fault))) from None
        if frame is None:
            raise self.give_up(await self._epitaph("it ended before it said anything"))
        self._task = asyncio.create_task(self._read(), name=f"reader of {self._host}")
        return Message(str(frame[0].get("is")), frame[0], frame[1])

    def request(self, verb: str, payload: bytes, arguments: Mapping[str, object]) -> Request:
        """A request with its own id, not sent yet."""
        request_id, self._next_id = self._next_id, self._next_id + 1
        return Request(self, self._host, request_id, verb, payload, arguments)

    async def send(self, request: Request, frame: bytes) -> None:
        """Enter a request into the table and send it. Raises HostLost."""
        if self.lost:
            raise HostLost(self.lost.happened, self.lost.do)
        if len(self._requests) >= MAX_REQUESTS:
            raise self.give_up(f"has {MAX_REQUESTS} requests unanswered")
        self._requests[request.id] = request
        written = False
        try:
            async with asyncio.timeout(WRITE_LIMIT_S), self._sending:
                written = True
                self._writer.write(frame)
                await self._writer.drain()
        except asyncio.CancelledError:
            if not written:
                # Nobody will answer what nobody was asked.
                self._requests.pop(request.id, None)
            raise
        except TimeoutError:
            raise self.give_up(f"read nothing for {WRITE_LIMIT_S:g} s") from None
        except (OSError, RuntimeError):
            # The reader sees the same end and knows more: what the other side said last.
            await self._wait_for_end()
            raise (self.lost or self.give_up("does not listen any more")) from None

    def give_up(
        self, reason: str, do: str = "See that host's own logs, and run again."
    ) -> HostLost:
        """Mark the host lost, fail every request, end the lease; the first reason stays."""
        if self.lost is None:
            self.lost = HostLost(f"Host '{self._host}' {reason}.", do)
            self._writer.close()
        if self._task and self._task is not asyncio.current_task():
            self._task.cancel()
        for request in self._requests.values():
            request.fail(self.lost)
        self._requests.clear()
        return self.lost

    async def close(self) -> None:
        """End the lease and the reading task."""
        self.give_up("was closed")
        if self._task:
            await asyncio.gather(self._task, return_exceptions=True)

    async def _wait_for_end(self) -> None:
        if self._task:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(LAST_WORDS_LIMIT_S):
                    await asyncio.wait({self._task})

    async def _read(self) -> None:
        """Hand each message to its request until the stream ends or stops making sense."""
        try:
            while (frame := await read_frame(self._reader)) is not None:
                await self._deliver(*frame)
            self.give_up(await self._epitaph("it ended"))
        except TimeoutError:
            self.give_up(f"was not listened to for {STALL_LIMIT_S:g} s")
        except (ProtocolFault, OSError) as fault:
            self.give_up(await self._epitaph(str(fault)))

    async def _deliver(self, header: dict[str, Any], payload: bytes) -> None:
        message = Message(str(header.get("is")), header, payload)
        request_id = header.get("id")
        request = self._requests.get(request_id) if isinstance(request_id, int) else None
        if request is None:
            what = printable(f"{message.is_} with id {request_id}", 100)
            raise ProtocolFault(f"it sent a message that answers no request: {what}")
        if request.ends_with(message):
            del self._requests[request.id]
        if not request.take_at_once(message):
            async with asyncio.timeout(STALL_LIMIT_S):
                await request.take(message)

    async def _epitaph(self, fault: str) -> str:
        # Its input ends first: a carrier that still lives then exits, and its last words are whole.
        self._writer.close()
        try:
            async with asyncio.timeout(LAST_WORDS_LIMIT_S):
                words = await self._last_words()
        except TimeoutError:
            words = ""
        return f"broke off: {fault.rstrip('.')}{f' ({words})' if words else ''}"


LAST_WORDS_LIMIT_S: Final = 3.0
"""How long an ended connection may take to say why (exit code, standard error)."""


class Request:
    """One request and the messages that wait for its reader; implements `Stream`."""

    def __init__(
        self,
        channel: Channel,
        host: str,
        request_id: int,
        verb: str,
        payload: bytes,
        arguments: Mapping[str, object],
    ) -> None:
        self._channel = channel
        self._host = host
        self._id = request_id
        self._verb = verb
        self._frame: bytes | None = encode_frame(
            {"id": request_id, "do": verb, **arguments}, payload
        )
        self._waiting: deque[Message] = deque()
        self._arrived = asyncio.Event()
        self._room = asyncio.Event()
        self._room.set()
        self._failure: HostLost | None = None
        self._over = False
        self._unwanted = False

    @property
    def id(self) -> int:
        """The request's id on this channel."""
        return self._id

    @property
    def queued(self) -> int:
        """Messages that wait for the reader."""
        return len(self._waiting)

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Message:
        """The next message; Refusal, HostLost or the end."""
        if self._frame is not None:
            frame, self._frame = self._frame, None
            await self._channel.send(self, frame)
        while not self._waiting:
            if self._over or self._unwanted:
                raise StopAsyncIteration
            if self._failure:
                # A fresh one: each reader's traceback is its own.
                raise HostLost(self._failure.happened, self._failure.do)
            self._arrived.clear()
            await self._arrived.wait()
        message = self._waiting.popleft()
        self._room.set()
        self._over = self.ends_with(message)
        if message.is_ == "error":
            says = printable(str(message.header.get("says", "it gave no reason")))
            code = printable(str(message.header.get("code", "unknown")), 40)
            raise Refusal(self._host, self._verb, code, says)
        return message

    async def aclose(self) -> None:
        """Drop what waits and what still comes."""
        self._unwanted = True
        self._waiting.clear()
        self._room.set()
        self._arrived.set()

    def ends_with(self, message: Message) -> bool:
        """Whether nothing can follow this message."""
        return message.is_ in ("error", FINAL.get(self._verb, "done"))

    def take_at_once(self, message: Message) -> bool:
        """Queue a message if there is room, which there nearly always is; whether there was."""
        if self._unwanted:
            return True
        if len(self._waiting) >= QUEUED_MESSAGES:
            return False
        self._waiting.append(message)
        self._arrived.set()
        return True

    async def take(self, message: Message) -> None:
        """Queue a message for the reader; waits while the queue is full."""
        while len(self._waiting) >= QUEUED_MESSAGES and not self._unwanted and not self._failure:
            self._room.clear()
            await self._room.wait()
        if not self._unwanted:
            self._waiting.append(message)
            self._arrived.set()

    def fail(self, error: HostLost) -> None:
        """The host is lost: tell the reader after what already came."""
        self._failure = error
        self._arrived.set()
        self._room.set()
