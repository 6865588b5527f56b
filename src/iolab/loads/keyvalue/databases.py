"""Golden folders, loaded once and kept, and the copies that runs work on.

A golden folder is whole only with its marker, which is written last: what a load that died has
left has none. The marker says what the folder holds, in its engine's own words.
"""

from __future__ import annotations

import asyncio
import errno
import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

from msgspec import ValidationError, convert, to_builtins
from msgspec.structs import replace

from iolab.core.events import SessionPhase
from iolab.core.run import CACHE_NOT_DROPPED, CacheDropProof, PlannedRun
from iolab.errors import EngineError, HostError, IolabError
from iolab.hosts.engine import Command
from iolab.hosts.host import Host
from iolab.hosts.message import AgentRefusalError
from iolab.hosts.remote_process import (
    ProcessEnding,
    exit_fault_text,
    program_name,
    run_and_get_output,
    run_program_or_raise,
)
from iolab.loads.keyvalue.db_bench.engine import (
    build_level_statistics_command,
    database_fill_command,
    table_shape_command,
)
from iolab.loads.keyvalue.db_bench.evidence import fill_faults
from iolab.loads.keyvalue.db_bench.output import DbBenchOutput, parse_db_bench_output
from iolab.loads.keyvalue.db_bench.run import parse_sst_dump_properties, table_shape_faults
from iolab.loads.keyvalue.table import PROGRAMS
from iolab.loads.keyvalue.workload import (
    DatabaseSpec,
    DbBenchJob,
    LevelShape,
    StoreShape,
    TableShape,
)
from iolab.record import Record
from iolab.session.context import SessionContext
from iolab.session.driver import HostRunInProgress, run_on_each_host
from iolab.targets.layout import is_os_error
from iolab.targets.work_directory import WorkDirectory, drop_host_and_file_caches
from iolab.text import excerpt
from iolab.units import format_bytes

MARKER: Final = "iolab.json"
MARKER_FORMAT: Final = 1
MARKER_LIMIT_BYTES: Final = 1 << 20
MARKER_MODE: Final = 0o644
MARKER_LIMIT_S: Final = 60.0

SYNC_LIMIT_S: Final = 600.0
"""Writing back what a load has left dirty, perhaps all of memory, to a slow disk."""

COPY_LIMIT_S: Final = 4 * 3600.0
"""A plain copy of a terabyte at 100 MB/s; a reflink of it takes seconds."""

REMOVE_LIMIT_S: Final = 600.0
"""A file system frees extents at more than 10 GB/s."""

LISTED_LIMIT_BYTES: Final = 16 << 20
"""The paths of a hundred thousand files."""

REFLINK: Final = "reflink"
COPY: Final = "copy"

OUTPUT_HINT: Final = "See what db_bench says, and load again by running again."

DATABASE_PATH_HINT: Final = (
    "Give the path of a database that was loaded whole, flushed and compacted, and state its keys, "
    "sizes and block size as they are."
)

_ANY_CODE: Final = frozenset({0, 1})
"""sst_dump ends with 1 where it finds no table, which its output tells as well."""


async def sync_and_mark_folder_complete(host: Host, folder: str, marker: Mapping[str, Any]) -> None:
    """Say that a folder is whole: everything is written back, then the marker is put into it."""
    content = json.dumps({**marker, "format": MARKER_FORMAT}, indent=1, sort_keys=True).encode()
    if len(content) > MARKER_LIMIT_BYTES:
        raise ValueError(f"a marker of {len(content)} bytes could not be read again")
    await host.request("sync", deadline_s=SYNC_LIMIT_S)
    await host.request(
        "put", content, deadline_s=MARKER_LIMIT_S, path=_marker_path(folder), mode=MARKER_MODE
    )


async def read_folder_marker(host: Host, folder: str) -> dict[str, Any] | None:
    """The marker of a folder; None for one that is not there, not whole, or of another format."""
    content = b""
    stream = host.stream("get", path=_marker_path(folder), max_bytes=MARKER_LIMIT_BYTES)
    try:
        async for message in stream:
            content += message.payload
    except AgentRefusalError:
        return None
    finally:
        await stream.aclose()
    try:
        marker = json.loads(content)
    except ValueError:
        return None
    if not isinstance(marker, dict) or marker.pop("format", None) != MARKER_FORMAT:
        return None
    return marker


