"""All repeats of a point as one: the published value of each metric with its interval. Pure.

Only runs that came to their end and are not invalid enter. A value is exp(mean of ln of the runs'
values), its interval comes from how far the runs differ, with the variance moderated over the
points of the same mix (see `method.between`). Percentiles are treated alike, run by run: they are
never averaged over hosts, nor read from runs thrown together.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from iolab.analyse.key_value.summary import WHOLE_KEY
from iolab.analyse.method.between import BIAS_ALLOWANCE, log_means, publish
from iolab.analyse.method.quantiles import BIN_ERROR
from iolab.analyse.method.variance import (
    NO_PRIOR,
    Prior,
    Spread,
    Strata,
    fit_strata,
    own_spread,
)
from iolab.analyse.sittings import session_of
from iolab.model.key_value import KeyValueJob
from iolab.model.metric import Level, Metric, Result
from iolab.model.rule import SeriesStatus
from iolab.model.run import RunStatus
from iolab.model.study import Study
from iolab.model.workload import Indicator, Job, Workload
from iolab.model.ycsb import YcsbJob

Axis = tuple[tuple[str, int | str], ...]

NO_REPLICATE: Final = "n=1: no replicate"
"""A single run has no spread of its own; an interval beside this is borrowed from other points."""

REPLICATED: Final = 2
"""Runs of a point from which on its spread is known."""

_MIX_AXIS: Final = "rwmixread"

FIGURES: Final[Mapping[Indicator, str]] = {
    Indicator.IOPS: "iops",
    Indicator.BANDWIDTH: "bw_bytes_per_s",
    Indicator.LATENCY: "lat_ns_mean",
    Indicator.KEY_OPERATIONS: WHOLE_KEY,
}
"""The metric that is a workload's headline figure; metadata load has one for each operation."""


@dataclass(frozen=True, slots=True)
class PointKey:
    """What tells points apart; `without` are hosts that were left out after they had failed."""

    configuration: str
    workload: str
    axis: Axis
    without: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PointSummary:
    """A point's repeats together.

    `results` are the runs that entered, by repeat, and `left_out` those that did not. Where none
    may enter, `trusted` is False and the values are those of all runs that have any, without
    intervals. A metric's `n` is how many runs its value rests on. `level` is the worst verdict of
    the runs behind the values.
    """

    key: PointKey
    digest: str
    results: tuple[Result, ...]
    left_out: tuple[Result, ...]
    metrics: Mapping[str, Metric]
    level: Level
    trusted: bool

    @property
    def notes(self) -> tuple[str, ...]:
        """What to know about the intervals: runs left out or not steady, no replicate."""
        alone = (NO_REPLICATE,) if len(self.results) == 1 else ()
        return (*self._left_out(), *self._unsteady(), *alone)

    @property
    def statuses(self) -> Mapping[SeriesStatus, int]:
        """How many of the runs that entered have each status of their seconds."""
        return Counter(run.steadiness.status for run in self.results if run.steadiness is not None)

    def _unsteady(self) -> tuple[str, ...]:
        return tuple(
            f"{count} of {len(self.results)} runs {status.value}"
            for status, count in self.statuses.items()
            if status is not SeriesStatus.OK
        )

    def _left_out(self) -> tuple[str, ...]:
        if not self.left_out:
            return ()
        total = len(self.results) + len(self.left_out)
        return (f"{len(self.left_out)} of {total} runs left out",)


def enters(result: Result) -> bool:
    """Whether a run may stand behind a published value."""
    return result.status is RunStatus.DONE and result.verdict.level is not Level.INVALID


def summarise(results: Sequence[Result], study: Study) -> tuple[PointSummary, ...]:
    """Every point among the results, in the order of its first one.

    Of several sessions each point's interval is that which its own session gives it.
    """
    groups = grouped(results)
    priors: dict[PointKey, Priors] = {}
    for session in dict.fromkeys(session_of(runs[0]) for runs in groups.values()):
        own = {key: runs for key, runs in groups.items() if session_of(runs[0]) == session}
        priors |= dict.fromkeys(own, priors_of(own, study))
    return tuple(_summary(key, runs, priors[key]) for key, runs in groups.items())


