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

from iolab.analysis.differences import ComparisonSide, Difference, differences
from iolab.analysis.pairs import (
    ComparedMetric,
    Pair,
    Place,
    Skipped,
    compare_metrics,
    compare_pair,
    match_points,
)
from iolab.analysis.points import PointKey, Priors, priors_of
from iolab.core.metric import Result
from iolab.core.metric_spec import Better
from iolab.stats.comparison import (
    Comparison,
    ComparisonVerdict,
)
from iolab.stats.overall import Overall, geometric_mean

SAME_SESSION: Final = "both sides are the same session"

_SEED: Final = 1
"""Of the resampling of curves: the same sessions always give the same interval."""


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
    same = baseline.is_same_as(candidate)
    one_session = baseline.session == candidate.session
    mine, theirs = (
        {place: s for place, s in side.summaries.items() if not workloads or place[0] in workloads}
        for side in (baseline, candidate)
    )
    pairs, skipped = match_points(mine, theirs, ("the baseline", "the candidate"))
    priors = _priors(pairs, baseline)

    def judge(place: Place, metric: str) -> Comparison:
        if same:
            return _itself(len(pairs[place][0].results))
        prior = priors.of(_named(place, "baseline"), metric)
        return compare_pair(pairs[place], metric, prior, one_session=one_session)

    rows, without = compare_metrics(pairs, baseline.study, metrics, judge)
    return ComparisonResult(
        baseline=baseline,
        candidate=candidate,
        differences=differences(baseline, candidate),
        rows=rows,
        skipped=(*skipped, *without),
        summaries=tuple(_summaries(rows, same_session=same)),
        same_session=same,
    )


def _priors(pairs: Mapping[Place, Pair], baseline: ComparisonSide) -> Priors:
    """What the points of both sides together say of the spread over runs.

    Within a cell the variance of runs is one side's own, so that a difference is not taken for it.
    """
    groups: dict[PointKey, Sequence[Result]] = {}
    for place, (one, other) in pairs.items():
        groups[_named(place, "baseline")] = one.results
        groups[_named(place, "candidate")] = other.results
    return priors_of(groups, baseline.study)


def _named(place: Place, side: str) -> PointKey:
    return PointKey(side, *place)


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
