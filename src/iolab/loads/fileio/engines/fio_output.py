"""The standard output of fio: its JSON documents cut out of the text between them, and read.

With `--status-interval` fio prints one whole document after another; each begins with a line `{`
and ends with a line `}`, and every line between is indented. Whatever else stands at the left
margin is text of fio or of a library, before, between or even inside documents.
"""

from __future__ import annotations

import json
import math
import re
import struct
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from typing import Annotated, Any, Final

import msgspec
import numpy as np
from msgspec import Meta, Struct, field

from iolab.core.bins import BIN_COUNT
from iolab.core.histogram import MIDDLE_NS, Counts, Histogram
from iolab.core.limits import (
    DOCUMENT_BYTES_MAX,
    MS_MAX,
    NUMBER_MAX,
    TEXT_LINE_BYTES_MAX,
    TEXT_LINES_MAX,
)
from iolab.core.run import DirectionTotals, EngineTotals
from iolab.core.workload import Direction
from iolab.record import DECODE_ERRORS, Record
from iolab.units import NS_PER_MS

_OPEN: Final = re.compile(rb"^\{[ \t\r]*\n", re.MULTILINE)
_CLOSE: Final = re.compile(rb"^\}[ \t\r]*\n", re.MULTILINE)
_AT_MARGIN: Final = re.compile(rb"^[^\s{}].*\n", re.MULTILINE)

_RANK: Final = re.compile(r"\d{1,3}\.\d+")

DEPTH_LEVELS: Final = ("1", "2", "4", "8", "16", "32", ">=64")
"""Keys of `iodepth_level` in every version."""


SHOWN_LIMIT: Final = 60
"""Characters of a nonsense value in a sentence."""

_NO_NUMBER: Final = re.compile(rb":\s*[-+]?(?:nan|inf)\b", re.IGNORECASE)
"""fio prints C's `nan` and `inf` where it divided by nothing; JSON knows neither."""

_COUNTED: Final = (
    "ios",
    "bytes",
    "runtime_ms",
    "lat_min_ns",
    "lat_max_ns",
    "short_ios",
    "dropped_ios",
)
"""Fields of the totals that are kept in 64 bits."""

_BIN_BY_MIDPOINT_TEXT: Final = {
    str(middle): index for index, middle in enumerate(MIDDLE_NS.tolist())
}
"""The bin of each midpoint as fio prints it."""

_NO_COUNTS: Final = np.zeros(BIN_COUNT, dtype=np.int64)
"""The counts of a direction in which nothing completed: one array for all of them."""