async def copy_folder_by_reflink_if_possible(host: Host, source: str, destination: str) -> str:
    """Copy a folder to a new place; how it was done: `reflink` or `copy`.

    A reflink shares all extents until they are changed, which takes no time and leaves the source
    alone; where the file system has none, or `source` lies on another, everything is copied and
    written back. Symbolic links are followed, so that nothing of the source can be changed through
    the copy. What is at `destination` is removed first. EngineError, also when that runs full.
    """
    await remove_folder(host, destination)
    try:
        await run_and_get_output(
            host, _copy_arguments(source, destination, "always"), limit_s=COPY_LIMIT_S
        )
    except EngineError:
        # It ends at the first file that cannot be shared, and leaves what it had made.
        await remove_folder(host, destination)
    else:
        return REFLINK
    try:
        await run_and_get_output(
            host, _copy_arguments(source, destination, "never"), limit_s=COPY_LIMIT_S
        )
    except EngineError as fault:
        await remove_folder(host, destination)
        hint = "Make room there: runs need the database and a copy of it."
        raise EngineError(fault.message, hint) from None
    await host.request("sync", deadline_s=SYNC_LIMIT_S)
    return COPY


async def read_size_by_file_path(host: Host, folder: str) -> dict[str, int]:
    """The path and size of every file in a folder and below it. HostError or EngineError."""
    words = ("find", folder, "-type", "f", "-printf", r"%s %p\0")
    listed = await run_and_get_output(host, words, output_limit_bytes=LISTED_LIMIT_BYTES)
    rows = (row.partition(b" ") for row in listed.split(b"\0") if row)
    return {path.decode("utf-8", "replace"): int(size) for size, _, path in rows}


async def remove_folder(host: Host, folder: str) -> None:
    """Remove a folder with all that is in it; it need not be there.

    Other file systems that are mounted in it are left alone. ValueError for a path that is not
    plainly one of a folder below another.
    """
    parts = folder.split("/")
    if not folder.startswith("/") or len(parts) < 3 or set(parts[1:]) & {"", ".", ".."}:
        raise ValueError(f"{folder!r} is not the path of a folder to remove")
    words = ("rm", "-rf", "--one-file-system", "--", folder)
    try:
        await run_and_get_output(host, words, limit_s=REMOVE_LIMIT_S)
    except EngineError as fault:
        raise HostError(fault.message, "Remove that folder by hand, and run again.") from None


def parse_store_shape(document: object) -> StoreShape | None:
    """The shape that a marker holds as its fields; None for anything else."""
    try:
        return convert(document, StoreShape)
    except ValidationError:
        return None


def _marker_path(folder: str) -> str:
    return f"{folder}/{MARKER}"


def _copy_arguments(source: str, destination: str, reflink: str) -> tuple[str, ...]:
    return ("cp", "-r", "-L", f"--reflink={reflink}", "--", source, destination)


async def drop_folder_caches_if_requested(
    session: SessionContext,
    run: PlannedRun,
    host_runs: Sequence[HostRunInProgress],
    folder_for_workdir: Callable[[WorkDirectory], str],
) -> None:
    """Drop the pages of every file in a folder of each host, where the method asks for it.

    The proof, also that nothing was requested, stands in the states. Raises HostError or
    EngineError.
    """
    for host_run in host_runs:
        host_run.cache_drop = CACHE_NOT_DROPPED
    if not session.study.method.drop_caches:
        return
    session.begin_session_phase(SessionPhase.DROP_CACHES, run, "pages of the databases")

    async def drop_folder_cache_on_host(host_run: HostRunInProgress) -> None:
        host_run.cache_drop = await drop_folder_cache(
            host_run.workdir, folder_for_workdir(host_run.workdir)
        )

    await run_on_each_host(host_runs, drop_folder_cache_on_host)


async def drop_folder_cache(workdir: WorkDirectory, folder: str) -> CacheDropProof:
    """No page of a file in the folder stays in memory; the proof. HostError or EngineError."""
    return await drop_host_and_file_caches(
        workdir, sorted(await read_size_by_file_path(workdir.host, folder))
    )


class GoldenDatabase(Record):
    """A whole database: its folder, its shape, the bytes of its tree by RocksDB's own count.

    `fill_seed` is that of its load, None for one the user loaded. `file_bytes` are those of all
    its files, by which one tells a copy.
    """

    path: str
    shape: StoreShape
    tree_bytes: int | None
    fill_seed: int | None
    file_bytes: int


