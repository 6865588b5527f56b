"""Results of warp: its log with a line for each request, which s3dlio writes too, and its JSON.

A log has every request, so latencies are merged exactly. The JSON has percentiles of windows of ten
seconds and of single clients, which no arithmetic makes those of the run: they are quoted only.
"""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, Final

import numpy as np
from msgspec import Struct, field
from msgspec.structs import replace

from iolab.core.histogram import bin_index_of_ns
from iolab.core.limits import LOGGED_SECONDS_MAX, MOMENT_NS_MAX, SETTING_CHARACTERS_MAX
from iolab.importers.commands import CommandSyntax, command_settings
from iolab.importers.files import (
    NAME_CHARACTERS,
    SENTENCE_CHARACTERS,
    ForeignFile,
    ForeignFileError,
    ImportFileSet,
    broken_csv_error,
    dict_or_empty,
    finite_number,
    sanitized_host_name,
)
from iolab.importers.foreign_run import (
    ForeignRun,
    ImportedClient,
    ImportedClientDetails,
    ImportedInterval,
    ImportedRunDetails,
    OperationFigures,
)
from iolab.importers.object_requests import (
    SECRET_OPTIONS,
    group_by_overlap,
    indicator_for_object_size,
    request_operation_key,
    request_run_name,
)
from iolab.text import excerpt
from iolab.units import NS_PER_MS, NS_PER_S

VERSION: Final = 2
"""The version of the JSON that is read."""

WARP_THREAD_MAX: Final = 0xFFFF
"""warp numbers its threads in 16 bits; s3dlio writes hashes of 64."""

_HEADER: Final = b"idx\tthread\top\t"
_DOCUMENT: Final = re.compile(r'\{\s*"v"\s*:\s*\d+\s*,\s*"(?:commandline|final|total)"')
_MOMENT: Final = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?(Z|[+-]\d\d:\d\d)")
_COMMAND: Final = re.compile(r"^\S*warp\S* [a-z]")
_STYLE: Final = CommandSyntax()
_NEEDED: Final = ("op", "bytes", "start", "end")

ERRORS_MAX: Final = 20
"""Kinds of errors that are kept."""

_RETRIES: Final = "what the client repeated is inside a request's time, and not counted"

IGNORED: Final = {
    **dict.fromkeys(
        ("arguments", "host", "bucket", "prefix", "region", "lookup"),
        "where the objects lie is the target, not the load",
    ),
    **dict.fromkeys(
        ("access-key", "secret-key", "sts-web-token"),
        "who may read them is the target, not the load",
    ),
    **dict.fromkeys(
        ("benchdata", "influxdb", "full", "json", "quiet", "no-color", "debug", "stress"),
        "what is written of a run",
    ),
    **dict.fromkeys(
        ("analyze.v", "analyze.dur", "analyze.out", "analyze.op", "analyze.host", "analyze.skip"),
        "how results are summed up",
    ),
    **dict.fromkeys(
        ("duration", "autoterm", "autoterm.dur", "autoterm.pct", "syncstart", "noclear"),
        "how long a run lasts, not what it does",
    ),
    **dict.fromkeys(("warp-client", "warp-client-server", "serverprof"), "the name of a host"),
}
"""Options of warp that do not make two runs unlike, each with the reason."""


class _OperationRequests(Struct):
    """The requests of one client and operation; times in ns since 1970, None is not told.

    Those that `failed_count` are counted, and in no list; `first_start_ns` and `last_end_ns` are of
    all.
    """

    starts_ns: list[int] = field(default_factory=list)
    ends_ns: list[int] = field(default_factory=list)
    first_byte_times_ns: list[int | None] = field(default_factory=list)
    last_byte_times_ns: list[int | None] = field(default_factory=list)
    bytes: int = 0
    failed_count: int = 0
    first_start_ns: int = MOMENT_NS_MAX
    last_end_ns: int = 0


