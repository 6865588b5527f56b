"""A session from its hosts to its end, recorded and watched; used by `run` and `resume`."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from iolab.analyse.agenda.course import DecidingAgenda
from iolab.analyse.live import FleetRule
from iolab.cli.garbage import seldom_collected
from iolab.cli.live import View
from iolab.cli.recorder import OpenWriter, SessionRecorder
from iolab.cli.signals import STOPPING, STOPPING_AT_ONCE, stop_on_signals
from iolab.errors import Interrupted, StoreError
from iolab.model.event import SessionStatus
from iolab.model.host import HostKind, HostSpec
from iolab.model.run import Plan, PlannedRun
from iolab.model.study import Study
from iolab.model.workload import Job
from iolab.plan.targets import hosts_used
from iolab.run.engines.base import Engine
from iolab.run.engines.fio import FioEngine
from iolab.run.engines.native import NativeEngine
from iolab.run.hosts.base import Host
from iolab.run.hosts.reach import hosts_of
from iolab.run.live_rule import LiveRule, RuleFor
from iolab.run.session import Earlier, run_session
from iolab.run.stop import Stop
from iolab.run.survey import Survey, survey

ENGINES: Final[tuple[Engine, ...]] = (FioEngine(), NativeEngine())
"""Every engine that a study may name."""


@dataclass(frozen=True, slots=True)
class Order:
    """What a session is to do.

    `earlier` is what it has of earlier sittings. `open_writer` is called with the facts of the
    hosts when the plan can run there; until then nothing is written. It may raise IolabError to
    refuse. `agenda`, made anew at each call, decides which runs are made; None for those of the
    plan.
    """

    study: Study
    plan: Plan
    session_id: str
    earlier: Earlier
    open_writer: OpenWriter
    agenda: Callable[[], DecidingAgenda] | None = None


async def survey_hosts(study: Study) -> Survey:
    """Connect every host of the study, ask and try it, and let go; HostError with every fault.

    Of guests that a session would boot their nodes are asked.
    """
    there = [spec for spec in hosts_used(study) if spec.kind is not HostKind.VM]
    hosts = hosts_of(there)
    try:
        return await survey(study, hosts, ENGINES)
    finally:
        await asyncio.gather(*(host.close() for host in hosts.values()), return_exceptions=True)


async def conduct(order: Order, view: View) -> SessionStatus:
    """Run a session to its end, however it comes; the session itself leaves every host clean.

    Interrupted when the user stopped it before anything was written.
    """
    stop = Stop()
    agenda = order.agenda() if order.agenda else None
    with (
        seldom_collected(),
        SessionRecorder(order.open_writer, view, agenda) as recorder,
        stop_on_signals(lambda: _request(stop, recorder), view.note),
    ):
        try:
            status = await run_session(
                order.study,
                order.plan,
                hosts_of(hosts_used(order.study)),
                recorder,
                stop,
                engines=ENGINES,
                session_id=order.session_id,
                earlier=order.earlier,
                reach=_reach,
                rule_for=rule_maker(order.study),
                agenda=agenda,
            )
        except StoreError as error:
            recorder.give_up(error.happened)
            raise
    if not recorder.begun:
        raise Interrupted("Stopped before anything was measured.", "Nothing was written.")
    return status


def rule_maker(study: Study) -> RuleFor:
    """Makes the rule that ends a run early, where the study's method has one."""

    def made(run: PlannedRun, hosts: Sequence[str]) -> LiveRule | None:
        rule = study.method.rule
        return FleetRule(hosts, rule) if rule and isinstance(run.point.job, Job) else None

    return made


def _reach(spec: HostSpec) -> Host:
    """A host anew, by a login of its own: the old one's may have been lost with a jump host."""
    return hosts_of([spec])[spec.name]


def _request(stop: Stop, recorder: SessionRecorder) -> str:
    """Ask the session to stop; at once where there is nothing yet to finish. What to tell."""
    stop.request()
    if not recorder.begun:
        stop.request()
    return STOPPING_AT_ONCE if stop.at_once else STOPPING
