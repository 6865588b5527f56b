"""The output of the native engine: its intervals while it runs, the sums of its last line."""

from __future__ import annotations

import errno
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy as np

from iolab.core import limits
from iolab.core.bins import BIN_COUNT
from iolab.core.generator import GeneratorTotals, Lateness, VerifyTotals
from iolab.core.histogram import Histogram, dense_counts
from iolab.core.run import DirectionTotals, EngineTotals
from iolab.core.samples import Ints, SignedInts
from iolab.core.workload import Direction, ServiceTime
from iolab.hosts.engine import EngineReading, ReadingFaults
from iolab.hosts.intervals import DirectionInterval, Interval, IntervalLog
from iolab.text import excerpt
from iolab.units import NS_PER_S

PERCENTILES: Final = (50.0, 90.0, 99.0, 99.5, 99.9, 99.95, 99.99)
"""What is taken from the bins as the engine's own percentiles; it prints none."""

SHORT_IO_KIND: Final = "short"
"""What stands in place of an errno for an I/O that moved fewer bytes than asked."""

ERRORS_SHOWN: Final = 4
"""Kinds of errors that a sentence names, the most frequent first."""

_NO_BINS: Final = "it told bins that are none"
_CPU: Final = ("user_s", "system_s")


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


def require_direction(table: Mapping[str, Any], name: str) -> dict[str, Any]:
    """What a line says of a direction that the job has. LineError where it says nothing."""
    part = table.get(name)
    if not isinstance(part, dict):
        raise LineError(f"it told nothing of '{name}'")
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


def parse_totals(
    head: Mapping[str, Any], end: Mapping[str, Any], directions: Sequence[Direction], jobs: int
) -> EngineTotals:
    """The totals; LineError when the line lacks what every run has."""
    measured_ns = require_count(end, "measured_ns")
    drain_ns = require_count(end, "drain_ns")
    wall_ns = measured_ns + drain_ns
    errors = _errors_by_kind({**_inner_table(end, "errors"), "thread": _inner_table(end, "broken")})
    short = {
        way: _optional_count(_inner_table(_inner_table(end, "errors"), way.key), SHORT_IO_KIND)
        for way in directions
    }
    ways = {
        way: _parse_direction_totals(require_direction(end, way.key), wall_ns, short[way])
        for way in Direction
        if way in directions
    }
    cpu = _inner_table(end, "cpu")
    # It was used until nothing more was submitted, so what was waited for at the end is no part.
    use = [
        _optional_number(cpu, key) * NS_PER_S / measured_ns if measured_ns else 0.0 for key in _CPU
    ]
    return EngineTotals(
        read=ways.get(Direction.READ),
        write=ways.get(Direction.WRITE),
        trim=ways.get(Direction.TRIM),
        depth_percent=(),
        user_cpu_percent=100 * use[0] / jobs,
        system_cpu_percent=100 * use[1] / jobs,
        error=_most_frequent_errno(errors),
        jobs=jobs,
        generator=_parse_generator_totals(head, end, errors),
    )


