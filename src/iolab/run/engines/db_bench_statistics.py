"""What `--statistics` and `,stats` add to db_bench's output: tickers, levels, stalls. Pure.

Columns are found by their names, so that a version which adds some is read as well.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Final

from iolab.model.key_value import LevelShape

TICKERS_LIMIT: Final = 2000
"""Lines of statistics taken: 7.8 has 251, and every version adds some."""


@dataclass(frozen=True, slots=True)
class TimedTicker:
    """A histogram that the statistics give in a line, in the ticker's own unit.

    `percentiles` are (percent, value) as printed; that of 100 is the maximum.
    """

    count: int
    sum: int
    percentiles: tuple[tuple[int, float], ...]


@dataclass(frozen=True, slots=True)
class CompactionRow:
    """A row of the table of compaction: a level (`L1`) or all of them (`Sum`).

    Bytes are as exact as they are printed. `write_amplification` is bytes written by flush and
    compaction over those that came into the level.
    """

    name: str
    files: int
    bytes: int
    score: float
    write_amplification: float
    compactions: int
    seconds: float


@dataclass(frozen=True, slots=True)
class Stalls:
    """How often RocksDB slowed or stopped writers, by its own names, and for how long in all."""

    counts: tuple[tuple[str, int], ...]
    seconds: float | None
    percent: float | None

    @property
    def total(self) -> int:
        """All stalls, each counted once; by its own totals where a version prints them.

        Up to 8.0 those with a compaction under way are counted again without it.
        """
        own = [count for name, count in self.counts if name in _OWN_TOTALS]
        once = [count for name, count in self.counts if not name.endswith("_with_compaction")]
        return sum(own or once)


def ticker(line: str) -> tuple[str, int | TimedTicker] | None:
    """A line of `STATISTICS:`, its name and what it counts; None for any other line."""
    if match := _TIMED.fullmatch(line.rstrip()):
        percentiles = tuple((int(name), float(text)) for name, text in _PERCENTILE.findall(line))
        return match[1], TimedTicker(int(match[2]), int(match[3]), percentiles)
    if match := _TICKER.fullmatch(line.rstrip()):
        return match[1], int(match[2])
    return None


def compaction_row(columns: tuple[str, ...], line: str) -> CompactionRow | None:
    """A row under these columns; None for a line that is none."""
    words = _joined(line.split())
    if len(words) != len(columns) or not _ROW_NAME.fullmatch(words[0]):
        return None
    cells = dict(zip(columns, words, strict=True))
    size = _SIZE.fullmatch(cells.get("Size", ""))
    files = cells.get("Files", "").split("/")[0]
    numbers = [_real(cells.get(name, "")) for name in ("Score", "W-Amp", "Comp(cnt)", "Comp(sec)")]
    if size is None or not files.isdecimal() or any(number is None for number in numbers):
        return None
    score, amplification, compactions, seconds = (number or 0.0 for number in numbers)
    return CompactionRow(
        name=cells["Level"],
        files=int(files),
        bytes=round(float(size[1]) * _UNITS[size[2]]),
        score=score,
        write_amplification=amplification,
        compactions=int(compactions),
        seconds=seconds,
    )


def level_row(line: str) -> LevelShape | None:
    """A row of `levelstats`, whose sizes are in whole MiB; None for a line that is none."""
    words = line.split()
    if len(words) != 3 or not all(word.isdecimal() and len(word) < 16 for word in words):
        return None
    level, files, size = map(int, words)
    return LevelShape(level, files, size << 20)


def stall_counts(line: str) -> tuple[tuple[str, int], ...] | None:
    """The causes on the line of stalls, in the words of 7.x or of 8.x; None for any other line."""
    if line.startswith("Stalls(count): "):
        found = _STALL_OLD.findall(line)
        return tuple((name, int(count)) for count, name in found if not name.startswith("total"))
    if line.startswith("Write Stall (count): "):
        return tuple((name, int(count)) for name, count in _STALL_NEW.findall(line))
    return None


def stalled_for(line: str) -> tuple[float, float] | None:
    """Seconds and percent of `Cumulative stall:`; None for any other line."""
    match = _STALLED.match(line)
    if match is None:
        return None
    hours, minutes, seconds, percent = (float(text) for text in match.groups())
    return hours * 3600 + minutes * 60 + seconds, percent


_OWN_TOTALS: Final = ("total-delays", "total-stops")
_UNITS: Final = {"B": 1, "KB": 1 << 10, "MB": 1 << 20, "GB": 1 << 30, "TB": 1 << 40}
_NAME: Final = r"([a-z][a-z0-9._-]{1,99})"
_TICKER: Final = re.compile(rf"{_NAME} COUNT : (\d{{1,20}})")
_TIMED: Final = re.compile(
    rf"{_NAME} (?:P\d{{1,3}} : \S{{1,40}} ){{1,8}}COUNT : (\d{{1,20}}) SUM : (\d{{1,20}})"
)
_PERCENTILE: Final = re.compile(r" P(\d{1,3}) : (\d{1,19}(?:\.\d{1,9})?)(?= )")
_ROW_NAME: Final = re.compile(r"L\d{1,3}|Sum|Int")
_SIZE: Final = re.compile(r"(\d{1,12}(?:\.\d{1,4})?)([KMGT]?B)")
_STALL_OLD: Final = re.compile(r"(\d{1,18}) ([a-z][a-z0-9_ ]{1,60}?)(?=,|$)")
_STALL_NEW: Final = re.compile(r"([a-z][a-z0-9-]{1,80}): (\d{1,18})(?=,|$)")
_STALLED: Final = re.compile(
    r"Cumulative stall: (\d{1,9}):(\d{1,2}):(\d{1,2}\.\d{1,6}) H:M:S, (\d{1,9}\.\d{1,3}) percent"
)


def _joined(words: list[str]) -> list[str]:
    """The words with each size and its unit as one (`60.44 MB`)."""
    joined: list[str] = []
    for word in words:
        if word in _UNITS and joined:
            joined[-1] += word
        else:
            joined.append(word)
    return joined


def _real(text: str) -> float | None:
    """A printed number; None for anything else, and for what is not finite."""
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) else None
