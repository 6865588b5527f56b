"""The state of a target: what it was given before it is measured, and what was written to it."""

from __future__ import annotations

from enum import StrEnum

from iolab.core.host_name import HostName
from iolab.record import Record


class PurgeMethod(StrEnum):
    """How a target is brought back to fresh."""

    NONE = "none"
    DISCARD = "discard"
    """Every block of a device is discarded (BLKDISCARD)."""
    NVME_FORMAT = "nvme-format"
    """`nvme format` with a user data erase."""
    SANITIZE = "sanitize"
    """`nvme sanitize` with a block erase."""
    FSTRIM = "fstrim"
    """The session's files are removed and the file system's free blocks are discarded (FITRIM)."""
    RECREATE = "recreate"
    """The session's files are removed and laid out anew."""

    @property
    def purges_devices(self) -> bool:
        """Whether it is for whole devices; all others but NONE are for directories."""
        return self in (PurgeMethod.DISCARD, PurgeMethod.NVME_FORMAT, PurgeMethod.SANITIZE)


class RestorePolicy(StrEnum):
    """When the start state is made again."""

    ONCE = "once"
    EACH_WORKLOAD = "each-workload"
    """Whenever the next run is of another workload than the one before it."""
    EACH_POINT = "each-point"
    """Before every run."""


class Precondition(Record):
    """What is done to a target before it is measured, in this order.

    `fill` is how often the used region is written over, sequentially; 1 is what a layout does
    anyway. With `steady` each writing workload runs in rounds of `round_s` until they are steady,
    `rounds_max` at most.
    """

    purge: PurgeMethod = PurgeMethod.NONE
    fill: float = 1.0
    steady: bool = False
    round_s: float = 60.0
    rounds_max: int = 25
    restore: RestorePolicy = RestorePolicy.ONCE

    @property
    def needs_more_than_layout(self) -> bool:
        """Whether anything but the usual layout is to be done."""
        return self.purge is not PurgeMethod.NONE or self.fill != 1.0 or self.steady


NO_PRECONDITION = Precondition()
"""Nothing but the usual layout."""


class SteadyStateVerdict(Record):
    """What the newest window of rounds tells, in SNIA's terms.

    `slope` (per round) and `intercept` are of the line through the window, whose rounds count from
    1 in the whole series; excursions are shares of the window's average.
    """

    first_round: int
    average: float
    data_excursion: float
    slope_excursion: float
    slope: float
    intercept: float
    achieved: bool


class PreconditioningRounds(Record):
    """One workload-dependent preconditioning: the fleet's IOPS in each round.

    `verdict` is of the last window, None with fewer rounds than a window has.
    """

    configuration: str
    workload: str
    label: str
    ended_real_ns: int
    round_s: float
    iops: tuple[float, ...]
    verdict: SteadyStateVerdict | None

    @property
    def is_steady(self) -> bool:
        """Whether the steady state was reached."""
        return self.verdict is not None and self.verdict.achieved


class TargetState(Record):
    """The state of one host's target when a run began.

    `written_bytes` count since the purge, or since the session first saw the target.
    `compared_bytes` is the same at the start of the first run of this sweep. `filled` is how often
    the region was written over since then. `foreign_bytes` were written by nobody of the session.
    `steady` tells whether the run's workload was brought to its steady state (None: not tried).
    `unknown` says why the history of the target is not known, None when it is.
    """

    host: HostName
    target_key: HostName
    purged_by: PurgeMethod
    purged_real_ns: int | None
    region_bytes: int
    filled: float
    written_bytes: int
    compared_bytes: int
    foreign_bytes: int
    steady: bool | None
    unknown: str | None


class LedgerRunEntry(Record):
    """What one run wrote: by its engine's own count and by the device's; None if not known."""

    digest: str
    repeat: int
    attempt: int
    engine_bytes: int | None
    device_bytes: int | None


class TargetLedgerEntry(Record):
    """The account of one target.

    `counter_bytes` is the device's own count of written bytes since the boot named by `boot_id`,
    when the session last looked. `pending_write` is what was being written when the ledger was
    kept, empty for nothing. `steady` are the workloads that were brought to a steady state since
    the purge, with the outcome. `sweeps` are (configuration and workload, bytes at the first run).
    """

    key: str
    host: HostName
    path: str
    serial: str | None
    boot_id: str
    counter_bytes: int | None
    region_bytes: int = 0
    purged_by: PurgeMethod = PurgeMethod.NONE
    purged_real_ns: int | None = None
    filled: float = 0.0
    written_bytes: int = 0
    foreign_bytes: int = 0
    unknown: str | None = None
    pending_write: str = ""
    start_state_key: str | None = None
    steady: tuple[tuple[str, bool], ...] = ()
    sweeps: tuple[tuple[str, int], ...] = ()
    runs: tuple[LedgerRunEntry, ...] = ()


class TargetLedger(Record):
    """The state ledger of a session: its targets, and every series of rounds."""

    targets: tuple[TargetLedgerEntry, ...] = ()
    rounds: tuple[PreconditioningRounds, ...] = ()

    def target(self, target_key: str) -> TargetLedgerEntry | None:
        """The account of that target, None if there is none yet."""
        return next((item for item in self.targets if item.key == target_key), None)


EMPTY_LEDGER = TargetLedger()
"""The ledger of a session that begins."""
