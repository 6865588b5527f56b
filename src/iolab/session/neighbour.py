"""Loads that events begin beside the measured one: started, limited, ended, and kept as evidence.

The engine of a neighbour is one more run of a host's agent, in a control group of its own: it ends
with its agent, however that ends, and its I/O can be limited on the way.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Final

from msgspec import Struct, field
from msgspec.structs import replace

from iolab.core.compressed import OutputCompressor
from iolab.core.run import EngineOutput, NeighbourPlan, NeighbourRun, RunRecord
from iolab.core.scenario import IoLimit
from iolab.errors import HostError, IolabError
from iolab.hosts.barrier import gather_hosts
from iolab.hosts.clock import measure_clock_offset
from iolab.hosts.engine import Command, OutputReader, RunIoLimit
from iolab.hosts.intervals import IntervalCollector, IntervalLog
from iolab.hosts.remote_process import exit_fault_text, run_process
from iolab.session.actions import AGENT_LIMIT_S
from iolab.session.context import SessionContext
from iolab.session.driver import HostRunInProgress, discard_impossible_intervals_and_make_error
from iolab.session.start import SET_UP_S
from iolab.units import NS_PER_S

LEAD_S: Final = 2.0
"""From the preparation of a neighbour to its first I/O: clocks are read, and its process set up."""

OUTPUT_KEPT_BYTES: Final = 64 << 20
"""Packed output of all hosts of one neighbour: half an hour of some. Each has an equal part."""

NO_LIMIT: Final = IoLimit()


class _NeighbourLoad(Struct):
    """The load of one event, on all of its hosts."""

    plan: NeighbourPlan
    host_runs: list[HostRunInProgress]
    halt: asyncio.Event
    limits_by_event: dict[str, IoLimit]
    """Those in force by the event that set each, its own first."""
    tasks: list[asyncio.Task[None]] = field(default_factory=list)
    run_id_by_host: dict[str, int] = field(default_factory=dict)
    hosts_ended_early: list[str] = field(default_factory=list)
    """Hosts on which it had ended before it was told to."""

    @property
    def limit(self) -> IoLimit:
        """All limits in force as one: of each rate the newest holds."""
        in_force = NO_LIMIT
        for limit in self.limits_by_event.values():
            in_force = limit.with_missing_limits_from(in_force)
        return in_force


class NeighbourLoads:
    """The neighbours of one run.

    `command_for` is the process of a host, `reader_for` what reads its output.
    """

    def __init__(
        self,
        session: SessionContext,
        plans: Iterable[NeighbourPlan],
        command_for: Callable[[NeighbourPlan, HostRunInProgress], Command],
        reader_for: Callable[[NeighbourPlan, HostRunInProgress], OutputReader],
    ) -> None:
        self._session = session
        self._command_for = command_for
        self._reader_for = reader_for
        self._plans = {plan.event: plan for plan in plans}
        self._loads: dict[str, _NeighbourLoad] = {}

    def host_names(self, event_id: str) -> tuple[str, ...]:
        """The hosts on which that event begins its load."""
        return self._plans[event_id].hosts

    async def start(self, event_id: str, due_real_ns: int, io_limit: IoLimit | None) -> None:
        """Begin a load at a moment of the controller's clock, by which its process is set up.

        Returns at that moment; HostError where a host cannot.
        """
        plan, clock = self._plans[event_id], self._session.clock
        workdirs = self._session.neighbour_workdirs[event_id]
        states = [HostRunInProgress(workdir) for workdir in workdirs]
        limits_by_event = {event_id: io_limit or NO_LIMIT}
        load = self._loads[event_id] = _NeighbourLoad(
            plan, states, asyncio.Event(), limits_by_event
        )

        async def set_clock_offset(state: HostRunInProgress) -> None:
            state.clock_offset = await measure_clock_offset(state.workdir.host, clock)

        (await gather_hosts(states, set_clock_offset)).results_or_raise()
        start_ns = max(due_real_ns, clock.real_ns() + round(SET_UP_S * NS_PER_S))
        load.tasks = [
            asyncio.create_task(self._run_on_host(load, state, start_ns)) for state in states
        ]
        waiting = asyncio.create_task(asyncio.sleep((start_ns - clock.real_ns()) / NS_PER_S))
        try:
            ended, _ = await asyncio.wait(
                [waiting, *load.tasks], return_when=asyncio.FIRST_COMPLETED
            )
        finally:
            waiting.cancel()
        faults = [state.error for state in states if state.error]
        if ended - {waiting} and faults:
            raise HostError(faults[0], "See that host.")

    async def set_io_limit(self, event_id: str, limit_event: str, io_limit: IoLimit) -> None:
        """Limit the load of an event from now on, until `limit_event` is undone.

        HostError where it does not run, or its host cannot limit it.
        """
        if not self.is_running(event_id):
            raise HostError(
                f"There is no load of event '{event_id}' to be limited.", "See its phase."
            )
        load = self._loads[event_id]
        load.limits_by_event[limit_event] = io_limit
        try:
            await self._apply_io_limit(load)
        except HostError:
            # It holds on none of its hosts then, and is no part of what a later one sets.
            with suppress(HostError):
                await self.lift_io_limit(event_id, limit_event)
            raise

    async def lift_io_limit(self, event_id: str, limit_event: str) -> None:
        """Limit the load of an event by what is in force without that event's limit.

        HostError where a host cannot, but for a load that is told to end, which may be gone.
        """
        load = self._loads[event_id]
        if load.limits_by_event.pop(limit_event, None) is not None:
            try:
                await self._apply_io_limit(load)
            except HostError:
                if not load.halt.is_set():
                    raise

    async def _apply_io_limit(self, load: _NeighbourLoad) -> None:
        async def apply_on_host(host_run: HostRunInProgress) -> None:
            wanted = _io_limit_on_target_devices(host_run, load.limit)
            if host_run.name in load.run_id_by_host:
                await host_run.workdir.host.request(
                    "io_limit",
                    deadline_s=AGENT_LIMIT_S,
                    run=load.run_id_by_host[host_run.name],
                    rates=wanted.limit.limited_rates_by_name,
                )

        (await gather_hosts(load.host_runs, apply_on_host)).results_or_raise()

    def is_running(self, event_id: str) -> bool:
        """Whether the load of an event goes on somewhere."""
        return event_id in self._loads and bool(self._loads[event_id].run_id_by_host)

    def request_load_end(self, event_id: str) -> None:
        """Have the load of an event end, if it began."""
        load = self._loads.get(event_id)
        if load is None or load.halt.is_set():
            return
        pairs = zip(load.host_runs, load.tasks, strict=False)
        load.hosts_ended_early = [state.name for state, task in pairs if task.done()]
        load.halt.set()

    async def wait_for_end_and_tell_early_end(self, event_id: str) -> str:
        """Until the load of an event that was told to end has ended, if it began.

        Why it had not gone on until it was told, "" if it had.
        """
        load = self._loads.get(event_id)
        if load is None:
            return ""
        if load.tasks:
            await asyncio.wait(load.tasks)  # A cancellation leaves them to the next call.
        faults = [state.error for state in load.host_runs if state.error]
        if faults:
            return faults[0]
        return (
            f"The load on host '{load.hosts_ended_early[0]}' ended by itself."
            if load.hosts_ended_early
            else ""
        )

    async def end_all(self) -> None:
        """Nothing goes on after this."""
        for event in self._loads:
            self.request_load_end(event)
        for event in self._loads:
            await self.wait_for_end_and_tell_early_end(event)

    def record_with_neighbour_runs(self, record: RunRecord, elapsed_s: float) -> RunRecord:
        """The record with what the neighbours did."""
        pairs = [(load.plan, state) for load in self._loads.values() for state in load.host_runs]
        if not pairs:
            return record
        collector = IntervalCollector()
        discard_impossible_intervals_and_make_error([state for _, state in pairs], elapsed_s)
        for index, (_, state) in enumerate(pairs):
            collector.add(index, state.intervals)
        runs = [
            NeighbourRun(plan.event, plan.point, state.to_host_run(), state.io_limited_disks)
            for plan, state in pairs
        ]
        outputs = [
            EngineOutput(state.name, f"{plan.event}.{plan.point.job.engine}.stdout", state.output)
            for plan, state in pairs
            if state.output is not None and state.output.size_bytes
        ]
        return replace(
            record,
            neighbours=tuple(runs),
            neighbour_intervals=collector.build_interval_table(),
            neighbour_bins=collector.pop_bin_table(),
            outputs=(*record.outputs, *outputs),
        )

    async def _run_on_host(
        self, load: _NeighbourLoad, host_run: HostRunInProgress, start_ns: int
    ) -> None:
        """One host's engine to its end; a fault stands in its state."""
        host = host_run.workdir.host
        if host_run.clock_offset is None:
            raise ValueError("the clock is read before the start")
        packer = OutputCompressor(OUTPUT_KEPT_BYTES // len(load.host_runs))
        try:
            reader = self._reader_for(load.plan, host_run)
            command = self._command_for(load.plan, host_run)
            command = replace(command, io_limit=_io_limit_on_target_devices(host_run, load.limit))
            host_run.command = command

            def keep_and_parse_output(piece: bytes) -> None:
                packer.add(piece)
                reader.feed(piece)

            def record_agent_run_id(run_id: int) -> None:
                load.run_id_by_host[host_run.name] = run_id

            try:
                host_run.ending = await run_process(
                    host,
                    command,
                    load.halt,
                    keep_and_parse_output,
                    start_at_real_ns=start_ns + host_run.clock_offset.offset_ns,
                    lead_s=LEAD_S,
                    on_request_id=record_agent_run_id,
                )
            finally:
                load.run_id_by_host.pop(host_run.name, None)
                host_run.output = packer.finish()
                host_run.reading = reader.finish()
                host_run.intervals = IntervalLog.from_intervals(host_run.reading.intervals)
            if not host_run.ending.was_halted and (
                how := exit_fault_text(host_run.ending, command)
            ):
                host_run.error = f"The neighbour's engine on host '{host_run.name}' {how}."
        except IolabError as fault:
            host_run.error = fault.message


def _io_limit_on_target_devices(host_run: HostRunInProgress, io_limit: IoLimit) -> RunIoLimit:
    """The limit for the devices of a host's target. HostError where it has none."""
    devices = host_run.workdir.devices
    if io_limit != NO_LIMIT and not devices:
        message = f"The target on host '{host_run.name}' has no block device that could be limited."
        raise HostError(message, "Leave io_limit out, or give the neighbour a rate.")
    return RunIoLimit(devices, io_limit)
