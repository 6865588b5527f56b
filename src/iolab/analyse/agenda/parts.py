"""What each part of a study still wants measured, judged by what is known so far. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final, Protocol

import numpy as np

from iolab.analyse.agenda.log import Log, figure_of, rate_of
from iolab.analyse.method.axis import AdaptiveAxis
from iolab.analyse.method.peak import PeakSearch
from iolab.analyse.method.search import LoadLimit, LoadRun, MaxLoadSearch
from iolab.analyse.points import enters, value_of
from iolab.model.metric import Result
from iolab.model.objective import Limit, Objective
from iolab.model.run import Plan, Point, RunStatus
from iolab.model.study import Study
from iolab.plan.guests import makers_of
from iolab.plan.searches import Place, Search, searches_of
from iolab.plan.sweep import RATE, point_at

CONFIRMED: Final = 2
"""Runs that confirm an answer at least: a single one has no spread of its own."""

IOPS: Final = "iops"


class Part(Protocol):
    """Points that are decided on together."""

    def wants(self, log: Log) -> Sequence[Point]:
        """The points to measure (once) in the next block; none when this part is done."""


def parts_of(study: Study, plan: Plan) -> tuple[Part, ...]:
    """Every part of a study."""
    searches = searches_of(study, plan.points)
    owned = {search.workload.id for search in searches}
    listed = tuple(point for point in plan.points if point.workload not in owned)
    grid = [GridPart(study, listed)] if study.method.sequential and listed else []
    return (*grid, *(_part(study, search) for search in searches))


def _part(study: Study, search: Search) -> Part:
    match search.workload.aim.objective:
        case Objective.PEAK:
            return PeakPart(study, search)
        case Objective.MAX_LOAD:
            return LoadPart(study, search)
        case Objective.GRID:
            return AxisPart(study, search)


class GridPart:
    """Listed points: measured again until their intervals are narrow enough."""

    def __init__(self, study: Study, points: Sequence[Point]) -> None:
        self._repeats = Repeats(study)
        self._own = {item.id for item in study.workloads if item.repeats}
        self._points = points

    def wants(self, log: Log) -> Sequence[Point]:
        """Points with too few runs, or too wide an interval."""
        return self._repeats.wanted(log, [p for p in self._points if p.workload not in self._own])


class Repeats:
    """The rule for repeats: at least so many, then until half the interval is below the target.

    An invalid run is made up for where another of its point was sound: else it has no interval.
    """

    def __init__(self, study: Study) -> None:
        self._study = study

    def wanted(self, log: Log, points: Sequence[Point], *, least: int = 0) -> list[Point]:
        """Those of the points that need another run."""
        method = self._study.method
        least = max(least, method.repeats)
        most = max(least, method.repeats_max)
        # Where the ground moves on and on, runs that do not count must come to an end too.
        alive = [p for p in points if not log.failed(p.digest) and len(log.of(p.digest)) < 2 * most]
        wide = log.half_widths([point.digest for point in alive])
        few = {p.digest for p in alive if log.made(p.digest) < least or self._lacks(log, p, most)}
        vague = {digest for digest, half in wide.items() if half > method.target_half_width}
        return [
            point
            for point in alive
            if point.digest in few or (point.digest in vague and log.made(point.digest) < most)
        ]

    def _lacks(self, log: Log, point: Point, most: int) -> bool:
        """Whether a point has a sound run but no second, so that it would have no interval."""
        sound = sum(enters(run) for run in log.of(point.digest))
        wanted = min(2, self._study.method.repeats)
        return 0 < sound < wanted and log.made(point.digest) < most


class AxisPart:
    """One curve over load: seeds, then where the curve is least known, then repeats."""

    def __init__(self, study: Study, search: Search) -> None:
        self._study = study
        self._search = search
        self._repeats = Repeats(study)
        self._metric = rate_of(search.workload)

    def wants(self, log: Log) -> Sequence[Point]:
        """The next load of the curve; when it is known, repeats of what was measured."""
        points = {place[0]: point for place, point in self._search.points.items()}
        alive = {load: p for load, p in points.items() if not log.dead(p.digest, self._metric)}
        if not alive:
            return ()
        axis = axis_of(self._study, self._search, log)
        load = None if axis is None else axis.wanted()
        if load is not None:
            return (alive[load],)
        measured = [point for point in alive.values() if log.made(point.digest)]
        if self._study.method.sequential:
            return self._repeats.wanted(log, measured)
        return [p for p in measured if log.made(p.digest) < self._study.method.repeats]


def axis_of(study: Study, search: Search, log: Log) -> AdaptiveAxis | None:
    """The curve as far as it is known; None where no load can be measured."""
    metric = rate_of(search.workload)
    places = {place[0]: point for place, point in search.points.items()}
    alive = {load: p for load, p in places.items() if not log.dead(p.digest, metric)}
    if not alive:
        return None
    headline = [load for load in search.workload.aim.headline if load in alive]
    axis = AdaptiveAxis(tuple(alive), np.random.default_rng(study.method.seed), headline)
    sd = log.sd(metric, [point.digest for point in alive.values()])
    by_digest = {point.digest: load for load, point in alive.items()}
    for digest in dict.fromkeys(run.digest for run in log.results if run.digest in by_digest):
        values = log.values(digest, metric)
        if values:
            axis.record(by_digest[digest], _middle(values), sd / math.sqrt(len(values)))
    return axis


class PeakPart:
    """The best of one or two axes, confirmed by repeats."""

    def __init__(self, study: Study, search: Search) -> None:
        self._search = search
        self._repeats = Repeats(study)
        self._metric = figure_of(search.workload) or IOPS

    def wants(self, log: Log) -> Sequence[Point]:
        """The next point of the search; when it has ended, a repeat of the best."""
        search = peak_of(self._search, log)
        place = search.wanted()
        if place is not None and not log.dead(self._search.points[place].digest, self._metric):
            return (self._search.points[place],)
        if not any(log.values(p.digest, self._metric) for p in self._search.points.values()):
            return ()
        best = self._search.points[search.peak().point]
        return self._repeats.wanted(log, [best], least=CONFIRMED)


def peak_of(search: Search, log: Log) -> PeakSearch:
    """The search as far as it has come."""
    metric = figure_of(search.workload) or IOPS
    found = PeakSearch(search.axes)
    places: dict[str, Place] = {point.digest: place for place, point in search.points.items()}
    sd = log.sd(metric, places)
    for digest in dict.fromkeys(run.digest for run in log.results if run.digest in places):
        for value in log.values(digest, metric):
            found.record(places[digest], value, sd)
    return found


class LoadPart:
    """The highest rate under a latency limit: the maximum, rates beside the limit, the proof."""

    def __init__(self, study: Study, search: Search) -> None:
        self._study = study
        self._search = search
        self._repeats = Repeats(study)

    def wants(self, log: Log) -> Sequence[Point]:
        """The next rate of the search; when it has ended, the rate that confirms its answer."""
        (base,) = self._search.points.values()
        trail = trail_of(self._search, log)
        if trail is None:
            return () if log.dead(base.digest, IOPS) else (base,)
        if trail.lost:
            return ()
        if trail.wanted is not None:
            point = self._at(base, trail.wanted)
            return () if log.failed(point.digest) else (point,)
        if not trail.limit.bounded and trail.limit.load < trail.saturation / 2:
            return ()  # Even the lowest rate is too much: there is nothing to confirm.
        proof = self._at(base, trail.limit.confirm_at)
        return self._repeats.wanted(log, [proof], least=CONFIRMED)

    def _at(self, base: Point, load: float) -> Point:
        """The point at that rate of the whole fleet: every job has an equal share of it."""
        jobs = jobs_of(self._study, base)
        rate = max(1, round(load / jobs))
        return point_at(self._study, base.configuration, base.workload, (*base.axis, (RATE, rate)))


class Trail:
    """A max-load search and how far it has come."""

    def __init__(self, saturation: float, limit: Limit, runs: Sequence[LoadRun | None]) -> None:
        """Feed it the runs in their order; None is one that told no latency."""
        self.saturation = saturation
        self._limit_ns = limit.latency_ns
        self.runs = [run for run in runs if run is not None]
        search = MaxLoadSearch(saturation, limit.latency_ns)
        self.wanted = search.wanted()
        self.lost = False
        for run in runs:
            if self.wanted is None:
                break
            if run is None:
                self.lost = True
                break
            search.record(run)
            self.wanted = search.wanted()
        self._search = search

    @property
    def limit(self) -> LoadLimit:
        """The answer by the search's own runs; ValueError before it has enough."""
        return self._search.limit()

    @property
    def answer(self) -> LoadLimit:
        """The answer by all runs, those that confirm it too."""
        search = MaxLoadSearch(self.saturation, self._limit_ns)
        for run in self.runs:
            search.record(run)
        return search.limit()


