"""All repeats of a point as one: the published value of each metric with its interval. Pure.

Only runs that came to their end and are not invalid enter. A value is exp(mean of ln of the runs'
values), its interval comes from how far the runs differ, with the variance moderated over the
points of the same mix (see `method.between`). Percentiles are treated alike, run by run: they are
never averaged over hosts, nor read from runs thrown together. One that not every run supports is
not given: in a row all figures are of the same runs.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from operator import itemgetter
from typing import Final, NamedTuple, TypeVar

from iolab.analysis.resume_checks import merged_session_index
from iolab.core.configuration import Objective
from iolab.core.metric import CheckResult, Metric, RunResult, VerdictLevel, worst_verdict_level
from iolab.core.metric_spec import CombineRule, metric_spec
from iolab.core.run import Point, RunStatus
from iolab.core.stopping import SteadinessStatus
from iolab.core.study import Study
from iolab.core.workload import Workload
from iolab.record import Record
from iolab.stats.repeats import (
    BIAS_ALLOWANCE,
    BIN_ERROR,
    NO_PRIOR,
    StratumPriors,
    Variance,
    VariancePrior,
    estimate_published_value,
    estimate_value_of_logarithms,
    fit_stratum_priors,
    logarithms,
    sample_variance,
)
from iolab.stats.sentinel import SentinelShiftForm, judge_sentinel
from iolab.study.schedule import expand_points
from iolab.text import percent_text

AxisValues = tuple[tuple[str, int | str], ...]

NO_REPLICATE: Final = "n=1: no replicate"
"""A single run has no spread of its own; an interval beside this is borrowed from other points."""

REPLICATED: Final = 2
"""Runs of a point from which on its spread is known."""

T = TypeVar("T")
SENTINEL_CHECK_CODE: Final = "conditions-changed"
SD_UNKNOWN: Final = 0.01

SD_UNKNOWN_DF: Final = 3
"""How far runs differ before anything is known of it, and how many runs' worth that is."""


def axis_values_without(axis_values: AxisValues, *names: str) -> AxisValues:
    """The values of all axes but these."""
    return tuple(pair for pair in axis_values if pair[0] not in names)


class PointKey(Record):
    """What tells points apart.

    `excluded_hosts` are hosts that were left out after they had failed.
    """

    configuration: str
    workload: str
    axis_values: AxisValues
    excluded_hosts: tuple[str, ...] = ()


class PointSummary(Record):
    """A point's repeats together.

    `results` are the runs that entered, by repeat, and `left_out_results` those that did not. Where
    none may enter, `is_trusted` is False and the values are those of all runs that have any,
    without intervals. A metric's `n` is how many runs its value rests on. `verdict_level` is the
    worst verdict of the runs behind the values.
    """

    key: PointKey
    digest: str
    results: tuple[RunResult, ...]
    left_out_results: tuple[RunResult, ...]
    metrics: Mapping[str, Metric]
    verdict_level: VerdictLevel
    is_trusted: bool

    def metric_value(self, metric_key: str) -> float | None:
        """The value of a metric; None where it has none."""
        figure = self.metrics.get(metric_key)
        return None if figure is None else figure.value

    def load_on_axis(self, axis_name: str) -> int:
        """Where it stands on an axis of load; KeyError where it is on no such axis."""
        return int(dict(self.key.axis_values)[axis_name])

    @property
    def runs(self) -> list[RunResult]:
        """All of its runs by repeat, those that did not enter too."""
        return sorted((*self.results, *self.left_out_results), key=lambda run: run.repeat)

    @property
    def interval_note_texts(self) -> tuple[str, ...]:
        """What to know about the intervals: runs left out or not steady, no replicate."""
        alone = (NO_REPLICATE,) if len(self.results) == 1 else ()
        return (*self._left_out_run_count_notes(), *self._unsteady_run_count_notes(), *alone)

    @property
    def run_count_by_steadiness(self) -> Mapping[SteadinessStatus, int]:
        """How many of the runs that entered have each status of their seconds."""
        return Counter(run.steadiness.status for run in self.results if run.steadiness is not None)

    @property
    def left_out_repeats_text(self) -> str:
        """Beside a value that rests on some repeats alone: `1 of 3 repeats invalid`; else empty."""
        if not self.results or not self.left_out_results:
            return ""
        are_done = all(run.status is RunStatus.DONE for run in self.left_out_results)
        kind = "invalid" if are_done else "invalid or failed"
        total = len(self.results) + len(self.left_out_results)
        return f"{len(self.left_out_results)} of {total} repeats {kind}"

    def _unsteady_run_count_notes(self) -> tuple[str, ...]:
        return tuple(
            f"{count} of {len(self.results)} runs {status.value}"
            for status, count in self.run_count_by_steadiness.items()
            if status is not SteadinessStatus.OK
        )

    def _left_out_run_count_notes(self) -> tuple[str, ...]:
        if not self.left_out_results:
            return ()
        total = len(self.results) + len(self.left_out_results)
        return (f"{len(self.left_out_results)} of {total} runs left out",)


