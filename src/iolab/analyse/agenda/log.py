"""What a session has measured so far, as its agenda sees it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Final

from iolab.analyse.method.between import Published, log_means, publish
from iolab.analyse.points import FIGURES, enters, grouped, priors_of, value_of
from iolab.analyse.sentinels import SD_UNKNOWN, SD_UNKNOWN_DF, Alarm, alarms
from iolab.model.metric import Result
from iolab.model.run import RunStatus
from iolab.model.study import Study
from iolab.model.workload import Indicator, Workload


class Log:
    """The results, each under its point and repeat, in the order in which they came.

    A later attempt takes the place of an earlier one.
    """

    def __init__(self, study: Study, results: Iterable[Result] = ()) -> None:
        self._study = study
        self._runs: dict[tuple[str, int], Result] = {}
        self._workloads = {workload.id: workload for workload in study.workloads}
        self._points: dict[str, dict[int, Result]] = {}
        self._alarms: tuple[Alarm, ...] = ()
        for result in results:
            self.take(result)

    def take(self, result: Result) -> None:
        """Add a result."""
        self._runs[result.digest, result.repeat] = result
        self._points.setdefault(result.digest, {})[result.repeat] = result

    def look(self) -> tuple[Alarm, ...]:
        """See whether the sentinel has moved; what was measured meanwhile no longer counts."""
        self._alarms = alarms(self.results, self._study)
        return self._alarms

    def _doubted(self, run: Result) -> bool:
        return any(alarm.after < run.order < alarm.at for alarm in self._alarms)

    @property
    def results(self) -> tuple[Result, ...]:
        """All of them."""
        return tuple(self._runs.values())

    def of(self, digest: str) -> list[Result]:
        """The runs of a point."""
        return list(self._points.get(digest, {}).values())

    def made(self, digest: str) -> int:
        """How many runs of a point count towards its repeats: none that moved ground spoilt."""
        return sum(1 for run in self.of(digest) if _done(run) and not self._doubted(run))

    def failed(self, digest: str) -> bool:
        """Whether a run of a point has failed for good."""
        return any(run.status is RunStatus.FAILED for run in self.of(digest))

    def dead(self, digest: str, metric: str) -> bool:
        """Whether no use is to be had of a point: a run of it failed, or none has the metric."""
        return self.failed(digest) or bool(self.of(digest) and not self.values(digest, metric))

    def values(self, digest: str, metric: str) -> list[float]:
        """A point's values of a metric, of its trusted runs where there are any."""
        done = [run for run in self.of(digest) if _done(run)]
        sound = [run for run in done if not self._doubted(run)] or done
        return _values([run for run in sound if enters(run)], metric) or _values(sound, metric)

    def sd(self, metric: str, digests: Iterable[str]) -> float:
        """How far runs of one of these points differ: the standard deviation of ln of the metric.

        Pooled over the points, and drawn towards 1 % while there are few repeats.
        """
        total, df = SD_UNKNOWN**2 * SD_UNKNOWN_DF, SD_UNKNOWN_DF
        for digest in digests:
            logs = [math.log(value) for value in self.values(digest, metric)]
            if len(logs) > 1:
                middle = sum(logs) / len(logs)
                total += sum((value - middle) ** 2 for value in logs)
                df += len(logs) - 1
        return math.sqrt(total / df)

    def half_widths(self, digests: Sequence[str]) -> dict[str, float]:
        """Half of the published interval of each point's figure as a share, where it has runs."""
        used = [run for run in self._runs.values() if enters(run) and not self._doubted(run)]
        priors = priors_of(grouped(used), self._study)
        found: dict[str, float] = {}
        for key, runs in grouped(used).items():
            metric = figure_of(self._workloads[key.workload])
            values = _values(runs, metric) if metric else []
            if runs[0].digest in digests and metric and len(log_means_of(values)) > 1:
                made = publish(values, priors.of(key, metric))
                found[runs[0].digest] = _narrower(made, found.get(runs[0].digest))
        return found


def figure_of(workload: Workload) -> str | None:
    """The metric that is a workload's headline; None for metadata load, which has several."""
    return FIGURES.get(workload.indicator)


def rate_of(workload: Workload) -> str:
    """The metric of a workload's throughput."""
    return FIGURES[workload.indicator if workload.indicator in _RATES else Indicator.IOPS]


_RATES: Final = (Indicator.BANDWIDTH, Indicator.KEY_OPERATIONS)
"""Indicators that are rates of their own."""


def log_means_of(values: Sequence[float]) -> Sequence[float]:
    """Logarithms, none of nothing."""
    return log_means(values) if values else ()


def _narrower(made: Published, other: float | None) -> float:
    """Of a point that was measured with and without some hosts the better known is enough."""
    return made.half_width if other is None else min(made.half_width, other)


def _values(runs: Iterable[Result], metric: str) -> list[float]:
    found = (value_of(run, metric) for run in runs)
    return [value for value in found if value is not None and value > 0]


def _done(run: Result) -> bool:
    return run.status is RunStatus.DONE
