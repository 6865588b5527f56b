"""What a curve of rate over concurrency says: its bounds, where it saturates, where its knee is.

Points come as draws of whole curves (`AdaptiveAxis.draws`), so that every answer has an interval.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from iolab.analyse.method.gaussian import Floats

_SATURATED: Final = 0.95
"""Share of the largest rate from which on a curve counts as saturated."""
_ONE_SIDED: Final = 0.05
_TAIL: Final = 0.025


@dataclass(frozen=True, slots=True)
class Place:
    """A load at which something happens, and the 95 % interval of that load."""

    load: int
    low: int
    high: int


def crossing_load(least_response_s: float, largest_rate: float) -> float:
    """Where both bounds meet, N_K = X_max R_min: a knee far from it wants an explanation."""
    return largest_rate * least_response_s


def saturation(loads: Sequence[int], curves: Floats) -> Place | None:
    """The smallest load whose rate is, with 95 % confidence, at least 95 % of the largest.

    None where that is within 5 % of the axis' last load, as it is for a straight line: the curve
    was not seen to saturate.
    """
    shares = curves / curves.max(axis=1, keepdims=True)
    sure = np.flatnonzero(np.quantile(shares, _ONE_SIDED, axis=0) >= _SATURATED)
    if sure.size == 0 or loads[int(sure[0])] >= _SATURATED * loads[-1]:
        return None
    low, high = _range(loads, (shares >= _SATURATED).argmax(axis=1))
    return Place(loads[int(sure[0])], low, max(high, loads[int(sure[0])]))


def knee(loads: Sequence[int], curves: Floats) -> Place:
    """Where rate over response time is largest ("power"); X^2 / N in a closed loop.

    The load is the one that most curves have; the axis' ends mean that the knee is not on it.
    """
    power = curves * curves / np.array(loads)
    best = power.argmax(axis=1)
    low, high = _range(loads, best)
    return Place(loads[int(np.bincount(best, minlength=len(loads)).argmax())], low, high)


def _range(loads: Sequence[int], places: np.typing.NDArray[np.intp]) -> tuple[int, int]:
    low, high = np.quantile(places, [_TAIL, 1 - _TAIL], method="nearest")
    return loads[int(low)], loads[int(high)]
