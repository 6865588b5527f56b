"""The run loop: each run made, repeated or left out, and committed; lost hosts reached again."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from itertools import chain
from typing import Final, Protocol

from msgspec.structs import replace

from iolab.core.configuration import Redundancy
from iolab.core.events import Notice, RunFinished, RunPreparing, SessionStatus
from iolab.core.host import HostFacts
from iolab.core.run import EngineOutput, PlannedRun, RunKey, RunRecord, RunStatus
from iolab.core.stopping import StoppingRuleSettings
from iolab.core.study import FailurePolicy
from iolab.core.target_state import EMPTY_LEDGER, TargetLedger
from iolab.errors import EngineError, Fault, HostError, IolabError
from iolab.hosts.barrier import gather_hosts
from iolab.hosts.clock import measure_clock_offset
from iolab.hosts.intervals import IntervalCollector, trim_malloc_heap
from iolab.hosts.telemetry import CounterCollector
from iolab.record import Record
from iolab.session.context import SessionContext
from iolab.session.driver import (
    HostRunInProgress,
    LoadDriver,
    discard_impossible_intervals_and_make_error,
)
from iolab.session.kinds import SessionResources
from iolab.session.meters import MeterWatch
from iolab.session.observers import HostMonitors
from iolab.session.reconnect import (
    HostFactory,
    RetryPolicy,
    reason_by_lost_host,
    reconnect_lost,
    require_no_lost_hosts,
)
from iolab.session.start import wait_out_settle_time
from iolab.targets.precondition import Preconditioner
from iolab.targets.work_directory import WorkDirectory
from iolab.units import NS_PER_S

FAULTS_SHOWN: Final = 20
"""Faults that the record of a run tells in one text: a thousand hosts that are lost at once have a
thousand. Each host's own error stands with the host."""

GIVE_BACK_S: Final = 10.0
"""How often memory is given back while load runs: it takes some hundredths of a second where a
thousand hosts report."""

LAYOUT_TRIES: Final = 3
"""How often files are laid out for one run when hosts are lost meanwhile: a fleet that loses a host
each time is not fit to be measured."""

COMMIT_LIMIT_S: Final = 120.0
"""In which this process can say nothing: a thousand hosts took 26 s on cores that others used. No
load runs meanwhile."""

RESUME_HINT: Final = "Correct it and resume the session; committed runs are kept."


UNDO_HINT: Final = (
    "See that host. The undo is tried again as the session ends, and by `iolab clean`. Then resume "
    "the session; committed runs are kept."
)


class RunQueue(Protocol):
    """Gives one run after the other; whoever judges runs tells it what came of each."""

    def take_next_run(self) -> PlannedRun | None:
        """The run to make now, None when nothing more is needed."""

    def take_new_messages(self) -> Sequence[str]:
        """What the user should know of its choices, since it was last asked."""


class FixedQueue:
    """The pending runs in their order, whatever comes out."""

    def __init__(self, pending: Iterable[PlannedRun]) -> None:
        self._pending = iter(tuple(pending))

    def take_next_run(self) -> PlannedRun | None:
        """The next of the runs."""
        return next(self._pending, None)

    def take_new_messages(self) -> Sequence[str]:
        """Nothing: nothing is chosen."""
        return ()


