"""What comes from outside, driven to each bound and past it."""

from __future__ import annotations

import ast
import asyncio
import base64
import inspect
import json
import os
import struct
import tracemalloc
import zlib
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st
from msgspec import ValidationError, convert

from iolab.core import limits
from iolab.core.compressed import decompress_frames
from iolab.core.generator import GeneratorTotals
from iolab.core.libraries import LibraryUse, LoadedLibrary
from iolab.core.regular_file import read_regular_file
from iolab.core.workload import Direction
from iolab.errors import HostError
from iolab.guests.hosts import parse_cpu_list
from iolab.guests.qemu import FlowControl, QmpClient
from iolab.hosts.answers import (
    ByeAnswer,
    DirectionTraceAnswer,
    DrivesAnswer,
    Errors,
    HostLeftovers,
    ScratchAnswer,
    read_answer,
)
from iolab.hosts.channel import ProtocolError, read_frame
from iolab.hosts.engine_lines import LineError, require_count
from iolab.hosts.engine_totals import parse_engine_totals
from iolab.hosts.message import HostLostError, Message
from iolab.importers.files import ForeignFile, collect_files
from iolab.loads.fileio.engines.fio_output import (
    DocumentError,
    JsonDocumentSplitter,
    parse_fio_document,
)
from iolab.loads.fileio.engines.native_reader import NativeLineReader
from iolab.loads.keyvalue.cassandra.tools import RowsReply, parse_tool_reply
from iolab.loads.keyvalue.db_bench.output import HistogramParser, parse_db_bench_output
from iolab.loads.keyvalue.db_bench.run import parse_progress, parse_report_rows
from iolab.loads.keyvalue.workload import KeyOperation
from iolab.loads.keyvalue.ycsb.hdr_log import (
    HdrLogError,
    decode_compressed_histogram,
    parse_hdr_log,
)
from iolab.loads.keyvalue.ycsb.output import YcsbStatusReader, parse_ycsb_output
from iolab.loads.metadata.mdtest_output import parse_mdtest_output
from iolab.record import field_names
from iolab.study.file import ObjectStoreTable
from iolab.text import excerpt
from iolab.units import NS_PER_S
from tests.recorded import recorded

LONGEST_NS = int(limits.RUN_S_MAX) * NS_PER_S
MOST_S = st.sampled_from([1.0, 3600.0, limits.RUN_S_MAX])


@given(MOST_S, st.integers(1000, 10**9), st.integers(2, 50))
def test_a_series_may_last_as_long_as_its_run_and_no_longer(
    max_duration_s: float, beyond_ns: int, count: int
) -> None:
    first_ns = 1_700_000_000 * NS_PER_S
    step_ns = int(max_duration_s) * NS_PER_S // count
    ends = first_ns + step_ns * np.arange(1, count + 1, dtype=np.int64)
    spans = np.full(count, step_ns, dtype=np.int64)
    assert not limits.interval_series_fault(ends, spans, max_duration_s)
    late = ends.copy()
    late[-1] += int(max_duration_s) * NS_PER_S + beyond_ns
    assert limits.interval_series_fault(late, spans, max_duration_s)
    long = spans.copy()
    long[0] = int(max_duration_s) * NS_PER_S + beyond_ns
    assert limits.interval_series_fault(ends, long, max_duration_s)
    negative = spans.copy()
    negative[0] = -beyond_ns
    assert limits.interval_series_fault(ends, negative, max_duration_s)


@given(st.integers(0, 2**63 - 1))
def test_any_moment_and_length_of_an_interval_is_accepted_or_has_a_sentence(number: int) -> None:
    ends = np.array([number], dtype=np.int64)
    message = limits.interval_series_fault(ends, ends)
    assert bool(message) == (number > LONGEST_NS)
    assert limits.timestamp_fault(number) == "" or number > limits.MOMENT_NS_MAX


@pytest.mark.parametrize("counts", [[limits.COUNT_MAX + 1], [limits.COUNT_MAX, 1], [-1]])
def test_counts_beyond_what_tables_hold_are_refused(counts: list[int]) -> None:
    assert limits.count_fault("operations", counts)
    assert not limits.count_fault("operations", [limits.COUNT_MAX])


