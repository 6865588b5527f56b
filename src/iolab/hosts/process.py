"""A link through a subprocess: its standard input and output carry the frames."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import Mapping, Sequence
from typing import Final

from iolab.hosts.host import ReachError, printable_bytes

STDERR_TAIL_BYTES: Final = 4096
"""The end of a carrier's standard error, where the reason of its death stands."""

STDERR_SHOWN: Final = 300
"""Characters of that which go into a sentence."""

LEASE_END_LIMIT_S: Final = 10.0
"""From the end of an agent's input to its exit: it kills its processes and removes its files."""

TERM_LIMIT_S: Final = 2.0
"""After SIGTERM, before SIGKILL."""

LAST_WORDS_S: Final = 2.0
"""How long a broken-off carrier may take to exit, so that its exit code can be told."""


async def start_process(
    host: str, argv: Sequence[str], environment: Mapping[str, str] | None = None
) -> ProcessLink:
    """Start a carrier in a session of its own, so that a Ctrl-C at the terminal is ours alone.

    It has our environment if none is given. Raises ReachError when it cannot be started.
    """
    try:
        process = await asyncio.create_subprocess_exec(
            *argv,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            start_new_session=True,
            env=environment,
        )
    except OSError as error:
        happened = (
            f"Host '{host}' cannot be reached: '{argv[0]}' does not start ({error.strerror})."
        )
        raise ReachError(happened, "Correct the host's command in the study.") from None
    return ProcessLink(process)


class ProcessLink:
    """A running carrier: `ip netns exec`, `ssh`, or the agent itself."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        if not (process.stdin and process.stdout and process.stderr):
            raise ValueError("a link needs all three pipes")
        self._process = process
        self._reader = process.stdout
        self._writer = process.stdin
        self._stderr = process.stderr
        self._tail = b""
        self._listening = asyncio.create_task(self._keep_tail(), name="standard error of a host")

    @property
    def reader(self) -> asyncio.StreamReader:
        """The carrier's standard output."""
        return self._reader

    @property
    def writer(self) -> asyncio.StreamWriter:
        """The carrier's standard input."""
        return self._writer

    @property
    def pid(self) -> int:
        """The carrier's process id."""
        return self._process.pid

    async def last_words(self) -> str:
        """How it exited and the end of what it said on standard error."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(LAST_WORDS_S):
                await asyncio.wait({self._listening})
                await self._process.wait()
        return ending(self._process.returncode, self._tail)

    async def end(self) -> None:
        """Close its input, wait, then TERM, then KILL to its whole group; reap it."""
        self._writer.close()
        if not await self._exited(LEASE_END_LIMIT_S):
            self._signal(signal.SIGTERM)
            if not await self._exited(TERM_LIMIT_S):
                self._signal(signal.SIGKILL)
                await self._exited(TERM_LIMIT_S)
        self._listening.cancel()
        await asyncio.gather(self._listening, return_exceptions=True)

    async def _exited(self, limit_s: float) -> bool:
        try:
            async with asyncio.timeout(limit_s):
                await self._process.wait()
        except TimeoutError:
            return False
        return True

    def _signal(self, number: signal.Signals) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, number)

    async def _keep_tail(self) -> None:
        while piece := await self._stderr.read(STDERR_TAIL_BYTES):
            self._tail = (self._tail + piece)[-STDERR_TAIL_BYTES:]


def ending(returncode: int | None, stderr: bytes) -> str:
    """A carrier's end for people, like `exit code 255; Permission denied`."""
    parts = []
    if returncode is not None and returncode < 0:
        parts.append(f"killed by signal {-returncode}")
    elif returncode is not None:
        parts.append(f"exit code {returncode}")
    if stderr.strip():
        parts.append(printable_bytes(stderr[-STDERR_SHOWN:], STDERR_SHOWN))
    return "; ".join(parts)
