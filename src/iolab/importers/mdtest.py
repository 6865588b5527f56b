"""mdtest's output: its phases never run at the same time, so each operation is a run of its own.

Rates are of all tasks together, so they are one client's here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

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
from iolab.loads.metadata import mdtest_output
from iolab.record import Record
from iolab.text import excerpt

_STYLE: Final = CommandSyntax(
    valueless_letters="BcCDEFkLPrRStTuvXyYZ", value_letters="abdefGiIlnNOpsVwWxz"
)
_LAUNCHED: Final = re.compile(rb"mdtest-\S+ was launched with")
_BEGIN: Final = re.compile(r"mdtest-\S+ was launched with")
_ENDED: Final = re.compile(r"^-- finished at (\d\d/\d\d/\d{4} \d\d:\d\d:\d\d)")
_COMMAND: Final = "Command line used:"
_TABLE: Final = re.compile(r"SUMMARY( rate| time)?( \(in \S+\))?: \(of \d+ iterations\)")
_ROW: Final = re.compile(r"^\s+((?:Directory|File|Tree) \w+)\s*:?((?:\s+-?[\d.]+){4,7})\s*$")
_ACTIONS: Final = {"creation": "create", "removal": "remove", "rename": "rename"}
_STATISTICS: Final = ("Max", "Min", "Mean", "Std Dev")

IGNORED: Final = {
    "-d": "where the files lie is the target, not the load",
    "-x": "where a file of the tool's own lies",
    "-o": "where the output is written",
    "-i": "how often the load is repeated",
    "-v": "how much is printed",
    "-V": "how much is printed",
    "-Z": "how much is printed",
    "-W": "how long a phase lasts at least, not what it does",
    "saveRankPerformanceDetails": "where the output is written",
}
"""Options that do not make two rows unlike, each with the reason."""


class _SummaryRow(Record):
    """A line of a summary: its name there, and maximum, minimum, mean, standard deviation."""

    line_number: int
    name: str
    max_min_mean_stddev: tuple[float, ...]

    @property
    def operation(self) -> str:
        """The key of its operation: `directory_create`."""
        kind, _, action = self.name.lower().partition(" ")
        return f"{kind}_{_ACTIONS.get(action, action)}"


class MdtestImporter:
    """Every operation of a summary is a run, with the mean over its iterations."""

    tool: Final = "mdtest"

    def recognises(self, file: ForeignFile) -> bool:
        """By the line that tells how many tasks were launched."""
        return _LAUNCHED.search(file.utf8_bytes) is not None

    def read(self, file: ForeignFile, file_set: ImportFileSet) -> Sequence[ForeignRun]:
        """The rows of every summary. ForeignFileError where there is none."""
        del file_set
        runs: list[ForeignRun] = []
        refused = ""
        for section in split_into_sections(file, _BEGIN):
            output = mdtest_output.parse_mdtest_output(section.text.encode())
            rows = list(_summary_rows(section, "rate"))
            if not rows:
                errors = (*output.messages, *output.faults)
                refused = "mdtest printed no summary"
                refused += f": {excerpt(errors[0], SENTENCE_CHARACTERS)}." if errors else "."
                file.line_coverage.mark_left_out(section.first_line, section.last_line, refused)
                continue
            runs += [
                _run_of_row(section, output, row)
                for row in rows
                if row.max_min_mean_stddev[0] > 0 or output.rule is None
            ]
            section.mark_read()
        _mark_preamble_read(file)
        if not runs:
            raise ForeignFileError(refused or "mdtest measured no operation.")
        return runs


def _mark_preamble_read(file: ForeignFile) -> None:
    """The lines with which mdtest begins before it tells its version."""
    for number, line in enumerate(file.lines, start=1):
        if line.startswith(("-- started at ", "V-1: Entering ")):
            file.line_coverage.mark_read(number)


def _summary_rows(section: OutputSection, rate_or_time: str) -> Iterator[_SummaryRow]:
    """The rows of the summary of rates, or of times, which versions from 3.3 print beside it."""
    is_inside = False
    for number, line in section.numbered_lines:
        if match := _TABLE.search(line):
            is_inside = (match[1] or " rate").strip() == rate_or_time
        elif is_inside and (row := _ROW.match(line)):
            # With --show-perrank-statistics 4.x puts three numbers of single ranks first.
            values = tuple(parse_number(word) or 0.0 for word in row[2].split()[-4:])
            yield _SummaryRow(number, row[1], values)


def _run_of_row(
    section: OutputSection, output: mdtest_output.MdtestOutput, row: _SummaryRow
) -> ForeignRun:
    is_single = output.iterations == 1
    times = {time.name: time.max_min_mean_stddev[2] for time in _summary_rows(section, "time")}
    seconds = times.get(row.name) if is_single else None
    is_counted = "stonewall" not in section.text and row.name.startswith("File")
    errors = (
        *output.messages,
        *output.faults,
        *(
            text
            for text in mdtest_output.output_contradictions(output)
            if _hyphenated_operation_name(row) in text
        ),
    )
    figures = OperationFigures(
        operation=row.operation,
        count=output.files if is_single and is_counted else None,
        seconds=seconds,
        rate_per_s=row.max_min_mean_stddev[2],
        printed=tuple(
            zip(_STATISTICS, (f"{value:.3f}" for value in row.max_min_mean_stddev), strict=True)
        ),
    )
    details = ImportedRunDetails(
        tool="mdtest",
        version=excerpt(output.version, NAME_CHARACTERS),
        files=(section.file.name,),
        notes=tuple(_iteration_and_ending_notes(output)),
    )
    host = ImportedClientDetails(
        f"{section.file.name}:{row.line_number}",
        (figures,),
        errors=tuple(excerpt(error, SENTENCE_CHARACTERS) for error in errors),
    )
    return ForeignRun(
        name=_hyphenated_operation_name(row),
        details=details,
        clients=(ImportedClient("all tasks", host, runtime_s=seconds),),
        settings=tuple(_load_settings(section, output)),
        ignored_setting_reasons=IGNORED,
        ended_real_ns=_finish_local_time_as_utc_ns(section),
        indicator="ops_per_s",
    )


def _iteration_and_ending_notes(output: mdtest_output.MdtestOutput) -> Iterator[str]:
    if output.rule is not None:
        yield f"the mean of {output.iterations} iterations, {output.rule.value}"
    if not output.finished:
        yield "mdtest's last line, which marks its end, is missing"


def _hyphenated_operation_name(row: _SummaryRow) -> str:
    return row.operation.replace("_", "-")


def _load_settings(
    section: OutputSection, output: mdtest_output.MdtestOutput
) -> Iterator[tuple[str, int | str]]:
    line = next((line for _, line in section.numbered_lines if line.startswith(_COMMAND)), "")
    yield from command_settings(line.removeprefix(_COMMAND).strip(), _STYLE)
    if output.ranks is not None:
        yield "tasks", output.ranks
    if output.files is not None:
        yield "files", output.files


def _finish_local_time_as_utc_ns(section: OutputSection) -> int | None:
    """When mdtest says that it ended, by the clock of its host, whose zone it does not tell."""
    for _, line in reversed(section.numbered_lines):
        if match := _ENDED.match(line):
            return parse_time_as_utc_ns(match[1], "%m/%d/%Y %H:%M:%S")
    return None
