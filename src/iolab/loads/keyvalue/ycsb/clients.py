"""The measured phase of YCSB: all clients started at one moment, watched, heard, and read after.

YCSB writes its latency logs into a folder of the run on each client, from which they are fetched
when its process has ended. Of a database that is embedded in the clients' processes, the shape is
what `iolab.ycsb.RocksTool` prints of it.
"""

from __future__ import annotations

import asyncio
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import pairwise
from typing import Any, Final
from weakref import WeakKeyDictionary

from msgspec import to_builtins
from msgspec.structs import replace

from iolab.core.compressed import CompressedBytes
from iolab.core.events import IntervalReported, SessionPhase
from iolab.core.limits import LEVELS_MAX, STREAM_BYTES_MAX
from iolab.core.run import PlannedRun
from iolab.errors import EngineError, Interrupted
from iolab.hosts.barrier import run_with_background, set_event_on_failure
from iolab.hosts.engine import Command
from iolab.hosts.host import Host
from iolab.hosts.message import AgentRefusalError
from iolab.hosts.remote_process import (
    STDERR_TAIL_BYTES,
    ProcessEnding,
    exit_fault_text,
    fetch_file,
    run_and_get_output,
    run_program_or_raise,
)
from iolab.hosts.telemetry import CounterCollector
from iolab.loads.keyvalue.databases import (
    copy_folder_by_reflink_if_possible,
    drop_folder_caches_if_requested,
    parse_store_shape,
    read_folder_marker,
    remove_folder,
    sync_and_mark_folder_complete,
)
from iolab.loads.keyvalue.java import (
    INSTALL_JAVA,
    YCSB_VERSION,
    InstallKit,
    JavaInstallation,
    JavaKitName,
    find_java,
    install_java_kit_jars,
)
from iolab.loads.keyvalue.table import LOAD_ONLY
from iolab.loads.keyvalue.workload import (
    YCSB_ENGINE,
    LevelShape,
    ServerKind,
    ServerSettings,
    StoreShape,
    YcsbJob,
)
from iolab.loads.keyvalue.ycsb.engine import (
    JavaKit,
    YcsbStore,
    database_fill_command,
    java_kit_of_jars,
    rocksdb_contents_command,
)
from iolab.loads.keyvalue.ycsb.output import (
    YcsbStatus,
    YcsbStatusReader,
    fill_faults,
    parse_ycsb_output,
    text_without_status_lines,
)
from iolab.record import Record
from iolab.session.context import SessionContext
from iolab.session.driver import HostRunInProgress, run_on_each_host
from iolab.session.process_driver import out_of_memory_error, process_ending_error
from iolab.session.start import HostStartTime, run_load_with_common_start, run_process_then_snapshot
from iolab.targets.work_directory import WorkDirectory
from iolab.text import counted_noun, excerpt
from iolab.units import NS_PER_S

KEPT_BYTES: Final = 16 << 20
"""Of each stream: a status line of half a kB for each second of nine hours."""


StatusCallback = Callable[[YcsbStatus], None]
"""Takes each status line when it comes."""

MEMORY_HINT: Final = (
    "Give it more by workload.*.memory, or a smaller heap or cache_bytes by workload.*.ycsb."
)

DEATH_WATCH_S: Final = 0.5
"""How often it is asked whether the server still lives."""

STDERR: Final = f"{YCSB_ENGINE}.stderr"

LOAD_THREADS: Final = 16
"""Of each client: enough to keep a store of one node busy, few enough not to make it refuse."""

START_LIMIT_S: Final = 120.0

SLOWEST_INSERTS_PER_S: Final = 100.0
"""A client that is slower, or needs longer to start, is taken for hung."""

PROGRESS_S: Final = 10
"""Between two words on how far a load has come."""

RELOAD_HINT: Final = "See that the store has room and answers; the records are loaded again then."

OLDEST_JAVA: Final = 8
"""What YCSB 0.17.0 and iolab's bindings for it are compiled for."""

WORK_FOLDER: Final = "ycsb.run"
"""The folder in which a run's processes work and leave their logs, below the session's folder."""

_CORE: Final = re.compile(r"^core-(\d[\w.-]*)\.jar$", re.MULTILINE)


_LINE: Final = re.compile(rb"([a-z_]{1,40}(?:\.\d{1,2}\.[a-z]{1,10})?) (\d{1,18})")

