"""A published set as a tree of printed figures, with ways to look for them by name."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from decimal import Decimal
from math import inf, prod
from typing import Any, Final, NamedTuple, TypeGuard

from iolab.core.toml import DeepKeyError, parse_toml
from iolab.published.meaning import MEANING_KEY, SetMeaning, read_meaning
from iolab.record import Record

DEPTH_MAX: Final = 12
"""Tables and lists within each other; published sets have five."""

KEY_MAX: Final = 128
"""Characters of a key; published sets have up to 43."""

TEXT_MAX: Final = 4096
"""Characters of a text; published sets have up to 206, and patterns are looked for in each."""

FIGURES_MAX: Final = 1000
"""Figures of a set, and elements of an array; published sets have some 130, and rules hold pairs of
them against each other."""

POWER_MAX: Final = 30
"""Of ten, in either direction: no figure of storage comes near, and products of them stay finite.
"""

LOCATION_KEY: Final = "where"
"""The table of a set that says where in the document its other tables stand, by their names."""

PEAK_PREFIX: Final = "peak_at_"
"""Begins the key of a table that says at which place of an axis bests were reached."""

RESTATED_KEY: Final = "also"
"""The array of what is told again elsewhere; `in` names the table that it is of."""

ELEMENT_KEYS: Final = (
    "id",
    "configuration",
    "workload",
    "block_size",
    "write_percent",
    "threads",
    "vms",
)
"""What tells an element of an array from the others, and is the same in two of the same thing."""

MODULES: Final = re.compile(r"(\d+)x ([^\n]*?)(\d+(?:\.\d+)?) ?([GT])B\b(?:[^()]*\((\d+)GB\))?")
"""`8x 32GB DDR4-3200 (256GB)`, `8x Micron 7300 PRO 3.84TB`: count, name, size, unit, total."""

_PERCENTILE: Final = re.compile(r"(?<![a-z])(p\d\d)_(\d+)")
_TOO_DEEP: Final = f"tables lie more than {DEPTH_MAX} deep"


class RoundingInterval(Record):
    """What a printed figure leaves open, from `low` to `high`; equal where it is exact.

    5.2e6 is any number from 5.15 to 5.25 million. Products and quotients of figures are intervals
    again: two ways to one quantity agree when their intervals meet.
    """

    low: float
    high: float

    @property
    def middle(self) -> float:
        """Half way."""
        return (self.low + self.high) / 2

    @property
    def relative_half_width(self) -> float:
        """How far the ends are from the middle, as a share of it; 0 where that is 0."""
        return (self.high - self.low) / 2 / abs(self.middle) if self.middle else 0.0

    def overlaps(self, other: RoundingInterval) -> bool:
        """Whether any number lies in both."""
        return self.low <= other.high and other.low <= self.high

    def relative_gap_to(self, other: RoundingInterval) -> float:
        """How far the nearest numbers of both are apart, as a share of the other's nearest."""
        if self.overlaps(other):
            return 0.0
        near, far = (self.high, other.low) if self.high < other.low else (self.low, other.high)
        return abs(near - far) / abs(far) if far else inf

    def __add__(self, other: RoundingInterval) -> RoundingInterval:
        return RoundingInterval(self.low + other.low, self.high + other.high)

    def __sub__(self, other: RoundingInterval) -> RoundingInterval:
        return RoundingInterval(self.low - other.high, self.high - other.low)

    def __mul__(self, other: RoundingInterval) -> RoundingInterval:
        return RoundingInterval(self.low * other.low, self.high * other.high)

    def __truediv__(self, other: RoundingInterval) -> RoundingInterval:
        if other.low <= 0:
            raise ValueError(f"a quotient needs a positive divisor, not {other.low}")
        return RoundingInterval(self.low / other.high, self.high / other.low)


def exact_range(value: float) -> RoundingInterval:
    """A count, or a figure by definition."""
    return RoundingInterval(value, value)


def rounding_range(value: int | Decimal) -> RoundingInterval:
    """What a figure stands for that was rounded to its last digit that is not a trailing zero.

    A figure of whole hundreds may have been rounded to hundreds: nobody can tell, so it is taken to
    be.
    """
    number = Decimal(value)
    _, digits, exponent = number.as_tuple()
    if not number.is_finite() or not isinstance(exponent, int):
        raise ValueError(f"{value} is no number")
    significant = len(digits)
    while exponent >= 0 and significant > 1 and digits[significant - 1] == 0:
        significant -= 1
    step = Decimal(1).scaleb(exponent + len(digits) - significant)
    return RoundingInterval(float(number - step / 2), float(number + step / 2))


