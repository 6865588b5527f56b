"""What one run on a key-value store leaves behind, beside its intervals and bins."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

from iolab.core.run import HostDetails, HostRun, Run, RunDetails
from iolab.loads.keyvalue.workload import BinnedLatency, KeyOperation, LevelShape, TableShape


@dataclass(frozen=True, slots=True)
class OperationCount:
    """How often an operation came to its end in the whole run, and how often it failed.

    `failed` counts whatever is not the store's plain yes; `absent` are reads of keys that are not
    there, None where the engine does not tell.
    """

    operation: KeyOperation
    done: int
    failed: int = 0
    absent: int | None = None


@dataclass(frozen=True, slots=True)
class Statistic:
    """A number that the engine or the server tells of itself, under its own name."""

    name: str
    value: float
    unit: str


@dataclass(frozen=True, slots=True)
class StoreShape:
    """What a database looked like before a run: its levels, its table files, its compaction debt.

    `pending_bytes` are still to be compacted, None where the engine does not tell.
    """

    levels: tuple[LevelShape, ...] = ()
    tables: TableShape | None = None
    pending_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class KeyValueRun(HostDetails):
    """What one client's engine told of a run.

    `build` is how the engine was compiled where it says so (`assertions enabled`), "" for nothing
    to remark. `seed` is of the key streams, `load_seed` of those that loaded the database, None
    where that is not known. `copied_by` is how the client's database came to its start state:
    `reflink`, `copy`, "" where the client has none of its own. `start` is its shape then.
    `latencies` are in the engine's own bins, of the whole run, where it gives no finer ones.
    `reported_ops_per_s` over `reported_s` is the engine's own total, for comparison. `faults` are
    sentences: why the run is not what was asked for.
    """

    stored_as: ClassVar[str] = "key-value"

    counts: tuple[OperationCount, ...]
    seed: int
    build: str = ""
    copied_by: str = ""
    start: StoreShape | None = None
    latencies: tuple[BinnedLatency, ...] = ()
    statistics: tuple[Statistic, ...] = ()
    reported_ops_per_s: float | None = None
    reported_s: float | None = None
    faults: tuple[str, ...] = ()
    load_seed: int | None = None


@dataclass(frozen=True, slots=True)
class ServerRun(RunDetails):
    """What a server told around a run.

    `host` is the host of the study on which it runs, "" for one outside of it. `rows` is how many
    it holds, None where they were not counted, and `rows_by` says how (`count`, `estimate`).
    `restored_by` is how it came to its start state (`reflink`, `copy`), "" where it did not.
    `memory_bytes` bounds all of its memory, its page cache too; None does not.
    """

    stored_as: ClassVar[str] = "key-value"

    product: str
    version: str
    address: str
    host: str = ""
    java: str = ""
    rows: int | None = None
    rows_by: str = ""
    restored_by: str = ""
    statistics_before: tuple[Statistic, ...] = ()
    statistics_after: tuple[Statistic, ...] = ()
    error: str | None = None
    memory_bytes: int | None = None

    def renamed(self, names: Mapping[str, str]) -> ServerRun:
        """See `RunDetails`."""
        return replace(self, host=names.get(self.host, self.host))


def told_by(host: HostRun) -> KeyValueRun | None:
    """What a client's engine told; None where it told nothing."""
    return host.details if isinstance(host.details, KeyValueRun) else None


def server_in(run: Run) -> ServerRun | None:
    """What the run's server told; None without one."""
    return run.details if isinstance(run.details, ServerRun) else None
