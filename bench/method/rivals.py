"""The rules that other tools stop by, as their sources and specifications have them.

Each takes the counts of seconds and gives its estimate, its interval where it has one, and the
seconds that it took.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np

from bench.method.scenarios import Floats
from iolab.stats.special import student_quantile

WARMUP_S: Final = 180
RUN_S: Final = 600
REPEATS: Final = 3
ROUND_S: Final = 60
ROUNDS: Final = 5
ROUNDS_MOST: Final = 25
RANGE_LIMIT: Final = 0.20
SLOPE_LIMIT: Final = 0.10
CAP_S: Final = 1800


@dataclass(frozen=True, slots=True)
class Estimate:
    """A rate, half the width of its 95 % interval (nan: the rule has none), the seconds it took."""

    mean: float
    half_width: float
    seconds: int
    accepted: bool = True


def published_run(counts: Floats) -> float:
    """One run of the published method: 3 minutes thrown away, 10 measured."""
    return float(counts[WARMUP_S : WARMUP_S + RUN_S].mean())


def published(runs: list[Floats]) -> Estimate:
    """Three such runs and Student's t over them."""
    means = np.array([published_run(run) for run in runs])
    spread = float(means.std(ddof=1)) / math.sqrt(len(means))
    reach = student_quantile(0.975, float(len(means) - 1)) * spread
    return Estimate(float(means.mean()), reach, len(runs) * (WARMUP_S + RUN_S))


def one_published_run(counts: Floats) -> Estimate:
    """One such run with an interval as if its seconds were independent."""
    kept = counts[WARMUP_S : WARMUP_S + RUN_S]
    reach = 1.96 * float(kept.std(ddof=1)) / math.sqrt(len(kept))
    return Estimate(float(kept.mean()), reach, WARMUP_S + RUN_S)


def snia(counts: Floats) -> Estimate:
    """SNIA PTS 2.0: five one-minute rounds, range within 20 %, fitted excursion within 10 %."""
    most = min(ROUNDS_MOST, len(counts) // ROUND_S)
    rounds = counts[: most * ROUND_S].reshape(most, ROUND_S).mean(axis=1)
    x = np.arange(ROUNDS) - (ROUNDS - 1) / 2
    for end in range(ROUNDS, most + 1):
        window = rounds[end - ROUNDS : end]
        mean = float(window.mean())
        slope = float(x @ window) / float(x @ x)
        if np.ptp(window) <= RANGE_LIMIT * mean and abs(slope) * 4 <= SLOPE_LIMIT * mean:
            return Estimate(mean, math.nan, end * ROUND_S)
    return Estimate(float(rounds[-ROUNDS:].mean()), math.nan, most * ROUND_S, accepted=False)


def fio_steadystate(counts: Floats, limit: float = 0.003, window_s: int = 60) -> Estimate:
    """fio's `ss=iops_slope:0.3%` over 60 s: the first window whose slope a second is below.

    The number is the window's mean; fio's own headline would even be that of the whole run.
    """
    x = np.arange(window_s) - (window_s - 1) / 2
    norm = float(x @ x)
    for end in range(window_s, min(len(counts), CAP_S) + 1):
        window = counts[end - window_s : end]
        mean = float(window.mean())
        if mean > 0 and abs(float(x @ window) / norm) < limit * mean:
            return Estimate(mean, math.nan, end)
    return Estimate(float(counts[-window_s:].mean()), math.nan, len(counts), accepted=False)
