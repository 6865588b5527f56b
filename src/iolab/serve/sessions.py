"""The sessions below a directory: each in a line, or with all its results."""

from __future__ import annotations

import hashlib
import os
import stat
from collections import OrderedDict
from collections.abc import Callable, Sequence
from pathlib import Path
from threading import Lock
from typing import Final

from iolab.analysis.points import summarise_points
from iolab.analysis.stored_results import study_and_results_with_session_checks
from iolab.core.events import SessionStatus
from iolab.core.metric import RunResult
from iolab.core.study import Study
from iolab.errors import IolabError, StoreError
from iolab.record import Record
from iolab.report.best import RunCounts, count_runs_by_verdict_and_status
from iolab.report.brief import LoadReportKinds
from iolab.report.session_answer import SessionAnswer, session_answer
from iolab.serve.limits import (
    ENTRIES_MAX,
    FILE_BYTES_MAX,
    FOUND_SESSIONS_VALID_S,
    LISTING_S,
    READERS_MAX,
)
from iolab.store import layout
from iolab.store.documents import SessionDocument
from iolab.store.durable import disk_errors_as_store_errors, is_locked
from iolab.store.reader import SessionReader
from iolab.store.search import find_session_folders
from iolab.store.verify import run_file_stamps

ID_BYTES: Final = 8
"""Enough to tell five hundred places apart, and short in an address."""

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

_SUMMARIES_MAX: Final = 2048
"""Sessions that are remembered in short; a list shows fewer."""


class SessionFolder(Record):
    """Where a session lies: its opaque id, its name below the directory served, and the folder."""

    id: str
    name: str
    path: Path


class SessionFolderList(Record):
    """The sessions that were found, by name; `notes` say what was not looked at."""

    folders: tuple[SessionFolder, ...]
    notes: tuple[str, ...]


def find_sessions(root: Path) -> SessionFolderList:
    """The sessions at `root` and below it, by name."""
    found = find_session_folders(root)
    folders = (_session_folder(root, folder) for folder in found.folders)
    return SessionFolderList(tuple(sorted(folders, key=lambda place: place.name)), found.notes)


def _session_folder(root: Path, folder: Path) -> SessionFolder:
    name = str(folder.relative_to(root)) if folder != root else "."
    digest = hashlib.blake2b(os.fsencode(name), digest_size=ID_BYTES).hexdigest()
    return SessionFolder(digest, os.fsencode(name).decode("utf-8", "backslashreplace"), folder)


Stamp = tuple[int, int, int]
"""Inode, and when content and attributes changed (ns)."""

Folders = dict[str, tuple[Stamp, tuple[str, ...]]]
"""Each folder's stamp, and the folders in it."""


class SessionStamp(Record):
    """A digest of what lies there, when a run was last added (UTC, ns).

    `is_being_written` says that a process writes to it.
    """

    digest: str
    newest_run_ns: int
    is_being_written: bool


class SessionStampReader:
    """Looks at sessions, and remembers the folders in which nothing leads elsewhere."""

    def __init__(self) -> None:
        self._known: OrderedDict[Path, Folders] = OrderedDict()

    def read_stamp(self, folder: Path) -> SessionStamp:
        """How the session stands; StoreError where a file of it is a link or no plain file."""
        remembered = self._known.pop(folder, {})
        current: Folders = {}
        digest = hashlib.blake2b(digest_size=16)
        try:
            for name in _FILES:
                digest.update(repr((name, _file_stamp(folder / name))).encode())
            newest = _hash_stamps_and_get_newest_ns(
                str(folder / layout.POINTS), _LEVELS, remembered, current, digest.update
            )
        except OSError as error:
            raise StoreError(
                f"The session cannot be read: {error.strerror}.",
                "Make it readable for the user who serves it.",
            ) from error
        self._remember_folders(folder, current)
        held = is_locked(folder)
        digest.update(b"held" if held else b"")
        return SessionStamp(digest.hexdigest(), newest, held)

    def _remember_folders(self, folder: Path, folders: Folders) -> None:
        self._known[folder] = folders
        while len(self._known) > _SESSIONS_KNOWN_MAX or (
            len(self._known) > 1 and sum(map(len, self._known.values())) > _FOLDERS_KNOWN_MAX
        ):
            self._known.popitem(last=False)


def _file_stamp(path: Path) -> tuple[int, ...]:
    """Of a file that is read by name; empty where there is none."""
    try:
        info = path.lstat()
    except FileNotFoundError:
        return ()
    _require_plain_file(path.name, info, is_folder_allowed=False)
    return (*_stat_stamp(info), info.st_size)


