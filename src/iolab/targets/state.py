"""Keeps a session's state ledger: what was done to each target, told whenever it changes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from iolab.core.host import HostFacts
from iolab.core.run import HostRun, PlannedRun, RunRecord
from iolab.core.target_state import (
    LedgerRunEntry,
    PreconditioningRounds,
    TargetLedger,
    TargetLedgerEntry,
    TargetState,
)
from iolab.core.workload import DataSet, Direction
from iolab.hosts.answers import LedgerAnswer, read_answer
from iolab.hosts.device_counters import HostDisksSnapshot
from iolab.hosts.engine import BlockLedger
from iolab.hosts.host import Host
from iolab.study.targets import Target
from iolab.targets.work_directory import WorkDirectory

NOT_LOOKED_AT = "not looked at"
"""Stands for the run when the counters could not be read after it."""

PREPARING = "preparing"
"""Stands for the run while a purge, a fill or rounds are under way."""

OPEN_LIMIT_S: Final = 20.0
"""Making a file in memory; a host under full load may be slow to answer."""


class SessionLedger:
    """The ledger of a session; `on_change` keeps each new state of it before the next step."""

    def __init__(self, ledger: TargetLedger, on_change: Callable[[TargetLedger], None]) -> None:
        self._ledger = ledger
        self._on_change = on_change
        self._opened: set[str] = set()

    def entry_of_target(self, workdir: WorkDirectory) -> TargetLedgerEntry:
        """The entry of a work directory that was opened by `begin_or_resume_entry`."""
        entry = self._ledger.target(workdir.target_key)
        if entry is None:
            raise ValueError(f"no entry of {workdir.target_key}")
        return entry

    def has_entry(self, workdir: WorkDirectory) -> bool:
        """Whether there is an entry of the work directory already."""
        return self._ledger.target(workdir.target_key) is not None

    def save_entries(self, *entries: TargetLedgerEntry) -> None:
        """Put these entries in the place of the old ones, and report the change."""
        new = {item.key: item for item in entries}
        kept = [new.pop(item.key, item) for item in self._ledger.targets]
        self._ledger = replace(self._ledger, targets=(*kept, *new.values()))
        self._on_change(self._ledger)

    def add_preconditioning_rounds(self, rounds: PreconditioningRounds) -> None:
        """Keep a series of rounds."""
        self._ledger = replace(self._ledger, rounds=(*self._ledger.rounds, rounds))
        self._on_change(self._ledger)

    def begin_or_resume_entry(
        self,
        workdir: WorkDirectory,
        target: Target,
        facts: HostFacts,
        snapshot: HostDisksSnapshot,
        region_bytes: int,
    ) -> None:
        """Begin the entry, or go on with it: what was written meanwhile is noticed."""
        counter, boot = bytes_written_since_boot(workdir, snapshot), facts.kernel.boot_id
        old = self._ledger.target(workdir.target_key)
        if old is None:
            new = TargetLedgerEntry(
                key=workdir.target_key,
                host=workdir.name,
                path=target.path,
                serial=target.serial,
                boot_id=boot,
                counter_bytes=counter,
                region_bytes=region_bytes,
            )
        else:
            new = _entry_with_foreign_bytes(old, workdir, boot, counter)
            if not workdir.is_raw_device and workdir.target_key not in self._opened:
                # The files of an earlier segment are gone; these were laid out just now.
                new = replace(new, start_state_key=None, filled=0.0, pending_write="", steady=())
        self._opened.add(workdir.target_key)
        self.save_entries(new)

    def update_write_counter(self, workdir: WorkDirectory, snapshot: HostDisksSnapshot) -> None:
        """Take the device's counter as it is now: whatever it counted is in the entry."""
        self.save_entries(
            replace(
                self.entry_of_target(workdir),
                counter_bytes=bytes_written_since_boot(workdir, snapshot),
            )
        )


def bytes_written_since_boot(workdir: WorkDirectory, snapshot: HostDisksSnapshot) -> int | None:
    """The bytes that were written to its device since the boot; None without one."""
    device = workdir.target_facts.device if workdir.target_facts else None
    counts = snapshot.counts_by_disk.get(device) if device else None
    if counts is None:
        # A device that did nothing since the boot is not in the list.
        return 0 if workdir.device else None
    return counts.write_bytes


def sweep_key(run: PlannedRun) -> str:
    """A sweep by name: the configuration and the workload."""
    return f"{run.point.configuration}/{run.point.workload}"


def entry_with_run_begun(entry: TargetLedgerEntry, run: PlannedRun) -> TargetLedgerEntry:
    """The entry with the run under way; the first of a sweep is what others compare with.

    Of what a run trims nothing is left: from its beginning on there is no start state any more, so
    that it is made again before the next run, whatever becomes of this one.
    """
    key = sweep_key(run)
    sweeps = entry.sweeps
    if key not in dict(sweeps):
        sweeps = (*sweeps, (key, entry.written_bytes))
    job = run.point.job
    under_way = f"{run.point.digest} {run.repeat}" if job.changes_data else ""
    new = replace(entry, sweeps=sweeps, pending_write=under_way)
    if Direction.TRIM in job.data_directions:
        return replace(new, filled=0.0, start_state_key=None, steady=())
    return new


def state_before_run(entry: TargetLedgerEntry, run: PlannedRun) -> TargetState:
    """The state in which the run begins."""
    key = sweep_key(run)
    return TargetState(
        host=entry.host,
        target_key=entry.key,
        purged_by=entry.purged_by,
        purged_real_ns=entry.purged_real_ns,
        region_bytes=entry.region_bytes,
        filled=entry.filled,
        written_bytes=entry.written_bytes,
        compared_bytes=dict(entry.sweeps).get(key, entry.written_bytes),
        foreign_bytes=entry.foreign_bytes,
        steady=dict(entry.steady).get(key),
        unknown=entry.unknown,
    )


