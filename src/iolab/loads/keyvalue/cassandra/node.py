"""One real node on a host from its start to its end, with a reader of its counters beside it."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from typing import Final

from iolab.errors import EngineError, HostError
from iolab.hosts.message import printable
from iolab.hosts.remote_process import output_of
from iolab.loads.keyvalue.cassandra.node_files import (
    NodePlan,
    node_command,
    node_files,
    node_folders,
    unpacked_folder,
)
from iolab.loads.keyvalue.cassandra.node_host import SAID_LIMIT, Daemon
from iolab.loads.keyvalue.cassandra.tools import CassandraTools, CountersReply, read_reply
from iolab.loads.keyvalue.databases import remove

MARKER: Final = b"Starting listening for CQL clients"
"""What a node logs when it begins to serve; all supported versions do."""

NO_ROOM: Final = re.compile(
    rb"No space left on device|Insufficient disk space|FSWriteError|FSDiskFullWriteError"
    rb"|a fault occurred in (?:a|an) (?:recent )?unsafe memory access"
)
"""What it logs when it cannot write any more. The last is how Java tells of a page of a mapped file
for which the file system had no block: the node lives on then, and fails every write."""

START_LIMIT_S: Final = 300
"""From the start to that line: seven seconds on an idle host, more with a commit log to replay."""

ANSWER_LIMIT_S: Final = 60
"""From that line to the first counters: CQL and JMX answer, a Java machine starts."""

TELL_LIMIT_S: Final = 10.0
"""Beyond the interval, for counters to come from a host under full load."""

STOP_LIMIT_S: Final = 120.0
"""For a node to end by itself: five seconds, and the writing of what its memory still holds."""

FILE_MODE: Final = 0o644
PUT_LIMIT_S: Final = 60.0

CORRECT: Final = "Correct what it says and run again."


class CassandraNode:
    """A node of `plan` on the host of `tools`; `kill` or `stop` must be called in any case.

    `heard` gets its counters as they come, every `interval_ms`.
    """

    def __init__(
        self,
        plan: NodePlan,
        tools: CassandraTools,
        interval_ms: int,
        heard: Callable[[CountersReply], None],
    ) -> None:
        self.plan = plan
        self.newest: CountersReply | None = None
        self._tools = tools
        self._heard = heard
        self._interval_s = interval_ms / 1000
        self._serving = asyncio.Event()
        self._counted = asyncio.Event()
        self._daemon = Daemon(tools.host, node_command(plan), self._read_log)
        watch = tools.watch_command(plan.jmx_port, ANSWER_LIMIT_S, interval_ms)
        self._reader = Daemon(tools.host, watch, self._read_counters)
        self._ready = False
        self._no_room = ""

    @property
    def pid(self) -> int | None:
        """The process id of its Java machine, None before its start."""
        return self._daemon.pid

    async def start(self) -> None:
        """Start it and wait until it answers. EngineError with the end of its log, HostError."""
        host, plan = self._tools.host, self.plan
        await remove(host, unpacked_folder(plan))
        await output_of(host, ("mkdir", "-p", "--", *node_folders(plan)))
        for name, content in node_files(plan).items():
            await host.ask(
                "put", content, deadline_s=PUT_LIMIT_S, path=f"{plan.conf}/{name}", mode=FILE_MODE
            )
        await self._daemon.start()
        if not await _first(self._serving, self._daemon, START_LIMIT_S):
            raise await self._stillborn(f"did not begin to serve within {START_LIMIT_S} s")
        await self._reader.start()
        if not await _first(self._counted, self._reader, ANSWER_LIMIT_S):
            raise await self._stillborn(f"did not answer within {ANSWER_LIMIT_S} s")
        self._ready = True

    def fault(self) -> str | None:
        """A sentence once it has ended unasked since it was ready, or cannot write any more."""
        if not self._ready:
            return None
        if self._no_room:
            return f"{self._name} could not write to its target any more ({self._no_room})."
        return None if self._daemon.alive else f"{self._name} {self._daemon.why()}."

    @property
    def tells(self) -> bool:
        """Whether its counters still come."""
        return self._reader.alive

    async def counters(self) -> CountersReply | None:
        """The next ones that it tells; None when it tells none any more."""
        self._counted.clear()
        limit_s = self._interval_s + TELL_LIMIT_S
        return self.newest if await _first(self._counted, self._reader, limit_s) else None

    async def stop(self) -> None:
        """Have it write what it holds and end. EngineError when it had to be killed."""
        died = self.fault()
        self._ready = False
        await self._reader.kill()
        ended = await self._daemon.stop(STOP_LIMIT_S)
        if died or not ended:
            happened = (
                died or f"{self._name} did not end within {STOP_LIMIT_S:g} s, and was killed."
            )
            raise EngineError(happened, CORRECT)

    async def kill(self) -> None:
        """End it at once with all that it started."""
        self._ready = False
        await self._reader.kill()
        await self._daemon.kill()

    @property
    def _name(self) -> str:
        return f"Cassandra {self.plan.version.text} on host '{self._tools.host.name}'"

    async def _stillborn(self, late: str) -> HostError | EngineError:
        """Why it is not there; nothing of it is left."""
        alive = self._daemon.alive
        if not alive:
            happened = f"{self._name} died at its start: it {self._daemon.why()}."
        elif not self._reader.alive and self._serving.is_set():
            happened = f"The counters of {self._name} cannot be read: it {self._reader.why()}."
        else:
            happened = f"{self._name} {late}; {self._daemon.why()}."
        await self.kill()
        lost = self._tools.host.lost
        return HostError(lost, CORRECT) if lost else EngineError(happened, CORRECT)

    def _read_log(self, line: bytes) -> None:
        if MARKER in line:
            self._serving.set()
        if not self._no_room and NO_ROOM.search(line):
            text = line.decode("utf-8", "replace")
            self._no_room = printable(text, SAID_LIMIT).rstrip(".")

    def _read_counters(self, line: bytes) -> None:
        try:
            counters = read_reply(line, CountersReply, self._tools.host.name)
        except EngineError:
            # The reader's own sentence: it ends now, and that is told by its end.
            return
        self.newest = counters
        self._counted.set()
        self._heard(counters)


async def _first(event: asyncio.Event, daemon: Daemon, limit_s: float) -> bool:
    """Whether the event comes before the process ends, within a time."""
    waiting = asyncio.create_task(event.wait())
    ending = asyncio.create_task(daemon.wait(limit_s))
    try:
        await asyncio.wait({waiting, ending}, return_when=asyncio.FIRST_COMPLETED)
        return event.is_set()
    finally:
        waiting.cancel()
        ending.cancel()
        await asyncio.gather(waiting, ending, return_exceptions=True)
