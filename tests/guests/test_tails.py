"""Percentiles of the hypervisor's own bins against brute force over every latency."""

from __future__ import annotations

import numpy as np
import pytest
from msgspec.structs import replace

from iolab.core.metric import Metric
from iolab.core.samples import Ints
from iolab.core.workload import Direction
from iolab.guests.blocks import BOUNDARIES_NS
from iolab.guests.guest import GuestRun
from iolab.guests.metrics import (
    OPEN_NS,
    latency_percentiles_of_node_guests,
    percentile_with_bin_bounds,
)
from iolab.guests.nodes import hypervisor_runs
from tests.guests.fleets import GUESTS, blocks, fleet_of, given, guest, run

EDGES = (0, *BOUNDARIES_NS, OPEN_NS)


def binned(latencies: Ints) -> tuple[tuple[int, int, int], ...]:
    """As a hypervisor keeps them."""
    counts, _ = np.histogram(latencies, bins=np.array(EDGES, dtype=np.float64))
    return tuple(
        (low, high, int(count))
        for low, high, count in zip(EDGES, EDGES[1:], counts, strict=False)
        if count
    )


def test_percentiles_of_a_node_lie_within_a_bin_of_all_its_guests() -> None:
    random = np.random.default_rng(7)
    made = [
        np.exp(random.normal(mean, width, 600_000)).astype(np.int64)
        for mean, width in ((12.0, 0.5), (15.0, 1.2))
    ]
    held = [replace(blocks(), ios=len(one), bins=binned(one)) for one in made]
    fleet = fleet_of(*(guest(name, blocks=(one,)) for name, one in zip(GUESTS, held, strict=False)))
    (node,) = hypervisor_runs(run(fleet=fleet))
    found = latency_percentiles_of_node_guests(node)
    every = np.sort(np.concatenate(made))
    names = {"p50": 50.0, "p99": 99.0, "p99_5": 99.5, "p99_9": 99.9, "p99_99": 99.99}
    assert set(found) == {f"read_lat_ns_{name}" for name in names}
    for name, percent in names.items():
        metric = found[f"read_lat_ns_{name}"]
        exact = int(every[int(np.ceil(every.size * percent / 100)) - 1])
        assert metric.has_bin_edge_interval
        assert metric.low is not None
        assert metric.high is not None
        assert metric.value is not None
        assert metric.low <= exact <= metric.high
        assert metric.low <= metric.value <= metric.high
        assert metric.high / metric.low == pytest.approx(2 ** (1 / 8), rel=1e-3)


def test_few_ios_have_no_far_percentile() -> None:
    few = replace(blocks(), ios=1000, bins=((1000, 2000, 1000),))
    fleet = fleet_of(*(guest(name, blocks=(few,)) for name in GUESTS))
    (node, _) = hypervisor_runs(run(fleet=fleet))
    assert set(latency_percentiles_of_node_guests(node)) == {"read_lat_ns_p50"}


@pytest.mark.parametrize(
    "odd",
    [
        guest(GUESTS[1]),
        given(GUESTS[1]),
        guest(GUESTS[1], blocks=(replace(blocks(), ios=5),)),
    ],
)
def test_a_guest_without_bins_leaves_its_node_without_percentiles(odd: GuestRun) -> None:
    held = replace(blocks(), bins=((1000, 2000, 30_000),))
    fleet = fleet_of(guest(GUESTS[0], blocks=(held,)), odd)
    (node,) = hypervisor_runs(run(fleet=fleet))
    assert latency_percentiles_of_node_guests(node) == {}


def test_a_guest_that_did_nothing_that_way_needs_no_bins() -> None:
    held = replace(blocks(), bins=((1000, 2000, 30_000),))
    idle = replace(blocks(0), ios=0)
    fleet = fleet_of(guest(GUESTS[0], blocks=(held,)), guest(GUESTS[1], blocks=(idle,)))
    (node,) = hypervisor_runs(run(fleet=fleet))
    assert latency_percentiles_of_node_guests(node)["read_lat_ns_p50"] == Metric(
        1500.0, "ns", 1000.0, 2000.0
    )
    writes = replace(held, direction=Direction.WRITE)
    fleet = fleet_of(guest(GUESTS[0], blocks=(writes,)))
    (node,) = hypervisor_runs(run(fleet=fleet))
    assert "write_lat_ns_p50" in latency_percentiles_of_node_guests(node)


def test_a_bin_without_an_end_tells_more_than() -> None:
    bins = ((0, 1000, 50), (1000, OPEN_NS, 50))
    assert percentile_with_bin_bounds(bins, 50.0) == Metric(1000.0, "ns", 0.0, 1000.0)
    assert percentile_with_bin_bounds(bins, 99.0) == Metric(None, "ns", low=1000.0)
    with pytest.raises(ValueError, match="no percentile"):
        percentile_with_bin_bounds((), 50.0)
