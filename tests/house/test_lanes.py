"""Where end-to-end tests are looked for, and their lanes: of files that are there."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.lanes import FIRST, TOGETHER, lane_of, turn_of

ROOT = Path(__file__).resolve().parents[2]
FILES = [path.relative_to(ROOT).as_posix() for path in (ROOT / "tests").rglob("test_*.py")]
MARK = "mark.e" + "2e"


def test_make_looks_for_end_to_end_tests_where_they_are() -> None:
    lines = (ROOT / "Makefile").read_text(encoding="utf-8").splitlines()
    (told,) = (line for line in lines if line.startswith("E2E_TESTS := "))
    places = tuple(f"{place}/" for place in told.split()[2:])
    marked = [file for file in FILES if MARK in (ROOT / file).read_text(encoding="utf-8")]
    assert len(marked) > 50
    assert [file for file in marked if not file.startswith(places)] == []


@pytest.mark.parametrize("begin", TOGETHER)
def test_what_goes_together_is_there(begin: str) -> None:
    assert [file for file in FILES if file.startswith(begin)]


@pytest.mark.parametrize("lane", FIRST)
def test_what_comes_first_is_there(lane: str) -> None:
    assert lane in {lane_of(file) for file in FILES}


def test_files_go_together_or_by_themselves() -> None:
    assert lane_of("tests/fleet/test_loss.py") == lane_of("tests/fleet/test_slurm.py") == "fleet"
    assert lane_of("tests/e2e/test_serve.py::test_faults[a/b.py::c]") == "test_serve"


def test_the_longest_begin_first_and_the_others_as_they_come() -> None:
    assert turn_of("fleet") < turn_of("guests") < turn_of("test_serve") == turn_of("test_search")
