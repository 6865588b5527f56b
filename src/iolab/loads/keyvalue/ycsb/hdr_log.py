"""YCSB's latency logs, each an interval a line. Pure.

A latency log (`.hdr`) is HdrHistogram's of version 1.x, with histograms of encoding V2 (`HISTF…`),
one for each operation. A line is an interval with its histogram, deflated and in base64, of whole
microseconds. Nothing of the content is believed; what cannot be read is told as a fault, and what
stands before it is kept.
"""

from __future__ import annotations

import base64
import binascii
import math
import re
import zlib
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from iolab.core.limits import (
    ERROR_LINES_MAX,
    HISTOGRAM_BYTES_MAX,
    LATENCY_US_MAX,
    LOGGED_SECONDS_MAX,
    LOGGED_VALUES_MAX,
    STREAM_BYTES_MAX,
)
from iolab.core.samples import Ints
from iolab.loads.keyvalue.workload import KeyOperation
from iolab.record import Record
from iolab.text import excerpt
from iolab.units import NS_PER_S, NS_PER_US

YCSB_NAMES: Final = {
    "READ": KeyOperation.READ,
    "UPDATE": KeyOperation.UPDATE,
    "INSERT": KeyOperation.INSERT,
    "SCAN": KeyOperation.SCAN,
    "READ-MODIFY-WRITE": KeyOperation.READ_MODIFY_WRITE,
    "DELETE": KeyOperation.DELETE,
    "Intended-READ": KeyOperation.INTENDED_READ,
    "Intended-UPDATE": KeyOperation.INTENDED_UPDATE,
    "Intended-INSERT": KeyOperation.INTENDED_INSERT,
    "Intended-SCAN": KeyOperation.INTENDED_SCAN,
    "Intended-READ-MODIFY-WRITE": KeyOperation.INTENDED_READ_MODIFY_WRITE,
}
"""Operations by the names that YCSB gives their sections and files."""

_PACKED_COOKIE: Final = 0x1C849304
_COOKIE: Final = 0x1C849303
_PACKED_HEAD: Final = 8
_HEAD: Final = 40
_DIGITS_MAX: Final = 5

_VARINT_MAX: Final = 8
"""Bytes of a count: nine are for counts above 2^55, which nobody can count."""

_TITLE: Final = re.compile(rb"#\[Logging for: ([^\]]{1,100})\]")
_START: Final = re.compile(rb"#\[(Start|Base)Time: (\d{1,12}\.\d{1,9}) ")

_LINE: Final = re.compile(
    rb"(?:Tag=[^, ]{1,200},)?(\d{1,12}\.\d{1,9}),(-?\d{1,12}\.\d{1,9}),\d{1,20}\.\d{1,9},"
    rb"([A-Za-z0-9+/]{1,2000000}={0,2})"
)

_YEAR_S: Final = 365 * 86400


class HdrInterval(Record):
    """What was counted between two moments of the client's clock: `counts[i]` of `values_ns[i]`.

    A value stands for all that HdrHistogram does not tell apart from it: it is the middle of them
    (`medianEquivalentValue`), by which its own mean is computed. `highest_ns` are the last of them,
    which YCSB prints for its percentiles. Both ascend; counts are above zero.
    """

    start_real_ns: int
    span_ns: int
    values_ns: Ints
    highest_ns: Ints
    counts: Ints

    @property
    def end_real_ns(self) -> int:
        """The end on the client's clock."""
        return self.start_real_ns + self.span_ns

    @property
    def total(self) -> int:
        """How many operations."""
        return int(self.counts.sum())


class HdrLog(Record):
    """A whole log: `name` is what YCSB calls the operation, `operation` the one that we know so.

    `operation` is None for any other, such as what failed (`READ-FAILED`). `faults` are sentences;
    a log with one lacks something.
    """

    name: str
    operation: KeyOperation | None
    intervals: tuple[HdrInterval, ...]
    faults: tuple[str, ...]

    @property
    def total(self) -> int:
        """Operations of all intervals."""
        return sum(interval.total for interval in self.intervals)


def parse_hdr_log(content: bytes) -> HdrLog:
    """Read a log, whole or cut short. Never raises."""
    draft = _HdrLogParser()
    if len(content) > STREAM_BYTES_MAX:
        draft.add_fault(f"it is longer than {STREAM_BYTES_MAX} bytes")
    *lines, rest = content[:STREAM_BYTES_MAX].split(b"\n")
    for number, line in enumerate(lines, 1):
        draft.take_line(number, line.strip(b"\r"))
    if rest and len(content) <= STREAM_BYTES_MAX:
        draft.add_fault(f"line {len(lines) + 1} is cut short")
    return draft.build_log()


