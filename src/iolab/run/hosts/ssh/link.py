"""One program on an ssh host: its standard streams as asyncio has them, and how it ended."""

from __future__ import annotations

import asyncio
import shlex
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import cast

import asyncssh

from iolab.errors import HostError
from iolab.run.hosts.process import LAST_WORDS_S, STDERR_TAIL_BYTES, ending
from iolab.run.hosts.push import OUTPUT_LIMIT_BYTES, PLAIN_WORD, STEP_LIMIT_S, Ran
from iolab.run.hosts.ssh.faults import loss_of
from iolab.run.hosts.ssh.limits import SshLimits
from iolab.run.hosts.text import printable


class SshRunner:
    """Runs programs over one connection."""

    def __init__(
        self, host: str, connection: asyncssh.SSHClientConnection, limits: SshLimits
    ) -> None:
        self._host = host
        self._connection = connection
        self._limits = limits

    @property
    def host(self) -> str:
        """The host's name in the study."""
        return self._host

    @property
    def connection(self) -> asyncssh.SSHClientConnection:
        """What carries the programs."""
        return self._connection

    async def start(self, *words: str, limit_s: float = STEP_LIMIT_S) -> SshLink:
        """Start a program of plain words. Raises HostError."""
        line = command_line(*words)
        link = SshLink(self._limits)
        try:
            async with asyncio.timeout(limit_s):
                await self._connection.create_session(
                    lambda: link, line, encoding=None, request_pty=False
                )
        except TimeoutError:
            raise self._unable(words[0], f"no answer within {limit_s:g} s") from None
        except (asyncssh.Error, OSError) as fault:
            raise self._unable(words[0], printable(str(fault))) from None
        return link

    async def run(
        self,
        *words: str,
        given: bytes | None = None,
        limit_s: float = STEP_LIMIT_S,
        keep_output: bool = True,
    ) -> Ran:
        """Exit code, output and standard error of a program, within a deadline."""
        link = await self.start(*words, limit_s=limit_s)
        kept = bytearray()
        try:
            async with asyncio.timeout(limit_s):
                if given:
                    link.writer.write(given)
                    await link.writer.drain()
                link.writer.close()
                while piece := await link.reader.read(OUTPUT_LIMIT_BYTES):
                    room = OUTPUT_LIMIT_BYTES - len(kept) if keep_output else 0
                    kept += piece[:room]
                await link.closed()
        except TimeoutError:
            raise self._unable(words[0], f"it did not end within {limit_s:g} s") from None
        except OSError as fault:
            raise self._unable(words[0], printable(str(fault))) from None
        finally:
            link.abort()
        return Ran(link.code, kept.decode("utf-8", "replace"), link.stderr)

    def _unable(self, program: str, why: str) -> HostError:
        happened = f"'{program}' cannot be run on host '{printable(self._host)}' ({why})."
        return HostError(happened, "See that the user may run programs there over ssh.")


def command_line(*words: str) -> str:
    """Words as ssh sends them; the only place where words meet a shell, the user's login shell.

    ValueError for a word that any shell might change: quoting differs between them.
    """
    for word in words:
        if not PLAIN_WORD.fullmatch(word):
            raise ValueError(f"'{word}' is not a plain word")
    return shlex.join(words)


