"""Finds the sessions below a directory: never through a symbolic link, and not without bounds."""

from __future__ import annotations

import hashlib
import os
from collections import deque
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from iolab.serve.limits import DEPTH_MAX, FOLDERS_MAX, SESSIONS_MAX
from iolab.store import layout

ID_BYTES: Final = 8
"""Enough to tell five hundred places apart, and short in an address."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a session lies: its opaque id, its name below the directory served, and the folder."""

    id: str
    name: str
    folder: Path


@dataclass(frozen=True, slots=True)
class Found:
    """The sessions that were found, by name; `notes` say what was not looked at."""

    places: tuple[Place, ...]
    notes: tuple[str, ...]


def find_sessions(root: Path) -> Found:
    """The sessions at `root` and below it; folders that are hidden or cannot be read are left."""
    found: list[Place] = []
    waiting = deque([(root, 0)])
    entered = closed = 0
    while waiting and len(found) < SESSIONS_MAX and entered < FOLDERS_MAX:
        folder, depth = waiting.popleft()
        entered += 1
        try:
            below, is_session = _look(folder)
        except OSError:
            closed += 1
            continue
        if is_session:
            found.append(_place(root, folder))
        elif depth < DEPTH_MAX:
            waiting.extend((folder / name, depth + 1) for name in below)
    notes = []
    if waiting:
        notes.append(
            f"There may be more: the search ended at {len(found)} sessions and {entered} folders."
        )
    if closed:
        notes.append(f"Folders that could not be read: {closed}.")
    return Found(tuple(sorted(found, key=lambda place: place.name)), tuple(notes))


def _look(folder: Path) -> tuple[list[str], bool]:
    """The folders in it that may hold sessions, and whether it is a session itself."""
    below = []
    is_session = False
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.name == layout.SESSION:
                is_session = entry.is_file(follow_symlinks=False)
            elif not entry.name.startswith(".") and entry.is_dir(follow_symlinks=False):
                below.append(entry.name)
    return sorted(below), is_session


def _place(root: Path, folder: Path) -> Place:
    name = str(folder.relative_to(root)) if folder != root else "."
    seen = hashlib.blake2b(os.fsencode(name), digest_size=ID_BYTES).hexdigest()
    return Place(seen, os.fsencode(name).decode("utf-8", "backslashreplace"), folder)
