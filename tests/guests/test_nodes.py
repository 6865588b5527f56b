"""Results of nodes against brute force over every latency of their guests."""

from __future__ import annotations

import numpy as np
import pytest
from msgspec.structs import replace

from iolab.core.histogram import bin_index_of_ns
from iolab.core.metric import LatencyLayer, RunResult
from iolab.core.run import RunRecord
from iolab.core.workload import Direction
from iolab.guests.guest import GuestFleet, GuestRun
from iolab.guests.metrics import points_by_hypervisor
from tests.analysis.records import GO_NS, SECOND, Spell, spell_record
from tests.guests.fleets import (
    GUESTS,
    NODES,
    READ,
    counted,
    facts,
    fleet_of,
    given,
    guest,
    node,
    run,
)
from tests.judging import judge
from tests.report.studies import sweep

SHAPES = ((11.0, 0.2), (14.5, 0.3), (12.0, 1.6), (13.0, 0.9))
TIMES = 6
IOS = 20_000
PLACES = {"c1": "n1", "c2": "n2", "c3": "n1", "c4": "n2"}
"""The guests of a node are not neighbours in the run."""


def made() -> list[list[tuple[int, ...]]]:
    """Latencies by guest and second; each guest has a kind of its own and a number of its own."""
    random = np.random.default_rng(61)
    return [
        [
            tuple(np.exp(random.normal(mean, width, IOS // (1 + place))).astype(np.int64).tolist())
            for _ in range(TIMES)
        ]
        for place, (mean, width) in enumerate(SHAPES)
    ]


def uneven() -> tuple[RunRecord, dict[str, np.ndarray]]:
    """A run of four guests on two nodes, and all latencies of each node."""
    latencies = made()
    spells = [
        Spell(host, at, Direction.READ, GO_NS + at * SECOND, SECOND, values)
        for host, seconds in enumerate(latencies)
        for at, values in enumerate(seconds)
    ]
    fleet = GuestFleet(tuple(GuestRun(name, on) for name, on in PLACES.items()))
    every = {
        name: np.sort(
            np.concatenate(
                [
                    np.array(values)
                    for host, on in zip(latencies, PLACES.values(), strict=True)
                    if on == name
                    for values in host
                ]
            )
        )
        for name in NODES
    }
    return replace(spell_record(spells, len(latencies)), fleet=fleet), every


def test_a_nodes_figures_are_those_of_all_latencies_of_its_guests() -> None:
    record, every = uneven()
    result = judge(record, {})
    assert [one.name for one in result.nodes] == list(NODES)
    assert result.nodes[0].guests == ("c1", "c3")
    for one in result.nodes:
        known, metrics = every[one.name], one.metrics
        assert metrics["read_iops"].value == pytest.approx(known.size / TIMES)
        assert metrics["read_lat_ns_mean"].value == pytest.approx(float(known.mean()))
        for name, percent in (("p50", 50.0), ("p99", 99.0), ("p99_5", 99.5)):
            exact = int(known[int(np.ceil(known.size * percent / 100)) - 1])
            found = metrics[f"read_lat_ns_{name}"].value
            assert found is not None
            assert int(bin_index_of_ns([int(found)])[0]) == int(bin_index_of_ns([exact])[0]), name
        assert metrics["read_lat_ns_max"].value == pytest.approx(int(known[-1]), rel=0.016)
    # A mean of the guests' own percentiles is nowhere near.
    own = {host.name: host.metrics["read_lat_ns_p99"].value or 0.0 for host in result.hosts}
    node_p99 = result.nodes[0].metrics["read_lat_ns_p99"].value or 0.0
    assert (own["c1"] + own["c3"]) / 2 != pytest.approx(node_p99, rel=0.05)


def test_nodes_add_up_to_the_fleet() -> None:
    record, _ = uneven()
    result = judge(record, {})
    rates = [one.metrics["iops"].value or 0.0 for one in result.nodes]
    assert sum(rates) == pytest.approx(result.metrics["iops"].value)


def test_without_a_window_that_all_share_a_node_has_no_rate() -> None:
    spells = [
        Spell(host, 0, Direction.READ, GO_NS + host * 10 * SECOND, SECOND, (1000,) * 200)
        for host in range(4)
    ]
    fleet = GuestFleet(tuple(GuestRun(name, on) for name, on in PLACES.items()))
    result = judge(replace(spell_record(spells, 4), fleet=fleet), {})
    assert [one.metrics["iops"].value for one in result.nodes] == [None, None]
    assert result.nodes[0].layers == ()


def test_a_node_tells_its_layers_and_what_was_written() -> None:
    result = judge(counted(run()), facts())
    first = result.nodes[0]
    assert first.guests == GUESTS[:2]
    assert [one.layer for one in first.layers] == list(LatencyLayer)
    assert first.bytes_written is not None
    assert (
        first.bytes_written.guests,
        first.bytes_written.hypervisor,
        first.bytes_written.devices,
    ) == (0, 0, 0)
    assert first.bytes_written.factor == 1.0


def test_hosts_that_are_no_guests_are_of_no_node() -> None:
    assert judge(replace(run(), fleet=None), facts()).nodes == ()
    fleet = fleet_of(guest(GUESTS[0]), given(GUESTS[2]))
    nodes = judge(run(fleet=fleet), facts()).nodes
    assert [one.guests for one in nodes] == [(GUESTS[0],), (GUESTS[2],)]


def test_a_node_that_was_not_watched_has_what_its_guests_did() -> None:
    fleet = fleet_of(*map(given, GUESTS), settings=None)
    (first, _) = judge(run(fleet=fleet, nodes=[]), facts()).nodes
    assert first.metrics["iops"].value == pytest.approx(2000)
    assert [one.layer for one in first.layers] == [LatencyLayer.ENGINE]
    assert first.bytes_written is not None
    assert (
        first.bytes_written.hypervisor,
        first.bytes_written.devices,
        first.bytes_written.factor,
    ) == (None,) * 3
    lost = [node(name, error="It broke off.") for name in NODES]
    (first, _) = judge(run(nodes=lost), facts()).nodes
    assert first.bytes_written is not None
    assert first.bytes_written.devices is None


def test_nodes_of_one_kernel_cannot_tell_whose_writes_their_devices_had() -> None:
    apart = judge(run(nodes=[node(name, write=READ) for name in NODES]), facts())
    assert [one.bytes_written and one.bytes_written.devices for one in apart.nodes] == [READ, READ]
    shared = judge(run(nodes=[node(name, write=READ) for name in NODES]), facts(one_kernel=True))
    assert [one.bytes_written and one.bytes_written.devices for one in shared.nodes] == [None, None]


def of_repeat(number: int, rate: float) -> RunResult:
    result = judge(run(), facts())
    nodes = tuple(
        replace(one, metrics={**one.metrics, "iops": replace(one.metrics["iops"], value=rate * at)})
        for at, one in enumerate(result.nodes, start=1)
    )
    return replace(result, repeat=number, nodes=nodes)


def test_a_nodes_repeats_are_published_as_the_fleets_are() -> None:
    results = [of_repeat(number, rate) for number, rate in enumerate((990.0, 1000.0, 1010.0), 1)]
    points = points_by_hypervisor(results, sweep(seconds=6).study)
    assert list(points) == list(NODES)
    (first,), (second,) = points["n1"], points["n2"]
    metric = second.metrics["iops"]
    assert first.metrics["iops"].value == pytest.approx(1000.0, rel=1e-4)
    assert metric.value == pytest.approx(2000.0, rel=1e-4)
    assert metric.low is not None
    assert metric.high is not None
    assert metric.low < 2000.0 < metric.high
    assert metric.n == 3
