"""The report as PDF, read by another reader of PDF."""

from __future__ import annotations

import io
import math
import re
from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import Any

import pytest
from msgspec.structs import replace
from pypdf import PageObject, PdfReader

from iolab.core.metric import CheckResult, Verdict, VerdictLevel
from iolab.errors import ReportError
from iolab.report.brief import Brief
from iolab.report.choice import StudyAnswer
from iolab.report.fast_facts import FastFact
from iolab.report.formats.render import (
    Paper,
    render_appendix,
    render_pdf,
    typeset_brief_pdf,
    typeset_pdf,
)
from iolab.report.page import build_report_page
from iolab.report.phrases import result_run_name_text
from iolab.report.table import split_table_at_group
from iolab.report.value import TITLE as STATED
from tests.report import shared
from tests.report.hostile import SCRIPT
from tests.report.made import build_brief
from tests.report.priced import published_session
from tests.report.studies import sweep, with_results
from tests.report.synthetic import Source


def told() -> Brief:
    return shared.brief("pair")


@cache
def content() -> bytes:
    return render_pdf(told())


@cache
def reader() -> PdfReader:
    return PdfReader(io.BytesIO(content()))


@cache
def brief_text() -> str:
    return squeezed("".join(page.extract_text() for page in reader().pages))


@cache
def appendix_text() -> str:
    made = PdfReader(io.BytesIO(render_appendix(told())))
    return squeezed("".join(page.extract_text() for page in made.pages))


def squeezed(text: str) -> str:
    """Without blanks and hyphens, which a line's end may add or take."""
    return re.sub(r"[\s\u00ad-]", "", text)


def test_the_first_page_has_the_answer_how_sure_it_is_and_every_best_figure() -> None:
    first = squeezed(reader().pages[0].extract_text())
    answer = shared.page("pair").answer
    assert squeezed(told().study.title) in first
    assert squeezed(answer.answer.sentence) in first
    assert all(squeezed(text) in first for text in answer.trust_texts)
    measured, _ = split_table_at_group(answer.best_table, STATED)
    assert all(squeezed(cell.text) in first for row in measured.rows for cell in row)


@pytest.mark.parametrize(
    "source", [partial(sweep, ("alpha", "beta", "gamma"), seconds=6), published_session]
)
def test_the_figures_of_three_configurations_stand_on_the_first_page(
    source: Callable[[], Source],
) -> None:
    brief = build_brief(source())
    table, stated = split_table_at_group(build_report_page(brief).answer.best_table, STATED)
    assert len(table.rows) + (len(stated.rows) if stated else 0) >= 10
    first, *others = (
        squeezed(page.extract_text()) for page in PdfReader(io.BytesIO(render_pdf(brief))).pages
    )
    for row in table.rows:
        assert all(squeezed(text) in first for cell in row for text in (cell.text, cell.note))
    assert not any(squeezed(table.title) in page for page in others)


def test_numbers_of_the_answer_are_on_one_line_with_their_units() -> None:
    figures = ("3.65 GB/s", "45.4 k IOPS", "12 µs", "55 %")
    message = " ".join(f"word-{number} of {' in '.join(figures)}" for number in range(9))
    page = shared.page("pair")
    long = replace(page, answer=replace(page.answer, answer=StudyAnswer(message)))
    made = PdfReader(io.BytesIO(typeset_brief_pdf(told(), long, Paper.A4)))
    lines = made.pages[0].extract_text().splitlines()
    assert [sum(line.count(one) for line in lines) >= 9 for one in figures] == [True] * 4


def test_rates_of_cards_are_on_one_line_with_their_units() -> None:
    page = shared.page("pair")
    # The rate stands at another place of the line in each.
    facts = tuple(
        FastFact("1.25×", "reads", f"{'i' * number} {'word ' * 3}96.2\N{NO-BREAK SPACE}MB/s of b")
        for number in range(1, 5)
    )
    for start in range(4):
        moved = tuple(replace(each, note=f"{'w' * 2 * start} {each.note}") for each in facts)
        made = typeset_brief_pdf(
            told(), replace(page, answer=replace(page.answer, fast_facts=moved)), Paper.A4
        )
        lines = PdfReader(io.BytesIO(made)).pages[0].extract_text().splitlines()
        assert not [line for line in lines if line.rstrip().endswith("MB/")]


def test_no_line_ends_at_the_slash_of_an_io() -> None:
    page = shared.page("pair")
    # The last words stand at another place of the line in each.
    texts = tuple(f"{'i' * number} {'word ' * 11}I/O limit" for number in range(1, 40))
    long = replace(page, answer=replace(page.answer, detail_texts=texts))
    made = PdfReader(io.BytesIO(typeset_brief_pdf(told(), long, Paper.A4)))
    lines = "".join(one.extract_text() + "\n" for one in made.pages).splitlines()
    assert sum(line.count("I/O limit") for line in lines) >= 9
    assert not [line for line in lines if line.rstrip().endswith("I/")]


def test_a_brief_of_two_configurations_is_short() -> None:
    assert len(reader().pages) <= 8


