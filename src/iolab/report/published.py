"""Results that others published of the same study: named as such, and never mixed with measured.

They come as TOML of a loose form: tables of `[[result]]` with whatever was printed.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from iolab.report.table import Cell, Column, Table, row
from iolab.report.wording import NOTHING

ROWS_MAX: Final = 64
"""Published tables are short; more rows would bury what was measured."""

_HEADINGS: Final = {
    "workload": "Workload",
    "block_size": "Block",
    "threads": "Threads",
    "max_ops_s": "Most ops/s",
    "ops_s.measured": "Ops/s",
    "ops_s.competitor": "Ops/s, the other",
    "p99_99_read_ms.measured": "Read p99.99, ms",
    "p99_99_read_ms.competitor": "Read p99.99, ms, the other",
    "max_gain_ops_pct": "Largest gain in ops/s, %",
    "max_absolute_gain_ops_s": "Largest gain, ops/s",
    "max_gain_latency_pct": "Largest gain in latency, %",
    "gain_ops": "Gain in ops/s, factor",
    "gain_latency": "Gain in latency, factor",
}
"""Names of published figures, for people."""


@dataclass(frozen=True, slots=True)
class Published:
    """What was published: where, on what, and a table of its figures."""

    source: str
    notes: tuple[tuple[str, str], ...]
    results: Table


def read_published(text: str) -> Published:
    """The published results of a study. ValueError where the text is no TOML."""
    document = tomllib.loads(text)
    rows = [dict(_flat(one)) for one in document.get("result", []) if isinstance(one, dict)]
    names = list(dict.fromkeys(name for one in rows for name in one))
    notes = [
        (name, str(part))
        for section in ("method", "hardware")
        for name, part in document.get(section, {}).items()
        if name in {"engine", "server", "reported"} and isinstance(part, str)
    ]
    heads = tuple(Column(_HEADINGS.get(name, name), number=name in _NUMBERS) for name in names)
    cells: tuple[tuple[Cell, ...], ...] = tuple(
        row(*(_text(one.get(name)) for name in names)) for one in rows[:ROWS_MAX]
    )
    source = str(document.get("source", "")) or NOTHING
    return Published(source, tuple(notes), Table("Published elsewhere", heads, cells))


_NUMBERS: Final = frozenset(_HEADINGS) - {"workload", "block_size"}


def _flat(result: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """Figures by name, those of a table within as `name.part`."""
    for name, value in result.items():
        if isinstance(value, dict):
            yield from ((f"{name}.{part}", figure) for part, figure in value.items())
        else:
            yield name, value


def _text(value: object) -> str:
    if value is None:
        return NOTHING
    return f"{value:,}" if isinstance(value, int) else str(value)
