"""What YCSB prints at its end, and what speaks against a run: pure, and nothing is believed.

YCSB ends with 0 whatever happened. That a run is the one that was requested is told by its counts
alone: by section, how many operations came to their end and with which status they returned.
Sections that are not known are passed over, unless they are of operations that failed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np

from iolab.core.histogram import bin_index_of_ns
from iolab.core.limits import (
    ERROR_LINES_MAX,
    PROGRESS_LINE_BYTES_MAX,
    SECTIONS_MAX,
    STATUSES_MAX,
    STREAM_BYTES_MAX,
)
from iolab.core.samples import with_narrowest_type
from iolab.hosts.engine import OutputFaults
from iolab.hosts.intervals import DirectionInterval, Interval
from iolab.loads.keyvalue.workload import KeyOperation, OperationCount, ReportedStatistic, YcsbJob
from iolab.loads.keyvalue.ycsb.engine import timed_operations_of_job
from iolab.loads.keyvalue.ycsb.hdr_log import YCSB_NAMES, HdrInterval, HdrLog
from iolab.record import Record
from iolab.text import counted_noun, excerpt
from iolab.units import NS_PER_US, parse_finite

DURATION_TOLERANCE_S: Final = 0.1
"""How much sooner than asked for a run may end: YCSB counts whole milliseconds."""

OK: Final = "OK"
NOT_FOUND: Final = "NOT_FOUND"
FAILED: Final = "-FAILED"
_RMW: Final = KeyOperation.READ_MODIFY_WRITE
_VERSION: Final = re.compile(r"YCSB Client (\d{1,4}(?:\.\d{1,4}){1,3}\S{0,20})")

_RESULT: Final = re.compile(
    r"\[([A-Za-z][A-Za-z0-9_%. -]{0,100})\], ([^,\]]{1,100}), (-?[0-9.]{1,40}(?:E-?\d{1,3})?|NaN)"
)

_ERROR: Final = re.compile(
    r"iolab: |(?:Caused by: )?(?:[a-z][\w$]*\.){1,10}\w*(?:Exception|Error)\b"
    r"|Exception in thread|Error: |Error inserting, |Error initializing |Unknown DB "
    r"|Could not export |Invalid combination |Error occurred during |Terminating due to "
)

_GARBAGE: Final = re.compile(r"TOTAL_GC(?:S|_TIME|_TIME_%)?_|TOTAL_GC")
_TOTALS: Final = ("RunTime(ms)", "Throughput(ops/sec)")
_UNITS: Final = {"Count": "", "Time(ms)": "ms", "Time(%)": "%"}
_NAMES: Final = {operation: name for name, operation in YCSB_NAMES.items()}


_STAMP: Final = re.compile(rb"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d:\d{3} (?P<elapsed>\d{1,12}) sec: ")

_STATUS: Final = re.compile(
    _STAMP.pattern + rb"(?P<done>\d{1,18}) operations; "
    rb"(?P<rate>[\d.]{1,40}) current ops/sec;"
)

_OPERATION: Final = re.compile(
    rb"\[(?P<name>READ|UPDATE|INSERT|SCAN): Count=(?P<count>\d{1,18}), "
    rb"[^\]]*?Avg=(?P<mean>[\d.]{1,40})[,\]]"
)

SHORT_GROUP_NS: Final = 200_000_000
"""An interval that is shorter is joined to its neighbour: YCSB writes one at its very beginning and
two at its end, whose rates would be noise."""

SAME_MOMENT_NS: Final = 500_000_000
"""Logs are written one after the other; half a second apart is another interval of a second."""


class YcsbSection(Record):
    """One section of the summary: an operation as YCSB names it.

    `timed_count` are all that were timed under this name. `return_counts` are those by the status
    that the binding gave; failed ones stand here and are timed under another name (`READ-FAILED`).
    """

    name: str
    timed_count: int
    return_counts: tuple[tuple[str, int], ...]

    @property
    def ok_count(self) -> int:
        """How many returned OK."""
        return dict(self.return_counts).get(OK, 0)

    @property
    def not_ok_statuses_and_counts(self) -> tuple[tuple[str, int], ...]:
        """Statuses other than OK, with how many returned them."""
        return tuple((name, count) for name, count in self.return_counts if name != OK and count)


class YcsbOutput(Record):
    """All that both streams tell; None and empty for what they do not.

    `reported_ops_per_s` over `reported_s` is YCSB's own total: with connecting, warm-up and
    closing, and with operations that failed. `messages` are lines in which YCSB or the binding tell
    of an error, `faults` say what is wrong with the output.
    """

    version: str
    sections: tuple[YcsbSection, ...]
    statistics: tuple[ReportedStatistic, ...]
    reported_s: float | None
    reported_ops_per_s: float | None
    messages: tuple[str, ...]
    faults: tuple[str, ...]

    def section(self, name: str) -> YcsbSection | None:
        """The section of that name."""
        return next((section for section in self.sections if section.name == name), None)

    @property
    def operation_counts(self) -> tuple[OperationCount, ...]:
        """Operations that we know, as they came to their end."""
        return tuple(
            OperationCount(
                operation=operation,
                completed=section.timed_count,
                failed=sum(count for _, count in section.not_ok_statuses_and_counts),
                absent=_absent_count(operation, section),
            )
            for section in self.sections
            if (operation := YCSB_NAMES.get(section.name)) is not None
        )


def parse_ycsb_output(stdout: bytes, stderr: bytes) -> YcsbOutput:
    """Read an output, whole or broken off. Never raises."""
    draft = _YcsbParser()
    for name, raw in (("output", stdout), ("standard error", stderr)):
        if len(raw) > STREAM_BYTES_MAX:
            draft.faults.add_fault(f"YCSB's {name} is longer than {STREAM_BYTES_MAX} bytes")
    for line in _printable_lines(stderr):
        draft.take_stderr_line(line)
    for line in _printable_lines(stdout):
        draft.take_stdout_line(line)
    return draft.build_output()


def ycsb_run_faults(
    output: YcsbOutput, job: YcsbJob, logs: Sequence[HdrLog], seconds: float
) -> tuple[str, ...]:
    """Why a run is not the job's load over so many seconds; empty when it is.

    `logs` are the latency logs that were there. What YCSB itself said of an error comes first.
    """
    faults = [*output.messages, *output.faults]
    if output.reported_s is None:
        return (*faults, "YCSB printed no result", *_log_faults(logs))
    if output.reported_s < seconds - DURATION_TOLERANCE_S:
        faults.append(f"YCSB ran for {output.reported_s:g} s, and {seconds:g} s were requested")
    return (
        *faults,
        *_status_faults(output),
        *_missing_or_failed_operation_faults(output, job),
        *_log_faults(logs),
        *_log_count_faults(output, job, logs),
    )


def fill_faults(output: YcsbOutput, record_count: int) -> tuple[str, ...]:
    """Why a load did not insert `record_count` records; empty when it did."""
    faults = [*output.messages, *output.faults]
    if output.reported_s is None:
        return (*faults, "YCSB printed no result")
    faults += _status_faults(output)
    section = output.section("INSERT")
    done = section.ok_count if section else 0
    if done != record_count:
        faults.append(
            f"YCSB inserted {counted_noun(done, 'record')}, and {record_count:,} were requested"
        )
    return tuple(faults)


class _YcsbParser:
    """Both streams while they are read, line by line."""

    def __init__(self) -> None:
        self.faults = OutputFaults()
        self._version = ""
        self._messages: dict[str, None] = {}
        self._overall: dict[str, float] = {}
        self._statistics: list[ReportedStatistic] = []
        self._sections: dict[str, dict[str, int]] = {}

    def take_stderr_line(self, line: str) -> None:
        """A line of standard error, or one of standard output that is no result."""
        if match := _VERSION.match(line):
            self._version = match[1]
        elif _ERROR.match(line) and len(self._messages) < ERROR_LINES_MAX:
            message = excerpt(line, 300).removeprefix("iolab: ").rstrip(".")
            # What the binding told once is told again by every thread, with its cause.
            reason = message.partition(": ")[2] or message
            if not any(
                reason.rpartition("Exception: ")[2] in earlier for earlier in self._messages
            ):
                self._messages[message] = None

    def take_stdout_line(self, line: str) -> None:
        """A line of standard output."""
        match = _RESULT.fullmatch(line)
        if match is None:
            self.take_stderr_line(line)
            return
        section, field, number = match[1], match[2], parse_finite(match[3])
        if section == "OVERALL":
            if number is not None and field in _TOTALS:
                self._overall[field] = number
        elif _GARBAGE.match(section):
            if number is not None and len(self._statistics) < SECTIONS_MAX:
                name = section.lower()
                self._statistics.append(ReportedStatistic(name, number, _UNITS.get(field, field)))
        elif field == "Operations" or field.startswith("Return="):
            self._add_count(section, field, match[3])

    def build_output(self) -> YcsbOutput:
        """All lines are read."""
        runtime_ms = self._overall.get("RunTime(ms)")
        return YcsbOutput(
            version=self._version,
            sections=tuple(_build_section(name, held) for name, held in self._sections.items()),
            statistics=tuple(self._statistics),
            reported_s=None if runtime_ms is None else runtime_ms / 1000,
            reported_ops_per_s=self._overall.get("Throughput(ops/sec)"),
            messages=tuple(self._messages),
            faults=tuple(self.faults),
        )

    def _add_count(self, section_name: str, field_name: str, number_text: str) -> None:
        if not number_text.isdecimal() or len(number_text) > 18:
            self.faults.add_fault(
                f"YCSB says {field_name} {excerpt(number_text, 40)} of {section_name}"
            )
        elif len(self._sections) < SECTIONS_MAX or section_name in self._sections:
            fields = self._sections.setdefault(section_name, {})
            if len(fields) < STATUSES_MAX or field_name in fields:
                fields[field_name] = int(number_text)


def _build_section(name: str, counts_by_field: dict[str, int]) -> YcsbSection:
    returned = tuple(
        (field.removeprefix("Return="), count)
        for field, count in counts_by_field.items()
        if field[:1] == "R"
    )
    return YcsbSection(name, counts_by_field.get("Operations", 0), returned)


def _absent_count(operation: KeyOperation, section: YcsbSection) -> int | None:
    return dict(section.return_counts).get(NOT_FOUND, 0) if operation is KeyOperation.READ else None


def _status_faults(output: YcsbOutput) -> Iterator[str]:
    for section in output.sections:
        for status, count in section.not_ok_statuses_and_counts:
            word = _operation_of_section_name(section.name)
            if status == NOT_FOUND:
                yield f"{counted_noun(count, f'{word} operation')} found no record of their key"
            else:
                yield f"{counted_noun(count, f'{word} operation')} returned {excerpt(status, 40)}"
        named = section.name.endswith(FAILED) and section.timed_count
        name = section.name.removesuffix(FAILED)
        if named and not _has_failure_statuses(output, name):
            yield f"{section.timed_count} {_operation_of_section_name(name)} operations failed"


def _has_failure_statuses(output: YcsbOutput, operation_name: str) -> bool:
    """Whether that operation's own section tells of what failed; no need to say it twice."""
    section = output.section(operation_name.removeprefix("Intended-"))
    return section is not None and bool(section.not_ok_statuses_and_counts)


