"""YCSB with a database inside of it: loaded once, counted, copied for every run, read back."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from iolab.core.events import IntervalReported, SessionPhase, SessionPhaseStarted
from iolab.errors import EngineError, HostError, Interrupted
from iolab.loads.keyvalue.workload import KeyOperation, key_value_details_of_host
from tests.loads.keyvalue.ycsb.play import Played, play, study_of
from tests.loads.keyvalue.ycsb.stand_in import RECORDS, behave, java, started

pytestmark = [pytest.mark.e2e, pytest.mark.long]

READS, UPDATES = 9939, 9888


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Played:
    """One run in which nothing goes wrong."""
    folder = tmp_path_factory.mktemp("played")
    (folder / "bin").mkdir()
    (folder / "target").mkdir()
    return play(study_of(java(folder / "bin")), folder / "target")


def test_a_run_is_read_from_its_latency_logs(played: Played) -> None:
    mine = played.only
    ways = {part.direction for one in mine.intervals for part in one.directions}
    assert ways == {KeyOperation.READ, KeyOperation.UPDATE}
    assert sum(one.ios for one in mine.intervals) == READS + UPDATES
    told = key_value_details_of_host(mine.to_host_run())
    assert told is not None
    counted = {one.operation: (one.completed, one.failed) for one in told.counts}
    assert counted == {KeyOperation.READ: (READS, 0), KeyOperation.UPDATE: (UPDATES, 0)}
    assert (told.reported_s, told.faults) == (3.13, ())
    assert told.start is not None
    assert [(one.level, one.files) for one in told.start.levels] == [(1, 1)]
    assert told.copied_by in {"reflink", "copy"}
    assert mine.span is not None
    assert 2.8e9 < mine.span[1] - mine.span[0] < 2.9e9
    assert mine.engine_version == "YCSB 0.17.0, Java 17.0.15"


def test_all_that_the_client_left_is_kept(played: Played) -> None:
    mine = played.only
    assert {*mine.files} == {"ycsb.stderr", "latency.READ.hdr", "latency.UPDATE.hdr"}
    assert mine.output is not None
    assert b"[READ], Return=OK, 9939" in mine.output.decompress()
    assert b"HISTF" in mine.files["latency.READ.hdr"].decompress()
    assert Path(mine.to_host_run().argv[0]).name == "java"


def test_seconds_are_shown_while_they_come(played: Played) -> None:
    seen = [event for event in played.notes.of(IntervalReported) if event.iops > 5000]
    assert seen
    assert all(event.host == "local" and event.lat_ns_mean for event in seen)


def test_the_database_is_loaded_once_and_copied_for_each_run(program: Path, target: Path) -> None:
    played = play(study_of(program), target, runs=3)
    assert played.faults == [None] * 3
    assert len(started(program, "load")) == len(started(program, "shape")) == 1
    (loaded,) = started(program, "load")
    databases = {
        word for words in started(program, "measure") for word in words if "iolab.dat" in word
    }
    assert len(databases) == 1
    assert databases.isdisjoint(loaded)
    assert list(target.iterdir()) == []


def test_java_is_asked_for_its_version_once(program: Path, target: Path) -> None:
    play(study_of(program), target, runs=2)
    assert len(started(program, "version")) == 1


@pytest.mark.parametrize(
    ("kind", "does", "words"),
    [
        ("load", {"inserts": RECORDS - 1}, "inserted 999 records, and 1,000 were requested"),
        ("load", {"exit": 1, "message": "No space left on device\n"}, "No space left on device"),
        ("load", {"swap": ["Return=OK", "Return=ERROR"]}, "1,000 insert operations returned ERROR"),
        ("shape", {"swap": ["keys 1000", "keys 999"]}, "holds 999 records, and 1,000 were loaded"),
        ("shape", {"swap": ["end 0", ""]}, "does not tell what it holds"),
        ("shape", {"exit": 1, "message": "iolab: Corruption\n"}, "Corruption"),
    ],
)
def test_a_load_that_is_not_whole_fails_and_is_done_again(
    program: Path, target: Path, kind: str, does: dict[str, Any], words: str
) -> None:
    def mend(number: int, *_: object) -> None:
        behave(program, **({} if number else {kind: does}))

    played = play(study_of(program), target, runs=2, before=mend)
    first, second = played.faults
    assert isinstance(first, EngineError)
    assert words in first.message
    assert second is None
    assert len(started(program, "load")) == 2


def test_a_load_that_lost_its_marker_is_loaded_again(program: Path, target: Path) -> None:
    def half(*_: object) -> None:
        for marker in target.glob("*/ycsb.loaded.*/iolab.json"):
            marker.unlink()

    played = play(study_of(program), target, runs=2, before=half)
    assert played.faults == [None, None]
    assert len(started(program, "load")) == 2


def test_a_log_of_a_run_that_died_is_not_read_as_another_ones(program: Path, target: Path) -> None:
    def leave(*_: object) -> None:
        (folder,) = target.glob("iolab-*")
        work = folder / "ycsb.run"
        work.mkdir()
        (work / "latency.UPDATE.hdr").write_bytes(b"#[Logging for: UPDATE]\n")

    behave(program, measure={"lacks": ["latency.UPDATE.hdr"]})
    fault = play(study_of(program), target, before=leave).fault
    assert "no latency log of update" in fault.message


def test_a_copy_goes_with_its_run(program: Path, target: Path) -> None:
    left: list[str] = []

    def look(*_: object) -> None:
        left.extend(path.name for path in target.glob("iolab-*/ycsb.*"))

    play(study_of(program), target, runs=2, before=look)
    assert [name.rpartition(".")[0] for name in left] == ["ycsb.loaded"]


def test_a_load_of_another_ycsb_is_loaded_again(program: Path, target: Path) -> None:
    def other(*_: object) -> None:
        for marker in target.glob("*/ycsb.loaded.*/iolab.json"):
            told = json.loads(marker.read_bytes())
            marker.write_text(json.dumps({**told, "ycsb": "0.16.0"}))

    played = play(study_of(program), target, runs=2, before=other)
    assert played.faults == [None, None]
    assert len(started(program, "load")) == 2


@pytest.mark.parametrize(
    ("does", "words"),
    [
        ({"swap": ["[READ], Return=OK, 9939", "[READ], Return=OK, 9900\n[READ], Return=ERROR, 39"]},
         "39 read operations returned ERROR"),
        ({"swap": ["[READ], Return=OK", "[READ], Return=NOT_FOUND"]}, "found no record"),
        ({"swap": ["[OVERALL]", "[NOTHING]"]}, "printed no result"),
        ({"cut": 200}, "latency log of"),
        ({"lacks": ["latency.UPDATE.hdr"]}, "no latency log of update"),
        ({"hole": True}, "line 5 is no interval.*the latency log of read holds"),
        ({"exit": 3, "message": "Error: cannot map memory\n"}, "exit code 3 .*cannot map memory"),
        ({"swap": ["RunTime(ms), 3130", "RunTime(ms), 1130"]}, "ran for 1.13 s, and 3 s"),
    ],
)  # fmt: skip
def test_a_run_that_is_not_what_was_asked_for_fails(
    program: Path, target: Path, does: dict[str, Any], words: str
) -> None:
    behave(program, measure=does)
    played = play(study_of(program), target)
    assert isinstance(played.fault, EngineError)
    with pytest.raises(EngineError, match=words):
        raise played.fault
    (mine,) = played.runs[0]
    assert mine.error is not None
    assert key_value_details_of_host(mine.to_host_run()) is not None
    assert mine.output is not None


def test_caches_are_dropped_where_the_method_asks_for_it(program: Path, target: Path) -> None:
    mine = play(study_of(program, drop=True), target).only
    assert mine.cache_drop is not None
    assert mine.cache_drop.requested
    assert mine.cache_drop.resident_bytes_after == 0


def test_a_java_that_is_missing_is_told_before_anything_is_made(tmp_path: Path) -> None:
    played = play(study_of(tmp_path / "no-java"), tmp_path)
    assert isinstance(played.fault, EngineError)
    assert "no no-java to run" in played.fault.message
    assert "server.java" in played.fault.hint


def test_a_java_that_is_too_old_is_told(program: Path, target: Path) -> None:
    behave(program, version={"swap": ['version "17.0.15"', 'version "1.7.0_80"']})
    fault = play(study_of(program), target).fault
    assert "Java 1.7.0_80 on host 'local'" in fault.message


def stopping_in(phase: SessionPhase, words: str) -> Any:
    def arrange(session: Any) -> None:
        def react(event: object) -> None:
            if (
                isinstance(event, SessionPhaseStarted)
                and event.phase is phase
                and words in event.detail
            ):
                session.stop.request_stop()

        session.recorder.react = react

    return arrange


def test_a_stop_while_loading_leaves_nothing(program: Path, target: Path) -> None:
    behave(program, load={"sleep": 1000})
    played = play(study_of(program), target, at_once=stopping_in(SessionPhase.LAY_OUT, "records"))
    assert isinstance(played.fault, Interrupted)
    assert started(program, "measure") == []
    assert list(target.iterdir()) == []


def test_a_stop_while_compacting_leaves_nothing(program: Path, target: Path) -> None:
    behave(program, shape={"sleep": 1000})
    played = play(study_of(program), target, at_once=stopping_in(SessionPhase.PROVE, "flush"))
    assert isinstance(played.fault, Interrupted)
    assert started(program, "measure") == []
    assert list(target.iterdir()) == []


def test_a_stop_while_measuring_ends_all_clients_without_a_fault(
    program: Path, target: Path
) -> None:
    behave(program, measure={"sleep": 1000})
    stop_then = stopping_in(SessionPhase.MEASURE, "")
    played = play(study_of(program), target, hosts=("c1", "c2"), at_once=stop_then)
    assert played.faults == [None]
    assert all(mine.was_stopped_early for mine in played.runs[0])
    assert list(target.iterdir()) == []


def test_a_client_that_is_lost_ends_the_run_on_all(program: Path, target: Path) -> None:
    behave(program, measure={"sleep": 1000})

    def lose(session: Any) -> None:
        def react(event: object) -> None:
            if (
                isinstance(event, IntervalReported)
                and event.host == "c2"
                and started(program, "measure")
            ):
                session.hosts["c2"].end_as_lost("was lost in a test")

        session.recorder.react = react

    played = play(study_of(program), target, hosts=("c1", "c2"), at_once=lose)
    assert isinstance(played.fault, HostError)
    assert "was lost in a test" in played.fault.message
    by_name = {mine.name: mine for mine in played.runs[0]}
    assert by_name["c1"].ending is not None
    assert by_name["c1"].ending.was_halted


def test_several_clients_have_a_database_each(program: Path, target: Path) -> None:
    played = play(study_of(program), target, hosts=("c1", "c2"))
    assert played.faults == [None]
    assert len(started(program, "load")) == len(started(program, "measure")) == 2
    for mine in played.runs[0]:
        assert sum(one.ios for one in mine.intervals) == READS + UPDATES


def test_clients_that_hardly_met_are_no_run(program: Path, target: Path) -> None:
    behave(program, measure={"late": 2.5, "only": "c2"})
    played = play(study_of(program), target, hosts=("c1", "c2"))
    assert isinstance(played.fault, EngineError)
    assert "1 s of warm-up and" in played.fault.message