LAYOUT: Final = 1
"""Of the database's records and options; rises when the bindings write others."""

LOADED_BY: Final = LOAD_ONLY | {
    "fieldlengthdistribution",
    "insertorder",
    "minfieldlength",
    "zeropadding",
}
"""Options that decide what a loaded database holds."""

RERUN_HINT: Final = "Run again: the records are loaded again then."


class YcsbOutputCollector:
    """Keeps both streams of a process, and reads its status lines while they come."""

    def __init__(self, on_status: StatusCallback) -> None:
        self.stdout = bytearray()
        self.stderr = bytearray()
        self._on_status = on_status
        self._status = YcsbStatusReader()

    def feed_stdout(self, piece: bytes) -> None:
        """Take the next bytes of standard output."""
        self.stdout += piece[: KEPT_BYTES - len(self.stdout)]

    def feed_stderr(self, piece: bytes) -> None:
        """Take the next bytes of standard error."""
        self.stderr += piece[: KEPT_BYTES - len(self.stderr)]
        for status in self._status.feed(piece):
            self._on_status(status)

    def ending_without_status_lines(self, ending: ProcessEnding) -> ProcessEnding:
        """How the process ended, with the last words that are no status line."""
        words = text_without_status_lines(bytes(self.stderr))[-STDERR_TAIL_BYTES:]
        return replace(ending, stderr_tail=words.decode("utf-8", "replace"))

    @property
    def compressed_stdout_and_stderr(self) -> tuple[CompressedBytes, CompressedBytes]:
        """Both streams for the record."""
        return CompressedBytes.compress(bytes(self.stdout)), CompressedBytes.compress(
            bytes(self.stderr)
        )


FailureProbe = Callable[[], str | None]
"""A sentence once the server has died, None while it lives."""


def never_failing_probe() -> str | None:
    """Where there is no server."""
    return None


class YcsbClients:
    """All clients of one run; `measure` once, then `fetch_files`.

    Each client's command stands in its state; `output_collector_by_host` holds what it printed.
    """

    def __init__(
        self,
        session: SessionContext,
        run: PlannedRun,
        host_runs: Sequence[HostRunInProgress],
        counters: CounterCollector,
        *,
        record_bytes: int,
    ) -> None:
        self._session = session
        self._states = host_runs
        self._counters = counters
        self._halt = asyncio.Event()
        self.output_collector_by_host = {
            host_run.name: YcsbOutputCollector(
                create_live_status_callback(session, run, host_run.name, record_bytes)
            )
            for host_run in host_runs
        }

    async def measure(self, failure_probe: FailureProbe = never_failing_probe) -> None:
        """From the start of all processes to the end of the last.

        Raises HostError or EngineError when any host failed or the server died; the others are then
        stopped. The user's wish to stop ends all of them early without an error.
        """
        load = run_load_with_common_start(
            self._session, self._states, self._counters, self._run_client, self._halt
        )
        try:
            await run_with_background(load, self._halt_clients_on_server_failure(failure_probe))
        except EngineError:
            if failure_probe() is None:
                raise
        if fault := failure_probe():
            # Operations that fail, and clients that give up, follow from it: nobody else is guilty.
            for state in self._states:
                state.error = None
            hint = "See what the server said before it died; the next run starts it again."
            raise EngineError(fault, hint)

    async def fetch_files(self, names: Sequence[str]) -> None:
        """Bring these files of each client's work folder into its state, as far as they are there.

        Raises HostError when a host fails, with the files of the others kept.
        """

        async def fetch_and_attach_from_host(host_run: HostRunInProgress) -> None:
            for name in names:
                path = f"{ycsb_work_folder(host_run.workdir)}/{name}"
                with suppress(AgentRefusalError):
                    content = await fetch_file(host_run.workdir.host, path, STREAM_BYTES_MAX)
                    if content is not None:
                        host_run.files[name] = CompressedBytes.compress(content)

        await run_on_each_host(
            [host_run for host_run in self._states if not host_run.workdir.host.lost_reason],
            fetch_and_attach_from_host,
        )

    async def _run_client(self, host_run: HostRunInProgress, go: HostStartTime) -> None:
        """One client's process between two looks at its devices."""
        if host_run.command is None:
            raise ValueError("a client has its command before the run is measured")
        printed = self.output_collector_by_host[host_run.name]
        try:
            ending = await run_process_then_snapshot(
                host_run, host_run.command, go, self._halt, printed.feed_stdout, printed.feed_stderr
            )
        finally:
            if host_run.ending is not None:
                host_run.ending = printed.ending_without_status_lines(host_run.ending)
            host_run.output, host_run.files[STDERR] = printed.compressed_stdout_and_stderr
        killed = out_of_memory_error("YCSB", host_run.name, host_run.command, ending, MEMORY_HINT)
        if fault := killed or process_ending_error(YCSB_ENGINE, host_run):
            raise fault

    async def _halt_clients_on_server_failure(self, failure_probe: FailureProbe) -> None:
        """Halt all clients when the server has died."""
        while not failure_probe():  # noqa: ASYNC110 - a process elsewhere sets no event
            await asyncio.sleep(DEATH_WATCH_S)
        self._halt.set()
        await asyncio.Event().wait()


