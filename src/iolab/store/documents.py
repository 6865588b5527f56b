"""The JSON documents of a session, as records: what each file says."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from msgspec import field

from iolab.core.events import SessionPhaseTime, SessionStatus
from iolab.core.host import HostFacts
from iolab.core.metric import RunResult
from iolab.core.run import Plan, RunManifest
from iolab.core.study import Study
from iolab.core.target_state import TargetLedger
from iolab.record import Record
from iolab.store.layout import HOSTS, INDEX, LEDGER

LATER_FILES: Final = (HOSTS, LEDGER, INDEX)
"""Documents that change while a session runs; their digests are listed when it ends."""


class StoredFile(Record):
    """A file's name relative to its directory, its size, and its sha256 in hex."""

    name: str
    size_bytes: int
    sha256: str


class HistoryEntry(Record):
    """One change of a session's status: when (UTC, ns), by which version and command line."""

    real_ns: int
    status: SessionStatus
    reason: str | None
    iolab_version: str
    command: tuple[str, ...]


class SessionDocument(Record):
    """session.json: what this directory is and how it stands.

    `command` is the command line that created it; `history` holds the start, each end and each
    resume, oldest first. `agent_version` is None until the hosts were reached. `files` are the
    digests of study.toml and plan.json, which never change, and since the session ended those of
    `LATER_FILES`. `leftover_texts` are sentences on what stayed on hosts when it ended last, with
    what to do. `times` says where the time of all segments that ended went; empty in sessions of
    older versions.
    """

    format: int
    id: str
    study: str
    title: str
    scale: str
    overrides: tuple[str, ...]
    command: tuple[str, ...]
    iolab_version: str
    agent_version: str | None
    created_real_ns: int
    status: SessionStatus
    reason: str | None
    history: tuple[HistoryEntry, ...]
    files: tuple[StoredFile, ...]
    times: tuple[SessionPhaseTime, ...] = ()
    leftover_texts: tuple[str, ...] = ()

    @property
    def required_files_written_later(self) -> tuple[str, ...]:
        """Its files that came after its begin and must be there.

        While it runs they change, and have no digest here.
        """
        named = [file.name for file in self.files if file.name in LATER_FILES]
        has_hosts = self.agent_version is not None and HOSTS not in named
        return (*([HOSTS] if has_hosts else []), *named)


class PlanDocument(Record):
    """plan.json: the study with every default filled in (its text is study.toml), and the plan."""

    format: int
    study: Study
    plan: Plan


class HostFactsAtStart(Record):
    """The facts of all hosts, by name, when the session started or resumed (UTC, ns).

    `created_target_facts` are those of targets on which it made file systems of its own after that.
    """

    real_ns: int
    agent_version: str
    facts: Mapping[str, HostFacts]
    created_target_facts: Mapping[str, HostFacts] = field(default_factory=dict)


class SessionStartHead(Record):
    """When the session started or resumed, without the facts."""

    real_ns: int


class HostsDocumentHead(Record):
    """The part of hosts.json that tells segments apart."""

    format: int
    starts: tuple[SessionStartHead, ...]


class HostsDocument(Record):
    """hosts.json: one entry a start, oldest first."""

    format: int
    starts: tuple[HostFactsAtStart, ...]


class DocumentHead(Record):
    """As much of a document as tells whether it can be read."""

    format: int


class LedgerDocument(Record):
    """ledger.json: what was done to the targets, kept before and after every step that writes."""

    format: int
    ledger: TargetLedger


class StoredOutput(Record):
    """One engine output; the n-th of a manifest lies in `engine/<n>.zst`, counted from 0.

    `size_bytes` is its size unpacked; `truncated` says that the engine printed more, which was cut
    off.
    """

    host: str
    name: str
    size_bytes: int
    truncated: bool = False


class StoredAnalysis(Record):
    """What was said of the run when it was committed, and by which version of the analysis.

    It can be computed again from the run's files at any time.
    """

    version: int
    result: RunResult


class Manifest(RunManifest, kw_only=True):
    """manifest.json: everything of a run but its tables and outputs.

    The exact argument list, job file and engine version stand in each of `hosts`. `files` are all
    other files of the run.
    """

    format: int
    session: str
    iolab_version: str
    agent_version: str | None
    outputs: tuple[StoredOutput, ...]
    files: tuple[StoredFile, ...]
    analysis: StoredAnalysis


class ManifestHead(Record):
    """The part of a manifest that a listing of results needs."""

    format: int
    started_real_ns: int
    files: tuple[StoredFile, ...]
    analysis: StoredAnalysis


class RunOrigin(Record):
    """What a manifest says of the session and the programs that made the run."""

    session: str
    iolab_version: str
    agent_version: str | None
