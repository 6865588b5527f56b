"""Holds every file of a session against the digest written when it was committed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from iolab.errors import StoreError
from iolab.store import layout
from iolab.store.codec import decode
from iolab.store.documents import (
    HostsDocument,
    LedgerDocument,
    Manifest,
    PlanDocument,
    Session,
    StoredFile,
)
from iolab.store.durable import told
from iolab.store.runs import stored_file


@dataclass(frozen=True, slots=True)
class Damage:
    """A file or run, relative to the session, that is not what was committed, and why."""

    path: str
    says: str


def verify_session(directory: Path) -> tuple[Damage, ...]:
    """Everything that is damaged in a session, read in full; empty if nothing is."""
    found = [*_session_damage(directory)]
    runs = (*layout.committed_runs(directory).values(), *layout.earlier_attempts(directory))
    for run in runs:
        place = run.relative_to(directory)
        found += [Damage(str(place / damage.path), damage.says) for damage in run_damage(run)]
    return tuple(found)


def below(directory: Path, error: StoreError) -> str:
    """What happened, of places below a directory: reports carry it to who need not know where."""
    return error.happened.replace(f"{directory}/", "")


def _session_damage(directory: Path) -> Iterator[Damage]:
    """Damage of the session's own files."""
    try:
        session = decode(Session, directory / layout.SESSION)
        decode(PlanDocument, directory / layout.PLAN)
        if (directory / layout.HOSTS).exists():
            decode(HostsDocument, directory / layout.HOSTS)
        if (directory / layout.LEDGER).exists():
            decode(LedgerDocument, directory / layout.LEDGER)
    except StoreError as error:
        yield Damage(".", below(directory, error))
        return
    yield from _differences(directory, session.files)


def run_damage(run: Path) -> Iterator[Damage]:
    """Damage of one run, its manifest first: the digests of all other files stand there."""
    try:
        manifest = decode(Manifest, run / layout.MANIFEST)
        with told(run / layout.MANIFEST_SUM, "read"):
            expected = (run / layout.MANIFEST_SUM).read_text(encoding="utf-8", errors="replace")
    except StoreError as error:
        yield Damage(layout.MANIFEST, below(run, error))
        return
    whole = stored_file(run, layout.MANIFEST)
    if expected.split()[:1] != [whole.sha256]:
        yield Damage(layout.MANIFEST, "It is not what was committed.")
    yield from _differences(run, manifest.files)


def _differences(directory: Path, files: tuple[StoredFile, ...]) -> Iterator[Damage]:
    """The files that are missing, unreadable or different."""
    for expected in files:
        if Path(expected.name).is_absolute() or ".." in Path(expected.name).parts:
            yield Damage(expected.name, "Its name leads out of the session.")
            continue
        try:
            found = stored_file(directory, expected.name)
        except OSError as error:
            yield Damage(expected.name, f"It cannot be read: {error.strerror}.")
            continue
        if found != expected:
            yield Damage(
                expected.name,
                "It is not what was committed: "
                f"{found.size_bytes} bytes with sha256 {found.sha256[:12]} instead of "
                f"{expected.size_bytes} bytes with {expected.sha256[:12]}.",
            )
