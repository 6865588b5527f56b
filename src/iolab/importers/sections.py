"""Parts of a text output: several invocations of a tool may stand in one log."""

from __future__ import annotations

import re
import shlex
from collections.abc import Collection, Iterator
from typing import Final

from iolab.dataclass import dataclass
from iolab.importers.files import SETTING_CHARACTERS, ForeignFile, clean

VALUES_OF_OTHERS: Final = re.compile(r"-\d*\.?\d")
"""A word that begins so is a negative number, and no option."""


@dataclass(frozen=True)
class Section:
    """What one invocation printed: lines `first` to `last` of a file."""

    file: ForeignFile
    first: int
    last: int

    @property
    def lines(self) -> list[tuple[int, str]]:
        """Each line with its number."""
        return list(enumerate(self.file.lines[self.first - 1 : self.last], start=self.first))

    @property
    def text(self) -> str:
        """All of it."""
        return "\n".join(self.file.lines[self.first - 1 : self.last])

    def read(self) -> None:
        """Mark in the account all of its lines that are not marked yet."""
        for entry in self.file.account.remainder():
            first, last = max(entry.first, self.first), min(entry.last, self.last)
            if first <= last:
                self.file.account.read(first, last)


def sections_of(file: ForeignFile, begin: re.Pattern[str]) -> list[Section]:
    """A section from each line in which `begin` is found up to the next one."""
    starts = [number for number, line in enumerate(file.lines, start=1) if begin.search(line)]
    ends = [*(start - 1 for start in starts[1:]), len(file.lines)][: len(starts)]
    return [Section(file, first, last) for first, last in zip(starts, ends, strict=True)]


def options_of(command: str, ignored: Collection[str]) -> str:
    """The options of a command line in one order, without its program and the `ignored` ones.

    Two commands that ask for the same load in another order or with another directory give the
    same text.
    """
    try:
        words = shlex.split(command)
    except ValueError:  # A quote that was cut off.
        words = command.split()
    options = sorted(" ".join(option) for option in _options(words) if option[0] not in ignored)
    return clean(" ".join(options), SETTING_CHARACTERS)


def _options(words: list[str]) -> Iterator[list[str]]:
    """Each option with its values."""
    option: list[str] = []
    for word in words:
        if word.startswith("-") and not VALUES_OF_OTHERS.match(word):
            if option:
                yield option
            name, is_assigned, value = word.partition("=")
            option = [name, value] if is_assigned else [word]
        elif option:
            option.append(word)
    if option:
        yield option
