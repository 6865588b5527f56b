"""Brief and appendix as one list of blocks, in the order in which they are read.

Every form walks the brief; pages have an appendix of their own, with runs that open.
"""

from __future__ import annotations

import re
import shlex
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from enum import Enum
from string import ascii_lowercase
from typing import Final

from msgspec.structs import replace

from iolab.core.metric import VerdictLevel
from iolab.record import Record
from iolab.report.brief import Brief
from iolab.report.charts.chart import (
    ALL_INDICATIVE_NOTE,
    NONE_VALID_NOTE,
    Chart,
    ChartGroup,
    ReportSection,
)
from iolab.report.fast_facts import FastFact
from iolab.report.narrative import LinkedSentence
from iolab.report.page import ReportPage, factor_out_shared_notes
from iolab.report.phrases import (
    Objection,
    objection_runs_text,
    run_failure_sentence,
    title_by_configuration_if_several,
)
from iolab.report.quotients import ANCHOR as VALUE_ANCHOR
from iolab.report.table import Table, split_table_at_group, table_with_constants_in_title
from iolab.report.value import TITLE as COST_GROUP
from iolab.text import capitalised, counted_noun

HARDWARE_TITLE: Final = "Hardware"
"""The heading of the section on the hosts, with which the last page of a PDF may begin."""

_LEAD: Final = re.compile(r"[^:.;()]{3,36}:(?= )")

NO_TABLES: Final[Mapping[str, Table]] = {}


class Heading(Record):
    """A heading; the title of the whole is of level 0. Links lead to one with an `anchor`."""

    text: str
    level: int
    anchor: str = ""


class ParagraphStyle(Enum):
    """The role of a paragraph."""

    PLAIN = "plain"
    NOTE = "note"
    """A remark on the blocks before or after it."""
    STRONG = "strong"
    ALERT = "alert"
    ITEM = "item"
    """An item of a list."""


class Paragraph(Record):
    """A text; `verdict` stands before it, `note` after or below it.

    On a page `links`, anchors and names, stand after it.
    """

    text: str
    style: ParagraphStyle = ParagraphStyle.PLAIN
    verdict: VerdictLevel | None = None
    note: str = ""
    links: tuple[tuple[str, str], ...] = ()

    @property
    def lead(self) -> str:
        """The few words up to a colon with which a plain text begins: what it is about."""
        found = _LEAD.match(self.text) if self.style is ParagraphStyle.PLAIN else None
        return found[0] if found else ""

    @property
    def text_after_lead(self) -> str:
        """The text without them."""
        return self.text[len(self.lead) :]


class UserTextBlock(Record):
    """Text of the user, in Markdown."""

    markdown: str


class CodeBlock(Record):
    """Text to be copied as it is."""

    text: str
    language: str = ""


class ChartBlock(Record):
    """A group of figures; a form without pictures prints their tables instead.

    With `is_detailed` each figure has its title, its finding and its table. With
    `has_table_before` the numbers are in a table before the figures.
    """

    charts: tuple[Chart, ...]
    is_detailed: bool = False
    has_table_before: bool = False


class TopologyBlock(Record):
    """The drawing of the hosts, with a text for readers who cannot see it."""

    alt_text: str


class LandscapeBlocks(Record):
    """Blocks with wide tables, which paper shows in landscape."""

    blocks: tuple[Heading | Table, ...]


class FastFactsBlock(Record):
    """A few figures to remember, beside each other."""

    facts: tuple[FastFact, ...]


class SideBySideBlocks(Record):
    """Blocks beside each other where there is room: the main ones on the left."""

    left: tuple[Heading | Paragraph | FastFactsBlock, ...]
    right: tuple[Heading | Paragraph, ...]


BasicBlock = Heading | Paragraph | UserTextBlock | CodeBlock | Table | ChartBlock | TopologyBlock
Block = BasicBlock | LandscapeBlocks | FastFactsBlock | SideBySideBlocks


