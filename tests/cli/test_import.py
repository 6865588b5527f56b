"""`iolab import`: a session like any other, that every command takes."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import jsonschema

import iolab
from tests.cli.in_process import call
from tests.importers.importing import lay_down

GROUPS = "import/fio/two-groups-3.33.json"
SCHEMA = Path(__file__).parents[2] / "schema" / "show.json"
PLAIN = "import/fio/plain-3.33.json"
FILES = "import/elbencho/files-3.1-9.json"


def test_an_imported_session_is_shown_reported_compared_chosen_and_audited(tmp_path: Path) -> None:
    files = [str(path) for path in lay_down(tmp_path, GROUPS, PLAIN)]
    session = str(tmp_path / "S")
    done = call("import", *files, "--out", session)
    assert done.returncode == 0
    assert "phases-added" in done.stdout
    shown = json.loads(call("show", session, "--json").stdout)
    assert len(shown["results"]) == 4
    jsonschema.validate(shown, json.loads(SCHEMA.read_text(encoding="utf-8")))
    details = call("show", session, "--details")
    assert details.returncode == 0
    assert f"iolab report {session}\n" in details.stdout, "without telemetry nothing tells a limit"
    page = tmp_path / "brief.html"
    assert call("report", session, "--html", str(page)).returncode == 0
    assert "plain-3.33.json" in page.read_text(encoding="utf-8")
    assert "4 same" in call("compare", session, session).stdout.replace("6 same", "4 same")
    assert call("choose", session, "--need", "full >= 1k").returncode in (0, 1)
    assert "relations agree" in call("audit", session).stdout
    assert call("export", session, "--format", "csv").stdout.count("\n") == 5
    refused = call("resume", session)
    assert refused.returncode == 2
    assert "imported" in refused.stderr


def test_operations_that_are_no_io_have_their_names_in_exports(tmp_path: Path) -> None:
    (file,) = lay_down(tmp_path, FILES)
    session = str(tmp_path / "S")
    assert call("import", str(file), "--out", session).returncode == 0
    named = {"dir-create", "file-remove", "dir-remove", "read", "write"}
    seconds = call("export", session, "--seconds", "--format", "csv")
    rows = list(csv.DictReader(io.StringIO(seconds.stdout)))
    assert {row["operation"] for row in rows} >= named
    metrics = call("export", session, "--format", "openmetrics").stdout
    for name in named:
        assert f'operation="{name.replace("-", "_")}"' in metrics
    runs = iolab.Session(tmp_path / "S").runs
    assert {str(word) for run in runs for word in run.intervals.operation} >= {"file_remove"}


def test_files_of_no_format_are_named_and_nothing_is_written(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("nothing")
    (tmp_path / "b.txt").write_text("nothing")
    done = call(
        "import", str(tmp_path / "a.txt"), str(tmp_path / "b.txt"), "--out", str(tmp_path / "S")
    )
    assert done.returncode == 2
    assert "a.txt" in done.stderr
    assert "b.txt" in done.stderr
    assert not (tmp_path / "S").exists()


def test_a_folder_without_results_says_what_is_in_it(tmp_path: Path) -> None:
    folder, out = tmp_path / "folder", tmp_path / "S"
    folder.mkdir()
    assert call("import", str(folder), "--out", str(out)).returncode == 2
    (folder / "notes.md").write_text("what we did")
    (folder / "none.json").write_bytes(b"")
    (folder / "image.bin").write_bytes(bytes(range(256)) * 9)
    done = call("import", str(folder), "--out", str(out))
    assert done.returncode == 2
    assert all(name in done.stderr for name in ("notes.md", "none.json", "image.bin"))
    assert not out.exists()


def test_every_recorded_file_of_elbencho_is_one_session(tmp_path: Path) -> None:
    every = sorted((Path(__file__).parents[1] / "golden/import/elbencho").glob("*.zst"))
    lay_down(tmp_path, *(f"import/elbencho/{one.name.removesuffix('.zst')}" for one in every))
    done = call("import", str(tmp_path), "--out", str(tmp_path / "S"))
    assert done.returncode == 0
    assert call("report", str(tmp_path / "S"), "--html", str(tmp_path / "a.html")).returncode == 0


def test_numbers_of_an_import_are_never_cut_on_a_narrow_terminal(tmp_path: Path) -> None:
    lay_down(tmp_path, "ycsb/a.txt", "ycsb/a.err", "ycsb/a_READ.hdr", "ycsb/a_UPDATE.hdr")
    done = call("import", str(tmp_path), "--out", str(tmp_path / "S"), env={"COLUMNS": "60"})
    shown = " ".join(done.stdout.split())
    assert all(one in shown for one in ("13.3 k", "5.14 ms", "432 ms", "indicative"))


def test_advice_on_an_import_is_never_to_resume_it(tmp_path: Path) -> None:
    lay_down(tmp_path, "ycsb/a.txt", "ycsb/a.err", "ycsb/a_READ.hdr", "ycsb/a_UPDATE.hdr")
    session = tmp_path / "S"
    assert call("import", str(tmp_path / "a.txt"), "--out", str(session)).returncode == 0
    again = call("import", str(tmp_path / "a.txt"), "--out", str(session))
    assert (again.returncode, "resume" in again.stderr) == (5, False)
    assert "another directory" in again.stderr
    with next(session.glob("points/*/run-1/manifest.json")).open("a") as manifest:
        manifest.write(" ")
    done = call("show", str(session))
    assert "damaged" in done.stderr
    assert "import the files again" in done.stderr
    assert "resume" not in done.stderr


def test_a_file_that_only_names_ior_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "notes.txt"
    file.write_text("we ran: MPI Coordinated Test of Parallel I/O\n", encoding="utf-8")
    done = call("import", str(file), "--out", str(tmp_path / "S"))
    assert (done.returncode, "bug" in done.stderr) == (2, False)
