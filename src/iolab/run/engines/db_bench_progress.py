"""How far each thread of db_bench was, second by second: its own lines, and its report file. Pure.

The lines of `--stats_interval_seconds` count each thread by itself, to the microsecond; the report
file counts all threads in one, with the writer of readwhilewriting among them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Final

from iolab.model.key_value import ThreadProgress

LINES_LIMIT: Final = 500_000
"""Lines taken: two hours of 64 threads."""

APART_S: Final = 0.1
"""How far apart hundreds of threads begin on a busy host."""

REPORT_LIMIT: Final = 100_000
"""Rows of a report file that are taken: more than a day of seconds."""


def progress_of(lines: Iterable[str]) -> tuple[ThreadProgress, ...]:
    """The lines of all threads in the order in which they came; what is no such line is left out.

    The stamp is in the time zone of the process, which must be UTC.
    """
    taken: list[ThreadProgress] = []
    for line in lines:
        match = _LINE.match(line)
        if match is None or len(taken) >= LINES_LIMIT:
            continue
        try:
            moment = datetime.strptime(match[1], "%Y/%m/%d-%H:%M:%S").replace(tzinfo=UTC)
        except ValueError:
            continue
        taken.append(
            ThreadProgress(
                thread=int(match[2]),
                elapsed_s=float(match[4]),
                operations=int(match[3]),
                stamp_s=int(moment.timestamp()),
            )
        )
    return tuple(taken)


def start_bounds_s(progress: Iterable[ThreadProgress]) -> tuple[float, float] | None:
    """Between which moments of the host's clock the threads began, since 1970.

    Every line says the whole second that it was printed in and how long its thread had worked by
    then; together they leave a span of some ms. None without a line, or when lines contradict
    each other by more than threads begin apart (the clock was set meanwhile).
    """
    spans = [(one.stamp_s - one.elapsed_s, one.stamp_s + 1 - one.elapsed_s) for one in progress]
    if not spans:
        return None
    low, high = max(low for low, _ in spans), min(high for _, high in spans)
    return (min(low, high), max(low, high)) if low <= high + APART_S else None


def report_rows(raw: bytes) -> tuple[tuple[int, int], ...] | None:
    """The report file's rows: seconds since the start, rounded, and operations in that interval.

    A last row that was cut short is left out. None when it is no such file.
    """
    lines = raw.decode("utf-8", "replace").split("\n")
    if lines[0] != "secs_elapsed,interval_qps":
        return None
    rows: list[tuple[int, int]] = []
    for line in lines[1:-1][:REPORT_LIMIT]:
        match = _ROW.fullmatch(line)
        if match is None:
            return None
        rows.append((int(match[1]), int(match[2])))
    return tuple(rows)


_LINE: Final = re.compile(
    r"(\d{4}/\d\d/\d\d-\d\d:\d\d:\d\d) +\.\.\. thread (\d{1,9}): "
    r"\(\d{1,18},(\d{1,18})\) ops and \(\S{1,60}\) ops/second "
    r"in \(\d{1,9}\.\d{1,9},(\d{1,9}\.\d{1,9})\) seconds"
)
_ROW: Final = re.compile(r"(\d{1,9}),(\d{1,18})")
