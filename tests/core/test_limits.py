"""What comes from outside, driven to each bound and past it."""

from __future__ import annotations

import ast
import asyncio
import inspect
import os
import struct
import tracemalloc
from collections.abc import Callable, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import ValidationError, convert

from iolab.core import limits
from iolab.core.generator import GeneratorTotals
from iolab.core.toml import read_regular_file
from iolab.core.workload import Direction
from iolab.errors import HostError
from iolab.hosts.answers import (
    ByeAnswer,
    DirectionTraceAnswer,
    Errors,
    Leftovers,
    ScratchAnswer,
    read_answer,
)
from iolab.hosts.channel import ProtocolError, read_frame
from iolab.hosts.message import Message
from iolab.importers.files import ForeignFile, collect_files
from iolab.loads.fileio.engines.native_reader import (
    LineError,
    NativeReader,
    parse_totals,
    require_count,
)
from iolab.record import field_names
from iolab.text import excerpt
from iolab.units import NS_PER_S

LONGEST_NS = int(limits.RUN_S_MAX) * NS_PER_S
MOST_S = st.sampled_from([1.0, 3600.0, limits.RUN_S_MAX])


@given(MOST_S, st.integers(1000, 10**9), st.integers(2, 50))
def test_a_series_may_last_as_long_as_its_run_and_no_longer(
    most_s: float, beyond_ns: int, count: int
) -> None:
    first_ns = 1_700_000_000 * NS_PER_S
    step_ns = int(most_s) * NS_PER_S // count
    ends = first_ns + step_ns * np.arange(1, count + 1, dtype=np.int64)
    spans = np.full(count, step_ns, dtype=np.int64)
    assert not limits.interval_series_fault(ends, spans, most_s)
    late = ends.copy()
    late[-1] += int(most_s) * NS_PER_S + beyond_ns
    assert limits.interval_series_fault(late, spans, most_s)
    long = spans.copy()
    long[0] = int(most_s) * NS_PER_S + beyond_ns
    assert limits.interval_series_fault(ends, long, most_s)
    negative = spans.copy()
    negative[0] = -beyond_ns
    assert limits.interval_series_fault(ends, negative, most_s)


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
        return _answer(Leftovers, **{**NOTHING_LEFT, name: [one] * (most + past)})

    return case


def _remnant(reason: int, count: int = 1) -> Outcome:
    one = {"kind": "file", "name": "/x", "reason": "x" * reason}
    return _answer(ByeAnswer, left=[one] * count)


def _path(past: int) -> Outcome:
    return _answer(ScratchAnswer, dir="/" * (limits.PATH_CHARACTERS_MAX + past))


def _word(past: int) -> Outcome:
    command = "x" * (limits.WORD_CHARACTERS_MAX + past)
    return _answer(Leftovers, **{**NOTHING_LEFT, "processes": [{"pid": 1, "command": command}]})


def _adapted(kind: Any, value: object) -> Outcome:
    try:
        convert(value, kind)
    except ValidationError as fault:
        return False, str(fault)
    return True, ""


def _error_kinds(past: int) -> Outcome:
    return _adapted(Errors, {f"E{number}": 1 for number in range(limits.ERROR_KINDS_MAX + past)})


def _traced(name: str, one: object, most: int) -> Case:
    whole = dict.fromkeys(field_names(DirectionTraceAnswer), 0)
    lists: dict[str, object] = {"sizes": [], "sectors": [], "latencies": []}

    def case(past: int) -> Outcome:
        return _answer(DirectionTraceAnswer, **{**whole, **lists, name: [one] * (most + past)})

    return case


def _line(past: int) -> Outcome:
    reader = NativeReader([Direction.READ], 1)
    reader.feed(b" " * (limits.LINE_BYTES_MAX + past))
    faults = reader.finish().faults
    return "without an end" not in " ".join(faults), " ".join(faults)


def _number(past: int) -> Outcome:
    try:
        require_count({"ios": limits.NUMBER_MAX + past}, "ios")
    except LineError as fault:
        return False, str(fault)
    return True, ""


def _generator(head: Mapping[str, Any], end: Mapping[str, Any]) -> GeneratorTotals:
    whole = {"measured_ns": 1, "drain_ns": 0, **end}
    generator = parse_totals(head, whole, [], 1).generator
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


def _wrong_blocks(past: int) -> Outcome:
    first = [str(number) for number in range(limits.WRONG_BLOCKS_MAX + past)]
    verify = _generator({}, {"verify": {"checked": 1, "first": first}}).verify
    assert verify is not None
    return list(verify.first) == first, ""


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


def _files(past: int) -> Outcome:
    def lay(folder: Path) -> None:
        for number in range(limits.FILES_MAX + past):
            (folder / str(number)).touch()

    return _collected(lay)


def _entries(past: int) -> Outcome:
    def lay(folder: Path) -> None:
        (folder / "file").touch()
        for number in range(limits.ENTRIES_MAX - 1 + past):
            os.mkfifo(folder / str(number))  # Seen, and no file to read.

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
    "REASON_CHARACTERS_MAX": lambda past: _remnant(limits.REASON_CHARACTERS_MAX + past),
    "REMNANTS_MAX": lambda past: _remnant(1, limits.REMNANTS_MAX + past),
    "WORD_CHARACTERS_MAX": _word,
    "LISTED_MAX": _left("processes", ORPHAN, limits.LISTED_MAX),
    "FOLDERS_MAX": _left("folders", FOLDER, limits.FOLDERS_MAX),
    "FOREIGN_FOLDERS_MAX": _left("foreign_folders", "/x", limits.FOREIGN_FOLDERS_MAX),
    "ERROR_KINDS_MAX": _error_kinds,
    "TRACED_SIZES_MAX": _traced("sizes", (1, 1), limits.TRACED_SIZES_MAX),
    "TRACED_SECTORS_MAX": _traced("sectors", 1, limits.TRACED_SECTORS_MAX),
    "LINE_BYTES_MAX": _line,
    "NUMBER_MAX": _number,
    "SENTENCE_CHARACTERS_MAX": _sentence,
    "NOTES_MAX": _notes,
    "RETRY_KINDS_MAX": _retries,
    "WRONG_BLOCKS_MAX": _wrong_blocks,
    "FILE_BYTES_MAX": _file_bytes,
    "FILES_MAX": _files,
    "TOTAL_BYTES_MAX": _total,
    "LINES_MAX": _lines,
    "SETTING_CHARACTERS_MAX": _setting,
}
CUT = {
    *("SENTENCE_CHARACTERS_MAX", "NOTES_MAX", "RETRY_KINDS_MAX", "WRONG_BLOCKS_MAX"),
    *("LINES_MAX", "SETTING_CHARACTERS_MAX"),
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
