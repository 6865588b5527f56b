"""Recorded I/O: fio's iolog (version 2 and 3) and blkparse's text, read, scaled and sent to a host.

Of an iolog of version 3 times are microseconds, of version 2 each `wait` is milliseconds after the
begin. Of blkparse's text what was queued (Q) is taken, or what was issued (D) where nothing was.
"""

from __future__ import annotations

import hashlib
import re
from abc import ABC, abstractmethod
from array import array
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import ClassVar, Final

import numpy as np
from numpy.typing import NDArray

from iolab.core.compressed import ZSTD_MAGIC, decompress_frames
from iolab.record import Record
from iolab.text import excerpt

TRACE_BYTES_MAX: Final = 512 << 20
"""Of a file; a million I/Os are 40 MB of an iolog, or 80 MB of blkparse's text."""

TRACE_IOS_MAX: Final = 4_000_000
"""I/Os of a trace: 96 MB that each host is sent before a run."""

IO_BYTES_MAX: Final = 64 << 20
"""Of one I/O; the kernel's own limit of a request is below."""

OFFSET_MAX: Final = 1 << 60
"""Where an I/O may lie, an exbibyte."""

CHUNK_RECORDS: Final = 43_000
"""I/Os of one message to a host, which holds 1 MiB."""

SECTOR_BYTES: Final = 512
REGION_ALIGNMENT: Final = 1 << 20
"""The files of a trace lie one after the other on the target, each from a multiple of this on."""

READ: Final = 0
WRITE: Final = 1
SYNC: Final = 2

_RECORD: Final = np.dtype(
    [("due_ns", "<u8"), ("offset", "<u8"), ("bytes", "<u4"), ("kind", "u1"), ("zero", "u1", 3)]
)
_HEADS: Final = {b"fio version 2 iolog": 2, b"fio version 3 iolog": 3}
_KINDS: Final = {b"read": READ, b"write": WRITE, b"sync": SYNC, b"datasync": SYNC}
_FILE_ACTIONS: Final = frozenset((b"add", b"open", b"close"))
_BLKPARSE: Final = re.compile(
    rb"\s*(\d+),(\d+)\s+\d+\s+\d+\s+(\d+)\.(\d{9})\s+\d+\s+([A-Za-z]{1,2})\s+(\S+)"
    rb"(?:\s+(\d+) \+ (\d+))?"
)
_PREAMBLE: Final = re.compile(rb"Input file .+ added\s*$")
"""What blkparse prints of each of its files before the first event."""

_SUMMARY: Final = re.compile(
    rb"(?:(?:CPU\d+|Total) \(|Throughput |Events |.+ \(\d+(?:, \.\.\.)?\)\s*$)"
)
"""The first line after the events: of processors, or of a process (`-s`)."""

_RWBS: Final = re.compile(rb"(F?)([A-Z]?)(F?)")
"""blkparse's kind of an I/O: flush before it, what it does, forced unit access."""

FORMAT_HINT: Final = (
    "Give fio's iolog of version 2 or 3, or the text that blkparse prints without -f."
)

FILES_MAX: Final = 10_000
"""Files or devices of one trace."""


class IoTraceError(ValueError):
    """A trace that cannot be replayed: the message is the second half of a sentence."""

    def __init__(self, message: str, hint: str = FORMAT_HINT) -> None:
        super().__init__(message)
        self.hint = hint


class IoTrace(Record):
    """Recorded I/Os in the order of their times, the first at 0.

    Offsets are on all its files one after the other, which take `span_bytes`. `trims` were left
    out: a file system does not take them. Of `fua_writes` (forced unit access) the write is left.
    """

    digest: str
    due_ns: NDArray[np.int64]
    offsets: NDArray[np.int64]
    sizes: NDArray[np.int64]
    kinds: NDArray[np.uint8]
    span_bytes: int
    trims: int
    fua_writes: int

    @property
    def io_count(self) -> int:
        """Reads and writes; what flushes moves nothing."""
        return int(np.count_nonzero(self.kinds != SYNC))

    @property
    def span_ns(self) -> int:
        """From the first to the last."""
        return int(self.due_ns[-1])

    @property
    def read_share(self) -> float:
        """The part of its reads and writes that are reads."""
        return float(np.count_nonzero(self.kinds == READ)) / max(self.io_count, 1)

    @property
    def io_sizes(self) -> NDArray[np.int64]:
        """The sizes of its reads and writes."""
        moved: NDArray[np.int64] = self.sizes[self.kinds != SYNC]
        return moved


def read_trace(path: str) -> IoTrace:
    """The trace in a file. IoTraceError with the line where it is none, is cut, or goes back."""
    try:
        status = Path(path).stat()
    except (OSError, ValueError) as fault:
        why = getattr(fault, "strerror", None) or "no file"
        raise IoTraceError(f"cannot be read: {why}") from None
    if status.st_size > TRACE_BYTES_MAX:
        raise IoTraceError(f"has {status.st_size:,} bytes, and {TRACE_BYTES_MAX:,} are the most")
    return _parse_trace_cached(path, status.st_size, status.st_mtime_ns)


