"""What stands out among its like on a node."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from iolab.core.run import DeviceDelta
from iolab.guests.metrics import (
    WATCHED,
    OutlierMetric,
    find_device_outliers,
    outlying_devices_of_node,
)
from iolab.guests.nodes import hypervisor_runs
from tests.analysis.records import SECOND
from tests.guests.fleets import NODES, counted, node, run, view

IOPS, LATENCY = (next(w for w in WATCHED if w.metric == m) for m in ("write_iops", "write_lat_ns"))
CORES = next(w for w in WATCHED if w.scope == "cpu")


@pytest.mark.parametrize(
    ("watched", "values", "odd"),
    [
        (IOPS, [1000, 1010, 990, 1005], []),
        (IOPS, [1000, 1010, 990, 400], ["d3"]),
        (IOPS, [1000, 1000, 1000, 0], ["d3"]),
        (IOPS, [1000, 1010, 990, 1990], ["d3"]),
        # Two say nothing, however far apart they are.
        (IOPS, [1000, 10], []),
        (IOPS, [1000, 1010, 10], ["d2"]),
        # As far apart as the others are from each other.
        (IOPS, [1000, 2000, 3000, 4000, 5000], []),
        # Closer than half as much again, though the others are all alike.
        (IOPS, [1000, 1000, 1000, 1400], []),
        # Below what anybody cares for.
        (IOPS, [1, 1, 1, 40], []),
        (LATENCY, [100_000, 101_000, 99_000, 200_000], ["d3"]),
        # A disk that is faster than the others is no trouble.
        (LATENCY, [300_000, 301_000, 299_000, 90_000], []),
        (LATENCY, [10_000, 10_100, 9_900, 50_000], []),
        (CORES, [0.1, 0.12, 0.09, 0.11, 0.95], ["d4"]),
        (CORES, [0.1, 0.12, 0.09, 0.11, 0.3], []),
        # Half of them are no exception.
        (CORES, [0.1] * 5 + [0.9] * 4, []),
    ],
)
def test_what_is_far_from_its_like_is_named(
    watched: OutlierMetric, values: list[float], odd: list[str]
) -> None:
    named = {f"d{place}": value for place, value in enumerate(values)}
    assert [one.name for one in find_device_outliers(watched, named)] == odd


def test_the_furthest_comes_first() -> None:
    named = dict(zip("abcdefg", [100, 100, 100, 100, 100, 300, 400], strict=True))
    found = find_device_outliers(IOPS, {name: float(value) for name, value in named.items()})
    assert [one.name for one in found] == ["g", "f"]


def test_a_slow_disk_a_hot_core_and_a_busy_port_of_a_node_are_named() -> None:
    slow = {"write_ios": 1000, "write_time_ns": 5 * SECOND}
    quick = {"write_ios": 1000, "write_time_ns": SECOND // 10}
    hot = {"user_ns": SECOND}
    cool = {"user_ns": SECOND // 20, "idle_ns": SECOND - SECOND // 20}
    record = counted(
        run(),
        disks={**dict.fromkeys(("sda", "sdb", "sdc"), quick), "sdd": slow, "other": slow},
        cpu={**{f"{core}@0": cool for core in range(3)}, "3@1": hot},
        nics={
            **{key: {"tx_bytes": 1000} for key in ("eth0", "eth1")},
            "eth2": {"tx_bytes": 10**8},
            "lo": {"tx_bytes": 10**9},
        },
    )
    deltas = tuple(DeviceDelta(f"sd{letter}", 1, 1, 1, 1) for letter in "abcd")
    record = replace(record, monitored_hosts=tuple(node(name, devices=deltas) for name in NODES))
    found = outlying_devices_of_node(view(record), hypervisor_runs(record)[0])
    assert [(one.scope, one.name, one.metric) for one in found] == [
        ("disk", "sdd", "write_lat_ns"),
        ("cpu", "3@1", "busy_share"),
        ("nic", "eth2", "tx_bytes_per_s"),
    ]
    assert [one.value for one in found] == pytest.approx([5e6, 1.0, 1e8])
    assert [one.median_value for one in found] == pytest.approx([1e5, 0.05, 1000.0])


def test_a_node_that_nobody_watched_has_none() -> None:
    record = run(nodes=[])
    assert outlying_devices_of_node(view(record), hypervisor_runs(record)[0]) == ()
