"""Frames of the wire (docs/reference/wire.md): two lengths, a JSON header, a payload."""

from __future__ import annotations

import asyncio
import contextlib
import json
import struct
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, Protocol, Self

import msgspec

from iolab.core.limits import HEADER_BYTES_MAX, PAYLOAD_BYTES_MAX
from iolab.hosts.message import AgentRefusalError, HostLostError, Message
from iolab.record import DECODE_ERRORS
from iolab.text import excerpt

_LENGTHS: Final = struct.Struct("<II")
_ENCODER: Final = json.JSONEncoder(separators=(",", ":"), allow_nan=False)

STRANGE_BYTES: Final = 200

STRANGE_WAIT_S: Final = 0.2
"""How much of something that is no frame is shown, and how long it may take to come."""

QUEUED_MESSAGES: Final = 64
"""Messages of one request that wait for their reader. Then nothing more is read from the host, its
pipe fills, and the engine's output waits in the engine's own pipe."""

STALL_LIMIT_S: Final = 60.0
"""How long a full queue may hold up the whole host before it is given up: its reader has died."""

WRITE_LIMIT_S: Final = 30.0
"""How long a request may take to leave: a host that reads nothing for so long is gone."""

REQUESTS_MAX: Final = 1000
"""Requests of one host under way at a time: about five, and five more for each guest on it."""

FINAL_MESSAGES: Final[Mapping[str, str]] = {
    "clock": "clock",
    "facts": "facts",
    "snapshot": "sample",
    "trace": "trace",
    "run": "exited",
    "probe": "probed",
    "scratch_open": "scratch",
    "extents": "extents",
    "evict": "evicted",
    "device": "device",
    "device_open": "device",
    "filesystem_open": "filesystem",
    "ledger_open": "ledger",
    "leftovers": "leftovers",
    "discard": "purged",
    "trim": "purged",
    "drive_logs": "drives",
    "metadata": "measured",
    "connect": "closed",
    "use": "use",
    "resolve": "resolved",
    "step": "stepped",
    "undo": "stepped",
}
"""What the final message of a verb is, where it is not `done`."""

_CANNOT_EXECUTE: Final = "exit code 126"
"""By which shells, env, chroot and kubectl say that a program is there and may not be run."""

_NOT_PERMITTED: Final = (
    "Mount /tmp there without noexec; where SELinux or AppArmor forbids it, permit programs in "
    "/tmp/iolab-agent-* of that user."
)

LAST_WORDS_LIMIT_S: Final = 3.0
"""How long an ended connection may take to say why (exit code, standard error)."""


class ProtocolError(Exception):
    """The other side does not speak the wire; one sentence says what came instead."""


def encode_frame(header: Mapping[str, object], payload: bytes = b"") -> bytes:
    """A whole frame; ValueError when it would break a limit of the wire."""
    text = _ENCODER.encode(header).encode()
    if len(text) > HEADER_BYTES_MAX or len(payload) > PAYLOAD_BYTES_MAX:
        sizes = f"{len(text)} bytes of header and {len(payload)} of payload"
        raise ValueError(f"{sizes} do not fit a frame")
    return _LENGTHS.pack(len(text), len(payload)) + text + payload


async def read_frame(reader: asyncio.StreamReader) -> tuple[dict[str, Any], bytes] | None:
    """The next frame; None at a clean end between two frames. Raises ProtocolError."""
    try:
        lengths = await reader.readexactly(_LENGTHS.size)
    except asyncio.IncompleteReadError as cut:
        if not cut.partial:
            return None
        shown = excerpt(cut.partial)
        raise ProtocolError(f"it ended in the middle of a frame: '{shown}'") from None
    header_bytes, payload_bytes = _LENGTHS.unpack(lengths)
    if header_bytes > HEADER_BYTES_MAX or payload_bytes > PAYLOAD_BYTES_MAX:
        raise ProtocolError(
            await _read_bad_frame_reason(reader, lengths, header_bytes, payload_bytes)
        )
    try:
        content = await reader.readexactly(header_bytes + payload_bytes)
    except asyncio.IncompleteReadError:
        raise ProtocolError("it ended in the middle of a frame") from None
    return _parse_header(content[:header_bytes]), content[header_bytes:]


