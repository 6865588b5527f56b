"""Brief and appendix as one list of blocks, for every form that is read from top to bottom.

Paper, Markdown and Word walk it; pages have links, runs that open, and a layout of their own.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator
from enum import Enum

from msgspec.structs import replace

from iolab.core.metric import Level
from iolab.record import Record
from iolab.report.brief import Brief
from iolab.report.charts.chart import ChartGroup, Figure, ReportSection
from iolab.report.formats.html import ReportPage
from iolab.report.phrases import (
    Objection,
    objection_runs_text,
    run_failure_sentence,
    titles_if_several,
)
from iolab.report.table import Table
from iolab.text import counted_noun


class Heading(Record):
    """A heading; the title of the whole is of level 0."""

    text: str
    level: int


class Style(Enum):
    """The role of a paragraph."""

    PLAIN = "plain"
    NOTE = "note"
    """A remark on the blocks before or after it."""
    STRONG = "strong"
    ALERT = "alert"
    ITEM = "item"
    """An item of a list."""


class Paragraph(Record):
    """A text; `verdict` stands before it, `note` after or below it."""

    text: str
    style: Style = Style.PLAIN
    verdict: Level | None = None
    note: str = ""


class UserText(Record):
    """Text of the user, in Markdown."""

    markdown: str


class Code(Record):
    """Text to be copied as it is."""

    text: str
    language: str = ""


class Figures(Record):
    """A group of figures; a form without pictures prints their tables instead.

    With `is_detailed` each figure has its title, its finding and its table. With
    `has_table_before` the numbers are in a table before the figures.
    """

    figures: tuple[Figure, ...]
    is_detailed: bool = False
    has_table_before: bool = False


class Drawing(Record):
    """The drawing of the hosts, with a text for readers who cannot see it."""

    alt_text: str


class Landscape(Record):
    """Blocks with wide tables, which paper shows in landscape."""

    blocks: tuple[Heading | Table, ...]


Block = Heading | Paragraph | UserText | Code | Table | Figures | Drawing | Landscape


def title_blocks(brief: Brief, page: ReportPage, part: str = "") -> Iterator[Block]:
    """The title of brief or appendix, for a form without a head of its own."""
    yield Heading(f"{brief.study.title}{part}", 0)
    yield from _paragraphs(brief.study.question)
    yield from (Paragraph(f"{name}: {value}", Style.ITEM) for name, value in page.facts)
    yield from (Paragraph(alert, Style.ALERT) for alert in page.alerts)


def brief_blocks(brief: Brief, page: ReportPage) -> Iterator[Block]:
    """The brief: answer, charts, what was measured and how."""
    yield from _user_blocks(brief.user_text.introduction)
    yield from _answer_blocks(page)
    groups = [group for group in page.workload_charts if group.figures or group.table]
    if groups:
        yield Heading("Load and latency", 1)
        styles = brief.series_styles.values()
        legends = [style.legend_text for style in styles if style.label != style.title]
        names = f"{'; '.join(legends)}." if legends else ""
        yield from _notes(f"{page.chart_notes} {names}".strip())
    for group in groups:
        yield from _group_blocks(group, in_brief=True)
    yield from _section_blocks(page.sections, in_brief=True)
    yield Heading("Test configuration", 1)
    if page.topology:
        yield Drawing(page.topology.alt_text)
    yield from page.configuration_tables
    if page.host_tables_by_names:
        yield page.hardware_table
    yield Heading("Method", 1)
    yield page.method_table
    if brief.user_text.conclusion:
        yield Heading("Conclusion", 1)
        yield from _user_blocks(brief.user_text.conclusion)


def appendix_blocks(brief: Brief, page: ReportPage, runs: Iterable[Block] = ()) -> Iterator[Block]:
    """Every caveat, run, host and job behind the brief; `runs` are the details of each run."""
    if page.findings:
        yield Heading("Key findings", 1)
        yield from _notes(page.findings_note)
        yield from (Paragraph(finding.text, Style.ITEM) for finding in page.findings)
    if page.gain_tables:
        yield Heading("Gains", 1)
    for table, note in page.gain_tables:
        yield table
        yield from _notes(note)
    yield from _caveat_blocks(brief, page)
    yield from _section_blocks(page.appendix_sections)
    yield Landscape((Heading("Every run", 1), *page.result_tables))
    if page.run_folders:
        yield page.run_folders
    yield from runs
    yield Heading("Hosts and workloads", 1)
    yield from (*page.job_tables, *page.guest_tables)
    for names, tables in page.host_tables_by_names:
        yield Heading(names, 2)
        yield from tables
    yield Heading("How to repeat it", 1)
    for repeat in page.how_to_repeat:
        if repeat.label:
            yield Heading(repeat.label, 2)
        yield Code(shlex.join(repeat.command))
        yield repeat.versions
        yield Paragraph("The study file as it was run:")
        yield Code(repeat.text, "toml")


def _answer_blocks(page: ReportPage) -> Iterator[Block]:
    """The answer, its confidence, the best of each workload, and the gravest caveats."""
    answer = page.answer
    yield Paragraph(answer.sentence, Style.STRONG)
    yield from _paragraphs(answer.confidence_text)
    yield _without_title(answer.best_table)
    yield from _notes(answer.table_note)
    if answer.chart:
        yield Figures((answer.chart,), has_table_before=True)
    if answer.caveats or answer.failed_runs_text:
        yield Heading("Caveats", 1)
        if answer.failed_runs_text:
            yield Paragraph(answer.failed_runs_text, Style.ITEM)
        yield from map(_objection_block, answer.caveats)
        if answer.hidden_caveat_count:
            more = counted_noun(answer.hidden_caveat_count, "more caveat")
            yield Paragraph(f"{more} in the appendix.")
    if page.session_tables:
        yield Heading("Sessions", 1)
        yield from page.session_tables


def _caveat_blocks(brief: Brief, page: ReportPage) -> Iterator[Block]:
    yield Heading("All caveats", 1)
    for result in page.failures:
        sentence = run_failure_sentence(result, titles_if_several(brief.study))
        yield Paragraph(sentence, Style.ITEM, result.verdict.level, result.status.value)
    yield from map(_objection_block, page.objections)
    if not page.failures and not page.objections:
        message = (
            "No check objects to any run." if brief.results else "There is no run to judge yet."
        )
        yield Paragraph(message)


def _objection_block(objection: Objection) -> Paragraph:
    note = f"{objection.codes_text}, {objection_runs_text(objection)}"
    return Paragraph(objection.message, Style.ITEM, objection.level, note)


def _section_blocks(
    sections: Iterable[ReportSection], *, in_brief: bool = False
) -> Iterator[Block]:
    for section in sections:
        yield Heading(section.title, 1)
        yield from _notes(section.introduction)
        for group in section.groups:
            if group.figures or group.table or not in_brief:
                yield from _group_blocks(group, in_brief=in_brief)


def _group_blocks(group: ChartGroup, *, in_brief: bool) -> Iterator[Block]:
    if group.title:
        yield Heading(group.title, 2)
    if group.table:
        yield group.table
    yield from _notes(group.note)
    if group.figures:
        yield Figures(group.figures, is_detailed=not in_brief)
    for table, note in () if in_brief else group.detail_tables:
        yield table
        yield from _notes(note if table.rows else "")


def _paragraphs(*texts: str) -> Iterator[Paragraph]:
    return (Paragraph(text) for text in texts if text)


def _notes(*texts: str) -> Iterator[Paragraph]:
    return (Paragraph(text, Style.NOTE) for text in texts if text)


def _user_blocks(markdown: str) -> Iterator[UserText]:
    return (UserText(text) for text in (markdown,) if text)


def _without_title(table: Table) -> Table:
    return replace(table, title="")
