"""The course of a session: one run after the other, and what follows one that failed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import chain
from typing import Final

from iolab.errors import EngineError, HostError, IolabError
from iolab.model.event import Notice, RunFinished, SessionStatus
from iolab.model.host import HostFacts
from iolab.model.run import PlannedRun, RunRecord, RunStatus
from iolab.model.state import EMPTY, Ledger
from iolab.model.study import OnFailure
from iolab.run.agenda import Agenda
from iolab.run.crew import Crew
from iolab.run.execute import execute
from iolab.run.mend import Patience, Reach, lost_now, mend, require_all
from iolab.run.parts import Parts
from iolab.run.precondition import Preconditioner
from iolab.run.site import Site

LAYOUT_TRIES: Final = 3
"""How often files are laid out for one run when hosts are lost meanwhile: a fleet that loses a host
each time is not fit to be measured."""

GO_ON: Final = "Correct it and resume the session; committed runs are kept."


@dataclass(frozen=True, slots=True)
class Means:
    """What a session needs for going on after a fault.

    `facts` are those of its start, by `Target.key`. `tried` is how often each run, by (digest,
    repeat), was tried before this session began. `reach` makes a lost host anew, None where that
    cannot be.
    """

    facts: Mapping[str, HostFacts]
    tried: Mapping[tuple[str, int], int]
    reach: Reach | None
    patience: Patience
    ledger: Ledger = EMPTY


class Course:
    """Follows the plan; `follow` once."""

    def __init__(self, crew: Crew, parts: Parts, means: Means) -> None:
        self._crew = crew
        self._parts = parts
        self._sites = parts.sites
        self._states = Preconditioner(crew, parts.sites, means.facts, means.ledger)
        self._means = means
        self._method = crew.study.method
        self._failed_points: set[str] = set()

    async def follow(self, first: PlannedRun, agenda: Agenda) -> SessionStatus:
        """Execute one run after the other, each committed when it ends.

        Raises HostError or EngineError where the study's policy, or a host that stays lost, ends
        the session.
        """
        for run in chain([first], iter(agenda.next, None)):
            for text in agenda.said():
                self._say(text)
            if self._crew.stop.requested:
                return SessionStatus.INTERRUPTED
            if run.point.digest in self._failed_points:
                self._say(f"Repeat {run.repeat} of {run.point.label} is left out: one has failed.")
            elif not await self._see_through(run):
                return SessionStatus.INTERRUPTED
        for text in agenda.said():
            self._say(text)
        require_all(self._crew)
        return SessionStatus.DONE

    async def _see_through(self, run: PlannedRun) -> bool:
        """A run with all its attempts; whether the session goes on."""
        first = self._means.tried.get((run.point.digest, run.repeat), 0) + 1
        # Each attempt but the last uses up a retry, or a host that is left out.
        attempts = 1 + max(self._method.retries, len(self._crew.hosts))
        for attempt in range(first, first + attempts):
            sites = await self._sites_for(run)
            turn = replace(run, attempt=attempt)
            record = await execute(self._crew, turn, sites, self._parts)
            if record is None:
                return False
            record = await self._states.account(record, sites)
            self._crew.tell(RunFinished(record))
            if record.status is not RunStatus.FAILED:
                return record.status is RunStatus.DONE
            if self._crew.stop.requested or not self._again(record, attempt - first):
                break
        return True

    def _again(self, record: RunRecord, retried: int) -> bool:
        """Whether a run that failed is tried again; raises where the session must end."""
        run, policy = record.run, self._method.on_failure
        if policy is OnFailure.STOP:
            raise _ending(record)
        if policy is OnFailure.WITHOUT_HOST:
            guilty = {host.host for host in record.hosts if host.error} | {*lost_now(self._crew)}
            if guilty:
                self._leave_out(guilty, _ending(record))
                return True
        if policy is OnFailure.RETRY and retried < self._method.retries:
            of = f"try {retried + 2} of {self._method.retries + 1}"
            self._say(f"{run.point.label} failed and is tried again, {of}. {record.failure or ''}")
            return True
        self._failed_points.add(run.point.digest)
        return False

    async def _sites_for(self, run: PlannedRun) -> tuple[Site, ...]:
        """The run's sites with their files, on hosts that all answer."""
        for _ in range(LAYOUT_TRIES):
            await self._mend()
            try:
                return await self._ready_for(run)
            except (HostError, EngineError) as fault:
                lost = lost_now(self._crew)
                if self._method.on_failure is OnFailure.WITHOUT_HOST and (lost or fault.hosts):
                    self._leave_out({*lost, *fault.hosts}, fault)
                elif not lost or not self._can_mend:
                    raise
        return await self._ready_for(run)

    async def _ready_for(self, run: PlannedRun) -> tuple[Site, ...]:
        sites = await self._sites.ready_for(run, self._means.facts)
        return await self._states.ready(run, sites)

    async def _mend(self) -> None:
        """Nobody is lost after this: lost hosts are reached again, or left out."""
        if not lost_now(self._crew):
            return
        if self._method.on_failure is OnFailure.WITHOUT_HOST:
            lost = lost_now(self._crew)
            self._leave_out({*lost}, HostError(" ".join(lost.values()), GO_ON))
            return
        if not self._can_mend:
            require_all(self._crew)
        means = self._means
        for name in await mend(self._crew, means.reach, means.facts, means.patience):
            self._sites.forget(name)

    @property
    def _can_mend(self) -> bool:
        return self._means.reach is not None and self._method.on_failure is not OnFailure.STOP

    def _leave_out(self, names: set[str], fault: IolabError) -> None:
        """Go on without these hosts; raises the fault where a configuration would have none."""
        crew = self._crew
        gone = crew.left_out | names
        if any(gone.issuperset(item.hosts) for item in crew.study.configurations):
            raise fault
        for name in sorted(names):
            self._say(f"Host '{name}' failed: from here on the session goes on without it.")
            if crew.hosts[name].lost:
                self._sites.forget(name)
        crew.left_out.update(names)

    def _say(self, text: str) -> None:
        self._crew.tell(Notice(text.strip()))


def _ending(record: RunRecord) -> IolabError:
    """The error of a session that a failed run ends: the engine's fault where one ran."""
    failed = [host for host in record.hosts if host.error]
    ran = any(host.exit_code is not None or host.exit_signal is not None for host in failed)
    kind = EngineError if ran else HostError
    return kind(record.failure or "A run failed.", GO_ON)
