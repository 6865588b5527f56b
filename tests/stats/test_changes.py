"""Change points, and above all their absence."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from iolab.stats.changes import RUNS_MIN, fewest_runs_for_change, find_level_changes


def runs(seed: int, *levels: tuple[int, float], sd: float = 0.01) -> list[float]:
    rng = np.random.default_rng(seed)
    truth = np.concatenate([np.full(count, level) for count, level in levels])
    return list(truth * np.exp(sd * rng.standard_normal(len(truth))))


def test_nothing_changed_is_said_clearly() -> None:
    found = find_level_changes(runs(1, (30, 100.0)), np.random.default_rng(1))
    assert found.changes == ()
    assert found.summary_text == "nothing changed over 30 runs"


def test_false_alarms_are_rare() -> None:
    rng = np.random.default_rng(2)
    # Spread of 5 %, so that the least magnitude does not hide alarms.
    alarms = sum(
        bool(find_level_changes(runs(seed, (20, 1.0), sd=0.05), rng).changes) for seed in range(60)
    )
    assert alarms <= 3


def test_a_shift_is_found_where_it_is() -> None:
    found = find_level_changes(runs(3, (15, 100.0), (15, 95.0)), np.random.default_rng(3))
    assert [change.run_index for change in found.changes] == [15]
    assert found.changes[0].ratio == pytest.approx(0.95, abs=0.01)
    assert found.changes[0].p_value <= 0.01
    assert found.summary_text == "1 change over 30 runs"


def test_two_shifts_are_found() -> None:
    series = runs(4, (12, 100.0), (12, 90.0), (12, 100.0), sd=0.005)
    found = find_level_changes(series, np.random.default_rng(4))
    assert [change.run_index for change in found.changes] == [12, 24]


def test_a_small_shift_is_not_worth_the_name() -> None:
    series = runs(5, (20, 100.0), (20, 101.0), sd=0.001)
    assert find_level_changes(series, np.random.default_rng(5)).changes == ()


def test_a_recent_shift_is_seen_after_three_runs() -> None:
    series = runs(6, (17, 100.0), (3, 93.0))
    found = find_level_changes(series, np.random.default_rng(6))
    assert [change.run_index for change in found.changes] == [17]


def test_few_runs_tell_nothing() -> None:
    found = find_level_changes([100.0] * (RUNS_MIN - 1), np.random.default_rng(1))
    assert not found.has_enough_runs
    assert "too few" in found.summary_text
    assert find_level_changes([100.0] * RUNS_MIN, np.random.default_rng(1)).changes == ()
    with pytest.raises(ValueError, match="not a positive mean"):
        find_level_changes([0.0] * 20, np.random.default_rng(1))


@given(st.integers(min_value=0, max_value=50), st.floats(min_value=1e-6, max_value=1e6))
@settings(max_examples=10)
def test_the_unit_does_not_matter(seed: int, unit: float) -> None:
    series = runs(seed, (10, 100.0), (10, 93.0))
    one = find_level_changes(series, np.random.default_rng(1))
    other = find_level_changes([value * unit for value in series], np.random.default_rng(1))
    assert [change.run_index for change in one.changes] == [
        change.run_index for change in other.changes
    ]


def test_who_searches_many_series_at_once_needs_more_runs_and_finds_them() -> None:
    series = runs(11, (8, 100.0), (8, 80.0))
    assert [
        change.run_index for change in find_level_changes(series, fresh(), alpha=3e-4).changes
    ] == [8]
    few = find_level_changes(series[:12], fresh(), alpha=3e-4)
    assert (few.has_enough_runs, few.changes) == (False, ())
    assert [int(one) for one in few.summary_text.split() if one.isdigit()] == [12, 16]
    assert fewest_runs_for_change(0.01) == RUNS_MIN


def test_a_smaller_alpha_gives_fewer_false_alarms() -> None:
    rng = fresh()
    series = [runs(seed, (20, 1.0), sd=0.05) for seed in range(30)]
    loose = sum(bool(find_level_changes(one, rng, alpha=0.3).changes) for one in series)
    strict = sum(bool(find_level_changes(one, rng, alpha=0.001).changes) for one in series)
    assert strict <= 1 < loose


def fresh() -> np.random.Generator:
    return np.random.default_rng(12)
