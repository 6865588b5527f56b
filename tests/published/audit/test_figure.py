"""Printed figures and what they leave open."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iolab.published.audit.document import (
    RoundingInterval,
    enclosing_range,
    exact_range,
    range_product,
    rounding_range,
)


@pytest.mark.parametrize(
    ("written", "low", "high"),
    [
        (Decimal("5.2e6"), 5.15e6, 5.25e6),
        (Decimal("0.1"), 0.05, 0.15),
        (Decimal("12.0"), 11.95, 12.05),
        (Decimal("245.76"), 245.755, 245.765),
        (16, 15.5, 16.5),
        (531000, 530500, 531500),
        (100, 50, 150),
        (608886, 608885.5, 608886.5),
        (0, -0.5, 0.5),
    ],
)
def test_a_figure_stands_for_what_rounds_to_it(
    written: int | Decimal, low: float, high: float
) -> None:
    found = rounding_range(written)
    assert (found.low, found.high) == pytest.approx((low, high))


def test_what_is_no_number_is_no_figure() -> None:
    with pytest.raises(ValueError, match="no number"):
        rounding_range(Decimal("nan"))


POSITIVE = st.floats(1e-3, 1e9)


@given(value=POSITIVE, digits=st.integers(1, 6))
def test_rounding_a_number_leaves_it_inside(value: float, digits: int) -> None:
    found = rounding_range(Decimal(f"{value:.{digits - 1}e}"))
    assert found.low <= value * (1 + 1e-12)
    assert value * (1 - 1e-12) <= found.high


@given(a=POSITIVE, b=POSITIVE, c=POSITIVE, d=POSITIVE)
def test_products_and_quotients_hold_those_of_every_number_within(
    a: float, b: float, c: float, d: float
) -> None:
    one, other = RoundingInterval(min(a, b), max(a, b)), RoundingInterval(min(c, d), max(c, d))
    times, over = one * other, one / other
    for x in (one.low, one.middle, one.high):
        for y in (other.low, other.middle, other.high):
            assert times.low * (1 - 1e-9) <= x * y <= times.high * (1 + 1e-9)
            assert over.low * (1 - 1e-9) <= x / y <= over.high * (1 + 1e-9)


def test_spans_meet_or_are_a_share_apart() -> None:
    assert RoundingInterval(1, 2).overlaps(RoundingInterval(2, 3))
    assert RoundingInterval(1, 2).relative_gap_to(RoundingInterval(2, 3)) == 0
    assert RoundingInterval(1, 2).relative_gap_to(RoundingInterval(4, 5)) == 0.5
    assert RoundingInterval(4, 5).relative_gap_to(RoundingInterval(1, 2)) == 1.0
    assert exact_range(1).relative_gap_to(exact_range(0)) == float("inf")


def test_a_quotient_needs_a_positive_divisor() -> None:
    with pytest.raises(ValueError, match="positive divisor"):
        exact_range(1) / RoundingInterval(0, 1)


def test_sums_products_and_hulls_of_several() -> None:
    assert exact_range(1) + RoundingInterval(2, 3) == RoundingInterval(3, 4)
    assert range_product(
        [exact_range(2), RoundingInterval(1, 2), exact_range(3)]
    ) == RoundingInterval(6, 12)
    assert enclosing_range([RoundingInterval(3, 4), RoundingInterval(1, 2)]) == RoundingInterval(
        1, 4
    )
    with pytest.raises(ValueError, match="no figures"):
        enclosing_range([])
