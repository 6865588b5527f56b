"""The options of a command line that a tool prints, each as a setting of its load."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from typing import Final

from iolab.importers.files import SETTING_CHARACTERS, clean
from iolab.importers.model import Settings

YES: Final = "yes"
"""The value of an option that has none."""

_MOMENT: Final = re.compile(r"\d{4}[.-]\d\d[.-]\d\d[-T_]\d\d[.:-]\d\d[.:-]\d\d")
"""When a run began, as scripts put it into its paths: two runs are not unlike by that."""

_PAIRS: Final = ("-p", "-O")
"""Options whose value is a setting with a value of its own."""


def command_settings(command: str) -> Settings:
    """Every option, whatever their order; those with one dash and one letter with their dash."""
    settings: dict[str, str] = {}
    for name, value in _options(_words(without_moment(command))):
        before = settings.get(name)
        settings[name] = value if before is None else f"{before}, {value}"
    return tuple(
        (clean(name), clean(value, SETTING_CHARACTERS)) for name, value in settings.items()
    )


def without_moment(text: str) -> str:
    """A text in which the moments that paths are named by are all alike."""
    return _MOMENT.sub("TIME", text)


def _words(command: str) -> list[str]:
    try:
        return shlex.split(command)
    except ValueError:
        return command.split()


def _options(words: list[str]) -> Iterator[tuple[str, str]]:
    place = 1 if words and not words[0].startswith("-") else 0
    while place < len(words):
        word = words[place]
        place += 1
        if not _is_option(word):
            yield "arguments", word
            continue
        name, equals, value = word.partition("=")
        if not equals and place < len(words) and not _is_option(words[place]):
            value = words[place]
            place += 1
        if name in _PAIRS and value:
            key, _, value = value.partition("=")
            name = key if name == "-p" else f"{name} {key}"
        yield name if len(name) == 2 or " " in name else name.lstrip("-"), value or YES


def _is_option(word: str) -> bool:
    return re.match(r"-{1,2}[A-Za-z]", word) is not None
