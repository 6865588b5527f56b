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
from iolab.run.telemetry.decode import CounterCollector

SILENCE_LIMIT_S: Final = 30.0
"""Beyond the interval: a host that shows no sample for so long is lost, however busy it was."""

UNWATCH_LIMIT_S: Final = 20.0
"""Calling a watch off on a host under full load."""


async def watch(
    crew: Crew, host: Host, index: int, go_real_ns: int, counters: CounterCollector
) -> None:
    """Collect samples from the last before `go_real_ns` (the host's clock) until cancelled.

    Gives the host up when it falls silent or sends nonsense, and raises HostError then.
    """
    interval_ms = crew.study.telemetry.interval_ms
    stream = host.stream("watch", interval_ms=interval_ms)
    held = None
    try:
        held = await _next(host, stream, interval_ms)
        while True:
            sample = await _next(host, stream, interval_ms)
            if sample["real_ns"] >= go_real_ns:
                _add(host, index, held, counters)
                _show(crew, host, held, sample)
            held = sample
    finally:
        # The newest sample waits for one after it; the one that waits at the end counts too.
        if held is not None and not host.lost:
            with suppress(HostError):
                _add(host, index, held, counters)
        await stream.aclose()
        with suppress(HostError):
            await host.ask("unwatch", deadline_s=UNWATCH_LIMIT_S, watch=stream.id)


async def _next(host: Host, stream: Stream, interval_ms: int) -> Mapping[str, Any]:
    limit_s = interval_ms / 1000 + SILENCE_LIMIT_S
    try:
        async with asyncio.timeout(limit_s):
            header = (await anext(stream)).header
    except TimeoutError:
        raise host.give_up(f"showed no sign of life for {limit_s:g} s") from None
    except StopAsyncIteration:
        raise host.give_up("ended its telemetry unasked") from None
    if not isinstance(header.get("real_ns"), int):
        raise _nonsense(host, "it has no time")
    return header


def _add(host: Host, index: int, sample: Mapping[str, Any], counters: CounterCollector) -> None:
    try:
        counters.add(index, sample)
    except ValueError as fault:
        raise _nonsense(host, str(fault)) from None


def _nonsense(host: Host, why: str) -> HostLost:
    return host.give_up(f"sent telemetry that makes no sense: {why.rstrip('.')}")


def _show(crew: Crew, host: Host, before: Mapping[str, Any], after: Mapping[str, Any]) -> None:
    busy = cpu_busy(before.get("cpu"), after.get("cpu"))
    if busy is not None:
        crew.tell(TelemetrySeen(host.name, busy))