def _parse_generator_totals(
    head: Mapping[str, Any], end: Mapping[str, Any], errors: tuple[tuple[str, int], ...]
) -> GeneratorTotals:
    switches = _inner_table(end, "context_switches")
    probes = _inner_table(_inner_table(head, "probes"), "read")
    unsubmitted = _inner_table(end, "unsubmitted")
    return GeneratorTotals(
        method=excerpt(str(head.get("method", "")), limits.SENTENCE_CHARACTERS_MAX),
        threads=_optional_count(head, "threads"),
        clock=excerpt(str(head.get("clock", "")), limits.SENTENCE_CHARACTERS_MAX),
        notes=_printable_sentences(head.get("notes"))[: limits.NOTES_MAX],
        errors=errors,
        retries=_retries_by_reason(_inner_table(end, "retries")),
        lateness=_parse_lateness(_inner_table(end, "lateness")),
        unreached=end.get("unreached") is True,
        measured_ns=require_count(end, "measured_ns"),
        drain_ns=require_count(end, "drain_ns"),
        drained_ios=_optional_count(end, "drained_ios"),
        verify=_parse_verify_totals(_inner_table(end, "verify")),
        voluntary_switches=_optional_count(switches, "voluntary"),
        involuntary_switches=_optional_count(switches, "involuntary"),
        steal_ticks=_optional_count(end, "steal_ticks"),
        depth_asked=_optional_count(_inner_table(end, "depth"), "asked"),
        depth_used=_optional_count(_inner_table(end, "depth"), "used"),
        probe_reads=_optional_count(probes, "ios"),
        probe_read_bytes=_optional_count(probes, "bytes"),
        unsubmitted=_optional_count(unsubmitted, "count"),
        oldest_unsubmitted_ns=_optional_count(unsubmitted, "oldest_ns"),
        hung_ios=_optional_count(end, "hung"),
        begun_first_ns=_optional_count(_inner_table(end, "begun_ns"), "first"),
        begun_last_ns=_optional_count(_inner_table(end, "begun_ns"), "last"),
    )


def _parse_direction_totals(table: Mapping[str, Any], wall_ns: int, short: int) -> DirectionTotals:
    ios, moved = require_count(table, "ios"), require_count(table, "bytes")
    lowest, highest = _optional_count(table, "min_ns"), _optional_count(table, "max_ns")
    histogram = Histogram(_dense_bin_counts(table, ios), lowest, highest)
    values = ((rank, histogram.percentile_ns(rank)) for rank in PERCENTILES)
    mean = _optional_number(table, "lat_sum_ns") / ios if ios else 0.0
    return DirectionTotals(
        ios=ios,
        bytes=moved,
        runtime_ms=wall_ns // 1_000_000,
        iops=ios * NS_PER_S / wall_ns if wall_ns else 0.0,
        bw_bytes_per_s=moved * NS_PER_S / wall_ns if wall_ns else 0.0,
        lat_min_ns=lowest if ios else 0,
        lat_max_ns=highest if ios else 0,
        lat_mean_ns=mean,
        slat_mean_ns=0.0,
        clat_mean_ns=mean,
        percentiles=tuple((rank, round(value)) for rank, value in values if value is not None),
        short_ios=short,
        dropped_ios=0,
    )


def _dense_bin_counts(table: Mapping[str, Any], ios: int) -> Ints:
    """Dense counts; LineError where they are not those of the I/Os."""
    bins, counts = parse_bins(table)
    if int(counts.sum()) != ios:
        raise LineError(f"it counts {ios} I/Os of the whole run and bins {counts.sum()}")
    return dense_counts(bins, counts)


def _errors_by_kind(table: Mapping[str, Any]) -> tuple[tuple[str, int], ...]:
    """I/Os that failed, by direction and errno, most first; short ones are counted elsewhere."""
    counts = [
        (
            excerpt(f"{way} {name}", limits.SENTENCE_CHARACTERS_MAX),
            _optional_count(_inner_table(table, way), name),
        )
        for way in table
        for name in _inner_table(table, way)
        if name != SHORT_IO_KIND
    ]
    counts = sorted(
        (error for error in counts if error[1]), key=lambda error: (-error[1], error[0])
    )
    return tuple(counts[: limits.RETRY_KINDS_MAX])


def _retries_by_reason(table: Mapping[str, Any]) -> tuple[tuple[str, int], ...]:
    reasons = [
        (excerpt(reason, limits.SENTENCE_CHARACTERS_MAX), _optional_count(table, reason))
        for reason in table
    ]
    return tuple(reasons[: limits.RETRY_KINDS_MAX])


def _most_frequent_errno(errors: tuple[tuple[str, int], ...]) -> int:
    """The number of the error that was met most often, 0 for none; EIO for one without a number."""
    if not errors:
        return 0
    name = errors[0][0].rpartition(" ")[2]
    numbers = {symbol: number for number, symbol in errno.errorcode.items()}
    return numbers.get(name, errno.EIO)


