"""The reader of the agent's own engine: one JSON object a line, each interval's own counts.

Lines are the difference to the one before, so nothing has to be subtracted; the last one has the
sums of the whole run. Where I/Os are due at set times, each direction is told twice: from when they
were due, and from when they were submitted (`ServiceTime`).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any, Final

from iolab.model.run import EngineTotals
from iolab.model.sample import Direction, ServiceTime
from iolab.run.engines.base import DirectionInterval, EngineReading, Interval
from iolab.run.engines.log import IntervalLog
from iolab.run.engines.native_totals import (
    LineFault,
    bins_of,
    count_of,
    object_of,
    part_of,
    totals_of,
)
from iolab.run.hosts.text import printable, printable_bytes

LINE_LIMIT_BYTES: Final = 2 << 20
"""The longest line: every bin of three directions, twice, is some 200 kB."""

FAULTS_LIMIT: Final = 10
"""A fault often repeats every second; the first ones tell the cause."""

TEXT_LIMIT: Final = 300
"""Characters of foreign words in a sentence."""

NAMES: Final = {Direction.READ: "read", Direction.WRITE: "write", Direction.TRIM: "trim"}


class NativeReader:
    """Reads what one process of the engine prints; see `OutputReader`.

    `directions` are those the job asks for, `jobs` how many it starts. `missing` looks at the last
    line's sums and says what they lack, None if nothing.
    """

    def __init__(
        self,
        directions: Sequence[Direction],
        jobs: int,
        missing: Callable[[EngineTotals], str | None] = lambda _: None,
    ) -> None:
        self._directions = tuple(directions)
        self._jobs = jobs
        self._missing = missing
        self._rest = b""
        self._faults: list[str] = []
        self._log = IntervalLog()
        self._head: dict[str, Any] = {}
        self._end: dict[str, Any] | None = None
        self._start_ns: int | None = None
        self._last_ns: int | None = None

    def feed(self, piece: bytes) -> list[Interval]:
        """Take the next bytes; the intervals that they complete."""
        *lines, self._rest = (self._rest + piece).split(b"\n")
        if len(self._rest) > LINE_LIMIT_BYTES:
            self._fault("it printed a line without an end")
            self._rest = b""
        return [found for line in lines if (found := self._take(line)) is not None]

    def finish(self) -> EngineReading:
        """Everything that the output told."""
        if self._rest.strip():
            self._take(self._rest)
        totals = self._totals()
        start_ns, end_ns = self._times()
        return EngineReading(
            version=self._version(),
            start_real_ns=start_ns,
            end_real_ns=end_ns,
            intervals=self._log,
            totals=totals,
            faults=tuple(self._faults),
        )

    def _version(self) -> str:
        """With the way to the kernel: hosts that have another one are not alike."""
        version, method = self._head.get("version"), self._head.get("method")
        if not isinstance(version, str):
            return ""
        told = f"native-{version} ({method})" if isinstance(method, str) else f"native-{version}"
        return printable(told, TEXT_LIMIT)

    def _times(self) -> tuple[int | None, int | None]:
        """When it began and ended: as its last line says, else as the others do."""
        start_ns, end_ns = self._start_ns, self._last_ns
        if self._end is not None:
            try:
                start_ns = count_of(self._end, "start_real_ns")
                end_ns = count_of(self._end, "end_real_ns")
            except LineFault as fault:
                self._fault(str(fault))
        if start_ns is not None and end_ns is not None and end_ns < start_ns:
            self._fault("it ended before it began")
        return start_ns, end_ns

    def _totals(self) -> EngineTotals | None:
        if self._end is None:
            if not self._faults:
                self._fault("it ended without its last line")
            return None
        try:
            totals = totals_of(self._head, self._end, self._directions, self._jobs)
        except LineFault as fault:
            self._fault(str(fault))
            return None
        lack = self._missing(totals)
        if lack:
            self._fault(lack)
        return totals

    def _take(self, line: bytes) -> Interval | None:
        """One line; the interval that it is, None for any other."""
        if not line.strip():
            return None
        try:
            said = object_of(json.loads(line))
            return self._line(said)
        except LineFault as fault:
            self._fault(str(fault))
        except (ValueError, RecursionError):
            words = printable_bytes(line, TEXT_LIMIT)
            self._fault(f"it printed a line that is no JSON: {words}")
        return None

    def _line(self, said: dict[str, Any]) -> Interval | None:
        if "fault" in said:
            faults = said["fault"] if isinstance(said["fault"], list) else [said["fault"]]
            for fault in faults:
                self._fault(printable(str(fault), TEXT_LIMIT).rstrip("."))
        elif "native" in said:
            self._head = said
        elif "started_real_ns" in said:
            self._start_ns = count_of(said, "started_real_ns")
        elif "end" in said:
            self._end = object_of(said["end"])
        elif "seq" in said:
            interval = self._interval(said)
            self._log.append(interval)
            self._last_ns = interval.end_real_ns
            return interval
        return None

    def _interval(self, said: dict[str, Any]) -> Interval:
        parts = []
        for direction, name in NAMES.items():
            if direction not in self._directions and name not in said:
                continue
            told = part_of(said, name)
            if direction not in self._directions and not count_of(told, "ios"):
                continue
            parts.append(_part(direction, told))
            service = told.get("service")
            if isinstance(service, dict):
                parts.append(_served(direction, parts[-1], service))
        end_ns, span_ns = count_of(said, "end_real_ns"), count_of(said, "span_ns")
        if self._last_ns is not None and end_ns <= self._last_ns:
            raise LineFault("it told an interval that ends before the one before it")
        if count_of(said, "seq") != len(self._log):
            self._fault(f"it told interval {said['seq']} where {len(self._log)} was due")
        return Interval(len(self._log), end_ns, span_ns, tuple(parts))

    def _fault(self, sentence: str) -> None:
        if sentence not in self._faults and len(self._faults) < FAULTS_LIMIT:
            self._faults.append(sentence)


def _part(direction: Direction, told: dict[str, Any]) -> DirectionInterval:
    bins, counts = bins_of(told)
    ios = count_of(told, "ios")
    if int(counts.sum()) != ios:
        raise LineFault(f"it counts {ios} I/Os of '{NAMES[direction]}' and bins {counts.sum()}")
    lat_sum_ns = float(count_of(told, "lat_sum_ns"))
    return DirectionInterval(direction, ios, count_of(told, "bytes"), lat_sum_ns, bins, counts)


def _served(
    direction: Direction, part: DirectionInterval, told: dict[str, Any]
) -> DirectionInterval:
    """The same I/Os from their submission."""
    bins, counts = bins_of(told)
    way = ServiceTime(direction + ServiceTime.READ)
    sum_ns = float(count_of(told, "lat_sum_ns"))
    return DirectionInterval(way, part.ios, part.bytes, sum_ns, bins, counts)
