"""The kinds of statements that results make; each names the runs that it rests on."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from itertools import pairwise
from typing import TYPE_CHECKING, Final, NamedTuple

from iolab.analysis.bottleneck.decision import (
    WORTHWHILE_GAIN_SHARE,
    BottleneckCause,
    BottleneckDecision,
    LoadStep,
    decide_bottleneck,
    load_step_of_best,
    usl_fit_of_curve,
)
from iolab.analysis.points import (
    REPLICATED,
    AxisValues,
    PointSummary,
    axis_values_without,
    best_point_candidates,
    curves_along_load_axis,
    finite_metric_value,
    finite_metric_values,
)
from iolab.analysis.quotients import (
    BestValue,
    Quotient,
    capacity_quotients,
    configurations_without_host_subsets,
    rate_quotients,
)
from iolab.analysis.resume_checks import merged_session_index
from iolab.core.configuration import Configuration, LatencyLimit
from iolab.core.metric import Metric, RunResult, VerdictLevel, worst_verdict_level
from iolab.core.metric_spec import BetterDirection, mean_latency_keys, metric_spec
from iolab.core.resources import RunResources
from iolab.core.run import RunKey
from iolab.core.study import REPEATS_FOR_INTERVAL, Study
from iolab.core.workload import HOSTS_AXIS, AnyJob, Workload
from iolab.record import Record
from iolab.stats.comparison import ComparisonVerdict
from iolab.study.schedule import SearchSpace

if TYPE_CHECKING:
    from iolab.stats.curve import CurvePoint, LoadEstimate, UslFit
    from iolab.stats.search import MaxLoadEstimate, PeakEstimate

CLOSE_RATIO: Final = 1.1
"""Figures are close up to this ratio; beyond it only repeats are too few to tell them apart."""

POINTS_MIN: Final = 4
"""Of fewer measured loads a curve says nothing."""

BEND_LOADS_MIN: Final = 3
"""Two loads are one step: that it does not pay tells of no place where a curve bends."""


RepeatKey = tuple[int, int]
"""The session, where several are one, and the repeat: a block in which all points are measured."""


class BestPointFinding(Record):
    """A configuration's best figure of a workload over all places of its axes.

    `level` is the worst verdict behind it. `indistinguishable_axis_values` are other places whose
    interval reaches into that of the best: they may be as good. `point_count` is of how many it is
    the best, `invalid_point_count` how many more have a value that nothing may be said of.
    `left_out_repeats_text` says that not every repeat of it counts, `values_by_repeat` are those
    that do.
    """

    configuration: str
    workload: str
    metric: str
    axis_values: AxisValues
    value: Metric
    verdict_level: VerdictLevel
    indistinguishable_axis_values: tuple[AxisValues, ...]
    point_count: int
    run_keys: tuple[RunKey, ...]
    invalid_point_count: int = 0
    left_out_repeats_text: str = ""
    values_by_repeat: tuple[tuple[RepeatKey, float], ...] = ()


class LargestSpeedupFinding(Record):
    """The largest gain of a candidate over the baseline that its interval supports.

    `relative_gain` is what a rate is higher by, or a latency lower by, as a share of the
    baseline's, with `low` and `high` of its own interval; it is the largest of `comparison_count`.
    `factor` is how many times as good the candidate is there, `verdict_level` the worst verdict
    behind it.
    """

    baseline: str
    candidate: str
    workload: str
    axis_values: AxisValues
    metric: str
    relative_gain: float
    low: float | None
    high: float | None
    factor: float
    comparison_count: int
    verdict_level: VerdictLevel
    run_keys: tuple[RunKey, ...]


class WinLossFinding(Record):
    """How a candidate's cells of one metric compare with the baseline's: how many of each verdict.

    `skipped_count` could not be compared. Of those that are inconclusive
    `far_apart_counts_by_repeat_count` tells those without an interval that lie too far apart to be
    called close, by how many repeats they were compared by, and `significant_only_alone_count`
    those that may be chance.
    """

    baseline: str
    candidate: str
    metric: str
    verdict_counts: tuple[tuple[ComparisonVerdict, int], ...]
    skipped_count: int
    run_keys: tuple[RunKey, ...]
    far_apart_counts_by_repeat_count: tuple[tuple[int, int], ...] = ()
    significant_only_alone_count: int = 0


class CrossoverFinding(Record):
    """Two configurations each of which leads, by its interval, on a part of one axis of load.

    `low_load_leader` leads at the load `last_low_load`, and `leads_at_all_lower_loads` it where it
    does so at every lower one that was compared; `high_load_leader` leads at the load
    `first_high_load`, and from it on where `leads_at_all_higher_loads`. The shares are what each is
    better by at these loads, as shares of the other's; `verdict_level` is the worst verdict at the
    two.
    """

    low_load_leader: str
    high_load_leader: str
    workload: str
    metric: str
    axis_name: str
    fixed_axis_values: AxisValues
    last_low_load: int
    first_high_load: int
    low_load_relative_lead: float
    high_load_relative_lead: float
    leads_at_all_lower_loads: bool
    leads_at_all_higher_loads: bool
    verdict_level: VerdictLevel
    run_keys: tuple[RunKey, ...]


class KneeFinding(Record):
    """Where more load stops paying: from one load to the next the rate gains less than it costs.

    `rate_ratio` and `latency_ratio` are the ratios from `load` to `next_load`, of rates and of mean
    latencies; `has_single_runs` where either rests on one run, `is_certain` where it holds at the
    worst ends of all four intervals; `verdict_level` is the worst verdict behind it.
    """

    configuration: str
    workload: str
    axis_name: str
    fixed_axis_values: AxisValues
    load: int
    next_load: int
    rate_ratio: float
    latency_ratio: float
    has_single_runs: bool
    is_certain: bool
    verdict_level: VerdictLevel
    run_keys: tuple[RunKey, ...]


class PerUnitFinding(Record):
    """What a configuration gives for what: a best figure, or capacity, over its cost or its size.

    `divisor_unit` is `1000 EUR`, `TB raw`, `TB usable` or `node`; `value` in the figure's unit for
    one of these. `rank` is its place among all configurations, from 1, of `ranked_count` that have
    both. `is_certain` where its interval lies above those of all that are ranked behind it.
    `verdict_level` is the worst verdict behind these, None of capacity.
    """

    configuration: str
    workload: str
    metric: str
    divisor_unit: str
    value: float
    unit: str
    rank: int
    ranked_count: int
    is_certain: bool
    verdict_level: VerdictLevel | None
    run_keys: tuple[RunKey, ...]


class BottleneckFinding(Record):
    """What limits a configuration's best of a workload, at one place of its axes.

    `resources` are what one run of it tells, `decision` what follows from that and from the load's
    last step. `usl_fit` describes the curve where nothing busy explains that it bends.
    `has_phases` says whether runs go through phases, which are compared at one load.
    """

    configuration: str
    workload: str
    axis_values: AxisValues
    decision: BottleneckDecision
    resources: RunResources
    usl_fit: UslFit | None
    verdict_level: VerdictLevel
    run_keys: tuple[RunKey, ...]
    has_phases: bool = False


class BuyerNeed(StrEnum):
    """What somebody may look for first."""

    CAPACITY = "capacity"
    BALANCE = "balance"
    PERFORMANCE = "performance"
    VALUE = "value"
    """Performance for its cost."""


class NeedDimension(Record):
    """One side of a need, and how much of the best configuration's figure this one has.

    `name` is capacity, IOPS, bandwidth or operations; `share_of_best` is 1 for the best.
    """

    name: str
    share_of_best: float


class Recommendation(Record):
    """The configuration that serves a need best, of all that can be compared.

    `lead_factor` is how many times as good it is as `runner_up` by the need's measure: capacity,
    the geometric mean over `workloads`, or the least of its `need_dimensions`. Figures are for
    `cost_divisor_text`: `1000 EUR`, empty without a cost. Of capacity, `terabytes` is the figure
    and `metric` `usable_tb` or `raw_tb`. `is_certain` where its interval lies above those of all
    others, `has_single_runs` where one of them rests on one run. `verdict_level` is the worst
    verdict behind it, None of capacity. `performance_kinds` are the kinds of performance whose
    means it is the mean of, each counting once. `leader_if_workloads_weigh_equally` leads by
    `lead_factor_if_workloads_weigh_equally` where each workload counts once instead; empty where
    that is the same configuration.
    """

    need: BuyerNeed
    configuration: str
    runner_up: str
    lead_factor: float
    cost_divisor_text: str
    compared_configuration_count: int
    is_certain: bool
    has_single_runs: bool
    need_dimensions: tuple[NeedDimension, ...]
    workloads: tuple[str, ...]
    terabytes: float | None
    metric: str
    verdict_level: VerdictLevel | None
    run_keys: tuple[RunKey, ...]
    performance_kinds: tuple[str, ...] = ()
    leader_if_workloads_weigh_equally: str = ""
    lead_factor_if_workloads_weigh_equally: float = 1.0


Finding = (
    BestPointFinding
    | LargestSpeedupFinding
    | WinLossFinding
    | CrossoverFinding
    | KneeFinding
    | PerUnitFinding
    | BottleneckFinding
    | Recommendation
)


class LoadCurve(Record):
    """Rate over load: every load of the axis, measured or predicted, and where it bends.

    `metric` is the rate's key. `bounds_crossing_load` is the load at which the bounds by Little's
    law meet, None without a latency at the smallest load. `usl_fit` is the USL where it describes
    the curve.
    """

    search: SearchSpace
    metric: str
    points: tuple[CurvePoint, ...]
    saturation: LoadEstimate | None
    knee: LoadEstimate
    bounds_crossing_load: float | None
    usl_fit: UslFit | None

    @property
    def axis_name(self) -> str:
        """The axis of load."""
        return self.search.axis_names[0]


class PeakSearchFinding(Record):
    """The best point of a search; `metric` is what it is best in.

    Of its `run_count` runs `invalid_run_count` are invalid.
    """

    search: SearchSpace
    metric: str
    peak: PeakEstimate
    run_count: int = 0
    invalid_run_count: int = 0


class MaxLoadFinding(Record):
    """The highest load of the whole fleet (1/s) under a limit, and the maximum without one.

    Of the runs behind it `invalid_run_count` are invalid.
    """

    search: SearchSpace
    latency_limit: LatencyLimit
    highest_load: MaxLoadEstimate
    saturation_rate: float
    invalid_run_count: int = 0


class ListedLoadFinding(Record):
    """The highest listed load within a limit, and the next that exceeds it; None for none."""

    search: SearchSpace
    highest_load: int | None
    exceeding_load: int | None
    is_search_complete: bool
    run_count: int

    @property
    def axis_name(self) -> str:
        """What rises."""
        return self.search.axis_names[0]


class LoadFindings(Record):
    """All that results say of load."""

    curves: tuple[LoadCurve, ...]
    peaks: tuple[PeakSearchFinding, ...]
    max_loads: tuple[MaxLoadFinding, ...]
    listed_loads: tuple[ListedLoadFinding, ...] = ()


def best_point_findings(study: Study, points: Sequence[PointSummary]) -> Iterator[BestPointFinding]:
    """The best of each workload and configuration that any trusted point supports."""
    for workload, configuration, members in _whole_fleet_points_in_study_order(study, points):
        key = workload.headline_metric
        if key is None:
            continue
        less = metric_spec(key).better is BetterDirection.LOWER
        measured = [point for point in members if point.metric_value(key) is not None]
        trusted = best_point_candidates(workload, measured)
        if not trusted:
            continue
        pick = min if less else max
        best = pick(trusted, key=lambda point: point.metric_value(key) or 0.0)
        others = [point for point in trusted if point is not best]
        yield BestPointFinding(
            configuration=configuration.id,
            workload=workload.id,
            metric=key,
            axis_values=best.key.axis_values,
            value=best.metrics[key],
            verdict_level=best.verdict_level,
            indistinguishable_axis_values=tuple(
                point.key.axis_values for point in others if _do_intervals_overlap(point, best, key)
            ),
            point_count=len(trusted),
            run_keys=run_keys_of_points([best]),
            invalid_point_count=sum(not point.is_trusted for point in measured),
            left_out_repeats_text=best.left_out_repeats_text,
            values_by_repeat=tuple(
                ((merged_session_index(run), run.repeat), value)
                for run in best.results
                if (value := finite_metric_value(run, key)) is not None and value > 0
            ),
        )


def knee_findings(study: Study, points: Sequence[PointSummary]) -> Iterator[KneeFinding]:
    """For each curve over one axis of load, the first step that no longer pays.

    Where none pays from the first load on, the curve bends below what was measured: it has no knee.
    """
    for workload, configuration, members in _whole_fleet_points_in_study_order(study, points):
        rate = workload.headline_metric
        names = [axis.name for axis in workload.sweep if axis.name in workload.job.load_axes]
        if rate is None or metric_spec(rate).better is BetterDirection.LOWER or len(names) != 1:
            continue
        (name,) = names
        for fixed, curve in trusted_curves_by_other_axis_values(members, name):
            bend = _first_unprofitable_step(curve, name, rate)
            if bend is not None:
                point, next_point, gained, waited = bend
                yield KneeFinding(
                    configuration=configuration.id,
                    workload=workload.id,
                    axis_name=name,
                    fixed_axis_values=fixed,
                    load=point.load_on_axis(name),
                    next_load=next_point.load_on_axis(name),
                    rate_ratio=gained,
                    latency_ratio=waited,
                    has_single_runs=min(len(point.results), len(next_point.results)) < REPLICATED,
                    is_certain=_is_knee_at_adverse_interval_ends(point, next_point, name, rate),
                    verdict_level=worst_verdict_level(
                        (point.verdict_level, next_point.verdict_level)
                    ),
                    run_keys=run_keys_of_points([point, next_point]),
                )


def first_knee_load(
    points: Sequence[PointSummary], job: AnyJob, axis_name: str, rate_metric_key: str
) -> int | None:
    """The load from which one curve no longer pays; None where it does, or the axis is no load."""
    if axis_name not in job.load_axes:
        return None
    each = (
        _first_unprofitable_step(curve, axis_name, rate_metric_key)
        for _, curve in trusted_curves_by_other_axis_values(points, axis_name)
    )
    return next((bend.point.load_on_axis(axis_name) for bend in each if bend is not None), None)


def per_cost_and_capacity_findings(
    study: Study, best: Sequence[BestPointFinding]
) -> Iterator[PerUnitFinding]:
    """Bests over cost and size, and capacity over cost, where the study says these.

    What loads the storage of another with fewer hosts was not bought besides.
    """
    owners = configurations_without_host_subsets(study.configurations)
    offers = [
        *rate_quotients(owners, map(_best_value_of_finding, best)),
        *capacity_quotients(owners),
    ]
    for (workload, metric, per), members in _quotients_by_ranking_group(offers).items():
        ranked = sorted(members, key=lambda offer: -(offer.value.value or 0.0))
        levels = [
            member.dividend.verdict_level
            for member in members
            if member.dividend.verdict_level is not None
        ]
        for place, offer in enumerate(ranked):
            behind = ranked[place + 1 :]
            yield PerUnitFinding(
                configuration=offer.dividend.configuration,
                workload=workload,
                metric=metric,
                divisor_unit=per,
                value=offer.value.value or 0.0,
                unit=offer.value.unit,
                rank=place + 1,
                ranked_count=len(ranked),
                is_certain=all(
                    _low_or_minus_infinity(offer.value) > _high_or_infinity(other.value)
                    for other in behind
                ),
                verdict_level=max(levels, key=lambda level: level.rank, default=None),
                run_keys=offer.dividend.run_keys,
            )


def _best_value_of_finding(best: BestPointFinding) -> BestValue:
    return BestValue(
        best.configuration,
        best.workload,
        best.metric,
        best.value,
        best.axis_values,
        best.verdict_level,
        best.run_keys,
    )


def _quotients_by_ranking_group(
    offers: Iterable[Quotient],
) -> dict[tuple[str, str, str], list[Quotient]]:
    by_kind: dict[tuple[str, str, str], list[Quotient]] = {}
    for offer in offers:
        by_kind.setdefault(offer.ranking_group, []).append(offer)
    return by_kind


def trusted_curves_by_other_axis_values(
    points: Iterable[PointSummary], axis_name: str
) -> Iterator[tuple[AxisValues, tuple[PointSummary, ...]]]:
    """The trusted points by the values of their other axes, each ascending in that axis of load."""
    for (_, fixed), members in curves_along_load_axis(
        (point for point in points if point.is_trusted), axis_name
    ):
        yield fixed, members


def run_keys_of_points(points: Iterable[PointSummary]) -> tuple[RunKey, ...]:
    """The runs behind some points."""
    return tuple(run.key for point in points for run in point.results)


def mean_latency_ns(point: PointSummary) -> float | None:
    """A point's mean latency: of the whole load, or of the first operation that has one."""
    metric = _mean_latency_metric(point)
    return None if metric is None else metric.value