def _operation_of_section_name(section_name: str) -> str:
    return excerpt(section_name, 60).lower()


def _missing_or_failed_operation_faults(output: YcsbOutput, job: YcsbJob) -> Iterator[str]:
    for operation in timed_operations_of_job(job):
        section = output.section(_NAMES[operation])
        if section is None or not section.timed_count:
            yield f"YCSB did no {operation.display_name}, which the mix asks for"
        # A read-modify-write as a whole has no status; its read and its update have.
        elif operation is not _RMW and section.ok_count != section.timed_count:
            yield (
                f"YCSB timed {section.timed_count} {operation.display_name} operations, and "
                f"{section.ok_count} "
                "returned OK"
            )


def _log_faults(logs: Sequence[HdrLog]) -> Iterator[str]:
    for log in logs:
        yield from log.faults


def _log_count_faults(output: YcsbOutput, job: YcsbJob, logs: Sequence[HdrLog]) -> Iterator[str]:
    """What was logged must be what was counted: a log that lacks its end is not told by itself."""
    by_operation = {log.operation: log for log in logs}
    for operation in timed_operations_of_job(job):
        for timed in (operation, operation.intended_variant if job.rate_ops_per_s else None):
            section = output.section(_NAMES[timed]) if timed else None
            if timed is None or section is None:
                continue
            log = by_operation.get(timed)
            if log is None:
                yield f"there is no latency log of {timed.display_name}"
            elif log.total != section.timed_count:
                yield (
                    f"the latency log of {timed.display_name} holds {log.total} operations, and "
                    "YCSB "
                    f"counted {section.timed_count}"
                )