class JsonDocumentSplitter(Struct):
    """Takes output in pieces of any size; gives the documents that they complete.

    `message_lines` holds the first lines that belong to no document. `broken_count` counts
    documents that began and never ended (another began, the output ended, or they outgrew the
    limit).
    """

    message_lines: list[str] = field(default_factory=list)
    broken_count: int = 0
    _buffer: bytearray = field(default_factory=bytearray)
    _searched: int = 0

    def feed(self, piece: bytes) -> list[bytes]:
        """The documents that end in this piece, each as its JSON text."""
        if not self._buffer and _is_single_document(piece):
            return [piece]
        self._buffer += piece
        documents: list[bytes] = []
        while close := self._next_closing_line():
            json_dict = bytes(self._buffer[: close.end()])
            del self._buffer[: close.end()]
            self._searched = 0
            document = self._extract_document_and_collect_rest(json_dict)
            if document:
                documents.append(document)
        self._searched = self._buffer.rfind(b"\n") + 1
        if len(self._buffer) > DOCUMENT_BYTES_MAX:
            self._discard_buffer()
        return documents

    def _next_closing_line(self) -> re.Match[bytes] | None:
        """The next line that ends a document; a plain search tells first whether there can be one.

        Nearly all output is inside documents, and expressions are slow where nothing matches.
        """
        if self._searched == 0 and self._buffer.startswith(b"}"):
            return _CLOSE.search(self._buffer)
        near = self._buffer.find(b"\n}", max(self._searched - 1, 0))
        return None if near < 0 else _CLOSE.search(self._buffer, near + 1)

    def finish(self) -> list[bytes]:
        """The output has ended: a last document whose line end is missing, if there is one."""
        documents = self.feed(b"\n") if self._buffer else []
        self._discard_buffer()
        return documents

    def _extract_document_and_collect_rest(self, raw_text: bytes) -> bytes:
        """The document that `raw_text` ends with; empty when it ends none."""
        if _is_single_document(raw_text):
            return raw_text
        opened = list(_OPEN.finditer(raw_text))
        if not opened:
            self._collect_message_lines(raw_text)
            return b""
        self.broken_count += len(opened) - 1
        self._collect_message_lines(raw_text[: opened[0].start()])
        document = raw_text[opened[-1].start() :]
        foreign = _AT_MARGIN.findall(document)
        if foreign:
            self._collect_message_lines(b"".join(foreign))
            document = _AT_MARGIN.sub(b"", document)
        return document

    def _discard_buffer(self) -> None:
        """What is in the buffer will never be a document."""
        opened = list(_OPEN.finditer(self._buffer))
        self.broken_count += len(opened)
        self._collect_message_lines(
            bytes(self._buffer[: opened[0].start()] if opened else self._buffer)
        )
        self._buffer.clear()
        self._searched = 0

    def _collect_message_lines(self, text: bytes) -> None:
        for line in text.split(b"\n", TEXT_LINES_MAX)[:TEXT_LINES_MAX]:
            words = line[:TEXT_LINE_BYTES_MAX].decode("utf-8", "replace").strip()
            if words not in ("", "{", "}") and len(self.message_lines) < TEXT_LINES_MAX:
                self.message_lines.append(words)


def _is_single_document(raw_text: bytes) -> bool:
    """Whether a block that ends with a closing line is one document and nothing else."""
    if not (raw_text.startswith(b"{\n") and raw_text.endswith(b"\n}\n")):
        return False
    # Every line but the first and the last is indented: one line's end has no blank after it. Bytes
    # are compared as arrays, since a search for two of them takes longer than to parse them all.
    text = np.frombuffer(raw_text, dtype=np.uint8)
    at_margin = (text[:-1] == _LINE_END) & (text[1:] != _BLANK)
    return int(np.count_nonzero(at_margin)) == 1


_LINE_END, _BLANK = b"\n "


JsonDict = Mapping[str, Any]


def direction_totals(direction_dicts: Sequence[JsonDict], counts_by_bin: Counts) -> DirectionTotals:
    """One direction over all jobs of a group; `counts_by_bin` are their pooled latency bins.

    Of a single block the percentiles are fio's own; of several they come from the pooled bins by
    fio's rank rule, since percentiles of parts cannot be pooled.
    """
    weights = [_number_or_zero(json_dict, "total_ios") for json_dict in direction_dicts]
    latencies = [_inner_dict_or_empty(json_dict, "lat_ns") for json_dict in direction_dicts]
    used = [lat for lat, weight in zip(latencies, weights, strict=True) if weight] or latencies
    lowest = int(min(_number_or_zero(lat, "min") for lat in used))
    highest = int(max(_number_or_zero(lat, "max") for lat in used))
    return DirectionTotals(
        ios=int(sum(weights)),
        bytes=int(sum(_number_or_zero(json_dict, "io_bytes") for json_dict in direction_dicts)),
        runtime_ms=int(max(_number_or_zero(json_dict, "runtime") for json_dict in direction_dicts)),
        iops=float(sum(_number_or_zero(json_dict, "iops") for json_dict in direction_dicts)),
        bw_bytes_per_s=float(sum(_bytes_per_s(json_dict) for json_dict in direction_dicts)),
        lat_min_ns=lowest,
        lat_max_ns=highest,
        lat_mean_ns=_weighted_mean_of_dicts(latencies, weights),
        slat_mean_ns=_weighted_mean_of_dicts(
            [_inner_dict_or_empty(json_dict, "slat_ns") for json_dict in direction_dicts], weights
        ),
        clat_mean_ns=_weighted_mean_of_dicts(
            [_inner_dict_or_empty(json_dict, "clat_ns") for json_dict in direction_dicts], weights
        ),
        percentiles=_percentiles_ns(latencies, Histogram(counts_by_bin, lowest, highest)),
        short_ios=int(
            sum(_number_or_zero(json_dict, "short_ios") for json_dict in direction_dicts)
        ),
        dropped_ios=int(
            sum(_number_or_zero(json_dict, "drop_ios") for json_dict in direction_dicts)
        ),
    )


