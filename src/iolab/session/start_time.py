"""One start for all hosts: a moment far enough ahead for the slowest, on every host's own clock."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from iolab.hosts.clock import ClockOffset
from iolab.session.context import SessionContext
from iolab.session.driver import HostShare

ROUND_TRIPS_TO_START: Final = 4
"""Round trips that the slowest host needs before it can wait for the start, with one to spare."""

NS_PER_S: Final = 1_000_000_000


@dataclass(frozen=True, slots=True)
class CommonStart:
    """The common start on the controller's clock, and how far it was ahead when chosen."""

    real_ns: int
    lead_s: float

    def on(self, mine: HostShare) -> int:
        """The same moment on that host's clock."""
        return self.real_ns + offset_of(mine).offset_ns


def start_of(
    session: SessionContext, evidence: Sequence[HostShare], allowance_s: float
) -> CommonStart:
    """Far enough ahead for the slowest host to be ready, no further.

    `allowance_s` is what the hosts need to get ready beyond the way of the messages.
    """
    slowest_ns = max(offset_of(mine).rtt_ns for mine in evidence)
    lead_s = allowance_s + ROUND_TRIPS_TO_START * slowest_ns / NS_PER_S
    return CommonStart(session.clock.real_ns() + round(lead_s * NS_PER_S), lead_s)


def offset_of(mine: HostShare) -> ClockOffset:
    """The host's clock as it was read; ValueError when it was not."""
    if mine.offset is None:
        raise ValueError("the clock is read before the start")
    return mine.offset
