"""Numbers and words out of diskspd's elements, and the faults that are met on the way: pure."""

from __future__ import annotations

import math
from typing import Final
from xml.etree import ElementTree as ET

from iolab.errors import Fault

WORDS_LIMIT: Final = 300
"""Characters kept of anything that diskspd says; a path of Windows has 260."""

FAULTS_LIMIT: Final = 50
"""Faults kept: a document that is wrong throughout is wrong in the same way."""

COUNT_DIGITS_LIMIT: Final = 20
"""Digits of the largest number of 64 bits."""


def plain(text: str) -> str:
    """The words in one line, without what would steer a terminal."""
    shown = "".join(letter if letter.isprintable() else " " for letter in text)
    return " ".join(shown.split())[:WORDS_LIMIT]


def bounded(text: str) -> str:
    """The words as an error shows them."""
    return plain(text)[:WORDS_LIMIT].rstrip(".")


def quoted(text: str) -> str:
    """The same between quotes; the backslashes of a path stay single."""
    return f"'{bounded(text)}'"


def words_of(element: ET.Element | None, path: str) -> str:
    """What the element below says; "" where there is none."""
    return plain(element.findtext(path) or "") if element is not None else ""


class Draft:
    """A document while it is read: what its elements say, and all that is wrong with them."""

    def __init__(self) -> None:
        self._faults: dict[Fault, None] = {}

    @property
    def faults(self) -> tuple[Fault, ...]:
        """All faults so far, each once."""
        return tuple(self._faults)

    def fault(self, happened: str, do: str) -> None:
        """Something is wrong."""
        if len(self._faults) < FAULTS_LIMIT:
            self._faults[Fault(happened, do)] = None

    def count(self, element: ET.Element, path: str) -> int | None:
        """A whole number of the element below, None where there is none."""
        said = element.findtext(path)
        if said is None:
            return None
        digits = said.strip()
        if digits.isascii() and digits.isdigit() and len(digits) <= COUNT_DIGITS_LIMIT:
            return int(digits)
        self._unreadable(path, said)
        return None

    def required_count(self, element: ET.Element, path: str) -> int | None:
        """A whole number that must be there; None, and a fault, where it is not."""
        self._require(element, path)
        return self.count(element, path)

    def number(self, element: ET.Element, path: str) -> float | None:
        """A number from 0 on of the element below, None where there is none."""
        said = element.findtext(path)
        return None if said is None else self._number(path, said)

    def required(self, element: ET.Element, path: str) -> float | None:
        """A number that must be there; None, and a fault, where it is not."""
        self._require(element, path)
        return self.number(element, path)

    def attribute(self, element: ET.Element, name: str) -> float | None:
        """A number that must be an attribute; None, and a fault, where it is not."""
        said = element.get(name)
        if said is None:
            self._missing(f"attribute {name}", element.tag)
            return None
        return self._number(name, said)

    def _require(self, element: ET.Element, path: str) -> None:
        if element.find(path) is None:
            self._missing(path, element.tag)

    def _number(self, name: str, said: str) -> float | None:
        try:
            number = float(said)
        except ValueError:
            number = math.nan
        if math.isfinite(number) and number >= 0:
            return number
        self._unreadable(name, said)
        return None

    def _missing(self, name: str, within: str) -> None:
        self.fault(
            f"diskspd does not tell {name} in a {bounded(within)}.", "Keep all that diskspd prints."
        )

    def _unreadable(self, name: str, said: str) -> None:
        self.fault(
            f"diskspd tells {name} as {quoted(said)}.", "Keep what diskspd prints unchanged."
        )