def test_the_appendix_says_once_what_all_runs_have() -> None:
    said = CheckResult("client-starved", VerdictLevel.INDICATIVE, "Threads waited.", {"cores": 2})
    brief = shared.brief("pair")
    runs = tuple(
        replace(
            run,
            verdict=Verdict(
                VerdictLevel.INDICATIVE,
                (replace(said, evidence={"cores": 2, "wait_share": number / 8}),),
            ),
        )
        for number, run in enumerate(brief.results)
    )
    bare = replace(with_results(shared.undrawn(brief), runs), manifests={})
    made = PdfReader(io.BytesIO(render_appendix(bare)))
    text = squeezed("".join(page.extract_text() for page in made.pages))
    assert text.count(squeezed("Threads waited.")) == 2  # the caveat, and above its evidence
    assert text.count(squeezed("cores = 2")) == 1
    for number, run in enumerate(runs):
        assert squeezed(f"wait_share = {number / 8:.4g}") in text
        assert squeezed(f"points/{run.digest}/run-{run.repeat}") in text


FOOTER_HEIGHT = 36.0
LETTER_LEAST = 7.5
"""Points: what people read on paper without glasses."""


def letter_sizes(page: PageObject) -> dict[str, float]:
    """Texts of a page by their sizes in points, of charts as they are scaled."""
    sizes: dict[str, float] = {}

    def note_text(text: str, cm: Sequence[float], tm: Sequence[float], _: Any, size: float) -> None:
        if text.strip():
            sizes[text] = size * math.hypot(tm[2], tm[3]) * math.hypot(cm[2], cm[3])

    page.extract_text(visitor_text=note_text)
    return sizes


@pytest.mark.parametrize("render", [render_pdf, render_appendix])
def test_no_letter_is_too_small_to_read(render: Callable[[Brief], bytes]) -> None:
    pages = PdfReader(io.BytesIO(render(told()))).pages
    sizes = [size for page in pages for size in letter_sizes(page).values()]
    assert len(sizes) > 100
    assert min(sizes) >= LETTER_LEAST - 0.05


@pytest.mark.parametrize("name", ["pair", "two", "two keys", "kpi", "guests", "sweep"])
def test_no_page_but_the_last_is_half_empty(name: str) -> None:
    pages = PdfReader(io.BytesIO(render_pdf(shared.brief(name)))).pages
    for page in pages[:-1]:
        ends: list[float] = []

        def note_place(text: str, cm: Any, tm: Any, _: Any, size: float, own: Any = ends) -> None:
            if text.strip():
                own.append(tm[4] * cm[1] + tm[5] * cm[3] + cm[5])

        page.extract_text(visitor_text=note_place)
        above_footer = [y for y in ends if y > FOOTER_HEIGHT]
        assert min(above_footer) < float(page.mediabox.height) / 2


def test_every_part_is_there() -> None:
    for heading in ("Caveats", "Load and latency", "What limits it", "Hardware", "Method"):
        assert squeezed(heading) in brief_text()
    for heading in ("All caveats", "Best figures", "Every run", "Runs and their checks"):
        assert squeezed(heading) in appendix_text()
        assert squeezed(heading) not in brief_text()
    # A page of the brief that has room for it has it, too.
    assert squeezed("How to repeat it") in appendix_text()


def test_every_run_has_its_checks() -> None:
    checks = {check.code for result in told().results for check in result.verdict.checks}
    assert [code for code in checks if squeezed(code) not in appendix_text()] == []
    owners = {one.id: one.title for one in told().study.configurations}
    titles = [
        f"{result_run_name_text(one)} of {owners[one.configuration]}" for one in told().results
    ]
    assert [title for title in titles if squeezed(title) not in appendix_text()] == []


def test_a_run_and_its_charts_are_on_one_page() -> None:
    made = PdfReader(io.BytesIO(render_appendix(told())))
    pages = [squeezed(page.extract_text()) for page in made.pages]
    drawn = 0
    for run in told().results:
        (own,) = [page for page in pages if f"points/{run.digest}/run{run.repeat}" in page]
        _, _, after = own.partition(f"points/{run.digest}/run{run.repeat}")
        charts = (squeezed(one) for one in ("over time", "Latency by percentile"))
        drawn += all(title in after for title in charts)
    assert drawn == len(told().results)


def test_figures_are_vectors_with_alternative_texts() -> None:
    assert not any(page.images for page in reader().pages)
    assert str(reader().root_object["/Lang"]) == "en"
    assert "/StructTreeRoot" in reader().root_object
    assert content().count(b"/Alt") >= 4


def test_it_is_set_on_the_paper_asked_for_and_the_same_each_time() -> None:
    assert float(reader().pages[0].mediabox.width) == pytest.approx(595, abs=1)
    small = with_results(shared.undrawn(told()), ())
    one, other = (render_pdf(small, Paper.LETTER) for _ in range(2))
    assert one == other
    assert float(PdfReader(io.BytesIO(one)).pages[0].mediabox.width) == pytest.approx(612, abs=1)


def test_hostile_text_is_text() -> None:
    bad = shared.undrawn(shared.brief("hostile"))
    made, more = (PdfReader(io.BytesIO(one(bad))) for one in (render_pdf, render_appendix))
    text = "".join(page.extract_text() for page in (*made.pages, *more.pages))
    assert squeezed(SCRIPT) in squeezed(text)
    assert r"\u202egpj.exe" in squeezed(text)
    assert not {"\x1b", "\u202e"} & set(text)
    assert "/JavaScript" not in str(made.root_object)
    assert not made.attachments


def test_what_cannot_be_set_is_an_error_with_its_reason() -> None:
    with pytest.raises(ReportError, match="cannot be typeset"):
        typeset_pdf("#let x = ", {}, {})
