"""Outputs that are known and not read: each is named, with what to run or to import instead."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from iolab.importers.files import ForeignFile, ForeignFileError, ImportFileSet
from iolab.importers.foreign_run import ForeignRun
from iolab.record import Record


class UnsupportedFormat(Record):
    """A format by what its beginning holds, why it is not read, and what to do."""

    pattern: re.Pattern[bytes]
    message: str
    hint: str


UNREAD: Final = (
    UnsupportedFormat(
        re.compile(rb"^Command Line: .*diskspd.*$.*^Input parameters:", re.M | re.S | re.I),
        "DiskSpd's text is not read.",
        "Run diskspd with -Rxml and import the XML that it prints.",
    ),
    UnsupportedFormat(
        re.compile(rb"^OPERATION +RESULT TYPE +FIRST DONE +LAST DONE", re.M),
        "elbencho's result text is not read.",
        "Run elbencho with --csvfile FILE and import that file.",
    ),
    UnsupportedFormat(
        re.compile(
            rb"^(?:Report: \w+[.(].*(?:Concurrency|Ran): |Operation: \w+, \d+%, Concurrency: )",
            re.M,
        ),
        "warp's report is not read.",
        "Import the .csv.zst or .json.zst that warp wrote beside it (--benchdata).",
    ),
    UnsupportedFormat(
        re.compile(
            rb"<title>Vdbench [^<\n]*summary|^(?:<pre>)?Vdbench summary report", re.I | re.M
        ),
        "A summary of vdbench is not read.",
        "Import flatfile.html of the same output folder.",
    ),
    UnsupportedFormat(
        re.compile(rb"^\s*(?:tod|Run)\b.*\bInterval\b.*\bReqstdOps\b", re.I | re.M),
        "Flat files of vdbench's file-system workloads (fwd) are not read.",
        "Measure the same files with fio, and import its JSON.",
    ),
)


class UnsupportedFormatImporter:
    """It reads nothing, and says of each such file what to do."""

    tool: Final = "unread"

    def recognises(self, file: ForeignFile) -> bool:
        """By the beginning of the file."""
        return any(unread.pattern.search(file.first_bytes) for unread in UNREAD)

    def read(self, file: ForeignFile, file_set: ImportFileSet) -> Sequence[ForeignRun]:
        """ForeignFileError with what to do."""
        del file_set
        unread = next(unread for unread in UNREAD if unread.pattern.search(file.first_bytes))
        # Of a log that another tool's format was read from, only what that one left is this.
        for entry in file.line_coverage.unmarked_lines():
            file.line_coverage.mark_left_out(entry.first_line, entry.last_line, unread.message)
        raise ForeignFileError(unread.message, unread.hint)
