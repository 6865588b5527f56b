"""YCSB's status lines on standard error, read as they come: for the live view alone.

What is published comes from its latency logs; these lines are rounded and sum up by the second.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

NS_PER_US: Final = 1000

LINE_LIMIT_BYTES: Final = 16 << 10
"""A status line with all operations of YCSB has about 1 kB; what is longer is none."""

_STAMP: Final = re.compile(rb"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d:\d{3} (?P<elapsed>\d+) sec: ")
_STATUS: Final = re.compile(
    _STAMP.pattern + rb"(?P<done>\d+) operations; "
    rb"(?P<rate>[\d.]+) current ops/sec;"
)
_OPERATION: Final = re.compile(
    rb"\[(?P<name>READ|UPDATE|INSERT|SCAN): Count=(?P<count>\d+), [^\]]*?Avg=(?P<mean>[\d.]+)[,\]]"
)


@dataclass(frozen=True, slots=True)
class YcsbStatus:
    """One status line: seconds since YCSB's start, operations until then, and the newest rate.

    `lat_ns_mean` is over what the store did in the newest interval, None when that was nothing.
    """

    elapsed_s: int
    operations: int
    ops_per_s: float
    lat_ns_mean: float | None


class StatusReader:
    """Reads status lines out of pieces of any size; whatever else comes is passed over."""

    def __init__(self) -> None:
        self._open = b""

    def feed(self, piece: bytes) -> list[YcsbStatus]:
        """Take the next bytes; the lines that they complete. Never raises."""
        *lines, rest = (self._open + piece).split(b"\n")
        self._open = rest[-LINE_LIMIT_BYTES:]
        return [status for status in map(_status, lines) if status]


def without_status(text: bytes) -> bytes:
    """What YCSB said beside its status lines: where a reason is, it stands there."""
    return b"\n".join(line for line in text.split(b"\n") if not _STAMP.match(line))


def _status(line: bytes) -> YcsbStatus | None:
    found = _STATUS.match(line)
    if found is None or len(line) > LINE_LIMIT_BYTES:
        return None
    try:
        rate = float(found["rate"])
        parts = [(int(one["count"]), float(one["mean"])) for one in _OPERATION.finditer(line)]
    except ValueError:
        return None
    count = sum(many for many, _ in parts)
    sum_ns = sum(many * mean_us * NS_PER_US for many, mean_us in parts)
    mean_ns = sum_ns / count if count else None
    return YcsbStatus(int(found["elapsed"]), int(found["done"]), rate, mean_ns)
