"""The report as PDF: the page's content as data for a typesetter, its figures as vectors.

Nothing is written in the typesetter's language but its template, which ships with iolab: what comes
from hosts, files and studies goes in as JSON strings and is set as text.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Any, Final

from iolab.core.metric import Level, Result
from iolab.report.brief import Brief
from iolab.report.caveats import names_among_several, where, whose_run
from iolab.report.charts.chart import Figure
from iolab.report.html import Page, make_page
from iolab.report.numbers import clean, mark
from iolab.report.page_parts import ChartGroup
from iolab.report.render import figure_pdf, typeset
from iolab.report.run_details import RunPart
from iolab.report.table import Cell, Table, columns, row, verdict_cell
from iolab.report.tables import evidence_text

CLAIMS: Final = 5
"""Sentences on the title page."""

DRAWN_RUNS: Final = 12
"""Runs whose charts are printed in the appendix; all have their checks."""

_TEMPLATE: Final = Path(__file__).parent / "templates" / "brief.typ"


class Paper(StrEnum):
    """What it is printed on."""

    A4 = "a4"
    LETTER = "letter"

    @property
    def told(self) -> str:
        """The paper's name as the typesetter knows it."""
        return "a4" if self is Paper.A4 else "us-letter"


def render_pdf(brief: Brief, paper: Paper = Paper.A4) -> bytes:
    """The document; the same brief gives the same bytes. ReportError if it cannot be made."""
    figures = _Figures()
    page = make_page(brief)
    names = names_among_several(brief.study)
    document = {
        "paper": paper.told,
        **_front(brief, page),
        "workloads": [_group(item, figures) for item in page.workloads],
        "sections": [
            {
                "title": one.title,
                "lede": one.lede,
                "groups": [_group(item, figures) for item in one.groups],
            }
            for one in page.sections
        ],
        **_back(brief, page),
        "runs": [
            _run(part, names, figures if number < DRAWN_RUNS else None)
            for number, part in enumerate(page.runs)
        ],
    }
    return typeset(_TEMPLATE.read_text(encoding="utf-8"), _cleaned(document), figures.files)


def _group(item: ChartGroup, figures: _Figures) -> dict[str, Any]:
    return {
        "title": item.title,
        "figures": figures.of(item.figures),
        "tables": [_table(item.table)] if item.table else [],
        "note": item.note,
        "more": [{"table": _table(table), "note": note} for table, note in item.more if table.rows],
    }


class _Figures:
    """Figures drawn one after the other, each in a file of its own."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}

    def of(self, figures: Iterable[Figure]) -> list[dict[str, str]]:
        """What the template says of each, with its file drawn."""
        told = []
        for figure in figures:
            name = f"figure-{len(self.files) + 1}.pdf"
            self.files[name] = figure_pdf(figure)
            told.append(
                {
                    "file": name,
                    "title": figure.title,
                    "finding": figure.finding,
                    "note": figure.note,
                    "alt": figure.alt,
                }
            )
        return told


def _front(brief: Brief, page: Page) -> dict[str, Any]:
    """The title page, what to know, and all sentences."""
    names = names_among_several(brief.study)
    failed = [
        {
            "level": _level(result.verdict.level),
            "says": f"{whose_run(result, names)} failed. {result.failure or ''}".strip(),
            "where": result.status.value,
        }
        for result in page.failures
    ]
    objections = [
        {
            "level": _level(item.level),
            "says": item.says,
            "where": f"{item.code}, {where(item)}",
        }
        for item in page.objections
    ]
    return {
        "study": brief.study.id,
        "title": brief.study.title,
        "question": brief.study.question,
        "facts": [list(pair) for pair in page.facts],
        "alerts": list(page.alerts),
        "summary": page.summary,
        "claims": [one.text for one in page.said[:CLAIMS]],
        "said": [one.text for one in page.said[CLAIMS:]],
        "headlines": _table(page.headline_table, title=""),
        "sessions": _tables(page.sessions),
        "objections": [*failed, *objections],
        "no_objection": "No check objects to any run." if brief.results else "There is no run yet.",
    }


def _back(brief: Brief, page: Page) -> dict[str, Any]:
    """Configuration, method, all runs, and how to repeat them."""
    return {
        "configuration": _tables([page.configurations, *page.guests]),
        "hosts": [{"title": names, "tables": _tables(tables)} for names, tables in page.hosts],
        "method": _tables([page.method, *page.jobs]),
        "results": _tables(page.results),
        "repeats": [
            {
                "title": one.label,
                "command": shlex.join(one.command),
                "versions": _tables([one.versions]),
                "study_text": one.text,
            }
            for one in page.repeats
        ],
        "footer": f"iolab {brief.session.iolab_version}, session {brief.session.id}",
    }


def _run(part: RunPart, names: Mapping[str, str], figures: _Figures | None) -> dict[str, Any]:
    tables = [*([part.hosts] if part.hosts else []), *part.fleet, _checks(part.result)]
    return {
        "title": whose_run(part.result, names),
        "level": _level(part.result.verdict.level),
        "trace": part.trace,
        "figures": figures.of(part.figures) if figures else [],
        "tables": _tables(tables),
    }


def _checks(result: Result) -> Table:
    """Every check of a run, worst first, with its evidence."""
    checks = sorted(result.verdict.checks, key=lambda check: -check.rank)
    cells = tuple(
        (
            verdict_cell(one.level) if one.level else Cell(one.word),
            *row(one.code, one.says, evidence_text(one.evidence)),
        )
        for one in checks
    )
    heads = columns(("Verdict", "Check", "What it says", "Evidence"))
    return Table(result.verdict.rests_on, heads, cells)


def _tables(tables: Sequence[Table]) -> list[dict[str, Any]]:
    return [_table(one) for one in tables if one.rows]


def _table(one: Table, title: str | None = None) -> dict[str, Any]:
    return {
        "title": one.title if title is None else title,
        "columns": [{"title": column.title, "number": column.number} for column in one.columns],
        "rows": [[_cell(cell) for cell in cells] for cells in one.rows],
    }


def _cell(cell: Cell) -> dict[str, Any]:
    return {"text": cell.text} if cell.level is None else {"level": _level(cell.level)}


def _level(level: Level) -> dict[str, str]:
    return {"name": level.value, "mark": mark(level)}


def _cleaned(value: Any) -> Any:  # noqa: ANN401 - JSON of any shape
    """The document with every unseen character of its texts written out."""
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, dict):
        return {key: _cleaned(part) for key, part in value.items()}
    return [_cleaned(part) for part in value] if isinstance(value, list) else value