@lru_cache(maxsize=4)
def _parse_trace_cached(path: str, size: int, mtime_ns: int) -> IoTrace:  # noqa: ARG001 - another file
    if not Path(path).is_file():
        raise IoTraceError("cannot be read: it is no file")
    try:
        content = Path(path).read_bytes()[: TRACE_BYTES_MAX + 1]
        if content.startswith(ZSTD_MAGIC):
            content = decompress_frames(content, TRACE_BYTES_MAX)
    except OSError as fault:
        raise IoTraceError(f"cannot be read: {fault.strerror or fault}") from None
    if not content.strip():
        raise IoTraceError("is empty")
    if not content.endswith(b"\n"):
        number = content.count(b"\n") + 1
        hint = "Record it again, or end it with the last whole line."
        raise IoTraceError(f"is cut: line {number} has no end", hint)
    lines = content.split(b"\n")[:-1]
    version = _HEADS.get(lines[0].strip())
    found = _IologParser(version) if version else _BlkparseParser()
    for number, line in enumerate(lines[1:] if version else lines, 2 if version else 1):
        try:
            found.add_line(line)
        except IoTraceError as fault:
            place = f"in line {number} ({excerpt(line, 60)})"
            raise IoTraceError(f"{fault} {place}", fault.hint) from None
        if len(found.due) > TRACE_IOS_MAX:
            raise IoTraceError(
                f"has more than {TRACE_IOS_MAX:,} I/Os: line {number} is one too many"
            )
    return found.build_trace(hashlib.sha256(content).hexdigest())


