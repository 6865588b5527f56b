"""Where the time of a session goes: seconds of each phase, and of what comes between them."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from typing import Final

import numpy as np

from iolab.core.events import SessionPhase, SessionPhaseTime
from iolab.core.run import RunRecord
from iolab.units import NS_PER_S

LOAD: Final = "load"
"""While engines run: what a session is for."""

JUDGE: Final = "judge"
COMMIT: Final = "commit"
"""What is done with a run's record before the next run is prepared."""


def engine_seconds_of_record(record: RunRecord) -> float:
    """Seconds in which engines ran; 0 where none did.

    Those of the host with the most intervals, without what came between its phases; where there are
    none, from the first engine's start to the last one's end.
    """
    table = record.intervals
    if len(table):
        return (
            int(table.watched_ns_by_host(len(record.hosts), np.arange(len(table))).max()) / NS_PER_S
        )
    starts = [host.start_real_ns for host in record.hosts if host.start_real_ns is not None]
    ends = [host.end_real_ns for host in record.hosts if host.end_real_ns is not None]
    return max(0, max(ends) - min(starts)) / NS_PER_S if starts and ends else 0.0


class SessionPhaseTimer:
    """A stopwatch that is always in one phase; what comes before the first is of no phase."""

    def __init__(self, clock: Callable[[], int] = time.monotonic_ns) -> None:
        self._clock = clock
        self._phase: str | None = None
        self._since_ns = clock()
        self._spent_ns: Counter[str] = Counter()
        self._begun: Counter[str] = Counter()

    def begin_session_phase(self, phase: str) -> None:
        """What was done until now ends, and this begins."""
        self._end_phase()
        self._phase = phase
        self._begun[phase] += 1

    def split_load_from_measure_phase(self, seconds: float) -> None:
        """So much of the phase that measures was load; the rest began and ended it."""
        self._end_phase()
        load_ns = min(round(seconds * NS_PER_S), self._spent_ns[SessionPhase.MEASURE])
        self._spent_ns[SessionPhase.MEASURE] -= load_ns
        self._spent_ns[LOAD] += load_ns
        self._begun[LOAD] += 1

    def phase_times(self) -> tuple[SessionPhaseTime, ...]:
        """Every phase until now, the longest first."""
        self._end_phase()
        return tuple(
            SessionPhaseTime(str(phase), self._begun[phase], spent_ns / NS_PER_S)
            for phase, spent_ns in self._spent_ns.most_common()
            if self._begun[phase]
        )

    def _end_phase(self) -> None:
        now_ns = self._clock()
        if self._phase is not None:
            self._spent_ns[self._phase] += now_ns - self._since_ns
        self._since_ns = now_ns