def blocks_in_reading_order(blocks: Iterable[Block]) -> Iterator[BasicBlock]:
    """The blocks one below the other, for forms that place nothing side by side."""
    for block in blocks:
        match block:
            case LandscapeBlocks():
                yield from block.blocks
            case FastFactsBlock():
                yield from (Paragraph(fact.text, ParagraphStyle.ITEM) for fact in block.facts)
            case SideBySideBlocks():
                yield from blocks_in_reading_order((*block.left, *block.right))
            case _:
                yield block


def title_and_fact_blocks(
    brief: Brief, page: ReportPage, title_suffix: str = ""
) -> Iterator[Block]:
    """The title of brief or appendix, for a form without a head of its own."""
    yield Heading(f"{brief.study.title}{title_suffix}", 0)
    yield from _non_empty_paragraphs(brief.study.question)
    yield from (
        Paragraph(f"{name}: {value}", ParagraphStyle.ITEM) for name, value in page.fact_rows
    )


def brief_blocks(brief: Brief, page: ReportPage) -> Iterator[Block]:
    """The brief: the answer and its figures, what limits them, what was measured and how."""
    return with_chart_numbers(_unnumbered_brief_blocks(brief, page))


def with_chart_numbers(blocks: Iterable[Block]) -> Iterator[Block]:
    """The blocks, each group of figures with a number, and a letter for each of several.

    Figures of one title have their subjects before it.
    """
    number = 0
    for block in blocks:
        if isinstance(block, ChartBlock):
            number += 1
            letters = ascii_lowercase if len(block.charts) > 1 else ""
            titles = Counter(figure.title for figure in block.charts)
            names = [
                figure.heading if titles[figure.title] > 1 else figure.title
                for figure in block.charts
            ]
            yield replace(
                block,
                charts=tuple(
                    replace(figure, title=f"Fig {number}{letters[at : at + 1]}. {name}")
                    for at, (figure, name) in enumerate(zip(block.charts, names, strict=True))
                ),
            )
        else:
            yield block


def _unnumbered_brief_blocks(brief: Brief, page: ReportPage) -> Iterator[Block]:
    yield from _user_text_blocks(brief.user_text.introduction)
    yield from _answer_blocks(page)
    yield from _workload_chart_blocks(page)
    _, stated = _performance_and_cost_tables(page)
    tables = {VALUE_ANCHOR: stated} if stated else {}
    yield from _section_blocks(page.sections, tables, is_in_brief=True)
    yield Heading(HARDWARE_TITLE, 1, "configuration")
    yield from _tables_without_repeated_title(HARDWARE_TITLE, page.hardware_tables)
    if page.topology and page.has_topology_in_brief:
        yield TopologyBlock(page.topology.alt_text)
    elif page.topology is None:
        yield Paragraph("No host was reached yet.")
    if page.session_tables:
        yield Heading("Sessions", 1, "sessions")
        yield from page.session_tables
    yield Heading("Method", 1, "method")
    yield _table_without_title(page.method_table)
    yield from _answer_caveat_blocks(page)
    yield from _first_findings_blocks(page)
    if brief.user_text.conclusion:
        yield Heading("Conclusion", 1, "conclusion")
        yield from _user_text_blocks(brief.user_text.conclusion)


def appendix_blocks(
    brief: Brief, page: ReportPage, run_blocks: Iterable[Block] = ()
) -> Iterator[Block]:
    """Every caveat, run, host and job behind the brief; `run_blocks` are the details of runs."""
    if page.further_findings:
        yield Heading("More findings", 1)
        yield from map(linked_sentence_block, page.further_findings)
    if page.gain_tables_with_notes:
        yield Heading("Gains", 1)
    for table, note in page.gain_tables_with_notes:
        yield table
        yield from _note_paragraphs(note)
    yield from _all_caveat_blocks(brief, page)
    yield from _section_blocks(page.appendix_sections)
    yield LandscapeBlocks((Heading("Every run", 1), *page.result_tables))
    if page.run_folders:
        yield page.run_folders
    yield from run_blocks
    yield Heading("Hosts and workloads", 1)
    yield from (*page.job_tables, *page.guest_tables)
    for names, tables in page.host_tables_by_names:
        yield Heading(names, 2)
        yield from tables
    yield Heading("How to repeat it", 1)
    for repeat in page.reproduction_instructions:
        if repeat.label:
            yield Heading(repeat.label, 2)
        yield CodeBlock(shlex.join(repeat.command))
        yield repeat.versions
        yield Paragraph("The study file as it was run:")
        yield CodeBlock(repeat.study_text, "toml")


