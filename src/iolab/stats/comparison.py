"""A candidate against a baseline: their ratio, its interval, and a verdict.

On the log scale, from run means, with the variance moderated over the stratum; without a prior it
is Welch's interval. Runs made in turn are paired by block, which takes out what both sides shared.
Never a bootstrap: over two runs a side a percentile bootstrap covers 66 % where it claims 95 %.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from enum import StrEnum
from typing import Final

from msgspec.structs import replace

from iolab.core.metric_spec import BetterDirection
from iolab.record import Record
from iolab.stats.repeats import (
    CONFIDENT,
    NO_PRIOR,
    Variance,
    VariancePrior,
    logarithms,
    sample_variance,
)
from iolab.stats.special import student_quantile, student_two_sided_p_value
from iolab.text import percent_text

RATIO_ALLOWANCE: Final = 0.0014
"""Bias that rule D may leave in each of two means: sqrt(2) x 0.1 %."""

NOISE_THRESHOLD: Final = 0.01
"""A difference of less than 1 % is never called one: two runs of one thing differ by as much."""

SAME_WITHIN: Final = 0.02
"""Two one-sided tests: the same, where the whole interval lies within 2 %."""

_ALPHA: Final = 0.05


class ComparisonVerdict(StrEnum):
    """What a comparison says of the candidate."""

    BETTER = "better"
    WORSE = "worse"
    SAME = "same"
    INCONCLUSIVE = "inconclusive"


class Comparison(Record):
    """Candidate over baseline: the ratio, its 95 % interval, the verdict and why.

    `run_counts` are those of (baseline, candidate); `p_value` is the p-value of a difference beyond
    the noise threshold (1 without an interval). `log_ratio_error` is the log ratio's standard error
    with `df` degrees.
    """

    ratio: float
    low: float | None
    high: float | None
    verdict: ComparisonVerdict
    reason: str
    run_counts: tuple[int, int]
    is_paired: bool
    log_ratio_error: float
    df: float
    p_value: float

    @property
    def is_significant_only_alone(self) -> bool:
        """Whether its interval leaves out 1, and all comparisons together do not support that."""
        return (
            self.verdict is ComparisonVerdict.INCONCLUSIVE
            and self.low is not None
            and self.high is not None
            and not self.low <= 1 <= self.high
        )


def compare_unpaired(
    baseline: Sequence[float],
    candidate: Sequence[float],
    better: BetterDirection = BetterDirection.HIGHER,
    prior: VariancePrior = NO_PRIOR,
    *,
    bias_allowance: float = RATIO_ALLOWANCE,
) -> Comparison:
    """Compare run means of two configurations that were measured independently.

    For latency quantiles the allowance is that of both sides' bins on top.
    Raises ValueError for a side without runs or with a mean that is not positive.
    """
    a, b = logarithms(baseline), logarithms(candidate)
    difference = math.fsum(b) / len(b) - math.fsum(a) / len(a)
    runs = (len(a), len(b))
    error, df = _unpaired_standard_error_and_df(a, b, prior)
    estimate = _LogRatioEstimate(difference, error, df, bias_allowance)
    return _build_comparison(estimate, better, runs, is_paired=False)


def compare_paired(
    baseline: Sequence[float],
    candidate: Sequence[float],
    better: BetterDirection = BetterDirection.HIGHER,
    prior: VariancePrior = NO_PRIOR,
    *,
    bias_allowance: float = RATIO_ALLOWANCE,
) -> Comparison:
    """Compare run means that were measured in turn: element i of both is of the same block.

    Raises ValueError for sides of different length, and as `compare_unpaired` does.
    """
    if len(baseline) != len(candidate):
        raise ValueError(f"{len(baseline)} and {len(candidate)} runs make no pairs")
    pairs = zip(logarithms(baseline), logarithms(candidate), strict=True)
    differences = [after - before for before, after in pairs]
    count = len(differences)
    # Where nothing is shared within a block, a difference has twice a run's variance.
    doubled = replace(prior, variance=2 * prior.variance)
    spread = doubled.moderated_variance(sample_variance(differences))
    error = spread.sd / math.sqrt(count) if spread.df else math.inf
    estimate = _LogRatioEstimate(math.fsum(differences) / count, error, spread.df, bias_allowance)
    return _build_comparison(estimate, better, (count, count), is_paired=True)


def inverted_comparison(comparison: Comparison) -> Comparison:
    """The baseline against the candidate: the same runs told the other way round."""
    swapped = {
        ComparisonVerdict.BETTER: ComparisonVerdict.WORSE,
        ComparisonVerdict.WORSE: ComparisonVerdict.BETTER,
    }
    low, high = comparison.low, comparison.high
    return replace(
        comparison,
        ratio=1 / comparison.ratio,
        low=None if high is None else 1 / high,
        high=None if low is None else 1 / low,
        verdict=swapped.get(comparison.verdict, comparison.verdict),
        run_counts=comparison.run_counts[::-1],
    )


def without_unsupported_claim(comparison: Comparison, adjusted_p: float) -> Comparison:
    """The comparison among others: without its claim where Holm's p-value is 5 % or more."""
    claims = comparison.verdict in {ComparisonVerdict.BETTER, ComparisonVerdict.WORSE}
    if not claims or adjusted_p < _ALPHA:
        return comparison
    reason = f"among all comparisons shown, chance alone makes one like it (p = {adjusted_p:.2f})"
    return replace(comparison, verdict=ComparisonVerdict.INCONCLUSIVE, reason=reason)


