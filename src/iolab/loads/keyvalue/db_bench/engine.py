"""db_bench as an engine: it loads a database once, and each cell works on a copy of it. Pure.

See docs/reference/engines/db_bench.md for what is run and which of db_bench's ways are guarded
against here.
"""

from __future__ import annotations

import asyncio
import hashlib
import re
from collections.abc import Iterable, Iterator
from typing import Final
from weakref import WeakKeyDictionary

from msgspec.structs import replace

from iolab.core.compressed import CompressedBytes
from iolab.core.engine import validate_options
from iolab.core.events import IntervalReported
from iolab.core.limits import STREAM_BYTES_MAX
from iolab.core.run import PlannedRun
from iolab.errors import EngineError
from iolab.hosts.engine import Command
from iolab.hosts.host import Host
from iolab.hosts.intervals import IntervalLog
from iolab.hosts.remote_process import fetch_file, run_and_get_output
from iolab.loads.keyvalue.db_bench.evidence import BenchRunOutput, BenchRunRequest, read_bench_run
from iolab.loads.keyvalue.db_bench.run import LiveProgressReader
from iolab.loads.keyvalue.table import DB_BENCH_OPTIONS, PROGRAMS
from iolab.loads.keyvalue.workload import (
    DB_BENCH_ENGINE,
    READ_RANDOM_WRITE_RANDOM,
    DatabaseSpec,
    DbBenchJob,
)
from iolab.record import Record
from iolab.session.context import SessionContext
from iolab.session.driver import HostRunInProgress
from iolab.session.process_driver import out_of_memory_error, process_ending_error
from iolab.session.start import HostStartTime, require_clock_offset, run_process_then_snapshot
from iolab.targets.work_directory import WorkDirectory

START_LIMIT_S: Final = 300.0
"""To open a database of many files on a slow device, and to close it."""

SLOWEST_LOAD_BYTES_PER_S: Final = 2_000_000.0
"""A load that is slower is taken for hung: every byte is written three times, then synced."""

SHAPE_LIMIT_S: Final = 600.0
"""For sst_dump to read the properties of thousands of files."""

VERSION_LIMIT_S: Final = 60.0
"""For `db_bench --version`, from a software tree on a busy network file system."""

SEED_MAX: Final = (1 << 62) - 1
"""db_bench takes a signed number of 64 bits and adds the number of each thread to it."""

SEED_STEP: Final = 1 << 12
"""Between derived seeds: more than most commands have threads."""

_SLOT_SHIFT: Final = 8
"""Leaves 40 bits of a digest: times the step that is a number that every reader of JSON keeps."""

LOAD: Final = "filluniquerandom,flush,waitforcompaction,compact,waitforcompaction,levelstats,stats"
"""Every key once, in random order; then nothing is left in memory or to be compacted.

What `compact` moves to a level may be too much for it, so its end is waited for once more.
"""

LOAD_STREAMS: Final = 1
"""filluniquerandom needs a single thread to write every key once."""

INSTALL: Final = "Install rocksdb-tools on every client, or name the programs by their path."

_VERSION: Final = re.compile(r"\bversion (\d{1,4}(?:\.\d{1,4}){1,3})\b")
_WORKLOAD: Final = re.compile(r"[a-z][a-z0-9]{2,59}")

_LOADS: Final = ("fill", "delete", "compact", "flush", "fresh", "wait", "level", "stats", "reset")
"""What makes, empties or only reports a database: it would not measure the one that was loaded."""

_ANSWERS: Final = frozenset({0, 1})
"""Old versions do not know the question; that they answer shows that they run."""

REPORT_LIMIT_BYTES: Final = 4 << 20
"""A row of some 15 bytes each second, for three days."""

MEMORY_HINT: Final = "Give it more by workload.*.memory, or a smaller cache_size."
STDERR: Final = "db_bench.stderr"
STORED_REPORT: Final = "db_bench.report.csv"


