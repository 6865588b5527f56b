"""The index of a session: the list of its committed runs, and how each ended.

A line a commit is appended to `index.jsonl`, after the run has its name, with size and digest of
the run's manifest, which has those of all its files. So a run that is in the index and not on disk
was lost or taken away, and one that is on disk only was committed by a writer that was killed just
then: it is read itself. Before a run is replaced its line is called off on the device.

The file only grows. When a session ends, `session.json` gets its size and digest.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec

from iolab.core.metric import RunResult, VerdictLevel
from iolab.core.regular_file import read_regular_file
from iolab.core.run import RunKey, RunStatus
from iolab.record import DECODE_ERRORS
from iolab.store import layout

_STATUSES: Final = {status.value: status for status in RunStatus}
_LEVELS: Final = {level.value: level for level in VerdictLevel}


class IndexEntry(NamedTuple):
    """What the index has of a run."""

    configuration: str
    workload: str
    status: RunStatus
    verdict_level: VerdictLevel


def index_entry(result: RunResult) -> IndexEntry:
    """What it will have of a run with this result."""
    return IndexEntry(result.configuration, result.workload, result.status, result.verdict.level)


class IndexedManifest(NamedTuple):
    """Size and digest of a run's manifest as it was committed."""

    size_bytes: int
    sha256: str


def add_index_entry(
    session_directory: Path, run_key: RunKey, entry: IndexEntry, manifest: IndexedManifest
) -> None:
    """Append a run that is committed; where that fails, readers find the run itself."""
    with suppress(OSError):
        _append_line(
            session_directory,
            [
                *run_key,
                entry.configuration,
                entry.workload,
                entry.status,
                entry.verdict_level,
                *manifest,
            ],
        )


def withdraw_index_entry(session_directory: Path, run_key: RunKey) -> None:
    """Say, flushed to the device, that what stands there of a run is no more. Raises OSError."""
    if (session_directory / layout.INDEX).exists():
        _append_line(session_directory, [*run_key], does_flush=True)


def read_index(session_directory: Path) -> dict[RunKey, IndexEntry]:
    """What the index has, also of runs that are not there any more; empty where it is unreadable.

    Lines that make no sense are passed over.
    """
    return {
        key: entry for key, (entry, _) in _parse_index(read_index_bytes(session_directory)).items()
    }


def indexed_manifest_by_run(content: bytes) -> dict[RunKey, IndexedManifest | None]:
    """The manifest of each run that an index lists; None in lines of older versions."""
    return {key: manifest for key, (_, manifest) in _parse_index(content).items()}


def read_index_bytes(session_directory: Path) -> bytes:
    """The bytes of the index; none where it cannot be read."""
    try:
        return read_regular_file(session_directory / layout.INDEX)
    except OSError:
        return b""


def _parse_index(content: bytes) -> dict[RunKey, tuple[IndexEntry, IndexedManifest | None]]:
    entries: dict[RunKey, tuple[IndexEntry, IndexedManifest | None]] = {}
    for line in content.split(b"\n"):
        try:
            digest, repeat, *ended = msgspec.json.decode(line)
            if not ended:
                entries.pop((digest, repeat), None)
                continue
            if not layout.is_run_key(digest, repeat):
                continue
            configuration, workload, status, level, *manifest = ended
            entry = IndexEntry(str(configuration), str(workload), _STATUSES[status], _LEVELS[level])
            listed = IndexedManifest(int(manifest[0]), str(manifest[1])) if manifest else None
            entries[digest, repeat] = (entry, listed)
        except (*DECODE_ERRORS, ValueError, TypeError, KeyError, IndexError):
            continue
    return entries


def _append_line(session_directory: Path, line: list[Any], *, does_flush: bool = False) -> None:
    """Append a line that begins with its break: one that was cut off before it spoils no other."""
    with (session_directory / layout.INDEX).open("ab") as file:
        file.write(b"\n" + msgspec.json.encode(line))
        if does_flush:
            file.flush()
            os.fsync(file.fileno())
