"""A run of db_bench from its files: its table files by sst_dump, its threads, its seconds. Pure.

db_bench says nothing of a database that it did not load itself: it takes another block size or
number of keys than the files have without a word.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from functools import lru_cache
from itertools import pairwise
from typing import Final, NamedTuple

import numpy as np

from iolab.core.limits import (
    LOGGED_SECONDS_MAX,
    PROGRESS_LINE_BYTES_MAX,
    PROGRESS_LINES_MAX,
    STREAM_BYTES_MAX,
)
from iolab.hosts.intervals import DirectionInterval, Interval
from iolab.loads.keyvalue.workload import (
    DatabaseSpec,
    DbBenchJob,
    KeyOperation,
    TableShape,
    ThreadProgress,
)
from iolab.record import Record
from iolab.units import NS_PER_S

OVERHEAD_BYTES: Final = 256
"""What a block has beyond its entries: restart points, trailer, the cache's own record."""

SEQUENCE_BYTES: Final = 8
"""RocksDB's own part of each stored key."""

_SENTENCE: Final = 200

_NAMES: Final = (
    "# entries",
    "# data blocks",
    "data block size",
    "raw key size",
    "raw value size",
)

_PROPERTY: Final = re.compile(rf"^ +({'|'.join(_NAMES)}): (\d{{1,19}})$", re.MULTILINE)
_COMPRESSION: Final = re.compile(r"SST file compression algo: ([A-Za-z0-9]{1,30})$", re.MULTILINE)


START_SPREAD_S: Final = 0.1
"""How far apart hundreds of threads begin on a busy host."""


_LINE: Final = re.compile(
    r"(\d{4}/\d\d/\d\d-\d\d:\d\d:\d\d) +\.\.\. thread (\d{1,9}): "
    r"\(\d{1,18},(\d{1,18})\) ops and \(\S{1,60}\) ops/second "
    r"in \(\d{1,9}\.\d{1,9},(\d{1,9}\.\d{1,9})\) seconds"
)

_ROW: Final = re.compile(r"(\d{1,9}),(\d{1,18})")

WRITER_THREAD: Final = 0
"""The writer's number where there is one; those that count follow it."""

LAST_S_MIN: Final = 0.5
"""What a cell did after the last row of its report is an interval if it is at least so long: the
rate of a few ms is noise."""


_NONE: Final = np.zeros(0, dtype=np.int16)


def parse_sst_dump_properties(sst_dump_output: bytes) -> TableShape | None:
    """The properties of all files added up; None when there is no file or an output is cut."""
    text = sst_dump_output[:STREAM_BYTES_MAX].decode("utf-8", "replace")
    files = [dict(_PROPERTY.findall(part)) for part in text.split("Table Properties:")[1:]]
    compression = tuple(sorted(set(_COMPRESSION.findall(text))))
    if not files or any(not set(_NAMES) <= part.keys() for part in files):
        return None
    entries, blocks, blocks_sum, keys_sum, values_sum = (
        sum(int(part[name]) for part in files) for name in _NAMES
    )
    return TableShape(len(files), entries, blocks, blocks_sum, keys_sum, values_sum, compression)


def table_shape_faults(shape: TableShape | None, database_spec: DatabaseSpec) -> tuple[str, ...]:
    """Why a database is not the one that was to be loaded; empty when it is."""
    if shape is None:
        return ("there is no database with tables: it was not loaded, or the path is another",)
    faults: list[str] = []
    if shape.entries != database_spec.keys:
        faults.append(
            f"the database holds {shape.entries} keys, and {database_spec.keys} were loaded"
        )
    if shape.entries:
        key = shape.key_bytes_sum / shape.entries - SEQUENCE_BYTES
        value = shape.value_bytes_sum / shape.entries
        if (key, value) != (database_spec.key_bytes, database_spec.value_bytes):
            faults.append(
                f"the database has keys of {key:g} and values of {value:g} bytes, and "
                f"{database_spec.key_bytes} and {database_spec.value_bytes} were requested"
            )
    if fault := block_size_fault(shape.block_bytes_mean, database_spec):
        faults.append(fault)
    if set(shape.compression) - {"NoCompression"}:
        faults.append(f"the database is compressed: {', '.join(shape.compression)}"[:_SENTENCE])
    return tuple(faults)


def block_size_fault(mean_block_bytes: float | None, database_spec: DatabaseSpec) -> str | None:
    """Why blocks of that mean size were not made with the block size; None when they may be.

    A block is closed by the entry that fills it up, so it may be longer by one; one that stands
    last in its file may be short, and so the mean may be down to half of what was requested.
    """
    if mean_block_bytes is None:
        return "the database has no data block"
    longest = (
        database_spec.block_bytes + database_spec.entry_bytes + SEQUENCE_BYTES + OVERHEAD_BYTES
    )
    if database_spec.block_bytes / 2 <= mean_block_bytes <= longest:
        return None
    return (
        f"the database has blocks of {mean_block_bytes:.0f} bytes on average, and was to have "
        f"{database_spec.block_bytes}"
    )