async def execute_run(
    session: SessionContext,
    run: PlannedRun,
    workdirs: Sequence[WorkDirectory],
    resources: SessionResources,
) -> RunRecord | None:
    """The record of the run, whether it went well or not.

    A host or an engine that fails makes a failed record with all that was gathered until then. None
    when the user wanted to stop before anything was measured.
    """
    session.emit(RunPreparing(run))
    started_ns, started_mono_ns = session.clock.real_ns(), session.clock.mono_ns()
    states = [HostRunInProgress(workdir) for workdir in workdirs]
    counters = CounterCollector()
    observers = HostMonitors(
        session,
        run,
        counters,
        first=len(states),
        path_devices=resources.booted_hosts.path_devices_by_node,
    )
    meters = MeterWatch(session, counters, states, observers)
    watching = resources.booted_hosts.sample_counters(run, counters, observers.host_indexes)
    driver: LoadDriver | None = None
    fault: IolabError | None = None
    try:
        driver = resources.drivers.get_or_create_driver(run)
        await driver.do_steps_before_load(session, run, states)
        await wait_out_settle_time(session, run)  # what no watch has waited for
        if session.stop.is_requested:
            return None
        _set_neighbour_workdirs(session, run, resources)
        async with (
            observers.watch_all(),
            watching,
            meters.watch(run),
            _trim_heap_repeatedly(),
        ):
            await driver.measure(session, run, states, counters)
    except (HostError, EngineError) as raised:
        fault = raised
    ended_ns = session.clock.real_ns()
    elapsed_s = (session.clock.mono_ns() - started_mono_ns) / NS_PER_S
    fault = discard_impossible_intervals_and_make_error(states, elapsed_s) or fault
    await set_clock_offsets_after_run(session, states)
    if driver is not None:
        await driver.do_steps_after_load(session, run, states)
    method, rule = session.study.method, stopping_rule_settings(session, run)
    loads = _create_interval_collector(states)
    # One after the other: what was collected for one table is gone when the next is made.
    counted, intervals, bins = (
        counters.pop_table(),
        loads.build_interval_table(),
        loads.pop_bin_table(),
    )
    record = RunRecord(
        run=run,
        status=_run_status(states, fault),
        failure=failure_text(fault) if fault else None,
        failure_hint=failure_hint_text(fault) or None if fault else None,
        started_real_ns=started_ns,
        ended_real_ns=ended_ns,
        warmup_s=method.warmup_s if run.point.job.has_warmup and not rule else 0.0,
        runtime_s=float(rule.longest_s) if rule else method.runtime_s,
        telemetry_interval_ms=session.study.telemetry.interval_ms,
        hosts=tuple(state.to_host_run() for state in states),
        intervals=intervals,
        bins=bins,
        counters=counted,
        monitored_hosts=observers.monitored_hosts(),
        meter_faults=meters.faults,
        idle_spans=meters.idle_spans,
        redundancy=_configured_redundancy(session, run),
        volume=session.study.target.volume,
        outputs=engine_outputs(run, states),
        excluded_hosts=session.excluded_hosts(run),
        rule=rule,
    )
    return resources.booted_hosts.with_booted_host_details(
        driver.with_load_details(record) if driver else record
    )


def _set_neighbour_workdirs(
    session: SessionContext, run: PlannedRun, resources: SessionResources
) -> None:
    """Where the loads work that events of the run begin."""
    session.neighbour_workdirs.clear()
    for neighbour in session.plan.neighbours_of_run(run):
        session.neighbour_workdirs[neighbour.event] = resources.workdirs.workdirs_of_hosts(
            run.point.configuration, neighbour.hosts
        )


def stopping_rule_settings(session: SessionContext, run: PlannedRun) -> StoppingRuleSettings | None:
    """The rule under which a run is made; other load ends when it is done."""
    return session.study.method.rule if run.point.job.can_end_by_rule else None


async def set_clock_offsets_after_run(
    session: SessionContext, host_runs: Sequence[HostRunInProgress]
) -> None:
    """Each host's clock after the run: the difference is its drift. Nobody fails for it."""

    async def _set_clock_offset_after_run(host_run: HostRunInProgress) -> None:
        if host_run.clock_offset is not None and not host_run.workdir.host.lost_reason:
            host_run.clock_offset_after = await measure_clock_offset(
                host_run.workdir.host, session.clock, host_run.clock_offset.rtt_ns
            )

    await gather_hosts(host_runs, _set_clock_offset_after_run)


def failure_text(fault: IolabError) -> str:
    """What happened, for the record: every fault when there are several, up to a limit."""
    parts = [part.message for part in fault.faults] or [fault.message]
    more = len(parts) - FAULTS_SHOWN
    return " ".join([*parts[:FAULTS_SHOWN], *([f"And {more} more."] if more > 0 else [])])


def failure_hint_text(fault: IolabError) -> str:
    """What to do about it: the hint of each fault whose message is told."""
    hints = [part.hint for part in fault.faults[:FAULTS_SHOWN]] or [fault.hint]
    return " ".join(dict.fromkeys(filter(None, hints)))


def engine_outputs(
    run: PlannedRun, host_runs: Sequence[HostRunInProgress]
) -> tuple[EngineOutput, ...]:
    """What each host's engine printed and the files that it left, but for empty ones."""
    name = f"{run.point.job.engine}.stdout"
    outputs: list[EngineOutput] = []
    for host_run in host_runs:
        if host_run.output is not None:
            outputs.append(EngineOutput(host_run.name, name, host_run.output))
        outputs += [EngineOutput(host_run.name, *named) for named in host_run.files.items()]
    return tuple(output for output in outputs if output.content.size_bytes)


def _configured_redundancy(session: SessionContext, run: PlannedRun) -> Redundancy | None:
    wanted = run.point.configuration
    return next(item.redundancy for item in session.study.configurations if item.id == wanted)


