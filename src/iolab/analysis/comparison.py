"""Sessions compared over the points that all have: two of them, or many in the order of time. Pure.

One row a point and metric: the ratio with its interval and a verdict, by run means alone. Runs of
one session are paired by repeat, since a repeat is a block in which both were measured. Verdicts
are held together by Holm's correction, so that of many rows none claims what chance brings.

Of many sessions each gives one value a point, its published one. Runs of one session share the day
that they were measured on, so taking them one by one would call every such day a change.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Final

import numpy as np
from msgspec.structs import replace

from iolab.analysis.differences import ComparisonSide, Difference, DifferenceArea, find_differences
from iolab.analysis.pairs import (
    ComparedMetric,
    Pair,
    SkippedPoint,
    WorkloadAndAxisValues,
    compare_pair_metric,
    compared_metrics_and_skipped_points,
    default_metric_keys_of_pairs,
    matched_pairs_and_skipped_points,
    missing_default_metric_reasons,
    rate_or_phase_rate_key_of_each_operation,
)
from iolab.analysis.points import PointKey, PointPriors, fit_point_priors
from iolab.core.metric import Metric, RunResult, VerdictLevel
from iolab.core.metric_spec import BetterDirection
from iolab.core.workload import Workload
from iolab.record import Record
from iolab.stats.changes import ALPHA, ChangeSearchResult, find_level_changes
from iolab.stats.comparison import (
    Comparison,
    ComparisonVerdict,
)
from iolab.stats.geometric_mean import GeometricMeanRatio, geometric_mean_ratio

SAME_SESSION: Final = "both sides are the same session"

_SEED: Final = 1
"""Of resampling and permutations: the same sessions always give the same answer."""

FALSE_ALARMS: Final = 0.05
"""Share of histories without any change in which some series is called changed."""


class MetricSummary(Record):
    """The geometric mean of one metric's ratios over `point_count` points."""

    metric: str
    better: BetterDirection
    point_count: int
    geometric_mean: GeometricMeanRatio


class ComparisonResult(Record):
    """Everything that a comparison says."""

    baseline: ComparisonSide
    candidate: ComparisonSide
    differences: tuple[Difference, ...]
    compared_metrics: tuple[ComparedMetric, ...]
    skipped: tuple[SkippedPoint, ...]
    summaries: tuple[MetricSummary, ...]
    is_same_measurement: bool

    @property
    def row_count_by_verdict(self) -> Mapping[ComparisonVerdict, int]:
        """How many rows have each verdict."""
        return Counter(row.comparison.verdict for row in self.compared_metrics)


def compare_sides(
    baseline: ComparisonSide,
    candidate: ComparisonSide,
    workloads: Sequence[str] = (),
    metrics: Sequence[str] = (),
) -> ComparisonResult:
    """Compare every point that both sides have, of the workloads and metrics named or of all.

    Without metrics named those of `default_metric_keys`. It compares whatever `find_differences`
    say: who shows it decides.
    """
    same = baseline.is_same_measurement_as(candidate)
    one_session = baseline.session_id == candidate.session_id
    first, second = (
        {
            place: s
            for place, s in side.summaries_by_point.items()
            if not workloads or place[0] in workloads
        }
        for side in (baseline, candidate)
    )
    pairs, skipped = matched_pairs_and_skipped_points(
        first, second, ("the baseline", "the candidate")
    )
    used = metrics or default_metric_keys_of_pairs(baseline.study, pairs)
    priors = _fit_pair_priors(pairs, baseline, used)

    def compare_metric_of_pair(
        workload_and_axis_values: WorkloadAndAxisValues, metric_key: str
    ) -> Comparison:
        if same:
            return _same_session_comparison(len(pairs[workload_and_axis_values][0].results))
        prior = priors.prior_of_point(
            _side_point_key(workload_and_axis_values, "baseline"), metric_key
        )
        return compare_pair_metric(
            pairs[workload_and_axis_values], metric_key, prior, is_same_session=one_session
        )

    rows, without = compared_metrics_and_skipped_points(
        pairs, baseline.study, metrics, compare_metric_of_pair
    )
    if not metrics:
        without += [
            SkippedPoint(*place, reason)
            for place, pair in pairs.items()
            for reason in missing_default_metric_reasons(pair)
        ]
    return ComparisonResult(
        baseline=baseline,
        candidate=candidate,
        differences=find_differences(baseline, candidate),
        compared_metrics=rows,
        skipped=(*skipped, *without),
        summaries=tuple(_geometric_mean_summaries(rows, is_same_measurement=same)),
        is_same_measurement=same,
    )


