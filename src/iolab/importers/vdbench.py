"""Results of vdbench: its flat file."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta
from itertools import pairwise
from typing import Final

from iolab.importers.files import (
    NAME_CHARACTERS,
    ForeignFile,
    ForeignFileError,
    ImportFileSet,
    parse_number,
)
from iolab.importers.foreign_run import (
    ForeignRun,
    ImportedClient,
    ImportedClientDetails,
    ImportedInterval,
    ImportedRunDetails,
    OperationFigures,
    indicator_for_block_size,
    is_limited_by_target_rate,
)
from iolab.text import excerpt
from iolab.units import MIB, NS_PER_MS, NS_PER_S

PERCENT: Final = 100

_RATE_MAX: Final = 999_988.0
"""What vdbench prints as the requested rate of `iorate=max`."""

_REQUESTED_COLUMNS: Final = (
    "xfersize",
    "threads",
    "rdpct",
    "rhpct",
    "whpct",
    "seekpct",
    "lunsize",
    "reqrate",
    "compratio",
    "dedupratio",
)
"""Columns that tell what was requested; all others are measured."""

_AVERAGE: Final = re.compile(r"avg_(\d{1,9})-(\d{1,9})")


class VdbenchImporter:
    """Every run definition of a flat file, by the line of its averages."""

    tool: Final = "vdbench"

    def recognises(self, file: ForeignFile) -> bool:
        """By its header."""
        return (
            re.search(rb"^\s*tod\b.*\bInterval\b.*\breqrate\b", file.first_bytes, re.M) is not None
        )

    def read(self, file: ForeignFile, file_set: ImportFileSet) -> Sequence[ForeignRun]:
        """The averages, with the intervals that they are of."""
        del file_set
        columns: list[str] = []
        intervals: list[tuple[float, dict[str, str]]] = []
        runs: list[ForeignRun] = []
        lines: list[int] = []
        for place, line in enumerate(file.lines, start=1):
            words = line.split()
            if words[:1] == ["tod"]:
                columns = words
                if lacking := [name for name in ("Run", "Interval") if name not in words]:
                    raise ForeignFileError(f"its header has no column {lacking[0]}.")
            if words[:1] == ["tod"] or not line.strip("* ") or line.startswith(("*", "<")):
                file.line_coverage.mark_read(place)
                continue
            if not columns or len(words) != len(columns) or ":" not in words[0]:
                continue
            row = dict(zip(columns, words, strict=True))
            if intervals and intervals[-1][1]["Run"] != row["Run"]:
                _mark_unfinished_run(file, lines)
                intervals, lines = [], []
            lines.append(place)
            if average := _AVERAGE.fullmatch(row["Interval"]):
                first = int(average[1])
                own = [
                    interval
                    for interval in intervals
                    if interval[1]["Run"] == row["Run"]
                    and (parse_number(interval[1]["Interval"]) or 0) >= first
                ]
                runs.append(_foreign_run_of_averages(file, place, row, own))
                for read in lines:
                    file.line_coverage.mark_read(read)
                intervals, lines = [], []
            else:
                intervals.append((_parse_clock_seconds(words[0]), row))
        _mark_unfinished_run(file, lines)
        if not runs:
            raise ForeignFileError("no run definition came to its averages.")
        return runs


def _mark_unfinished_run(file: ForeignFile, lines: Sequence[int]) -> None:
    if lines:
        reason = "This run of vdbench did not come to its averages."
        file.line_coverage.mark_left_out(lines[0], lines[-1], reason)


def _parse_clock_seconds(text: str) -> float:
    parts = [parse_number(part) or 0.0 for part in text.split(":")[:3]]
    hours, minutes, seconds = (*parts, 0.0, 0.0)[:3]
    return timedelta(hours=hours, minutes=minutes, seconds=seconds).total_seconds()


def _foreign_run_of_averages(
    file: ForeignFile,
    line_number: int,
    row: Mapping[str, str],
    intervals: Sequence[tuple[float, Mapping[str, str]]],
) -> ForeignRun:
    gaps = sorted(b - a for (a, _), (b, _) in pairwise(intervals) if b > a)
    step = float(round(gaps[len(gaps) // 2])) if gaps else 1.0
    seconds = len(intervals) * step or None
    read = parse_number(row.get("read%", row.get("rdpct", ""))) or 0.0
    ways = [way for way, share in (("read", read), ("write", PERCENT - read)) if share > 0]
    figures = tuple(_direction_figures(way, row, read, seconds) for way in ways)
    asked = parse_number(row.get("reqrate", ""))
    block = parse_number(row.get("xfersize", ""))
    threads = parse_number(row.get("threads", ""))
    details = ImportedRunDetails(
        tool="vdbench",
        version=excerpt(row.get("version", ""), NAME_CHARACTERS).replace("n/a", ""),
        files=(file.name,),
        paced=asked is not None
        and asked < _RATE_MAX
        and is_limited_by_target_rate(asked, parse_number(row.get("rate", ""))),
        notes=("the mean of its intervals but for those that vdbench leaves out",),
    )
    return ForeignRun(
        name=excerpt(row["Run"], NAME_CHARACTERS),
        details=details,
        clients=(
            ImportedClient(
                "all slaves",
                ImportedClientDetails(f"{file.name}:{line_number}", figures),
                intervals=tuple(_imported_intervals(intervals, ways, step)),
                runtime_s=seconds,
            ),
        ),
        settings=tuple(
            (name, excerpt(row[name], NAME_CHARACTERS))
            for name in _REQUESTED_COLUMNS
            if row.get(name)
        ),
        in_flight=round(threads or 0) or None,
        indicator=indicator_for_block_size(block),
    )


def _direction_figures(
    direction: str, row: Mapping[str, str], read_percent: float, seconds: float | None
) -> OperationFigures:
    """One direction; where only the mix is told, its share of the rate and the mix's latency."""
    share = (read_percent if direction == "read" else PERCENT - read_percent) / PERCENT
    rate, speed = parse_number(row.get("rate", "")), parse_number(row.get("MB/sec", ""))
    size = parse_number(row.get("bytes/io", ""))
    mean = parse_number(row.get(f"{direction}_resp", "") if share < 1 else "")
    mean = parse_number(row.get("resp", "")) if mean is None else mean
    high = parse_number(row.get(f"{direction}_max", "") if share < 1 else row.get("resp_max", ""))
    complete = rate is not None and size is not None and seconds is not None
    return OperationFigures(
        operation=direction,
        bytes=round((rate or 0.0) * (size or 0.0) * (seconds or 0.0) * share) if complete else None,
        seconds=seconds,
        rate_per_s=None if rate is None else rate * share,
        bw_bytes_per_s=None if speed is None else speed * MIB * share,
        lat_mean_ns=None if mean is None else mean * NS_PER_MS,
        lat_max_ns=None if high is None else high * NS_PER_MS,
        printed=tuple(
            (name, excerpt(row[name], NAME_CHARACTERS))
            for name in ("rate", "MB/sec", "bytes/io", "read%", "resp", "resp_max")
            if name in row
        ),
    )


def _imported_intervals(
    intervals: Sequence[tuple[float, Mapping[str, str]]], directions: Sequence[str], step_s: float
) -> Iterator[ImportedInterval]:
    for number, (_, row) in enumerate(intervals, start=1):
        rate = parse_number(row.get("rate", "")) or 0.0
        read = (parse_number(row.get("read%", "")) or 0.0) / PERCENT
        waited = (parse_number(row.get("resp", "")) or 0.0) * NS_PER_MS
        size = parse_number(row.get("bytes/io", "")) or 0.0
        for way in directions:
            count = round(rate * step_s * (read if way == "read" else 1 - read))
            end, span = round(number * step_s * NS_PER_S), round(step_s * NS_PER_S)
            yield ImportedInterval(way, end, span, count, round(count * size), waited * count)
