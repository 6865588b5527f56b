"""The report as Markdown, brief and appendix, for a wiki or a pull request.

Charts are left to the other forms; the tables behind them are here. All foreign text is escaped, so
that none of it is read as markup or as HTML.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator
from typing import Final

from iolab.report.brief import Brief
from iolab.report.charts.chart import ChartGroup, ReportSection
from iolab.report.formats.html import ReportPage, build_report_page, distinct_figure_tables
from iolab.report.numbers import verdict_mark
from iolab.report.phrases import (
    Objection,
    objection_runs_text,
    run_failure_sentence,
    titles_if_several,
)
from iolab.report.table import Table
from iolab.report.table import escape_markdown as text
from iolab.report.table import table_markdown as table_text
from iolab.text import counted_noun, escape_invisible

_FENCE: Final = re.compile(r"`{3,}")


def render_markdown(brief: Brief) -> str:
    """The brief; the same one gives the same text."""
    page = build_report_page(brief)
    words = brief.user_text
    before = ("", escape_invisible(words.introduction)) if words.introduction else ()
    after = (
        ("", "## Conclusion", "", escape_invisible(words.conclusion)) if words.conclusion else ()
    )
    parts = (
        *_header_lines(brief, page, ""),
        *before,
        *_answer_lines(page),
        *_chart_table_lines(page),
        *_setup_lines(page),
        *after,
    )
    return _join_lines(parts)


def render_appendix(brief: Brief) -> str:
    """What backs the brief: every caveat, run, host and job."""
    page = build_report_page(brief)
    parts = (
        _finding_lines(page),
        _caveat_lines(brief, page),
        _section_lines(page.appendix_sections),
        _appendix_lines(page),
    )
    return _join_lines(
        (*_header_lines(brief, page, ": appendix"), *(line for part in parts for line in part))
    )


def _join_lines(lines: Iterable[str]) -> str:
    return "\n".join(lines) + "\n"


def _header_lines(brief: Brief, page: ReportPage, part: str) -> Iterator[str]:
    yield f"# {text(brief.study.title)}{part}"
    if brief.study.question:
        yield from ("", text(brief.study.question))
    yield ""
    yield from (f"- {text(name)}: {text(value)}" for name, value in page.facts)
    yield from (line for alert in page.alerts for line in ("", f"> {text(alert)}"))


def _answer_lines(page: ReportPage) -> Iterator[str]:
    answer = page.answer
    yield from ("", f"**{text(answer.sentence)}**", "", text(answer.confidence_text))
    yield from _table_lines(answer.best_table, title="")
    yield from ("", text(answer.table_note)) if answer.table_note else ()
    if answer.caveats or answer.failed_runs_text:
        yield from ("", "## Caveats", "")
        yield from (f"- {text(answer.failed_runs_text)}",) if answer.failed_runs_text else ()
        yield from map(_objection_line, answer.caveats)
        yield from (
            ("", f"{counted_noun(answer.hidden_caveat_count, 'more caveat')} in the appendix.")
            if answer.hidden_caveat_count
            else ()
        )
    if page.session_tables:
        yield from ("", "## Sessions")
        yield from _table_list_lines(page.session_tables)


def _objection_line(objection: Objection) -> str:
    line = (
        f"{text(objection.message)} ({text(objection.codes_text)}, "
        f"{text(objection_runs_text(objection))})"
    )
    return f"- {verdict_mark(objection.level)} **{objection.level.value}** {line}"


def _finding_lines(page: ReportPage) -> Iterator[str]:
    if page.findings:
        yield from ("", "## Key findings", "")
        yield from (page.findings_note, "") if page.findings_note else ()
        yield from (f"- {text(finding.text)}" for finding in page.findings)
    if page.gain_tables:
        yield from ("", "## Gains")
    for table, note in page.gain_tables:
        yield from _table_lines(table)
        yield from ("", text(note))


def _caveat_lines(brief: Brief, page: ReportPage) -> Iterator[str]:
    yield from ("", "## All caveats", "")
    for result in page.failures:
        level = result.verdict.level
        why = run_failure_sentence(result, titles_if_several(brief.study))
        yield f"- {verdict_mark(level)} **{level.value}** {text(why)}"
    yield from map(_objection_line, page.objections)
    if not page.failures and not page.objections:
        yield "No check objects to any run." if brief.results else "There is no run to judge yet."


def _chart_table_lines(page: ReportPage) -> Iterator[str]:
    """The numbers behind the charts of the brief, which has none here."""
    for group in page.workload_charts:
        if group.figures or group.table:
            yield from ("", f"## {text(group.title)}")
            yield from _chart_group_lines(group, in_brief=True)
    yield from _section_lines(page.sections, in_brief=True)


def _section_lines(sections: Iterable[ReportSection], *, in_brief: bool = False) -> Iterator[str]:
    for section in sections:
        yield from ("", f"## {text(section.title)}")
        yield from ("", text(section.introduction)) if section.introduction else ()
        for group in section.groups:
            if in_brief and not (group.figures or group.table):
                continue
            yield from ("", f"### {text(group.title)}") if group.title else ()
            yield from _chart_group_lines(group, in_brief=in_brief)


def _chart_group_lines(group: ChartGroup, *, in_brief: bool) -> Iterator[str]:
    if group.table:
        yield from _table_lines(group.table)
    yield from ("", text(group.note)) if group.note else ()
    if in_brief:
        for table in distinct_figure_tables(group.figures):
            yield from _table_lines(table)
        return
    for figure in group.figures:
        yield from ("", f"### {text(figure.title)}", "", text(figure.finding))
        yield from _table_lines(figure.table, title="")
    for part, note in group.detail_tables:
        yield from _table_lines(part)
        yield from ("", text(note)) if note and part.rows else ()


def _setup_lines(page: ReportPage) -> Iterator[str]:
    yield from ("", "## Test configuration")
    yield from ("", text(page.topology.alt_text)) if page.topology else ()
    yield from _table_list_lines(
        (*page.configuration_tables, *((page.hardware_table,) if page.host_tables_by_names else ()))
    )
    yield from ("", "## Method")
    yield from _table_list_lines((page.method_table,))


def _appendix_lines(page: ReportPage) -> Iterator[str]:
    yield from ("", "## Every run")
    yield from _table_list_lines(page.result_tables)
    yield from _table_list_lines((page.run_folders,) if page.run_folders else ())
    yield from ("", "## Hosts and workloads")
    yield from _table_list_lines((*page.job_tables, *page.guest_tables))
    for names, tables in page.host_tables_by_names:
        yield from ("", f"### {text(names)}")
        yield from _table_list_lines(tables)
    yield from ("", "## How to repeat it")
    for repeat in page.how_to_repeat:
        yield from ("", f"### {text(repeat.label)}") if repeat.label else ()
        yield from ("", *fenced_code_block(shlex.join(repeat.command)))
        yield from _table_list_lines((repeat.versions,))
        yield from (
            "",
            "The study file as it was run:",
            "",
            *fenced_code_block(repeat.text, "toml"),
        )


def _table_list_lines(tables: Iterable[Table]) -> Iterator[str]:
    for table in tables:
        if table.rows:
            yield from _table_lines(table)


def _table_lines(table: Table, title: str | None = None) -> Iterator[str]:
    name = table.title if title is None else title
    if not table.rows:
        return
    if name:
        yield from ("", f"**{text(name)}**")
    yield from ("", table_text(table))


def fenced_code_block(content: str, language: str = "") -> tuple[str, ...]:
    """A block of code whose fence is longer than any in it."""
    longest = max((len(run) for run in _FENCE.findall(content)), default=2)
    fence = "`" * (longest + 1)
    return (f"{fence}{language}", escape_invisible(content.rstrip("\n")), fence)
