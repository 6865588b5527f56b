"""A process on a host that lives on beside what else is done, and never outlives its owner."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from iolab.errors import HostError
from iolab.run.drive import KILL_LIMIT_S, begin
from iolab.run.engines.base import Command
from iolab.run.hosts.answers import ExitedAnswer, read_answer
from iolab.run.hosts.base import Host, Message
from iolab.run.hosts.text import printable

TAIL_BYTES: Final = 32 << 10
"""What is kept of all that it says: its end, where the reason stands, below a trace of Java's."""

START_LIMIT_S: Final = 30.0
"""For the agent to start a process, on a host under full load."""

TOLD_LINES: Final = 3
"""Lines of its log that a sentence on its end repeats."""

SAID_LIMIT: Final = 600
"""Characters of them."""

_BAD: Final = ("ERROR", "Exception", "Error:", "FATAL")
"""What a line has in it that tells why a Java program ended."""


class Daemon:
    """One process, from `start` to its end; `kill` or `stop` must be called in any case.

    `on_line` gets each line of its standard output. All of them may raise HostError.
    """

    def __init__(
        self, host: Host, command: Command, on_line: Callable[[bytes], None] | None = None
    ) -> None:
        self.host = host
        self.pid: int | None = None
        self.exited: ExitedAnswer | None = None
        self._command = command
        self._on_line = on_line
        self._line = b""
        self._tail = b""
        self._run_id = 0
        self._begun = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._failure: HostError | None = None

    @property
    def alive(self) -> bool:
        """Whether it was started and has not ended."""
        return self._task is not None and not self._task.done()

    @property
    def tail(self) -> str:
        """The end of what it said on both its outputs."""
        return self._tail.decode("utf-8", "replace")

    async def start(self) -> None:
        """Start it. Refusal when it cannot be started, HostError when the host fails."""
        self._task = asyncio.create_task(self._listen(), name=f"daemon on {self.host.name}")
        begun = asyncio.create_task(self._begun.wait())
        try:
            await asyncio.wait(
                {self._task, begun},
                timeout=START_LIMIT_S,
                return_when=asyncio.FIRST_COMPLETED,
            )
        finally:
            begun.cancel()
            await asyncio.gather(begun, return_exceptions=True)
        if self._failure:
            raise self._failure
        if not self._begun.is_set() and self.alive:
            raise self.host.give_up(f"started no process within {START_LIMIT_S:g} s")

    async def wait(self, limit_s: float) -> bool:
        """Whether it ends within that time; True at once when it has."""
        if self._task is not None:
            await asyncio.wait({self._task}, timeout=limit_s)
        return not self.alive

    async def stop(self, limit_s: float) -> bool:
        """Ask it to end, kill it when it does not; whether it ended by itself."""
        if self.alive and not self.host.lost:
            await self._signal("TERM")
            if await self.wait(limit_s):
                return True
        await self.kill()
        return False

    async def kill(self) -> None:
        """Kill it and all that it started; returns when the host has seen it gone."""
        if self.alive and not self.host.lost:
            await self._signal("KILL")
            if not await self.wait(KILL_LIMIT_S + START_LIMIT_S):
                self.host.give_up("did not end a process that it was asked to kill")
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    def why(self) -> str:
        """How it ended, as the second half of a sentence, with the end of what it said."""
        # Who is killed has no say in it: his last words tell of something else.
        struck = self.exited is not None and self.exited.signal is not None
        said = printable("; ".join(_telling(self.tail, struck=struck)), SAID_LIMIT).rstrip(".")
        return f"{self._how()}{f' ({said})' if said else ''}"

    async def _signal(self, name: str) -> None:
        """A process that has just ended takes none, and a lost host is told by the stream."""
        with suppress(HostError):
            await self.host.ask("signal", deadline_s=KILL_LIMIT_S, run=self._run_id, signal=name)

    def _how(self) -> str:
        if self._failure:
            return f"was lost with its host: {self._failure.happened.rstrip('.')}"
        exited = self.exited
        if exited is None:
            return "was ended"
        if exited.oom_kills:
            return "was killed by the kernel, since it wanted more memory than it may have"
        if exited.timed_out:
            return "was killed, for it outlived its limit"
        if exited.signal is not None:
            return f"was killed by signal {exited.signal}"
        return f"ended with exit code {exited.code}"

    async def _listen(self) -> None:
        stream = begin(self.host, self._command)
        self._run_id = stream.id
        last: Message | None = None
        try:
            async for last in stream:
                self._take(last)
            if last is not None:
                self.exited = read_answer(self.host.name, ExitedAnswer, last)
        except HostError as fault:
            self._failure = fault
        finally:
            await stream.aclose()

    def _take(self, message: Message) -> None:
        if message.is_ == "started":
            pid = message.header.get("pid")
            self.pid = pid if isinstance(pid, int) else None
            self._begun.set()
        elif message.is_ == "output":
            self._tail = (self._tail + message.payload)[-TAIL_BYTES:]
            if self._on_line and message.header.get("stream") == "stdout":
                *lines, rest = (self._line + message.payload).split(b"\n")
                self._line = rest[-TAIL_BYTES:]
                for line in lines:
                    self._on_line(line)


def _telling(said: str, *, struck: bool) -> list[str]:
    """The lines that tell most of an end: the last errors, else the last ones of all."""
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    bad = [line for line in lines if any(word in line for word in _BAD)]
    bad = [line for line in bad if not line.startswith("at ")]
    return (bad if bad or struck else lines)[-TOLD_LINES:]