class CurveKey(NamedTuple):
    """Whose curve it is, as a configuration's, and the values of its axes but the one of load."""

    owner: str
    other_axis_values: AxisValues


def group_along_load_axis(
    axis_name: str,
    items: Iterable[T],
    owner_and_axis_values_of_item: Callable[[T], tuple[str, AxisValues]],
) -> Iterator[tuple[CurveKey, tuple[T, ...]]]:
    """What stands on an axis of load: by owner and other axes, each ascending in the load.

    `owner_and_axis_values_of_item` tells the owner of an item, as its configuration, and its axis
    values.
    """
    by_place: dict[CurveKey, list[tuple[int, T]]] = {}
    for item in items:
        owner, values = owner_and_axis_values_of_item(item)
        load = dict(values).get(axis_name)
        if isinstance(load, int):
            by_place.setdefault(CurveKey(owner, axis_values_without(values, axis_name)), []).append(
                (load, item)
            )
    for place, members in by_place.items():
        yield place, tuple(item for _, item in sorted(members, key=itemgetter(0)))


def curves_along_load_axis(
    points: Iterable[PointSummary], axis_name: str
) -> Iterator[tuple[CurveKey, tuple[PointSummary, ...]]]:
    """The points along an axis of load, by configuration and other axes."""
    return group_along_load_axis(
        axis_name, points, lambda point: (point.key.configuration, point.key.axis_values)
    )


def is_publishable(result: RunResult) -> bool:
    """Whether a run may stand behind a published value."""
    return result.status is RunStatus.DONE and result.verdict.level is not VerdictLevel.INVALID


def meets_search_criterion_of_workload(workload: Workload, result: RunResult) -> bool:
    """Whether a run keeps the limit of its workload's search; one that is invalid proves nothing.

    True of every other run where there is no limit.
    """
    if result.verdict.level is VerdictLevel.INVALID:
        return False
    limit = workload.search_goal.latency_limit
    if limit is not None:
        latency_ns = finite_metric_value(result, limit.metric)
        return latency_ns is not None and latency_ns <= limit.latency_ns
    return workload.job.meets_search_criterion({key: m.value for key, m in result.metrics.items()})


def best_point_candidates(
    workload: Workload, points: Iterable[PointSummary]
) -> tuple[PointSummary, ...]:
    """The trusted points that one may be called the best of.

    Where a rate is requested, or the highest load under a limit is searched for, one repeat that
    did not keep up is news of the point and of higher loads: none of these is the best, unless no
    other point is left.
    """
    members = tuple(points)
    trusted = tuple(point for point in members if point.is_trusted)
    if workload.search_goal.objective is Objective.MAX_LOAD:
        failed = [
            point for point in members if not _do_all_runs_meet_search_criterion(workload, point)
        ]
    elif workload.job.is_paced:
        failed = [
            point
            for point in members
            if any(run.verdict.level is VerdictLevel.INVALID for run in _done_runs_of_point(point))
        ]
    else:
        return trusted
    kept = (
        point
        for point in trusted
        if not any(
            point is other
            or differs_only_in_higher_load(point.key.axis_values, other.key.axis_values)
            for other in failed
        )
    )
    return tuple(kept) or trusted


def _do_all_runs_meet_search_criterion(workload: Workload, point: PointSummary) -> bool:
    return all(
        meets_search_criterion_of_workload(workload, run) for run in _done_runs_of_point(point)
    )


def differs_only_in_higher_load(axis_values: AxisValues, lower_axis_values: AxisValues) -> bool:
    """Whether places differ in one number alone, which is higher at the first."""
    differing = [
        (value, low)
        for value, low in zip(axis_values, lower_axis_values, strict=False)
        if value != low
    ]
    if len(axis_values) != len(lower_axis_values) or len(differing) != 1:
        return False
    (((name, value), (other_name, low)),) = differing
    return name == other_name and isinstance(value, int) and isinstance(low, int) and value > low


