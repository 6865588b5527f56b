"""Text for people: foreign text made safe, values quoted, lists, counts, per cent, suggestions.

What hosts, files, engines and studies say is untrusted: nothing of it may move a cursor, end a line
or turn around what stands beside it. Markup is escaped by the form that has it (HTML, Markdown).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from typing import Final
from unicodedata import category

EXCERPT_CHARACTERS: Final = 400
"""The usual limit of a foreign sentence: enough for any errno with a long path."""

VALUE_CHARACTERS: Final = 60
"""As much of a value as fits in one line beside its explanation."""

COMPARED_CHARACTERS: Final = 80
"""Comparing takes quadratic time; no valid word is longer than this."""

LISTED_WORDS: Final = 12
"""More valid words than this are not read by anyone."""

FILE_NAME_CHARACTERS: Final = 80
"""As much of a text as a file's name has; 255 bytes is a file system's limit."""

_READ_FACTOR: Final = 4
"""An excerpt reads this many times its limit: a character has up to four bytes, and white space
at both ends is dropped."""

_BREAK: Final = re.compile(r" *[^\S ]\s*")
"""White space that is more than blanks: ends of lines, tabs, spaces that do not break."""


def escape_invisible(text: str) -> str:
    r"""The text with every unseen character written out (`\u202e`); new lines and tabs stay."""
    return text if text.isprintable() else "".join(map(_escaped_if_invisible, text))


def _escaped_if_invisible(character: str) -> str:
    """Controls, joiners and direction overrides change a page without being seen on it."""
    if character.isprintable() or character in "\n\t" or category(character) == "Zs":
        return character
    return character.encode("unicode_escape").decode("ascii")


def one_line(text: str) -> str:
    r"""The text on one line with everything unseen written out, as `\x1b`: printable throughout."""
    return text if text.isprintable() else escape_invisible(_BREAK.sub(" ", text))


def excerpt(text: str | bytes, max_chars: int = EXCERPT_CHARACTERS) -> str:
    """The text on one line of at most `max_chars` characters, with an ellipsis where it was cut.

    Bytes are decoded as UTF-8.
    """
    head = text[: _READ_FACTOR * max_chars]
    line = one_line((head if isinstance(head, str) else head.decode("utf-8", "replace")).strip())
    return line if len(line) <= max_chars else f"{line[: max_chars - 1].rstrip()}…"


def quote_value(value: object) -> str:
    """The value of a key for a message: text quoted and escaped, long values cut."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list | tuple):
        text = "[" + ", ".join(quote_value(item) for item in value[:VALUE_CHARACTERS]) + "]"
    elif isinstance(value, str):
        text = repr(value[: VALUE_CHARACTERS + 1])
    elif isinstance(value, dict):
        text = "a table"
    else:
        text = _number_text(value)
    if len(text) <= VALUE_CHARACTERS + 2:
        return text
    return text[:VALUE_CHARACTERS] + ("…'" if isinstance(value, str) else "…")


def _number_text(value: object) -> str:
    try:
        return str(value)
    except ValueError:  # Python refuses to print integers of thousands of digits
        return "a number of thousands of digits"


def capitalised(text: str) -> str:
    """The text with a capital first letter; the rest stays, unlike with `str.capitalize`."""
    return text[:1].upper() + text[1:]


def uncapitalised(text: str) -> str:
    """The text with a small first letter; the rest stays."""
    return text[:1].lower() + text[1:]


def counted_noun(number: int, singular: str, plural: str | None = None) -> str:
    """A counted noun: `3 runs`, `1 run`."""
    return f"{number:,} {singular if number == 1 else plural or singular + 's'}"


def number_text_with_noun(number_text: str, plural: str) -> str:
    """A written number with a noun in the plural, which a 1 turns to the singular: `1.2 k runs`."""
    is_one = number_text == "1" and plural.endswith("s") and "/" not in plural
    return f"{number_text} {plural.removesuffix('s') if is_one else plural}"


def list_text(names: Iterable[str], max_names: int | None = None) -> str:
    """Names in a sentence: `a, b and c`; those beyond `max_names` are counted.

    Semicolons separate names that hold commas.
    """
    parts = list(names)
    if max_names is not None and len(parts) > max_names:
        parts[max_names:] = [f"{len(parts) - max_names} more"]
    between = "; " if any("," in part for part in parts) else ", "
    return " and ".join((between.join(parts[:-1]), parts[-1])) if parts[1:] else "".join(parts)


def distinct_parts_and_common_part(
    names: Sequence[str], separators: str = " "
) -> tuple[list[str], str]:
    """What tells names apart, and what all of them begin or end with.

    Parts end at one of the `separators`, and each name keeps at least one.
    """
    if len(set(names)) < 2:
        return list(names), ""
    pattern = re.compile(f"[^{re.escape(separators)}]+[{re.escape(separators)}]*")
    parts = [pattern.findall(name) or [name] for name in names]

    def do_parts_differ_at(part_index: int) -> bool:
        return len({part[part_index].rstrip(separators) for part in parts}) > 1

    least = min(map(len, parts)) - 1
    head = next((place for place in range(least) if do_parts_differ_at(place)), least)
    # `tensors / 64` is not parted at its stroke.
    while head and not any(map(str.isalnum, parts[0][head - 1])):
        head = max(head - 2, 0)
    tail = next(
        (place for place in range(least - head) if do_parts_differ_at(-1 - place)), least - head
    )
    common = (*parts[0][:head], *parts[0][len(parts[0]) - tail :])
    kept = ["".join(part[head : len(part) - tail]).rstrip(separators) for part in parts]
    return kept, "".join(common).strip(separators).rstrip(",;:")


def percent_text(share: float, *, is_signed: bool = False) -> str:
    """A share in per cent: two digits, and no fewer than stand before the point.

    A share below 1 is never shown as 100 %, one above 0 never as 0 %: 99.6 %, 99.98 %.
    """
    percent = 100 * share + 0.0  # of -0.0 makes 0.0
    sign = "+" if is_signed else ""
    if 99 < percent < 100:
        return f"{sign}{100 - float(f'{100 - percent:.1g}'):.10g} %"
    if abs(percent) >= 9.95:
        return f"{percent:{sign}.0f} %"
    return f"{float(f'{percent:.2g}'):{sign}.10f}".rstrip("0").rstrip(".") + " %"


def file_name_slug(text: str) -> str:
    """The text as a part of a file's name, whatever it holds: small letters, digits and hyphens."""
    slug = re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")
    return slug[:FILE_NAME_CHARACTERS].rstrip("-") or "unnamed"


def nearest_word(word: str, valid_words: Iterable[str]) -> str | None:
    """The valid word that `word` was most likely meant to be, None when none is near."""
    by_folded = {name.casefold(): name for name in valid_words}
    folded = word[:COMPARED_CHARACTERS].casefold()
    matches = get_close_matches(folded, by_folded, n=1, cutoff=0.6)
    return by_folded[matches[0]] if matches else None


def suggestion(word: str, valid_words: Iterable[str], plural_noun: str) -> str:
    """The hint for an unknown word: the nearest valid one, or the list of `plural_noun`."""
    words = list(valid_words)
    near = nearest_word(word, words)
    if near is not None:
        return f"Did you mean {quote_value(near)}?"
    if not words:
        return f"There are no {plural_noun} here."
    if len(words) == 1:
        return f"There is only {quote_value(words[0])}."
    rest = f" and {len(words) - LISTED_WORDS} more" if len(words) > LISTED_WORDS else ""
    return f"The {plural_noun} are {', '.join(words[:LISTED_WORDS])}{rest}."
