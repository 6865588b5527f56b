"""What a session's results say of load: curves with what was not measured, peaks, highest loads.

Pure, and made anew whenever results are read: nothing of it is stored. A curve has its measured
loads and, from a Gaussian process through these, the others of its axis with intervals; a predicted
load is never a headline figure.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from iolab.analysis.adaptive import Log, axis_of, peak_of, trail_of
from iolab.analysis.bottleneck.decision import law_of
from iolab.analysis.pairs import compare_pair, objection
from iolab.analysis.points import Axis, PointSummary, curves, positive_values, priors_of
from iolab.core.configuration import LatencyLimit, Objective
from iolab.core.metric import Metric, Result
from iolab.core.study import Study
from iolab.core.workload import Workload
from iolab.stats.curve import (
    CurvePoint,
    LoadEstimate,
    Usl,
    crossing_load,
    fit_usl,
    knee,
    saturation,
)
from iolab.stats.search import LoadLimit, Peak
from iolab.study.schedule import Search, curves_of, expand, searches_of

DRAWS: Final = 400
"""Curves drawn for the intervals of a knee: its load is one of few, so more tell no more."""

POINTS_MIN: Final = 4
"""Of fewer measured loads a curve says nothing."""


@dataclass(frozen=True, slots=True)
class LoadCurve:
    """Rate over load: every load of the axis, measured or predicted, and where it bends.

    `metric` is the rate's key. `bound_at` is the load at which the bounds by Little's law meet,
    None without a latency at the smallest load. `law` is the USL where it describes the curve.
    """

    search: Search
    metric: str
    points: tuple[CurvePoint, ...]
    saturation: LoadEstimate | None
    knee: LoadEstimate
    bound_at: float | None
    law: Usl | None

    @property
    def axis(self) -> str:
        """The axis of load."""
        return self.search.names[0]


@dataclass(frozen=True, slots=True)
class PeakFound:
    """The best point of a search; `metric` is what it is best in."""

    search: Search
    metric: str
    peak: Peak


@dataclass(frozen=True, slots=True)
class LoadFound:
    """The highest load of the whole fleet (1/s) under a limit, and the maximum without one."""

    search: Search
    limit: LatencyLimit
    found: LoadLimit
    saturation: float


@dataclass(frozen=True, slots=True)
class Findings:
    """All that results say of load."""

    curves: tuple[LoadCurve, ...]
    peaks: tuple[PeakFound, ...]
    loads: tuple[LoadFound, ...]


def findings(study: Study, results: Sequence[Result]) -> Findings:
    """The findings of a session; runs that went without a host do not enter."""
    log = Log(study, (result for result in results if not result.without))
    log.look()
    seen = {result.digest for result in log.results}
    points = [point for point in expand(study) if point.data_set]
    searches = [s for s in searches_of(study, points) if _is_begun(s, seen)]
    lines = [s for s in curves_of(study, points) if _is_begun(s, seen)]
    curves = (_curve(study, search, log) for search in lines)
    loads = (_load(s, log) for s in _of(searches, Objective.MAX_LOAD))
    return Findings(
        tuple(curve for curve in curves if curve is not None),
        tuple(
            PeakFound(s, s.workload.figure, peak_of(s, log).peak())
            for s in _of(searches, Objective.PEAK)
            if any(log.values(p.digest, s.workload.figure) for p in s.points.values())
        ),
        tuple(load for load in loads if load is not None),
    )


def _of(searches: Iterable[Search], objective: Objective) -> list[Search]:
    return [search for search in searches if search.workload.aim.objective is objective]


def _is_begun(search: Search, seen: set[str]) -> bool:
    return any(point.digest in seen for point in search.points.values())


def _curve(study: Study, search: Search, log: Log) -> LoadCurve | None:
    axis = axis_of(study, search, log)
    if axis is None or len(axis.measured) < POINTS_MIN:
        return None
    points = axis.points()
    loads = [point.load for point in points]
    curves = axis.draws(DRAWS)
    measured = [point for point in points if point.measured]
    law = fit_usl(
        [point.load for point in measured],
        [point.rate for point in measured],
        [np.log(point.high / point.low) / 2 for point in measured],
    )
    return LoadCurve(
        search=search,
        metric=search.workload.rate,
        points=points,
        saturation=saturation(loads, curves),
        knee=knee(loads, curves),
        bound_at=_bound_at(search, log, measured),
        law=law if law.describes else None,
    )


def _bound_at(search: Search, log: Log, measured: Sequence[CurvePoint]) -> float | None:
    """Where N / R_min meets X_max, in units of the axis, by the smallest load's own rate."""
    least = min(measured, key=lambda point: point.load)
    runs = log.of(search.points[(least.load,)].digest)
    if not positive_values(runs, search.workload.rate):
        return None
    largest = max(point.rate for point in measured)
    return crossing_load(least.load / least.rate, largest)


def _load(search: Search, log: Log) -> LoadFound | None:
    trail, limit = trail_of(search, log), search.workload.aim.limit
    if trail is None or limit is None or len(trail.runs) <= 2:
        return None
    return LoadFound(search, limit, trail.answer, trail.saturation)


HOSTS: Final = "hosts"
"""The axis of a growing number of hosts."""

LAW_HALF_WIDTH: Final = 0.1
"""Half of a rate's interval up to which a law is held against it: any fits what is not known."""


@dataclass(frozen=True, slots=True)
class ScalingStep:
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
    steps: tuple[ScalingStep, ...]
    law: Usl | None

    @property
    def first(self) -> ScalingStep:
        """That of the fewest hosts."""
        return self.steps[0]

    def ideal(self, hosts: int) -> float:
        """The rate of so many hosts if each gave what each of the fewest does."""
        value = self.first.point.metrics[self.metric].value or 0.0
        return value / self.first.hosts * hosts


def scalings(study: Study, points: Sequence[PointSummary]) -> tuple[Scaling, ...]:
    """Every curve over hosts that make load, in the study's order of workloads."""
    return tuple(
        found for workload in study.workloads for found in _of_workload(study, workload, points)
    )


def _of_workload(
    study: Study, workload: Workload, points: Sequence[PointSummary]
) -> Iterator[Scaling]:
    metric = workload.rate
    known = (point for point in points if point.key.workload == workload.id and point.value(metric))
    for (configuration, fixed), curve in curves(known, HOSTS):
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


def _steps(study: Study, curve: Sequence[PointSummary], metric: str) -> Iterator[ScalingStep]:
    first = curve[0]
    priors = priors_of({point.key: point.results for point in curve}, study)
    yield ScalingStep(first.load(HOSTS), first, Metric(1.0, "share", n=len(first.results)))
    for point in curve[1:]:
        each = first.load(HOSTS) / point.load(HOSTS)
        pair = (first, point)
        if objection(pair, metric) or not (first.trusted and point.trusted):
            values = [one.metrics[metric].value or 0.0 for one in pair]
            yield ScalingStep(
                point.load(HOSTS), point, Metric(values[1] / values[0] * each, "share")
            )
            continue
        ratio = compare_pair(pair, metric, priors.of(first.key, metric), one_session=True)
        low, high = (None if end is None else end * each for end in (ratio.low, ratio.high))
        share = Metric(ratio.ratio * each, "share", low, high, len(point.results))
        yield ScalingStep(point.load(HOSTS), point, share)
