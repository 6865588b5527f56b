"""YCSB: a process on each client, against RocksDB inside of it or against a server of all.

Where the store is embedded, each client has a database of its own on its own target, which is
loaded once and copied before each run. Else clients share a server, and load it together.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass, replace
from typing import Final

from iolab.core.events import Notice, Phase
from iolab.core.run import NOT_DROPPED, PlannedRun, RunRecord
from iolab.core.study import Method
from iolab.errors import EngineError, HostError
from iolab.hosts.host import printable
from iolab.hosts.intervals import IntervalLog
from iolab.hosts.processes import told
from iolab.hosts.telemetry import CounterCollector
from iolab.loads.keyvalue.cassandra.choose import server_of
from iolab.loads.keyvalue.cassandra.server import Server
from iolab.loads.keyvalue.cost import execution_limit_s
from iolab.loads.keyvalue.databases import remove
from iolab.loads.keyvalue.embedded import DatabaseStart, EmbeddedStores, copy_folder
from iolab.loads.keyvalue.hdr_log import HdrLog, read_hdr_log
from iolab.loads.keyvalue.java import Kits, kit_on
from iolab.loads.keyvalue.workload import (
    KeyValueRun,
    ServerKind,
    ServerSettings,
    YcsbJob,
    server_settings,
)
from iolab.loads.keyvalue.ycsb import YcsbStore, hdr_names, load_command, measure_command
from iolab.loads.keyvalue.ycsb_clients import (
    LOAD_THREADS,
    YcsbClients,
    YcsbStreams,
    YcsbTools,
    load_limit_s,
    load_records,
    nobody_dies,
    shares,
    work_folder,
)
from iolab.loads.keyvalue.ycsb_output import intervals_of, parse, ycsb_faults
from iolab.session.context import SessionContext
from iolab.session.driver import Driver, HostShare, on_each
from iolab.session.start import watch_idle
from iolab.session.start_time import NS_PER_S, offset_of
from iolab.study.targets import bystanders_of
from iolab.targets.work_directory import WorkDirectory

NO_SEED: Final = 0
"""YCSB 0.17.0 draws its keys from random streams that cannot be given a seed."""

LEAST_SHARE: Final = 0.5
"""Of the runtime: clients that met for less were never one fleet."""

SEE_OUTPUT: Final = "See what YCSB printed in the session's folder, and run again."


@dataclass(frozen=True, slots=True)
class YcsbClientState:
    """What is known of one client's part: its job, its logs' names, its database at the start."""

    job: YcsbJob
    seconds: int
    logs: tuple[str, ...]
    start: DatabaseStart | None
    printed: YcsbStreams


def read_back(mine: HostShare, client: YcsbClientState) -> tuple[str, ...]:
    """Fill in what a client's output and latency logs tell; why it is not what was asked for.

    A client that was halted is not held against its job: it has no summary, and its logs end early.
    """
    output = parse(bytes(client.printed.stdout), bytes(client.printed.stderr))
    logs = [_log(mine, name) for name in client.logs if name in mine.files]
    intervals = intervals_of(logs)
    mine.intervals = IntervalLog.of(intervals)
    if intervals:
        first, last = intervals[0], intervals[-1]
        mine.span = (first.end_real_ns - first.span_ns, last.end_real_ns)
    halted = mine.ending is None or mine.ending.halted
    faults = () if halted else ycsb_faults(output, client.job, logs, client.seconds)
    told = KeyValueRun(
        counts=output.counts,
        seed=NO_SEED,
        copied_by=client.start.copied_by if client.start else "",
        start=client.start.shape if client.start else None,
        statistics=output.statistics,
        reported_ops_per_s=output.reported_ops_per_s,
        reported_s=output.reported_s,
        faults=faults,
    )
    mine.details = told
    return faults


def fault_of(mine: HostShare, faults: Sequence[str]) -> EngineError:
    """What speaks against a client's part of the run, as an error."""
    said = printable("; ".join(faults)).rstrip(".")
    return EngineError(f"YCSB on host '{mine.name}': {said}.", SEE_OUTPUT)


def require_in_common(evidence: Sequence[HostShare], method: Method) -> None:
    """EngineError unless all clients had the warm-up and half the runtime in common, by their logs.

    Clients get time enough for all of it; what lacks beyond that is for the checks to judge.
    """
    spans = [
        (mine.span[0] - offset_of(mine).offset_ns, mine.span[1] - offset_of(mine).offset_ns)
        for mine in evidence
        if mine.span
    ]
    common_s = 0.0
    if len(spans) == len(evidence):
        common_ns = min(end for _, end in spans) - max(start for start, _ in spans)
        common_s = max(common_ns, 0) / NS_PER_S
    if common_s < method.warmup_s + LEAST_SHARE * method.runtime_s:
        wanted_s = method.warmup_s + method.runtime_s
        raise EngineError(
            f"All clients together measured for {common_s:.1f} s, and {wanted_s:g} s of warm-up "
            "and runtime were asked for: one of them came to its start too late.",
            "See that no client is busy with anything else, and run again.",
        )


