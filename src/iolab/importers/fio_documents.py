"""Where fio's reports stand in a file: alone or among text, appended, in an array, cut off."""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from iolab.importers.files import (
    ForeignFile,
    ForeignFileError,
    dict_or_empty,
    finite_number,
    rounded_number,
)
from iolab.record import Record
from iolab.units import NS_PER_MS, NS_PER_S

JsonDict = Mapping[str, Any]

DOCUMENTS_MAX: Final = 100_000
"""A report every second for a day."""

CUT_MAX: Final = 1000
"""Reports that are cut off; each costs as much as a whole one."""

OPENINGS_MAX: Final = 200
"""Braces before the name of fio's version that are tried: a report sorted by name has its disks
there."""

CLOCK_SLACK_S: Final = 1.5
"""How far the times of two reports of one run may seem apart: elapsed time is whole seconds."""

STEP_MIN_S: Final = 0.5
"""What a report is later at least where none tells the time of day: the same job that is run again
takes as long."""

_VERSION: Final = re.compile(r'"fio version"\s*:')
_NO_NUMBER: Final = re.compile(r"(:\s*)([-+]?)(?:nan|inf)\b", re.IGNORECASE)
_PROGRESS: Final = re.compile(
    r"\s*[\[\],]*\s*"
    r"|Jobs: \d+.*|fio-\d.*|Starting \d+ .*|.*: \(g=\d+\): rw=.*|\.\.\."
    r"|(?:<[^>]*> )?(?:fio|note|clock setaffinity|hostname)\b.*|.*Laying out IO file.*|Disk stats.*"
)
"""Lines in which fio says how far it is, and which hold no result."""

TEXT_REPORT: Final = re.compile(r"^\S.*: \(groupid=\d+, jobs=\d+\): err=", re.MULTILINE)
TERSE_REPORT: Final = re.compile(
    r"^[2-5];(?:fio-[^;\n]*;)?[^;\n]*;\d+;\d+;(?:[^;\n]*;){20}", re.MULTILINE
)

UNREAD: Final = (
    re.compile(TEXT_REPORT.pattern.encode(), re.MULTILINE),
    re.compile(TERSE_REPORT.pattern.encode(), re.MULTILINE),
)
"""The same two in a file's bytes."""

TEXT_NOT_READ: Final = "fio's text output is not read."
TERSE_NOT_READ: Final = "fio's terse output is not read."
CUT_OFF: Final = "fio's report is cut off, or is no JSON."


class FioReportDocument(Record):
    """One report of a file, with its lines."""

    json_document: JsonDict
    first_line: int
    last_line: int

    @property
    def job_entries(self) -> list[JsonDict]:
        """Its jobs, of fio alone or of clients of its servers."""
        every = self.json_document.get("client_stats", self.json_document.get("jobs"))
        if not isinstance(every, list):
            return []
        return [entry for entry in every if isinstance(entry, dict)]

    @property
    def written_ns(self) -> int | None:
        """When it was made, in ns since 1970; fio says so from 2.2.5 on."""
        exact = rounded_number(self.json_document.get("timestamp_ms"))
        if exact is not None:
            return exact * NS_PER_MS
        seconds = rounded_number(self.json_document.get("timestamp"))
        return None if seconds is None else seconds * NS_PER_S


def find_fio_reports_and_mark_lines(file: ForeignFile) -> list[FioReportDocument]:
    """Every report in a file, whatever stands around it; the account tells of all else."""
    text = _NO_NUMBER.sub(lambda match: f"{match[1]}{' ' * len(match[2])}NaN", file.text)
    decoder = json.JSONDecoder(parse_constant=lambda _: None)
    documents: list[FioReportDocument] = []
    cut: list[int] = []
    at = 0
    while (version := _VERSION.search(text, at)) and len(cut) < CUT_MAX:
        found = _decode_report_with_span(decoder, text, at, version.start())
        if found is None:
            opening = text.rfind("{", at, version.start())
            cut.append(file.line_number_at(version.start() if opening < 0 else opening))
            at = version.end()
            continue
        content, begin, at = found
        document = FioReportDocument(
            content, file.line_number_at(begin), file.line_number_at(at - 1)
        )
        if len(documents) == DOCUMENTS_MAX:
            file.line_coverage.mark_left_out(
                document.first_line, len(file.lines), f"More than {DOCUMENTS_MAX} reports of fio."
            )
            break
        documents.append(document)
        file.line_coverage.mark_read(document.first_line, document.last_line)
    if not documents:
        raise ForeignFileError(CUT_OFF)
    _mark_cut_off_reports(file, documents, cut)
    _mark_text_reports_and_progress(file)
    return documents


def _decode_report_with_span(
    decoder: json.JSONDecoder, text: str, begin_at: int, version_at: int
) -> tuple[JsonDict, int, int] | None:
    """The report that names its version there, with its first and last place."""
    opening = text.rfind("{", begin_at, version_at)
    tried = 0
    # fio names its version first; what sorts the names of a report puts others before it.
    for begin in (opening, *_opening_brace_offsets(text, begin_at, version_at)):
        if begin < 0 or tried == OPENINGS_MAX:
            return None
        tried += 1
        try:
            content, end = decoder.raw_decode(text, begin)
        except (ValueError, RecursionError):
            continue
        if end > version_at and isinstance(content, dict) and "fio version" in content:
            return content, begin, end
    return None


