"""Engines that something stopped, and engines that waited for their storage."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from iolab.analysis.checks.load_halts import check_engine_stopped
from iolab.analysis.checks.time import (
    check_burst_credits,
    check_periodic_rate,
    check_startup_transient,
)
from iolab.core.metric import VerdictLevel
from iolab.core.run import LoadHalt, LoadHaltCause, ProcessorUse, RunRecord
from iolab.session.driver import processor_use_over_phases
from tests.analysis.checks_on import INDICATIVE, INVALID, VALID, ask, level
from tests.analysis.records import GO_NS, SECOND, healthy
from tests.analysis.test_checks_starved import used
from tests.facts import tells

THREADS = 4
BEFORE_NS = 3600 * SECOND


def stopped(
    from_s: float, to_s: float, threads: float = THREADS, cause: str = "stopped"
) -> LoadHalt:
    begin, end = GO_NS + round(from_s * SECOND), GO_NS + round(to_s * SECOND)
    return LoadHalt(LoadHaltCause(cause), begin, end, round((end - begin) * threads))


def held(*load_halts: LoadHalt) -> ProcessorUse:
    """What `used` gives, of a load that was watched for halts."""
    return replace(used(), load_halts=load_halts)


def record(*load_halts: LoadHalt) -> RunRecord:
    return healthy(processor=held(*load_halts))


@pytest.mark.parametrize(
    ("load_halts", "expected"),
    [
        ((), VALID),
        ((stopped(10, 10.3),), INDICATIVE),
        ((stopped(10, 14),), INVALID),
        ((stopped(10, 14, threads=0.4),), INDICATIVE),
        (tuple(stopped(n, n + 0.3) for n in range(8, 20)), INVALID),
        ((stopped(-20, -10),), VALID),
    ],
)
def test_an_engine_is_judged_by_the_part_of_the_time_that_it_stood(
    load_halts: tuple[LoadHalt, ...], expected: VerdictLevel
) -> None:
    assert level(check_engine_stopped, record(*load_halts)) is expected


def test_a_halt_is_told_with_its_length_and_its_cause() -> None:
    answer = ask(check_engine_stopped, record(stopped(10, 14), stopped(20, 20.5, cause="frozen")))
    assert answer.evidence["cause"] == "stopped"
    assert answer.evidence["stopped_s"] == pytest.approx(4.5)
    assert tells(answer.message, "2 times", "4.5 s", "signal")


def test_a_clock_that_is_ahead_moves_no_halt_out_of_the_run() -> None:
    late = replace(
        stopped(10, 14),
        from_real_ns=GO_NS + 10 * SECOND + BEFORE_NS,
        to_real_ns=GO_NS + 14 * SECOND + BEFORE_NS,
    )
    ahead = record(late)
    host = replace(ahead.hosts[0], clock_offset_ns=BEFORE_NS, start_real_ns=None)
    intervals = replace(ahead.intervals, end_real_ns=ahead.intervals.end_real_ns + BEFORE_NS)
    ahead = replace(ahead, hosts=(host,), intervals=intervals)
    assert level(check_engine_stopped, ahead) is INVALID


def test_what_a_halt_does_to_the_rate_gets_no_other_reason() -> None:
    for check in (check_startup_transient, check_periodic_rate, check_burst_credits):
        assert level(check, record(stopped(10, 14))) is None


def test_nothing_is_said_where_nobody_looked() -> None:
    assert level(check_engine_stopped, healthy(processor=used())) is None
    assert level(check_engine_stopped, healthy(processor=None)) is None


def test_the_halts_of_phases_are_kept_the_longest_where_there_are_too_many() -> None:
    first = held(*(stopped(n, n + 0.1) for n in range(200)))
    second = held(stopped(999, 1999), *(stopped(n, n + 0.2) for n in range(300, 500)))
    both = processor_use_over_phases([first, second])
    assert both is not None
    assert both.load_halts is not None
    assert len(both.load_halts) == 256
    assert both.load_halts[-1] == stopped(999, 1999)
    assert processor_use_over_phases([used(), used()]) == replace(
        processor_use_over_phases([used(), used()]) or used(), load_halts=None
    )
