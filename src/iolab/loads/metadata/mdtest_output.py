"""What mdtest prints, of all versions from 1.9 to 4.x: pure, and nothing in it is believed.

The versions disagree on what the rate of a phase is. Every rank times itself; 1.9 and 3.2 take the
rank with the *highest* rate for all, 3.3 mixes all ranks of all iterations into one sample, 4.x
takes the slowest rank, which is the only one that counts all work over all the time it took. The
lines that `-v` prints are those of rank 0 alone. The summary's form tells which it is, not the
version: the mdtest of IOR 3.2 calls itself 1.9.3.
"""

from __future__ import annotations

import math
import re
import statistics
from collections.abc import Iterator, Sequence
from enum import Enum
from typing import Final

from iolab.core.limits import (
    ERROR_LINES_MAX,
    ITERATIONS_MAX,
    MDTEST_OUTPUT_BYTES_MAX,
    SENTENCE_CHARACTERS_MAX,
)
from iolab.hosts.engine import OutputFaults
from iolab.loads.metadata.workload import MetadataOperation, ReportedRate
from iolab.record import Record
from iolab.units import parse_finite

TREES: Final[tuple[MetadataOperation, ...]] = (
    MetadataOperation.TREE_CREATE,
    MetadataOperation.TREE_REMOVE,
)
"""Phases that are timed by one rank, whose rate is the phase's in every version."""

OPERATIONS: Final = {
    "Tree creation": MetadataOperation.TREE_CREATE,
    "File creation": MetadataOperation.FILE_CREATE,
    "File stat": MetadataOperation.FILE_STAT,
    "File read": MetadataOperation.FILE_READ,
    "File removal": MetadataOperation.FILE_REMOVE,
    "Tree removal": MetadataOperation.TREE_REMOVE,
}
"""mdtest's names. Those of folders are left out: our runs make files only."""

_NUMBER: Final = r"(\S+)"

_LAUNCHED: Final = re.compile(
    r"mdtest-(\S{1,40}) was launched with (\d{1,9}) total task\(s\) on \d{1,9} node\(s\)"
)

_FILES: Final = re.compile(r"(\d{1,9}) tasks, (\d{1,15}) files")
_ITERATION: Final = re.compile(r"main: \* iteration (\d{1,9}) .*\*")
_SUMMARY: Final = re.compile(r"SUMMARY( rate| time)?( \(in \S+\))?: \(of (\d{1,9}) iterations\)")
_PHASE_LINE: Final = re.compile(rf"((?:Tree|File) \w+)\s*:\s+{_NUMBER} sec,\s+{_NUMBER} ops/sec")
_ROW: Final = re.compile(r" {3}((?:Tree|File) \w+)( *)(:?)((?: +\S+){4,7})")
_ERROR: Final = re.compile(r"ERROR|FAILED|Abort\(|MPI_ABORT|BAD TERMINATION", re.IGNORECASE)

_SHORT_NAME: Final = 18
"""Width of an operation's name before its colon up to 3.2; 3.3 has 26, and 4.x no colon."""

ROUNDING: Final = 0.0005
"""mdtest prints three decimals."""


class RateRule(Enum):
    """What a version's summary takes for the rate of a phase in one iteration."""

    FASTEST_RANK = "fastest rank"
    """1.9 and 3.2: all ranks' work over the time of the rank that saw the phase shortest."""
    EVERY_RANK = "every rank"
    """3.3: each rank's view is a sample of its own."""
    SLOWEST_RANK = "slowest rank"
    """4.x: all ranks' work over the longest time that a rank took."""


class SummaryRow(Record):
    """A line of the summary as printed, in operations a second."""

    operation: MetadataOperation
    maximum: float
    minimum: float
    mean: float
    std_dev: float


class PhaseLine(Record):
    """A line of `-v`: one phase of one iteration (from 1) as rank 0 saw it.

    `ops_per_s` counts all ranks' work up to 3.3 and rank 0's own in 4.x; that of the trees is
    always the phase's.
    """

    iteration: int
    operation: MetadataOperation
    seconds: float
    ops_per_s: float


