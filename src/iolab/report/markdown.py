"""The report as Markdown: its sentences and its tables, for a wiki or a pull request.

Charts are left to the other forms; the tables behind them are here. All foreign text is escaped, so
that none of it is read as markup or as HTML.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator
from typing import Final

from iolab.report.brief import Brief
from iolab.report.caveats import names_among_several, where, whose_run
from iolab.report.html import Page, make_page
from iolab.report.numbers import clean, mark
from iolab.report.page_parts import ChartGroup
from iolab.report.table import Cell, Table

_SPECIAL: Final = re.compile(r"([\\`*_\[\]<>#|~&$]|:(?=//)|(?<=\bwww)\.)", re.IGNORECASE)
"""What begins markup, also that of GitHub, which makes links of bare addresses."""

_START: Final = re.compile(r"^(\d{0,9})([-+=.)])(?=[ =-]|$)")
"""What makes a list, a rule or a heading of the line that begins with it."""

_FENCE: Final = re.compile(r"`{3,}")


def render_markdown(brief: Brief) -> str:
    """The document; the same brief gives the same text."""
    page = make_page(brief)
    parts = (_front(brief, page), _know(brief, page), _charts(page), _back(page))
    return "\n".join(line for part in parts for line in part) + "\n"


def _front(brief: Brief, page: Page) -> Iterator[str]:
    yield f"# {text(brief.study.title)}"
    if brief.study.question:
        yield from ("", text(brief.study.question))
    yield ""
    yield from (f"- {text(name)}: {text(told)}" for name, told in page.facts)
    yield from (line for alert in page.alerts for line in ("", f"> {text(alert)}"))
    yield from ("", "## Headline figures", "", text(page.summary))
    yield from _table(page.headline_table, title="")
    if page.said:
        yield from ("", "## Key findings", "")
        yield from (f"- {text(one.text)}" for one in page.said)
    if page.sessions:
        yield from ("", "## Sessions")
        yield from _tables(page.sessions)


def _know(brief: Brief, page: Page) -> Iterator[str]:
    yield from ("", "## Caveats", "")
    for result in page.failures:
        level = result.verdict.level
        name = whose_run(result, names_among_several(brief.study))
        why = f"{name} failed or was interrupted. {result.failure or ''}".strip()
        yield f"- {mark(level)} **{level.value}** {text(why)}"
    for item in page.objections:
        level = item.level
        told = f"{text(item.says)} ({text(item.code)}, {text(where(item))})"
        yield f"- {mark(level)} **{level.value}** {told}"
    if not page.failures and not page.objections:
        yield "No check objects to any run." if brief.results else "There is no run to judge yet."


def _charts(page: Page) -> Iterator[str]:
    for item in page.workloads:
        yield from ("", f"## {text(item.title)}")
        yield from _group(item)
    for section in page.sections:
        yield from ("", f"## {text(section.title)}", "", text(section.lede))
        for item in section.groups:
            yield from ("", f"### {text(item.title)}") if item.title else ()
            yield from _group(item)


def _group(item: ChartGroup) -> Iterator[str]:
    if item.table:
        yield from _table(item.table)
    yield from ("", text(item.note)) if item.note else ()
    for figure in item.figures:
        yield from ("", f"### {text(figure.title)}", "", text(figure.finding))
        yield from _table(figure.table, title="")
    for part, note in item.more:
        yield from _table(part)
        yield from ("", text(note)) if note and part.rows else ()


def _back(page: Page) -> Iterator[str]:
    yield from ("", "## Every run")
    yield from _tables(page.results)
    yield from _tables((page.places,) if page.places else ())
    yield from ("", "## Test configuration")
    yield from _tables((page.configurations, *page.guests))
    for names, tables in page.hosts:
        yield from ("", f"### {text(names)}")
        yield from _tables(tables)
    yield from ("", "## Method")
    yield from _tables((page.method, *page.jobs))
    yield from ("", "## How to repeat it")
    for one in page.repeats:
        yield from ("", f"### {text(one.label)}") if one.label else ()
        yield from ("", *fenced(shlex.join(one.command)))
        yield from _tables((one.versions,))
        yield from ("", "The study file as it was run:", "", *fenced(one.text, "toml"))


def _tables(tables: Iterable[Table]) -> Iterator[str]:
    for one in tables:
        if one.rows:
            yield from _table(one)


def _table(one: Table, title: str | None = None) -> Iterator[str]:
    name = one.title if title is None else title
    if not one.rows:
        return
    if name:
        yield from ("", f"**{text(name)}**")
    yield ""
    yield _row(text(column.title) for column in one.columns)
    yield _row("---:" if column.number else "---" for column in one.columns)
    yield from (_row(_cell(cell) for cell in cells) for cells in one.rows)


def _row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _cell(cell: Cell) -> str:
    told = text(cell.text)
    return told if cell.level is None else f"{mark(cell.level)} {told}"


def text(foreign: str) -> str:
    """A text on one line of Markdown, with nothing in it read as markup."""
    line = _SPECIAL.sub(r"\\\1", clean(" ".join(foreign.split())))
    return _START.sub(r"\1\\\2", line)


def fenced(content: str, language: str = "") -> tuple[str, ...]:
    """A block of code whose fence is longer than any in it."""
    longest = max((len(found) for found in _FENCE.findall(content)), default=2)
    fence = "`" * (longest + 1)
    return (f"{fence}{language}", clean(content.rstrip("\n")), fence)
