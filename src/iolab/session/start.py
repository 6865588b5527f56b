"""Load on all hosts from one moment on, each host watched from before it until after its end."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, Final

from iolab.core.events import SessionPhase
from iolab.core.run import PlannedRun
from iolab.hosts.barrier import run_with_background, set_event_on_failure
from iolab.hosts.clock import ClockOffset, measure_clock_offset
from iolab.hosts.device_counters import (
    HostDisksSnapshot,
    busiest_device_activity,
    take_disks_snapshot,
    take_disks_snapshot_and_sample,
)
from iolab.hosts.drive_logs import read_drive_logs
from iolab.hosts.engine import Command
from iolab.hosts.remote_process import ProcessEnding, run_process
from iolab.hosts.telemetry import CounterCollector
from iolab.record import Record
from iolab.session.context import SessionContext
from iolab.session.driver import HostRunInProgress, run_on_each_host
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

LAST_WATCH_S: Final = 0.2
"""The least that is watched after a rest, or after what we do on the devices ourselves."""


class CommonStartTime(Record):
    """The common start on the controller's clock, and how far it was ahead when chosen."""

    real_ns: int
    lead_s: float

    def start_on_host_clock_ns(self, host_run: HostRunInProgress) -> int:
        """The same moment on that host's clock."""
        return self.real_ns + require_clock_offset(host_run).offset_ns


def common_start_time(
    session: SessionContext, host_runs: Sequence[HostRunInProgress], set_up_s: float
) -> CommonStartTime:
    """Far enough ahead for the slowest host to be ready, no further.

    `set_up_s` is what the load needs to get ready once its host was requested it.
    """
    slowest_ns = max(require_clock_offset(host_run).rtt_ns for host_run in host_runs)
    base_s = ALONE_ALLOWANCE_S if len(host_runs) == 1 else FLEET_ALLOWANCE_S
    asking_s = base_s + len(host_runs) * HOST_ALLOWANCE_S
    lead_s = asking_s + set_up_s + ROUND_TRIPS_TO_START * slowest_ns / NS_PER_S
    return CommonStartTime(session.clock.real_ns() + round(lead_s * NS_PER_S), lead_s)


def require_clock_offset(host_run: HostRunInProgress) -> ClockOffset:
    """The host's clock as it was read; ValueError when it was not."""
    if host_run.clock_offset is None:
        raise ValueError("the clock is read before the start")
    return host_run.clock_offset


class HostStartTime(Record):
    """When a host's load begins, on its own clock, and how far ahead that was when chosen."""

    real_ns: int
    lead_s: float


async def wait_out_settle_time(
    session: SessionContext, run: PlannedRun, following_watch_s: float = 0.0
) -> None:
    """Let the target come to rest after the run before, but for its last `following_watch_s`.

    It rests since that run's load ended, while that is judged and committed, and since all was
    written for this one. Nothing is waited for before the first run of a session.
    """
    session.settle_timer.begin_session_phase(SessionPhase.SETTLE, session.clock.mono_ns())
    if session.settle_timer.rest_since_ns is None or session.stop.is_requested:
        return
    rested_s = (session.clock.mono_ns() - session.settle_timer.rest_since_ns) / NS_PER_S
    seconds = session.study.method.settle_s - rested_s - following_watch_s
    if seconds > 0:
        session.begin_session_phase(SessionPhase.SETTLE, run, "the target comes to rest", seconds)
        await session.stop.sleep(seconds)


async def watch_for_background_io(
    session: SessionContext, run: PlannedRun, host_runs: Sequence[HostRunInProgress]
) -> None:
    """See whether the target's devices are busy with somebody else's I/O, where asked for.

    The watch is the end of the target's rest.
    """
    seconds = session.study.method.idle_watch_s
    rests = session.study.method.settle_s > 0
    left_s = {
        host_run.name: _idle_watch_seconds_left(host_run, seconds, has_settle_time=rests)
        for host_run in host_runs
        if host_run.workdir.devices
    }
    longest_s = max(left_s.values(), default=0.0)
    if not longest_s:
        return
    await wait_out_settle_time(session, run, longest_s)
    if session.stop.is_requested:
        return
    session.begin_session_phase(SessionPhase.IDLE, run, "checking for background I/O", longest_s)

    async def watch_devices_of_host(host_run: HostRunInProgress) -> None:
        before = await take_disks_snapshot(host_run.workdir.host)
        await asyncio.sleep(left_s[host_run.name])
        proof = busiest_device_activity(
            before, await take_disks_snapshot(host_run.workdir.host), host_run.workdir.devices
        )
        host_run.pre_run_activity = (
            host_run.pre_run_activity.combined_with(proof)
            if host_run.pre_run_activity and proof
            else proof
        )

    await run_on_each_host(
        [host_run for host_run in host_runs if left_s.get(host_run.name)], watch_devices_of_host
    )


