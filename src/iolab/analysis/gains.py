"""How much better one configuration is than another, cell by cell, and where it gains the most.

A cell is a workload at one place of its axes. Every cell that both configurations have is compared
with itself and no other: a maximum over threads of the one against a maximum of the other would
compare different loads. For a report:

    for found in gains(study, summaries):          # one for each candidate against the baseline
        best = found.largest("ops_per_s")          # of all cells, or of one workload
        best.gain.workload, best.gain.axis         # names its cell
        best.gain.share, best.low, best.high       # +0.34 with its interval: 34 % more ops/s
        found.largest("read_lat_ns_mean").gain.share   # +0.43: 43 % less latency
        for cell in found.of("ops_per_s"): cell.share, cell.interval, cell.factor, cell.comparison
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from iolab.analysis.differences import (
    Pair,
    Skipped,
    compare_pair,
    default_metrics,
    objection,
)
from iolab.analysis.points import Axis, PointSummary, priors_of
from iolab.core.metric import Level, Metric
from iolab.core.metric_spec import Better, spec_of
from iolab.core.study import Study
from iolab.stats.comparison import Comparison, ComparisonVerdict, judged_together
from iolab.stats.repeats import CONFIDENT
from iolab.stats.special import student_quantile

Place = tuple[str, Axis]
"""A cell: a workload and its axis values."""

Interval = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Gain:
    """One metric of one cell: both values, the ratio and what it says.

    `level` is the worse verdict of the two points. Everything that is called a gain is above 0 (a
    factor above 1) where the candidate is the better one, of rates and of latencies.
    """

    workload: str
    axis: Axis
    metric: str
    baseline: Metric
    candidate: Metric
    comparison: Comparison
    level: Level

    @property
    def better(self) -> Better:
        """Which way of the metric is the good one."""
        return spec_of(self.metric).better

    @property
    def share(self) -> float:
        """What a rate is higher by, or a latency lower by, as a share of the baseline's."""
        return share_of(self.comparison.ratio, self.better)

    @property
    def interval(self) -> Interval | None:
        """The 95 % interval of `share`, low and high; None without one."""
        return _shares(self.comparison.low, self.comparison.high, self.better)

    @property
    def factor(self) -> float:
        """How many times as good the candidate is."""
        ratio = self.comparison.ratio
        return ratio if self.better is Better.HIGHER else 1 / ratio

    @property
    def difference(self) -> float:
        """The candidate's value less the baseline's, in the metric's unit."""
        return (self.candidate.value or 0.0) - (self.baseline.value or 0.0)


@dataclass(frozen=True, slots=True)
class LargestGain:
    """The cell with the largest gain of `cells` cells.

    It was picked because it is large, so `low` and `high` are those of an interval of its `share`
    that holds for all cells at once (Bonferroni), wider than the cell's own; None without one.
    """

    gain: Gain
    cells: int
    low: float | None
    high: float | None


@dataclass(frozen=True, slots=True)
class Gains:
    """A candidate against the baseline, both by their configurations' ids.

    `cells` are by workload and axis in the baseline's order, each with all its metrics; verdicts
    are held together by Holm's correction. `skipped` says what could not be compared and why.
    """

    baseline: str
    candidate: str
    cells: tuple[Gain, ...]
    skipped: tuple[Skipped, ...]

    @property
    def metrics(self) -> tuple[str, ...]:
        """Every metric that some cell has, in their order."""
        return tuple(dict.fromkeys(cell.metric for cell in self.cells))

    def of(self, metric: str, workload: str | None = None) -> tuple[Gain, ...]:
        """The cells of a metric, of one workload or of all."""
        return tuple(
            cell
            for cell in self.cells
            if cell.metric == metric and workload in (None, cell.workload)
        )

    def largest(self, metric: str, workload: str | None = None) -> LargestGain | None:
        """The largest gain of a metric as a share; None where no cell is better by its value."""
        cells = self.of(metric, workload)
        best = max(cells, key=lambda cell: cell.share, default=None)
        if best is None or best.share <= 0:
            return None
        low, high = _together(best, len(cells)) or (None, None)
        return LargestGain(best, len(cells), low, high)

    def largest_supported(self, metric: str) -> LargestGain | None:
        """The largest of the gains that are better by their verdict; None where there is none.

        The largest of all would often be the noisiest. Holm's correction may find a cell better
        whose interval with all others reaches below 0: that is none that can be quoted with it.
        """
        cells = self.of(metric)
        found = [
            LargestGain(cell, len(cells), *(_together(cell, len(cells)) or (None, None)))
            for cell in cells
            if cell.comparison.verdict is ComparisonVerdict.BETTER
        ]
        held = (one for one in found if one.low is None or one.low > 0)
        return max(held, key=lambda one: one.gain.share, default=None)