def _printable_lines(output: bytes) -> Iterator[str]:
    for line in output[:STREAM_BYTES_MAX].split(b"\n"):
        yield excerpt(line)


class YcsbStatus(Record):
    """One status line: seconds since YCSB's start, operations until then, and the newest rate.

    `lat_ns_mean` is over what the store did in the newest interval, None when that was nothing.
    """

    elapsed_s: int
    operations: int
    ops_per_s: float
    lat_ns_mean: float | None


class YcsbStatusReader:
    """Reads status lines out of pieces of any size; whatever else comes is passed over."""

    def __init__(self) -> None:
        self._open = b""

    def feed(self, piece: bytes) -> list[YcsbStatus]:
        """Take the next bytes; the lines that they complete. Never raises."""
        *lines, rest = (self._open + piece).split(b"\n")
        self._open = rest[-PROGRESS_LINE_BYTES_MAX:]
        return [status for status in map(_parse_status, lines) if status]


def text_without_status_lines(text: bytes) -> bytes:
    """What YCSB said beside its status lines: where a reason is, it stands there."""
    return b"\n".join(line for line in text.split(b"\n") if not _STAMP.match(line))


def _parse_status(line: bytes) -> YcsbStatus | None:
    match = _STATUS.match(line)
    if match is None or len(line) > PROGRESS_LINE_BYTES_MAX:
        return None
    try:
        rate = float(match["rate"])
        parts = [
            (int(operation["count"]), float(operation["mean"]))
            for operation in _OPERATION.finditer(line)
        ]
    except ValueError:
        return None
    count = sum(many for many, _ in parts)
    sum_ns = sum(many * mean_us * NS_PER_US for many, mean_us in parts)
    mean_ns = sum_ns / count if count else None
    return YcsbStatus(int(match["elapsed"]), int(match["done"]), rate, mean_ns)


