"""What the check of commits' subjects takes for new, and what it refuses."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.processes import run_program

CHECK = Path(__file__).parents[1] / "tools" / "subjects.sh"
WHO = ("-c", "user.name=a", "-c", "user.email=a@b.c", "-c", "commit.gpgsign=false")


def git(folder: Path, *arguments: str) -> None:
    subprocess.run(["git", *WHO, *arguments], cwd=folder, check=True, capture_output=True)


def commit(folder: Path, *subjects: str) -> None:
    for subject in subjects:
        git(folder, "commit", "--allow-empty", "-m", subject)


def check(folder: Path) -> subprocess.CompletedProcess[str]:
    env = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    return run_program([CHECK], cwd=folder, env=env)


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """A clone of a repository with one commit from before the rule."""
    origin = tmp_path / "origin"
    origin.mkdir()
    git(origin, "init", "-b", "main")
    commit(origin, "Say once of an old habit what it was, and keep it")
    git(tmp_path, "clone", "origin", "clone")
    return tmp_path / "clone"


@pytest.mark.parametrize(
    "subject",
    ["agent: wait before the start", "import,docs: keep \u00fc", f"docs: {'a' * 66}"],
)
def test_new_commits_have_an_area_and_a_short_summary(clone: Path, subject: str) -> None:
    commit(clone, subject)
    assert check(clone).returncode == 0


@pytest.mark.parametrize(
    "subject", ["Say once of X", "Docs: move install", "docs:move", f"docs: {'a' * 67}"]
)
def test_any_other_is_named(clone: Path, subject: str) -> None:
    commit(clone, "docs: move install", subject, "store: keep runs")
    done = check(clone)
    assert done.returncode == 1
    assert [line.strip() for line in done.stderr.splitlines()[1:]] == [subject]


def test_history_that_is_not_new_is_left_alone(clone: Path, tmp_path: Path) -> None:
    assert check(clone).returncode == 0, "the remote has them all"
    assert check(tmp_path / "origin").returncode == 0, "no remote, and nothing of iolab's history"
    git(tmp_path, "clone", "--depth", "1", f"file://{tmp_path / 'origin'}", "shallow")
    assert check(tmp_path / "shallow").returncode == 0
    assert check(tmp_path).returncode == 0, "no repository, as in a source archive"