async def _read_bad_frame_reason(
    reader: asyncio.StreamReader, lengths: bytes, header_bytes: int, payload_bytes: int
) -> str:
    """A sentence that shows text where a frame should be (a login banner, a shell's error)."""
    try:
        async with asyncio.timeout(STRANGE_WAIT_S):
            more = await reader.read(STRANGE_BYTES)
    except TimeoutError:
        more = b""
    if all(32 <= byte < 127 or byte in b"\r\n\t\x1b" for byte in lengths):
        return f"it printed text where frames should be: '{excerpt(lengths + more)}'"
    return (
        f"it announced a frame of {header_bytes} bytes of header and {payload_bytes} of payload, "
        f"above the limits of {HEADER_BYTES_MAX} and {PAYLOAD_BYTES_MAX}"
    )


def _parse_header(text: bytes) -> dict[str, Any]:
    # No function is called for each number: a fleet's samples are 200,000 of them a second. Each
    # is checked where it is used.
    try:
        header = msgspec.json.decode(text)
    except DECODE_ERRORS:
        raise ProtocolError(f"a header is not JSON: '{excerpt(text, 100)}'") from None
    if not isinstance(header, dict):
        raise ProtocolError(f"a header is not an object: '{excerpt(text, 100)}'")
    return header


class FrameWriter(Protocol):
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
        host_name: str,
        reader: asyncio.StreamReader,
        writer: FrameWriter,
        last_words: Callable[[], Awaitable[str]],
    ) -> None:
        self._host = excerpt(host_name)
        self._reader = reader
        self._writer = writer
        self._last_words = last_words
        self._requests: dict[int, Request] = {}
        self._next_id = 1
        self._task: asyncio.Task[None] | None = None
        self._sending = asyncio.Lock()
        self._listening = False
        self.silent_s = 0.0
        """For how long nothing came although it was listened for; see `age`."""
        self.lost: HostLostError | None = None

    def add_silence(self, passed_s: float) -> None:
        """So much more time has passed; it counts while the host could be heard."""
        if self._listening:
            self.silent_s += passed_s

    async def receive_hello(self, limit_s: float) -> Message:
        """The agent's first message.

        From then on the channel reads by itself. HostLostError else.
        """
        try:
            async with asyncio.timeout(limit_s):
                frame = await read_frame(self._reader)
        except TimeoutError:
            raise self.end_as_lost(f"said nothing for {limit_s:g} s") from None
        except (ProtocolError, OSError) as fault:
            raise self.end_as_lost(await self._close_and_get_loss_reason(str(fault))) from None
        if frame is None:
            epitaph = await self._close_and_get_loss_reason("it ended before it said anything")
            raise self.end_as_lost(
                epitaph, *([_NOT_PERMITTED] if _CANNOT_EXECUTE in epitaph else [])
            )
        self._task = asyncio.create_task(self._receive_frames(), name=f"reader of {self._host}")
        return Message(str(frame[0].get("is")), frame[0], frame[1])

    def create_request(self, verb: str, payload: bytes, arguments: Mapping[str, object]) -> Request:
        """A request with its own id, not sent yet."""
        request_id, self._next_id = self._next_id, self._next_id + 1
        return Request(self, self._host, request_id, verb, payload, arguments)

    async def send(self, request: Request, frame: bytes) -> None:
        """Enter a request into the table and send it. Raises HostLostError."""
        if self.lost:
            raise HostLostError(self.lost.message, self.lost.hint)
        if len(self._requests) >= REQUESTS_MAX:
            raise self.end_as_lost(f"has {REQUESTS_MAX} requests unanswered")
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
            raise self.end_as_lost(f"read nothing for {WRITE_LIMIT_S:g} s") from None
        except (OSError, RuntimeError):
            # The reader sees the same end and knows more: what the other side said last.
            await self._wait_briefly_for_end()
            raise (self.lost or self.end_as_lost("does not listen any more")) from None

    def is_unanswered(self, request_id: int) -> bool:
        """Whether the host still works on a request, also once nobody takes its answers."""
        return request_id in self._requests

    def end_as_lost(
        self, reason: str, hint: str = "See that host's own logs, and run again."
    ) -> HostLostError:
        """Mark the host lost, fail every request, end the lease; the first reason stays."""
        if self.lost is None:
            self.lost = HostLostError(f"Host '{self._host}' {reason}.", hint)
            self._writer.close()
        if self._task and self._task is not asyncio.current_task():
            self._task.cancel()
        for request in self._requests.values():
            request.fail(self.lost)
        self._requests.clear()
        return self.lost

    async def close(self) -> None:
        """End the lease and the reading task."""
        self.end_as_lost("was closed")
        if self._task:
            await asyncio.gather(self._task, return_exceptions=True)

    async def _wait_briefly_for_end(self) -> None:
        if self._task:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(LAST_WORDS_LIMIT_S):
                    await asyncio.wait({self._task})

    async def _receive_frames(self) -> None:
        """Hand each message to its request until the stream ends or stops making sense."""
        try:
            while (frame := await self._read_frame_or_end()) is not None:
                await self._deliver_message(*frame)
            self.end_as_lost(await self._close_and_get_loss_reason("it ended"))
        except TimeoutError:
            self.end_as_lost(f"was not listened to for {STALL_LIMIT_S:g} s")
        except (ProtocolError, OSError) as fault:
            self.end_as_lost(await self._close_and_get_loss_reason(str(fault)))

    async def _read_frame_or_end(self) -> tuple[dict[str, Any], bytes] | None:
        self._listening = True
        try:
            return await read_frame(self._reader)
        finally:
            self._listening, self.silent_s = False, 0.0

    async def _deliver_message(self, header: dict[str, Any], payload: bytes) -> None:
        message = Message(str(header.get("is")), header, payload)
        request_id = header.get("id")
        request = self._requests.get(request_id) if isinstance(request_id, int) else None
        if request is None:
            what = excerpt(f"{message.message_type} with id {request_id}", 100)
            raise ProtocolError(f"it sent a message that answers no request: {what}")
        if request.is_final_message(message):
            del self._requests[request.id]
        if request.is_queue_full:
            async with asyncio.timeout(STALL_LIMIT_S):
                await request.wait_for_space()
        request.deliver(message)

    async def _close_and_get_loss_reason(self, fault: str) -> str:
        # Its input ends first: a carrier that still lives then exits, and its last words are whole.
        self._writer.close()
        try:
            async with asyncio.timeout(LAST_WORDS_LIMIT_S):
                words = await self._last_words()
        except TimeoutError:
            words = ""
        return f"broke off: {fault.rstrip('.')}{f' ({words})' if words else ''}"