def engine_totals(
    job_dicts: Sequence[JsonDict],
    totals_by_direction: Mapping[Direction, DirectionTotals | None],
    *,
    error: int,
    job_count: int,
) -> EngineTotals:
    """The whole run: depth shares weighted by I/Os, CPU as the mean over the printed jobs."""
    weights = [
        sum(_number_or_zero(_inner_dict_or_empty(job, way.key), "total_ios") for way in Direction)
        for job in job_dicts
    ]
    depths = [_inner_dict_or_empty(job, "iodepth_level") for job in job_dicts]
    shares = tuple(
        (key, _weighted_mean([_number_or_zero(d, key) for d in depths], weights))
        for key in DEPTH_LEVELS
    )
    return EngineTotals(
        read=totals_by_direction.get(Direction.READ),
        write=totals_by_direction.get(Direction.WRITE),
        trim=totals_by_direction.get(Direction.TRIM),
        depth_percent=shares,
        user_cpu_percent=sum(_number_or_zero(job, "usr_cpu") for job in job_dicts) / len(job_dicts),
        system_cpu_percent=sum(_number_or_zero(job, "sys_cpu") for job in job_dicts)
        / len(job_dicts),
        error=error,
        jobs=job_count,
    )


def _percentiles_ns(
    latency_dicts: Sequence[JsonDict], pooled_histogram: Histogram
) -> tuple[tuple[float, int], ...]:
    own = [
        _values_by_percentile(_inner_dict_or_empty(latency, "percentile"))
        for latency in latency_dicts
    ]
    if len(own) == 1:
        return tuple(sorted(own[0].items()))
    ranks = sorted({rank for percentiles in own for rank in percentiles})
    values = ((rank, pooled_histogram.percentile_ns(rank)) for rank in ranks)
    return tuple((rank, round(value)) for rank, value in values if value is not None)


def _values_by_percentile(percentile_dict: JsonDict) -> dict[float, int]:
    ranks = {key: value for key, value in percentile_dict.items() if _RANK.fullmatch(key)}
    return {float(key): int(value) for key, value in ranks.items() if isinstance(value, int)}


def _bytes_per_s(json_dict: JsonDict) -> float:
    """Bytes a second: `bw_bytes`, or from bytes and runtime where fio's integer is missing."""
    if "bw_bytes" in json_dict:
        return _number_or_zero(json_dict, "bw_bytes")
    runtime = _number_or_zero(json_dict, "runtime")
    return _number_or_zero(json_dict, "io_bytes") * 1000 / runtime if runtime else 0.0


def _weighted_mean_of_dicts(latency_dicts: Sequence[JsonDict], weights: Sequence[float]) -> float:
    return _weighted_mean([_number_or_zero(part, "mean") for part in latency_dicts], weights)


def _weighted_mean(values: Sequence[float], weights: Sequence[float]) -> float:
    total = sum(weights)
    if not total:
        return 0.0
    return sum(value * weight for value, weight in zip(values, weights, strict=True)) / total


def _inner_dict_or_empty(json_dict: JsonDict, key: str) -> JsonDict:
    inner = json_dict.get(key)
    return inner if isinstance(inner, dict) else {}


def _number_or_zero(json_dict: JsonDict, key: str) -> float:
    value = json_dict.get(key, 0)
    return value if isinstance(value, int | float) and math.isfinite(value) else 0


class DocumentError(Exception):
    """A document that cannot be used; the message is a sentence."""