def _hash_stamps_and_get_newest_ns(
    path: str,
    levels_below: int,
    known_folders: Folders,
    visited_folders_to_fill: Folders,
    update_hash: Callable[[bytes], object],
) -> int:
    """Tell the folder's stamp and those below it; the newest time of them all."""
    try:
        info = os.lstat(path)
    except FileNotFoundError:
        return 0  # set aside by a writer just now, or not there yet
    if not stat.S_ISDIR(info.st_mode):
        raise _not_plain_error(Path(path).name)
    stamp = _stat_stamp(info)
    before = known_folders.get(path)
    below = before[1] if before and before[0] == stamp else _plain_subfolders(path)
    visited_folders_to_fill[path] = (stamp, below)
    if not levels_below:  # what was written into a run in place, its folder does not tell
        update_hash(repr(run_file_stamps(Path(path))).encode())
    if len(visited_folders_to_fill) > ENTRIES_MAX:
        raise StoreError(f"The session has more than {ENTRIES_MAX} folders.", "Look at its files.")
    update_hash(f"{path}{stamp}".encode("utf-8", "surrogateescape"))
    newest = info.st_mtime_ns
    for name in below if levels_below else ():
        newest = max(
            newest,
            _hash_stamps_and_get_newest_ns(
                f"{path}/{name}",
                levels_below - 1,
                known_folders,
                visited_folders_to_fill,
                update_hash,
            ),
        )
    return newest


def _plain_subfolders(path: str) -> tuple[str, ...]:
    """The folders in a folder, sorted; StoreError where anything in it is not plain."""
    below = []
    with os.scandir(path) as entries:
        for entry in entries:
            info = entry.stat(follow_symlinks=False)
            _require_plain_file(entry.name, info, is_folder_allowed=True)
            if stat.S_ISDIR(info.st_mode):
                below.append(entry.name)
    return tuple(sorted(below))


def _require_plain_file(
    file_name: str, stat_result: os.stat_result, *, is_folder_allowed: bool
) -> None:
    if stat.S_ISDIR(stat_result.st_mode) and is_folder_allowed:
        return
    if not stat.S_ISREG(stat_result.st_mode):
        raise _not_plain_error(file_name)
    if stat_result.st_size > FILE_BYTES_MAX:
        raise StoreError(
            f"'{file_name}' of the session has {stat_result.st_size} bytes.",
            f"No file of a session has more than {FILE_BYTES_MAX}; see what it is.",
        )


def _not_plain_error(file_name: str) -> StoreError:
    return StoreError(
        f"'{file_name}' of the session is a link or a special file, which is not followed.",
        "Put the file itself there; a session is served only from its own folder.",
    )


def _stat_stamp(info: os.stat_result) -> Stamp:
    return (info.st_ino, info.st_mtime_ns, info.st_ctime_ns)


ControllerClock = Callable[[], float]
"""Seconds that only grow."""


class SessionSummary(Record):
    """A session in a line: what it is, how it stands, its runs by verdict, how many are planned.

    `answer` is the sentence that its report begins with, `demonstration_prefix` what that begins
    with where no drives were measured.

    `may_add_runs` says that results may ask for more runs than planned, `damage_count` counts what
    is left out.
    """

    session: SessionDocument
    run_counts: RunCounts
    answer: str
    planned_count: int
    may_add_runs: bool
    stamp: SessionStamp
    damage_count: int = 0
    demonstration_prefix: str = ""


class SessionLine(Record):
    """A session of the list: in short, or why it cannot be read, or neither where not read yet."""

    folder: SessionFolder
    summary: SessionSummary | None
    fault: str

    def has_words(self, words: Sequence[str]) -> bool:
        """Whether each word, in small letters, is part of what the list shows of the session."""
        texts = [self.folder.name, self.fault]
        if self.summary is not None:
            session = self.summary.session
            texts += [session.title, session.study, session.scale, session.status.value]
            texts.append(self.summary.answer)
        content = "\n".join(texts).casefold()
        return all(word in content for word in words)


class SessionListing(Record):
    """The sessions, newest first, and what is to be known of the list itself."""

    lines: tuple[SessionLine, ...]
    notes: tuple[str, ...]
    is_complete: bool

    def lines_with_words(self, search_text: str) -> tuple[SessionLine, ...]:
        """The sessions that have every word of the text."""
        words = search_text.casefold().split()
        return tuple(line for line in self.lines if line.has_words(words))


class LoadedSession(Record):
    """A session read for a page: `results` and `study` as `iolab show` has them."""

    folder: SessionFolder
    stamp: SessionStamp
    reader: SessionReader
    session: SessionDocument
    study: Study
    results: tuple[RunResult, ...]


