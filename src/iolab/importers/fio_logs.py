"""Logs that fio writes beside its report: rates, latencies and bins, window by window.

A line of a log has the ms since the job began, a value, the direction and the size of the I/O; a
log of averages (`log_avg_msec`) one for each window, any other one for each I/O. What follows
(offset, priority) is not read.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Final

from msgspec import field

from iolab.core.bins import BIN_COUNT
from iolab.importers.files import ForeignFile, ImportFileSet
from iolab.importers.fio_units import is_option_on
from iolab.importers.foreign_run import Bins, ForeignRun, ImportedInterval
from iolab.record import Record
from iolab.units import NS_PER_MS

_DIRECTIONS: Final = ("read", "write", "trim")

_KINDS: Final = {
    "iops": "write_iops_log",
    "bw": "write_bw_log",
    "lat": "write_lat_log",
    "clat": "write_lat_log",
    "slat": "write_lat_log",
    "clat_hist": "write_hist_log",
}
"""How files end, and the option that asks for them."""

_NAME: Final = re.compile(rf".+_(?:{'|'.join(_KINDS)})(?:\.\d+)?\.log")
_LINE: Final = re.compile(rb"\d+, ?\d+, ?\d+")
_PER_IO_WINDOW_MS: Final = 1000
"""A log of every I/O is summed up second by second."""

_COLUMNS: Final = 4


class FioLogs(Record):
    """What the logs of one job tell."""

    intervals: tuple[ImportedInterval, ...] = ()
    bins: Mapping[str, Bins] = field(default_factory=dict)


class OrphanFioLogSkipper:
    """Logs that no report beside them names: their windows are of a load that nothing tells."""

    tool: Final = "fio log"

    def recognises(self, file: ForeignFile) -> bool:
        """By its name, and a line of numbers."""
        return _NAME.fullmatch(file.path.name) is not None and bool(_LINE.match(file.first_bytes))

    def read(self, file: ForeignFile, file_set: ImportFileSet) -> Sequence[ForeignRun]:
        """None; what it is stands in the account."""
        file_set.mark_left_out(
            file,
            "A log of fio is read where the only job of a JSON report beside it names it, "
            "as by write_iops_log=NAME.",
        )
        return ()


class _LogRow(Record):
    """A line of a log of values."""

    ms: int
    value: int
    direction: str
    block_bytes: int


Windows = dict[tuple[str, int], float]
"""Values by direction and the end of their window in ms."""


def read_fio_logs_and_mark_used(
    report_file: ForeignFile,
    file_set: ImportFileSet,
    job_name: str,
    fio_options: Mapping[str, str],
    *,
    is_only_job: bool,
    lat_unit_ns: int = 1,
) -> FioLogs:
    """The logs of the report's job, by the names that its options give them.

    Where the report has several jobs, those of the name that the job's own options give. Latencies
    are in `lat_unit_ns`: 1000 before fio 2.99.
    """
    logs = {
        kind: [
            file_set.mark_used_and_read(log)
            for log in _log_files_beside_report(
                report_file, file_set, job_name, fio_options, kind, is_only_job=is_only_job
            )
        ]
        for kind in ("iops", "bw", "lat", "clat_hist")
    }
    for kind in ("slat", "clat"):
        for log in _log_files_beside_report(
            report_file, file_set, job_name, fio_options, kind, is_only_job=is_only_job
        ):
            file_set.mark_left_out(
                log, "Of latencies by window those from submission on (lat) are read."
            )
    rates, moved, waits = (
        _rows_of_each_log(file_set, logs[kind], fio_options) for kind in ("iops", "bw", "lat")
    )
    if is_option_on(fio_options.get("log_avg_msec", "0")):
        intervals = _intervals_from_averaged_logs(rates, moved, waits, lat_unit_ns)
    else:
        intervals = _intervals_from_per_io_logs(rates, waits, lat_unit_ns)
    return FioLogs(tuple(intervals), _merged_bins_by_direction(file_set, logs["clat_hist"]))


def _intervals_from_averaged_logs(
    iops_logs: Sequence[Sequence[_LogRow]],
    bandwidth_logs: Sequence[Sequence[_LogRow]],
    latency_logs: Sequence[Sequence[_LogRow]],
    lat_unit_ns: int,
) -> Iterator[ImportedInterval]:
    """Windows of logs that have averages: values of all jobs are added, latencies averaged."""
    window = _median_line_interval_ms(iops_logs)
    iops, kib = (
        _figure_sums_by_window(iops_logs, window),
        _figure_sums_by_window(bandwidth_logs, _median_line_interval_ms(bandwidth_logs)),
    )
    total, number = (
        _figure_sums_by_window(latency_logs, _median_line_interval_ms(latency_logs)),
        _figure_sums_by_window(latency_logs, _median_line_interval_ms(latency_logs), lambda _: 1),
    )
    for (way, end), rate in sorted(iops.items(), key=lambda row: row[0][1]):
        mean = total.get((way, end), 0.0) / max(number.get((way, end), 1.0), 1.0) * lat_unit_ns
        count = rate * window / 1000
        yield ImportedInterval(
            way,
            end * NS_PER_MS,
            window * NS_PER_MS,
            round(count),
            round(kib.get((way, end), 0.0) * 1024 * window / 1000),
            mean * count,
        )


def _intervals_from_per_io_logs(
    iops_logs: Sequence[Sequence[_LogRow]],
    latency_logs: Sequence[Sequence[_LogRow]],
    lat_unit_ns: int,
) -> Iterator[ImportedInterval]:
    """Seconds of logs that have a line for each I/O."""
    window = _PER_IO_WINDOW_MS
    # An I/O is of the second in which it ended.
    iops_logs, latency_logs = (
        [
            [
                _LogRow(-(-row.ms // window) * window, row.value, row.direction, row.block_bytes)
                for row in rows
            ]
            for rows in logs
        ]
        for logs in (iops_logs, latency_logs)
    )
    each = iops_logs or latency_logs
    counts, sizes = (
        _figure_sums_by_window(each, window, lambda _: 1),
        _figure_sums_by_window(each, window, lambda row: row.block_bytes),
    )
    waited = _figure_sums_by_window(latency_logs, window)
    for (way, end), count in sorted(counts.items(), key=lambda row: row[0][1]):
        yield ImportedInterval(
            way,
            end * NS_PER_MS,
            window * NS_PER_MS,
            round(count),
            round(sizes[way, end]),
            waited.get((way, end), 0.0) * lat_unit_ns,
        )


def _log_files_beside_report(
    report_file: ForeignFile,
    file_set: ImportFileSet,
    job_name: str,
    fio_options: Mapping[str, str],
    log_kind: str,
    *,
    is_only_job: bool,
) -> list[ForeignFile]:
    option = _KINDS[log_kind]
    if option not in fio_options or (not is_only_job and fio_options[option] not in ("", job_name)):
        return []
    prefix = fio_options[option].rsplit("/", 1)[-1] or job_name
    pattern = re.compile(rf"{re.escape(prefix)}_{log_kind}(?:\.\d+)?\.log")
    return file_set.matching_files_in_same_folder(report_file, pattern)


def _rows_of_each_log(
    file_set: ImportFileSet, logs: Sequence[ForeignFile], fio_options: Mapping[str, str]
) -> list[list[_LogRow]]:
    """The lines of each log, its times from when the job began; none where a line is of no log."""
    every: list[list[_LogRow]] = []
    for log in logs:
        numbers = _parse_log_or_leave_out(file_set, log, max_columns=_COLUMNS)
        rows = [
            _LogRow(row[0], row[1], _DIRECTIONS[row[2]], row[3] if len(row) > 3 else 0)
            for row in numbers
            if len(row) >= 3 and 0 <= row[2] < len(_DIRECTIONS)
        ]
        every.append(rows)
    epochs = ("log_unix_epoch", "log_alternate_epoch")
    if any(is_option_on(fio_options.get(name, "0")) for name in epochs):
        begin = min(
            (row.ms for rows in every for row in rows), default=0
        ) - _median_line_interval_ms(every)
        every = [
            [_LogRow(row.ms - begin, row.value, row.direction, row.block_bytes) for row in rows]
            for rows in every
        ]
    return [rows for rows in every if rows]


def _parse_log_or_leave_out(
    file_set: ImportFileSet, log_file: ForeignFile, *, max_columns: int | None = None
) -> list[list[int]]:
    """The first numbers of each line; nothing of a log with a line of something else."""
    rows: list[list[int]] = []
    for place, line in enumerate(log_file.lines, start=1):
        if line.strip():
            try:
                rows.append([int(part) for part in line.split(",")[:max_columns]])
            except ValueError:
                file_set.mark_left_out(
                    log_file, f"Line {place} is no line of a log of fio: none of it is read."
                )
                return []
    return rows


def _figure_sums_by_window(
    logs: Sequence[Sequence[_LogRow]],
    window_ms: int,
    figure_of_row: Callable[[_LogRow], float] = lambda row: row.value,
) -> Windows:
    """A figure of all jobs together, in windows of so many ms; a line ends the window it is of."""
    totals: Windows = {}
    for rows in logs:
        for row in rows:
            key = row.direction, max(round(row.ms / window_ms), 1) * window_ms
            totals[key] = totals.get(key, 0.0) + figure_of_row(row)
    return totals


def _median_line_interval_ms(logs: Sequence[Sequence[_LogRow]]) -> int:
    """The usual time between two lines of one direction, in ms."""
    gaps: list[int] = []
    for rows in logs:
        for way in _DIRECTIONS:
            times = [row.ms for row in rows if row.direction == way]
            gaps += [b - a for a, b in pairwise(times) if b > a]
    gaps.sort()
    return max(gaps[len(gaps) // 2], 1) if gaps else 1000


def _merged_bins_by_direction(
    file_set: ImportFileSet, log_files: Sequence[ForeignFile]
) -> dict[str, Bins]:
    """The bins of all windows together; none where they were made coarser than json+'s."""
    histograms: dict[str, dict[int, int]] = {}
    for file in log_files:
        for row in _parse_log_or_leave_out(file_set, file):
            bins = row[3:]
            if len(bins) != BIN_COUNT or not 0 <= row[1] < len(_DIRECTIONS):
                return {}
            own = histograms.setdefault(_DIRECTIONS[row[1]], {})
            for place, count in enumerate(bins):
                if count > 0:
                    own[place] = own.get(place, 0) + count
    return dict(histograms)