def _parse_lateness(table: Mapping[str, Any]) -> Lateness | None:
    if not _optional_count(table, "count"):
        return None
    machine = _inner_table(table, "machine")
    return Lateness(
        count=_optional_count(table, "count"),
        p50_ns=_optional_count(table, "p50_ns"),
        p99_ns=_optional_count(table, "p99_ns"),
        max_ns=_optional_count(table, "max_ns"),
        machine_p99_ns=_optional_count(machine, "p99_ns")
        if _optional_count(machine, "count")
        else None,
    )


def _parse_verify_totals(table: Mapping[str, Any]) -> VerifyTotals | None:
    if "checked" not in table:
        return None
    kinds = ("checked", "torn", "stale", "misplaced", "corrupt")
    checked, torn, stale, misplaced, corrupt = (_optional_count(table, kind) for kind in kinds)
    first = _printable_sentences(table.get("first"))[: limits.WRONG_BLOCKS_MAX]
    return VerifyTotals(checked, torn, stale, misplaced, corrupt, first)


def _printable_sentences(value: object) -> tuple[str, ...]:
    if not isinstance(value, list):
        return ()
    return tuple(excerpt(str(sentence), limits.SENTENCE_CHARACTERS_MAX) for sentence in value)


def _inner_table(table: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    inner = table.get(key)
    return inner if isinstance(inner, dict) else {}


def _optional_count(table: Mapping[str, Any], key: str) -> int:
    """A whole number, 0 where there is none. LineError for anything else that stands there."""
    return 0 if table.get(key) is None else require_count(table, key)


def _optional_number(table: Mapping[str, Any], key: str) -> float:
    """The same of a number of any kind."""
    value = table.get(key)
    if value is None:
        return 0.0
    # Nothing is compared with what is no number, and nothing is less than it.
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or not 0 <= value <= limits.NUMBER_MAX:
        raise LineError(f"it told no {key}")
    return float(value)


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
        self._faults = ReadingFaults()
        self._log = IntervalLog()
        self._head: dict[str, Any] = {}
        self._end: dict[str, Any] | None = None
        self._start_ns: int | None = None
        self._last_ns: int | None = None

    def feed(self, piece: bytes) -> list[Interval]:
        """Take the next bytes; the intervals that they complete."""
        *lines, self._rest = (self._rest + piece).split(b"\n")
        if len(self._rest) > limits.LINE_BYTES_MAX:
            self._faults.add_fault("it printed a line without an end")
            self._rest = b""
        return [interval for line in lines if (interval := self._take_line(line)) is not None]

    def finish(self) -> EngineReading:
        """Everything that the output told."""
        if self._rest.strip():
            self._take_line(self._rest)
        totals = self._totals()
        start_ns, end_ns = self._start_and_end_ns()
        return EngineReading(
            version=self._version_text(),
            start_real_ns=start_ns,
            end_real_ns=end_ns,
            intervals=self._log,
            totals=totals,
            faults=tuple(self._faults),
        )

    def _version_text(self) -> str:
        """With the way to the kernel: hosts that have another one are not alike."""
        version, method = self._head.get("version"), self._head.get("method")
        if not isinstance(version, str):
            return ""
        version_text = (
            f"native-{version} ({method})" if isinstance(method, str) else f"native-{version}"
        )
        return excerpt(version_text, limits.SENTENCE_CHARACTERS_MAX)

    def _start_and_end_ns(self) -> tuple[int | None, int | None]:
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

    def _totals(self) -> EngineTotals | None:
        if self._end is None:
            if not self._faults:
                self._faults.add_fault("it ended without its last line")
            return None
        try:
            totals = parse_totals(self._head, self._end, self._directions, self._jobs)
        except LineError as fault:
            self._faults.add_fault(str(fault))
            return None
        lack = self._missing(totals)
        if lack:
            self._faults.add_fault(lack)
        if self._end.get("gave_up") is True or _did_every_io_fail(totals):
            self._faults.add_fault(_failures_text(totals))
        return totals

    def _take_line(self, line: bytes) -> Interval | None:
        """One line; the interval that it is, None for any other."""
        if not line.strip():
            return None
        try:
            document = require_object(json.loads(line))
            return self._take_document(document)
        except LineError as fault:
            self._faults.add_fault(str(fault))
        except (ValueError, RecursionError):
            words = excerpt(line, limits.SENTENCE_CHARACTERS_MAX)
            self._faults.add_fault(f"it printed a line that is no JSON: {words}")
        return None

    def _take_document(self, document: dict[str, Any]) -> Interval | None:
        if "fault" in document:
            faults = document["fault"]
            for fault in faults if isinstance(faults, list) else [faults]:
                self._faults.add_fault(
                    excerpt(str(fault), limits.SENTENCE_CHARACTERS_MAX).rstrip(".")
                )
        elif "native" in document:
            self._head = document
        elif "started_real_ns" in document:
            self._start_ns = require_count(document, "started_real_ns")
        elif "end" in document:
            self._end = require_object(document["end"])
        elif "seq" in document:
            interval = self._parse_interval(document)
            self._log.append(interval)
            self._last_ns = interval.end_real_ns
            return interval
        return None

    def _parse_interval(self, document: dict[str, Any]) -> Interval:
        parts = []
        for direction in Direction:
            name = direction.key
            if direction not in self._directions and name not in document:
                continue
            part = require_direction(document, name)
            if direction not in self._directions and not require_count(part, "ios"):
                continue
            parts.append(_parse_direction_interval(direction, part))
            service = part.get("service")
            if isinstance(service, dict):
                parts.append(_parse_service_time_interval(direction, parts[-1], service))
        end_ns, span_ns = require_count(document, "end_real_ns"), require_count(document, "span_ns")
        if self._last_ns is not None and end_ns <= self._last_ns:
            raise LineError("it told an interval that ends before the one before it")
        if require_count(document, "seq") != len(self._log):
            self._faults.add_fault(
                f"it told interval {document['seq']} where {len(self._log)} was due"
            )
        return Interval(len(self._log), end_ns, span_ns, tuple(parts))


def _known_direction_totals(totals: EngineTotals) -> list[DirectionTotals]:
    return [way for way in (totals.read, totals.write, totals.trim) if way is not None]


def _did_every_io_fail(totals: EngineTotals) -> bool:
    """Whether not one I/O was done, and some were tried."""
    failed = totals.generator.failed_ios if totals.generator else 0
    short = sum(way.short_ios for way in _known_direction_totals(totals))
    return failed + short > 0 and not any(way.ios for way in _known_direction_totals(totals))


def _failures_text(totals: EngineTotals) -> str:
    errors = totals.generator.errors if totals.generator else ()
    short = sum(way.short_ios for way in _known_direction_totals(totals))
    counts = [f"{count} x {name}" for name, count in errors[:ERRORS_SHOWN]]
    counts += [f"{short} x {SHORT_IO_KIND}"] if short else []
    return f"every I/O failed ({', '.join(counts)})"


def _parse_direction_interval(direction: Direction, table: dict[str, Any]) -> DirectionInterval:
    bins, counts = parse_bins(table)
    ios = require_count(table, "ios")
    if int(counts.sum()) != ios:
        raise LineError(f"it counts {ios} I/Os of '{direction.key}' and bins {counts.sum()}")
    lat_sum_ns = float(require_count(table, "lat_sum_ns"))
    return DirectionInterval(
        direction, ios, require_count(table, "bytes"), lat_sum_ns, bins, counts
    )


def _parse_service_time_interval(
    direction: Direction, part: DirectionInterval, table: dict[str, Any]
) -> DirectionInterval:
    """The same I/Os from their submission."""
    bins, counts = parse_bins(table)
    way = ServiceTime(direction + ServiceTime.READ)
    sum_ns = float(require_count(table, "lat_sum_ns"))
    return DirectionInterval(way, part.ios, part.bytes, sum_ns, bins, counts)
