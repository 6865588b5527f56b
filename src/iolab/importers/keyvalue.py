"""Output of db_bench with its report file, and of YCSB with its latency logs."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Final

import numpy as np
from msgspec.structs import replace

from iolab.core.histogram import bin_index_of_ns
from iolab.core.limits import SETTING_CHARACTERS_MAX
from iolab.importers.files import (
    NAME_CHARACTERS,
    SENTENCE_CHARACTERS,
    ForeignFile,
    ForeignFileError,
    ImportFileSet,
    parse_number,
    parse_time_as_utc_ns,
)
from iolab.importers.foreign_run import (
    Bins,
    ForeignRun,
    ImportedClient,
    ImportedClientDetails,
    ImportedInterval,
    ImportedRunDetails,
    OperationFigures,
    is_limited_by_target_rate,
)
from iolab.importers.sections import OutputSection, split_into_sections
from iolab.loads.keyvalue.db_bench import output as db_bench_output
from iolab.loads.keyvalue.ycsb import output as ycsb_output
from iolab.loads.keyvalue.ycsb.hdr_log import YCSB_NAMES, HdrLog, parse_hdr_log
from iolab.text import excerpt
from iolab.units import NS_PER_S, NS_PER_US

ALL: Final = "all"
"""The name under which a tool tells of all operations together."""

_RESULT: Final = re.compile(rb"^\w[\w\[\]-]* *: +[\d.]+ micros/op", re.MULTILINE)
_NAMED: Final = re.compile(r"^(\w[\w\[\]-]*) *: +[\d.]+ micros/op")
_BLOCK: Final = re.compile(r"^Microseconds per (\w+):")
_AVERAGE: Final = re.compile(r"^Count: (\d{1,18}) Average: ([\d.]+)\s+StdDev: ([\d.]+)")
_EXTREMES: Final = re.compile(r"^Min: ([\d.]+)\s+Median: ([\d.]+)\s+Max: ([\d.]+)")
_PERCENTILE: Final = re.compile(r"P([\d.]+): ([\d.]+)")
LEVELDB_NOT_READ: Final = (
    "The output of LevelDB's db_bench tells neither how many operations there were nor how long "
    "they took."
)
_VERSION_LINE: Final = re.compile(r"^(?:RocksDB|LevelDB): +version ")
_KEYS_LINE: Final = re.compile(r"^Keys: +\d+ bytes each")
_DATE_LINE: Final = re.compile(r"^Date: +(.*)$", re.MULTILINE)
_DATE: Final = "%a %b %d %H:%M:%S %Y"
_REPORT: Final = b"secs_elapsed,interval_qps"

_YCSB_BEGIN: Final = re.compile(r"^YCSB Client \S+")
_YCSB_OVERALL: Final = "[OVERALL], RunTime(ms)"
_YCSB_JSON: Final = b'"metric":"OVERALL"'
_COMMAND: Final = "Command line:"

YCSB_IGNORED: Final = {
    "exportfile": "where results are written",
    "hdrhistogram.output.path": "where results are written",
    "measurement.raw.output_file": "where results are written",
    "status.interval": "how often progress is printed",
    "maxexecutiontime": "how long the load may run, not what it does",
}
"""Properties that do not make two runs unlike, each with the reason."""

_WORKLOAD_FILE: Final = "workload file"

_YCSB_OPTIONS: Final = {
    "-threads": "threads",
    "-target": "target",
    "-db": "db",
    "-P": _WORKLOAD_FILE,
}

_YCSB_PROPERTIES: Final = {"threadcount": "threads"}
"""Properties that an option sets, too, by the option's name."""

_LINE: Final = re.compile(r"^\[([A-Z][A-Z-]*)\], ([^,]+), (\S+)$")
_AT: Final = re.compile(r"(\d{1,3}(?:\.\d{1,9})?)(?:th|st|nd|rd)?PercentileLatency\(us\)")

_YCSB_SUCCESS: Final = ("Return=OK", "Return=0")
"""How an operation that was done ends; YCSB 0.1 prints the number that the database returned."""


