"""One QEMU on its node: a run of the node's agent, whose console is listened to until it ends."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from typing import Final, Self

from iolab.errors import HostError
from iolab.run.hosts.answers import ExitedAnswer, read_answer
from iolab.run.hosts.base import Host, Stream
from iolab.run.hosts.text import printable

CONSOLE_TAIL_BYTES: Final = 16 << 10
"""The end of what a guest's kernel and its first process said: a whole panic is 4 kB."""

OUTPUT_LIMIT_BYTES: Final = 64 << 20
"""A guest that says more has gone mad; the rest of it is thrown away on its node."""

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
OF_AGENT: Final = "iolab-agent:"
"""How our own process in the guest begins what it says on the console."""

HARMLESS: Final = "PCI: Fatal: No config space access function found"
"""What every kernel says on a machine without PCI, such as ours: it explains no end."""


class QemuRun:
    """It lives until the guest powers off, it is killed, or its node's agent ends."""

    def __init__(self, node: Host, stream: Stream) -> None:
        self._node = node
        self._stream = stream
        self._console = b""
        self._stderr = b""
        self._end = ""
        self.ended = asyncio.Event()
        """Set once it is gone, or nothing is known of it any more."""
        self._listening = asyncio.create_task(self._listen(), name=f"a guest on {node.name}")

    @classmethod
    def start(cls, node: Host, argv: Sequence[str], folder: str) -> Self:
        """Begin; what speaks against it is told by `words` once it has ended."""
        stream = node.stream(
            "run",
            argv=list(argv),
            env={},
            cwd=folder,
            start_at_real_ns=None,
            wall_limit_s=None,
            output_limit_bytes=OUTPUT_LIMIT_BYTES,
        )
        return cls(node, stream)

    @property
    def id(self) -> int:
        """By which the node's agent knows the run."""
        return self._stream.id

    def words(self) -> str:
        """How it ended, if it has, and what its console and it said last, for people."""
        said = telling(self._console) or telling(self._stderr)
        return "; ".join(part for part in (self._end, said) if part)

    async def kill(self) -> None:
        """End it by force and wait until it is gone."""
        for _ in range(KILL_TRIES):
            if self.ended.is_set() or self._node.lost or await self._strike():
                break
            await asyncio.sleep(KILL_RETRY_S)
        await self.gone(GONE_LIMIT_S)
        await self._stream.aclose()
        self._listening.cancel()
        await asyncio.gather(self._listening, return_exceptions=True)

    async def gone(self, limit_s: float) -> bool:
        """Whether it ends within so many seconds."""
        with suppress(TimeoutError):
            async with asyncio.timeout(limit_s):
                await self.ended.wait()
        return self.ended.is_set()

    async def _strike(self) -> bool:
        with suppress(HostError):
            await self._node.ask("signal", deadline_s=KILL_LIMIT_S, run=self.id, signal="KILL")
            return True
        return False

    async def _listen(self) -> None:
        try:
            async for message in self._stream:
                if message.is_ == "output" and message.header.get("stream") == "stderr":
                    self._stderr = (self._stderr + message.payload)[-CONSOLE_TAIL_BYTES:]
                elif message.is_ == "output":
                    self._console = (self._console + message.payload)[-CONSOLE_TAIL_BYTES:]
                elif message.is_ == "exited":
                    exited = read_answer(self._node.name, ExitedAnswer, message)
                    self._end = _end_of(exited)
        except HostError as fault:
            self._end = fault.happened.rstrip(".")
        finally:
            self.ended.set()


def telling(console: bytes) -> str:
    """The lines of a console that say why a guest ended: of a panic, of our agent, or the last."""
    text = console.decode("utf-8", "replace")
    lines = [
        line for line in (printable(raw, LINE_CHARACTERS) for raw in text.splitlines()) if line
    ]
    lines = [line for line in lines if HARMLESS not in line]
    panics = [line for line in lines if PANIC in line]
    ours = [line for line in lines if line.startswith(OF_AGENT)]
    return " / ".join((*ours[-1:], *panics[:1]) or lines[-LAST_LINES:])


def _end_of(exited: ExitedAnswer) -> str:
    if exited.signal is not None:
        return f"QEMU was killed by signal {exited.signal}"
    return f"QEMU ended with code {exited.code}"