def trail_of(search: Search, log: Log) -> Trail | None:
    """The search as far as it has come; None before the load without a rate is known."""
    (base,) = search.points.values()
    limit = search.workload.aim.limit
    maxima = log.values(base.digest, IOPS)
    if not maxima or limit is None:
        return None
    runs = [
        _load_run(run, limit)
        for run in log.results
        if run.status is RunStatus.DONE and _is_rate_of(run, base)
    ]
    return Trail(_middle(maxima), limit, runs)


def jobs_of(study: Study, point: Point) -> int:
    """All jobs of a point's hosts together."""
    return sum(point.io_on(host).numjobs for host in makers_of(study, point))


def _is_rate_of(run: Result, base: Point) -> bool:
    """Whether a run is of the same behaviour under a rate."""
    own = (run.configuration, run.workload, run.axis[:-1])
    same = own == (base.configuration, base.workload, base.axis)
    return same and len(run.axis) > len(base.axis) and run.axis[-1][0] == RATE


def _load_run(run: Result, limit: Limit) -> LoadRun | None:
    load, latency = value_of(run, IOPS), value_of(run, limit.metric)
    return LoadRun(load, latency) if load and latency else None


def _middle(values: Sequence[float]) -> float:
    return math.exp(math.fsum(math.log(value) for value in values) / len(values))
