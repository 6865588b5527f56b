"""The index of a session says what its runs say, whatever became of it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from bench.synthetic import make_result

from iolab.core.metric import Level
from iolab.core.run import RunKey, RunStatus
from iolab.store import layout
from iolab.store.index import IndexEntry, entry_of, read_index
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
    return {(result.digest, result.repeat): entry_of(result) for result in results}


def test_each_commit_is_in_the_index(place: Path) -> None:
    assert read_index(place) == SessionReader(place).overview() == entries_of_runs(place)


@pytest.mark.parametrize("kept", [0, 1, 30, 200])
def test_what_a_damaged_index_lacks_is_read_and_added(place: Path, kept: int) -> None:
    index = place / layout.INDEX
    index.write_bytes(index.read_bytes()[:kept] + b"\n[1]\nnonsense\n{}")
    assert SessionReader(place).overview() == entries_of_runs(place)
    SessionWriter.reopen(place).close()
    assert read_index(place) == entries_of_runs(place)


def test_an_index_that_was_removed_comes_back(place: Path) -> None:
    (place / layout.INDEX).unlink()
    assert SessionReader(place).overview() == entries_of_runs(place)
    SessionWriter.reopen(place).close()
    assert read_index(place) == entries_of_runs(place)


def test_a_run_that_is_gone_is_in_no_overview(place: Path) -> None:
    layout.run_directory(place, KEYS[0]).rename(place / "elsewhere")
    assert SessionReader(place).overview().keys() == {KEYS[1], KEYS[2]}


def test_a_run_that_took_the_place_of_another_is_not_told_by_its_line(place: Path) -> None:
    lines = (place / layout.INDEX).read_bytes().split(b"\n")
    with SessionWriter.reopen(place) as writer:
        commit(writer, record_of(2))
    index = place / layout.INDEX
    assert SessionReader(place).overview()[KEYS[2]].status is RunStatus.DONE
    # Killed after the new run had its name: what called the old line off is there, the new is not.
    written = index.read_bytes().split(b"\n")
    assert len(written) == len(lines) + 2
    index.write_bytes(b"\n".join(written[:-1]))
    assert KEYS[2] not in read_index(place)
    assert SessionReader(place).overview() == entries_of_runs(place)


def test_a_damaged_run_without_a_line_is_left_out_and_told(place: Path) -> None:
    (place / layout.INDEX).unlink()
    (layout.run_directory(place, KEYS[0]) / layout.MANIFEST).write_text("{}")
    reader = SessionReader(place)
    assert reader.overview().keys() == {KEYS[1], KEYS[2]}
    assert [damage.run for damage in reader.met()]


def test_show_counts_by_the_index(place: Path) -> None:
    with SessionWriter.reopen(place) as writer:
        record = record_of(3)
        result = make_result(record)
        bad = replace(result, verdict=replace(result.verdict, level=Level.INVALID))
        writer.commit(record, bad, analysis_version=7)
    shown = call("show", str(place), "--summary")
    assert shown.returncode == 0
    assert "4 runs" in shown.stdout
    (row,) = [line for line in shown.stdout.splitlines() if PLAN.runs[0].point.workload in line]
    assert [int(word) for word in row.split() if word.isdigit()][-4:] == [4, 2, 1, 1]
    assert call("show", str(place), "--summary", "--fail-on", "invalid").returncode == 1
