"""`iolab ls` and `rm`, and `last` as the name of a session."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest
from msgspec.structs import replace

from iolab.cli.commands import COMMANDS
from iolab.core.host import HostFacts
from iolab.errors import ExitCode
from iolab.store.durable import SessionLock
from iolab.store.writer import SessionWriter
from tests.cli.command_line import make_session
from tests.cli.compared import Target, make_target
from tests.cli.in_process import call


def two_days(folder: Path) -> tuple[Path, Path]:
    """An older and a newer session, whose names run the other way."""
    older = make_target(folder / "z", Target(name="older", day=0))
    newer = make_target(folder / "site" / "a", Target(name="newer", day=1))
    return older, newer


def emulated(facts: Mapping[str, HostFacts]) -> Mapping[str, HostFacts]:
    """Hosts whose processors are emulated, of which an answer is a demonstration."""
    return {
        name: replace(host, kernel=replace(host.kernel, hypervisor="tcg"))
        for name, host in facts.items()
    }


def test_sessions_are_listed_from_the_newest_with_their_answers(tmp_path: Path) -> None:
    two_days(tmp_path)
    (tmp_path / "no-session").mkdir()
    lines = call("ls", tmp_path).stdout.splitlines()
    assert lines[0] == f"below {tmp_path}:"
    assert lines[1].split() == ["session", "began", "(UTC)", "runs", "answer"]
    assert [line.split()[0] for line in lines[2:]] == ["site/a", "z"]
    document = json.loads(call("ls", tmp_path, "--json").stdout)
    answers = [entry["answer"] for entry in document["sessions"]]
    assert [entry["id"] for entry in document["sessions"]] == ["newer", "older"]
    assert all(answer in "\n".join(lines) for answer in answers)


def test_a_list_of_sessions_has_a_line_for_each_on_a_narrow_screen(tmp_path: Path) -> None:
    two_days(tmp_path)
    lines = call("ls", cwd=tmp_path, env={"COLUMNS": "60"}).stdout.splitlines()
    assert len(lines) == 3
    assert max(map(len, lines)) <= 60
    assert all(line.endswith("…") for line in lines[1:])


def test_a_demonstration_is_a_word_before_the_answer_in_a_list(tmp_path: Path) -> None:
    make_target(tmp_path / "emulated", Target(name="emulated", facts=emulated))
    _, line = call("ls", cwd=tmp_path, env={"COLUMNS": "80"}).stdout.splitlines()
    name, _, _, mark, *answer = line.split()
    assert (name, mark) == ("emulated", "demo")
    assert answer[0] != "Demonstration,"
    assert len(" ".join(answer)) > 30, "the answer has the room of the words that are gone"


def test_a_folder_without_sessions_is_no_fault(tmp_path: Path) -> None:
    done = call("ls", tmp_path)
    assert done.returncode == 0
    assert "no session" in done.stdout


def test_last_is_the_newest_session_below_the_current_directory(tmp_path: Path) -> None:
    _, newer = two_days(tmp_path)
    assert (
        call("show", "last", cwd=tmp_path).stdout
        == call("show", newer.relative_to(tmp_path), cwd=tmp_path).stdout
    )
    compared = call("compare", "z", "last", "--json", cwd=tmp_path)
    assert json.loads(compared.stdout)["candidate"]["session"] == "newer"


def test_a_session_that_is_called_last_is_taken_by_its_name(tmp_path: Path) -> None:
    make_target(tmp_path / "newer", Target(name="newer", day=9))
    make_target(tmp_path / "last", Target(name="older", day=0))
    shown = json.loads(call("show", "last", "--json", cwd=tmp_path).stdout)
    named = json.loads(call("show", "./last", "--json", cwd=tmp_path).stdout)
    assert shown == named


def test_without_a_session_there_is_no_last_one(tmp_path: Path) -> None:
    done = call("show", "last", cwd=tmp_path)
    assert done.returncode == ExitCode.STUDY
    assert "no last session" in done.stderr


def test_rm_removes_the_session_with_its_report_and_nothing_else(tmp_path: Path) -> None:
    gone, kept = make_session(tmp_path / "gone"), make_session(tmp_path / "kept")
    (gone / "report.html").write_text("<p>", encoding="utf-8")
    assert call("rm", gone, "--yes").returncode == 0
    assert (gone.exists(), kept.exists()) == (False, True)


def test_rm_asks_and_removes_nothing_where_nobody_can_answer(tmp_path: Path) -> None:
    session = make_session(tmp_path / "s")
    done = call("rm", session)
    assert done.returncode != 0
    assert call("show", session).returncode == 0


def test_rm_refuses_what_is_no_session_or_holds_other_files(tmp_path: Path) -> None:
    session = make_session(tmp_path / "s")
    (tmp_path / "notes").mkdir()
    assert call("rm", session, tmp_path / "notes", "--yes").returncode == ExitCode.STUDY
    (session / "thesis.txt").write_text("mine", encoding="utf-8")
    done = call("rm", session, "--yes")
    assert done.returncode == ExitCode.STUDY
    assert "thesis.txt" in done.stderr
    assert call("show", session).returncode == 0


@pytest.mark.parametrize("depth", ["points", "point", "run", "engine"])
@pytest.mark.parametrize("kind", ["file", "folder", "link"])
def test_rm_refuses_other_files_wherever_they_lie(tmp_path: Path, depth: str, kind: str) -> None:
    session = make_session(tmp_path / "s")
    run = next(session.glob("points/*/run-1"))
    places = {
        "points": run.parent.parent,
        "point": run.parent,
        "run": run,
        "engine": run / "engine",
    }
    mine = places[depth] / "thesis.txt"
    mine.parent.mkdir(exist_ok=True)
    match kind:
        case "file":
            mine.write_text("mine", encoding="utf-8")
        case "folder":
            mine.mkdir()
        case _:
            mine.symlink_to(tmp_path)
    done = call("rm", session, "--yes")
    assert done.returncode == ExitCode.STUDY
    assert "thesis.txt" in done.stderr
    assert mine.exists()
    assert call("show", session).returncode == 0


def test_rm_refuses_a_link_and_a_session_that_is_being_written(tmp_path: Path) -> None:
    session = make_session(tmp_path / "s")
    (tmp_path / "link").symlink_to(session)
    assert call("rm", tmp_path / "link", "--yes").returncode == ExitCode.STUDY
    with SessionLock(session):
        assert call("rm", session, "--yes").returncode == ExitCode.STORE
    assert call("show", session).returncode == 0


def test_a_copy_of_a_session_that_is_being_written_is_not_that_session(tmp_path: Path) -> None:
    session = make_session(tmp_path / "s")
    with SessionLock(session):
        copy = Path(shutil.copytree(session, tmp_path / "copy"))
        assert call("rm", copy, "--yes").returncode == 0
        assert call("rm", session, "--yes").returncode == ExitCode.STORE
    assert (copy.exists(), call("show", session).returncode) == (False, 0)


def test_a_process_that_the_lock_of_a_session_names_is_left_alone(tmp_path: Path) -> None:
    """A dead writer's number is another's by now: it neither holds the session nor is signalled."""
    session = make_session(tmp_path / "s")
    foreign = subprocess.Popen(["sleep", "600"])
    try:
        (session / "lock").write_text(f"{foreign.pid}\n")
        SessionWriter.reopen(session).close()
        (session / "lock").write_text(f"{foreign.pid}\n")
        assert call("rm", session, "--yes").returncode == 0
        assert foreign.poll() is None
    finally:
        foreign.kill()
        foreign.wait()


@pytest.mark.parametrize("place", ["points", "report.html", "session.json", "."])
def test_links_in_the_place_of_a_session_or_its_files_are_not_followed(
    tmp_path: Path, place: str
) -> None:
    session, theirs = make_session(tmp_path / "s"), tmp_path / "theirs"
    shutil.copytree(session, theirs)
    linked = session if place == "." else session / place
    if linked.is_dir():
        shutil.rmtree(linked)
    linked.unlink(missing_ok=True)
    linked.symlink_to(theirs if place == "." else theirs / place)
    before = sorted(str(path) for path in theirs.rglob("*"))
    call("rm", session, "--yes")
    assert sorted(str(path) for path in theirs.rglob("*")) == before
    assert call("show", theirs).returncode == 0


def test_a_directory_that_only_has_the_name_of_a_session_stays(tmp_path: Path) -> None:
    theirs = tmp_path / "2026-11-29-smoke"
    (theirs / "points").mkdir(parents=True)
    (theirs / "points" / "thesis.txt").write_text("mine", encoding="utf-8")
    assert call("rm", theirs, "--yes").returncode == ExitCode.STUDY
    assert (theirs / "points" / "thesis.txt").read_text(encoding="utf-8") == "mine"


def test_help_has_no_type_of_python() -> None:
    for name in COMMANDS:
        text = call(name, "--help").stdout
        leaked = [part for part in ("list[", "<Path>", "<str>", "<int", "<float") if part in text]
        assert leaked == [], name