class HdrLogError(ValueError):
    """A histogram that cannot be read: why, as the end of a sentence."""


class DecodedHistogram(NamedTuple):
    """Of each value the middle and the highest of those that are told as it, and their count."""

    middle_values: Ints
    highest_values: Ints
    counts: Ints


def decode_compressed_histogram(packed: bytes) -> DecodedHistogram:
    """A compressed V2 histogram, in its own unit.

    HdrLogError when it is damaged, of another encoding, or larger than any that YCSB makes.
    """
    if len(packed) < _PACKED_HEAD or int.from_bytes(packed[:4], "big") & ~0xF0 != _PACKED_COOKIE:
        raise HdrLogError("is not a compressed histogram of encoding V2")
    size = int.from_bytes(packed[4:8], "big")
    if size != len(packed) - _PACKED_HEAD:
        raise HdrLogError(f"has {len(packed) - _PACKED_HEAD} of {size} bytes")
    unpacker = zlib.decompressobj()
    try:
        content = unpacker.decompress(packed[_PACKED_HEAD:], HISTOGRAM_BYTES_MAX)
    except zlib.error:
        raise HdrLogError("does not unpack") from None
    if not unpacker.eof:
        raise HdrLogError(f"ends too early, or unpacks to more than {HISTOGRAM_BYTES_MAX} bytes")
    head, payload = _parse_header(content[:_HEAD]), content[_HEAD:]
    if head.payload_bytes != len(payload):
        raise HdrLogError(f"holds {len(payload)} of {head.payload_bytes} bytes of counts")
    return head.decode_counts(
        *_nonzero_indices_and_counts(_decode_zigzag(payload), head.index_count)
    )


class _HistogramHeader(Record):
    payload_bytes: int
    unit_bits: int
    sub_bits: int

    @property
    def index_count(self) -> int:
        """How many counts there can be: beyond them values are no longer in 64 bits."""
        return (64 - self.unit_bits - self.sub_bits + 2) << (self.sub_bits - 1)

    def decode_counts(self, bucket_indexes: Ints, counts: Ints) -> DecodedHistogram:
        """As `valueFromIndex`, `medianEquivalentValue` and `highestEquivalentValue` have them."""
        half = self.sub_bits - 1
        bucket = np.maximum((bucket_indexes >> half) - 1, 0)
        sub = np.where(
            bucket_indexes >> half == 0,
            bucket_indexes,
            (bucket_indexes & ((1 << half) - 1)) + (1 << half),
        )
        shift = bucket + self.unit_bits
        if bucket_indexes.size and int(shift[-1]) + self.sub_bits > LATENCY_US_MAX.bit_length() - 1:
            raise HdrLogError(f"holds a latency above {LATENCY_US_MAX} µs")
        lowest = sub << shift
        width = np.int64(1) << shift
        return DecodedHistogram(lowest + (width >> 1), lowest + width - 1, counts)


def _parse_header(content: bytes) -> _HistogramHeader:
    if len(content) < _HEAD or int.from_bytes(content[:4], "big") & ~0xF0 != _COOKIE:
        raise HdrLogError("does not hold a histogram of encoding V2")
    payload, offset, digits = (int.from_bytes(content[at : at + 4], "big") for at in (4, 8, 12))
    lowest = int.from_bytes(content[16:24], "big")
    if offset or digits > _DIGITS_MAX or not 1 <= lowest <= LATENCY_US_MAX:
        raise HdrLogError(f"is of {digits} digits from {lowest}, shifted by {offset}")
    # As AbstractHistogram.init has it: whole units up to twice the power of ten.
    sub_bits = max(math.ceil(math.log2(2 * 10**digits)), 1)
    return _HistogramHeader(payload, lowest.bit_length() - 1, sub_bits)


def _decode_zigzag(payload: bytes) -> Ints:
    """ZigZag LEB128 numbers, least significant seven bits first."""
    raw = np.frombuffer(payload, dtype=np.uint8)
    if not raw.size:
        return np.zeros(0, dtype=np.int64)
    last = np.flatnonzero(raw < 0x80)
    if not last.size or last[-1] != raw.size - 1:
        raise HdrLogError("ends in the middle of a count")
    first = np.concatenate(([0], last[:-1] + 1))
    sizes = last - first + 1
    if int(sizes.max()) > _VARINT_MAX:
        raise HdrLogError("holds a count that is no count")
    places = np.arange(raw.size) - np.repeat(first, sizes)
    parts = (raw & 0x7F).astype(np.int64) << (7 * places)
    coded = np.add.reduceat(parts, first)
    return np.asarray((coded >> 1) ^ -(coded & 1), dtype=np.int64)