def _log(mine: HostShare, name: str) -> HdrLog:
    return read_hdr_log(mine.files[name].unpacked())


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

    async def prepare(
        self, session: SessionContext, run: PlannedRun, evidence: Sequence[HostShare]
    ) -> None:
        """YCSB on every client, the store loaded and in its start state, the devices idle."""
        session.begin(Phase.PROVE, run, "YCSB and Java on every client")
        await on_each(evidence, lambda mine: self._see_tools(session, mine))
        await on_each(evidence, lambda mine: _new_folder(mine.site))
        if session.stop.requested:
            return
        if server_settings(session.study).kind is ServerKind.EMBEDDED:
            tools = {mine.name: self._tools.of(mine.site) for mine in evidence}
            await self._embedded.prepare(session, run, job_of(run), evidence, tools)
        else:
            await self._prepare_server(session, run, evidence)
        if not session.stop.requested:
            await watch_idle(session, run, evidence)

    async def measure(
        self,
        session: SessionContext,
        run: PlannedRun,
        evidence: Sequence[HostShare],
        counters: CounterCollector,
    ) -> None:
        """All clients at once; what each of them did in every second comes from its own logs."""
        job, server = job_of(run), self._server
        seconds = execution_limit_s(
            session.study.method, server_settings(session.study).kind, len(evidence)
        )
        session.begin(Phase.MEASURE, run, run.point.label, float(seconds))
        for mine in evidence:
            self._instruct(session, job, mine, seconds)
        clients = YcsbClients(session, run, evidence, counters, record_bytes=job.record_bytes)
        failure: HostError | EngineError | None = None
        try:
            async with self._watching(session, run, evidence, counters):
                await clients.measure(server.fault if server else nobody_dies)
        except (HostError, EngineError) as raised:
            failure = raised
        if server:
            await server.after(session, run)
        failure = await self._read_back(clients, job, evidence, seconds, failure)
        if failure:
            raise failure
        if not session.stop.requested:
            require_in_common(evidence, session.study.method)

    def told(self, record: RunRecord) -> RunRecord:
        """With what the server told around the run, unless the store is embedded."""
        return replace(record, details=self._server.told()) if self._server else record

    async def end(self) -> tuple[str, ...]:
        """Stop the server that iolab started; what could not be ended."""
        server, self._server = self._server, None
        return await server.end() if server else ()

    async def _see_tools(self, session: SessionContext, mine: HostShare) -> None:
        tools = await self._tools.on(
            mine.site, server_settings(session.study), lambda text: session.tell(Notice(text))
        )
        mine.engine_version = tools.told

    async def _prepare_server(
        self, session: SessionContext, run: PlannedRun, evidence: Sequence[HostShare]
    ) -> None:
        """A server that answers, with all records in it."""
        server = self._server = self._server or self._servers(server_settings(session.study))
        if server is None:
            raise EngineError(
                f"There is no server of the kind '{server_settings(session.study).kind}'.",
                "Use another server.kind.",
            )
        job = job_of(run)

        async def load() -> None:
            store = self._store(session, "")
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
            await load_records(session, run, evidence, work)

        await server.ready_for(session, run, [mine.site for mine in evidence], load)
        for mine in evidence:
            dropped = server.cache if mine.name == server.host else None
            mine.cache = dropped or NOT_DROPPED

    def _instruct(
        self, session: SessionContext, job: YcsbJob, mine: HostShare, seconds: int
    ) -> None:
        """What this client is to run."""
        mine.command = measure_command(
            job,
            self._store(session, copy_folder(mine.site)),
            self._tools.of(mine.site).kit,
            work_folder(mine.site),
            seconds=seconds,
            prefix=PREFIX,
        )

    def _store(self, session: SessionContext, database: str) -> YcsbStore:
        settings = server_settings(session.study)
        if self._server is None:
            return YcsbStore(settings.kind, database=database)
        return YcsbStore(
            settings.kind,
            addresses=self._server.addresses,
            keyspace=settings.keyspace,
            replication=settings.replication,
            consistency=settings.consistency,
        )

    def _watching(
        self,
        session: SessionContext,
        run: PlannedRun,
        evidence: Sequence[HostShare],
        counters: CounterCollector,
    ) -> AbstractAsyncContextManager[None]:
        """The server's own counters, by the number of the host on which it runs."""
        if self._server is None:
            return nullcontext()
        beside = bystanders_of(session.study, run.point.configuration)
        names = (*(mine.name for mine in evidence), *(spec.name for spec in beside))
        return self._server.watching(
            session, run, counters, {name: index for index, name in enumerate(names)}
        )

    async def _read_back(
        self,
        clients: YcsbClients,
        job: YcsbJob,
        evidence: Sequence[HostShare],
        seconds: int,
        failure: HostError | EngineError | None,
    ) -> HostError | EngineError | None:
        """Read all that the clients left; the run's failure, or what speaks against it by that."""
        names = hdr_names(job, PREFIX)
        paths = {
            mine.name: [f"{work_folder(mine.site)}/{name}" for name in names] for mine in evidence
        }

        async def read(mine: HostShare) -> None:
            start = self._embedded.start_of(mine)
            client = YcsbClientState(job, seconds, names, start, clients.printed[mine.name])
            faults = read_back(mine, client)
            # What is wrong with the outputs of a run that failed follows from that.
            if faults and failure is None:
                raise fault_of(mine, faults)

        async def clear(mine: HostShare) -> None:
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


async def _new_folder(site: WorkDirectory) -> None:
    """An empty folder to work in: a log of the run before must not be read as this one's."""
    await remove(site.host, work_folder(site))
    await told(site.host, ("mkdir", "--", work_folder(site)))
