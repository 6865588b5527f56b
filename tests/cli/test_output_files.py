"""Files that commands write: whole ones, and of several all or none."""

from __future__ import annotations

import resource
from pathlib import Path

import pytest

from iolab.cli.output import replace_files_atomically
from iolab.errors import ReportError
from tests.cli.command_line import LIMIT_S, command, environment
from tests.processes import run_program


def test_of_several_files_all_are_replaced_or_none(tmp_path: Path) -> None:
    brief, appendix = tmp_path / "brief.pdf", tmp_path / "missing" / "brief-appendix.pdf"
    brief.write_text("old")
    with pytest.raises(ReportError) as caught:
        replace_files_atomically({brief: "new", appendix: "new"})
    assert "cannot be written" in caught.value.message
    assert brief.read_text() == "old"
    assert list(tmp_path.iterdir()) == [brief]
    replace_files_atomically({brief: "new", tmp_path / "brief-appendix.pdf": b"new"})
    assert {path.read_text() for path in tmp_path.iterdir()} == {"new"}


def test_a_study_that_finds_no_room_leaves_no_file(tmp_path: Path) -> None:
    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (64, 64))

    done = run_program(
        command("init", tmp_path / "study.toml"),
        env=environment({}),
        timeout=LIMIT_S,
        preexec_fn=limit,
    )
    assert done.returncode == 2
    assert "cannot be written" in done.stderr
    assert list(tmp_path.iterdir()) == []
