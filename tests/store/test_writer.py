"""Sessions begin, commit, end and continue; what is in the way is told, never overwritten."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from bench.synthetic import make_facts, make_result
from msgspec.structs import replace

from iolab import __version__
from iolab.core.compressed import CompressedBytes
from iolab.core.events import SessionStatus
from iolab.core.run import EngineOutput, RunStatus
from iolab.errors import ExitCode, StoreError
from iolab.store.reader import SessionReader
from iolab.store.writer import SessionWriter
from tests.store.sessions import (
    COMMAND,
    NOON_NS,
    PLAN,
    SHAPE,
    STUDY,
    assert_same,
    commit,
    create,
    files_below,
    record_of,
)


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return tmp_path / "S"


def test_a_session_reads_back_as_it_was_written(place: Path) -> None:
    with create(place) as writer:
        for order in range(4):
            commit(writer, record_of(order))
        writer.end_session_and_close(SessionStatus.DONE)
    reader = SessionReader(place)
    assert reader.study == STUDY
    assert reader.study_text == STUDY.text
    assert (place / "study.toml").read_bytes() == STUDY.text.encode()
    assert reader.overrides == STUDY.overrides
    assert reader.plan == PLAN
    assert reader.facts == make_facts(SHAPE)
    assert reader.results() == tuple(make_result(record_of(order)) for order in range(4))
    for order in range(4):
        record = record_of(order)
        assert_same(reader.record(record.run.point.digest, 1), record)


def test_the_session_says_what_it_is(place: Path) -> None:
    with create(place) as writer:
        writer.end_session_and_close(SessionStatus.FAILED, "Host client-2 was lost.")
    session = SessionReader(place).session
    assert (session.id, session.study, session.scale) == ("session-1", "synthetic", "full")
    assert (session.iolab_version, session.agent_version) == (__version__, "0.1.0")
    assert session.command == COMMAND
    assert session.created_real_ns == NOON_NS
    assert (session.status, session.reason) == (SessionStatus.FAILED, "Host client-2 was lost.")
    assert [entry.status for entry in session.history] == ["running", "failed"]


def test_the_manifest_says_where_the_run_comes_from(place: Path) -> None:
    with create(place) as writer:
        commit(writer, record_of(0))
    manifest = SessionReader(place).manifest(PLAN.runs[0].point.digest, 1)
    assert (manifest.session, manifest.iolab_version) == ("session-1", __version__)
    assert manifest.agent_version == "0.1.0"
    assert manifest.analysis.version == 7
    assert {file.name for file in manifest.files} == {
        "intervals.parquet",
        "bins.parquet",
        "counters.parquet",
        "engine/0.zst",
        "engine/1.zst",
    }


def test_a_creation_that_was_cut_short_may_be_done_again(place: Path) -> None:
    place.mkdir()  # an empty directory may become a session
    create(place).close()
    (place / "session.json").unlink()
    (place / "hosts.json").unlink()
    (place / ".plan.json.tmp-4711").write_text("{")
    create(place).close()
    assert SessionReader(place).plan == PLAN


def test_a_directory_with_other_files_is_left_alone(place: Path) -> None:
    place.mkdir()
    (place / "thesis.tex").write_text("years of work")
    with pytest.raises(StoreError, match="not empty") as caught:
        create(place)
    assert caught.value.exit_code is ExitCode.STORE
    assert "new or empty directory" in caught.value.hint
    assert files_below(place) == {"thesis.tex"}


def test_files_that_only_look_like_ours_are_left_alone(place: Path) -> None:
    with create(place) as writer:
        commit(writer, record_of(0))
    (place / "session.json").unlink()
    (place / "hosts.json").unlink()
    before = files_below(place)
    with pytest.raises(StoreError, match="not empty"):
        create(place)
    assert files_below(place) == before
    (place.parent / "mine").mkdir()
    (place / "study.toml").rename(place.parent / "mine" / "study.toml")
    with pytest.raises(StoreError, match="not empty"):
        create(place.parent / "mine")
    assert (place.parent / "mine" / "study.toml").read_bytes() == STUDY.text.encode()


def test_a_session_is_never_written_over(place: Path) -> None:
    with create(place) as writer:
        commit(writer, record_of(0))
        writer.end_session_and_close(SessionStatus.DONE)
    before = files_below(place)
    with pytest.raises(StoreError, match="holds a session already") as caught:
        create(place)
    assert f"iolab resume {place}" in caught.value.hint
    assert files_below(place) == before
    assert SessionReader(place).verify_all_files() == ()


def test_a_file_in_the_way_is_told(place: Path) -> None:
    place.write_text("a file")
    with pytest.raises(StoreError, match="is a file"):
        create(place)
    with pytest.raises(StoreError, match=r"Cannot write .*: Not a directory"):
        create(place / "below")
    assert place.read_text() == "a file"


def test_a_path_that_no_text_can_carry_is_told(place: Path) -> None:
    with pytest.raises(StoreError, match="not valid UTF-8"):
        create(Path(f"{place}{os.fsdecode(b'-caf-xe9-' + bytes([0xE9]))}"))


def test_a_directory_without_permission_is_told(place: Path) -> None:
    place.mkdir(mode=0o555)
    assert _as_nobody(place / "S") == f"Cannot write '{place / 'S'}': Permission denied."
    assert _as_nobody(place) == f"Cannot write '{place / 'lock'}': Permission denied."
    assert files_below(place) == set()


def test_a_second_writer_is_refused(place: Path) -> None:
    with create(place) as writer:
        with pytest.raises(StoreError, match=rf"process {os.getpid()}\) is writing"):
            SessionWriter.reopen(place)
        commit(writer, record_of(0))
    with SessionWriter.reopen(place) as writer:
        commit(writer, record_of(1))
    assert len(SessionReader(place).committed_folder_by_run()) == 2


def test_resume_continues_and_remembers(place: Path) -> None:
    with create(place) as writer:
        commit(writer, record_of(0))
        writer.end_session_and_close(SessionStatus.INTERRUPTED, "Ctrl-C")
    facts = {name: replace(fact, faults=("later",)) for name, fact in make_facts(SHAPE).items()}
    with SessionWriter.reopen(place, ("iolab", "resume", "S")) as writer:
        assert SessionReader(place).session.status is SessionStatus.RUNNING
        writer.record_host_facts_at_start(tuple(facts.items()), "0.2.0")
        commit(writer, record_of(1))
        writer.end_session_and_close(SessionStatus.DONE)
    reader = SessionReader(place)
    assert [(entry.status, entry.command[:2]) for entry in reader.session.history] == [
        ("running", ("iolab", "run")),
        ("interrupted", ()),
        ("running", ("iolab", "resume")),
        ("done", ()),
    ]
    assert reader.session.command == COMMAND
    assert reader.facts == facts
    assert [start.agent_version for start in reader.facts_of_all_starts] == ["0.1.0", "0.2.0"]
    assert reader.done_runs() == {(PLAN.runs[order].point.digest, 1) for order in (0, 1)}


def test_facts_of_file_systems_that_were_made_stand_beside_those_of_the_start(place: Path) -> None:
    found = make_facts(SHAPE)
    name = next(iter(found))
    made = replace(found[name], faults=("on an XFS of its own",))
    with create(place) as writer:
        writer.record_created_target_facts([(name, made)])
        writer.end_session_and_close(SessionStatus.INTERRUPTED)
    with SessionWriter.reopen(place) as writer:
        writer.record_host_facts_at_start(found, "0.2.0")
    reader = SessionReader(place)
    assert reader.facts_found_at_last_start == found
    # The second start was not so far yet: what was measured was measured on the first one's.
    assert reader.facts == {**found, name: made}
    assert [list(start.created_target_facts) for start in reader.facts_of_all_starts] == [
        [name],
        [],
    ]
    newer = replace(made, faults=("on another",))
    with SessionWriter.reopen(place) as writer:
        writer.record_created_target_facts([(name, newer)])
    assert SessionReader(place).facts[name] == newer


def test_resume_removes_what_a_dead_writer_left(place: Path) -> None:
    with create(place) as writer:
        commit(writer, record_of(0))
    before = files_below(place)
    point = place / "points" / PLAN.runs[0].point.digest
    (point / ".run-2.tmp-4711" / "engine").mkdir(parents=True)
    (point / ".run-2.tmp-4711" / "manifest.json").write_text("{")
    (place / ".session.json.tmp-4711").write_text("{")
    assert len(SessionReader(place).committed_folder_by_run()) == 1
    SessionWriter.reopen(place).close()
    assert files_below(place) == before


def test_a_run_that_is_done_is_never_replaced(place: Path) -> None:
    record = record_of(0)
    with create(place) as writer:
        commit(writer, record)
        with pytest.raises(StoreError, match="is done already"):
            commit(writer, replace(record, runtime_s=1.0))
    assert_same(SessionReader(place).record(record.run.point.digest, 1), record)


@pytest.mark.parametrize("status", [RunStatus.FAILED, RunStatus.INTERRUPTED])
def test_a_run_that_failed_stays_beside_the_new_one(place: Path, status: RunStatus) -> None:
    key = (PLAN.runs[0].point.digest, 1)
    with create(place) as writer:
        commit(writer, record_of(0, status))
        reader = SessionReader(place)
        assert [result.status for result in reader.results()] == [status]
        assert reader.committed_folder_by_run() == {key}
        assert reader.done_runs() == set()
        commit(writer, record_of(0, status))
        commit(writer, record_of(0))
    assert [result.status for result in reader.results()] == [RunStatus.DONE]
    assert reader.done_runs() == {key}
    names = {path.name for path in (place / "points" / key[0]).iterdir()}
    assert names == {"run-1", "run-1.attempt-1", "run-1.attempt-2"}
    assert reader.verify_all_files() == ()


def test_a_damaged_run_may_be_measured_again(place: Path) -> None:
    record = record_of(0)
    with create(place) as writer:
        commit(writer, record)
        manifest = place / "points" / record.run.point.digest / "run-1" / "manifest.json"
        manifest.write_bytes(manifest.read_bytes()[:100])
        assert SessionReader(place).committed_folder_by_run() == frozenset()
        commit(writer, record)
    assert_same(SessionReader(place).record(record.run.point.digest, 1), record)
    assert (manifest.parent.parent / "run-1.attempt-1").is_dir()


def test_names_from_outside_never_become_paths(place: Path) -> None:
    names = ("../../../escape", "/etc/iolab", "<b>bold</b>", "a\0b", "con\ud800")
    outputs = tuple(
        EngineOutput(name, name, CompressedBytes.compress(name.encode("utf-8", "replace")))
        for name in names
    )
    record = record_of(0)
    hosts = tuple(replace(record.hosts[0], host=name) for name in names)
    with create(place) as writer:
        commit(writer, replace(record, hosts=hosts, outputs=outputs))
    found = SessionReader(place).record(record.run.point.digest, 1)
    assert [output.content for output in found.outputs] == [o.content for o in outputs]
    assert found.host_names == (*names[:-1], "con\\ud800")
    assert files_below(place.parent) == {
        "S",
        *(f"S/{name}" for name in files_below(place)),
    }
    engine = place / "points" / record.run.point.digest / "run-1" / "engine"
    assert files_below(engine) == {f"{index}.zst" for index in range(len(names))}


def test_any_path_will_do(tmp_path: Path) -> None:
    # Neighbours that a name would match if it were taken for a pattern.
    for neighbour in ("axb", "a1b"):
        with create(tmp_path / neighbour) as writer:
            commit(writer, replace(record_of(0), counters=record_of(1).counters))
    for name in ("a*b", "a?b", "a[1]b", '-it\'s "k=v" 50%20 ä\nline'):
        with create(tmp_path / name) as writer:
            commit(writer, record_of(0))
        reader = SessionReader(tmp_path / name)
        assert_same(reader.record(PLAN.runs[0].point.digest, 1), record_of(0))


def test_permissions_follow_the_umask(place: Path) -> None:
    old = os.umask(0o027)
    try:
        with create(place) as writer:
            commit(writer, record_of(0))
    finally:
        os.umask(old)
    paths = [place, *place.rglob("*")]
    modes = {(path.is_dir(), path.stat().st_mode & 0o777) for path in paths}
    assert modes == {(True, 0o750), (False, 0o640)}


def _as_nobody(directory: Path) -> str:
    """What creating a session says to a user without any right (a child process, even for root)."""
    reads, writes = os.pipe()
    child = os.fork()
    if child == 0:
        said = "nothing"
        try:
            if os.geteuid() == 0:
                for parent in directory.parents:
                    if "pytest-" in str(parent):  # which pytest keeps from others
                        parent.chmod(parent.stat().st_mode | 0o011)
                os.setgid(65534)
                os.setuid(65534)
            create(directory).close()
        except StoreError as error:
            said = error.message
        finally:
            os.write(writes, said.encode())
            os._exit(0)
    os.waitpid(child, 0)
    os.close(writes)
    with os.fdopen(reads, "rb") as pipe:
        return pipe.read().decode()


def test_output_that_was_cut_off_is_said_to_be(place: Path) -> None:
    record = record_of(0)
    packed = replace(CompressedBytes.compress(b"the beginning"), truncated=True)
    output = EngineOutput("client-1", "fio.stdout", packed)
    with create(place) as writer:
        commit(writer, replace(record, outputs=(output,)))
    run = place / "points" / record.run.point.digest / "run-1"
    (told,) = json.loads((run / "manifest.json").read_bytes())["outputs"]
    assert told["truncated"] is True
    assert SessionReader(place).record(record.run.point.digest, 1).outputs == (output,)
