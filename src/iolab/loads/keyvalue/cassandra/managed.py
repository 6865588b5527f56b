"""One real node of Apache Cassandra that iolab starts, fills, restores and stops on the target.

All that it has lies in `cassandra` below the session's folder on its host: `golden-…`, loaded once,
flushed, compacted and counted, then stopped; and `live`, a copy of that for every run.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, Final

from iolab.core.events import Notice, SessionPhase
from iolab.core.run import CacheDropProof, PlannedRun
from iolab.errors import EngineError, HostError
from iolab.hosts.telemetry import CounterCollector
from iolab.loads.keyvalue.cassandra.node import CassandraNode, CassandraNodePlan
from iolab.loads.keyvalue.cassandra.node_host import (
    CassandraHostSetup,
    CassandraNodeFolder,
    _install_and_check_node_host,
    find_or_open_node_folder,
    parse_supported_version,
)
from iolab.loads.keyvalue.cassandra.server import (
    PRODUCT,
    KeyValueServer,
    RecordInserter,
    RecordSet,
    count_table_rows,
    create_table,
    record_set_of_run,
    require_rows,
)
from iolab.loads.keyvalue.cassandra.tools import CounterRelay
from iolab.loads.keyvalue.databases import (
    copy_folder_by_reflink_if_possible,
    drop_folder_cache,
    read_folder_marker,
    remove_folder,
    sync_and_mark_folder_complete,
)
from iolab.loads.keyvalue.java import InstallKit, install_java_kit_jars
from iolab.loads.keyvalue.workload import ServerRunDetails, ServerSettings
from iolab.session.context import SessionContext
from iolab.targets.work_directory import WorkDirectory

START_EXPECTED_S: Final = 10.0
"""From the restore to a node that answers, as it was seen on two cores."""

LONGEST_INTERVAL_MS: Final = 5000
"""Between its counters, whatever the hosts' own interval is: a run's last ones are waited for."""

ROOM_HINT: Final = "See what it says: make room on the target, or give it more memory."

LOST_HINT: Final = "See in what YCSB said why records were not stored, and run again."


class ManagedServer(KeyValueServer):
    """See `KeyValueServer`; `kits` brings jars to hosts."""

    cache_proof: CacheDropProof | None = None

    def __init__(self, settings: ServerSettings, kits: InstallKit = install_java_kit_jars) -> None:
        self._settings = settings
        self._version = parse_supported_version(settings.version)
        self._kits = kits
        self._node_folder: CassandraNodeFolder | None = None
        self._node_setup: CassandraHostSetup | None = None
        self._node: CassandraNode | None = None
        self._gated_counters = CounterRelay()
        self.server_run = self._new_server_run_details()

    @property
    def addresses(self) -> tuple[str, ...]:
        """Where clients find it."""
        listen = self._settings.listen
        return (f"{f'[{listen}]' if ':' in listen else listen}:{self._settings.port}",)

    @property
    def host(self) -> str:
        """The host of the study on which it runs; "" before its first run."""
        return self._node_folder.host_name if self._node_folder else ""

    @property
    def pid(self) -> int | None:
        """The process id of the node on its host, None without one."""
        return self._node.pid if self._node else None

    async def prepare_run(
        self,
        session: SessionContext,
        run: PlannedRun,
        workdirs: Sequence[WorkDirectory],
        record_inserter: RecordInserter,
    ) -> None:
        """The node of before killed, its files restored, itself started; loaded first on need."""
        self.server_run = self._new_server_run_details()
        self.cache_proof = None
        try:
            await self._kill_node()
            workdir = await self._find_or_open_work_directory(session, run, workdirs)
            if self._node_setup is None:
                setup = _install_and_check_node_host(
                    session, workdir, self._settings, self._version, self._kits
                )
                self._node_setup = await setup
            self.update_server_run_details(java=self._node_setup.java_version_text)
            wanted = record_set_of_run(run)
            marker = await self._filled_store_marker(workdir, wanted)
            if marker is None:
                await self._fill_store(session, run, workdir, wanted, record_inserter)
            else:
                self.update_server_run_details(
                    rows=marker.get("rows"), rows_by=str(marker.get("rows_by", ""))
                )
            if not session.stop.is_requested:
                await self._restore_and_start(session, run, workdir, wanted)
        except (HostError, EngineError) as fault:
            self.update_server_run_details(error=fault.message)
            # The next one looks anew at what may have been the reason.
            self._node_setup = None
            await self._kill_node()
            raise

    @asynccontextmanager
    async def sample_counters(
        self,
        session: SessionContext,
        run: PlannedRun,  # noqa: ARG002 - the protocol's
        counters: CounterCollector,
        host_index_by_name: Mapping[str, int],
    ) -> AsyncIterator[None]:
        """Its counters are collected every interval of the study's telemetry."""
        node = self._node
        index = host_index_by_name.get(self.host)
        if node is None or index is None:
            yield
            return
        self._gated_counters.relay_counters_from_now(counters, index, node.newest)
        try:
            yield
        finally:
            self._gated_counters.drop_counters_from_now()
            if not node.is_counter_reader_alive and node.failure_text() is None:
                session.emit(Notice("The counters of Cassandra broke off in a run, which went on."))

    async def record_final_statistics(self, session: SessionContext, run: PlannedRun) -> None:  # noqa: ARG002
        """The statistics after the load, and whether it still lives."""
        newest = (
            await self._node.wait_for_next_counters()
            if self._node and not self.failure_text()
            else None
        )
        statistics = newest.statistics if newest else ()
        self.update_server_run_details(statistics_after=statistics, error=self.failure_text())

    def failure_text(self) -> str | None:
        """A sentence once it has died since it was ready."""
        return self._node.failure_text() if self._node else None

    async def stop_and_list_leftovers(self) -> tuple[str, ...]:
        """Stop the node and remove what it ran on; what was loaded is left to the folder's end."""
        faults: list[str] = []
        try:
            await self._kill_node()
            if self._node_folder is not None:
                await _remove_live_folders(self._node_folder.workdir)
                await self._node_folder.close_scratch_folder()
        except (HostError, EngineError) as fault:
            faults.append(str(fault))
        self._node_folder = self._node_setup = None
        return tuple(faults)

    def _new_server_run_details(self) -> ServerRunDetails:
        settings = self._settings
        return ServerRunDetails(
            PRODUCT,
            settings.version,
            self.addresses[0],
            memory_bytes=settings.memory_bytes,
        )

    async def _find_or_open_work_directory(
        self, session: SessionContext, run: PlannedRun, workdirs: Sequence[WorkDirectory]
    ) -> WorkDirectory:
        """Its work directory, which is another for other clients, or once a host was lost."""
        before = self._node_folder
        self._node_folder = await find_or_open_node_folder(
            session, run, workdirs, self._settings, before
        )
        if before is not None and before.workdir.host is not self._node_folder.workdir.host:
            self._node_setup = None
            await before.close_scratch_folder()
        self.update_server_run_details(host=self._node_folder.host_name)
        return self._node_folder.workdir

    async def _filled_store_marker(
        self, workdir: WorkDirectory, record_set: RecordSet
    ) -> Mapping[str, Any] | None:
        """The marker of the records, whole, of this version and these settings; else None."""
        marker = await read_folder_marker(workdir.host, _filled_data_folder(workdir, record_set))
        if marker is None or {**marker, **self._expected_marker(record_set)} != marker:
            return None
        return marker

    def _expected_marker(self, record_set: RecordSet) -> Mapping[str, Any]:
        return {
            "product": PRODUCT,
            "version": self._version.text,
            "keyspace": self._settings.keyspace,
            "replication": self._settings.replication,
            **record_set.marker_document,
        }

    async def _fill_store(
        self,
        session: SessionContext,
        run: PlannedRun,
        workdir: WorkDirectory,
        record_set: RecordSet,
        record_inserter: RecordInserter,
    ) -> None:
        """Load, flush, compact, count and stop; what does not get through is loaded anew."""
        session.begin_session_phase(
            SessionPhase.LAY_OUT, run, f"{record_set} into Cassandra {self._version.text}"
        )
        folder = _filled_data_folder(workdir, record_set)
        await remove_folder(workdir.host, folder)
        node = await self._start_node(session, workdir, folder)
        tools = self._require_node_setup.tool_runner
        await create_table(tools, self.addresses, record_set)
        await self._insert_or_raise_node_failure(record_inserter)
        if session.stop.is_requested:
            return
        session.begin_session_phase(
            SessionPhase.PROVE, run, f"that Cassandra holds {record_set}, flushed and compacted"
        )
        await session.stop.run_unless_stopped(tools.flush_and_compact(node.plan.jmx_port))
        counting = count_table_rows(tools, self.addresses, record_set.records)
        counted = await session.stop.run_unless_stopped(counting)
        where = f"in Cassandra on host '{workdir.name}'"
        require_rows(counted, record_set.records, where, LOST_HINT)
        await node.stop()
        self._node = None
        rows = {"rows": counted.rows, "rows_by": counted.method}
        await sync_and_mark_folder_complete(
            workdir.host, folder, {**self._expected_marker(record_set), **rows}
        )
        self.update_server_run_details(**rows)

    async def _insert_or_raise_node_failure(self, record_inserter: RecordInserter) -> None:
        """The load; where the node died of it, its own words tell why."""
        try:
            await record_inserter()
        except EngineError as fault:
            if died := self.failure_text():
                raise EngineError(died, ROOM_HINT) from fault
            raise
        if died := self.failure_text():
            raise EngineError(died, ROOM_HINT)

    async def _restore_and_start(
        self,
        session: SessionContext,
        run: PlannedRun,
        workdir: WorkDirectory,
        record_set: RecordSet,
    ) -> None:
        """The loaded files as they were, no page of them in memory, and a node that serves them."""
        doing = f"Cassandra {self._version.text} starts on {record_set}"
        session.begin_session_phase(SessionPhase.LAY_OUT, run, doing, START_EXPECTED_S)
        live = _live_data_folder(workdir)
        cloning = copy_folder_by_reflink_if_possible(
            workdir.host, _filled_data_folder(workdir, record_set), live
        )
        self.update_server_run_details(restored_by=await session.stop.run_unless_stopped(cloning))
        if session.study.method.drop_caches:
            self.cache_proof = await drop_folder_cache(
                workdir, f"{live}/data/{self._settings.keyspace}"
            )
        node = await self._start_node(session, workdir, live)
        if node.newest is not None:
            self.update_server_run_details(statistics_before=node.newest.statistics)

    async def _start_node(
        self, session: SessionContext, workdir: WorkDirectory, root: str
    ) -> CassandraNode:
        """A node on that folder, which answers."""
        setup = self._require_node_setup
        plan = CassandraNodePlan(
            settings=self._settings,
            version=self._version,
            data_folder=root,
            config_folder=_configuration_folder(workdir),
            jars=setup.jars,
            storage_port=setup.storage_port,
            jmx_port=setup.jmx_port,
        )
        interval_ms = min(session.study.telemetry.interval_ms, LONGEST_INTERVAL_MS)
        self._node = CassandraNode(
            plan, setup.tool_runner, interval_ms, self._gated_counters.forward
        )
        await self._node.start()
        return self._node

    async def _kill_node(self) -> None:
        if self._node is not None:
            await self._node.kill()
        self._node = None

    @property
    def _require_node_setup(self) -> CassandraHostSetup:
        if self._node_setup is None:
            raise ValueError("a node is started after its host was equipped")
        return self._node_setup


def _server_folder(workdir: WorkDirectory) -> str:
    return f"{workdir.dir}/cassandra"


def _live_data_folder(workdir: WorkDirectory) -> str:
    return f"{_server_folder(workdir)}/live"


def _configuration_folder(workdir: WorkDirectory) -> str:
    return f"{_server_folder(workdir)}/conf"


async def _remove_live_folders(workdir: WorkDirectory) -> None:
    """A folder that is kept is kept for what was loaded: nothing else is of use later."""
    for folder in (_live_data_folder(workdir), _configuration_folder(workdir)):
        if not workdir.host.lost_reason:
            await remove_folder(workdir.host, folder)


def _filled_data_folder(workdir: WorkDirectory, record_set: RecordSet) -> str:
    return f"{_server_folder(workdir)}/golden-{record_set.file_name_part}"
