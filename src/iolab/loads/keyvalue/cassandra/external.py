"""The cluster that the user has: a table of iolab's own in it, and nothing else of it touched.

Nothing can be restored there: a run finds what the runs before it have left, and the cluster's
caches as they are.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Final

from iolab.core.events import Notice, Phase
from iolab.core.run import CacheProof, PlannedRun
from iolab.errors import EngineError, HostError
from iolab.hosts.message import printable
from iolab.hosts.telemetry import CounterCollector
from iolab.loads.keyvalue.cassandra.server import (
    MADE_BY,
    Load,
    Records,
    RowCount,
    count_rows,
    holds,
    is_ours,
    mark_of,
    records_of,
    require_columns,
    require_room,
    require_rows,
)
from iolab.loads.keyvalue.cassandra.tools import TABLE, CassandraTools, SchemaReply
from iolab.loads.keyvalue.java import YCSB_VERSION, KitName, Kits, java_on, kit_on
from iolab.loads.keyvalue.workload import ServerRun, ServerSettings
from iolab.session.context import SessionContext
from iolab.targets.work_directory import WorkDirectory

PRODUCT: Final = "Apache Cassandra"

OLDEST_JAVA: Final = 8
"""What iolab's own tools are compiled for; the cluster's Java is its owner's affair."""

NOT_RESTORED: Final = (
    "The cluster is not restored between runs: each finds what those before it wrote, and caches "
    "as they are."
)

DO: Final = "Name another server.keyspace, which iolab makes and fills, or set records to match."


