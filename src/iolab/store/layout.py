"""Where everything of a session lies, and the version of that layout.

See docs/reference/store.md for the meaning of each file.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from iolab.core.run import RunKey


FORMAT: Final = 5
"""Raised when a file changes in a way that an older reader would misread."""

FORMAT_OLDEST: Final = 2
"""The oldest of which documents are read that have today's shape; earlier ones had no seals."""

SESSION: Final = "session.json"
STUDY: Final = "study.toml"
PLAN: Final = "plan.json"
HOSTS: Final = "hosts.json"
LEDGER: Final = "ledger.json"
LOCK: Final = "lock"
INDEX: Final = "index.jsonl"
POINTS: Final = "points"

MANIFEST: Final = "manifest.json"
MANIFEST_SUM: Final = "manifest.sha256"
INTERVALS: Final = "intervals.parquet"
BINS: Final = "bins.parquet"
COUNTERS: Final = "counters.parquet"
NEIGHBOUR_INTERVALS: Final = "neighbour-intervals.parquet"
NEIGHBOUR_BINS: Final = "neighbour-bins.parquet"
ENGINE: Final = "engine"

_OWN_FILES: Final = tuple((name,) for name in (SESSION, STUDY, PLAN, HOSTS, LEDGER, LOCK, INDEX))
_DIGEST: Final = re.compile(r"[0-9A-Za-z_-]{1,64}")
_RUN: Final = re.compile(r"run-([1-9][0-9]{0,8})")
_ATTEMPT: Final = re.compile(r"run-[1-9][0-9]{0,8}\.attempt-[1-9][0-9]{0,8}")
_UNFINISHED: Final = re.compile(r"\..+\.tmp-[0-9]+")
_NEIGHBOUR_FILES: Final = frozenset((NEIGHBOUR_INTERVALS, NEIGHBOUR_BINS))
_RUN_FILES: Final = (
    frozenset((MANIFEST, MANIFEST_SUM, INTERVALS, BINS, COUNTERS)) | _NEIGHBOUR_FILES
)
_OUTPUT_FILE: Final = re.compile(r"[0-9]{1,9}\.zst")


def point_directory(session_directory: Path, digest: str) -> Path:
    """The directory of a point; ValueError for a digest that could lead elsewhere."""
    if not _DIGEST.fullmatch(digest):
        raise ValueError(f"'{digest}' is not the digest of a point")
    return session_directory / POINTS / digest


def is_run_key(digest: object, repeat: object) -> bool:
    """Whether a point's digest and a repeat can name a run, as read from outside."""
    return (
        isinstance(digest, str)
        and _DIGEST.fullmatch(digest) is not None
        and isinstance(repeat, int)
        and repeat >= 1
    )


def run_directory(session_directory: Path, run_key: RunKey) -> Path:
    """The directory of one committed run."""
    digest, repeat = run_key
    if repeat < 1:
        raise ValueError(f"repeats count from 1, not {repeat}")
    return point_directory(session_directory, digest) / f"run-{repeat}"


def temporary_path(final_path: Path, pid: int) -> Path:
    """Where `final_path` is written before it is renamed into place."""
    return final_path.with_name(f".{final_path.name}.tmp-{pid}")


def output_file_name(index: int) -> str:
    """The file of a run's n-th engine output, relative to the run.

    Names of hosts and outputs come from outside and stand in the manifest alone, never in a path.
    """
    return f"{ENGINE}/{index}.zst"


def committed_folder_by_run(session_directory: Path) -> dict[RunKey, Path]:
    """Every run in place, ordered by digest and repeat; unfinished ones are not seen."""
    return {
        key: run_directory(session_directory, key)
        for key in sorted(committed_run_keys(session_directory))
    }


def committed_run_keys(session_directory: Path) -> Iterator[RunKey]:
    """The same by their keys, in no order; of a hundred thousand runs no path is made."""
    points = session_directory / POINTS
    if not points.is_dir():
        return
    with os.scandir(points) as every:
        names = [point.name for point in every if _DIGEST.fullmatch(point.name) and point.is_dir()]
    for digest in names:
        for name in os.listdir(f"{points}/{digest}"):  # noqa: PTH208 - a Path each is too slow
            if match := _RUN.fullmatch(name):
                yield digest, int(match.group(1))


