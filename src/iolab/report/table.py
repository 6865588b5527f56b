"""A table of text cells, some with a verdict, and each of its forms: HTML, Markdown, CSV, typst.

That for terminals is in `terminal`. All foreign text is escaped, so that none of it is read as
markup, as HTML, or as a formula.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from html import escape
from typing import Any, Final

from iolab.core.metric import Level
from iolab.dataclass import dataclass
from iolab.report.numbers import NOTHING, clean, mark


@dataclass(frozen=True, slots=True)
class Column:
    """A heading; numbers stand right."""

    title: str
    number: bool = False


@dataclass(frozen=True, slots=True)
class Cell:
    """A text; with `level` it is a verdict, with `anchor` it leads to a place in the report.

    `under` stands below it in small type; `strong` is what stands out in its row. `drawn` is HTML
    of our own that stands for the text on a page.
    """

    text: str
    level: Level | None = None
    anchor: str | None = None
    under: str = ""
    strong: bool = False
    drawn: str = ""

    @property
    def line(self) -> str:
        """All of it in one line, for forms without small type."""
        return f"{self.text} ({self.under})" if self.under else self.text


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of cells under their columns, all of one length.

    `groups` are titles, each with the place of the row that it stands above.
    """

    title: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]
    groups: tuple[tuple[int, str], ...] = ()


def columns(
    texts: Sequence[str], numbers: Sequence[str] = (), last: Sequence[str] = ()
) -> tuple[Column, ...]:
    """Columns of text, then columns of numbers, then of text again."""
    every = (*((text, False) for text in texts), *((text, True) for text in numbers))
    return tuple(Column(*heading) for heading in (*every, *((text, False) for text in last)))


def row(*values: str | Level | Cell) -> tuple[Cell, ...]:
    """A row of cells, some of them given as their text or their verdict."""
    return tuple(map(_cell, values))


def _cell(value: str | Level | Cell) -> Cell:
    if isinstance(value, Level):
        return verdict_cell(value)
    return Cell(value) if isinstance(value, str) else value


