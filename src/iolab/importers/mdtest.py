"""mdtest's output: its phases never run at the same time, so each operation is a run of its own.

Rates are of all tasks together, so they are one client's here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from iolab.dataclass import dataclass
from iolab.importers.commands import CommandStyle, command_settings
from iolab.importers.files import (
    SENTENCE,
    Folder,
    ForeignFault,
    ForeignFile,
    clean,
    parsed,
    zoneless_ns,
)
from iolab.importers.model import Figures, ForeignRun, ImportedClient, ImportedHost, ImportedRun
from iolab.importers.sections import Section, sections_of
from iolab.loads.metadata import mdtest_output

_STYLE: Final = CommandStyle(flags="BcCDEFkLPrRStTuvXyYZ", valued="abdefGiIlnNOpsVwWxz")
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


@dataclass(frozen=True, slots=True)
class _Row:
    """A line of a summary: its name there, and maximum, minimum, mean, standard deviation."""

    number: int
    name: str
    values: tuple[float, ...]

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
        return _LAUNCHED.search(file.content) is not None

    def read(self, file: ForeignFile, folder: Folder) -> Sequence[ForeignRun]:
        """The rows of every summary. ForeignFault where there is none."""
        del folder
        runs: list[ForeignRun] = []
        refused = ""
        for section in sections_of(file, _BEGIN):
            output = mdtest_output.parse_mdtest_output(section.text.encode())
            rows = list(_rows(section, "rate"))
            if not rows:
                errors = (*output.messages, *output.faults)
                refused = "mdtest printed no summary"
                refused += f": {clean(errors[0], SENTENCE)}." if errors else "."
                file.account.left_out(section.first, section.last, refused)
                continue
            runs += [
                _run(section, output, row)
                for row in rows
                if row.values[0] > 0 or output.rule is None
            ]
            section.read()
        _read_preamble(file)
        if not runs:
            raise ForeignFault(refused or "mdtest measured no operation.")
        return runs


def _read_preamble(file: ForeignFile) -> None:
    """The lines with which mdtest begins before it tells its version."""
    for number, line in enumerate(file.lines, start=1):
        if line.startswith(("-- started at ", "V-1: Entering ")):
            file.account.read(number)


def _rows(section: Section, table: str) -> Iterator[_Row]:
    """The rows of the summary of rates, or of times, which versions from 3.3 print beside it."""
    is_inside = False
    for number, line in section.lines:
        if match := _TABLE.search(line):
            is_inside = (match[1] or " rate").strip() == table
        elif is_inside and (row := _ROW.match(line)):
            # With --show-perrank-statistics 4.x puts three numbers of single ranks first.
            values = tuple(parsed(word) or 0.0 for word in row[2].split()[-4:])
            yield _Row(number, row[1], values)


def _run(section: Section, output: mdtest_output.MdtestOutput, row: _Row) -> ForeignRun:
    is_single = output.iterations == 1
    times = {time.name: time.values[2] for time in _rows(section, "time")}
    seconds = times.get(row.name) if is_single else None
    is_counted = "stonewall" not in section.text and row.name.startswith("File")
    errors = (
        *output.messages,
        *output.faults,
        *(text for text in mdtest_output.contradictions(output) if _words(row) in text),
    )
    figures = Figures(
        operation=row.operation,
        count=output.files if is_single and is_counted else None,
        seconds=seconds,
        rate_per_s=row.values[2],
        printed=tuple(zip(_STATISTICS, (f"{value:.3f}" for value in row.values), strict=True)),
    )
    details = ImportedRun(
        tool="mdtest",
        version=clean(output.version),
        files=(section.file.name,),
        notes=tuple(_notes(output)),
    )
    host = ImportedHost(
        f"{section.file.name}:{row.number}",
        (figures,),
        errors=tuple(clean(error, SENTENCE) for error in errors),
    )
    return ForeignRun(
        name=_words(row),
        details=details,
        clients=(ImportedClient("all tasks", host, runtime_s=seconds),),
        settings=tuple(_settings(section, output)),
        ignored=IGNORED,
        at_ns=_ended_ns(section),
        headline="ops_per_s",
    )


def _notes(output: mdtest_output.MdtestOutput) -> Iterator[str]:
    if output.rule is not None:
        yield f"the mean of {output.iterations} iterations, {output.rule.value}"
    if not output.finished:
        yield "the line in which mdtest says that it finished is missing"


def _words(row: _Row) -> str:
    return row.operation.replace("_", "-")


def _settings(
    section: Section, output: mdtest_output.MdtestOutput
) -> Iterator[tuple[str, int | str]]:
    line = next((line for _, line in section.lines if line.startswith(_COMMAND)), "")
    yield from command_settings(line.removeprefix(_COMMAND).strip(), _STYLE)
    if output.ranks is not None:
        yield "tasks", output.ranks
    if output.files is not None:
        yield "files", output.files


def _ended_ns(section: Section) -> int | None:
    """When mdtest says that it ended, by the clock of its host, whose zone it does not tell."""
    for _, line in reversed(section.lines):
        if match := _ENDED.match(line):
            return zoneless_ns(match[1], "%m/%d/%Y %H:%M:%S")
    return None