def _run_status(host_runs: Sequence[HostRunInProgress], fault: IolabError | None) -> RunStatus:
    if fault:
        return RunStatus.FAILED
    if any(host_run.was_stopped_early and not host_run.has_enough for host_run in host_runs):
        return RunStatus.INTERRUPTED
    return RunStatus.DONE


def _create_interval_collector(host_runs: Sequence[HostRunInProgress]) -> IntervalCollector:
    collector = IntervalCollector()
    for index, host_run in enumerate(host_runs):
        collector.add(index, host_run.intervals)
    return collector


@asynccontextmanager
async def _trim_heap_repeatedly() -> AsyncIterator[None]:
    """What reports leave free in pieces goes back to the system again and again inside."""

    async def trim_heap_periodically() -> None:
        while True:
            await asyncio.sleep(GIVE_BACK_S)
            trim_malloc_heap()

    giving = asyncio.create_task(trim_heap_periodically())
    try:
        yield
    finally:
        giving.cancel()
        await asyncio.gather(giving, return_exceptions=True)


class RecoverySettings(Record):
    """What a session needs for going on after a fault.

    `facts` are those of its start, by `Target.key`. `attempt_count_by_run` is how often each run
    was tried before this session began. `reconnect_host_factory` makes a lost host anew, None where
    that cannot be.
    """

    facts: Mapping[str, HostFacts]
    attempt_count_by_run: Mapping[RunKey, int]
    reconnect_host_factory: HostFactory | None
    retry_policy: RetryPolicy
    ledger: TargetLedger = EMPTY_LEDGER


