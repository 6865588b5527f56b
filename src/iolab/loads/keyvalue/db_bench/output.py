"""What db_bench prints: histograms, tickers, levels, stalls; pure, nothing in it is believed.

It prints a histogram for each operation, with `--statistics` and `stats` one for each level of the
tree; all look alike, and only the line before tells which it is.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import Enum
from types import MappingProxyType
from typing import Final

from msgspec.structs import replace

from iolab.core.limits import (
    ERROR_LINES_MAX,
    LEVELS_MAX,
    PRINTED_BINS_MAX,
    RESULTS_MAX,
    SENTENCE_CHARACTERS_MAX,
    STREAM_BYTES_MAX,
    TICKERS_MAX,
)
from iolab.hosts.engine import OutputFaults
from iolab.loads.keyvalue.db_bench.run import parse_progress
from iolab.loads.keyvalue.workload import (
    BinnedLatency,
    KeyOperation,
    LatencyBin,
    LevelShape,
    ThreadProgress,
)
from iolab.record import Record
from iolab.units import NS_PER_US, parse_finite

DB_BENCH_WORDS: Final[Mapping[str, KeyOperation]] = MappingProxyType(
    {
        **{
            operation.display_name: operation
            for operation in KeyOperation
            if KeyOperation.READ <= operation <= KeyOperation.HASH
        },
        "op": KeyOperation.OTHER,
    }
)
"""What db_bench calls each operation."""

_WHOLE: Final = r"(\d{1,19})"
_REAL: Final = r"(\d{1,19}(?:\.\d{1,9})?)"
_COUNTED: Final = re.compile(rf"Count: {_WHOLE} +Average: {_REAL} +StdDev: {_REAL}")
_EXTREMES: Final = re.compile(rf"Min: {_WHOLE} +Median: \S{{1,30}} +Max: {_WHOLE}")
_BIN: Final = re.compile(rf"[\[(] *{_WHOLE}, *{_WHOLE} \] *{_WHOLE} ")


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


class HistogramParser:
    """One operation's histogram while it is read, line by line."""

    def __init__(self, operation: KeyOperation) -> None:
        self.operation = operation
        self.faults = OutputFaults()
        self._counted: tuple[int, float, float] | None = None
        self._extremes: tuple[int, int] | None = None
        self._bins: list[LatencyBin] = []

    def take_line(self, line: str) -> bool:
        """One line; whether it belongs to the histogram."""
        if match := _COUNTED.fullmatch(line):
            self._counted = int(match[1]), float(match[2]), float(match[3])
        elif match := _EXTREMES.fullmatch(line):
            self._extremes = int(match[1]), int(match[2])
        elif match := _BIN.match(line):
            self._add_bin(int(match[1]), int(match[2]), int(match[3]))
        else:
            return line.startswith(("Percentiles:", "-----"))
        return True

    def build_latency(self) -> BinnedLatency | None:
        """The histogram is read; None when it is not whole, which `faults` then says."""
        word = self.operation.display_name
        if self._counted is None or self._extremes is None or not self._bins:
            self.faults.add_fault(f"the histogram of {word} is cut short")
            return None
        count, mean, deviation = self._counted
        within = sum(held.count for held in self._bins)
        if within != count:
            self.faults.add_fault(
                f"the bins of {word} hold {within} latencies, but its header has {count}"
            )
            return None
        low, high = self._extremes
        return BinnedLatency(
            operation=self.operation,
            count=count,
            mean_ns=mean * NS_PER_US,
            std_dev_ns=deviation * NS_PER_US,
            min_ns=low * NS_PER_US,
            max_ns=high * NS_PER_US,
            resolution_ns=NS_PER_US,
            bins=tuple(self._bins),
        )

    def _add_bin(self, low: int, high: int, count: int) -> None:
        last = self._bins[-1].high_ns if self._bins else 0
        is_odd = high <= low or low * NS_PER_US < last or count < 1
        if is_odd or len(self._bins) >= PRINTED_BINS_MAX:
            self.faults.add_fault(
                f"a bin of {self.operation.display_name} reads ({low}, {high}] {count}"[
                    :SENTENCE_CHARACTERS_MAX
                ]
            )
            return
        self._bins.append(LatencyBin(low * NS_PER_US, high * NS_PER_US, count))