@pytest.mark.parametrize("seconds", [-1.0, limits.RUN_S_MAX * 1.001, 1e18, float("nan")])
def test_durations_beyond_their_bound_are_refused(seconds: float) -> None:
    assert limits.duration_fault(seconds)
    assert not limits.duration_fault(limits.RUN_S_MAX)


# Every bound of the module, at it and past it: what was made of the claim, and what was said.

Outcome = tuple[bool, str]
"""Whether it was taken as it came, and the sentence that refuses it; what is cut has none."""

Case = Callable[[int], Outcome]
"""What comes of a claim so much past its bound."""


def _message(message: str) -> Outcome:
    return not message, message


def _duration(past: int) -> Outcome:
    return _message(limits.duration_fault(limits.RUN_S_MAX + past))


def _slack(past: int) -> Outcome:
    end = np.array([1_000 * NS_PER_S + int(limits.CLOCK_SLACK_S) * NS_PER_S + past], dtype=np.int64)
    span = np.array([int(limits.CLOCK_SLACK_S) * NS_PER_S + past], dtype=np.int64)
    return _message(limits.interval_series_fault(end, span, limits.CLOCK_SLACK_S))


def _intervals(past: int) -> Outcome:
    ends = np.full(limits.INTERVALS_MAX + past, 5, dtype=np.int64)
    return _message(limits.interval_series_fault(ends, np.ones_like(ends)))


def _count(past: int) -> Outcome:
    return _message(limits.count_fault("bytes", [limits.COUNT_MAX + past]))


def _moment(past: int) -> Outcome:
    return _message(limits.timestamp_fault(limits.MOMENT_NS_MAX + past))


def _frame(header_bytes: int, payload_bytes: int) -> Outcome:
    async def body() -> Outcome:
        reader = asyncio.StreamReader(limit=16 << 20)
        reader.feed_data(struct.pack("<II", header_bytes, payload_bytes))
        reader.feed_data(b'{"a":"' + b"x" * (header_bytes - 8) + b'"}' + b"x" * payload_bytes)
        reader.feed_eof()
        try:
            return await read_frame(reader) is not None, ""
        except ProtocolError as fault:
            return False, str(fault)

    return asyncio.run(body())


def _header(past: int) -> Outcome:
    return _frame(limits.HEADER_BYTES_MAX + past, 0)


def _payload(past: int) -> Outcome:
    return _frame(8, limits.PAYLOAD_BYTES_MAX + past)


def _answer(model: type[Any], **fields: object) -> Outcome:
    try:
        read_answer("h", model, Message("answer", fields, b""))
    except HostError as fault:
        return False, fault.message
    return True, ""


NOTHING_LEFT: dict[str, list[object]] = {
    name: [] for name in ("processes", "groups", "folders", "loops", "agents", "faults")
}


def _left(name: str, one: object, most: int) -> Case:
    def case(past: int) -> Outcome:
        return _answer(HostLeftovers, **{**NOTHING_LEFT, name: [one] * (most + past)})

    return case


def _leftover(reason: int, count: int = 1) -> Outcome:
    one = {"kind": "file", "name": "/x", "reason": "x" * reason}
    return _answer(ByeAnswer, left=[one] * count)


def _path(past: int) -> Outcome:
    return _answer(ScratchAnswer, dir="/" * (limits.PATH_CHARACTERS_MAX + past))


def _word(past: int) -> Outcome:
    command = "x" * (limits.WORD_CHARACTERS_MAX + past)
    return _answer(HostLeftovers, **{**NOTHING_LEFT, "processes": [{"pid": 1, "command": command}]})


def _adapted(kind: Any, value: object) -> Outcome:
    try:
        convert(value, kind)
    except ValidationError as fault:
        return False, str(fault)
    return True, ""


def _error_kinds(past: int) -> Outcome:
    return _adapted(Errors, {f"E{number}": 1 for number in range(limits.ERROR_KINDS_MAX + past)})


def _libraries(past: int) -> Outcome:
    one = {"path": "/x.so", "source": "mapped"}
    count = limits.LIBRARIES_MAX + past
    return _answer(LibraryUse, processes=1, files=1, spent_ns=1, libraries=[one] * count)


def _library_exports(past: int) -> Outcome:
    exports = ["fsync"] * (limits.LIBRARY_EXPORTS_MAX + past)
    return _answer(LoadedLibrary, path="/x.so", source="mapped", exports=exports)


