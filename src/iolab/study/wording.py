"""What to do about an unknown word: the nearest valid spelling, or the list of them."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import Final

from iolab.text import quote_value

_COMPARED_CHARACTERS: Final = 80
"""difflib takes quadratic time; no valid word is longer than this."""

_LISTED: Final = 12
"""More valid words than this are not read by anyone."""


def nearest_word(word: str, valid: Iterable[str]) -> str | None:
    """The valid word that `word` was most likely meant to be, None when none is near."""
    by_folded = {name.casefold(): name for name in valid}
    asked = word[:_COMPARED_CHARACTERS].casefold()
    matches = difflib.get_close_matches(asked, by_folded, n=1, cutoff=0.6)
    return by_folded[matches[0]] if matches else None


def suggestion(word: str, valid: Iterable[str], nouns: str) -> str:
    """What to do about an unknown word: the nearest one, or the list (`nouns` names its kind)."""
    words = list(valid)
    near = nearest_word(word, words)
    if near is not None:
        return f"Did you mean {quote_value(near)}?"
    if not words:
        return f"There are no {nouns} here."
    if len(words) == 1:
        return f"There is only {quote_value(words[0])}."
    rest = f" and {len(words) - _LISTED} more" if len(words) > _LISTED else ""
    return f"The {nouns} are {', '.join(words[:_LISTED])}{rest}."
