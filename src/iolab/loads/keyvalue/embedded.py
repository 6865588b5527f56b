"""What `iolab.ycsb.RocksTool` prints of an embedded database: pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from iolab.core.events import Phase
from iolab.core.run import PlannedRun
from iolab.errors import EngineError
from iolab.hosts.processes import told
from iolab.loads.keyvalue.databases import clone, commit_golden, drop_caches_of, golden, remove
from iolab.loads.keyvalue.options import LOAD_ONLY
from iolab.loads.keyvalue.workload import LevelShape, ServerKind, StoreShape, YcsbJob
from iolab.loads.keyvalue.ycsb import YcsbStore, load_command, rocks_command
from iolab.loads.keyvalue.ycsb_clients import (
    LOAD_THREADS,
    RecordShare,
    YcsbInstall,
    load_limit_s,
    load_records,
    work_folder,
)
from iolab.session.context import SessionContext
from iolab.session.driver import HostShare, on_each
from iolab.targets.work_directory import WorkDirectory

LEVELS_LIMIT: Final = 100
"""RocksDB has seven levels unless it is told otherwise."""


@dataclass(frozen=True, slots=True)
class RocksShape:
    """A database as it was counted: `keys` whole records, and its tree."""

    keys: int
    value_bytes: int
    memtable_entries: int
    shape: StoreShape


def read_shape(output: bytes) -> RocksShape | None:
    """The shape that was printed; None when the output is not whole. Never raises."""
    numbers = {
        match[1].decode(): int(match[2])
        for line in output.split(b"\n")
        if (match := _LINE.fullmatch(line))
    }
    wanted = ("end", "keys", "value_bytes", "memtable_entries", "pending_bytes")
    if any(name not in numbers for name in wanted):
        return None
    return RocksShape(
        keys=numbers["keys"],
        value_bytes=numbers["value_bytes"],
        memtable_entries=numbers["memtable_entries"],
        shape=StoreShape(tuple(_levels(numbers)), None, numbers["pending_bytes"]),
    )


def shape_faults(found: RocksShape | None, records: int) -> tuple[str, ...]:
    """Why a database is not the one that was loaded with so many records; empty when it is."""
    if found is None:
        return ("the database did not tell what it holds",)
    faults = []
    if found.keys != records:
        faults.append(f"the database holds {found.keys} records, and {records} were loaded")
    if found.memtable_entries:
        faults.append(f"{found.memtable_entries} entries of the database are still in memory")
    if found.shape.pending_bytes:
        faults.append(f"{found.shape.pending_bytes} bytes of the database are to be compacted")
    faults += [
        f"level 0 has {level.files} files left to compact after the load"
        for level in found.shape.levels
        if level.level == 0 and level.files
    ]
    return tuple(faults)


_LINE: Final = re.compile(rb"([a-z_]{1,40}(?:\.\d{1,2}\.[a-z]{1,10})?) (\d{1,18})")


def _levels(numbers: dict[str, int]) -> Iterator[LevelShape]:
    for level in range(LEVELS_LIMIT):
        files = numbers.get(f"level.{level}.files")
        if files:
            yield LevelShape(level, files, numbers.get(f"level.{level}.bytes", 0))


LAYOUT: Final = 1
"""Of the database's records and options; rises when the bindings write others."""

LOADED_BY: Final = LOAD_ONLY | {
    "fieldlengthdistribution",
    "insertorder",
    "minfieldlength",
    "zeropadding",
}
"""Options that decide what a loaded database holds."""

LOAD_AGAIN: Final = "Run again: the records are loaded again then."


@dataclass(frozen=True, slots=True)
class DatabaseStart:
    """The state of a client's database before a run: how it was copied, and its shape."""

    copied_by: str
    shape: StoreShape


def golden_folder(site: WorkDirectory, job: YcsbJob) -> str:
    """Where the loaded database lies; one for each set of records."""
    return f"{site.dir}/ycsb.loaded.{job.records}x{job.fields}x{job.field_bytes}"


def copy_folder(site: WorkDirectory) -> str:
    """Where the database of the present run lies."""
    return f"{site.dir}/ycsb.database"


