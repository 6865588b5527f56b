"""A session is readable at any moment, by anyone, whatever happened to it."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from bench.synthetic import make_result

from iolab.core.events import SessionStatus
from iolab.core.target_state import TargetLedger
from iolab.errors import StoreError
from iolab.store import layout
from iolab.store.reader import SessionReader
from iolab.store.writer import SessionWriter
from tests.store.rewritten import rewrite
from tests.store.sessions import PLAN, assert_same, commit, create, record_of

FIRST, SECOND, THIRD = (run.point.digest for run in PLAN.runs[:3])


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A session of three runs, committed against the plan's order; only to be copied."""
    place = tmp_path_factory.mktemp("made") / "S"
    with create(place) as writer:
        for order in (2, 0, 1):
            commit(writer, record_of(order))
        writer.end_session_and_close(SessionStatus.DONE)
    return place


@pytest.fixture
def place(made: Path, tmp_path: Path) -> Path:
    """A copy of it, to do anything to; a session reads the same wherever it lies."""
    return Path(shutil.copytree(made, tmp_path / "S"))


def test_what_is_not_a_session_is_told(tmp_path: Path) -> None:
    for directory in (tmp_path, tmp_path / "missing", Path(__file__)):
        with pytest.raises(StoreError, match="is not a session") as caught:
            SessionReader(directory)
        assert "iolab run --out" in caught.value.hint


def test_results_come_in_the_order_of_the_plan(place: Path) -> None:
    reader = SessionReader(place)
    assert [result.digest for result in reader.results()] == [FIRST, SECOND, THIRD]
    assert (
        reader.committed_folder_by_run()
        == reader.done_runs()
        == {(FIRST, 1), (SECOND, 1), (THIRD, 1)}
    )
    assert reader.results() == tuple(make_result(record_of(order)) for order in range(3))
    assert reader.verify_all_files() == ()


def test_a_session_is_readable_while_it_is_written(tmp_path: Path) -> None:
    with create(tmp_path / "S") as writer:
        reader = SessionReader(tmp_path / "S")
        assert reader.results() == ()
        for order in range(2):
            commit(writer, record_of(order))
            assert len(reader.results()) == order + 1
            assert reader.session.status == "running"
        writer.end_session_and_close(SessionStatus.DONE)
        assert reader.session.status == "done"


def test_a_session_whose_writer_is_gone_reads_as_interrupted(tmp_path: Path) -> None:
    writer = create(tmp_path / "S")
    reader = SessionReader(tmp_path / "S")
    writer.close()
    session = reader.session
    assert session.status is SessionStatus.INTERRUPTED
    assert session.reason is not None
    (tmp_path / "S" / "lock").unlink()
    assert reader.session.status is SessionStatus.INTERRUPTED


def test_asking_for_the_status_does_not_keep_a_writer_out(place: Path) -> None:
    asking = subprocess.Popen(
        [
            sys.executable,
            "-c",
            "import sys, pathlib\n"
            "from iolab.store.durable import is_locked\n"
            "print('ready', flush=True)\n"
            "while True: is_locked(pathlib.Path(sys.argv[1]))",
            str(place),
        ],
        stdout=subprocess.PIPE,
    )
    try:
        assert asking.stdout is not None
        assert asking.stdout.readline() == b"ready\n"
        for _ in range(15):
            SessionWriter.reopen(place).close()
    finally:
        asking.kill()
        asking.communicate()


def test_a_session_that_ends_while_one_looks_is_never_called_interrupted(
    place: Path, tmp_path: Path
) -> None:
    # It ends so often at least, and goes on until it was seen both ways.
    enough = tmp_path / "enough"
    ending = subprocess.Popen(
        [
            sys.executable,
            "-c",
            "import sys, pathlib\n"
            "from iolab.core.events import SessionStatus\n"
            "from iolab.store.writer import SessionWriter\n"
            "print('ready', flush=True)\n"
            "place, enough = map(pathlib.Path, sys.argv[1:])\n"
            "ended = 0\n"
            "while ended < 40 or not enough.exists():\n"
            "    SessionWriter.reopen(place).end_session_and_close(SessionStatus.DONE)\n"
            "    ended += 1\n",
            str(place),
            str(enough),
        ],
        stdout=subprocess.PIPE,
    )
    both = {SessionStatus.RUNNING, SessionStatus.DONE}
    seen = set()
    try:
        assert ending.stdout is not None
        assert ending.stdout.readline() == b"ready\n"
        reader = SessionReader(place)
        while ending.poll() is None:
            seen.add(reader.session.status)
            if seen >= both:
                enough.touch()
    finally:
        ending.kill()
        ending.communicate()
    assert ending.returncode == 0
    assert seen == both


def test_runs_that_were_not_finished_are_not_seen(place: Path) -> None:
    whole = place / "points" / FIRST / "run-1"
    whole.rename(whole.with_name(".run-1.tmp-4711"))
    (place / "points" / SECOND / "run-01").mkdir()
    (place / "points" / SECOND / "notes").write_text("mine")
    (place / "points" / "a file").write_text("mine")
    assert SessionReader(place).committed_folder_by_run() == {(SECOND, 1), (THIRD, 1)}


