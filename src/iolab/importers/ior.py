"""IOR's output: the rates of each row are of all tasks together, so they are one client's here."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from iolab.core.limits import SETTING_CHARACTERS_MAX
from iolab.importers.commands import CommandSyntax, command_settings
from iolab.importers.files import (
    NAME_CHARACTERS,
    SENTENCE_CHARACTERS,
    ForeignFile,
    ForeignFileError,
    ImportFileSet,
    parse_number,
    parse_time_as_utc_ns,
)
from iolab.importers.foreign_run import (
    ForeignRun,
    ImportedClient,
    ImportedClientDetails,
    ImportedRunDetails,
    OperationFigures,
)
from iolab.importers.sections import OutputSection, split_into_sections
from iolab.text import excerpt
from iolab.units import MIB, parse_size

_STYLE: Final = CommandSyntax(
    valueless_letters="BcCeEFgHIkKmnpPqrRSuvVwWxyYzZ", value_letters="aAbdDfGijJMNoOQstTUX"
)
_BEGIN: Final = re.compile(r"IOR-(\S+): MPI Coordinated Test of Parallel I/O")
_OPTION: Final = re.compile(r"^\s*(?!(?:ior )?WARNING)([A-Za-z][\w /()\t-]*?)[:=] (.*)$")
_TEST: Final = re.compile(r"^(?:(Test \d+ started|TestID)\s*:|(?:Options|Summary):\s*$)")
"""Where the options of a test begin: one invocation may make several, one after the other."""

_ACTUAL: Final = re.compile(r"Using actual aggregate bytes moved\s*=\s*(\d+)")
_ERROR: Final = re.compile(r"^(?:ior )?(?:ERROR|.*incorrect data).*", re.IGNORECASE)
_DIRECT: Final = re.compile(r"(?:^|\s)(?:-B|--posix\.odirect|useO_DIRECT=1)(?:\s|$)")
DIGITS_MAX: Final = 18
"""Digits of a count: what has more is beyond 64 bits."""

_DATE: Final = "%a %b %d %H:%M:%S %Y"
RATED: Final = ("read", "write")
IGNORED: Final = {
    "test filename": "where the files lie is the target, not the load",
    "Path": "where the files lie is the target, not the load",
    "FS": "how full the file system was is its state, not the load",
    "Used FS": "how full the file system was is its state, not the load",
    "Machine": "the name of a host",
    "TestID": "a number of the invocation",
    "Test 0 started": "a time",
    "Began": "a time",
    "Start time": "a time",
    "StartTime": "a time",
    "Finished": "a time",
    "Finished at": "a time",
    "Run finished": "a time",
    "End time": "a time",
    "Start time skew across all tasks": "how far clients began apart is a result",
    "-a": "the header tells it",
    "-b": "the header tells it",
    "-t": "the header tells it",
    "-s": "the header tells it",
    "-F": "the header tells it",
    "stonewallingTime": "how long a phase lasts at least, not what it does",
    "stoneWallingWearOut": "how long a phase lasts at least, not what it does",
    "repetitions": "how often the load is repeated",
    "-o": "where the files lie is the target, not the load",
    "-O summaryFile": "where results are written",
    "-O summaryFormat": "how results are written",
    "-i": "how often the load is repeated",
    "-v": "how much is printed",
    "-D": "how long a phase lasts at least, not what it does",
    "Command line used": "its options are a setting of their own",
    "Command line": "its options are a setting of their own",
}
"""Lines of the header that do not make two rows unlike, each with the reason."""


class IorImporter:
    """Every row of the results is a run; iterations are repeats."""

    tool: Final = "ior"

    def recognises(self, file: ForeignFile) -> bool:
        """By the first line of an invocation, wherever it stands."""
        return b": MPI Coordinated Test of Parallel I/O" in file.utf8_bytes

    def read(self, file: ForeignFile, file_set: ImportFileSet) -> Sequence[ForeignRun]:
        """The rows of every invocation in the file."""
        del file_set
        runs: list[ForeignRun] = []
        for section in split_into_sections(file, _BEGIN):
            own = list(_read_invocation_runs_and_mark_lines(section))
            section.mark_read()
            runs += own
        if not runs:
            raise ForeignFileError("IOR printed no result: it was cut short or failed.")
        return runs


def _read_invocation_runs_and_mark_lines(section: OutputSection) -> Iterator[ForeignRun]:
    """The rows of every test; what stands before the first one is of all."""
    first, *others = _split_into_tests(section)
    common = _header_options(
        first[: next((i for i, (_, line) in enumerate(first) if _TEST.match(line)), 0)]
    )
    for lines in (first, *others):
        rows = list(
            _read_table_runs_and_mark_lines(section, lines, {**common, **_header_options(lines)})
        )
        if not rows:
            reason = "IOR printed no result: it was cut short or failed."
            section.file.line_coverage.mark_left_out(lines[0][0], lines[-1][0], reason)
        yield from rows


Lines = Sequence[tuple[int, str]]


def _split_into_tests(section: OutputSection) -> Sequence[Lines]:
    """The lines of each test, those before the first one with it."""
    tests: list[list[tuple[int, str]]] = [[]]
    has_begun = has_table = False
    for number, line in section.numbered_lines:
        if begin := _TEST.match(line):
            if has_begun and (begin[1] or has_table):
                tests.append([])
                has_table = False
            has_begun = True
        has_table = has_table or _is_table_heading(line)
        tests[-1].append((number, line))
    return tests


def _is_table_heading(line: str) -> bool:
    return line.split()[:2] == ["access", "bw(MiB/s)"]


def _header_options(lines: Lines) -> dict[str, str]:
    """The options before the table."""
    header: dict[str, str] = {}
    for _, line in lines:
        if _is_table_heading(line):
            break
        if not _ERROR.match(line) and (option := _OPTION.match(line)):
            name, value = (
                excerpt(option[1].strip(), NAME_CHARACTERS),
                excerpt(option[2].strip(), SETTING_CHARACTERS_MAX),
            )
            header.setdefault(name, value)
    return header


def _read_table_runs_and_mark_lines(
    section: OutputSection, lines: Lines, header: Mapping[str, str]
) -> Iterator[ForeignRun]:
    errors: list[str] = []
    columns: list[str] = []
    moved: int | None = None
    for number, line in lines:
        words = line.split()
        if match := _ACTUAL.search(line):
            if len(match[1]) > DIGITS_MAX:
                raise ForeignFileError("it reports more bytes than possible.")
            moved = int(match[1])
        elif _ERROR.match(line):
            errors.append(excerpt(line, SENTENCE_CHARACTERS))
        elif _is_table_heading(line):
            columns = words
        elif columns and words and words[0] in RATED and len(words) == len(columns):
            row = dict(zip(columns, words, strict=True))
            yield _run_of_row(section, number, row, header, tuple(errors), moved)
            moved = None
        elif columns and words and words[0] == "remove":
            reason = "The time of removing files is no rate of I/O."
            section.file.line_coverage.mark_left_out(number, number, reason)
        elif columns and words and words[0] in RATED and len(words) == len(columns) - 1:
            reason = "This row has fewer columns than its heading: it was cut short."
            section.file.line_coverage.mark_left_out(number, number, reason)


def _run_of_row(
    section: OutputSection,
    line_number: int,
    row: Mapping[str, str],
    header: Mapping[str, str],
    errors: tuple[str, ...],
    moved_bytes: int | None,
) -> ForeignRun:
    rate = parse_number(row["bw(MiB/s)"])
    command = header.get("Command line", header.get("Command line used", ""))
    # A stonewalled phase moves what it has time for.
    is_stonewalled = parse_number(header.get("stonewallingTime", "0").split(" ")[0]) not in (
        None,
        0.0,
    )
    size = None if is_stonewalled else _parse_ior_size(header.get("aggregate filesize", ""))
    tasks = parse_number(header.get("tasks", header.get("clients", "")).split(" ")[0])
    block = _parse_ior_size(header.get("xfersize", ""))
    version = _BEGIN.search(section.text)
    figures = OperationFigures(
        operation=row["access"],
        bytes=size if moved_bytes is None else moved_bytes,
        seconds=parse_number(row.get("total(s)", "")),
        rate_per_s=parse_number(row.get("IOPS", "")),
        bw_bytes_per_s=None if rate is None else rate * MIB,
        printed=tuple(
            (excerpt(name, NAME_CHARACTERS), excerpt(value, NAME_CHARACTERS))
            for name, value in row.items()
        ),
    )
    details = ImportedRunDetails(
        tool="ior",
        version=excerpt(version[1], NAME_CHARACTERS) if version else "",
        files=(section.file.name,),
        buffered=None if not command else _DIRECT.search(command) is None,
        notes=("rates are of all tasks together, over open, transfer and close",),
    )
    host = ImportedClientDetails(f"{section.file.name}:{line_number}", (figures,), errors=errors)
    return ForeignRun(
        name=f"ior {row['access']}",
        details=details,
        clients=(ImportedClient("all tasks", host),),
        settings=tuple(
            (name, value)
            for name, value in (*header.items(), *command_settings(command, _STYLE))
            if value
        ),
        ignored_setting_reasons=IGNORED,
        in_flight=int(tasks or 0) or None,
        ended_real_ns=_finish_local_time_as_utc_ns(section),
        indicator="iops" if block is not None and block < MIB >> 4 else "bandwidth",
    )


def _finish_local_time_as_utc_ns(section: OutputSection) -> int | None:
    """When IOR says that it ended, by the clock of its host, whose zone it does not tell."""
    for _, line in reversed(section.numbered_lines):
        if match := re.match(r"^(?:Finished|Run finished|Finished at)\s*: (.*)$", line):
            return parse_time_as_utc_ns(match[1], _DATE)
    return None


def _parse_ior_size(text: str) -> int | None:
    """A size as IOR prints it: `9.46 TiB`, `47008 bytes`."""
    match = re.fullmatch(r"([\d.]+) ?(bytes?|[KMGTP]i?B?)?", text.strip())
    if not match:
        return None
    number, unit = parse_number(match[1]), (match[2] or "")[:1].lower()
    if number is None:
        return None
    return round(number * (1 if unit in ("", "b") else parse_size(f"1{unit}")))
