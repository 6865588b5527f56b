"""Findings on one configuration at a time: bests, bends, and figures over cost and size."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Final

from iolab.analyse.findings.finding import Bent, Best, Priced, RunKey
from iolab.analyse.key_value.summary import NAMED_OPERATIONS, latency_key
from iolab.analyse.limits.step import PAYS
from iolab.analyse.points import FIGURES, REPLICATED, Axis, PointSummary
from iolab.analyse.value import Maximum, Quotient, capacities, quotients, whole_ones
from iolab.model.configuration import Configuration
from iolab.model.metric import Metric
from iolab.model.study import Study
from iolab.model.workload import Indicator, Workload
from iolab.plan.searches import SEARCHED

LOADS: Final = (*SEARCHED, "threads")
"""Axes along which load rises."""


def bests(study: Study, points: Sequence[PointSummary]) -> Iterator[Best]:
    """The best of each workload and configuration that any trusted point supports."""
    for workload, configuration, mine in _groups(study, points):
        key = FIGURES.get(workload.indicator)
        if key is None:
            continue
        less = workload.indicator is Indicator.LATENCY
        told = [one for one in mine if _value(one, key) is not None]
        known = [one for one in told if one.trusted]
        if not known:
            continue
        pick = min if less else max
        best = pick(known, key=lambda one: _value(one, key) or 0.0)
        others = [one for one in known if one is not best]
        yield Best(
            configuration=configuration.id,
            workload=workload.id,
            metric=key,
            axis=best.key.axis,
            value=best.metrics[key],
            level=best.level,
            alike=tuple(one.key.axis for one in others if _overlap(one, best, key)),
            places=len(known),
            runs=runs_of([best]),
            invalid=len(told) - len(known),
        )


def bends(study: Study, points: Sequence[PointSummary]) -> Iterator[Bent]:
    """For each curve over one axis of load, the first step that no longer pays."""
    for workload, configuration, mine in _groups(study, points):
        rate = FIGURES.get(workload.indicator)
        names = [axis.name for axis in workload.sweep if axis.name in LOADS]
        if rate is None or workload.indicator is Indicator.LATENCY or len(names) != 1:
            continue
        (name,) = names
        for fixed, curve in curves(mine, name):
            found = _bend(curve, name, rate)
            if found is not None:
                one, other, gained, waited = found
                yield Bent(
                    configuration=configuration.id,
                    workload=workload.id,
                    axis=name,
                    fixed=fixed,
                    load=_load(one, name),
                    further=_load(other, name),
                    rate=gained,
                    latency=waited,
                    single=min(len(one.results), len(other.results)) < REPLICATED,
                    sure=_surely_bends(one, other, name, rate),
                    level=max(one.level, other.level, key=lambda level: level.rank),
                    runs=runs_of([one, other]),
                )


def prices(study: Study, found: Sequence[Best]) -> Iterator[Priced]:
    """Bests over cost and size, and capacity over cost, where the study says these.

    What loads the storage of another with fewer hosts was not bought besides.
    """
    owners = whole_ones(study.configurations)
    offers = [*quotients(owners, map(_maximum, found)), *capacities(owners)]
    for (workload, metric, per), members in _by_kind(offers).items():
        ranked = sorted(members, key=lambda one: -(one.value.value or 0.0))
        levels = [one.of.level for one in members if one.of.level is not None]
        for place, one in enumerate(ranked):
            behind = ranked[place + 1 :]
            yield Priced(
                configuration=one.of.configuration,
                workload=workload,
                metric=metric,
                per=per,
                value=one.value.value or 0.0,
                unit=one.value.unit,
                rank=place + 1,
                of=len(ranked),
                sure=all(_low(one.value) > _high(other.value) for other in behind),
                level=max(levels, key=lambda level: level.rank, default=None),
                runs=one.of.runs,
            )


def _maximum(best: Best) -> Maximum:
    return Maximum(
        best.configuration,
        best.workload,
        best.metric,
        best.value,
        best.axis,
        best.level,
        best.runs,
    )


def _by_kind(offers: Iterable[Quotient]) -> dict[tuple[str, str, str], list[Quotient]]:
    found: dict[tuple[str, str, str], list[Quotient]] = {}
    for one in offers:
        found.setdefault(one.kind, []).append(one)
    return found


def curves(
    points: Iterable[PointSummary], name: str
) -> Iterator[tuple[Axis, tuple[PointSummary, ...]]]:
    """The trusted points by the values of their other axes, each ascending in the load `name`."""
    found: dict[Axis, list[PointSummary]] = {}
    for point in points:
        if point.trusted and name in dict(point.key.axis):
            fixed = tuple(pair for pair in point.key.axis if pair[0] != name)
            found.setdefault(fixed, []).append(point)
    for fixed, members in found.items():
        yield fixed, tuple(sorted(members, key=lambda one: _load(one, name)))


def runs_of(points: Iterable[PointSummary]) -> tuple[RunKey, ...]:
    """The runs behind some points."""
    return tuple((run.digest, run.repeat) for point in points for run in point.results)


def mean_latency(point: PointSummary) -> float | None:
    """A point's mean latency: of I/O, or of the first operation on keys that has one."""
    metric = _mean_latency(point)
    return None if metric is None else metric.value


