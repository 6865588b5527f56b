"""Reads a session, finished or still running; sees only what was committed whole."""

from __future__ import annotations

import dataclasses
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import Final, TypeVar

from iolab.errors import StoreError
from iolab.model.event import SessionStatus
from iolab.model.host import HostFacts
from iolab.model.metric import Result
from iolab.model.run import Plan, RunRecord, RunStatus
from iolab.model.sample import BinTable, CounterTable, IntervalTable
from iolab.model.state import EMPTY, Ledger
from iolab.model.study import Study
from iolab.store import layout, lock
from iolab.store.codec import decode
from iolab.store.documents import (
    HostsDocument,
    HostsHead,
    HostsStart,
    LedgerDocument,
    Manifest,
    ManifestHead,
    PlanDocument,
    Session,
)
from iolab.store.durable import told
from iolab.store.layout import RunKey
from iolab.store.runs import read_run, read_table
from iolab.store.verify import Damage, below, run_damage, verify_session

T = TypeVar("T")

_DIED: Final = "The process that ran it ended without a word."
_LOOKS: Final = 5
"""A session may end, or be resumed, between the look at its status and the look at its lock."""

_MOMENT_MAX_NS: Final = 2**63 - 1
"""Nanoseconds since 1970 as every table holds them, until 2262; no calendar has later ones."""


