"""A session: one execution of a plan, from the first host reached to the last folder removed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from iolab.errors import Interrupted, IolabError, StoreError
from iolab.model.event import (
    Phase,
    Recorder,
    SessionEnded,
    SessionStarted,
    SessionStatus,
)
from iolab.model.host import Role
from iolab.model.run import Plan, PlannedRun
from iolab.model.state import EMPTY, Ledger
from iolab.model.study import Study
from iolab.plan.guard import check_ready
from iolab.plan.targets import without_hosts
from iolab.run.agenda import Agenda, Walk
from iolab.run.clean_up import clean_up
from iolab.run.clock import SYSTEM_CLOCK, Clock
from iolab.run.course import Course, Means
from iolab.run.crew import Crew
from iolab.run.drivers import Drivers
from iolab.run.engines.base import Engine
from iolab.run.engines.fio import FioEngine
from iolab.run.engines.native import NativeEngine
from iolab.run.guests.kit import guest_kit
from iolab.run.guests.owner import GuestKits, Guests
from iolab.run.hosts.base import Host
from iolab.run.live_rule import RuleFor
from iolab.run.mend import USUAL, Patience, Reach
from iolab.run.parts import Parts
from iolab.run.sites import Sites
from iolab.run.stop import Stop
from iolab.run.survey import Survey, survey

ENGINES: Final[tuple[Engine, ...]] = (FioEngine(), NativeEngine())
"""Every engine that a study may name."""

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
    earlier: Earlier = NOTHING,
    engines: Iterable[Engine] = ENGINES,
    clock: Clock = SYSTEM_CLOCK,
    reach: Reach | None = None,
    patience: Patience = USUAL,
    rule_for: RuleFor | None = None,
    agenda: Agenda | None = None,
    guest_kits: GuestKits = guest_kit,
) -> SessionStatus:
    """Execute the plan but for what was done `earlier`, and tell the recorder.

    With an `agenda` it is that which says what to run, and which knows of what was done earlier.

    A run that fails is recorded as failed; the study's method says how the session goes on, and
    `reach` makes hosts that were lost anew, `rule_for` the rule that ends a run when enough was
    seen of it; `guest_kits` makes what guests boot from. The session ends early, with an error
    raised after it is told, when a host stays lost, a target cannot be prepared, or the recorder
    raises; it ends early without one at a stop request. However it ends, no process and no folder
    of it is left on any host that answers, and all hosts are closed.
    """
    by_name = {engine.name: engine for engine in engines}
    watched = {spec.name for spec in study.hosts if spec.role is not Role.CLIENT}
    left = {name: host for name, host in hosts.items() if name not in earlier.left_out | watched}
    beside = {name: host for name, host in hosts.items() if name in watched}
    crew = Crew(
        study, plan, left, by_name, recorder, stop, clock, session_id, beside, rule_for=rule_for
    )
    crew.left_out.update(earlier.left_out)
    pending = [run for run in plan.runs if (run.point.digest, run.repeat) not in earlier.done]
    # Whatever an agenda may ask for needs its files.
    possible = [PlannedRun(0, 1, point) for point in plan.points] if agenda else pending
    parts = Parts(Sites(crew, possible), Drivers(), Guests(crew, guest_kits))
    status = SessionStatus.FAILED
    fault: IolabError | None = None
    unclean: tuple[str, ...] = ()
    try:
        work = _measure_all(crew, parts, agenda or Walk(pending), earlier, reach, patience)
        status = await stop.unless_at_once(work)
    except Interrupted:
        status = SessionStatus.INTERRUPTED
    except StoreError:
        # The recorder cannot record: there is nobody left to tell.
        raise
    except IolabError as raised:
        fault = raised
    finally:
        unclean = await clean_up(parts, crew.everyone, stop)
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
) -> SessionStatus:
    """Connect, look, refuse or begin; then one run after the other, each committed when it ends."""
    first = agenda.next()
    if first is None:
        return SessionStatus.DONE
    seen = await _look(crew, parts.guests)
    study, present = without_hosts(crew.study, crew.left_out), await parts.sites.present_bytes()
    check_ready(
        study,
        crew.plan,
        seen.facts,
        seen.probes,
        present,
        owner=crew.owner,
        devices=seen.devices,
    )
    versions = ", ".join(sorted({hello.version for hello in seen.hellos.values()}))
    crew.tell(SessionStarted(crew.plan, tuple(seen.facts.items()), versions))
    again = parts.guests.reaching(reach)
    means = Means(seen.facts, earlier.tried, again, patience, earlier.ledger)
    course = Course(crew, parts, means)
    status = await course.follow(first, agenda)
    if status is SessionStatus.DONE:
        crew.begin(Phase.CLEAN_UP, None, "remove what the session made")
    return status


async def _look(crew: Crew, guests: Guests) -> Survey:
    """Every host; those that are guests after the nodes on which they are booted."""
    names = ", ".join(crew.everyone)
    many = len(crew.everyone) > NAMED_HOSTS
    crew.begin(Phase.CONNECT, None, f"{len(crew.everyone)} hosts" if many else names)
    engines = tuple(crew.engines.values())
    if not guests.are_booted:
        seen = await survey(crew.study, crew.everyone, engines)
    else:
        nodes = await survey(crew.study, crew.bystanders, engines)
        await guests.raise_up(nodes)
        seen = nodes.joined(await survey(crew.study, crew.hosts, engines))
    guests.see_nodes(seen.facts)
    return seen


def _missing(crew: Crew) -> tuple[str, ...]:
    if not crew.left_out:
        return ()
    names = ", ".join(f"'{name}'" for name in sorted(crew.left_out))
    return (f"It went on without {names}.",)