def _fit_pair_priors(
    pairs: Mapping[WorkloadAndAxisValues, Pair], baseline: ComparisonSide, metrics: Collection[str]
) -> PointPriors:
    """What the points of both sides together say of the spread over runs.

    Within a cell the variance of runs is one side's own, so that a difference is not taken for it.
    """
    groups: dict[PointKey, Sequence[RunResult]] = {}
    for place, (first, second) in pairs.items():
        groups[_side_point_key(place, "baseline")] = first.results
        groups[_side_point_key(place, "candidate")] = second.results
    return fit_point_priors(groups, baseline.study, metrics)


def _side_point_key(workload_and_axis_values: WorkloadAndAxisValues, side: str) -> PointKey:
    return PointKey(side, *workload_and_axis_values)


def _same_session_comparison(run_count: int) -> Comparison:
    """A measurement against itself, which cannot differ."""
    return Comparison(
        ratio=1.0,
        low=1.0,
        high=1.0,
        verdict=ComparisonVerdict.SAME,
        reason=SAME_SESSION,
        run_counts=(run_count, run_count),
        is_paired=True,
        log_ratio_error=0.0,
        df=math.inf,
        p_value=1.0,
    )


def _geometric_mean_summaries(
    compared_metrics: Sequence[ComparedMetric], *, is_same_measurement: bool
) -> Iterator[MetricSummary]:
    """The geometric mean of each metric that has several rows; a workload is a curve."""
    by_metric: dict[str, dict[str, list[Comparison]]] = {}
    betters = {row.metric: row.better for row in compared_metrics}
    errors: dict[str, float] = {}
    for row in compared_metrics:
        curves = by_metric.setdefault(row.metric, {})
        curves.setdefault(row.workload, []).append(row.comparison)
        errors[row.metric] = max(row.log_bin_error, errors.get(row.metric, 0.0))
    for metric, curves in by_metric.items():
        count = sum(map(len, curves.values()))
        if is_same_measurement:
            overall = GeometricMeanRatio(1.0, 1.0, 1.0, len(curves), is_bootstrapped=False)
        else:
            overall = geometric_mean_ratio(list(curves.values()), np.random.default_rng(_SEED))
            overall = _with_wider_interval(overall, errors[metric])
        if count > 1:
            yield MetricSummary(metric, betters[metric], count, overall)


def _with_wider_interval(mean_ratio: GeometricMeanRatio, log_margin: float) -> GeometricMeanRatio:
    """The interval wider by a share on either side: errors of bins need not cancel over points."""
    if mean_ratio.low is None or mean_ratio.high is None:
        return mean_ratio
    return replace(
        mean_ratio,
        low=mean_ratio.low * math.exp(-log_margin),
        high=mean_ratio.high * math.exp(log_margin),
    )


class HistoryValue(Record):
    """One session's value of a series: `session_index` is its place among the sessions, from 0."""

    session_index: int
    metric: Metric
    verdict_level: VerdictLevel


class MetricHistory(Record):
    """One metric of one point over the sessions that have a value of it, oldest first.

    Changes in `change_search` are before the value of that index.
    """

    workload: str
    axis_values: tuple[tuple[str, int | str], ...]
    metric: str
    values: tuple[HistoryValue, ...]
    change_search: ChangeSearchResult


