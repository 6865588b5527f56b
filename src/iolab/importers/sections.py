"""Parts of a text output: several invocations of a tool may stand in one log."""

from __future__ import annotations

import re
from functools import cached_property

from iolab.importers.files import ForeignFile
from iolab.record import Record


class OutputSection(Record, dict=True):
    """What one invocation printed: lines `first_line` to `last_line` of a file."""

    file: ForeignFile
    first_line: int
    last_line: int

    @cached_property
    def numbered_lines(self) -> list[tuple[int, str]]:
        """Each line with its number."""
        return list(
            enumerate(self.file.lines[self.first_line - 1 : self.last_line], start=self.first_line)
        )

    @cached_property
    def text(self) -> str:
        """All of it."""
        return "\n".join(self.file.lines[self.first_line - 1 : self.last_line])

    def mark_read(self) -> None:
        """Mark all of its lines in the account; what is left out stays left out."""
        self.file.line_coverage.mark_read(self.first_line, self.last_line)


def split_into_sections(file: ForeignFile, begin: re.Pattern[str]) -> list[OutputSection]:
    """A section from each line in which `begin` is found up to the next one."""
    starts = [number for number, line in enumerate(file.lines, start=1) if begin.search(line)]
    ends = [*(start - 1 for start in starts[1:]), len(file.lines)][: len(starts)]
    return [OutputSection(file, first, last) for first, last in zip(starts, ends, strict=True)]
