"""Our special functions against scipy's."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import special, stats

from iolab.stats.special import (
    beta_cdf,
    digamma,
    student_quantile,
    student_two_sided_p_value,
    tetragamma,
    trigamma,
    trigamma_inverse,
)

POSITIVE = st.floats(min_value=0.01, max_value=1e5)
DEGREES = st.one_of(
    st.integers(min_value=1, max_value=60).map(float), st.floats(min_value=0.3, max_value=1e5)
)
NEAR = 1e-9


@given(POSITIVE)
def test_polygammas_are_scipys(x: float) -> None:
    assert digamma(x) == pytest.approx(float(special.digamma(x)), rel=NEAR, abs=NEAR)
    assert trigamma(x) == pytest.approx(float(special.polygamma(1, x)), rel=NEAR)
    assert tetragamma(x) == pytest.approx(float(special.polygamma(2, x)), rel=NEAR)


@given(st.floats(min_value=1e-5, max_value=1e4))
def test_trigamma_is_inverted(y: float) -> None:
    assert float(special.polygamma(1, trigamma_inverse(y))) == pytest.approx(y, rel=NEAR)


@given(
    st.floats(min_value=0, max_value=1 - 1e-9),
    st.floats(min_value=0.1, max_value=3000),
    st.floats(min_value=0.1, max_value=3000),
)
def test_incomplete_beta_is_scipys(x: float, a: float, b: float) -> None:
    # Near 1 scipy's value is off by 1e-8 where a = b = 0.5; its mirror image is not.
    wanted = special.betainc(a, b, x) if x <= 0.5 else 1 - special.betainc(b, a, 1 - x)
    assert beta_cdf(x, a, b) == pytest.approx(float(wanted), rel=NEAR, abs=1e-11)


@pytest.mark.parametrize("short", [0.5, 1e-4, 1e-8, 1e-12, 2.0**-53])
def test_incomplete_beta_is_the_arcsine_law_up_to_its_end(short: float) -> None:
    left = 1 - (1 - short)  # what is left in floating point, exactly
    wanted = 2 / math.pi * math.asin(math.sqrt(left))
    assert 1 - beta_cdf(1 - short, 0.5, 0.5) == pytest.approx(wanted, rel=1e-6)
    assert beta_cdf(left, 0.5, 0.5) == pytest.approx(wanted, rel=NEAR)


def test_incomplete_beta_is_exact_where_scipys_is_not() -> None:
    # scipy 1.17 is 3e-9 off here; the arc sine law is the closed form at a = b = 1/2.
    left = 2**-53
    wanted = 1 - 2 / math.pi * math.asin(math.sqrt(left))
    assert beta_cdf(1 - left, 0.5, 0.5) == pytest.approx(wanted, rel=1e-14)


@given(st.floats(min_value=0.501, max_value=0.9999), DEGREES)
def test_students_quantile_is_scipys(p: float, df: float) -> None:
    # Near the median the quantile is a small difference of shares: absolute there, not relative.
    wanted = float(stats.t.ppf(p, df))
    assert student_quantile(p, df) == pytest.approx(wanted, rel=NEAR, abs=1e-10)
    assert student_quantile(1 - p, df) == pytest.approx(-wanted, rel=1e-7, abs=1e-9)


@given(st.floats(min_value=-40, max_value=40), DEGREES)
def test_students_law_is_scipys(t: float, df: float) -> None:
    assert student_two_sided_p_value(abs(t), df) == pytest.approx(
        2 * float(stats.t.sf(abs(t), df)), rel=1e-7, abs=1e-300
    )


def test_infinite_degrees_are_normal() -> None:
    assert student_quantile(0.975, math.inf) == pytest.approx(1.959963984540054)
    assert student_two_sided_p_value(3.0, math.inf) == pytest.approx(2 * float(stats.norm.sf(3.0)))


@pytest.mark.parametrize("p", [0.0, 1.0, -0.1, math.nan])
def test_a_share_outside_of_its_range_is_refused(p: float) -> None:
    with pytest.raises(ValueError, match="share"):
        student_quantile(p, 5.0)


@pytest.mark.parametrize("function", [digamma, trigamma, tetragamma, trigamma_inverse])
def test_nothing_but_positive_numbers(function: object) -> None:
    assert callable(function)
    with pytest.raises(ValueError, match="positive"):
        function(0.0)


@pytest.mark.parametrize("df", [500.0, 800.0, 3000.0])
@pytest.mark.parametrize("p", [0.6, 0.9, 0.975, 0.999, 0.9999])
def test_students_quantile_of_many_degrees_is_scipys(p: float, df: float) -> None:
    assert student_quantile(p, df) == pytest.approx(float(stats.t.ppf(p, df)), rel=NEAR)
