"""`iolab import`: a session like any other, that every command takes."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema

from tests.cli.in_process import call
from tests.importers.importing import lay_down

GROUPS = "import/fio/two-groups-3.33.json"
SCHEMA = Path(__file__).parents[2] / "schema" / "show.json"
PLAIN = "import/fio/plain-3.33.json"


def test_an_imported_session_is_shown_reported_compared_chosen_and_audited(tmp_path: Path) -> None:
    files = [str(path) for path in lay_down(tmp_path, GROUPS, PLAIN)]
    session = str(tmp_path / "S")
    done = call("import", *files, "--out", session)
    assert done.returncode == 0
    assert "phases-added" in done.stdout
    shown = json.loads(call("show", session, "--json").stdout)
    assert len(shown["results"]) == 4
    jsonschema.validate(shown, json.loads(SCHEMA.read_text(encoding="utf-8")))
    assert call("show", session, "--details").returncode == 0
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