@pytest.mark.parametrize("content", [None, b"", b'{"format":1,"analysis":{}}'])
def test_a_damaged_run_is_named_and_the_others_are_read(place: Path, content: bytes | None) -> None:
    manifest = place / "points" / SECOND / "run-1" / "manifest.json"
    manifest.unlink()
    if content is not None:
        manifest.write_bytes(content)
    reader = SessionReader(place)
    assert [result.digest for result in reader.results()] == [FIRST, THIRD]
    assert reader.committed_folder_by_run() == {(FIRST, 1), (THIRD, 1)}
    assert [damage.path for damage in reader.damage_of_documents_and_manifests()] == [
        f"points/{SECOND}/run-1"
    ]
    for damage in (
        *reader.damage_of_documents_and_manifests(),
        *reader.verify_all_files(),
        *reader.damage_by_run().values(),
    ):
        assert str(place) not in damage.message
        assert "'manifest.json'" in damage.message
    with pytest.raises(StoreError, match=f"{SECOND}/run-1/manifest.json"):
        reader.record(SECOND, 1)
    assert_same(reader.record(FIRST, 1), record_of(0))


@pytest.mark.parametrize(
    "name", ["intervals.parquet", "bins.parquet", "counters.parquet", "engine/1.zst"]
)
def test_a_damaged_file_is_named(place: Path, name: str) -> None:
    path = place / "points" / FIRST / "run-1" / name
    content = path.read_bytes()
    for damaged in (content[: len(content) // 2], b"\0" * len(content), None):
        path.unlink()
        if damaged is not None:
            path.write_bytes(damaged)
        with pytest.raises(StoreError, match=name):
            SessionReader(place).record(FIRST, 1)
        path.write_bytes(content)
    assert_same(SessionReader(place).record(FIRST, 1), record_of(0))


def test_an_output_of_another_size_is_damage_not_memory(place: Path) -> None:
    run = place / "points" / FIRST / "run-1"
    rewrite(
        run / "manifest.json",
        lambda it: it["outputs"][0].update(size_bytes=it["outputs"][0]["size_bytes"] - 1),
    )
    with pytest.raises(StoreError, match=r"engine/0\.zst' is damaged"):
        SessionReader(place).record(FIRST, 1)


@pytest.mark.parametrize("key", [("0" * 16, 1), (FIRST, 2), (FIRST, 0), ("../..", 1), ("", 1)])
def test_a_run_that_is_not_there_is_told(place: Path, key: tuple[str, int]) -> None:
    with pytest.raises(StoreError, match=r"has no run|is not the digest|repeats count") as caught:
        SessionReader(place).record(*key)
    assert "iolab show" in caught.value.hint


@pytest.mark.parametrize("name", ["session.json", "plan.json"])
@pytest.mark.parametrize("other", [layout.FORMAT_OLDEST - 1, layout.FORMAT + 1])
def test_another_format_is_refused(place: Path, name: str, other: int) -> None:
    document = json.loads((place / name).read_bytes())
    (place / name).write_text(json.dumps({**document, "format": other}))
    with pytest.raises(StoreError, match=f"{name}' has format {other}"):
        _ = SessionReader(place).plan


def test_a_run_of_a_newer_format_is_named(place: Path) -> None:
    path = place / "points" / FIRST / "run-1" / "manifest.json"
    path.write_text(path.read_text().replace(f'"format":{layout.FORMAT}', '"format":99', 1))
    damaged = SessionReader(place).damage_of_documents_and_manifests()
    assert [damage.path for damage in damaged] == [f"points/{FIRST}/run-1"]
    assert "has format 99" in damaged[0].message


def test_verify_finds_every_changed_bit(place: Path) -> None:
    reader = SessionReader(place)
    run = place / "points" / FIRST / "run-1"
    paths = [path for path in run.rglob("*") if path.is_file()]
    assert len(paths) == 7
    with SessionWriter.reopen(place) as writer:
        writer.write_ledger(TargetLedger())
    own = ["session.json", "study.toml", "plan.json", "hosts.json", "ledger.json"]
    for path in [*paths, *(place / name for name in own)]:
        content = path.read_bytes()
        middle = len(content) // 2
        changed = bytes([content[middle] ^ 1])
        path.write_bytes(content[:middle] + changed + content[middle + 1 :])
        found = reader.verify_all_files()
        # A changed sum speaks for the manifest that it is of.
        named = {damage.path for damage in found}
        assert named == {str(path.relative_to(place)).replace(".sha256", ".json")}, path
        path.write_bytes(content)
    assert reader.verify_all_files() == ()


def test_verify_finds_what_is_missing_and_what_leads_out(place: Path) -> None:
    run = place / "points" / FIRST / "run-1"
    (run / "bins.parquet").unlink()
    rewrite(run / "manifest.json", lambda it: it["files"][0].update(name="../../../../secret"))
    found = SessionReader(place).verify_all_files()
    where = f"points/{FIRST}/run-1"
    assert [damage.path for damage in found] == [
        f"{where}/../../../../secret",
        f"{where}/bins.parquet",
    ]
    assert "leads out" in found[0].message
