"""What a session's points say of a load that it did not measure, each curve by itself. Pure.

A prediction is of measured points alone and never stands among them. It goes as far as twice the
largest measured load; further only who asks for it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from statistics import stdev
from typing import Final

from iolab.analysis.points import (
    AxisValues,
    PointSummary,
    axis_values_without,
    curves_along_load_axis,
    positive_metric_values,
)
from iolab.core.host import HostRole
from iolab.core.metric import VerdictLevel, worst_verdict_level
from iolab.core.metric_spec import metric_spec
from iolab.core.resources import ResourceUse, RunResources
from iolab.core.study import Study
from iolab.core.workload import Workload
from iolab.record import Record
from iolab.stats.scaling import POINTS_MIN, REACH, MeasuredLoad, Prediction, predict_rate

HOSTS = "hosts"

REPEATS_MIN: Final = 2
"""Runs that a load needs: one does not tell how far it differs from the next."""

ResourceReader = Callable[[PointSummary], RunResources | None]
"""What a point's run tells of its resources; None where that is not known."""


class CurvePrediction(Record):
    """A curve, and what it says of the load that was requested, or the `reason` why nothing.

    `fixed_axis_values` are the values of its other axes, `measured_loads` its loads with rates.
    `limiting_use` is the resource whose use sets the prediction's limit. `verdict_level` is the
    worst verdict behind it, `min_run_count` the smallest number of runs of a load.
    """

    configuration: str
    workload: str
    fixed_axis_values: AxisValues
    metric: str
    measured_loads: tuple[MeasuredLoad, ...]
    verdict_level: VerdictLevel
    prediction: Prediction | None
    limiting_use: ResourceUse | None
    reason: str
    min_run_count: int

    @property
    def unit(self) -> str:
        """The unit of its rates."""
        return metric_spec(self.metric).unit


def predict_curves(
    study: Study,
    points: Sequence[PointSummary],
    axis_name: str,
    requested_load: int,
    resources_of_point: ResourceReader,
    *,
    allow_any_distance: bool,
) -> tuple[CurvePrediction, ...]:
    """Every curve over that axis, in the study's order of workloads."""
    return tuple(
        _predict_curve(
            workload,
            curve,
            axis_name,
            requested_load,
            resources_of_point,
            allow_any_distance=allow_any_distance,
        )
        for workload in study.workloads
        for curve in _curves_over_axis(workload, points, axis_name)
    )


def _curves_over_axis(
    workload: Workload, points: Sequence[PointSummary], axis_name: str
) -> Iterator[tuple[PointSummary, ...]]:
    """Points that differ in that axis alone, by load."""
    of_workload = (point for point in points if point.key.workload == workload.id)
    return (curve for _, curve in curves_along_load_axis(of_workload, axis_name))


def _predict_curve(
    workload: Workload,
    curve: Sequence[PointSummary],
    axis_name: str,
    requested_load: int,
    resources_of_point: ResourceReader,
    *,
    allow_any_distance: bool,
) -> CurvePrediction:
    metric = workload.rate_metric
    used = [point for point in curve if point.is_trusted and point.metric_value(metric)]
    measured = tuple(_measured_load(point, axis_name, metric) for point in used)
    single = sum(_run_count_behind_rate(point, metric) < REPEATS_MIN for point in used)
    reason = _no_prediction_reason(
        measured, requested_load, single, allow_any_distance=allow_any_distance
    )
    busiest = None
    prediction = None
    if not reason:
        busiest = (
            _limiting_resource(resources_of_point(used[-1]), axis_name)
            if requested_load > measured[-1].load
            else None
        )
        limit = None
        if busiest is not None and busiest.share:
            # A resource that was used to that share leaves so much more, and no more.
            limit = measured[-1].rate / min(busiest.share, 1.0)
        prediction = predict_rate(measured, requested_load, limit)
    return CurvePrediction(
        configuration=curve[0].key.configuration,
        workload=workload.id,
        fixed_axis_values=axis_values_without(curve[0].key.axis_values, axis_name),
        metric=metric,
        measured_loads=measured,
        verdict_level=worst_verdict_level(point.verdict_level for point in used or curve),
        prediction=prediction,
        limiting_use=busiest,
        reason=reason,
        min_run_count=min((_run_count_behind_rate(point, metric) for point in used), default=0),
    )


def _run_count_behind_rate(point: PointSummary, metric_key: str) -> int:
    """How many runs its rate is the mean of."""
    return point.metrics[metric_key].n or 1


def _no_prediction_reason(
    measured: Sequence[MeasuredLoad],
    load: int,
    single_run_load_count: int,
    *,
    allow_any_distance: bool,
) -> str:
    """Why nothing is predicted, so many loads having a single run; empty where it is."""
    if any(point.load == load for point in measured):
        return "it was measured: see 'iolab show'"
    if len(measured) < POINTS_MIN:
        loads = "load has" if len(measured) == 1 else "loads have"
        return f"{len(measured) or 'no'} {loads} a sound rate, at least {POINTS_MIN} are needed"
    if single_run_load_count:
        return (
            f"{single_run_load_count} of {len(measured)} loads have n=1, which does not tell "
            f"how far runs differ; measure each {REPEATS_MIN} times, better 3"
        )
    if load < measured[0].load:
        return f"{load} is below the smallest measured load, {measured[0].load:g}"
    if load > REACH * measured[-1].load and not allow_any_distance:
        return (
            f"{load} is more than {REACH:g} times the largest measured load, "
            f"{measured[-1].load:g}; --extrapolate goes there all the same"
        )
    return ""


def _limiting_resource(resources: RunResources | None, axis_name: str) -> ResourceUse | None:
    """The busiest resource that does not grow with the load, of those whose use is known.

    More hosts bring processors and ports of their own; what they share are the storage's nodes.
    """
    if resources is None:
        return None
    shared = [
        use
        for use in resources.uses
        if use.share
        and (axis_name != HOSTS or use.role is not HostRole.CLIENT)
        and _is_limiting_when_full(use)
    ]
    return max(shared, key=lambda use: use.share or 0.0, default=None)


def _is_limiting_when_full(resource_use: ResourceUse) -> bool:
    """Whether a share near 1 is a limit: a device that works in parallel is busy long before."""
    return resource_use.resource.value in {"port", "processors"}


def _measured_load(point: PointSummary, axis_name: str, metric_key: str) -> MeasuredLoad:
    figure = point.metrics[metric_key]
    values = positive_metric_values(point.results, metric_key)
    width = 0.0
    if figure.low is not None and figure.high is not None and figure.low > 0:
        width = math.log(figure.high / figure.low) / 2
    return MeasuredLoad(
        load=point.load_on_axis(axis_name),
        rate=point.metric_value(metric_key) or 0.0,
        log_rate_sd=stdev(map(math.log, values)) if len(values) > 1 else 0.0,
        run_count=max(len(values), 1),
        relative_half_width=width,
    )