class SeedRange(Record):
    """The random streams of one command: each thread's keys come from `first_seed` + its number."""

    first_seed: int
    stream_count: int

    def overlaps(self, other: SeedRange) -> bool:
        """Whether two commands have a stream in common, and so the same keys in the same order."""
        return (
            self.first_seed < other.first_seed + other.stream_count
            and other.first_seed < self.first_seed + self.stream_count
        )


def fill_seed_range(seed: int) -> SeedRange:
    """The streams of a load."""
    return SeedRange(seed, LOAD_STREAMS)


def bench_seed_range(job: DbBenchJob, seed: int) -> SeedRange:
    """The streams of a cell."""
    return SeedRange(seed, job.seed_stream_count)


def derived_seed(study_seed: int, *names: object) -> int:
    """A seed for what these words name: always the same, and far from that of any other words.

    So a session that is resumed draws what it would have drawn, and nothing that it drew before.
    """
    text = "/".join(str(part) for part in (study_seed, *names))
    slot = int.from_bytes(hashlib.sha256(text.encode()).digest()[:6], "big") >> _SLOT_SHIFT
    return 1 + slot * SEED_STEP


def next_free_seed(used_ranges: Iterable[SeedRange], wanted_range: SeedRange) -> int:
    """The first seed at or after the `wanted_range` whose streams no `used_ranges` overlap."""
    seed = wanted_range.first_seed
    for other in sorted(used_ranges, key=lambda seeds: seeds.first_seed):
        if SeedRange(seed, wanted_range.stream_count).overlaps(other):
            seed = other.first_seed + other.stream_count
    return seed


def version_command(
    options: tuple[tuple[str, str], ...], directory: str, program: str = "db_bench"
) -> Command:
    """Ask db_bench, or sst_dump, for its version."""
    argv = (_program_path(_validated_options(options), program), "--version")
    return Command(argv, directory, b"", "", VERSION_LIMIT_S, STREAM_BYTES_MAX)


def parse_version(version_output: bytes) -> str:
    """The version that `--version` prints; "" for one that prints none, as old ones do."""
    match = _VERSION.search(version_output.decode("utf-8", "replace"))
    return match[1] if match else ""


def database_fill_command(
    job: DbBenchJob, directory: str, database_folder: str, *, seed: int
) -> Command:
    """Load the job's data into the new folder `database_folder` of `directory`, in the job's shape.

    EngineError for an option that is not allowed, and for a seed that db_bench would not use.
    """
    options = _validated_options(job.options)
    argv = [
        *_program_and_common_flags(options, LOAD, database_folder, job.loaded),
        *("--use_existing_db=0", "--disable_wal=1", f"--threads={LOAD_STREAMS}"),
        *("--histogram=1", "--progress_reports=0", f"--seed={_require_valid_seed(seed)}"),
        *_option_flags(options, excluded="disable_wal"),
    ]
    size = job.loaded.keys * job.loaded.entry_bytes
    return _db_bench_command(argv, directory, START_LIMIT_S + size / SLOWEST_LOAD_BYTES_PER_S)


def build_level_statistics_command(
    job: DbBenchJob, directory: str, database_folder: str
) -> Command:
    """Ask for the levels of a database that iolab did not load; give it a copy to open."""
    options = _validated_options(job.options)
    argv = [
        *_program_and_common_flags(options, "levelstats,stats", database_folder, job.loaded),
        *("--use_existing_db=1", "--disable_auto_compactions=1", "--threads=1"),
        *_option_flags(options, excluded="disable_auto_compactions"),
    ]
    return _db_bench_command(argv, directory, START_LIMIT_S)


def table_shape_command(job: DbBenchJob, directory: str, database_folder: str) -> Command:
    """Ask sst_dump for the properties of every table file; it opens and writes no database."""
    program = _program_path(_validated_options(job.options), "sst_dump")
    argv = (program, f"--file={database_folder}", "--command=none", "--show_properties")
    return Command(argv, directory, b"", "", SHAPE_LIMIT_S, STREAM_BYTES_MAX)