def parse_progress(lines: Iterable[str]) -> tuple[ThreadProgress, ...]:
    """The lines of all threads in the order in which they came; what is no such line is left out.

    The stamp is in the time zone of the process, which must be UTC.
    """
    taken: list[ThreadProgress] = []
    for line in lines:
        match = _LINE.match(line)
        if match is None or len(taken) >= PROGRESS_LINES_MAX:
            continue
        stamp_s = _parse_stamp_s(match[1])
        if stamp_s is None:
            continue
        taken.append(
            ThreadProgress(
                thread=int(match[2]),
                elapsed_s=float(match[4]),
                operations=int(match[3]),
                stamp_s=stamp_s,
            )
        )
    return tuple(taken)


@lru_cache(maxsize=64)
def _parse_stamp_s(text: str) -> int | None:
    """Seconds since 1970 of a stamp, which many threads print; None for what is no time."""
    try:
        moment = datetime.strptime(text, "%Y/%m/%d-%H:%M:%S").replace(tzinfo=UTC)
    except ValueError:
        return None
    return int(moment.timestamp())


def thread_start_bounds_s(progress: Iterable[ThreadProgress]) -> tuple[float, float] | None:
    """Between which moments of the host's clock the threads began, since 1970.

    Every line says the whole second that it was printed in and how long its thread had worked by
    then; together they leave a span of some ms. None without a line, or when lines contradict
    each other by more than threads begin apart (the clock was set meanwhile).
    """
    spans = [
        (line.stamp_s - line.elapsed_s, line.stamp_s + 1 - line.elapsed_s) for line in progress
    ]
    if not spans:
        return None
    low, high = max(low for low, _ in spans), min(high for _, high in spans)
    return (min(low, high), max(low, high)) if low <= high + START_SPREAD_S else None


class ReportRow(NamedTuple):
    """A row of the report file: whole seconds since the start, operations in that interval."""

    elapsed_s: int
    operations: int


def parse_report_rows(report_file_content: bytes) -> tuple[ReportRow, ...] | None:
    """The report file's rows.

    A last row that was cut short is left out. None when it is no such file.
    """
    lines = report_file_content.decode("utf-8", "replace").split("\n")
    if lines[0] != "secs_elapsed,interval_qps":
        return None
    rows: list[ReportRow] = []
    for line in lines[1:-1][:LOGGED_SECONDS_MAX]:
        match = _ROW.fullmatch(line)
        if match is None:
            return None
        rows.append(ReportRow(int(match[1]), int(match[2])))
    return tuple(rows)


class BenchTotals(Record):
    """A cell at its end: after how long, operations of the threads that count, and the writer's.

    None for what is not known: all of it when db_bench was killed.
    """

    seconds: float | None
    operations: int | None
    writer_operations: int | None


class BenchSecond(Record):
    """What was done from `end_s - span_s` to `end_s` after the start.

    `writer_operations` beside it.
    """

    end_s: float
    span_s: float
    completed: int
    writer_operations: int | None


def bench_seconds(
    report_rows: Sequence[tuple[int, int]],
    progress: Iterable[ThreadProgress],
    job: DbBenchJob,
    totals: BenchTotals,
) -> tuple[BenchSecond, ...]:
    """The rows of the report file as operations that count, and the writer's beside them.

    Where a row is late the next one stands for two seconds. After the last row comes what is
    missing to the totals, unless that is too short. The writer's operations are read off the
    straight line between what it told; where it was not heard up to a second, that second and all
    after it are left out.
    """
    marks = _cumulative_operations_by_time(report_rows, totals)
    if not job.has_writer:
        return tuple(
            BenchSecond(end_s, end_s - start_s, end - start, None)
            for (start_s, start), (end_s, end) in pairwise(marks)
        )
    writer = [line for line in progress if line.thread == WRITER_THREAD]
    points = _cumulative_writer_operations_by_time(writer, totals)
    seconds: list[BenchSecond] = []
    for (start_s, start), (end_s, end) in pairwise(marks):
        before, after = (
            _interpolated_operations(points, start_s),
            _interpolated_operations(points, end_s),
        )
        if before is None or after is None:
            break
        written = round(after) - round(before)
        seconds.append(BenchSecond(end_s, end_s - start_s, max(end - start - written, 0), written))
    return tuple(seconds)


