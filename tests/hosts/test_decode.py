"""Samples become counters by name; what is no sample is refused whole."""

from __future__ import annotations

import json

import numpy as np
import pytest

from iolab.core.samples import CounterTable
from iolab.hosts.counter_names import GUEST
from iolab.hosts.telemetry import CounterCollector
from tests.hosts.samples import SECOND, START, sample, series, table

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
    counters = collector.pop_table()
    assert counters.host.tolist() == [0, 1, 1]
    assert counters.seq.tolist() == [0, 0, 1]
    assert counters.real_ns.tolist() == [START, START + 500_000_000, START + 1_500_000_000]
    assert counters.value.tolist() == [2, 1, 3]


@pytest.mark.parametrize(
    ("change", "message"),
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
def test_what_is_no_sample_is_refused_whole(change: dict[str, object], message: str) -> None:
    collector = CounterCollector()
    with pytest.raises(ValueError, match=message):
        collector.add(0, {**FULL, **change})
    assert len(collector.pop_table()) == 0


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


def told(seq: int, at_s: float, guest: str, **counts: int | None) -> dict[str, object]:
    """What a node tells of one guest."""
    row = [guest, *(counts.get(metric, 0) for metric in GUEST)]
    return {"seq": seq, "real_ns": START + round(at_s * SECOND), "guests": [row]}


def test_rates_of_a_guest_are_over_the_time_between_its_own_looks() -> None:
    found = series(
        sample(0, 0.0, disks={"sda": {}}),
        told(0, 0.1, "vm1"),
        told(0, 0.3, "vm2"),
        sample(1, 1.0, disks={"sda": {"read_ios": 10}}),
        told(1, 2.1, "vm1", read_ios=100, read_bytes=409_600, read_ns=10**8, vcpu_run_ns=SECOND),
        told(1, 1.3, "vm2", write_ios=50, write_ns=10**9, vcpu_wait_ns=SECOND // 2),
    )
    values = {key: one.value.tolist() for key, one in found.items()}
    assert values["guest", "vm1", "read_iops"] == [50.0]
    assert values["guest", "vm1", "read_bytes_per_s"] == [204_800.0]
    assert values["guest", "vm1", "read_lat_ns"] == [1e6]
    assert values["guest", "vm1", "vcpu_run_share"] == [0.5]
    assert values["guest", "vm2", "write_iops"] == [50.0]
    assert values["guest", "vm2", "write_lat_ns"] == [2e7]
    assert values["guest", "vm2", "vcpu_wait_share"] == [0.5]
    assert values["disk", "sda", "read_iops"] == [10.0]
    assert found["guest", "vm2", "read_iops"].real_ns.tolist() == [START + 1_300_000_000]


def test_a_guest_whose_processors_nobody_counts_has_a_disk_all_the_same() -> None:
    alone = {"vcpu_run_ns": None, "vcpu_wait_ns": None}
    found = series(told(0, 0.0, "vm1", **alone), told(1, 1.0, "vm1", read_ios=7, **alone))
    assert found["guest", "vm1", "read_iops"].value.tolist() == [7.0]
    assert ("guest", "vm1", "vcpu_run_share") not in found


def test_a_guest_that_was_booted_anew_gives_no_rate_over_that_step() -> None:
    found = series(
        *(told(at, at, "vm1", read_ios=count) for at, count in enumerate((100, 200, 5, 25)))
    )
    assert found["guest", "vm1", "read_iops"].value.tolist() == pytest.approx([100.0, 20.0])
