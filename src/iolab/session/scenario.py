"""Phases and events of a run: followed while its load goes on, and undone however it ends."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Sequence
from contextlib import suppress
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from iolab.core.events import Notice, ScenarioNotice
from iolab.core.run import PlannedRun
from iolab.core.scenario import (
    ANSWERS_MAX,
    READBACK_PHASE,
    UNDO_BY_KEEPER,
    Action,
    EventOutcome,
    EventPlan,
    PhaseEndReason,
    PhasePlan,
    PhaseSpan,
    Readback,
    ScenarioOutcome,
    ScenarioPlan,
    Witness,
    WitnessAnswer,
    WitnessExpectation,
    bounded_reason_text,
)
from iolab.core.study import Study
from iolab.errors import HostError
from iolab.hosts.answers import EventStepAnswer, ResolvedActionAnswer, read_answer
from iolab.hosts.barrier import gather_hosts, run_with_background
from iolab.hosts.clock import measure_clock_offset
from iolab.hosts.host import Host
from iolab.hosts.message import AgentRefusalError, Message
from iolab.session.actions import AGENT_LIMIT_S, resolve_action_to_steps
from iolab.session.context import SessionContext
from iolab.session.driver import HostRunInProgress
from iolab.session.neighbour import LEAD_S, NO_LIMIT, NeighbourLoads
from iolab.session.witness import WitnessReader
from iolab.text import excerpt, list_text
from iolab.units import NS_PER_S

STEP_GRACE_S: Final = 15.0
"""Beyond the timeouts of all steps: the agent ends them then, and must still say so."""

CONFIRMATIONS: Final = 2
"""Answers in a row that end a phase: one may be of a moment between two states."""

MARGIN_S: Final = 0.3
"""Before the end of the first phase: what is told then takes a round trip to be heard."""

END_MARGIN_S: Final = 0.1
"""An engine that ends so shortly before the last phase made its load for all of that."""

ENGINE_SLACK_S: Final = 2.0
"""Of the time that an engine has where witnesses end phases: they end when they are looked at, and
the last phase ends the load."""

POLL_S: Final = 0.1
"""Between two looks at what witnesses said."""

PREPARE_S: Final = 2.0
"""Before an event: its host looks at what it does, and writes down what undoes it."""

FAULT_CHARACTERS: Final = 100
"""Of why a witness said nothing, which stands in each such answer."""

NOT_BEGUN: Final = "it had not begun when it was to be undone"


def longest_engine_seconds(study: Study) -> float:
    """For how long an engine of a run is to make its load, if nothing ends it before."""
    _, longest_s = study.method.load_seconds_range
    phases = study.scenario.phases if study.scenario is not None else ()
    has_witness = any(phase.until is not None for phase in phases)
    return longest_s + ENGINE_SLACK_S if has_witness else longest_s


class _PendingUndo(Struct):
    """What is yet to be undone of an action, and the `store_task` that has its host store it.

    A cancelled event leaves its request to the undo, which waits for the answer. Its steps take
    `steps_limit_s` at most.
    """

    event: EventPlan
    host: Host
    undo_name: str
    steps_limit_s: float
    store_task: asyncio.Task[Message]


class PhaseRunner:
    """The phases of one run. `run_phases_with_load` once; `scenario` is what came of it.

    `baseline_over` is set just before the first phase ends.
    """

    def __init__(
        self,
        session: SessionContext,
        plan: ScenarioPlan,
        run: PlannedRun,
        host_runs: Sequence[HostRunInProgress],
        halt: asyncio.Event,
        neighbours: NeighbourLoads,
    ) -> None:
        self._session = session
        self._plan = plan
        self._run = run
        self.neighbours = neighbours
        self.baseline_over = asyncio.Event()
        self._host_runs = host_runs
        self._halt = halt
        self._start_ns: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self._offsets_ns: dict[str, int] = {}
        self._spans: list[PhaseSpan] = []
        self._current_phase: tuple[PhasePlan, int] | None = None
        self._outcomes: dict[str, EventOutcome] = {}
        self._event_tasks: dict[str, asyncio.Task[None]] = {}
        self._undos: list[_PendingUndo] = []
        self._neighbour_events: list[EventPlan] = []
        """Loads that may go on, and limits that may be in force."""
        self._answers: list[WitnessAnswer] = []
        self.readbacks: tuple[Readback, ...] = ()
        self.first_readbacks: tuple[Readback, ...] = ()
        self.earlier_readbacks: tuple[Readback, ...] = ()

    @property
    def scenario(self) -> ScenarioOutcome:
        """What came of it so far."""
        return ScenarioOutcome(
            tuple(self._spans),
            tuple(self._recorded_outcome(outcome) for outcome in self._outcomes.values()),
            tuple(self._answers),
            self.readbacks,
            self.first_readbacks,
            self.earlier_readbacks,
        )

    def set_load_start(self, real_ns: int) -> None:
        """The load begins then, by the controller's clock."""
        if not self._start_ns.done():
            self._start_ns.set_result(real_ns)

    async def do_readback_events_and_tell_unmounted(self) -> dict[str, bool]:
        """Those after the last phase; whether they unmounted the target of each of their hosts.

        A host without such an event keeps its mount; a device as its target has none.
        """
        is_unmounted = {s.name: False for s in self._host_runs if not s.workdir.device}
        for event in self._plan.events_of_phase(READBACK_PHASE):
            host = self._plan.action(event.action).host
            was_unmounted = await self._do_action_and_tell_if_unmounted(
                event, self._session.clock.real_ns()
            )
            if host in is_unmounted:
                is_unmounted[host] |= was_unmounted
        return is_unmounted

    async def run_phases_with_load(self, load: Coroutine[Any, Any, None]) -> None:
        """The load to its end, which comes with that of the last phase; then nothing is left.

        What could not be undone stands in its outcome.
        """
        try:
            await run_with_background(load, self._run_phases_until_halt())
        finally:
            await self._end_phases_and_undo_events()
            await self.neighbours.end_all()

    async def _run_phases_until_halt(self) -> None:
        """All phases, or until engines are to end, which may wait for what events hold up."""
        await run_with_background(self._halt.wait(), self._run_phases_with_witnesses())
        await self._end_phases_and_undo_events()

    async def _end_phases_and_undo_events(self) -> None:
        """No phase goes on, and all is undone.

        Also when it is called again after it was cancelled: what is not confirmed is tried again.
        """
        if self._current_phase is not None:
            self._close_phase_and_tell_end_ns(PhaseEndReason.LOAD)
        self._request_load_ends(self._neighbour_events)
        if begun := self._unfinished_event_tasks(are_begun=True):
            await asyncio.wait(begun)  # What is done after an undo would undo that.
        with suppress(HostError):
            await self._undo_all(self._undos[:], self._neighbour_events[:])
        for event in self._plan.events:
            if event.neighbour and event.id in self._outcomes:
                await self._wait_for_load_end(event)

    async def _run_phases_with_witnesses(self) -> None:
        names = {action.host for action in self._plan.actions}
        offsets = await gather_hosts(
            [self._host(name) for name in names], self._measure_clock_offset_ns
        )
        self._offsets_ns.update(offsets.results_or_raise())
        poll_tasks = [asyncio.create_task(self._poll_witness(w)) for w in self._plan.witnesses]
        try:
            await self._run_phases()
        finally:
            for task in poll_tasks:
                task.cancel()
            await asyncio.gather(*poll_tasks, return_exceptions=True)

    async def _measure_clock_offset_ns(self, host: Host) -> int:
        return (await measure_clock_offset(host, self._session.clock)).offset_ns

    async def _run_phases(self) -> None:
        start_ns = await self._start_ns
        next_ns = start_ns + round(self._session.study.method.warmup_s * NS_PER_S)
        baseline_end_ns = next_ns + round(
            (self._plan.phases[0].max_duration_s - MARGIN_S) * NS_PER_S
        )
        baseline = asyncio.create_task(self._wait_and_end_baseline(baseline_end_ns))
        try:
            for index, phase in enumerate(self._plan.phases):
                await self._sleep_until(next_ns)
                self._current_phase = (phase, next_ns)
                self._session.emit(ScenarioNotice(f"Phase '{phase.id}' begins.", phase.id))
                await self._cancel_late_events_to_undo_in(phase.id)
                await self._undo_all(
                    [undo for undo in self._undos if undo.event.undo_phase == phase.id],
                    [event for event in self._neighbour_events if event.undo_phase == phase.id],
                )
                events = self._plan.events_of_phase(phase.id)
                self._schedule_events(events, next_ns)
                self._schedule_loads_of_next_phase(index, next_ns)
                tasks = [self._event_tasks[event.id] for event in events]
                ended_by = await self._wait_for_phase_end(phase, next_ns, tasks)
                next_ns = self._close_phase_and_tell_end_ns(ended_by)
            await asyncio.wait([baseline, *self._event_tasks.values()])
            for task in self._event_tasks.values():
                if not task.cancelled():
                    task.result()
        finally:
            not_begun = [baseline, *self._unfinished_event_tasks(are_begun=False)]
            for task in not_begun:
                task.cancel()
            await asyncio.gather(*not_begun, return_exceptions=True)
        for state in self._host_runs:
            state.has_enough = True
        self._halt.set()

    def _unfinished_event_tasks(self, *, are_begun: bool) -> list[asyncio.Task[None]]:
        """Of those events that are scheduled and not over."""
        return [
            task
            for id_, task in self._event_tasks.items()
            if not task.done() and self._has_begun(id_) is are_begun
        ]

    def _has_begun(self, event_id: str) -> bool:
        return event_id in self._outcomes and self._outcomes[event_id].start_real_ns is not None

    async def _wait_and_end_baseline(self, end_real_ns: int) -> None:
        await self._sleep_until(end_real_ns)
        self.baseline_over.set()

    def _schedule_events(self, events: Sequence[EventPlan], phase_start_ns: int) -> None:
        """Those of a phase that are not scheduled yet."""
        for event in events:
            if event.id not in self._event_tasks:
                task = asyncio.create_task(self._do_event(event, phase_start_ns))
                self._event_tasks[event.id] = task

    def _schedule_loads_of_next_phase(self, index: int, start_ns: int) -> None:
        """Loads of the phase after the one that begins at `start_ns`.

        Where it is known when that will end their processes are set up by then.
        """
        phase, later = self._plan.phases[index], self._plan.phases[index + 1 :]
        if phase.until is None and later:
            end_ns = start_ns + round(phase.max_duration_s * NS_PER_S)
            events = self._plan.events_of_phase(later[0].id)
            self._schedule_events([event for event in events if event.neighbour], end_ns)

    async def _cancel_late_events_to_undo_in(self, undo_phase: str) -> None:
        """Those that are to be undone when that phase begins: nobody would undo them later."""
        for event in self._plan.events:
            task = self._event_tasks.get(event.id)
            if event.undo_phase != undo_phase or task is None or task.done():
                continue
            if not self._has_begun(event.id):
                task.cancel()
                await asyncio.wait([task])
                self._record_and_report_event_left_out(event, NOT_BEGUN)

    async def _wait_for_phase_end(
        self, phase: PhasePlan, start_ns: int, events: Sequence[asyncio.Task[None]]
    ) -> PhaseEndReason:
        if phase.until is None:
            await self._sleep_until(start_ns + round(phase.max_duration_s * NS_PER_S))
            return PhaseEndReason.TIME
        limit_ns = start_ns + round(phase.longest_s * NS_PER_S)
        while self._session.clock.real_ns() < limit_ns:
            since_ns = max([start_ns, *self._event_and_undo_ends_ns(phase)])
            if all(task.done() for task in events) and self._is_expected_state_confirmed(
                phase.until, since_ns
            ):
                return PhaseEndReason.WITNESS
            await asyncio.sleep(POLL_S)
        return PhaseEndReason.LIMIT

    def _event_and_undo_ends_ns(self, phase: PhasePlan) -> list[int]:
        """When the events of a phase, and the undos that it began with, were done."""
        undone = {event.id for event in self._plan.events if event.undo_phase == phase.id}
        outcomes = self._outcomes.values()
        ends = [outcome.end_real_ns for outcome in outcomes if outcome.phase == phase.id]
        ends += [outcome.undone_real_ns for outcome in outcomes if outcome.id in undone]
        return [end for end in ends if end is not None]

    def _is_expected_state_confirmed(self, expected: WitnessExpectation, since_ns: int) -> bool:
        """Whether the last answers to what was asked since then all say so."""
        states = [
            answer.state
            for answer in self._answers
            if answer.witness == expected.witness and answer.asked_real_ns >= since_ns
        ]
        last = states[-CONFIRMATIONS:]
        return len(last) == CONFIRMATIONS and all(state is expected.state for state in last)

    def _close_phase_and_tell_end_ns(self, ended_by: PhaseEndReason) -> int:
        if self._current_phase is None:
            raise ValueError("no phase is open")
        (phase, start_ns), self._current_phase = self._current_phase, None
        end_ns = max(self._session.clock.real_ns(), start_ns)
        planned_ns = start_ns + round(phase.max_duration_s * NS_PER_S)
        is_last = phase is self._plan.phases[-1]
        if (
            ended_by is PhaseEndReason.LOAD
            and is_last
            and planned_ns - end_ns < END_MARGIN_S * NS_PER_S
        ):
            ended_by = PhaseEndReason.TIME if phase.until is None else PhaseEndReason.LIMIT
        if ended_by in (PhaseEndReason.TIME, PhaseEndReason.LIMIT):
            end_ns = planned_ns  # A later look would take its time from the phases after it.
        self._spans.append(PhaseSpan(phase.id, start_ns, end_ns, ended_by))
        return end_ns

    async def _do_event(self, event: EventPlan, phase_start_ns: int) -> None:
        due_ns = phase_start_ns + round(event.after_s * NS_PER_S)
        if event.action:
            await self._do_action_and_tell_if_unmounted(event, due_ns)
        else:
            await self._start_or_limit_neighbour_load(event, due_ns)

    async def _start_or_limit_neighbour_load(self, event: EventPlan, due_ns: int) -> None:
        """Begin a neighbour's load, or limit it."""
        owner = event.load_event or event.id
        hosts = self.neighbours.host_names(owner)
        limit = event.io_limit
        what = f"load '{event.neighbour}'" if event.neighbour else f"limit of '{owner}'"
        if limit is not None:
            what += f": {limit.text} on each disk"
        outcome = EventOutcome(
            event.id,
            list_text(hosts),
            what,
            event.phase,
            due_ns,
            title=event.title,
            load_event=event.load_event,
            io_limit=limit,
            neighbour=event.neighbour,
        )
        self._outcomes[event.id] = outcome
        try:
            lead_s = LEAD_S if event.neighbour else 0
            await self._sleep_until(due_ns - round(lead_s * NS_PER_S))
            if owner != event.id and owner in self._event_tasks:
                # It may be late: what is set up in a phase that a witness ended takes a moment.
                await asyncio.wait([self._event_tasks[owner]])
            start_ns = self._session.clock.real_ns()
            outcome = self._outcomes[event.id] = replace(outcome, is_undone=False)
            self._neighbour_events.append(event)
            if event.neighbour:
                await self.neighbours.start(event.id, due_ns, limit)
                start_ns = self._session.clock.real_ns()
            else:
                await self.neighbours.set_io_limit(owner, event.id, limit or NO_LIMIT)
            end_ns = self._session.clock.real_ns()
            self._session.emit(ScenarioNotice(f"Event '{event.id}' begins."))
            self._outcomes[event.id] = replace(outcome, start_real_ns=start_ns, end_real_ns=end_ns)
        except HostError as fault:
            self._record_and_report_event_failure(event, outcome, fault)

    async def _do_action_and_tell_if_unmounted(self, event: EventPlan, due_ns: int) -> bool:
        """Perform the action; return whether it unmounted the target."""
        action = self._plan.action(event.action)
        outcome = EventOutcome(
            event.id,
            action.host,
            action.summary_text,
            event.phase,
            due_ns,
            expected=event.expected,
            within_s=event.within_s,
            title=event.title,
        )
        self._outcomes[event.id] = outcome
        host = self._host(action.host)
        await self._sleep_until(due_ns - round(PREPARE_S * NS_PER_S))
        if self._leave_out_action_if_unsafe(event, due_ns):
            return False
        try:
            resolved = await self._resolve_action_by_due_time(host, action, due_ns)
            pending = await self._store_undo_on_host(event, host, resolved)
            await self._sleep_until(due_ns)
            if self._leave_out_action_if_unsafe(
                event, due_ns
            ):  # What was begun meanwhile may have failed.
                return False
            self._session.emit(ScenarioNotice(f"Event '{event.id}' on host '{host.name}' begins."))
            outcome = replace(
                outcome,
                start_real_ns=self._session.clock.real_ns(),
                is_undone=None if pending is None else False,
            )
            self._outcomes[event.id] = outcome
            answer = await self._send_steps(event, host, resolved, pending)
            times = read_answer(host.name, EventStepAnswer, answer)
            ahead_ns = self._offsets_ns[host.name]
            self._outcomes[event.id] = replace(
                outcome,
                start_real_ns=times.started_real_ns - ahead_ns,
                end_real_ns=times.ended_real_ns - ahead_ns,
            )
            return times.is_unmounted
        except HostError as fault:
            self._record_and_report_event_failure(
                event, replace(outcome, end_real_ns=self._session.clock.real_ns()), fault
            )
        return False

    async def _resolve_action_by_due_time(
        self, host: Host, action: Action, due_ns: int
    ) -> ResolvedActionAnswer:
        """What the host is to do; what it refuses ahead of time it is asked once more when due.

        An event just before may bring about what the action needs.
        """
        try:
            return await resolve_action_to_steps(self._session.study, host, action)
        except AgentRefusalError:
            if self._session.clock.real_ns() >= due_ns:
                raise
        await self._sleep_until(due_ns)
        return await resolve_action_to_steps(self._session.study, host, action)

    def _record_and_report_event_failure(
        self, event: EventPlan, outcome: EventOutcome, fault: HostError
    ) -> None:
        """Why the event failed stands in its outcome, and is told."""
        reason = fault.reason if isinstance(fault, AgentRefusalError) else fault.message
        self._outcomes[event.id] = replace(outcome, error=reason)
        self._session.emit(ScenarioNotice(f"Event '{event.id}' failed: {fault.message}"))

    def _leave_out_action_if_unsafe(self, event: EventPlan, due_ns: int) -> bool:
        """Whether something speaks against an action now, which its outcome then says."""
        reason = self._reason_to_leave_out_action(event, due_ns)
        if reason:
            self._record_and_report_event_left_out(event, reason)
        return bool(reason)

    def _record_and_report_event_left_out(self, event: EventPlan, reason: str) -> None:
        self._outcomes[event.id] = replace(self._outcomes[event.id], error=reason)
        self._session.emit(ScenarioNotice(f"Event '{event.id}' is left out: {reason}."))

    def _reason_to_leave_out_action(self, event: EventPlan, due_ns: int) -> str:
        """Why an action must not be done now, "" where nothing speaks against it.

        What follows an event that failed, or that its witness did not see, would be done to a
        storage in another state than the study means; a second loss may be one too many.
        """
        actions = {other.id for other in self._plan.events if other.action} - {event.id}
        earlier = [outcome for id_, outcome in self._outcomes.items() if id_ in actions]
        for outcome in earlier:
            if outcome.error and outcome.due_real_ns <= due_ns:
                return f"event '{outcome.id}' before it failed"
            if self._is_contradicted_past_time_limit(outcome):
                return f"the witness did not see event '{outcome.id}' before it"
        begun = [outcome for outcome in earlier if outcome.start_real_ns is not None]
        expected = event.expected
        if (
            expected is not None
            and not begun
            and self._last_witness_state(expected) is expected.state
        ):
            return f"the witness says '{expected}' before it"
        return ""

    def _is_contradicted_past_time_limit(self, outcome: EventOutcome) -> bool:
        """Whether its witness contradicts an event after the time that it had to show it.

        A witness that says nothing, as where it hangs with the storage, contradicts nothing.
        """
        expected, start_ns = outcome.expected, outcome.start_real_ns
        if expected is None or start_ns is None:
            return False
        late_ns = start_ns + round(outcome.within_s * NS_PER_S)
        states = {answer.state for answer in outcome.witness_answers_since_start(self._answers)}
        is_late = self._session.clock.real_ns() >= late_ns
        return is_late and (not expected.state) in states and expected.state not in states

    def _last_witness_state(self, expected: WitnessExpectation) -> bool | None:
        """What that witness said last."""
        states = [a.state for a in self._answers if a.witness == expected.witness]
        return states[-1] if states else None

    async def _store_undo_on_host(
        self, event: EventPlan, host: Host, resolved: ResolvedActionAnswer
    ) -> _PendingUndo | None:
        """Have the host keep what undoes the event, under a name that no other run uses."""
        if not resolved.undo:
            return None
        run = self._run
        place = f"{run.point.digest} {run.repeat}.{run.attempt}"
        name = f"{self._session.session_id} {place} {event.id}"
        request = host.request(
            "undo_add", deadline_s=AGENT_LIMIT_S, name=name, what=list(resolved.undo)
        )
        limit_s = len(resolved.undo) * self._plan.action(event.action).timeout_s
        pending = _PendingUndo(event, host, name, limit_s, asyncio.create_task(request))
        self._undos.append(pending)
        await asyncio.shield(pending.store_task)
        return pending

    async def _send_steps(
        self,
        event: EventPlan,
        host: Host,
        resolved: ResolvedActionAnswer,
        pending_undo: _PendingUndo | None,
    ) -> Message:
        """The answer to an event's steps."""
        action = self._plan.action(event.action)
        timer = None
        if pending_undo is not None and action.undo_after_s is not None:
            timer = {"name": pending_undo.undo_name, "seconds": action.undo_after_s}
        # A host that cuts its own link answers when its timer has undone it.
        limit_s = len(resolved.steps) * action.timeout_s + (action.undo_after_s or 0)
        is_readback = event.phase == READBACK_PHASE
        return await host.request(
            "step",
            deadline_s=limit_s + STEP_GRACE_S,
            what=list(resolved.steps),
            undo=None if pending_undo is None else pending_undo.undo_name,
            undo_timer=timer,
            released_dir=self._work_folder_of_host(host.name) if is_readback else None,
        )

    def _work_folder_of_host(self, host_name: str) -> str | None:
        """Where that host's files are; None of one without, and of a device."""
        dirs = (
            s.workdir.dir for s in self._host_runs if s.name == host_name and not s.workdir.device
        )
        return next(dirs, None)

    async def _undo_all(
        self, undos: Sequence[_PendingUndo], neighbour_events: Sequence[EventPlan]
    ) -> None:
        """Undo events, actions the newest first, and strike out what is undone.

        Loads are told to end before, and are not waited for: an engine may hang with what an action
        broke. HostError where an undo fails, which keeps no other from being tried.
        """
        self._request_load_ends(neighbour_events)
        faults: list[HostError] = []
        for undo in sorted(undos, key=self._event_begin_ns_of_undo, reverse=True):
            try:
                await self._undo_action(undo)
                self._undos.remove(undo)
            except HostError as fault:
                faults.append(fault)
        for event in neighbour_events:
            if not event.neighbour:
                await self._lift_io_limit(event)
            self._neighbour_events.remove(event)
        if faults:
            raise faults[0]

    def _event_begin_ns_of_undo(self, undo: _PendingUndo) -> int:
        """When its event began, or is to begin: hosts may store the undos in another order."""
        outcome = self._outcomes[undo.event.id]
        return outcome.due_real_ns if outcome.start_real_ns is None else outcome.start_real_ns

    def _request_load_ends(self, neighbour_events: Sequence[EventPlan]) -> None:
        """Loads are undone from now on, however long their engines take."""
        for event in neighbour_events:
            if event.neighbour:
                self.neighbours.request_load_end(event.id)
                self._mark_load_or_io_limit_as_undone(event)

    def _mark_load_or_io_limit_as_undone(self, event: EventPlan) -> None:
        """A load or its limit is undone now, unless it was when this was tried before."""
        outcome = self._outcomes[event.id]
        if not outcome.is_undone:
            now_ns = self._session.clock.real_ns()
            self._outcomes[event.id] = replace(outcome, is_undone=True, undone_real_ns=now_ns)

    async def _wait_for_load_end(self, event: EventPlan) -> None:
        fault = await self.neighbours.wait_for_end_and_tell_early_end(event.id)
        outcome = self._outcomes[event.id]
        self._outcomes[event.id] = replace(outcome, error=outcome.error or fault)

    async def _lift_io_limit(self, event: EventPlan) -> None:
        """The limit is lifted from now on; where a host cannot, that stands in its outcome."""
        self._mark_load_or_io_limit_as_undone(event)
        try:
            if self.neighbours.is_running(event.load_event):
                await self.neighbours.lift_io_limit(event.load_event, event.id)
        except HostError as fault:
            outcome = self._outcomes[event.id]
            self._outcomes[event.id] = replace(outcome, error=outcome.error or fault.message)

    async def _undo_action(self, undo: _PendingUndo) -> None:
        id_, host = undo.event.id, undo.host
        has_begun = self._has_begun(id_)
        await asyncio.wait([self._event_tasks[id_] if has_begun else undo.store_task])
        if host.lost_reason:
            if has_begun:
                self._outcomes[id_] = replace(self._outcomes[id_], undo_error=UNDO_BY_KEEPER)
            return
        if not has_begun:
            await host.request("undo_remove", deadline_s=AGENT_LIMIT_S, name=undo.undo_name)
            return
        try:
            answer = await host.request(
                "undo", deadline_s=undo.steps_limit_s + STEP_GRACE_S, name=undo.undo_name
            )
            times = read_answer(host.name, EventStepAnswer, answer)
        except HostError as fault:
            self._outcomes[id_] = replace(self._outcomes[id_], undo_error=fault.message)
            message = f"Event '{id_}' was not undone: {fault.message}"
            self._session.emit(Notice(message))
            raise HostError(message, fault.hint) from None
        self._outcomes[id_] = replace(
            self._outcomes[id_],
            is_undone=True,
            undone_real_ns=times.ended_real_ns - self._offsets_ns[host.name],
            undo_error="",
        )

    async def _poll_witness(self, witness: Witness) -> None:
        host = self._host(witness.host)
        reader, clock = WitnessReader(host, witness), self._session.clock
        while len(self._answers) < ANSWERS_MAX and not host.lost_reason:
            asked_ns = clock.real_ns()
            reading = await reader.read()
            self._answers.append(
                WitnessAnswer(
                    witness.id,
                    asked_ns,
                    clock.real_ns(),
                    reading.state,
                    reading.rebuilt_bytes,
                    reading.throttle,
                    excerpt(reading.fault, FAULT_CHARACTERS),
                )
            )
            await self._sleep_until(asked_ns + round(witness.interval_s * NS_PER_S))
        if not host.lost_reason:
            message = f"Witness '{witness.id}' is not asked any more: a run keeps {ANSWERS_MAX:,}"
            self._session.emit(Notice(f"{message} answers. Set a longer 'every'."))

    def _recorded_outcome(self, outcome: EventOutcome) -> EventOutcome:
        """The outcome with the answers that show its effect, and texts that a record can hold."""
        outcome = replace(
            outcome,
            action=bounded_reason_text(outcome.action),
            error=bounded_reason_text(outcome.error),
            undo_error=bounded_reason_text(outcome.undo_error),
        )
        unseen_ns = None
        for answer in outcome.witness_answers_since_start(self._answers):
            if outcome.expected is not None and answer.state is outcome.expected.state:
                return replace(outcome, unseen_real_ns=unseen_ns, seen_real_ns=answer.real_ns)
            unseen_ns = answer.asked_real_ns if answer.state is not None else unseen_ns
        return replace(outcome, unseen_real_ns=unseen_ns)

    def _host(self, name: str) -> Host:
        return self._session.all_hosts[name]

    async def _sleep_until(self, real_ns: int) -> None:
        await asyncio.sleep(max(real_ns - self._session.clock.real_ns(), 0) / NS_PER_S)
