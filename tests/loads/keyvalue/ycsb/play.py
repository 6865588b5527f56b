"""YCSB's driver alone, on agents of this machine, with a stand-in for Java and for a server."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from iolab.core.host import HostSpec, HostTransport
from iolab.core.run import CacheDropProof, PlannedRun
from iolab.core.study import Study
from iolab.errors import IolabError
from iolab.hosts.barrier import StopRequest
from iolab.hosts.clock import SYSTEM_CLOCK
from iolab.hosts.connect import LocalHost
from iolab.hosts.host import Host
from iolab.hosts.telemetry import CounterCollector
from iolab.loads.keyvalue.cassandra.server import KeyValueServer, RecordInserter
from iolab.loads.keyvalue.driver import YcsbDriver
from iolab.loads.keyvalue.java import JavaKitName
from iolab.loads.keyvalue.workload import ServerRunDetails, ServerSettings
from iolab.session.context import SessionContext
from iolab.session.driver import HostRunInProgress
from iolab.study.parse import StudyOverrides
from iolab.targets.work_directory import WorkDirectory
from tests.e2e.mpi import leave, take
from tests.loads.keyvalue.ycsb.stand_in import RECORDS
from tests.plans import make_plan, parse_study
from tests.session.stage import Notes

LIMIT_S: Final = 60

STUDY: Final = """
format = 1
id = "trial"
[server]
kind = "{server}"
java = "{java}"
{addresses}
[[workload]]
id = "half"
engine = "ycsb"
mix = {{ read = 0.5, update = 0.5 }}
records = {records}
threads = 2
[method]
warmup = "0s"
runtime = "1s"
settle = "0s"
idle_watch = 0
drop_caches = {drop}
"""


def study_of(java: Path, *, server: str = "embedded", drop: bool = False) -> Study:
    """A study whose run of one client is as long as the recorded one."""
    addresses = 'addresses = ["127.0.0.1:9042"]' if server == "given" else ""
    text = STUDY.format(
        server=server,
        java=java,
        addresses=addresses,
        records=RECORDS,
        drop="true" if drop else "false",
    )
    return parse_study(text, "trial.toml", StudyOverrides(path="/mnt/bench"))


STAND_IN: Final = ServerRunDetails("A stand-in", "1", "127.0.0.1:9042")


@dataclass
class FakeServer(KeyValueServer):
    """A server that is loaded by its first run, and dies when a file is there."""

    settings: ServerSettings
    dies_at: Path = Path("/nowhere")
    events: list[str] = field(default_factory=list)
    addresses: tuple[str, ...] = ("127.0.0.1:9042",)
    host: str = ""
    cache_proof: CacheDropProof | None = None
    server_run: ServerRunDetails = STAND_IN
    _whole: bool = False
    _fault: str | None = None

    async def prepare_run(
        self,
        _session: SessionContext,
        _run: PlannedRun,
        workdirs: Sequence[WorkDirectory],
        load: RecordInserter,
    ) -> None:
        self._fault = None
        self.events.append(f"ready for {len(workdirs)}")
        if not self._whole:
            await load()
            self._whole = True

    def sample_counters(self, *_: object) -> AbstractAsyncContextManager[None]:
        self.events.append("watched")
        return nullcontext()

    async def record_final_statistics(self, _session: SessionContext, _run: PlannedRun) -> None:
        self.events.append("after")

    def failure_text(self) -> str | None:
        if self._fault is None and self.dies_at.exists():
            self.dies_at.unlink()
            self._fault = "The server was killed by signal 9 (SIGKILL)."
        return self._fault

    async def stop_and_list_leftovers(self) -> tuple[str, ...]:
        self.events.append("end")
        return ()


@dataclass
class Played:
    """What came of the runs, one after the other, by one driver."""

    runs: list[list[HostRunInProgress]] = field(default_factory=list)
    faults: list[IolabError | None] = field(default_factory=list)
    notes: Notes = field(default_factory=Notes)
    ends: tuple[str, ...] = ()

    @property
    def only(self) -> HostRunInProgress:
        """The state of the only client of the only run, which went well."""
        assert self.faults == [None], self.faults
        ((mine,),) = self.runs
        return mine

    @property
    def fault(self) -> IolabError:
        """The fault of the last run."""
        fault = self.faults[-1]
        assert fault is not None, "it went well"
        return fault


async def no_kits(
    _host: Host, name: JavaKitName, _version: str, directory: str, _say: Callable[[str], None]
) -> tuple[str, ...]:
    """Jars that the stand-in does not look at."""
    return (f"{directory}/{name}.jar",)


Between = Callable[[int, StopRequest, Mapping[str, Host]], None]
"""Called before each run with its number."""


def nothing(*_: object) -> None:
    """Between most runs."""


def play(
    study: Study,
    target: Path,
    *,
    hosts: Sequence[str] = ("local",),
    runs: int = 1,
    server: FakeServer | None = None,
    before: Between = nothing,
    at_once: Callable[[SessionContext], None] = nothing,
) -> Played:
    """So many runs of the study's point on agents of this machine."""

    async def body() -> Played:
        connected: dict[str, Host] = {
            name: LocalHost(HostSpec(name, HostTransport.LOCAL)) for name in hosts
        }
        try:
            async with asyncio.timeout(LIMIT_S):
                for host in connected.values():
                    await host.connect()
                return await _runs(connected)
        finally:
            for host in connected.values():
                await host.close()

    async def _runs(connected: dict[str, Host]) -> Played:
        played, stop = Played(), StopRequest()
        plan = make_plan(study)
        session = SessionContext(
            study, plan, connected, {}, played.notes, stop, SYSTEM_CLOCK, "trial"
        )
        workdirs = [await take(host, str(target)) for host in connected.values()]
        driver = YcsbDriver(lambda _: server, no_kits)
        at_once(session)
        for number in range(runs):
            before(number, stop, connected)
            states = [HostRunInProgress(workdir) for workdir in workdirs]
            played.runs.append(states)
            try:
                await driver.do_steps_before_load(session, plan.runs[0], states)
                await driver.measure(session, plan.runs[0], states, CounterCollector())
                played.faults.append(None)
            except IolabError as fault:
                played.faults.append(fault)
        played.ends = await driver.close_and_list_failures()
        await leave([workdir for workdir in workdirs if not workdir.host.lost_reason])
        return played

    return asyncio.run(body())
