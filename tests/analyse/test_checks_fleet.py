"""Hosts that started apart, clocks that moved, hosts unlike each other, lost bystanders."""

from __future__ import annotations

from dataclasses import replace

import pytest

from iolab.analyse.checks.fleet import bystander_lost, clock_drift, start_skew, uneven_fleet
from iolab.analyse.judge import judge
from iolab.model.guest import GuestFleet, GuestRun
from iolab.model.host import Role
from iolab.model.metric import Level
from iolab.model.run import Bystander, RunRecord
from tests.analyse.checks_on import INDICATIVE, INVALID, VALID, ask, level
from tests.analyse.records import Burst, bursts_record, facts_of, healthy
from tests.analyse.test_spread import MS, record


@pytest.mark.parametrize(
    ("skew_s", "expected"),
    [(0.0, VALID), (0.25, VALID), (0.26, INDICATIVE), (1.0, INDICATIVE), (1.01, INVALID)],
)
def test_hosts_must_start_together(skew_s: float, expected: Level) -> None:
    answer = ask(start_skew, record([(0.0, 31.0), (skew_s, 31.0)]))
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
def test_clocks_must_keep_their_distance(by_ms: float | None, expected: Level) -> None:
    answer = ask(clock_drift, drifted(by_ms))
    assert answer.level is expected
    if expected is not VALID:
        assert answer.evidence["host"] == "c2"


@pytest.mark.parametrize(("by_ms", "expected"), [(0.0, VALID), (501.0, INVALID)])
def test_the_clock_of_a_single_guest_is_judged_too(by_ms: float, expected: Level) -> None:
    made = drifted(by_ms)
    alone = record([(0.0, 30.0)])
    fleet = GuestFleet((GuestRun("c1", "node"),))
    assert level(clock_drift, replace(alone, hosts=made.hosts[1:], fleet=fleet)) is expected


def test_what_the_way_of_the_messages_explains_is_no_drift() -> None:
    assert level(clock_drift, drifted(90.0, error_ns=20 * MS)) is VALID
    assert level(clock_drift, drifted(91.0, error_ns=20 * MS)) is INDICATIVE


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
def test_hosts_must_be_alike(rates: list[int], expected: Level) -> None:
    answer = ask(uneven_fleet, bursts_record(*([Burst(ios=rate)] for rate in rates)))
    assert answer.level is expected
    assert answer.evidence["slowest_iops"] == pytest.approx(min(rates))


def test_a_host_with_fewer_jobs_owes_less() -> None:
    made = bursts_record([Burst(ios=4000)], [Burst(ios=1000)])
    assert level(uneven_fleet, made) is INDICATIVE
    point = replace(made.run.point, host_numjobs=(("c2", 1),))
    assert level(uneven_fleet, replace(made, run=replace(made.run, point=point))) is VALID


def bystander(name: str, error: str | None) -> Bystander:
    return Bystander(name, Role.STORAGE, error, (), 0, 0)


def test_a_lost_bystander_is_said_and_spoils_no_more_than_that() -> None:
    lost = bystander("s2", "Host 's2' broke off.")
    made = replace(healthy(), bystanders=(bystander("s1", None), lost))
    answer = ask(bystander_lost, made)
    assert answer.level is INDICATIVE
    assert answer.says == (
        "1 of 2 watched hosts could not be watched to the end: Host 's2' broke off."
    )
    assert level(bystander_lost, replace(made, bystanders=made.bystanders[:1])) is VALID
    assert level(bystander_lost, healthy()) is VALID


@pytest.mark.parametrize("check", [start_skew, clock_drift, uneven_fleet])
def test_one_host_is_no_fleet(check: object) -> None:
    assert level(check, healthy()) is VALID


def test_a_result_carries_its_spread() -> None:
    made = record([(0.0, 30.0), (0.1, 30.1)], rates=[1000, 2000])
    result = judge(made, {name: facts_of(name) for name in ("c1", "c2")})
    assert result.spread is not None
    assert result.spread.start_skew_ns == 100 * MS
    assert result.spread.fastest == "c2"
    assert judge(healthy(), {"c1": facts_of()}).spread is None
