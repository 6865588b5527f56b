"""A whole judgement."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from iolab.analysis.metrics import METRIC_KEYS
from iolab.core.metric import VerdictLevel
from iolab.core.run import DeviceDelta, RunRecord, RunStatus
from iolab.core.samples import CounterTable, empty_bin_table, empty_interval_table
from iolab.hosts.telemetry import CounterCollector
from tests.analysis.records import (
    DEVICE,
    GO_NS,
    MIXED,
    SECOND,
    WRITES,
    Burst,
    bursts_record,
    facts_of,
    healthy,
    host_run,
    record_of,
    view_of,
)
from tests.judging import CHECKS, judge, verdict_of


@pytest.mark.parametrize("record", [healthy(), healthy(WRITES), healthy(MIXED)])
def test_a_healthy_run_is_valid(record: RunRecord) -> None:
    verdict = verdict_of(view_of(record))
    assert verdict.objections == ()
    assert verdict.level is VerdictLevel.VALID
    asked = [check.code for check in CHECKS if not check.needs_phases]
    assert [check.code for check in verdict.checks] == asked


def test_the_worst_check_decides() -> None:
    cached = healthy(devices=(DeviceDelta(DEVICE, 0, 0, 0, 0),), exit_code=0)
    verdict = verdict_of(view_of(cached, telemetry=()))
    assert verdict.level is VerdictLevel.INVALID
    assert verdict.objections[0].code == "bytes-moved"
    assert {check.level for check in verdict.objections} == {
        VerdictLevel.INVALID,
        VerdictLevel.INDICATIVE,
    }


def test_a_run_that_measured_nothing_is_invalid_for_its_own_reasons() -> None:
    record = record_of([host_run("c1", exit_code=1)], empty_interval_table(), empty_bin_table())
    record = replace(record, status=RunStatus.FAILED, failure="fio could not open the file.")
    result = judge(record, {"c1": facts_of()})
    assert result.status is RunStatus.FAILED
    assert result.failure == record.failure
    assert result.window_s == 0.0
    assert list(result.metrics) == list(METRIC_KEYS)
    assert all(metric.value is None for metric in result.metrics.values())
    assert result.verdict.level is VerdictLevel.INVALID
    codes = {check.code for check in result.verdict.objections}
    assert codes == {"run-unfinished", "engine-errors", "no-common-window"}
    assert "littles-law" not in {check.code for check in result.verdict.checks}


def test_silence_is_no_success() -> None:
    empty = bursts_record([Burst(ios=0)])
    verdict = verdict_of(view_of(empty))
    assert verdict.level is VerdictLevel.INVALID
    assert "no I/O" in verdict.objections[0].message


def test_an_interrupted_run_keeps_what_it_measured() -> None:
    cut = replace(bursts_record([Burst(spans=22)]), status=RunStatus.INTERRUPTED)
    cut = replace(cut, hosts=(replace(cut.hosts[0], stopped_early=True),))
    assert verdict_of(view_of(cut)).level is VerdictLevel.INDICATIVE
    assert judge(cut, {}).metrics["iops"].value == pytest.approx(40_000)


def test_a_failed_host_takes_the_fleet_with_it_and_leaves_the_others() -> None:
    both = bursts_record([Burst()], [Burst()])
    alone = bursts_record([Burst()])
    dead = host_run("c2", error="lost.", exit_code=None)
    record = replace(both, hosts=(both.hosts[0], dead), intervals=alone.intervals, bins=alone.bins)
    result = judge(record, {})
    assert result.metrics["iops"].value is None
    assert result.hosts[0].metrics["iops"].value == pytest.approx(40_000)
    assert result.hosts[1].metrics["iops"].value is None
    assert result.verdict.level is VerdictLevel.INVALID


def test_a_result_says_what_it_is_the_result_of() -> None:
    result = judge(healthy(), {"c1": facts_of()})
    point = healthy().run.point
    assert (result.digest, result.repeat) == (point.digest, 1)
    assert (result.configuration, result.workload) == ("default", "rand-read-4k")
    assert [host.name for host in result.hosts] == ["c1"]
    assert result.window_s == 30.0


def counted(busy: float, steal: float = 0.0) -> CounterTable:
    """Thirty seconds of two cores, each that busy, as an agent samples them."""
    collector = CounterCollector()
    for at in range(31):
        user, stolen = round(busy * at * SECOND), round(steal * at * SECOND)
        idle = at * SECOND - user - stolen
        cores = [[core, 0, user, 0, 0, idle, 0, 0, 0, stolen] for core in (0, 1)]
        sample = {"seq": at, "real_ns": GO_NS + at * SECOND, "cpu": cores}
        collector.add(0, sample | {"thermal": {"throttle_events": 7}, "agent": {"cpu_ns": at}})
    return collector.pop_table()


@pytest.mark.parametrize(
    ("counters", "objections"),
    [
        (counted(busy=0.3), []),
        (counted(busy=0.95), ["cpu-bound-client"]),
        (counted(busy=0.3, steal=0.1), ["cpu-stolen"]),
    ],
)
def test_counters_reach_the_checks(counters: CounterTable, objections: list[str]) -> None:
    result = judge(replace(healthy(), counters=counters), {"c1": facts_of()})
    assert [check.code for check in result.verdict.objections] == objections
    found = {check.code: check.evidence for check in result.verdict.checks}
    assert found["thermal-throttling"]["throttle_events"] == 0
    assert found["cpu-bound-client"]["agent_cpu_share"] == pytest.approx(1e-9)


@settings(max_examples=25)
@given(
    ios=st.integers(0, 50_000),
    lat_ns=st.integers(1, 10**10),
    spans=st.integers(1, 40),
    start_s=st.floats(0, 50),
    warmup_s=st.floats(0, 50),
)
def test_any_record_can_be_judged_and_the_same_way_twice(
    ios: int, lat_ns: int, spans: int, start_s: float, warmup_s: float
) -> None:
    burst = Burst(start_s=start_s, spans=spans, ios=ios, lat_ns=lat_ns)
    record = bursts_record([Burst()], [burst], warmup_s=warmup_s)
    result = judge(record, {})
    assert result == judge(record, {})
    assert result.verdict.level is not VerdictLevel.VALID
    if not any(host.metrics["iops"].value for host in result.hosts):
        assert result.verdict.level is VerdictLevel.INVALID
    p99, largest = result.metrics["lat_ns_p99"].value, result.metrics["lat_ns_max"].value
    if p99 is not None and largest is not None:
        assert p99 <= largest
