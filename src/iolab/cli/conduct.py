"""A session from its hosts to its end: survey, guard, record, run; used by `run` and `resume`."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Final

from iolab.cli.live import View
from iolab.cli.recorder import SessionRecorder
from iolab.cli.signals import stop_on_signals
from iolab.errors import Interrupted
from iolab.model.event import SessionStatus
from iolab.model.host import HostKind, HostSpec
from iolab.model.run import Plan
from iolab.model.study import Study
from iolab.plan.guard import check_ready
from iolab.run.engines.fio import FioEngine
from iolab.run.hosts.base import Host
from iolab.run.hosts.command import CommandHost
from iolab.run.hosts.local import LocalHost
from iolab.run.session import run_session
from iolab.run.stop import Stop
from iolab.run.survey import Survey, survey
from iolab.store.layout import RunKey
from iolab.store.writer import SessionWriter

_KINDS: Final[dict[HostKind, Callable[[HostSpec], Host]]] = {
    HostKind.LOCAL: LocalHost,
    HostKind.COMMAND: CommandHost,
}

ENGINES: Final = (FioEngine(),)
"""Every engine that a study may name."""


@dataclass(frozen=True, slots=True)
class Order:
    """What a session is to do.

    `done` are runs of it that are kept. `open_writer` is called when the guard has agreed, with
    what the hosts told; it may raise IolabError to refuse.
    """

    study: Study
    plan: Plan
    session_id: str
    done: frozenset[RunKey]
    open_writer: Callable[[Survey], SessionWriter]


async def survey_hosts(study: Study) -> Survey:
    """Connect every host of the study, ask and try it, and let go; HostError with every fault."""
    async with _hosts(study) as hosts:
        return await survey(study, hosts, ENGINES)


async def conduct(order: Order, view: View) -> SessionStatus:
    """Run a session to its end, however it comes; nothing is written before the guard agrees.

    A signal before the first run ends it at once (Interrupted); later ones ask the session to stop.
    """
    stop = Stop()
    task = asyncio.current_task()
    begun = False

    def request() -> None:
        stop.request()
        if not begun and task is not None:
            task.cancel()

    with stop_on_signals(request, view.note):
        async with _hosts(order.study) as hosts:
            try:
                surveyed = await survey(order.study, hosts, ENGINES)
            except asyncio.CancelledError:
                raise Interrupted(
                    "Stopped before anything was measured.", "Nothing was written."
                ) from None
            check_ready(order.study, order.plan, surveyed.facts, surveyed.probes)
            with order.open_writer(surveyed) as writer:
                begun = True
                return await run_session(
                    order.study,
                    order.plan,
                    hosts,
                    SessionRecorder(writer, view),
                    stop,
                    done=order.done,
                    session_id=order.session_id,
                )


@asynccontextmanager
async def _hosts(study: Study) -> AsyncIterator[dict[str, Host]]:
    """The hosts that any configuration uses, closed at the end whatever happens."""
    used = dict.fromkeys(name for item in study.configurations for name in item.hosts)
    hosts = {name: _KINDS[study.host(name).kind](study.host(name)) for name in used}
    try:
        yield hosts
    finally:
        await asyncio.gather(*(host.close() for host in hosts.values()), return_exceptions=True)
