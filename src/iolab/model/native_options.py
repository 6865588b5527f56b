"""Which of fio's words the native engine knows: one workload file then serves both engines.

An option is listed with the values that the native engine can do as fio does them. Those in
`OF_NO_MEANING` only say how fio itself goes about the same load, so they change nothing here.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

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
    return pattern is not None and pattern.fullmatch(text) is not None