def _drive(**fields: object) -> dict[str, object]:
    return {"device": "nvme0n1", **fields}


def _log_page(past: int) -> Outcome:
    page = {"page": 2, "hex": "0" * (limits.LOG_PAGE_CHARACTERS_MAX + past)}
    return _answer(DrivesAnswer, drives=[_drive(pages=[page])])


def _log_pages(past: int) -> Outcome:
    pages = [{"page": 2}] * (limits.LOG_PAGES_MAX + past)
    return _answer(DrivesAnswer, drives=[_drive(pages=pages)])


def _drives(past: int) -> Outcome:
    return _answer(DrivesAnswer, drives=[_drive()] * (limits.DRIVES_MAX + past))


def _traced(name: str, one: object, most: int) -> Case:
    whole = dict.fromkeys(field_names(DirectionTraceAnswer), 0)
    lists: dict[str, object] = {"sizes": [], "sectors": [], "latencies": []}

    def case(past: int) -> Outcome:
        return _answer(DirectionTraceAnswer, **{**whole, **lists, name: [one] * (most + past)})

    return case


def _line(past: int) -> Outcome:
    reader = NativeLineReader([Direction.READ], 1)
    reader.feed(b" " * (limits.LINE_BYTES_MAX + past))
    faults = reader.finish().faults
    return "without an end" not in " ".join(faults), " ".join(faults)


def _endpoints(past: int) -> Outcome:
    urls = [f"http://s{number}:9000" for number in range(limits.ENDPOINTS_MAX + past)]
    try:
        ObjectStoreTable.model_validate({"endpoint": urls, "bucket": "bucket"})
    except ValueError as fault:
        return False, str(fault)
    return True, ""


def _number(past: int) -> Outcome:
    try:
        require_count({"ios": limits.NUMBER_MAX + past}, "ios")
    except LineError as fault:
        return False, str(fault)
    return True, ""


def _generator(head: Mapping[str, Any], end: Mapping[str, Any]) -> GeneratorTotals:
    whole = {"measured_ns": 1, "drain_ns": 0, **end}
    generator = parse_engine_totals(head, whole, [], 1).generator
    assert generator is not None
    return generator


def _sentence(past: int) -> Outcome:
    text = "x" * (limits.SENTENCE_CHARACTERS_MAX + past)
    return _generator({"clock": text}, {}).clock == text, ""


def _notes(past: int) -> Outcome:
    notes = [str(number) for number in range(limits.NOTES_MAX + past)]
    return list(_generator({"notes": notes}, {}).notes) == notes, ""


def _retries(past: int) -> Outcome:
    count = limits.RETRY_KINDS_MAX + past
    retries = {str(number): 1 for number in range(count)}
    return len(_generator({}, {"retries": retries}).retries) == count, ""


def _slow_ios(past: int) -> Outcome:
    one = dict.fromkeys(("at_ns", "latency_ns", "service_ns", "offset", "bytes"), 1)
    rows = [{**one, "do": "read", "path": "f"}] * (limits.SLOW_IOS_MAX + past)
    return len(_generator({}, {"slow_ios": rows}).slow_ios) == len(rows), ""


def _wrong_blocks(past: int) -> Outcome:
    first = [str(number) for number in range(limits.WRONG_BLOCKS_MAX + past)]
    verify = _generator({}, {"verify": {"checked": 1, "first": first}}).verify
    assert verify is not None
    return list(verify.first_mismatch_texts) == first, ""


def _setting(past: int) -> Outcome:
    text = "x" * (limits.SETTING_CHARACTERS_MAX + past)
    return excerpt(text, limits.SETTING_CHARACTERS_MAX) == text, ""


def _collected(lay: Callable[[Path], object]) -> Outcome:
    with TemporaryDirectory() as folder:
        lay(Path(folder))
        faults = " ".join(map(str, collect_files([Path(folder)]).faults))
    return not faults, faults


def _sized(path: Path, size_bytes: int) -> None:
    with path.open("wb") as file:
        file.truncate(size_bytes)


def _file_bytes(past: int) -> Outcome:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "file"
        _sized(path, limits.FILE_BYTES_MAX + past)
        try:
            return len(read_regular_file(path, limits.FILE_BYTES_MAX)) > 0, ""
        except OSError as fault:
            return False, str(fault)


