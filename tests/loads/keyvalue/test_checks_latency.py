"""Checks of what latencies stand for, of writers beside readers, and of clients."""

from __future__ import annotations

import numpy as np
import pytest
from msgspec.structs import replace

from iolab.core.metric import VerdictLevel
from iolab.core.run import RunRecord
from iolab.loads.keyvalue.workload import BinnedLatency, LatencyBin, key_value_details_of_host
from iolab.record import field_names
from tests.analysis.records import series
from tests.loads.keyvalue.asking import ask, on_host, told
from tests.loads.keyvalue.records import (
    BENCH,
    CALM,
    INTENDED,
    READ,
    RMW,
    UPDATE,
    YCSB,
    bench_record,
    steadily,
    ycsb_record,
)

VALID, INDICATIVE, INVALID = VerdictLevel
BESIDE = replace(BENCH, workload="readwhilewriting", write_bytes_per_s=2_000 * 1040)
PACED = replace(YCSB, mix=((READ, 1.0),), rate_ops_per_s=2_000)


def test_percentiles_need_latencies_beyond_them() -> None:
    said = ask("percentile-support", ycsb_record())
    # 20 s of 2000 each second: enough for p99, which takes ten thousand.
    assert (said.level, said.evidence["operations"]) == (VALID, 40_000)
    assert "p99.9 (100 k), p99.99 (1 M)" in said.message
    assert said.evidence["source"] == "in the window"
    rare = ycsb_record([[steadily(READ), steadily(UPDATE, per_s=5)]])
    few = ask("percentile-support", rare)
    assert (few.level, few.evidence["operation"]) == (INDICATIVE, "update")


def test_latencies_of_the_whole_run_are_called_so() -> None:
    said = ask("percentile-support", bench_record())
    assert said.evidence["operations"] == 13_000 * 24
    assert "whole run, warm-up too" in said.message
    assert ask("percentile-support", told(bench_record(), latencies=())).level is INDICATIVE


def test_the_width_of_the_bin_at_a_percentile_is_stated() -> None:
    said = ask("wide-percentile-bins", bench_record())
    assert said.level is VALID
    # 380 to 580 µs at the median is the widest of those that are printed.
    assert said.evidence["width"] == pytest.approx(0.526, abs=0.001)
    assert (said.evidence["low_ns"], said.evidence["high_ns"]) == (380_000, 580_000)
    assert ask("wide-percentile-bins", ycsb_record()).level is VALID


def test_a_percentile_in_a_bin_of_some_microseconds_is_hardly_known() -> None:
    cached = BinnedLatency(
        READ, 300_000, 2e3, 1e2, 1_000, 1_990, 1000, (LatencyBin(1_000, 2_000, 300_000),)
    )
    said = ask("wide-percentile-bins", told(bench_record(), latencies=(cached,)))
    assert (said.level, said.evidence["high_ns"]) == (INDICATIVE, 1_990)


def test_a_closed_loop_has_service_times() -> None:
    for record in (bench_record(), ycsb_record()):
        said = ask("coordinated-omission", record)
        assert (said.level, said.evidence["open_loop"]) == (None, 0)
        assert "Closed loop" in said.message


def paced(waits_ns: int, *, every: int = 20, per_s: int = 2_000) -> RunRecord:
    """Reads under a rate; one of so many waited so long before it began."""
    reads = steadily(READ, per_s=per_s)
    late = np.where(np.arange(reads.lats.size) % every == 0, waits_ns, 0)
    due = replace(reads, operation=INTENDED, lats=reads.lats + late)
    return ycsb_record([[reads, due]], PACED)


def test_intended_latency_stands_beside_service_time_and_far_from_it() -> None:
    near = ask("coordinated-omission", paced(1_000))
    assert near.level is VALID
    # One read of twenty was due half a second before it was sent.
    far = ask("coordinated-omission", paced(500_000_000))
    assert far.level is INDICATIVE
    assert far.evidence["ratio"] > 100  # type: ignore[operator]


def test_a_rate_that_was_not_kept_is_no_open_loop() -> None:
    said = ask("coordinated-omission", paced(1_000, per_s=1_500))
    assert said.level is INDICATIVE
    assert said.evidence["achieved"] == pytest.approx(0.75)


def test_service_times_alone_say_nothing_of_latency_at_a_rate() -> None:
    said = ask("coordinated-omission", ycsb_record([[steadily(READ)]], PACED))
    assert (said.level, "Only service times" in said.message) == (INDICATIVE, True)


def with_mean(record: RunRecord, mean_ns: float, reported_s: float = 24.0) -> RunRecord:
    """The record of an engine that tells this mean of its reads, and bins as they were."""
    run = key_value_details_of_host(record.hosts[0])
    assert run is not None
    return told(
        record, latencies=(replace(run.latencies[0], mean_ns=mean_ns),), reported_s=reported_s
    )


