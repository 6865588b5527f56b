"""What db_bench prints, read section by section: pure, and nothing in it is believed.

Its sections look alike: histograms of operations, of levels of the tree, and statistics all have
lines of percentiles. What is taken for an operation's latency is only a histogram that stands
right below the result line of its benchmark. Sections that are not known are passed over.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, replace
from enum import Enum
from typing import Final

from iolab.model.key_value import BinnedLatency, KeyOperation, LevelShape, ThreadProgress
from iolab.run.engines.db_bench_histogram import DB_BENCH_WORDS, SENTENCE_LIMIT, HistogramDraft
from iolab.run.engines.db_bench_progress import progress_of
from iolab.run.engines.db_bench_statistics import (
    TICKERS_LIMIT,
    CompactionRow,
    Stalls,
    TimedTicker,
    compaction_row,
    level_row,
    stall_counts,
    stalled_for,
    ticker,
)

OUTPUT_LIMIT_BYTES: Final = 64 << 20
"""What is read of either stream: results are 25 KiB, and 64 threads say 64 MiB in two hours."""

SENTENCES_LIMIT: Final = 8
"""Error lines kept: every thread fails with the same words."""

RESULTS_LIMIT: Final = 64
"""Benchmarks of one command line that are taken."""


class Build(Enum):
    """How the db_bench at hand was compiled, as it warns itself; its numbers depend on it."""

    RELEASE = "release"
    ASSERTIONS = "assertions enabled"
    NOT_OPTIMISED = "not optimised"


@dataclass(frozen=True, slots=True)
class Header:
    """What db_bench says it was asked for; None for what it does not say.

    Its sizes of the database are estimates of its own and are not read.
    """

    key_bytes: int | None
    value_bytes: int | None
    keys: int | None
    write_bytes_per_s: int | None
    compression: str | None
    build: Build | None


@dataclass(frozen=True, slots=True)
class FirstThread:
    """What the first thread alone says that it did; db_bench drops the words of the others."""

    reads: int
    found: int


@dataclass(frozen=True, slots=True)
class Result:
    """One benchmark's line and the histograms below it.

    `seconds` and `operations` are None for versions before 7.3, which do not print them. The rate
    and the mean are as printed: without the writer of readwhilewriting.
    """

    benchmark: str
    mean_us: float
    ops_per_s: int
    seconds: float | None
    operations: int | None
    mib_per_s: float | None
    first_thread: FirstThread | None
    latencies: tuple[BinnedLatency, ...]

    def latency(self, operation: KeyOperation) -> BinnedLatency | None:
        """The histogram of that operation."""
        return next((one for one in self.latencies if one.operation is operation), None)


@dataclass(frozen=True, slots=True)
class DbBenchOutput:
    """All that both streams tell; None and empty for what they do not.

    `tickers` are counters of the statistics by RocksDB's names, `timed` its histograms.
    `compaction` are the rows by level and in sum, `levels` those of `levelstats`. `said` are the
    lines in which db_bench tells of an error, `faults` say what is wrong with the output.
    """

    version: str
    header: Header
    results: tuple[Result, ...]
    levels: tuple[LevelShape, ...]
    compaction: tuple[CompactionRow, ...]
    stalls: Stalls | None
    tickers: dict[str, int]
    timed: dict[str, TimedTicker]
    progress: tuple[ThreadProgress, ...]
    said: tuple[str, ...]
    faults: tuple[str, ...]

    def result(self, benchmark: str) -> Result | None:
        """The first result of that benchmark."""
        return next((one for one in self.results if one.benchmark == benchmark), None)


def parse(stdout: bytes, stderr: bytes) -> DbBenchOutput:
    """Read an output, whole or broken off. Never raises."""
    draft = _Draft()
    for name, raw in (("output", stdout), ("standard error", stderr)):
        if len(raw) > OUTPUT_LIMIT_BYTES:
            draft.faults.append(f"db_bench's {name} is longer than {OUTPUT_LIMIT_BYTES} bytes")
    for line in _lines(stdout):
        draft.take(line)
    draft.close()
    version = ""
    for line in _lines(stderr):
        if match := _VERSION.match(line):
            version = match[1]
        else:
            _hear(draft.said, line)
    return draft.output(version, progress_of(_lines(stderr)))


def build_of(text: str) -> Build:
    """How a db_bench was compiled, from the warnings of its header."""
    if "WARNING: Optimization is disabled" in text:
        return Build.NOT_OPTIMISED
    return Build.ASSERTIONS if "WARNING: Assertions are enabled" in text else Build.RELEASE


_VERSION: Final = re.compile(r"RocksDB: +version (\d{1,4}(?:\.\d{1,4}){1,3}\S{0,20})")
_ERROR: Final = re.compile(
    r"error: |^ERROR:|^unknown benchmark|^Can't |^Cannot |Corruption: |IO error|Assertion `|^Fatal",
)
_NUMBER: Final = r"(-?\d{1,18}(?:\.\d{1,9})?)"
_RESULT: Final = re.compile(
    rf"([a-z][A-Za-z0-9_]{{1,60}}) *: +{_NUMBER} micros/op (-?\d{{1,18}}) ops/sec"
    rf"(?: {_NUMBER} seconds (\d{{1,18}}) operations)?;(.*)"
)
_MIB: Final = re.compile(rf"{_NUMBER} MB/s")
_FOUND: Final = re.compile(r"\((\d{1,18}) of (\d{1,18}) found\)")
_MIXED: Final = re.compile(
    r"\( ?reads:(\d{1,18}) writes:\d{1,18} total:\d{1,18} found:(\d{1,18})\)"
)
_PER: Final = re.compile(r"Microseconds per ([a-z]{1,20}):")
_HEADER: Final = re.compile(
    r"(Keys|Values|Entries|Write rate|Compression): +(\d{1,18}|[A-Za-z0-9]{1,30})\b"
)
_HEADER_END: Final = "-" * 20


class _Draft:
    """Standard output while it is read, line by line."""

    def __init__(self) -> None:
        self.faults: list[str] = []
        self.said: list[str] = []
        self._head: dict[str, str] = {}
        self._warnings: list[str] = []
        self._header_ended = False
        self._results: list[Result] = []
        self._open: HistogramDraft | None = None
        self._columns: tuple[str, ...] = ()
        self._in_levels = False
        self._in_statistics = False
        self._levels: list[LevelShape] = []
        self._rows: list[CompactionRow] = []
        self._stall_counts: tuple[tuple[str, int], ...] | None = None
        self._stalled: tuple[float, float] | None = None
        self._tickers: dict[str, int] = {}
        self._timed: dict[str, TimedTicker] = {}

    def take(self, line: str) -> None:
        """One line, in order."""
        if not self._header_ended:
            self._take_header(line)
        if self._open is not None:
            if self._open.take(line):
                return
            self.close()
        if match := _RESULT.fullmatch(line):
            self._begin_result(match)
        elif match := _PER.fullmatch(line):
            self._begin_histogram(match[1])
        elif line == "STATISTICS:":
            self._in_statistics = True
        elif self._in_statistics:
            self._take_statistic(line)
        elif not self._take_table(line):
            _hear(self.said, line)

    def close(self) -> None:
        """End the histogram that is being read, if one is."""
        draft, self._open = self._open, None
        if draft is None:
            return
        latency = draft.latency()
        self.faults += draft.faults
        if latency is not None:
            last = self._results[-1]
            self._results[-1] = replace(last, latencies=(*last.latencies, latency))

    def output(self, version: str, progress: tuple[ThreadProgress, ...]) -> DbBenchOutput:
        """All lines are read."""
        stalled = self._stalled or (None, None)
        return DbBenchOutput(
            version=version,
            header=self._header(),
            results=tuple(self._results),
            levels=tuple(self._levels),
            compaction=tuple(self._rows),
            stalls=None if self._stall_counts is None else Stalls(self._stall_counts, *stalled),
            tickers=self._tickers,
            timed=self._timed,
            progress=progress,
            said=tuple(dict.fromkeys(self.said)),
            faults=tuple(dict.fromkeys(self.faults)),
        )

    def _take_header(self, line: str) -> None:
        if line.startswith(_HEADER_END):
            self._header_ended = True
        elif line.startswith("WARNING: "):
            self._warnings.append(line)
        elif match := _HEADER.match(line):
            self._head.setdefault(match[1], match[2])

    def _header(self) -> Header:
        numbers = {name: int(text) for name, text in self._head.items() if text.isdecimal()}
        return Header(
            key_bytes=numbers.get("Keys"),
            value_bytes=numbers.get("Values"),
            keys=numbers.get("Entries"),
            write_bytes_per_s=numbers.get("Write rate"),
            compression=self._head.get("Compression"),
            build=build_of("\n".join(self._warnings)) if self._header_ended else None,
        )

    def _begin_result(self, match: re.Match[str]) -> None:
        # Sections of the benchmark before end here, whatever they were.
        self._columns, self._in_levels, self._in_statistics = (), False, False
        mean, rate, tail = _finite(match[2]), int(match[3]), match[6]
        seconds = _finite(match[4]) if match[4] else None
        if mean is None or mean < 0 or rate < 0 or (seconds is not None and seconds < 0):
            self.faults.append(f"db_bench says {match[0]!r}"[:SENTENCE_LIMIT])
            return
        if len(self._results) >= RESULTS_LIMIT:
            self.faults.append(f"db_bench gave more than {RESULTS_LIMIT} results")
            return
        mib = _MIB.search(tail)
        self._results.append(
            Result(
                benchmark=match[1],
                mean_us=mean,
                ops_per_s=rate,
                seconds=seconds,
                operations=int(match[5]) if match[5] else None,
                mib_per_s=_finite(mib[1]) if mib else None,
                first_thread=_first_thread(tail),
                latencies=(),
            )
        )

    def _begin_histogram(self, word: str) -> None:
        operation = DB_BENCH_WORDS.get(word)
        # A newer db_bench may time operations of another kind: they are passed over.
        if operation is not None and self._results:
            self._open = HistogramDraft(operation)

    def _take_statistic(self, line: str) -> None:
        entry = ticker(line)
        if entry is None or len(self._tickers) + len(self._timed) >= TICKERS_LIMIT:
            return
        name, count = entry
        if isinstance(count, int):
            self._tickers[name] = count
        else:
            self._timed[name] = count

    def _take_table(self, line: str) -> bool:
        """Whether the line belongs to a table or sentence about the tree."""
        words = tuple(line.split())
        if words[:2] == ("Level", "Files"):
            self._in_levels = words[2:] == ("Size(MB)",)
            self._columns = () if self._in_levels else words
            target: list[LevelShape] | list[CompactionRow]
            target = self._levels if self._in_levels else self._rows
            target.clear()
        elif self._in_levels and (level := level_row(line)):
            self._levels.append(level)
        elif self._columns and (row := compaction_row(self._columns, line)):
            self._rows.append(row)
        elif words[:2] == ("Priority", "Files"):
            self._columns = ()
        elif (counts := stall_counts(line)) is not None:
            self._stall_counts = self._stall_counts or counts
        elif (stalled := stalled_for(line)) is not None:
            self._stalled = stalled
        else:
            return False
        return True


def _first_thread(tail: str) -> FirstThread | None:
    """What the end of a result line says of reads, in either form."""
    if match := _FOUND.search(tail):
        return FirstThread(reads=int(match[2]), found=int(match[1]))
    if match := _MIXED.search(tail):
        return FirstThread(reads=int(match[1]), found=int(match[2]))
    return None


def _hear(said: list[str], line: str) -> None:
    if _ERROR.search(line) and len(said) < SENTENCES_LIMIT:
        said.append(line.strip()[:SENTENCE_LIMIT])


def _lines(raw: bytes) -> list[str]:
    """Lines as shown on a terminal: db_bench overwrites its progress with carriage returns."""
    return raw[:OUTPUT_LIMIT_BYTES].decode("utf-8", "replace").replace("\r", "\n").split("\n")


def _finite(text: str) -> float | None:
    number = float(text)
    return number if math.isfinite(number) else None