async def find_current_golden_database(
    workdir: WorkDirectory, job: DbBenchJob, version: str, user_table_shape: TableShape | None
) -> GoldenDatabase | None:
    """The database of the job on a work directory; None when it must be made, or made anew.

    `user_table_shape` are the tables of the user's own database, None for iolab's own. HostError.
    """
    marker = await read_folder_marker(workdir.host, golden_database_folder(workdir, job))
    if marker is None or marker.get("asked") != _contents_and_version_document(job, version):
        return None
    try:
        tree_bytes = convert(marker.get("tree_bytes"), type=_Number)
        seed = convert(marker.get("seed"), type=_Number)
        file_bytes = convert(marker.get("file_bytes"), type=_Number)
    except ValidationError:
        return None
    shape = parse_store_shape(marker.get("shape"))
    if (
        shape is None
        or file_bytes is None
        or (user_table_shape is not None and user_table_shape != shape.tables)
    ):
        return None
    return GoldenDatabase(_database_path(workdir, job), shape, tree_bytes, seed, file_bytes)


async def fill_or_copy_golden_database(
    workdir: WorkDirectory, job: DbBenchJob, version: str, seed: int, halt: asyncio.Event
) -> GoldenDatabase | None:
    """Load the job's database, or copy the user's own; None when `halt` ended it.

    Raises EngineError or HostError, and leaves nothing of a load that did not succeed.
    """
    folder = golden_database_folder(workdir, job)
    await remove_folder(workdir.host, folder)
    await run_and_get_output(workdir.host, ("mkdir", "--", folder))
    try:
        database = await (
            _copy_and_inspect_user_database(workdir, job)
            if job.database
            else _fill_database(workdir, job, seed, halt)
        )
    except (EngineError, HostError):
        if not workdir.host.lost_reason:
            with suppress(HostError):
                await remove_folder(workdir.host, folder)
        raise
    if database is None:
        return None
    marker = {
        "asked": _contents_and_version_document(job, version),
        "shape": to_builtins(database.shape),
        "tree_bytes": database.tree_bytes,
        "seed": database.fill_seed,
        "file_bytes": database.file_bytes,
    }
    await sync_and_mark_folder_complete(workdir.host, folder, marker)
    return database


def golden_database_folder(workdir: WorkDirectory, job: DbBenchJob) -> str:
    """Where the golden database of a job lies; jobs with the same data share one."""
    digest = hashlib.sha256(
        json.dumps(_database_contents_document(job), sort_keys=True).encode()
    ).hexdigest()
    return f"{workdir.dir}/db_bench.{digest[:12]}"


async def read_and_verify_user_database_shape(
    workdir: WorkDirectory, job: DbBenchJob
) -> TableShape:
    """The tables of the user's own database. EngineError when they are not what the job says."""
    tables = await _read_table_shape_with_sst_dump(workdir, job, job.database)
    faults = table_shape_faults(tables, job.loaded)
    if faults or tables is None:
        message = (
            f"{excerpt(job.database)} on host '{workdir.name}' is not the database that was "
            f"stated: {'; '.join(faults)}."
        )
        raise EngineError(message, DATABASE_PATH_HINT)
    return tables


async def total_file_bytes_in_folder(workdir: WorkDirectory, folder: str) -> int:
    """What all files in a folder hold: two that are copies of each other have the same."""
    return sum((await read_size_by_file_path(workdir.host, folder)).values())


async def _read_table_shape_with_sst_dump(
    workdir: WorkDirectory, job: DbBenchJob, database_path: str
) -> TableShape | None:
    """What sst_dump counts in a database's files; None when there is none. Opens no database."""
    command = table_shape_command(job, workdir.dir, database_path)
    raw = await run_and_get_output(
        workdir.host,
        command.argv,
        cwd=command.cwd,
        limit_s=command.wall_limit_s,
        output_limit_bytes=command.output_limit_bytes,
        success_codes=_ANY_CODE,
    )
    return parse_sst_dump_properties(raw)


