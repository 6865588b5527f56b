"""A candidate against a baseline over all points that both have. Pure.

One row a point and metric: the ratio with its interval and a verdict, by run means alone. Runs of
one session are paired by repeat, since a repeat is a block in which both were measured. Verdicts
are held together by Holm's correction, so that of many rows none claims what chance brings.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from iolab.analysis.differences import (
    ComparisonSide,
    Difference,
    Pair,
    Place,
    Skipped,
    compare_pair,
    default_metrics,
    differences,
    objection,
    pair_bin_error,
)
from iolab.analysis.points import Axis, PointKey, Priors, priors_of
from iolab.core.metric import Level, Metric, Result
from iolab.core.metric_spec import Better, spec_of
from iolab.stats.comparison import (
    Comparison,
    ComparisonVerdict,
    Overall,
    geometric_mean,
    judged_together,
)
from iolab.stats.repeats import Prior

__all__ = ["ComparedMetric", "ComparisonResult", "Skipped", "Summary", "compare_sides"]

SAME_SESSION: Final = "both sides are the same session"

_SEED: Final = 1
"""Of the resampling of curves: the same sessions always give the same interval."""


@dataclass(frozen=True, slots=True)
class ComparedMetric:
    """One metric of one point: both values, the ratio and what it says.

    `level` is the worse verdict of the two points, `bin_error` how far the ratio may be off for the
    bins that its values are read from (a log ratio).
    """

    workload: str
    axis: Axis
    metric: str
    baseline: Metric
    candidate: Metric
    comparison: Comparison
    level: Level
    bin_error: float = 0.0

    @property
    def better(self) -> Better:
        """Which way is the good one."""
        return spec_of(self.metric).better


@dataclass(frozen=True, slots=True)
class Summary:
    """The geometric mean of one metric's ratios over `rows` points."""

    metric: str
    better: Better
    rows: int
    overall: Overall


@dataclass(frozen=True, slots=True)
class ComparisonResult:
    """Everything that a comparison says."""

    baseline: ComparisonSide
    candidate: ComparisonSide
    differences: tuple[Difference, ...]
    rows: tuple[ComparedMetric, ...]
    skipped: tuple[Skipped, ...]
    summaries: tuple[Summary, ...]
    same_session: bool

    @property
    def verdicts(self) -> Mapping[ComparisonVerdict, int]:
        """How many rows have each verdict."""
        return Counter(row.comparison.verdict for row in self.rows)


def compare_sides(
    baseline: ComparisonSide,
    candidate: ComparisonSide,
    workloads: Sequence[str] = (),
    metrics: Sequence[str] = (),
) -> ComparisonResult:
    """Compare every point that both sides have, of the workloads and metrics named or of all.

    Without metrics named those of `default_metrics`. It compares whatever `differences` say: who
    shows it decides.
    """
    matched, skipped = _matched(baseline, candidate, workloads)
    same = baseline.is_same_as(candidate)
    priors = _priors(matched, baseline)
    rows: list[ComparedMetric] = []
    for place, (one, other) in matched.items():
        workload = baseline.study.workload(place[0])
        for metric in metrics or default_metrics(workload, (one, other)):
            why = objection((one, other), metric)
            if why:
                skipped.append(Skipped(*place, f"{metric}: {why}"))
            else:
                prior = priors.of(_named(place, "baseline"), metric)
                rows.append(_row(place, metric, (one, other), prior, (baseline, candidate)))
    judged = judged_together([row.comparison for row in rows])
    held = tuple(replace(row, comparison=one) for row, one in zip(rows, judged, strict=True))
    return ComparisonResult(
        baseline=baseline,
        candidate=candidate,
        differences=differences(baseline, candidate),
        rows=held,
        skipped=tuple(skipped),
        summaries=tuple(_summaries(held, same_session=same)),
        same_session=same,
    )