class SessionReader:
    """A session's directory; StoreError if it is none, or one of a newer format."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._heads: dict[tuple[RunKey, int], ManifestHead] = {}
        read_session(directory)

    @property
    def session(self) -> Session:
        """What the session is and how it stands now; running without a writer is interrupted."""
        for _ in range(_LOOKS):
            session = read_session(self.directory)
            if session.status is not SessionStatus.RUNNING or lock.is_held(self.directory):
                return session
            if read_session(self.directory) == session:
                return dataclasses.replace(session, status=SessionStatus.INTERRUPTED, reason=_DIED)
        return session

    @property
    def study_text(self) -> str:
        """The study file exactly as it was given."""
        path = self.directory / layout.STUDY
        with told(path, "read"):
            return path.read_bytes().decode("utf-8", "surrogateescape")

    @property
    def overrides(self) -> tuple[str, ...]:
        """What was set over the study on the command line."""
        return self.study.overrides

    @property
    def study(self) -> Study:
        """The study with every default and override as it was run."""
        return dataclasses.replace(self._plan_document.study, text=self.study_text)

    @property
    def plan(self) -> Plan:
        """The plan that the session executes."""
        return self._plan_document.plan

    @property
    def starts(self) -> tuple[HostsStart, ...]:
        """The hosts as each start of the session found them; empty before the first."""
        path = self.directory / layout.HOSTS
        return decode(HostsDocument, path).starts if path.exists() else ()

    @property
    def found(self) -> dict[str, HostFacts]:
        """The newest facts of each host by name, as a start of the session found it."""
        return {name: facts for start in self.starts for name, facts in start.facts.items()}

    @property
    def facts(self) -> dict[str, HostFacts]:
        """The newest facts of each host by name; empty before the session reached them.

        Where it made a file system of its own they are those with that as the target.
        """
        starts = self.starts
        found = [*(start.facts for start in starts), *(start.made for start in starts)]
        return {name: facts for part in found for name, facts in part.items()}

    def ledger(self) -> Ledger:
        """What the session did to its targets; empty where it kept no account."""
        path = self.directory / layout.LEDGER
        return decode(LedgerDocument, path).ledger if path.exists() else EMPTY

    def committed(self) -> frozenset[RunKey]:
        """Every committed run that can be read, whichever way it ended."""
        return frozenset(self._read_heads()[0])

    def done(self) -> frozenset[RunKey]:
        """The committed runs that are done: what a resumed session need not measure again."""
        return frozenset(
            key
            for key, head in self._read_heads()[0].items()
            if head.analysis.result.status is RunStatus.DONE
        )

    def tried(self) -> dict[RunKey, int]:
        """How often each run was tried, also those that ended badly or were set aside."""
        with told(self.directory, "read"):
            tries = [*layout.committed_runs(self.directory).values()]
            tries += layout.earlier_attempts(self.directory)
        return dict(Counter(layout.key_of(run) for run in tries))

    def results(self) -> tuple[Result, ...]:
        """The results of all committed runs in the plan's order; see `damaged` for the others.

        Those of runs that results asked for follow, as they were made.

        Each says in which sitting it was measured.
        """
        heads = self._read_heads()[0]
        begun = self.begun()
        order = {(run.point.digest, run.repeat): run.order for run in self.plan.runs}
        last = len(order)
        made = {key: head.analysis.result.order for key, head in heads.items()}
        keys = sorted(heads, key=lambda key: (order.get(key, last), made[key], key))
        return tuple(
            dataclasses.replace(
                heads[key].analysis.result,
                sitting=max(1, bisect_right(begun, heads[key].started_real_ns)),
            )
            for key in keys
        )

    def damaged(self) -> tuple[Damage, ...]:
        """The committed runs whose manifest cannot be read; a quick look, see `verify`."""
        return self._read_heads()[1]

    def manifest(self, digest: str, repeat: int) -> Manifest:
        """A committed run's manifest; StoreError if there is none or it is damaged."""
        return self._of_run(digest, repeat, lambda run: decode(Manifest, run / layout.MANIFEST))

    def record(self, digest: str, repeat: int) -> RunRecord:
        """All evidence of a committed run, equal to what was committed."""
        return self._of_run(digest, repeat, read_run)

    def intervals(self, digest: str, repeat: int) -> IntervalTable:
        """The intervals of a committed run alone."""
        return self._of_run(
            digest, repeat, lambda run: read_table(run / layout.INTERVALS, IntervalTable)
        )

    def bins(self, digest: str, repeat: int) -> BinTable:
        """The latency bins of a committed run alone."""
        return self._of_run(digest, repeat, lambda run: read_table(run / layout.BINS, BinTable))

    def counters(self, digest: str, repeat: int) -> CounterTable:
        """The telemetry of a committed run alone."""
        return self._of_run(
            digest, repeat, lambda run: read_table(run / layout.COUNTERS, CounterTable)
        )

    def verify(self) -> tuple[Damage, ...]:
        """Every file of the session that is not what was committed; empty if all is well."""
        return verify_session(self.directory)

    def unsound(self) -> dict[RunKey, Damage]:
        """What is damaged of each committed run, told by the digests of all its files."""
        found: dict[RunKey, Damage] = {}
        for key, run in layout.committed_runs(self.directory).items():
            for damage in run_damage(run):
                place = run.relative_to(self.directory) / damage.path
                found.setdefault(key, Damage(str(place), damage.says))
        return found

    def begun(self) -> list[int]:
        """When each sitting began (UTC, ns), oldest first."""
        path = self.directory / layout.HOSTS
        return [start.real_ns for start in decode(HostsHead, path).starts] if path.exists() else []

    @cached_property
    def _plan_document(self) -> PlanDocument:
        """The study and the plan, which never change."""
        return decode(PlanDocument, self.directory / layout.PLAN)

    def _of_run(self, digest: str, repeat: int, read: Callable[[Path], T]) -> T:
        """What `read` finds in the directory of a committed run."""
        try:
            run = layout.run_directory(self.directory, (digest, repeat))
        except ValueError as error:
            raise StoreError(f"{error}.", "List the runs with `iolab show`.") from error
        if not run.is_dir():
            raise StoreError(
                f"'{self.directory}' has no run {repeat} of point {digest}.",
                "List the runs with `iolab show`.",
            )
        return read(run)

    def _read_heads(self) -> tuple[dict[RunKey, ManifestHead], tuple[Damage, ...]]:
        """The heads of all manifests, and what is damaged.

        A run that was read is not read again; its directory's inode tells it from a later attempt.
        """
        heads: dict[RunKey, ManifestHead] = {}
        damaged = []
        known: dict[tuple[RunKey, int], ManifestHead] = {}
        with told(self.directory, "read"):
            runs = layout.committed_runs(self.directory)
        for key, run in runs.items():
            inode = _inode(run)
            try:
                head = self._heads.get((key, inode)) or decode(ManifestHead, run / layout.MANIFEST)
            except StoreError as error:
                if _inode(run) == inode:  # otherwise a writer has just set it aside
                    place = str(run.relative_to(self.directory))
                    damaged.append(Damage(place, below(run, error)))
                continue
            heads[key] = known[key, inode] = head
        self._heads = known
        return heads, tuple(damaged)


def read_session(directory: Path) -> Session:
    """What session.json says; StoreError if the directory is no session or of a newer format."""
    path = directory / layout.SESSION
    with told(path, "read"):
        if not path.exists():
            raise StoreError(
                f"'{directory}' is not a session.",
                "Give the directory that `iolab run --out` wrote.",
            )
    session = decode(Session, path)
    if not 0 <= session.created_real_ns <= _MOMENT_MAX_NS:
        raise StoreError(
            f"'{path}' is damaged: created_real_ns: it is no moment.",
            "Restore it from a copy, or set the directory that holds it aside and measure again.",
        )
    return session


def is_session(directory: Path) -> bool:
    """Whether a directory is a session, of whatever format."""
    return (directory / layout.SESSION).is_file()


def _inode(path: Path) -> int:
    """The inode at a path, 0 if there is none."""
    try:
        return path.stat().st_ino
    except OSError:
        return 0