def bench_command(
    job: DbBenchJob,
    directory: str,
    database_folder: str,
    *,
    seconds: int,
    seed: int,
    report_file: str,
) -> Command:
    """Make the job's load for so many seconds on the copy `database_folder`, which it may change.

    `report_file`, a name in `directory`, gets the operations of all threads each second; on
    standard error every thread tells by itself how far it is.
    EngineError for a job that db_bench cannot be told, or that could not be compared.
    """
    options = _validated_options(job.options)
    if not _WORKLOAD.fullmatch(job.workload) or job.workload.startswith(_LOADS):
        message = f"db_bench cannot measure the workload {job.workload!r} on a loaded database."
        raise EngineError(message, "Name one that reads, such as readrandom.")
    argv = [
        *_program_and_common_flags(options, f"{job.workload},stats", database_folder, job.loaded),
        *("--use_existing_db=1", f"--cache_size={job.cache_bytes}", f"--threads={job.threads}"),
        *(f"--duration={seconds}", "--ops_between_duration_checks=1"),
        *("--histogram=1", "--statistics=1", "--stats_interval_seconds=1"),
        *_read_share_and_write_rate_flags(job),
        f"--seed={_require_valid_seed(seed)}",
        *("--report_interval_seconds=1", f"--report_file={report_file}"),
        *_option_flags(options),
    ]
    limit_s = START_LIMIT_S + 2 * seconds
    return replace(_db_bench_command(argv, directory, limit_s), memory_limit_bytes=job.memory_bytes)


def _program_and_common_flags(
    db_bench_options: dict[str, str],
    benchmarks: str,
    database_folder: str,
    database_spec: DatabaseSpec,
) -> Iterator[str]:
    yield _program_path(db_bench_options, "db_bench")
    yield f"--benchmarks={benchmarks}"
    yield f"--db={database_folder}"
    yield f"--num={database_spec.keys}"
    yield f"--key_size={database_spec.key_bytes}"
    yield f"--value_size={database_spec.value_bytes}"
    yield f"--block_size={database_spec.block_bytes}"
    yield f"--bloom_bits={database_spec.bloom_bits}"
    yield "--compression_type=none"


def _read_share_and_write_rate_flags(job: DbBenchJob) -> Iterator[str]:
    if job.workload == READ_RANDOM_WRITE_RANDOM:
        yield f"--readwritepercent={job.read_percent}"
    if job.has_writer and not job.write_bytes_per_s:
        message = f"The writer of {job.workload} has no rate."
        hint = "State write_bytes_per_s: without it a faster device gets another load."
        raise EngineError(message, hint)
    if job.write_bytes_per_s:
        yield f"--benchmark_write_rate_limit={job.write_bytes_per_s}"


def _option_flags(db_bench_options: dict[str, str], excluded: str = "") -> Iterator[str]:
    for name, text in sorted(db_bench_options.items()):
        if name not in (*PROGRAMS, excluded):
            yield f"--{name}={text}"


def _program_path(db_bench_options: dict[str, str], name: str) -> str:
    return db_bench_options.get(name, name)


def _validated_options(options: tuple[tuple[str, str], ...]) -> dict[str, str]:
    return validate_options("db_bench", options, DB_BENCH_OPTIONS)


def _require_valid_seed(seed: int) -> int:
    if not 1 <= seed <= SEED_MAX:
        # At 0 it takes the time of day, which nobody would know of afterwards.
        raise EngineError(f"{seed} is not a seed for db_bench.", f"Use one from 1 to {SEED_MAX}.")
    return seed


def _db_bench_command(argv: list[str], directory: str, wall_limit_s: float) -> Command:
    return Command(
        argv=tuple(argv),
        cwd=directory,
        stdin=b"",
        job_file=" ".join(argv),
        # The stamps of its progress are in local time, which nobody could place.
        env=(("TZ", "UTC0"),),
        wall_limit_s=wall_limit_s,
        output_limit_bytes=STREAM_BYTES_MAX,
    )


