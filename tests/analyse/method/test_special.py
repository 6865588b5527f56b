"""Our special functions against scipy's."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import special, stats

from iolab.analyse.method.special import (
    beta_cdf,
    digamma,
    student_excess,
    student_quantile,
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
    st.floats(min_value=0, max_value=1),
    st.floats(min_value=0.1, max_value=3000),
    st.floats(min_value=0.1, max_value=3000),
)
def test_incomplete_beta_is_scipys(x: float, a: float, b: float) -> None:
    assert beta_cdf(x, a, b) == pytest.approx(float(special.betainc(a, b, x)), rel=NEAR, abs=1e-11)


@given(st.floats(min_value=0.501, max_value=0.9999), DEGREES)
def test_students_quantile_is_scipys(p: float, df: float) -> None:
    # Near the median the quantile is a small difference of shares: absolute there, not relative.
    wanted = float(stats.t.ppf(p, df))
    assert student_quantile(p, df) == pytest.approx(wanted, rel=NEAR, abs=1e-10)
    assert student_quantile(1 - p, df) == pytest.approx(-wanted, rel=1e-7, abs=1e-9)


@given(st.floats(min_value=-40, max_value=40), DEGREES)
def test_students_law_is_scipys(t: float, df: float) -> None:
    assert student_excess(abs(t), df) == pytest.approx(
        2 * float(stats.t.sf(abs(t), df)), rel=1e-7, abs=1e-300
    )


def test_infinite_degrees_are_normal() -> None:
    assert student_quantile(0.975, math.inf) == pytest.approx(1.959963984540054)
    assert student_excess(3.0, math.inf) == pytest.approx(2 * float(stats.norm.sf(3.0)))


@pytest.mark.parametrize("p", [0.0, 1.0, -0.1, math.nan])
def test_a_share_outside_of_its_range_is_refused(p: float) -> None:
    with pytest.raises(ValueError, match="share"):
        student_quantile(p, 5.0)


@pytest.mark.parametrize("function", [digamma, trigamma, tetragamma, trigamma_inverse])
def test_nothing_but_positive_numbers(function: object) -> None:
    assert callable(function)
    with pytest.raises(ValueError, match="positive"):
        function(0.0)