def _matched(
    baseline: ComparisonSide, candidate: ComparisonSide, workloads: Sequence[str]
) -> tuple[dict[Place, Pair], list[Skipped]]:
    """The points that both have runs of, in the baseline's order, and the others with a reason."""
    found: dict[Place, Pair] = {}
    skipped: list[Skipped] = []
    for place in dict.fromkeys((*baseline.summaries, *candidate.summaries)):
        if workloads and place[0] not in workloads:
            continue
        one, other = baseline.summaries.get(place), candidate.summaries.get(place)
        if one is None or other is None:
            lacking = "baseline" if one is None else "candidate"
            skipped.append(Skipped(*place, f"the {lacking} has no such point"))
        elif not (one.trusted and other.trusted):
            lacking = "candidate" if one.trusted else "baseline"
            skipped.append(Skipped(*place, f"no run of the {lacking} is done and not invalid"))
        else:
            found[place] = (one, other)
    return found, skipped


def _priors(matched: Mapping[Place, Pair], baseline: ComparisonSide) -> Priors:
    """What the points of both sides together say of the spread over runs.

    Within a cell the variance of runs is one side's own, so that a difference is not taken for it.
    """
    groups: dict[PointKey, Sequence[Result]] = {}
    for place, (one, other) in matched.items():
        groups[_named(place, "baseline")] = one.results
        groups[_named(place, "candidate")] = other.results
    return priors_of(groups, baseline.study)


def _named(place: Place, side: str) -> PointKey:
    return PointKey(side, *place)


def _row(
    place: Place,
    metric: str,
    pair: Pair,
    prior: Prior,
    sides: tuple[ComparisonSide, ComparisonSide],
) -> ComparedMetric:
    one, other = pair
    if sides[0].is_same_as(sides[1]):
        comparison = _itself(len(one.results))
    else:
        one_session = sides[0].session == sides[1].session
        comparison = compare_pair(pair, metric, prior, one_session=one_session)
    return ComparedMetric(
        workload=place[0],
        axis=place[1],
        metric=metric,
        baseline=one.metrics[metric],
        candidate=other.metrics[metric],
        comparison=comparison,
        level=max(one.level, other.level, key=lambda level: level.rank),
        bin_error=pair_bin_error(pair, metric),
    )


def _itself(runs: int) -> Comparison:
    """A measurement against itself, which cannot differ."""
    return Comparison(
        ratio=1.0,
        low=1.0,
        high=1.0,
        verdict=ComparisonVerdict.SAME,
        reason=SAME_SESSION,
        runs=(runs, runs),
        paired=True,
        error=0.0,
        df=math.inf,
        p=1.0,
    )


def _summaries(rows: Sequence[ComparedMetric], *, same_session: bool) -> Iterator[Summary]:
    """The geometric mean of each metric that has several rows; a workload is a curve."""
    by_metric: dict[str, dict[str, list[Comparison]]] = {}
    betters = {row.metric: row.better for row in rows}
    errors: dict[str, float] = {}
    for row in rows:
        curves = by_metric.setdefault(row.metric, {})
        curves.setdefault(row.workload, []).append(row.comparison)
        errors[row.metric] = max(row.bin_error, errors.get(row.metric, 0.0))
    for metric, curves in by_metric.items():
        count = sum(map(len, curves.values()))
        if same_session:
            overall = Overall(1.0, 1.0, 1.0, len(curves), bootstrapped=False)
        else:
            overall = geometric_mean(list(curves.values()), np.random.default_rng(_SEED))
            overall = _widened(overall, errors[metric])
        if count > 1:
            yield Summary(metric, betters[metric], count, overall)


def _widened(overall: Overall, by: float) -> Overall:
    """The interval wider by a share on either side: errors of bins need not cancel over points."""
    if overall.low is None or overall.high is None:
        return overall
    return replace(overall, low=overall.low * math.exp(-by), high=overall.high * math.exp(by))