def _mean_latency_metric(point: PointSummary) -> Metric | None:
    keys = mean_latency_keys(point.metrics)
    return next((point.metrics[key] for key in keys if point.metric_value(key) is not None), None)


class _CurveStep(NamedTuple):
    """Two neighbouring points of a curve, with the ratios of their rates and latencies."""

    point: PointSummary
    next_point: PointSummary
    rate_ratio: float
    latency_ratio: float


def _first_unprofitable_step(
    curve: Sequence[PointSummary], axis_name: str, rate_metric_key: str
) -> _CurveStep | None:
    """The first step that costs more than it gives; None where every step pays.

    Where the first one does not, either, the bend lies below all that was measured.
    """
    if len(curve) < BEND_LOADS_MIN:
        return None
    for point, next_point in pairwise(curve):
        low, high = point.metric_value(rate_metric_key), next_point.metric_value(rate_metric_key)
        short, long = mean_latency_ns(point), mean_latency_ns(next_point)
        if not (low and high and short and long):
            continue
        more = math.log(next_point.load_on_axis(axis_name) / point.load_on_axis(axis_name))
        if (
            math.log(high / low) < WORTHWHILE_GAIN_SHARE * more
            and math.log(long / short) > WORTHWHILE_GAIN_SHARE * more
        ):
            is_first = point is curve[0]
            return None if is_first else _CurveStep(point, next_point, high / low, long / short)
    return None