def grouped(results: Iterable[Result]) -> dict[PointKey, list[Result]]:
    """The results by point, each point's by repeat."""
    found: dict[PointKey, list[Result]] = {}
    for result in results:
        key = PointKey(result.configuration, result.workload, result.axis, result.without)
        found.setdefault(key, []).append(result)
    return {key: sorted(runs, key=lambda run: run.repeat) for key, runs in found.items()}


def positive_values(runs: Iterable[Result], metric: str) -> list[float]:
    """The runs' values of a metric that have a logarithm."""
    return [value for run in runs if (value := value_of(run, metric)) is not None and value > 0]


def value_of(result: Result, metric: str) -> float | None:
    """A run's value of a metric, None where it has none or one that is not finite."""
    found = result.metrics.get(metric)
    if found is None or found.value is None or not math.isfinite(found.value):
        return None
    return found.value


def is_quantile(metric: str) -> bool:
    """Whether a metric is a latency percentile, read from bins and known no better than those."""
    return "lat_ns_p" in metric


@dataclass(frozen=True, slots=True)
class Priors:
    """What each point's stratum says of the spread of each metric over runs.

    A stratum is a kind of load (I/O, metadata, keys) with one mix of reads and writes. A point that
    has too few siblings has the prior of its kind, or none.
    """

    places: Mapping[PointKey, tuple[str, ...]]
    strata: Mapping[tuple[str, str], Strata]
    """By kind of load and metric."""

    def of(self, key: PointKey, metric: str) -> Prior:
        """The prior of a point that these are the priors of."""
        kind, *mix = self.places[key]
        strata = self.strata.get((kind, metric))
        return NO_PRIOR if strata is None else strata.of(tuple(mix))


def priors_of(groups: Mapping[PointKey, Sequence[Result]], study: Study) -> Priors:
    """The priors of these points. One that has a single run says nothing, and asks nothing here."""
    workloads = {workload.id: workload for workload in study.workloads}
    places = {key: _place(workloads.get(key.workload), key) for key in groups}
    cells: dict[tuple[str, str], list[tuple[tuple[str, ...], Spread]]] = {}
    for key, runs in groups.items():
        used = [run for run in runs if enters(run)]
        if len(used) < REPLICATED:
            continue
        kind, *mix = places[key]
        for metric in dict.fromkeys(name for run in used for name in run.metrics):
            values = positive_values(used, metric)
            if len(values) >= REPLICATED:
                spread = own_spread(log_means(values))
                cells.setdefault((kind, metric), []).append((tuple(mix), spread))
    return Priors(places, {place: fit_strata(spreads) for place, spreads in cells.items()})


def _place(workload: Workload | None, key: PointKey) -> tuple[str, ...]:
    """Where a point stands among the others: its kind of load, then its mix."""
    job = None if workload is None else workload.job
    if isinstance(job, KeyValueJob):
        return ("keys", f"{job.workload}{job.read_percent}")
    if isinstance(job, YcsbJob):
        return ("keys", " ".join(f"{one.key}{share:g}" for one, share in job.mix))
    if not isinstance(job, Job):
        return ("other", key.workload)
    mix = dict(key.axis).get(_MIX_AXIS, job.read_percent) if job.access.mixed else ""
    return ("io", f"{job.access.value}{mix}")


