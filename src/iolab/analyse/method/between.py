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


@dataclass(frozen=True, slots=True)
class Published:
    """A cell's value, its 95 % interval, how many runs it rests on, and the spread it used.

    Without a second run and without a prior there is no interval: low and high are None.
    Of a single run the interval is borrowed from other cells.
    """

    value: float
    low: float | None
    high: float | None
    runs: int
    spread: Spread

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
