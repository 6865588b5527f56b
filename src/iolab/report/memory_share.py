"""How much of what a run read memory answered, and not the storage, by what its checks found."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from iolab.core.metric import CheckResult, Evidence, RunResult, VerdictLevel

FROM_MEMORY_MAJORITY: Final = 0.5
"""A larger share makes a figure one of memory."""

_STORAGE_SHARES: Final = {"reads-from-memory": "from_device", "restored-from-memory": "share"}
"""Checks whose evidence has the share that devices read, each with its name there."""

_COUNTED_BYTES: Final = "bytes-moved"
"""The check whose evidence has the bytes that were read, and those of the devices."""

_RAM_TARGET: Final = "target-in-memory"
"""The check that objects to targets without any device of storage."""


def is_mostly_read_from_memory(result: RunResult) -> bool:
    """Whether memory answered most of what a run read: its figures are not of the storage."""
    shares = (share for check in result.verdict.checks for share in _read_shares_from_memory(check))
    return any(share > FROM_MEMORY_MAJORITY for share in shares)


def _read_shares_from_memory(check: CheckResult) -> Iterator[float]:
    """Which shares came from memory by one check; others' reads make them lower than they are."""
    if check.code == _RAM_TARGET and check.level in (VerdictLevel.INDICATIVE, VerdictLevel.INVALID):
        yield 1.0
    elif check.code in _STORAGE_SHARES:
        share = _evidence_number(check.evidence, _STORAGE_SHARES[check.code])
        if share is not None:
            yield 1 - share
    elif check.code == _COUNTED_BYTES:
        claimed = _evidence_number(check.evidence, "claimed_read_bytes")
        for name in ("device_read_bytes", "below_read_bytes"):
            read = _evidence_number(check.evidence, name)
            if claimed and read is not None:
                yield 1 - read / claimed


def _evidence_number(evidence: Evidence, evidence_key: str) -> float | None:
    value = evidence.get(evidence_key)
    return float(value) if isinstance(value, int | float) else None