def _summary(key: PointKey, runs: Sequence[Result], priors: Priors) -> PointSummary:
    used = tuple(run for run in runs if enters(run))
    shown = used or tuple(run for run in runs if _has_values(run)) or tuple(runs)
    units = {name: metric.unit for run in shown for name, metric in run.metrics.items()}
    return PointSummary(
        key=key,
        digest=runs[0].digest,
        results=used,
        left_out=tuple(run for run in runs if run not in used),
        metrics={
            name: _published(name, unit, used, priors.of(key, name))
            if used
            else _unpublished(name, unit, shown)
            for name, unit in units.items()
        },
        level=max((run.verdict.level for run in shown), key=lambda level: level.rank),
        trusted=bool(used),
    )


def _has_values(run: Result) -> bool:
    return any(metric.value is not None for metric in run.metrics.values())


def _published(name: str, unit: str, runs: Sequence[Result], prior: Prior) -> Metric:
    """One metric over the runs; values of zero have no logarithm, so they get no interval."""
    beyond = _beyond(name, unit, runs)
    if beyond is not None:
        return beyond
    values = _values(runs, name)
    if not values or min(values) <= 0 or _is_extreme(name):
        return _unpublished(name, unit, runs)
    found = publish(values, prior, allowance=_allowance(name, runs))
    if found.low is None and (single := _in_bin(name, runs)):
        return single
    return Metric(_middle(values), unit, found.low, found.high, found.runs)


def _beyond(name: str, unit: str, runs: Sequence[Result]) -> Metric | None:
    """A percentile of which some runs know only that it is "more than" a bound, so is the point's.

    Those runs had the stalls: the others alone would tell of a storage that never stalls. A mean
    with bounds for values is itself a bound.
    """
    found = [run.metrics[name] for run in runs if name in run.metrics]
    least = [one.low if one.value is None else one.value for one in found]
    if all(one.value is not None or one.low is None for one in found):
        return None
    known = [value for value in least if value is not None and value > 0]
    return Metric(None, unit, low=_middle(known), n=len(known)) if known else None


def _unpublished(name: str, unit: str, runs: Sequence[Result]) -> Metric:
    """One metric over the runs without an interval."""
    values = _values(runs, name)
    if not values:
        return Metric(None, unit)
    if _is_extreme(name):
        return Metric(max(values), unit, n=len(values))
    if min(values) <= 0:
        return Metric(math.fsum(values) / len(values), unit, n=len(values))
    return _in_bin(name, runs) or Metric(_middle(values), unit, n=len(values))


def _in_bin(name: str, runs: Sequence[Result]) -> Metric | None:
    """Of a single run a value that is known to a coarse bin, with the edges of this."""
    found = [run.metrics[name] for run in runs if value_of(run, name) is not None]
    return found[0] if len(found) == 1 and found[0].bounded else None


def _middle(values: Sequence[float]) -> float:
    """The geometric mean; of one value that value, to its last digit."""
    return values[0] if len(values) == 1 else math.exp(math.fsum(log_means(values)) / len(values))


def _values(runs: Sequence[Result], name: str) -> list[float]:
    return [value for run in runs if (value := value_of(run, name)) is not None]


def _is_extreme(name: str) -> bool:
    """Of the largest latencies of several runs the largest is the one that was seen."""
    return name.endswith("lat_ns_max")


def _allowance(name: str, runs: Iterable[Result]) -> float:
    """What every run may be off by alike."""
    return BIAS_ALLOWANCE + bin_error(name, runs)


def bin_error(metric: str, runs: Iterable[Result]) -> float:
    """How far values of a metric may be off for the bins that they are read from, a log ratio.

    Bins that an engine has of its own say how wide they are by each value's bounds.
    """
    if not is_quantile(metric):
        return 0.0
    found = [run.metrics[metric] for run in runs if metric in run.metrics]
    return max((_reach(one) for one in found if one.bounded), default=BIN_ERROR)


def _reach(one: Metric) -> float:
    """From a value to the further edge of its bin, which may begin at 0."""
    if one.value is None or one.low is None or one.high is None or one.value <= 0:
        return BIN_ERROR
    return math.log(max(one.high / one.value, one.value / max(one.low, 1.0)))