class _WarpLog(Struct):
    """What a log tells: its requests by client and operation, and what was asked."""

    requests: dict[tuple[str, str], _OperationRequests] = field(default_factory=dict)
    threads_by_client: dict[str, set[str]] = field(default_factory=dict)
    sizes: dict[str, set[int]] = field(default_factory=dict)
    endpoints: set[str] = field(default_factory=set)
    errors: dict[str, dict[str, int]] = field(default_factory=dict)
    command: str = ""
    has_hashed_threads: bool = False

    def requests_of_operations(self, *operations: str) -> list[_OperationRequests]:
        """Those of all clients that are of any of the operations."""
        return [own for (_, operation), own in self.requests.items() if operation in operations]


class WarpLogImporter:
    """A log with a line for each request: operations that ran together are one run."""

    tool: Final = "warp"

    def recognises(self, file: ForeignFile) -> bool:
        """By its header."""
        return file.first_bytes.startswith(_HEADER)

    def read(self, file: ForeignFile, file_set: ImportFileSet) -> Sequence[ForeignRun]:
        """The phases of the log; warp's JSON of the same run beside it is not read twice."""
        stem = re.escape(re.sub(r"\.(?:csv|tsv)(?:\.zst)?$", "", file.path.name))
        for twin in file_set.matching_files_in_same_folder(
            file, re.compile(rf"{stem}\.json(?:\.zst)?")
        ):
            if _DOCUMENT.search(twin.text):
                file_set.mark_used_and_read(twin)
        log = _read_log_and_mark_lines(file)
        spans = {
            operation: _first_start_and_last_end_ns(log.requests_of_operations(operation))
            for operation in dict.fromkeys(operation for _, operation in log.requests)
        }
        if not spans:
            raise ForeignFileError("it has no request.")
        return [_run_of_log(file, log, operations) for operations in group_by_overlap(spans)]


class WarpResultImporter:
    """The JSON of warp: operations that ran together are one run."""

    tool: Final = "warp"

    def recognises(self, file: ForeignFile) -> bool:
        """By the first words of its document, which may stand behind what warp printed before."""
        return b'"by_op_type"' in file.utf8_bytes and _DOCUMENT.search(file.text) is not None

    def read(self, file: ForeignFile, file_set: ImportFileSet) -> Sequence[ForeignRun]:
        """The operations of each document."""
        del file_set
        runs: list[ForeignRun] = []
        reason, place = "", 0
        while found := _DOCUMENT.search(file.text, place):
            try:
                document, place = json.JSONDecoder().raw_decode(file.text, found.start())
            except (ValueError, RecursionError):
                raise ForeignFileError("its JSON is cut off or damaged.") from None
            first = file.line_number_at(found.start())
            last = file.line_number_at(place - 1)
            own, reason = _runs_or_refusal_reason(file, first, document)
            runs += own
            if own:
                file.line_coverage.mark_read(first, last)
            else:
                file.line_coverage.mark_left_out(first, last, reason)
        if not runs:
            raise ForeignFileError(reason)
        return runs


def _read_log_and_mark_lines(file: ForeignFile) -> _WarpLog:
    log = _WarpLog()
    seconds: dict[tuple[str, str], int] = {}
    lines = [line for line in file.lines if not line.startswith("#")]
    rows = csv.reader(lines, delimiter="\t")
    columns = {name: place for place, name in enumerate(next(rows))}
    missing = [name for name in _NEEDED if name not in columns]
    if missing:
        raise ForeignFileError(f"it has no column {missing[0]}.")
    numbers = [n for n, line in enumerate(file.lines, start=1) if not line.startswith("#")]
    try:
        for row in rows:
            reason = _add_request_to_log_or_refusal_reason(log, row, columns, seconds)
            if reason:
                number = numbers[rows.line_num - 1]
                file.line_coverage.mark_left_out(number, number, reason)
    except csv.Error as error:
        raise broken_csv_error(error) from None
    comments = [line[1:].strip() for line in file.lines if line.startswith("#")]
    log.command = next((line for line in comments if _COMMAND.match(line)), "")
    file.line_coverage.mark_all_read()
    return log


