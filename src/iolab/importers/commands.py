"""The options of a command line that a tool prints, each as a setting of its load."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from typing import Final

from iolab.core.limits import SETTING_CHARACTERS_MAX
from iolab.importers.files import NAME_CHARACTERS
from iolab.importers.foreign_run import Settings
from iolab.record import Record
from iolab.text import excerpt

SET_FLAG: Final = "yes"
"""The value of an option that has none."""

_MOMENT: Final = re.compile(r"\d{4}[.-]\d\d[.-]\d\d[-T_]\d\d[.:-]\d\d[.:-]\d\d")
"""When a run began, as scripts put it into its paths: two runs are not unlike by that."""

_PAIRS: Final = "-O"
"""The option of IOR whose value is a setting with a value of its own."""

_VERBOSITY: Final = re.compile(r"-v+")


class CommandSyntax(Record):
    """Which options of a tool have a value.

    Letters of `valueless_letters` have none, those of `value_letters` one, which may follow at once
    (`-b4m`). `valueless_words` are long options without a value, and `path_options` all that have a
    path as theirs; None where every path is an option's.
    """

    valueless_letters: str = ""
    value_letters: str = ""
    valueless_words: frozenset[str] = frozenset()
    path_options: frozenset[str] | None = None


def command_settings(command: str, syntax: CommandSyntax) -> Settings:
    """Every option, whatever their order; those with one dash and one letter with their dash."""
    settings: dict[str, str] = {}
    for name, value in _parse_options(_split_command(replace_timestamps(command)), syntax):
        before = settings.get(name)
        settings[name] = value if before is None else f"{before}, {value}"
    return tuple(
        (excerpt(name, NAME_CHARACTERS), excerpt(value, SETTING_CHARACTERS_MAX))
        for name, value in settings.items()
    )


def replace_timestamps(text: str) -> str:
    """A text in which the moments that paths are named by are all alike."""
    return _MOMENT.sub("TIME", text)


def _split_command(command: str) -> list[str]:
    try:
        return shlex.split(command)
    except ValueError:
        return command.split()


def _parse_options(words: list[str], syntax: CommandSyntax) -> Iterator[tuple[str, str]]:
    waiting = [*words[1 if words and not words[0].startswith("-") else 0 :]][::-1]
    while waiting:
        word = waiting.pop()
        if not _is_option(word):
            yield "arguments", word
            continue
        if _VERBOSITY.fullmatch(word):
            yield "-v", SET_FLAG
            continue
        *flags, word = _split_letter_options(word, syntax)
        yield from ((flag, SET_FLAG) for flag in flags)
        name, equals, value = word.partition("=")
        if word[1] in syntax.value_letters and word[1] != "-" and len(word) > 2:
            name, value = word[:2], word[2:]
        elif not equals and waiting and _is_next_word_its_value(name, waiting[-1], syntax):
            value = waiting.pop()
        if name == _PAIRS and "=" in value:
            key, _, value = value.partition("=")
            name = f"{name} {key}"
        yield name if len(name) == 2 or " " in name else name.lstrip("-"), value or SET_FLAG


def _split_letter_options(word: str, syntax: CommandSyntax) -> list[str]:
    """Flags that stand in one word (`-wrF`), each as an option; the last may have a value."""
    place = 1
    while place < len(word) and word[place] in syntax.valueless_letters:
        place += 1
    is_split = not word.startswith("--") and (
        place == len(word) or (place > 1 and word[place] in syntax.value_letters)
    )
    if not is_split:
        return [word]
    flags = [f"-{letter}" for letter in word[1:place]]
    return flags if place == len(word) else [*flags, f"-{word[place:]}"]


def _is_next_word_its_value(name: str, next_word: str, syntax: CommandSyntax) -> bool:
    """Whether the word after an option is its value."""
    long = name.lstrip("-")
    if (
        _is_option(next_word)
        or long in syntax.valueless_words
        or (len(name) == 2 and name[1] in syntax.valueless_letters)
    ):
        return False
    is_path = next_word.startswith(("/", "./", "../"))
    return (
        not is_path
        or syntax.path_options is None
        or not syntax.path_options.isdisjoint((name, long))
    )


def _is_option(word: str) -> bool:
    return re.match(r"-{1,2}[A-Za-z]", word) is not None
