"""The brief as a Word document, to be edited by whoever sends it on; charts are pictures.

The only door to python-docx, which is an extra of the package.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final

from iolab.errors import ReportError
from iolab.report.brief import Brief
from iolab.report.charts.chart import ChartGroup, Figure
from iolab.report.formats.html import ReportPage, make_page
from iolab.report.formats.render import figure_pngs
from iolab.report.numbers import clean, mark
from iolab.report.phrases import where
from iolab.report.table import Cell, Table
from iolab.report.user_text import blocks_of

if TYPE_CHECKING:
    from docx.document import Document
    from docx.text.paragraph import Paragraph

FIGURE_INCHES: Final = 4.6
SMALL_POINTS: Final = 8
WIDE: Final = 7
"""Columns from which on the type of a table is small."""


def render_docx(brief: Brief) -> bytes:
    """The brief; ReportError where python-docx is not installed."""
    try:
        import docx
    except ImportError as error:
        raise ReportError(
            "Word documents need python-docx, which is not installed.",
            "Install it: pip install 'iolab[docx]', or pipx inject iolab python-docx.",
        ) from error
    page, document = make_page(brief), docx.Document()
    document.core_properties.title = clean(brief.study.title)
    document.core_properties.author = ""
    document.add_heading(clean(brief.study.title), 0)
    _paragraphs(document, [brief.study.question, "; ".join(f"{k}: {v}" for k, v in page.facts)])
    _paragraphs(document, page.alerts)
    _user_text(document, brief.words.introduction)
    _answer(document, page)
    if page.workloads:
        document.add_heading("Load and latency", 1)
        _paragraphs(document, [page.chart_notes])
    for group in page.workloads:
        _group(document, group)
    for section in page.sections:
        document.add_heading(clean(section.title), 1)
        _paragraphs(document, [section.lede])
        for group in section.groups:
            _group(document, group)
    document.add_heading("Test configuration", 1)
    _paragraphs(document, [page.topology.alt] if page.topology else [])
    for table in (*page.configurations, page.hardware):
        _table(document, table)
    document.add_heading("Method", 1)
    _table(document, page.method)
    if brief.words.conclusion:
        document.add_heading("Conclusion", 1)
        _user_text(document, brief.words.conclusion)
    written = io.BytesIO()
    document.save(written)
    return written.getvalue()


def _answer(document: Document, page: ReportPage) -> None:
    """The answer, how sure it is, the best of each workload, and the gravest caveats."""
    answer = page.answer
    document.add_paragraph().add_run(clean(answer.says)).bold = True
    _paragraphs(document, [answer.sure])
    _table(document, answer.matrix)
    _paragraphs(document, [answer.note])
    _figures(document, [answer.chart] if answer.chart else [])
    if answer.caveats or answer.failed:
        document.add_heading("Caveats", 2)
    _paragraphs(document, [answer.failed])
    for caveat in answer.caveats:
        level = f"{mark(caveat.level)} {caveat.level.value}"
        text = f"{level}: {caveat.says} ({caveat.codes}, {where(caveat)})"
        document.add_paragraph(clean(text), style="List Bullet")


def _group(document: Document, group: ChartGroup) -> None:
    document.add_heading(clean(group.title), 2)
    if group.table:
        _table(document, group.table)
    _paragraphs(document, [group.note])
    _figures(document, group.figures)


def _figures(document: Document, figures: Sequence[Figure]) -> None:
    from docx.shared import Inches

    for figure, png in zip(figures, figure_pngs(figures), strict=True):
        document.add_paragraph().add_run(clean(figure.title)).bold = True
        picture = document.add_picture(io.BytesIO(png), width=Inches(FIGURE_INCHES))
        picture._inline.docPr.set("descr", clean(figure.alt))
        _paragraphs(document, [figure.note])


def _paragraphs(document: Document, texts: Iterable[str]) -> None:
    for text in texts:
        if text:
            document.add_paragraph(clean(text))


def _user_text(document: Document, markdown: str) -> None:
    """What the user says beside it."""
    for block in blocks_of(markdown):
        text = clean("".join(str(run["text"]) for run in block["runs"]))
        if block["kind"] == "heading":
            document.add_heading(text, 2)
        else:
            style = "List Bullet" if block["kind"] == "item" else None
            document.add_paragraph(text, style=style)


def _table(document: Document, table: Table) -> None:
    """The table under its headings, numbers to the right."""
    if not table.rows:
        return
    heads = tuple(Cell(column.title, strong=True) for column in table.columns)
    drawn = document.add_table(rows=0, cols=len(heads), style="Light List Accent 1")
    for cells in (heads, *table.rows):
        for column, cell, place in zip(table.columns, cells, drawn.add_row().cells, strict=True):
            _cell(place.paragraphs[0], cell, number=column.number, small=len(heads) > WIDE)
    document.add_paragraph()


def _cell(paragraph: Paragraph, cell: Cell, *, number: bool, small: bool) -> None:
    from docx.enum.text import WD_ALIGN_PARAGRAPH
    from docx.shared import Pt

    sign = f"{mark(cell.level)} " if cell.level else ""
    run = paragraph.add_run(clean(f"{sign}{cell.line}"))
    run.bold = cell.strong
    if small:
        run.font.size = Pt(SMALL_POINTS)
    if number:
        paragraph.alignment = WD_ALIGN_PARAGRAPH.RIGHT
