"""Latency logs merged by HdrHistogram's own Python port, and what a record made of them."""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np
import pytest
from hdrh.histogram import HdrHistogram

from iolab.core.histogram import Histogram, dense_counts
from iolab.core.run import RunRecord
from iolab.loads.keyvalue.workload import KeyOperation

LONGEST_US = 3_600_000_000
DIGITS = 3
NS_PER_US = 1000
RELATIVE_BIN = 0.011
"""What iolab's bins promise, and 0.1 % for YCSB's own."""

HALF_US_NS = 500
"""YCSB counts whole microseconds; iolab takes the middle of one."""

NAMES = {
    KeyOperation.READ: "READ",
    KeyOperation.UPDATE: "UPDATE",
    KeyOperation.READ_MODIFY_WRITE: "READ-MODIFY-WRITE",
}


def merged(logs: Iterable[bytes]) -> HdrHistogram:
    """All operations of all logs, as if one client had done them."""
    whole = HdrHistogram(1, LONGEST_US, DIGITS)
    for log in logs:
        for line in log.decode("ascii").splitlines():
            if line[:1].isdigit():
                whole.decode_and_add(line.rpartition(",")[2].encode("ascii"))
    return whole


def at_rank(histogram: HdrHistogram, rank: int) -> int:
    """The rank-th shortest latency: HdrHistogram's own percentiles round the rank."""
    below = 0
    for item in histogram.get_recorded_iterator():
        below += item.count_at_value_iterated_to
        if below >= rank:
            return int(item.value_iterated_to)
    raise ValueError(f"there are {below} latencies, and none of rank {rank}")


def assert_agrees(record: RunRecord, operation: KeyOperation) -> int:
    """The record's percentiles of all hosts are those of all logs together; how many operations."""
    name = f"latency.{NAMES[operation]}.hdr"
    logs = [one.content.decompress() for one in record.outputs if one.name == name]
    assert len(logs) == len(record.hosts)
    oracle = merged(logs)
    rows = record.bins.direction == operation
    ours = Histogram(dense_counts(record.bins.bin[rows], record.bins.count[rows]))
    assert ours.total == oracle.get_total_count() > 0
    for percent in (1, 50, 90, 95, 99, 99.9, 99.99, 100):
        expected_ns = at_rank(oracle, math.ceil(ours.total * percent / 100)) * NS_PER_US
        assert ours.percentile_ns(percent) == pytest.approx(
            expected_ns, rel=RELATIVE_BIN, abs=HALF_US_NS
        ), percent
    counted = record.intervals.direction == operation
    assert int(np.sum(record.intervals.ios[counted])) == ours.total
    return ours.total