class StatisticHistogram(Record):
    """A histogram that the statistics give in a line, in the ticker's own unit.

    `percentiles` are (percent, value) as printed; that of 100 is the maximum.
    """

    count: int
    sum: int
    percentiles: tuple[tuple[int, float], ...]


class CompactionRow(Record):
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


class WriteStalls(Record):
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


def parse_ticker_or_histogram(line: str) -> tuple[str, int | StatisticHistogram] | None:
    """A line of `STATISTICS:`, its name and what it counts; None for any other line."""
    if match := _TIMED.fullmatch(line.rstrip()):
        percentiles = tuple((int(name), float(text)) for name, text in _PERCENTILE.findall(line))
        return match[1], StatisticHistogram(int(match[2]), int(match[3]), percentiles)
    if match := _TICKER.fullmatch(line.rstrip()):
        return match[1], int(match[2])
    return None


def parse_compaction_row(columns: tuple[str, ...], line: str) -> CompactionRow | None:
    """A row under these columns; None for a line that is none."""
    words = _join_sizes_with_units(line.split())
    if len(words) != len(columns) or not _ROW_NAME.fullmatch(words[0]):
        return None
    cells = dict(zip(columns, words, strict=True))
    size = _SIZE.fullmatch(cells.get("Size", ""))
    files = cells.get("Files", "").split("/")[0]
    numbers = [
        parse_finite(cells.get(name, "")) for name in ("Score", "W-Amp", "Comp(cnt)", "Comp(sec)")
    ]
    is_count = files.isdecimal() and len(files) < 16
    if size is None or not is_count or any(number is None for number in numbers):
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


def parse_level_row(line: str) -> LevelShape | None:
    """A row of `levelstats`, whose sizes are in whole MiB; None for a line that is none."""
    words = line.split()
    if len(words) != 3 or not all(word.isdecimal() and len(word) < 16 for word in words):
        return None
    level, files, size = map(int, words)
    return LevelShape(level, files, size << 20)


def parse_stall_causes_and_counts(line: str) -> tuple[tuple[str, int], ...] | None:
    """The causes on the line of stalls, in the words of 7.x or of 8.x; None for any other line."""
    if line.startswith("Stalls(count): "):
        stalls = _STALL_OLD.findall(line)
        return tuple((name, int(count)) for count, name in stalls if not name.startswith("total"))
    if line.startswith("Write Stall (count): "):
        return tuple((name, int(count)) for name, count in _STALL_NEW.findall(line))
    return None


def parse_stall_seconds_and_percent(line: str) -> tuple[float, float] | None:
    """Seconds and percent of `Cumulative stall:`; None for any other line."""
    match = _STALLED.match(line)
    if match is None:
        return None
    hours, minutes, seconds, percent = (float(text) for text in match.groups())
    return hours * 3600 + minutes * 60 + seconds, percent


def _join_sizes_with_units(words: list[str]) -> list[str]:
    """The words with each size and its unit as one (`60.44 MB`)."""
    joined: list[str] = []
    for word in words:
        if word in _UNITS and joined:
            joined[-1] += word
        else:
            joined.append(word)
    return joined


class BuildKind(Enum):
    """How the db_bench at hand was compiled, as it warns itself; its numbers depend on it."""

    RELEASE = "release"
    ASSERTIONS = "assertions enabled"
    NOT_OPTIMISED = "not optimised"


class DbBenchHeader(Record):
    """What db_bench says it was requested; None for what it does not say.

    Its sizes of the database are estimates of its own and are not read.
    """

    key_bytes: int | None
    value_bytes: int | None
    keys: int | None
    write_bytes_per_s: int | None
    compression: str | None
    build: BuildKind | None


class FirstThreadCounts(Record):
    """What the first thread alone says that it did; db_bench drops the words of the others."""

    reads: int
    found_count: int


class BenchmarkResult(Record):
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
    first_thread: FirstThreadCounts | None
    latencies: tuple[BinnedLatency, ...]

    def latency(self, operation: KeyOperation) -> BinnedLatency | None:
        """The histogram of that operation."""
        return next((latency for latency in self.latencies if latency.operation is operation), None)


