"""The brief as a Word document, to be edited by whoever sends it on; charts are pictures.

The only door to python-docx, which is an extra of the package.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from docx.enum.text import WD_ALIGN_PARAGRAPH
from docx.shared import Inches, Pt
from msgspec.structs import replace

from iolab.errors import ReportError
from iolab.report.blocks import (
    BasicBlock,
    ChartBlock,
    CodeBlock,
    Heading,
    Paragraph,
    ParagraphStyle,
    TopologyBlock,
    UserTextBlock,
    blocks_in_reading_order,
    brief_blocks,
    title_and_fact_blocks,
)
from iolab.report.brief import Brief
from iolab.report.charts.chart import Chart
from iolab.report.formats.render import PAPER_WIDTHS, chart_pngs
from iolab.report.numbers import verdict_mark
from iolab.report.page import build_report_page
from iolab.report.table import Cell, Table
from iolab.report.user_text import markdown_to_blocks
from iolab.text import escape_invisible

if TYPE_CHECKING:
    from docx.document import Document
    from docx.text.paragraph import Paragraph as WordParagraph

PAGE_INCHES: Final = 6.0
GUTTER_INCHES: Final = 0.15
SMALL_POINTS: Final = 8
WIDE_TABLE_COLUMNS: Final = 7
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
    document = docx.Document()
    document.core_properties.title = escape_invisible(brief.study.title)
    document.core_properties.author = ""
    page = build_report_page(brief)
    every = (*title_and_fact_blocks(brief, page), *brief_blocks(brief, page))
    for block in blocks_in_reading_order(every):
        _add_block(document, block)
    written = io.BytesIO()
    document.save(written)
    return written.getvalue()


def _add_block(document: Document, block: BasicBlock) -> None:
    match block:
        case Heading():
            document.add_heading(escape_invisible(block.text), block.level)
        case Paragraph():
            level = block.verdict
            before = f"{verdict_mark(level)} {level.value}: " if level else ""
            after = f" ({block.note})" if block.note else ""
            style = "List Bullet" if block.style is ParagraphStyle.ITEM else None
            text = escape_invisible(f"{before}{block.text}{after}")
            run = document.add_paragraph(style=style).add_run(text)
            run.bold = block.style is ParagraphStyle.STRONG or None
        case TopologyBlock():
            document.add_paragraph(escape_invisible(block.alt_text))
        case UserTextBlock():
            _add_user_text(document, block.markdown)
        case CodeBlock():
            document.add_paragraph(escape_invisible(block.text))
        case Table():
            _add_table(document, block)
        case ChartBlock():
            _add_charts(document, block.charts)


def _add_charts(document: Document, charts: Sequence[Chart]) -> None:
    columns = 1 if len(charts) == 1 else 2
    drawn = [replace(chart, fixed_width=PAPER_WIDTHS[12 // columns]) for chart in charts]
    grid = document.add_table(rows=-(-len(drawn) // columns), cols=columns)
    for place, (chart, png) in enumerate(zip(drawn, chart_pngs(drawn), strict=True)):
        cell = grid.cell(*divmod(place, columns))
        cell.paragraphs[0].add_run(escape_invisible(chart.title)).bold = True
        width = Inches(PAGE_INCHES / columns - GUTTER_INCHES)
        picture = cell.add_paragraph().add_run().add_picture(io.BytesIO(png), width=width)
        picture._inline.docPr.set("descr", escape_invisible(chart.alt_text))
        if chart.note:
            cell.add_paragraph(escape_invisible(chart.note))
    document.add_paragraph()


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
                place.paragraphs[0],
                cell,
                is_number=column.is_number,
                is_small=len(heads) > WIDE_TABLE_COLUMNS,
            )
    document.add_paragraph()


def _write_cell(paragraph: WordParagraph, cell: Cell, *, is_number: bool, is_small: bool) -> None:
    sign = f"{verdict_mark(cell.verdict_level)} " if cell.verdict_level else ""
    run = paragraph.add_run(escape_invisible(f"{sign}{cell.one_line_text}"))
    run.bold = cell.is_bold
    if is_small:
        run.font.size = Pt(SMALL_POINTS)
    if is_number:
        paragraph.alignment = WD_ALIGN_PARAGRAPH.RIGHT
