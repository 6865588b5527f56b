"""Samples of this very host: they count what happens, on time, until they are called off."""

from __future__ import annotations

import os
import tempfile
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


def test_processor_time_adds_up_to_wall_time(agent: Agent) -> None:
    watch = agent.begin("watch", interval_ms=500)
    first, second = agent.next(watch), agent.next(watch)
    elapsed_ns = second["mono_ns"] - first["mono_ns"]
    assert len(first["cpu"]) == len(second["cpu"]) == os.cpu_count()
    for was, now in zip(first["cpu"], second["cpu"], strict=True):
        assert was[:2] == now[:2]
        spent_ns = sum(now[2:]) - sum(was[2:])
        # Ticks are coarse and the kernel accounts for idle time late: right within a factor.
        assert elapsed_ns / 3 < spent_ns < elapsed_ns * 3


def test_samples_come_on_whole_intervals_and_end_when_called_off(agent: Agent) -> None:
    watch = agent.begin("watch", interval_ms=100)
    samples = [agent.next(watch) for _ in range(6)]
    assert [sample["seq"] for sample in samples] == list(range(6))
    since = [(s["mono_ns"] - samples[0]["mono_ns"]) / 1e8 for s in samples]
    # Late by what the machine is busy with, but late ones do not push those after them.
    assert all(tick - 0.1 < time for tick, time in enumerate(since))
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
