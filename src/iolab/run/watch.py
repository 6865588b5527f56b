"""One host's telemetry during a run; its samples are also the sign that the host lives."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Final

from iolab.errors import HostError
from iolab.model.event import TelemetrySeen
from iolab.run.counters import cpu_busy
from iolab.run.crew import Crew
from iolab.run.hosts.base import Host, HostLost, Stream
from iolab.run.prepare import SNAPSHOT_LIMIT_S
from iolab.run.telemetry.decode import CounterCollector

SILENCE_LIMIT_S: Final = 30.0
"""Beyond the interval: a host that shows no sample for so long is lost, however busy it was."""

FIRST_SAMPLE_LIMIT_S: Final = 20.0
"""The first one comes at once, on a host that does nothing yet."""

UNWATCH_LIMIT_S: Final = 20.0
"""Calling a watch off on a host under full load."""


class Watch:
    """A watch on one host from before the start of a run until after its end.

    `begin`, `follow` and `end` are called in this order; all but `end` raise HostError, and give
    the host up when it falls silent or sends nonsense.
    """

    def __init__(self, crew: Crew, host: Host, index: int, counters: CounterCollector) -> None:
        self._crew = crew
        self._host = host
        self._index = index
        self._counters = counters
        self._interval_ms = crew.study.telemetry.interval_ms
        self._stream: Stream | None = None
        self._held: Mapping[str, Any] | None = None

    async def begin(self) -> None:
        """Start it and see the first sample."""
        self._stream = self._host.stream("watch", interval_ms=self._interval_ms)
        self._held = await self._next(self._stream, FIRST_SAMPLE_LIMIT_S)

    async def follow(self, go_real_ns: int) -> None:
        """Collect from the last sample before `go_real_ns` (the host's clock) until cancelled."""
        if self._stream is None or self._held is None:
            raise ValueError("a watch begins before it is followed")
        while True:
            sample = await self._next(self._stream, self._interval_ms / 1000 + SILENCE_LIMIT_S)
            if sample["real_ns"] >= go_real_ns:
                self._add(self._held)
                self._show(self._held, sample)
            self._held = sample

    async def end(self) -> None:
        """Call it off, whatever became of it; the newest sample counts, and one more made now.

        Without that one a run shorter than the interval would have a single sample, and no rate.
        """
        if self._stream is None:
            return
        await self._stream.aclose()
        with suppress(HostError):
            if self._held is not None:
                self._add(self._held)
                last = await self._host.ask("snapshot", deadline_s=SNAPSHOT_LIMIT_S)
                self._add({**last.header, "seq": self._held["seq"] + 1})
            await self._host.ask("unwatch", deadline_s=UNWATCH_LIMIT_S, watch=self._stream.id)

    async def _next(self, stream: Stream, limit_s: float) -> Mapping[str, Any]:
        try:
            async with asyncio.timeout(limit_s):
                header = (await anext(stream)).header
        except TimeoutError:
            reason = f"showed no sign of life for {limit_s:g} s"
            raise self._host.give_up(reason) from None
        except StopAsyncIteration:
            raise self._host.give_up("ended its telemetry unasked") from None
        if not isinstance(header.get("real_ns"), int):
            raise self._nonsense("it has no time")
        return header

    def _add(self, sample: Mapping[str, Any]) -> None:
        try:
            self._counters.add(self._index, sample)
        except ValueError as fault:
            raise self._nonsense(str(fault)) from None

    def _nonsense(self, why: str) -> HostLost:
        return self._host.give_up(f"sent telemetry that makes no sense: {why.rstrip('.')}")

    def _show(self, before: Mapping[str, Any], after: Mapping[str, Any]) -> None:
        busy = cpu_busy(before.get("cpu"), after.get("cpu"))
        if busy is not None:
            self._crew.tell(TelemetrySeen(self._host.name, busy))