class DbBenchImporter:
    """Every benchmark of the command line is a run."""

    tool: Final = "db_bench"

    def recognises(self, file: ForeignFile) -> bool:
        """By the line of a result."""
        return b"DB path: [" in file.utf8_bytes or _RESULT.search(file.utf8_bytes) is not None

    def read(self, file: ForeignFile, file_set: ImportFileSet) -> Sequence[ForeignRun]:
        """The results, with the report of the same name beside them."""
        stem = re.escape(file.path.stem)
        beside = file_set.matching_files_in_same_folder(file, re.compile(rf"{stem}\.err"))
        heard = [
            section
            for stderr in beside
            for section in _db_bench_invocation_sections(file_set.mark_used_and_read(stderr))
        ]
        parts = _db_bench_invocation_sections(file)
        paired = heard if len(heard) == len(parts) else []
        runs: list[ForeignRun] = []
        refused: ForeignFileError | None = None
        for place, part in enumerate(parts):
            words = paired[place].text if paired else "\n".join(each.text for each in heard)
            try:
                runs += _read_db_bench_runs_and_mark_lines(part, words or part.text)
            except ForeignFileError as fault:
                refused = fault
                file.line_coverage.mark_left_out(part.first_line, part.last_line, str(fault))
            else:
                part.mark_read()
        if not runs and refused is not None:
            raise refused
        reports = [
            report
            for report in file_set.matching_files_in_same_folder(
                file, re.compile(rf"{stem}.*\.csv")
            )
            if report.first_bytes.startswith(_REPORT)
        ]
        if len(runs) == 1 and reports:
            runs = [
                _run_with_intervals(
                    runs[0], tuple(_intervals_from_report(file_set.mark_used_and_read(reports[0])))
                )
            ]
        return runs


def _db_bench_invocation_sections(file: ForeignFile) -> list[OutputSection]:
    """A section for each time that db_bench ran; standard output alone tells no version."""
    by_version, by_header = (
        split_into_sections(file, _VERSION_LINE),
        split_into_sections(file, _KEYS_LINE),
    )
    begins = by_version if len(by_version) >= len(by_header) else by_header
    if not begins:
        return [OutputSection(file, 1, len(file.lines))]
    first, *others = begins
    return [OutputSection(file, 1, first.last_line), *others]


def _read_db_bench_runs_and_mark_lines(section: OutputSection, stderr: str) -> list[ForeignRun]:
    """The results of one invocation. ForeignFileError where there is none."""
    output = db_bench_output.parse_db_bench_output(section.text.encode(), stderr.encode())
    # RocksDB's own still called itself LevelDB up to 3.x, and printed operations a second.
    if "LevelDB:" in section.text and " ops/sec" not in section.text:
        raise ForeignFileError(LEVELDB_NOT_READ, "Measure with RocksDB's db_bench and import that.")
    if not output.results:
        reason = f": {excerpt(output.messages[0], SENTENCE_CHARACTERS)}" if output.messages else ""
        raise ForeignFileError(f"db_bench printed no result{reason}.")
    named: list[tuple[int, str]] = []
    for number, line in section.numbered_lines:
        if match := _NAMED.match(line):
            if db_bench_output.parse_db_bench_output(line.encode(), b"").results:
                named.append((number, match[1]))
            else:
                reason = "This line of a result is in no form that is known."
                section.file.line_coverage.mark_left_out(number, number, reason)
    ended_ns = _start_time_ns(stderr) or _start_time_ns(section.text)
    ends = [*(number - 1 for number, _ in named[1:]), section.last_line]
    runs = []
    for result, (number, _), end in zip(output.results, named, ends, strict=False):
        histograms = _latency_figures_by_operation(OutputSection(section.file, number, end))
        if ended_ns is not None:
            ended_ns += round((result.seconds or 0.0) * NS_PER_S)
        runs.append(_db_bench_run(section.file, output, result, histograms, ended_ns))
    return runs


