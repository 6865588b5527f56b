"""The output of the native engine: its intervals while it runs, the sums of its last line."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from iolab.core import limits
from iolab.core.run import DirectionTotals, EngineTotals
from iolab.core.workload import Direction
from iolab.hosts.engine_lines import (
    EngineLineReader,
    require_count,
    require_operation_table,
    table_or_empty,
)
from iolab.hosts.engine_totals import (
    SHORT_IO_KIND,
    parse_engine_totals,
    parse_io_and_service_time_intervals,
)
from iolab.hosts.intervals import DirectionInterval
from iolab.text import excerpt

ERRORS_SHOWN: Final = 4
"""Kinds of errors that a sentence names, the most frequent first."""


class NativeLineReader(EngineLineReader):
    """Reads what one process of the engine prints.

    `directions` are those the job asks for, `jobs` how many it starts. `missing` looks at the last
    line's sums and says what they lack, None if nothing.
    """

    engine_title = "native"

    def __init__(
        self,
        directions: Sequence[Direction],
        job_count: int,
        missing: Callable[[EngineTotals], str | None] = lambda _: None,
    ) -> None:
        super().__init__()
        self._directions = tuple(directions)
        self._jobs = job_count
        self._missing = missing

    def version_text(self, first_line: dict[str, Any]) -> str:
        """With the way to the kernel: hosts that have another one are not alike."""
        text, method = super().version_text(first_line), first_line.get("method")
        if not text or not isinstance(method, str):
            return text
        return excerpt(f"{text} ({method})", limits.SENTENCE_CHARACTERS_MAX)

    def parse_totals(self, first_line: dict[str, Any], last_line: dict[str, Any]) -> EngineTotals:
        """See `parse_engine_totals`."""
        return parse_engine_totals(first_line, last_line, self._directions, self._jobs)

    def add_incomplete_run_faults(self, totals: EngineTotals, last_line: dict[str, Any]) -> None:
        """What the run lacks, and a run of nothing but failures."""
        lack = self._missing(totals)
        if lack:
            self.faults.add_fault(lack)
        if last_line.get("gave_up") is True or _did_every_io_fail(totals):
            self.faults.add_fault(_every_io_failed_text(totals))
        unrecorded = table_or_empty(last_line, "recorded").get("fault")
        if unrecorded is not None:
            reason = excerpt(str(unrecorded), limits.SENTENCE_CHARACTERS_MAX)
            self.faults.add_fault(f"its I/Os could not be recorded: {reason}")

    def parse_interval_line(self, document: dict[str, Any]) -> tuple[DirectionInterval, ...]:
        """The directions, and under a rate their times from submission."""
        parts: list[DirectionInterval] = []
        for direction in Direction:
            name = direction.key
            if direction not in self._directions and name not in document:
                continue
            part = require_operation_table(document, name)
            if direction not in self._directions and not require_count(part, "ios"):
                continue
            parts += parse_io_and_service_time_intervals(direction, part)
        return tuple(parts)


def _known_direction_totals(totals: EngineTotals) -> list[DirectionTotals]:
    return [way for way in (totals.read, totals.write, totals.trim) if way is not None]


def _did_every_io_fail(totals: EngineTotals) -> bool:
    """Whether not one I/O was done, and some were tried."""
    failed = totals.generator.failed_ios if totals.generator else 0
    short = sum(way.short_ios for way in _known_direction_totals(totals))
    return failed + short > 0 and not any(way.ios for way in _known_direction_totals(totals))


def _every_io_failed_text(totals: EngineTotals) -> str:
    errors = totals.generator.errors if totals.generator else ()
    short = sum(way.short_ios for way in _known_direction_totals(totals))
    counts = [f"{count} x {name}" for name, count in errors[:ERRORS_SHOWN]]
    counts += [f"{short} x {SHORT_IO_KIND}"] if short else []
    return f"every I/O failed ({', '.join(counts)})"
