"""The index of a session says what its runs say, whatever became of it."""

from __future__ import annotations

import resource
import shutil
import sys
from pathlib import Path

import pytest
from bench.synthetic import make_result
from msgspec.structs import replace

import iolab
from iolab.core.events import SessionStatus
from iolab.core.metric import VerdictLevel
from iolab.core.run import RunKey, RunStatus
from iolab.core.target_state import TargetLedger
from iolab.store import layout
from iolab.store.index import IndexEntry, index_entry, read_index
from iolab.store.reader import SessionReader
from iolab.store.writer import SessionWriter
from tests.cli.in_process import call
from tests.store.sessions import PLAN, commit, create, record_of

KEYS = [(run.point.digest, run.repeat) for run in PLAN.runs]


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A session of three runs, the last of which failed."""
    with create(tmp_path / "S") as writer:
        for order in range(2):
            commit(writer, record_of(order))
        commit(writer, record_of(2, RunStatus.FAILED))
    return tmp_path / "S"


def entries_of_runs(place: Path) -> dict[RunKey, IndexEntry]:
    """What the index should have: read of every run."""
    results = SessionReader(place).results()
    return {(result.digest, result.repeat): index_entry(result) for result in results}


def test_each_commit_is_in_the_index(place: Path) -> None:
    assert read_index(place) == SessionReader(place).index_entry_by_run() == entries_of_runs(place)


@pytest.mark.parametrize("kept", [0, 1, 30, 200])
def test_what_a_damaged_index_lacks_is_read_and_added(place: Path, kept: int) -> None:
    index = place / layout.INDEX
    index.write_bytes(index.read_bytes()[:kept] + b"\n[1]\nnonsense\n{}")
    assert SessionReader(place).index_entry_by_run() == entries_of_runs(place)
    SessionWriter.reopen(place).close()
    assert read_index(place) == entries_of_runs(place)


def test_an_index_that_was_removed_comes_back(place: Path) -> None:
    (place / layout.INDEX).unlink()
    assert SessionReader(place).index_entry_by_run() == entries_of_runs(place)
    SessionWriter.reopen(place).close()
    assert read_index(place) == entries_of_runs(place)


def test_a_run_that_is_gone_is_in_no_overview(place: Path) -> None:
    layout.run_directory(place, KEYS[0]).rename(place / "elsewhere")
    assert SessionReader(place).index_entry_by_run().keys() == {KEYS[1], KEYS[2]}


def test_a_run_that_took_the_place_of_another_is_not_told_by_its_line(place: Path) -> None:
    lines = (place / layout.INDEX).read_bytes().split(b"\n")
    with SessionWriter.reopen(place) as writer:
        commit(writer, record_of(2))
    index = place / layout.INDEX
    assert SessionReader(place).index_entry_by_run()[KEYS[2]].status is RunStatus.DONE
    # Killed after the new run had its name: what called the old line off is there, the new is not.
    written = index.read_bytes().split(b"\n")
    assert len(written) == len(lines) + 2
    index.write_bytes(b"\n".join(written[:-1]))
    assert KEYS[2] not in read_index(place)
    assert SessionReader(place).index_entry_by_run() == entries_of_runs(place)


def test_a_damaged_run_without_a_line_is_left_out_and_told(place: Path) -> None:
    (place / layout.INDEX).unlink()
    (layout.run_directory(place, KEYS[0]) / layout.MANIFEST).write_text("{}")
    reader = SessionReader(place)
    assert reader.index_entry_by_run().keys() == {KEYS[1], KEYS[2]}
    assert [damage.run_name for damage in reader.damage_seen_so_far()]


def test_show_counts_by_the_index(place: Path) -> None:
    with SessionWriter.reopen(place) as writer:
        record = record_of(3)
        result = make_result(record)
        bad = replace(result, verdict=replace(result.verdict, level=VerdictLevel.INVALID))
        writer.commit_run(record, bad, analysis_version=7)
    shown = call("show", str(place), "--summary")
    assert shown.returncode == 0
    assert "4 runs" in shown.stdout
    (row,) = [line for line in shown.stdout.splitlines() if PLAN.runs[0].point.workload in line]
    assert [int(word) for word in row.split() if word.isdigit()][-4:] == [4, 2, 1, 1]
    assert call("show", str(place), "--summary", "--fail-on", "invalid").returncode == 1


def test_a_run_that_was_taken_out_is_told_by_every_reader(place: Path) -> None:
    with SessionWriter.reopen(place) as writer:
        writer.end_session_and_close(SessionStatus.DONE)
    shutil.rmtree(place / layout.POINTS / KEYS[0][0])
    for command in (
        ("show", place),
        ("show", place, "--summary"),
        ("show", place, "--time"),
        ("export", place, "-f", "csv"),
        ("export", place, "-f", "openmetrics"),
        ("report", place, "--md", place.parent / "out.md"),
        ("compare", place, place),
        ("audit", place),
    ):
        done = call(*command)
        assert done.returncode == 5, (command, done.stderr)
        assert f"points/{KEYS[0][0]}/run-1" in done.stderr, command
        assert "missing" in done.stderr, command
    with pytest.warns(UserWarning, match="missing"):
        assert iolab.Session(place).damage


def test_what_a_session_has_is_held_against_its_list(place: Path) -> None:
    with SessionWriter.reopen(place) as writer:
        writer.write_ledger(TargetLedger())
        writer.end_session_and_close(SessionStatus.DONE)
    assert (
        SessionReader(place).damage_of_documents_and_manifests()
        == SessionReader(place).verify_all_files()
        == ()
    )
    for name in (layout.HOSTS, layout.LEDGER, layout.INDEX):
        content = (place / name).read_bytes()
        (place / name).unlink()
        for found in (
            SessionReader(place).damage_of_documents_and_manifests(),
            SessionReader(place).verify_all_files(),
        ):
            assert [damage.path for damage in found] == [name]
        (place / name).write_bytes(content)
    with SessionWriter.reopen(place) as writer:
        commit(writer, record_of(3))
        assert SessionReader(place).damage_of_documents_and_manifests() == ()
    assert SessionReader(place).verify_all_files() == ()


def test_hosts_are_missed_also_in_a_session_that_was_killed(place: Path) -> None:
    (place / layout.HOSTS).unlink()
    assert [damage.path for damage in SessionReader(place).damage_of_documents_and_manifests()] == [
        layout.HOSTS
    ]


def test_an_earlier_attempt_in_the_place_of_a_run_is_found_by_audit(place: Path) -> None:
    key = KEYS[2]
    with SessionWriter.reopen(place) as writer:
        commit(writer, record_of(2))
        writer.end_session_and_close(SessionStatus.DONE)
    run = layout.run_directory(place, key)
    run.rename(place / "elsewhere")
    run.with_name("run-1.attempt-1").rename(run)
    assert [damage.path for damage in SessionReader(place).verify_all_files()] == [
        str((run / layout.MANIFEST).relative_to(place))
    ]


def test_an_export_that_finds_no_room_speaks_of_its_file_and_not_of_the_session(
    place: Path,
) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, hard))
    try:
        done = call("export", place, "-f", "parquet", "-o", place.parent / "out.parquet")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert done.returncode == 6
    assert "resume" not in done.stderr
    assert not (place.parent / "out.parquet").exists()


OPENED: list[str] = []
"""Files that were opened since a test asked for them; a hook of Python stays for good."""


def note_opened(event: str, words: tuple[object, ...]) -> None:
    """Take an event of Python's audit."""
    if event == "open":
        OPENED.append(str(words[0]))


def count_opened() -> list[str]:
    """A list that grows by the name of each file that is opened from now on."""
    if not OPENED:
        sys.addaudithook(note_opened)
    OPENED[:] = ["begun"]
    return OPENED


def test_an_overview_reads_the_index_once(place: Path) -> None:
    reader = SessionReader(place)
    opened = count_opened()
    assert len(reader.index_entry_by_run()) == 3
    assert sum(name.endswith(layout.INDEX) for name in opened) == 1
    shutil.rmtree(layout.run_directory(place, KEYS[0]))
    reader.index_entry_by_run()
    assert any("missing" in damage.message for damage in reader.damage_seen_so_far())