def intervals_from_hdr_logs(logs: Sequence[HdrLog]) -> tuple[Interval, ...]:
    """The logs of a client as intervals, each of all operations that we know, in our own bins.

    YCSB writes an interval of every operation at each status line, one after the other: those that
    belong together are found from the end on. They get the same end and length.
    """
    by_operation = {
        log.operation: log for log in logs if log.operation is not None and log.intervals
    }
    groups = _join_short_interval_groups(_group_intervals_by_end(list(by_operation.values())))
    intervals: list[Interval] = []
    end_ns = min((interval.start_real_ns for _, interval in groups[0]), default=0) if groups else 0
    for seq, group in enumerate(groups):
        start_ns = end_ns
        end_ns = max(start_ns, *(interval.end_real_ns for _, interval in group))
        parts = (
            _merged_direction_interval(
                operation, [interval for other, interval in group if other is operation]
            )
            for operation in sorted(by_operation)
        )
        intervals.append(Interval(seq, end_ns, end_ns - start_ns, tuple(parts)))
    return tuple(intervals)


IntervalGroup = list[tuple[KeyOperation, HdrInterval]]


def _group_intervals_by_end(logs: Sequence[HdrLog]) -> list[IntervalGroup]:
    """Intervals that were written at the same moment, in order."""
    if not logs:
        return []
    longest = max(logs, key=lambda log: (log.intervals[-1].end_real_ns, len(log.intervals)))
    groups: list[IntervalGroup] = [[] for _ in range(max(len(log.intervals) for log in logs))]
    ends_ns = [interval.end_real_ns for interval in longest.intervals]
    for log in logs:
        if log.operation is None:
            continue
        # A log that was cut short lacks its last ones.
        last_ns = log.intervals[-1].end_real_ns + SAME_MOMENT_NS
        lacking = sum(end_ns > last_ns for end_ns in ends_ns)
        for place, interval in enumerate(reversed(log.intervals)):
            at = len(groups) - 1 - place - lacking
            groups[max(at, 0)].append((log.operation, interval))
    return groups


def _join_short_interval_groups(groups: Sequence[IntervalGroup]) -> list[IntervalGroup]:
    """The groups with crumbs joined to the one before, the first one's to the one after."""
    joined: list[IntervalGroup] = []
    for group in groups:
        if joined and (_is_interval_group_short(group) or _is_interval_group_short(joined[-1])):
            joined[-1] = [*joined[-1], *group]
        else:
            joined.append(list(group))
    return joined


def _is_interval_group_short(group: IntervalGroup) -> bool:
    start_ns = min((interval.start_real_ns for _, interval in group), default=0)
    end_ns = max((interval.end_real_ns for _, interval in group), default=0)
    return end_ns - start_ns < SHORT_GROUP_NS


def _merged_direction_interval(
    operation: KeyOperation, intervals: Sequence[HdrInterval]
) -> DirectionInterval:
    zeros = np.zeros(0, dtype=np.int64)
    values_ns = np.concatenate([zeros, *(interval.values_ns for interval in intervals)])
    counts = np.concatenate([zeros, *(interval.counts for interval in intervals)])
    bins, places = np.unique(bin_index_of_ns(values_ns), return_inverse=True)
    held = np.zeros(bins.size, dtype=np.int64)
    np.add.at(held, places, counts)
    return DirectionInterval(
        direction=operation,
        ios=int(counts.sum()),
        bytes=0,
        lat_sum_ns=float((values_ns * counts).sum(dtype=np.float64)),
        bins=with_narrowest_type(bins),
        counts=with_narrowest_type(held),
    )