class DirectionProgress(Record):
    """What one direction completed since the start: `ios`, which `counts` has by their bins."""

    counts: Counts
    ios: int
    bytes: int
    lat_sum_ns: float
    runtime_ms: int


class FioDocument(Record):
    """All that we use of a document; times are CLOCK_REALTIME of the host.

    `job_start_ms` is None where this version of fio does not print it. `first_errno` is that
    of any job, 0 for none. `json_bytes` is the document itself: its parsed form is ten times as
    large, and is not kept, since every host of a fleet has one.
    """

    version: str
    report_real_ns: int
    job_start_ms: int | None
    first_errno: int
    progress: Mapping[Direction, DirectionProgress]
    json_bytes: bytes

    @property
    def runtime_ms(self) -> int:
        """How long the direction that ran longest has run."""
        return max(part.runtime_ms for part in self.progress.values())

    @property
    def ios(self) -> int:
        """I/Os completed since the start."""
        return sum(part.ios for part in self.progress.values())

    def engine_totals(self, job_count: int, directions: Sequence[Direction]) -> EngineTotals:
        """The engine's own figures for the run that ends with this document.

        Raises DocumentError when one of them is a number that cannot be kept.
        """
        printed = _job_dicts(_parse_report(self.json_bytes))
        parts: dict[Direction, DirectionTotals | None] = {}
        for direction in Direction:
            json_dicts = [job[direction.key] for job in printed]
            progress = self.progress[direction]
            asked = direction in directions or progress.ios > 0
            parts[direction] = (
                _checked_direction_totals(json_dicts, progress.counts) if asked else None
            )
        return engine_totals(printed, parts, error=self.first_errno, job_count=job_count)


_Count = Annotated[int, Meta(ge=0, le=NUMBER_MAX)]
_Milliseconds = Annotated[int, Meta(ge=0, le=MS_MAX)]
_Number = Annotated[float, Meta(ge=0, le=NUMBER_MAX)]


class _Latencies(Struct):
    """`bins` are I/Os by the midpoint of their bin in ns; `sample_count` is of them all."""

    bins: dict[int, int] = {}
    mean: _Number = 0.0
    sample_count: _Count = field(name="N", default=0)


class _DirectionReport(Struct):
    io_bytes: _Count
    runtime: _Milliseconds
    lat_ns: _Latencies


class _JobReport(Struct):
    """One job of a report, or a group of jobs that fio reports as one."""

    read: _DirectionReport
    write: _DirectionReport
    trim: _DirectionReport
    error: _Count
    groupid: int = 0
    job_start: _Milliseconds = 0


class _FioReport(Struct):
    """What a report needs to have to be read without a look at each of its parts."""

    timestamp_ms: _Milliseconds
    jobs: Annotated[list[_JobReport], Meta(min_length=1)]
    version: str = field(name="fio version", default="")


_REPORT_DECODER: Final = msgspec.json.Decoder(_FioReport)


def parse_fio_document(text: bytes) -> FioDocument:
    """The document in `text`. Raises DocumentError with a sentence."""
    # A fleet's reports are a million numbers a second. What of one is odd is found by the slow way.
    with suppress(*DECODE_ERRORS, _UnusualReportError):
        return _fio_document_of_usual_report(text, _REPORT_DECODER.decode(text))
    return _fio_document_of_any_report(text, _parse_report(text))


class _UnusualReportError(Exception):
    """A report that has all that it needs, and is wrong or of a kind that is rare."""


def _fio_document_of_usual_report(text: bytes, report: _FioReport) -> FioDocument:
    """The document of a usual report. Raises _UnusualReportError for any other."""
    jobs = report.jobs
    if any(job.groupid != jobs[0].groupid for job in jobs):
        raise _UnusualReportError
    return FioDocument(
        version=report.version,
        report_real_ns=report.timestamp_ms * NS_PER_MS,
        job_start_ms=min((job.job_start for job in jobs if job.job_start), default=None),
        first_errno=next((job.error for job in jobs if job.error), 0),
        progress={
            Direction.READ: _direction_progress_of_jobs([job.read for job in jobs]),
            Direction.WRITE: _direction_progress_of_jobs([job.write for job in jobs]),
            Direction.TRIM: _direction_progress_of_jobs([job.trim for job in jobs]),
        },
        json_bytes=text,
    )