def bench_intervals(seconds: Iterable[BenchSecond], start_real_ns: int) -> tuple[Interval, ...]:
    """The same as intervals on the host's clock, on which the cell began at `start_real_ns`."""
    return tuple(
        Interval(
            seq=seq,
            end_real_ns=start_real_ns + round(second.end_s * NS_PER_S),
            span_ns=round(second.span_s * NS_PER_S),
            directions=tuple(_direction_intervals_of_second(second)),
        )
        for seq, second in enumerate(seconds)
    )


class SecondRate(NamedTuple):
    """A whole second since the start, and the operations a second that were done in it."""

    second: int
    ops_per_s: float


class LiveProgressReader:
    """Hears standard error while it comes: when the cell began, and how fast it goes.

    `start_real_ns` is the latest moment at which it can have begun by what was heard so far, None
    while nothing was: every line says how long its thread had worked when it was printed.
    """

    def __init__(self, job: DbBenchJob) -> None:
        self.start_real_ns: int | None = None
        self._counting = range(1, job.threads + 1) if job.has_writer else range(job.threads)
        self._rest = b""
        self._last: dict[int, tuple[float, int]] = {}
        self._rates: dict[int, float] = {}
        self._second = 0

    def feed(self, piece: bytes, now_real_ns: int) -> list[SecondRate]:
        """Take the next bytes, heard now: the seconds that are over, each with its ops/s."""
        *lines, rest = (self._rest + piece).split(b"\n")
        self._rest = rest[-PROGRESS_LINE_BYTES_MAX:]
        reports: list[SecondRate] = []
        for progress in parse_progress(line.decode("utf-8", "replace") for line in lines):
            began_ns = now_real_ns - round(progress.elapsed_s * NS_PER_S)
            self.start_real_ns = min(began_ns, self.start_real_ns or began_ns)
            if progress.thread not in self._counting:
                continue
            if int(progress.elapsed_s) > self._second:
                if self._rates:
                    rate = sum(self._rates.values())
                    reports.append(SecondRate(int(progress.elapsed_s) - 1, rate))
                self._second = int(progress.elapsed_s)
            self._update_thread_rate(progress)
        return reports

    def _update_thread_rate(self, progress: ThreadProgress) -> None:
        """How fast that thread was since it last spoke."""
        before_s, before = self._last.get(progress.thread, (0.0, 0))
        if progress.elapsed_s > before_s:
            self._rates[progress.thread] = max(progress.operations - before, 0) / (
                progress.elapsed_s - before_s
            )
            self._last[progress.thread] = progress.elapsed_s, progress.operations


def _cumulative_operations_by_time(
    report_rows: Sequence[tuple[int, int]], totals: BenchTotals
) -> list[tuple[float, int]]:
    """How much all threads had done by when, from nothing at the start on."""
    marks: list[tuple[float, int]] = [(0.0, 0)]
    for second, count in report_rows:
        at_s, done = marks[-1]
        if second > at_s:
            marks.append((float(second), done + count))
        elif len(marks) > 1:
            # Two rows within the same second by its rounding.
            marks[-1] = (at_s, done + count)
    at_s, done = marks[-1]
    if totals.seconds is not None and totals.operations is not None:
        missing = totals.operations + (totals.writer_operations or 0) - done
        if totals.seconds - at_s >= LAST_S_MIN and missing >= 0:
            marks.append((totals.seconds, done + missing))
    return marks


def _cumulative_writer_operations_by_time(
    writer_progress: Iterable[ThreadProgress], totals: BenchTotals
) -> list[tuple[float, int]]:
    """What the writer had done by when; lines that go back count as never said."""
    points: list[tuple[float, int]] = [(0.0, 0)]
    for progress in writer_progress:
        if progress.elapsed_s > points[-1][0] and progress.operations >= points[-1][1]:
            points.append((progress.elapsed_s, progress.operations))
    end_s, writes = totals.seconds, totals.writer_operations
    if end_s is not None and writes is not None and writes >= points[-1][1]:
        # The last row of the report may be some ms past the end.
        points.append((max(end_s + 1, points[-1][0] + 1), writes))
        points.insert(-1, (max(end_s, points[-2][0]), writes))
    return points


def _interpolated_operations(points: Sequence[tuple[float, int]], at_s: float) -> float | None:
    """Operations done by then; None when it is past all that is known."""
    index = bisect_left(points, at_s, key=lambda point: point[0])
    if index == len(points):
        return None
    if points[index][0] == at_s:
        return float(points[index][1])
    (low_s, low), (high_s, high) = points[index - 1], points[index]
    return low + (high - low) * (at_s - low_s) / (high_s - low_s)


def _direction_intervals_of_second(second: BenchSecond) -> Iterable[DirectionInterval]:
    yield DirectionInterval(KeyOperation.ALL, second.completed, 0, 0.0, _NONE, _NONE)
    if second.writer_operations is not None:
        yield DirectionInterval(KeyOperation.WRITE, second.writer_operations, 0, 0.0, _NONE, _NONE)
