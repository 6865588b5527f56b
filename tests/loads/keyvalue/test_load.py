"""Sums and metrics of load on a key-value store, recounted operation by operation."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from iolab.analysis.steady import SteadinessView, fleet_rate_series, judge_steadiness
from iolab.analysis.window import Window
from iolab.core.stopping import LSM, Steadiness, SteadinessStatus
from iolab.loads.keyvalue.metrics import (
    WHOLE_OPERATION_WEIGHTS,
    key_value_metrics,
    merge_binned_latencies,
    metrics_with_key_value_intervals,
    sum_key_value_operations,
)
from iolab.loads.keyvalue.workload import BinnedLatency, LatencyBin, key_value_details_of_host
from tests.analysis.records import GO_NS, SECOND
from tests.histograms import of_latencies
from tests.judging import judge
from tests.loads.keyvalue.records import (
    BENCH,
    INTENDED,
    READ,
    RMW,
    UPDATE,
    WRITE,
    YCSB,
    Did,
    bench_record,
    key_view,
    steadily,
    told_in_us,
    ycsb_record,
)

BESIDE = replace(BENCH, workload="readwhilewriting", write_bytes_per_s=2_000 * 1040)


def within(did: Did, low_s: float, high_s: float) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """The latencies of what ended between two seconds after the start."""
    at = (did.ends - GO_NS) / SECOND
    return np.asarray(did.lats[(at > low_s) & (at <= high_s)])


def test_a_fleet_is_recounted_in_the_window_that_its_clocks_share() -> None:
    hosts = [
        [steadily(READ, seed=1), steadily(UPDATE, seed=1)],
        [steadily(READ, seed=2, start_s=2.0, lat_ns=4e6), steadily(UPDATE, seed=2, start_s=2.0)],
        [steadily(READ, seed=3, per_s=500), steadily(UPDATE, seed=3)],
    ]
    record = ycsb_record(hosts, offsets=[0, 7 * SECOND, -3 * SECOND])
    result = judge(record, {})
    # The second host starts 2 s later, and 4 s are warm-up: 6 s to 24 s, the earliest end.
    reads = [within(each[0], 6, 24) for each in hosts]
    every = np.concatenate(reads)
    assert result.window_s == pytest.approx(18.0)
    found = result.metrics
    assert found["read_ops_per_s"].value == pytest.approx(every.size / 18)
    updates = sum(within(each[1], 6, 24).size for each in hosts)
    assert found["ops_per_s"].value == pytest.approx((every.size + updates) / 18)
    assert found["read_lat_ns_mean"].value == pytest.approx(every.mean())
    exact = of_latencies(every)
    for name, percent in (("p50", 50.0), ("p90", 90.0), ("p95", 95.0), ("p99", 99.0)):
        assert found[f"read_lat_ns_{name}"].value == exact.percentile_ns(percent)
        assert found[f"read_lat_ns_{name}"].value == pytest.approx(
            np.quantile(every, percent / 100), rel=0.02
        )
    assert found["read_lat_ns_p99_9"].value is None
    assert found["read_lat_ns_max"].value == pytest.approx(every.max(), rel=1 / 64)
    third = result.hosts[2].metrics
    assert third["read_ops_per_s"].value == pytest.approx(reads[2].size / 18)
    assert third["read_lat_ns_p99"].value is None, "9000 reads are too few"
    # Averaged over hosts the median would be far off: the second host is eight times as slow.
    averaged = np.mean([np.median(each) for each in reads])
    assert found["read_lat_ns_p50"].value != pytest.approx(averaged, rel=0.2)


def test_a_read_modify_write_is_the_read_and_the_update_that_it_is_made_of() -> None:
    reads, updates = steadily(READ, per_s=2_000), steadily(UPDATE, per_s=1_000)
    both = replace(updates, operation=RMW, lats=updates.lats * 2)
    metrics = judge(ycsb_record([[reads, updates, both]]), {}).metrics
    # Workload F of 2000 operations a second: half of them reads, half reads with an update.
    assert metrics["ops_per_s"].value == pytest.approx(2_000)
    assert metrics["read_ops_per_s"].value == pytest.approx(2_000)
    assert metrics["update_ops_per_s"].value == pytest.approx(1_000)
    assert metrics["read_modify_write_ops_per_s"].value == pytest.approx(1_000)


def test_what_was_timed_from_when_it_was_due_is_not_done_twice() -> None:
    reads = steadily(READ)
    due = replace(reads, operation=INTENDED, lats=reads.lats * 10)
    record = ycsb_record([[reads, due]], replace(YCSB, mix=((READ, 1.0),), rate_ops_per_s=2_000))
    metrics = judge(record, {}).metrics
    assert metrics["ops_per_s"].value == pytest.approx(2_000)
    assert "intended_read_ops_per_s" not in metrics
    service, intended = (metrics[f"{name}_lat_ns_p99"].value for name in ("read", "intended_read"))
    assert service is not None
    assert intended == pytest.approx(10 * service, rel=0.02)


def test_the_writer_beside_readers_stands_apart() -> None:
    record = bench_record(job=BESIDE, writer_per_s=2_000)
    metrics = judge(record, {}).metrics
    assert metrics["ops_per_s"].value == pytest.approx(13_000)
    assert metrics["read_ops_per_s"].value == pytest.approx(13_000)
    assert metrics["write_ops_per_s"].value == pytest.approx(2_000)
    assert metrics["write_lat_ns_p50"].value is None
    series = fleet_rate_series(record, WHOLE_OPERATION_WEIGHTS)
    assert series is not None
    assert series.counts == pytest.approx(np.full(24, 13_000.0))


def test_threads_that_do_both_have_each_operations_share() -> None:
    record = bench_record(job=replace(BENCH, workload="readrandomwriterandom"))
    run = key_value_details_of_host(record.hosts[0])
    assert run is not None
    writes = told_in_us(steadily(WRITE, per_s=13_000 // 4))
    latencies = (*run.latencies, writes)
    host = replace(record.hosts[0], details=replace(run, latencies=latencies))
    metrics = judge(replace(record, hosts=(host,)), {}).metrics
    assert metrics["ops_per_s"].value == pytest.approx(13_000)
    assert metrics["read_ops_per_s"].value == pytest.approx(13_000 * 0.8)
    assert metrics["write_ops_per_s"].value == pytest.approx(13_000 * 0.2)


def test_what_engines_do_after_the_declared_window_does_not_count() -> None:
    slowing = [steadily(READ), steadily(READ, per_s=100, start_s=24.0, seconds=3.0, seed=2)]
    both = Did(
        READ,
        np.concatenate([one.ends for one in slowing]),
        np.concatenate([one.lats for one in slowing]),
    )
    result = judge(ycsb_record([[both]], replace(YCSB, mix=((READ, 1.0),))), {})
    assert result.window_s == pytest.approx(20.0)
    assert result.metrics["ops_per_s"].value == pytest.approx(2_000)


@pytest.mark.parametrize("late_s", [0.0, 0.3, 0.7])
def test_no_second_is_lost_to_intervals_that_begin_in_the_middle(late_s: float) -> None:
    # 4 s of warm-up, 3 s of runtime, and a moment more: seconds that begin between those.
    record = ycsb_record([[steadily(READ, seconds=9.0)]], runtime_s=3.0)
    table = record.intervals
    first = round(late_s * SECOND)
    spans = np.where(table.seq == 0, SECOND + first, SECOND)
    moved = replace(table, end_real_ns=table.end_real_ns + first, span_ns=spans)
    result = judge(replace(record, intervals=moved), {})
    assert result.window_s == pytest.approx(3.0)
    assert result.metrics["ops_per_s"].value == pytest.approx(2_000, rel=0.01)


def test_db_benchs_latencies_are_rocksdbs_own_of_the_whole_run() -> None:
    record = bench_record(2)
    metrics = judge(record, {}).metrics
    runs = [key_value_details_of_host(host) for host in record.hosts]
    both = merge_binned_latencies([run.latencies[0] for run in runs if run is not None])
    assert both is not None
    p99 = metrics["read_lat_ns_p99"]
    assert p99.value == both.interpolated_quantile_ns(0.99)
    assert (p99.low, p99.high) == both.quantile_bounds_ns(0.99) == (1_300_000, 1_900_000)
    assert p99.has_bin_edge_interval
    assert metrics["read_lat_ns_mean"].value == pytest.approx(both.mean_ns)
    assert metrics["read_lat_ns_max"].value == both.max_ns
    assert metrics["read_lat_ns_p99_99"].value is None, "624 k reads are too few"


def test_hosts_with_bins_that_do_not_fit_have_no_percentiles_together() -> None:
    record = bench_record(2)
    run = key_value_details_of_host(record.hosts[1])
    assert run is not None
    odd = replace(run.latencies[0], bins=(LatencyBin(350_000, 600_000, run.latencies[0].count),))
    other = replace(record.hosts[1], details=replace(run, latencies=(odd,)))
    found = judge(replace(record, hosts=(record.hosts[0], other)), {})
    assert found.metrics["read_lat_ns_p50"].value is None
    assert found.metrics["ops_per_s"].value == pytest.approx(26_000)
    assert found.hosts[1].metrics["read_lat_ns_p50"].value is not None


@pytest.mark.parametrize("apart", [False, True])
def test_intervals_of_each_operation_cover_no_time_twice(apart: bool) -> None:  # noqa: FBT001
    load = sum_key_value_operations(ycsb_record(apart=apart))
    assert load.seconds[0] == pytest.approx(20.0, abs=0.01)
    assert load.whole_operation_rates_by_host[0] == pytest.approx(4_000, rel=1e-3)
    assert fleet_rate_series(ycsb_record(apart=apart), WHOLE_OPERATION_WEIGHTS) is not None


def test_seconds_are_of_whole_operations() -> None:
    reads, updates = steadily(READ), steadily(UPDATE, per_s=1_000)
    record = ycsb_record([[reads, updates, replace(updates, operation=RMW)]])
    series = fleet_rate_series(record, WHOLE_OPERATION_WEIGHTS)
    assert series is not None
    assert series.counts == pytest.approx(np.full(24, 2_000.0))


def test_hosts_that_never_met_have_rates_of_their_own_only() -> None:
    result = judge(ycsb_record([[steadily(READ)], [steadily(READ, start_s=60.0)]]), {})
    assert {metric.value for metric in result.metrics.values()} == {None}
    assert [host.metrics["ops_per_s"].value for host in result.hosts] == [
        pytest.approx(2_000),
        pytest.approx(2_000),
    ]


def test_a_host_that_told_no_latency_leaves_none_to_the_fleet() -> None:
    record = bench_record(2)
    run = key_value_details_of_host(record.hosts[1])
    assert run is not None
    mute = replace(record.hosts[1], details=replace(run, latencies=()))
    metrics = judge(replace(record, hosts=(record.hosts[0], mute)), {}).metrics
    assert metrics["read_lat_ns_mean"].value is None
    assert metrics["ops_per_s"].value == pytest.approx(26_000)


STEADY = Steadiness(SteadinessStatus.OK, 10, 60, 2_000.0, 0.03, 9, None, 0, None)


@pytest.mark.parametrize(
    ("status", "excess", "known"),
    [
        (SteadinessStatus.OK, 0.0, True),
        (SteadinessStatus.IMPRECISE, -0.019, True),
        (SteadinessStatus.OK, 0.021, False),
        (SteadinessStatus.TRANSIENT, 0.0, False),
        (SteadinessStatus.CYCLE, 0.0, False),
    ],
)
def test_a_rate_has_the_steady_parts_interval_where_it_is_of_that(
    status: SteadinessStatus,
    excess: float,
    known: bool,  # noqa: FBT001
) -> None:
    record = ycsb_record()
    load = sum_key_value_operations(record)
    steady = SteadinessView(replace(STEADY, status=status), Window(0, 1), 0.0, 0, excess)
    metrics = key_value_metrics(load, YCSB)
    rate = metrics_with_key_value_intervals(metrics, record, load, steady)["ops_per_s"]
    assert rate.value == pytest.approx(4_000)
    if known:
        assert rate.low == pytest.approx(3_880)
        assert rate.high == pytest.approx(4_120)
        assert rate.n == 10
    else:
        assert (rate.low, rate.high, rate.n) == (None, None, None)


def test_a_store_is_judged_by_the_settings_for_stores() -> None:
    record = ycsb_record([[steadily(READ, seconds=320.0)]])
    assert key_view(record).steadiness_view == judge_steadiness(
        record, LSM, WHOLE_OPERATION_WEIGHTS
    )


def test_a_long_steady_run_knows_its_rate_and_its_percentiles() -> None:
    job = replace(YCSB, mix=((READ, 1.0),))
    random = np.random.default_rng(5)
    reads = steadily(READ, per_s=300, seconds=320.0)
    kept = random.random(reads.ends.size) < 0.9
    record = ycsb_record(
        [[Did(READ, reads.ends[kept], reads.lats[kept])]], job, warmup_s=20.0, runtime_s=300.0
    )
    result = judge(record, {})
    assert result.steadiness is not None
    assert result.steadiness.status is SteadinessStatus.OK
    rate = result.metrics["ops_per_s"]
    assert None not in (rate.low, rate.value, rate.high)
    assert rate.low < 270 < rate.high  # type: ignore[operator]
    assert (rate.high - rate.low) / 540 < 0.05  # type: ignore[operator]
    p99 = result.metrics["read_lat_ns_p99"]
    true = float(np.exp(0.5 * 2.3263)) * 500_000
    assert p99.low < true < p99.high  # type: ignore[operator]
    assert not p99.has_bin_edge_interval
    assert p99.n == 10


def test_a_run_with_a_few_stalls_has_no_far_percentiles() -> None:
    job = replace(YCSB, mix=((READ, 1.0),))
    reads = steadily(READ, per_s=1_000, seconds=160.0, lat_ns=1e6)
    second = (reads.ends - GO_NS) // SECOND
    stalled = np.isin(second, (60, 61, 110, 111))
    kept = ~stalled | (np.arange(reads.ends.size) % 10 == 0)
    lats = np.where(stalled, 200_000_000, reads.lats)
    record = ycsb_record(
        [[Did(READ, reads.ends[kept], lats[kept])]], job, warmup_s=10.0, runtime_s=150.0
    )
    metrics = judge(record, {}).metrics
    far = metrics["read_lat_ns_p99_9"]
    assert (far.value, far.low) == (None, metrics["read_lat_ns_p99"].value)


def test_a_fall_of_the_rate_is_seen_in_whole_operations() -> None:
    early, late = steadily(READ, per_s=4_000), steadily(READ, per_s=1_000, start_s=24.0, seed=2)
    falling = Did(
        READ, np.concatenate([early.ends, late.ends]), np.concatenate([early.lats, late.lats])
    )
    due = replace(falling, operation=INTENDED)
    record = ycsb_record([[falling, due]], replace(YCSB, mix=((READ, 1.0),)), runtime_s=44.0)
    result = judge(record, {})
    assert result.steadiness is not None
    assert result.steadiness.status is SteadinessStatus.TRANSIENT
    assert result.metrics["ops_per_s"].low is None


def test_of_several_hosts_the_slowest_is_named() -> None:
    record = ycsb_record([[steadily(READ)], [steadily(READ, per_s=500)], [steadily(READ)]])
    spread = judge(record, {}).spread
    assert spread is not None
    assert spread.slowest == "c2"
    assert spread.max_over_min == pytest.approx(4.0)
    assert spread.jain == pytest.approx(4.5**2 / (3 * (2.0**2 + 0.5**2 + 2.0**2)), rel=1e-3)


LATENCIES = st.lists(st.integers(1, 90_000), min_size=1, max_size=60)
"""Whole microseconds, as db_bench's clock has them."""