def range_product(factors: Iterable[RoundingInterval]) -> RoundingInterval:
    """The product of positive figures."""
    every = tuple(factors)
    return RoundingInterval(
        prod(figure.low for figure in every), prod(figure.high for figure in every)
    )


def enclosing_range(spans: Iterable[RoundingInterval]) -> RoundingInterval:
    """From the lowest to the highest of them; ValueError for none."""
    every = tuple(spans)
    if not every:
        raise ValueError("no figures")
    return RoundingInterval(
        min(figure.low for figure in every), max(figure.high for figure in every)
    )


Path = tuple[str | int, ...]
"""Keys and list places from the root to a value."""


class PublishedSet(Record):
    """A set: its id, where it is from, and all that was printed, floats as they were written."""

    id: str
    source: str
    tree: Mapping[str, Any]
    meaning: SetMeaning

    def table_at(self, *path: str | int) -> Mapping[str, Any]:
        """The table there; empty where there is none."""
        value: Any = self.tree
        for key in path:
            try:
                value = value[key]
            except (KeyError, IndexError, TypeError):
                return {}
        return value if isinstance(value, dict) else {}

    def tables_of_array(self, name: str) -> tuple[Mapping[str, Any], ...]:
        """The elements of an array of tables."""
        value = self.tree.get(name)
        return tuple(filter(_is_table, value)) if isinstance(value, list) else ()

    def iterate_elements(self) -> Iterator[PublishedElement]:
        """Every table at the top and every element of an array there, in the order of the file."""
        for kind, value in self.tree.items():
            for table in value if isinstance(value, list) else (value,):
                if isinstance(table, dict) and kind not in (LOCATION_KEY, MEANING_KEY):
                    name = element_label(table) if isinstance(value, list) else key_text(kind)
                    yield PublishedElement(
                        kind, name, self.stated_source_location(kind, table), table
                    )

    def stated_source_location(
        self, table_name: str, table: Mapping[str, Any] | None = None
    ) -> str:
        """Where in the document a table stands, or one element of an array; "" if not said."""
        own = (table or {}).get(LOCATION_KEY)
        place_text = self.table_at(LOCATION_KEY).get(table_name)
        if isinstance(place_text, dict):
            place_text = place_text.get(str((table or {}).get("id")))
        return str(own or place_text or "")

    def figures_with_paths(self) -> Iterator[tuple[Path, int | Decimal]]:
        """Every number with its path, in the order of the file."""
        yield from _iterate_figures(self.tree, ())


class PublishedElement(Record):
    """A table of a set: the key it has there, what people call it, where it stands, and it."""

    table_key: str
    name: str
    location: str
    table: Mapping[str, Any]


def parse_published_set(text: str) -> PublishedSet:
    """The set. ValueError where the text is no TOML, or has what cannot be a published figure."""
    try:
        tree = parse_toml(text, parse_float=Decimal)
    except (RecursionError, DeepKeyError):
        raise ValueError(_TOO_DEEP) from None
    _require_within_limits(tree, ())
    _require_valid_locations(tree)
    meaning = read_meaning(tree.get(MEANING_KEY, {}))
    published = PublishedSet(str(tree.get("id", "")), str(tree.get("source", "")), tree, meaning)
    if sum(1 for _ in published.figures_with_paths()) > FIGURES_MAX:
        raise ValueError(f"it has more than {FIGURES_MAX:,} figures")
    return published