def _done_runs_of_point(point: PointSummary) -> list[RunResult]:
    return [run for run in point.runs if run.status is RunStatus.DONE]


def summarise_points(results: Sequence[RunResult], study: Study) -> tuple[PointSummary, ...]:
    """Every point among the results, in the study's order, whatever order they ran in.

    Of several sessions each point's interval is that which its own session gives it.
    """
    groups = results_by_point(results)
    priors: dict[PointKey, PointPriors] = {}
    for session in dict.fromkeys(merged_session_index(runs[0]) for runs in groups.values()):
        own = {
            key: runs for key, runs in groups.items() if merged_session_index(runs[0]) == session
        }
        priors |= dict.fromkeys(own, fit_point_priors(own, study))
    place = point_sort_key(study)
    ordered = sorted(groups, key=place)
    return tuple(_summarise_point(key, groups[key], priors[key]) for key in ordered)


def point_sort_key(study: Study) -> Callable[[PointKey], tuple[object, ...]]:
    """A key that sorts points as the study names them: by workload, axis values, configuration.

    So the configurations of one workload stand together. Numbers are in order of size, words as the
    study lists them.
    """
    workloads = {workload.id: place for place, workload in enumerate(study.workloads)}
    axes = {
        (workload.id, axis.name): place
        for workload in study.workloads
        for place, axis in enumerate(workload.sweep)
    }
    values = {
        (workload.id, axis.name, value): place
        for workload in study.workloads
        for axis in workload.sweep
        for place, value in enumerate(axis.values)
        if isinstance(value, str)
    }
    configurations = {item.id: place for place, item in enumerate(study.configurations)}

    def sort_key(point_key: PointKey) -> tuple[object, ...]:
        axis = sorted(
            point_key.axis_values,
            key=lambda pair: axes.get((point_key.workload, pair[0]), len(axes)),
        )
        numbers = tuple(
            values.get((point_key.workload, name, value), len(values))
            if isinstance(value, str)
            else value
            for name, value in axis
        )
        return (
            workloads.get(point_key.workload, len(workloads)),
            numbers,
            configurations.get(point_key.configuration, len(configurations)),
        )

    return sort_key


def results_by_point(results: Iterable[RunResult]) -> dict[PointKey, list[RunResult]]:
    """The results by point, each point's by repeat."""
    by_point: dict[PointKey, list[RunResult]] = {}
    for result in results:
        key = PointKey(
            result.configuration, result.workload, result.axis_values, result.excluded_hosts
        )
        by_point.setdefault(key, []).append(result)
    return {key: sorted(runs, key=lambda run: run.repeat) for key, runs in by_point.items()}


def positive_metric_values(runs: Iterable[RunResult], metric_key: str) -> list[float]:
    """The runs' values of a metric that have a logarithm."""
    figures = (run.metrics.get(metric_key) for run in runs)
    return [
        figure.value
        for figure in figures
        if figure is not None and figure.value is not None and 0 < figure.value < math.inf
    ]


def finite_metric_value(result: RunResult, metric_key: str) -> float | None:
    """A run's value of a metric, None where it has none or one that is not finite."""
    figure = result.metrics.get(metric_key)
    if figure is None or figure.value is None or not math.isfinite(figure.value):
        return None
    return figure.value


def finite_metric_values(runs: Iterable[RunResult], metric_key: str) -> list[float]:
    """A metric of runs, of those that have it."""
    return [value for run in runs if (value := finite_metric_value(run, metric_key)) is not None]


class RunLogarithms(Record):
    """The logarithms of a metric of a point's publishable runs, and their sample variance."""

    logs: list[float]
    variance: Variance


KnownRunLogarithms = dict[PointKey, dict[str, RunLogarithms]]
"""By point and metric."""


class PointPriors(Record):
    """What each point's stratum says of the spread of each metric over runs.

    A stratum is a kind of load (I/O, metadata, keys) with one mix of reads and writes. A point that
    has too few siblings has the prior of its kind, or none.
    """

    stratum_path_by_point: Mapping[PointKey, tuple[str, ...]]
    strata: Mapping[tuple[str, str], StratumPriors]
    """By kind of load and metric."""
    logarithms: KnownRunLogarithms
    """What they were fitted to."""

    def prior_of_point(self, point_key: PointKey, metric_key: str) -> VariancePrior:
        """The prior of a point that these are the priors of."""
        kind, *mix = self.stratum_path_by_point[point_key]
        strata = self.strata.get((kind, metric_key))
        return NO_PRIOR if strata is None else strata.prior_of_finest_stratum(tuple(mix))


