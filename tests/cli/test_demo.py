"""`iolab demo` makes its load with fio where there is a usable one, else with the native engine."""

from __future__ import annotations

from pathlib import Path

import pytest

from iolab.loads.fileio.engines.fio import local_fio_unusable_reason
from tests.facts import tells


def answers(folder: Path, message: str) -> str:
    """A PATH with a fio that says so."""
    program = folder / "fio"
    program.write_text(f"#!/bin/sh\n{message}\n", encoding="utf-8")
    program.chmod(0o755)
    return str(folder)


def test_a_fio_that_will_do_is_used(tmp_path: Path) -> None:
    assert local_fio_unusable_reason(answers(tmp_path, "echo fio-3.33")) == ""


@pytest.mark.parametrize(
    ("script", "fact"),
    [("echo fio-2.14", "2.14"), ("exit 1", "code 1"), ("echo fio", "unknown version")],
)
def test_one_that_is_too_old_or_broken_is_named(tmp_path: Path, script: str, fact: str) -> None:
    lacks = local_fio_unusable_reason(answers(tmp_path, script))
    assert str(tmp_path / "fio") in lacks
    assert fact in lacks


def test_one_that_cannot_be_started_is_named(tmp_path: Path) -> None:
    search = answers(tmp_path, "")
    (tmp_path / "fio").write_text("#!/nowhere/sh\n", encoding="utf-8")
    assert str(tmp_path / "fio") in local_fio_unusable_reason(search)


def test_where_there_is_none_that_is_told(tmp_path: Path) -> None:
    assert tells(local_fio_unusable_reason(str(tmp_path)), "no", "fio")