def _add_request_to_log_or_refusal_reason(
    warp_log: _WarpLog,
    row: Sequence[str],
    column_by_name: Mapping[str, int],
    second_cache: dict[tuple[str, str], int],
) -> str:
    """Take up one line; why it cannot be, else an empty text."""
    if len(row) < len(column_by_name):
        return "This request has fewer columns than the heading: it was cut short."
    cells = {name: row[place] for name, place in column_by_name.items()}
    start, end = (
        _parse_time_ns(cells["start"], second_cache),
        _parse_time_ns(cells["end"], second_cache),
    )
    size = cells["bytes"]
    if start is None or end is None or not size.isdecimal() or len(size) > 18:
        return "This request has no time or no size."
    if end < start:
        return "This request ends before it begins."
    client, operation = cells.get("client_id", ""), request_operation_key(cells["op"])
    own = warp_log.requests.setdefault((client, operation), _OperationRequests())
    thread = cells.get("thread", "")
    warp_log.threads_by_client.setdefault(client, set()).add(thread)
    warp_log.has_hashed_threads |= thread.isdecimal() and int(thread) > WARP_THREAD_MAX
    warp_log.endpoints.add(cells.get("endpoint", ""))
    own.first_start_ns, own.last_end_ns = min(own.first_start_ns, start), max(own.last_end_ns, end)
    if error := cells.get("error", ""):
        own.failed_count += 1
        text, errors = excerpt(error, SENTENCE_CHARACTERS), warp_log.errors.setdefault(client, {})
        if text in errors or len(errors) < ERRORS_MAX:
            errors[text] = errors.get(text, 0) + 1
        return ""
    own.starts_ns.append(start)
    own.ends_ns.append(end)
    own.first_byte_times_ns.append(_parse_time_ns(cells.get("first_byte", ""), second_cache))
    own.last_byte_times_ns.append(_parse_time_ns(cells.get("last_byte", ""), second_cache))
    own.bytes += int(size)
    warp_log.sizes.setdefault(operation, set())
    if len(warp_log.sizes[operation]) <= 1:
        warp_log.sizes[operation].add(int(size))
    return ""


def _parse_time_ns(text: str, second_cache: dict[tuple[str, str], int]) -> int | None:
    """A moment with its nanoseconds; `second_cache` has those that were seen before."""
    match = _MOMENT.fullmatch(text)
    if match is None:
        return None
    key = match[1], match[3]
    if (whole := second_cache.get(key)) is None:
        try:
            whole = round(datetime.fromisoformat("".join(key)).timestamp())
        except (ValueError, OverflowError):
            return None
        second_cache[key] = whole
    return whole * NS_PER_S + int((match[2] or "0").ljust(9, "0"))


def _first_start_and_last_end_ns(requests: Sequence[_OperationRequests]) -> tuple[int, int]:
    """When the first of them began and the last one ended."""
    return min(each.first_start_ns for each in requests), max(each.last_end_ns for each in requests)


def _run_of_log(file: ForeignFile, warp_log: _WarpLog, operations: Sequence[str]) -> ForeignRun:
    names = dict.fromkeys(
        client for client, operation in warp_log.requests if operation in operations
    )
    clients = [_imported_client(file, warp_log, name, operations) for name in names]
    tool = "s3dlio" if warp_log.has_hashed_threads else "warp"
    sizes = set().union(*(warp_log.sizes.get(operation, set()) for operation in operations))
    asked = _command_settings(warp_log.command)
    if warp_log.command:
        threads = int(asked["concurrent"]) if asked.get("concurrent", "").isdecimal() else None
    else:
        threads = max(len(warp_log.threads_by_client[name]) for name in names)
        asked["threads"] = str(threads)
    asked["object size"] = str(*sizes) if len(sizes) == 1 else "mixed"
    asked["endpoints"] = str(len(warp_log.endpoints))
    ends = [
        (client.start_ns or 0) + round((client.runtime_s or 0.0) * NS_PER_S) for client in clients
    ]
    notes = ["figures are of all requests from the first start to the last end", _RETRIES]
    if any(map(_has_ends_as_first_bytes, warp_log.requests_of_operations(*operations))):
        notes.append("first bytes are not told: the log has the end of a request in their place")
    return ForeignRun(
        name=request_run_name(tool, operations),
        details=ImportedRunDetails(tool=tool, version="", files=(file.name,), notes=tuple(notes)),
        clients=tuple(clients),
        settings=tuple(asked.items()),
        ignored_setting_reasons=IGNORED,
        in_flight=threads,
        ended_real_ns=max(ends),
        indicator=indicator_for_object_size(max(sizes, default=None)),
    )


