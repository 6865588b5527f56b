"""A report of more runs than a page can tell one by one: what is left out, and that it says so."""

from __future__ import annotations

import re

import pytest
from msgspec.structs import replace

from iolab.core.metric import VerdictLevel
from iolab.report.brief import Brief
from iolab.report.page import ReportPage, build_report_page
from iolab.report.runs import ROWS_MAX, RUNS_SHOWN
from tests.facts import tells
from tests.report import shared
from tests.report.synthetic import objecting

RUNS = ROWS_MAX + 50


@pytest.fixture(scope="module")
def brief() -> Brief:
    """The same run over and over, the last one invalid."""
    small = shared.undrawn(shared.brief("pair"))
    found = small.results
    many = [replace(found[n % len(found)], repeat=1 + n // len(found)) for n in range(RUNS)]
    many = [replace(one, verdict=found[0].verdict) for one in many]
    many[-1] = replace(
        many[-1], verdict=objecting(VerdictLevel.INVALID, "unwritten-extents", "A hole was read.")
    )
    return replace(small, results=tuple(many))


@pytest.fixture(scope="module")
def page(brief: Brief) -> ReportPage:
    return build_report_page(brief)


def test_a_page_tells_of_some_runs_and_says_of_how_many(brief: Brief, page: ReportPage) -> None:
    assert len(page.runs) == RUNS_SHOWN
    assert tells(page.runs_note, f"{RUNS_SHOWN} of {RUNS:,} runs", "iolab export")
    assert page.runs[-1].result == brief.results[-1], "what is not valid is not left out"


def test_the_table_ends_with_how_many_are_missing(page: ReportPage) -> None:
    rows = page.result_tables[0].rows
    assert len(rows) == ROWS_MAX + 1
    assert tells(rows[-1][0].text, "50 more runs", "iolab export")
    assert any(cell.verdict_level is VerdictLevel.INVALID for cell in rows[-2])


def test_no_link_leads_nowhere_and_a_long_table_says_what_it_leaves_out(brief: Brief) -> None:
    html = shared.drawn(brief)
    ids = set(re.findall(r' id="([^"]+)"', html))
    assert set(re.findall(r'href="#([^"]+)"', html)) <= ids
    assert len(re.findall(r'<a class="badge valid"', html)) >= RUNS_SHOWN - 1
    assert tells(html, f"{RUNS - ROWS_MAX} more runs", "iolab export")
