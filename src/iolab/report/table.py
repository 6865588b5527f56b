"""A table as the report, its charts and the exports share it: text cells, some with a verdict."""

from __future__ import annotations

from dataclasses import dataclass

from iolab.model.metric import Level


@dataclass(frozen=True, slots=True)
class Column:
    """A heading; numbers stand right."""

    title: str
    number: bool = False


@dataclass(frozen=True, slots=True)
class Cell:
    """A text; with `level` it is a verdict, with `anchor` it leads to a place in the report."""

    text: str
    level: Level | None = None
    anchor: str | None = None


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


def verdict_cell(level: Level, anchor: str | None = None) -> Cell:
    """The cell that shows a verdict."""
    return Cell(level.value, level, anchor)
