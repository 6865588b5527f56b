"""Lines of JSON that an engine built into the agent prints: parts of a line, and their reader."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar, Final

import numpy as np

from iolab.core import limits
from iolab.core.bins import BIN_COUNT
from iolab.core.run import EngineTotals, HostLoadDetails
from iolab.core.samples import Ints, SignedInts
from iolab.core.workload import OperationEnum
from iolab.hosts.engine import OutputFaults, ParsedEngineOutput
from iolab.hosts.intervals import DirectionInterval, Interval, IntervalLog
from iolab.text import excerpt

HEAD_KEY: Final = "native"
"""Of the first line, whose value is the version of the lines."""

_NO_BINS: Final = "it told bins that are none"


class LineError(Exception):
    """A line cannot be used; the message says why."""


def require_object(value: object) -> dict[str, Any]:
    """A JSON object. LineError for anything else."""
    if not isinstance(value, dict):
        raise LineError("it printed a line that is no object")
    return value


def require_count(table: Mapping[str, Any], key: str) -> int:
    """A whole number that is not negative. LineError for anything else, or nothing."""
    value = table.get(key)
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= limits.NUMBER_MAX:
        raise LineError(f"it told no {key}")
    return value


def require_operation_table(table: Mapping[str, Any], operation_name: str) -> dict[str, Any]:
    """What a line says of an operation that the job has. LineError where it says nothing."""
    part = table.get(operation_name)
    if not isinstance(part, dict):
        raise LineError(f"it told nothing of '{operation_name}'")
    return part


def parse_bins(document: Mapping[str, Any]) -> tuple[SignedInts, Ints]:
    """The bins in use and their counts, each a column. LineError for what cannot be that."""
    rows = document.get("bins", [])
    try:
        table = np.array(rows)
    except (TypeError, ValueError, OverflowError):
        raise LineError(_NO_BINS) from None
    if isinstance(rows, list) and not rows:
        table = table.astype(np.int64).reshape(0, 2)
    if table.dtype != np.int64 or table.ndim != 2 or table.shape[1] != 2:
        raise LineError(_NO_BINS)
    bins, counts = table[:, 0], table[:, 1]
    if table.size and (bins.min() < 0 or bins.max() >= BIN_COUNT or counts.min() < 0):
        raise LineError(_NO_BINS)
    return bins.astype(np.int16), counts.copy()


def printable_sentences(value: object) -> tuple[str, ...]:
    """The sentences of a list, made safe to print; none of anything else."""
    if not isinstance(value, list):
        return ()
    return tuple(excerpt(str(sentence), limits.SENTENCE_CHARACTERS_MAX) for sentence in value)


def table_or_empty(table: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    """The object that stands there; an empty one where none does."""
    inner = table.get(key)
    return inner if isinstance(inner, dict) else {}


def count_or_zero(table: Mapping[str, Any], key: str) -> int:
    """A whole number, 0 where there is none. LineError for anything else that stands there."""
    return 0 if table.get(key) is None else require_count(table, key)


def number_or_zero(table: Mapping[str, Any], key: str) -> float:
    """The same of a number of any kind."""
    value = table.get(key)
    if value is None:
        return 0.0
    # Nothing is compared with what is no number, and nothing is less than it.
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or not 0 <= value <= limits.NUMBER_MAX:
        raise LineError(f"it told no {key}")
    return float(value)


class EngineLineReader(ABC):
    """Reads what one process of an engine of the agent prints; see `OutputReader`.

    The lines are a head (with the key `HEAD_KEY`), when the engine started, intervals, and an end
    with the sums of the whole run; or faults. `engine_title` is what its version is given with, and
    `details` are what only its kind of load knows, once the output has ended.
    """

    engine_title: ClassVar[str]

    def __init__(self) -> None:
        self.details: HostLoadDetails | None = None
        self._rest = b""
        self._faults = OutputFaults()
        self._log = IntervalLog()
        self._head: dict[str, Any] = {}
        self._end: dict[str, Any] | None = None
        self._start_ns: int | None = None
        self._last_ns: int | None = None

    @abstractmethod
    def parse_interval_line(self, document: dict[str, Any]) -> tuple[DirectionInterval, ...]:
        """What an interval's line tells of each operation. LineError where it tells nothing."""

    @abstractmethod
    def parse_totals(self, first_line: dict[str, Any], last_line: dict[str, Any]) -> EngineTotals:
        """The sums of the last line. LineError when it lacks what every run has."""

    def keep_load_details(self, first_line: dict[str, Any], last_line: dict[str, Any]) -> None:  # noqa: B027
        """Keep what only this kind of load tells at its end. LineError when it lacks that."""

    def keep_backlog(self, document: dict[str, Any]) -> None:  # noqa: B027
        """Keep what an interval's line tells of arrivals that wait; LineError without it."""

    @abstractmethod
    def add_incomplete_run_faults(self, totals: EngineTotals, last_line: dict[str, Any]) -> None:
        """Add what the sums say against the run."""

    def version_text(self, first_line: dict[str, Any]) -> str:
        """The engine's version, with what else makes hosts unlike."""
        version = first_line.get("version")
        text = f"{self.engine_title}-{version}" if isinstance(version, str) else ""
        return excerpt(text, limits.SENTENCE_CHARACTERS_MAX)

    def feed(self, piece: bytes) -> list[Interval]:
        """Take the next bytes; the intervals that they complete."""
        *lines, self._rest = (self._rest + piece).split(b"\n")
        if len(self._rest) > limits.LINE_BYTES_MAX:
            self._faults.add_fault("it printed a line without an end")
            self._rest = b""
        return [
            interval
            for line in lines
            if (interval := self._parse_line_or_add_fault(line)) is not None
        ]

    def finish(self) -> ParsedEngineOutput:
        """Everything that the output told."""
        if self._rest.strip():
            self._parse_line_or_add_fault(self._rest)
        totals = self._parse_totals_or_add_fault()
        start_ns, end_ns = self._start_and_end_ns_or_add_faults()
        return ParsedEngineOutput(
            version=self.version_text(self._head),
            start_real_ns=start_ns,
            end_real_ns=end_ns,
            intervals=self._log,
            totals=totals,
            faults=tuple(self._faults),
            details=self.details,
        )

    def _start_and_end_ns_or_add_faults(self) -> tuple[int | None, int | None]:
        """When it began and ended: as its last line says, else as the others do."""
        start_ns, end_ns = self._start_ns, self._last_ns
        if self._end is not None:
            try:
                start_ns = require_count(self._end, "start_real_ns")
                end_ns = require_count(self._end, "end_real_ns")
            except LineError as fault:
                self._faults.add_fault(str(fault))
        if start_ns is not None and end_ns is not None and end_ns < start_ns:
            self._faults.add_fault("it ended before it began")
        return start_ns, end_ns

    def _parse_totals_or_add_fault(self) -> EngineTotals | None:
        if self._end is None:
            if not self._faults:
                self._faults.add_fault("it ended without its last line")
            return None
        try:
            self.keep_load_details(self._head, self._end)
            totals = self.parse_totals(self._head, self._end)
        except LineError as fault:
            self._faults.add_fault(str(fault))
            return None
        self.add_incomplete_run_faults(totals, self._end)
        return totals

    @property
    def faults(self) -> OutputFaults:
        """What speaks against the run so far."""
        return self._faults

    def _parse_line_or_add_fault(self, line: bytes) -> Interval | None:
        """One line; the interval that it is, None for any other."""
        if not line.strip():
            return None
        try:
            document = require_object(json.loads(line))
            return self._parse_document_or_add_fault(document)
        except LineError as fault:
            self._faults.add_fault(str(fault))
        except (ValueError, RecursionError):
            words = excerpt(line, limits.SENTENCE_CHARACTERS_MAX)
            self._faults.add_fault(f"it printed a line that is no JSON: {words}")
        return None

    def _parse_document_or_add_fault(self, document: dict[str, Any]) -> Interval | None:
        if "fault" in document:
            faults = document["fault"]
            for fault in faults if isinstance(faults, list) else [faults]:
                self._faults.add_fault(
                    excerpt(str(fault), limits.SENTENCE_CHARACTERS_MAX).rstrip(".")
                )
        elif HEAD_KEY in document:
            self._head = document
        elif "started_real_ns" in document:
            self._start_ns = require_count(document, "started_real_ns")
        elif "end" in document:
            self._end = require_object(document["end"])
        elif "seq" in document:
            interval = self._parse_interval_and_add_faults(document)
            self._log.append(interval)
            self._last_ns = interval.end_real_ns
            return interval
        return None

    def _parse_interval_and_add_faults(self, document: dict[str, Any]) -> Interval:
        parts = self.parse_interval_line(document)
        self.keep_backlog(document)
        end_ns, span_ns = require_count(document, "end_real_ns"), require_count(document, "span_ns")
        if self._last_ns is not None and end_ns <= self._last_ns:
            raise LineError("it told an interval that ends before the one before it")
        if require_count(document, "seq") != len(self._log):
            self._faults.add_fault(
                f"it told interval {document['seq']} where {len(self._log)} was due"
            )
        return Interval(len(self._log), end_ns, span_ns, parts)


def parse_operation_interval(direction: OperationEnum, table: dict[str, Any]) -> DirectionInterval:
    """What an interval's line tells of one operation. LineError where counts and bins differ."""
    bins, counts = parse_bins(table)
    ios = require_count(table, "ios")
    if int(counts.sum()) != ios:
        raise LineError(f"it counts {ios} I/Os of '{direction.key}' and bins {counts.sum()}")
    lat_sum_ns = float(require_count(table, "lat_sum_ns"))
    return DirectionInterval(
        direction, ios, require_count(table, "bytes"), lat_sum_ns, bins, counts
    )
