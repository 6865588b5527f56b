"""What a session's results say of load: curves with what was not measured, peaks, highest loads.

Pure, and made anew whenever results are read: nothing of it is stored. A curve has its measured
loads and, from a Gaussian process through these, the others of its axis with intervals; a predicted
load is never a headline figure.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from iolab.core.configuration import LatencyLimit
from iolab.core.metric import Result
from iolab.core.study import Study
from iolab.study.schedule import Search, curves_of, expand, searches_of

if TYPE_CHECKING:
    from iolab.stats.curve import CurvePoint, LoadEstimate, Usl
    from iolab.stats.search import LoadLimit, Peak

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
    whole = [result for result in results if not result.without]
    seen = {result.digest for result in whole}
    points = [point for point in expand(study) if point.data_set]
    searches = [s for s in searches_of(study, points) if _measured(s, seen)]
    lines = [s for s in curves_of(study, points) if _measured(s, seen) >= POINTS_MIN]
    if not searches and not lines:
        return Findings((), (), ())
    from iolab.analysis import fits  # and numpy, which most results need for nothing else

    return fits.findings_of(study, whole, searches, lines)


def _measured(search: Search, seen: set[str]) -> int:
    """How many of its points have a run."""
    return sum(point.digest in seen for point in search.points.values())
