"""What comes from outside, driven to each bound and past it."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from iolab.core import limits
from iolab.units import NS_PER_S

LONGEST_NS = int(limits.RUN_S_MOST) * NS_PER_S
MOST_S = st.sampled_from([1.0, 3600.0, limits.RUN_S_MOST])


@given(MOST_S, st.integers(1000, 10**9), st.integers(2, 50))
def test_a_series_may_last_as_long_as_its_run_and_no_longer(
    most_s: float, beyond_ns: int, count: int
) -> None:
    first_ns = 1_700_000_000 * NS_PER_S
    step_ns = int(most_s) * NS_PER_S // count
    ends = first_ns + step_ns * np.arange(1, count + 1, dtype=np.int64)
    spans = np.full(count, step_ns, dtype=np.int64)
    assert not limits.series_fault(ends, spans, most_s)
    late = ends.copy()
    late[-1] += int(most_s) * NS_PER_S + beyond_ns
    assert limits.series_fault(late, spans, most_s)
    long = spans.copy()
    long[0] = int(most_s) * NS_PER_S + beyond_ns
    assert limits.series_fault(ends, long, most_s)
    negative = spans.copy()
    negative[0] = -beyond_ns
    assert limits.series_fault(ends, negative, most_s)


@given(st.integers(0, 2**63 - 1))
def test_any_moment_and_length_of_an_interval_is_accepted_or_has_a_sentence(number: int) -> None:
    ends = np.array([number], dtype=np.int64)
    message = limits.series_fault(ends, ends)
    assert bool(message) == (number > LONGEST_NS)
    assert limits.moment_fault(number) == "" or number > limits.MOMENT_NS_MOST


@pytest.mark.parametrize("counts", [[limits.COUNT_MOST + 1], [limits.COUNT_MOST, 1], [-1]])
def test_counts_beyond_what_tables_hold_are_refused(counts: list[int]) -> None:
    assert limits.count_fault("operations", counts)
    assert not limits.count_fault("operations", [limits.COUNT_MOST])


@pytest.mark.parametrize("seconds", [-1.0, limits.RUN_S_MOST * 1.001, 1e18, float("nan")])
def test_durations_beyond_their_bound_are_refused(seconds: float) -> None:
    assert limits.duration_fault(seconds)
    assert not limits.duration_fault(limits.RUN_S_MOST)
