"""YCSB: a process on each client, against RocksDB inside of it or against a server of all.

Where the store is embedded, each client has a database of its own on its own target, which is
loaded once and copied before each run. Else clients share a server, and load it together.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from typing import Final

from iolab.errors import EngineError, HostError
from iolab.model.event import Notice, Phase
from iolab.model.key_value_run import ServerRun
from iolab.model.metadata import ReportedRate
from iolab.model.run import NOT_DROPPED, PlannedRun
from iolab.model.ycsb import ServerKind, ServerSettings, YcsbJob
from iolab.plan.targets import bystanders_of
from iolab.plan.ycsb_time import load_seconds
from iolab.run.cassandra.choose import server_of
from iolab.run.cassandra.server import Server
from iolab.run.crew import Crew
from iolab.run.driver import Driver
from iolab.run.engines.ycsb import Store, hdr_names, load_command, measure_command
from iolab.run.evidence import Evidence, on_each
from iolab.run.key_value.copies import remove
from iolab.run.key_value.embedded import EmbeddedStores, copy_folder
from iolab.run.key_value.processes import told
from iolab.run.key_value.ycsb_load import LOAD_THREADS, load_limit_s, load_records, shares
from iolab.run.key_value.ycsb_measure import YcsbClients, nobody_dies
from iolab.run.key_value.ycsb_record import Client, fault_of, read_back, require_in_common
from iolab.run.key_value.ycsb_tools import YcsbTools, work_folder
from iolab.run.kits import Kits, kit_on
from iolab.run.prepare import watch_idle
from iolab.run.site import Site
from iolab.run.telemetry.decode import CounterCollector

PREFIX: Final = "latency."
"""Names of latency logs begin so."""

Servers = Callable[[ServerSettings], Server | None]


class YcsbDriver(Driver):
    """YCSB on all clients of a run; see `Driver`."""

    def __init__(self, servers: Servers = server_of, kits: Kits = kit_on) -> None:
        self._servers = servers
        self._server: Server | None = None
        self._tools = YcsbTools(kits)
        self._embedded = EmbeddedStores()

    async def prepare(self, crew: Crew, run: PlannedRun, evidence: Sequence[Evidence]) -> None:
        """YCSB on every client, the store loaded and in its start state, the devices idle."""
        crew.begin(Phase.PROVE, run, "YCSB and Java on every client")
        await on_each(evidence, lambda mine: self._see_tools(crew, mine))
        await on_each(evidence, lambda mine: _new_folder(mine.site))
        if crew.stop.requested:
            return
        if crew.study.server.kind is ServerKind.EMBEDDED:
            tools = {mine.name: self._tools.of(mine.site) for mine in evidence}
            await self._embedded.prepare(crew, run, job_of(run), evidence, tools)
        else:
            await self._prepare_server(crew, run, evidence)
        if not crew.stop.requested:
            await watch_idle(crew, run, evidence)

    async def measure(
        self,
        crew: Crew,
        run: PlannedRun,
        evidence: Sequence[Evidence],
        counters: CounterCollector,
    ) -> tuple[ReportedRate, ...]:
        """All clients at once; what each of them did in every second comes from its own logs."""
        job, server = job_of(run), self._server
        seconds = load_seconds(crew.study.method, crew.study.server.kind, len(evidence))
        crew.begin(Phase.MEASURE, run, run.point.label, float(seconds))
        for mine in evidence:
            self._instruct(crew, job, mine, seconds)
        clients = YcsbClients(crew, run, evidence, counters, record_bytes=job.record_bytes)
        failure: HostError | EngineError | None = None
        try:
            async with self._watching(crew, run, evidence, counters):
                await clients.measure(server.fault if server else nobody_dies)
        except (HostError, EngineError) as raised:
            failure = raised
        if server:
            await server.after(crew, run)
        failure = await self._read_back(clients, job, evidence, seconds, failure)
        if failure:
            raise failure
        if not crew.stop.requested:
            require_in_common(evidence, crew.study.method)
        return ()

    def server(self) -> ServerRun | None:
        """What the server told around the last run; None where the store is embedded."""
        return self._server.told() if self._server else None

    async def end(self) -> tuple[str, ...]:
        """Stop the server that iolab started; what could not be ended."""
        server, self._server = self._server, None
        return await server.end() if server else ()

    async def _see_tools(self, crew: Crew, mine: Evidence) -> None:
        tools = await self._tools.on(
            mine.site, crew.study.server, lambda text: crew.tell(Notice(text))
        )
        mine.engine_version = tools.told

    async def _prepare_server(
        self, crew: Crew, run: PlannedRun, evidence: Sequence[Evidence]
    ) -> None:
        """A server that answers, with all records in it."""
        server = self._server = self._server or self._servers(crew.study.server)
        if server is None:
            raise EngineError(
                f"There is no server of the kind '{crew.study.server.kind}'.",
                "Use another server.kind.",
            )
        job = job_of(run)

        async def load() -> None:
            store = self._store(crew, "")
            work = {
                mine.name: (
                    load_command(
                        job,
                        store,
                        self._tools.of(mine.site).kit,
                        work_folder(mine.site),
                        first=share.first,
                        count=share.count,
                        threads=LOAD_THREADS,
                        seconds=load_limit_s(share.count),
                    ),
                    share,
                )
                for mine, share in zip(evidence, shares(job.records, len(evidence)), strict=True)
                if share.count
            }
            await load_records(crew, run, evidence, work)

        await server.ready_for(crew, run, [mine.site for mine in evidence], load)
        for mine in evidence:
            dropped = server.cache if mine.name == server.host else None
            mine.cache = dropped or NOT_DROPPED

    def _instruct(self, crew: Crew, job: YcsbJob, mine: Evidence, seconds: int) -> None:
        """What this client is to run."""
        mine.command = measure_command(
            job,
            self._store(crew, copy_folder(mine.site)),
            self._tools.of(mine.site).kit,
            work_folder(mine.site),
            seconds=seconds,
            prefix=PREFIX,
        )

    def _store(self, crew: Crew, database: str) -> Store:
        settings = crew.study.server
        if self._server is None:
            return Store(settings.kind, database=database)
        return Store(
            settings.kind,
            addresses=self._server.addresses,
            keyspace=settings.keyspace,
            replication=settings.replication,
            consistency=settings.consistency,
        )

    def _watching(
        self,
        crew: Crew,
        run: PlannedRun,
        evidence: Sequence[Evidence],
        counters: CounterCollector,
    ) -> AbstractAsyncContextManager[None]:
        """The server's own counters, by the number of the host on which it runs."""
        if self._server is None:
            return nullcontext()
        beside = bystanders_of(crew.study, run.point.configuration)
        names = (*(mine.name for mine in evidence), *(spec.name for spec in beside))
        return self._server.watching(
            crew, run, counters, {name: index for index, name in enumerate(names)}
        )

    async def _read_back(
        self,
        clients: YcsbClients,
        job: YcsbJob,
        evidence: Sequence[Evidence],
        seconds: int,
        failure: HostError | EngineError | None,
    ) -> HostError | EngineError | None:
        """Read all that the clients left; the run's failure, or what speaks against it by that."""
        names = hdr_names(job, PREFIX)
        paths = {
            mine.name: [f"{work_folder(mine.site)}/{name}" for name in names] for mine in evidence
        }

        async def read(mine: Evidence) -> None:
            start = self._embedded.start_of(mine)
            client = Client(job, seconds, names, start, clients.printed[mine.name])
            faults = read_back(mine, client)
            # What is wrong with the outputs of a run that failed follows from that.
            if faults and failure is None:
                raise fault_of(mine, faults)

        async def clear(mine: Evidence) -> None:
            if not mine.site.host.lost:
                await self._embedded.leave(mine)
                await remove(mine.site.host, work_folder(mine.site))

        found = failure
        for step in (clients.fetch(paths), on_each(evidence, read), on_each(evidence, clear)):
            try:
                await step
            except (HostError, EngineError) as raised:
                found = found or raised
        return found


def job_of(run: PlannedRun) -> YcsbJob:
    """The run's job; TypeError for one of another engine."""
    job = run.point.job
    if not isinstance(job, YcsbJob):
        raise TypeError(f"{job.engine} is not YCSB")
    return job


async def _new_folder(site: Site) -> None:
    """An empty folder to work in: a log of the run before must not be read as this one's."""
    await remove(site.host, work_folder(site))
    await told(site.host, ("mkdir", "--", work_folder(site)))