def _mean_latency(point: PointSummary) -> Metric | None:
    keys = ("lat_ns_mean", *(latency_key(one, "mean") for one in NAMED_OPERATIONS))
    return next((point.metrics[key] for key in keys if _value(point, key) is not None), None)


def _bend(
    curve: Sequence[PointSummary], name: str, rate: str
) -> tuple[PointSummary, PointSummary, float, float] | None:
    for one, other in pairwise(curve):
        low, high = _value(one, rate), _value(other, rate)
        short, long = mean_latency(one), mean_latency(other)
        if not (low and high and short and long):
            continue
        more = math.log(_load(other, name) / _load(one, name))
        if math.log(high / low) < PAYS * more and math.log(long / short) > PAYS * more:
            return one, other, high / low, long / short
    return None


def _surely_bends(one: PointSummary, other: PointSummary, name: str, rate: str) -> bool:
    """Whether a step that bends does so, too, at those ends of all intervals that speak against."""
    short, long = _mean_latency(one), _mean_latency(other)
    if short is None or long is None:
        return False
    least, most = _low(one.metrics[rate]), _high(other.metrics[rate])
    before, after = _high(short), _low(long)
    if not (least > 0 and most < math.inf and 0 < before < math.inf and after > 0):
        return False
    more = PAYS * math.log(_load(other, name) / _load(one, name))
    return math.log(most / least) < more < math.log(after / before)


def _groups(
    study: Study, points: Sequence[PointSummary]
) -> Iterator[tuple[Workload, Configuration, list[PointSummary]]]:
    """The whole fleet's points of each workload and configuration, in the study's order."""
    found: dict[tuple[str, str], list[PointSummary]] = {}
    for point in points:
        if not point.key.without:
            found.setdefault((point.key.workload, point.key.configuration), []).append(point)
    for workload in study.workloads:
        for configuration in study.configurations:
            if mine := found.get((workload.id, configuration.id)):
                yield workload, configuration, mine


def _load(point: PointSummary, name: str) -> int:
    return int(dict(point.key.axis)[name])


def _value(point: PointSummary, key: str) -> float | None:
    metric = point.metrics.get(key)
    return metric.value if metric is not None else None


def _overlap(one: PointSummary, other: PointSummary, key: str) -> bool:
    """Whether the intervals of both meet; without intervals nothing is known to differ."""
    a, b = one.metrics[key], other.metrics[key]
    return _low(a) <= _high(b) and _low(b) <= _high(a)


def _low(metric: Metric) -> float:
    return -math.inf if metric.low is None else metric.low


def _high(metric: Metric) -> float:
    return math.inf if metric.high is None else metric.high