def fit_point_priors(
    runs_by_point: Mapping[PointKey, Sequence[RunResult]],
    study: Study,
    metrics: Collection[str] | None = None,
    logarithms_cache: KnownRunLogarithms | None = None,
) -> PointPriors:
    """The priors of these points, of all metrics or of those named.

    A point that has a single run says nothing, and asks nothing here. What the `logarithms_cache`
    has is not computed again, and what it has not is added to it.
    """
    logs_by_point: KnownRunLogarithms = {} if logarithms_cache is None else logarithms_cache
    workloads = {workload.id: workload for workload in study.workloads}
    places = {key: _stratum_path(workloads.get(key.workload), key) for key in runs_by_point}
    cells: dict[tuple[str, str], list[tuple[tuple[str, ...], Variance]]] = {}
    for key, runs in runs_by_point.items():
        used = [run for run in runs if is_publishable(run)]
        if len(used) < REPLICATED:
            continue
        kind, *mix = places[key]
        mix_path = tuple(mix)
        logs_by_metric = logs_by_point.setdefault(key, {})
        for metric in metrics or dict.fromkeys(name for run in used for name in run.metrics):
            found = logs_by_metric.get(metric)
            if found is None:
                values = positive_metric_values(used, metric)
                if len(values) < REPLICATED:
                    continue
                logs = logarithms(values)
                found = RunLogarithms(logs, sample_variance(logs))
                logs_by_metric[metric] = found
            cells.setdefault((kind, metric), []).append((mix_path, found.variance))
    return PointPriors(
        places,
        {place: fit_stratum_priors(spreads) for place, spreads in cells.items()},
        logs_by_point,
    )


def _stratum_path(workload: Workload | None, point_key: PointKey) -> tuple[str, ...]:
    """Where a point stands among the others: its kind of load, then its mix."""
    mix = None if workload is None else workload.job.load_kind_and_mix(dict(point_key.axis_values))
    return mix or ("other", point_key.workload)


def _summarise_point(
    point_key: PointKey, runs: Sequence[RunResult], priors: PointPriors
) -> PointSummary:
    used = tuple(run for run in runs if is_publishable(run))
    shown = used or tuple(run for run in runs if _has_metric_values(run)) or tuple(runs)
    units = {name: metric.unit for run in shown for name, metric in run.metrics.items()}
    known = priors.logarithms.get(point_key, {})
    return PointSummary(
        key=point_key,
        digest=runs[0].digest,
        results=used,
        left_out_results=tuple(run for run in runs if run not in used),
        metrics={
            name: _metric_over_runs(
                name,
                unit,
                used,
                priors.prior_of_point(point_key, name),
                known.get(name),
            )
            if used
            else _mean_metric(name, unit, shown)
            for name, unit in units.items()
        },
        verdict_level=worst_verdict_level(run.verdict.level for run in shown),
        is_trusted=bool(used),
    )


def _has_metric_values(result: RunResult) -> bool:
    return any(metric.value is not None for metric in result.metrics.values())


def _metric_over_runs(
    name: str,
    unit: str,
    runs: Sequence[RunResult],
    prior: VariancePrior,
    known_logarithms: RunLogarithms | None = None,
) -> Metric:
    """One metric over the runs; values of zero have no logarithm, so they get no interval.

    `known_logarithms` are the logarithms of its values, of several runs.
    """
    is_whole = known_logarithms is not None and len(known_logarithms.logs) == len(runs)
    if (
        known_logarithms is not None
        and is_whole
        and metric_spec(name).combine is not CombineRule.EXTREME
    ):
        # Every run has a value: none is a bound, and no percentile is missing.
        whole = estimate_value_of_logarithms(
            known_logarithms.logs,
            known_logarithms.variance,
            prior,
            bias_allowance=_common_log_bias_allowance(name, runs),
        )
        return Metric(whole.value, unit, whole.low, whole.high, whole.run_count)
    if len(runs) == 1 and prior is NO_PRIOR:
        value = finite_metric_value(runs[0], name)
        if value is not None:
            return _metric_of_single_run(name, unit, runs[0].metrics[name], value)
    beyond = _percentile_lower_bound(name, unit, runs)
    if beyond is not None:
        return beyond
    values = finite_metric_values(runs, name)
    if _is_percentile_missing_in_some_runs(name, values, runs):
        return Metric(None, unit)
    if not values or min(values) <= 0 or metric_spec(name).combine is CombineRule.EXTREME:
        return _mean_metric(name, unit, runs)
    published = estimate_published_value(
        values, prior, bias_allowance=_common_log_bias_allowance(name, runs)
    )
    if published.low is None and (single := _metric_of_coarse_bin(name, runs)):
        return single
    return Metric(_geometric_mean(values), unit, published.low, published.high, published.run_count)


