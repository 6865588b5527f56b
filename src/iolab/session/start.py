"""Load on all hosts from one moment on, each host watched from before it until after its end."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, Final

from iolab.core.events import Phase
from iolab.core.run import PlannedRun
from iolab.dataclass import dataclass
from iolab.hosts.barrier import alongside, halting
from iolab.hosts.clock import ClockOffset, measure_offset
from iolab.hosts.device_counters import (
    DeviceSnapshot,
    idle_proof,
    snapshot,
    snapshot_and_sample,
)
from iolab.hosts.engine import Command
from iolab.hosts.remote_process import Ending, drive
from iolab.hosts.telemetry import CounterCollector
from iolab.session.context import SessionContext
from iolab.session.driver import HostShare, on_each
from iolab.session.observers import HostWatch
from iolab.units import NS_PER_S

ROUND_TRIPS_TO_START: Final = 4
"""Round trips that the slowest host needs before it can wait for the start, with one to spare."""

ALONE_ALLOWANCE_S: Final = 0.02
FLEET_ALLOWANCE_S: Final = 0.2
HOST_ALLOWANCE_S: Final = 0.001
"""From the decision to the start: the request, and what it takes to send it to each host. Where
several hosts start together a request that a busy machine delays must not be late; one alone is
waited for by nobody."""

SET_UP_S: Final = 0.4
"""More for a process that is begun before the start and set up by then: its files are opened, its
buffers registered, its threads made, on a host whose caches have just been dropped."""


@dataclass(frozen=True, slots=True)
class CommonStart:
    """The common start on the controller's clock, and how far it was ahead when chosen."""

    real_ns: int
    lead_s: float

    def on(self, share: HostShare) -> int:
        """The same moment on that host's clock."""
        return self.real_ns + offset_of(share).offset_ns


def start_of(session: SessionContext, shares: Sequence[HostShare], set_up_s: float) -> CommonStart:
    """Far enough ahead for the slowest host to be ready, no further.

    `set_up_s` is what the load needs to get ready once its host was asked for it.
    """
    slowest_ns = max(offset_of(share).rtt_ns for share in shares)
    base_s = ALONE_ALLOWANCE_S if len(shares) == 1 else FLEET_ALLOWANCE_S
    asking_s = base_s + len(shares) * HOST_ALLOWANCE_S
    lead_s = asking_s + set_up_s + ROUND_TRIPS_TO_START * slowest_ns / NS_PER_S
    return CommonStart(session.clock.real_ns() + round(lead_s * NS_PER_S), lead_s)


def offset_of(share: HostShare) -> ClockOffset:
    """The host's clock as it was read; ValueError when it was not."""
    if share.offset is None:
        raise ValueError("the clock is read before the start")
    return share.offset


@dataclass(frozen=True, slots=True)
class Go:
    """When a host's load begins, on its own clock, and how far ahead that was when chosen."""

    real_ns: int
    lead_s: float


async def settle(session: SessionContext, run: PlannedRun, watch_s: float = 0.0) -> None:
    """Let the target come to rest after the run before, but for its last `watch_s`.

    It rests since that run's load ended, while that is judged and committed, and since all was
    written for this one. Nothing is waited for before the first run of a session.
    """
    session.rest.begin(Phase.SETTLE, session.clock.mono_ns())
    if session.rest.since_ns is None or session.stop.requested:
        return
    rested_s = (session.clock.mono_ns() - session.rest.since_ns) / NS_PER_S
    seconds = session.study.method.settle_s - rested_s - watch_s
    if seconds > 0:
        session.begin(Phase.SETTLE, run, "the target comes to rest", seconds)
        await session.stop.pause(seconds)


async def watch_idle(session: SessionContext, run: PlannedRun, shares: Sequence[HostShare]) -> None:
    """See whether the target's devices are busy with somebody else's I/O, where asked for.

    The watch is the end of the target's rest.
    """
    seconds = session.study.method.idle_watch_s
    rests = session.study.method.settle_s > 0
    left_s = {
        share.name: _left_s(share, seconds, rests=rests)
        for share in shares
        if share.workdir.devices
    }
    longest_s = max(left_s.values(), default=0.0)
    if not longest_s:
        return
    await settle(session, run, longest_s)
    if session.stop.requested:
        return
    session.begin(Phase.IDLE, run, "checking for background I/O", longest_s)

    async def watch(share: HostShare) -> None:
        before = await snapshot(share.workdir.host)
        await asyncio.sleep(left_s[share.name])
        proof = idle_proof(before, await snapshot(share.workdir.host), share.workdir.devices)
        share.idle = share.idle.then(proof) if share.idle and proof else proof

    await on_each([share for share in shares if left_s.get(share.name)], watch)


