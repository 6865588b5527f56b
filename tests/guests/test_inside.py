"""One node over time, on the controller's clock."""

from __future__ import annotations

import numpy as np
import pytest
from msgspec.structs import replace

from iolab.core.host import HostFacts, NicFacts
from iolab.core.run import DeviceDelta, RunRecord
from iolab.core.workload import Direction
from iolab.guests.nodes import hypervisor_counters, link_bytes_per_s
from iolab.hosts.rates import CounterSeries, derive_counter_series
from tests.analysis.records import GO_NS, SECOND
from tests.guests.fleets import NODES, counted, facts, node, run

PORT = 25_000 * 10**6 // 8
"""Bytes a second of 25 Gbit/s."""


def made() -> tuple[RunRecord, tuple[CounterSeries, ...], dict[str, HostFacts]]:
    half = {"user_ns": SECOND // 2, "idle_ns": SECOND // 2}
    record = counted(
        run(),
        disks={
            "sda": {"read_ios": 100, "write_ios": 50, "write_time_ns": 50 * 10**6},
            "sdb": {"read_ios": 10},
            "other": {"read_ios": 9},
        },
        cpu={f"{core}@{core}": half for core in range(12)},
        nics={
            "eth0": {"tx_bytes": PORT // 10, "tx_frames": 7},
            "eth1": {"tx_bytes": 10},
            "lo": {"tx_bytes": 10},
        },
    )
    deltas = tuple(DeviceDelta(name, 1, 1, 1, 1) for name in ("sda", "sdb"))
    nodes = tuple(node(name, devices=deltas) for name in NODES)
    known = facts()
    ports = (
        NicFacts("eth0", None, 25_000, 1500, up=True),
        NicFacts("eth1", None, None, 1500, up=True),
    )
    known["n1"] = replace(known["n1"], nics=ports)
    record = replace(record, monitored_hosts=nodes)
    return record, derive_counter_series(record.counters, record.host_names), known


def test_each_thing_of_a_node_has_its_series_by_name() -> None:
    record, telemetry, known = made()
    found = hypervisor_counters(record, telemetry, known["n1"], "n1")
    assert found is not None
    assert list(found.iops) == ["sda", "sdb"]
    assert found.iops["sda"].value.tolist() == pytest.approx([150.0] * 32)
    assert found.lat_ns[Direction.WRITE]["sda"].value.tolist() == pytest.approx([1e6] * 32)
    assert np.isnan(found.lat_ns[Direction.WRITE]["sdb"].value).all()
    assert list(found.cpu_busy_by_numa_node) == [f"node{number}" for number in range(12)]
    assert found.cpu_busy_by_numa_node["node10"].value.tolist() == pytest.approx([0.5] * 32)
    assert list(found.tx_bytes_per_s) == ["eth0", "eth1"]
    assert found.tx_frames_per_s["eth0"].value[0] == pytest.approx(7.0)


def test_times_are_the_controllers() -> None:
    record, telemetry, known = made()
    found = hypervisor_counters(record, telemetry, known["n1"], "n1")
    assert found is not None
    # The first sample is a second before the start; the clock of the node is an hour ahead.
    assert found.iops["sda"].real_ns[0] == GO_NS
    assert found.cpu_busy_by_numa_node["node0"].real_ns[-1] == GO_NS + 31 * SECOND


def test_a_share_is_of_what_the_link_carries_each_way() -> None:
    record, telemetry, known = made()
    found = hypervisor_counters(record, telemetry, known["n1"], "n1")
    assert found is not None
    assert found.tx_share["eth0"].value[0] == pytest.approx(0.1)
    assert "eth1" not in found.tx_share
    assert link_bytes_per_s(known["n1"], "eth0") == PORT
    assert link_bytes_per_s(None, "eth0") is None


def test_a_node_that_nobody_watched_has_no_inside() -> None:
    record, telemetry, known = made()
    assert hypervisor_counters(record, telemetry, None, "n3") is None
    assert (
        hypervisor_counters(replace(record, monitored_hosts=()), telemetry, known["n1"], "n1")
        is None
    )
