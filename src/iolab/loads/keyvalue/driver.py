"""How load on key-value stores is made in a session: YCSB's driver, and that of db_bench.

YCSB is a process on each client, against RocksDB inside of it or against a server of all. Where the
store is embedded, each client has a database of its own on its own target, which is loaded once and
copied before each run. Else clients share a server, and load it together.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from typing import Final
from weakref import WeakKeyDictionary

from msgspec.structs import replace

from iolab.core.events import Notice, SessionPhase
from iolab.core.run import CACHE_NOT_DROPPED, PlannedRun, RunRecord
from iolab.core.study import Method
from iolab.errors import EngineError, HostError
from iolab.hosts.barrier import gather_hosts, run_with_background
from iolab.hosts.host import Host
from iolab.hosts.intervals import IntervalLog
from iolab.hosts.remote_process import run_and_get_output
from iolab.hosts.telemetry import CounterCollector
from iolab.loads.keyvalue.cassandra.external import ExternalServer
from iolab.loads.keyvalue.cassandra.managed import ManagedServer
from iolab.loads.keyvalue.cassandra.server import KeyValueServer
from iolab.loads.keyvalue.cost import DB_BENCH_OVERRUN_S, ycsb_execution_limit_s
from iolab.loads.keyvalue.databases import (
    GoldenDatabase,
    copy_folder_by_reflink_if_possible,
    drop_folder_caches_if_requested,
    fill_or_copy_golden_database,
    find_current_golden_database,
    golden_database_folder,
    read_and_verify_user_database_shape,
    remove_folder,
    total_file_bytes_in_folder,
)
from iolab.loads.keyvalue.db_bench.engine import (
    DbBenchTask,
    RocksdbVersionCache,
    SeedRange,
    bench_command,
    bench_seed_range,
    derived_seed,
    fill_seed_range,
    next_free_seed,
    run_bench,
)
from iolab.loads.keyvalue.db_bench.evidence import BenchRunRequest
from iolab.loads.keyvalue.java import InstallKit, install_java_kit_jars
from iolab.loads.keyvalue.workload import (
    DB_BENCH_ENGINE,
    YCSB_ENGINE,
    DbBenchJob,
    KeyValueHostDetails,
    ServerKind,
    ServerSettings,
    TableShape,
    YcsbJob,
    server_settings_or_embedded,
)
from iolab.loads.keyvalue.ycsb.clients import (
    DatabaseStartState,
    EmbeddedStores,
    YcsbClients,
    YcsbInstaller,
    YcsbOutputCollector,
    database_copy_folder,
    insert_records,
    never_failing_probe,
    split_records,
    ycsb_work_folder,
)
from iolab.loads.keyvalue.ycsb.engine import YcsbStore, build_measurement_command, latency_log_names
from iolab.loads.keyvalue.ycsb.hdr_log import HdrLog, parse_hdr_log
from iolab.loads.keyvalue.ycsb.output import (
    intervals_from_hdr_logs,
    parse_ycsb_output,
    ycsb_run_faults,
)
from iolab.record import Record
from iolab.session.context import SessionContext
from iolab.session.driver import HostRunInProgress, LoadDriver, run_on_each_host
from iolab.session.kinds import LoadSessionKind
from iolab.session.start import (
    HostStartTime,
    require_clock_offset,
    run_load_with_common_start,
    watch_for_background_io,
)
from iolab.study.cost import ASSUMED_WRITE_BYTES_PER_S
from iolab.study.targets import monitored_host_specs
from iolab.targets.work_directory import WorkDirectory
from iolab.text import excerpt
from iolab.units import NS_PER_S, format_bytes

NO_SEED: Final = 0
"""YCSB 0.17.0 draws its keys from random streams that cannot be given a seed."""

SHARE_MIN: Final = 0.5
"""Of the runtime: clients that met for less were never one fleet."""

OUTPUT_HINT: Final = "See what YCSB printed in the session's folder, and run again."

LATENCY_LOG_PREFIX: Final = "latency."
"""Names of latency logs begin so."""

WRITTEN_TIMES: Final = 3
"""How often a load writes every byte: as it comes, when it is sorted, when it is compacted."""

REPORT: Final = "report.csv"


class YcsbClientRun(Record):
    """What is known of one client's part: its job, its logs' names, its database at the start."""

    job: YcsbJob
    seconds: int
    latency_log_names: tuple[str, ...]
    start_state: DatabaseStartState | None
    output_collector: YcsbOutputCollector


def fill_in_ycsb_results_and_list_faults(
    host_run: HostRunInProgress, client_run: YcsbClientRun
) -> tuple[str, ...]:
    """Fill in what a client's output and latency logs tell; why it is not what was requested.

    A client that was halted is not held against its job: it has no summary, and its logs end early.
    """
    output = parse_ycsb_output(
        bytes(client_run.output_collector.stdout), bytes(client_run.output_collector.stderr)
    )
    logs = [
        _read_latency_log(host_run, name)
        for name in client_run.latency_log_names
        if name in host_run.files
    ]
    intervals = intervals_from_hdr_logs(logs)
    host_run.intervals = IntervalLog.from_intervals(intervals)
    if intervals:
        first, last = intervals[0], intervals[-1]
        host_run.span = (first.end_real_ns - first.span_ns, last.end_real_ns)
    halted = host_run.ending is None or host_run.ending.was_halted
    faults = () if halted else ycsb_run_faults(output, client_run.job, logs, client_run.seconds)
    reply = KeyValueHostDetails(
        counts=output.operation_counts,
        seed=NO_SEED,
        copied_by=client_run.start_state.copy_method if client_run.start_state else "",
        start=client_run.start_state.shape if client_run.start_state else None,
        statistics=output.statistics,
        reported_ops_per_s=output.reported_ops_per_s,
        reported_s=output.reported_s,
        faults=faults,
    )
    host_run.details = reply
    return faults


def require_common_window(host_runs: Sequence[HostRunInProgress], method: Method) -> None:
    """EngineError unless all clients had the warm-up and half the runtime in common, by their logs.

    Clients get time enough for all of it; what lacks beyond that is for the checks to judge.
    """
    spans = [
        (
            host_run.span[0] - require_clock_offset(host_run).offset_ns,
            host_run.span[1] - require_clock_offset(host_run).offset_ns,
        )
        for host_run in host_runs
        if host_run.span
    ]
    common_s = 0.0
    if len(spans) == len(host_runs):
        common_ns = min(end for _, end in spans) - max(start for start, _ in spans)
        common_s = max(common_ns, 0) / NS_PER_S
    if common_s < method.warmup_s + SHARE_MIN * method.runtime_s:
        wanted_s = method.warmup_s + method.runtime_s
        raise EngineError(
            f"All clients together measured for {common_s:.1f} s, and {wanted_s:g} s of warm-up "
            "and runtime were requested: one of them came to its start too late.",
            "See that no client is busy with anything else, and run again.",
        )


def _read_latency_log(host_run: HostRunInProgress, log_name: str) -> HdrLog:
    return parse_hdr_log(host_run.files[log_name].decompress())


Servers = Callable[[ServerSettings], KeyValueServer | None]


def make_key_value_server(settings: ServerSettings) -> KeyValueServer | None:
    """A new server, not started yet; None where the store is embedded in the clients.

    EngineError for a version of Cassandra that iolab does not know.
    """
    if settings.kind is ServerKind.MANAGED:
        return ManagedServer(settings)
    if settings.kind is ServerKind.EXTERNAL:
        return ExternalServer(settings)
    return None


class YcsbDriver(LoadDriver):
    """YCSB on all clients of a run; see `LoadDriver`."""

    def __init__(
        self, servers: Servers = make_key_value_server, kits: InstallKit = install_java_kit_jars
    ) -> None:
        self._servers = servers
        self._server: KeyValueServer | None = None
        self._tools = YcsbInstaller(kits)
        self._embedded = EmbeddedStores()

    async def do_steps_before_load(
        self, session: SessionContext, run: PlannedRun, host_runs: Sequence[HostRunInProgress]
    ) -> None:
        """YCSB on every client, the store loaded and in its start state, the devices idle."""
        session.begin_session_phase(SessionPhase.PROVE, run, "YCSB and Java on every client")
        await run_on_each_host(
            host_runs,
            lambda host_run: self._find_or_install_ycsb_and_set_version(session, host_run),
        )

        async def recreate_work_folder(host_run: HostRunInProgress) -> None:
            # A log of the run before must not be read as this one's.
            await remove_folder(host_run.workdir.host, ycsb_work_folder(host_run.workdir))
            await run_and_get_output(
                host_run.workdir.host, ("mkdir", "--", ycsb_work_folder(host_run.workdir))
            )

        await run_on_each_host(host_runs, recreate_work_folder)
        if session.stop.is_requested:
            return
        if server_settings_or_embedded(session.study).kind is ServerKind.EMBEDDED:
            tools = {
                host_run.name: self._tools.install_found_before(host_run.workdir)
                for host_run in host_runs
            }
            await self._embedded.fill_missing_and_copy_databases(
                session, run, YcsbJob.require_type(run.point.job), host_runs, tools
            )
        else:
            await self._prepare_server_for_run(session, run, host_runs)
        if not session.stop.is_requested:
            await watch_for_background_io(session, run, host_runs)

    async def measure(
        self,
        session: SessionContext,
        run: PlannedRun,
        host_runs: Sequence[HostRunInProgress],
        counters: CounterCollector,
    ) -> None:
        """All clients at once; what each of them did in every second comes from its own logs."""
        job, server = YcsbJob.require_type(run.point.job), self._server
        seconds = ycsb_execution_limit_s(
            session.study.method, server_settings_or_embedded(session.study).kind, len(host_runs)
        )
        session.begin_session_phase(SessionPhase.MEASURE, run, run.point.title_text, float(seconds))
        for host_run in host_runs:
            self._set_client_command(session, job, host_run, seconds)
        clients = YcsbClients(session, run, host_runs, counters, record_bytes=job.record_bytes)
        failure: HostError | EngineError | None = None
        try:
            async with self._sample_server_counters(session, run, host_runs, counters):
                await clients.measure(server.failure_text if server else never_failing_probe)
        except (HostError, EngineError) as raised:
            failure = raised
        if server:
            await server.record_final_statistics(session, run)
        failure = await self._collect_results_and_clean_up(
            clients, job, host_runs, seconds, failure
        )
        if failure:
            raise failure
        if not session.stop.is_requested:
            require_common_window(host_runs, session.study.method)

    def with_load_details(self, record: RunRecord) -> RunRecord:
        """With what the server told around the run, unless the store is embedded."""
        return replace(record, details=self._server.server_run) if self._server else record

    async def close_and_list_failures(self) -> tuple[str, ...]:
        """Stop the server that iolab started; what could not be ended."""
        server, self._server = self._server, None
        return await server.stop_and_list_leftovers() if server else ()

    async def _find_or_install_ycsb_and_set_version(
        self, session: SessionContext, host_run: HostRunInProgress
    ) -> None:
        tools = await self._tools.find_or_install(
            host_run.workdir,
            server_settings_or_embedded(session.study),
            lambda text: session.emit(Notice(text)),
        )
        host_run.engine_version = tools.ycsb_and_java_text

    async def _prepare_server_for_run(
        self, session: SessionContext, run: PlannedRun, host_runs: Sequence[HostRunInProgress]
    ) -> None:
        """A server that answers, with all records in it."""
        settings = server_settings_or_embedded(session.study)
        server = self._server = self._server or self._servers(settings)
        if server is None:
            raise EngineError(
                f"There is no server of the kind '{settings.kind}'.",
                "Use another server.kind.",
            )
        job = YcsbJob.require_type(run.point.job)

        async def insert_all_records() -> None:
            store = self._ycsb_store_settings(session, "")
            records = split_records(job.records, len(host_runs))
            await insert_records(
                session,
                run,
                list(zip(host_runs, records, strict=True)),
                lambda workdir: self._tools.install_found_before(workdir).kit,
                lambda _: store,
            )

        await server.prepare_run(
            session, run, [host_run.workdir for host_run in host_runs], insert_all_records
        )
        for host_run in host_runs:
            dropped = server.cache_proof if host_run.name == server.host else None
            host_run.cache_drop = dropped or CACHE_NOT_DROPPED

    def _set_client_command(
        self, session: SessionContext, job: YcsbJob, host_run: HostRunInProgress, seconds: int
    ) -> None:
        """What this client is to run."""
        host_run.command = build_measurement_command(
            job,
            self._ycsb_store_settings(session, database_copy_folder(host_run.workdir)),
            self._tools.install_found_before(host_run.workdir).kit,
            ycsb_work_folder(host_run.workdir),
            seconds=seconds,
            log_prefix=LATENCY_LOG_PREFIX,
        )

    def _ycsb_store_settings(self, session: SessionContext, database_folder: str) -> YcsbStore:
        settings = server_settings_or_embedded(session.study)
        if self._server is None:
            return YcsbStore(settings.kind, database=database_folder)
        return YcsbStore(
            settings.kind,
            addresses=self._server.addresses,
            keyspace=settings.keyspace,
            replication=settings.replication,
            consistency=settings.consistency,
        )

    def _sample_server_counters(
        self,
        session: SessionContext,
        run: PlannedRun,
        host_runs: Sequence[HostRunInProgress],
        counters: CounterCollector,
    ) -> AbstractAsyncContextManager[None]:
        """The server's own counters, by the number of the host on which it runs."""
        if self._server is None:
            return nullcontext()
        beside = monitored_host_specs(session.study, run.point.configuration)
        names = (*(host_run.name for host_run in host_runs), *(spec.name for spec in beside))
        return self._server.sample_counters(
            session, run, counters, {name: index for index, name in enumerate(names)}
        )

    async def _collect_results_and_clean_up(
        self,
        clients: YcsbClients,
        job: YcsbJob,
        host_runs: Sequence[HostRunInProgress],
        seconds: int,
        failure: HostError | EngineError | None,
    ) -> HostError | EngineError | None:
        """Read all that the clients left; the run's failure, or what speaks against it by that."""
        names = latency_log_names(job, LATENCY_LOG_PREFIX)

        async def parse_and_set_results_of_client(host_run: HostRunInProgress) -> None:
            start = self._embedded.start_state_of_client(host_run)
            client = YcsbClientRun(
                job, seconds, names, start, clients.output_collector_by_host[host_run.name]
            )
            faults = fill_in_ycsb_results_and_list_faults(host_run, client)
            # What is wrong with the outputs of a run that failed follows from that.
            if faults and failure is None:
                reason = excerpt("; ".join(faults)).rstrip(".")
                raise EngineError(f"YCSB on host '{host_run.name}': {reason}.", OUTPUT_HINT)

        async def remove_client_folders(host_run: HostRunInProgress) -> None:
            if not host_run.workdir.host.lost_reason:
                await self._embedded.remove_database_copy(host_run)
                await remove_folder(host_run.workdir.host, ycsb_work_folder(host_run.workdir))

        first_failure = failure
        for step in (
            clients.fetch_files(names),
            run_on_each_host(host_runs, parse_and_set_results_of_client),
            run_on_each_host(host_runs, remove_client_folders),
        ):
            try:
                await step
            except (HostError, EngineError) as raised:
                first_failure = first_failure or raised
        return first_failure


