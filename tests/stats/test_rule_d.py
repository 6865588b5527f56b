"""Rule D as a whole: when it stops, and what it says."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from iolab.core.stopping import CYCLIC, LSM, RAW_BLOCK, StoppingRuleSettings
from iolab.stats.stopping import (
    LiveStoppingRule,
    StoppingStatus,
    judge_series,
    replay_stopping_rule,
)
from tests.stats.made import LEVEL, cycling, decaying, noise, stalling


def test_a_steady_run_ends_at_the_second_look() -> None:
    seen = replay_stopping_rule(noise(780))
    assert seen.status is StoppingStatus.OK
    assert seen.seconds == RAW_BLOCK.shortest_s + RAW_BLOCK.step_s
    assert seen.mean == pytest.approx(LEVEL, abs=2 * seen.half_width)
    assert seen.relative_half_width < 0.01
    assert seen.period_s is None


def test_a_transient_is_waited_out() -> None:
    seen = replay_stopping_rule(decaying(780, 0.5, 40))
    assert seen.status is StoppingStatus.OK
    assert seen.cut_s > 100
    assert seen.tau_s is not None
    assert seen.mean == pytest.approx(LEVEL, rel=0.005)


def test_a_decay_beyond_the_cap_is_never_valid() -> None:
    for seed in range(4):
        live = LiveStoppingRule()
        for count in decaying(780, 0.8, 400, seed=seed):
            live.add_second(float(count))
        assert live.decision is not None
        assert live.decision.status is StoppingStatus.TRANSIENT


def test_cycles_are_resolved_or_named() -> None:
    quick = replay_stopping_rule(cycling(780, 0.2, 80))
    assert quick.status is StoppingStatus.OK
    assert quick.period_s == pytest.approx(80, abs=2)
    assert quick.cycles >= 3
    slow = replay_stopping_rule(cycling(780, 0.2, 300))
    assert slow.status is StoppingStatus.CYCLE
    assert replay_stopping_rule(cycling(1800, 0.2, 300), CYCLIC).status is StoppingStatus.OK


def test_few_large_stalls_are_imprecise() -> None:
    seen = replay_stopping_rule(stalling(780, 70, 5))
    assert seen.status is StoppingStatus.IMPRECISE
    assert seen.stall_count >= 8
    assert replay_stopping_rule(stalling(1800, 70, 5), LSM).status is StoppingStatus.OK


def test_a_run_of_nothing_is_imprecise() -> None:
    seen = replay_stopping_rule(np.zeros(780))
    assert seen.status is StoppingStatus.IMPRECISE
    assert seen.relative_half_width == math.inf


def test_a_short_series_is_still_running_but_can_be_judged() -> None:
    assert replay_stopping_rule(noise(100)).status is StoppingStatus.RUNNING
    assert judge_series(noise(100)).status is StoppingStatus.TRANSIENT
    with pytest.raises(ValueError, match="too few"):
        judge_series(noise(10))


def test_live_looks_only_when_it_is_time() -> None:
    live = LiveStoppingRule()
    looks = []
    for second, count in enumerate(noise(780), 1):
        if live.add_second(float(count)) is not None:
            looks.append(second)
        if live.may_end_run:
            break
    assert looks == [180, 195]
    with pytest.raises(ValueError, match="over since second 195"):
        live.add_second(1.0)


def test_a_single_lucky_look_does_not_end_a_run() -> None:
    series = noise(780)
    series[180:195] *= 0.2
    live = LiveStoppingRule()
    for count in series[:195]:
        live.add_second(float(count))
    assert live.decision is not None
    assert live.decision.status is StoppingStatus.RUNNING


@pytest.mark.parametrize("count", [-1.0, math.nan, math.inf])
def test_what_is_no_count_is_refused(count: float) -> None:
    with pytest.raises(ValueError, match="not a count"):
        LiveStoppingRule().add_second(count)


@given(st.integers(min_value=0, max_value=500), st.floats(min_value=1e-3, max_value=1e6))
@settings(max_examples=10)
def test_the_unit_does_not_matter(seed: int, unit: float) -> None:
    series = decaying(300, 0.2, 20, seed=seed)
    one, other = judge_series(series), judge_series(series * unit)
    assert one.status is other.status
    assert one.cut_s == other.cut_s
    assert other.mean == pytest.approx(one.mean * unit, rel=1e-9)
    assert other.half_width == pytest.approx(one.half_width * unit, rel=1e-6)


@given(st.integers(min_value=0, max_value=500))
@settings(max_examples=10)
def test_the_interval_narrows_with_time(seed: int) -> None:
    series = noise(3200, seed=seed)
    assert judge_series(series).half_width < judge_series(series[:200]).half_width


@given(
    st.lists(st.floats(min_value=0, max_value=1e9), min_size=20, max_size=60),
    st.integers(min_value=1, max_value=8),
)
@settings(max_examples=30)
def test_any_series_of_counts_is_judged(counts: list[float], times: int) -> None:
    seen = judge_series(np.repeat(np.array(counts), times))
    assert seen.status is not StoppingStatus.RUNNING
    assert 0 <= seen.cut_s < seen.seconds
    assert seen.half_width >= 0
    assert min(counts) <= seen.mean * (1 + 1e-9)
    assert seen.mean <= max(counts) * (1 + 1e-9)


def test_a_series_without_noise_is_exact() -> None:
    seen = replay_stopping_rule(np.full(780, LEVEL))
    assert seen.status is StoppingStatus.OK
    assert (seen.mean, seen.half_width) == (LEVEL, 0.0)


def test_settings_that_contradict_are_refused_all_at_once() -> None:
    with pytest.raises(ValueError, match=r"precision 2 .*; step_s 0 .*; longest_s 60 is below"):
        StoppingRuleSettings(precision=2, step_s=0, longest_s=60)
    with pytest.raises(ValueError, match="retained_s 500"):
        replace(RAW_BLOCK, retained_s=500)


def test_twice_what_the_truncation_finds_is_cut() -> None:
    # A rise is cut by the truncation: the fit takes it for a shorter transient than it was.
    series = noise(600, share=0.005)
    series[:30] *= 0.5
    assert judge_series(series).cut_s == 60
