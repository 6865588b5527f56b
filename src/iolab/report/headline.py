"""The headline figures: for each workload and configuration the best point, and its verdict.

A point's figure is the mean over its repeats, its verdict the worst of them. The best is looked for
among the points that are not invalid; only if there is none, among the invalid ones.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from iolab.model.configuration import Configuration
from iolab.model.metric import Level, Metric, Result
from iolab.model.study import Study
from iolab.model.workload import Indicator, Workload
from iolab.report.wording import axis_label


@dataclass(frozen=True, slots=True)
class PointFigures:
    """A point's repeats together: `figure` and `latency_*` are means over `results`.

    `low` and `high` are the least and the greatest repeat where there are several.
    """

    results: tuple[Result, ...]
    figure: Metric
    per_host: Metric
    lat_mean: Metric
    lat_tail: Metric
    level: Level

    @property
    def axis(self) -> str:
        """The axis values for people."""
        return axis_label(self.results[0].axis)

    @property
    def host_count(self) -> int:
        """How many hosts made the load."""
        return len(self.results[0].hosts)


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
    """Every workload in every configuration that has results, in the study's order."""
    grouped: dict[tuple[str, str], list[Result]] = {}
    for result in results:
        grouped.setdefault((result.workload, result.configuration), []).append(result)
    return tuple(
        _headline(workload, configuration, grouped[workload.id, configuration.id])
        for workload in study.workloads
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
    return PointFigures(
        results=known,
        figure=_mean(known, key),
        per_host=_mean_per_host(known, key),
        lat_mean=_mean(known, "lat_ns_mean"),
        lat_tail=_mean(known, "lat_ns_p99_5"),
        level=max((result.verdict.level for result in known), key=lambda level: level.rank),
    )


def _value(result: Result, key: str) -> float | None:
    metric = result.metrics.get(key)
    return None if metric is None else metric.value


def _mean(results: Sequence[Result], key: str) -> Metric:
    """The mean over repeats; for one repeat its own interval, for several their range."""
    found = [metric for result in results if (metric := result.metrics.get(key)) is not None]
    values = [metric.value for metric in found if metric.value is not None]
    unit = found[0].unit if found else ""
    if len(values) < len(results) or not values:
        return Metric(None, unit)
    if len(values) == 1:
        return found[0]
    return Metric(math.fsum(values) / len(values), unit, min(values), max(values), len(values))


def _mean_per_host(results: Sequence[Result], key: str) -> Metric:
    """The mean over hosts and repeats of the hosts' own figures."""
    found = [host.metrics.get(key) for result in results for host in result.hosts]
    values = [metric.value for metric in found if metric is not None and metric.value is not None]
    unit = results[0].metrics[key].unit
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
