"""Special functions and quantiles that the method needs, so that scipy stays a test oracle.

Formulas are those of the NIST Digital Library of Mathematical Functions (DLMF) and of Abramowitz
and Stegun (AS). Tests hold each against scipy to 1e-9.
"""

from __future__ import annotations

import math
from functools import lru_cache
from statistics import NormalDist
from typing import Final

_SHIFT: Final = 12.0
"""Polygammas climb by recurrence to here; from 12 on eight terms of the series give 1e-14."""

_BERNOULLI: Final = (
    1 / 6,
    -1 / 30,
    1 / 42,
    -1 / 30,
    5 / 66,
    -691 / 2730,
    7 / 6,
    -3617 / 510,
)
"""B2, B4, ... B16 of DLMF 24.2."""

_NEWTON_LIMIT: Final = 100
"""Iterations of any root search; each needs fewer than 60, and none may run for ever."""

_FRACTION_LIMIT: Final = 2000
"""Terms of the continued fraction; it needs O(sqrt(max(a, b))), 2000 serve a and b up to 1e6."""

_TINY: Final = 1e-300
"""Keeps Lentz's algorithm from dividing by zero."""

_EXPANSION_DF: Final = 500.0
"""From these degrees of freedom on AS 26.7.5 is better than 1e-11 within four sigmas."""


@lru_cache(maxsize=4096)
def digamma(x: float) -> float:
    """The derivative of ln gamma at x > 0 (DLMF 5.5.2 and 5.11.2)."""
    _require_positive(x)
    below = 0.0
    while x < _SHIFT:
        below -= 1 / x
        x += 1
    tail = sum(b / (2 * k * x ** (2 * k)) for k, b in enumerate(_BERNOULLI, 1))
    return below + math.log(x) - 1 / (2 * x) - tail


@lru_cache(maxsize=4096)
def trigamma(x: float) -> float:
    """The second derivative of ln gamma at x > 0 (DLMF 5.15.5 and 5.15.8)."""
    _require_positive(x)
    below = 0.0
    while x < _SHIFT:
        below += 1 / (x * x)
        x += 1
    tail = sum(b / x ** (2 * k + 1) for k, b in enumerate(_BERNOULLI, 1))
    return below + 1 / x + 1 / (2 * x * x) + tail


def tetragamma(x: float) -> float:
    """The third derivative of ln gamma at x > 0 (DLMF 5.15.5, and 5.15.8 differentiated)."""
    _require_positive(x)
    below = 0.0
    while x < _SHIFT:
        below -= 2 / x**3
        x += 1
    tail = sum((2 * k + 1) * b / x ** (2 * k + 2) for k, b in enumerate(_BERNOULLI, 1))
    return below - 1 / x**2 - 1 / x**3 - tail


def trigamma_inverse(y: float) -> float:
    """The x > 0 whose trigamma is y > 0: Newton on 1/trigamma, which is nearly linear.

    Smyth 2004, "Linear models and empirical Bayes methods", appendix; limma's `trigammaInverse`.
    """
    _require_positive(y)
    x = 0.5 + 1 / y
    for _ in range(_NEWTON_LIMIT):
        value = trigamma(x)
        step = value * (1 - value / y) / tetragamma(x)
        x += step
        if abs(step) <= 1e-13 * x:
            break
    return x


def beta_cdf(x: float, a: float, b: float) -> float:
    """The regularised incomplete beta function I_x(a, b), a and b > 0 (DLMF 8.17.22)."""
    _require_positive(a)
    _require_positive(b)
    if x <= 0:
        return 0.0
    if x >= 1:
        return 1.0
    if x > (a + 1) / (a + b + 2):
        return 1 - beta_cdf(1 - x, b, a)
    log_front = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b)
    log_front += a * math.log(x) + b * math.log1p(-x)
    return math.exp(log_front) * _beta_continued_fraction(x, a, b) / a


@lru_cache(maxsize=4096)
def student_quantile(p: float, df: float) -> float:
    """The t below which a share 0 < p < 1 of Student's law lies; `df` > 0, infinity is normal.

    Closed forms at 1 and 2 degrees, AS 26.7.5 from 500 on, else Newton within a bracket.
    """
    _require_positive(df)
    if not 0 < p < 1:
        raise ValueError(f"{p} is not a share between 0 and 1")
    if p == 0.5:
        return 0.0
    if p < 0.5:
        return -student_quantile(1 - p, df)
    if math.isinf(df):
        return NormalDist().inv_cdf(p)
    if df == 1:
        return 1 / math.tan(math.pi * (1 - p))
    if df == 2:
        return (2 * p - 1) * math.sqrt(2 / (4 * p * (1 - p)))
    if df >= _EXPANSION_DF:
        return _student_quantile_expansion(NormalDist().inv_cdf(p), df)
    return _student_quantile_by_newton(p, df)


def student_two_sided_p_value(t: float, df: float) -> float:
    """P(|T| >= t) for t >= 0: the two-sided p-value, exact in the far tail too."""
    _require_positive(df)
    if math.isinf(df):
        return math.erfc(t / math.sqrt(2))
    if t < 1:
        return 1 - beta_cdf(t * t / (df + t * t), 0.5, df / 2)
    return beta_cdf(df / (df + t * t), df / 2, 0.5)


def _require_positive(x: float) -> None:
    if not x > 0:
        raise ValueError(f"{x} is not a positive number")


def _beta_continued_fraction(x: float, a: float, b: float) -> float:
    """The continued fraction of DLMF 8.17.22 by the modified Lentz algorithm."""
    c = 1.0
    d = 1 / _nonzero_or_tiny(1 - (a + b) * x / (a + 1))
    value = d
    for m in range(1, _FRACTION_LIMIT):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        for term in (even, odd):
            d = 1 / _nonzero_or_tiny(1 + term * d)
            c = _nonzero_or_tiny(1 + term / c)
            value *= c * d
        if abs(c * d - 1) < 1e-16:
            break
    return value


def _nonzero_or_tiny(x: float) -> float:
    return x if abs(x) > _TINY else _TINY


def _student_quantile_expansion(z: float, df: float) -> float:
    """AS 26.7.5, from the normal quantile z."""
    z2 = z * z
    first = z * (z2 + 1) / 4
    second = z * ((5 * z2 + 16) * z2 + 3) / 96
    third = z * (((3 * z2 + 19) * z2 + 17) * z2 - 15) / 384
    fourth = z * ((((79 * z2 + 776) * z2 + 1482) * z2 - 1920) * z2 - 945) / 92160
    return z + first / df + second / df**2 + third / df**3 + fourth / df**4


def _student_quantile_by_newton(p: float, df: float) -> float:
    """The root of the upper tail, by Newton where it stays in its bracket, else by halving."""
    tail = 2 * (1 - p)
    low, high = 0.0, 1.0
    while student_two_sided_p_value(high, df) > tail:
        low, high = high, high * 2
    log_scale = math.lgamma((df + 1) / 2) - math.lgamma(df / 2) - 0.5 * math.log(df * math.pi)
    t = (low + high) / 2
    for _ in range(_NEWTON_LIMIT):
        excess = student_two_sided_p_value(t, df) - tail
        low, high = (t, high) if excess > 0 else (low, t)
        density = math.exp(log_scale - (df + 1) / 2 * math.log1p(t * t / df))
        step = excess / (2 * density)
        previous, t = t, t + step
        if not low < t < high:
            t = (low + high) / 2
        if abs(t - previous) <= 1e-14 * t:
            break
    return t
