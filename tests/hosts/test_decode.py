"""Samples become counters by name; what is no sample is refused whole."""

from __future__ import annotations

import json

import numpy as np
import pytest

from iolab.core.samples import CounterTable
from iolab.hosts.telemetry import CounterCollector
from tests.hosts.samples import START, sample, table

FULL = sample(
    3,
    1.0,
    cpu={(0, 0): {"user_ns": 11, "steal_ns": 12}, (1, 1): {"idle_ns": 13}},
    disks={"nvme0n1": {"read_ios": 21, "temperature_mc": 41_000, "flush_ios": None}},
    nics={"eth0": {"rx_bytes": 31, "tx_drops": 32}},
    memory={"total_bytes": 41, "dirty_bytes": None},
    pressure={"io_full_ns": 51},
    thermal={"throttle_events": 61},
    agent={"cpu_ns": 71, "rss_bytes": 72},
)


def rows(counters: CounterTable) -> dict[tuple[str, str, str], int]:
    keys = zip(counters.scope, counters.name, counters.metric, strict=True)
    return dict(zip(keys, counters.value.tolist(), strict=True))


def test_every_position_gets_its_name() -> None:
    found = rows(table(json.loads(json.dumps(FULL))))
    assert found["cpu", "0@0", "user_ns"] == 11
    assert found["cpu", "0@0", "steal_ns"] == 12
    assert found["cpu", "1@1", "idle_ns"] == 13
    assert found["disk", "nvme0n1", "read_ios"] == 21
    assert found["disk", "nvme0n1", "temperature_mc"] == 41_000
    assert found["nic", "eth0", "rx_bytes"] == 31
    assert found["nic", "eth0", "tx_drops"] == 32
    assert found["memory", "", "total_bytes"] == 41
    assert found["pressure", "", "io_full_ns"] == 51
    assert found["thermal", "", "throttle_events"] == 61
    assert found["agent", "", "cpu_ns"] == 71
    assert len(found) == 2 * 8 + 12 + 6 + 1 + 1 + 1 + 2


def test_what_the_kernel_does_not_have_has_no_row() -> None:
    found = rows(table(FULL))
    assert ("disk", "nvme0n1", "flush_ios") not in found
    assert ("memory", "", "dirty_bytes") not in found


def test_rows_carry_host_sample_and_time_ordered_by_host() -> None:
    collector = CounterCollector()
    collector.add(1, sample(0, 0.5, agent={"cpu_ns": 1}))
    collector.add(0, sample(0, 0.0, agent={"cpu_ns": 2}))
    collector.add(1, sample(1, 1.5, agent={"cpu_ns": 3}))
    counters = collector.table()
    assert counters.host.tolist() == [0, 1, 1]
    assert counters.seq.tolist() == [0, 0, 1]
    assert counters.real_ns.tolist() == [START, START + 500_000_000, START + 1_500_000_000]
    assert counters.value.tolist() == [2, 1, 3]


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"seq": None}, "'seq' is not a number"),
        ({"real_ns": "now"}, "'real_ns' is not a number"),
        ({"cpu": {"0": 1}}, "'cpu' is not a list"),
        ({"cpu": [[0, 0, 1]]}, "'cpu' is not rows of 10"),
        ({"disks": ["sda"]}, "'disks' is not rows of 14"),
        ({"nics": [["eth0", *[0] * 7]]}, "'nics' is not rows of 7"),
        ({"memory": [1]}, "'memory' is not an object"),
        ({"agent": {"cpu_ns": 1.5}}, "'agent..cpu_ns' is not a number of 64 bits"),
        ({"agent": {"cpu_ns": True}}, "is not a number of 64 bits"),
        ({"agent": {"cpu_ns": 1 << 63}}, "is not a number of 64 bits"),
    ],
)
def test_what_is_no_sample_is_refused_whole(change: dict[str, object], says: str) -> None:
    collector = CounterCollector()
    with pytest.raises(ValueError, match=says):
        collector.add(0, {**FULL, **change})
    assert len(collector.table()) == 0


def test_samples_of_other_shapes_keep_their_names_apart() -> None:
    """Rows that come, go, or lose a value between samples of one host."""
    samples = [
        sample(0, 0.0, disks={"a": {"read_ios": 1}}),
        sample(1, 1.0, disks={"a": {"read_ios": 2}, "b": {"read_ios": 3}}),
        sample(2, 2.0, disks={"b": {"read_ios": 4, "write_ios": None}}),
        sample(3, 3.0, disks={"a": {"read_ios": 5}}),
    ]
    counters = table(*samples)
    reads = [
        (int(seq), name, int(value))
        for seq, name, metric, value in zip(
            counters.seq, counters.name, counters.metric, counters.value, strict=True
        )
        if metric == "read_ios"
    ]
    assert reads == [(0, "a", 1), (1, "a", 2), (1, "b", 3), (2, "b", 4), (3, "a", 5)]
    gone = (counters.seq == 2) & (np.asarray(counters.metric) == "write_ios")
    assert not gone.any()