class DbBenchOutput(Record):
    """All that both streams tell; None and empty for what they do not.

    `tickers` are counters of the statistics by RocksDB's names, `statistic_histograms` its
    histograms. `compaction_rows` are the rows by level and in sum, `levels` those of `levelstats`.
    `messages` are lines that tell of an error, `faults` what is wrong with the output.
    """

    version: str
    header: DbBenchHeader
    results: tuple[BenchmarkResult, ...]
    levels: tuple[LevelShape, ...]
    compaction_rows: tuple[CompactionRow, ...]
    stalls: WriteStalls | None
    tickers: dict[str, int]
    statistic_histograms: dict[str, StatisticHistogram]
    progress: tuple[ThreadProgress, ...]
    messages: tuple[str, ...]
    faults: tuple[str, ...]

    def result(self, benchmark: str) -> BenchmarkResult | None:
        """The first result of that benchmark."""
        return next((result for result in self.results if result.benchmark == benchmark), None)


def parse_db_bench_output(stdout: bytes, stderr: bytes) -> DbBenchOutput:
    """Read an output, whole or broken off. Never raises."""
    draft = _DbBenchParser()
    for name, raw in (("output", stdout), ("standard error", stderr)):
        if len(raw) > STREAM_BYTES_MAX:
            draft.faults.add_fault(f"db_bench's {name} is longer than {STREAM_BYTES_MAX} bytes")
    for line in _terminal_lines(stdout):
        draft.take_line(line)
    draft.end_histogram()
    version = ""
    for line in _terminal_lines(stderr):
        if match := _VERSION.match(line):
            version = match[1]
        else:
            _add_to_messages_if_error(draft.messages, line)
    return draft.build_output(version, parse_progress(_terminal_lines(stderr)))


def parse_build_kind(text: str) -> BuildKind:
    """How a db_bench was compiled, from the warnings of its header."""
    if "WARNING: Optimization is disabled" in text:
        return BuildKind.NOT_OPTIMISED
    return BuildKind.ASSERTIONS if "WARNING: Assertions are enabled" in text else BuildKind.RELEASE