class MdtestOutput(Record):
    """All that an output tells; None and empty for what it does not.

    `rule` is None without a summary. `files` are those of all ranks in one iteration. `finished`
    when mdtest came to its own end. `faults` say what is wrong with the output, `messages` are the
    lines in which mdtest or MPI tells of an error.
    """

    version: str
    ranks: int | None
    files: int | None
    iterations: int | None
    rule: RateRule | None
    rows: tuple[SummaryRow, ...]
    phase_lines: tuple[PhaseLine, ...]
    finished: bool
    messages: tuple[str, ...]
    faults: tuple[str, ...]

    def summary_row(self, operation: MetadataOperation) -> SummaryRow | None:
        """The summary's line of that operation."""
        return next((row for row in self.rows if row.operation is operation), None)


def parse_mdtest_output(output: bytes) -> MdtestOutput:
    """Read an output, whole or broken off. Never raises."""
    draft = _MdtestParser()
    if len(output) > MDTEST_OUTPUT_BYTES_MAX:
        draft.faults.add_fault(f"mdtest printed more than {MDTEST_OUTPUT_BYTES_MAX} bytes")
    for line in output[:MDTEST_OUTPUT_BYTES_MAX].decode("utf-8", "replace").splitlines():
        draft.take_line(line)
    return draft.build_output()


def reported_rates(output: MdtestOutput) -> tuple[ReportedRate, ...]:
    """The rates of an output of one iteration, as mdtest gives them; empty for any other.

    Of 3.3, which gives every rank's view, it is the slowest rank's: what 4.x prints. The seconds
    are those that the rate stands for; of the trees' phases they are printed with `-v` only.
    """
    if output.iterations != 1:
        return ()
    trees: dict[MetadataOperation, float] = {
        line.operation: line.seconds for line in output.phase_lines if line.operation in TREES
    }
    rates: list[ReportedRate] = []
    for row in output.rows:
        if row.minimum <= 0:
            continue
        seconds = trees.get(row.operation)
        if row.operation not in TREES and output.files:
            seconds = output.files / row.minimum
        rates.append(ReportedRate(row.operation, row.minimum, seconds))
    return tuple(rates)


class _MdtestParser:
    """An output while it is read, line by line."""

    def __init__(self) -> None:
        self.faults = OutputFaults()
        self._version = ""
        self._ranks: int | None = None
        self._files: int | None = None
        self._iterations: int | None = None
        self._iteration = 0
        self._table: str | None = None
        self._rule: RateRule | None = None
        self._rows: dict[MetadataOperation, SummaryRow] = {}
        self._phase_lines: list[PhaseLine] = []
        self._finished = False
        self._messages: list[str] = []

    def take_line(self, line: str) -> None:
        """One line, in order."""
        if match := _LAUNCHED.search(line):
            self._version, self._ranks = match[1], int(match[2])
        elif match := _FILES.fullmatch(line.strip()):
            self._files = int(match[2])
        elif match := _ITERATION.search(line):
            self._iteration = int(match[1])
        elif match := _SUMMARY.search(line):
            self._begin_table(match)
        elif match := _PHASE_LINE.search(line):
            self._add_phase_line(match)
        elif self._table == "rate" and (match := _ROW.fullmatch(line.rstrip())):
            self._add_row(match)
        elif line.startswith("-- finished at "):
            self._finished = True
        elif _ERROR.search(line) and not line.startswith("WARNING"):
            self._add_error_line(line)

    def build_output(self) -> MdtestOutput:
        """All lines are read."""
        if not self._version:
            self.faults.add_fault("mdtest did not say its version")
        return MdtestOutput(
            version=self._version,
            ranks=self._ranks,
            files=self._files,
            iterations=self._iterations,
            rule=self._rule,
            rows=tuple(self._rows[key] for key in MetadataOperation if key in self._rows),
            phase_lines=tuple(self._phase_lines),
            finished=self._finished,
            messages=tuple(self._messages),
            faults=tuple(self.faults),
        )

    def _begin_table(self, match: re.Match[str]) -> None:
        self._table = (match[1] or " rate").strip()
        iterations = int(match[3])
        if self._table != "rate":
            return
        if not 1 <= iterations <= ITERATIONS_MAX:
            self.faults.add_fault(f"mdtest summarises {iterations} iterations, which cannot be")
        elif self._iterations is not None:
            self.faults.add_fault("mdtest printed more than one summary of rates")
        else:
            self._iterations = iterations

    def _add_phase_line(self, match: re.Match[str]) -> None:
        operation = OPERATIONS.get(match[1])
        seconds, rate = _parse_number(match[2]), _parse_number(match[3])
        if operation is None:
            return
        if seconds is None or rate is None:
            words = f"{match[2]} sec, {match[3]} ops/sec"[:SENTENCE_CHARACTERS_MAX]
            self.faults.add_fault(f"mdtest reports that {match[1]} took {words!r}")
        elif 1 <= self._iteration <= ITERATIONS_MAX:
            key = (self._iteration, operation)
            if key not in {(line.iteration, line.operation) for line in self._phase_lines[-8:]}:
                self._phase_lines.append(PhaseLine(self._iteration, operation, seconds, rate))

    def _add_row(self, match: re.Match[str]) -> None:
        operation = OPERATIONS.get(match[1])
        if operation is None or operation in self._rows:
            return
        # With --show-perrank-statistics 4.x puts three numbers of single ranks first.
        words = match[4].split()[-4:]
        numbers = [number for number in map(_parse_number, words) if number is not None]
        if len(numbers) < len(words):
            row = " ".join(words)[:SENTENCE_CHARACTERS_MAX]
            self.faults.add_fault(f"mdtest summarises {match[1]} as {row!r}")
            return
        self._rows[operation] = SummaryRow(operation, *numbers)
        if operation not in TREES:
            self._rule = _rate_rule(match)

    def _add_error_line(self, line: str) -> None:
        if len(self._messages) < ERROR_LINES_MAX:
            self._messages.append(line.strip()[:SENTENCE_CHARACTERS_MAX])