def _is_knee_at_adverse_interval_ends(
    lower_load_point: PointSummary,
    higher_load_point: PointSummary,
    axis_name: str,
    rate_metric_key: str,
) -> bool:
    """Whether a step that bends does so, too, at those ends of all intervals that speak against."""
    short, long = _mean_latency_metric(lower_load_point), _mean_latency_metric(higher_load_point)
    if short is None or long is None:
        return False
    least, most = (
        _low_or_minus_infinity(lower_load_point.metrics[rate_metric_key]),
        _high_or_infinity(higher_load_point.metrics[rate_metric_key]),
    )
    before, after = _high_or_infinity(short), _low_or_minus_infinity(long)
    if not (least > 0 and most < math.inf and 0 < before < math.inf and after > 0):
        return False
    more = WORTHWHILE_GAIN_SHARE * math.log(
        higher_load_point.load_on_axis(axis_name) / lower_load_point.load_on_axis(axis_name)
    )
    return math.log(most / least) < more < math.log(after / before)


def _whole_fleet_points_in_study_order(
    study: Study, points: Sequence[PointSummary]
) -> Iterator[tuple[Workload, Configuration, list[PointSummary]]]:
    """The whole fleet's points of each workload and configuration, in the study's order."""
    by_place = _whole_fleet_points_by_workload_and_configuration_ids(points)
    for workload in study.workloads:
        for configuration in study.configurations:
            if members := by_place.get((workload.id, configuration.id)):
                yield workload, configuration, members


