"""The makers of load that a study may name."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final, NewType

from iolab.errors import EngineError
from iolab.record import Record

EngineName = NewType("EngineName", str)
"""What makes the load, as study files name it; each kind of load declares its own."""


FLAG_PATTERN: Final = "[01]"
FOLDERS_PATTERN: Final = r"(?:(?:/[A-Za-z0-9_.+][A-Za-z0-9_.+-]{0,99}){1,20}/)?"
"""Patterns of options: a switch, and the folder of a program, which may be left out."""


class EngineOption(Record):
    """One allowed option: the pattern that its value must match as a whole, and an example."""

    name: str
    pattern: re.Pattern[str]
    example: str
    meaning: str

    def accepts_value(self, text: str) -> bool:
        """Whether `text` is a value that it takes."""
        return self.pattern.fullmatch(text) is not None


def engine_options_from_rows(*rows: tuple[str, str, str, str]) -> Mapping[str, EngineOption]:
    """Options by name, of rows (name, pattern, example, meaning)."""
    return MappingProxyType(
        {
            name: EngineOption(name, re.compile(pattern), example, meaning)
            for name, pattern, example, meaning in rows
        }
    )


def validate_options(
    program: str, options: Sequence[tuple[str, str]], allowed: Mapping[str, EngineOption]
) -> dict[str, str]:
    """The options of a program; EngineError for one not `allowed`, or with another value."""
    for name, text in options:
        if name not in allowed:
            names = ", ".join(sorted(allowed))
            raise EngineError(f"{program} has no allowed option {name!r}.", f"Use one of: {names}.")
        if not allowed[name].accepts_value(text):
            message = f"The {program} option {name} cannot be {text!r}."
            raise EngineError(message, f"Write it like {allowed[name].example}.")
    return dict(options)
