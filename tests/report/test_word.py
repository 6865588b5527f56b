"""The brief as a Word document, read by the library that wrote it."""

from __future__ import annotations

import io

from docx import Document
from msgspec.structs import replace

from iolab.report.blocks import Paragraph, appendix_blocks
from iolab.report.formats.word import render_docx
from iolab.report.page import build_report_page
from iolab.report.table import split_table_at_group
from iolab.report.user_text import UserText
from iolab.report.value import TITLE as STATED
from tests.report import shared
from tests.report.hostile import SCRIPT


def test_it_has_the_answer_every_best_figure_and_each_chart_as_a_picture() -> None:
    brief = replace(shared.brief("two"), user_text=UserText(introduction="Why we *ask*."))
    made, page = Document(io.BytesIO(render_docx(brief))), build_report_page(brief)
    text = [one.text for one in made.paragraphs]
    assert {
        brief.study.title,
        page.answer.answer.sentence,
        *page.answer.trust_texts,
        "Why we ask.",
    } <= set(text)
    assert {"Load and latency", "What limits it", "Hardware", "Method", "Bottom line"} <= set(text)
    rows = [[cell.text for cell in row.cells] for row in made.tables[0].rows]
    assert rows[0] == [column.title for column in page.answer.best_table.columns]
    measured, stated = split_table_at_group(page.answer.best_table, STATED)
    assert stated is not None
    assert rows[1:] == [[cell.one_line_text for cell in row] for row in measured.rows]
    later = [[cell.text for cell in row.cells] for one in made.tables[1:] for row in one.rows]
    assert [cell.one_line_text for cell in stated.rows[0]] in later
    charts = [*page.answer.charts]
    charts += [one for group in page.charts_by_workload for one in group.charts]
    charts += [one for part in page.sections for group in part.groups for one in group.charts]
    assert len(made.inline_shapes) == len(charts)


def test_hostile_text_is_text() -> None:
    made = Document(io.BytesIO(render_docx(shared.brief("hostile"))))
    text = " ".join(one.text for one in made.paragraphs)
    assert SCRIPT in text or "<script>" in text


def test_a_caveat_names_every_check_that_says_it() -> None:
    brief = shared.brief("two")
    page = build_report_page(brief)
    caveat = next(iter(page.answer.caveats))
    both = [
        replace(
            result,
            verdict=replace(
                result.verdict,
                checks=tuple(
                    one
                    for check in result.verdict.checks
                    for one in (check, replace(check, code=f"{check.code}-too"))
                ),
            ),
        )
        for result in brief.results
    ]
    doubled = replace(brief, results=tuple(both))
    made = Document(io.BytesIO(render_docx(doubled)))
    assert not any(caveat.code in one.text for one in made.paragraphs)
    appendix = appendix_blocks(doubled, build_report_page(doubled))
    notes = [block.note for block in appendix if isinstance(block, Paragraph)]
    assert any(f"{caveat.code}, {caveat.code}-too, " in note for note in notes)