def _opening_brace_offsets(text: str, start: int, end: int) -> Iterator[int]:
    begin = text.find("{", start, end)
    while begin >= 0:
        yield begin
        begin = text.find("{", begin + 1, end)


def _mark_cut_off_reports(
    file: ForeignFile, documents: Sequence[FioReportDocument], cut_off_line_numbers: Sequence[int]
) -> None:
    """Each report that is cut off reaches to where the next one begins."""
    begins = sorted(
        {
            *(document.first_line for document in documents),
            *cut_off_line_numbers,
            len(file.lines) + 1,
        }
    )
    for line in cut_off_line_numbers:
        after = bisect_right(begins, line)
        last = begins[after] - 1 if after < len(begins) else line
        file.line_coverage.mark_left_out(line, max(last, line), CUT_OFF)


def _mark_text_reports_and_progress(file: ForeignFile) -> None:
    """What fio says on its way is no result; its text and terse outputs are, and are not read."""
    unread = [
        line
        for entry in file.line_coverage.unmarked_lines()
        for line in range(entry.first_line, entry.last_line + 1)
    ]
    begin, before = 0, 0
    for line in [*unread, len(file.lines) + 2]:
        blank = not any(text.strip() for text in file.lines[before : line - 1])
        if begin and not (blank and line <= len(file.lines)):
            file.line_coverage.mark_left_out(begin, before, TEXT_NOT_READ)
            begin = 0
        before = line
        text = file.lines[line - 1] if line <= len(file.lines) else ""
        if TEXT_REPORT.match(text):
            begin = begin or line
        elif TERSE_REPORT.match(text):
            file.line_coverage.mark_left_out(line, line, TERSE_NOT_READ)
        elif not begin and _PROGRESS.fullmatch(text):
            file.line_coverage.mark_read(line)


def group_reports_by_run(
    documents: Sequence[FioReportDocument],
) -> Iterator[list[FioReportDocument]]:
    """Reports of one run of fio, each of which counts on from the one before."""
    run: list[FioReportDocument] = []
    for document in documents:
        if run and not _is_later_report_of_same_run(run[-1], document):
            yield run
            run = []
        run.append(document)
    if run:
        yield run


class FioEntryKey(NamedTuple):
    """What tells an entry from others of its report."""

    job: str
    group: int
    client: str


def fio_entry_key(entry: JsonDict) -> FioEntryKey:
    """What tells an entry from others of its report: job, group and client."""
    client = f"{entry.get('hostname', '')}:{entry.get('port', '')}".strip(":")
    group = rounded_number(entry.get("groupid")) or 0
    return FioEntryKey(str(entry.get("jobname", "")), group, client)


def _is_later_report_of_same_run(before: FioReportDocument, after: FioReportDocument) -> bool:
    """Whether a report is a later one of the same process, and not of the same job run again.

    Nothing of it may have shrunk, and the time of day must have gone on as the run's own did.
    """
    first, second = _progress_by_job(before), _progress_by_job(after)
    if not first or before.json_document.get("global options") != after.json_document.get(
        "global options"
    ):
        return False
    for place, progress in first.items():
        later = second.get(place)
        if later is None or later.ios < progress.ios or later.run_s < progress.run_s:
            return False
    went_s = max(each.run_s for each in second.values()) - max(
        each.run_s for each in first.values()
    )
    elapsed = [max(each.elapsed_s for each in every.values()) for every in (first, second)]
    if all(elapsed):
        went_s = elapsed[1] - elapsed[0]
    if before.written_ns is None or after.written_ns is None:
        return went_s > STEP_MIN_S
    passed_s = (after.written_ns - before.written_ns) / NS_PER_S
    return passed_s > 0 and abs(passed_s - went_s) <= CLOCK_SLACK_S


class _JobProgress(Record):
    """How far a job is: I/Os, its run time, and the elapsed time of fio, 0 where not told."""

    ios: float = 0.0
    run_s: float = 0.0
    elapsed_s: float = 0.0


def _progress_by_job(document: FioReportDocument) -> dict[object, _JobProgress]:
    """That of each job with its options."""
    rows: dict[object, _JobProgress] = {}
    for entry in document.job_entries:
        blocks = [dict_or_empty(entry.get(way)) for way in ("read", "write", "trim", "mixed")]
        place = (fio_entry_key(entry), str(entry.get("job options")))
        before = rows.get(place, _JobProgress())
        rows[place] = _JobProgress(
            before.ios + sum(finite_number(block.get("total_ios")) or 0.0 for block in blocks),
            max(
                before.run_s,
                *((finite_number(block.get("runtime")) or 0) / 1000 for block in blocks),
            ),
            max(before.elapsed_s, finite_number(entry.get("elapsed")) or 0.0),
        )
    return rows
