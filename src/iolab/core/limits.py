"""The upper bounds of what hosts and files of other tools may claim.

What comes from outside decides how large tables and series get. A claim beyond its bound is refused
with a sentence before anything is made of it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from iolab.core.samples import Ints
from iolab.units import NS_PER_S

RUN_S_MOST: Final = 30 * 86_400.0
"""How long a run may have lasted by what a file says: series have a value for each second."""

CLOCK_SLACK_S: Final = 3600.0
"""By how much a host's own time may differ from the controller's over one run: its clock is set,
or it was suspended."""

INTERVALS_MOST: Final = 4_000_000
"""Intervals of one host in one run: ten a second for four days."""

COUNT_MOST: Final = 2**62
"""Operations or bytes of one run, so that sums fit the columns of its tables."""

MOMENT_NS_MOST: Final = 2**62
"""The latest moment since 1970, in the year 2116, to which the longest run can be added."""

REFUSED_HINT: Final = "Look for a fault of its agent or engine, or leave this host out."

ENTRIES_MOST: Final = 20_000
"""Files and folders that are looked at below one folder: ten for each file that is read of it, and
not a whole machine."""

NESTED_MOST: Final = 40
"""Folders inside each other that are looked through."""


def duration_fault(seconds: float, most_s: float = RUN_S_MOST) -> str:
    """Why a duration is refused; empty for one that is possible."""
    if 0 <= seconds <= most_s:
        return ""
    return f"a duration of {seconds:.6g} s, where at most {most_s:.6g} s are possible"


def moment_fault(at_ns: int) -> str:
    """Why a moment since 1970 is refused; empty for one that is possible."""
    if 0 <= at_ns <= MOMENT_NS_MOST:
        return ""
    return f"a moment {at_ns / NS_PER_S:.6g} s after 1970"


def count_fault(name: str, counts: Iterable[int]) -> str:
    """Why counts of operations or bytes are refused; empty where their sum is possible."""
    total = 0
    for count in counts:
        total += count
        if not 0 <= count <= COUNT_MOST or total > COUNT_MOST:
            return f"{count:.6g} {name}, where at most {COUNT_MOST:.6g} are possible"
    return ""


def series_fault(end_ns: Ints, span_ns: Ints, most_s: float = RUN_S_MOST) -> str:
    """Why the intervals of one host are refused; empty where they are possible.

    `most_s` is how long the run can have lasted.
    """
    if not end_ns.size:
        return ""
    if end_ns.size > INTERVALS_MOST:
        return f"{end_ns.size} intervals, where at most {INTERVALS_MOST} are possible"
    shortest, longest = int(span_ns.min()) / NS_PER_S, int(span_ns.max()) / NS_PER_S
    message = duration_fault(shortest, most_s) or duration_fault(longest, most_s)
    message = message or moment_fault(int(end_ns.min())) or moment_fault(int(end_ns.max()))
    if message:
        return message
    return duration_fault(int(end_ns.max() - (end_ns - span_ns).min()) / NS_PER_S, most_s)