def _idle_watch_seconds_left(
    host_run: HostRunInProgress, requested_s: float, *, has_settle_time: bool
) -> float:
    watched_s = host_run.pre_run_activity.watched_s if host_run.pre_run_activity else 0.0
    used = host_run.extents is not None or (
        host_run.cache_drop is not None and host_run.cache_drop.requested
    )
    return max(
        requested_s - watched_s, min(LAST_WATCH_S, requested_s) if has_settle_time or used else 0.0
    )


@asynccontextmanager
async def count_as_idle_watch_if_quiet(
    session: SessionContext, host_runs: Sequence[HostRunInProgress]
) -> AsyncIterator[None]:
    """Begin to watch the devices while inside something is done that touches none of them.

    What was seen shortens `watch_for_background_io`. Where they were not quiet it counts for
    nothing, since what is done inside may have read its program from them.
    """
    known = [host_run for host_run in host_runs if host_run.workdir.devices]
    if not known or not session.study.method.idle_watch_s:
        yield
        return
    before: dict[str, HostDisksSnapshot] = {}

    async def snapshot_disks_before_watch(host_run: HostRunInProgress) -> None:
        before[host_run.name] = await take_disks_snapshot(host_run.workdir.host)

    async def keep_activity_if_quiet(host_run: HostRunInProgress) -> None:
        after = await take_disks_snapshot(host_run.workdir.host)
        proof = busiest_device_activity(before[host_run.name], after, host_run.workdir.devices)
        host_run.pre_run_activity = proof if proof and proof.is_quiet else None

    await run_on_each_host(known, snapshot_disks_before_watch)
    yield
    await run_on_each_host(known, keep_activity_if_quiet)


async def run_load_with_common_start(
    session: SessionContext,
    host_runs: Sequence[HostRunInProgress],
    counters: CounterCollector,
    load: Callable[[HostRunInProgress, HostStartTime], Coroutine[Any, Any, None]],
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
        host_run.name: HostWatch(session, host_run.workdir.host, index, counters)
        for index, host_run in enumerate(host_runs)
    }

    async def begin_watch_and_snapshot(host_run: HostRunInProgress) -> None:
        await watches[host_run.name].begin()
        host_run.drives_before = await read_drive_logs(
            host_run.workdir.host, host_run.workdir.devices
        )
        host_run.clock_offset = await measure_clock_offset(host_run.workdir.host, session.clock)
        host_run.disks_before = await take_disks_snapshot(host_run.workdir.host)

    async def run_watched_load(host_run: HostRunInProgress) -> None:
        go = HostStartTime(start.start_on_host_clock_ns(host_run), start.lead_s)
        # A run without one of its hosts answers nothing.
        with set_event_on_failure(halt):
            await run_with_background(
                load(host_run, go),
                watches[host_run.name].collect_and_report_until_cancelled(go.real_ns),
            )

    try:
        await run_on_each_host(host_runs, begin_watch_and_snapshot)
        start = common_start_time(session, host_runs, set_up_s)
        await run_with_background(
            run_on_each_host(host_runs, run_watched_load), session.stop.forward_to_event(halt)
        )
        await run_on_each_host(host_runs, _read_and_set_drive_logs_after_load)
    finally:
        await end_watches(watches, host_runs)


async def _read_and_set_drive_logs_after_load(host_run: HostRunInProgress) -> None:
    if host_run.drives_before:
        host_run.drives_after = await read_drive_logs(
            host_run.workdir.host, host_run.workdir.devices
        )


async def end_watches(
    watches: Mapping[str, HostWatch], host_runs: Sequence[HostRunInProgress]
) -> None:
    """Call off the watch of every host, and fill in what it saw of the host's clock."""
    await asyncio.gather(
        *(watches[host_run.name].end(host_run.last_sample) for host_run in host_runs)
    )
    for host_run in host_runs:
        host_run.clock_step_ns = watches[host_run.name].clock_step_ns
        host_run.last_sample = None  # it is large, and the state is kept until the tables are made


async def run_process_then_snapshot(
    host_run: HostRunInProgress,
    command: Command,
    go: HostStartTime,
    halt: asyncio.Event,
    on_output: Callable[[bytes], None],
    on_stderr: Callable[[bytes], None] | None = None,
) -> ProcessEnding:
    """One host's process from its start to its end, and then a look at the target's devices."""
    ending = host_run.ending = await run_process(
        host_run.workdir.host,
        command,
        halt,
        on_output,
        start_at_real_ns=go.real_ns,
        lead_s=go.lead_s,
        on_stderr=on_stderr,
        does_watch_processor=True,
    )
    host_run.disks_after, host_run.last_sample = await take_disks_snapshot_and_sample(
        host_run.workdir.host
    )
    return ending
