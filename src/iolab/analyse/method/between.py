"""What is published of a cell: the mean of its runs' means and an interval from their spread.

Runs differ by more than the seconds within them tell, so the interval comes from run means alone:
on the log scale, with the variance moderated over the stratum, and widened by what a transient may
have left in every run.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from iolab.analyse.method.special import student_quantile
from iolab.analyse.method.variance import NO_PRIOR, Prior, Spread, own_spread

BIAS_ALLOWANCE: Final = 0.001
"""Rule D leaves up to 0.1 % of a transient in a run's mean (simulated), alike in each run."""

CONFIDENT: Final = 0.975
"""Upper end of a two-sided 95 % interval."""

REPEATS_FIRST: Final = 2
"""Without a second run there is no spread."""

REPEATS_MOST: Final = 5
"""More runs narrow the interval by less than a tenth each."""

TARGET_HALF_WIDTH: Final = 0.015
"""What a published cell should reach; headline ratios want 0.01."""


@dataclass(frozen=True, slots=True)
class Published:
    """A cell's value, its 95 % interval, how many runs it rests on, and the spread it used.

    Without a second run and without a prior there is no interval: low and high are None.
    `replicated` is False for a single run, whose interval is borrowed from other cells.
    """

    value: float
    low: float | None
    high: float | None
    runs: int
    spread: Spread

    @property
    def replicated(self) -> bool:
        """Whether the cell was measured more than once."""
        return self.runs > 1

    @property
    def half_width(self) -> float:
        """Half of the interval as a share of the value, on the log scale; infinite without one."""
        if self.low is None or self.high is None:
            return math.inf
        return math.log(self.high / self.low) / 2


def log_means(run_means: Sequence[float]) -> list[float]:
    """Their logarithms; ValueError for none, or for one that is not a positive number."""
    if not run_means:
        raise ValueError("a cell without runs has no mean")
    wrong = [mean for mean in run_means if not (math.isfinite(mean) and mean > 0)]
    if wrong:
        raise ValueError(f"{wrong[0]} is not a positive mean, so it has no logarithm")
    return [math.log(mean) for mean in run_means]


def publish(
    run_means: Sequence[float], prior: Prior = NO_PRIOR, *, allowance: float = BIAS_ALLOWANCE
) -> Published:
    """The cell's value and interval: exp(m -+ (t s / sqrt(R) + allowance)).

    For latency quantiles the allowance is that of their bins on top (`quantiles`).
    """
    logs = log_means(run_means)
    middle = math.fsum(logs) / len(logs)
    spread = prior.moderated(own_spread(logs))
    if spread.df == 0:
        return Published(math.exp(middle), None, None, len(logs), spread)
    reach = student_quantile(CONFIDENT, spread.df) * spread.sd / math.sqrt(len(logs)) + allowance
    return Published(
        math.exp(middle), math.exp(middle - reach), math.exp(middle + reach), len(logs), spread
    )


def wants_another_run(published: Published, target: float = TARGET_HALF_WIDTH) -> bool:
    """Whether one more run is worth its time: fewer than two, or too wide and fewer than five."""
    if published.runs < REPEATS_FIRST:
        return True
    return published.half_width > target and published.runs < REPEATS_MOST


def repeats_needed(spread: Spread, target: float = TARGET_HALF_WIDTH) -> int | None:
    """How many runs the target would need at this spread; None if more than REPEATS_MOST.

    Used to say how long a study will take; the study itself goes on run by run.
    """
    for runs in range(REPEATS_FIRST, REPEATS_MOST + 1):
        df = max(spread.df, float(runs - 1))
        reach = student_quantile(CONFIDENT, df) * spread.sd / math.sqrt(runs) + BIAS_ALLOWANCE
        if reach <= target:
            return runs
    return None


def best_run_s(long_run_sd: float, between_sd: float, overhead_s: float) -> float:
    """The length of a run that makes a cell's interval narrowest for its time, in seconds.

    T* = (sigma_LR / sigma_b) sqrt(T_overhead), sigma_LR in units of sigma_b times sqrt(s)
    (Kalibera and Jones 2013, in units of time). Infinite where runs do not differ.
    """
    return long_run_sd / between_sd * math.sqrt(overhead_s) if between_sd > 0 else math.inf
