"""TOML of others: read by the standard library, within bounds that keep it quick."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable
from typing import Any, Final

PARTS_MAX: Final = 32
"""Parts of a dotted key. The library's time grows with their square, 50,000 take minutes, and no
file of iolab needs more than six. Words joined by dots in text and comments count as well."""

_PART: Final = r"""(?:[\w-]++|"[^"\n]*+"|'[^'\n]*+')"""
_TOO_DEEP: Final = re.compile(rf"(?<![\w-]){_PART}(?:[ \t]*+\.[ \t]*+{_PART}){{{PARTS_MAX}}}")


class DeepKeyError(ValueError):
    """A dotted key has more parts than anybody needs; `line` is where, from 1."""

    def __init__(self, line: int) -> None:
        super().__init__(f"a key has more than {PARTS_MAX} parts (line {line})")
        self.line = line


def parse_toml(text: str, parse_float: Callable[[str], Any] = float) -> dict[str, Any]:
    """The tree of `text`. tomllib.TOMLDecodeError where it is no TOML, DeepKeyError as above."""
    if match := _TOO_DEEP.search(text):
        raise DeepKeyError(text.count("\n", 0, match.start()) + 1)
    return tomllib.loads(text, parse_float=parse_float)