def create_live_status_callback(
    session: SessionContext, run: PlannedRun, host_name: str, record_bytes: int
) -> StatusCallback:
    """Tells the live view of each status line of a host."""

    def emit_interval(status: YcsbStatus) -> None:
        session.emit(
            IntervalReported(
                host=host_name,
                run=run,
                elapsed_s=float(status.elapsed_s),
                iops=status.ops_per_s,
                bw_bytes_per_s=status.ops_per_s * record_bytes,
                lat_ns_mean=status.lat_ns_mean,
            )
        )

    return emit_interval


class RecordRange(Record):
    """The records that one client loads: `count` of them from number `first` on."""

    first: int
    count: int


def split_records(record_count: int, client_count: int) -> tuple[RecordRange, ...]:
    """The records in parts as equal as can be, in order, none left out."""
    edges = [record_count * index // client_count for index in range(client_count + 1)]
    return tuple(RecordRange(low, high - low) for low, high in pairwise(edges))


def client_insert_timeout_s(record_count: int) -> int:
    """How long a client may take for so many records before it is taken for hung."""
    return math.ceil(START_LIMIT_S + record_count / SLOWEST_INSERTS_PER_S)


async def insert_records(
    session: SessionContext,
    run: PlannedRun,
    host_runs_and_ranges: Sequence[tuple[HostRunInProgress, RecordRange]],
    kit_for_workdir: Callable[[WorkDirectory], JavaKit],
    store_for_workdir: Callable[[WorkDirectory], YcsbStore],
) -> None:
    """Each client writes its part, all at once. EngineError unless every record came in.

    HostError when a host fails; Interrupted when the user wishes to stop, with a store that is
    loaded in part.
    """
    halt = asyncio.Event()
    work = {
        host_run.name: (
            database_fill_command(
                YcsbJob.require_type(run.point.job),
                store_for_workdir(host_run.workdir),
                kit_for_workdir(host_run.workdir),
                ycsb_work_folder(host_run.workdir),
                first=records.first,
                count=records.count,
                thread_count=LOAD_THREADS,
                seconds=client_insert_timeout_s(records.count),
            ),
            records,
        )
        for host_run, records in host_runs_and_ranges
        if records.count
    }
    progress = _InsertProgress(session, run, sum(records.count for _, records in work.values()))

    async def insert_records_on_client(host_run: HostRunInProgress) -> None:
        command, records = work[host_run.name]
        printed = YcsbOutputCollector(progress.create_status_callback(host_run.name))
        with set_event_on_failure(halt):
            await _insert_records_of_client(host_run, command, records, printed, halt)

    loading = run_on_each_host(
        [host_run for host_run, records in host_runs_and_ranges if records.count],
        insert_records_on_client,
    )
    await run_with_background(loading, session.stop.forward_to_event(halt))
    if session.stop.is_requested:
        raise Interrupted("The session was stopped while it loaded records.", "Resume it to go on.")


class _InsertProgress:
    """Tells now and then how far all clients have come together."""

    def __init__(self, session: SessionContext, run: PlannedRun, record_count: int) -> None:
        self._session = session
        self._run = run
        self._records = record_count
        self._done: dict[str, int] = {}
        self._told_ns = session.clock.mono_ns()

    def create_status_callback(self, host_name: str) -> StatusCallback:
        """What hears that host's status."""

        def report_insert_progress(status: YcsbStatus) -> None:
            self._done[host_name] = status.operations
            now_ns = self._session.clock.mono_ns()
            if now_ns - self._told_ns >= PROGRESS_S * NS_PER_S:
                self._told_ns = now_ns
                text = f"{sum(self._done.values()):,} of {self._records:,} records"
                self._session.begin_session_phase(SessionPhase.LAY_OUT, self._run, text)

        return report_insert_progress


async def _insert_records_of_client(
    host_run: HostRunInProgress,
    command: Command,
    record_range: RecordRange,
    output_collector: YcsbOutputCollector,
    halt: asyncio.Event,
) -> None:
    """One client's part, to its end or until it is halted."""
    ending = await run_program_or_raise(
        host_run.workdir.host,
        command,
        halt,
        output_collector.feed_stdout,
        on_stderr=output_collector.feed_stderr,
        install_hint=INSTALL_JAVA,
    )
    if ending.was_halted:
        return
    if killed := out_of_memory_error("YCSB", host_run.name, command, ending, MEMORY_HINT):
        raise killed
    if fault := exit_fault_text(output_collector.ending_without_status_lines(ending), command):
        raise EngineError(f"YCSB on host '{host_run.name}' {fault}.", RELOAD_HINT)
    output = parse_ycsb_output(bytes(output_collector.stdout), bytes(output_collector.stderr))
    if faults := fill_faults(output, record_range.count):
        reason = excerpt("; ".join(faults)).rstrip(".")
        raise EngineError(f"A load of YCSB on host '{host_run.name}': {reason}.", RELOAD_HINT)


class YcsbInstall(Record):
    """What starts YCSB on a host, and which version of it that is."""

    kit: JavaKit
    java: JavaInstallation
    version: str

    @property
    def ycsb_and_java_text(self) -> str:
        """Both versions, as a record has them."""
        return f"YCSB {self.version}, Java {self.java.version}"


class YcsbInstaller:
    """The tools of each host that was asked about, as long as its connection holds."""

    def __init__(self, kits: InstallKit = install_java_kit_jars) -> None:
        self._kits = kits
        self._found: WeakKeyDictionary[Host, YcsbInstall] = WeakKeyDictionary()

    def install_found_before(self, workdir: WorkDirectory) -> YcsbInstall:
        """The tools of a host that was asked before; KeyError for another."""
        return self._found[workdir.host]

    async def find_or_install(
        self, workdir: WorkDirectory, settings: ServerSettings, notify: Callable[[str], None]
    ) -> YcsbInstall:
        """The tools on its host. EngineError when they cannot be had, HostError of a host."""
        install = self._found.get(workdir.host)
        if install is None:
            install = self._found[workdir.host] = await self._install_ycsb(
                workdir, settings, notify
            )
        return install

    async def _install_ycsb(
        self, workdir: WorkDirectory, settings: ServerSettings, notify: Callable[[str], None]
    ) -> YcsbInstall:
        java = await find_java(workdir.host, settings.java, oldest_release=OLDEST_JAVA)
        version = (
            await _read_ycsb_version(workdir.host, settings.ycsb) if settings.ycsb else YCSB_VERSION
        )
        jars = await self._kits(workdir.host, JavaKitName.YCSB, YCSB_VERSION, workdir.dir, notify)
        return YcsbInstall(
            java_kit_of_jars(settings.java, jars, user_ycsb_folder=settings.ycsb), java, version
        )


def ycsb_work_folder(workdir: WorkDirectory) -> str:
    """Where a run's processes work on that client."""
    return f"{workdir.dir}/{WORK_FOLDER}"


async def _read_ycsb_version(host: Host, folder: str) -> str:
    """The version of the user's own YCSB, by the name of its core. EngineError without one."""
    hint = "Give the folder of an unpacked YCSB as server.ycsb; without it iolab brings its own."
    try:
        listed = await run_and_get_output(host, ("ls", "--", f"{folder.rstrip('/')}/lib"))
    except EngineError as fault:
        raise EngineError(fault.message, hint) from None
    match = _CORE.search(listed.decode("utf-8", "replace"))
    if match is None:
        where = excerpt(f"{folder.rstrip('/')}/lib")
        raise EngineError(f"There is no core of YCSB in {where} on host '{host.name}'.", hint)
    return match[1]


class RocksdbContents(Record):
    """A database as it was counted: `record_count` whole records, and its tree."""

    record_count: int
    value_bytes: int
    memtable_entries: int
    store_shape: StoreShape


def parse_rocksdb_contents(output: bytes) -> RocksdbContents | None:
    """The contents that were printed; None when the output is not whole. Never raises."""
    numbers = {
        match[1].decode(): int(match[2])
        for line in output.split(b"\n")
        if (match := _LINE.fullmatch(line))
    }
    wanted = ("end", "keys", "value_bytes", "memtable_entries", "pending_bytes")
    if any(name not in numbers for name in wanted):
        return None
    return RocksdbContents(
        record_count=numbers["keys"],
        value_bytes=numbers["value_bytes"],
        memtable_entries=numbers["memtable_entries"],
        store_shape=StoreShape(tuple(_level_shapes(numbers)), None, numbers["pending_bytes"]),
    )


def incomplete_database_faults(
    contents: RocksdbContents | None, record_count: int
) -> tuple[str, ...]:
    """Why a database is not the one that was loaded with so many records; empty when it is."""
    if contents is None:
        return ("the database did not tell what it holds",)
    faults = []
    if contents.record_count != record_count:
        faults.append(
            f"the database holds {counted_noun(contents.record_count, 'record')}, "
            f"and {record_count:,} were loaded"
        )
    if contents.memtable_entries:
        faults.append(f"{contents.memtable_entries} entries of the database are still in memory")
    if contents.store_shape.pending_bytes:
        faults.append(
            f"{contents.store_shape.pending_bytes} bytes of the database are to be compacted"
        )
    faults += [
        f"level 0 has {level.files} files left to compact after the load"
        for level in contents.store_shape.levels
        if level.level == 0 and level.files
    ]
    return tuple(faults)


def _level_shapes(numbers_by_name: dict[str, int]) -> Iterator[LevelShape]:
    for level in range(LEVELS_MAX):
        files = numbers_by_name.get(f"level.{level}.files")
        if files:
            yield LevelShape(level, files, numbers_by_name.get(f"level.{level}.bytes", 0))


class DatabaseStartState(Record):
    """The state of a client's database before a run: how it was copied, and its shape."""

    copy_method: str
    shape: StoreShape


def golden_database_folder(workdir: WorkDirectory, job: YcsbJob) -> str:
    """Where the loaded database lies; one for each set of records."""
    return f"{workdir.dir}/ycsb.loaded.{job.records}x{job.fields}x{job.field_bytes}"


def database_copy_folder(workdir: WorkDirectory) -> str:
    """Where the database of the present run lies."""
    return f"{workdir.dir}/ycsb.database"


class EmbeddedStores:
    """The databases of all clients of the present run."""

    def __init__(self) -> None:
        self._starts: dict[str, DatabaseStartState] = {}

    def start_state_of_client(self, host_run: HostRunInProgress) -> DatabaseStartState | None:
        """How that client's database was at the start; None where it has none of its own."""
        return self._starts.get(host_run.name)

    async def fill_missing_and_copy_databases(
        self,
        session: SessionContext,
        run: PlannedRun,
        job: YcsbJob,
        host_runs: Sequence[HostRunInProgress],
        tools: Mapping[str, YcsbInstall],
    ) -> None:
        """A fresh copy of a whole database on each client, not in its page cache.

        Raises HostError or EngineError; Interrupted when the user wishes to stop in a load.
        """
        self._starts.clear()
        shapes: dict[str, StoreShape | None] = {}

        async def set_database_shape(host_run: HostRunInProgress) -> None:
            shapes[host_run.name] = await _read_golden_database_shape(
                host_run.workdir, job, tools[host_run.name]
            )

        await run_on_each_host(host_runs, set_database_shape)
        missing = [host_run for host_run in host_runs if shapes[host_run.name] is None]
        if missing:
            shapes.update(
                await _fill_databases_and_get_shape_by_host(session, run, job, missing, tools)
            )
        if session.stop.is_requested:
            return
        session.begin_session_phase(SessionPhase.LAY_OUT, run, "a copy of the loaded database")

        async def copy_database(host_run: HostRunInProgress) -> None:
            how = await copy_folder_by_reflink_if_possible(
                host_run.workdir.host,
                golden_database_folder(host_run.workdir, job),
                database_copy_folder(host_run.workdir),
            )
            shape = shapes[host_run.name]
            if shape is not None:
                self._starts[host_run.name] = DatabaseStartState(how, shape)

        await session.stop.run_unless_stopped(run_on_each_host(host_runs, copy_database))
        await drop_folder_caches_if_requested(session, run, host_runs, database_copy_folder)

    async def remove_database_copy(self, host_run: HostRunInProgress) -> None:
        """Remove that client's copy; what was loaded stays for the next run."""
        if self._starts.pop(host_run.name, None):
            await remove_folder(host_run.workdir.host, database_copy_folder(host_run.workdir))


async def _fill_databases_and_get_shape_by_host(
    session: SessionContext,
    run: PlannedRun,
    job: YcsbJob,
    host_runs_to_fill: Sequence[HostRunInProgress],
    tools: Mapping[str, YcsbInstall],
) -> dict[str, StoreShape]:
    """Load what is missing from nothing, flush, compact and count it; the markers come last."""
    all_records = RecordRange(0, job.records)

    async def remove_database_on_host(host_run: HostRunInProgress) -> None:
        await remove_folder(host_run.workdir.host, golden_database_folder(host_run.workdir, job))

    session.begin_session_phase(
        SessionPhase.LAY_OUT,
        run,
        f"{job.records:,} records of {job.fields} x {job.field_bytes} bytes",
    )
    await run_on_each_host(host_runs_to_fill, remove_database_on_host)
    await insert_records(
        session,
        run,
        [(host_run, all_records) for host_run in host_runs_to_fill],
        lambda workdir: tools[workdir.name].kit,
        lambda workdir: _golden_database_store(workdir, job),
    )
    session.begin_session_phase(SessionPhase.PROVE, run, "flush, compact and count the records")
    shapes: dict[str, StoreShape] = {}

    async def compact_on_host(host_run: HostRunInProgress) -> None:
        shapes[host_run.name] = await _compact_verify_and_mark_database(
            host_run.workdir, job, tools[host_run.name]
        )

    await session.stop.run_unless_stopped(run_on_each_host(host_runs_to_fill, compact_on_host))
    return shapes


async def _compact_verify_and_mark_database(
    workdir: WorkDirectory, job: YcsbJob, tools: YcsbInstall
) -> StoreShape:
    """The shape of a loaded database at rest. EngineError unless every record is there whole."""
    command = rocksdb_contents_command(
        job,
        _golden_database_store(workdir, job),
        tools.kit,
        ycsb_work_folder(workdir),
        does_compact_first=True,
    )
    words = await run_and_get_output(
        workdir.host, command.argv, cwd=command.cwd, limit_s=command.wall_limit_s
    )
    database = parse_rocksdb_contents(words)
    if database is None or (faults := incomplete_database_faults(database, job.records)):
        reason = "; ".join(faults) if database else "it does not tell what it holds"
        message = f"The loaded database on host '{workdir.name}' cannot serve: {reason}."
        raise EngineError(message, RERUN_HINT)
    marker = {**_expected_database_marker(job, tools), "shape": to_builtins(database.store_shape)}
    await sync_and_mark_folder_complete(workdir.host, golden_database_folder(workdir, job), marker)
    return database.store_shape


async def _read_golden_database_shape(
    workdir: WorkDirectory, job: YcsbJob, tools: YcsbInstall
) -> StoreShape | None:
    """The shape of the loaded database; None when there is none, or none that is whole."""
    marker = await read_folder_marker(workdir.host, golden_database_folder(workdir, job))
    if marker is None:
        return None
    shape = parse_store_shape(marker.pop("shape", None))
    return shape if marker == _expected_database_marker(job, tools) else None


def _golden_database_store(workdir: WorkDirectory, job: YcsbJob) -> YcsbStore:
    return YcsbStore(ServerKind.EMBEDDED, database=golden_database_folder(workdir, job))


def _expected_database_marker(job: YcsbJob, tools: YcsbInstall) -> dict[str, Any]:
    """What a whole database says of itself, but for its shape."""
    return {
        "engine": job.engine,
        "layout": LAYOUT,
        "records": job.records,
        "fields": job.fields,
        "field_bytes": job.field_bytes,
        "options": [list(option) for option in sorted(job.options) if option[0] in LOADED_BY],
        "ycsb": tools.version,
    }
