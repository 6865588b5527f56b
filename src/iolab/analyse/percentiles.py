"""Which percentiles are printed, and how many I/Os each needs.

A percentile q is printed only where n (1 - q) >= 100: at least a hundred I/Os lie beyond it. With
fewer, the relative error of the rank alone exceeds 1/sqrt(100) = 10 %, and one stall decides.
"""

from __future__ import annotations

from typing import Final

TAIL_IOS: Final = 100
"""I/Os that must lie beyond a percentile for it to be printed."""

PERCENTILES: Final = (
    ("p50", 50.0),
    ("p99", 99.0),
    ("p99_5", 99.5),
    ("p99_9", 99.9),
    ("p99_99", 99.99),
)
"""The percentiles of a result: (name in a metric's key, percent)."""

STALL_DECIDED: Final = ("p99_9", "p99_99")
"""Those so far out that a few stalls in a run decide them."""

_PARTS: Final = 1_000_000
"""Percentages are told apart to a millionth of a percent; integers make the rule exact."""


def ios_needed(percent: float) -> int:
    """How many I/Os support the percentile (0 <= percent < 100)."""
    beyond = max(round((100.0 - percent) * _PARTS), 1)
    return -(-TAIL_IOS * 100 * _PARTS // beyond)


def is_supported(total: int, percent: float) -> bool:
    """Whether `total` I/Os support the percentile."""
    return total >= ios_needed(percent)