def _start_time_ns(text: str) -> int | None:
    """When db_bench says that it began, by the clock of its host, whose zone it does not tell."""
    match = _DATE_LINE.search(text)
    return parse_time_as_utc_ns(match[1], _DATE) if match else None


def _run_with_intervals(
    foreign_run: ForeignRun, intervals: tuple[ImportedInterval, ...]
) -> ForeignRun:
    (client,) = foreign_run.clients
    operation = foreign_run.operation_names[0]
    own = tuple(_interval_of_operation(operation, second) for second in intervals)
    return replace(foreign_run, clients=(replace(client, intervals=own),))


def _db_bench_run(
    file: ForeignFile,
    output: db_bench_output.DbBenchOutput,
    result: db_bench_output.BenchmarkResult,
    histograms: Mapping[str, OperationFigures],
    ended_ns: int | None,
) -> ForeignRun:
    line = ("ops/sec", f"{result.ops_per_s}"), ("micros/op", f"{result.mean_us}")
    first = next(iter(histograms.values()), OperationFigures(f"key_{ALL}"))
    is_mix = len(histograms) > 1
    operation = f"key_{ALL}" if is_mix else first.operation
    own = OperationFigures(operation) if is_mix else first
    figures = OperationFigures(
        operation=operation,
        count=result.operations,
        seconds=result.seconds,
        rate_per_s=float(result.ops_per_s),
        lat_min_ns=own.lat_min_ns,
        lat_mean_ns=result.mean_us * NS_PER_US,
        lat_max_ns=own.lat_max_ns,
        percentiles=own.percentiles,
        printed=(*line, *own.printed),
    )
    # Of a mix the line counts all operations, and each kind has a histogram of its own.
    kinds = tuple(replace(kind, weight=0) for kind in histograms.values()) if is_mix else ()
    header = output.header
    each = (header.key_bytes or 0) + (header.value_bytes or 0)
    values: dict[str, int | str | None] = {
        "keys": header.keys,
        "key size": header.key_bytes,
        "value size": header.value_bytes,
        "compression": header.compression,
        "build": header.build.value if header.build else None,
    }
    details = ImportedRunDetails(
        tool="db_bench",
        version=excerpt(output.version, NAME_CHARACTERS),
        files=(file.name,),
        data_bytes=header.keys * each if header.keys and each else None,
    )
    host = ImportedClientDetails(
        f"{file.name}: {excerpt(result.benchmark, NAME_CHARACTERS)}",
        (figures, *kinds),
        errors=tuple(
            excerpt(message, SENTENCE_CHARACTERS) for message in (*output.messages, *output.faults)
        ),
        latency_step_ns=NS_PER_US,
    )
    return ForeignRun(
        name=excerpt(result.benchmark, NAME_CHARACTERS),
        details=details,
        clients=(
            ImportedClient(
                "db_bench",
                host,
                runtime_s=result.seconds,
            ),
        ),
        settings=tuple(
            (name, excerpt(str(value), NAME_CHARACTERS)) for name, value in values.items() if value
        ),
        ended_real_ns=ended_ns,
        indicator="ops_per_s",
    )


def _interval_of_operation(operation: str, interval: ImportedInterval) -> ImportedInterval:
    return ImportedInterval(
        operation, interval.end_ns, interval.span_ns, interval.count, interval.bytes
    )


def _intervals_from_report(file: ForeignFile) -> Iterator[ImportedInterval]:
    """The rate in each interval of the report file."""
    before = 0.0
    for line in file.lines[1:]:
        cells = [parse_number(cell) for cell in line.split(",")]
        if len(cells) != 2 or None in cells:
            continue
        at, rate = (cell or 0.0 for cell in cells)
        if at > before:
            span = at - before
            yield ImportedInterval(
                ALL, round(at * NS_PER_S), round(span * NS_PER_S), round(rate * span), 0
            )
            before = at