LAST_WATCH_S: Final = 0.2
"""The least that is watched after a rest, or after what we do on the devices ourselves."""


def _left_s(share: HostShare, seconds: float, *, rests: bool) -> float:
    watched_s = share.idle.watched_s if share.idle else 0.0
    used = share.extents is not None or (share.cache is not None and share.cache.asked)
    return max(seconds - watched_s, min(LAST_WATCH_S, seconds) if rests or used else 0.0)


@asynccontextmanager
async def idle_meanwhile(
    session: SessionContext, shares: Sequence[HostShare]
) -> AsyncIterator[None]:
    """Begin to watch the devices while inside something is done that touches none of them.

    What was seen shortens `watch_idle`. Where they were not quiet it counts for nothing, since what
    is done inside may have read its program from them.
    """
    known = [share for share in shares if share.workdir.devices]
    if not known or not session.study.method.idle_watch_s:
        yield
        return
    before: dict[str, DeviceSnapshot] = {}

    async def look(share: HostShare) -> None:
        before[share.name] = await snapshot(share.workdir.host)

    async def look_again(share: HostShare) -> None:
        after = await snapshot(share.workdir.host)
        proof = idle_proof(before[share.name], after, share.workdir.devices)
        share.idle = proof if proof and proof.quiet else None

    await on_each(known, look)
    yield
    await on_each(known, look_again)


async def load_at_once(
    session: SessionContext,
    shares: Sequence[HostShare],
    counters: CounterCollector,
    load: Callable[[HostShare, Go], Coroutine[Any, Any, None]],
    halt: asyncio.Event,
    *,
    set_up_s: float = 0.0,
) -> None:
    """Begin the load of every host at the same moment and follow all of them to their end.

    The devices are looked at just before. The load has `set_up_s` before it begins.
    `halt` tells every load to end early: set by anybody, at the user's wish to stop, and when one
    host fails. Raises HostError or EngineError when any host failed; each has its error then.
    """
    watches = {
        share.name: HostWatch(session, share.workdir.host, index, counters)
        for index, share in enumerate(shares)
    }

    async def get_ready(share: HostShare) -> None:
        await watches[share.name].begin()
        share.offset = await measure_offset(share.workdir.host, session.clock)
        share.before = await snapshot(share.workdir.host)

    async def watched_load(share: HostShare) -> None:
        go = Go(start.on(share), start.lead_s)
        # A run without one of its hosts answers nothing.
        with halting(halt):
            await alongside(load(share, go), watches[share.name].follow(go.real_ns))

    try:
        await on_each(shares, get_ready)
        start = start_of(session, shares, set_up_s)
        await alongside(on_each(shares, watched_load), session.stop.pass_on(halt))
    finally:
        await end_watches(watches, shares)


async def end_watches(watches: Mapping[str, HostWatch], shares: Sequence[HostShare]) -> None:
    """Call off the watch of every share's host, and fill in what it saw of the host's clock."""
    await asyncio.gather(*(watches[share.name].end(share.last_sample) for share in shares))
    for share in shares:
        share.clock_step_ns = watches[share.name].clock_step_ns
        share.last_sample = None  # it is large, and the share is kept until the tables are made


async def drive_and_look(
    share: HostShare,
    command: Command,
    go: Go,
    halt: asyncio.Event,
    on_output: Callable[[bytes], None],
    on_stderr: Callable[[bytes], None] | None = None,
) -> Ending:
    """One host's process from its start to its end, and then a look at the target's devices."""
    ending = share.ending = await drive(
        share.workdir.host,
        command,
        halt,
        on_output,
        start_at_real_ns=go.real_ns,
        lead_s=go.lead_s,
        on_stderr=on_stderr,
        watch_processor=True,
    )
    share.after, share.last_sample = await snapshot_and_sample(share.workdir.host)
    return ending
