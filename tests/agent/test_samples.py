"""Samples of this very host: they count what happens, on time, until they are called off."""

from __future__ import annotations

import os
import re
import tempfile
import time
from pathlib import Path
from typing import Any

from tests.agent.speaker import Agent, Said

MIB = 1 << 20


def disk(sample: Said, name: str) -> list[Any]:
    return next(row for row in sample["disks"] if row[0] == name)


def test_direct_writes_are_counted_by_the_device(agent: Agent) -> None:
    with tempfile.TemporaryDirectory(dir=Path(__file__).parents[2], prefix="scratch-") as folder:
        name = agent.ask("facts", path=folder)["facts"]["target"]["device"]
        agent.ask("sync")
        before = agent.begin("snapshot")
        first = agent.next(before)
        said = agent.run(
            "dd", "if=/dev/urandom", f"of={folder}/file", "bs=1M", "count=32", "oflag=direct"
        )
        assert said[-1]["code"] == 0
        second = agent.next(agent.begin("snapshot"))
    was, now = disk(first, name), disk(second, name)
    assert now[4] > was[4]
    assert now[5] - was[5] >= 32 * MIB
    assert now[8] >= was[8]


def spent_ns() -> list[list[int]]:
    """What each processor spent for users and for the kernel, as the kernel tells it in ticks."""
    lines = Path("/proc/stat").read_text(encoding="ascii").splitlines()
    rows = [line.split() for line in lines if re.match(r"cpu\d", line)]
    tick_ns = 1_000_000_000 // os.sysconf("SC_CLK_TCK")
    return [[int(row[1]) * tick_ns, int(row[3]) * tick_ns] for row in rows]


def test_processor_time_is_that_of_the_kernel(agent: Agent) -> None:
    before = spent_ns()
    told = [[row[2], row[4]] for row in agent.next(agent.begin("snapshot"))["cpu"]]
    for was, now, later in zip(before, told, spent_ns(), strict=True):
        assert all(a <= b <= c for a, b, c in zip(was, now, later, strict=True))


def test_samples_come_on_whole_intervals_and_end_when_called_off(agent: Agent) -> None:
    begun_ns = time.monotonic_ns()
    watch = agent.begin("watch", interval_ms=100)
    samples = [agent.next(watch) for _ in range(6)]
    assert [sample["seq"] for sample in samples] == list(range(6))
    # Late by what the machine is busy with, and never early.
    for tick, sample in enumerate(samples):
        assert sample["mono_ns"] >= begun_ns + tick * 100_000_000
    assert agent.ask("unwatch", watch=watch).is_ == "done"
    assert agent.rest(watch)[-1].is_ == "done"
    assert agent.ask("unwatch", watch=watch)["code"] == "bad-request"


def test_several_watches_go_side_by_side(agent: Agent) -> None:
    watches = [agent.begin("watch", interval_ms=100 * n) for n in (1, 2)]
    assert [agent.next(watch)["seq"] for watch in watches for _ in range(2)] == [0, 1, 0, 1]
    for watch in watches:
        agent.ask("unwatch", watch=watch)
        assert agent.rest(watch)[-1].is_ == "done"


def test_memory_and_the_agents_own_use(agent: Agent) -> None:
    sample = agent.next(agent.begin("snapshot"))
    memory = sample["memory"]
    assert memory["total_bytes"] == os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    assert 0 < memory["available_bytes"] <= memory["total_bytes"]
    assert 0 < sample["agent"]["rss_bytes"] < 64 * MIB
    assert sample["agent"]["cpu_ns"] > 0