def _direction_progress_of_jobs(job_directions: Sequence[_DirectionReport]) -> DirectionProgress:
    """One direction of all jobs of the group. Raises _UnusualReportError without bins."""
    counts, ios, lat_sum = _NO_COUNTS, 0, 0.0
    for part in job_directions:
        bins = part.lat_ns.bins
        if bins:
            own = _counts_by_bin(bins)
            counts = own if counts is _NO_COUNTS else counts + own
            count = int(own.sum())
            ios += count
            lat_sum += part.lat_ns.mean * count
        elif part.lat_ns.sample_count:
            raise _UnusualReportError
    return DirectionProgress(
        counts,
        ios,
        sum(part.io_bytes for part in job_directions),
        lat_sum,
        max(part.runtime for part in job_directions),
    )


def _counts_by_bin(bins: Mapping[int, int]) -> Counts:
    """The dense bins, shape (BIN_COUNT,). Raises _UnusualReportError for bins that no fio has."""
    try:
        middles = np.fromiter(bins, dtype=np.int64, count=len(bins))
        printed = np.fromiter(bins.values(), dtype=np.int64, count=len(bins))
    except OverflowError:
        raise _UnusualReportError from None
    where = MIDDLE_NS.searchsorted(middles)
    if printed.min() < 0 or not (MIDDLE_NS.take(where, mode="clip") == middles).all():
        raise _UnusualReportError
    counts = np.zeros(BIN_COUNT, dtype=np.int64)
    counts[where] = printed
    return counts


def _fio_document_of_any_report(text: bytes, root: Mapping[str, Any]) -> FioDocument:
    """The document of the parsed report `root`."""
    jobs = _job_dicts(root)
    groups = {job.get("groupid", 0) for job in jobs}
    if len(groups) > 1:
        raise DocumentError(
            f"fio reported {len(groups)} groups, which ran apart; their counts are not added up"
        )
    starts = [int(_require_number(job, "job_start", MS_MAX)) for job in jobs if "job_start" in job]
    errors = [int(_require_number(job, "error")) for job in jobs]
    return FioDocument(
        version=str(root.get("fio version", "")),
        report_real_ns=int(_require_number(root, "timestamp_ms", MS_MAX)) * NS_PER_MS,
        job_start_ms=min((start for start in starts if start > 0), default=None),
        first_errno=next((error for error in errors if error), 0),
        progress={way: _direction_progress(jobs, way.key) for way in Direction},
        json_bytes=text,
    )


