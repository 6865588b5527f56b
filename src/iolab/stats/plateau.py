"""Whether a rate falls once, at once, to a plateau: what a volume does whose burst credits ran out.

Two levels with a step between them, fitted by least squares. A decay that fades, a swing or a stall
is none: each level must be level by itself, and the step must explain nearly all that varies.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from iolab.core.samples import Floats

FALL_LEAST: Final = 0.15
"""Share of the plateau that the rate must have been above it; less is no other kind of service."""

EXPLAINED_LEAST: Final = 0.85
"""Share of the variance that the step explains; of an exponential decay it is three quarters."""

BEFORE_S: Final = 3
PLATEAU_S: Final = 6
"""Seconds that each level lasts at the least: fewer tell no level."""

FALL_S: Final = 3
"""Seconds that the fall itself may take, which are of neither level."""

PLATEAU_SPREAD_MOST: Final = 0.1
"""Standard deviation of the plateau's seconds: a limit that is enforced is kept evenly."""

SECONDS_LEAST: Final = BEFORE_S + FALL_S + PLATEAU_S
"""Of fewer seconds nothing is said."""

DRIFT_MOST: Final = 0.2
"""Share of the step by which a level's two halves may differ."""


@dataclass(frozen=True, slots=True)
class Fall:
    """A fall after `second` seconds, from the mean rate `before` to `plateau`.

    That second is the first one below the middle of both. `spread` is the standard deviation of the
    plateau's seconds as a share of it.
    """

    second: int
    before: float
    plateau: float
    spread: float


def fall_to_plateau(rates: Floats) -> Fall | None:
    """The fall of a series of rates, one a second; None where it does not fall to a plateau."""
    count = len(rates)
    if count < SECONDS_LEAST:
        return None
    places = np.arange(BEFORE_S, count - FALL_S - PLATEAU_S + 1)
    place = int(places[np.argmin([_left(rates, place) for place in places.tolist()])])
    before, after = _levels(rates, place)
    step = float(before.mean() - after.mean())
    plateau = float(after.mean())
    if plateau <= 0 or step < FALL_LEAST * plateau:
        return None
    used = np.concatenate([before, after])
    total = float(((used - used.mean()) ** 2).sum())
    spread = float(after.std() / plateau)
    if _left(rates, place) > (1 - EXPLAINED_LEAST) * total or spread > PLATEAU_SPREAD_MOST:
        return None
    if max(_drift(before), _drift(after)) > DRIFT_MOST * step:
        return None
    low = np.flatnonzero(rates[place:] < plateau + step / 2)
    return Fall(place + int(low[0]), float(before.mean()), plateau, spread)


def _levels(rates: Floats, place: int) -> tuple[Floats, Floats]:
    """What lies before and after a fall that begins there."""
    return rates[:place], rates[place + FALL_S :]


def _left(rates: Floats, place: int) -> float:
    """The squares that two levels leave."""
    before, after = _levels(rates, place)
    squares = ((before - before.mean()) ** 2).sum() + ((after - after.mean()) ** 2).sum()
    return float(squares)


def _drift(level: Floats) -> float:
    """How far the halves of a level differ."""
    half = len(level) // 2
    return abs(float(level[:half].mean() - level[-half:].mean())) if half else 0.0
