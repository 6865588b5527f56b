"""A published set as a tree of printed figures, with ways to look for them by name."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final, TypeGuard

from iolab.analyse.audit.figure import Span, hull, printed

Path = tuple[str | int, ...]
"""Keys and list places from the root to a value."""

DEPTH_MOST: Final = 12
"""Tables and lists within each other; published sets have five."""

KEY_MOST: Final = 128
"""Characters of a key; published sets have up to 43."""

TEXT_MOST: Final = 4096
"""Characters of a text; published sets have up to 206, and patterns are looked for in each."""

POWER_MOST: Final = 30
"""Of ten, in either direction: no figure of storage comes near, and products of them stay finite.
"""

MODULES: Final = re.compile(r"(\d+)x ([^\n]*?)(\d+(?:\.\d+)?) ?([GT])B\b(?:[^()]*\((\d+)GB\))?")
"""`8x 32GB DDR4-3200 (256GB)`, `8x Micron 7300 PRO 3.84TB`: count, name, size, unit, total."""


@dataclass(frozen=True, slots=True)
class Published:
    """A set: its id, where it is from, and all that was printed, floats as they were written."""

    id: str
    source: str
    tree: Mapping[str, Any]

    def table(self, *path: str | int) -> Mapping[str, Any]:
        """The table there; empty where there is none."""
        found: Any = self.tree
        for key in path:
            try:
                found = found[key]
            except (KeyError, IndexError, TypeError):
                return {}
        return found if isinstance(found, dict) else {}

    def tables(self, name: str) -> tuple[Mapping[str, Any], ...]:
        """The elements of an array of tables."""
        found = self.tree.get(name, [])
        return (
            tuple(one for one in found if isinstance(one, dict)) if isinstance(found, list) else ()
        )

    def figures(self) -> Iterator[tuple[Path, int | Decimal]]:
        """Every number with its path, in the order of the file."""
        yield from _figures(self.tree, ())


def read_published(text: str) -> Published:
    """The set. ValueError where the text is no TOML, or has what cannot be a published figure."""
    try:
        tree = tomllib.loads(text, parse_float=Decimal)
    except RecursionError:
        raise ValueError(_DEEP) from None
    _check(tree, ())
    return Published(str(tree.get("id", "")), str(tree.get("source", "")), tree)


def flat(table: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, Any]]:
    """Every value by its name, those of a table within as `name.part`."""
    for key, value in table.items():
        name = f"{above}{key}"
        if isinstance(value, dict):
            yield from flat(value, f"{name}.")
        else:
            yield name, value


def span(value: object) -> Span | None:
    """What a printed value stands for: a figure, or a list of a lowest and a highest; else None."""
    if _is_number(value):
        return printed(value)
    if isinstance(value, list) and value and all(_is_number(one) for one in value):
        return hull(printed(one) for one in value)
    return None


def positive(value: object) -> Span | None:
    """The same where it is above 0 whatever was rounded, so that it can be divided by."""
    found = span(value)
    return found if found is not None and found.low > 0 else None


def label(table: Mapping[str, Any]) -> str:
    """What tells an element of an array from the others: the words and the first numbers of it."""
    names = ("id", "configuration", "workload", "block_size", "write_percent", "threads", "vms")
    words = [_word(name, table[name]) for name in names if name in table]
    return ", ".join(words)


def words(name: str) -> str:
    """A key for people: `p99_99_latency_ms` as `p99.99 latency ms`."""
    return _PERCENTILE.sub(r"\1.\2", name).replace("_", " ")


_PERCENTILE: Final = re.compile(r"(?<![a-z])(p\d\d)_(\d+)")


def _word(name: str, value: object) -> str:
    if name in ("id", "configuration", "workload"):
        return str(value)
    return f"{words(name)} {value}"


_DEEP: Final = f"tables lie more than {DEPTH_MOST} deep"


def _check(value: object, path: Path) -> None:
    """ValueError where anything in it is larger, longer or deeper than rules can hold."""
    if len(path) > DEPTH_MOST:
        raise ValueError(_DEEP)
    place = ".".join(str(part) for part in path)
    if isinstance(value, dict):
        for key, part in value.items():
            if len(key) > KEY_MOST:
                raise ValueError(f"a key has more than {KEY_MOST} characters")
            _check(part, (*path, key))
    elif isinstance(value, list):
        for number, part in enumerate(value):
            _check(part, (*path, number))
    elif isinstance(value, str) and len(value) > TEXT_MOST:
        raise ValueError(f"{place!r} has more than {TEXT_MOST} characters")
    elif isinstance(value, int | Decimal) and not isinstance(value, bool) and not _is_held(value):
        raise ValueError(f"{place!r} is no figure between 1e-{POWER_MOST} and 1e{POWER_MOST}")


def _is_held(value: int | Decimal) -> bool:
    figure = Decimal(value)
    return figure.is_finite() and (not figure or -POWER_MOST <= figure.adjusted() < POWER_MOST)


def _figures(value: object, path: Path) -> Iterator[tuple[Path, int | Decimal]]:
    if isinstance(value, dict):
        for key, part in value.items():
            yield from _figures(part, (*path, key))
    elif isinstance(value, list):
        for place, part in enumerate(value):
            yield from _figures(part, (*path, place))
    elif _is_number(value):
        yield path, value


def _is_number(value: object) -> TypeGuard[int | Decimal]:
    whole = isinstance(value, int) and not isinstance(value, bool)
    return whole or (isinstance(value, Decimal) and value.is_finite())
