"""The end of a watch: the look after the load is its last sample, unless it has a newer one."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from iolab.hosts.message import Message
from iolab.hosts.telemetry import CounterCollector
from iolab.session.observers import HostWatch
from tests.hosts.samples import SECOND, START, sample


class WatchStream:
    """One sample, at 2 s, and no more."""

    id = 7

    async def __anext__(self) -> Message:
        return Message("sample", sample(4, 2.0, agent={"cpu_ns": 1}))

    async def aclose(self) -> None:
        """Nothing is left to be read."""


class WatchedHost:
    """A host whose next look is at 4 s."""

    name = "a"

    def __init__(self) -> None:
        self.asked: list[str] = []

    def stream(self, verb: str, **_: Any) -> WatchStream:
        return WatchStream()

    async def request(self, verb: str, **_: Any) -> Message:
        self.asked.append(verb)
        return Message("sample", sample(0, 4.0, agent={"cpu_ns": 3}))


def look(at_s: float) -> dict[str, Any]:
    return sample(0, at_s, agent={"cpu_ns": 2})


@pytest.mark.parametrize(
    ("last", "times_s", "asked"),
    [
        (look(3.0), [2, 3], ["unwatch"]),
        (look(1.0), [2], ["unwatch"]),
        (None, [2, 4], ["snapshot", "unwatch"]),
    ],
)
def test_the_last_sample_is_the_newest_look(
    last: dict[str, Any] | None, times_s: list[int], asked: list[str]
) -> None:
    host, counters = WatchedHost(), CounterCollector()
    session: Any = SimpleNamespace(study=SimpleNamespace(telemetry=SimpleNamespace(interval_ms=9)))

    async def play() -> None:
        watch = HostWatch(session, host, 0, counters)  # type: ignore[arg-type]
        await watch.begin()
        await watch.end(last)

    asyncio.run(play())
    table = counters.pop_table()
    assert [(time - START) // SECOND for time in table.real_ns.tolist()] == times_s
    assert table.seq.tolist() == [4, 5][: len(times_s)]
    assert host.asked == asked
