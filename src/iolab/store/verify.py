"""The one place where what is read of a session is held against its digests.

A run's `manifest.sha256` is the digest of its manifest, and that has the digests of all its other
files: one digest covers the run. `session.json` has those of the study and the plan. Documents that
change carry their own, see `codec.encode_with_digest`.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Final, TypeVar

from iolab.core.metric import RunResult
from iolab.core.regular_file import open_regular_file, read_regular_file
from iolab.core.run import RunKey
from iolab.errors import StoreError
from iolab.record import Record
from iolab.store import layout
from iolab.store.codec import (
    damaged_file_error,
    parse_document,
    read_digested_document,
    require_readable_claimed_format,
)
from iolab.store.documents import (
    DocumentHead,
    HostsDocument,
    HostsDocumentHead,
    LedgerDocument,
    Manifest,
    ManifestHead,
    PlanDocument,
    SessionDocument,
    StoredFile,
)
from iolab.store.durable import disk_errors_as_store_errors
from iolab.store.index import indexed_manifest_by_run, read_index_bytes

T = TypeVar("T")
M = TypeVar("M", Manifest, ManifestHead)

_READ_BYTES: Final = 1 << 20
_STAMPED: Final = (
    layout.MANIFEST,
    layout.MANIFEST_SUM,
    layout.INTERVALS,
    layout.BINS,
    layout.COUNTERS,
)
_SHOWN_DIGITS: Final = 12
_INDEX_READS: Final = 5
"""A run may be replaced, or committed, between the look at the index and the look at the runs."""

RESTORE_HINT: Final = "Restore it from a copy, or measure it again with `iolab resume`."
RESTORE_IMPORT_HINT: Final = (
    "Restore it from a copy, or import the files again into another directory."
)


class Damage(Record):
    """A file or run, relative to the session, that is not what was committed, and why.

    `run_name` names the run that is left out, empty for a file of the session itself; `hint` is
    what can be done.
    """

    path: str
    message: str
    run_name: str = ""
    hint: str = ""

    def __str__(self) -> str:
        where = f"{self.run_name} ({self.path})" if self.run_name else self.path
        return f"{where}: {self.message} {self.hint}".strip()


Stamp = tuple[tuple[int, int, int, int] | None, ...]
"""Inode, size and times (ns) of each file of a run that a listing rests on; None for a missing one.

It differs as soon as one of them was written, by whomever.
"""


def run_file_stamps(run_directory: Path) -> Stamp:
    """How the manifest, its digest and the tables of a run lie on disk."""
    place = str(run_directory)
    return tuple(_inode_size_mtime_and_ctime(f"{place}/{name}") for name in _STAMPED)


def read_manifest(shape: type[M], run_directory: Path) -> M:
    """A run's manifest, or its head; StoreError where it is not what was committed."""
    path = run_directory / layout.MANIFEST
    try:
        with disk_errors_as_store_errors(path, "read"):
            content = read_regular_file(path)
    except StoreError:
        with disk_errors_as_store_errors(
            path, "read"
        ):  # A file system that was aborted cannot tell even that.
            missing = run_directory.is_dir() and not path.exists()
        if missing:
            raise damaged_file_error(path, "it is missing", RESTORE_HINT) from None
        raise
    try:
        expected = (
            read_regular_file(run_directory / layout.MANIFEST_SUM)
            .decode(errors="replace")
            .split()[:1]
        )
    except FileNotFoundError:
        raise damaged_file_error(path, "its digest is missing", RESTORE_HINT) from None
    except OSError as error:
        raise damaged_file_error(
            path, f"its digest cannot be read: {error.strerror}", RESTORE_HINT
        ) from error
    if expected != [hashlib.sha256(content).hexdigest()]:
        require_readable_claimed_format(path, content)
        raise damaged_file_error(path, "it is not what was committed", RESTORE_HINT)
    return parse_document(shape, content, path)


def _require_result_of_run(result: RunResult, run_directory: Path) -> None:
    """StoreError where a run's folder holds another run, as a copy of one does."""
    if result.key != layout.run_key_of_directory(run_directory):
        raise damaged_file_error(
            run_directory / layout.MANIFEST,
            f"its result is that of run {result.repeat} of point {result.digest}",
            RESTORE_HINT,
        )


def read_manifest_head(run_directory: Path, stamp: Stamp | None = None) -> ManifestHead:
    """The head of a run's manifest; StoreError also where its kept result does not fit the run.

    The result is that of this run, and of tables with the sizes that they had; none is read.
    `stamp` is the run's, where it is known.
    """
    head = read_manifest(ManifestHead, run_directory)
    _require_result_of_run(head.analysis.result, run_directory)
    stamps = dict(zip(_STAMPED, stamp or run_file_stamps(run_directory), strict=True))
    for file in head.files:
        if file.name in stamps:
            file_stamp = stamps[file.name]
            if file_stamp is None:
                raise damaged_file_error(run_directory / file.name, "it is missing", RESTORE_HINT)
            if file_stamp[1] != file.size_bytes:
                raise damaged_file_error(
                    run_directory / file.name,
                    _size_mismatch_text(file_stamp[1], file.size_bytes),
                    RESTORE_HINT,
                )
    return head


