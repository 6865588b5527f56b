"""Every check finds faults that no other check finds, and lets the honest session pass."""

from __future__ import annotations

from pathlib import Path

import pytest

from iolab.importers import checks
from tests.analysis.planted import BUFFERED, PLANTED, Planted
from tests.judging import EVERY_CHECK

PAGE = Path(__file__).resolve().parents[2] / "docs" / "reference" / "planted-faults.md"


@pytest.mark.parametrize("one", PLANTED, ids=lambda one: str(one.code))
def test_a_planted_fault_is_found_by_one_check_alone(one: Planted) -> None:
    assert one.found == {one.code: one.level}


def test_honest_sessions_meet_no_objection_of_these_checks() -> None:
    """Beyond what is said of a session's own method, such as that mdtest does not tell more."""
    standing = [
        (one.code, sorted(each.code for each in one.honest.verdict().objections)) for one in PLANTED
    ]
    assert [(code, found) for code, found in standing if found] == [
        ("cache-hits", ["buffered-io"]),
        ("reported-rates", ["operations-failed", "ranks-apart"]),
    ]
    assert BUFFERED.verdict().objections


def test_every_check_has_its_fault() -> None:
    """Those of what other tools wrote stand in tests/importers, in files of those tools."""
    codes = {check.code for check in EVERY_CHECK}
    foreign = {check.code for check in EVERY_CHECK if check.judge.__module__ == checks.__name__}
    assert {one.code for one in PLANTED} == codes - foreign


def test_the_page_is_the_table_of_these_faults() -> None:
    rows = [
        f"| [{one.code}](checks/{one.code}.md) | {one.fault} | {one.level} |" for one in PLANTED
    ]
    page = PAGE.read_text(encoding="utf-8").splitlines()
    assert [line for line in page if line.startswith("| [")] == rows
