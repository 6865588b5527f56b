"""The rule by which a percentile is printed."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iolab.analysis.metrics import ios_needed_for_percentile, is_percentile_supported
from iolab.core.bins import PERCENTILES


@pytest.mark.parametrize(
    ("percent", "needed"),
    [(50.0, 200), (99.0, 10_000), (99.5, 20_000), (99.9, 100_000), (99.99, 1_000_000)],
)
def test_a_hundred_ios_lie_beyond(percent: float, needed: int) -> None:
    assert ios_needed_for_percentile(percent) == needed
    assert is_percentile_supported(needed, percent)
    assert not is_percentile_supported(needed - 1, percent)


def test_nothing_is_supported_by_few() -> None:
    assert not any(is_percentile_supported(199, percent) for _, percent in PERCENTILES)


@given(total=st.integers(0, 10**12), percent=st.floats(0, 99.9999))
def test_the_rule_is_monotone(total: int, percent: float) -> None:
    if is_percentile_supported(total, percent):
        assert is_percentile_supported(total + 1, percent)
        assert is_percentile_supported(total, percent / 2)
