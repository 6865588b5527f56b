"""Options of programs that a study may give: those on a list, each with values that fit. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Protocol

from iolab.errors import EngineError


class Option(Protocol):
    """What is known of an allowed option."""

    @property
    def pattern(self) -> re.Pattern[str]:
        """What its value must match as a whole."""

    @property
    def example(self) -> str:
        """A value that does."""


def allowed(
    program: str, options: Sequence[tuple[str, str]], known: Mapping[str, Option]
) -> dict[str, str]:
    """The options of a program. EngineError for one that is not `known`, or has another value."""
    for name, text in options:
        if name not in known:
            names = ", ".join(sorted(known))
            raise EngineError(f"{program} has no allowed option {name!r}.", f"Use one of: {names}.")
        if not known[name].pattern.fullmatch(text):
            happened = f"The {program} option {name} cannot be {text!r}."
            raise EngineError(happened, f"Write it like {known[name].example}.")
    return dict(options)
