"""Rule D: when a run is long enough, and whether its mean may be believed.

The rule sees completed I/Os of each second, summed over all clients and jobs. It cuts the transient
(MSER-5 doubled, and an exponential fit), estimates how certain the mean of the rest is (batches,
whole cycles, stalls), and wants both a narrow interval and two halves that agree. Its interval says
when a run may end; what is published comes from the means of several runs (`between`).

`LiveStoppingRule` is fed a second at a time; `replay_stopping_rule` plays a whole series through
it; `judge_series` says what a series of any length is worth, for runs whose length was fixed
beforehand.
"""

from __future__ import annotations

import math
from enum import StrEnum
from typing import Final, NamedTuple

import numpy as np
from msgspec.structs import replace

from iolab.core.samples import Floats
from iolab.core.stopping import BLOCKS_MIN, RAW_BLOCK, StoppingRuleSettings
from iolab.record import Record
from iolab.stats import batches, steady_state
from iolab.stats.batches import BatchStatistics, VarianceOfMean

_STALLED: Final = 0.7
"""A second below this share of the median is stalled."""

_CUT_SHARE: Final = 0.67
"""A transient that takes two thirds of the run has not been seen to end."""

_TREND: Final = 1.5
"""Halves that differ by this many standard deviations of the seconds: a straight line's differ by
1.73 of them, a step's in the middle by 2; correlated noise without a trend is mostly below."""


class StallEpisodes(Record):
    """How many stalls there were, and by how much they lowered the mean (in its unit).

    Few and large, they make a mean far less certain than the spread of seconds tells. If c episodes
    came as a Poisson process and each cost an exponential amount, of the total L of the mean that
    they cost, the variance is c E[loss^2] = 2 L^2 / c.
    """

    count: int
    mean_loss: float

    @property
    def variance_of_mean_by_stalls(self) -> VarianceOfMean | None:
        """The variance of the mean by them alone, None without any."""
        if self.count == 0:
            return None
        return VarianceOfMean(2 * self.mean_loss**2 / self.count, self.count)


def find_stall_episodes(x: Floats) -> StallEpisodes:
    """The stalls of a series without its transient."""
    middle = float(np.median(x))
    stalled = x < _STALLED * middle
    starts = np.count_nonzero(stalled[1:] & ~stalled[:-1]) + int(stalled[0])
    lost = float((middle - x[stalled]).sum()) / len(x)
    return StallEpisodes(int(starts), lost)


class StoppingStatus(StrEnum):
    """What rule D says of a run; everything but OK is printed beside the number."""

    RUNNING = "running"
    OK = "ok"
    TRANSIENT = "transient"
    CYCLE = "cycle"
    IMPRECISE = "imprecise"
    CORRELATED = "correlated"


class StoppingDecision(Record):
    """What the rule saw after `seconds` of a run.

    `mean` and `half_width` (95 %) are per second, of the seconds after `cut_s`; `df` and `variance`
    are those of the mean. `effective_sample_count` is how many independent seconds, batches or
    cycles those are worth; with too few there is no interval, and the half-width is infinite.
    `relative_halves_difference` is that of the two halves. `period_s` is the cycle,
    `cycles` how many whole ones were used; `tau_s` the time constant of a clear transient.
    `is_steady` tells whether the cut was found, `do_halves_agree` whether the halves agree.
    """

    status: StoppingStatus
    seconds: int
    cut_s: int
    mean: float
    half_width: float
    df: int
    variance: float
    relative_halves_difference: float
    period_s: int | None
    cycles: int
    tau_s: float | None
    stall_count: int
    mean_loss: float
    effective_count: float
    is_steady: bool
    do_halves_agree: bool

    @property
    def relative_half_width(self) -> float:
        """The half-width as a share of the mean; infinite where the mean is zero."""
        return self.half_width / self.mean if self.mean > 0 else math.inf


