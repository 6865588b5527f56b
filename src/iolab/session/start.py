"""Load on all hosts from one moment on, each host watched from before it until after its end."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass
from typing import Any, Final

from iolab.core.events import Phase
from iolab.core.run import PlannedRun
from iolab.errors import EngineError, HostError
from iolab.hosts.barrier import alongside
from iolab.hosts.clock import ClockOffset, measure_offset
from iolab.hosts.device_counters import idle_proof, snapshot
from iolab.hosts.engine import Command
from iolab.hosts.remote_process import Ending, drive
from iolab.hosts.telemetry import CounterCollector
from iolab.session.context import SessionContext
from iolab.session.driver import HostShare, on_each
from iolab.session.observers import HostWatch

ROUND_TRIPS_TO_START: Final = 4
"""Round trips that the slowest host needs before it can wait for the start, with one to spare."""

NS_PER_S: Final = 1_000_000_000


@dataclass(frozen=True, slots=True)
class CommonStart:
    """The common start on the controller's clock, and how far it was ahead when chosen."""

    real_ns: int
    lead_s: float

    def on(self, mine: HostShare) -> int:
        """The same moment on that host's clock."""
        return self.real_ns + offset_of(mine).offset_ns


def start_of(
    session: SessionContext, evidence: Sequence[HostShare], allowance_s: float
) -> CommonStart:
    """Far enough ahead for the slowest host to be ready, no further.

    `allowance_s` is what the hosts need to get ready beyond the way of the messages.
    """
    slowest_ns = max(offset_of(mine).rtt_ns for mine in evidence)
    lead_s = allowance_s + ROUND_TRIPS_TO_START * slowest_ns / NS_PER_S
    return CommonStart(session.clock.real_ns() + round(lead_s * NS_PER_S), lead_s)


def offset_of(mine: HostShare) -> ClockOffset:
    """The host's clock as it was read; ValueError when it was not."""
    if mine.offset is None:
        raise ValueError("the clock is read before the start")
    return mine.offset


START_ALLOWANCE_S: Final = 0.5
"""From the decision to the start: a look at the counters and the request on every host."""


@dataclass(frozen=True, slots=True)
class Go:
    """When a host's load begins, on its own clock, and how far ahead that was when chosen."""

    real_ns: int
    lead_s: float


async def watch_idle(
    session: SessionContext, run: PlannedRun, evidence: Sequence[HostShare]
) -> None:
    """See whether the target's devices are busy with somebody else's I/O, where asked for."""
    seconds = session.study.method.idle_watch_s
    known = [mine for mine in evidence if mine.site.devices]
    if not known or not seconds:
        return
    session.begin(Phase.IDLE, run, "checking for background I/O", seconds)

    async def watch(mine: HostShare) -> None:
        before = await snapshot(mine.site.host)
        await asyncio.sleep(seconds)
        mine.idle = idle_proof(before, await snapshot(mine.site.host), mine.site.devices)

    await on_each(known, watch)


async def load_at_once(
    session: SessionContext,
    evidence: Sequence[HostShare],
    counters: CounterCollector,
    load: Callable[[HostShare, Go], Coroutine[Any, Any, None]],
    halt: asyncio.Event,
) -> None:
    """Begin the load of every host at the same moment and follow all of them to their end.

    `halt` tells every load to end early: set by anybody, at the user's wish to stop, and when one
    host fails. Raises HostError or EngineError when any host failed; each has its error then.
    """
    watches = {
        mine.name: HostWatch(session, mine.site.host, index, counters)
        for index, mine in enumerate(evidence)
    }

    async def get_ready(mine: HostShare) -> None:
        await watches[mine.name].begin()
        mine.offset = await measure_offset(mine.site.host, session.clock)

    async def one(mine: HostShare) -> None:
        go = Go(start.on(mine), start.lead_s)
        try:
            await alongside(load(mine, go), watches[mine.name].follow(go.real_ns))
        except (HostError, EngineError):
            # A run without one of its hosts answers nothing: the others need not go on.
            halt.set()
            raise

    try:
        await on_each(evidence, get_ready)
        start = start_of(session, evidence, START_ALLOWANCE_S)
        await alongside(on_each(evidence, one), session.stop.pass_on(halt))
    finally:
        await asyncio.gather(*(watch.end() for watch in watches.values()))
        for mine in evidence:
            mine.clock_step_ns = watches[mine.name].clock_step_ns


async def drive_between_looks(
    mine: HostShare,
    command: Command,
    go: Go,
    halt: asyncio.Event,
    on_output: Callable[[bytes], None],
    on_stderr: Callable[[bytes], None] | None = None,
) -> Ending:
    """One host's process from its start to its end, between two looks at the target's devices."""
    mine.before = await snapshot(mine.site.host)
    ending = mine.ending = await drive(
        mine.site.host,
        command,
        halt,
        on_output,
        start_at_real_ns=go.real_ns,
        lead_s=go.lead_s,
        on_stderr=on_stderr,
        watch_processor=True,
    )
    mine.after = await snapshot(mine.site.host)
    return ending
