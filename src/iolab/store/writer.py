"""Writes a session: each run committed whole or not at all, one writer at a time."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from os import getpid
from pathlib import Path
from typing import Final, Self

from msgspec.structs import replace

from iolab.core.events import SessionPhaseTime, SessionStatus
from iolab.core.host import HostFacts
from iolab.core.metric import RunResult
from iolab.core.run import Plan, RunKey, RunRecord, RunStatus
from iolab.core.study import Study
from iolab.core.target_state import TargetLedger
from iolab.errors import StoreError
from iolab.store import index, layout
from iolab.store.codec import encode, encode_with_digest, escape_surrogates, read_digested_document
from iolab.store.documents import (
    LATER_FILES,
    HistoryEntry,
    HostFactsAtStart,
    HostsDocument,
    LedgerDocument,
    PlanDocument,
    RunOrigin,
    SessionDocument,
    StoredAnalysis,
)
from iolab.store.durable import (
    SessionLock,
    disk_errors_as_store_errors,
    rename_and_sync,
    replace_file,
    sync_to_disk,
)
from iolab.store.reader import read_session
from iolab.store.runs import write_run
from iolab.store.verify import describe_stored_file, read_manifest_head, read_optional_document
from iolab.version import __version__

ControllerClock = Callable[[], int]
"""Nanoseconds of UTC since 1970."""

_BEFORE_SESSION: Final = frozenset({layout.LOCK, layout.STUDY, layout.PLAN, layout.POINTS})
"""What a creation that was cut short may have left: the session's own file is written last."""