class LiveStoppingRule:
    """Rule D on a run as it goes: feed it each second's count, stop when it says so."""

    def __init__(self, settings: StoppingRuleSettings = RAW_BLOCK) -> None:
        self._settings = settings
        self._counts = np.zeros(settings.longest_s, dtype=np.float64)
        self._seconds = 0
        self._satisfied = 0
        self._decision: StoppingDecision | None = None
        self._judged: StoppingDecision | None = None

    @property
    def second_count(self) -> int:
        """How long the run is by now."""
        return self._seconds

    @property
    def satisfied_judgement_count(self) -> int:
        """How many of the latest looks in a row were satisfied."""
        return self._satisfied

    @property
    def last_judgement(self) -> StoppingDecision | None:
        """What the latest look makes of the run by itself, None before the first; never RUNNING."""
        return self._judged

    @property
    def decision(self) -> StoppingDecision | None:
        """The latest look at the run, None before the first."""
        return self._decision

    @property
    def may_end_run(self) -> bool:
        """Whether the run may end: satisfied, or at its longest."""
        return self._decision is not None and self._decision.status is not StoppingStatus.RUNNING

    def add_second(self, count: float) -> StoppingDecision | None:
        """Take the next second's count; a Decision when the rule looked, else None.

        Raises ValueError for a count that is not a number of I/Os, or once the run is over.
        """
        if self.may_end_run:
            raise ValueError(f"the run is over since second {self._seconds}")
        if not (math.isfinite(count) and count >= 0):
            raise ValueError(f"{count} is not a count of I/Os")
        self._counts[self._seconds] = count
        self._seconds += 1
        return self._judge_now() if self._is_judgement_due() else None

    def _is_judgement_due(self) -> bool:
        since = self._seconds - self._settings.shortest_s
        at_cap = self._seconds == self._settings.longest_s
        return at_cap or (since >= 0 and since % self._settings.step_s == 0)

    def _judge_now(self) -> StoppingDecision:
        judged = judge_series(self._counts[: self._seconds], self._settings)
        self._judged = judged
        self._satisfied = self._satisfied + 1 if judged.status is StoppingStatus.OK else 0
        at_cap = self._seconds == self._settings.longest_s
        if not at_cap and self._satisfied < self._settings.consecutive:
            judged = replace(judged, status=StoppingStatus.RUNNING)
        self._decision = judged
        return judged


def replay_stopping_rule(
    series: Floats, settings: StoppingRuleSettings = RAW_BLOCK
) -> StoppingDecision:
    """What the rule says when the series is played to it second by second.

    The status is RUNNING where the series ends before the rule does.
    """
    live = LiveStoppingRule(settings)
    for count in series:
        live.add_second(float(count))
        if live.may_end_run:
            break
    return live.decision or replace(judge_series(series, settings), status=StoppingStatus.RUNNING)


def judge_series(series: Floats, settings: StoppingRuleSettings = RAW_BLOCK) -> StoppingDecision:
    """What the series is worth if the run ends here: never RUNNING.

    Raises ValueError for fewer than four blocks, of which no mean could be judged.
    """
    least_s = BLOCKS_MIN * settings.block_s
    if len(series) < least_s:
        raise ValueError(f"{len(series)} s are too few to judge; at least {least_s} s are")
    blocks = steady_state.clipped_block_medians(series, settings.block_s)
    cut_s, steady, tau_s = _find_transient_cut(blocks, len(series), settings)
    kept = series[cut_s:]
    cycle_s = steady_state.find_cycle_period(kept)
    count = len(kept) // cycle_s if cycle_s else 0
    resolved = cycle_s is None or count >= settings.cycles_min
    lost = find_stall_episodes(kept)
    basis = _estimate_mean(kept, cycle_s if resolved else None, settings)
    samples, variance = basis.samples, basis.variance
    by_stalls = lost.variance_of_mean_by_stalls
    if by_stalls is not None and by_stalls.half_width_95 > variance.half_width_95:
        variance = by_stalls
    mean = float(samples.mean())
    halves = _relative_halves_difference(samples, cycle_s if resolved else None, mean)
    decision = StoppingDecision(
        StoppingStatus.OK,
        len(series),
        len(series) - len(samples),
        mean,
        _mean_half_width(basis, variance, settings.precision * mean),
        max(int(variance.df), 1),
        variance.variance,
        halves,
        cycle_s,
        count,
        tau_s,
        lost.count,
        lost.mean_loss,
        basis.effective_count,
        steady,
        abs(halves) <= settings.equivalence * settings.precision,
    )
    trend = abs(halves) * mean > _TREND * float(samples.std())
    return replace(
        decision,
        status=_stopping_status(decision, settings, is_cycle_resolved=resolved, has_trend=trend),
    )


