"""Parts of a text output: several invocations of a tool may stand in one log."""

from __future__ import annotations

import re

from iolab.dataclass import dataclass
from iolab.importers.files import ForeignFile


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
