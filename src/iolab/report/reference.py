"""A published set as sections: what stands once as pairs, what repeats as a table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final

from iolab.analyse.audit.document import Published, flat, words
from iolab.report.table import Column, Table, row
from iolab.report.wording import NOTHING

_TITLES: Final = {"printed_derivation": "Derived figures as they were printed"}


@dataclass(frozen=True, slots=True)
class Section:
    """A part of the file under its title: pairs of names and texts, or else a table."""

    title: str
    pairs: tuple[tuple[str, str], ...] = ()
    table: Table | None = None


def sections(published: Published) -> Iterator[Section]:
    """The tables of the file in their order, with all that they hold."""
    for name, value in published.tree.items():
        title = _TITLES.get(name, name.replace("_", " ").capitalize())
        if isinstance(value, dict):
            yield Section(title, tuple((_words(key), text) for key, text in _texts(value)))
        elif isinstance(value, list):
            rows = [dict(_texts(one)) for one in value if isinstance(one, dict)]
            yield Section(title, table=_table(title, rows))


def _texts(table: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    yield from ((name, _text(value)) for name, value in flat(table))


def _table(title: str, rows: list[dict[str, str]]) -> Table:
    names = list(dict.fromkeys(name for one in rows for name in one))
    numeric = {name for name in names if all(_numeric(one.get(name)) for one in rows)}
    heads = tuple(Column(_words(name), number=name in numeric) for name in names)
    cells = tuple(row(*(one.get(name, NOTHING) for name in names)) for one in rows)
    return Table(title, heads, cells)


def _words(name: str) -> str:
    return ", ".join(words(part) for part in name.split("."))


def _text(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return ", ".join(_text(one) for one in value)
    if isinstance(value, int):
        return f"{value:,}" if abs(value) >= 10_000 else str(value)
    if isinstance(value, Decimal):
        # 5.2e6 is what was printed; people read 5,200,000.
        return f"{value:,f}" if abs(value) >= 1 else f"{value}"
    return str(value)


def _numeric(text: str | None) -> bool:
    return text is None or text.replace(",", "").replace(".", "", 1).isdecimal()
