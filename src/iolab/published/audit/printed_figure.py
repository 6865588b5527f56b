"""A printed figure as what it leaves open: 5.2e6 is any number from 5.15 to 5.25 million.

Products and quotients of such figures are intervals again, so that two ways to one quantity agree
when their intervals meet, and contradict each other when they do not.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal
from math import inf, prod


@dataclass(frozen=True, slots=True)
class FigureRange:
    """From `low` to `high`, both included; equal where a figure is exact."""

    low: float
    high: float

    @property
    def middle(self) -> float:
        """Half way."""
        return (self.low + self.high) / 2

    @property
    def share(self) -> float:
        """How far the ends are from the middle, as a share of it; 0 where that is 0."""
        return (self.high - self.low) / 2 / abs(self.middle) if self.middle else 0.0

    def meets(self, other: FigureRange) -> bool:
        """Whether any number lies in both."""
        return self.low <= other.high and other.low <= self.high

    def gap(self, other: FigureRange) -> float:
        """How far the nearest numbers of both are apart, as a share of the other's nearest."""
        if self.meets(other):
            return 0.0
        near, far = (self.high, other.low) if self.high < other.low else (self.low, other.high)
        return abs(near - far) / abs(far) if far else inf

    def __add__(self, other: FigureRange) -> FigureRange:
        return FigureRange(self.low + other.low, self.high + other.high)

    def __mul__(self, other: FigureRange) -> FigureRange:
        return FigureRange(self.low * other.low, self.high * other.high)

    def __truediv__(self, other: FigureRange) -> FigureRange:
        if other.low <= 0:
            raise ValueError(f"a quotient needs a positive divisor, not {other.low}")
        return FigureRange(self.low / other.high, self.high / other.low)


def exact(value: float) -> FigureRange:
    """A count, or a figure by definition."""
    return FigureRange(value, value)


def printed(value: int | Decimal) -> FigureRange:
    """What a figure stands for that was rounded to its last digit that is not a trailing zero.

    A figure of whole hundreds may have been rounded to hundreds: nobody can tell, so it is taken to
    be.
    """
    number = Decimal(value)
    _, digits, exponent = number.as_tuple()
    if not number.is_finite() or not isinstance(exponent, int):
        raise ValueError(f"{value} is no number")
    significant = len(digits)
    while exponent >= 0 and significant > 1 and digits[significant - 1] == 0:
        significant -= 1
    step = Decimal(1).scaleb(exponent + len(digits) - significant)
    return FigureRange(float(number - step / 2), float(number + step / 2))


def product(factors: Iterable[FigureRange]) -> FigureRange:
    """The product of positive figures."""
    every = tuple(factors)
    return FigureRange(prod(one.low for one in every), prod(one.high for one in every))


def hull(spans: Iterable[FigureRange]) -> FigureRange:
    """From the lowest to the highest of them; ValueError for none."""
    every = tuple(spans)
    if not every:
        raise ValueError("no figures")
    return FigureRange(min(one.low for one in every), max(one.high for one in every))
