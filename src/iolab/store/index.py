"""The index of a session: how each committed run ended, for a look at very many of them.

A line a commit is appended to `index.jsonl`, after the run has its name. The runs are the truth:
who reads the index holds it against their directories, reads what it lacks, and passes over what it
has too much. So it may be lost, cut off or removed. Before a run is replaced its line is called
off on the device: a line that is left, of a run that is there, is that run's.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, NamedTuple

import orjson

from iolab.core.metric import Level, Result
from iolab.core.run import RunKey, RunStatus
from iolab.core.toml import read_regular
from iolab.store import layout

_STATUSES: Final = {status.value: status for status in RunStatus}
_LEVELS: Final = {level.value: level for level in Level}


class IndexEntry(NamedTuple):
    """What the index has of a run."""

    configuration: str
    workload: str
    status: RunStatus
    level: Level


def entry_of(result: Result) -> IndexEntry:
    """What it will have of a run with this result."""
    return IndexEntry(result.configuration, result.workload, result.status, result.verdict.level)


def add(session: Path, key: RunKey, entry: IndexEntry) -> None:
    """Append a run that is committed; where that fails, readers find the run itself."""
    with suppress(OSError):
        _append(session, [*key, entry.configuration, entry.workload, entry.status, entry.level])


def call_off(session: Path, key: RunKey) -> None:
    """Say, flushed to the device, that what stands there of a run is no more. Raises OSError."""
    if (session / layout.INDEX).exists():
        _append(session, [*key], flush=True)


def read_index(session: Path) -> dict[RunKey, IndexEntry]:
    """What the index has, also of runs that are not there any more; empty where it is unreadable.

    Lines that make no sense are passed over.
    """
    try:
        content = read_regular(session / layout.INDEX)
    except OSError:
        return {}
    entries: dict[RunKey, IndexEntry] = {}
    for line in content.split(b"\n"):
        try:
            digest, repeat, *ended = orjson.loads(line)
            if not ended:
                entries.pop((digest, repeat), None)
                continue
            configuration, workload, status, level = ended
            entries[digest, repeat] = IndexEntry(
                str(configuration), str(workload), _STATUSES[status], _LEVELS[level]
            )
        except (ValueError, TypeError, KeyError):
            continue
    return entries


def _append(session: Path, line: list[Any], *, flush: bool = False) -> None:
    """Append a line that begins with its break: one that was cut off before it spoils no other."""
    with (session / layout.INDEX).open("ab") as file:
        file.write(b"\n" + orjson.dumps(line))
        if flush:
            file.flush()
            os.fsync(file.fileno())