def _unpacked(past: int) -> Outcome:
    pieces = zstandard.ZstdCompressor().compressobj()
    frames = b"".join(
        pieces.compress(bytes(1 << 20)) for _ in range(limits.UNPACKED_BYTES_MAX >> 20)
    )
    frames += pieces.compress(bytes(past)) + pieces.flush()
    try:
        return len(decompress_frames(frames, limits.UNPACKED_BYTES_MAX)) > 0, ""
    except OSError as fault:
        return False, str(fault)


def _files(past: int) -> Outcome:
    def lay(folder: Path) -> None:
        for number in range(limits.FILES_MAX + past):
            (folder / str(number)).touch()

    return _collected(lay)


def _entries(past: int) -> Outcome:
    def lay(folder: Path) -> None:
        (folder / "file").touch()
        os.mkfifo(folder / "fifo")  # Seen, and no file to read; a name of it is as good as another.
        for number in range(limits.ENTRIES_MAX - 2 + past):
            os.link(f"{folder}/fifo", f"{folder}/{number}")

    return _collected(lay)


def _total(past: int) -> Outcome:
    def lay(folder: Path) -> None:
        whole, rest = divmod(limits.TOTAL_BYTES_MAX + past, limits.FILE_BYTES_MAX)
        for number, size in enumerate([limits.FILE_BYTES_MAX] * whole + [rest] * bool(rest)):
            _sized(folder / str(number), size)

    return _collected(lay)


def _nested(past: int) -> Outcome:
    def lay(folder: Path) -> None:
        for _ in range(limits.NESTED_MAX - 1 + past):  # The folder that is named is the first.
            folder = folder / "d"
            folder.mkdir()
        (folder / "file").write_text("x")

    return _collected(lay)


def _lines(past: int) -> Outcome:
    count = limits.LINES_MAX + past
    with TemporaryDirectory() as folder:
        path = Path(folder) / "file"
        path.write_bytes(b"\n" * count)
        return len(ForeignFile(path).lines) == count, ""


# Streams and logs of programs.

MIB = 1 << 20


def _without(fault: str, faults: Iterable[str]) -> Outcome:
    """Taken unless a fault of the reading has these words, which is then the sentence."""
    return _message(" ".join(one for one in faults if fault in one))