class SessionHistory(Record):
    """What many sessions tell; the differences are those of each from the one before."""

    sessions: tuple[ComparisonSide, ...]
    differences_by_session: tuple[tuple[Difference, ...], ...]
    metric_histories: tuple[MetricHistory, ...]

    @property
    def change_count(self) -> int:
        """How many changes there are over all series."""
        return sum(len(series.change_search.changes) for series in self.metric_histories)


def forbidding_differences_by_session(
    sessions: Sequence[ComparisonSide],
) -> dict[int, tuple[Difference, ...]]:
    """What keeps sessions from standing in one history with the first, by their place."""
    forbidden: dict[int, tuple[Difference, ...]] = {}
    for place, side in enumerate(sessions[1:], start=1):
        unlike = tuple(
            difference
            for difference in find_differences(sessions[0], side)
            if difference.forbids_comparison
            or (difference.area is DifferenceArea.STUDY and difference.setting == "study")
        )
        if unlike:
            forbidden[place] = unlike
    return forbidden


def build_session_history(
    sessions: Sequence[ComparisonSide], workloads: Sequence[str] = (), metrics: Sequence[str] = ()
) -> SessionHistory:
    """Search every series of the sessions, which it puts in the order of time, for changes.

    Without metrics named: the workload's headline figure, or the rate of each operation where no
    single figure is. The chance of a false alarm is shared among all series.
    """
    ordered = tuple(sorted(sessions, key=lambda side: (side.created_real_ns, side.session_id)))
    places = dict.fromkeys(place for side in ordered for place in side.summaries_by_point)
    wanted = [
        (place, metric, values)
        for place in places
        if not workloads or place[0] in workloads
        for metric in metrics
        or _default_history_metric_keys(_workload_in_sessions(ordered, place), ordered, place)
        if (values := _history_values(ordered, place, metric))
    ]
    alpha = min(ALPHA, FALSE_ALARMS / max(len(wanted), 1))
    return SessionHistory(
        sessions=ordered,
        differences_by_session=(
            (),
            *(find_differences(earlier, later) for earlier, later in pairwise(ordered)),
        ),
        metric_histories=tuple(
            MetricHistory(*place, metric, values, _find_level_changes(values, alpha))
            for place, metric, values in wanted
        ),
    )


def _workload_in_sessions(
    sessions: Sequence[ComparisonSide], workload_and_axis_values: WorkloadAndAxisValues
) -> Workload:
    workloads: Mapping[str, Workload] = {
        workload.id: workload for side in sessions for workload in side.study.workloads
    }
    return workloads[workload_and_axis_values[0]]


def _default_history_metric_keys(
    workload: Workload,
    sessions: Sequence[ComparisonSide],
    workload_and_axis_values: WorkloadAndAxisValues,
) -> list[str]:
    figure = workload.headline_metric
    if figure is not None:
        return [figure]
    present = [side for side in sessions if workload_and_axis_values in side.summaries_by_point]
    trusted = [
        side for side in present if side.summaries_by_point[workload_and_axis_values].is_trusted
    ]
    return rate_or_phase_rate_key_of_each_operation(
        dict.fromkeys(
            key
            for side in present
            for key in side.summaries_by_point[workload_and_axis_values].metrics
        ),
        lambda key: all(_history_values([side], workload_and_axis_values, key) for side in trusted),
    )


def _history_values(
    sessions: Sequence[ComparisonSide],
    workload_and_axis_values: WorkloadAndAxisValues,
    metric_key: str,
) -> tuple[HistoryValue, ...]:
    """The sessions' values: of points whose runs may be published, and that are not 0."""
    values = []
    for number, side in enumerate(sessions):
        summary = side.summaries_by_point.get(workload_and_axis_values)
        if summary is None or not summary.is_trusted:
            continue
        figure = summary.metrics.get(metric_key)
        if figure is not None and figure.value is not None and figure.value > 0:
            values.append(HistoryValue(number, figure, summary.verdict_level))
    return tuple(values)


def _find_level_changes(values: Sequence[HistoryValue], alpha: float) -> ChangeSearchResult:
    means = [value.metric.value for value in values if value.metric.value is not None]
    return find_level_changes(means, np.random.default_rng(_SEED), alpha=alpha)