class RunLoop:
    """Follows the plan; call `run_all` once."""

    def __init__(
        self, session: SessionContext, resources: SessionResources, recovery: RecoverySettings
    ) -> None:
        self._session = session
        self._resources = resources
        self._workdirs = resources.workdirs
        self._preconditioner = Preconditioner(
            session, resources.workdirs, recovery.facts, recovery.ledger
        )
        self._recovery_settings = recovery
        self._method = session.study.method
        self._failed_points: set[str] = set()

    async def run_all(self, first_run: PlannedRun, queue: RunQueue) -> SessionStatus:
        """Execute one run after the other, each committed when it ends.

        Raises HostError or EngineError where the study's policy, or a host that stays lost, ends
        the session.
        """
        for run in chain([first_run], iter(queue.take_next_run, None)):
            for text in queue.take_new_messages():
                self._notify(text)
            if self._session.stop.is_requested:
                return SessionStatus.INTERRUPTED
            if run.point.digest in self._failed_points:
                self._notify(
                    f"Repeat {run.repeat} of {run.point.title_text} is left out: one has failed."
                )
            elif not await self._run_with_retries_unless_interrupted(run):
                return SessionStatus.INTERRUPTED
        for text in queue.take_new_messages():
            self._notify(text)
        if self._failed_points:
            # What is missing is for `iolab resume`, by hosts that are there again.
            require_no_lost_hosts(self._session)
        else:
            # A host that is lost after the last run costs none, and has files to be removed.
            await self._reconnect_or_exclude_lost_hosts()
        return SessionStatus.DONE

    async def _run_with_retries_unless_interrupted(self, run: PlannedRun) -> bool:
        """A run with all its attempts; whether the session goes on."""
        first = self._recovery_settings.attempt_count_by_run.get(run.key, 0) + 1
        # Each attempt but the last uses up a retry, or a host that is left out.
        attempts = 1 + max(self._method.retries, len(self._session.hosts))
        for attempt in range(first, first + attempts):
            workdirs = await self._reconnect_and_restore_targets(run)
            turn = replace(run, attempt=attempt)
            record = await execute_run(self._session, turn, workdirs, self._resources)
            self._session.settle_timer.rest_since_ns = self._session.clock.mono_ns()
            if record is None:
                return False
            record = await self._preconditioner.update_ledger_and_add_states(record, workdirs)
            trim_malloc_heap()
            await self._emit_run_finished(record)
            _require_events_undone(record)
            if record.status is not RunStatus.FAILED:
                return record.status is RunStatus.DONE
            if self._session.stop.is_requested or not self._apply_failure_policy_and_tell_retry(
                record, attempt - first
            ):
                break
        return True

    async def _emit_run_finished(self, record: RunRecord) -> None:
        """Tell of a run. A fleet's is judged and kept for so long that its agents must know."""
        hosts = self._session.all_hosts.values()
        await asyncio.gather(*(host.set_lease_limit(COMMIT_LIMIT_S) for host in hosts))
        try:
            self._session.emit(RunFinished(record))
        finally:
            await asyncio.gather(*(host.set_lease_limit(None) for host in hosts))

    def _apply_failure_policy_and_tell_retry(self, record: RunRecord, retry_count: int) -> bool:
        """Do what is set for a run that failed; returns whether it is tried again.

        Excludes hosts, or raises where the session must end.
        """
        run, policy = record.run, self._method.on_failure
        if policy is FailurePolicy.STOP:
            raise _session_ending_error(record)
        if policy is FailurePolicy.WITHOUT_HOST:
            guilty = {host.host for host in record.hosts if host.error} | {
                *reason_by_lost_host(self._session)
            }
            if guilty:
                self._exclude_and_report_hosts(guilty, _session_ending_error(record))
                return True
        if policy is FailurePolicy.RETRY and retry_count < self._method.retries:
            of = f"try {retry_count + 2} of {self._method.retries + 1}"
            self._notify(
                f"{run.point.title_text} failed and is tried again, {of}. {record.failure or ''}"
            )
            return True
        self._failed_points.add(run.point.digest)
        return False

    async def _reconnect_and_restore_targets(self, run: PlannedRun) -> tuple[WorkDirectory, ...]:
        """The run's work directories with their files, on hosts that all answer."""
        for _ in range(LAYOUT_TRIES):
            await self._reconnect_or_exclude_lost_hosts()
            try:
                return await self._open_workdirs_and_restore_targets(run)
            except (HostError, EngineError) as fault:
                lost = reason_by_lost_host(self._session)
                if self._method.on_failure is FailurePolicy.WITHOUT_HOST and (lost or fault.hosts):
                    self._exclude_and_report_hosts({*lost, *fault.hosts}, fault)
                elif not lost or not self._can_reconnect:
                    raise
        return await self._open_workdirs_and_restore_targets(run)

    async def _open_workdirs_and_restore_targets(
        self, run: PlannedRun
    ) -> tuple[WorkDirectory, ...]:
        workdirs = await self._workdirs.open_and_lay_out_workdirs(
            run, self._recovery_settings.facts
        )
        return await self._preconditioner.bring_targets_to_start_state(run, workdirs)

    async def _reconnect_or_exclude_lost_hosts(self) -> None:
        """Nobody is lost after this: lost hosts are reached again, or left out."""
        if not reason_by_lost_host(self._session):
            return
        if self._method.on_failure is FailurePolicy.WITHOUT_HOST:
            lost = reason_by_lost_host(self._session)
            self._exclude_and_report_hosts({*lost}, HostError(" ".join(lost.values()), RESUME_HINT))
            return
        if not self._can_reconnect:
            require_no_lost_hosts(self._session)
        means = self._recovery_settings
        for name in await reconnect_lost(
            self._session, means.reconnect_host_factory, means.facts, means.retry_policy
        ):
            self._workdirs.forget_host(name)

    @property
    def _can_reconnect(self) -> bool:
        return (
            self._recovery_settings.reconnect_host_factory is not None
            and self._method.on_failure is not FailurePolicy.STOP
        )

    def _exclude_and_report_hosts(self, names: set[str], fault: IolabError) -> None:
        """Go on without these hosts; raises the fault where a configuration would have none."""
        session = self._session
        gone = session.excluded_host_names | names
        if any(gone.issuperset(item.hosts) for item in session.study.configurations):
            raise fault
        for name in sorted(names):
            self._notify(f"Host '{name}' failed: from here on the session goes on without it.")
            if session.hosts[name].lost_reason:
                self._workdirs.forget_host(name)
        session.excluded_host_names.update(names)

    def _notify(self, text: str) -> None:
        self._session.emit(Notice(text.strip()))


def _require_events_undone(record: RunRecord) -> None:
    """HostError where an event was not undone: no run begins in the state that it left."""
    faults = tuple(
        Fault(
            f"Event '{event.id}' on host '{event.host}' {event.not_undone_predicate}: "
            f"{event.undo_error.rstrip('.') or 'nobody answered'}.",
            UNDO_HINT,
        )
        for event in (record.scenario.events if record.scenario else ())
        if event.is_undone is False
    )
    if faults:
        raise HostError(" ".join(fault.message for fault in faults), UNDO_HINT, faults)


def _session_ending_error(record: RunRecord) -> IolabError:
    """The error of a session that a failed run ends: the engine's fault where one ran."""
    failed = [host for host in record.hosts if host.error]
    ran = any(host.exit_code is not None or host.exit_signal is not None for host in failed)
    kind = EngineError if ran else HostError
    hint = f"{record.failure_hint or ''} {RESUME_HINT}".strip()
    return kind(record.failure or "A run failed.", hint)
