"""A recorder keeps before it shows, and a session that was refused leaves no directory."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

import pytest
from bench.synthetic import make_facts, make_record
from msgspec.structs import replace

from iolab.cli.live import LiveView
from iolab.cli.session import SessionRecorder
from iolab.core.events import (
    Event,
    FilesystemsCreated,
    Notice,
    RunFinished,
    RunPreparing,
    SessionEnded,
    SessionPhaseTime,
    SessionStarted,
    SessionStatus,
)
from iolab.core.host import HostFacts
from iolab.core.metric import RunResult, VerdictLevel
from iolab.errors import HostError, StoreError
from iolab.session.times import LOAD
from iolab.store.reader import SessionReader
from iolab.store.writer import SessionWriter
from tests.cli.command_line import PLAN, SHAPE, STUDY
from tests.cli.in_process import call

STARTED = SessionStarted(PLAN, tuple(make_facts(SHAPE).items()), "0.1.0")
RECORD = make_record(PLAN.runs[0], SHAPE)


class Watcher(LiveView):
    """Remembers what it saw, and what was on the disk at that moment."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self.events: list[Event] = []
        self.results: list[RunResult] = []
        self.kept: list[int] = []

    def on_event(self, event: Event) -> None:
        self.events.append(event)

    def on_result(self, result: RunResult) -> None:
        self.results.append(result)
        self.kept.append(len(SessionReader(self._directory).committed_folder_by_run()))


def recorder(directory: Path) -> tuple[SessionRecorder, Watcher]:
    def open_writer(facts: Mapping[str, HostFacts]) -> SessionWriter:
        assert set(facts) == set(SHAPE.host_names)
        return SessionWriter.create(directory, STUDY, PLAN, "session-1", ("iolab",))

    watcher = Watcher(directory)
    return SessionRecorder(open_writer, watcher), watcher


def test_a_run_is_on_the_disk_before_its_result_is_shown(tmp_path: Path) -> None:
    directory = tmp_path / "S"
    keeper, watcher = recorder(directory)
    with keeper:
        for event in (STARTED, RunPreparing(PLAN.runs[0]), RunFinished(RECORD)):
            keeper.emit(event)
        assert watcher.kept == [1]
        assert SessionReader(directory).session.status is SessionStatus.RUNNING
        keeper.emit(SessionEnded(SessionStatus.DONE, None))
    reader = SessionReader(directory)
    assert reader.session.status is SessionStatus.DONE
    assert reader.session.agent_version == "0.1.0"
    assert reader.results() == tuple(watcher.results)
    assert {"judge", "commit"} <= {one.phase for one in reader.session.times}
    assert len(watcher.events) == 4


def test_facts_of_a_file_system_that_was_made_judge_what_follows(tmp_path: Path) -> None:
    directory = tmp_path / "S"
    keeper, watcher = recorder(directory)
    name, facts = next(iter(make_facts(SHAPE).items()))
    assert facts.target is not None
    in_memory = replace(facts, target=replace(facts.target, memory_backed=True))
    with keeper:
        keeper.emit(STARTED)
        keeper.emit(FilesystemsCreated(((name, in_memory),)))
        assert SessionReader(directory).facts[name] == in_memory
        keeper.emit(RunFinished(RECORD))
    (result,) = watcher.results
    (check,) = [check for check in result.verdict.checks if check.code == "target-in-memory"]
    assert check.level is VerdictLevel.INDICATIVE


def test_nothing_is_written_before_the_hosts_are_known(tmp_path: Path) -> None:
    keeper, watcher = recorder(tmp_path / "S")
    with keeper:
        keeper.emit(Notice("connecting"))
        assert not keeper.has_begun
        keeper.emit(SessionEnded(SessionStatus.FAILED, "The plan cannot run."))
    assert not (tmp_path / "S").exists()
    assert len(watcher.events) == 2


def test_a_run_that_cannot_be_kept_is_not_shown(tmp_path: Path) -> None:
    keeper, watcher = recorder(tmp_path / "S")
    with keeper:
        keeper.emit(STARTED)
        keeper.emit(RunFinished(RECORD))
        with pytest.raises(StoreError):
            keeper.emit(RunFinished(RECORD))  # a run that is done is never replaced
        assert len(watcher.results) == 1
        keeper.record_failure("The disk is full.")
    session = SessionReader(tmp_path / "S").session
    assert (session.status, session.reason) == (SessionStatus.FAILED, "The disk is full.")


def test_a_session_that_nobody_ended_reads_as_interrupted(tmp_path: Path) -> None:
    keeper, _ = recorder(tmp_path / "S")
    with keeper:
        keeper.emit(STARTED)
        assert SessionReader(tmp_path / "S").session.status is SessionStatus.RUNNING
    assert SessionReader(tmp_path / "S").session.status is SessionStatus.INTERRUPTED


def test_a_refusal_to_open_goes_to_the_session(tmp_path: Path) -> None:
    def refuse(_: Mapping[str, HostFacts]) -> SessionWriter:
        raise HostError("The hosts changed.", "Put them back.")

    with SessionRecorder(refuse, Watcher(tmp_path)) as keeper:
        with pytest.raises(HostError):
            keeper.emit(STARTED)
        keeper.emit(SessionEnded(SessionStatus.FAILED, "The hosts changed."))
        assert not keeper.has_begun


def test_seconds_of_a_session_are_told_alike_in_all_rows_and_in_the_sum(tmp_path: Path) -> None:
    directory = tmp_path / "S"
    with SessionWriter.create(directory, STUDY, PLAN, "session-1", ("iolab",)) as writer:
        spent = (
            SessionPhaseTime(LOAD, 9, 180.04),
            SessionPhaseTime("verify", 3, 0.06),
            SessionPhaseTime("judge", 9, 2),
        )
        writer.end_session_and_close(SessionStatus.DONE, None, spent)
    *rows, total = call("show", directory, "--time").stdout.splitlines()
    assert [row.split()[-4] for row in rows[1:]] == ["180.0", "2.0", "0.1"]
    assert re.findall(r"[\d.]+", total)[:2] == ["182.1", "2.1"]
