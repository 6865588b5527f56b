"""Load of one process on each host: one absolute start for all, engines and telemetry heard."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import Any, Final, TypeAlias

from msgspec.structs import replace

from iolab.core import limits
from iolab.core.block_trace import BlockTrace
from iolab.core.compressed import BLOCK_BYTES, OutputCompressor
from iolab.core.engine import EngineName
from iolab.core.events import SessionPhase, StoppingRuleStatus
from iolab.core.run import PlannedRun, RunRecord
from iolab.errors import EngineError, HostError
from iolab.hosts.answers import ExitedAnswer, TraceAnswer, read_answer
from iolab.hosts.engine import Command, OutputReader, SingleProcessEngine
from iolab.hosts.intervals import Interval, IntervalLog
from iolab.hosts.message import ReplyStream
from iolab.hosts.remote_process import CORRECT_HINT, ProcessEnding, exit_fault_text
from iolab.hosts.telemetry import CounterCollector
from iolab.session.context import SessionContext, StoppingRule
from iolab.session.driver import HostRunInProgress, LoadDriver
from iolab.session.scenario import PhaseRunner
from iolab.session.start import (
    SET_UP_S,
    HostStartTime,
    require_clock_offset,
    run_load_with_common_start,
    run_process_then_snapshot,
    watch_for_background_io,
)
from iolab.targets.context import run_seed
from iolab.text import excerpt
from iolab.units import NS_PER_S, format_bytes

CALL_OFF_LIMIT_S: Final = 20.0
"""Calling it off on a host under full load."""

LEAD_LIMIT_S: Final = 600.0
"""From its begin to the engine's start, and from the engine's end to when it is called off."""

LAST_WORD_LIMIT_S: Final = 20.0
"""From calling a sample off to what it tells."""

_SEE_OUTPUT: Final = "See the engine's own output in the session's folder."

OUTPUT_KEPT_BYTES: Final = 512 << 20
"""Packed output of all hosts of a run that is kept in memory: half an hour of a hundred hosts that
print 30 kB a second, or three minutes of a thousand. Each host has an equal part of it; the rest is
cut off, and the manifest says so."""

FIRST_BLOCKS: Final = 8
"""Hosts print at the same moments; their first blocks are of so many sizes, so that they are not
packed at the same moments too."""


@asynccontextmanager
async def trace_device(
    host_run: HostRunInProgress, limit_s: float, stop_event: asyncio.Event
) -> AsyncIterator[None]:
    """Sample the device nearest the target inside, and fill in what was seen, or why nothing was.

    It ends with `stop_event`, if that is set before. The agent ends it by itself when the engine,
    which has `limit_s` from its start, is long gone.
    It never fails a run: the checks that need it say why they could not look.
    """
    if not host_run.workdir.devices:
        yield
        return
    device, host, target = (
        host_run.workdir.devices[0],
        host_run.workdir.host,
        host_run.workdir.target_facts,
    )
    if target is not None and not target.device:
        # One of several is no sample of them all.
        host_run.trace = BlockTrace(device, "the target lies over several devices")
        yield
        return
    stream = host.stream("trace", device=device, wall_limit_s=limit_s + LEAD_LIMIT_S)
    listening = asyncio.create_task(_receive_final_trace(host_run.name, device, stream))
    # Its request goes out before that of the run.
    await asyncio.sleep(0)

    async def end_trace_after_event(event: asyncio.Event | None = None) -> None:
        if event is not None:
            await event.wait()
        with suppress(HostError):
            await host.request("unwatch", deadline_s=CALL_OFF_LIMIT_S, watch=stream.id)

    early = asyncio.create_task(end_trace_after_event(stop_event))
    try:
        yield
    finally:
        early.cancel()
        try:
            await end_trace_after_event()
            async with asyncio.timeout(LAST_WORD_LIMIT_S):
                host_run.trace = await listening
        except TimeoutError:
            host_run.trace = BlockTrace(
                device, f"the sample did not end in {LAST_WORD_LIMIT_S:g} s"
            )
        finally:
            listening.cancel()
            await asyncio.gather(listening, early, return_exceptions=True)
            await stream.aclose()


async def _receive_final_trace(host_name: str, device: str, stream: ReplyStream) -> BlockTrace:
    last = None
    try:
        async for message in stream:
            last = message
        if last is None:
            return BlockTrace(device, "the sample ended without a word")
        return read_answer(host_name, TraceAnswer, last).to_block_trace
    except HostError as fault:
        return BlockTrace(device, fault.message.rstrip("."))


class StoppingRuleWatch:
    """Feeds a run's rule, tells what it says, and halts all engines at once when it has enough."""

    def __init__(
        self,
        session: SessionContext,
        run: PlannedRun,
        host_runs: Sequence[HostRunInProgress],
        halt: asyncio.Event,
    ) -> None:
        self._session = session
        self._run = run
        self._states = host_runs
        self._halt = halt
        self._rule: StoppingRule | None = None
        if session.stopping_rule_for is not None:
            self._rule = session.stopping_rule_for(run, [host_run.name for host_run in host_runs])
        self._progress = ""

    def add_intervals_and_halt_when_satisfied(
        self, host_run: HostRunInProgress, intervals: Iterable[Interval]
    ) -> None:
        """Take what a host has told. Once engines are to end, nothing more is looked at."""
        rule = self._rule
        if rule is None or self._halt.is_set():
            return
        ahead_ns = require_clock_offset(host_run).offset_ns
        for interval in intervals:
            rule.add_interval(
                host_run.name, interval.end_real_ns - ahead_ns, interval.span_ns, interval.ios
            )
        if rule.status_text != self._progress:
            self._progress = rule.status_text
            self._session.emit(StoppingRuleStatus(self._run, self._progress))
        if rule.is_satisfied and not self._session.stop.is_requested:
            for each in self._states:
                each.has_enough = True
            self._halt.set()


