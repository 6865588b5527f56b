"""A unix socket of a guest's QEMU, reached through the agent of its node: two byte streams.

Whoever listens too slowly is cut off, and not the node: its one channel is everybody's, and must
never wait for one guest.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Final, Self

from iolab.errors import HostError
from iolab.run.hosts.base import Host, HostLost, Refusal, Stream
from iolab.run.hosts.frames import MAX_PAYLOAD_BYTES

READER_BYTES: Final = 1 << 20
"""What may wait for its reader before it counts as slow: twice this, as asyncio has it."""

UNREAD_LIMIT_BYTES: Final = 16 << 20
"""What may come beyond that before a slow reader is cut off: half an hour of telemetry."""

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


class Relay:
    """One connection: `reader` has what comes, and it is itself the way there (`Outgoing`)."""

    def __init__(self, node: Host, stream: Stream) -> None:
        self._node = node
        self._stream = stream
        self._flow = _Flow()
        self.reader = asyncio.StreamReader(limit=READER_BYTES)
        self.reader.set_transport(self._flow)
        self.spoke = asyncio.Event()
        """Set once anything came."""
        self.ended = asyncio.Event()
        """Set once nothing more comes."""
        self._unsent = bytearray()
        self._wake = asyncio.Event()
        self._room = asyncio.Event()
        self._room.set()
        self._closing = False
        self._broken = False
        name = f"relay on {node.name}"
        self._pumping = asyncio.create_task(self._pump(), name=name)
        self._sending = asyncio.create_task(self._send_all(), name=name)

    @classmethod
    async def to(cls, node: Host, folder: str, name: str, wait_s: float) -> Self:
        """Connected to the socket of that name in a scratch folder of the session on the node.

        It is waited for until it is there. Raises HostError.
        """
        stream = node.stream("connect", dir=folder, name=name, wait_s=wait_s)
        try:
            async with asyncio.timeout(wait_s + ANSWER_ALLOWANCE_S):
                await anext(stream)
        except TimeoutError:
            raise node.give_up(f"did not answer 'connect' within {wait_s:g} s") from None
        except StopAsyncIteration:
            raise node.give_up("gave no answer to 'connect'") from None
        except HostError:
            raise
        except BaseException:
            # Else it waits on, and takes the socket of whoever has that name next.
            await stream.aclose()
            await _call_off(node, stream)
            raise
        return cls(node, stream)

    @property
    def writer(self) -> Relay:
        """The way there."""
        return self

    def write(self, data: bytes, /) -> None:
        """Take bytes to send. BrokenPipeError when nobody hears them any more."""
        if self._broken or self._closing:
            raise BrokenPipeError
        self._unsent += data
        self._wake.set()

    async def drain(self) -> None:
        """Wait until most of them have left."""
        while len(self._unsent) > UNSENT_BYTES and not self._broken:
            self._room.clear()
            await self._room.wait()
        if self._broken:
            raise BrokenPipeError

    def close(self) -> None:
        """Call the connection off once everything was sent that can be."""
        self._closing = True
        self._wake.set()

    async def end(self) -> None:
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

    async def _pump(self) -> None:
        """Hand on what comes; it never waits for the reader."""
        try:
            async for message in self._stream:
                if message.is_ == "received":
                    self._take(message.payload)
        except HostError:
            # The node is lost, or it refused: to the reader both are the end.
            pass
        finally:
            self._broken = True
            self._room.set()
            self._wake.set()
            self.reader.feed_eof()
            self.ended.set()

    def _take(self, piece: bytes) -> None:
        if self._flow.cut:
            return
        self.spoke.set()
        self.reader.feed_data(piece)
        if self._flow.over(len(piece)):
            self._flow.cut = True
            self.reader.set_exception(ConnectionResetError("nobody listened to it"))
            self.close()

    async def _send_all(self) -> None:
        while True:
            await self._wake.wait()
            self._wake.clear()
            while self._unsent and not self._broken:
                await self._send_piece()
            if self._closing or self._broken:
                break
        await self._disconnect()

    async def _disconnect(self) -> None:
        if not self.ended.is_set():
            await _call_off(self._node, self._stream)

    async def _send_piece(self) -> None:
        """The next piece, which waits its turn: an order of bytes is all that a stream has.

        It may wait for ever, as does a guest that reads nothing; who asked it has a deadline.
        """
        piece = bytes(self._unsent[:MAX_PAYLOAD_BYTES])
        sent = self._node.stream("send", piece, connection=self._stream.id)
        try:
            async for _ in sent:
                pass
        except Refusal as refused:
            if refused.code != "busy" or self._closing:
                self._give_up()
                return
            await asyncio.sleep(BUSY_RETRY_S)
            return
        except HostLost:
            self._give_up()
            return
        finally:
            await sent.aclose()
        del self._unsent[: len(piece)]
        self._room.set()

    def _give_up(self) -> None:
        self._broken = True
        self._unsent.clear()
        self._room.set()


async def _call_off(node: Host, stream: Stream) -> None:
    """Have the node's agent end a connection, or no longer wait for one."""
    if not node.lost:
        with suppress(HostError):
            await node.ask("disconnect", deadline_s=DISCONNECT_LIMIT_S, connection=stream.id)


class _Flow(asyncio.ReadTransport):
    """What a stream reader tells of itself: whether it has more than it wants."""

    def __init__(self) -> None:
        super().__init__()
        self.cut = False
        self._full = False
        self._beyond = 0

    def pause_reading(self) -> None:
        """The reader has too much."""
        self._full = True
        self._beyond = 0

    def resume_reading(self) -> None:
        """It has read most of it."""
        self._full = False

    def over(self, size: int) -> bool:
        """Whether a reader that was given so much more has left too much unread by now."""
        self._beyond = self._beyond + size if self._full else 0
        return self._beyond > UNREAD_LIMIT_BYTES