def require_unchanged_file(directory: Path, files: Sequence[StoredFile], name: str) -> Path:
    """Where the file lies; StoreError where it is not what was committed."""
    expected = next((file for file in files if file.name == name), None)
    path = directory / name
    if expected is None:
        raise damaged_file_error(path, "it has no digest", RESTORE_HINT)
    if Path(name).is_absolute() or ".." in Path(name).parts:
        raise damaged_file_error(path, "its name leads out of the session", RESTORE_HINT)
    try:
        # A file of another size may be endless; it is not read.
        size = path.stat().st_size
        if path.is_file() and size != expected.size_bytes:
            raise damaged_file_error(
                path, _size_mismatch_text(size, expected.size_bytes), RESTORE_HINT
            )
        actual = describe_stored_file(directory, name)
    except OSError as error:
        raise damaged_file_error(
            path, f"it cannot be read: {error.strerror}", RESTORE_HINT
        ) from error
    if actual.size_bytes != expected.size_bytes:
        raise damaged_file_error(
            path, _size_mismatch_text(actual.size_bytes, expected.size_bytes), RESTORE_HINT
        )
    if actual.sha256 != expected.sha256:
        raise damaged_file_error(
            path,
            f"it is not what was committed: its sha256 is {actual.sha256[:_SHOWN_DIGITS]} instead "
            f"of {expected.sha256[:_SHOWN_DIGITS]}",
            RESTORE_HINT,
        )
    return path


def read_plan(directory: Path, session: SessionDocument) -> PlanDocument:
    """The session's plan; StoreError where it is not what was committed."""
    content = _read_listed_file(directory, session, layout.PLAN)
    return parse_document(PlanDocument, content, directory / layout.PLAN)


def read_study_text(directory: Path, session: SessionDocument) -> str:
    """The session's study file; StoreError where it is not what was committed."""
    return _read_listed_file(directory, session, layout.STUDY).decode("utf-8", "surrogateescape")


def damage_of_documents_except_plan(
    directory: Path,
    session: SessionDocument,
    hosts_shape: type[object] = HostsDocumentHead,
    ledger_shape: type[object] = DocumentHead,
) -> Iterator[Damage]:
    """What is damaged of the documents beside the plan; of hosts and ledger as much as is read."""
    readers: tuple[tuple[str, Callable[[], object]], ...] = (
        (layout.STUDY, lambda: read_study_text(directory, session)),
        (layout.HOSTS, lambda: read_optional_document(hosts_shape, directory / layout.HOSTS)),
        (layout.LEDGER, lambda: read_optional_document(ledger_shape, directory / layout.LEDGER)),
    )
    damaged_names = set()
    for name, read in readers:
        try:
            read()
        except StoreError as error:
            damaged_names.add(name)
            yield damage_from_error(directory, name, error)
    for name in session.required_files_written_later:
        if name not in damaged_names:
            try:
                _require_unchanged_document(directory, session, name)
            except StoreError as error:
                yield damage_from_error(directory, name, error)


def _require_unchanged_document(directory: Path, session: SessionDocument, name: str) -> None:
    """StoreError where a document that the session has is missing, or not as the session ended."""
    path = directory / name
    listed = next((file for file in session.files if file.name == name), None)
    with disk_errors_as_store_errors(path, "read"):
        if not path.exists():
            raise damaged_file_error(path, "it is missing")
        if listed is None:
            return
        content = read_regular_file(path)
    # The index only grows, and may have grown since.
    content = content[: listed.size_bytes] if name == layout.INDEX else content
    if len(content) != listed.size_bytes:
        raise damaged_file_error(path, _size_mismatch_text(len(content), listed.size_bytes))
    if hashlib.sha256(content).hexdigest() != listed.sha256:
        raise damaged_file_error(path, "it is not what the session ended with")


def missing_runs_damage(
    directory: Path, run_name_of_key: Callable[[RunKey], str]
) -> Iterator[Damage]:
    """The runs that were committed, as the index says, and are not there."""
    for _ in range(_INDEX_READS):
        content = read_index_bytes(directory)
        with disk_errors_as_store_errors(directory, "read"):
            missing = indexed_manifest_by_run(content).keys() - set(
                layout.committed_run_keys(directory)
            )
        # A run that is just being replaced was called off before.
        if not missing or read_index_bytes(directory) == content:
            break
    for key in sorted(missing):
        path = layout.run_directory(directory, key).relative_to(directory)
        yield Damage(str(path), "it is missing.", run_name_of_key(key), RESTORE_HINT)