def test_threads_of_a_store_cannot_have_more_operations_than_there_are() -> None:
    said = ask("littles-law", bench_record())
    # 13,000 a second of 567 µs are 7.4 operations of 16 threads.
    assert (said.level, said.evidence["threads"]) == (VALID, 16)
    assert said.evidence["in_flight"] == pytest.approx(7.4, abs=0.1)
    assert ask("littles-law", ycsb_record()).level is VALID
    impossible = ask("littles-law", with_mean(bench_record(), 2e6))
    assert (impossible.level, "whole run" in impossible.message) == (INVALID, True)
    # The same mean over a run of which the measured seconds were the fast ones.
    faster = ask("littles-law", with_mean(bench_record(), 1.4e6, reported_s=30.0))
    assert (faster.level, "slower" in faster.message) == (INDICATIVE, True)
    slow = ycsb_record([[steadily(READ, lat_ns=5e6), steadily(UPDATE)]])
    assert ask("littles-law", slow).level is INVALID


def test_a_writer_beside_readers_is_none_of_their_threads() -> None:
    record = bench_record(job=BESIDE, writer_per_s=2_000)
    assert ask("littles-law", record).evidence["in_flight"] == pytest.approx(7.4, abs=0.1)


def test_a_read_modify_write_is_counted_by_its_parts() -> None:
    parts = [steadily(READ), steadily(UPDATE), steadily(RMW, lat_ns=1e6)]
    said = ask("littles-law", ycsb_record([parts]))
    assert said.evidence["in_flight"] == pytest.approx(2.27, abs=0.05)


def test_a_rate_without_latencies_is_indicative() -> None:
    assert ask("littles-law", told(bench_record(), latencies=())).level is INDICATIVE


@pytest.mark.parametrize(("per_s", "wanted"), [(2_000, VALID), (1_850, VALID), (1_750, INDICATIVE)])
def test_the_writer_keeps_the_rate_that_is_stated(per_s: int, wanted: VerdictLevel) -> None:
    said = ask("writer-rate", bench_record(job=BESIDE, writer_per_s=per_s))
    assert said.level is wanted
    assert said.evidence["written_bytes_per_s"] == pytest.approx(per_s * 1040, rel=0.01)


def test_a_writer_without_a_limit_makes_another_load_on_each_device() -> None:
    unlimited = replace(BESIDE, write_bytes_per_s=None)
    said = ask("writer-rate", bench_record(job=unlimited, writer_per_s=60_000))
    assert (said.level, "no limit" in said.message) == (INDICATIVE, True)
    assert ask("writer-rate", bench_record(job=BESIDE)).level is INDICATIVE
    assert ask("writer-rate", bench_record()).level is None


def test_a_client_without_a_processor_left_may_be_the_limit() -> None:
    busy = (series("busy_share", [0.95] * 40, "c1"), series("steal_share", [0.05] * 40, "c1"))
    record = bench_record()
    said = ask("cpu-bound-client", record, telemetry=busy)
    assert (said.level, said.evidence["threads"]) == (INDICATIVE, 16)
    assert ask("cpu-stolen", record, telemetry=busy).level is INDICATIVE
    assert ask("cpu-bound-client", record, telemetry=()).level is INDICATIVE
    assert ask("cpu-bound-client", record, telemetry=CALM).level is VALID


def test_clients_that_did_unlike_amounts_are_named() -> None:
    even = ycsb_record([[steadily(READ)], [steadily(READ, seed=2)]])
    assert ask("uneven-fleet", even).level is VALID
    uneven = ycsb_record([[steadily(READ)], [steadily(READ, per_s=800, seed=2)]])
    said = ask("uneven-fleet", uneven)
    assert (said.level, said.evidence["slowest"]) == (INDICATIVE, "c2")
    assert said.evidence["slowest_ops_per_s"] == pytest.approx(800)


def test_clients_that_started_apart_were_not_started_together() -> None:
    apart = ycsb_record([[steadily(READ)], [steadily(READ, start_s=3.0)]])
    assert ask("start-skew", apart).level is INVALID
    never = ycsb_record([[steadily(READ)], [steadily(READ, start_s=60.0)]])
    assert ask("no-common-window", never).level is INVALID


def test_clocks_gaps_and_short_runs_are_judged_as_of_other_load() -> None:
    two = ycsb_record([[steadily(READ)], [steadily(READ, seed=2)]])
    moved = on_host(two, 1, clock_offset_after_ns=900_000_000)
    assert ask("clock-drift", moved).level is INVALID
    short = ycsb_record([[steadily(READ, seconds=6.0)]], runtime_s=2.0)
    assert ask("run-too-short", short).level is INVALID
    demonstration = ycsb_record([[steadily(READ, seconds=9.0)]], runtime_s=5.0)
    assert ask("run-too-short", demonstration).level is INDICATIVE
    table = two.intervals
    kept = ~((table.seq >= 10) & (table.seq < 13) & (table.host == 0))
    columns = {name: getattr(table, name)[kept] for name in field_names(table)}
    gap = replace(two, intervals=replace(table, **columns))
    said = ask("missing-seconds", gap)
    assert (said.level, said.evidence["host"]) == (INVALID, "c1")
