"""Which of fio's words the native engine knows: one workload file then serves both engines.

An option is listed with the values that the native engine can do as fio does them. Those in
`OF_NO_MEANING` only say how fio itself goes about the same load, so they change nothing here.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from iolab.units import parse_size

AUTO: Final = "auto"
"""The way to the kernel that the engine finds best on the target: what a job says that names no
`ioengine`."""

METHODS: Final[Mapping[str, str]] = MappingProxyType(
    {
        AUTO: AUTO,
        "io_uring": "io_uring",
        "libaio": "libaio",
        "psync": "sync",
        "sync": "sync",
        "pvsync": "sync",
        "pvsync2": "sync",
    }
)
"""The native engine's way to the kernel for each of fio's I/O engines that has one."""

OF_NO_MEANING: Final = (
    "clocksource",
    "fixedbufs",
    "iodepth_batch",
    "iodepth_batch_complete_max",
    "iodepth_batch_submit",
    "mem",
    "nonvectored",
    "registerfiles",
    "thread",
    "userspace_reap",
)
"""Options that tune fio and leave the load as it is."""

WHOLE: Final = 100
"""Percent."""

SIZES_MAX: Final = 32
ZONES_MAX: Final = 64
THETA_MAX: Final = 100.0
PAUSE_MAX_US: Final = 3_600_000_000
"""What the engine takes: sizes of blocks and zones of a job, the steepest zipf, the longest pause
(an hour)."""

_UNITS_US: Final = {"": 1, "us": 1, "ms": 1000, "s": 1_000_000}
_TIME: Final = re.compile(r"([0-9]+)(us|ms|s)?")
_NUMBER: Final = r"[0-9]{1,6}(?:\.[0-9]{1,6})?"
_ZONE: Final = "[0-9]{1,3}/[0-9]{1,3}"
_NO: Final = "0"

_VALUES: Final[Mapping[str, str]] = {
    # How blocks and offsets are drawn.
    "bssplit": r"[0-9]+[km](?:/[0-9]+)?(?::[0-9]+[km](?:/[0-9]+)?)*",
    "norandommap": "[01]",
    "percentage_random": "100",
    "random_distribution": f"random|(?:zipf|pareto):{_NUMBER}|zoned:{_ZONE}(?::{_ZONE})*",
    "random_generator": ".*",
    "file_service_type": "roundrobin",
    "rw_sequencer": "sequential",
    # When I/Os are issued.
    "rate_process": "linear|poisson",
    "rate_ignore_thinktime": _NO,
    "thinktime": ".*",
    "thinktime_spin": _NO,
    "thinktime_blocks": "[1-9][0-9]*",
    "thinktime_blocks_type": "complete",
    # How deep and in what batches.
    "iodepth_batch_complete": "[01]",
    "iodepth_batch_complete_min": "[01]",
    "serialize_overlap": _NO,
    # How the kernel is asked.
    "hipri": "[01]",
    "force_async": _NO,
    "sqthread_poll": "[01]",
    "write_hint": "none",
    # What makes writes durable.
    "fsync": ".*",
    "fdatasync": _NO,
    "sync": "none|0",
    "write_barrier": _NO,
    # What the blocks hold.
    "buffer_compress_percentage": ".*",
    "dedupe_percentage": ".*",
    **dict.fromkeys(OF_NO_MEANING, ".*"),
}

NATIVE_OPTIONS: Final[Mapping[str, re.Pattern[str]]] = MappingProxyType(
    {name: re.compile(pattern) for name, pattern in _VALUES.items()}
)
"""Options that a native workload's `fio` table may hold, with the values that mean the same."""


def is_native(name: str, text: str) -> bool:
    """Whether the native engine does what fio does with that option at that value."""
    pattern = NATIVE_OPTIONS.get(name)
    if pattern is None or pattern.fullmatch(text) is None:
        return False
    match name:
        case "bssplit":
            return _can_split(text)
        case "random_distribution":
            return _can_draw(*text.partition(":")[::2])
        case "thinktime":
            return microseconds(text) <= PAUSE_MAX_US
    return True


def shares_of(bssplit: str) -> tuple[tuple[int, int], ...]:
    """The sizes of fio's `bssplit` in bytes, each with its share in percent.

    Sizes without a share divide what the others leave, in whole percents.
    """
    parts = [part.partition("/") for part in bssplit.split(":")]
    known = sum(int(share) for _, _, share in parts if share)
    blank = sum(1 for _, _, share in parts if not share)
    each = max(WHOLE - known, 0) // max(blank, 1)
    return tuple((parse_size(size), int(share) if share else each) for size, _, share in parts)


def whole_percent_of(bssplit: str) -> int:
    """What all its shares come to; of none, or of more than a hundred, nobody could say a mean."""
    return sum(share for _, share in shares_of(bssplit))


def mean_bytes_of(bssplit: str) -> float:
    """Bytes of an I/O in the mean; what is left of a hundred percent goes to the last size.

    Shares come to 1 to 100 percent: studies with others are refused.
    """
    drawn = [(size, share) for size, share in shares_of(bssplit) if share]
    left = WHOLE - sum(share for _, share in drawn)
    return (sum(size * share for size, share in drawn) + drawn[-1][0] * left) / WHOLE


def microseconds(text: str) -> int:
    """A time as fio's options have it; 0 for what is none."""
    match = _TIME.fullmatch(text)
    return int(match[1]) * _UNITS_US[match[2] or ""] if match else 0


def _can_split(text: str) -> bool:
    """More than a hundred percent fio refuses; it cuts sizes to multiples of the smallest."""
    shares = shares_of(text)
    sizes = [size for size, share in shares if share]
    if not sizes or len(sizes) > SIZES_MAX or sum(share for _, share in shares) > WHOLE:
        return False
    least = min(size for size, _ in shares)
    return min(sizes) == least and not any(size % least for size in sizes)


def _can_draw(kind: str, values: str) -> bool:
    match kind:
        case "zipf":
            return 0 < float(values) <= THETA_MAX
        case "pareto":
            return 0 < float(values) < 1
        case "zoned":
            zones = [tuple(map(int, zone.split("/"))) for zone in values.split(":")]
            sums = [sum(column) for column in zip(*zones, strict=True)]
            return len(zones) <= ZONES_MAX and sums == [WHOLE, WHOLE]
    return True
