"""Stalls: seconds in which almost nothing was done, as a compound Poisson process.

Few and large, they make a mean far less certain than the seconds' spread tells. If c episodes came
as a Poisson process and each cost an exponential amount, of the total L of the mean that they cost,
the variance is c E[loss^2] = 2 L^2 / c.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from iolab.stats.batches import MeanVariance
from iolab.stats.steady_state import Floats

_STALLED: Final = 0.7
"""A second below this share of the median is stalled."""


@dataclass(frozen=True, slots=True)
class StallEpisodes:
    """How many episodes there were, and by how much they lowered the mean (in its unit)."""

    episodes: int
    lost_mean: float

    @property
    def variance(self) -> MeanVariance | None:
        """The variance of the mean by them alone, None without any."""
        if self.episodes == 0:
            return None
        return MeanVariance(2 * self.lost_mean**2 / self.episodes, self.episodes)


def find_stalls(x: Floats) -> StallEpisodes:
    """The stalls of a series without its transient."""
    middle = float(np.median(x))
    stalled = x < _STALLED * middle
    starts = np.count_nonzero(stalled[1:] & ~stalled[:-1]) + int(stalled[0])
    lost = float((middle - x[stalled]).sum()) / len(x)
    return StallEpisodes(int(starts), lost)
