"""How a stated figure is held against a computed one, and the sentence on it."""

from __future__ import annotations

from decimal import Decimal
from typing import Final

from iolab.analyse.audit.figure import Span
from iolab.analyse.audit.outcome import Agreement, Outcome

SLACK: Final = 0.01
"""Figures that are up to one per cent further apart than rounding explains may have been rounded
twice, on the way from a measurement over a table into a text."""


def agreement(stated: Span, computed: Span, slack: float = SLACK) -> Agreement:
    """Whether both can be true at once."""
    return Agreement.AGREES if stated.gap(computed) <= slack else Agreement.CONTRADICTS


def compared(
    rule: str, subject: str, said: str, stated: Span, computed: Span, unit: str
) -> Outcome:
    """The outcome of one figure against what others make of it."""
    verdict = agreement(stated, computed)
    made = shown(computed, unit)
    if verdict is Agreement.AGREES:
        says = f"{said} is what the other figures give ({made})."
    else:
        off = stated.middle / computed.middle if computed.middle else 0.0
        near = f"{off:.3g}" if 0.95 < off < 1.05 else f"{off:.2g}"  # never 1 times something else
        says = f"{said} is {near} times what the other figures give ({made})."
    return Outcome(rule, subject, verdict, says, said, made)


def shown(span: Span, unit: str) -> str:
    """An interval for people: one number where its ends are the same to four digits."""
    low, high = _digits(span.low), _digits(span.high)
    return f"{low} {unit}" if low == high else f"{low} to {high} {unit}"


def number(value: object) -> float | None:
    """A printed figure as it stands, None where it is none."""
    if isinstance(value, bool) or not isinstance(value, int | Decimal):
        return None
    return float(value)


def _digits(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"