def _stream(past: int) -> Outcome:
    raw = (b"x" * (MIB - 1) + b"\n") * (limits.STREAM_BYTES_MAX // MIB) + b"x" * past
    outcomes = [
        _without("longer", parse_ycsb_output(raw, b"").faults),
        _without("longer", parse_hdr_log(raw).faults),
    ]
    assert len(set(map(bool, outcomes))) == 1
    return outcomes[0]


def _error_lines(past: int) -> Outcome:
    count = limits.ERROR_LINES_MAX + past
    lines = "".join(f"ERROR: {number}\n" for number in range(count)).encode()
    ycsb = "".join(f"Error: {number}\n" for number in range(count)).encode()
    kept = [
        len(parse_mdtest_output(lines).messages),
        len(parse_db_bench_output(lines, b"").messages),
        len(parse_ycsb_output(ycsb, b"").messages),
    ]
    return kept == [count] * len(kept), ""


def _logged_seconds(past: int) -> Outcome:
    count = limits.LOGGED_SECONDS_MAX + past
    report = b"secs_elapsed,interval_qps\n" + b"1,1\n" * count
    return len(parse_report_rows(report) or ()) == count, ""


def _logged_values(past: int) -> Outcome:
    whole, rest = divmod(limits.LOGGED_VALUES_MAX, HDR_VALUES)
    log = parse_hdr_log(hdr_log(HDR_VALUES, whole) + hdr_log(rest + past, 1))
    return _without("different latencies", log.faults)


def hdr_log(values: int, lines: int) -> bytes:
    """A log with so many intervals, each of which claims so many latencies, one of each."""
    head = struct.pack(">IIIIQQd", 0x1C849313, values, 0, 3, 1, 2**31 - 1, 1.0)
    content = zlib.compress(head + b"\x02" * values)
    packed = base64.b64encode(struct.pack(">II", 0x1C849314, len(content)) + content)
    return b"#[Logging for: READ]\n" + (b"1.0,1.0,1.0," + packed + b"\n") * lines


HDR_VALUES = 16 << 10
"""Latencies of one interval: up to 17 s of three digits."""


def _histogram(past: int) -> Outcome:
    size = limits.HISTOGRAM_BYTES_MAX - 40 + past
    head = struct.pack(">IIIIQQd", 0x1C849313, size, 0, 3, 1, 2**31 - 1, 1.0)
    content = zlib.compress(head + bytes(size))
    return _decoded(struct.pack(">II", 0x1C849314, len(content)) + content, "unpacks to more")


def _latency(past: int) -> Outcome:
    head = struct.pack(">IIIIQQd", 0x1C849313, 0, 0, 3, limits.LATENCY_US_MAX + past, 2**62, 1.0)
    content = zlib.compress(head)
    return _decoded(struct.pack(">II", 0x1C849314, len(content)) + content, "digits from")


def _decoded(packed: bytes, fault: str) -> Outcome:
    try:
        decode_compressed_histogram(packed)
    except HdrLogError as refusal:
        return _without(fault, [str(refusal)])
    return True, ""


def _progress_line(past: int) -> Outcome:
    head, end = b"2026-11-21 02:08:25:628 10 sec: 7 operations; ", b"0 current ops/sec;"
    rate = b" " * (limits.PROGRESS_LINE_BYTES_MAX - len(head + end) + past)
    line = head + b"0.5 current ops/sec;" + rate
    line = line[: limits.PROGRESS_LINE_BYTES_MAX + past]
    return bool(YcsbStatusReader().feed(line + b"\n")), ""


def _reply(past: int) -> Outcome:
    reply = b'{"rows": 1, "ranges": 1, "sample": 1}'
    line = reply + b" " * (limits.REPLY_BYTES_MAX - len(reply)) + b"x" * past
    outcome = asyncio.run(_monitor_reply(limits.REPLY_BYTES_MAX + past))
    assert outcome[0] == (past == 0)
    parse_tool_reply(line, RowsReply, "h")  # Only so much of it is read.
    return outcome


async def _monitor_reply(size: int) -> Outcome:
    reader = asyncio.StreamReader(limit=2 * limits.REPLY_BYTES_MAX)
    greeting = b'{"QMP": {"version": {"qemu": {"major": 8, "minor": 0}}}}'
    reader.feed_data(greeting + b" " * (size - len(greeting) - 1) + b"\n")
    reader.feed_eof()
    try:
        await QmpClient.open("g", reader, _Deaf(), 5.0)
    except HostLostError as lost:
        return "what is not QMP" not in lost.message, lost.message
    return True, ""


class _Deaf:
    """Takes what is written to it."""

    def write(self, data: bytes, /) -> None:
        """Nobody reads it."""

    async def drain(self) -> None:
        """Nothing waits."""

    def close(self) -> None:
        """Nothing is open."""


def _document(past: int) -> Outcome:
    splitter = JsonDocumentSplitter()
    rest = b" " * (limits.DOCUMENT_BYTES_MAX - 3 + past)
    splitter.feed(b"{\n ")
    splitter.feed(rest)
    return bool(splitter.feed(b"\n}\n")), ""


def _text_lines(past: int) -> Outcome:
    count = limits.TEXT_LINES_MAX + past
    splitter = JsonDocumentSplitter()
    splitter.feed("".join(f"word {number}\n" for number in range(count)).encode() + b"}\n")
    return len(splitter.message_lines) == count, ""


def _text_line(past: int) -> Outcome:
    line = "x" * (limits.TEXT_LINE_BYTES_MAX + past)
    splitter = JsonDocumentSplitter()
    splitter.feed(line.encode() + b"\n}\n")
    return splitter.message_lines == [line], ""


def _milliseconds(past: int) -> Outcome:
    report, _ = json.JSONDecoder().raw_decode(recorded("fio/randread-3.33.txt").decode())
    report["timestamp_ms"] = limits.MS_MAX + past
    try:
        parse_fio_document(json.dumps(report).encode())
    except DocumentError as fault:
        return _without("timestamp_ms", [str(fault)])
    return True, ""


def _mdtest_output(past: int) -> Outcome:
    return _without("more than", parse_mdtest_output(b"x" * (4 * MIB + past)).faults)


def _iterations(past: int) -> Outcome:
    count = limits.ITERATIONS_MAX + past
    output = parse_mdtest_output(f"SUMMARY rate: (of {count} iterations)\n".encode())
    return _without("iterations", output.faults)


def _printed_bins(past: int) -> Outcome:
    count = limits.PRINTED_BINS_MAX + past
    parser = HistogramParser(KeyOperation.READ)
    for number in range(count):
        assert parser.take_line(f"( {number}, {number + 1} ] 1 0.1%")
    return _message(" ".join(parser.faults))


def _tickers(past: int) -> Outcome:
    count = limits.TICKERS_MAX + past
    lines = "".join(f"rocksdb.t{number} COUNT : 1\n" for number in range(count))
    raw = f"STATISTICS:\n{lines}".encode()
    return len(parse_db_bench_output(raw, b"").tickers) == count, ""


def _results(past: int) -> Outcome:
    raw = b"x : 1.0 micros/op 5 ops/sec;\n" * (limits.RESULTS_MAX + past)
    return _without("results", parse_db_bench_output(raw.replace(b"x", b"xx"), b"").faults)


def _progress_lines(past: int) -> Outcome:
    return _progress_lines_taken() == limits.PROGRESS_LINES_MAX + past, ""


@cache
def _progress_lines_taken() -> int:
    """Of one more than are read, which tells both: half a million are read in seconds."""
    line = (
        "2026/11/21-02:08:25 ... thread 0: (1,1) ops and (1.0,1.0) ops/second in (1.0,1.0) seconds"
    )
    return len(parse_progress(line for _ in range(limits.PROGRESS_LINES_MAX + 1)))


def _sections(past: int) -> Outcome:
    count = limits.SECTIONS_MAX + past
    raw = "".join(f"[S{number}], Operations, 1\n" for number in range(count)).encode()
    return len(parse_ycsb_output(raw, b"").sections) == count, ""


def _statuses(past: int) -> Outcome:
    count = limits.STATUSES_MAX + past
    raw = "".join(f"[READ], Return=S{number}, 1\n" for number in range(count)).encode()
    (section,) = parse_ycsb_output(raw, b"").sections
    return len(section.return_counts) == count, ""


def _levels(past: int) -> Outcome:
    count = limits.LEVELS_MAX + past
    rows = "".join(f"{level} 1 1\n" for level in range(count))
    raw = f"Level Files Size(MB)\n{rows}".encode()
    return len(parse_db_bench_output(raw, b"").levels) == count, ""


def _unread(past: int) -> Outcome:
    return asyncio.run(_held_back(limits.UNREAD_BYTES_MAX + past))


async def _held_back(size: int) -> Outcome:
    flow = FlowControl()
    flow.pause_reading()
    return not flow.count_unread_and_is_over_limit(size), ""


def _cpus(past: int) -> Outcome:
    try:
        parse_cpu_list(f"0-{limits.CPUS_MAX - 1 + past}")
    except ValueError as fault:
        return False, str(fault)
    return True, ""


ORPHAN = {"pid": 1, "command": ""}
FOLDER = {"dir": "/x", "owner": "", "bytes": 0}
CASES: dict[str, Case] = {
    "RUN_S_MAX": _duration,
    "CLOCK_SLACK_S": _slack,
    "INTERVALS_MAX": _intervals,
    "COUNT_MAX": _count,
    "MOMENT_NS_MAX": _moment,
    "NESTED_MAX": _nested,
    "ENTRIES_MAX": _entries,
    "HEADER_BYTES_MAX": _header,
    "PAYLOAD_BYTES_MAX": _payload,
    "PATH_CHARACTERS_MAX": _path,
    "REASON_CHARACTERS_MAX": lambda past: _leftover(limits.REASON_CHARACTERS_MAX + past),
    "LEFTOVERS_MAX": lambda past: _leftover(1, limits.LEFTOVERS_MAX + past),
    "WORD_CHARACTERS_MAX": _word,
    "LISTED_MAX": _left("processes", ORPHAN, limits.LISTED_MAX),
    "FOLDERS_MAX": _left("folders", FOLDER, limits.FOLDERS_MAX),
    "FOREIGN_FOLDERS_MAX": _left("foreign_folders", "/x", limits.FOREIGN_FOLDERS_MAX),
    "ERROR_KINDS_MAX": _error_kinds,
    "TRACED_SIZES_MAX": _traced("sizes", (1, 1), limits.TRACED_SIZES_MAX),
    "TRACED_SECTORS_MAX": _traced("sectors", 1, limits.TRACED_SECTORS_MAX),
    "LOG_PAGE_CHARACTERS_MAX": _log_page,
    "LOG_PAGES_MAX": _log_pages,
    "DRIVES_MAX": _drives,
    "LIBRARIES_MAX": _libraries,
    "LIBRARY_EXPORTS_MAX": _library_exports,
    "SLOW_IOS_MAX": _slow_ios,
    "ENDPOINTS_MAX": _endpoints,
    "LINE_BYTES_MAX": _line,
    "NUMBER_MAX": _number,
    "SENTENCE_CHARACTERS_MAX": _sentence,
    "NOTES_MAX": _notes,
    "RETRY_KINDS_MAX": _retries,
    "WRONG_BLOCKS_MAX": _wrong_blocks,
    "FILE_BYTES_MAX": _file_bytes,
    "UNPACKED_BYTES_MAX": _unpacked,
    "FILES_MAX": _files,
    "TOTAL_BYTES_MAX": _total,
    "LINES_MAX": _lines,
    "SETTING_CHARACTERS_MAX": _setting,
    "STREAM_BYTES_MAX": _stream,
    "ERROR_LINES_MAX": _error_lines,
    "LOGGED_SECONDS_MAX": _logged_seconds,
    "LOGGED_VALUES_MAX": _logged_values,
    "PROGRESS_LINE_BYTES_MAX": _progress_line,
    "REPLY_BYTES_MAX": _reply,
    "DOCUMENT_BYTES_MAX": _document,
    "TEXT_LINES_MAX": _text_lines,
    "TEXT_LINE_BYTES_MAX": _text_line,
    "MS_MAX": _milliseconds,
    "MDTEST_OUTPUT_BYTES_MAX": _mdtest_output,
    "ITERATIONS_MAX": _iterations,
    "PRINTED_BINS_MAX": _printed_bins,
    "TICKERS_MAX": _tickers,
    "RESULTS_MAX": _results,
    "PROGRESS_LINES_MAX": _progress_lines,
    "SECTIONS_MAX": _sections,
    "STATUSES_MAX": _statuses,
    "HISTOGRAM_BYTES_MAX": _histogram,
    "LATENCY_US_MAX": _latency,
    "LEVELS_MAX": _levels,
    "UNREAD_BYTES_MAX": _unread,
    "CPUS_MAX": _cpus,
}
CUT = {
    *(
        "SENTENCE_CHARACTERS_MAX",
        "NOTES_MAX",
        "RETRY_KINDS_MAX",
        "WRONG_BLOCKS_MAX",
        "SLOW_IOS_MAX",
    ),
    *("LINES_MAX", "SETTING_CHARACTERS_MAX", "ERROR_LINES_MAX", "LOGGED_SECONDS_MAX"),
    *("PROGRESS_LINE_BYTES_MAX", "DOCUMENT_BYTES_MAX", "TEXT_LINES_MAX", "TICKERS_MAX"),
    *("TEXT_LINE_BYTES_MAX", "PROGRESS_LINES_MAX", "SECTIONS_MAX", "STATUSES_MAX"),
    *("LEVELS_MAX", "UNREAD_BYTES_MAX"),
}
"""What is beyond these is left out, and the rest is used."""

MEMORY_BYTES = 512 << 20
"""The largest lists and files at their bound."""


def test_every_bound_has_a_case() -> None:
    written = ast.parse(inspect.getsource(limits)).body
    bounds = {one.target.id for one in written if isinstance(one, ast.AnnAssign)}  # type: ignore[union-attr]
    assert set(CASES) == bounds - {"REFUSED_HINT"}


@pytest.mark.parametrize("name", CASES)
def test_what_is_at_a_bound_is_taken_and_what_is_past_it_is_not(name: str) -> None:
    tracemalloc.start()
    try:
        assert CASES[name](0)[0]
        is_taken, sentence = CASES[name](1)
        assert tracemalloc.get_traced_memory()[1] < MEMORY_BYTES
    finally:
        tracemalloc.stop()
    assert not is_taken
    assert bool(sentence) == (name not in CUT)
