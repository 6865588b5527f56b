"""A run's own seconds: the series, its status, the intervals and what the checks say."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pytest
from msgspec.structs import replace

from iolab.analysis.steady import FleetStoppingRule, fleet_rate_series
from iolab.core.metric import RunResult, VerdictLevel
from iolab.core.run import RunRecord
from iolab.core.stopping import SteadinessStatus, StoppingRuleSettings
from iolab.core.workload import ServiceTimeDirection
from iolab.loads.fileio.checks import check_coordinated_omission
from iolab.report.numbers import metric_value_text, steadiness_text
from tests.analysis.records import GO_NS, JOB, SECOND, Burst, bursts_record, view_of
from tests.judging import judge
from tests.loads.fileio.test_checks_generator import generated

RULE = StoppingRuleSettings(shortest_s=60, longest_s=200, step_s=10, retained_s=30)


def seconds_record(counts: Sequence[int], rule: StoppingRuleSettings | None = None) -> RunRecord:
    """A record of one host with those I/Os in each second."""
    bursts = [
        Burst(start_s=float(at), spans=1, ios=count, first_seq=at)
        for at, count in enumerate(counts)
    ]
    runtime_s = float(rule.longest_s if rule else len(counts))
    return bursts_record(bursts, rule=rule, runtime_s=runtime_s)


def noisy(count: int, level: int = 40_000, seed: int = 1) -> list[int]:
    draws = np.random.default_rng(seed).normal(level, level * 0.01, count)
    return [round(draw) for draw in draws]


def codes(result: RunResult) -> dict[str, VerdictLevel | None]:
    return {check.code: check.level for check in result.verdict.checks}


def test_seconds_of_hosts_add_up_from_the_latest_start() -> None:
    record = bursts_record(
        [Burst(spans=10, ios=100)], [Burst(start_s=0.5, spans=10, ios=50, offset_ns=3 * SECOND)]
    )
    series = fleet_rate_series(record)
    assert series is not None
    assert series.start_ns == GO_NS + SECOND // 2
    assert series.counts == pytest.approx([150.0] * 9)


def test_an_io_that_is_timed_twice_is_one_io_of_its_second() -> None:
    whole, service = (
        Burst(ios=500),
        Burst(ios=500, lat_ns=1000, direction=ServiceTimeDirection.READ),
    )
    found = fleet_rate_series(bursts_record([whole, service]))
    assert found is not None
    assert found.counts.tolist() == [500.0] * 30


def test_a_missing_interval_is_a_second_without_io() -> None:
    bursts = [Burst(spans=3, ios=10), Burst(start_s=4, spans=3, ios=10, first_seq=3)]
    series = fleet_rate_series(bursts_record(bursts))
    assert series is not None
    assert list(series.counts) == [10, 10, 10, 0, 10, 10, 10]


@pytest.mark.parametrize("drain_s", [0.003, 0.2, 3.0])
def test_what_drains_is_no_second_of_a_run(drain_s: float) -> None:
    drain = Burst(start_s=30, spans=1, span_s=drain_s, ios=64, first_seq=30)
    record = generated(bursts_record([Burst(ios=640), drain]), measured_ns=30 * SECOND - 1)
    series = fleet_rate_series(record)
    (host,) = record.hosts
    started = fleet_rate_series(replace(record, hosts=(replace(host, start_real_ns=GO_NS),)))
    assert series is not None
    assert started is not None
    assert started.counts.tolist() == [640.0] * 30
    assert len(series.counts) == 30 + int(drain_s)


def test_live_sees_the_seconds_that_are_stored() -> None:
    counts = noisy(200)
    record = seconds_record(counts, RULE)
    rule = FleetStoppingRule(["c1"], RULE)
    ended = 0
    for at, count in enumerate(counts, 1):
        rule.add_interval("c1", GO_NS + at * SECOND, SECOND, count)
        if rule.is_satisfied:
            ended = at
            break
    steadiness = judge(record, {}).steadiness
    assert steadiness is not None
    assert steadiness.seconds == ended


def test_a_late_host_is_waited_for() -> None:
    rule = FleetStoppingRule(["near", "far"], RULE)
    for at, count in enumerate(noisy(150), 1):
        rule.add_interval("near", GO_NS + at * SECOND, SECOND, count)
    assert rule.status_text == "first look at 60 s"
    for at, count in enumerate(noisy(150, seed=2), 1):
        rule.add_interval("far", GO_NS + at * SECOND, SECOND, count)
    assert rule.is_satisfied


def test_the_cut_and_what_follows_the_decision_do_not_count() -> None:
    counts = [100_000] * 10 + noisy(90) + [1] * 20
    result = judge(seconds_record(counts, RULE), {})
    assert result.steadiness is not None
    assert result.steadiness.status is SteadinessStatus.OK
    assert result.steadiness.seconds < 100
    iops = result.metrics["iops"]
    assert iops.value == pytest.approx(40_000, rel=0.01)
    assert iops.low is not None
    assert iops.high is not None
    assert iops.low < 40_000 < iops.high
    assert result.window_s == result.steadiness.seconds - result.steadiness.cut_s


def test_a_rate_that_falls_all_along_is_invalid_under_a_rule_and_never_valid_without() -> None:
    falling = [100_000 - 400 * at for at in range(200)]
    ruled = judge(seconds_record(falling, RULE), {})
    assert ruled.steadiness is not None
    assert ruled.steadiness.status is SteadinessStatus.TRANSIENT
    assert ruled.steadiness.reasons
    assert codes(ruled)["startup-transient"] is VerdictLevel.INVALID
    assert codes(judge(seconds_record(falling), {}))["startup-transient"] is VerdictLevel.INDICATIVE


def test_too_short_a_warm_up_is_told() -> None:
    fading = [round(80_000 * np.exp(-at / 8)) for at in range(180)]
    counts = [a + b for a, b in zip(fading, noisy(180), strict=True)]
    result = judge(seconds_record(counts), {})
    assert codes(result)["startup-transient"] is VerdictLevel.INDICATIVE
    warm = judge(replace(seconds_record(counts), warmup_s=60.0), {})
    assert codes(warm)["startup-transient"] is VerdictLevel.VALID


def test_a_wide_interval_is_told_with_the_rule_only() -> None:
    draws = np.random.default_rng(3).normal(40_000, 12_000, 200)
    wild = [max(round(draw), 0) for draw in draws]
    assert codes(judge(seconds_record(wild, RULE), {}))["wide-interval"] is VerdictLevel.INDICATIVE
    assert codes(judge(seconds_record(wild), {}))["wide-interval"] is VerdictLevel.VALID


def test_a_short_run_is_not_judged() -> None:
    result = judge(seconds_record([40_000] * 20), {})
    assert result.steadiness is None
    assert codes(result)["startup-transient"] is None


def test_percentiles_of_a_long_run_have_the_same_interval_each_time() -> None:
    record = seconds_record(noisy(150))
    first, again = judge(record, {}).metrics, judge(record, {}).metrics
    median = first["lat_ns_p50"]
    assert median == again["lat_ns_p50"]
    assert median.n == 10
    assert median.low is not None
    assert median.high is not None
    assert median.value is not None
    assert median.low < median.value < median.high


def test_a_few_stalls_leave_the_far_percentiles_open() -> None:
    counts = noisy(150)
    counts[70] = counts[110] = 100
    far = judge(seconds_record(counts), {}).metrics["lat_ns_p99_9"]
    assert far.value is None
    assert far.low is not None
    assert metric_value_text(far).startswith("> ")


@pytest.mark.parametrize(
    ("ios", "lat_ns", "level", "words"),
    [
        (40_000, 100_000, VerdictLevel.VALID, "those at that rate"),
        (39_000, 100_000, VerdictLevel.INDICATIVE, "not latency at that rate"),
        (40_000, 780_000, VerdictLevel.INDICATIVE, "service time at concurrency 31.2"),
    ],
)
def test_a_rate_must_be_kept(ios: int, lat_ns: int, level: VerdictLevel, words: str) -> None:
    job = replace(JOB, rate_iops=10_000)
    said = check_coordinated_omission(
        view_of(bursts_record([Burst(ios=ios, lat_ns=lat_ns)], job=job))
    )
    assert said.level is level
    assert words in said.message


def test_a_stall_that_the_average_hides_is_seen() -> None:
    job = replace(JOB, rate_iops=10_000)
    calm = Burst(ios=40_000, lat_ns=100_000, spans=29)
    stalled = replace(calm, start_s=29.0, lat_ns=790_000, spans=1, first_seq=29)
    said = check_coordinated_omission(view_of(bursts_record([calm, stalled], job=job)))
    assert said.level is VerdictLevel.INDICATIVE
    assert "waited unseen" in said.message
    assert said.evidence["full_seconds"] == pytest.approx(1 / 30, abs=0.01)


def test_a_closed_loop_has_service_times() -> None:
    said = check_coordinated_omission(view_of(bursts_record([Burst()])))
    assert said.level is None
    assert "service times" in said.message


def correlated(count: int, share: float = 0.05, seed: int = 0) -> list[int]:
    """Counts that wander: AR(1) at 0.98."""
    rng = np.random.default_rng(seed)
    value, found = rng.standard_normal(), []
    for _ in range(count):
        value = 0.98 * value + math.sqrt(1 - 0.98**2) * rng.standard_normal()
        found.append(round(40_000 * (1 + share * value)))
    return found


def test_a_rate_that_is_too_correlated_has_no_interval_and_says_so() -> None:
    result = judge(seconds_record(correlated(200), RULE), {})
    told = result.steadiness
    assert told is not None
    assert told.status is SteadinessStatus.CORRELATED
    assert "take repeats" in " ".join(told.reasons).lower()
    iops = result.metrics["iops"]
    assert (iops.low, iops.high) == (None, None)
    (said,) = [check for check in result.verdict.checks if check.code == "wide-interval"]
    assert said.level is VerdictLevel.INDICATIVE
    assert "Too correlated for one run" in said.message
    assert said.evidence["half_width"] is None
    assert steadiness_text(result) == "correlated"


def test_without_a_rule_a_correlated_rate_is_told_for_information() -> None:
    result = judge(seconds_record(correlated(200)), {})
    assert result.steadiness is not None
    assert result.steadiness.status is SteadinessStatus.CORRELATED
    assert codes(result)["wide-interval"] is VerdictLevel.VALID


def test_a_live_run_says_that_it_is_too_correlated() -> None:
    rule = FleetStoppingRule(["c1"], RULE)
    for at, count in enumerate(correlated(200), 1):
        rule.add_interval("c1", GO_NS + at * SECOND, SECOND, count)
    assert not rule.is_satisfied
    assert rule.status_text.startswith("too correlated")
    assert rule.status_text.endswith("of 20 independent")