class _TraceParser(ABC):
    """The I/Os of a trace while it is read."""

    no_times_hint: ClassVar[str] = "Record it for longer."

    def __init__(self) -> None:
        self.due = array("q")
        self.offsets = array("q")
        self.sizes = array("q")
        self.kinds = array("B")
        self.places = array("H")
        self.ends: list[int] = []
        self.trims = 0
        self.fua_writes = 0
        self._last_ns = 0

    @abstractmethod
    def add_line(self, line: bytes) -> None:
        """Take the next line. IoTraceError where it is none of such a file."""

    def add_io(self, due_ns: int, kind: int, file_number: int, offset: int, size: int) -> None:
        """Take an I/O; IoTraceError for one that goes back in time, or cannot be."""
        if due_ns < self._last_ns:
            raise IoTraceError(
                f"goes back in time, from {self._last_ns / 1e9:.9g} s to {due_ns / 1e9:.9g} s,",
                "Sort its lines by time if only their order is wrong, else record it again.",
            )
        self._last_ns = due_ns
        if kind == SYNC:
            offset = size = 0
        elif not 0 < size <= IO_BYTES_MAX or size % SECTOR_BYTES or offset % SECTOR_BYTES:
            raise IoTraceError(f"moves {size} bytes at {offset}, no multiples of 512 up to 64 MiB,")
        elif not 0 <= offset <= OFFSET_MAX:
            raise IoTraceError(f"has the offset {offset}, past an exbibyte,")
        self.due.append(due_ns)
        self.kinds.append(kind)
        self.places.append(file_number)
        self.offsets.append(offset)
        self.sizes.append(size)
        self.ends[file_number] = max(self.ends[file_number], offset + size)

    def build_trace(self, digest: str) -> IoTrace:
        """All of them. IoTraceError where there is none, or no times."""
        kinds = np.frombuffer(self.kinds, np.uint8)
        if not np.any(kinds != SYNC):
            raise IoTraceError("has no read and no write")
        due = np.frombuffer(self.due, np.int64)
        if due[-1] == due[0]:
            raise IoTraceError("has no times: all of its I/Os are due at once", self.no_times_hint)
        rounded = [-(-end // REGION_ALIGNMENT) * REGION_ALIGNMENT for end in self.ends]
        starts = np.concatenate(([0], np.cumsum(np.array(rounded, np.int64))))
        places = np.frombuffer(self.places, np.uint16)
        return IoTrace(
            digest=digest,
            due_ns=due - due[0],
            offsets=np.frombuffer(self.offsets, np.int64) + starts[places],
            sizes=np.frombuffer(self.sizes, np.int64),
            kinds=kinds,
            span_bytes=int(starts[-1]),
            trims=self.trims,
            fua_writes=self.fua_writes,
        )


class _FileNumbering:
    """The files of a trace, numbered in the order in which they come."""

    def __init__(self, ends: list[int]) -> None:
        self._numbers: dict[bytes, int] = {}
        self._ends = ends

    def assign_number(self, name: bytes) -> int:
        """The number of a file; IoTraceError for too many."""
        number = self._numbers.get(name)
        if number is None:
            number = len(self._numbers)
            if number >= FILES_MAX:
                raise IoTraceError(f"has more than {FILES_MAX:,} files,")
            self._numbers[name] = number
            self._ends.append(0)
        return number


class _IologParser(_TraceParser):
    no_times_hint: ClassVar[str] = (
        "Record version 3, or write wait lines: fio takes their milliseconds from the begin on."
    )

    def __init__(self, version: int) -> None:
        super().__init__()
        self._files = _FileNumbering(self.ends)
        self._version = version
        self._now_ns = 0

    def add_line(self, line: bytes) -> None:
        words = line.split()
        if self._version == 3:
            if not words or not words[0].isdigit():
                raise IoTraceError("has no time")
            self._now_ns = _parse_integer(words.pop(0)) * 1000
        if len(words) == 2 and words[1] in _FILE_ACTIONS:
            return
        if len(words) != 4:
            raise IoTraceError("has no action with its offset and length")
        action = words[1]
        offset, size = _parse_integer(words[2]), _parse_integer(words[3])
        if action == b"wait" and self._version == 2:
            self._now_ns = max(self._now_ns, offset * 1_000_000)
        elif action == b"trim":
            self.trims += 1
        elif action in _KINDS:
            self.add_io(
                self._now_ns, _KINDS[action], self._files.assign_number(words[0]), offset, size
            )
        else:
            raise IoTraceError(f"has the action {excerpt(action, 30)}")


class _BlkparseParser(_TraceParser):
    def __init__(self) -> None:
        super().__init__()
        self._devices = _FileNumbering(self.ends)
        self._issued: _BlkparseParser | None = None
        self._has_events = self._ended = False

    def add_line(self, line: bytes) -> None:
        if self._ended or not line.strip():
            return
        match = _BLKPARSE.match(line)
        if match is None:
            self._ended = self._has_events and _SUMMARY.match(line.lstrip()) is not None
            if self._ended or (not self._has_events and _PREAMBLE.match(line)):
                return
            raise IoTraceError("is neither fio's iolog nor blkparse's text")
        self._has_events = True
        major, minor, seconds, fraction, action, flags, sector, sectors = match.groups()
        if action not in (b"Q", b"D"):
            return
        taker: _BlkparseParser = self
        if action == b"D":
            if self._issued is None:
                self._issued = _BlkparseParser()
            taker = self._issued
        due_ns = _parse_integer(seconds) * 1_000_000_000 + int(fraction)
        extent = _parse_integer(sector or b"0") * 512, _parse_integer(sectors or b"0") * 512
        taker.add_event(due_ns, flags, major + b"," + minor, *extent)

    def add_event(self, due_ns: int, flags: bytes, device: bytes, offset: int, size: int) -> None:
        """Take what was queued or issued; what passes a command through moves no data of files."""
        flush, kind, fua = _RWBS.match(flags).groups()  # type: ignore[union-attr] # matches any text
        if flush:
            self.add_io(due_ns, SYNC, self._devices.assign_number(device), 0, 0)
        if kind == b"D":
            self.trims += 1
        elif size and kind in (b"R", b"W"):
            number = self._devices.assign_number(device)
            self.add_io(due_ns, READ if kind == b"R" else WRITE, number, offset, size)
            self.fua_writes += bool(fua)
        elif size and kind != b"N":
            raise IoTraceError(f"has the kind of I/O {excerpt(flags, 30)}")

    def build_trace(self, digest: str) -> IoTrace:
        if not self.due and self._issued is not None:
            return self._issued.build_trace(digest)
        if self._has_events and not self.due:
            raise IoTraceError(
                "has no I/O that was queued (Q) or issued (D)",
                "Record it without -a, or with -a queue: completions alone have no begin.",
            )
        return super().build_trace(digest)


def _parse_integer(word: bytes) -> int:
    if not word.isdigit() or len(word) > 18:
        raise IoTraceError(f"has {excerpt(word, 30)} where a number stands")
    return int(word)


def chunks_of_trace(trace: IoTrace, region_bytes: int, speed: float) -> Iterator[bytes]:
    """A trace as hosts read it, in pieces that a message holds.

    Times are divided by `speed`. What lies past the region of the target is mapped on it modulo its
    size; an I/O that would cross its end lies at its end.
    """
    records = np.zeros(len(trace.due_ns), _RECORD)
    records["due_ns"] = np.rint(trace.due_ns / speed).astype(np.uint64)
    offsets = trace.offsets % region_bytes if trace.span_bytes > region_bytes else trace.offsets
    last = (region_bytes - trace.sizes) // SECTOR_BYTES * SECTOR_BYTES
    records["offset"] = np.minimum(offsets, last)
    records["bytes"] = trace.sizes
    records["kind"] = trace.kinds
    for start in range(0, len(records), CHUNK_RECORDS):
        yield records[start : start + CHUNK_RECORDS].tobytes()


def trace_chunk_count(trace: IoTrace) -> int:
    """How many pieces these are."""
    return -(-len(trace.due_ns) // CHUNK_RECORDS)