def _whole_fleet_points_by_workload_and_configuration_ids(
    points: Sequence[PointSummary],
) -> dict[tuple[str, str], list[PointSummary]]:
    """The whole fleet's points by workload and configuration."""
    by_place: dict[tuple[str, str], list[PointSummary]] = {}
    for point in points:
        if not point.key.excluded_hosts:
            by_place.setdefault((point.key.workload, point.key.configuration), []).append(point)
    return by_place


def _do_intervals_overlap(first: PointSummary, second: PointSummary, metric_key: str) -> bool:
    """Whether the intervals of both meet; without intervals nothing is known to differ."""
    a, b = first.metrics[metric_key], second.metrics[metric_key]
    return _low_or_minus_infinity(a) <= _high_or_infinity(b) and _low_or_minus_infinity(
        b
    ) <= _high_or_infinity(a)


def _low_or_minus_infinity(metric: Metric) -> float:
    return -math.inf if metric.low is None else metric.low


def _high_or_infinity(metric: Metric) -> float:
    return math.inf if metric.high is None else metric.high


def bottleneck_findings(
    study: Study,
    points: Sequence[PointSummary],
    bests: Sequence[BestPointFinding],
    resources_by_run: Mapping[RunKey, RunResources],
) -> Iterator[BottleneckFinding]:
    """What limits each best, of those with a run that was watched."""
    axes = {
        workload.id: [
            axis.name
            for axis in workload.sweep
            if axis.name in (*workload.job.load_axes, HOSTS_AXIS)
        ]
        for workload in study.workloads
    }
    by_place = _whole_fleet_points_by_workload_and_configuration_ids(points)
    for best in bests:
        key = next((run for run in best.run_keys if run in resources_by_run), None)
        if key is None:
            continue
        members = by_place[best.workload, best.configuration]
        point = next(member for member in members if member.key.axis_values == best.axis_values)
        # A latency is best where the load is least: a step from there tells of no limit.
        less = metric_spec(best.metric).better is BetterDirection.LOWER
        names = [] if less else axes.get(best.workload, [])
        step = _worthwhile_or_first_load_step(members, point, names, best.metric)
        rates = [] if less else finite_metric_values(point.results, best.metric)
        decision = decide_bottleneck(resources_by_run[key], step, rates)
        steps = decision.step.run_keys if decision.step else ()
        yield BottleneckFinding(
            configuration=best.configuration,
            workload=best.workload,
            axis_values=best.axis_values,
            decision=decision,
            resources=resources_by_run[key],
            usl_fit=_usl_fit_without_full_resource(members, point, decision, best.metric),
            verdict_level=best.verdict_level,
            run_keys=tuple(dict.fromkeys((key, *steps))),
            has_phases=study.scenario is not None,
        )