class SessionWriter:
    """The only writer of a session, from `create` or `reopen` to `end_session_and_close`."""

    def __init__(
        self, directory: Path, lock: SessionLock, session: SessionDocument, clock: ControllerClock
    ) -> None:
        self._directory = directory
        self._lock = lock
        self._session = session
        self._clock = clock

    @classmethod
    def create(
        cls,
        directory: Path,
        study: Study,
        plan: Plan,
        session_id: str,
        command: Sequence[str],
        *,
        clock: ControllerClock = time.time_ns,
    ) -> Self:
        """Begin a session in a directory that is new or empty; StoreError otherwise."""
        is_new = _claim_directory_and_tell_if_created(directory)
        lock = SessionLock(directory)
        try:
            require_no_session(directory)  # another may have been quicker
        except StoreError:
            lock.release()
            raise
        try:
            with disk_errors_as_store_errors(directory, "write"):
                session = _write_study_and_plan_and_build_session(
                    directory, study, plan, session_id, tuple(command), clock()
                )
                _write_session_document(directory, session)
                sync_to_disk(directory.absolute().parent)
        except BaseException:
            _remove_failed_session(directory, was_directory_created=is_new)
            lock.release()
            raise
        return cls(directory, lock, session, clock)

    @classmethod
    def reopen(
        cls, directory: Path, command: Sequence[str] = (), *, clock: ControllerClock = time.time_ns
    ) -> Self:
        """Continue a session: it runs again, and what a dead writer left half-written is removed.

        StoreError if there is no session, if it is damaged, or while another process writes to it.
        """
        read_session(directory)
        lock = SessionLock(directory)
        try:
            session = read_session(directory)  # as it stands now that nobody else writes
            with disk_errors_as_store_errors(directory, "write"):
                for leftover in layout.unfinished_paths(directory):
                    _remove_path(leftover)
            _add_missing_runs_to_index(directory)
            writer = cls(directory, lock, session, clock)
            writer._change_status(SessionStatus.RUNNING, None, tuple(command))
        except BaseException:
            lock.release()
            raise
        return writer

    def record_host_facts_at_start(
        self, facts: Mapping[str, HostFacts] | Iterable[tuple[str, HostFacts]], agent_version: str
    ) -> None:
        """Keep the facts of all hosts, by name, as this start of the session found them."""
        path = self._directory / layout.HOSTS
        start = HostFactsAtStart(self._clock(), agent_version, dict(facts))
        with disk_errors_as_store_errors(path, "write"):
            kept = read_optional_document(HostsDocument, path)
            starts = (*(kept.starts if kept else ()), start)
            replace_file(path, encode_with_digest(HostsDocument(layout.FORMAT, starts)))
            self._session = replace(self._session, agent_version=agent_version)
            _write_session_document(self._directory, self._session)

    def record_created_target_facts(self, facts: Iterable[tuple[str, HostFacts]]) -> None:
        """Keep the facts of targets on which this start of the session made file systems."""
        path = self._directory / layout.HOSTS
        with disk_errors_as_store_errors(path, "write"):
            *earlier, start = read_digested_document(HostsDocument, path).starts
            start = replace(
                start, created_target_facts={**start.created_target_facts, **dict(facts)}
            )
            replace_file(path, encode_with_digest(HostsDocument(layout.FORMAT, (*earlier, start))))

    def write_ledger(self, ledger: TargetLedger) -> None:
        """Put the state ledger in place of the one before; it is on the device on return."""
        path = self._directory / layout.LEDGER
        with disk_errors_as_store_errors(path, "write"):
            replace_file(path, encode_with_digest(LedgerDocument(layout.FORMAT, ledger)))

    def move_runs_to_earlier_attempts(self, run_keys: Iterable[RunKey]) -> None:
        """Make earlier attempts of committed runs that are damaged; they are missing then."""
        for key in run_keys:
            run = layout.run_directory(self._directory, key)
            with disk_errors_as_store_errors(run, "write"):
                index.withdraw_index_entry(self._directory, key)
                run.rename(layout.free_attempt_path(run))
                sync_to_disk(run.parent)

    def commit_run(self, record: RunRecord, result: RunResult, *, analysis_version: int) -> None:
        """Keep a run: when this returns it is whole on the device; on StoreError it is not there.

        A run that is done is never replaced (StoreError). One that failed, was interrupted or is
        damaged stays beside the new one as an earlier attempt.
        """
        final = layout.run_directory(self._directory, (record.run.point.digest, record.run.repeat))
        _require_run_not_done(final)
        draft = layout.temporary_path(final, getpid())
        origin = RunOrigin(self._session.id, __version__, self._session.agent_version)
        with disk_errors_as_store_errors(final, "write"):
            if not final.parent.is_dir():
                final.parent.mkdir()
                sync_to_disk(final.parent.parent)
            try:
                write_run(draft, record, StoredAnalysis(analysis_version, result), origin)
                if final.exists():
                    index.withdraw_index_entry(self._directory, layout.run_key_of_directory(final))
                    final.rename(layout.free_attempt_path(final))
                rename_and_sync(draft, final)
            except BaseException:
                shutil.rmtree(draft, ignore_errors=True)
                raise
        _add_to_index(self._directory, layout.run_key_of_directory(final), result)

    def end_session_and_close(
        self,
        status: SessionStatus,
        reason: str | None = None,
        times: Sequence[SessionPhaseTime] = (),
        leftover_texts: tuple[str, ...] = (),
    ) -> None:
        """Say how it ended, where the time went and what stayed on hosts; let go of it."""
        self._session = replace(
            self._session,
            times=_merge_phase_times(self._session.times, times),
            leftover_texts=leftover_texts,
        )
        try:
            with disk_errors_as_store_errors(self._directory, "read"):
                _add_missing_runs_to_index(self._directory)
            self._change_status(status, reason, ())
        finally:
            self.close()

    def close(self) -> None:
        """Let go of the session; one that did not end reads as interrupted from here on."""
        self._lock.release()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _change_status(
        self, status: SessionStatus, reason: str | None, command: tuple[str, ...]
    ) -> None:
        """Change the session's status and remember that it changed.

        What it then consists of is listed; while it runs, only what never changes.
        """
        files = [file for file in self._session.files if file.name not in LATER_FILES]
        if status is not SessionStatus.RUNNING:
            with disk_errors_as_store_errors(self._directory, "read"):
                files += [
                    describe_stored_file(self._directory, name)
                    for name in LATER_FILES
                    if (self._directory / name).exists()
                ]
        entry = HistoryEntry(self._clock(), status, reason, __version__, command)
        self._session = replace(
            self._session,
            format=layout.FORMAT,
            status=status,
            reason=reason,
            files=tuple(files),
            history=(*self._session.history, entry),
        )
        with disk_errors_as_store_errors(self._directory, "write"):
            _write_session_document(self._directory, self._session)


def _claim_directory_and_tell_if_created(directory: Path) -> bool:
    """Make the directory, or make sure that it may become a session; whether it was made."""
    if escape_surrogates(str(directory.absolute())) != str(directory.absolute()):
        raise StoreError(
            f"The path '{escape_surrogates(str(directory))}' is not valid UTF-8.",
            "Choose another directory.",
        )
    with disk_errors_as_store_errors(directory, "write"):
        if directory.exists() and not directory.is_dir():
            raise StoreError(f"'{directory}' is a file.", "Choose another directory.")
        is_new = not directory.exists()
        directory.mkdir(parents=True, exist_ok=True)
    require_no_session(directory)
    with disk_errors_as_store_errors(directory, "read"):
        if not _is_empty_or_failed_creation(directory):
            raise StoreError(
                f"'{directory}' is not empty and not a session.",
                "Choose a new or empty directory.",
            )
    return is_new


