"""The report as PDF, read by another reader of PDF."""

from __future__ import annotations

import io
import re

import pytest
from pypdf import PdfReader

from iolab.errors import ReportError
from iolab.report.brief import build_brief
from iolab.report.objections import run_name
from iolab.report.page import make_page
from iolab.report.pdf import Paper, render_pdf
from iolab.report.render import typeset
from tests.report.hostile import SCRIPT, hostile
from tests.report.studies import sweep

BRIEF = build_brief(sweep(("alpha", "beta"), seconds=6))
CONTENT = render_pdf(BRIEF)
READER = PdfReader(io.BytesIO(CONTENT))
TEXT = "\n".join(page.extract_text() for page in READER.pages)
PLAIN = re.sub(r"\s+", " ", TEXT)


def squeezed(text: str) -> str:
    """Without blanks and hyphens, which a line's end may add or take."""
    return re.sub(r"[\s\u00ad-]", "", text)


def test_the_title_page_has_the_claims_and_the_headline_figures() -> None:
    first = squeezed(READER.pages[0].extract_text())
    page = make_page(BRIEF)
    assert squeezed(BRIEF.study.title) in first
    assert squeezed(page.said[0].text) in first
    assert squeezed(page.summary) in first
    assert all(squeezed(row[3].text) in first for row in page.headline_table.rows)


def test_every_part_is_there() -> None:
    for heading in (
        "What to know about these numbers",
        "Load and latency",
        "Test configuration",
        "Method",
        "Every run",
        "Appendix: runs, checks and their evidence",
        "How to repeat it",
    ):
        assert heading in PLAIN


def test_every_run_has_its_checks() -> None:
    checks = {check.code for result in BRIEF.results for check in result.verdict.checks}
    assert [code for code in checks if squeezed(code) not in squeezed(TEXT)] == []
    owners = {one.id: one.title for one in BRIEF.study.configurations}
    titles = [f"{run_name(one)} of {owners[one.configuration]}" for one in BRIEF.results]
    assert [title for title in titles if squeezed(title) not in squeezed(TEXT)] == []


def test_figures_are_vectors_with_alternative_texts() -> None:
    assert not any(page.images for page in READER.pages)
    assert str(READER.root_object["/Lang"]) == "en"
    assert "/StructTreeRoot" in READER.root_object
    assert CONTENT.count(b"/Alt") >= len(make_page(BRIEF).workloads)


@pytest.mark.parametrize(("paper", "width"), [(Paper.A4, 595.0), (Paper.LETTER, 612.0)])
def test_it_is_set_on_the_paper_asked_for(paper: Paper, width: float) -> None:
    made = PdfReader(io.BytesIO(render_pdf(BRIEF, paper)))
    assert float(made.pages[0].mediabox.width) == pytest.approx(width, abs=1)


def test_the_same_brief_gives_the_same_bytes() -> None:
    assert render_pdf(BRIEF) == CONTENT


def test_hostile_text_is_text() -> None:
    made = PdfReader(io.BytesIO(render_pdf(build_brief(hostile()))))
    text = "".join(page.extract_text() for page in made.pages)
    assert squeezed(SCRIPT) in squeezed(text)
    assert "\x1b" not in text
    assert "/JavaScript" not in str(made.root_object)
    assert not made.attachments


def test_what_cannot_be_set_is_an_error_with_its_reason() -> None:
    with pytest.raises(ReportError, match="cannot be typeset"):
        typeset("#let x = ", {}, {})
