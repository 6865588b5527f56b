"""A table as the report, its charts and the exports share it: text cells, some with a verdict."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from iolab.core.metric import Level, Result
from iolab.core.study import Study
from iolab.report.caveats import names_among_several
from iolab.report.numbers import NOTHING, count, show, show_steadiness
from iolab.report.series import DetailKey
from iolab.units import format_duration_s


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


ROWS_MOST: Final = 2000
"""Runs with a row of their own: each takes half a KiB, and nobody reads more. The last row says how
many more there are, and what lists them."""


def axis_names(results: Sequence[Result]) -> tuple[str, ...]:
    """The names of all axes, in the order in which they first appear."""
    return tuple(dict.fromkeys(name for result in results for name, _ in result.axis))


def every_run(
    heading: str,
    study: Study,
    results: Sequence[Result],
    shown: Sequence[tuple[str, str]],
    anchors: Mapping[DetailKey, str],
) -> Table:
    """Verdict, place and metrics of each run; `shown` are the metrics' keys and headings.

    `anchors` lead to what the report tells of a run. Of more than `ROWS_MOST` runs those that are
    not valid come before others, and the last row tells of what is left out.
    """
    axes = axis_names(results)
    titles = names_among_several(study)
    steady = any(result.steadiness is not None for result in results)
    names = ("Workload", *(("Configuration",) if titles else ()))
    heads = (
        *columns((*names, "Verdict", *(("Steady",) if steady else ()))),
        *columns((), (*axes, "Repeat", *(name for _, name in shown), "Window")),
    )
    rows = tuple(
        (
            Cell(result.workload),
            *((Cell(titles.get(result.configuration, NOTHING)),) if titles else ()),
            verdict_cell(result.verdict.level, anchors.get((result.digest, result.repeat))),
            *((Cell(show_steadiness(result) or NOTHING),) if steady else ()),
            *(Cell(str(dict(result.axis).get(axis, NOTHING))) for axis in axes),
            Cell(str(result.repeat)),
            *(Cell(show(result.metrics.get(key), bare_rate=True)) for key, _ in shown),
            Cell(format_duration_s(result.window_s) if result.window_s else NOTHING),
        )
        for result in _listed(results)
    )
    hidden = len(results) - len(rows)
    if hidden:
        told = f"{count(hidden, 'more run')}: iolab export lists them all"
        rows = (*rows, (Cell(told), *[Cell("")] * (len(heads) - 1)))
    return Table(heading, heads, rows)


def _listed(results: Sequence[Result]) -> list[Result]:
    """As many as get a row, in their order; what is not valid is never left out for what is."""
    if len(results) <= ROWS_MOST:
        return list(results)
    ranked = sorted(results, key=lambda one: one.verdict.level is Level.VALID)[:ROWS_MOST]
    kept = {(one.digest, one.repeat) for one in ranked}
    return [one for one in results if (one.digest, one.repeat) in kept]