class SessionLibrary:
    """The sessions below `root`, which must be absolute and without links in it."""

    def __init__(self, root: Path, clock: ControllerClock, kinds: LoadReportKinds) -> None:
        self.root = root
        self._kinds = kinds
        self._clock = clock
        self._lock = Lock()
        self._stamp_reader = SessionStampReader()
        self._found: SessionFolderList | None = None
        self._found_at = 0.0
        self._known: OrderedDict[str, tuple[str, SessionSummary | str]] = OrderedDict()
        self._readers: OrderedDict[str, tuple[tuple[int, int], SessionReader]] = OrderedDict()

    def list_sessions(self, limit_s: float = LISTING_S) -> SessionListing:
        """Every session; after `limit_s` those that were never read stay without a summary."""
        with self._lock:
            found = self._cached_session_folders(does_search_again=True)
            until = self._clock() + limit_s
            lines = [self._cached_session_line(place, until) for place in found.folders]
            complete = all(line.summary or line.fault for line in lines)
            return SessionListing(
                tuple(sorted(lines, key=_session_line_sort_key)), found.notes, complete
            )

    def session_count(self) -> int:
        """How many sessions there are, none of them read."""
        with self._lock:
            return len(self._cached_session_folders(does_search_again=True).folders)

    def session_folder(self, session_id: str) -> SessionFolder | None:
        """Where the session of that id lies; None where there is none."""
        with self._lock:
            return next(
                (
                    place
                    for place in self._cached_session_folders().folders
                    if place.id == session_id
                ),
                None,
            )

    def session_stamp(self, session_folder: SessionFolder) -> SessionStamp:
        """How a session stands now; StoreError where it must not be read."""
        with self._lock:
            return self._stamp_reader.read_stamp(session_folder.path)

    def load_session(self, session_folder: SessionFolder) -> LoadedSession:
        """A session with its results; StoreError where it cannot or must not be read."""
        with self._lock:
            return self._load_session(session_folder)

    def _cached_session_folders(self, *, does_search_again: bool = False) -> SessionFolderList:
        now = self._clock()
        if (
            does_search_again
            or self._found is None
            or now - self._found_at > FOUND_SESSIONS_VALID_S
        ):
            self._found, self._found_at = find_sessions(self.root), now
        return self._found

    def _cached_session_line(self, session_folder: SessionFolder, deadline_s: float) -> SessionLine:
        try:
            stamp = self._stamp_reader.read_stamp(session_folder.path)
            remembered = self._known.get(session_folder.id)
            if remembered is None or remembered[0] != stamp.digest:
                if self._clock() > deadline_s:
                    return SessionLine(session_folder, None, "")
                remembered = (stamp.digest, self._summary_or_fault(session_folder))
                self._known[session_folder.id] = remembered
                if len(self._known) > _SUMMARIES_MAX:
                    self._known.popitem(last=False)
        except IolabError as error:
            return SessionLine(session_folder, None, self._error_without_root(error))
        short = remembered[1]
        return (
            SessionLine(session_folder, None, short)
            if isinstance(short, str)
            else SessionLine(session_folder, short, "")
        )

    def _summary_or_fault(self, session_folder: SessionFolder) -> SessionSummary | str:
        try:
            opened = self._load_session(session_folder)
            plan = opened.reader.plan
            answer = self._session_answer(opened)
            return SessionSummary(
                session=opened.session,
                run_counts=count_runs_by_verdict_and_status(opened.results),
                answer=answer.answer.text,
                planned_count=len(plan.runs),
                may_add_runs=bool(plan.extra_run_count),
                stamp=opened.stamp,
                damage_count=len(opened.reader.damage_of_documents_and_manifests()),
                demonstration_prefix=answer.demonstration_prefix,
            )
        except IolabError as error:
            return self._error_without_root(error)

    def _session_answer(self, session: LoadedSession) -> SessionAnswer:
        points = summarise_points(session.results, session.study)
        return session_answer(
            self._kinds, session.study, points, session.results, session.reader.facts
        )

    def _error_without_root(self, error: IolabError) -> str:
        """What an error says, of places below the directory and not of where that lies."""
        return str(error).replace(f"{self.root}/", "")

    def _load_session(self, session_folder: SessionFolder) -> LoadedSession:
        stamp = self._stamp_reader.read_stamp(session_folder.path)
        reader = self._cached_session_reader(session_folder)
        study, results = study_and_results_with_session_checks(reader)
        return LoadedSession(session_folder, stamp, reader, reader.session, study, results)

    def _cached_session_reader(self, session_folder: SessionFolder) -> SessionReader:
        """The reader that knows the session's runs already, unless another took its place."""
        with disk_errors_as_store_errors(session_folder.path / layout.PLAN, "read"):
            info = (session_folder.path / layout.PLAN).lstat()
        stamp = (info.st_ino, info.st_mtime_ns)
        remembered = self._readers.pop(session_folder.id, None)
        if remembered is None or remembered[0] != stamp:
            remembered = (stamp, SessionReader(session_folder.path))
        self._readers[session_folder.id] = remembered
        if len(self._readers) > READERS_MAX:
            self._readers.popitem(last=False)
        return remembered[1]


def _session_line_sort_key(line: SessionLine) -> tuple[int, int, str]:
    """Running sessions first, then by age; what cannot be read comes last."""
    if line.summary is None:
        return (2 if line.fault else 1, 0, line.folder.name)
    running = line.summary.session.status is SessionStatus.RUNNING
    return (-1 if running else 0, -line.summary.session.created_real_ns, line.folder.name)
