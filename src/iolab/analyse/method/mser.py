"""Where the transient ends: MSER-5 on medians of five seconds, with stalls clipped.

MSER picks the cut that makes the standard error of the mean of what remains smallest (White 1997;
its equivalence to a CUSUM: Wang and Glynn 2013). Medians and the clip keep stalls from attracting
the cut: a raw MSER cuts at a stall and so leaves out what stalls cost.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

BLOCK_S: Final = 5
"""Seconds of a block as a rule: the 5 of MSER-5."""

MAD_TO_SD: Final = 1.4826
"""1 / normal quantile at 3/4: makes a median absolute deviation a standard deviation."""

_CLIP_SDS: Final = 3.0
"""How far below the second half's median a block may lie before it is clipped."""

_SPREAD_FLOOR: Final = 1e-3
"""Smallest spread that the clip assumes, as a share of the median: in a series without any noise
the clip would otherwise hide every transient that comes from below."""


@dataclass(frozen=True, slots=True)
class Truncation:
    """Where MSER would cut, in blocks, and whether it found a minimum before its search ended."""

    blocks: int
    converged: bool


def blocks_of(series: Floats, block_s: int = BLOCK_S) -> Floats:
    """The medians of whole blocks of the series, clipped below; shape (seconds // block_s,)."""
    count = len(series) // block_s
    cells = series[: count * block_s].reshape(count, block_s)
    medians = np.partition(cells, block_s // 2, axis=1)[:, block_s // 2]
    later = medians[count // 2 :]
    if later.size == 0:
        return medians
    middle = float(np.median(later))
    spread = MAD_TO_SD * float(np.median(np.abs(later - middle)))
    spread = max(spread, _SPREAD_FLOOR * abs(middle))
    return np.maximum(medians, middle - _CLIP_SDS * spread)


def truncation(blocks: Floats) -> Truncation:
    """Argmin over j <= K/2 of sum_{i>=j} (z_i - mean_j)^2 / (K-j)^2."""
    count = len(blocks)
    limit = count // 2
    if limit == 0:
        return Truncation(0, converged=False)
    centred = blocks - blocks.mean()
    kept = np.arange(count, 0, -1)[: limit + 1]
    sums = np.cumsum(centred[::-1])[::-1][: limit + 1]
    squares = np.cumsum((centred * centred)[::-1])[::-1][: limit + 1]
    spread = np.maximum(squares - sums * sums / kept, 0.0)
    best = int(np.argmin(spread / kept.astype(np.float64) ** 2))
    return Truncation(best, converged=best < limit)
