"""What is not what was committed is never shown without a word, whichever command reads it."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from iolab.core.target_state import TargetLedger
from iolab.errors import StoreError
from iolab.store import verify
from iolab.store.documents import Manifest
from iolab.store.verify import read_manifest
from iolab.store.writer import SessionWriter
from tests.cli.command_line import PLAN, make_session
from tests.cli.in_process import call
from tests.store.rewritten import rewrite

DIGEST = PLAN.runs[0].point.digest
RUN = f"points/{DIGEST}/run-1"


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A session with a ledger; only to be copied."""
    made = make_session(tmp_path_factory.mktemp("sound") / "S")
    with SessionWriter.reopen(made) as writer:
        writer.write_ledger(TargetLedger())
    return made


@pytest.fixture
def session(sound: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(sound, tmp_path / "S"))


def figure(run: Path) -> None:
    """Ten times the IOPS of the kept result; the digest beside it stays."""
    path = run / "manifest.json"
    document = json.loads(path.read_bytes())
    iops = document["analysis"]["result"]["metrics"]["iops"]
    iops["value"] *= 10
    path.write_text(json.dumps(document))


def digest(run: Path) -> None:
    path = run / "manifest.sha256"
    path.write_text(("0" if path.read_text()[0] != "0" else "1") + path.read_text()[1:])


def no_digest(run: Path) -> None:
    (run / "manifest.sha256").unlink()


def unreadable(run: Path) -> None:
    (run / "manifest.json").write_text("{")


def no_manifest(run: Path) -> None:
    (run / "manifest.json").unlink()


def short_table(run: Path) -> None:
    path = run / "bins.parquet"
    path.write_bytes(path.read_bytes()[:-1])


def no_table(run: Path) -> None:
    (run / "counters.parquet").unlink()


def other_result(run: Path) -> None:
    """The whole manifest of another run, whose digest fits."""
    for name in ("manifest.json", "manifest.sha256"):
        shutil.copy(run.parents[1] / PLAN.runs[1].point.digest / "run-1" / name, run / name)


def stale_result(run: Path) -> None:
    """A result kept of tables that were longer than those that lie beside it."""
    rewrite(run / "manifest.json", lambda it: it["files"][0].update(size_bytes=1))


OF_A_RUN = [
    figure,
    digest,
    no_digest,
    unreadable,
    no_manifest,
    short_table,
    no_table,
    other_result,
    stale_result,
]
OF_THE_SESSION = ["hosts.json", "ledger.json", "study.toml"]


def commands(session: Path) -> Iterator[tuple[str | Path, ...]]:
    """Each command that shows figures of a session."""
    yield "show", session
    yield "show", session, "--json"
    yield "plan", session
    yield "plan", session, "--format", "json"
    yield "export", session, "-f", "csv"
    yield "export", session, "-f", "json"
    yield "export", session, "-f", "parquet", "-o", session.parent / "out.parquet"
    yield "report", session, "--md", session.parent / "out.md"
    yield "compare", session, session
    yield "choose", session, "--usable-tb", "1"
    yield "history", session
    yield "audit", session


def test_a_sound_session_is_shown_without_a_word_of_damage(session: Path) -> None:
    for command in commands(session):
        done = call(*command)
        assert done.returncode == 0, (command, done.stderr)
        assert "amaged" not in done.stderr + done.stdout.replace('"damaged": []', ""), command


@pytest.mark.parametrize("plant", OF_A_RUN)
def test_a_damaged_run_is_named_and_left_out_by_every_command(
    session: Path, plant: Callable[[Path], None]
) -> None:
    plant(session / RUN)
    told = f"{PLAN.runs[0].point.workload}, "
    for command in commands(session):
        done = call(*command)
        assert done.returncode == 5, (command, done.stdout, done.stderr)
        assert RUN in done.stderr, command
        assert "iolab resume" in done.stderr, command
        assert told in done.stderr, command
    assert len(call("export", session, "-f", "csv").stdout.splitlines()) == len(PLAN.runs)
    shown = json.loads(call("show", session, "--json").stdout)
    assert DIGEST not in {one["digest"] for one in shown["results"]}
    assert [one["path"] for one in shown["damaged"]] == [RUN]
    assert RUN in (session.parent / "out.md").read_text()