class Request:
    """One request and the messages that wait for its reader; implements `ReplyStream`."""

    def __init__(
        self,
        channel: Channel,
        host_name: str,
        request_id: int,
        verb: str,
        payload: bytes,
        arguments: Mapping[str, object],
    ) -> None:
        self._channel = channel
        self._host = host_name
        self.id = request_id
        self._verb = verb
        self._frame: bytes | None = encode_frame(
            {"id": request_id, "do": verb, **arguments}, payload
        )
        self._queue: deque[Message] = deque()
        self._message_arrived = asyncio.Event()
        self._space_available = asyncio.Event()
        self._space_available.set()
        self._failure: HostLostError | None = None
        self._has_ended = False
        self._is_closed = False

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Message:
        """The next reply; AgentRefusalError, HostLostError or the end."""
        if self._frame is not None:
            frame, self._frame = self._frame, None
            await self._channel.send(self, frame)
        while not self._queue:
            if self._has_ended or self._is_closed:
                raise StopAsyncIteration
            if self._failure:
                # A fresh one: each reader's traceback is its own.
                raise HostLostError(self._failure.message, self._failure.hint)
            self._message_arrived.clear()
            await self._message_arrived.wait()
        reply = self._queue.popleft()
        self._space_available.set()
        self._has_ended = self.is_final_message(reply)
        if reply.message_type == "error":
            message = excerpt(str(reply.header.get("message", "it gave no reason")))
            code = excerpt(str(reply.header.get("code", "unknown")), 40)
            raise AgentRefusalError(self._host, code, message)
        return reply

    async def aclose(self) -> None:
        """Drop what waits and what still comes."""
        self._is_closed = True
        self._queue.clear()
        self._space_available.set()
        self._message_arrived.set()

    def is_final_message(self, message: Message) -> bool:
        """Whether nothing can follow this message."""
        return message.message_type in ("error", FINAL_MESSAGES.get(self._verb, "done"))

    @property
    def is_queue_full(self) -> bool:
        """Whether the reader has to take a message first; never once it wants no more."""
        return not self._is_closed and len(self._queue) >= QUEUED_MESSAGES

    async def wait_for_space(self) -> None:
        """Until there is space for a message, the reader wants no more, or the host is lost."""
        while self.is_queue_full and not self._failure:
            self._space_available.clear()
            await self._space_available.wait()

    def deliver(self, message: Message) -> None:
        """Queue a message for the reader; drop it where the reader wants no more."""
        if not self._is_closed:
            self._queue.append(message)
            self._message_arrived.set()

    def fail(self, error: HostLostError) -> None:
        """The host is lost: tell the reader after what already came."""
        self._failure = error
        self._message_arrived.set()
        self._space_available.set()
