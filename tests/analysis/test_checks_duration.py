"""Time and numbers of I/Os."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from iolab.analysis.checks.time import (
    check_missing_seconds,
    check_no_common_window,
    check_percentile_support,
    check_run_too_short,
)
from iolab.core.metric import VerdictLevel
from iolab.core.run import RunRecord
from iolab.study.forecast import run_length_verdict_caps
from iolab.study.parse import StudyOverrides
from tests.analysis.checks_on import INDICATIVE, INVALID, VALID, ask, level
from tests.analysis.records import JOB, Burst, bursts_record, healthy, host_run, record_of
from tests.plans import make_plan, parse_study

READS = (
    'format = 1\nid = "s"\n[target]\npath = "/mnt/t"\n'
    '[[workload]]\nid = "r"\nrw = "randread"\nbs = "4k"\nfilesize = "1m"\niodepth = 1\n'
)


@pytest.mark.parametrize(
    ("spans", "expected"),
    [(30, VALID), (18, VALID), (17, INDICATIVE), (3, INDICATIVE), (2, INVALID)],
)
def test_measured_seconds_decide(spans: int, expected: VerdictLevel) -> None:
    assert level(check_run_too_short, bursts_record([Burst(spans=spans)])) is expected


@pytest.mark.parametrize("asked_s", [2.9, 3.0, 18.0, 19.99, 20.0, 30.0])
def test_no_run_is_better_than_was_foretold_and_a_whole_one_is_as_good(asked_s: float) -> None:
    """An engine's last interval ends some 0.1 s past the asked time, as measured with fio."""
    study = parse_study(READS, "s", StudyOverrides(set_arguments=(f"method.runtime={asked_s}s",)))
    limit = next(iter(run_length_verdict_caps(study, make_plan(study).runs)), None)
    record = bursts_record([Burst(spans=1, span_s=asked_s + 0.1)], runtime_s=asked_s)
    assert level(check_run_too_short, record) is (limit.verdict_level if limit else VALID)


def test_all_that_is_too_short_is_held_against_one_length() -> None:
    """What a plan asked too little for, and what measured less of enough, stand on one page."""
    for asked_s, spans in ((10.0, 10), (30.0, 10)):
        answer = ask(check_run_too_short, bursts_record([Burst(spans=spans)], runtime_s=asked_s))
        assert answer.level is INDICATIVE
        assert "valid needs 20 s" in answer.message


def test_time_just_short_of_the_least_is_not_told_as_enough() -> None:
    answer = ask(check_run_too_short, bursts_record([Burst(spans=3, span_s=0.98)]))
    assert answer.level is INVALID
    assert {"2.9", "3"} <= set(answer.message.split())


@pytest.mark.parametrize(("late_s", "expected"), [(0.014, INDICATIVE), (0.06, INVALID)])
def test_a_run_of_the_least_may_lack_what_an_interval_ended_late(
    late_s: float, expected: VerdictLevel
) -> None:
    """Seen with the native engine on two busy cores: 2.986 s of 3 s after a second of warm-up."""
    edge_s = 1 + late_s
    rest = Burst(start_s=edge_s, spans=3, span_s=(4 - edge_s) / 3, first_seq=1)
    record = bursts_record([Burst(spans=1, span_s=edge_s), rest], warmup_s=1.0, runtime_s=3.0)
    assert level(check_run_too_short, record) is expected


def test_the_warm_up_is_not_measured_time() -> None:
    answer = ask(check_run_too_short, bursts_record([Burst()], warmup_s=13.0))
    assert answer.level is INDICATIVE
    assert answer.evidence["seconds"] == 17.0


def gap(spans: int) -> RunRecord:
    """A run of 50 s of which the record lacks that many."""
    after = 25 + spans
    bursts = [Burst(spans=25), Burst(start_s=after, spans=50 - after, first_seq=after)]
    return bursts_record(bursts)


@pytest.mark.parametrize(
    ("spans", "expected"), [(0, VALID), (1, VALID), (2, INDICATIVE), (5, INDICATIVE), (6, INVALID)]
)
def test_seconds_that_are_missing(spans: int, expected: VerdictLevel) -> None:
    assert level(check_missing_seconds, gap(spans)) is expected


@pytest.mark.parametrize(
    ("first_s", "expected"), [(1.0, VALID), (4.0, VALID), (5.0, INDICATIVE), (12.0, INVALID)]
)
def test_seconds_that_an_edge_of_the_window_cuts_away(
    first_s: float, expected: VerdictLevel
) -> None:
    """A stalled report makes one long interval, which is cut whole where it enters the window."""
    later = Burst(start_s=first_s, spans=60, first_seq=1)
    record = bursts_record([Burst(spans=1, span_s=first_s), later], warmup_s=1.0)
    assert level(check_missing_seconds, record) is expected


def test_one_host_has_its_window_for_itself() -> None:
    assert level(check_no_common_window, healthy()) is None
    assert level(check_no_common_window, bursts_record([Burst(spans=2)], warmup_s=5.0)) is INVALID


def test_hosts_that_ran_together_have_a_window() -> None:
    answer = ask(check_no_common_window, bursts_record([Burst()], [Burst(start_s=1.1)]))
    assert answer.level is VALID
    assert answer.evidence["start_skew_s"] == pytest.approx(1.1)


def test_a_clock_that_is_hardly_known_leaves_doubt() -> None:
    record = bursts_record([Burst()], [Burst()])
    vague = replace(record.hosts[1], clock_error_ns=60_000_000)
    assert (
        level(check_no_common_window, replace(record, hosts=(record.hosts[0], vague))) is INDICATIVE
    )


def test_a_host_without_load_is_no_fleet() -> None:
    record = bursts_record([Burst()])
    record = record_of((*record.hosts, host_run("c2")), record.intervals, record.bins)
    answer = ask(check_no_common_window, record)
    assert answer.level is INVALID
    assert answer.evidence["hosts_without_load"] == 1


def test_every_percentile_is_supported_by_a_million() -> None:
    assert "every percentile" in ask(check_percentile_support, healthy()).message


def test_what_is_not_printed_is_named_with_what_it_needs() -> None:
    answer = ask(check_percentile_support, bursts_record([Burst(ios=1000)]))
    assert answer.level is VALID
    assert "p99.9 (100 k)" in answer.message
    assert "p99.99 (1 M)" in answer.message
    assert "p99.5" not in answer.message
    assert answer.evidence == {"ios": 30_000, "p99_9_needs": 100_000, "p99_99_needs": 1_000_000}


@pytest.mark.parametrize(("ios", "expected"), [(7, VALID), (6, INDICATIVE)])
def test_a_throughput_needs_its_median(ios: int, expected: VerdictLevel) -> None:
    assert level(check_percentile_support, bursts_record([Burst(ios=ios)])) is expected


@pytest.mark.parametrize(("ios", "expected"), [(667, VALID), (666, INDICATIVE)])
def test_a_latency_needs_its_headline(ios: int, expected: VerdictLevel) -> None:
    alone = replace(JOB, iodepth=1, numjobs=1)
    assert level(check_percentile_support, bursts_record([Burst(ios=ios)], job=alone)) is expected


def test_the_shortest_of_all_hosts_decides() -> None:
    broken = [Burst(spans=5), Burst(start_s=25, spans=5, first_seq=25)]
    for record in (bursts_record([Burst()], broken), bursts_record(broken, [Burst()])):
        answer = ask(check_run_too_short, record)
        assert (answer.level, answer.evidence["seconds"]) == (INDICATIVE, 10.0)
