"""What a server meets in a session: its context, a run of YCSB, and a folder on a host."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from msgspec.structs import replace

from iolab.core.events import Event, Notice, SessionPhaseStarted
from iolab.core.host import HostSpec, HostTransport
from iolab.core.run import Plan, PlannedRun, Point
from iolab.hosts.barrier import StopRequest
from iolab.hosts.connect import LocalHost
from iolab.hosts.host import Host
from iolab.loads.keyvalue.workload import KeyOperation, ServerSettings, YcsbJob
from iolab.session.context import SessionContext
from iolab.targets.work_directory import WorkDirectory
from tests.fakes.script import LoopClock
from tests.plans import make_plan
from tests.session.stage import study_of

JOB = YcsbJob(mix=((KeyOperation.READ, 1.0),), records=200, threads=2, fields=2, field_bytes=100)
OWNER = "iolab session test"


@dataclass
class Heard:
    """A recorder that keeps what it is told."""

    events: list[Event] = field(default_factory=list)

    def emit(self, event: Event) -> None:
        self.events.append(event)

    @property
    def notices(self) -> list[str]:
        return [event.text for event in self.events if isinstance(event, Notice)]

    @property
    def phases(self) -> list[str]:
        return [event.phase for event in self.events if isinstance(event, SessionPhaseStarted)]


@dataclass
class Stage:
    """All of it; `heard` is what the session would have been told."""

    session: SessionContext
    workdir: WorkDirectory
    heard: Heard

    def run(self, job: YcsbJob = JOB) -> PlannedRun:
        """A run of that job by the study's configuration."""
        configuration = self.session.study.configurations[0].id
        return PlannedRun(0, 1, Point("0" * 16, configuration, "a", (), job, ""))


def crew_on(host: Host, settings: ServerSettings, heard: Heard, **more: object) -> SessionContext:
    """A session of that one host, or of several as `hosts`."""
    study = replace(study_of(), server=settings)
    plan: Plan = make_plan(study)
    given = {"hosts": {host.name: host}, **more}
    return SessionContext(
        study=study,
        plan=plan,
        engines={},
        recorder=heard,
        stop=StopRequest(),
        clock=LoopClock(),
        session_id="test",
        **given,  # type: ignore[arg-type]
    )


@asynccontextmanager
async def stage_on(folder: Path, settings: ServerSettings) -> AsyncIterator[Stage]:
    """A stage on this machine with its folder taken below that one; all is given back."""
    host = LocalHost(HostSpec("local", HostTransport.LOCAL))
    heard = Heard()
    try:
        await host.connect()
        taken = await host.request(
            "scratch_open",
            deadline_s=30,
            path=str(folder),
            name="iolab-scratch-local",
            owner=OWNER,
        )
        workdir = WorkDirectory(host, str(taken.header["dir"]), None, "local")
        yield Stage(crew_on(host, settings, heard), workdir, heard)
        if not host.lost_reason:
            await host.request("scratch_close", deadline_s=60, dir=workdir.dir, keep=False)
    finally:
        await host.close()
