"""Finds the session folders below a directory: through no symbolic link, and within bounds."""

from __future__ import annotations

import json
import os
from collections import deque
from operator import itemgetter
from pathlib import Path
from typing import Final

from iolab.core.regular_file import read_regular_file
from iolab.record import Record
from iolab.store import layout

DEPTH_MAX: Final = 4
"""Levels of folders below the directory: site, system, month, session."""

SESSIONS_MAX: Final = 500
"""Sessions that are found: more do not help a reader, and each costs a look."""

FOLDERS_MAX: Final = 20_000
"""Folders that are entered, so that the search of a home directory ends too."""


class SessionFolders(Record):
    """The sessions found, sorted by path; `notes` say what the search did not enter."""

    folders: tuple[Path, ...]
    notes: tuple[str, ...]


def find_session_folders(root: Path) -> SessionFolders:
    """The sessions at `root` and below it; hidden and unreadable folders are not entered."""
    found: list[Path] = []
    waiting = deque([(root, 0)])
    entered = unreadable = 0
    while waiting and len(found) < SESSIONS_MAX and entered < FOLDERS_MAX:
        folder, depth = waiting.popleft()
        entered += 1
        try:
            subfolders, is_session = _subfolders_and_is_session(folder)
        except OSError:
            unreadable += 1
            continue
        if is_session:
            found.append(folder)
        elif depth < DEPTH_MAX:
            waiting.extend((folder / name, depth + 1) for name in subfolders)
    notes = []
    if waiting:
        notes.append(
            f"There may be more: the search ended at {len(found)} sessions and {entered} folders."
        )
    if unreadable:
        notes.append(f"Folders that could not be read: {unreadable}.")
    return SessionFolders(tuple(sorted(found)), tuple(notes))


def newest_session_directory(root: Path) -> Path | None:
    """The session at or below `root` that was begun last; None where there is none."""
    dated = (
        (_session_created_ns_or_zero(folder), folder)
        for folder in find_session_folders(root).folders
    )
    return max(dated, default=(0, None), key=itemgetter(0))[1]


def _session_created_ns_or_zero(folder: Path) -> int:
    """When a session was begun (UTC, ns); 0 where its document cannot be read."""
    try:
        document = json.loads(read_regular_file(folder / layout.SESSION))
    except (OSError, ValueError, RecursionError):
        return 0
    created = document.get("created_real_ns") if isinstance(document, dict) else None
    return created if isinstance(created, int) else 0


def _subfolders_and_is_session(folder: Path) -> tuple[list[str], bool]:
    """The folders in it that may hold sessions, and whether it is a session itself."""
    subfolders = []
    is_session = False
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.name == layout.SESSION:
                is_session = entry.is_file(follow_symlinks=False)
            elif not entry.name.startswith(".") and entry.is_dir(follow_symlinks=False):
                subfolders.append(entry.name)
    return sorted(subfolders), is_session
