"""Metrics against brute force over every single I/O."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from iolab.analysis.metrics import METRIC_KEYS, TRIM_KEYS, fleet_metrics, host_metrics
from iolab.analysis.sums import sum_measured_window
from iolab.core.histogram import LOWER_NS, UPPER_NS, bin_index_of_ns
from iolab.core.metric import Metric
from iolab.core.metric_spec import metric_spec
from iolab.core.workload import Direction
from iolab.loads.fileio.workload import AccessPattern
from tests.analysis.records import (
    BLOCK,
    GO_NS,
    SECOND,
    TRIMS,
    Burst,
    Spell,
    bursts_record,
    spell_record,
)
from tests.histograms import of_latencies

LATENCIES = st.lists(st.integers(0, 10**10), max_size=40).map(tuple)
RANDOM = np.random.default_rng(7)


@st.composite
def fleets(draw: st.DrawFn) -> list[Spell]:
    """One to three hosts, the same jittered intervals on each, any latencies."""
    hosts = draw(st.integers(1, 3))
    spans = draw(st.lists(st.integers(900_000_000, 1_100_000_000), min_size=1, max_size=4))
    starts = np.concatenate(([0], np.cumsum(spans)))
    return [
        Spell(host, seq, way, GO_NS + int(starts[seq]), span, draw(LATENCIES))
        for host in range(hosts)
        for seq, span in enumerate(spans)
        for way in (Direction.READ, Direction.WRITE)
    ]


def metrics_of(spells: list[Spell]) -> dict[str, Metric]:
    hosts = 1 + max(spell.host for spell in spells)
    return fleet_metrics(
        sum_measured_window(spell_record(spells, hosts)), AccessPattern.RANDRW.directions
    )


@settings(max_examples=30)
@given(spells=fleets())
def test_rates_and_means_are_those_of_all_ios(spells: list[Spell]) -> None:
    metrics = metrics_of(spells)
    seconds = sum(s.span_ns for s in spells if (s.host, s.direction) == (0, Direction.READ)) / 1e9
    for prefix, ways in (("", (0, 1)), ("read_", (0,)), ("write_", (1,))):
        every = [v for s in spells if s.direction in ways for v in s.latencies]
        assert metrics[f"{prefix}iops"].value == pytest.approx(len(every) / seconds)
        moved = metrics[f"{prefix}bw_bytes_per_s"].value
        assert moved == pytest.approx(BLOCK * len(every) / seconds)
        mean, largest = metrics[f"{prefix}lat_ns_mean"].value, metrics[f"{prefix}lat_ns_max"].value
        if not every:
            assert mean is None
            assert largest is None
            continue
        assert mean == pytest.approx(np.mean(every))
        assert largest == max(every)


@settings(max_examples=15)
@given(spells=fleets(), seed=st.integers(0, 99))
def test_the_order_of_hosts_changes_nothing(spells: list[Spell], seed: int) -> None:
    hosts = 1 + max(spell.host for spell in spells)
    order = np.random.default_rng(seed).permutation(hosts)
    moved = [replace(spell, host=int(order[spell.host])) for spell in spells]
    before = metrics_of(spells)
    for key, metric in metrics_of(moved).items():
        value = before[key].value
        assert metric.value == (value if value is None else pytest.approx(value))


def test_percentiles_of_a_fleet_are_those_of_all_its_ios() -> None:
    spells = [
        Spell(host, seq, way, GO_NS + seq * SECOND, SECOND, tuple(latencies.tolist()))
        for host in range(3)
        for seq in range(3)
        for way in (Direction.READ, Direction.WRITE)
        for latencies in [RANDOM.lognormal(11 + host, 1, 15_000).astype(np.int64)]
    ]
    metrics = metrics_of(spells)
    every = np.sort([v for s in spells for v in s.latencies])
    exact = of_latencies(every)
    for name, percent in (("p50", 50), ("p99", 99), ("p99_5", 99.5), ("p99_9", 99.9)):
        value = metrics[f"lat_ns_{name}"].value
        assert value is not None
        assert value == exact.percentile_ns(percent)
        true = every[int(np.ceil(percent / 100 * every.size)) - 1]
        assert bin_index_of_ns(int(value)) == bin_index_of_ns(true)
        assert abs(value - true) <= 0.01 * true
        assert value <= every[-1]
    assert metrics["lat_ns_p99_99"].value is None
    means = [
        np.percentile([v for s in spells if s.host == h for v in s.latencies], 99)
        for h in (0, 1, 2)
    ]
    assert metrics["lat_ns_p99"].value != pytest.approx(np.mean(means), rel=0.05)


def test_every_io_weighs_the_same_in_the_mean() -> None:
    record = bursts_record([Burst(ios=100, lat_ns=1_000_000)], [Burst(ios=900, lat_ns=100_000)])
    mean = fleet_metrics(sum_measured_window(record), AccessPattern.RANDREAD.directions)[
        "lat_ns_mean"
    ].value
    assert mean == pytest.approx(0.1 * 1_000_000 + 0.9 * 100_000)


def test_reads_and_writes_are_weighted_too() -> None:
    mixed = [Burst(ios=700, lat_ns=200), Burst(ios=300, lat_ns=400, direction=Direction.WRITE)]
    metrics = fleet_metrics(
        sum_measured_window(bursts_record(mixed)), AccessPattern.RANDRW.directions
    )
    assert metrics["lat_ns_mean"].value == pytest.approx(0.7 * 200 + 0.3 * 400)
    assert metrics["read_lat_ns_mean"].value == 200
    assert metrics["write_lat_ns_mean"].value == 400
    assert metrics["read_iops"].value == 700
    assert metrics["write_iops"].value == 300


def test_uneven_spans_count_by_their_length() -> None:
    bursts = [
        Burst(spans=10, ios=1000),
        Burst(start_s=10, spans=1, ios=500, span_s=0.5, first_seq=10),
    ]
    value = fleet_metrics(
        sum_measured_window(bursts_record(bursts)), AccessPattern.RANDREAD.directions
    )["iops"].value
    assert value == pytest.approx(10_500 / 10.5)


def test_a_direction_that_is_not_asked_for_has_no_value() -> None:
    metrics = fleet_metrics(
        sum_measured_window(bursts_record([Burst()])), AccessPattern.RANDREAD.directions
    )
    assert list(metrics) == list(METRIC_KEYS)
    assert metrics["write_iops"].value is None
    assert metrics["read_iops"].value == metrics["iops"].value == pytest.approx(40_000)
    assert all(metric.unit == metric_spec(key).unit for key, metric in metrics.items())


def test_a_host_has_its_own_numbers() -> None:
    load = sum_measured_window(bursts_record([Burst(ios=100)], [Burst(ios=300)]))
    assert host_metrics(load, 1, AccessPattern.RANDREAD.directions)["iops"].value == pytest.approx(
        300
    )
    assert fleet_metrics(load, AccessPattern.RANDREAD.directions)["iops"].value == pytest.approx(
        400
    )


def test_the_maximum_of_a_cut_window_stays_within_its_last_bin() -> None:
    slow_start = [
        Burst(spans=5, ios=10, lat_ns=90_000_000),
        Burst(start_s=5, spans=25, first_seq=5),
    ]
    value = fleet_metrics(
        sum_measured_window(bursts_record(slow_start, warmup_s=5.0)),
        AccessPattern.RANDREAD.directions,
    )
    largest = value["lat_ns_max"].value
    assert largest is not None
    index = int(bin_index_of_ns(800_000))
    assert LOWER_NS[index] <= 800_000 <= largest <= UPPER_NS[index]


def test_trims_have_metrics_of_their_own_and_no_other_load_has() -> None:
    record = bursts_record([Burst(ios=1000, direction=Direction.TRIM)], job=TRIMS)
    metrics = fleet_metrics(sum_measured_window(record), TRIMS.access.directions)
    assert list(metrics) == [*METRIC_KEYS, *TRIM_KEYS]
    for key in ("iops", "bw_bytes_per_s", "lat_ns_mean", "lat_ns_p99", "lat_ns_max"):
        assert metrics[f"trim_{key}"] == metrics[key]
    assert metrics["iops"].value == 1000.0
    assert (metrics["read_iops"].value, metrics["write_iops"].value) == (None, None)
