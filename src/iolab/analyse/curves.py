"""What a session's results say of load: curves with what was not measured, peaks, highest loads.

Pure, and made anew whenever results are read: nothing of it is stored. A curve has its measured
loads and, from a Gaussian process through these, the others of its axis with intervals; a predicted
load is never a headline figure.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from iolab.analyse.agenda.log import Log, figure_of, rate_of
from iolab.analyse.agenda.parts import axis_of, peak_of, trail_of
from iolab.analyse.method import usl
from iolab.analyse.method.axis import CurvePoint
from iolab.analyse.method.curve import Place, crossing_load, knee, saturation
from iolab.analyse.method.peak import Peak
from iolab.analyse.method.search import LoadLimit
from iolab.analyse.points import positive_values
from iolab.model.metric import Result
from iolab.model.objective import Limit, Objective
from iolab.model.study import Study
from iolab.model.workload import Job
from iolab.plan.searches import Search, curves_of, searches_of
from iolab.plan.sweep import expand

DRAWS: Final = 400
"""Curves drawn for the intervals of a knee: its load is one of few, so more tell no more."""

POINTS_MIN: Final = 4
"""Of fewer measured loads a curve says nothing."""


@dataclass(frozen=True, slots=True)
class Curve:
    """Rate over load: every load of the axis, measured or predicted, and where it bends.

    `metric` is the rate's key. `bound_at` is the load at which the bounds by Little's law meet,
    None without a latency at the smallest load. `law` is the USL where it describes the curve.
    """

    search: Search
    metric: str
    points: tuple[CurvePoint, ...]
    saturation: Place | None
    knee: Place
    bound_at: float | None
    law: usl.Usl | None

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
    limit: Limit
    found: LoadLimit
    saturation: float


@dataclass(frozen=True, slots=True)
class Findings:
    """All that results say of load."""

    curves: tuple[Curve, ...]
    peaks: tuple[PeakFound, ...]
    loads: tuple[LoadFound, ...]


def findings(study: Study, results: Sequence[Result]) -> Findings:
    """The findings of a session; runs that went without a host do not enter."""
    log = Log(study, (result for result in results if not result.without))
    log.look()
    seen = {result.digest for result in log.results}
    points = [point for point in expand(study) if isinstance(point.job, Job)]
    searches = [s for s in searches_of(study, points) if _is_begun(s, seen)]
    lines = [s for s in curves_of(study, points) if _is_begun(s, seen)]
    curves = (_curve(study, search, log) for search in lines)
    loads = (_load(s, log) for s in _of(searches, Objective.MAX_LOAD))
    return Findings(
        tuple(curve for curve in curves if curve is not None),
        tuple(
            PeakFound(s, figure_of(s.workload) or "iops", peak_of(s, log).peak())
            for s in _of(searches, Objective.PEAK)
            if any(log.values(p.digest, figure_of(s.workload) or "") for p in s.points.values())
        ),
        tuple(load for load in loads if load is not None),
    )


def _of(searches: Iterable[Search], objective: Objective) -> list[Search]:
    return [search for search in searches if search.workload.aim.objective is objective]


def _is_begun(search: Search, seen: set[str]) -> bool:
    return any(point.digest in seen for point in search.points.values())


def _curve(study: Study, search: Search, log: Log) -> Curve | None:
    axis = axis_of(study, search, log)
    if axis is None or len(axis.measured) < POINTS_MIN:
        return None
    points = axis.points()
    loads = [point.load for point in points]
    curves = axis.draws(DRAWS)
    measured = [point for point in points if point.measured]
    law = usl.fit(
        [point.load for point in measured],
        [point.rate for point in measured],
        [np.log(point.high / point.low) / 2 for point in measured],
    )
    return Curve(
        search=search,
        metric=rate_of(search.workload),
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
    if not positive_values(runs, rate_of(search.workload)):
        return None
    largest = max(point.rate for point in measured)
    return crossing_load(least.load / least.rate, largest)


def _load(search: Search, log: Log) -> LoadFound | None:
    trail, limit = trail_of(search, log), search.workload.aim.limit
    if trail is None or limit is None or len(trail.runs) <= 2:
        return None
    return LoadFound(search, limit, trail.answer, trail.saturation)
