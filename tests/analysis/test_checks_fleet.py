"""Hosts that started apart, clocks that moved, hosts unlike each other, lost bystanders."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from iolab.analysis.checks.fleet import (
    check_clock_drift,
    check_clock_step,
    check_monitored_node_lost,
    check_start_skew,
    check_uneven_fleet,
)
from iolab.core.host import HostRole
from iolab.core.metric import VerdictLevel
from iolab.core.run import MonitoredHost, RunRecord
from iolab.guests.guest import GuestFleet, GuestRun
from tests.analysis.checks_on import INDICATIVE, INVALID, VALID, ask, level
from tests.analysis.records import Burst, bursts_record, facts_of, healthy
from tests.analysis.test_spread import MS, record
from tests.facts import tells
from tests.judging import judge


@pytest.mark.parametrize(
    ("skew_s", "expected"),
    [(0.0, VALID), (0.25, VALID), (0.26, INDICATIVE), (1.0, INDICATIVE), (1.01, INVALID)],
)
def test_hosts_must_start_together(skew_s: float, expected: VerdictLevel) -> None:
    answer = ask(check_start_skew, record([(0.0, 31.0), (skew_s, 31.0)]))
    assert answer.level is expected
    assert answer.evidence["start_skew_s"] == pytest.approx(skew_s)
    if skew_s:
        assert (answer.evidence["first"], answer.evidence["last"]) == ("c1", "c2")


def drifted(by_ms: float | None, error_ns: int = 0) -> RunRecord:
    made = record([(0.0, 30.0)] * 2)
    after = None if by_ms is None else made.hosts[1].clock_offset_ns + round(by_ms * MS)
    moved = replace(
        made.hosts[1],
        clock_error_ns=error_ns,
        clock_offset_after_ns=after,
        clock_error_after_ns=error_ns,
    )
    still = replace(
        made.hosts[0], clock_offset_after_ns=made.hosts[0].clock_offset_ns, clock_error_after_ns=0
    )
    return replace(made, hosts=(still, moved))


@pytest.mark.parametrize(
    ("by_ms", "expected"),
    [
        (0.0, VALID),
        (-50.0, VALID),
        (51.0, INDICATIVE),
        (-500.0, INDICATIVE),
        (501.0, INVALID),
        (-3.6e6, INVALID),
        (None, INDICATIVE),
    ],
)
def test_clocks_must_keep_their_distance(by_ms: float | None, expected: VerdictLevel) -> None:
    answer = ask(check_clock_drift, drifted(by_ms))
    assert answer.level is expected
    if expected is not VALID:
        assert answer.evidence["host"] == "c2"


@pytest.mark.parametrize(
    ("by_ms", "expected"),
    [
        (0, VALID),
        (50, VALID),
        (-51, INDICATIVE),
        (500, INDICATIVE),
        (-501, INVALID),
        (4058, INVALID),
        (None, None),
    ],
)
def test_a_clock_that_was_set_is_told_with_its_host(
    by_ms: int | None, expected: VerdictLevel | None
) -> None:
    made = bursts_record([Burst()], [Burst()])
    step_ns = None if by_ms is None else by_ms * MS
    moved = replace(made.hosts[1], clock_step_ns=step_ns)
    still = replace(made.hosts[0], clock_step_ns=None if by_ms is None else 0)
    answer = ask(check_clock_step, replace(made, hosts=(still, moved)))
    assert answer.level is expected
    if by_ms:
        assert answer.evidence["host"] == "c2"
        assert answer.evidence["step_s"] == abs(by_ms) / 1000


@pytest.mark.parametrize(("by_ms", "expected"), [(0.0, VALID), (501.0, INVALID)])
def test_the_clock_of_a_single_guest_is_judged_too(by_ms: float, expected: VerdictLevel) -> None:
    made = drifted(by_ms)
    alone = record([(0.0, 30.0)])
    fleet = GuestFleet((GuestRun("c1", "node"),))
    assert level(check_clock_drift, replace(alone, hosts=made.hosts[1:], fleet=fleet)) is expected


def test_what_the_way_of_the_messages_explains_is_no_drift() -> None:
    assert level(check_clock_drift, drifted(90.0, error_ns=20 * MS)) is VALID
    assert level(check_clock_drift, drifted(91.0, error_ns=20 * MS)) is INDICATIVE


@pytest.mark.parametrize(
    ("rates", "expected"),
    [
        ([1000, 1000, 1000], VALID),
        ([1000, 1990], VALID),
        ([1000, 2010], INDICATIVE),
        ([1000] * 11 + [490], INDICATIVE),
        ([1000] * 6 + [510] * 6, VALID),
        ([1000] * 9 + [0], INDICATIVE),
    ],
)
def test_hosts_must_be_alike(rates: list[int], expected: VerdictLevel) -> None:
    answer = ask(check_uneven_fleet, bursts_record(*([Burst(ios=rate)] for rate in rates)))
    assert answer.level is expected
    assert answer.evidence["slowest_iops"] == pytest.approx(min(rates))


def test_a_host_with_fewer_jobs_owes_less() -> None:
    made = bursts_record([Burst(ios=4000)], [Burst(ios=1000)])
    assert level(check_uneven_fleet, made) is INDICATIVE
    point = replace(made.run.point, host_numjobs=(("c2", 1),))
    assert level(check_uneven_fleet, replace(made, run=replace(made.run, point=point))) is VALID


def bystander(name: str, error: str | None) -> MonitoredHost:
    return MonitoredHost(name, HostRole.STORAGE, error, (), 0, 0)


def test_a_lost_bystander_is_said_and_spoils_no_more_than_that() -> None:
    lost = bystander("s2", "Host 's2' broke off.")
    made = replace(healthy(), monitored_hosts=(bystander("s1", None), lost))
    answer = ask(check_monitored_node_lost, made)
    assert answer.level is INDICATIVE
    assert tells(answer.message, "1 of 2", "hosts", "'s2' broke off"), answer.message
    assert (
        level(check_monitored_node_lost, replace(made, monitored_hosts=made.monitored_hosts[:1]))
        is VALID
    )
    assert level(check_monitored_node_lost, healthy()) is None


@pytest.mark.parametrize("check", [check_start_skew, check_clock_drift, check_uneven_fleet])
def test_one_host_is_no_fleet(check: object) -> None:
    assert level(check, healthy()) is None


def test_a_result_carries_its_spread() -> None:
    made = record([(0.0, 30.0), (0.1, 30.1)], rates=[1000, 2000])
    result = judge(made, {name: facts_of(name) for name in ("c1", "c2")})
    assert result.spread is not None
    assert result.spread.start_skew_ns == 100 * MS
    assert result.spread.fastest == "c2"
    assert judge(healthy(), {"c1": facts_of()}).spread is None


@pytest.mark.parametrize("rates", [(100, 300, 200), (300, 200, 100)])
def test_the_slowest_and_the_fastest_host_are_named(rates: tuple[int, ...]) -> None:
    made = bursts_record(*([Burst(ios=rate)] for rate in rates))
    evidence = ask(check_uneven_fleet, made).evidence
    names = {rate: host.host for rate, host in zip(rates, made.hosts, strict=True)}
    assert (evidence["slowest"], evidence["fastest"]) == (names[100], names[300])
    assert (evidence["slowest_iops"], evidence["fastest_iops"]) == pytest.approx((100, 300))
