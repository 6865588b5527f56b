"""Unequal states: the check fires, keeps still, and at its limits."""

from __future__ import annotations

from msgspec.structs import replace

from iolab.analysis.checks.run import STATE_SHARE, check_unequal_state
from iolab.core.metric import VerdictLevel
from iolab.core.target_state import PurgeMethod, TargetState
from tests.analysis.checks_on import INDICATIVE, VALID, level
from tests.analysis.records import GIB, healthy

STATE = TargetState(
    host="c1",
    target_key="c1",
    purged_by=PurgeMethod.DISCARD,
    purged_real_ns=1,
    region_bytes=GIB,
    filled=2.0,
    written_bytes=2 * GIB,
    compared_bytes=2 * GIB,
    foreign_bytes=0,
    steady=None,
    unknown=None,
)


def judged(*states: TargetState) -> VerdictLevel | None:
    return level(check_unequal_state, replace(healthy(), states=states))


def test_without_an_account_there_is_nothing_to_judge() -> None:
    assert judged() is None


def test_equal_states_and_small_differences_are_valid() -> None:
    limit = int(STATE_SHARE * GIB)
    assert judged(STATE) is VALID
    assert judged(replace(STATE, written_bytes=2 * GIB + limit)) is VALID
    assert judged(STATE, replace(STATE, written_bytes=2 * GIB + limit + 1)) is INDICATIVE
    assert judged(replace(STATE, written_bytes=2 * GIB - limit - 1)) is INDICATIVE


def test_a_steady_state_makes_up_for_a_difference_and_one_not_reached_does_not() -> None:
    far = replace(STATE, written_bytes=90 * GIB)
    assert judged(replace(far, steady=True)) is VALID
    assert judged(replace(STATE, steady=False)) is INDICATIVE


def test_what_is_unknown_or_of_others_is_told() -> None:
    assert judged(replace(STATE, unknown="the host was restarted", steady=True)) is INDICATIVE
    assert judged(replace(STATE, foreign_bytes=1)) is INDICATIVE