async def _copy_and_inspect_user_database(
    workdir: WorkDirectory, job: DbBenchJob
) -> GoldenDatabase:
    """The user's own, copied; its levels are told by another copy, which is opened for that."""
    database, trial = _database_path(workdir, job), f"{golden_database_folder(workdir, job)}/trial"
    await copy_folder_by_reflink_if_possible(workdir.host, job.database, database)
    await copy_folder_by_reflink_if_possible(workdir.host, database, trial)
    command = build_level_statistics_command(job, workdir.dir, trial)
    raw = await run_and_get_output(
        workdir.host, command.argv, cwd=command.cwd, limit_s=command.wall_limit_s, env=command.env
    )
    await remove_folder(workdir.host, trial)
    output = parse_db_bench_output(raw, b"")
    return await _verify_and_inspect_filled_database(workdir, job, output, None)


async def _fill_database(
    workdir: WorkDirectory, job: DbBenchJob, seed: int, halt: asyncio.Event
) -> GoldenDatabase | None:
    command = database_fill_command(job, workdir.dir, _database_path(workdir, job), seed=seed)
    stdout, stderr = bytearray(), bytearray()
    ending = await run_program_or_raise(
        workdir.host, command, halt, stdout.extend, on_stderr=stderr.extend
    )
    if ending.was_halted:
        return None
    output = parse_db_bench_output(bytes(stdout), bytes(stderr))
    if fault := _fill_error(workdir, job.loaded, command, ending, output):
        raise fault
    return await _verify_and_inspect_filled_database(workdir, job, output, seed)


async def _verify_and_inspect_filled_database(
    workdir: WorkDirectory, job: DbBenchJob, output: DbBenchOutput, seed: int | None
) -> GoldenDatabase:
    """The database as its files have it. EngineError when they are not what was requested."""
    database = _database_path(workdir, job)
    tables = await _read_table_shape_with_sst_dump(workdir, job, database)
    if faults := table_shape_faults(tables, job.loaded):
        message = f"The database on host '{workdir.name}' is not whole: {'; '.join(faults)}."
        raise EngineError(message, OUTPUT_HINT)
    tree_bytes = next((row.bytes for row in output.compaction_rows if row.name == "Sum"), None)
    shape = replace(_store_shape_from_output(output), tables=tables)
    return GoldenDatabase(
        database, shape, tree_bytes, seed, await total_file_bytes_in_folder(workdir, database)
    )


def _store_shape_from_output(output: DbBenchOutput) -> StoreShape:
    """The levels with their scores. Nothing is to be compacted where none is at its limit."""
    rows = [row for row in output.compaction_rows if row.name.startswith("L")]
    levels = tuple(LevelShape(int(row.name[1:]), row.files, row.bytes, row.score) for row in rows)
    rests = rows and all(row.score < 1 and (row.name != "L0" or not row.files) for row in rows)
    return StoreShape(levels=levels or output.levels, pending_bytes=0 if rests else None)


def _fill_error(
    workdir: WorkDirectory,
    database_spec: DatabaseSpec,
    command: Command,
    ending: ProcessEnding,
    output: DbBenchOutput,
) -> IolabError | None:
    """Why a load did not leave the database that was requested; None when it did."""
    reason = "; ".join((*output.messages, ending.stderr_tail))
    if is_os_error(errno.ENOSPC, 0, reason) or is_os_error(errno.EDQUOT, 0, reason):
        size = format_bytes(database_spec.keys * database_spec.entry_bytes)
        message = (
            f"{excerpt(workdir.dir)} on host '{workdir.name}' ran full while a database of "
            f"{size} was loaded."
        )
        hint = "Make room there, more than twice its size, or set fewer workload.*.keys."
        return HostError(message, hint)
    faults = excerpt("; ".join(fill_faults(output, database_spec))).rstrip(".")
    outcome = exit_fault_text(ending, command)
    if outcome is None and not faults:
        return None
    because = "; ".join(part for part in (outcome, faults) if part)
    message = (
        f"{program_name(command)} on host '{workdir.name}' did not load the database that was "
        "asked "
        f"for: {because}."
    )
    return EngineError(message, OUTPUT_HINT)


def _database_path(workdir: WorkDirectory, job: DbBenchJob) -> str:
    return f"{golden_database_folder(workdir, job)}/database"


def _database_contents_document(job: DbBenchJob) -> dict[str, Any]:
    """What a database is made of."""
    options = [list(option) for option in sorted(job.options) if option[0] not in PROGRAMS]
    return {**to_builtins(job.loaded), "options": options, "database": job.database}


def _contents_and_version_document(job: DbBenchJob, version: str) -> dict[str, Any]:
    """The same with the version that made it: another one would make another tree."""
    return {**_database_contents_document(job), "version": version, "engine": job.engine}


_Number = int | None