def _nonzero_indices_and_counts(numbers: Ints, index_limit: int) -> tuple[Ints, Ints]:
    """Where counts stand, and they themselves; a number below zero stands for so many zeros."""
    steps = np.where(numbers < 0, -numbers, 1)
    # In floating point first: a sum that is far too large must not wrap around to a small one.
    if float(steps.sum(dtype=np.float64)) > index_limit:
        raise HdrLogError(f"holds more than {index_limit} counts")
    held = numbers > 0
    return (np.cumsum(steps) - steps)[held], numbers[held]


class _HdrLogParser:
    """A log while it is read, line by line."""

    def __init__(self) -> None:
        self._name = ""
        self._times_s: dict[bytes, float] = {}
        self._intervals: list[HdrInterval] = []
        self._value_count = 0
        self._faults: list[str] = []

    def add_fault(self, problem: str) -> None:
        """One more thing that is wrong."""
        if len(self._faults) < ERROR_LINES_MAX:
            self._faults.append(f"the latency log of {self._name or 'an operation'}: {problem}")

    def take_line(self, number: int, line: bytes) -> None:
        """One line, in order."""
        if match := _TITLE.match(line):
            self._name = excerpt(match[1], 100)
        elif match := _START.match(line):
            self._times_s[match[1]] = float(match[2])
        elif not line or line.startswith((b"#", b'"')):
            return
        elif match := _LINE.fullmatch(line):
            self._take_interval(number, match)
        else:
            self.add_fault(f"line {number} is no interval: '{excerpt(line, 60)}'")

    def build_log(self) -> HdrLog:
        """All lines are read."""
        if not self._name:
            self.add_fault("it does not say of which operation it is")
        if not self._intervals:
            self.add_fault("it has no interval")
        operation = YCSB_NAMES.get(self._name)
        faults = tuple(dict.fromkeys(self._faults))
        return HdrLog(self._name, operation, tuple(self._intervals), faults)

    def _take_interval(self, number: int, match: re.Match[bytes]) -> None:
        if len(self._intervals) >= LOGGED_SECONDS_MAX:
            self.add_fault(f"it has more than {LOGGED_SECONDS_MAX} intervals")
            return
        start_s, span_s = float(match[1]), float(match[2])
        if span_s < 0:
            self.add_fault(f"line {number} is an interval of {span_s:g} s")
            return
        try:
            packed = base64.b64decode(match[3], validate=True)
            middles, highest, counts = decode_compressed_histogram(packed)
        except (HdrLogError, binascii.Error) as fault:
            self.add_fault(f"the histogram in line {number} {_decode_fault_reason(fault)}")
            return
        self._value_count += counts.size
        if self._value_count > LOGGED_VALUES_MAX:
            self.add_fault(f"it has more than {LOGGED_VALUES_MAX} different latencies")
            return
        base_s = self._timestamp_base_s(start_s)
        self._intervals.append(
            HdrInterval(
                start_real_ns=_ns_at_ms_precision(base_s + start_s),
                span_ns=_ns_at_ms_precision(span_s),
                values_ns=_microseconds_to_ns(middles),
                highest_ns=_microseconds_to_ns(highest),
                counts=counts,
            )
        )

    def _timestamp_base_s(self, interval_start_s: float) -> float:
        """What a stamp counts from, by the rule of HdrHistogram's own reader.

        Without a base, stamps are absolute unless they are more than a year before the start.
        """
        if b"Base" in self._times_s:
            return self._times_s[b"Base"]
        began_s = self._times_s.get(b"Start", 0.0)
        return began_s if interval_start_s < began_s - _YEAR_S else 0.0


def _decode_fault_reason(fault: Exception) -> str:
    return str(fault) if isinstance(fault, HdrLogError) else "is not in base64"


def _ns_at_ms_precision(seconds: float) -> int:
    """Stamps are of whole milliseconds; in between, a float of seconds since 1970 is not exact."""
    return round(seconds * 1000) * (NS_PER_S // 1000)


def _microseconds_to_ns(values_us: Ints) -> npt.NDArray[np.int64]:
    return np.asarray(values_us * NS_PER_US, dtype=np.int64)
