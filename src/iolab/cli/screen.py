"""What all screens share: foreign text made harmless, verdicts in words and colour, tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from rich.table import Table
from rich.text import Text

from iolab.model.metric import Level
from iolab.report.wording import axis_label, clean

VERDICT_STYLES: Final = {
    Level.VALID: "green",
    Level.INDICATIVE: "yellow",
    Level.INVALID: "bold red",
}
"""The word always stands there too: colour alone tells nothing to a file or to many readers."""

QUIET_STYLE: Final = "dim"


@dataclass(frozen=True, slots=True)
class Heading:
    """A column: numbers stand right and are never broken; a `main` column gives way first."""

    title: str
    number: bool = False
    main: bool = False


def one_line(text: str) -> str:
    r"""The text on one line with everything unseen written out, as `\u001b`."""
    return clean(" ".join(text.splitlines()).replace("\t", " "))


def plain(text: str, style: str = "") -> Text:
    """Foreign or own text for a screen, never read as markup."""
    return Text(one_line(text), style=style)


def verdict(level: Level, notes: Sequence[int] = ()) -> Text:
    """A verdict in its word and colour, followed by the numbers of the objections behind it."""
    text = Text(level.value, style=VERDICT_STYLES[level])
    if notes:
        text.append(" " + ",".join(str(note) for note in notes), style=QUIET_STYLE)
    return text


def run_name(workload: str, axis: tuple[tuple[str, int | str], ...], repeat: int = 1) -> str:
    """A run for people: `rand-read-4k, iodepth 8`, with the repeat from the second on."""
    values = f"{workload}, {axis_label(axis)}" if axis else workload
    return one_line(values if repeat == 1 else f"{values} #{repeat}")


def table(headings: Sequence[Heading], rows: Sequence[Sequence[Text | str]]) -> Table:
    """A table without frames; plain strings in `rows` are our own or cleaned already."""
    grid = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for heading in headings:
        grid.add_column(
            heading.title,
            justify="right" if heading.number else "left",
            no_wrap=not heading.main,
            overflow="fold",
            ratio=None,
        )
    for row in rows:
        grid.add_row(*(cell if isinstance(cell, Text) else Text(cell) for cell in row))
    return grid


def title(text: str) -> Text:
    """A heading of a section."""
    return plain(text, "bold")


def pairs(rows: Sequence[tuple[str, Text | str]]) -> Table:
    """Names and what they are, the names in one quiet column."""
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(style=QUIET_STYLE, no_wrap=True)
    grid.add_column(overflow="fold")
    for name, text in rows:
        grid.add_row(Text(name), text if isinstance(text, Text) else plain(text))
    return grid