def _latency_figures_by_operation(section: OutputSection) -> dict[str, OperationFigures]:
    """Latencies of one benchmark by operation, as they are printed."""
    by_operation: dict[str, OperationFigures] = {}
    word, count, mean, low, high = "", 0, 0.0, 0.0, 0.0
    for _, line in section.numbered_lines:
        if block := _BLOCK.match(line):
            word = re.sub(r"[^a-z]", "", block[1].lower()) or ALL
        elif word and (average := _AVERAGE.match(line)):
            count, mean = int(average[1]), parse_number(average[2]) or 0.0
        elif word and (extremes := _EXTREMES.match(line)):
            low, high = parse_number(extremes[1]) or 0.0, parse_number(extremes[3]) or 0.0
        elif word and line.startswith("Percentiles:"):
            pairs = [
                (parse_number(at), parse_number(value)) for at, value in _PERCENTILE.findall(line)
            ]
            percentiles = [
                (at, value) for at, value in pairs if at is not None and value is not None
            ]
            by_operation[word] = OperationFigures(
                f"key_{word}",
                count=count,
                lat_min_ns=low * NS_PER_US,
                lat_mean_ns=mean * NS_PER_US,
                lat_max_ns=high * NS_PER_US,
                percentiles=tuple((at, value * NS_PER_US) for at, value in percentiles),
                printed=tuple((f"P{at:g} (us)", f"{value}") for at, value in percentiles),
            )
            word = ""
    return by_operation


def _ycsb_sections(file: ForeignFile) -> list[OutputSection]:
    """A section for each summary, from the client's first line on where that is printed."""
    begins = split_into_sections(file, _YCSB_BEGIN)
    if begins and all(_YCSB_OVERALL in part.text for part in begins):
        return begins
    # Without those lines, or with runs that failed between: from the end of one summary on.
    lines = [n for n, line in enumerate(file.lines, start=1) if line.startswith(_YCSB_OVERALL)]
    starts = [1]
    for overall in lines[1:]:
        before = [part.first_line for part in begins if starts[-1] < part.first_line <= overall]
        starts.append(before[-1] if before else overall)
    ends = [*(start - 1 for start in starts[1:]), len(file.lines)]
    return [OutputSection(file, first, last) for first, last in zip(starts, ends, strict=True)]


def _ycsb_settings(command: str) -> dict[str, str]:
    """Each with its last value, which YCSB takes; of several workload files all."""
    settings: dict[str, str] = {}
    for name, value in _ycsb_options(command):
        before = settings.get(name) if name == _WORKLOAD_FILE else None
        settings[name] = value if before is None else f"{before}, {value}"
    return settings


def _ycsb_options(command: str) -> Iterator[tuple[str, str]]:
    """The properties, database, workload files and threads of a command line."""
    try:
        words = shlex.split(command)
    except ValueError:  # A quote that was cut off.
        words = command.split()
    for option, value in pairwise([*words, ""]):
        if option == "-p" and "=" in value:
            name, _, text = value.partition("=")
            yield (
                _YCSB_PROPERTIES.get(name, excerpt(name, NAME_CHARACTERS)),
                excerpt(text, SETTING_CHARACTERS_MAX),
            )
        elif option in _YCSB_OPTIONS:
            yield _YCSB_OPTIONS[option], excerpt(value, SETTING_CHARACTERS_MAX)