class _TransientCut(NamedTuple):
    """Where to cut (s), whether the transient was seen to end, and its time constant."""

    cut_s: int
    has_ended: bool
    tau_s: float | None


def _find_transient_cut(
    blocks: Floats, seconds: int, settings: StoppingRuleSettings
) -> _TransientCut:
    """The start that a fitted transient, and MSER, take from a series."""
    truncated = steady_state.mser_truncation(blocks)
    # Doubling the cut squares what an exponential transient leaves behind.
    cut = 2.0 * truncated.blocks * settings.block_s
    fitted = steady_state.fit_transient(blocks, settings.block_s)
    tau_s = None
    if fitted is not None and fitted.is_significant:
        tau_s = fitted.tau_s
        cut = max(cut, fitted.settling_time_s(settings.precision * settings.bias_share))
    least = float(settings.cut_least_s)
    cut = max(cut, least)
    limit = min(seconds - settings.retained_s, _CUT_SHARE * seconds)
    steady = truncated.has_converged and cut <= limit
    return _TransientCut(math.ceil(min(cut, max(limit, least))), steady, tau_s)


class _MeanEstimate(Record):
    """The samples that the mean is taken of, its variance, and how many effective ones there are.

    `too_correlated_batches` are those of which there are too few effective ones.
    """

    samples: Floats
    variance: VarianceOfMean
    effective_count: float
    too_correlated_batches: BatchStatistics | None = None


def _estimate_mean(
    steady_counts: Floats, cycle_s: int | None, settings: StoppingRuleSettings
) -> _MeanEstimate:
    if cycle_s is not None:
        variance, cycles = batches.variance_of_mean_and_whole_cycles(steady_counts, cycle_s)
        return _MeanEstimate(cycles, variance, float(len(cycles) // cycle_s))
    octaves = batches.batch_statistics_by_size(steady_counts, settings.batches_min)
    if not octaves:
        return _MeanEstimate(steady_counts, VarianceOfMean(math.inf, 1), 0.0)
    variance = batches.widest_variance_of_mean(octaves)
    refused = batches.find_too_correlated_batches(octaves)
    return _MeanEstimate(steady_counts, variance, batches.effective_sample_count(octaves), refused)


def _mean_half_width(
    basis: _MeanEstimate, variance: VarianceOfMean, target_half_width: float
) -> float:
    """Half the mean's 95 % interval; infinite where it has none.

    Batches that are too correlated for an interval but hardly move at all bound the mean.
    """
    if basis.too_correlated_batches is None:
        return variance.half_width_95
    bound = batches.correlated_mean_error_bound(basis.too_correlated_batches)
    return bound if bound <= target_half_width else math.inf


def _relative_halves_difference(samples: Floats, cycle_s: int | None, mean: float) -> float:
    """The relative difference of the halves' means; halves are whole cycles where there are any."""
    half = len(samples) // cycle_s // 2 * cycle_s if cycle_s else len(samples) // 2
    difference = float(samples[len(samples) - half :].mean() - samples[:half].mean())
    return difference / mean if mean > 0 else math.inf


def _stopping_status(
    decision: StoppingDecision,
    settings: StoppingRuleSettings,
    *,
    is_cycle_resolved: bool,
    has_trend: bool,
) -> StoppingStatus:
    """The first of the statuses for which there is evidence."""
    if not decision.is_steady:
        return StoppingStatus.TRANSIENT
    if not is_cycle_resolved:
        return StoppingStatus.CYCLE
    precise = decision.relative_half_width <= settings.precision
    if math.isinf(decision.half_width) and decision.mean > 0:
        return StoppingStatus.TRANSIENT if has_trend else StoppingStatus.CORRELATED
    if not decision.do_halves_agree and (
        precise or abs(decision.relative_halves_difference) > 2 * decision.relative_half_width
    ):
        return StoppingStatus.TRANSIENT
    return StoppingStatus.OK if precise and decision.do_halves_agree else StoppingStatus.IMPRECISE
