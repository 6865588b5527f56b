"""How rates grow with the hosts that make load, and what law that follows. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from iolab.analysis.bottleneck.decision import usl_fit_of_curve
from iolab.analysis.pairs import compare_pair_metric, incomparability_reason
from iolab.analysis.points import AxisValues, PointSummary, curves_along_load_axis, fit_point_priors
from iolab.core.metric import Metric
from iolab.core.study import Study
from iolab.core.workload import HOSTS_AXIS, Workload
from iolab.record import Record

if TYPE_CHECKING:
    from iolab.stats.curve import UslFit

LAW_HALF_WIDTH: Final = 0.1
"""Half of a rate's interval up to which a law is held against it: any fits what is not known."""


class ScalingStep(Record):
    """A point and its number of hosts; `efficiency` is a share of the fewest hosts' rate per host.

    Its interval is that of the ratio of both rates; the fewest hosts have 1 without an interval.
    """

    host_count: int
    point: PointSummary
    efficiency: Metric


class HostScaling(Record):
    """A workload of a configuration over its numbers of hosts, ascending; at least two.

    `fixed_axis_values` are the values of its other axes, `metric` the rate that it is run for.
    `usl_fit` is the Universal Scalability Law, None unless every step is well known and described
    by it.
    """

    workload: Workload
    configuration: str
    fixed_axis_values: AxisValues
    metric: str
    steps: tuple[ScalingStep, ...]
    usl_fit: UslFit | None

    @property
    def first_step(self) -> ScalingStep:
        """That of the fewest hosts."""
        return self.steps[0]

    def ideal_rate(self, host_count: int) -> float:
        """The rate of so many hosts if each gave what each of the fewest does."""
        value = self.first_step.point.metrics[self.metric].value or 0.0
        return value / self.first_step.host_count * host_count


def host_scalings(study: Study, points: Sequence[PointSummary]) -> tuple[HostScaling, ...]:
    """Every curve over hosts that make load, in the study's order of workloads."""
    return tuple(
        scaling
        for workload in study.workloads
        for scaling in _scalings_of_workload(study, workload, points)
    )


def _scalings_of_workload(
    study: Study, workload: Workload, points: Sequence[PointSummary]
) -> Iterator[HostScaling]:
    metric = workload.rate_metric
    measured = (
        point
        for point in points
        if point.key.workload == workload.id and point.metric_value(metric)
    )
    for (configuration, fixed), curve in curves_along_load_axis(measured, HOSTS_AXIS):
        if len(curve) > 1:
            steps = tuple(_host_scaling_efficiencies(study, curve, metric))
            law = (
                usl_fit_of_curve(curve, HOSTS_AXIS, metric)
                if _are_intervals_narrow(curve, metric)
                else None
            )
            yield HostScaling(workload, configuration, fixed, metric, steps, law)


def _are_intervals_narrow(curve: Sequence[PointSummary], metric_key: str) -> bool:
    """Whether every interval is narrow enough for a law to be wrong."""
    figures = [point.metrics[metric_key] for point in curve]
    return all(
        figure.value is not None
        and figure.low is not None
        and figure.high is not None
        and figure.high - figure.low <= 2 * LAW_HALF_WIDTH * figure.value
        for figure in figures
    )


def _host_scaling_efficiencies(
    study: Study, curve: Sequence[PointSummary], metric_key: str
) -> Iterator[ScalingStep]:
    first = curve[0]
    priors = fit_point_priors({point.key: point.results for point in curve}, study)
    yield ScalingStep(
        first.load_on_axis(HOSTS_AXIS), first, Metric(1.0, "share", n=len(first.results))
    )
    for point in curve[1:]:
        each = first.load_on_axis(HOSTS_AXIS) / point.load_on_axis(HOSTS_AXIS)
        pair = (first, point)
        if incomparability_reason(pair, metric_key) or not (first.is_trusted and point.is_trusted):
            values = [side.metrics[metric_key].value or 0.0 for side in pair]
            yield ScalingStep(
                point.load_on_axis(HOSTS_AXIS), point, Metric(values[1] / values[0] * each, "share")
            )
            continue
        ratio = compare_pair_metric(
            pair, metric_key, priors.prior_of_point(first.key, metric_key), is_same_session=True
        )
        low, high = (None if end is None else end * each for end in (ratio.low, ratio.high))
        share = Metric(ratio.ratio * each, "share", low, high, len(point.results))
        yield ScalingStep(point.load_on_axis(HOSTS_AXIS), point, share)
