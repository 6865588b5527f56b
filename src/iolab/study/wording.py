"""How faults of a study are worded: values shown safely, the nearest valid spelling."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import Final

SHOWN_CHARACTERS: Final = 60
"""As much of a value as fits in one line beside its explanation."""

_COMPARED_CHARACTERS: Final = 80
"""difflib takes quadratic time; no valid word is longer than this."""

_LISTED: Final = 12
"""More valid words than this are not read by anyone."""


def shown(value: object) -> str:
    """The value as people see it: quoted, control characters escaped, cut when long.

    What a study holds is untrusted text; nothing of it may move a cursor or end a line.
    """
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list | tuple):
        text = "[" + ", ".join(shown(item) for item in value[:SHOWN_CHARACTERS]) + "]"
    elif isinstance(value, str):
        text = repr(value[: SHOWN_CHARACTERS + 1])
    elif isinstance(value, dict):
        text = "a table"
    else:
        text = _number(value)
    if len(text) <= SHOWN_CHARACTERS + 2:
        return text
    return text[:SHOWN_CHARACTERS] + ("…'" if isinstance(value, str) else "…")


def capitalised(text: str) -> str:
    """The text as a sentence begins with it; the rest stays, unlike with `str.capitalize`."""
    return text[:1].upper() + text[1:]


def uncapitalised(text: str) -> str:
    """The beginning of a sentence as it stands within one; the rest stays."""
    return text[:1].lower() + text[1:]


def nearest(word: str, valid: Iterable[str]) -> str | None:
    """The valid word that `word` was most likely meant to be, None when none is near."""
    by_folded = {name.casefold(): name for name in valid}
    asked = word[:_COMPARED_CHARACTERS].casefold()
    matches = difflib.get_close_matches(asked, by_folded, n=1, cutoff=0.6)
    return by_folded[matches[0]] if matches else None


def suggestion(word: str, valid: Iterable[str], nouns: str) -> str:
    """What to do about an unknown word: the nearest one, or the list (`nouns` names its kind)."""
    words = list(valid)
    near = nearest(word, words)
    if near is not None:
        return f"Did you mean {shown(near)}?"
    if not words:
        return f"There are no {nouns} here."
    if len(words) == 1:
        return f"There is only {shown(words[0])}."
    rest = f" and {len(words) - _LISTED} more" if len(words) > _LISTED else ""
    return f"The {nouns} are {', '.join(words[:_LISTED])}{rest}."


def _number(value: object) -> str:
    try:
        return str(value)
    except ValueError:  # Python refuses to print integers of thousands of digits
        return "a number of thousands of digits"
