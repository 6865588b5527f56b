"""The report as Markdown, brief and appendix, for a wiki or a pull request.

Charts are left to the other forms; the tables behind them are here. All foreign text is escaped, so
that none of it is read as markup or as HTML.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final

from iolab.report.blocks import (
    BasicBlock,
    Block,
    ChartBlock,
    CodeBlock,
    Heading,
    Paragraph,
    ParagraphStyle,
    TopologyBlock,
    UserTextBlock,
    appendix_blocks,
    blocks_in_reading_order,
    brief_blocks,
    title_and_fact_blocks,
)
from iolab.report.brief import Brief
from iolab.report.numbers import verdict_mark
from iolab.report.page import build_report_page, distinct_chart_tables
from iolab.report.table import Table
from iolab.report.table import escape_markdown as text
from iolab.report.table import table_markdown as table_text
from iolab.text import escape_invisible

_FENCE: Final = re.compile(r"`{3,}")

_STYLE_FORMATS: Final = {
    ParagraphStyle.PLAIN: "{}",
    ParagraphStyle.NOTE: "{}",
    ParagraphStyle.STRONG: "**{}**",
    ParagraphStyle.ALERT: "> {}",
    ParagraphStyle.ITEM: "- {}",
}


def render_markdown(brief: Brief) -> str:
    """The brief; the same one gives the same text."""
    page = build_report_page(brief)
    return _blocks_markdown((*title_and_fact_blocks(brief, page), *brief_blocks(brief, page)))


def render_appendix(brief: Brief) -> str:
    """What backs the brief: every caveat, run, host and job."""
    page = build_report_page(brief)
    return _blocks_markdown(
        (*title_and_fact_blocks(brief, page, ": appendix"), *appendix_blocks(brief, page))
    )


def _blocks_markdown(blocks: Iterable[Block]) -> str:
    lines: list[str] = []
    in_list = False
    for block in blocks_in_reading_order(blocks):
        is_item = isinstance(block, Paragraph) and block.style is ParagraphStyle.ITEM
        for number, line in enumerate(_block_lines(block)):
            if lines and not (number == 0 and is_item and in_list):
                lines.append("")
            lines.append(line)
        in_list = is_item
    return "\n".join(lines) + "\n"


def _block_lines(block: BasicBlock) -> Iterator[str]:
    """The block's paragraphs: an empty line parts them."""
    match block:
        case Heading():
            yield f"{'#' * (block.level + 1)} {text(block.text)}"
        case Paragraph():
            level = block.verdict
            before = f"{verdict_mark(level)} **{level.value}** " if level else ""
            after = f" ({text(block.note)})" if block.note else ""
            yield _STYLE_FORMATS[block.style].format(f"{before}{text(block.text)}{after}")
        case TopologyBlock():
            yield text(block.alt_text)
        case UserTextBlock():
            yield escape_invisible(block.markdown)
        case CodeBlock():
            yield "\n".join(fenced_code_block(block.text, block.language))
        case Table():
            yield from _table_lines(block)
        case ChartBlock():
            yield from _chart_lines(block)


def _chart_lines(block: ChartBlock) -> Iterator[str]:
    if block.is_detailed:
        for chart in block.charts:
            yield from (f"### {text(chart.title)}", text(chart.finding), table_text(chart.table))
    elif not block.has_table_before:
        for table in distinct_chart_tables(block.charts):
            yield from _table_lines(table)


def _table_lines(table: Table) -> Iterator[str]:
    if table.rows and table.title:
        yield f"**{text(table.title)}**"
    if table.rows:
        yield table_text(table)


def fenced_code_block(content: str, language: str = "") -> tuple[str, ...]:
    """A block of code whose fence is longer than any in it."""
    longest = max((len(run) for run in _FENCE.findall(content)), default=2)
    fence = "`" * (longest + 1)
    return (f"{fence}{language}", escape_invisible(content.rstrip("\n")), fence)
