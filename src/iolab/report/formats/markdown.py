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
from iolab.report.formats.html import ReportPage, make_page, numbers_of
from iolab.report.numbers import clean, count, mark
from iolab.report.phrases import Objection, failure_words, names_among_several, where
from iolab.report.table import Table
from iolab.report.table import markdown as table_text
from iolab.report.table import markdown_text as text

_FENCE: Final = re.compile(r"`{3,}")


def render_markdown(brief: Brief) -> str:
    """The brief; the same one gives the same text."""
    page = make_page(brief)
    words = brief.words
    before = ("", clean(words.introduction)) if words.introduction else ()
    after = ("", "## Conclusion", "", clean(words.conclusion)) if words.conclusion else ()
    parts = (
        *_head(brief, page, ""),
        *before,
        *_answer(page),
        *_charts(page),
        *_setup(page),
        *after,
    )
    return _text(parts)


def render_appendix(brief: Brief) -> str:
    """What backs the brief: every caveat, run, host and job."""
    page = make_page(brief)
    parts = (_findings(page), _caveats(brief, page), _sections(page.backing), _back(page))
    return _text((*_head(brief, page, ": appendix"), *(line for part in parts for line in part)))


def _text(lines: Iterable[str]) -> str:
    return "\n".join(lines) + "\n"


def _head(brief: Brief, page: ReportPage, part: str) -> Iterator[str]:
    yield f"# {text(brief.study.title)}{part}"
    if brief.study.question:
        yield from ("", text(brief.study.question))
    yield ""
    yield from (f"- {text(name)}: {text(value)}" for name, value in page.facts)
    yield from (line for alert in page.alerts for line in ("", f"> {text(alert)}"))


def _answer(page: ReportPage) -> Iterator[str]:
    answer = page.answer
    yield from ("", f"**{text(answer.says)}**", "", text(answer.sure))
    yield from _table(answer.matrix, title="")
    yield from ("", text(answer.note)) if answer.note else ()
    if answer.caveats or answer.failed:
        yield from ("", "## Caveats", "")
        yield from (f"- {text(answer.failed)}",) if answer.failed else ()
        yield from map(_objection, answer.caveats)
        yield from (
            ("", f"{count(answer.more, 'more caveat')} in the appendix.") if answer.more else ()
        )
    if page.sessions:
        yield from ("", "## Sessions")
        yield from _tables(page.sessions)


def _objection(objection: Objection) -> str:
    line = f"{text(objection.says)} ({text(objection.codes)}, {text(where(objection))})"
    return f"- {mark(objection.level)} **{objection.level.value}** {line}"


def _findings(page: ReportPage) -> Iterator[str]:
    if page.findings:
        yield from ("", "## Key findings", "")
        yield from (page.findings_note, "") if page.findings_note else ()
        yield from (f"- {text(finding.text)}" for finding in page.findings)
    if page.gains:
        yield from ("", "## Gains")
    for table, note in page.gains:
        yield from _table(table)
        yield from ("", text(note))


def _caveats(brief: Brief, page: ReportPage) -> Iterator[str]:
    yield from ("", "## All caveats", "")
    for result in page.failures:
        level = result.verdict.level
        why = failure_words(result, names_among_several(brief.study))
        yield f"- {mark(level)} **{level.value}** {text(why)}"
    yield from map(_objection, page.objections)
    if not page.failures and not page.objections:
        yield "No check objects to any run." if brief.results else "There is no run to judge yet."


def _charts(page: ReportPage) -> Iterator[str]:
    """The numbers behind the charts of the brief, which has none here."""
    for group in page.workloads:
        if group.figures or group.table:
            yield from ("", f"## {text(group.title)}")
            yield from _group(group, in_brief=True)
    yield from _sections(page.sections, in_brief=True)


def _sections(sections: Iterable[ReportSection], *, in_brief: bool = False) -> Iterator[str]:
    for section in sections:
        yield from ("", f"## {text(section.title)}")
        yield from ("", text(section.lede)) if section.lede else ()
        for group in section.groups:
            if in_brief and not (group.figures or group.table):
                continue
            yield from ("", f"### {text(group.title)}") if group.title else ()
            yield from _group(group, in_brief=in_brief)


def _group(group: ChartGroup, *, in_brief: bool) -> Iterator[str]:
    if group.table:
        yield from _table(group.table)
    yield from ("", text(group.note)) if group.note else ()
    if in_brief:
        for table in numbers_of(group.figures):
            yield from _table(table)
        return
    for figure in group.figures:
        yield from ("", f"### {text(figure.title)}", "", text(figure.finding))
        yield from _table(figure.table, title="")
    for part, note in group.more:
        yield from _table(part)
        yield from ("", text(note)) if note and part.rows else ()


def _setup(page: ReportPage) -> Iterator[str]:
    yield from ("", "## Test configuration")
    yield from ("", text(page.topology.alt)) if page.topology else ()
    yield from _tables((*page.configurations, *((page.hardware,) if page.hosts else ())))
    yield from ("", "## Method")
    yield from _tables((page.method,))


def _back(page: ReportPage) -> Iterator[str]:
    yield from ("", "## Every run")
    yield from _tables(page.results)
    yield from _tables((page.places,) if page.places else ())
    yield from ("", "## Hosts and workloads")
    yield from _tables((*page.jobs, *page.guests))
    for names, tables in page.hosts:
        yield from ("", f"### {text(names)}")
        yield from _tables(tables)
    yield from ("", "## How to repeat it")
    for repeat in page.how_to_repeat:
        yield from ("", f"### {text(repeat.label)}") if repeat.label else ()
        yield from ("", *fenced(shlex.join(repeat.command)))
        yield from _tables((repeat.versions,))
        yield from ("", "The study file as it was run:", "", *fenced(repeat.text, "toml"))


def _tables(tables: Iterable[Table]) -> Iterator[str]:
    for table in tables:
        if table.rows:
            yield from _table(table)


def _table(table: Table, title: str | None = None) -> Iterator[str]:
    name = table.title if title is None else title
    if not table.rows:
        return
    if name:
        yield from ("", f"**{text(name)}**")
    yield from ("", table_text(table))


def fenced(content: str, language: str = "") -> tuple[str, ...]:
    """A block of code whose fence is longer than any in it."""
    longest = max((len(run) for run in _FENCE.findall(content)), default=2)
    fence = "`" * (longest + 1)
    return (f"{fence}{language}", clean(content.rstrip("\n")), fence)
