"""`iolab report --against`."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.in_process import call


def test_the_report_says_what_it_was_set_against(session: Path, tmp_path: Path) -> None:
    text = tmp_path / "report.md"
    call("report", str(session), "--against", "ssd-cluster:performance", "--md", str(text))
    told = text.read_text(encoding="utf-8")
    assert "## Against ssd-cluster" in told
    assert "2x ConnectX-6 200Gb/s" in told
    assert "1x ConnectX-6" not in told


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("ssd-clustr", "Did you mean 'ssd-cluster'?"),
        ("ssd-cluster:performence", "Did you mean 'performance'?"),
        ("./no:such/file.toml", "There is no file"),
    ],
)
def test_what_is_no_set_writes_nothing(
    session: Path, tmp_path: Path, name: str, message: str
) -> None:
    path = tmp_path / "report.html"
    done = call("report", str(session), "--against", name, "--html", str(path))
    assert done.returncode == 2
    assert message in done.stderr
    assert not path.exists()


def test_a_set_without_figures_of_a_study_is_refused(session: Path, tmp_path: Path) -> None:
    empty = tmp_path / "set.toml"
    empty.write_text('id = "mine"\nsource = "me"\n', encoding="utf-8")
    done = call("report", str(session), "--against", str(empty))
    assert done.returncode == 2
    assert "no figure" in done.stderr