def run_key_of_directory(run_directory: Path) -> RunKey:
    """Which run it is that lies, or as an earlier attempt once lay, in that directory."""
    number = run_directory.name.removeprefix("run-").partition(".")[0]
    return run_directory.parent.name, int(number)


def earlier_attempt_directories(session_directory: Path) -> tuple[Path, ...]:
    """Runs that failed or were interrupted and were measured again later."""
    return tuple(
        sorted(run for run in _point_entries(session_directory) if _ATTEMPT.fullmatch(run.name))
    )


def is_session_entry_name(name: str) -> bool:
    """Whether a session has a file or folder of that name in its directory."""
    return (name,) in _OWN_FILES or name == POINTS or _UNFINISHED.fullmatch(name) is not None


def foreign_point_entries(session_directory: Path) -> Iterator[Path]:
    """What lies below the points of a session and is no file or folder of a run, links included.

    A folder that no session has is given as one; what a writer left half-written is not.
    """
    for folder, folders, files in os.walk(session_directory / POINTS):
        place = Path(folder).relative_to(session_directory / POINTS)
        names = [*folders, *files]
        folders[:] = [
            name for name in folders if _is_known_folder_below_points((*place.parts, name))
        ]
        for name in names:
            path = Path(folder, name)
            is_own_file = name in files and _is_run_file((*place.parts, name))
            if _UNFINISHED.fullmatch(name):
                continue
            if path.is_symlink() or not (is_own_file or name in folders):
                yield path


def _is_known_folder_below_points(path_parts: tuple[str, ...]) -> bool:
    """Whether `path_parts` below `points` are a point, a run or attempt of it, or its outputs."""
    point, run, outputs = (*path_parts, "", "")[:3]
    return (
        _DIGEST.fullmatch(point) is not None
        and (not run or bool(_RUN.fullmatch(run) or _ATTEMPT.fullmatch(run)))
        and outputs in ("", ENGINE)
        and len(path_parts) <= 3
    )


def _is_run_file(path_parts: tuple[str, ...]) -> bool:
    """Whether `path_parts` below `points` are a file of a run."""
    match len(path_parts):
        case 3:
            return path_parts[2] in _RUN_FILES
        case 4:
            return _OUTPUT_FILE.fullmatch(path_parts[3]) is not None
        case _:
            return False


def session_directory_of_file(path: Path) -> Path | None:
    """The session of which that is a file, by an absolute path without links; None for others."""
    for session in path.parents:
        place = path.relative_to(session).parts
        if (place[0] == POINTS or place in _OWN_FILES) and (session / SESSION).exists():
            return session
    return None


def unfinished_paths(session_directory: Path) -> tuple[Path, ...]:
    """What a writer that died has left half-written."""
    places = (session_directory, *_point_directories(session_directory))
    return tuple(
        entry for place in places for entry in place.iterdir() if _UNFINISHED.fullmatch(entry.name)
    )


def free_attempt_path(run_directory: Path) -> Path:
    """The first free name beside `run_directory` for the attempt that a newer one replaces."""
    taken = {entry.name for entry in run_directory.parent.iterdir()}
    number = 1
    while f"{run_directory.name}.attempt-{number}" in taken:
        number += 1
    return run_directory.with_name(f"{run_directory.name}.attempt-{number}")


def _point_directories(session_directory: Path) -> Iterator[Path]:
    """The directories of all points that have one."""
    points = session_directory / POINTS
    if points.is_dir():
        yield from (
            entry for entry in points.iterdir() if _DIGEST.fullmatch(entry.name) and entry.is_dir()
        )


def _point_entries(session_directory: Path) -> Iterator[Path]:
    """Everything that lies in a point's directory."""
    for point in _point_directories(session_directory):
        yield from point.iterdir()