def _imported_client(
    file: ForeignFile, warp_log: _WarpLog, name: str, operations: Sequence[str]
) -> ImportedClient:
    own = {
        operation: warp_log.requests[name, operation]
        for operation in operations
        if (name, operation) in warp_log.requests
    }
    start, end = _first_start_and_last_end_ns(list(own.values()))
    seconds = (end - start) / NS_PER_S or None
    figures: list[OperationFigures] = []
    bins: dict[str, dict[int, int]] = {}
    for operation, requests in own.items():
        parts = [(operation, _request_latencies_ns(requests.starts_ns, requests.ends_ns))]
        if operation.startswith("object_get"):
            if not _has_ends_as_first_bytes(requests):
                first_byte_ns = _request_latencies_ns(
                    requests.starts_ns, requests.first_byte_times_ns
                )
                parts.append((f"{operation}_first_byte", first_byte_ns))
        elif operation == "object_put":
            parts.append(
                (
                    "object_put_commit",
                    _request_latencies_ns(requests.last_byte_times_ns, requests.ends_ns),
                )
            )
        for part, latencies_ns in parts:
            if part == operation or latencies_ns.size:
                is_all = part == operation
                figures.append(
                    _figures_of_requests(
                        part, requests, latencies_ns, seconds, is_whole_request=is_all
                    )
                )
                places, counts = np.unique(bin_index_of_ns(latencies_ns), return_counts=True)
                bins[part] = dict(zip(places.tolist(), counts.tolist(), strict=True))
    host = ImportedClientDetails(
        f"{file.name}: {excerpt(name, NAME_CHARACTERS) or 'all requests'}",
        tuple(figures),
        errors=tuple(
            f"{text} ({count} times)" for text, count in warp_log.errors.get(name, {}).items()
        ),
    )
    return ImportedClient(
        sanitized_host_name(name) if name else "all-requests",
        host,
        bins=bins,
        intervals=tuple(_intervals_of_requests(own, start, end)),
        start_ns=start,
        runtime_s=seconds,
    )


def _has_ends_as_first_bytes(requests: _OperationRequests) -> bool:
    """Whether first bytes are always the end, and so none: s3dlio writes some so."""
    return bool(requests.ends_ns) and requests.first_byte_times_ns == requests.ends_ns


def _request_latencies_ns(
    begins: Sequence[int | None], ends: Sequence[int | None]
) -> np.ndarray[Any, np.dtype[np.int64]]:
    """The times from one moment of each request to another, where both are told."""
    return np.array(
        [
            end - begin
            for begin, end in zip(begins, ends, strict=True)
            if begin is not None and end is not None and end >= begin
        ],
        dtype=np.int64,
    )


