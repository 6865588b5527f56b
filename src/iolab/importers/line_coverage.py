"""What became of each line of a file: read into a run, or left out with the reason.

An importer fills the account of the file that it reads, in lines from 1 on, the last included:

    file.account.read(1, 40)       # results, options, and text known to hold neither
    file.account.left_out(41, 60, "The report is cut off.")
    file.account.read_all()        # all that is not marked yet

`file.line_at(offset)` is the line of a place in `file.text`. Blank lines need no mark, and a line
may be both read and left out: its rate is read, a histogram in it is not. Lines with no mark at all
are the account's `remainder`: the command names them as left out, and a test lets no recorded
file have any.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from iolab.record import Record

UNMARKED_REASON: Final = "Nothing is known of the format of these lines."
"""The reason of a remainder."""

PLACES_SHOWN: Final = 3
"""Places with one reason that a sentence names; more are counted."""

LEFT_OUT_MAX: Final = 1000
"""Entries kept for one file; the last one stands for all that follow."""


class UnreadLines(Record):
    """Lines of a file that are in no run, with the reason in a sentence."""

    file: str
    first_line: int
    last_line: int
    reason: str

    @property
    def location_text(self) -> str:
        """Where they are."""
        last = f"-{self.last_line}" if self.last_line > self.first_line else ""
        return f"{self.file}, line{'s' if last else ''} {self.first_line}{last}"

    @property
    def message(self) -> str:
        """Where they are, and why they are left out."""
        return f"{self.location_text}: {self.reason}"


def left_out_line_messages(entries: Sequence[UnreadLines]) -> list[str]:
    """A sentence for each reason, with the places that it is of."""
    places: dict[str, list[str]] = {}
    for entry in entries:
        places.setdefault(entry.reason, []).append(entry.location_text)
    return [f"{_line_locations_text(every)}: {reason}" for reason, every in places.items()]


def _line_locations_text(places: Sequence[str]) -> str:
    more = len(places) - PLACES_SHOWN
    return "; ".join(places[:PLACES_SHOWN]) + (f"; and {more} more" if more > 0 else "")


class LineCoverage:
    """The marks of one file; see the module."""

    def __init__(self, file: str, lines: Sequence[str]) -> None:
        self._file = file
        self._unmarked = bytearray(bool(line.strip()) for line in lines)
        self._left_out: list[UnreadLines] = []
        self.is_begun = False

    def mark_read(self, first_line_number: int, last_line_number: int | None = None) -> None:
        """These lines are in a run, or are known to tell of no result."""
        self.is_begun = True
        last_line_number = min(
            first_line_number if last_line_number is None else last_line_number, len(self._unmarked)
        )
        if last_line_number >= first_line_number >= 1:
            self._unmarked[first_line_number - 1 : last_line_number] = bytes(
                last_line_number - first_line_number + 1
            )

    def mark_all_read(self) -> None:
        """All lines that were not marked so far are read."""
        self.is_begun = True
        self._unmarked = bytearray(len(self._unmarked))

    def mark_left_out(self, first_line_number: int, last_line_number: int, reason: str) -> None:
        """These lines are in no run, for a reason that the user is told."""
        self.mark_read(first_line_number, last_line_number)
        entry = UnreadLines(self._file, first_line_number, last_line_number, reason)
        if len(self._left_out) < LEFT_OUT_MAX:
            self._left_out.append(entry)
        elif entry.last_line > self._left_out[-1].last_line:
            before = self._left_out[-1]
            self._left_out[-1] = UnreadLines(
                self._file, before.first_line, last_line_number, before.reason
            )

    def mark_all_left_out(self, reason: str) -> None:
        """No line of the file is in a run."""
        self._left_out.clear()
        self.mark_left_out(1, max(len(self._unmarked), 1), reason)

    def unmarked_lines(self) -> list[UnreadLines]:
        """The lines with no mark, those that follow each other as one entry."""
        entries: list[UnreadLines] = []
        first = self._unmarked.find(1)
        while first >= 0:
            last = self._unmarked.find(0, first)
            last = len(self._unmarked) if last < 0 else last
            entries.append(UnreadLines(self._file, first + 1, last, UNMARKED_REASON))
            first = self._unmarked.find(1, last)
        return entries

    def left_out_and_unmarked_lines(self) -> tuple[UnreadLines, ...]:
        """All that is left out, the remainder too, in order of the lines."""
        every = [*self._left_out, *self.unmarked_lines()]
        return tuple(
            sorted(dict.fromkeys(every), key=lambda entry: (entry.first_line, entry.last_line))
        )
