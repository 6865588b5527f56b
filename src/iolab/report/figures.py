"""Every chart of a report as SVG and PNG, and every table as CSV, for other documents."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Iterator
from typing import Final

from iolab.report.brief import Brief
from iolab.report.charts.chart import Figure
from iolab.report.charts.svg import document
from iolab.report.html import Page, figures_of, make_page
from iolab.report.render import figure_png
from iolab.report.results import csv_cell
from iolab.report.table import Table

NAME_MOST: Final = 80
"""Characters of a file's name."""


def figure_files(brief: Brief) -> Iterator[tuple[str, str | bytes]]:
    """(name, content) of each file; names are numbered in the order of the report."""
    page = make_page(brief)
    drawn = {id(one): one for one in figures_of(page)}  # that of the first page stands twice
    for number, figure in enumerate(drawn.values(), 1):
        name = _name("figure", number, figure)
        yield f"{name}.svg", document(figure)
        yield f"{name}.png", figure_png(figure)
        yield f"{name}.csv", csv_text(figure.table)
    for number, table in enumerate(_tables(page), 1):
        yield f"table-{number:02d}-{_slug(table.title)}.csv", csv_text(table)


def csv_text(table: Table) -> str:
    """A table as CSV under its headings."""
    out = io.StringIO()
    writer = csv.writer(out)
    writer.writerow([csv_cell(column.title) for column in table.columns])
    writer.writerows([[csv_cell(cell.line) for cell in row] for row in table.rows])
    return out.getvalue()


def _tables(page: Page) -> Iterable[Table]:
    parts = (*page.sections, *page.backing)
    groups = (*page.workloads, *(group for one in parts for group in one.groups))
    every = (
        page.answer.matrix,
        *(table for one in groups for table in (one.table, *(more for more, _ in one.more))),
        page.configurations,
        page.hardware,
        page.method,
        *page.jobs,
        *page.results,
    )
    return dict.fromkeys(one for one in every if one is not None and one.rows)


def _name(kind: str, number: int, figure: Figure) -> str:
    return f"{kind}-{number:02d}-{_slug(f'{figure.subject} {figure.title}')}"


def _slug(text: str) -> str:
    """The text as a part of a file's name, whatever it holds."""
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")[:NAME_MOST].rstrip("-") or "unnamed"