@pytest.mark.parametrize("name", OF_THE_SESSION)
def test_a_damaged_document_is_named_and_the_results_are_shown(session: Path, name: str) -> None:
    content = (session / name).read_bytes()
    for damaged in (content.replace(b"a", b"b", 1).replace(b"0", b"1", 1), content[:-9]):
        (session / name).write_bytes(damaged)
        for command in commands(session):
            done = call(*command)
            assert done.returncode == 5, (command, done.stdout, done.stderr)
            assert name in done.stderr, command
        assert len(call("export", session, "-f", "csv").stdout.splitlines()) == len(PLAN.runs) + 1
        assert call("resume", session).returncode == 5


def test_the_digest_of_a_document_may_not_be_taken_off(session: Path) -> None:
    for name in ("hosts.json", "ledger.json", "session.json"):
        content = (session / name).read_bytes()
        document = json.loads(content)
        del document["sha256"]
        (session / name).write_text(json.dumps(document))
        done = call("show", session)
        assert (done.returncode, name in done.stderr) == (5, True)
        (session / name).write_bytes(content)


@pytest.mark.parametrize("name", ["plan.json", "session.json"])
def test_nothing_is_shown_by_a_plan_that_was_changed(session: Path, name: str) -> None:
    path = session / name
    path.write_text(path.read_text().replace("synthetic", "different", 1))
    for command in commands(session):
        done = call(*command)
        assert (done.returncode in {2, 5}, name in done.stderr) == (True, True), command


def changed_table(run: Path) -> None:
    """A byte of a table, which keeps its size."""
    path = run / "bins.parquet"
    content = path.read_bytes()
    path.write_bytes(content[:-9] + bytes([content[-9] ^ 1]) + content[-8:])


def test_what_reads_tables_and_outputs_tells_of_one_that_was_changed(session: Path) -> None:
    changed_table(session / RUN)
    for command in commands(session):
        done = call(*command)
        reads = command[0] in {"report", "audit"}
        assert done.returncode == (5 if reads else 0), (command, done.stderr)
        assert (RUN in done.stderr) == reads
    assert "bins.parquet" in (session.parent / "out.md").read_text()


def test_of_several_sessions_one_that_cannot_be_read_is_left_out(
    session: Path, sound: Path, tmp_path: Path
) -> None:
    (session / "plan.json").write_text("{")
    rewrite(Path(shutil.copytree(sound, tmp_path / "T")) / "session.json", lambda _: None)
    done = call("history", tmp_path)
    assert done.returncode == 5
    assert "plan.json" in done.stderr
    assert "1 session" in done.stdout


def test_a_copy_of_a_run_in_another_ones_place_is_told(session: Path) -> None:
    shutil.rmtree(session / f"points/{PLAN.runs[1].point.digest}/run-1")
    shutil.copytree(session / RUN, session / f"points/{PLAN.runs[1].point.digest}/run-1")
    done = call("audit", session)
    assert done.returncode == 5
    assert PLAN.runs[1].point.digest in done.stdout + done.stderr


def test_advice_names_the_session_and_the_headline_counts_what_is_damaged(session: Path) -> None:
    figure(session / RUN)
    done = call("show", session)
    assert f"iolab resume {session}" in done.stderr
    assert "1 damaged" in done.stdout


def test_a_table_of_another_size_is_not_read(session: Path) -> None:
    run = session / RUN
    files = read_manifest(Manifest, run).files
    short_table(run)
    opened = []
    # No hook can be taken back: after this test it lists what nobody reads.
    sys.addaudithook(lambda event, of: opened.append(str(of[0])) if event == "open" else None)
    with pytest.raises(StoreError) as caught:
        verify.require_unchanged_file(run, files, "bins.parquet")
    assert str(run / "bins.parquet") not in opened
    assert "instead of" in caught.value.message
