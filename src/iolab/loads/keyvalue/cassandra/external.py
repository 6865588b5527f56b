"""The cluster that the user has: a table of iolab's own in it, and nothing else of it touched.

Nothing can be restored there: a run finds what the runs before it have left, and the cluster's
caches as they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from iolab.core.events import Notice, SessionPhase
from iolab.core.run import PlannedRun
from iolab.errors import EngineError, HostError
from iolab.loads.keyvalue.cassandra.server import (
    COMMENT_PREFIX,
    PRODUCT,
    KeyValueServer,
    RecordInserter,
    RecordSet,
    RowCount,
    count_table_rows,
    create_table,
    is_created_by_iolab,
    is_filled_by_iolab,
    record_set_of_run,
    require_columns,
    require_keyspace_replication,
    require_rows,
    table_comment,
)
from iolab.loads.keyvalue.cassandra.tools import TABLE, KitJavaToolRunner, SchemaReply
from iolab.loads.keyvalue.java import (
    YCSB_VERSION,
    InstallKit,
    JavaKitName,
    find_java,
    install_java_kit_jars,
)
from iolab.loads.keyvalue.workload import ServerRunDetails, ServerSettings
from iolab.session.context import SessionContext
from iolab.targets.work_directory import WorkDirectory
from iolab.text import excerpt

OLDEST_JAVA: Final = 8
"""What iolab's own tools are compiled for; the cluster's Java is its owner's affair."""

NOT_RESTORED: Final = (
    "The cluster is not restored between runs: each finds what those before it wrote, and caches "
    "as they are."
)

HINT: Final = "Name another server.keyspace, which iolab makes and fills, or set records to match."


class ExternalServer(KeyValueServer):
    """See `KeyValueServer`; `kits` brings jars to hosts.

    The first client asks the cluster for all.
    """

    def __init__(self, settings: ServerSettings, kits: InstallKit = install_java_kit_jars) -> None:
        self._settings = settings
        self._kits = kits
        self._tools: KitJavaToolRunner | None = None
        self._loaded: RecordSet | None = None
        self._is_table_ours = False
        self._keeps_table = False
        self._has_warned = False
        self.server_run = ServerRunDetails(PRODUCT, "", ",".join(self.addresses))

    @property
    def addresses(self) -> tuple[str, ...]:
        """Where clients find it, each with its port."""
        return tuple(
            _with_port(address, self._settings.port) for address in self._settings.addresses
        )

    async def prepare_run(
        self,
        session: SessionContext,
        run: PlannedRun,
        workdirs: Sequence[WorkDirectory],
        record_inserter: RecordInserter,
    ) -> None:
        """It answers, and the table is there with the run's records; loaded when they are not."""
        self._keeps_table = session.study.target.keep_files
        self.update_server_run_details(error=None)
        try:
            tools = await self._get_or_install_tool_runner(session, workdirs[0])
            schema = await tools.run_schema_action(self.addresses, "describe")
            self.update_server_run_details(version=excerpt(schema.version, 40))
            require_keyspace_replication(schema, self._settings)
            wanted = record_set_of_run(run)
            if self._loaded == wanted and schema.columns is not None:
                require_columns(schema, wanted, self._settings)
            else:
                await self._rebuild_or_verify_table(
                    session, run, tools, schema, wanted, record_inserter
                )
        except (HostError, EngineError) as fault:
            self.update_server_run_details(error=fault.message)
            raise

    async def stop_and_list_leftovers(self) -> tuple[str, ...]:
        """Drop the table that iolab made, with a keyspace that has no other, unless it is kept."""
        tools, ours = self._tools, self._is_table_ours
        self._tools, self._loaded, self._is_table_ours = None, None, False
        if tools is None or not ours or self._keeps_table:
            return ()
        where = f"The table {self._table_name} of the cluster was not dropped."
        if tools.host.lost_reason:
            return (f"{where} {tools.host.lost_reason}",)
        try:
            await tools.run_schema_action(self.addresses, "drop", comment=COMMENT_PREFIX)
        except (HostError, EngineError) as fault:
            return (f"{where} {fault.message}",)
        return ()

    @property
    def _table_name(self) -> str:
        return f"{self._settings.keyspace}.{TABLE}"

    async def _get_or_install_tool_runner(
        self, session: SessionContext, workdir: WorkDirectory
    ) -> KitJavaToolRunner:
        """Java and iolab's tools on the host that asks, once for each connection to it."""
        if self._tools is None or self._tools.host is not workdir.host:
            await find_java(workdir.host, self._settings.java, oldest_release=OLDEST_JAVA)
            jars = await self._kits(
                workdir.host,
                JavaKitName.YCSB,
                YCSB_VERSION,
                workdir.dir,
                lambda text: session.emit(Notice(text)),
            )
            self._tools = KitJavaToolRunner(workdir.host, self._settings, jars)
        return self._tools

    async def _rebuild_or_verify_table(
        self,
        session: SessionContext,
        run: PlannedRun,
        tools: KitJavaToolRunner,
        schema: SchemaReply,
        record_set: RecordSet,
        record_inserter: RecordInserter,
    ) -> None:
        """The wanted records in the table, by whoever put them there; counted in any case."""
        self._loaded = None
        self._is_table_ours = is_created_by_iolab(schema)
        counted = (
            await self._count_or_estimate_rows(tools, record_set)
            if is_filled_by_iolab(schema, record_set)
            else None
        )
        if self._is_table_ours and (
            counted is None or not counted.is_compatible_with(record_set.records)
        ):
            # Of other records, changed since, or half a load of a session that died.
            schema = await tools.run_schema_action(self.addresses, "drop", comment=COMMENT_PREFIX)
        if schema.columns is None:
            await create_table(tools, self.addresses, record_set)
            self._is_table_ours, counted = True, None
        elif counted is None:
            # The user's own table as it is, loaded where it is empty.
            require_columns(schema, record_set, self._settings)
            counted = await self._count_or_estimate_rows(tools, record_set)
        if counted is None or not counted.rows:
            session.begin_session_phase(
                SessionPhase.LAY_OUT, run, f"{record_set} into {self._table_name} of the cluster"
            )
            await record_inserter()
            if session.stop.is_requested:
                return
            session.begin_session_phase(
                SessionPhase.PROVE, run, f"that {self._table_name} holds {record_set}"
            )
            counted = await session.stop.run_unless_stopped(
                self._count_or_estimate_rows(tools, record_set)
            )
        self.update_server_run_details(rows=counted.rows, rows_by=counted.method)
        require_rows(counted, record_set.records, f"{self._table_name} of the cluster", HINT)
        if self._is_table_ours:
            await tools.run_schema_action(self.addresses, "mark", comment=table_comment(record_set))
        self._loaded = record_set
        if not self._has_warned:
            session.emit(Notice(NOT_RESTORED))
        self._has_warned = True

    async def _count_or_estimate_rows(
        self, tools: KitJavaToolRunner, record_set: RecordSet
    ) -> RowCount:
        return await count_table_rows(tools, self.addresses, record_set.records)


def _with_port(address: str, port: int) -> str:
    """HOST:PORT of an address that may lack its port; `[::1]` and `::1` are one host."""
    host, _, last = address.rpartition(":")
    if last.isdecimal() and host and (":" not in host or host.endswith("]")):
        return address
    bare = address.strip("[]")
    return f"{f'[{bare}]' if ':' in bare else bare}:{port}"
