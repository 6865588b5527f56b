"""Sample messages of the agents turned into the columns of a counter table."""

from __future__ import annotations

from collections.abc import Mapping

from iolab.model.sample import CounterTable


class CounterCollector:
    """Takes every host's `sample` messages as they come; gives the table when the run is over."""

    def add(self, host: int, sample: Mapping[str, object]) -> None:
        """Take one sample message (the header as parsed JSON) of the host with that index.

        EngineError never; ValueError when the message is not a sample as the wire describes it.
        """
        raise NotImplementedError

    def table(self) -> CounterTable:
        """All counters taken so far, ordered by host and then by arrival."""
        raise NotImplementedError
