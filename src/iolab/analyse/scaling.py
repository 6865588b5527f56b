"""How a workload's rate grows with the hosts that make its load, held against as many times one.

Efficiency is what each host gives beside what each gave where the hosts were fewest: 100 % is a
target that more hosts do not load more than their share. Only points that differ in nothing but
their number of hosts are held against each other.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from iolab.analyse.limits.step import law_of
from iolab.analyse.method.usl import Usl
from iolab.analyse.pairs import compare_pair, objection
from iolab.analyse.points import Axis, PointSummary, priors_of
from iolab.model.metric import Metric
from iolab.model.study import Study
from iolab.model.workload import Indicator, Job, Workload

HOSTS: Final = "hosts"
"""The axis of a growing number of hosts."""

LAW_HALF_WIDTH: Final = 0.1
"""Half of a rate's interval up to which a law is held against it: any fits what is not known."""


@dataclass(frozen=True, slots=True)
class Step:
    """A point and its number of hosts; `efficiency` is a share of the fewest hosts' rate per host.

    Its interval is that of the ratio of both rates; the fewest hosts have 1 without an interval.
    """

    hosts: int
    point: PointSummary
    efficiency: Metric


@dataclass(frozen=True, slots=True)
class Scaling:
    """A workload of a configuration over its numbers of hosts, ascending; at least two.

    `fixed` are the values of its other axes, `metric` the rate that it is run for. `law` is the
    Universal Scalability Law, None unless every step is well known and described by it.
    """

    workload: Workload
    configuration: str
    fixed: Axis
    metric: str
    steps: tuple[Step, ...]
    law: Usl | None

    @property
    def first(self) -> Step:
        """That of the fewest hosts."""
        return self.steps[0]

    def ideal(self, hosts: int) -> float:
        """The rate of so many hosts if each gave what each of the fewest does."""
        value = self.first.point.metrics[self.metric].value or 0.0
        return value / self.first.hosts * hosts


def scalings(study: Study, points: Sequence[PointSummary]) -> tuple[Scaling, ...]:
    """Every curve over hosts of load of I/O, in the study's order of workloads."""
    return tuple(
        found
        for workload in study.workloads
        if isinstance(workload.job, Job)
        for found in _of_workload(study, workload, points)
    )


def _of_workload(
    study: Study, workload: Workload, points: Sequence[PointSummary]
) -> Iterator[Scaling]:
    metric = "bw_bytes_per_s" if workload.indicator is Indicator.BANDWIDTH else "iops"
    grouped: dict[tuple[str, Axis], list[PointSummary]] = {}
    for point in points:
        metrics = point.metrics.get(metric)
        known = metrics is not None and bool(metrics.value)
        if point.key.workload != workload.id or HOSTS not in dict(point.key.axis) or not known:
            continue
        fixed = tuple(pair for pair in point.key.axis if pair[0] != HOSTS)
        grouped.setdefault((point.key.configuration, fixed), []).append(point)
    for (configuration, fixed), found in grouped.items():
        curve = sorted(found, key=_hosts_of)
        if len(curve) > 1:
            steps = tuple(_steps(study, curve, metric))
            law = law_of(curve, HOSTS, metric) if _are_known(curve, metric) else None
            yield Scaling(workload, configuration, fixed, metric, steps, law)


def _are_known(curve: Sequence[PointSummary], metric: str) -> bool:
    """Whether every interval is narrow enough for a law to be wrong."""
    found = [point.metrics[metric] for point in curve]
    return all(
        one.value is not None
        and one.low is not None
        and one.high is not None
        and one.high - one.low <= 2 * LAW_HALF_WIDTH * one.value
        for one in found
    )


def _steps(study: Study, curve: Sequence[PointSummary], metric: str) -> Iterator[Step]:
    first = curve[0]
    priors = priors_of({point.key: point.results for point in curve}, study)
    yield Step(_hosts_of(first), first, Metric(1.0, "share", n=len(first.results)))
    for point in curve[1:]:
        each = _hosts_of(first) / _hosts_of(point)
        pair = (first, point)
        if objection(pair, metric) or not (first.trusted and point.trusted):
            values = [one.metrics[metric].value or 0.0 for one in pair]
            yield Step(_hosts_of(point), point, Metric(values[1] / values[0] * each, "share"))
            continue
        ratio = compare_pair(pair, metric, priors.of(first.key, metric), one_session=True)
        low, high = (None if end is None else end * each for end in (ratio.low, ratio.high))
        share = Metric(ratio.ratio * each, "share", low, high, len(point.results))
        yield Step(_hosts_of(point), point, share)


def _hosts_of(point: PointSummary) -> int:
    return int(dict(point.key.axis)[HOSTS])
