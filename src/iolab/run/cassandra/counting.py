"""A node's counters on their way into a run's table, beside those of its host."""

from __future__ import annotations

from contextlib import suppress
from typing import Final

from iolab.run.cassandra.answers import CountersTold
from iolab.run.telemetry.decode import CounterCollector

SCOPE: Final = "cassandra"
"""Under which the table has them; docs/reference/telemetry.md names each."""


class Counting:
    """Hands counters on between `begin` and `end`, and drops them else."""

    def __init__(self) -> None:
        self._to: CounterCollector | None = None
        self._host = 0
        self._seq = 0

    def begin(self, to: CounterCollector, host: int, newest: CountersTold | None) -> None:
        """From now on they are those of the host with that index; the newest is the first."""
        self._to, self._host, self._seq = to, host, 0
        if newest is not None:
            self.take(newest)

    def take(self, counters: CountersTold) -> None:
        """One reading."""
        if self._to is None:
            return
        sample = {"seq": self._seq, "real_ns": counters.real_ns, SCOPE: counters.known}
        # What a collector refuses is no reason to end a run: its edge has parsed it already.
        with suppress(ValueError):
            self._to.add(self._host, sample)
        self._seq += 1

    def end(self) -> None:
        """The run is over."""
        self._to = None
