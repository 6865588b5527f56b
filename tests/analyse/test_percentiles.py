"""The rule by which a percentile is printed."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iolab.analyse.percentiles import PERCENTILES, highest_supported, ios_needed, is_supported


@pytest.mark.parametrize(
    ("percent", "needed"),
    [(50.0, 200), (99.0, 10_000), (99.5, 20_000), (99.9, 100_000), (99.99, 1_000_000)],
)
def test_a_hundred_ios_lie_beyond(percent: float, needed: int) -> None:
    assert ios_needed(percent) == needed
    assert is_supported(needed, percent)
    assert not is_supported(needed - 1, percent)


@given(total=st.integers(100, 10**12))
def test_the_highest_supported_is_supported_and_next_to_the_limit(total: int) -> None:
    highest = highest_supported(total)
    assert highest is not None
    assert is_supported(total, highest) or highest == 0.0
    beyond = total * (1 - highest / 100)
    assert beyond * (1 + 1e-9) + 1e-6 >= 100
    assert beyond <= 100 + total * 2e-8


def test_nothing_is_supported_by_few() -> None:
    assert highest_supported(99) is None
    assert not any(is_supported(199, percent) for _, percent in PERCENTILES)
