"""The window that all hosts share, on one clock."""

from __future__ import annotations

import numpy as np
import pytest
from msgspec.structs import replace

from iolab.analysis.steady import fleet_rate_series
from iolab.analysis.sums import sum_measured_window
from iolab.analysis.window import EDGE_SLACK_NS, Window, find_measured_part, to_controller_clock_ns
from iolab.core.metric import VerdictLevel
from iolab.core.samples import empty_bin_table, empty_interval_table
from tests.analysis.records import (
    GENERATOR,
    GO_NS,
    SECOND,
    Burst,
    bursts_record,
    host_run,
    record_of,
)
from tests.judging import judge


def test_a_clock_that_is_ahead_is_set_back() -> None:
    ahead = to_controller_clock_ns(np.array([GO_NS + 7], dtype=np.int64), 7)
    assert ahead.tolist() == [GO_NS]


def test_hosts_with_different_clocks_share_their_window() -> None:
    hour = 3600 * SECOND
    record = bursts_record([Burst()], [Burst(offset_ns=hour)], [Burst(offset_ns=-hour)])
    common = find_measured_part(record).common_window
    assert common is not None
    assert (common.start_ns, common.end_ns) == (GO_NS, GO_NS + 30 * SECOND)
    assert sum_measured_window(record).seconds.tolist() == [30.0, 30.0, 30.0]


def test_a_clock_that_is_corrected_the_wrong_way_would_be_seen() -> None:
    record = bursts_record([Burst()], [Burst(offset_ns=20 * SECOND)])
    wrong = bursts_record([Burst()], [Burst(start_s=20, offset_ns=0)])
    assert sum_measured_window(record).seconds.tolist() == [30.0, 30.0]
    assert sum_measured_window(wrong).seconds.tolist() == [10.0, 10.0]


def test_the_warm_up_is_cut_after_the_latest_start() -> None:
    record = bursts_record([Burst()], [Burst(start_s=2)], warmup_s=5.0)
    common = find_measured_part(record).common_window
    assert common is not None
    assert (common.start_ns - GO_NS) / SECOND == 7.0
    assert (common.end_ns - GO_NS) / SECOND == 30.0


def test_only_whole_intervals_count() -> None:
    record = bursts_record([Burst()], [Burst(start_s=0.5)])
    load = sum_measured_window(record)
    # Host 1 loses the second that begins before 0.5 s; host 2 the one that ends after 30 s.
    assert load.seconds.tolist() == [29.0, 29.0]
    assert load.ios.sum(axis=1).tolist() == [29 * 40_000] * 2
    assert load.bins.sum(axis=(1, 2)).tolist() == [29 * 40_000] * 2


@pytest.mark.parametrize(("skew_ns", "seconds"), [(EDGE_SLACK_NS, 30.0), (EDGE_SLACK_NS + 1, 29.0)])
def test_an_edge_may_stick_out_a_little(skew_ns: int, seconds: float) -> None:
    record = bursts_record([Burst()], [Burst(start_s=skew_ns / SECOND)])
    assert sum_measured_window(record).seconds.tolist() == [seconds, seconds]


@pytest.mark.parametrize(("early_s", "seconds"), [(0.1, 28.0), (0.5, 27.0)])
def test_an_interval_may_begin_in_the_last_moment_of_the_warm_up(
    early_s: float, seconds: float
) -> None:
    # fio's first report comes early by a moment, so that its ticks miss the warm-up's end.
    first = Burst(spans=1, span_s=1.0 - early_s)
    rest = Burst(start_s=1.0 - early_s, spans=29, first_seq=1)
    load = sum_measured_window(bursts_record([first, rest], warmup_s=2.0))
    assert load.seconds.tolist() == [seconds]


def test_phases_after_one_another_are_never_added() -> None:
    # Two clients, each 1000 IOPS for 10 s: what fio's client/server mode reports as 4000 when two
    # such phases stand in one job file. Here the phases follow each other on both hosts.
    phases = [Burst(spans=5, ios=1000), Burst(start_s=5, spans=5, ios=1000, first_seq=5)]
    result = judge(bursts_record(phases, phases, runtime_s=10.0), {})
    assert result.metrics["iops"].value == pytest.approx(2000)