def welch_degrees_of_freedom(a: Variance, b: Variance) -> float:
    """The degrees of freedom of a sum of two estimated variances (Welch 1947, Satterthwaite)."""
    total = a.variance + b.variance
    if total == 0:
        return a.df + b.df
    parts = sum((x.variance / total) ** 2 / x.df for x in (a, b) if math.isfinite(x.df))
    return 1 / parts if parts > 0 else math.inf


def _unpaired_standard_error_and_df(
    a: Sequence[float], b: Sequence[float], prior: VariancePrior
) -> tuple[float, float]:
    """The standard error of the difference and its degrees of freedom (0: unknown)."""
    first, second = sample_variance(a), sample_variance(b)
    if prior.df > 0:
        df = first.df + second.df
        varied = [spread for spread in (first, second) if spread.df > 0]
        pooled = sum(spread.variance * spread.df for spread in varied) / df if df else math.nan
        spread = prior.moderated_variance(Variance(pooled, df))
        return spread.sd * math.sqrt(1 / len(a) + 1 / len(b)), spread.df
    if first.df == 0 or second.df == 0:
        return math.inf, 0.0
    mean_a, mean_b = (
        Variance(spread.variance / (spread.df + 1), spread.df) for spread in (first, second)
    )
    return math.sqrt(mean_a.variance + mean_b.variance), welch_degrees_of_freedom(mean_a, mean_b)


class _LogRatioEstimate(Record):
    """A log ratio with its standard error, degrees of freedom, and allowance for bias."""

    difference: float
    error: float
    df: float
    allowance: float


def _build_comparison(
    estimate: _LogRatioEstimate, better: BetterDirection, runs: tuple[int, int], *, is_paired: bool
) -> Comparison:
    """The verdict on a log ratio with that standard error."""
    difference, error, df = estimate.difference, estimate.error, estimate.df
    ratio = math.exp(difference)
    if df == 0:
        reason = "a single run on a side tells nothing of what another would give"
        return Comparison(
            ratio,
            None,
            None,
            ComparisonVerdict.INCONCLUSIVE,
            reason,
            runs,
            is_paired,
            math.inf,
            0.0,
            1.0,
        )
    reach = student_quantile(CONFIDENT, df) * error + estimate.allowance
    low, high = difference - reach, difference + reach
    verdict, reason = _verdict_and_reason(low, high, better)
    if min(runs) < 2:
        verdict = ComparisonVerdict.INCONCLUSIVE
        reason = "a side has one run, so its interval is borrowed from other cells"
    p = _beyond_noise_p_value(estimate)
    return Comparison(
        ratio, math.exp(low), math.exp(high), verdict, reason, runs, is_paired, error, df, p
    )


def _verdict_and_reason(
    log_low: float, log_high: float, better: BetterDirection
) -> tuple[ComparisonVerdict, str]:
    noise, same = math.log1p(NOISE_THRESHOLD), math.log1p(SAME_WITHIN)
    up, down = ComparisonVerdict.BETTER, ComparisonVerdict.WORSE
    if better is BetterDirection.LOWER:
        up, down = down, up
    if log_low > noise:
        return up, f"the whole interval lies more than {percent_text(NOISE_THRESHOLD)} above"
    if log_high < -noise:
        return down, f"the whole interval lies more than {percent_text(NOISE_THRESHOLD)} below"
    if -same < log_low and log_high < same:
        return ComparisonVerdict.SAME, f"the whole interval lies within {percent_text(SAME_WITHIN)}"
    return (
        ComparisonVerdict.INCONCLUSIVE,
        "the interval is too wide to call it a difference or the same",
    )


def _beyond_noise_p_value(estimate: _LogRatioEstimate) -> float:
    """Two-sided p-value of the hypothesis that the true difference is within the threshold."""
    beyond = abs(estimate.difference) - math.log1p(NOISE_THRESHOLD) - estimate.allowance
    if beyond <= 0:
        return 1.0
    return (
        student_two_sided_p_value(beyond / estimate.error, estimate.df)
        if estimate.error > 0
        else 0.0
    )


def holm_adjusted_p_values(p_values: Sequence[float]) -> list[float]:
    """Holm's adjusted p-values, in the order given (Holm 1979): the family-wise error is kept."""
    order = sorted(range(len(p_values)), key=lambda index: p_values[index])
    adjusted = [0.0] * len(p_values)
    highest = 0.0
    for rank, index in enumerate(order):
        highest = max(highest, min(1.0, (len(p_values) - rank) * p_values[index]))
        adjusted[index] = highest
    return adjusted


def apply_holm_correction(comparisons: Sequence[Comparison]) -> list[Comparison]:
    """All comparisons shown together, without the claims that Holm's correction does not bear."""
    adjusted = holm_adjusted_p_values([comparison.p_value for comparison in comparisons])
    return [
        without_unsupported_claim(comparison, p)
        for comparison, p in zip(comparisons, adjusted, strict=True)
    ]