def _answer_blocks(page: ReportPage) -> Iterator[Block]:
    """The answer beside how far it can be trusted, its facts, the matrix and its charts."""
    answer = page.answer
    if warning := " ".join(filter(None, (page.hardware_caveat, *page.alerts))):
        yield Paragraph(warning, ParagraphStyle.ALERT)
    yield SideBySideBlocks(
        (
            Heading("Answer", 1, "answer"),
            Paragraph(answer.answer.sentence, ParagraphStyle.STRONG),
            *_non_empty_paragraphs(answer.answer.details, answer.conclusion, *answer.detail_texts),
            *((FastFactsBlock(answer.fast_facts),) if answer.fast_facts else ()),
        ),
        (
            Heading("Trust", 1, "trust"),
            *_non_empty_paragraphs(*answer.trust_texts),
        ),
    )
    if answer.best_table.rows:
        measured, _ = _performance_and_cost_tables(page)
        yield Heading(measured.title, 1, "matrix")
        yield _table_without_title(measured)
        yield from _note_paragraphs(answer.table_note)
    if answer.charts:
        charts = tuple(map(_without_note_of_table, answer.charts))
        (group,), notes = factor_out_shared_notes([ChartGroup("", charts)])
        yield ChartBlock(group.charts, has_table_before=True)
        yield from _note_paragraphs(notes)


def _without_note_of_table(figure: Chart) -> Chart:
    """A figure below the matrix, whose note says that figures are indicative where all are."""
    note = figure.note
    for sentence in (ALL_INDICATIVE_NOTE, NONE_VALID_NOTE):
        note = note.replace(sentence, "").strip()
    return replace(figure, note=note)


def _performance_and_cost_tables(page: ReportPage) -> tuple[Table, Table | None]:
    """The matrix, and its rows of cost and capacity where a section of these has them."""
    table = page.answer.best_table
    if not any(section.anchor == VALUE_ANCHOR for section in page.sections):
        return table, None
    return split_table_at_group(table, COST_GROUP)


def _workload_chart_blocks(page: ReportPage) -> Iterator[Block]:
    """The charts of all workloads as one group, after the tables that some of them have."""
    groups = [group for group in page.charts_by_workload if group.charts or group.table]
    if not groups:
        return
    yield Heading("Load and latency", 1, "charts")
    # A chart of rate over latency has the title of its workload.
    if any(figure.title == figure.subject for group in groups for figure in group.charts):
        reference = f"Fig {1 + bool(page.answer.charts)}"
        yield from _note_paragraphs(
            f"{reference}: the rate of each load, and the latency below it."
        )
    for group in groups:
        if group.table:
            yield table_with_constants_in_title(group.table)
            yield from _note_paragraphs(group.note)
    figures = tuple(figure for group in groups for figure in group.charts)
    if figures:
        yield ChartBlock(figures)
        yield from _note_paragraphs(page.chart_notes)


def _answer_caveat_blocks(page: ReportPage) -> Iterator[Block]:
    """The caveats that touch a figure of the first page."""
    answer = page.answer
    if not answer.caveats and not answer.failed_runs_text:
        return
    yield Heading("Caveats", 1, "caveats")
    if answer.failed_runs_text:
        yield Paragraph(answer.failed_runs_text, ParagraphStyle.ITEM, VerdictLevel.INVALID)
    yield from map(brief_objection_block, answer.caveats)
    if answer.hidden_caveat_count:
        more = counted_noun(answer.hidden_caveat_count, "more caveat")
        yield Paragraph(f"{more} in the appendix.", ParagraphStyle.NOTE)


