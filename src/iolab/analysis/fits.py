"""The fits behind `curves.findings`: curves through measured loads, peaks, highest loads. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

import numpy as np

from iolab.analysis.adaptive import Log, axis_of, peak_of, trail_of
from iolab.analysis.findings import POINTS_MIN, LoadCurve, LoadFindings, LoadFound, PeakFound
from iolab.analysis.points import positive_values
from iolab.core.configuration import Objective
from iolab.core.metric import Result
from iolab.core.study import Study
from iolab.stats.curve import CurvePoint, crossing_load, fit_usl, knee, saturation
from iolab.study.schedule import Search

DRAWS: Final = 400
"""Curves drawn for the intervals of a knee: its load is one of few, so more tell no more."""


def findings_of(
    study: Study, results: Iterable[Result], searches: Sequence[Search], lines: Iterable[Search]
) -> LoadFindings:
    """What results say of the searches, and of the lines along one axis of load."""
    log = Log(study, results)
    log.look()
    curves = (_curve(study, search, log) for search in lines)
    loads = (_load(s, log) for s in _of(searches, Objective.MAX_LOAD))
    return LoadFindings(
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
