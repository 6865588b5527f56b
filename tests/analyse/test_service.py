"""Service times: told only of open loops, merged bin by bin, cut as the load is."""

from __future__ import annotations

import pytest

from iolab.analyse.judge import judge
from iolab.analyse.service import SERVICE_UNITS
from iolab.model.sample import Direction, ServiceTime
from tests.analyse.records import MIXED, Burst, bursts_record, facts_of, healthy


def test_a_closed_loop_has_none() -> None:
    result = judge(healthy(), {"c1": facts_of()})
    assert not set(result.metrics) & set(SERVICE_UNITS)


def test_each_direction_and_both_together() -> None:
    record = bursts_record(
        [
            Burst(ios=1000, lat_ns=5_000_000),
            Burst(ios=1000, lat_ns=5_000_000, direction=Direction.WRITE),
            Burst(ios=1000, lat_ns=100_000, direction=ServiceTime.READ),
            Burst(ios=1000, lat_ns=300_000, direction=ServiceTime.WRITE),
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
    few = [Burst(ios=1, lat_ns=1000), Burst(ios=1, lat_ns=1000, direction=ServiceTime.READ)]
    metrics = judge(bursts_record(few), {"c1": facts_of()}).metrics
    assert metrics["service_lat_ns_p99"].value is None
    assert metrics["service_lat_ns_mean"].value == pytest.approx(1000)
    assert metrics["write_service_lat_ns_mean"].value is None
