"""The fits behind `curves.findings`: curves through measured loads, peaks, highest loads. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

import numpy as np

from iolab.analysis.adaptive import (
    ListedLoadProgress,
    RunResultLog,
    adaptive_curve_from_log,
    is_run_of_max_load_search,
    max_load_progress_from_log,
    peak_search_from_log,
)
from iolab.analysis.findings import (
    POINTS_MIN,
    ListedLoadFinding,
    LoadCurve,
    LoadFindings,
    MaxLoadFinding,
    PeakSearchFinding,
)
from iolab.analysis.points import positive_metric_values
from iolab.core.configuration import Objective
from iolab.core.metric import RunResult, VerdictLevel
from iolab.core.study import Study
from iolab.stats.curve import CurvePoint, bounds_crossing_load, fit_usl, knee_load, saturation_load
from iolab.study.schedule import SearchSpace

DRAWS: Final = 400
"""Curves drawn for the intervals of a knee: its load is one of few, so more tell no more."""


def fit_load_findings(
    study: Study,
    results: Iterable[RunResult],
    searches: Sequence[SearchSpace],
    single_axis_searches: Iterable[SearchSpace],
) -> LoadFindings:
    """What results say of the searches, and of the lines along one axis of load."""
    log = RunResultLog(study, results)
    log.update_sentinel_alarms()
    curves = (_fit_load_curve(study, search, log) for search in single_axis_searches)
    max_loads = _searches_with_objective(searches, Objective.MAX_LOAD)
    loads = (_max_load_finding(s, log) for s in max_loads if not s.axes)
    listed = (_max_listed_load_finding(s, log) for s in max_loads if s.axes)
    return LoadFindings(
        tuple(curve for curve in curves if curve is not None),
        tuple(
            _peak_search_finding(s, log)
            for s in _searches_with_objective(searches, Objective.PEAK)
            if any(
                log.metric_values(p.digest, s.workload.headline_or_rate_metric)
                for p in s.point_by_grid_point.values()
            )
        ),
        tuple(load for load in loads if load is not None),
        tuple(load for load in listed if load is not None),
    )


def _searches_with_objective(
    searches: Iterable[SearchSpace], objective: Objective
) -> list[SearchSpace]:
    return [search for search in searches if search.workload.search_goal.objective is objective]


def _fit_load_curve(
    study: Study, search: SearchSpace, result_log: RunResultLog
) -> LoadCurve | None:
    axis = adaptive_curve_from_log(study, search, result_log)
    if axis is None or len(axis.measured_loads) < POINTS_MIN:
        return None
    points = axis.curve_points()
    loads = [point.load for point in points]
    curves = axis.sample_rate_curves(DRAWS)
    measured = [point for point in points if point.is_measured]
    law = fit_usl(
        [point.load for point in measured],
        [point.rate for point in measured],
        [np.log(point.high / point.low) / 2 for point in measured],
    )
    return LoadCurve(
        search=search,
        metric=search.workload.rate_metric,
        points=points,
        saturation=saturation_load(loads, curves),
        knee=knee_load(loads, curves),
        bounds_crossing_load=_bounds_crossing_load(search, result_log, measured),
        usl_fit=law if law.fits_well else None,
    )


def _bounds_crossing_load(
    search: SearchSpace, result_log: RunResultLog, measured: Sequence[CurvePoint]
) -> float | None:
    """Where N / R_min meets X_max, in units of the axis, by the smallest load's own rate."""
    least = min(measured, key=lambda point: point.load)
    runs = result_log.runs_of_point(search.point_by_grid_point[(least.load,)].digest)
    if not positive_metric_values(runs, search.workload.rate_metric):
        return None
    largest = max(point.rate for point in measured)
    return bounds_crossing_load(least.load / least.rate, largest)


def _peak_search_finding(search: SearchSpace, result_log: RunResultLog) -> PeakSearchFinding:
    peak = peak_search_from_log(search, result_log).best_point()
    runs = result_log.runs_of_point(search.point_by_grid_point[peak.point].digest)
    return PeakSearchFinding(
        search, search.workload.headline_or_rate_metric, peak, len(runs), _invalid_run_count(runs)
    )


def _invalid_run_count(runs: Iterable[RunResult]) -> int:
    return sum(run.verdict.level is VerdictLevel.INVALID for run in runs)


def _max_load_finding(search: SearchSpace, result_log: RunResultLog) -> MaxLoadFinding | None:
    trail, limit = (
        max_load_progress_from_log(search, result_log),
        search.workload.search_goal.latency_limit,
    )
    if trail is None or limit is None or len(trail.runs) <= 2:
        return None
    used = [run for run in result_log.results if is_run_of_max_load_search(search, run)]
    return MaxLoadFinding(
        search, limit, trail.max_load_from_all_runs, trail.saturation, _invalid_run_count(used)
    )


def _max_listed_load_finding(
    search: SearchSpace, result_log: RunResultLog
) -> ListedLoadFinding | None:
    progress = ListedLoadProgress(search, result_log)
    if not progress.runs:
        return None
    is_settled = progress.wanted is None
    return ListedLoadFinding(
        search, progress.highest, progress.exceeding, is_settled, progress.runs
    )
