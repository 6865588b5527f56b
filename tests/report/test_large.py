"""A report of more runs than a page can tell one by one: what is left out, and that it says so."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from iolab.model.metric import Level
from iolab.report.brief import Brief, build_brief
from iolab.report.every_run import ROWS_MOST
from iolab.report.html import render_html
from iolab.report.page import make_page
from iolab.report.run_parts import RUNS_TOLD
from tests.report.studies import pair
from tests.report.synthetic import objecting

RUNS = ROWS_MOST + 50


@pytest.fixture(scope="module")
def brief() -> Brief:
    """The same run over and over, the last one invalid."""
    small = build_brief(pair(seconds=2))
    found = small.results
    many = [replace(found[n % len(found)], repeat=1 + n // len(found)) for n in range(RUNS)]
    many = [replace(one, verdict=found[0].verdict) for one in many]
    many[-1] = replace(many[-1], verdict=objecting(Level.INVALID, "holes", "A hole was read."))
    return replace(small, results=tuple(many))


def test_a_page_tells_of_some_runs_and_says_of_how_many(brief: Brief) -> None:
    page = make_page(brief)
    assert len(page.runs) == RUNS_TOLD
    assert f"{RUNS_TOLD} of {RUNS:,} runs" in page.runs_note
    assert "iolab export lists them all" in page.runs_note
    assert page.runs[-1].result == brief.results[-1], "what is not valid is not left out"


def test_the_table_ends_with_how_many_are_missing(brief: Brief) -> None:
    rows = make_page(brief).results.rows
    assert len(rows) == ROWS_MOST + 1
    assert rows[-1][0].text == "50 more runs: iolab export lists them all"
    assert any(cell.level is Level.INVALID for cell in rows[-2])


def test_no_link_leads_nowhere(brief: Brief) -> None:
    html = render_html(brief)
    ids = set(re.findall(r' id="([^"]+)"', html))
    assert set(re.findall(r'href="#([^"]+)"', html)) <= ids
    assert len(re.findall(r'<a class="badge valid"', html)) >= RUNS_TOLD - 1


def test_a_long_table_of_a_page_says_what_it_leaves_out(brief: Brief) -> None:
    page = render_html(brief)
    assert f"{RUNS - ROWS_MOST} more runs: iolab export lists them all" in page