class _DbBenchParser:
    """Standard output while it is read, line by line."""

    def __init__(self) -> None:
        self.faults = OutputFaults()
        self.messages: list[str] = []
        self._head: dict[str, str] = {}
        self._warnings: list[str] = []
        self._header_ended = False
        self._results: list[BenchmarkResult] = []
        self._open: HistogramParser | None = None
        self._columns: tuple[str, ...] = ()
        self._in_levels = False
        self._in_statistics = False
        self._levels: list[LevelShape] = []
        self._rows: list[CompactionRow] = []
        self._stall_counts: tuple[tuple[str, int], ...] | None = None
        self._stalled: tuple[float, float] | None = None
        self._tickers: dict[str, int] = {}
        self._timed: dict[str, StatisticHistogram] = {}

    def take_line(self, line: str) -> None:
        """One line, in order."""
        if not self._header_ended:
            self._take_header_line(line)
        if self._open is not None:
            if self._open.take_line(line):
                return
            self.end_histogram()
        if match := _RESULT.fullmatch(line):
            self._begin_result(match)
        elif match := _PER.fullmatch(line):
            self._begin_histogram(match[1])
        elif line == "STATISTICS:":
            self._in_statistics = True
        elif self._in_statistics:
            self._take_statistic_line(line)
        elif not self._take_table_line(line):
            _add_to_messages_if_error(self.messages, line)

    def end_histogram(self) -> None:
        """End the histogram that is being read, if one is."""
        draft, self._open = self._open, None
        if draft is None:
            return
        latency = draft.build_latency()
        for fault in draft.faults:
            self.faults.add_fault(fault)
        if latency is not None:
            last = self._results[-1]
            self._results[-1] = replace(last, latencies=(*last.latencies, latency))

    def build_output(self, version: str, progress: tuple[ThreadProgress, ...]) -> DbBenchOutput:
        """All lines are read."""
        stalled = self._stalled or (None, None)
        return DbBenchOutput(
            version=version,
            header=self._build_header(),
            results=tuple(self._results),
            levels=tuple(self._levels),
            compaction_rows=tuple(self._rows),
            stalls=None
            if self._stall_counts is None
            else WriteStalls(self._stall_counts, *stalled),
            tickers=self._tickers,
            statistic_histograms=self._timed,
            progress=progress,
            messages=tuple(dict.fromkeys(self.messages)),
            faults=tuple(self.faults),
        )

    def _take_header_line(self, line: str) -> None:
        if line.startswith(_HEADER_END):
            self._header_ended = True
        elif line.startswith("WARNING: "):
            self._warnings.append(line)
        elif match := _HEADER.match(line):
            self._head.setdefault(match[1], match[2])

    def _build_header(self) -> DbBenchHeader:
        numbers = {name: int(text) for name, text in self._head.items() if text.isdecimal()}
        return DbBenchHeader(
            key_bytes=numbers.get("Keys"),
            value_bytes=numbers.get("Values"),
            keys=numbers.get("Entries"),
            write_bytes_per_s=numbers.get("Write rate"),
            compression=self._head.get("Compression"),
            build=parse_build_kind("\n".join(self._warnings)) if self._header_ended else None,
        )

    def _begin_result(self, match: re.Match[str]) -> None:
        # Sections of the benchmark before end here, whatever they were.
        self._columns, self._in_levels, self._in_statistics = (), False, False
        mean, rate, tail = parse_finite(match[2]), int(match[3]), match[6]
        seconds = parse_finite(match[4]) if match[4] else None
        if mean is None or mean < 0 or rate < 0 or (seconds is not None and seconds < 0):
            self.faults.add_fault(f"db_bench reported {match[0]!r}"[:SENTENCE_CHARACTERS_MAX])
            return
        if len(self._results) >= RESULTS_MAX:
            self.faults.add_fault(f"db_bench gave more than {RESULTS_MAX} results")
            return
        mib = _MIB.search(tail)
        self._results.append(
            BenchmarkResult(
                benchmark=match[1],
                mean_us=mean,
                ops_per_s=rate,
                seconds=seconds,
                operations=int(match[5]) if match[5] else None,
                mib_per_s=parse_finite(mib[1]) if mib else None,
                first_thread=_parse_first_thread(tail),
                latencies=(),
            )
        )

    def _begin_histogram(self, word: str) -> None:
        operation = DB_BENCH_WORDS.get(word)
        # A newer db_bench may time operations of another kind: they are passed over.
        if operation is not None and self._results:
            self._open = HistogramParser(operation)

    def _take_statistic_line(self, line: str) -> None:
        entry = parse_ticker_or_histogram(line)
        if entry is None or len(self._tickers) + len(self._timed) >= TICKERS_MAX:
            return
        name, count = entry
        if isinstance(count, int):
            self._tickers[name] = count
        else:
            self._timed[name] = count

    def _take_table_line(self, line: str) -> bool:
        """Whether the line belongs to a table or sentence about the tree."""
        words = tuple(line.split())
        if words[:2] == ("Level", "Files"):
            self._in_levels = words[2:] == ("Size(MB)",)
            self._columns = () if self._in_levels else words
            target: list[LevelShape] | list[CompactionRow]
            target = self._levels if self._in_levels else self._rows
            target.clear()
        elif self._in_levels and (level := parse_level_row(line)):
            self._levels += [level][: LEVELS_MAX - len(self._levels)]
        elif self._columns and (row := parse_compaction_row(self._columns, line)):
            self._rows += [row][: LEVELS_MAX - len(self._rows)]
        elif words[:2] == ("Priority", "Files"):
            self._columns = ()
        elif (counts := parse_stall_causes_and_counts(line)) is not None:
            self._stall_counts = self._stall_counts or counts
        elif (stalled := parse_stall_seconds_and_percent(line)) is not None:
            self._stalled = stalled
        else:
            return False
        return True


def _parse_first_thread(tail: str) -> FirstThreadCounts | None:
    """What the end of a result line says of reads, in either form."""
    if match := _FOUND.search(tail):
        return FirstThreadCounts(reads=int(match[2]), found_count=int(match[1]))
    if match := _MIXED.search(tail):
        return FirstThreadCounts(reads=int(match[1]), found_count=int(match[2]))
    return None


def _add_to_messages_if_error(messages: list[str], line: str) -> None:
    if _ERROR.search(line) and len(messages) < ERROR_LINES_MAX:
        messages.append(line.strip()[:SENTENCE_CHARACTERS_MAX])


def _terminal_lines(output: bytes) -> list[str]:
    """Lines as shown on a terminal: db_bench overwrites its progress with carriage returns."""
    return output[:STREAM_BYTES_MAX].decode("utf-8", "replace").replace("\r", "\n").split("\n")
