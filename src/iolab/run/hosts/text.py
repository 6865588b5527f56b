"""Text from hosts is untrusted: shortened and without control characters before anyone sees it."""

from __future__ import annotations

from typing import Final

SAID_LIMIT: Final = 400
"""Characters of a host's sentence that are kept: enough for any errno with a long path."""


def printable(text: str, limit: int = SAID_LIMIT) -> str:
    """The text on one line, control and format characters escaped, cut to `limit` characters."""
    head = text[: limit + 1]
    shown = "".join(c if c.isprintable() else _escaped(c) for c in head.strip())
    return shown if len(shown) <= limit else shown[: limit - 1] + "…"


def printable_bytes(content: bytes, limit: int = SAID_LIMIT) -> str:
    """Bytes that should have been text, shown the same way."""
    return printable(content[: 4 * limit].decode("utf-8", "replace"), limit)


def _escaped(character: str) -> str:
    if character in "\n\r\t":
        return " "
    return character.encode("unicode_escape").decode("ascii")
