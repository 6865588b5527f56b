"""Steady state of a device over rounds of load, as SNIA's performance test specification has it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from iolab.core.target_state import SteadyStateVerdict

WINDOW: Final = 5
DATA_EXCURSION_MAX: Final = 0.20
SLOPE_EXCURSION_MAX: Final = 0.10
"""SNIA's own numbers. The line's excursion is over the four steps between five rounds."""


def judge_steady_state_rounds(values: Sequence[float]) -> SteadyStateVerdict | None:
    """The verdict on the last window; None while there are fewer rounds than it has."""
    if len(values) < WINDOW:
        return None
    window = values[-WINDOW:]
    first = len(values) - WINDOW + 1
    average = sum(window) / WINDOW
    centre = first + (WINDOW - 1) / 2
    places = [first + index - centre for index in range(WINDOW)]
    slope = sum(place * value for place, value in zip(places, window, strict=True)) / sum(
        place * place for place in places
    )
    if average <= 0:
        return SteadyStateVerdict(first, average, 0.0, 0.0, slope, average, achieved=False)
    spread = (max(window) - min(window)) / average
    moved = abs(slope) * (WINDOW - 1) / average
    achieved = spread <= DATA_EXCURSION_MAX and moved <= SLOPE_EXCURSION_MAX
    return SteadyStateVerdict(
        first, average, spread, moved, slope, average - slope * centre, achieved
    )