class DbBenchDriver(LoadDriver):
    """One db_bench on each client; see `LoadDriver`."""

    def __init__(self) -> None:
        self._programs = RocksdbVersionCache()
        self._loads: set[SeedRange] = set()
        self._tasks: set[SeedRange] = set()
        self._versions: dict[str, str] = {}
        self._golden_databases: dict[str, GoldenDatabase] = {}
        self._copied_by: dict[str, str] = {}
        self._sources: WeakKeyDictionary[Host, dict[str, TableShape]] = WeakKeyDictionary()
        self._failed: WeakKeyDictionary[Host, dict[str, tuple[str, str]]] = WeakKeyDictionary()

    async def do_steps_before_load(
        self, session: SessionContext, run: PlannedRun, host_runs: Sequence[HostRunInProgress]
    ) -> None:
        """Programs there, databases whole, a copy for the run, caches dropped, devices idle."""
        for phase in (
            self._read_and_store_versions,
            self._find_or_fill_databases,
            self._copy_databases,
            _drop_caches,
            watch_for_background_io,
        ):
            if not session.stop.is_requested:
                await phase(session, run, host_runs)

    async def measure(
        self,
        session: SessionContext,
        run: PlannedRun,
        host_runs: Sequence[HostRunInProgress],
        counters: CounterCollector,
    ) -> None:
        """db_bench on all clients from one moment on; it prints no rate of the fleet."""
        method = session.study.method
        seconds = math.ceil(method.warmup_s + method.runtime_s) + DB_BENCH_OVERRUN_S
        session.begin_session_phase(SessionPhase.MEASURE, run, run.point.title_text, float(seconds))
        halt = asyncio.Event()
        cells = {
            host_run.name: self._create_client_task_with_fresh_seed(session, run, host_run, seconds)
            for host_run in host_runs
        }

        async def run_bench_on_host(host_run: HostRunInProgress, go: HostStartTime) -> None:
            await run_bench(session, run, host_run, cells[host_run.name], go, halt)

        try:
            await run_load_with_common_start(session, host_runs, counters, run_bench_on_host, halt)
        finally:
            await _remove_run_folders(host_runs)

    async def _read_and_store_versions(
        self, session: SessionContext, run: PlannedRun, host_runs: Sequence[HostRunInProgress]
    ) -> None:
        session.begin_session_phase(
            SessionPhase.PROVE, run, "db_bench and sst_dump on every client"
        )

        async def set_version_of_host(host_run: HostRunInProgress) -> None:
            self._versions[host_run.name] = await self._programs.cached_version_on_host(
                host_run.workdir, DbBenchJob.require_type(run.point.job)
            )

        await run_on_each_host(host_runs, set_version_of_host)

    async def _find_or_fill_databases(
        self, session: SessionContext, run: PlannedRun, host_runs: Sequence[HostRunInProgress]
    ) -> None:
        """Each client's golden database; those that are not there are loaded, all at once."""
        job = DbBenchJob.require_type(run.point.job)
        self._golden_databases.clear()

        async def set_database_if_found(host_run: HostRunInProgress) -> None:
            source = await self._cached_user_database_shape(host_run, job)
            database = await find_current_golden_database(
                host_run.workdir, job, self._versions[host_run.name], source
            )
            if database is not None:
                self._golden_databases[host_run.name] = database

        await run_on_each_host(host_runs, set_database_if_found)
        missing = [
            host_run for host_run in host_runs if host_run.name not in self._golden_databases
        ]
        if missing:
            await self._fill_missing_databases(session, run, missing)
        for database in self._golden_databases.values():
            if database.fill_seed is not None:
                self._loads.add(fill_seed_range(database.fill_seed))

    async def _cached_user_database_shape(
        self, host_run: HostRunInProgress, job: DbBenchJob
    ) -> TableShape | None:
        """The user's own database, which is looked at once; None where iolab loads one."""
        if not job.database:
            return None
        sources = self._sources.setdefault(host_run.workdir.host, {})
        if golden_database_folder(host_run.workdir, job) not in sources:
            sources[
                golden_database_folder(host_run.workdir, job)
            ] = await read_and_verify_user_database_shape(host_run.workdir, job)
        return sources[golden_database_folder(host_run.workdir, job)]

    async def _fill_missing_databases(
        self,
        session: SessionContext,
        run: PlannedRun,
        host_runs_to_fill: Sequence[HostRunInProgress],
    ) -> None:
        job = DbBenchJob.require_type(run.point.job)
        size = job.loaded.keys * job.loaded.entry_bytes
        size_text = f"{format_bytes(size)} in blocks of {format_bytes(job.loaded.block_bytes)}"
        expected_s = WRITTEN_TIMES * size / ASSUMED_WRITE_BYTES_PER_S
        hosts = (
            "1 host" if len(host_runs_to_fill) == 1 else f"each of {len(host_runs_to_fill)} hosts"
        )
        session.begin_session_phase(
            SessionPhase.LAY_OUT, run, f"database of {size_text} on {hosts}", expected_s
        )
        halt = asyncio.Event()

        async def fill_database_on_client(host_run: HostRunInProgress) -> None:
            database = await self._fill_database(session, run, host_run, halt)
            if database is not None:
                self._golden_databases[host_run.name] = database

        await run_with_background(
            run_on_each_host(host_runs_to_fill, fill_database_on_client),
            session.stop.forward_to_event(halt),
        )

    async def _fill_database(
        self,
        session: SessionContext,
        run: PlannedRun,
        host_run: HostRunInProgress,
        halt: asyncio.Event,
    ) -> GoldenDatabase | None:
        """One client's database, made; what failed once fails at once unless it is retried.

        It would take as long again, for each point, to come to the same end.
        """
        job, version = DbBenchJob.require_type(run.point.job), self._versions[host_run.name]
        folder = golden_database_folder(host_run.workdir, job)
        failed = self._failed.setdefault(host_run.workdir.host, {})
        if folder in failed and run.attempt == 1:
            raise EngineError(*failed[folder])
        # The same on every target of a host, so that configurations have the same database.
        names = ("load", folder.rpartition("/")[2], host_run.name)
        wanted = fill_seed_range(derived_seed(session.study.method.seed, *names))
        seed = next_free_seed(self._tasks, wanted)
        try:
            return await fill_or_copy_golden_database(host_run.workdir, job, version, seed, halt)
        except (EngineError, HostError) as fault:
            failed[folder] = fault.message, fault.hint
            raise

    async def _copy_databases(
        self, session: SessionContext, run: PlannedRun, host_runs: Sequence[HostRunInProgress]
    ) -> None:
        """A copy of each golden database, which is what that is."""
        session.begin_session_phase(
            SessionPhase.LAY_OUT, run, "a copy of the database on every client"
        )

        async def copy_database_on_host(host_run: HostRunInProgress) -> None:
            host, gold = host_run.workdir.host, self._golden_databases[host_run.name]
            await remove_folder(host, run_folder_path(host_run.workdir))
            await run_and_get_output(host, ("mkdir", "--", run_folder_path(host_run.workdir)))
            how = await copy_folder_by_reflink_if_possible(
                host, gold.path, _database_copy_path(host_run.workdir)
            )
            held = await total_file_bytes_in_folder(
                host_run.workdir, _database_copy_path(host_run.workdir)
            )
            if held != gold.file_bytes:
                message = (
                    f"The copy of the database on host '{host_run.name}' is not what was loaded: "
                    f"it has {held} bytes instead of {gold.file_bytes}."
                )
                raise EngineError(message, "Let nobody change files in the scratch folder.")
            self._copied_by[host_run.name] = how

        await session.stop.run_unless_stopped(run_on_each_host(host_runs, copy_database_on_host))

    def _create_client_task_with_fresh_seed(
        self, session: SessionContext, run: PlannedRun, host_run: HostRunInProgress, seconds: int
    ) -> DbBenchTask:
        """What one client is to do, with streams of keys that nobody has used."""
        job, gold = DbBenchJob.require_type(run.point.job), self._golden_databases[host_run.name]
        names = (run.point.digest, run.repeat, run.attempt, host_run.name)
        wanted = bench_seed_range(job, derived_seed(session.study.method.seed, *names))
        seed = next_free_seed(self._loads | self._tasks, wanted)
        self._tasks.add(bench_seed_range(job, seed))
        asked = BenchRunRequest(
            job=job,
            seconds=seconds,
            seed=seed,
            load_seed=gold.fill_seed,
            version=self._versions[host_run.name],
            copy_method=self._copied_by[host_run.name],
            start_shape=gold.shape,
            loaded_tree_bytes=gold.tree_bytes,
        )
        report = f"{run_folder_path(host_run.workdir)}/{REPORT}"
        command = bench_command(
            job,
            host_run.workdir.dir,
            _database_copy_path(host_run.workdir),
            seconds=seconds,
            seed=seed,
            report_file=report,
        )
        return DbBenchTask(asked, command, report)


def run_folder_path(workdir: WorkDirectory) -> str:
    """Where everything of the present run lies on a host."""
    return f"{workdir.dir}/db_bench.cell"


def _database_copy_path(workdir: WorkDirectory) -> str:
    return f"{run_folder_path(workdir)}/database"


async def _drop_caches(
    session: SessionContext, run: PlannedRun, host_runs: Sequence[HostRunInProgress]
) -> None:
    await drop_folder_caches_if_requested(session, run, host_runs, _database_copy_path)


async def _remove_run_folders(host_runs: Sequence[HostRunInProgress]) -> None:
    """Make room again; whatever is left is removed before the next run, or with the session."""
    living = [host_run for host_run in host_runs if not host_run.workdir.host.lost_reason]
    await gather_hosts(
        living,
        lambda host_run: remove_folder(host_run.workdir.host, run_folder_path(host_run.workdir)),
    )


KEY_VALUE: Final = LoadSessionKind(
    driver_factory_by_engine={DB_BENCH_ENGINE: DbBenchDriver, YCSB_ENGINE: YcsbDriver},
)
