"""What a session's results say of load: curves with what was not measured, peaks, highest loads.

Pure, and made anew whenever results are read: nothing of it is stored. A curve has its measured
loads and, from a Gaussian process through these, the others of its axis with intervals; a predicted
load is never a headline figure.
"""

from __future__ import annotations

from collections.abc import Sequence

from iolab.analysis.findings import POINTS_MIN, LoadFindings
from iolab.core.metric import RunResult
from iolab.core.study import Study
from iolab.study.schedule import (
    SearchSpace,
    adaptive_searches_of_points,
    expand_points,
    grid_load_curve_searches,
)


def session_load_findings(study: Study, results: Sequence[RunResult]) -> LoadFindings:
    """The findings of a session; runs that went without a host do not enter."""
    full_fleet = [result for result in results if not result.excluded_hosts]
    measured = {result.digest for result in full_fleet}
    points = [point for point in expand_points(study) if point.data_set]
    searches = [
        s for s in adaptive_searches_of_points(study, points) if _measured_point_count(s, measured)
    ]
    lines = [
        s
        for s in grid_load_curve_searches(study, points)
        if _measured_point_count(s, measured) >= POINTS_MIN
    ]
    if not searches and not lines:
        return LoadFindings((), (), ())
    from iolab.analysis import fits  # and numpy, which most results need for nothing else

    return fits.fit_load_findings(study, full_fleet, searches, lines)


def _measured_point_count(search: SearchSpace, measured_digests: set[str]) -> int:
    """How many of its points have a run."""
    return sum(point.digest in measured_digests for point in search.point_by_grid_point.values())