class OutlyingRepeat(Record):
    """A repeat far from the others, and the least and the most of what these agree on."""

    repeat: int
    value: float
    others_low: float
    others_high: float


def outlying_repeat(results: Sequence[RunResult], metric_key: str) -> OutlyingRepeat | None:
    """The one of three repeats or more that is not close to the others, which are to each other."""
    values = sorted(
        (value, result.repeat)
        for result in results
        if (value := finite_metric_value(result, metric_key)) is not None and value > 0
    )
    if len(values) < REPEATS_FOR_INTERVAL:
        return None
    for place, nearest in ((0, 1), (-1, -2)):
        value, repeat = values[place]
        others = [other for other, number in values if number != repeat]
        distance = max(value / values[nearest][0], values[nearest][0] / value)
        if distance > CLOSE_RATIO >= max(others) / min(others):
            return OutlyingRepeat(repeat, value, min(others), max(others))
    return None


def _usl_fit_without_full_resource(
    points: Sequence[PointSummary],
    best: PointSummary,
    decision: BottleneckDecision,
    metric_key: str,
) -> UslFit | None:
    """The law of contention of the curve, where nothing that is busy explains it."""
    step = decision.step
    if step is None or decision.cause not in (BottleneckCause.SOFTWARE, BottleneckCause.BEYOND):
        return None
    return usl_fit_of_curve(
        _curve_through_point(points, best, step.axis_name), step.axis_name, metric_key
    )


def _worthwhile_or_first_load_step(
    points: Sequence[PointSummary], best: PointSummary, axis_names: Sequence[str], metric_key: str
) -> LoadStep | None:
    """Of all axes of load the step that still pays; else the first: one way to more is enough."""
    steps = [
        step
        for name in axis_names
        if (
            step := load_step_of_best(
                _curve_through_point(points, best, name), best, name, metric_key
            )
        )
        is not None
    ]
    paying = [step for step in steps if step.is_worthwhile]
    return next(iter((*paying, *steps)), None)


def _curve_through_point(
    points: Sequence[PointSummary], best: PointSummary, axis_name: str
) -> tuple[PointSummary, ...]:
    """The points that differ from the best in that load alone."""
    fixed = axis_values_without(best.key.axis_values, axis_name)
    return next(
        (
            curve
            for other, curve in trusted_curves_by_other_axis_values(points, axis_name)
            if other == fixed
        ),
        (),
    )
