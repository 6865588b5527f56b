"""Loads that a quota stops, or that wait for a processor, and loads that have what they ask for."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from iolab.analysis.checks.client import (
    check_client_starved,
    check_client_throttled,
    check_cpu_bound_client,
)
from iolab.core.metric import VerdictLevel
from iolab.core.run import CgroupCpuUse, ProcessorUse
from tests.analysis.checks_on import INDICATIVE, INVALID, VALID, ask, level
from tests.analysis.records import QUIET, Burst, bursts_record, facts_of, healthy, series
from tests.facts import tells
from tests.judging import judge

SECOND = 1_000_000_000
PERIOD_NS = 100_000_000
PERIODS = 300
"""Of a tenth of a second, in the half minute of a run."""


def group(
    throttled: int = 0, stood_s: float = 0.0, cores: float | None = 0.1, path: str = "/pods/x"
) -> CgroupCpuUse:
    counts = (PERIODS, throttled, round(stood_s * SECOND))
    return CgroupCpuUse(path, cores, PERIOD_NS, *counts)


def used(wait: float = 0.0, *groups: CgroupCpuUse, cores: tuple[int, ...] = ()) -> ProcessorUse:
    """Four threads over half a minute, that waited for such a share of it."""
    wall_ns = 4 * 30 * SECOND
    waited, ran = round(wait * wall_ns), round(0.1 * wall_ns)
    return ProcessorUse(30 * SECOND, 4, wall_ns, ran, waited, cores or (0, 1, 2, 3), groups)


@pytest.mark.parametrize(
    ("throttled", "stood_s", "expected"),
    [
        (0, 0.0, VALID),
        (2, 0.1, VALID),
        (3, 0.1, INDICATIVE),
        (149, 7.4, INDICATIVE),
        (149, 7.5, INVALID),
        (150, 1.0, INVALID),
        (300, 200.0, INVALID),
    ],
)
def test_a_quota_is_judged_by_how_often_it_was_used_up(
    throttled: int, stood_s: float, expected: VerdictLevel
) -> None:
    record = healthy(processor=used(0.0, group(throttled, stood_s)))
    answer = ask(check_client_throttled, record)
    assert answer.level is expected
    assert tells(answer.message, "0.1", "/pods/x")
    assert answer.evidence["throttled_share"] == pytest.approx(throttled / PERIODS)


def test_the_group_that_held_the_load_up_most_is_named_with_what_that_cost() -> None:
    above = group(290, 25.0, cores=2.0, path="/pods")
    record = healthy(processor=used(0.62, group(3, 0.1), above, group(cores=None, path="/")))
    answer = ask(check_client_throttled, record)
    assert answer.evidence["group"] == "/pods"
    assert tells(answer.message, "2", "97 %", "83 %", "62 %")


def test_without_a_quota_nothing_is_held_up_and_without_groups_nothing_is_known() -> None:
    free = group(cores=None, path="/")
    assert level(check_client_throttled, healthy(processor=used(0.0, free))) is VALID
    assert level(check_client_throttled, healthy(processor=used())) is None
    assert level(check_client_throttled, healthy(processor=None)) is None


@pytest.mark.parametrize(
    ("waited", "busy", "expected"),
    [
        (0.0, 0.3, VALID),
        (0.04, 0.99, VALID),
        (0.06, 0.99, INDICATIVE),
        (0.19, 0.89, VALID),
        (0.20, 0.3, INDICATIVE),
        (0.62, 1.0, INDICATIVE),
        (0.89, 1.0, INDICATIVE),
        (0.90, 0.3, INVALID),
    ],
)
def test_waits_for_a_processor_are_judged_by_their_share(
    waited: float, busy: float, expected: VerdictLevel
) -> None:
    record = healthy(processor=used(waited))
    answer = ask(check_client_starved, record, telemetry=(series("busy_share", [busy] * 30),))
    assert answer.level is expected
    assert answer.evidence["wait_share"] == pytest.approx(waited)


def test_the_cores_that_a_load_is_bound_to_are_looked_at_alone() -> None:
    record = healthy(processor=used(0.3, cores=(3,)))
    ways = [("0@0", 0.0), ("1@0", 0.0), ("2@0", 0.1), ("3@0", 0.98), ("all", 0.27)]
    telemetry = tuple(series("busy_share", [busy] * 30, name=name) for name, busy in ways)
    starved = ask(check_client_starved, record, telemetry=telemetry)
    assert tells(starved.message, "30 %", "1 of 4", "(3)")
    # What the load itself ran there is no other work.
    assert starved.evidence["others_busy_share"] == pytest.approx(0.98 - 0.4)
    bound = ask(check_cpu_bound_client, record, telemetry=telemetry)
    assert bound.level is INDICATIVE
    assert bound.evidence["cores_busy_share"] == pytest.approx(0.98)


def test_what_a_quota_explains_is_said_once() -> None:
    stopped = used(0.6, group(280, 17.0))
    assert level(check_client_throttled, healthy(processor=stopped)) is INVALID
    assert level(check_client_starved, healthy(processor=stopped)) is VALID
    # A quota that is hardly ever used up explains nothing.
    rarely = used(0.6, group(4, 0.1))
    assert level(check_client_starved, healthy(processor=rarely)) is INDICATIVE


def test_a_load_that_nobody_could_look_at_is_not_judged() -> None:
    assert level(check_client_starved, healthy(processor=None)) is None
    unseen = ProcessorUse(SECOND, 0, 0, 0, 0, (), ())
    assert level(check_client_starved, healthy(processor=unseen)) is None
    verdict = judge(healthy(processor=None), {"c1": facts_of("c1")}).verdict
    assert {"client-starved", "client-throttled"} <= {check.code for check in verdict.checks}


def test_the_host_that_waited_most_speaks() -> None:
    record = bursts_record([Burst()], [Burst()])
    first, second = record.hosts
    waited = replace(second, processor=used(0.7))
    record = replace(record, hosts=(replace(first, processor=used(0.3)), waited))
    answer = ask(check_client_starved, record, telemetry=QUIET)
    assert answer.evidence["host"] == "c2"