def _first_findings_blocks(page: ReportPage) -> Iterator[Block]:
    """The first findings, each with its runs; what to take is the answer's."""
    if not page.findings:
        return
    yield Heading("Bottom line", 1, "findings")
    yield from map(linked_sentence_block, page.findings)
    yield from _note_paragraphs(page.findings_note)


def linked_sentence_block(sentence: LinkedSentence) -> Paragraph:
    """A sentence on what was found, with its runs."""
    return Paragraph(sentence.text, ParagraphStyle.ITEM, links=sentence.links)


def _all_caveat_blocks(brief: Brief, page: ReportPage) -> Iterator[Block]:
    yield Heading("All caveats", 1)
    for result in page.failures:
        sentence = run_failure_sentence(result, title_by_configuration_if_several(brief.study))
        yield Paragraph(sentence, ParagraphStyle.ITEM, result.verdict.level, result.status.value)
    yield from map(objection_block, page.objections)
    if not page.failures and not page.objections:
        message = (
            "No check objects to any run." if brief.results else "There is no run to judge yet."
        )
        yield Paragraph(message)


def brief_objection_block(objection: Objection) -> Paragraph:
    """The same in the brief, whose readers know no codes of checks."""
    return replace(objection_block(objection), note=capitalised(objection_runs_text(objection)))


def objection_block(objection: Objection) -> Paragraph:
    """A caveat with its verdict, and the runs that it is of."""
    note = f"{objection.codes_text}, {objection_runs_text(objection)}"
    return Paragraph(objection.message, ParagraphStyle.ITEM, objection.verdict_level, note)


def _section_blocks(
    sections: Iterable[ReportSection],
    first_table_by_anchor: Mapping[str, Table] = NO_TABLES,
    *,
    is_in_brief: bool = False,
) -> Iterator[Block]:
    """The sections; `first_table_by_anchor` has what those of these anchors begin with."""
    for section in sections:
        yield Heading(section.title, 1, section.anchor)
        if section.anchor in first_table_by_anchor:
            yield first_table_by_anchor[section.anchor]
        yield from _note_paragraphs(section.introduction)
        for group in section.groups:
            if group.charts or group.table or not is_in_brief:
                yield from _chart_group_blocks(group, section.title, is_in_brief=is_in_brief)


def _chart_group_blocks(
    group: ChartGroup, section_title: str, *, is_in_brief: bool
) -> Iterator[Block]:
    if group.title:
        yield Heading(group.title, 2)
    if group.table:
        (table,) = _tables_without_repeated_title(section_title, [group.table])
        yield table_with_constants_in_title(table) if is_in_brief else table
    yield from _note_paragraphs(group.note)
    yield from _table_and_note_blocks(group.tables_below_with_notes)
    if group.charts:
        yield ChartBlock(group.charts, is_detailed=not is_in_brief)
    yield from _table_and_note_blocks(() if is_in_brief else group.detail_tables_with_notes)


def _table_and_note_blocks(tables_with_notes: Iterable[tuple[Table, str]]) -> Iterator[Block]:
    for table, note in tables_with_notes:
        yield table
        yield from _note_paragraphs(note if table.rows else "")


def _non_empty_paragraphs(*texts: str) -> Iterator[Paragraph]:
    return (Paragraph(text) for text in texts if text)


def _note_paragraphs(*texts: str) -> Iterator[Paragraph]:
    return (Paragraph(text, ParagraphStyle.NOTE) for text in texts if text)


def _user_text_blocks(markdown: str) -> Iterator[UserTextBlock]:
    return (UserTextBlock(text) for text in (markdown,) if text)


def _tables_without_repeated_title(heading: str, tables: Iterable[Table]) -> Iterator[Table]:
    """The tables, those without their title that have the same as the heading above them."""
    for table in tables:
        yield _table_without_title(table) if table.title == heading else table


def _table_without_title(table: Table) -> Table:
    return replace(table, title="")
