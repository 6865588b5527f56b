"""Questions that every load of operations answers, each in its own way."""

from __future__ import annotations

from typing import Final

from iolab.analysis.check import CheckAnswer, Numbers, check, indicative, invalid, percent, valid
from iolab.units import format_count

operations_failed = check("operations-failed", "Operations that failed")
"""Whether every operation succeeded: one that fails is often faster than one that works."""

operations_counted = check("operations-counted", "Operations counted elsewhere")
"""Whether somebody else counted the operations that an engine claims."""

rate_kept = check("coordinated-omission", "Latency of a rate that was not kept")
"""Whether operations under a rate were begun when they were due, so that none waited unseen."""

ACHIEVED_LEAST: Final = 0.99
"""Share of the asked rate below which the target set the pace and not the rate."""

FEWER_GOOD: Final = 0.98
"""Share of the claimed operations that the other must have counted."""

FEWER_BAD: Final = 0.90
"""Below this share more than one operation in ten was none."""


def counts_text(by: str, what: str, claimed: int, counted: float) -> tuple[str, Numbers]:
    """Both counts as a sentence without its end, and as evidence."""
    text = (
        f"{by} counted {format_count(counted)} operations of {what}, the engine claims "
        f"{format_count(claimed)}"
    )
    return text, {
        "operation": what,
        "claimed": claimed,
        "counted": counted,
        "counted_share": counted / claimed,
    }


def held_against(claimed: int, counted: float, text: str, evidence: Numbers) -> CheckAnswer:
    """Whether what was counted bears out what was claimed."""
    if counted < FEWER_GOOD * claimed:
        verdict = invalid if counted < FEWER_BAD * claimed else indicative
        part = percent(1 - counted / claimed)
        return verdict(f"{text}: {part} of them were not done.", **evidence)
    return valid(f"{text}.", **evidence)
