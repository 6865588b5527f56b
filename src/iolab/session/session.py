"""A session: one execution of a plan, from the first host reached to the last folder removed."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from iolab.core.events import (
    Notice,
    Phase,
    Recorder,
    SessionEnded,
    SessionStarted,
    SessionStatus,
)
from iolab.core.host import Role
from iolab.core.run import Plan, PlannedRun
from iolab.core.study import Study
from iolab.core.target_state import EMPTY, Ledger
from iolab.errors import Interrupted, IolabError, StoreError
from iolab.hosts.barrier import Stop, alongside, together
from iolab.hosts.clock import SYSTEM_CLOCK, Clock
from iolab.hosts.host import Host
from iolab.session.context import Crew
from iolab.session.discovery import QUIET_WATCH_S, Survey, survey, watch_quiet
from iolab.session.driver import Drivers
from iolab.session.kinds import BootedHosts, SessionKinds
from iolab.session.loop import Agenda, Course, Means, Walk
from iolab.session.reconnect import USUAL, Patience, Reach
from iolab.session.resources import Parts
from iolab.session.silence import tell_of_silence
from iolab.session.stopping_rule import RuleFor
from iolab.session.sweep import sweep
from iolab.study.guard import check_ready
from iolab.study.kinds import StudyKinds
from iolab.study.targets import without_hosts
from iolab.targets.work_directories import Sites


async def clean_up(parts: Parts, crew: Crew, reach: Reach | None) -> tuple[str, ...]:
    """End what the session holds, close every host; sentences on what failed.

    What a lost agent left is removed by a new one. At a second stop request nothing is waited for:
    the end of their lease makes the agents kill and remove everything by themselves.
    """
    faults: tuple[str, ...] = ()
    stop, hosts = crew.stop, crew.everyone
    if not stop.at_once:
        try:
            faults = await stop.unless_at_once(parts.leave())
        except Interrupted:
            faults = ()
    try:
        swept = await stop.unless_at_once(sweep(crew, reach))
    except Interrupted:
        swept = await sweep(crew, None)
    endings = await asyncio.gather(
        *(host.close() for host in hosts.values()), return_exceptions=True
    )
    unclosed = [
        f"Host '{name}' could not be closed: {ending!r}."
        for name, ending in zip(hosts, endings, strict=True)
        if isinstance(ending, BaseException)
    ]
    return (*faults, *swept, *unclosed)


NAMED_HOSTS: Final = 12
"""Hosts that are named where a session tells that it connects; more are counted."""


@dataclass(frozen=True, slots=True)
class Earlier:
    """What earlier sittings of the session have left.

    `done` are the runs, each (digest, repeat), that need not be measured again; `tried` is how
    often each was tried; `left_out` are the hosts that the session goes on without,
    `ledger` is what was done to its targets.
    """

    done: frozenset[tuple[str, int]] = frozenset()
    tried: Mapping[tuple[str, int], int] = field(default_factory=dict)
    left_out: frozenset[str] = frozenset()
    ledger: Ledger = EMPTY


NOTHING: Final = Earlier()
"""A session that begins."""


async def run_session(
    study: Study,
    plan: Plan,
    hosts: Mapping[str, Host],
    recorder: Recorder,
    stop: Stop,
    *,
    session_id: str,
    kinds: SessionKinds,
    earlier: Earlier = NOTHING,
    clock: Clock = SYSTEM_CLOCK,
    reach: Reach | None = None,
    patience: Patience = USUAL,
    rule_for: RuleFor | None = None,
    agenda: Agenda | None = None,
) -> SessionStatus:
    """Execute the plan but for what was done `earlier`, and tell the recorder.

    With an `agenda` it is that which says what to run, and which knows of what was done earlier.

    A run that fails is recorded as failed; the study's method says how the session goes on, and
    `reach` makes hosts that were lost anew, `rule_for` the rule that ends a run when enough was
    seen of it. The session ends early, with an error raised after it is told, when a host stays
    lost, a target cannot be prepared, or the recorder raises; it ends early without one at a stop
    request. However it ends, no process and no folder of it is left on any host that answers, and
    all hosts are closed.
    """
    by_name = {engine.name: engine for engine in kinds.engines}
    watched = {spec.name for spec in study.hosts if spec.role is not Role.CLIENT}
    left = {name: host for name, host in hosts.items() if name not in earlier.left_out | watched}
    beside = {name: host for name, host in hosts.items() if name in watched}
    crew = Crew(
        study,
        plan,
        left,
        by_name,
        recorder,
        stop,
        clock,
        session_id,
        left_out=set(earlier.left_out),
        bystanders=beside,
        questions=kinds.questions(study),
        rule_for=rule_for,
    )
    pending = [run for run in plan.runs if (run.point.digest, run.repeat) not in earlier.done]
    # Whatever an agenda may ask for needs its files.
    possible = [PlannedRun(0, 1, point) for point in plan.points] if agenda else pending
    parts = Parts(Sites(crew, possible), Drivers(kinds.drivers), kinds.hosts.hosts(crew))
    status = SessionStatus.FAILED
    fault: IolabError | None = None
    unclean: tuple[str, ...] = ()
    try:
        work = _measure_all(
            crew, parts, agenda or Walk(pending), earlier, reach, patience, kinds.study
        )
        status = await stop.unless_at_once(alongside(work, tell_of_silence(crew)))
    except Interrupted:
        status = SessionStatus.INTERRUPTED
    except StoreError:
        # The recorder cannot record: there is nobody left to tell.
        raise
    except IolabError as raised:
        fault = raised
    finally:
        unclean = await clean_up(parts, crew, reach)
    reasons = (*([fault.happened] if fault else ()), *_missing(crew), *unclean)
    crew.tell(SessionEnded(status, " ".join(reasons) or None))
    if fault:
        raise fault
    return status


async def _measure_all(
    crew: Crew,
    parts: Parts,
    agenda: Agenda,
    earlier: Earlier,
    reach: Reach | None,
    patience: Patience,
    kinds: StudyKinds,
) -> SessionStatus:
    """Connect, look, refuse or begin; then one run after the other, each committed when it ends."""
    first = agenda.next()
    if first is None:
        return SessionStatus.DONE
    seen = await _look(crew, parts.booted)
    study, present = without_hosts(crew.study, crew.left_out), await parts.sites.present_bytes()
    check_ready(
        study,
        crew.plan,
        kinds,
        seen.facts,
        seen.probes,
        present,
        owner=crew.owner,
        devices=seen.devices,
    )
    versions = ", ".join(sorted({hello.version for hello in seen.hellos.values()}))
    crew.tell(SessionStarted(crew.plan, tuple(seen.facts.items()), versions))
    await _tell_of_others(crew, seen)
    again = parts.booted.reaching(reach)
    means = Means(seen.facts, earlier.tried, again, patience, earlier.ledger)
    course = Course(crew, parts, means)
    status = await course.follow(first, agenda)
    if status is SessionStatus.DONE:
        crew.begin(Phase.CLEAN_UP, None, "remove what the session made")
    return status


async def _look(crew: Crew, booted: BootedHosts) -> Survey:
    """Every host; those that are booted after the nodes on which they are."""
    names = ", ".join(crew.everyone)
    many = len(crew.everyone) > NAMED_HOSTS
    crew.begin(Phase.CONNECT, None, f"{len(crew.everyone)} hosts" if many else names)
    if not booted.are_booted:
        seen = await survey(crew.study, crew.everyone, crew.questions)
    else:
        nodes = await survey(crew.study, crew.bystanders, crew.questions)
        await booted.raise_up(nodes)
        seen = nodes.joined(await survey(crew.study, crew.hosts, crew.questions))
    booted.see_nodes(seen.facts)
    return seen


async def _tell_of_others(crew: Crew, seen: Survey) -> None:
    """Say which clients are busy with something else before anything runs there."""
    if not crew.study.method.idle_watch_s:
        return
    crew.begin(Phase.CONNECT, None, "is the machine quiet", QUIET_WATCH_S)

    async def watch(host: Host) -> str | None:
        return (await watch_quiet(host, seen.facts[host.name])).others()

    outcomes = await together([one for one in crew.hosts.values() if one.name in seen.facts], watch)
    busy = [f"'{name}': {others}" for name, others in outcomes.complete().items() if others]
    if busy:
        more = f" (and {len(busy) - 1} more hosts)" if len(busy) > 1 else ""
        crew.tell(Notice(f"Busy before the start, which results will hold: {busy[0]}{more}."))


def _missing(crew: Crew) -> tuple[str, ...]:
    if not crew.left_out:
        return ()
    names = ", ".join(f"'{name}'" for name in sorted(crew.left_out))
    return (f"It went on without {names}.",)