class RocksdbVersionCache:
    """What was found on each host, as long as its connection holds."""

    def __init__(self) -> None:
        self._found: WeakKeyDictionary[Host, dict[tuple[str, ...], str]] = WeakKeyDictionary()

    async def cached_version_on_host(self, workdir: WorkDirectory, job: DbBenchJob) -> str:
        """db_bench's version on a work directory's host, "" for one that tells none.

        EngineError when a program is missing or cannot run, HostError when the host fails.
        """
        commands = [version_command(job.options, workdir.dir, name) for name in PROGRAMS]
        versions = self._found.setdefault(workdir.host, {})
        key = tuple(command.argv[0] for command in commands)
        if key not in versions:
            words = [
                await run_and_get_output(
                    workdir.host,
                    command.argv,
                    cwd=command.cwd,
                    limit_s=VERSION_LIMIT_S,
                    success_codes=_ANSWERS,
                    install_hint=INSTALL,
                )
                for command in commands
            ]
            versions[key] = parse_version(words[PROGRAMS.index("db_bench")])
        return versions[key]


class DbBenchTask(Record):
    """What one host is to do: its command, where that leaves its report, and what is expected."""

    request: BenchRunRequest
    command: Command
    report_path: str


async def run_bench(
    session: SessionContext,
    run: PlannedRun,
    host_run: HostRunInProgress,
    task: DbBenchTask,
    go: HostStartTime,
    halt: asyncio.Event,
) -> None:
    """Run the cell between two looks at the devices, and fill in the evidence however it ends.

    EngineError when it is not what was requested, HostError when the host fails.
    """
    host_run.command = task.command
    heard = _BenchOutputCollector(session, run, host_run, task)
    report: bytes | None = None
    try:
        ending = await run_process_then_snapshot(
            host_run, task.command, go, halt, heard.feed_stdout, heard.feed_stderr
        )
        report = await fetch_file(host_run.workdir.host, task.report_path, REPORT_LIMIT_BYTES)
    finally:
        heard.parse_and_store_results(report)
    killed = out_of_memory_error("db_bench", host_run.name, task.command, ending, MEMORY_HINT)
    if fault := killed or process_ending_error(DB_BENCH_ENGINE, host_run):
        raise fault


class _BenchOutputCollector:
    """Keeps both streams, shows each second, and reads all of it at the end."""

    def __init__(
        self,
        session: SessionContext,
        run: PlannedRun,
        host_run: HostRunInProgress,
        task: DbBenchTask,
    ) -> None:
        self._session = session
        self._run = run
        self._state = host_run
        self._cell = task
        self._stdout = bytearray()
        self._stderr = bytearray()
        self._live = LiveProgressReader(task.request.job)

    def feed_stdout(self, piece: bytes) -> None:
        """Take the next bytes of standard output."""
        self._stdout += piece

    def feed_stderr(self, piece: bytes) -> None:
        """Take the next bytes of standard error."""
        self._stderr += piece
        now_ns = self._session.clock.real_ns() + require_clock_offset(self._state).offset_ns
        entry_bytes = self._cell.request.job.loaded.entry_bytes
        for second, ops_per_s in self._live.feed(piece, now_ns):
            self._session.emit(
                IntervalReported(
                    host=self._state.name,
                    run=self._run,
                    elapsed_s=float(second),
                    iops=ops_per_s,
                    bw_bytes_per_s=ops_per_s * entry_bytes,
                    lat_ns_mean=None,
                )
            )

    def parse_and_store_results(self, report: bytes | None) -> None:
        """The process has ended, well or not."""
        state, ending = self._state, self._state.ending
        stdout, stderr = bytes(self._stdout), bytes(self._stderr)
        state.output = CompressedBytes.compress(stdout)
        state.files[STDERR] = CompressedBytes.compress(stderr)
        if report is not None:
            state.files[STORED_REPORT] = CompressedBytes.compress(report)
        exited_ns = ending.exited.real_ns if ending else None
        left = BenchRunOutput(stdout, stderr, report, self._live.start_real_ns, exited_ns)
        halted = ending is None or ending.was_halted
        state.reading, replies = read_bench_run(self._cell.request, left, was_halted=halted)
        state.details = replies
        state.intervals = IntervalLog.from_intervals(state.reading.intervals)
