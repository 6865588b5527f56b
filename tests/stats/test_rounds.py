"""SNIA's rule of five rounds against examples worked by hand."""

from __future__ import annotations

import pytest

from iolab.stats.rounds import judge_steady_state_rounds


def test_fewer_than_five_rounds_say_nothing() -> None:
    assert judge_steady_state_rounds([100.0] * 4) is None


def test_a_worked_example() -> None:
    """110, 105, 100, 95, 90: average 100, slope -5, the line moves by 4 x 5 = 20 %."""
    verdict = judge_steady_state_rounds([110.0, 105.0, 100.0, 95.0, 90.0])
    assert verdict is not None
    assert verdict.average == pytest.approx(100)
    assert verdict.data_excursion == pytest.approx(0.20)
    assert verdict.slope == pytest.approx(-5)
    assert verdict.slope_excursion == pytest.approx(0.20)
    assert verdict.intercept == pytest.approx(115)
    assert not verdict.achieved


def test_both_limits_belong_to_the_steady_side() -> None:
    """Two spikes of +-10 % in the middle: range 20 %, slope (-1 x 10 + 1 x -10) / 10 = -2."""
    at_limit = judge_steady_state_rounds([100.0, 110.0, 100.0, 90.0, 100.0])
    assert at_limit is not None
    assert at_limit.data_excursion == pytest.approx(0.20)
    assert at_limit.slope_excursion == pytest.approx(0.08)
    assert at_limit.achieved
    beyond = judge_steady_state_rounds([100.0, 110.2, 100.0, 90.0, 99.8])
    assert beyond is not None
    assert not beyond.achieved


def test_a_drift_of_ten_per_cent_over_the_window_passes_and_eleven_does_not() -> None:
    drift = [100 + 2.5 * step for step in (-2, -1, 0, 1, 2)]
    steeper = [100 + 2.75 * step for step in (-2, -1, 0, 1, 2)]
    passed, failed = judge_steady_state_rounds(drift), judge_steady_state_rounds(steeper)
    assert passed is not None
    assert failed is not None
    assert passed.slope_excursion == pytest.approx(0.10)
    assert passed.achieved
    assert failed.slope_excursion == pytest.approx(0.11)
    assert not failed.achieved


def test_only_the_newest_five_rounds_count() -> None:
    verdict = judge_steady_state_rounds([900.0, 400.0, 100.0, 100.0, 100.0, 100.0, 100.0])
    assert verdict is not None
    assert verdict.first_round == 3
    assert verdict.achieved


def test_nothing_done_is_not_steady() -> None:
    verdict = judge_steady_state_rounds([0.0] * 5)
    assert verdict is not None
    assert not verdict.achieved