def _metric_of_single_run(name: str, unit: str, published: Metric, value: float) -> Metric:
    """The value of a single run of whose spread nothing is known: what all of this comes to then.

    Most points of a large sweep are such.
    """
    kept = (
        published.has_bin_edge_interval
        and value > 0
        and metric_spec(name).combine is not CombineRule.EXTREME
    )
    return published if kept else Metric(value, unit, n=1)


def _percentile_lower_bound(name: str, unit: str, runs: Sequence[RunResult]) -> Metric | None:
    """A percentile of which some runs know only that it is "more than" a bound, so is the point's.

    Those runs had the stalls: the others alone would tell of a storage that never stalls. A mean
    with bounds for values is itself a bound.
    """
    figures = [run.metrics[name] for run in runs if name in run.metrics]
    least = [figure.low if figure.value is None else figure.value for figure in figures]
    if all(figure.value is not None or figure.low is None for figure in figures):
        return None
    known = [value for value in least if value is not None]
    if not known or max(known) <= 0:
        return None
    has_zero = min(known) <= 0  # without a logarithm
    mean = math.fsum(known) / len(known) if has_zero else _geometric_mean(known)
    return Metric(None, unit, low=mean, n=len(known))


def _mean_metric(name: str, unit: str, runs: Sequence[RunResult]) -> Metric:
    """One metric over the runs without an interval."""
    values = finite_metric_values(runs, name)
    if not values or _is_percentile_missing_in_some_runs(name, values, runs):
        return Metric(None, unit)
    if metric_spec(name).combine is CombineRule.EXTREME:
        return Metric(max(values), unit, n=len(values))
    if min(values) <= 0:
        return Metric(math.fsum(values) / len(values), unit, n=len(values))
    return _metric_of_coarse_bin(name, runs) or Metric(_geometric_mean(values), unit, n=len(values))


def _is_percentile_missing_in_some_runs(
    name: str, values: Sequence[float], runs: Sequence[RunResult]
) -> bool:
    """Whether some of the runs had too few I/Os for a percentile.

    Beside the mean of all of them it would be that of other runs.
    """
    if metric_spec(name).combine is not CombineRule.QUANTILE:
        return False
    mean = f"{name[: name.rindex('_ns_')]}_ns_mean" if "_ns_" in name else name
    return len(values) < len(finite_metric_values(runs, mean))


def _metric_of_coarse_bin(name: str, runs: Sequence[RunResult]) -> Metric | None:
    """Of a single run a value that is known to a coarse bin, with the edges of this."""
    figures = [run.metrics[name] for run in runs if finite_metric_value(run, name) is not None]
    return figures[0] if len(figures) == 1 and figures[0].has_bin_edge_interval else None


def _geometric_mean(values: Sequence[float]) -> float:
    """The geometric mean; of one value that value, to its last digit."""
    return values[0] if len(values) == 1 else math.exp(math.fsum(logarithms(values)) / len(values))


def _common_log_bias_allowance(name: str, runs: Iterable[RunResult]) -> float:
    """What every run may be off by alike."""
    return BIAS_ALLOWANCE + pooled_log_bin_error(name, runs)


def pooled_log_bin_error(metric_key: str, runs: Iterable[RunResult]) -> float:
    """How far values of a metric may be off for the bins that they are read from, a log ratio.

    Bins that an engine has of its own say how wide they are by each value's bounds.
    """
    if metric_spec(metric_key).combine is not CombineRule.QUANTILE:
        return 0.0
    figures = (run.metrics.get(metric_key) for run in runs)
    widths = [
        _bin_log_half_width(figure)
        for figure in figures
        if figure is not None and figure.has_bin_edge_interval
    ]
    return max(widths, default=BIN_ERROR)


