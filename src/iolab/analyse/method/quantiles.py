"""Latency quantiles with intervals: of one run by blocks of seconds, of several by their spread.

Order statistics would give an interval if I/Os were independent; they are not, and such an interval
of a p99 covers 13 % under stalls where it claims 95 %. So whole blocks of seconds are resampled.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from iolab.analyse.method.between import CONFIDENT
from iolab.analyse.method.special import beta_cdf, student_quantile

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

BLOCK_S: Final = 30
"""Seconds resampled together: longer than most things that slow several seconds in a row."""

_BLOCK_LEAST_S: Final = 10
_BLOCKS_MIN: Final = 10
"""Fewer blocks are not resampled; a short run has shorter blocks, down to 10 s."""

_RESAMPLES: Final = 500

BIN_ERROR: Final = 2.0**-7
"""Largest relative distance of a latency from its bin's midpoint (64 bins a power of two)."""

EPISODES_MIN: Final = 10
"""A quantile is printed only with enough I/Os beyond it and, where the run stalled, ten stalls:
with fewer, one stall more or less decides."""


@dataclass(frozen=True, slots=True)
class Quantile:
    """A run's latency quantile (ns) and its 95 % interval; None where the run is too short."""

    value_ns: float
    low_ns: float | None
    high_ns: float | None


def decides(episodes: int) -> bool:
    """Whether a run stalled so few times that one stall more or less moves its far quantiles."""
    return 0 < episodes < EPISODES_MIN


def ios_needed(q: float, confidence: float = 0.99, over: int = 0) -> int:
    """I/Os needed to claim quantile q below a limit with `over` of them above it.

    The smallest h + over with I_q(h, 1 + over) <= 1 - confidence: MLPerf's early stopping
    (loadgen/early_stopping.cc), a binomial test. 459 for q 0.99, confidence 0.99, none over.
    """
    low, high = 0, 1
    while beta_cdf(q, float(high), 1.0 + over) > 1 - confidence:
        low, high = high, high * 2
    while high - low > 1:
        middle = (low + high) // 2
        if beta_cdf(q, float(middle), 1.0 + over) > 1 - confidence:
            low = middle
        else:
            high = middle
    return high + over


def of_run(counts: Ints, middle_ns: Ints, q: float, rng: np.random.Generator) -> Quantile | None:
    """Quantile q (0 < q < 1) of a run and its interval, by a block bootstrap of its seconds.

    `counts` has a row for each second of the measured window and a column for each bin whose
    representative latency `middle_ns` gives, ascending. None without any I/O.
    """
    if not counts.any():
        return None
    return of_run_each(counts, middle_ns, [q], rng)[0]


def of_run_each(
    counts: Ints, middle_ns: Ints, qs: Sequence[float], rng: np.random.Generator
) -> tuple[Quantile, ...]:
    """Several quantiles of one run from the same resamples; there must be any I/O."""
    used = np.flatnonzero(counts.sum(axis=0))
    counts, middle = counts[:, used], middle_ns[used].astype(np.float64)
    total = counts.sum(axis=0)[None, :]
    values = [float(middle[_ranks(np.cumsum(total, axis=1), q)[0]]) for q in qs]
    blocks = _blocks(counts)
    if blocks is None:
        return tuple(Quantile(value, None, None) for value in values)
    count = len(blocks)
    weights = rng.multinomial(count, np.full(count, 1 / count), size=_RESAMPLES)
    # As floats, which hold counts of I/Os exactly, a product of matrices is fast.
    drawn = weights.astype(np.float64) @ blocks.astype(np.float64)
    cumulative = np.cumsum(drawn, axis=1)
    return tuple(
        _stretched(value, middle[_ranks(cumulative, q)], count)
        for value, q in zip(values, qs, strict=True)
    )


def _stretched(value: float, drawn: Floats, count: int) -> Quantile:
    """A quantile with the range of the resampled ones, stretched for the few blocks there are."""
    logs = np.log(np.maximum(drawn, 1.0))
    low, high = np.quantile(logs, [1 - CONFIDENT, CONFIDENT])
    at = math.log(max(value, 1.0))
    # Ranges of few blocks are too narrow: by Student's t, and by the n of a plug-in variance.
    stretch = student_quantile(CONFIDENT, count - 1.0) / 1.96 * math.sqrt(count / (count - 1))
    down = max(at - float(low), 0.0) * stretch + BIN_ERROR
    up = max(float(high) - at, 0.0) * stretch + BIN_ERROR
    return Quantile(value, value * math.exp(-down), value * math.exp(up))


def block_count(seconds: int) -> int:
    """How many blocks a run of that length is cut into; 0 where it is too short to be resampled."""
    length = min(BLOCK_S, seconds // _BLOCKS_MIN)
    return seconds // length if length >= _BLOCK_LEAST_S else 0


def _ranks(cumulative: Ints | Floats, q: float) -> Ints:
    """The first bin of each row whose cumulative count reaches q of the row's total."""
    needed = np.maximum(np.ceil(q * cumulative[:, -1:] * (1 - 1e-15)), 1)
    return np.asarray((cumulative >= needed).argmax(axis=1), dtype=np.int64)


def _blocks(counts: Ints) -> Ints | None:
    """Sums over consecutive blocks of nearly equal length; None for too short a run."""
    seconds, count = len(counts), block_count(len(counts))
    if count == 0:
        return None
    edges = np.linspace(0, seconds, count + 1).astype(np.int64)[:-1]
    return np.asarray(np.add.reduceat(counts, edges, axis=0), dtype=np.int64)