def _is_empty_or_failed_creation(directory: Path) -> bool:
    """Whether a directory holds nothing but what a creation that was cut short has left.

    The lock is made first and session.json last, so without a lock the files are someone else's.
    """
    names = {entry.name for entry in directory.iterdir()}
    leftovers = {entry.name for entry in layout.unfinished_paths(directory)}
    points = directory / layout.POINTS
    return not names or (
        layout.LOCK in names
        and not names - _BEFORE_SESSION - leftovers
        and not (points.is_dir() and any(points.iterdir()))
    )


def require_no_session(directory: Path, *, is_resumable: bool = True) -> None:
    """StoreError if there is a session already; it is no answer to go on with that of an import."""
    if (directory / layout.SESSION).exists():
        raise StoreError(
            f"'{directory}' holds a session already.",
            f"Continue it with `iolab resume {directory}`, or choose another directory."
            if is_resumable
            else "Choose another directory.",
        )


def _remove_failed_session(directory: Path, *, was_directory_created: bool) -> None:
    """Take back what a creation that failed has written, and the directory if we made it."""
    with suppress(OSError):  # the fault that brought us here is the one to tell
        for leftover in layout.unfinished_paths(directory):
            _remove_path(leftover)
        for name in _BEFORE_SESSION:
            _remove_path(directory / name)
        if was_directory_created:
            directory.rmdir()


def _write_study_and_plan_and_build_session(
    directory: Path, study: Study, plan: Plan, session_id: str, command: tuple[str, ...], now: int
) -> SessionDocument:
    """Write what a session holds from its first moment; the session as it then stands."""
    (directory / layout.POINTS).mkdir(exist_ok=True)
    replace_file(directory / layout.STUDY, study.text.encode("utf-8", "surrogateescape"))
    document = PlanDocument(layout.FORMAT, replace(study, text=""), plan)
    replace_file(directory / layout.PLAN, encode(document))
    start = HistoryEntry(now, SessionStatus.RUNNING, None, __version__, command)
    return SessionDocument(
        format=layout.FORMAT,
        id=session_id,
        study=study.id,
        title=study.title,
        scale=study.scale,
        overrides=study.overrides,
        command=command,
        iolab_version=__version__,
        agent_version=None,
        created_real_ns=now,
        status=SessionStatus.RUNNING,
        reason=None,
        history=(start,),
        files=tuple(describe_stored_file(directory, name) for name in (layout.STUDY, layout.PLAN)),
    )


def _merge_phase_times(
    earlier_times: Iterable[SessionPhaseTime], new_times: Iterable[SessionPhaseTime]
) -> tuple[SessionPhaseTime, ...]:
    """The times of several segments, each phase once."""
    by_phase: dict[str, SessionPhaseTime] = {}
    for spent in (*earlier_times, *new_times):
        had = by_phase.get(spent.phase, SessionPhaseTime(spent.phase, 0, 0.0))
        by_phase[spent.phase] = SessionPhaseTime(
            spent.phase, had.times + spent.times, had.seconds + spent.seconds
        )
    return tuple(by_phase.values())


def _add_missing_runs_to_index(directory: Path) -> None:
    """Add the runs that the index lacks: their writer was killed, or is older than the index."""
    entries = index.read_index(directory)
    for key in sorted(set(layout.committed_run_keys(directory)) - entries.keys()):
        with suppress(StoreError):  # a damaged run is told by who reads it
            head = read_manifest_head(layout.run_directory(directory, key))
            _add_to_index(directory, key, head.analysis.result)


def _add_to_index(directory: Path, run_key: RunKey, result: RunResult) -> None:
    """Add a committed run to the index; where that fails, readers find the run itself."""
    with suppress(OSError):
        manifest = describe_stored_file(layout.run_directory(directory, run_key), layout.MANIFEST)
        listed = index.IndexedManifest(manifest.size_bytes, manifest.sha256)
        index.add_index_entry(directory, run_key, index.index_entry(result), listed)


def _write_session_document(directory: Path, session: SessionDocument) -> None:
    """Put the session's own file in place."""
    replace_file(directory / layout.SESSION, encode_with_digest(session, indent=2))


def _require_run_not_done(run_directory: Path) -> None:
    """StoreError if the run in place is done: evidence is never replaced."""
    try:
        head = read_manifest_head(run_directory)
    except StoreError:
        return  # there is none, or a damaged one: it stays as an earlier attempt
    if head.analysis.result.status is RunStatus.DONE:
        raise StoreError(
            f"'{run_directory}' is done already.",
            "Resume runs only what is missing; nothing was changed.",
        )


def _remove_path(path: Path) -> None:
    """Remove a file or a tree, whichever it is; nothing if there is none."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)
