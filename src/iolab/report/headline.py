"""The headline figures: for each workload and configuration the best point, and its verdict.

A point is told by its median repeat, so that all its figures are those of one run: percentiles of
different runs are never averaged. Its verdict is the worst of its repeats. The best point is looked
for among those that are not invalid; only if there is none, among the invalid ones.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from iolab.model.configuration import Configuration
from iolab.model.metric import Level, Metric, Result
from iolab.model.study import Study
from iolab.model.workload import Indicator, Job, Workload
from iolab.report.wording import axis_label

NOT_KNOWN: Final = Metric(None, "")
"""Where a run has no such metric at all."""


@dataclass(frozen=True, slots=True)
class PointFigures:
    """A point's repeats together: every number is that of `shown`, the median repeat.

    Where there are several, `figure` has the least and the greatest of them as `low` and `high`,
    and their number as `n`.
    """

    results: tuple[Result, ...]
    shown: Result
    figure: Metric
    per_host: Metric
    lat_mean: Metric
    lat_tail: Metric
    level: Level

    @property
    def axis(self) -> str:
        """The axis values for people."""
        return axis_label(self.shown.axis)

    @property
    def host_count(self) -> int:
        """How many hosts made the load."""
        return len(self.shown.hosts)


@dataclass(frozen=True, slots=True)
class Headline:
    """One workload in one configuration: `best` is None when no run has a value."""

    workload: Workload
    configuration: Configuration
    best: PointFigures | None
    point_count: int
    unmeasured: int
    """Runs that failed or have no value."""


def figure_key(indicator: Indicator) -> str:
    """The metric that is a workload's headline figure."""
    return {
        Indicator.IOPS: "iops",
        Indicator.BANDWIDTH: "bw_bytes_per_s",
        Indicator.LATENCY: "lat_ns_mean",
    }[indicator]


def headlines(study: Study, results: Sequence[Result]) -> tuple[Headline, ...]:
    """Every workload of I/O in every configuration that has results, in the study's order.

    Metadata load has no single figure: its operations are told by `report.operations`.
    """
    grouped: dict[tuple[str, str], list[Result]] = {}
    for result in results:
        grouped.setdefault((result.workload, result.configuration), []).append(result)
    return tuple(
        _headline(workload, configuration, grouped[workload.id, configuration.id])
        for workload in study.workloads
        if isinstance(workload.job, Job)
        for configuration in study.configurations
        if (workload.id, configuration.id) in grouped
    )


def _headline(workload: Workload, configuration: Configuration, results: list[Result]) -> Headline:
    key = figure_key(workload.indicator)
    points: dict[str, list[Result]] = {}
    for result in results:
        points.setdefault(result.digest, []).append(result)
    measured = [
        figures
        for repeats in points.values()
        if (figures := point_figures(repeats, key)) is not None
    ]
    trusted = [figures for figures in measured if figures.level is not Level.INVALID] or measured
    sign = -1.0 if workload.indicator is Indicator.LATENCY else 1.0
    best = max(trusted, key=lambda figures: sign * (figures.figure.value or 0.0), default=None)
    unmeasured = sum(1 for result in results if _value(result, key) is None)
    return Headline(workload, configuration, best, len(points), unmeasured)


def point_figures(repeats: Sequence[Result], key: str) -> PointFigures | None:
    """The repeats of one point as one; None when none of them has a value of metric `key`."""
    known = tuple(result for result in repeats if _value(result, key) is not None)
    if not known:
        return None
    shown = median_repeat(known, key)
    return PointFigures(
        results=known,
        shown=shown,
        figure=_with_range(shown.metrics[key], known, key),
        per_host=_mean_per_host(shown, key),
        lat_mean=shown.metrics.get("lat_ns_mean", NOT_KNOWN),
        lat_tail=shown.metrics.get("lat_ns_p99_5", NOT_KNOWN),
        level=max((result.verdict.level for result in known), key=lambda level: level.rank),
    )


def median_repeat(repeats: Sequence[Result], key: str) -> Result:
    """The repeat whose metric `key` is the median; of two in the middle the one that flatters less.

    At least one of the repeats must have a value.
    """
    known = [result for result in repeats if _value(result, key) is not None]
    less_is_better = known[0].metrics[key].unit == "ns"
    ordered = sorted(known, key=lambda result: _value(result, key) or 0.0)
    return ordered[len(ordered) // 2 if less_is_better else (len(ordered) - 1) // 2]


def _value(result: Result, key: str) -> float | None:
    metric = result.metrics.get(key)
    return None if metric is None else metric.value


def _with_range(metric: Metric, repeats: Sequence[Result], key: str) -> Metric:
    """The metric with the range of the repeats; of a single one with its own interval."""
    values = [value for result in repeats if (value := _value(result, key)) is not None]
    if len(values) == 1:
        return metric
    return replace(metric, low=min(values), high=max(values), n=len(values))


def _mean_per_host(result: Result, key: str) -> Metric:
    """The mean over the hosts of their own figures."""
    found = [host.metrics.get(key) for host in result.hosts]
    values = [metric.value for metric in found if metric is not None and metric.value is not None]
    unit = result.metrics[key].unit
    return Metric(math.fsum(values) / len(values), unit) if values else Metric(None, unit)


@dataclass(frozen=True, slots=True)
class Tally:
    """How many runs there are of each verdict, and how many did not end well."""

    runs: int
    valid: int
    indicative: int
    invalid: int
    failed: int
    interrupted: int


def tally(results: Sequence[Result]) -> Tally:
    """The runs counted by verdict and by status."""
    levels = [result.verdict.level for result in results]
    states = [result.status.value for result in results]
    return Tally(
        runs=len(results),
        valid=levels.count(Level.VALID),
        indicative=levels.count(Level.INDICATIVE),
        invalid=levels.count(Level.INVALID),
        failed=states.count("failed"),
        interrupted=states.count("interrupted"),
    )
