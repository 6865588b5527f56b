"""The results of an IO500 run, with what IOR and mdtest printed beside its summary."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final, NamedTuple

from msgspec.structs import replace

from iolab.errors import IolabError
from iolab.importers.files import (
    NAME_CHARACTERS,
    ForeignFile,
    ForeignFileError,
    ImportFileSet,
    parse_number,
)
from iolab.importers.foreign_run import (
    ForeignRun,
    ImportedClient,
    ImportedClientDetails,
    ImportedRunDetails,
    OperationFigures,
)
from iolab.importers.ior import IorImporter
from iolab.importers.mdtest import MdtestImporter
from iolab.text import excerpt
from iolab.units import GIB

_RESULT: Final = re.compile(
    r"^\s*\[(?P<mark>RESULT[^\]]*|INVALID[^\]]*| +)\]\s+(?:(?:BW|IOPS)\s+phase\s+\d+\s+)?"
    r"(?P<phase>\S+)\s+(?P<value>[\d.]+)\s+(?P<unit>Gi?B/s|kIOPS)\s*:\s*time\s+"
    r"(?P<seconds>[\d.]+)\s+seconds(?P<rest>.*)$",
    re.IGNORECASE,
)
"""A phase as the C program prints it, and as the shell script before 2020 did.

`GB/s` of the script is GiB/s: it divided IOR's MiB/s by 1024.
"""

_MARKED_LINE: Final = re.compile(r"^\s*\[([A-Z][A-Za-z -]*| +)\]")
_IO500_FILES: Final = re.compile(r"config.*\.ini|timestamp(?:file)?|[\w-]+\.stonewall")
"""Files that IO500 writes beside its summary, and that hold no result."""

_NO_RESULT: Final = "IO500 keeps its options and marks in this file: it holds no result."
_SAME_RESULTS: Final = "It holds the results of {0} once more."
_NOT_COMPARED: Final = "The result of this phase is that of the summary; nothing else is read here."
_IO500_LINES: Final = re.compile(
    r"^(?:IO500 version|SCORE|\[(?:SCORE|Summary|Exec|Starting|Leaving)|; )"
)
_INVALID: Final = re.compile(r"phases? invalid|not valid for io-?500", re.IGNORECASE)
_OPERATIONS: Final = {"write": "file_create", "delete": "file_remove", "find": "file_find"}


class Io500Importer:
    """The phases of a run by its summary, with IOR's and mdtest's own figures beside."""

    tool: Final = "io500"

    def recognises(self, file: ForeignFile) -> bool:
        """By lines of results; comments of a configuration have only the words."""
        return b"[RESULT" in file.utf8_bytes and any(
            match["mark"].strip() for match in map(_RESULT.match, file.lines) if match
        )

    def read(self, file: ForeignFile, file_set: ImportFileSet) -> Sequence[ForeignRun]:
        """Each phase; files of the same folder that bear its name belong to it."""
        # What belongs to one summary of a folder is no output of the next one.
        neighbours = {
            neighbour.path.name: neighbour
            for neighbour in file_set.matching_files_in_same_folder(file, re.compile(r".*"))
            if neighbour.path not in file_set.used_paths
        }
        runs = []
        for number, line in enumerate(file.lines, start=1):
            match = _RESULT.match(line)
            if match and (parse_number(match["value"]) or match["mark"].strip()):
                runs.append(
                    _foreign_run_of_phase(
                        file, number, match, neighbours.get(f"{match['phase']}.txt")
                    )
                )
                file.line_coverage.mark_read(number)
            else:
                _mark_coverage_of_line_without_result(file, number, line)
        _mark_files_beside_summary(file, [run.details.files for run in runs], file_set)
        if not runs:
            raise ForeignFileError("there is no line of a result.")
        return runs


def _mark_files_beside_summary(
    file: ForeignFile, used_file_names_by_run: Sequence[Sequence[str]], file_set: ImportFileSet
) -> None:
    """Mark what IO500 wrote beside its summary; all other files are read for themselves."""
    names = {name for files in used_file_names_by_run for name in files}
    phases, results = (
        {f"{phase}.txt" for phase, *_ in _phase_results(file)},
        _phase_results_with_rate(file),
    )
    for other in file_set.matching_files_in_same_folder(file, re.compile(r".*")):
        if other.path == file.path or other.path in file_set.used_paths:
            continue
        if other.path.name in phases:
            if other.name in names:
                file_set.mark_used_and_read(other)
            else:
                file_set.mark_left_out(other, _NOT_COMPARED)
        elif _IO500_FILES.fullmatch(other.path.name):
            file_set.mark_left_out(other, _NO_RESULT)
        elif b"[RESULT" in other.utf8_bytes and _phase_results_with_rate(other) == results:
            file_set.mark_left_out(other, _SAME_RESULTS.format(excerpt(file.name, NAME_CHARACTERS)))


class _PhaseResult(NamedTuple):
    """A phase of a summary: its rate (0 where none is told), its seconds as they stand there."""

    phase: str
    rate: float
    seconds_text: str


def _phase_results(file: ForeignFile) -> list[_PhaseResult]:
    """Every phase with its figure and its seconds."""
    matches = (match for match in map(_RESULT.match, file.lines) if match)
    return [
        _PhaseResult(match["phase"], parse_number(match["value"]) or 0.0, match["seconds"])
        for match in matches
    ]


def _phase_results_with_rate(file: ForeignFile) -> list[_PhaseResult]:
    return [result for result in _phase_results(file) if result.rate]


def _mark_coverage_of_line_without_result(file: ForeignFile, line_number: int, line: str) -> None:
    """Mark a line that is no result of a phase."""
    mark = _MARKED_LINE.match(line)
    if _INVALID.search(line) or (mark and "[INVALID]" in line.upper()):
        file.line_coverage.mark_left_out(
            line_number, line_number, "IO500 calls the whole run invalid."
        )
    elif mark and mark[1].strip() in ("", "RESULT"):
        file.line_coverage.mark_left_out(
            line_number, line_number, "This line of a phase has no rate."
        )
    elif mark or _IO500_LINES.match(line):
        file.line_coverage.mark_read(line_number)


def _foreign_run_of_phase(
    file: ForeignFile, line_number: int, match: re.Match[str], tool_file: ForeignFile | None
) -> ForeignRun:
    name, seconds = match["phase"], parse_number(match["seconds"])
    value, is_io = parse_number(match["value"]) or 0.0, match["unit"].lower().startswith("g")
    action = re.split(r"[-_]", name)[-1].lower()
    operation = (
        ("read" if action == "read" else "write")
        if is_io
        else _OPERATIONS.get(action, f"file_{action}")
    )
    figures = OperationFigures(
        operation=operation,
        seconds=seconds,
        rate_per_s=None if is_io else value * 1000,
        bw_bytes_per_s=value * GIB if is_io else None,
        printed=((match["unit"], match["value"]), ("time (s)", match["seconds"])),
    )
    details = ImportedRunDetails(tool="io500", version=_io500_version(file), files=(file.name,))
    is_invalid = "invalid" in f"{match['mark']}{match['rest']}".lower()
    errors = ("IO500 calls this result invalid",) if is_invalid else ()
    host = ImportedClientDetails(f"{file.name}:{line_number}", (figures,), errors=errors)
    run = ForeignRun(
        name=excerpt(name, NAME_CHARACTERS),
        details=details,
        clients=(ImportedClient("all tasks", host, runtime_s=seconds),),
        indicator="bandwidth" if is_io else "ops_per_s",
    )
    return run if tool_file is None else _with_ior_or_mdtest_output(run, figures, tool_file)


def _io500_version(file: ForeignFile) -> str:
    match = re.search(r"^IO500 version (\S+)", file.text, re.MULTILINE)
    return excerpt(match[1], NAME_CHARACTERS) if match else ""


def _with_ior_or_mdtest_output(
    foreign_run: ForeignRun, summary_figures: OperationFigures, tool_file: ForeignFile
) -> ForeignRun:
    """The phase with what IOR or mdtest printed, and the summary's figure as a claim."""
    importer = IorImporter() if "ior" in tool_file.path.name else MdtestImporter()
    try:
        if not importer.recognises(tool_file):
            return foreign_run
        read = importer.read(tool_file, ImportFileSet(()))
    except (ForeignFileError, IolabError, OSError):
        return foreign_run
    same = [other for other in read if other.operation_names == (summary_figures.operation,)]
    if not same:
        return foreign_run
    details = replace(
        foreign_run.details,
        claimed_totals=(summary_figures,),
        files=(*foreign_run.details.files, tool_file.name),
    )
    errors = foreign_run.clients[0].details.errors
    clients = tuple(
        replace(client, details=replace(client.details, errors=(*errors, *client.details.errors)))
        for client in same[-1].clients
    )
    return replace(
        foreign_run,
        details=replace(details, buffered=same[-1].details.buffered),
        clients=clients,
        settings=same[-1].settings,
        ignored_setting_reasons=same[-1].ignored_setting_reasons,
        ended_real_ns=same[-1].ended_real_ns,
    )
