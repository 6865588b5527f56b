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
from iolab.report.formats.html import ReportPage, build_report_page
from iolab.report.formats.render import figure_pngs
from iolab.report.numbers import verdict_mark
from iolab.report.phrases import objection_runs_text
from iolab.report.table import Cell, Table
from iolab.report.user_text import markdown_to_blocks
from iolab.text import escape_invisible

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
    page, document = build_report_page(brief), docx.Document()
    document.core_properties.title = escape_invisible(brief.study.title)
    document.core_properties.author = ""
    document.add_heading(escape_invisible(brief.study.title), 0)
    _add_paragraphs(document, [brief.study.question, "; ".join(f"{k}: {v}" for k, v in page.facts)])
    _add_paragraphs(document, page.alerts)
    _add_user_text(document, brief.user_text.introduction)
    _add_answer(document, page)
    if page.workload_charts:
        document.add_heading("Load and latency", 1)
        _add_paragraphs(document, [page.chart_notes])
    for group in page.workload_charts:
        _add_chart_group(document, group)
    for section in page.sections:
        document.add_heading(escape_invisible(section.title), 1)
        _add_paragraphs(document, [section.introduction])
        for group in section.groups:
            _add_chart_group(document, group)
    document.add_heading("Test configuration", 1)
    _add_paragraphs(document, [page.topology.alt_text] if page.topology else [])
    for table in (*page.configuration_tables, page.hardware_table):
        _add_table(document, table)
    document.add_heading("Method", 1)
    _add_table(document, page.method_table)
    if brief.user_text.conclusion:
        document.add_heading("Conclusion", 1)
        _add_user_text(document, brief.user_text.conclusion)
    written = io.BytesIO()
    document.save(written)
    return written.getvalue()


def _add_answer(document: Document, page: ReportPage) -> None:
    """The answer, how sure it is, the best of each workload, and the gravest caveats."""
    answer = page.answer
    document.add_paragraph().add_run(escape_invisible(answer.sentence)).bold = True
    _add_paragraphs(document, [answer.confidence_text])
    _add_table(document, answer.best_table)
    _add_paragraphs(document, [answer.table_note])
    _add_figures(document, [answer.chart] if answer.chart else [])
    if answer.caveats or answer.failed_runs_text:
        document.add_heading("Caveats", 2)
    _add_paragraphs(document, [answer.failed_runs_text])
    for caveat in answer.caveats:
        level = f"{verdict_mark(caveat.level)} {caveat.level.value}"
        text = f"{level}: {caveat.message} ({caveat.codes_text}, {objection_runs_text(caveat)})"
        document.add_paragraph(escape_invisible(text), style="List Bullet")


def _add_chart_group(document: Document, group: ChartGroup) -> None:
    document.add_heading(escape_invisible(group.title), 2)
    if group.table:
        _add_table(document, group.table)
    _add_paragraphs(document, [group.note])
    _add_figures(document, group.figures)


def _add_figures(document: Document, figures: Sequence[Figure]) -> None:
    from docx.shared import Inches

    for figure, png in zip(figures, figure_pngs(figures), strict=True):
        document.add_paragraph().add_run(escape_invisible(figure.title)).bold = True
        picture = document.add_picture(io.BytesIO(png), width=Inches(FIGURE_INCHES))
        picture._inline.docPr.set("descr", escape_invisible(figure.alt_text))
        _add_paragraphs(document, [figure.note])


def _add_paragraphs(document: Document, texts: Iterable[str]) -> None:
    for text in texts:
        if text:
            document.add_paragraph(escape_invisible(text))


def _add_user_text(document: Document, markdown: str) -> None:
    """What the user says beside it."""
    for block in markdown_to_blocks(markdown):
        text = escape_invisible("".join(str(run["text"]) for run in block["runs"]))
        if block["kind"] == "heading":
            document.add_heading(text, 2)
        else:
            style = "List Bullet" if block["kind"] == "item" else None
            document.add_paragraph(text, style=style)


def _add_table(document: Document, table: Table) -> None:
    """The table under its headings, numbers to the right."""
    if not table.rows:
        return
    heads = tuple(Cell(column.title, is_bold=True) for column in table.columns)
    drawn = document.add_table(rows=0, cols=len(heads), style="Light List Accent 1")
    for cells in (heads, *table.rows):
        for column, cell, place in zip(table.columns, cells, drawn.add_row().cells, strict=True):
            _write_cell(
                place.paragraphs[0], cell, is_number=column.is_number, is_small=len(heads) > WIDE
            )
    document.add_paragraph()


def _write_cell(paragraph: Paragraph, cell: Cell, *, is_number: bool, is_small: bool) -> None:
    from docx.enum.text import WD_ALIGN_PARAGRAPH
    from docx.shared import Pt

    sign = f"{verdict_mark(cell.level)} " if cell.level else ""
    run = paragraph.add_run(escape_invisible(f"{sign}{cell.one_line_text}"))
    run.bold = cell.is_bold
    if is_small:
        run.font.size = Pt(SMALL_POINTS)
    if is_number:
        paragraph.alignment = WD_ALIGN_PARAGRAPH.RIGHT