def entry_after_run(
    entry: TargetLedgerEntry, record: RunRecord, host: HostRun
) -> TargetLedgerEntry:
    """The entry after a run: the larger of the engine's and the device's count is believed."""
    totals, run = host.totals, record.run
    engine = None
    if totals is not None:
        engine = totals.write.bytes if totals.write else 0
    moved = [delta.write_bytes for delta in host.devices[:1]]
    device = moved[0] if moved else None
    line = LedgerRunEntry(run.point.digest, run.repeat, run.attempt, engine, device)
    # A directory's disk may serve others too: there only the engine's own count is the session's.
    known = [count for count in (engine, device if entry.serial else None) if count is not None]
    unknown = entry.unknown
    if not known and Direction.WRITE in record.run.point.job.data_directions:
        unknown = f"nothing tells how much the run of {run.point.title_text} wrote"
    return replace(
        entry,
        pending_write="",
        written_bytes=entry.written_bytes + max(known, default=0),
        unknown=unknown,
        runs=(*entry.runs, line),
    )


def states_before_run(
    entries: Mapping[str, TargetLedgerEntry], workdirs: Sequence[WorkDirectory], run: PlannedRun
) -> tuple[TargetState, ...]:
    """The states of all work directories of a run."""
    return tuple(state_before_run(entries[workdir.target_key], run) for workdir in workdirs)


def _entry_with_foreign_bytes(
    kept_entry: TargetLedgerEntry, workdir: WorkDirectory, boot_id: str, counter_bytes: int | None
) -> TargetLedgerEntry:
    """An entry that was kept before, with what the device's counter has moved by since."""
    new = replace(kept_entry, boot_id=boot_id, counter_bytes=counter_bytes)
    if not workdir.is_raw_device:
        return new
    if kept_entry.boot_id != boot_id or counter_bytes is None or kept_entry.counter_bytes is None:
        return replace(new, unknown="the host was restarted, and its counters with it")
    moved = counter_bytes - kept_entry.counter_bytes
    if moved < 0:
        return replace(new, unknown="the device counts less than it did: it was replaced")
    new = replace(new, written_bytes=kept_entry.written_bytes + moved)
    if moved and not kept_entry.pending_write:
        return replace(new, foreign_bytes=kept_entry.foreign_bytes + moved)
    return new


_Place = tuple[str, str]
"""A work directory's key, and what lies there."""


class _HostBlockLedger(Struct):
    """A ledger, who keeps it, and whether it knows of every block."""

    ledger: BlockLedger
    host: Host
    is_complete: bool = False


class BlockLedgers:
    """The ledgers that a session's hosts keep; a host that was lost keeps none any more."""

    def __init__(self) -> None:
        self._ledgers_by_place: dict[_Place, _HostBlockLedger] = {}

    async def begin_ledger(
        self, workdir: WorkDirectory, data_set: DataSet, block_bytes: int
    ) -> BlockLedger:
        """A new ledger in the place of any other, before all of the data set is written.

        `block_bytes` is the smallest block that will be verified. HostError when the host has none.
        """
        place = _ledger_key(workdir, data_set)
        self._ledgers_by_place.pop(place, None)
        answer = await workdir.host.request(
            "ledger_open", deadline_s=OPEN_LIMIT_S, name=" ".join(place)
        )
        path = read_answer(workdir.name, LedgerAnswer, answer).path
        ledger = BlockLedger(path, block_bytes)
        self._ledgers_by_place[place] = _HostBlockLedger(ledger, workdir.host)
        return ledger

    def mark_complete(self, workdir: WorkDirectory, data_set: DataSet) -> None:
        """All of the data set was written: its ledger, if there is one, knows of every block."""
        kept = self._ledgers_by_place.get(_ledger_key(workdir, data_set))
        if kept:
            kept.is_complete = True

    def ledger_of_data_set(self, workdir: WorkDirectory, data_set: DataSet) -> BlockLedger | None:
        """The ledger that a run on the data set is held against, and goes on with."""
        kept = self._host_ledger(workdir, data_set)
        return kept.ledger if kept else None

    def is_complete(self, workdir: WorkDirectory, data_set: DataSet) -> bool:
        """Whether the last write of every block of the data set is known."""
        kept = self._host_ledger(workdir, data_set)
        return kept is not None and kept.is_complete

    async def forget_ledger(self, workdir: WorkDirectory, data_set: DataSet) -> None:
        """What lies there is written by somebody who keeps no ledger. HostError when lost."""
        place = _ledger_key(workdir, data_set)
        kept = self._ledgers_by_place.pop(place, None)
        if kept and kept.host is workdir.host:
            await workdir.host.request(
                "ledger_close", deadline_s=OPEN_LIMIT_S, name=" ".join(place)
            )

    def _host_ledger(self, workdir: WorkDirectory, data_set: DataSet) -> _HostBlockLedger | None:
        """An agent that was lost took its ledgers along; nor does a host know of another's."""
        kept = self._ledgers_by_place.get(_ledger_key(workdir, data_set))
        return (
            kept if kept and kept.host is workdir.host and not workdir.folder_owner_host else None
        )


def _ledger_key(workdir: WorkDirectory, data_set: DataSet) -> _Place:
    """On a device all data sets lie over each other: they are one."""
    return workdir.target_key, workdir.device or data_set.id