def engine_error(engine_name: EngineName, host_run: HostRunInProgress) -> EngineError | None:
    """Why the engine did not do what it was asked on that host; None when it did.

    An engine that was stopped on our wish has not failed, whatever it says of it.
    """
    fault = process_ending_error(engine_name, host_run)
    if fault or host_run.ending is None or host_run.ending.was_halted or host_run.command is None:
        return fault
    if host_run.reading is None or not host_run.reading.intervals:
        return EngineError(
            f"{engine_name} on host '{host_run.name}' reported nothing.", _SEE_OUTPUT
        )
    return None


def process_ending_error(
    engine_name: EngineName, host_run: HostRunInProgress
) -> EngineError | None:
    """The same for an engine that has no intervals to report."""
    ending, reading = host_run.ending, host_run.reading
    if ending is None or ending.was_halted or host_run.command is None:
        return None
    faults = reading.faults if reading else ()
    if how := exit_fault_text(ending, host_run.command, output_faults=faults):
        return EngineError(
            f"{engine_name} on host '{host_run.name}' {how}.", _hint_after_exit(ending.exited)
        )
    if faults:
        reason = excerpt("; ".join(faults)).rstrip(".")
        return EngineError(f"{engine_name} on host '{host_run.name}': {reason}.", _SEE_OUTPUT)
    return None


def out_of_memory_error(
    program: str, host_name: str, command: Command, ending: ProcessEnding, hint: str
) -> EngineError | None:
    """The error of a process that the kernel killed as its memory is bounded; None of others."""
    if not ending.exited.oom_kills or command.memory_limit_bytes is None:
        return None
    limit = format_bytes(command.memory_limit_bytes)
    return EngineError(
        f"{program} on host '{host_name}' needed more than its {limit} and was killed.", hint
    )


def _hint_after_exit(exited: ExitedAnswer) -> str:
    if exited.timed_out:
        return "See whether the target still answers."
    if exited.signal is not None:
        return "See that host's kernel log for who killed it, and run again."
    if exited.code != 0:
        return CORRECT_HINT
    return "Use fewer intervals: a shorter method.runtime."


Preparation: TypeAlias = Callable[
    [SessionContext, PlannedRun, Sequence[HostRunInProgress]], Awaitable[None]
]