class ExternalServer:
    """See `Server`; `kits` brings jars to hosts. The first client asks the cluster for all."""

    def __init__(self, settings: ServerSettings, kits: Kits = kit_on) -> None:
        self._settings = settings
        self._kits = kits
        self._tools: CassandraTools | None = None
        self._loaded: Records | None = None
        self._ours = False
        self._keep = False
        self._warned = False
        self._run = ServerRun(PRODUCT, "", ",".join(self.addresses))

    @property
    def addresses(self) -> tuple[str, ...]:
        """Where clients find it, each with its port."""
        return tuple(_with_port(one, self._settings.port) for one in self._settings.addresses)

    @property
    def host(self) -> str:
        """It is none of the study's."""
        return ""

    @property
    def cache(self) -> CacheProof | None:
        """Nothing of it can be dropped."""
        return None

    async def ready_for(
        self,
        session: SessionContext,
        run: PlannedRun,
        workdirs: Sequence[WorkDirectory],
        load: Load,
    ) -> None:
        """It answers, and the table is there with the run's records; loaded when they are not."""
        self._keep = session.study.target.keep_files
        self._run = replace(self._run, error=None)
        try:
            tools = await self._equip(session, workdirs[0])
            found = await tools.schema(self.addresses, "describe")
            self._run = replace(self._run, version=printable(found.version, 40))
            require_room(found, self._settings)
            wanted = records_of(run)
            if self._loaded == wanted and found.columns is not None:
                require_columns(found, wanted, self._settings)
            else:
                await self._bring(session, run, tools, found, wanted, load)
        except (HostError, EngineError) as fault:
            self._run = replace(self._run, error=fault.happened)
            raise

    @asynccontextmanager
    async def watching(
        self,
        session: SessionContext,  # noqa: ARG002 - the protocol's, as those below
        run: PlannedRun,  # noqa: ARG002
        counters: CounterCollector,  # noqa: ARG002
        hosts: Mapping[str, int],  # noqa: ARG002
    ) -> AsyncIterator[None]:
        """Its counters are its owner's."""
        yield

    async def after(self, session: SessionContext, run: PlannedRun) -> None:
        """Nothing more is known of it."""

    def server_run(self) -> ServerRun:
        """What is to be recorded of it for the last run."""
        return self._run

    def fault(self) -> str | None:
        """Its death shows in the operations that fail."""
        return None

    async def end(self) -> tuple[str, ...]:
        """Drop the table that iolab made, with a keyspace that has no other, unless it is kept."""
        tools, ours = self._tools, self._ours
        self._tools, self._loaded, self._ours = None, None, False
        if tools is None or not ours or self._keep:
            return ()
        where = f"The table {self._name} of the cluster was not dropped."
        if tools.host.lost:
            return (f"{where} {tools.host.lost}",)
        try:
            await tools.schema(self.addresses, "drop", comment=MADE_BY)
        except (HostError, EngineError) as fault:
            return (f"{where} {fault.happened}",)
        return ()

    @property
    def _name(self) -> str:
        return f"{self._settings.keyspace}.{TABLE}"

    async def _equip(self, session: SessionContext, workdir: WorkDirectory) -> CassandraTools:
        """Java and iolab's tools on the host that asks, once for each connection to it."""
        if self._tools is None or self._tools.host is not workdir.host:
            await java_on(workdir.host, self._settings.java, oldest=OLDEST_JAVA)
            jars = await self._kits(
                workdir.host,
                KitName.YCSB,
                YCSB_VERSION,
                workdir.dir,
                lambda text: session.tell(Notice(text)),
            )
            self._tools = CassandraTools(workdir.host, self._settings, jars)
        return self._tools

    async def _bring(
        self,
        session: SessionContext,
        run: PlannedRun,
        tools: CassandraTools,
        found: SchemaReply,
        wanted: Records,
        load: Load,
    ) -> None:
        """The wanted records in the table, by whoever put them there; counted in any case."""
        self._loaded = None
        self._ours = is_ours(found)
        counted = await self._count(tools, wanted) if holds(found, wanted) else None
        if self._ours and (counted is None or not counted.agrees_with(wanted.records)):
            # Of other records, changed since, or half a load of a session that died.
            found = await tools.schema(self.addresses, "drop", comment=MADE_BY)
        if found.columns is None:
            counted = await self._make(session, run, tools, wanted, load)
        elif counted is None:
            require_columns(found, wanted, self._settings)
            counted = await self._fill(session, run, tools, wanted, load)
        if counted is None:
            return
        self._run = replace(self._run, rows=counted.rows, rows_by=counted.by)
        require_rows(counted, wanted.records, f"{self._name} of the cluster", DO)
        if self._ours:
            await tools.schema(self.addresses, "mark", comment=mark_of(wanted))
        self._loaded = wanted
        if not self._warned:
            session.tell(Notice(NOT_RESTORED))
        self._warned = True

    async def _make(
        self,
        session: SessionContext,
        run: PlannedRun,
        tools: CassandraTools,
        wanted: Records,
        load: Load,
    ) -> RowCount | None:
        """A table of iolab's own with the records; None at a request to stop."""
        await tools.schema(
            self.addresses,
            "create",
            replication=self._settings.replication,
            fields=wanted.fields,
            comment=MADE_BY,
        )
        self._ours = True
        return await self._load(session, run, tools, wanted, load)

    async def _fill(
        self,
        session: SessionContext,
        run: PlannedRun,
        tools: CassandraTools,
        wanted: Records,
        load: Load,
    ) -> RowCount | None:
        """The user's own table as it is, loaded where it is empty; None at a request to stop."""
        counted = await self._count(tools, wanted)
        return counted if counted.rows else await self._load(session, run, tools, wanted, load)

    async def _load(
        self,
        session: SessionContext,
        run: PlannedRun,
        tools: CassandraTools,
        wanted: Records,
        load: Load,
    ) -> RowCount | None:
        session.begin(Phase.LAY_OUT, run, f"{wanted} into {self._name} of the cluster")
        await load()
        if session.stop.requested:
            return None
        session.begin(Phase.PROVE, run, f"that {self._name} holds {wanted}")
        return await session.stop.unless_requested(self._count(tools, wanted))

    async def _count(self, tools: CassandraTools, wanted: Records) -> RowCount:
        return await count_rows(
            lambda ranges, sample: tools.rows(self.addresses, ranges, sample), wanted.records
        )


def _with_port(address: str, port: int) -> str:
    """HOST:PORT of an address that may lack its port; `[::1]` and `::1` are one host."""
    host, _, last = address.rpartition(":")
    if last.isdecimal() and host and (":" not in host or host.endswith("]")):
        return address
    bare = address.strip("[]")
    return f"{f'[{bare}]' if ':' in bare else bare}:{port}"
