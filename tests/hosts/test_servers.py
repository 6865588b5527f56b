"""Counters of a server that runs on a host, told at other moments than the host's own."""

from __future__ import annotations

import numpy as np
import pytest

from iolab.core.samples import CounterTable
from iolab.hosts.rates import derive_counter_series
from iolab.hosts.telemetry import CounterCollector
from tests.hosts.samples import SECOND, START, sample, series

ALL = {
    "client_reads": 0,
    "client_read_time_ns": 0,
    "compacted_bytes": 0,
    "collection_time_ns": 0,
    "cpu_ns": 0,
    "chunk_cache_requests": 0,
    "chunk_cache_misses": 0,
    "sstables": 1,
}


def told(seq: int, at_s: float, **counters: int) -> dict[str, object]:
    """What a node tells of itself."""
    whole = {**ALL, **counters}
    return {"seq": seq, "real_ns": START + round(at_s * SECOND), "cassandra": whole}


def disk(seq: int, at_s: float) -> dict[str, object]:
    return sample(seq, at_s, disks={"sda": {"read_ios": 100 * seq}})


def test_rates_of_a_node_are_over_the_time_that_passed() -> None:
    found = series(
        told(0, 0.0),
        told(
            1,
            2.0,
            client_reads=1000,
            client_read_time_ns=5_000_000,
            compacted_bytes=4096,
            collection_time_ns=SECOND // 2,
            cpu_ns=3 * SECOND,
            chunk_cache_requests=200,
            chunk_cache_misses=50,
            sstables=3,
        ),
    )
    values = {key[2]: one.value.tolist() for key, one in found.items()}
    assert values["client_reads_per_s"] == [500.0]
    assert values["client_read_lat_ns"] == [5000.0]
    assert values["compacted_bytes_per_s"] == [2048.0]
    assert values["collection_share"] == [0.25]
    assert values["cpu_share"] == [1.5]
    assert values["chunk_cache_miss_share"] == [0.25]
    assert values["sstables"] == [1.0, 3.0]
    # What this node does not count has no series.
    assert "client_writes_per_s" not in values


def mixed(shift_s: float) -> CounterTable:
    """A host's samples each second, and those of a node on it between them, under their numbers."""
    collector = CounterCollector()
    for seq in range(4):
        collector.add(0, disk(seq, float(seq)))
        collector.add(0, told(seq, seq + shift_s, client_reads=10 * seq))
    return collector.pop_table()


@pytest.mark.parametrize("shift_s", [0.0, 0.4, 1.5])
def test_a_node_and_its_host_do_not_disturb_each_other(shift_s: float) -> None:
    found = {(one.scope, one.metric): one for one in derive_counter_series(mixed(shift_s), ("h",))}
    assert found["disk", "read_iops"].value.tolist() == [100.0] * 3
    reads = found["cassandra", "client_reads_per_s"]
    assert reads.value.tolist() == [10.0] * 3
    assert (np.diff(reads.real_ns) == SECOND).all()


def test_a_node_that_was_started_anew_gives_no_negative_rate() -> None:
    found = series(told(0, 0.0, client_reads=900), told(1, 1.0, client_reads=5))
    assert ("cassandra", "", "client_reads_per_s") not in found