def _job_dicts(root: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    jobs = root.get("jobs")
    if not isinstance(jobs, list) or not jobs or not all(isinstance(job, dict) for job in jobs):
        raise DocumentError("fio printed a report without jobs")
    return jobs


def _checked_direction_totals(
    direction_dicts: Sequence[Mapping[str, Any]], counts_by_bin: Counts
) -> DirectionTotals:
    try:
        totals = direction_totals(direction_dicts, counts_by_bin)
    except OverflowError:
        raise DocumentError("fio printed a report with a number that is none") from None
    # Numbers are checked here, and not by a function that is called for each while they are read:
    # a report every second on a thousand hosts has a million of them.
    for name in _COUNTED:
        if not 0 <= getattr(totals, name) <= NUMBER_MAX:
            raise DocumentError(f"fio printed a report whose {name} cannot be counted")
    return totals


def _parse_report(text: bytes) -> Mapping[str, Any]:
    """The report; the quick and strict parser first, then the one that forgives fio's slips."""
    for parse in (msgspec.json.decode, _parse_despite_bad_utf8_and_nan, _parse_with_nan_as_null):
        try:
            root = parse(text)
        except (*DECODE_ERRORS, ValueError):
            continue
        if isinstance(root, dict):
            return root
    raise DocumentError(f"fio printed a report that is not JSON ({len(text)} bytes)")


def _parse_despite_bad_utf8_and_nan(text: bytes) -> object:
    return json.loads(text.decode("utf-8", "replace"), parse_constant=lambda _: None)


def _parse_with_nan_as_null(text: bytes) -> object:
    return _parse_despite_bad_utf8_and_nan(_NO_NUMBER.sub(b": null", text))


def _direction_progress(
    job_dicts: Sequence[Mapping[str, Any]], direction_key: str
) -> DirectionProgress:
    """One direction of all jobs of the group, which ran side by side."""
    counts = _NO_COUNTS
    moved, lat_sum, runtime = 0, 0.0, 0
    for job in job_dicts:
        json_dict = job.get(direction_key)
        if not isinstance(json_dict, dict):
            raise DocumentError(f"fio printed a report without '{direction_key}'")
        own, mean = _latency_counts_and_mean(json_dict, direction_key)
        if own is not _NO_COUNTS:
            counts = own if counts is _NO_COUNTS else counts + own
            lat_sum += mean * int(own.sum())
        moved += int(_require_number(json_dict, "io_bytes"))
        runtime = max(runtime, int(_require_number(json_dict, "runtime", MS_MAX)))
    return DirectionProgress(counts, int(counts.sum()), moved, lat_sum, runtime)


def _latency_counts_and_mean(
    json_dict: Mapping[str, Any], direction_key: str
) -> tuple[Counts, float]:
    """The dense bins of one job's direction and the mean latency in ns."""
    latency = json_dict.get("lat_ns")
    if not isinstance(latency, dict):
        raise DocumentError(f"fio printed no latencies for '{direction_key}'")
    bins = latency.get("bins")
    if bins is None or isinstance(bins, dict):
        where, printed = _bin_indices_and_counts(bins or {}, direction_key)
    else:
        raise DocumentError(f"fio printed no latency bins for '{direction_key}'")
    if not printed.size:
        samples = _require_number(latency, "N") if "N" in latency else 0
        if samples > 0:
            raise DocumentError(
                f"fio counted {samples} latencies for '{direction_key}' and printed no bins"
            )
        return _NO_COUNTS, 0.0
    if not printed.any():
        return _NO_COUNTS, 0.0
    counts = np.zeros(BIN_COUNT, dtype=np.int64)
    counts[where] = printed
    return counts, float(_require_number(latency, "mean"))


def _bin_indices_and_counts(
    bins: Mapping[str, object], direction_key: str
) -> tuple[Counts, Counts]:
    """The same of an object that was parsed. Raises DocumentError."""
    try:
        where = np.fromiter(
            map(_BIN_BY_MIDPOINT_TEXT.__getitem__, bins), dtype=np.int64, count=len(bins)
        )
        counts = None if bool in map(type, bins.values()) else _to_int64_array(bins.values())
    except (KeyError, ValueError):
        counts = None
    if counts is None:
        raise DocumentError(f"fio printed latencies of '{direction_key}' in bins that no fio has")
    return where, counts


def _to_int64_array(values: Collection[object]) -> Counts:
    """The values as an array; ValueError for a fraction or more than 64 bits, which numpy bends.

    Packed first, which refuses both and is three times as quick as numpy's own look at each.
    """
    try:
        return np.frombuffer(struct.pack(f"{len(values)}q", *values), dtype=np.int64)
    except struct.error:
        raise ValueError("not whole numbers of 64 bits") from None


_NO_COUNTS.setflags(write=False)


def _require_number(
    json_dict: Mapping[str, Any], key: str, max_value: int = NUMBER_MAX
) -> int | float:
    value = json_dict.get(key)
    if isinstance(value, int | float) and 0 <= value <= max_value:
        return value
    if isinstance(value, float) and value.is_integer():
        value = int(value)  # the parser makes a float of what is beyond 64 bits
    shown = repr(value)[:SHOWN_LIMIT]
    raise DocumentError(f"fio printed a report whose '{key}' is {shown}, not a number it can be")