def _figures_of_requests(
    operation: str,
    requests: _OperationRequests,
    latencies_ns: np.ndarray[Any, np.dtype[np.int64]],
    seconds: float | None,
    *,
    is_whole_request: bool,
) -> OperationFigures:
    """Of whole requests, or of a part of each, which has latencies and moves nothing."""
    count = int(latencies_ns.size)
    has_bytes = is_whole_request and requests.bytes
    return OperationFigures(
        operation=operation,
        count=count,
        bytes=requests.bytes if has_bytes else None,
        seconds=seconds if is_whole_request else None,
        rate_per_s=count / seconds if is_whole_request and seconds else None,
        bw_bytes_per_s=requests.bytes / seconds if has_bytes and seconds else None,
        lat_min_ns=float(latencies_ns.min()) if count else None,
        lat_mean_ns=float(latencies_ns.mean()) if count else None,
        lat_max_ns=float(latencies_ns.max()) if count else None,
        failed=requests.failed_count if is_whole_request else 0,
        weight=1 if is_whole_request else 0,
    )


def _intervals_of_requests(
    requests_by_operation: Mapping[str, _OperationRequests], start: int, end: int
) -> Iterator[ImportedInterval]:
    """What was done in each second since the first request; bytes as if each moved as many."""
    span = end - start
    total = -(-span // NS_PER_S)
    if not 0 < total <= LOGGED_SECONDS_MAX:
        return
    for operation, requests in requests_by_operation.items():
        ends = np.array(requests.ends_ns, dtype=np.int64) - start
        waited = ends + start - np.array(requests.starts_ns, dtype=np.int64)
        places = np.minimum(ends // NS_PER_S, total - 1)
        counts = np.bincount(places, minlength=total)
        sums = np.bincount(places, weights=waited.astype(np.float64), minlength=total)
        each = requests.bytes / max(len(requests.ends_ns), 1)
        for place in range(total):
            end_ns = min((place + 1) * NS_PER_S, span)
            count = int(counts[place])
            yield ImportedInterval(
                operation,
                end_ns,
                end_ns - place * NS_PER_S,
                count,
                round(count * each),
                float(sums[place]),
            )


def _command_settings(command: str) -> dict[str, str]:
    return {
        name: str(value)
        for name, value in command_settings(command, _STYLE)
        if name not in SECRET_OPTIONS
    }


def _runs_or_refusal_reason(
    file: ForeignFile, line_number: int, document: Mapping[str, Any]
) -> tuple[list[ForeignRun], str]:
    """The runs of a document, or none and why."""
    if document.get("v") != VERSION:
        version = excerpt(str(document.get("v")), NAME_CHARACTERS)
        return [], f"Version {version} of warp's JSON is not known; {VERSION} is."
    if document.get("final") is False:
        return [], "This document of warp is of a run under way."
    parts = {
        str(name): dict_or_empty(part)
        for name, part in dict_or_empty(document.get("by_op_type")).items()
        if finite_number(dict_or_empty(part).get("total_requests"))
    }
    if not parts:
        return [], "This document of warp has no request."
    seconds: dict[tuple[str, str], int] = {}
    spans = {
        name: (
            _parse_time_ns(str(part.get("start_time")), seconds) or 0,
            _parse_time_ns(str(part.get("end_time")), seconds) or 0,
        )
        for name, part in parts.items()
    }
    return [
        _run_of_document(file, line_number, document, {name: parts[name] for name in names}, spans)
        for names in group_by_overlap(spans)
    ], ""


def _run_of_document(
    file: ForeignFile,
    line_number: int,
    document: Mapping[str, Any],
    parts: Mapping[str, Mapping[str, Any]],
    spans: Mapping[str, tuple[int, int]],
) -> ForeignRun:
    figures: list[OperationFigures] = []
    sizes: set[float] = set()
    notes = [
        "rates are warp's own, without the first and the last two seconds",
        "percentiles are of windows of 10 s and of single clients: they cannot be pooled",
        _RETRIES,
    ]
    for name, part in parts.items():
        windows = list(_request_windows(part))
        sizes |= {size for window in windows if (size := finite_number(window.get("obj_size")))}
        figures += _figures_of_operation_json(request_operation_key(name), part, windows)
    if any(figure.failed for figure in figures):
        notes.append("warp counts failed requests as done: they and their bytes were taken off")
    asked = _command_settings(str(document.get("commandline") or ""))
    asked["object size"] = f"{max(sizes):.0f}" if len(sizes) == 1 else "mixed"
    hosts = [part.get("hosts") for part in parts.values()]
    endpoints = max(len(each) for each in hosts if isinstance(each, list | dict)) if hosts else 0
    asked["endpoints"] = str(endpoints)
    in_flight = max(finite_number(part.get("concurrency")) or 0 for part in parts.values())
    operations = [request_operation_key(name) for name in parts]
    begin = min(spans[name][0] for name in parts)
    end = max(spans[name][1] for name in parts)
    errors = dict.fromkeys(
        excerpt(str(text), SENTENCE_CHARACTERS)
        for part in parts.values()
        for text in (part.get("first_errors") or ())
    )
    host = ImportedClientDetails(
        f"{file.name}:{line_number}",
        tuple(figures),
        errors=tuple(errors)[:ERRORS_MAX],
        latency_step_ns=1.0,
    )
    return ForeignRun(
        name=request_run_name("warp", operations),
        details=ImportedRunDetails(
            tool="warp",
            version=excerpt(str(document.get("warp_version") or ""), NAME_CHARACTERS),
            files=(file.name,),
            notes=tuple(notes),
        ),
        clients=(
            ImportedClient(
                "all clients",
                host,
                intervals=tuple(_intervals_of_operations(parts)),
                runtime_s=(end - begin) / NS_PER_S if begin and end > begin else None,
            ),
        ),
        settings=tuple(
            (name, excerpt(value, SETTING_CHARACTERS_MAX)) for name, value in asked.items()
        ),
        ignored_setting_reasons=IGNORED,
        in_flight=round(in_flight) or None,
        ended_real_ns=end or None,
        indicator=indicator_for_object_size(max(sizes, default=None)),
    )


def _request_windows(operation_json: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """The windows of all clients: of one size as they are, of many sizes those of each size."""
    for windows in dict_or_empty(operation_json.get("requests_by_client")).values():
        for window in windows if isinstance(windows, list) else ():
            single = dict_or_empty(dict_or_empty(window).get("single_sized_requests"))
            several = dict_or_empty(dict_or_empty(window).get("multi_sized_requests"))
            if single and not single.get("skipped"):
                yield single
            elif several and not several.get("skipped"):
                sizes = several.get("by_size")
                yield from (dict_or_empty(each) for each in sizes or () if each)


def _figures_of_operation_json(
    operation: str, operation_json: Mapping[str, Any], windows: Sequence[Mapping[str, Any]]
) -> Iterator[OperationFigures]:
    throughput = dict_or_empty(operation_json.get("throughput"))
    ms = finite_number(throughput.get("measure_duration_millis"))
    segments, span = _sorted_segments_and_length_ns(throughput)
    requests = finite_number(throughput.get("ops"))
    moved = finite_number(throughput.get("bytes"))
    failed_then = finite_number(throughput.get("errors")) or 0.0
    figures = _latency_figures(
        operation,
        windows,
        ("fastest_millis", "dur_avg_millis", "avg_duration_millis", "slowest_millis"),
    )
    if ms and requests:
        done = max(requests - failed_then, 0.0)
        own = moved * done / requests if moved else None
        figures = replace(
            figures,
            count=round(done),
            bytes=None if own is None else round(own),
            # Of several clients warp divides by more seconds than it counted requests in.
            seconds=len(segments) * span / NS_PER_S if segments else ms / 1000,
            rate_per_s=done * 1000 / ms,
            bw_bytes_per_s=None if own is None else own * 1000 / ms,
        )
    yield replace(
        figures,
        failed=round(finite_number(operation_json.get("total_errors")) or 0.0),
        percentiles=_single_window_latency_percentiles_ns(windows),
        printed=tuple(_printed_names_and_values(operation_json, windows)),
    )
    first = [
        {**dict_or_empty(window.get("first_byte")), "requests": window.get("requests")}
        for window in windows
        if window.get("first_byte")
    ]
    if first:
        # Of uploads warp tells under this name how long the answer took after the last byte.
        name = "object_put_commit" if operation == "object_put" else f"{operation}_first_byte"
        counted = sum(finite_number(window.get("requests")) or 0.0 for window in first)
        latencies = _latency_figures(
            name, first, ("fastest_millis", "average_millis", "", "slowest_millis")
        )
        yield replace(latencies, count=round(counted), weight=0)


def _latency_figures(
    operation: str, windows: Sequence[Mapping[str, Any]], names: tuple[str, str, str, str]
) -> OperationFigures:
    """The extremes of all windows, and the mean in which every request weighs the same.

    `names` are those of the minimum, of the mean, of the mean where sizes differ, of the maximum.
    """
    low, mean, other_mean, high = names
    waited = total = 0.0
    for window in windows:
        each = finite_number(window.get(mean, window.get(other_mean)))
        count = finite_number(window.get("requests"))
        if each is not None and count:
            waited, total = waited + each * count, total + count
    lows = [ms for window in windows if (ms := finite_number(window.get(low))) is not None]
    highs = [ms for window in windows if (ms := finite_number(window.get(high))) is not None]
    return OperationFigures(
        operation,
        lat_min_ns=min(lows) * NS_PER_MS if lows else None,
        lat_mean_ns=waited / total * NS_PER_MS if total else None,
        lat_max_ns=max(highs) * NS_PER_MS if highs else None,
    )


def _single_window_latency_percentiles_ns(
    windows: Sequence[Mapping[str, Any]],
) -> tuple[tuple[float, float], ...]:
    """Percentiles where one window of one client is the whole run; of several there are none."""
    if len(windows) != 1:
        return ()
    names = ((50.0, "dur_median_millis"), (90.0, "dur_90_millis"), (99.0, "dur_99_millis"))
    values = ((percent, finite_number(windows[0].get(name))) for percent, name in names)
    return tuple((percent, ms * NS_PER_MS) for percent, ms in values if ms is not None)


def _printed_names_and_values(
    operation_json: Mapping[str, Any], windows: Sequence[Mapping[str, Any]]
) -> Iterator[tuple[str, str]]:
    for name in ("total_requests", "total_objects", "total_errors", "total_bytes", "concurrency"):
        if name in operation_json:
            yield name, excerpt(str(operation_json[name]), NAME_CHARACTERS)
    for name in ("dur_median_millis", "dur_90_millis", "dur_99_millis"):
        values = [value for window in windows if (value := finite_number(window.get(name)))]
        if values:
            yield f"{name} of windows", f"{min(values):g} to {max(values):g}"


def _intervals_of_operations(
    json_by_operation: Mapping[str, Mapping[str, Any]],
) -> Iterator[ImportedInterval]:
    """The rates of the segments of each operation, by their place."""
    for name, part in json_by_operation.items():
        segments, span = _sorted_segments_and_length_ns(dict_or_empty(part.get("throughput")))
        for place, own in enumerate(segments):
            rate = finite_number(own.get("obj_per_sec")) or 0.0
            moved = finite_number(own.get("bytes_per_sec")) or 0.0
            yield ImportedInterval(
                request_operation_key(name),
                (place + 1) * span,
                span,
                round(rate * span / NS_PER_S),
                round(moved * span / NS_PER_S),
            )


def _sorted_segments_and_length_ns(
    throughput: Mapping[str, Any],
) -> tuple[list[Mapping[str, Any]], int]:
    """The segments in order of time, and how long each is in ns; none where that is not told."""
    segmented = dict_or_empty(throughput.get("segmented"))
    span = round((finite_number(segmented.get("segment_duration_millis")) or 0.0) * NS_PER_MS)
    segments = segmented.get("segments")
    if span <= 0 or not isinstance(segments, list) or len(segments) > LOGGED_SECONDS_MAX:
        return [], 0
    own = [dict_or_empty(segment) for segment in segments]
    return sorted(own, key=lambda segment: str(segment.get("start"))), span
