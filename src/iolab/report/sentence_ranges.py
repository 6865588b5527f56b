"""Sentences of several runs that differ in their numbers alone, as one with ranges."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Final

from iolab.record import Record
from iolab.text import list_text
from iolab.units import significant_digits_text

NAMES_SHOWN: Final = 3
"""Hosts and devices named where the sentences name different ones; others are counted."""

_NUMBER: Final = re.compile(r"([(±]*)(\d[\d,]*(?:\.\d+)?)([).,;:×]*)")
_UNIT: Final = re.compile(r"(%|k|M|G|ns|µs|ms|s|B|KiB|MiB|GiB|TiB|B/s|kB/s|MB/s|GB/s)([).,;:]*)")
_ALL_OF: Final = re.compile(r"\b(\d+) of \1\b")
"""Hosts of as many."""

_NAME: Final = re.compile(r"([^\W\d][\w./-]*\d[\w./-]*?|(?:file|tree)-[a-z]+)([).,;:]*)")
"""A word with a digit in it, of hosts, devices and phases, or an operation on files or trees."""

_SCALES: Final = {
    "": ("", 1.0),
    "k": ("", 1e3),
    "M": ("", 1e6),
    "G": ("", 1e9),
    "%": ("%", 1.0),
    "ns": ("s", 1e-9),
    "µs": ("s", 1e-6),
    "ms": ("s", 1e-3),
    "s": ("s", 1.0),
    "B": ("B", 1.0),
    "KiB": ("B", 2.0**10),
    "MiB": ("B", 2.0**20),
    "GiB": ("B", 2.0**30),
    "TiB": ("B", 2.0**40),
    "B/s": ("B/s", 1.0),
    "kB/s": ("B/s", 1e3),
    "MB/s": ("B/s", 1e6),
    "GB/s": ("B/s", 1e9),
}
"""What a unit is of, and how many of that."""


class MergedSentence(Record):
    """What sentences have in common, and those of them that say it."""

    text: str
    covered_sentences: frozenset[str]


class _SentencePart(Record):
    """A word, a name or a number of a sentence, with the punctuation around it."""

    text: str
    kind: str = ""
    before: str = ""
    after: str = ""
    unit: str = ""
    amount: float = 0.0

    @property
    def comparable_form(self) -> tuple[str, ...]:
        """What other sentences have in its place if they say the same."""
        if self.kind:
            return (self.kind, self.before, self.after, _SCALES[self.unit][0])
        return (self.text,)


def merge_sentences(sentences: Iterable[str]) -> MergedSentence:
    """The most frequent form of at least one sentence, with the ranges of its numbers."""
    every = [(sentence, _sentence_parts(sentence)) for sentence in sentences]
    forms = Counter(tuple(part.comparable_form for part in parts) for _, parts in every)
    ((form, _),) = forms.most_common(1)
    alike = {
        sentence: parts
        for sentence, parts in every
        if tuple(part.comparable_form for part in parts) == form
    }
    words: list[str] = []
    for parts in zip(*alike.values(), strict=True):
        word = _merged_part_text(parts)
        # All of a number that differs are all of them, not of a range.
        if not (words[-1:] == ["all"] and parts[0].kind == "number" and " to " in word):
            words.append(word)
    return MergedSentence(" ".join(words), frozenset(alike))


def _sentence_parts(sentence: str) -> list[_SentencePart]:
    words = _ALL_OF.sub(r"all \1", sentence).split(" ")
    parts = []
    place = 0
    while place < len(words):
        word = words[place]
        place += 1
        if number := _NUMBER.fullmatch(word):
            before, digits, after = number.groups()
            unit = None
            if not after and place < len(words):
                unit = _UNIT.fullmatch(words[place])
            if unit:
                place += 1
                after = unit[2]
            name = unit[1] if unit else ""
            amount = float(digits.replace(",", "")) * _SCALES[name][1]
            parts.append(_SentencePart(digits, "number", before, after, name, amount))
        elif name_match := _NAME.fullmatch(word):
            parts.append(_SentencePart(name_match[1], "name", "", name_match[2]))
        else:
            parts.append(_SentencePart(word))
    return parts


def _merged_part_text(parts_at_place: Sequence[_SentencePart]) -> str:
    first = parts_at_place[0]
    if first.kind == "number":
        return f"{first.before}{_range_text(parts_at_place)}{first.after}"
    # Each sentence has one of them: no run has them all.
    names = " or ".join(
        list_text(list(dict.fromkeys(part.text for part in parts_at_place)), NAMES_SHOWN).rsplit(
            " and ", 1
        )
    )
    return f"{names}{first.after}" if first.kind else first.text


def _range_text(parts_at_place: Sequence[_SentencePart]) -> str:
    least = min(parts_at_place, key=_amount_of_part)
    most = max(parts_at_place, key=_amount_of_part)
    low, high = (f"{part.text} {part.unit}".rstrip() for part in (least, most))
    if low == high:
        return low
    if least.unit == most.unit:
        low = least.text
    elif not _SCALES[most.unit][0]:  # the unit that follows is that of both
        low = significant_digits_text(least.amount / _SCALES[most.unit][1])
    return f"{low} to {high}"


def _amount_of_part(part: _SentencePart) -> float:
    return part.amount