class YcsbImporter:
    """A run with each of its operations; what failed is no operation that was done."""

    tool: Final = "ycsb"

    def recognises(self, file: ForeignFile) -> bool:
        """By the summary."""
        return b"[OVERALL], RunTime(ms)," in file.utf8_bytes or _YCSB_JSON in file.utf8_bytes

    def read(self, file: ForeignFile, file_set: ImportFileSet) -> Sequence[ForeignRun]:
        """The summary of each run in the file: a load and its transactions may stand in one log.

        Standard error and latency logs of the same name beside it belong to its only run.
        """
        if b"[OVERALL], RunTime(ms)," not in file.utf8_bytes:
            raise ForeignFileError(
                "YCSB's JSON is not read.",
                "Run it without a measurement exporter and import the text that it prints.",
            )
        parts = _ycsb_sections(file)
        runs = [
            self._read_ycsb_run_and_mark_logs_used(part, file_set, has_logs=len(parts) == 1)
            for part in parts
        ]
        for part in parts:
            part.mark_read()
        return runs

    def _read_ycsb_run_and_mark_logs_used(
        self, part: OutputSection, file_set: ImportFileSet, *, has_logs: bool
    ) -> ForeignRun:
        file = part.file
        stem = re.escape(file.path.stem)
        heard = (
            file_set.matching_files_in_same_folder(file, re.compile(rf"{stem}\.err"))
            if has_logs
            else []
        )
        errors = b"".join(file_set.mark_used_and_read(stderr).utf8_bytes for stderr in heard)
        content = part.text.encode()
        output = ycsb_output.parse_ycsb_output(content, errors or content)
        sections: dict[str, dict[str, str]] = {}
        for _, line in part.numbered_lines:
            if match := _LINE.match(line.strip()):
                sections.setdefault(match[1], {})[match[2].strip()] = match[3]
        runtime = parse_number(sections.get("OVERALL", {}).get("RunTime(ms)", ""))
        seconds = None if runtime is None else runtime / 1000
        figures = tuple(
            _operation_figures(name, section, sections, seconds)
            for name, section in sections.items()
            if name in YCSB_NAMES and not name.startswith("Intended")
        )
        logs = (
            dict(self._operations_and_used_latency_logs(file, file_set, sections))
            if has_logs
            else {}
        )
        claimed = OperationFigures(
            ALL,
            seconds=seconds,
            rate_per_s=parse_number(sections.get("OVERALL", {}).get("Throughput(ops/sec)", "")),
        )
        lines = [*part.text.splitlines(), *errors.decode("utf-8", "replace").splitlines()]
        command = next((line for line in lines if line.startswith(_COMMAND)), "")
        settings = _ycsb_settings(command.removeprefix(_COMMAND))
        numbers = {name: parse_number(value) for name, value in settings.items()}
        details = ImportedRunDetails(
            tool="ycsb",
            version=excerpt(output.version, NAME_CHARACTERS),
            files=(file.name,),
            claimed_totals=(claimed,),
            paced=is_limited_by_target_rate(numbers.get("target"), claimed.rate_per_s),
        )
        host = ImportedClientDetails(
            f"{file.name}: [OVERALL]",
            figures,
            errors=tuple(excerpt(message, SENTENCE_CHARACTERS) for message in output.messages),
            latency_step_ns=NS_PER_US,
        )
        client = ImportedClient(
            "ycsb",
            host,
            bins={name: _bins_from_log(log) for name, log in logs.items()},
            intervals=tuple(_intervals_from_logs(logs)),
            runtime_s=seconds,
        )
        phase = {"-load": "load", "-t": "transactions"}
        kind = next((phase[word] for word in command.split() if word in phase), "")
        files = [Path(path).name for path in settings.get(_WORKLOAD_FILE, "").split(", ")]
        return ForeignRun(
            name=(excerpt(" ".join(files), NAME_CHARACTERS) or kind or "ycsb")
            if command
            else file.path.stem,
            access_kind=kind,
            details=details,
            clients=(client,),
            # Without a command only its folder may tell a file from one of the same name.
            settings=tuple(settings.items())
            or (("folder", excerpt(file.path.absolute().parent.name, NAME_CHARACTERS)),),
            ignored_setting_reasons=YCSB_IGNORED,
            in_flight=round(numbers.get("threads") or 0) or None,
            indicator="ops_per_s",
        )

    def _operations_and_used_latency_logs(
        self, file: ForeignFile, file_set: ImportFileSet, sections: Mapping[str, Mapping[str, str]]
    ) -> Iterator[tuple[str, HdrLog]]:
        """The logs of the operations, each used whether or not it can be read."""
        for name in sections:
            pattern = re.compile(rf"{re.escape(file.path.stem)}[._-]?{re.escape(name)}\.hdr")
            for log_file in file_set.matching_files_in_same_folder(file, pattern):
                log = parse_hdr_log(file_set.mark_used_and_read(log_file).utf8_bytes)
                if name in YCSB_NAMES and not name.startswith("Intended"):
                    if log.faults:
                        raise ForeignFileError(
                            f"{log_file.name}: {excerpt(log.faults[0], NAME_CHARACTERS)}."
                        )
                    yield _operation_key(name), log
        for log_file in file_set.matching_files_in_same_folder(
            file, re.compile(rf"{re.escape(file.path.stem)}[._-].*\.hdr")
        ):
            file_set.mark_used_and_read(log_file)


