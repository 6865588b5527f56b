"""Service times: told only of open loops, merged bin by bin, cut as the load is."""

from __future__ import annotations

import pytest

from iolab.analysis.service_time import SERVICE_KEYS
from iolab.core.workload import Direction, ServiceTimeDirection
from tests.analysis.records import MIXED, Burst, bursts_record, facts_of, healthy
from tests.judging import judge


def test_a_closed_loop_has_none() -> None:
    result = judge(healthy(), {"c1": facts_of()})
    assert not set(result.metrics) & set(SERVICE_KEYS)


def test_each_direction_and_both_together() -> None:
    record = bursts_record(
        [
            Burst(ios=1000, lat_ns=5_000_000),
            Burst(ios=1000, lat_ns=5_000_000, direction=Direction.WRITE),
            Burst(ios=1000, lat_ns=100_000, direction=ServiceTimeDirection.READ),
            Burst(ios=1000, lat_ns=300_000, direction=ServiceTimeDirection.WRITE),
        ],
        job=MIXED,
    )
    metrics = judge(record, {"c1": facts_of()}).metrics
    means = [metrics[f"{way}service_lat_ns_mean"].value for way in ("", "read_", "write_")]
    assert means == pytest.approx([200_000, 100_000, 300_000])
    assert metrics["read_service_lat_ns_p99"].value == pytest.approx(100_000, rel=0.01)
    assert metrics["service_lat_ns_p99"].value == pytest.approx(300_000, rel=0.01)
    # The response times and the rates are as they are without.
    assert metrics["iops"].value == pytest.approx(2000)
    assert metrics["lat_ns_mean"].value == pytest.approx(5_000_000)
    assert metrics["service_lat_ns_p99_9"].unit == "ns"


def test_a_percentile_needs_ios_behind_it() -> None:
    few = [
        Burst(ios=1, lat_ns=1000),
        Burst(ios=1, lat_ns=1000, direction=ServiceTimeDirection.READ),
    ]
    metrics = judge(bursts_record(few), {"c1": facts_of()}).metrics
    assert metrics["service_lat_ns_p99"].value is None
    assert metrics["service_lat_ns_mean"].value == pytest.approx(1000)
    assert metrics["write_service_lat_ns_mean"].value is None


def test_hosts_are_merged_bin_by_bin() -> None:
    # A hundredth and a bit more of all I/Os, those of the second host, are slow.
    hosts = [
        [
            Burst(ios=980, lat_ns=9_000_000),
            Burst(ios=980, lat_ns=1000, direction=ServiceTimeDirection.READ),
        ],
        [
            Burst(ios=20, lat_ns=9_000_000),
            Burst(ios=20, lat_ns=100_000, direction=ServiceTimeDirection.READ),
        ],
    ]
    facts = {name: facts_of(name) for name in ("c1", "c2")}
    metrics = judge(bursts_record(*hosts), facts).metrics
    assert metrics["service_lat_ns_p50"].value == pytest.approx(1000, rel=0.01)
    assert metrics["service_lat_ns_p99"].value == pytest.approx(100_000, rel=0.01)
    assert metrics["service_lat_ns_mean"].value == pytest.approx((980 * 1000 + 20 * 100_000) / 1000)


def test_the_warm_up_is_no_part_of_it() -> None:
    slow, fast = 1_000_000, 1000
    told = [
        Burst(spans=5, ios=1000, lat_ns=slow),
        Burst(spans=5, ios=1000, lat_ns=slow, direction=ServiceTimeDirection.READ),
        Burst(start_s=5, first_seq=5, spans=30, ios=1000, lat_ns=slow),
        Burst(
            start_s=5,
            first_seq=5,
            spans=30,
            ios=1000,
            lat_ns=fast,
            direction=ServiceTimeDirection.READ,
        ),
    ]
    metrics = judge(bursts_record(told, warmup_s=5.0), {"c1": facts_of()}).metrics
    assert metrics["service_lat_ns_mean"].value == pytest.approx(fast)
    assert metrics["service_lat_ns_p99"].value == pytest.approx(fast, rel=0.01)