def _changed_manifests_damage(
    directory: Path, run_name_of_key: Callable[[RunKey], str]
) -> Iterator[Damage]:
    """The runs whose manifest is another than the one that was committed."""
    runs = layout.committed_folder_by_run(directory)
    for key, listed in indexed_manifest_by_run(read_index_bytes(directory)).items():
        if key not in runs or listed is None:
            continue
        try:
            actual = describe_stored_file(runs[key], layout.MANIFEST)
        except OSError:
            continue  # which is damage of the run itself
        if (actual.size_bytes, actual.sha256) != listed:
            path = runs[key].relative_to(directory) / layout.MANIFEST
            yield Damage(
                str(path),
                "it is not the one that was committed.",
                run_name_of_key(key),
                RESTORE_HINT,
            )


def read_optional_document(shape: type[T], path: Path) -> T | None:
    """A document that a session may lack, as it was written; StoreError where it is damaged."""
    return read_digested_document(shape, path) if path.exists() else None


def verify_session(directory: Path, run_name_of_key: Callable[[RunKey], str]) -> tuple[Damage, ...]:
    """Everything that is damaged in a session, read in full; empty if nothing is.

    `run_name_of_key` names a committed run; earlier attempts have no name: nothing shows them.
    """
    damages = [
        *_session_documents_damage(directory),
        *missing_runs_damage(directory, run_name_of_key),
    ]
    for key, run in layout.committed_folder_by_run(directory).items():
        damages += damage_of_run(directory, run, run_name_of_key(key))
    for run in layout.earlier_attempt_directories(directory):
        damages += damage_of_run(directory, run, "")
    named = {damage.run_name for damage in damages}
    damages += [
        damage
        for damage in _changed_manifests_damage(directory, run_name_of_key)
        if damage.run_name not in named
    ]
    return tuple(damages)


def damage_of_run(session_directory: Path, run_directory: Path, run_name: str) -> Iterator[Damage]:
    """Damage of one run, its manifest first: the digests of all other files stand there."""
    place = str(run_directory.relative_to(session_directory))
    try:
        manifest = read_manifest(Manifest, run_directory)
        _require_result_of_run(manifest.analysis.result, run_directory)
    except StoreError as error:
        yield damage_from_error(run_directory, f"{place}/{layout.MANIFEST}", error, run_name)
        return
    for file in manifest.files:
        try:
            require_unchanged_file(run_directory, manifest.files, file.name)
        except StoreError as error:
            yield damage_from_error(run_directory, f"{place}/{file.name}", error, run_name)


def damage_from_error(directory: Path, path: str, error: StoreError, run_name: str = "") -> Damage:
    """What happened, of places below a directory: reports carry it to who need not know where."""
    return Damage(path, error.message.replace(f"{directory}/", ""), run_name, error.hint)


def describe_stored_file(directory: Path, name: str) -> StoredFile:
    """The size and digest of a file as it is on disk."""
    digest = hashlib.sha256()
    size = 0
    with open(open_regular_file(directory / name), "rb") as file:  # noqa: PTH123 - a descriptor
        while block := file.read(_READ_BYTES):
            digest.update(block)
            size += len(block)
    return StoredFile(name, size, digest.hexdigest())


def _read_listed_file(directory: Path, session: SessionDocument, name: str) -> bytes:
    """The content of a file whose digest stands in session.json."""
    path = directory / name
    with disk_errors_as_store_errors(path, "read"):
        content = read_regular_file(path)
    digests = {file.name: file.sha256 for file in session.files}
    if digests.get(name) != hashlib.sha256(content).hexdigest():
        require_readable_claimed_format(path, content)
        raise damaged_file_error(path, "it is not what the session began with")
    return content


def _session_documents_damage(directory: Path) -> Iterator[Damage]:
    """Damage of the session's own files, each read in full."""
    try:
        session = read_digested_document(SessionDocument, directory / layout.SESSION)
    except StoreError as error:
        yield damage_from_error(directory, layout.SESSION, error)
        return
    try:
        read_plan(directory, session)
    except StoreError as error:
        yield damage_from_error(directory, layout.PLAN, error)
    yield from damage_of_documents_except_plan(directory, session, HostsDocument, LedgerDocument)


def _inode_size_mtime_and_ctime(path: str) -> tuple[int, int, int, int] | None:
    try:
        status = os.stat(path)  # noqa: PTH116 - of five files of each run, a Path costs more
    except OSError:
        return None
    return (status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)


def _size_mismatch_text(actual: int, expected: int) -> str:
    return f"it has {actual} bytes instead of the {expected} that were committed"