def test_hosts_that_never_met_have_no_fleet_number() -> None:
    # Two clients 11.4 s apart, 5 s each: what fio reports as one fleet of 2000 IOPS.
    late = Burst(start_s=11.4, spans=5, ios=1000)
    result = judge(bursts_record([Burst(spans=5, ios=1000)], [late], runtime_s=5.0), {})
    assert all(metric.value is None for metric in result.metrics.values())
    assert [host.metrics["iops"].value for host in result.hosts] == pytest.approx([1000, 1000])
    assert result.window_s == 0.0
    assert result.verdict.level is VerdictLevel.INVALID
    said = {check.code: check for check in result.verdict.checks}["no-common-window"]
    assert said.level is VerdictLevel.INVALID
    assert said.evidence["start_skew_s"] == pytest.approx(11.4)


def test_hosts_that_meet_for_less_than_an_interval_have_no_fleet_number() -> None:
    record = bursts_record([Burst(spans=5)], [Burst(start_s=4.2, spans=5)])
    assert find_measured_part(record).common_window is None


def test_a_host_without_any_interval_leaves_no_common_window() -> None:
    both = bursts_record([Burst()], [Burst()])
    record = bursts_record([Burst()])
    record = record_of([*both.hosts], record.intervals, record.bins)
    assert find_measured_part(record).common_window is None
    assert find_measured_part(record).whole_run_windows[1] is None


def test_a_warm_up_longer_than_the_run_leaves_nothing() -> None:
    load = sum_measured_window(bursts_record([Burst(spans=5)], warmup_s=6.0))
    assert not load.has_common_window
    assert load.seconds.tolist() == [0.0]
    assert load.ios.sum() == 0


def test_nothing_measured_is_cut_to_nothing() -> None:
    record = record_of([host_run("c1")], empty_interval_table(), empty_bin_table())
    assert find_measured_part(record).whole_run_windows == (None,)
    assert sum_measured_window(record).ios.shape == (1, 3)


@pytest.mark.parametrize("drain_s", [0.003, 0.2, 3.0])
def test_what_ends_after_the_last_submission_is_in_no_rate(drain_s: float) -> None:
    # 64 I/Os of 100 ms are under way when submission ends: in 3 ms, they would be 21 k IOPS.
    load = [Burst(ios=640, lat_ns=100_000_000)]
    drain = Burst(start_s=30, spans=1, span_s=drain_s, ios=64, lat_ns=100_000_000, first_seq=30)
    record = bursts_record([*load, drain])
    drained = host_run("c1", [*load, drain], start_real_ns=GO_NS)
    assert drained.totals is not None
    told = replace(drained.totals, generator=replace(GENERATOR, measured_ns=30 * SECOND))
    record = record_of([replace(drained, totals=told)], record.intervals, record.bins)
    measured = sum_measured_window(record)
    assert measured.seconds.tolist() == [30.0]
    assert measured.ios.sum() == 30 * 640
    assert find_measured_part(record).common_window == Window(GO_NS, GO_NS + 30 * SECOND)
    whole = find_measured_part(record).whole_run_windows[0]
    assert whole is not None
    assert whole.end_ns > GO_NS + 30 * SECOND


@pytest.mark.parametrize("offset_s", [3600, -3600])
def test_the_end_of_submission_is_told_by_the_host_s_own_clock(offset_s: int) -> None:
    ahead_ns = offset_s * SECOND
    load = Burst(spans=32, offset_ns=ahead_ns)  # its last two seconds drain
    told = host_run("c1", [load], start_real_ns=GO_NS + ahead_ns)
    assert told.totals is not None
    totals = replace(told.totals, generator=replace(GENERATOR, measured_ns=30 * SECOND))
    record = replace(bursts_record([load]), hosts=(replace(told, totals=totals),))
    assert find_measured_part(record).common_window == Window(GO_NS, GO_NS + 30 * SECOND)
    seconds = fleet_rate_series(record)
    assert seconds is not None
    assert (seconds.start_ns, len(seconds.counts)) == (GO_NS, 30)


@pytest.mark.parametrize(("early_s", "seconds"), [(0.2, 20.0), (0.3, 19.0)])
def test_the_last_moment_of_a_long_warm_up_is_a_quarter_of_a_second(
    early_s: float, seconds: float
) -> None:
    first = Burst(spans=1, span_s=1.0 - early_s)
    rest = Burst(start_s=1.0 - early_s, spans=29, first_seq=1)
    assert sum_measured_window(bursts_record([first, rest], warmup_s=10.0)).seconds.tolist() == [
        seconds
    ]