class ProcessDriver(LoadDriver):
    """Makes the load of an engine that runs as one process on each host."""

    preparations: Sequence[Preparation] = (watch_for_background_io,)
    """What is done before each run, one after the other, until the user wishes to stop."""

    phase_runner: PhaseRunner | None = None
    """What follows the phases of the last run, None where it had none."""

    def __init__(self, engine: SingleProcessEngine[Any]) -> None:
        self.engine = engine

    async def do_steps_before_load(
        self, session: SessionContext, run: PlannedRun, host_runs: Sequence[HostRunInProgress]
    ) -> None:
        """What is done before the load: without more, the devices are watched idle."""
        for prepare in self.preparations:
            if not session.stop.is_requested:
                await prepare(session, run, host_runs)

    async def measure(
        self,
        session: SessionContext,
        run: PlannedRun,
        host_runs: Sequence[HostRunInProgress],
        counters: CounterCollector,
    ) -> None:
        """Run the engine on all hosts at once and fill in their states.

        Raises HostError or EngineError when any host failed; the others are then stopped, and what
        they had measured is kept. The user's wish to stop ends all engines early without an error,
        as does the run's own rule.
        """
        self.begin_measure_phase(session, run)
        halt = asyncio.Event()
        stopping_rule_watch = StoppingRuleWatch(session, run, host_runs, halt)
        runner = self.phase_runner = self.make_phase_runner(session, run, host_runs, halt)
        commands = {
            host_run.name: self.prepare_host_command(session, run, host_run)
            for host_run in host_runs
        }
        listeners = {}
        for index, host_run in enumerate(host_runs):
            packer = OutputCompressor(
                OUTPUT_KEPT_BYTES // len(host_runs),
                BLOCK_BYTES * (1 + index % FIRST_BLOCKS) // FIRST_BLOCKS,
            )
            listeners[host_run.name] = partial(
                _OutputListener, session, run, host_run, packer, stopping_rule_watch
            )

        async def run_engine_on_host(host_run: HostRunInProgress, go: HostStartTime) -> None:
            command = host_run.command = commands[host_run.name]
            if runner is not None:
                runner.set_load_start(go.real_ns - require_clock_offset(host_run).offset_ns)
            listener = listeners[host_run.name](self.get_or_create_output_reader(run, host_run))
            try:
                # What is done to the device after the first phase is not of the load alone.
                enough = runner.baseline_over if runner is not None else asyncio.Event()
                async with trace_device(host_run, command.wall_limit_s, enough):
                    await run_process_then_snapshot(host_run, command, go, halt, listener.feed)
            finally:
                listener.store_results_at_end()
            fault = engine_error(run.point.job.engine, host_run)
            if fault:
                raise fault

        waits = any(command.waits_for_start for command in commands.values())
        set_up_s = SET_UP_S if waits else 0.0
        work = run_load_with_common_start(
            session, host_runs, counters, run_engine_on_host, halt, set_up_s=set_up_s
        )
        await (work if runner is None else runner.run_phases_with_load(work))

    def make_phase_runner(
        self,
        session: SessionContext,  # noqa: ARG002 - of all
        run: PlannedRun,  # noqa: ARG002
        host_runs: Sequence[HostRunInProgress],  # noqa: ARG002
        halt: asyncio.Event,  # noqa: ARG002
    ) -> PhaseRunner | None:
        """What is to follow the phases of the run; None of load that cannot have any."""
        return None

    def with_load_details(self, record: RunRecord) -> RunRecord:
        """The record with the phases of the run, by the first of which it is judged."""
        if self.phase_runner is None:
            return record
        scenario = self.phase_runner.scenario
        baseline_s = scenario.phases[0].seconds if scenario.phases else record.runtime_s
        elapsed_s = (record.ended_real_ns - record.started_real_ns) / NS_PER_S
        record = self.phase_runner.neighbours.record_with_neighbour_runs(record, elapsed_s)
        return replace(record, scenario=scenario, runtime_s=baseline_s)

    def begin_measure_phase(self, session: SessionContext, run: PlannedRun) -> None:
        """Tell of the load and how long it takes at most."""
        _, longest_s = session.study.method.load_seconds_range
        session.begin_session_phase(SessionPhase.MEASURE, run, run.point.title_text, longest_s)

    def prepare_host_command(
        self, session: SessionContext, run: PlannedRun, host_run: HostRunInProgress
    ) -> Command:
        """The process of one host."""
        _, longest_s = session.study.method.load_seconds_range
        return self.engine.build_command(
            run.point.job,
            host_run.workdir.dir,
            seconds=longest_s,
            seed=run_seed(session.study, run.point, host_run.name, run.repeat),
        )

    def get_or_create_output_reader(
        self,
        run: PlannedRun,
        host_run: HostRunInProgress,  # noqa: ARG002 - of all
    ) -> OutputReader:
        """What reads the output of that process."""
        return self.engine.create_output_reader(run.point.job)


class _OutputListener:
    """Hears what one host's process prints: kept, read, shown, and looked at.

    The live view gets each interval with the time since the host's first one began.
    """

    def __init__(
        self,
        session: SessionContext,
        run: PlannedRun,
        host_run: HostRunInProgress,
        packer: OutputCompressor,
        stopping_rule_watch: StoppingRuleWatch,
        reader: OutputReader,
    ) -> None:
        self.host_run = host_run
        self._session = session
        self._run = run
        self._packer = packer
        self._stopping_rule_watch = stopping_rule_watch
        self._reader = reader
        self._elapsed_ns = 0

    def feed(self, piece: bytes) -> None:
        """Take the next bytes of standard output."""
        self._packer.add(piece)
        intervals = self._reader.feed(piece)
        for interval in intervals:
            self._elapsed_ns += interval.span_ns
            elapsed_s = self._elapsed_ns / NS_PER_S
            self._session.emit(interval.to_event(self.host_run.name, self._run, elapsed_s))
        limit_s = self.host_run.command.wall_limit_s if self.host_run.command else limits.RUN_S_MAX
        elapsed_s = self._elapsed_ns / NS_PER_S
        if not limits.duration_fault(elapsed_s, limit_s + limits.CLOCK_SLACK_S):
            self._stopping_rule_watch.add_intervals_and_halt_when_satisfied(
                self.host_run, intervals
            )
        # Otherwise the run fails at its end, and its rule must not follow such a series.

    def store_results_at_end(self) -> None:
        """The output has ended, well or not."""
        self.host_run.output = self._packer.finish()
        reading = self.host_run.reading = self._reader.finish()
        self.host_run.details = reading.details or self.host_run.details
        self.host_run.intervals = IntervalLog.from_intervals(self.host_run.reading.intervals)
