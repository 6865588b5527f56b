"""A table as the report, its charts and the exports share it: text cells, some with a verdict."""

from __future__ import annotations

from dataclasses import dataclass

from iolab.core.metric import Level
from iolab.report.numbers import NOTHING


@dataclass(frozen=True, slots=True)
class Column:
    """A heading; numbers stand right."""

    title: str
    number: bool = False


@dataclass(frozen=True, slots=True)
class Cell:
    """A text; with `level` it is a verdict, with `anchor` it leads to a place in the report.

    `under` stands below it in small type; `strong` is what stands out in its row.
    """

    text: str
    level: Level | None = None
    anchor: str | None = None
    under: str = ""
    strong: bool = False

    @property
    def line(self) -> str:
        """All of it in one line, for forms without small type."""
        return f"{self.text} ({self.under})" if self.under else self.text


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of cells under their columns, all of one length."""

    title: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]


def columns(texts: tuple[str, ...], numbers: tuple[str, ...] = ()) -> tuple[Column, ...]:
    """Columns of text, then columns of numbers."""
    return (*(Column(text) for text in texts), *(Column(text, number=True) for text in numbers))


def row(*texts: str) -> tuple[Cell, ...]:
    """A row of plain cells."""
    return tuple(Cell(text) for text in texts)


def filled(table: Table) -> Table:
    """The table without columns in which no row has anything."""
    kept = [
        place
        for place in range(len(table.columns))
        if any(cells[place].text != NOTHING for cells in table.rows)
    ]
    return Table(
        table.title,
        tuple(table.columns[place] for place in kept),
        tuple(tuple(cells[place] for place in kept) for cells in table.rows),
    )


def verdict_cell(level: Level, anchor: str | None = None) -> Cell:
    """The cell that shows a verdict."""
    return Cell(level.value, level, anchor)
