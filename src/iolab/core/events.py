"""What a session tells while it runs; a recorder turns it into a live view and a stored session."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Protocol

from iolab.core.host import HostFacts
from iolab.core.run import Plan, PlannedRun, RunRecord
from iolab.core.target_state import TargetLedger
from iolab.record import Record

if TYPE_CHECKING:
    from iolab.core.samples import SignedInts


class SessionPhase(StrEnum):
    """The phases of a session, each a barrier over all hosts."""

    CONNECT = "connect"
    BOOT = "boot guests"
    LAY_OUT = "lay out"
    PROVE = "verify"
    DROP_CACHES = "drop caches"
    PURGE = "purge"
    PRECONDITION = "precondition"
    GENERATOR_LIMIT = "generator's limit"
    IDLE = "idle watch"
    """Whether others use the devices, before a load."""
    IDLE_POWER = "idle power"
    """What machines take that idle, before a load and after it."""
    MEASURE = "measure"
    SETTLE = "settle"
    CLEAN_UP = "clean up"


class SessionStatus(StrEnum):
    """How a session stands."""

    RUNNING = "running"
    DONE = "done"
    INTERRUPTED = "interrupted"
    FAILED = "failed"


class SessionPhaseTime(Record):
    """How often a phase of a session began, and its seconds in all."""

    phase: str
    times: int
    seconds: float


class SessionStarted(Record):
    """All hosts are connected and their facts known; `facts` holds (host name, facts)."""

    plan: Plan
    facts: tuple[tuple[str, HostFacts], ...]
    agent_version: str


class FilesystemsCreated(Record):
    """The session made file systems of its own; `facts` are its hosts' with them as targets.

    By `Target.key`. In what was measured on them they take the place of those of the start.
    """

    facts: tuple[tuple[str, HostFacts], ...]


class SessionPhaseStarted(Record):
    """A phase begins, of one run or of the session (`run` None); `detail` is for people."""

    phase: SessionPhase
    run: PlannedRun | None
    detail: str
    expected_s: float | None


class IntervalReported(Record):
    """One host's newest interval, for the live view; rates in 1/s and bytes/s, latency in ns.

    `bins` are latency bins and the I/Os in each, a pair for each direction; empty where they are
    not told.
    """

    host: str
    run: PlannedRun
    elapsed_s: float
    iops: float
    bw_bytes_per_s: float
    lat_ns_mean: float | None
    bins: tuple[tuple[SignedInts, SignedInts], ...] = ()


class CpuUseReported(Record):
    """One host's newest telemetry, for the live view; busy is a share of all cores, 0 to 1."""

    host: str
    cpu_busy: float


class GuestBooted(Record):
    """A guest on `node` answered for the first time, `boot_duration_s` after its start."""

    guest: str
    node: str
    boot_duration_s: float


class RunPreparing(Record):
    """A run is about to be prepared."""

    run: PlannedRun


class StoppingRuleStatus(Record):
    """What the rule that may end a run says of it now, in a few words, when that changed."""

    run: PlannedRun
    message: str


class RunFinished(Record):
    """A run ended, well or not: all its evidence. The recorder commits it before it returns."""

    record: RunRecord


class LedgerChanged(Record):
    """The state ledger changed; the recorder keeps it before it returns.

    What comes next may be cut short at any moment.
    """

    ledger: TargetLedger


class Notice(Record):
    """Something that the user should know, one sentence."""

    text: str


class ScenarioNotice(Notice):
    """A phase of the running run begins, that of the id `phase`; or what became of an event."""

    phase: str = ""


class SessionEnded(Record):
    """The session is over and every host was left clean (or `reason` says what was not).

    `leftover_texts` are sentences on what stayed on hosts, with what to do; `reason` has them too.
    """

    status: SessionStatus
    reason: str | None
    leftover_texts: tuple[str, ...] = ()


Event = (
    SessionStarted
    | FilesystemsCreated
    | SessionPhaseStarted
    | IntervalReported
    | CpuUseReported
    | GuestBooted
    | RunPreparing
    | StoppingRuleStatus
    | RunFinished
    | LedgerChanged
    | Notice
    | ScenarioNotice
    | SessionEnded
)


class Recorder(Protocol):
    """Where a session's events go; it may raise IolabError, which ends the session cleanly."""

    def emit(self, event: Event) -> None:
        """Take one event, in order."""