def _operation_count_with_failed(section: Mapping[str, str]) -> int:
    """How many operations a section counts, those that failed too."""
    return round(parse_number(section.get("Operations", "")) or 0)


def _operation_key(name: str) -> str:
    return f"key_{name.lower().replace('-', '_')}"


def _operation_figures(
    name: str,
    section: Mapping[str, str],
    sections: Mapping[str, Mapping[str, str]],
    seconds: float | None,
) -> OperationFigures:
    count = _operation_count_with_failed(section)
    failed = sum(
        round(parse_number(value) or 0)
        for key, value in section.items()
        if key.startswith("Return=") and key not in ("Return=", *_YCSB_SUCCESS)
    )
    timed = round(parse_number(sections.get(f"{name}-FAILED", {}).get("Operations", "")) or 0)
    returned = [parse_number(section[key]) or 0 for key in _YCSB_SUCCESS if key in section]
    ok = round(sum(returned)) if returned else count
    every_return = sum(
        round(parse_number(value) or 0)
        for key, value in section.items()
        if key.startswith("Return=")
    )
    latencies = {key: parse_number(value) for key, value in section.items() if "Latency(us)" in key}
    ranks = [
        (float(at[1]), value * NS_PER_US)
        for key, value in latencies.items()
        if value is not None and (at := _AT.fullmatch(key))
    ]
    return OperationFigures(
        operation=_operation_key(name),
        count=count,
        seconds=seconds,
        rate_per_s=count / seconds if seconds else None,
        lat_min_ns=_us_to_ns(latencies.get("MinLatency(us)")),
        lat_mean_ns=_us_to_ns(latencies.get("AverageLatency(us)")),
        lat_max_ns=_us_to_ns(latencies.get("MaxLatency(us)")),
        percentiles=tuple(sorted(ranks)),
        failed=max(failed, timed, count - ok),
        failed_in_count=every_return == count and not timed,
        weight=-1 if name == "READ-MODIFY-WRITE" else 1,
        printed=tuple(
            (excerpt(key, NAME_CHARACTERS), excerpt(value, NAME_CHARACTERS))
            for key, value in section.items()
        ),
    )


def _us_to_ns(microseconds: float | None) -> float | None:
    return None if microseconds is None else microseconds * NS_PER_US


def _bins_from_log(hdr_log: HdrLog) -> Bins:
    bins: dict[int, int] = {}
    for interval in hdr_log.intervals:
        for place, count in zip(bin_index_of_ns(interval.values_ns), interval.counts, strict=True):
            bins[int(place)] = bins.get(int(place), 0) + int(count)
    return bins


def _intervals_from_logs(log_by_operation: Mapping[str, HdrLog]) -> Iterator[ImportedInterval]:
    """The intervals of all logs, which share one clock."""
    starts = [
        interval.start_real_ns for log in log_by_operation.values() for interval in log.intervals
    ]
    for operation, log in log_by_operation.items():
        for interval in log.intervals:
            waited = float(np.dot(interval.values_ns.astype(np.float64), interval.counts))
            end = interval.end_real_ns - min(starts)
            if interval.span_ns > 0:
                yield ImportedInterval(operation, end, interval.span_ns, interval.total, 0, waited)
