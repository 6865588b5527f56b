"""Samples of the block layer of this very host: what fio did on a device of our own."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec import convert

from iolab.core.histogram import LOWER_NS
from iolab.hosts.answers import TraceAnswer
from tests.agent.speaker import Agent, Said
from tests.agent.test_schema import VALIDATOR
from tests.e2e.targets import command
from tests.needs import ROOT, require

BYTES = 64 << 20
SECTORS = BYTES // 512


@pytest.fixture
def device() -> Iterator[str]:
    require(ROOT, "losetup", "fio")
    with tempfile.TemporaryDirectory(prefix="iolab-test-", dir="/dev/shm") as folder:
        image = Path(folder) / "image"
        with image.open("wb") as file:
            file.truncate(BYTES)
        name = command("losetup", "--find", "--show", image)
        try:
            yield Path(name).name
        finally:
            command("losetup", "--detach", name)


def fio(agent: Agent, device: str, rw: str, bs: str = "4k", **options: str) -> dict[str, Any]:
    words = [f"--{name}={value}" for name, value in options.items()]
    said = agent.run(
        *("fio", "--name=t", "--direct=1", "--ioengine=libaio", "--iodepth=4", "--time_based"),
        *(f"--filename=/dev/{device}", f"--rw={rw}", f"--bs={bs}", "--runtime=1"),
        *("--randrepeat=0", "--output-format=json", *words),
    )
    text = b"".join(one.payload for one in said if one.is_ == "output")
    job: dict[str, Any] = json.loads(text)["jobs"][0]
    return job


def traced(agent: Agent, device: str, rw: str, **options: str) -> tuple[Said, dict[str, Any]]:
    """What the agent saw of that fio, and what fio says."""
    trace = agent.begin("trace", device=device, wall_limit_s=60)
    job = fio(agent, device, rw, **options)
    assert agent.ask("unwatch", watch=trace).is_ == "done"
    return agent.next(trace), job


def test_a_slow_load_is_seen_whole(agent: Agent, device: str) -> None:
    said, job = traced(agent, device, "randrw", rate_iops="300")
    assert (said["device"], said["reason"]) == (device, None)
    for way in ("read", "write"):
        seen = said[way]
        # What came before the events were enabled, or had no room, is not seen.
        assert 0.8 * job[way]["total_ios"] <= seen["bios"] <= job[way]["total_ios"]
        assert seen["sizes"] == [[4096, seen["bios"]]]
        assert len(seen["sectors"]) == seen["bios"]
        assert max(seen["sectors"]) < SECTORS
        assert seen["lat_max_ns"] <= job[way]["lat_ns"]["max"]
        assert sum(row[1] for row in seen["latencies"]) == seen["timed"] <= seen["bios"]
    VALIDATOR.validate(said.header)
    convert(said.header, TraceAnswer)


def test_a_fast_load_is_sampled_and_its_sequence_seen(agent: Agent, device: str) -> None:
    said, job = traced(agent, device, "read")
    seen = said["read"]
    assert 200 < seen["bios"] <= job["read"]["total_ios"]
    assert len(seen["sectors"]) <= 4096
    assert seen["sequential"] > 0.9 * seen["bios"]
    said, _ = traced(agent, device, "randread", norandommap="1")
    assert said["read"]["sequential"] < 0.2 * said["read"]["bios"]


def test_bios_that_the_kernel_splits_are_timed_to_their_last_part(
    agent: Agent, device: str
) -> None:
    said, job = traced(agent, device, "randread", bs="2m")
    seen = said["read"]
    assert max(size for size, _ in seen["sizes"]) >= 512 << 10
    # Where the kernel left the record of an end out, the next end at that place is taken for it.
    longest = job["read"]["lat_ns"]["max"]
    longer = sum(row[1] for row in seen["latencies"] if LOWER_NS[row[0]] > longest)
    assert longer <= 0.05 * seen["timed"]


def test_io_of_others_is_told_apart(agent: Agent, device: str) -> None:
    trace = agent.begin("trace", device=device, wall_limit_s=60)
    agent.ask("clock")
    command("dd", f"if=/dev/{device}", "of=/dev/null", "bs=4k", "count=2000", "iflag=direct")
    agent.ask("unwatch", watch=trace)
    said = agent.next(trace)
    assert said["read"]["bios"] == 0
    assert said["others"] > 0


def test_no_device_is_a_reason(agent: Agent) -> None:
    trace = agent.begin("trace", device="nowhere0", wall_limit_s=60)
    said = agent.next(trace)
    assert "nowhere0" in said["reason"]
    assert agent.ask("unwatch", watch=trace).is_ == "done"
    assert convert(said.header, TraceAnswer).to_block_trace.read is None
