"""A session: one execution of a plan, from the first host reached to the last folder removed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from iolab.errors import HostError, Interrupted, IolabError, StoreError
from iolab.model.event import (
    Phase,
    Recorder,
    RunFinished,
    SessionEnded,
    SessionStarted,
    SessionStatus,
)
from iolab.model.host import Role
from iolab.model.run import Plan, PlannedRun, RunStatus
from iolab.model.study import Study
from iolab.plan.guard import check_ready
from iolab.run.clean_up import clean_up
from iolab.run.clock import SYSTEM_CLOCK, Clock
from iolab.run.crew import Crew
from iolab.run.engines.base import Engine
from iolab.run.engines.fio import FioEngine
from iolab.run.execute import execute
from iolab.run.hosts.base import Host
from iolab.run.sites import Sites
from iolab.run.stop import Stop
from iolab.run.survey import Survey, survey

ENGINES: Final[tuple[Engine, ...]] = (FioEngine(),)
"""Every engine that a study may name."""


async def run_session(
    study: Study,
    plan: Plan,
    hosts: Mapping[str, Host],
    recorder: Recorder,
    stop: Stop,
    *,
    session_id: str,
    done: frozenset[tuple[str, int]] = frozenset(),
    engines: Iterable[Engine] = ENGINES,
    clock: Clock = SYSTEM_CLOCK,
) -> SessionStatus:
    """Execute the plan but for the runs in `done`, each (digest, repeat), and tell the recorder.

    A run that fails is recorded as failed and the session goes on. It ends early, with an error
    raised after it is told, when a host is lost, a target cannot be prepared, or the recorder
    raises; it ends early without one at a stop request. However it ends, no process and no folder
    of it is left on any host, and all hosts are closed.
    """
    by_name = {engine.name: engine for engine in engines}
    watched = {spec.name for spec in study.hosts if spec.role is not Role.CLIENT}
    load = {name: host for name, host in hosts.items() if name not in watched}
    beside = {name: host for name, host in hosts.items() if name in watched}
    crew = Crew(study, plan, load, by_name, recorder, stop, clock, session_id, beside)
    pending = [run for run in plan.runs if (run.point.digest, run.repeat) not in done]
    sites = Sites(crew, pending)
    status = SessionStatus.FAILED
    fault: IolabError | None = None
    unclean: tuple[str, ...] = ()
    try:
        status = await stop.unless_at_once(_measure_all(crew, sites, pending))
    except Interrupted:
        status = SessionStatus.INTERRUPTED
    except StoreError:
        # The recorder cannot record: there is nobody left to tell.
        raise
    except IolabError as raised:
        fault = raised
    finally:
        unclean = await clean_up(sites, hosts, stop)
    reasons = (fault.happened, *unclean) if fault else unclean
    crew.tell(SessionEnded(status, " ".join(reasons) or None))
    if fault:
        raise fault
    return status


async def _measure_all(crew: Crew, sites: Sites, pending: Sequence[PlannedRun]) -> SessionStatus:
    """Connect, look, refuse or begin; then one run after the other, each committed when it ends."""
    if not pending:
        return SessionStatus.DONE
    seen = await _look(crew)
    check_ready(crew.study, crew.plan, seen.facts, seen.probes, await sites.present_bytes())
    versions = ", ".join(sorted({hello.version for hello in seen.hellos.values()}))
    crew.tell(SessionStarted(crew.plan, tuple(seen.facts.items()), versions))
    for run in pending:
        if crew.stop.requested:
            return SessionStatus.INTERRUPTED
        record = await execute(crew, run, await sites.ready_for(run, seen.facts))
        if record is None:
            return SessionStatus.INTERRUPTED
        crew.tell(RunFinished(record))
        _require_all_hosts(crew)
        if record.status is RunStatus.INTERRUPTED:
            return SessionStatus.INTERRUPTED
    crew.begin(Phase.CLEAN_UP, None, "remove what the session made")
    return SessionStatus.DONE


async def _look(crew: Crew) -> Survey:
    crew.begin(Phase.CONNECT, None, ", ".join(crew.everyone))
    return await survey(crew.study, crew.everyone, tuple(crew.engines.values()))


def _require_all_hosts(crew: Crew) -> None:
    lost = [host.lost for host in crew.hosts.values() if host.lost]
    if lost:
        happened = " ".join(lost)
        raise HostError(happened, "Bring it back and resume the session; committed runs are kept.")
