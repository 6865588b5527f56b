"""What tells one state of a session from the next, and that nothing in it leads elsewhere.

A session is written by renaming whole folders and files into place, so their inodes and times tell
when anything was added. A folder that was looked at is entered again only after it changed.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from iolab.errors import StoreError
from iolab.serve.limits import ENTRIES_MAX, FILE_BYTES_MAX
from iolab.store import layout, lock

_FILES: Final = (
    layout.SESSION,
    layout.STUDY,
    layout.PLAN,
    layout.HOSTS,
    layout.LEDGER,
    layout.LOCK,
)
_LEVELS: Final = 2
"""Below `points`: the folders of points, and in them those of runs."""

_FOLDERS_KNOWN_MAX: Final = 4 * ENTRIES_MAX
"""Folders that are remembered; then the memory begins anew."""

_SESSIONS_KNOWN_MAX: Final = 1024
"""Sessions whose folders are remembered."""

Stamp = tuple[int, int, int]
"""Inode, and when content and attributes changed (ns)."""

Folders = dict[str, tuple[Stamp, tuple[str, ...]]]
"""Each folder's stamp, and the folders in it."""


@dataclass(frozen=True, slots=True)
class State:
    """One state of a session: a digest of what lies there, when a run was last added (UTC, ns).

    `held` says that a process writes to it.
    """

    digest: str
    newest_ns: int
    held: bool


class Lookout:
    """Looks at sessions, and remembers the folders in which nothing leads elsewhere."""

    def __init__(self) -> None:
        self._known: OrderedDict[Path, Folders] = OrderedDict()

    def state(self, folder: Path) -> State:
        """How the session stands; StoreError where a file of it is a link or no plain file."""
        known = self._known.pop(folder, {})
        seen: Folders = {}
        told = hashlib.blake2b(digest_size=16)
        try:
            for name in _FILES:
                told.update(repr((name, _file_stamp(folder / name))).encode())
            newest = _walk(str(folder / layout.POINTS), _LEVELS, known, seen, told.update)
        except OSError as error:
            raise StoreError(
                f"The session cannot be read: {error.strerror}.",
                "Make it readable for the user who serves it.",
            ) from error
        self._remember(folder, seen)
        held = lock.is_held(folder)
        told.update(b"held" if held else b"")
        return State(told.hexdigest(), newest, held)

    def _remember(self, folder: Path, seen: Folders) -> None:
        self._known[folder] = seen
        while len(self._known) > _SESSIONS_KNOWN_MAX or (
            len(self._known) > 1 and sum(map(len, self._known.values())) > _FOLDERS_KNOWN_MAX
        ):
            self._known.popitem(last=False)


def _file_stamp(path: Path) -> tuple[int, ...]:
    """Of a file that is read by name; empty where there is none."""
    try:
        found = path.lstat()
    except FileNotFoundError:
        return ()
    _refuse(path.name, found, allow_folder=False)
    return (*_stamp(found), found.st_size)


def _walk(
    path: str,
    levels: int,
    known: Folders,
    seen: Folders,
    tell: Callable[[bytes], object],
) -> int:
    """Tell the folder's stamp and those below it; the newest time of them all."""
    try:
        found = os.lstat(path)
    except FileNotFoundError:
        return 0  # set aside by a writer just now, or not there yet
    if not stat.S_ISDIR(found.st_mode):
        raise _foreign(Path(path).name)
    stamp = _stamp(found)
    before = known.get(path)
    below = before[1] if before and before[0] == stamp else _folders(path)
    seen[path] = (stamp, below)
    if len(seen) > ENTRIES_MAX:
        raise StoreError(f"The session has more than {ENTRIES_MAX} folders.", "Look at its files.")
    tell(f"{path}{stamp}".encode("utf-8", "surrogateescape"))
    newest = found.st_mtime_ns
    if levels:
        newest = max(
            [newest, *(_walk(f"{path}/{name}", levels - 1, known, seen, tell) for name in below)]
        )
    return newest


def _folders(path: str) -> tuple[str, ...]:
    """The folders in a folder, sorted; StoreError where anything in it is not plain."""
    below = []
    with os.scandir(path) as entries:
        for entry in entries:
            found = entry.stat(follow_symlinks=False)
            _refuse(entry.name, found, allow_folder=True)
            if stat.S_ISDIR(found.st_mode):
                below.append(entry.name)
    return tuple(sorted(below))


def _refuse(name: str, found: os.stat_result, *, allow_folder: bool) -> None:
    if stat.S_ISDIR(found.st_mode) and allow_folder:
        return
    if not stat.S_ISREG(found.st_mode):
        raise _foreign(name)
    if found.st_size > FILE_BYTES_MAX:
        raise StoreError(
            f"'{name}' of the session has {found.st_size} bytes.",
            f"No file of a session has more than {FILE_BYTES_MAX}; see what it is.",
        )


def _foreign(name: str) -> StoreError:
    return StoreError(
        f"'{name}' of the session is a link or a special file, which is not followed.",
        "Put the file itself there; a session is served only from its own folder.",
    )


def _stamp(found: os.stat_result) -> Stamp:
    return (found.st_ino, found.st_mtime_ns, found.st_ctime_ns)
