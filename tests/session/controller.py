"""A controller in a process of its own: one session on this machine, told line by line.

`python -m tests.session.controller DIRECTORY SECONDS` prints a line for each event's kind, and
the pid of the agent when it is known.
"""

from __future__ import annotations

import asyncio
import sys

from iolab.core.events import Event, IntervalReported, SessionPhaseStarted
from iolab.core.host import HostSpec, HostTransport
from iolab.hosts.barrier import StopRequest
from iolab.hosts.connect import LocalHost
from iolab.registry import session_kinds
from iolab.session.session import run_session
from iolab.study.parse import StudyOverrides
from tests.plans import make_plan, parse_study
from tests.session.stage import STUDY


class Lines:
    """A recorder that prints."""

    def emit(self, event: Event) -> None:
        if isinstance(event, SessionPhaseStarted):
            print(f"phase {event.phase}", flush=True)
        elif isinstance(event, IntervalReported):
            print(f"interval {event.elapsed_s:.0f}", flush=True)
        else:
            print(type(event).__name__, flush=True)


async def main(path: str, runtime: str) -> None:
    sets = (f"method.runtime={runtime}", "workload.*.numjobs=1", "workload.*.filesize=8m")
    study = parse_study(
        STUDY.format(hosts=""), "trial.toml", StudyOverrides(path=path, set_arguments=sets)
    )
    host = LocalHost(HostSpec("local", HostTransport.LOCAL))
    hello = await host.connect()
    print(f"agent {hello.pid}", flush=True)
    await run_session(
        study,
        make_plan(study),
        {"local": host},
        Lines(),
        StopRequest(),
        session_id="trial-1",
        kinds=session_kinds(),
    )


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