def gains(
    study: Study,
    summaries: Sequence[PointSummary],
    metrics: Sequence[str] = (),
    baseline: str | None = None,
) -> tuple[Gains, ...]:
    """Every configuration of one session against the baseline, which is the first by default.

    Points that went without a host stand in configurations of their own (`apart`). Without metrics
    named those of `default_metrics`. Empty where there is one configuration.
    """
    names = list(dict.fromkeys(summary.key.configuration for summary in summaries))
    order = [
        configuration.id for configuration in study.configurations if configuration.id in names
    ]
    if not order or (baseline is not None and baseline not in order):
        return ()
    first = baseline or order[0]
    return tuple(
        _gains(study, summaries, metrics, (first, other)) for other in order if other != first
    )


def share_of(ratio: float, better: Better) -> float:
    """A ratio of candidate to baseline as a gain: 1.3 of a rate is 0.3, 0.6 of a latency 0.4."""
    return ratio - 1 if better is Better.HIGHER else 1 - ratio


def _gains(
    study: Study,
    summaries: Sequence[PointSummary],
    metrics: Sequence[str],
    names: tuple[str, str],
) -> Gains:
    pairs, skipped = _matched(summaries, names)
    workloads = {workload.id: workload for workload in study.workloads}
    priors = priors_of({side.key: side.results for pair in pairs.values() for side in pair}, study)
    cells: list[Gain] = []
    for (workload, axis), pair in pairs.items():
        for metric in metrics or default_metrics(workloads[workload], pair):
            why = objection(pair, metric) if _has(pair, metric) else "there is no such metric"
            if why:
                skipped.append(Skipped(workload, axis, f"{metric}: {why}"))
                continue
            prior = priors.of(pair[0].key, metric)
            comparison = compare_pair(pair, metric, prior, one_session=True)
            values = (pair[0].metrics[metric], pair[1].metrics[metric])
            level = max(pair[0].level, pair[1].level, key=lambda level: level.rank)
            cells.append(Gain(workload, axis, metric, *values, comparison, level))
    judged = judged_together([cell.comparison for cell in cells])
    held = (replace(cell, comparison=one) for cell, one in zip(cells, judged, strict=True))
    return Gains(*names, tuple(held), tuple(skipped))


def _matched(
    summaries: Sequence[PointSummary], names: tuple[str, str]
) -> tuple[dict[Place, Pair], list[Skipped]]:
    """The cells that both have, and the others with a reason."""
    sides: list[Mapping[Place, PointSummary]] = [
        {(s.key.workload, s.key.axis): s for s in summaries if s.key.configuration == name}
        for name in names
    ]
    found: dict[Place, Pair] = {}
    skipped: list[Skipped] = []
    for place in dict.fromkeys((*sides[0], *sides[1])):
        one, other = sides[0].get(place), sides[1].get(place)
        if one is None or other is None:
            lacking = names[0] if one is None else names[1]
            skipped.append(Skipped(*place, f"{lacking} has no such point"))
        elif not (one.trusted and other.trusted):
            lacking = names[1] if one.trusted else names[0]
            skipped.append(Skipped(*place, f"no run of {lacking} is done and not invalid"))
        else:
            found[place] = (one, other)
    return found, skipped


def _has(pair: Pair, metric: str) -> bool:
    return all(metric in side.metrics for side in pair)


def _shares(low: float | None, high: float | None, better: Better) -> Interval | None:
    if low is None or high is None:
        return None
    ends = (share_of(low, better), share_of(high, better))
    return min(ends), max(ends)


def _together(gain: Gain, cells: int) -> Interval | None:
    """The interval of a gain's share that holds at once with those of all cells."""
    compared = gain.comparison
    if compared.low is None or compared.high is None or compared.df == 0:
        return None
    own = student_quantile(CONFIDENT, compared.df) * compared.error
    wider = student_quantile(1 - (1 - CONFIDENT) / cells, compared.df) * compared.error
    more = wider - own
    return _shares(compared.low * math.exp(-more), compared.high * math.exp(more), gain.better)