class EmbeddedStores:
    """The databases of all clients of the present run."""

    def __init__(self) -> None:
        self._starts: dict[str, DatabaseStart] = {}

    def start_of(self, mine: HostShare) -> DatabaseStart | None:
        """How that client's database was at the start; None where it has none of its own."""
        return self._starts.get(mine.name)

    async def prepare(
        self,
        session: SessionContext,
        run: PlannedRun,
        job: YcsbJob,
        evidence: Sequence[HostShare],
        tools: Mapping[str, YcsbInstall],
    ) -> None:
        """A fresh copy of a whole database on each client, not in its page cache.

        Raises HostError or EngineError; Interrupted when the user wishes to stop in a load.
        """
        self._starts.clear()
        shapes: dict[str, StoreShape | None] = {}

        async def look(mine: HostShare) -> None:
            shapes[mine.name] = await _loaded_shape(mine.site, job, tools[mine.name])

        await on_each(evidence, look)
        missing = [mine for mine in evidence if shapes[mine.name] is None]
        if missing:
            shapes.update(await _load(session, run, job, missing, tools))
        if session.stop.requested:
            return
        session.begin(Phase.LAY_OUT, run, "a copy of the loaded database")

        async def copy(mine: HostShare) -> None:
            how = await clone(mine.site.host, golden_folder(mine.site, job), copy_folder(mine.site))
            shape = shapes[mine.name]
            if shape is not None:
                self._starts[mine.name] = DatabaseStart(how, shape)

        await session.stop.unless_requested(on_each(evidence, copy))
        await drop_caches_of(session, run, evidence, copy_folder)

    async def leave(self, mine: HostShare) -> None:
        """Remove that client's copy; what was loaded stays for the next run."""
        if self._starts.pop(mine.name, None):
            await remove(mine.site.host, copy_folder(mine.site))


async def _load(
    session: SessionContext,
    run: PlannedRun,
    job: YcsbJob,
    missing: Sequence[HostShare],
    tools: Mapping[str, YcsbInstall],
) -> dict[str, StoreShape]:
    """Load what is missing from nothing, flush, compact and count it; the markers come last."""
    whole = RecordShare(0, job.records)

    async def clear(mine: HostShare) -> None:
        await remove(mine.site.host, golden_folder(mine.site, job))

    session.begin(
        Phase.LAY_OUT, run, f"{job.records:,} records of {job.fields} x {job.field_bytes} bytes"
    )
    await on_each(missing, clear)
    work = {
        mine.name: (
            load_command(
                job,
                _store(mine.site, job),
                tools[mine.name].kit,
                work_folder(mine.site),
                first=whole.first,
                count=whole.count,
                threads=LOAD_THREADS,
                seconds=load_limit_s(whole.count),
            ),
            whole,
        )
        for mine in missing
    }
    await load_records(session, run, missing, work)
    session.begin(Phase.PROVE, run, "flush, compact and count the records")
    shapes: dict[str, StoreShape] = {}

    async def settle(mine: HostShare) -> None:
        shapes[mine.name] = await _settled(mine.site, job, tools[mine.name])

    await session.stop.unless_requested(on_each(missing, settle))
    return shapes


async def _settled(site: WorkDirectory, job: YcsbJob, tools: YcsbInstall) -> StoreShape:
    """The shape of a loaded database at rest. EngineError unless every record is there whole."""
    command = rocks_command(job, _store(site, job), tools.kit, work_folder(site), settle=True)
    words = await told(site.host, command.argv, cwd=command.cwd, limit_s=command.wall_limit_s)
    found = read_shape(words)
    if found is None or (faults := shape_faults(found, job.records)):
        said = "; ".join(faults) if found else "it does not tell what it holds"
        happened = f"The loaded database on host '{site.name}' cannot serve: {said}."
        raise EngineError(happened, LOAD_AGAIN)
    marker = {**_marker_of(job, tools), "shape": _marked(found.shape)}
    await commit_golden(site.host, golden_folder(site, job), marker)
    return found.shape


async def _loaded_shape(site: WorkDirectory, job: YcsbJob, tools: YcsbInstall) -> StoreShape | None:
    """The shape of the loaded database; None when there is none, or none that is whole."""
    marker = await golden(site.host, golden_folder(site, job))
    if marker is None:
        return None
    shape = _shape_of(marker.pop("shape", None))
    return shape if marker == _marker_of(job, tools) else None


def _store(site: WorkDirectory, job: YcsbJob) -> YcsbStore:
    return YcsbStore(ServerKind.EMBEDDED, database=golden_folder(site, job))


def _marker_of(job: YcsbJob, tools: YcsbInstall) -> dict[str, Any]:
    """What a whole database says of itself, but for its shape."""
    return {
        "engine": job.engine,
        "layout": LAYOUT,
        "records": job.records,
        "fields": job.fields,
        "field_bytes": job.field_bytes,
        "options": [list(one) for one in sorted(job.options) if one[0] in LOADED_BY],
        "ycsb": tools.version,
    }


def _marked(shape: StoreShape) -> dict[str, Any]:
    """A shape as a marker holds it."""
    levels = [[one.level, one.files, one.bytes] for one in shape.levels]
    return {"levels": levels, "pending_bytes": shape.pending_bytes}


def _shape_of(marked: object) -> StoreShape | None:
    """The shape that a marker holds; None for anything else."""
    if not isinstance(marked, dict):
        return None
    levels, pending = marked.get("levels"), marked.get("pending_bytes")
    if not isinstance(levels, list) or not isinstance(pending, int):
        return None
    if not all(
        isinstance(one, list) and len(one) == 3 and all(isinstance(part, int) for part in one)
        for one in levels
    ):
        return None
    return StoreShape(tuple(LevelShape(*one) for one in levels), pending_bytes=pending)