class SshLink(asyncssh.SSHClientSession[bytes]):
    """A running program: implements `linked.Link`, its reader and writer as asyncio's own."""

    def __init__(self, limits: SshLimits) -> None:
        self._limits = limits
        self._reader = asyncio.StreamReader()
        self._closed = asyncio.Event()
        self._room = asyncio.Event()
        self._room.set()
        self._channel: asyncssh.SSHClientChannel[bytes] | None = None
        self._killed_by: str | None = None
        self._loss: str | None = None
        self.code: int | None = None
        self.stderr = b""
        self.leave: Callable[[], Awaitable[None]] | None = None
        """What is to be let go of when the program has ended: its connection."""

    @property
    def reader(self) -> asyncio.StreamReader:
        """The program's standard output."""
        return self._reader

    @property
    def writer(self) -> SshLink:
        """The program's standard input."""
        return self

    async def closed(self) -> None:
        """Wait until the program has ended or its connection is lost."""
        await self._closed.wait()

    async def last_words(self) -> str:
        """Why the connection broke, or how the program ended and what it said on its way."""
        with suppress(TimeoutError):
            async with asyncio.timeout(LAST_WORDS_S):
                await self._closed.wait()
        if self._loss:
            return self._loss
        killed = f"killed by {self._killed_by}" if self._killed_by else ""
        return "; ".join(part for part in (killed, ending(self.code, self.stderr)) if part)

    async def end(self) -> None:
        """Close its input, wait, then cut the channel and let the connection go."""
        self.close()
        with suppress(TimeoutError):
            async with asyncio.timeout(self._limits.end_s):
                await self._closed.wait()
        self.abort()
        if self.leave is not None:
            await self.leave()

    def abort(self) -> None:
        """Cut the channel; the other side closes the program's streams."""
        if self._channel is not None and not self._closed.is_set():
            self._channel.abort()

    # The writer: what `channel.Outgoing` asks for.

    def write(self, data: bytes) -> None:
        """Take bytes to send; OSError when there is nobody to send to."""
        if self._channel is None or self._closed.is_set():
            raise ConnectionResetError(self._loss or "the program has ended")
        self._channel.write(data)

    async def drain(self) -> None:
        """Wait until most of them have left; OSError when they cannot."""
        await self._room.wait()
        if self._closed.is_set():
            raise ConnectionResetError(self._loss or "the program has ended")

    def close(self) -> None:
        """End the program's standard input."""
        if self._channel is not None and not self._closed.is_set():
            with suppress(OSError):
                self._channel.write_eof()

    # What asyncssh tells.

    def connection_made(self, chan: asyncssh.SSHClientChannel[bytes]) -> None:
        """The channel is there; a full reader holds its sender back through it."""
        self._channel = chan
        # A reader calls nothing of its transport but the two methods of `_Flow`.
        self._reader.set_transport(cast(asyncio.Transport, _Flow(chan)))

    def data_received(self, data: bytes, datatype: asyncssh.DataType) -> None:
        """Standard output goes to the reader, the end of standard error is kept."""
        if datatype == asyncssh.EXTENDED_DATA_STDERR:
            self.stderr = (self.stderr + data)[-STDERR_TAIL_BYTES:]
        else:
            self._reader.feed_data(data)

    def eof_received(self) -> bool:
        """The program's output has ended; its input may stay open."""
        self._reader.feed_eof()
        return True

    def exit_status_received(self, status: int) -> None:
        """The program has exited."""
        self.code = status

    def exit_signal_received(
        self,
        signal: str,
        core_dumped: bool,  # noqa: ARG002, FBT001 - as asyncssh calls it
        msg: str,  # noqa: ARG002
        lang: str,  # noqa: ARG002
    ) -> None:
        """The program was killed."""
        self._killed_by = printable(f"signal {signal}", 40)

    def pause_writing(self) -> None:
        """The other side takes no more for now."""
        self._room.clear()

    def resume_writing(self) -> None:
        """It does again."""
        self._room.set()

    def connection_lost(self, exc: Exception | None) -> None:
        """The channel is closed: after the program's end, or with its connection."""
        if exc is not None:
            self._loss = loss_of(exc, self._limits)
        self._closed.set()
        self._room.set()
        self._reader.feed_eof()


class _Flow:
    """Holds the sender back while the reader is full."""

    def __init__(self, channel: asyncssh.SSHClientChannel[bytes]) -> None:
        self._channel = channel

    def pause_reading(self) -> None:
        """Deliver nothing more."""
        self._channel.pause_reading()

    def resume_reading(self) -> None:
        """Deliver again, but not from within this call: the reader is not waiting yet."""
        asyncio.get_running_loop().call_soon(self._channel.resume_reading)
