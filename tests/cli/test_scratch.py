"""No command writes into a scratch folder or over a session, whichever way leads there."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.command_line import make_session
from tests.cli.in_process import call


@pytest.mark.parametrize(
    "words",
    [
        ("export", "{session}", "--format", "csv", "--out", "{place}/points.csv"),
        ("report", "{session}", "--md", "{place}/report.md"),
        ("init", "{place}/study.toml"),
        ("run", "cluster-kpi", "--path", "{target}", "--out", "{place}/session"),
    ],
    ids=lambda words: words[0],
)
def test_output_into_a_scratch_folder_is_refused(
    words: tuple[str, ...], session: Path, tmp_path: Path
) -> None:
    scratch = tmp_path / "iolab-scratch-local"
    scratch.mkdir()
    link = tmp_path / "link"
    link.symlink_to(scratch)
    for place in (scratch.name, link.name):
        given = [word.format(session=session, place=place, target=tmp_path) for word in words]
        done = call(*given, cwd=tmp_path)
        assert done.returncode == 2
        assert f"'{place}/" in done.stderr
    assert list(scratch.iterdir()) == []


@pytest.mark.parametrize("place", ["session.json", "study.toml", "points/x/run-1/manifest.json"])
def test_no_output_goes_over_the_files_of_a_session(tmp_path: Path, place: str) -> None:
    session = make_session(tmp_path / "S")
    before = sorted((path, path.stat().st_mtime_ns) for path in session.rglob("*"))
    link = tmp_path / "link"
    link.symlink_to(session / place)
    for path in (session / place, link):
        for words in (("export", session, "-f", "csv", "-o"), ("report", session, "--md")):
            done = call(*words, path)
            assert done.returncode == 2
            assert "session 'S'" in done.stderr
    assert sorted((path, path.stat().st_mtime_ns) for path in session.rglob("*")) == before


@pytest.mark.parametrize(
    "words", [("report", "--html"), ("report", "--pdf"), ("export", "-f", "csv", "-o")]
)
@pytest.mark.parametrize("name", ["-", "--md"])
def test_neither_a_dash_nor_an_option_is_the_name_of_an_output(
    words: tuple[str, ...], name: str, session: Path, tmp_path: Path
) -> None:
    command, *options = words
    done = call(command, session, *options, name, cwd=tmp_path)
    assert done.returncode == 2
    assert f"'{name}' is not the name of a file" in done.stderr
    assert list(tmp_path.iterdir()) == []