def of_texts(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> Table:
    """A table of plain texts without a title."""
    return Table("", columns(tuple(headings)), tuple(row(*texts) for texts in rows))


def filled(table: Table) -> Table:
    """The table without columns in which no row has anything."""
    kept = [
        place
        for place in range(len(table.columns))
        if any(cells[place].text != NOTHING for cells in table.rows)
    ]
    return with_columns(table, kept)


def with_columns(table: Table, places: Sequence[int]) -> Table:
    """The table with the columns at these places alone."""
    return replace(
        table,
        columns=tuple(table.columns[place] for place in places),
        rows=tuple(tuple(cells[place] for place in places) for cells in table.rows),
    )


def verdict_cell(level: Level, anchor: str | None = None) -> Cell:
    """The cell that shows a verdict."""
    return Cell(level.value, level, anchor)


ROWS_SHOWN: Final = 3000
"""Rows of a table on a page: browsers take seconds for more. What is left out is said there."""


_NUMBER: Final = ' class="n"'
_PLAIN: Final = ' class="plain"'


def html(
    table: Table,
    anchors: Collection[str] = (),
    *,
    plain: bool = False,
    caption: bool = False,
    stacked: bool = False,
) -> str:
    """The table for a page; cells lead to those of their `anchors` that it has.

    A `plain` one has names in its first column. Of a `stacked` one cells with a value bear the
    name of their column, so that a narrow screen can show them one below the other.
    """
    title = _escaped(table.title)
    heads = "".join(
        f'<th scope="col"{_NUMBER if column.number else ""}>{_escaped(column.title)}</th>'
        for column in table.columns
    )
    kinds = ["n" if column.number else "t" for column in table.columns]
    rows = [
        "".join(
            f'<td class="{kind}"{_name(column, cell) if stacked else ""}>'
            f"{_html_cell(cell, anchors)}</td>"
            for kind, column, cell in zip(kinds, table.columns, cells, strict=True)
        )
        for cells in table.rows[:ROWS_SHOWN]
    ]
    hidden = len(table.rows) - len(rows)
    if hidden > 0:
        left_out = f"{hidden} more rows: the command line lists all"
        rows.append(f'<td class="t" colspan="{len(table.columns)}">{left_out}</td>')
    above_row = {
        at: f'</tbody><tbody><tr class="group"><th scope="rowgroup" colspan="{len(kinds)}">'
        f"{_escaped(text)}</th></tr>\n"
        for at, text in table.groups
    }
    body = "".join(f"{above_row.get(at, '')}<tr>{row}</tr>\n" for at, row in enumerate(rows))
    above = f"<caption>{title}</caption>\n" if caption else ""
    return (
        f'<div class="scroll" tabindex="0" role="region" aria-label="{title}">\n'
        f"<table{_PLAIN if plain else ''}>\n{above}"
        f"<thead><tr>{heads}</tr></thead>\n<tbody>\n{body}</tbody></table></div>"
    )


def _name(column: Column, cell: Cell) -> str:
    return "" if cell.text == NOTHING else f' data-name="{_escaped(column.title)}"'


def badge(level: Level, anchor: str | None = None) -> str:
    """A verdict for a page, by its shape, its word and its colour."""
    inside = f'<i aria-hidden="true">{mark(level)}</i>{level.value}'
    if anchor:
        return f'<a class="badge {level.value}" href="#{_escaped(anchor)}">{inside}</a>'
    return f'<span class="badge {level.value}">{inside}</span>'


def _html_cell(cell: Cell, anchors: Collection[str]) -> str:
    anchor = cell.anchor if cell.anchor in anchors else None
    if cell.level is not None:
        text = badge(cell.level, anchor)
    else:
        text = cell.drawn or _escaped(cell.text)
        text = f'<a href="#{_escaped(anchor)}">{text}</a>' if anchor else text
        text = f"<b>{text}</b>" if cell.strong else text
    return f"{text}<small>{_escaped(cell.under)}</small>" if cell.under else text


def _escaped(text: str) -> str:
    return escape(clean(text))


_SPECIAL: Final = re.compile(r"([\\`*_\[\]<>#|~&$]|:(?=//)|(?<=\bwww)\.)", re.IGNORECASE)
"""What begins markup, also that of GitHub, which makes links of bare addresses."""

_START: Final = re.compile(r"^(\d{0,9})([-+=.)])(?=[ =-]|$)")
"""What makes a list, a rule or a heading of the line that begins with it."""


def markdown(table: Table) -> str:
    """The table in Markdown, without its title; empty without a row."""
    return "\n".join(_markdown_lines(table)) if table.rows else ""


def _markdown_lines(table: Table) -> Iterator[str]:
    yield _markdown_row(markdown_text(column.title) for column in table.columns)
    yield _markdown_row("---:" if column.number else "---" for column in table.columns)
    for cells in table.rows:
        yield _markdown_row(_markdown_cell(cell) for cell in cells)


def _markdown_row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _markdown_cell(cell: Cell) -> str:
    text = f"**{markdown_text(cell.line)}**" if cell.strong else markdown_text(cell.line)
    return text if cell.level is None else f"{mark(cell.level)} {text}"


def markdown_text(foreign: str) -> str:
    """A text on one line of Markdown, with nothing in it read as markup."""
    line = _SPECIAL.sub(r"\\\1", clean(" ".join(foreign.split())))
    return _START.sub(r"\1\\\2", line)


_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r", "\n", "|", "%")
"""First characters by which spreadsheets take a text for a formula or a command."""

Value = str | int | float | None
"""A field of CSV or of another export: None is unknown."""


def csv_text(table: Table) -> str:
    """The table as CSV under its headings."""
    rows = ([cell.line for cell in cells] for cells in table.rows)
    return csv_of([column.title for column in table.columns], rows)


def csv_of(headings: Sequence[str], rows: Iterable[Iterable[Value]]) -> str:
    """RFC 4180; an unknown number is an empty field.

    Text that a spreadsheet would run as a formula gets an apostrophe before it.
    """
    out = io.StringIO(newline="")
    writer = csv.writer(out)
    writer.writerow([_csv_cell(name) for name in headings])
    writer.writerows([_csv_cell(value) for value in row] for row in rows)
    return out.getvalue()


def _csv_cell(value: Value) -> str | int | float:
    if value is None:
        return ""
    if isinstance(value, str):
        text = clean(value)
        return f"'{text}" if text.startswith(_FORMULA) else text
    return value


def typst(table: Table, title: str | None = None) -> dict[str, Any]:
    """The table as the typesetter's template takes it, under `title` or its own."""
    return {
        "title": table.title if title is None else title,
        "columns": [{"title": column.title, "number": column.number} for column in table.columns],
        "rows": [[_typst_cell(cell) for cell in cells] for cells in table.rows],
    }


def typst_level(level: Level) -> dict[str, str]:
    """A verdict for it."""
    return {"name": level.value, "mark": mark(level)}


def _typst_cell(cell: Cell) -> dict[str, Any]:
    if cell.level is not None:
        return {"level": typst_level(cell.level)}
    return {"text": cell.text, "under": cell.under, "strong": cell.strong}
