"""Every check finds faults that no other check finds, and lets the honest session pass."""

from __future__ import annotations

import pytest

from iolab.importers import checks as imported
from tests.analysis.planted import BUFFERED, PLANTED, Planted
from tests.judging import EVERY_CHECK
from tests.site_parts import cell, checks


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
        ("files-fit-in-memory", ["buffered-io"]),
        ("reported-rates", ["operations-failed", "rank-skew"]),
    ]
    assert BUFFERED.verdict().objections


def test_every_check_has_its_fault() -> None:
    """Those of what other tools wrote stand in tests/importers, in files of those tools."""
    codes = {check.code for check in EVERY_CHECK}
    foreign = {check.code for check in EVERY_CHECK if check.judge.__module__ == imported.__name__}
    assert {one.code for one in PLANTED} == codes - foreign


def test_the_site_lists_these_faults() -> None:
    listed = checks().splitlines()
    for one in PLANTED:
        begin, end = (
            f"| [{one.code}](checks/{one.code}.md) | ",
            f" | {cell(one.fault)} | {one.level} |",
        )
        assert any(line.startswith(begin) and line.endswith(end) for line in listed)