def _bin_log_half_width(metric: Metric) -> float:
    """From a value to the further edge of its bin, which may begin at 0."""
    if metric.value is None or metric.low is None or metric.high is None or metric.value <= 0:
        return BIN_ERROR
    return math.log(max(metric.high / metric.value, metric.value / max(metric.low, 1.0)))


class SentinelAlarm(Record):
    """The sentinel moved: by `log_ratio`, a log ratio, between the runs of these orders.

    The runs after `last_trusted_order` and before `moved_order` are in doubt; `moved_order` itself
    is the new state of the ground.
    """

    movement: SentinelShiftForm
    log_ratio: float
    last_trusted_order: int
    moved_order: int


def sentinel_point(study: Study) -> Point | None:
    """The point that a study measures again and again; None for the fixed method."""
    able = [item for item in study.workloads if item.job.can_end_by_rule]
    wanted = [item for item in able if item.id == study.method.sentinel] or able
    if not study.method.chooses_repeats_by_results or not wanted:
        return None
    points = [point for point in expand_points(study) if point.workload == wanted[0].id]
    headline = wanted[0].search_goal.headline_loads
    chosen = [p for p in points if headline and headline[0] in dict(p.axis_values).values()]
    return (chosen or points)[0]


def sentinel_alarms(results: Sequence[RunResult], study: Study) -> tuple[SentinelAlarm, ...]:
    """Every time that the sentinel moved. Results of one session, in any order."""
    point = sentinel_point(study)
    if point is None:
        return ()
    metric = study.workload(point.workload).headline_or_rate_metric
    moved: list[SentinelAlarm] = []
    series: list[float] = []
    last = 0
    ordered = sorted((r for r in results if r.order), key=lambda result: result.order)
    for index, result in enumerate(ordered):
        values = positive_metric_values([result], metric) if result.digest == point.digest else []
        if not values or result.status is not RunStatus.DONE:
            continue
        series += values
        state = judge_sentinel(series, run_to_run_log_sd(ordered[: index + 1], metric))
        if state.movement is not SentinelShiftForm.STILL:
            moved.append(SentinelAlarm(state.movement, state.change, last, result.order))
            series = values
        last = result.order
    return tuple(moved)


def run_to_run_log_sd(results: Sequence[RunResult], metric_key: str) -> float:
    """The standard deviation of ln of a metric between runs of a point, pooled over all points.

    Neighbouring runs are compared, so that ground that moves adds little to it.
    """
    runs: dict[str, list[float]] = {}
    for result in results:
        if result.status is RunStatus.DONE:
            runs.setdefault(result.digest, []).extend(positive_metric_values([result], metric_key))
    total, df = SD_UNKNOWN**2 * SD_UNKNOWN_DF, SD_UNKNOWN_DF
    for values in runs.values():
        squares = sorted(math.log(b / a) ** 2 / 2 for a, b in pairwise(values))
        # The largest step may be the very move that is looked for.
        kept = squares[:-1] if len(squares) > 1 else []
        total += sum(kept)
        df += len(kept)
    return math.sqrt(total / df)


def results_with_sentinel_checks(
    results: Sequence[RunResult], study: Study
) -> tuple[RunResult, ...]:
    """The results; those that were measured while the sentinel moved say so, and are indicative."""
    moves = sentinel_alarms(results, study)
    if not moves:
        return tuple(results)
    return tuple(
        result.with_session_check(
            _sentinel_check(
                next(
                    (
                        alarm
                        for alarm in moves
                        if alarm.last_trusted_order < result.order < alarm.moved_order
                    ),
                    None,
                )
            )
        )
        for result in results
    )


def sentinel_alarm_sentence(alarm: SentinelAlarm) -> str:
    """The alarm as a sentence."""
    how = "jumped" if alarm.movement is SentinelShiftForm.JUMPED else "drifted"
    change = percent_text(math.expm1(alarm.log_ratio), is_signed=True)
    return (
        f"The sentinel {how} by {change} between runs {alarm.last_trusted_order} and "
        f"{alarm.moved_order}."
    )


def _sentinel_check(alarm: SentinelAlarm | None) -> CheckResult | None:
    if alarm is None:
        return None
    evidence = {
        "change": alarm.log_ratio,
        "after": alarm.last_trusted_order,
        "at": alarm.moved_order,
    }
    message = (
        f"{sentinel_alarm_sentence(alarm)} What this run measured may not be what the others did."
    )
    return CheckResult(SENTINEL_CHECK_CODE, VerdictLevel.INDICATIVE, message, evidence)