def in_bins(micros: list[int]) -> BinnedLatency:
    values = np.array(micros, dtype=np.int64) * 1000
    return told_in_us(Did(READ, values, values))


@settings(max_examples=30)
@given(st.lists(LATENCIES, min_size=1, max_size=4))
def test_merged_bins_are_those_of_all_latencies_together(parts: list[list[int]]) -> None:
    whole = in_bins([micros for part in parts for micros in part])
    found = merge_binned_latencies([in_bins(part) for part in parts])
    assert found is not None
    assert found.bins == whole.bins
    assert (found.count, found.min_ns, found.max_ns) == (whole.count, whole.min_ns, whole.max_ns)
    assert found.mean_ns == pytest.approx(whole.mean_ns)
    assert found.std_dev_ns == pytest.approx(whole.std_dev_ns, abs=1.0)
    for quantile in (0.5, 0.99):
        assert found.interpolated_quantile_ns(quantile) == whole.interpolated_quantile_ns(quantile)


@settings(max_examples=30)
@given(LATENCIES, st.sampled_from([0.5, 0.9, 0.99]))
def test_a_percentile_lies_within_its_bounds(micros: list[int], quantile: float) -> None:
    found = in_bins(micros)
    low, high = found.quantile_bounds_ns(quantile)
    exact = sorted(micros)[max(-(-len(micros) * int(100 * quantile) // 100), 1) - 1] * 1000
    assert low <= exact <= high
    assert low <= found.interpolated_quantile_ns(quantile) <= high


def test_bins_that_overlap_do_not_merge() -> None:
    one = in_bins([100, 200])
    shifted = replace(one, bins=(LatencyBin(100_000, 260_000, 2),))
    assert merge_binned_latencies([one, shifted]) is None
    assert merge_binned_latencies([]) is None
    assert merge_binned_latencies([one]) == one
