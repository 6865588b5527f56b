"""How the run itself went."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from iolab.analysis.checks.run import (
    check_engine_errors,
    check_run_unfinished,
    check_totals_disagree,
)
from iolab.core.metric import VerdictLevel
from iolab.core.run import RunStatus
from tests.analysis.checks_on import INDICATIVE, INVALID, VALID, ask, level
from tests.analysis.records import Burst, bursts_record, direction_totals, engine_totals, healthy

IOS = 30 * 40_000


def test_how_a_run_ended() -> None:
    record = healthy()
    failed = replace(record, status=RunStatus.FAILED, failure="The disk is full.")
    interrupted = replace(record, status=RunStatus.INTERRUPTED)
    assert level(check_run_unfinished, record) is VALID
    assert level(check_run_unfinished, interrupted) is INDICATIVE
    answer = ask(check_run_unfinished, failed)
    assert answer.level is INVALID
    assert "The disk is full." in answer.message


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, VALID),
        ({"error": "fio could not open the file."}, INVALID),
        ({"exit_code": 1}, INVALID),
        ({"exit_code": None}, INVALID),
        ({"exit_code": None, "exit_signal": 9}, INVALID),
        ({"exit_code": 128, "stopped_early": True}, VALID),
        ({"exit_code": None, "exit_signal": 2, "stopped_early": True}, VALID),
        ({"totals": replace(engine_totals(None, None), error=5)}, INVALID),
        ({"totals": None}, INDICATIVE),
        ({"totals": None, "stopped_early": True}, VALID),
    ],
)
def test_what_an_engine_may_say(changes: dict[str, Any], expected: VerdictLevel) -> None:
    assert level(check_engine_errors, healthy(**changes)) is expected


def test_ios_that_were_cut_short_are_counted() -> None:
    read = replace(direction_totals(IOS, 1, 2, 1.5), short_ios=3, dropped_ios=1)
    answer = ask(check_engine_errors, healthy(totals=engine_totals(read, None)))
    assert answer.level is INDICATIVE
    assert answer.evidence["short_or_dropped_ios"] == 4


@pytest.mark.parametrize(("spans", "expected"), [(29, VALID), (28, INDICATIVE)])
def test_an_engine_runs_as_long_as_asked(spans: int, expected: VerdictLevel) -> None:
    record = bursts_record([Burst(spans=spans)])
    assert level(check_engine_errors, record) is expected
    stopped = replace(record.hosts[0], stopped_early=True)
    assert level(check_engine_errors, replace(record, hosts=(stopped,))) is VALID


def test_the_warm_up_is_asked_for_too() -> None:
    assert level(check_engine_errors, bursts_record([Burst()], warmup_s=5.0)) is INDICATIVE
    assert level(check_engine_errors, bursts_record([Burst(spans=35)], warmup_s=5.0)) is VALID


@pytest.mark.parametrize(
    ("ios", "expected"),
    [
        (IOS, VALID),
        (IOS + 1200, VALID),
        (IOS + 1300, INDICATIVE),
        (IOS - 1300, INDICATIVE),
        (IOS * 2, INVALID),
    ],
)
def test_the_engine_has_counted_the_same(ios: int, expected: VerdictLevel) -> None:
    totals = engine_totals(direction_totals(ios, 1, 2, 1.5), None)
    assert level(check_totals_disagree, healthy(totals=totals)) is expected


def test_bins_that_lack_ios_are_found() -> None:
    record = healthy()
    bins = replace(record.bins, count=record.bins.count // 2)
    answer = ask(check_totals_disagree, replace(record, bins=bins))
    assert answer.level is INVALID
    assert answer.evidence["binned_ios"] == IOS // 2


def test_sums_without_totals_cannot_be_held_against_them() -> None:
    assert level(check_totals_disagree, healthy(totals=None)) is INDICATIVE


def test_sums_of_a_host_that_was_lost_have_no_whole_to_agree_with() -> None:
    lost = healthy(error="The host was lost.", totals=None)
    assert level(check_totals_disagree, lost) is None
    assert level(check_engine_errors, lost) is INVALID