def _rate_rule(match: re.Match[str]) -> RateRule:
    if not match[3]:
        return RateRule.SLOWEST_RANK
    short = len(match[1]) + len(match[2]) <= _SHORT_NAME
    return RateRule.FASTEST_RANK if short else RateRule.EVERY_RANK


def _parse_number(word: str) -> float | None:
    """A number that can be a rate or a time; None for anything else, `inf` and `-nan` too."""
    number = parse_finite(word)
    return number if number is not None and number >= 0 else None


def output_contradictions(output: MdtestOutput) -> tuple[str, ...]:
    """Sentences on where an output disagrees with itself by more than it rounds."""
    return tuple(
        f"mdtest's summary contradicts itself: {words}"
        for row in output.rows
        for words in _summary_row_contradictions(output, row)
    )


def _summary_row_contradictions(output: MdtestOutput, row: SummaryRow) -> Iterator[str]:
    name = row.operation.display_name
    n = output.iterations or 1
    if not row.minimum - ROUNDING * 2 <= row.mean <= row.maximum + ROUNDING * 2:
        yield f"the mean of {name}, {row.mean}, is not between {row.minimum} and {row.maximum}"
        return
    # No sample deviates more than when half of it lies at each end.
    widest = (row.maximum - row.minimum) / 2 * math.sqrt(n / max(n - 1, 1)) + 4 * ROUNDING
    if row.std_dev > widest:
        yield f"{name} deviates by {row.std_dev}, and cannot by more than {widest:.3f}"
    rates = [line.ops_per_s for line in output.phase_lines if line.operation is row.operation]
    if len(rates) == n:
        yield from _phase_line_contradictions(output, row, rates)


def _phase_line_contradictions(
    output: MdtestOutput, row: SummaryRow, rates: Sequence[float]
) -> Iterator[str]:
    """The summary against the lines of its iterations."""
    name = row.operation.display_name
    if row.operation in TREES:
        # Up to 3.3 mdtest divides by n, and 4.x by n - 1.
        by_n = output.rule is not RateRule.SLOWEST_RANK or len(rates) < 2
        std_dev = statistics.pstdev(rates) if by_n else statistics.stdev(rates)
        pairs = (
            ("maximum", row.maximum, max(rates)),
            ("minimum", row.minimum, min(rates)),
            ("mean", row.mean, statistics.fmean(rates)),
            ("standard deviation", row.std_dev, std_dev),
        )
        for statistic, printed, computed in pairs:
            if abs(printed - computed) > 3 * ROUNDING:
                yield f"the {statistic} of {name} is {computed:.3f}, and it prints {printed}"
        return
    if output.rule is RateRule.SLOWEST_RANK:
        ranks = output.ranks or 1
        if row.minimum > min(rates) * ranks + ROUNDING * (ranks + 1):
            yield f"{name} has a minimum of {row.minimum}, and rank 0 saw {min(rates)} x {ranks}"
    elif row.maximum < max(rates) - 2 * ROUNDING:
        yield f"{name} has a maximum of {row.maximum}, and rank 0 saw {max(rates)}"
