"""Reads a session, finished or still running; sees only what was committed whole."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar

from msgspec.structs import replace

from iolab.core.events import SessionStatus
from iolab.core.host import HostFacts
from iolab.core.metric import RunResult
from iolab.core.run import Plan, RunKey, RunRecord, RunStatus
from iolab.core.study import Study
from iolab.core.tagged import type_tag_of
from iolab.core.target_state import EMPTY_LEDGER, TargetLedger
from iolab.errors import StoreError
from iolab.store import layout
from iolab.store.codec import damaged_file_error, read_digested_document
from iolab.store.documents import (
    HostFactsAtStart,
    HostsDocument,
    HostsDocumentHead,
    LedgerDocument,
    Manifest,
    ManifestHead,
    PlanDocument,
    SessionDocument,
)
from iolab.store.durable import disk_errors_as_store_errors, is_locked
from iolab.store.index import IndexEntry, index_entry, read_index
from iolab.store.verify import (
    Damage,
    Stamp,
    damage_from_error,
    damage_of_documents_except_plan,
    damage_of_run,
    missing_runs_damage,
    read_manifest,
    read_manifest_head,
    read_optional_document,
    read_plan,
    read_study_text,
    require_unchanged_file,
    run_file_stamps,
    verify_session,
)

if TYPE_CHECKING:
    from iolab.core.samples import BinTable, CounterTable, IntervalTable

T = TypeVar("T")
U = TypeVar("U", "IntervalTable", "BinTable", "CounterTable")

_DIED: Final = "The process that ran it was killed, or crashed."
_LOOKS: Final = 5
"""A session may end, or be resumed, between the look at its status and the look at its lock."""

_MOMENT_MAX_NS: Final = 2**63 - 1
"""Nanoseconds since 1970 as every table holds them, until 2262; no calendar has later ones."""


DamageCallback = Callable[[Damage], None]
"""Takes each damage once, as it is met."""


class SessionReader:
    """A session's directory; StoreError if it is none, or one of another format.

    What it gives was held against its digests when it was read. What does not fit is left out,
    listed by `damage_of_documents_and_manifests` and told to `tell`; without the plan nothing can
    be read (StoreError).
    """

    def __init__(self, directory: Path, on_new_damage: DamageCallback = lambda _: None) -> None:
        self.directory = directory
        self._on_new_damage = on_new_damage
        self._seen_damage: set[Damage] = set()
        self._heads: dict[RunKey, tuple[Stamp, ManifestHead]] = {}
        self._damaged_runs: tuple[Damage, ...] | None = None
        read_session(directory)

    @property
    def session(self) -> SessionDocument:
        """What the session is and how it stands now; running without a writer is interrupted."""
        for _ in range(_LOOKS):
            session = read_session(self.directory)
            if session.status is not SessionStatus.RUNNING or is_locked(self.directory):
                return session
            if read_session(self.directory) == session:
                return replace(session, status=SessionStatus.INTERRUPTED, reason=_DIED)
        return session

    @property
    def study_text(self) -> str:
        """The study file exactly as it was given; empty where it is damaged."""
        try:
            return read_study_text(self.directory, read_session(self.directory))
        except StoreError as error:
            self._report_damage(damage_from_error(self.directory, layout.STUDY, error))
            return ""

    @property
    def overrides(self) -> tuple[str, ...]:
        """What was set over the study on the command line."""
        return self.study.overrides

    @property
    def study(self) -> Study:
        """The study with every default and override as it was run."""
        return replace(self._plan_document.study, text=self.study_text)

    @property
    def plan(self) -> Plan:
        """The plan that the session executes."""
        return self._plan_document.plan

    @property
    def facts_of_all_starts(self) -> tuple[HostFactsAtStart, ...]:
        """The hosts as each start found them; empty before the first, and where damaged."""
        document = self._read_document_or_report_damage(HostsDocument, layout.HOSTS)
        return document.starts if document else ()

    @property
    def facts_found_at_last_start(self) -> dict[str, HostFacts]:
        """The newest facts of each host by name, as a start of the session found it."""
        return {
            name: facts for start in self.facts_of_all_starts for name, facts in start.facts.items()
        }

    @property
    def facts(self) -> dict[str, HostFacts]:
        """The newest facts of each host by name; empty before the session reached them.

        Where it made a file system of its own they are those with that as the target.
        """
        starts = self.facts_of_all_starts
        parts = [
            *(start.facts for start in starts),
            *(start.created_target_facts for start in starts),
        ]
        return {name: facts for part in parts for name, facts in part.items()}

    def target_ledger(self) -> TargetLedger:
        """What the session did to its targets; empty where it kept no account, or damaged."""
        document = self._read_document_or_report_damage(LedgerDocument, layout.LEDGER)
        return document.ledger if document else EMPTY_LEDGER

    def committed_folder_by_run(self) -> frozenset[RunKey]:
        """Every committed run that can be read, whichever way it ended."""
        return frozenset(self._read_undamaged_manifest_heads())

    def done_runs(self) -> frozenset[RunKey]:
        """The committed runs that are done: what a resumed session need not measure again."""
        return frozenset(
            key
            for key, head in self._read_undamaged_manifest_heads().items()
            if head.analysis.result.status is RunStatus.DONE
        )

    def attempt_count_by_run(self) -> dict[RunKey, int]:
        """How often each run was tried, also those that ended badly or were set aside."""
        with disk_errors_as_store_errors(self.directory, "read"):
            tries = [*layout.committed_folder_by_run(self.directory).values()]
            tries += layout.earlier_attempt_directories(self.directory)
        return dict(Counter(layout.run_key_of_directory(run) for run in tries))

    def results(self) -> tuple[RunResult, ...]:
        """The results of all committed runs in the plan's order, without damaged ones.

        Those of runs that results asked for follow, as they were made.

        Each says in which segment it was measured, and of what kind its job was.
        """
        heads = self._read_undamaged_manifest_heads()
        loads = {workload.id: type_tag_of(workload.job) for workload in self.study.workloads}
        begun = self.segment_starts_ns()
        planned = {run.key: run.order for run in self.plan.runs}
        last = len(planned)
        measured = {key: head.analysis.result.order for key, head in heads.items()}
        keys = sorted(heads, key=lambda key: (planned.get(key, last), measured[key], key))
        return tuple(
            replace(
                heads[key].analysis.result,
                segment=max(1, bisect_right(begun, heads[key].started_real_ns)),
                load=loads[heads[key].analysis.result.workload],
            )
            for key in keys
        )

    def analysis_version_by_run(self) -> dict[RunKey, int]:
        """Which version of the analysis judged each committed run."""
        return {
            key: head.analysis.version
            for key, head in self._read_undamaged_manifest_heads().items()
        }

    def index_entry_by_run(self) -> dict[RunKey, IndexEntry]:
        """How each committed run ended when it was committed, by the index; no run is verified.

        What the index lacks is read; runs that cannot be are left out, see `damage_seen_so_far`.
        """
        index, overview = read_index(self.directory), {}
        with disk_errors_as_store_errors(self.directory, "read"):
            keys = tuple(layout.committed_run_keys(self.directory))
        for key in keys:
            entry = index.get(key) or self._index_entry_of_run(key)
            if entry is not None:
                overview[key] = entry
        if index.keys() - set(keys):
            self.missing_runs_damage()  # reads the index again: a run may just be replaced
        return overview

    def missing_runs_damage(self) -> tuple[Damage, ...]:
        """The committed runs that are not there any more, each told."""
        damages = tuple(missing_runs_damage(self.directory, self._run_name))
        for damage in damages:
            self._report_damage(damage)
        return damages

    def _index_entry_of_run(self, run_key: RunKey) -> IndexEntry | None:
        run = layout.run_directory(self.directory, run_key)
        try:
            return index_entry(
                self._cached_manifest_head(run_key, run, run_file_stamps(run)).analysis.result
            )
        except StoreError as error:
            self._report_damage(self._run_damage_from_error(run_key, run, error))
            return None

    def damage_of_documents_and_manifests(self) -> tuple[Damage, ...]:
        """What is damaged of the session's documents, of manifests, and of the sizes of tables.

        Of runs as they were when results were last read; see `verify_all_files` for all files.
        """
        if self._damaged_runs is None:
            self._read_undamaged_manifest_heads()
        return (*self.damage_of_documents_except_plan(), *(self._damaged_runs or ()))

    def damage_seen_so_far(self) -> tuple[Damage, ...]:
        """What is damaged of all that was read so far; nothing is read for it."""
        return tuple(self._seen_damage)

    def damage_of_documents_except_plan(self) -> tuple[Damage, ...]:
        """What is damaged of the session's own documents; nothing may be added to it then."""
        for _ in range(_LOOKS):
            session = read_session(self.directory)
            damages = tuple(damage_of_documents_except_plan(self.directory, session))
            if not damages or read_session(self.directory) == session:
                break  # otherwise it was resumed meanwhile
        for damage in damages:
            self._report_damage(damage)
        return damages

    def manifest(self, digest: str, repeat: int) -> Manifest:
        """A committed run's manifest; StoreError if there is none or it is damaged."""
        return self._read_from_run_directory_or_report_damage(
            digest, repeat, lambda run: read_manifest(Manifest, run)
        )

    def record(self, digest: str, repeat: int) -> RunRecord:
        """All evidence of a committed run, equal to what was committed."""
        from iolab.store.runs import read_run  # and numpy, which results alone do not need

        return self._read_from_run_directory_or_report_damage(digest, repeat, read_run)

    def intervals(self, digest: str, repeat: int) -> IntervalTable:
        """The intervals of a committed run alone."""
        from iolab.core.samples import IntervalTable

        return self._read_table(digest, repeat, layout.INTERVALS, IntervalTable)

    def bins(self, digest: str, repeat: int) -> BinTable:
        """The latency bins of a committed run alone."""
        from iolab.core.samples import BinTable

        return self._read_table(digest, repeat, layout.BINS, BinTable)

    def counters(self, digest: str, repeat: int) -> CounterTable:
        """The telemetry of a committed run alone."""
        from iolab.core.samples import CounterTable

        return self._read_table(digest, repeat, layout.COUNTERS, CounterTable)

    def verify_all_files(self) -> tuple[Damage, ...]:
        """Every file of the session that is not what was committed; empty if all is well."""
        return verify_session(self.directory, self._run_name)

    def damage_by_run(self) -> dict[RunKey, Damage]:
        """What is damaged of each committed run, told by the digests of all its files."""
        unsound: dict[RunKey, Damage] = {}
        for key, run in layout.committed_folder_by_run(self.directory).items():
            for damage in damage_of_run(self.directory, run, self._run_name(key)):
                unsound.setdefault(key, damage)
        return unsound

    def segment_starts_ns(self) -> list[int]:
        """When each segment began (UTC, ns), oldest first."""
        document = self._read_document_or_report_damage(HostsDocumentHead, layout.HOSTS)
        return [start.real_ns for start in document.starts] if document else []

    @cached_property
    def _plan_document(self) -> PlanDocument:
        """The study and the plan, which never change."""
        return read_plan(self.directory, read_session(self.directory))

    @cached_property
    def _point_name_by_digest(self) -> dict[str, str]:
        """What each point of the plan is called, by its digest."""
        try:
            several = len(self._plan_document.study.configurations) > 1
        except StoreError:
            return {}
        return {
            point.digest: ", ".join(
                [
                    point.workload,
                    *(f"{name} {value}" for name, value in point.axis_values),
                    *([point.configuration] if several else []),
                ]
            )
            for point in self.plan.points
        }

    def _run_name(self, run_key: RunKey) -> str:
        return (
            f"{self._point_name_by_digest.get(run_key[0], f'point {run_key[0]}')}, repeat "
            f"{run_key[1]}"
        )

    def _report_damage(self, damage: Damage) -> None:
        if damage not in self._seen_damage:
            self._seen_damage.add(damage)
            self._on_new_damage(damage)

    def _read_document_or_report_damage(self, shape: type[T], name: str) -> T | None:
        """A document of the session itself; None where there is none, or it is damaged."""
        try:
            return read_optional_document(shape, self.directory / name)
        except StoreError as error:
            self._report_damage(damage_from_error(self.directory, name, error))
            return None

    def _read_table(self, digest: str, repeat: int, name: str, shape: type[U]) -> U:
        from iolab.store.runs import read_table

        def read_from_run_directory(run_directory: Path) -> U:
            files = self._cached_manifest_head(
                (digest, repeat), run_directory, run_file_stamps(run_directory)
            ).files
            return read_table(require_unchanged_file(run_directory, files, name), shape)

        return self._read_from_run_directory_or_report_damage(
            digest, repeat, read_from_run_directory
        )

    def _read_from_run_directory_or_report_damage(
        self, digest: str, repeat: int, read: Callable[[Path], T]
    ) -> T:
        """What `read` finds in the directory of a committed run."""
        key = (digest, repeat)
        try:
            run = layout.run_directory(self.directory, key)
        except ValueError as error:
            raise StoreError(f"{error}.", "List the runs with `iolab show`.") from error
        with disk_errors_as_store_errors(run, "read"):
            there = run.is_dir()
        if not there:
            raise StoreError(
                f"'{self.directory}' has no run {repeat} of point {digest}.",
                "List the runs with `iolab show`.",
            )
        try:
            return read(run)
        except StoreError as error:
            self._report_damage(self._run_damage_from_error(key, run, error))
            raise

    def _run_damage_from_error(
        self, run_key: RunKey, run_directory: Path, error: StoreError
    ) -> Damage:
        place = str(run_directory.relative_to(self.directory))
        return damage_from_error(run_directory, place, error, self._run_name(run_key))

    def _cached_manifest_head(
        self, run_key: RunKey, run_directory: Path, stamp: Stamp
    ) -> ManifestHead:
        """The head of a run's manifest, read again only where a file of the run was written."""
        kept = self._heads.get(run_key)
        if kept is None or kept[0] != stamp:
            kept = self._heads[run_key] = (stamp, read_manifest_head(run_directory, stamp))
        return kept[1]

    def _read_undamaged_manifest_heads(self) -> dict[RunKey, ManifestHead]:
        """The heads of all manifests that are not damaged."""
        heads: dict[RunKey, ManifestHead] = {}
        damaged = []
        with disk_errors_as_store_errors(self.directory, "read"):
            runs = layout.committed_folder_by_run(self.directory)
        for key, run in runs.items():
            stamp = run_file_stamps(run)
            try:
                heads[key] = self._cached_manifest_head(key, run, stamp)
            except StoreError as error:
                if run_file_stamps(run) == stamp:  # otherwise a writer has just set it aside
                    damage = self._run_damage_from_error(key, run, error)
                    self._report_damage(damage)
                    damaged.append(damage)
        self._heads = {key: kept for key, kept in self._heads.items() if key in heads}
        self._damaged_runs = (*damaged, *self.missing_runs_damage())
        return heads


def read_session(directory: Path) -> SessionDocument:
    """What session.json says; StoreError if the directory is no session or of another format."""
    path = directory / layout.SESSION
    with disk_errors_as_store_errors(path, "read"):
        if not path.exists():
            raise StoreError(
                f"'{directory}' is not a session.",
                "Give the directory that `iolab run --out` wrote.",
            )
    session = read_digested_document(SessionDocument, path)
    if not 0 <= session.created_real_ns <= _MOMENT_MAX_NS:
        raise damaged_file_error(path, "created_real_ns: it is no moment")
    return session


def is_session(directory: Path) -> bool:
    """Whether a directory is a session, of whatever format."""
    return (directory / layout.SESSION).is_file()
