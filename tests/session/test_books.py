"""The account of a target over segments: what the counters tell, and what nobody can tell."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from iolab.core.run import DeviceDelta, PlannedRun, Point
from iolab.core.target_state import TargetLedger, TargetLedgerEntry
from iolab.hosts.device_counters import DiskCounts, HostDisksSnapshot
from iolab.loads.fileio.engine_facts import FIO_ENGINE
from iolab.loads.fileio.workload import AccessPattern, Job
from iolab.study.targets import Target
from iolab.targets.devices import facts_with_device_as_target
from iolab.targets.state import PREPARING, SessionLedger, entry_after_run, entry_with_run_begun
from iolab.targets.work_directory import WorkDirectory
from tests.analysis.records import WRITES, healthy
from tests.fakes.host import FakeHost
from tests.fakes.machine import machine_facts
from tests.study.test_devices import DEVICE

TARGET = Target("c1", "c1", DEVICE.path, ("fleet",), "S5")
FACTS = facts_with_device_as_target(machine_facts(None), DEVICE)
BOOT = FACTS.kernel.boot_id
SITE = WorkDirectory(FakeHost("c1"), "/dev", FACTS.target, "c1", device=DEVICE.name)
KNOWN = TargetLedgerEntry(
    "c1", "c1", DEVICE.path, "S5", BOOT, counter_bytes=1000, written_bytes=700, filled=1.0
)


def look(written: int) -> HostDisksSnapshot:
    return HostDisksSnapshot(0, {DEVICE.name: DiskCounts(0, 0, 0, written)})


def gone_on(known: TargetLedgerEntry, written: int) -> TargetLedgerEntry:
    """The account after a new segment has looked."""
    told: list[TargetLedger] = []
    books = SessionLedger(TargetLedger((known,)), told.append)
    books.begin_or_resume_entry(SITE, TARGET, FACTS, look(written), 1 << 20)
    assert told[-1].target("c1") == books.entry_of_target(SITE)
    return books.entry_of_target(SITE)


def test_what_is_new_begins_with_nothing() -> None:
    books = SessionLedger(TargetLedger(), lambda _: None)
    books.begin_or_resume_entry(SITE, TARGET, FACTS, look(5000), 1 << 20)
    account = books.entry_of_target(SITE)
    assert (account.written_bytes, account.counter_bytes, account.serial) == (0, 5000, "S5")


def test_a_device_that_nobody_wrote_to_is_as_it_was() -> None:
    assert gone_on(KNOWN, 1000) == KNOWN


def test_bytes_of_a_run_that_was_cut_short_are_the_sessions_own() -> None:
    account = gone_on(replace(KNOWN, pending_write="digest 1"), 1300)
    assert (account.written_bytes, account.foreign_bytes, account.unknown) == (1000, 0, None)
    assert gone_on(replace(KNOWN, pending_write=PREPARING), 1300).pending_write == PREPARING


def test_bytes_of_nobody_are_foreign() -> None:
    account = gone_on(KNOWN, 1300)
    assert (account.written_bytes, account.foreign_bytes) == (1000, 300)


@pytest.mark.parametrize(
    ("known", "written", "message"),
    [
        (replace(KNOWN, boot_id="another"), 2000, "restarted"),
        (KNOWN, 999, "replaced"),
    ],
)
def test_what_cannot_be_known_is_said(known: TargetLedgerEntry, written: int, message: str) -> None:
    assert message in (gone_on(known, written).unknown or "")


def test_files_of_a_new_segment_are_in_no_state_yet() -> None:
    folder = replace(SITE, device="")
    known = replace(KNOWN, serial=None, start_state_key="once", steady=(("a/b", True),))
    books = SessionLedger(TargetLedger((known,)), lambda _: None)
    books.begin_or_resume_entry(folder, TARGET, FACTS, look(1000), 1 << 20)
    assert (
        books.entry_of_target(folder).start_state_key,
        books.entry_of_target(folder).filled,
    ) == (None, 0.0)
    books.save_entries(replace(books.entry_of_target(folder), start_state_key="once", filled=2.0))
    books.begin_or_resume_entry(folder, TARGET, FACTS, look(9000), 1 << 20)
    account = books.entry_of_target(folder)
    assert (account.start_state_key, account.filled, account.foreign_bytes) == ("once", 2.0, 0)


@pytest.mark.parametrize(
    ("access", "kept", "marked"),
    [
        (AccessPattern.RANDREAD, True, False),
        (AccessPattern.WRITE, True, True),
        (AccessPattern.RANDTRIM, False, True),
    ],
)
def test_the_start_state_is_gone_with_the_first_trim(
    access: AccessPattern, *, kept: bool, marked: bool
) -> None:
    job = Job(FIO_ENGINE, access, 4096, 1, 1, 1 << 20)
    run = PlannedRun(1, 1, Point("digest", "fleet", "w", (), job, "s1m"))
    made = replace(KNOWN, start_state_key="once", steady=(("fleet/w", True),))
    account = entry_with_run_begun(made, run)
    assert (account.filled, account.start_state_key) == ((1.0, "once") if kept else (0.0, None))
    assert bool(account.steady) is kept
    assert account.pending_write == ("digest 1" if marked else "")
    assert account.written_bytes == made.written_bytes


@pytest.mark.parametrize(
    ("serial", "moved", "counted"),
    [("S5", 10**9, 0), ("S5", 10**10, 10**10), (None, 10**10, 0)],
)
def test_a_run_adds_what_its_engine_or_its_device_counted(
    serial: str | None, moved: int, counted: int
) -> None:
    """A directory's device may serve others, too: what it counts is not the session's alone."""
    record = healthy(WRITES, devices=(DeviceDelta(DEVICE.name, 0, moved, 0, 1),))
    (host,) = record.hosts
    assert host.totals is not None
    assert host.totals.write is not None
    engine = host.totals.write.bytes
    assert 10**9 < engine < 10**10
    account = entry_after_run(replace(KNOWN, serial=serial, pending_write="digest 1"), record, host)
    assert (account.written_bytes, account.pending_write) == (700 + max(engine, counted), "")
    assert account.unknown is None
    (line,) = account.runs
    assert (line.engine_bytes, line.device_bytes) == (engine, moved)


def test_a_run_of_which_nothing_tells_what_it_wrote_leaves_the_account_unknown() -> None:
    record = healthy(WRITES, totals=None, devices=())
    account = entry_after_run(KNOWN, record, record.hosts[0])
    assert (account.written_bytes, account.unknown is None) == (700, False)
    reads = healthy(totals=None, devices=())
    assert entry_after_run(KNOWN, reads, reads.hosts[0]).unknown is None


def test_a_run_that_only_reads_adds_nothing() -> None:
    reads = healthy()
    account = entry_after_run(KNOWN, reads, reads.hosts[0])
    assert (account.written_bytes, account.runs[0].engine_bytes) == (700, 0)