def flatten_table(table: Mapping[str, Any], name_prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Every value by its name, those of a table within as `name.part`."""
    for key, value in table.items():
        name = f"{name_prefix}{key}"
        if isinstance(value, dict):
            yield from flatten_table(value, f"{name}.")
        else:
            yield name, value


def printed_value_range(value: object) -> RoundingInterval | None:
    """What a printed value stands for: a figure, or a list of a lowest and a highest; else None."""
    if _is_number(value):
        return rounding_range(value)
    if isinstance(value, list) and value and all(_is_number(end) for end in value):
        return enclosing_range(rounding_range(end) for end in value)
    return None


def positive_printed_value_range(value: object) -> RoundingInterval | None:
    """The same where it is above 0 whatever was rounded, so that it can be divided by."""
    figure = printed_value_range(value)
    return figure if figure is not None and figure.low > 0 else None


def table_items(value: object) -> Iterable[tuple[str, Any]]:
    """The keys and values of a table; nothing of any other value."""
    return value.items() if isinstance(value, dict) else ()


class PeakPlace(NamedTuple):
    """Where on an axis the best of a workload was reached, as it was printed."""

    axis_name: str
    workload: str
    place: object


def peak_places(table: Mapping[str, Any]) -> Iterator[PeakPlace]:
    """Axis, workload and place of every best of `peak_at_AXIS = { WORKLOAD = PLACE }`."""
    for key, places in table.items():
        if key.startswith(PEAK_PREFIX):
            for workload, place in table_items(places):
                yield PeakPlace(key.removeprefix(PEAK_PREFIX), workload, place)


def positive_integer_or_none(value: object) -> int | None:
    """A whole number above 0; None where the value is none."""
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None


def element_label(table: Mapping[str, Any]) -> str:
    """What tells an element of an array from the others: the words and the first numbers of it."""
    words = [_element_key_text(name, table[name]) for name in ELEMENT_KEYS if name in table]
    return ", ".join(words)


def key_text(name: str) -> str:
    """A key for people: `p99_99_latency_ms` as `p99.99 latency ms`."""
    return _PERCENTILE.sub(r"\1.\2", name).replace("_", " ")


def _element_key_text(name: str, value: object) -> str:
    if name in ("id", "configuration", "workload"):
        return str(value)
    return f"{key_text(name)} {value}"


def _require_within_limits(value: object, path: Path) -> None:
    """ValueError where anything in it is larger, longer or deeper than rules can hold."""
    if len(path) > DEPTH_MAX:
        raise ValueError(_TOO_DEEP)
    place = ".".join(str(part) for part in path)
    if isinstance(value, dict):
        for key, part in value.items():
            if len(key) > KEY_MAX:
                raise ValueError(f"a key has more than {KEY_MAX} characters")
            _require_within_limits(part, (*path, key))
    elif isinstance(value, list):
        if len(value) > FIGURES_MAX:
            raise ValueError(f"{place!r} has more than {FIGURES_MAX:,} elements")
        for number, part in enumerate(value):
            _require_within_limits(part, (*path, number))
    elif isinstance(value, str) and len(value) > TEXT_MAX:
        raise ValueError(f"{place!r} has more than {TEXT_MAX} characters")
    elif (
        isinstance(value, int | Decimal)
        and not isinstance(value, bool)
        and not _is_within_exponent_limit(value)
    ):
        raise ValueError(f"{place!r} is no figure between 1e-{POWER_MAX} and 1e{POWER_MAX}")


def _require_valid_locations(tree: Mapping[str, Any]) -> None:
    """ValueError where a place is no text, or is that of a table or element that is not there."""
    places = tree.get(LOCATION_KEY, {})
    for name, place in places.items() if isinstance(places, dict) else ((LOCATION_KEY, places),):
        value = tree.get(name)
        elements = value if isinstance(value, list) else ()
        ids = [str(element.get("id")) for element in elements if isinstance(element, dict)]
        parts = place if isinstance(place, dict) else {}
        if name not in tree or not set(parts) <= set(ids):
            raise ValueError(
                f"{LOCATION_KEY!r} names {name!r} or a part of it, which the set has not"
            )
        if not all(isinstance(text, str) for text in parts.values() or (place,)):
            raise ValueError(f"{LOCATION_KEY!r} of {name!r} is no text")


def _is_within_exponent_limit(value: int | Decimal) -> bool:
    figure = Decimal(value)
    return figure.is_finite() and (not figure or -POWER_MAX <= figure.adjusted() < POWER_MAX)


def _iterate_figures(value: object, path: Path) -> Iterator[tuple[Path, int | Decimal]]:
    if isinstance(value, dict):
        for key, part in value.items():
            yield from _iterate_figures(part, (*path, key))
    elif isinstance(value, list):
        for place, part in enumerate(value):
            yield from _iterate_figures(part, (*path, place))
    elif _is_number(value):
        yield path, value


def _is_table(value: object) -> TypeGuard[dict[str, Any]]:
    return isinstance(value, dict)


def _is_number(value: object) -> TypeGuard[int | Decimal]:
    is_integer = isinstance(value, int) and not isinstance(value, bool)
    return is_integer or (isinstance(value, Decimal) and value.is_finite())
