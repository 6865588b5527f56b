"""Which run an adaptive session makes next, by what it has measured so far."""

from __future__ import annotations

import math
import random
from collections import Counter, deque
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Final, Protocol

import numpy as np

from iolab.analysis.points import (
    SD_UNKNOWN,
    SD_UNKNOWN_DF,
    SentinelAlarm,
    finite_metric_value,
    fit_point_priors,
    is_publishable,
    meets_search_criterion_of_workload,
    positive_metric_values,
    results_by_point,
    sentinel_alarm_sentence,
    sentinel_alarms,
    sentinel_point,
)
from iolab.core.configuration import LatencyLimit, Objective
from iolab.core.metric import RunResult
from iolab.core.run import Plan, PlannedRun, Point, RunStatus
from iolab.core.study import RunOrder, Study
from iolab.stats.curve import AdaptiveCurve
from iolab.stats.repeats import EstimatedValue, estimate_published_value
from iolab.stats.search import LoadRun, MaxLoadEstimate, MaxLoadSearch, PeakSearch
from iolab.stats.seeds import GridPoint
from iolab.study.cost import run_overhead_seconds
from iolab.study.schedule import (
    RATE,
    SENTINEL_EVERY_CELLS,
    SENTINEL_EVERY_S,
    SearchSpace,
    adaptive_searches_of_points,
    build_point_at,
)
from iolab.study.targets import load_host_names_of_point

CONFIRMING_RUNS: Final = 2
"""Runs that confirm an answer at least: a single one has no spread of its own."""

IOPS: Final = "iops"


class RunResultLog:
    """The results, each under its point and repeat, in the order in which they came.

    A later attempt takes the place of an earlier one.
    """

    def __init__(self, study: Study, results: Iterable[RunResult] = ()) -> None:
        self._study = study
        self._runs: dict[tuple[str, int], RunResult] = {}
        self._workloads = {workload.id: workload for workload in study.workloads}
        self._points: dict[str, dict[int, RunResult]] = {}
        self._alarms: tuple[SentinelAlarm, ...] = ()
        for result in results:
            self.add_result(result)

    def add_result(self, result: RunResult) -> None:
        """Add a result."""
        self._runs[result.digest, result.repeat] = result
        self._points.setdefault(result.digest, {})[result.repeat] = result

    def update_sentinel_alarms(self) -> tuple[SentinelAlarm, ...]:
        """See whether the sentinel has moved; what was measured meanwhile no longer counts."""
        self._alarms = sentinel_alarms(self.results, self._study)
        return self._alarms

    def _was_measured_while_sentinel_moved(self, result: RunResult) -> bool:
        return any(
            alarm.last_trusted_order < result.order < alarm.moved_order for alarm in self._alarms
        )

    @property
    def results(self) -> tuple[RunResult, ...]:
        """All of them."""
        return tuple(self._runs.values())

    def runs_of_point(self, point_digest: str) -> list[RunResult]:
        """The runs of a point."""
        return list(self._points.get(point_digest, {}).values())

    def run_count_on_steady_ground(self, point_digest: str) -> int:
        """How many runs of a point count towards its repeats: none that moved ground spoilt."""
        return sum(
            1
            for run in self.runs_of_point(point_digest)
            if _is_run_done(run) and not self._was_measured_while_sentinel_moved(run)
        )

    def has_failed_run(self, point_digest: str) -> bool:
        """Whether a run of a point has failed for good."""
        return any(run.status is RunStatus.FAILED for run in self.runs_of_point(point_digest))

    def has_failed_run_or_lacks_metric(self, point_digest: str, metric_key: str) -> bool:
        """Whether no use is to be had of a point: a run of it failed, or none has the metric."""
        return self.has_failed_run(point_digest) or bool(
            self.runs_of_point(point_digest) and not self.metric_values(point_digest, metric_key)
        )

    def metric_values(self, point_digest: str, metric_key: str) -> list[float]:
        """A point's values of a metric, of its trusted runs where there are any."""
        done = [run for run in self.runs_of_point(point_digest) if _is_run_done(run)]
        sound = [run for run in done if not self._was_measured_while_sentinel_moved(run)] or done
        trusted = positive_metric_values(filter(is_publishable, sound), metric_key)
        return trusted or positive_metric_values(sound, metric_key)

    def pooled_log_sd(self, metric_key: str, point_digests: Iterable[str]) -> float:
        """How far runs of one of these points differ: the standard deviation of ln of the metric.

        Pooled over the points, and drawn towards 1 % while there are few repeats.
        """
        total, df = SD_UNKNOWN**2 * SD_UNKNOWN_DF, SD_UNKNOWN_DF
        for digest in point_digests:
            logs = [math.log(value) for value in self.metric_values(digest, metric_key)]
            if len(logs) > 1:
                middle = sum(logs) / len(logs)
                total += sum((value - middle) ** 2 for value in logs)
                df += len(logs) - 1
        return math.sqrt(total / df)

    def relative_half_widths_by_point(self, point_digests: Sequence[str]) -> dict[str, float]:
        """Half of the published interval of each point's figure as a share, where it has runs."""
        used = [
            run
            for run in self._runs.values()
            if is_publishable(run) and not self._was_measured_while_sentinel_moved(run)
        ]
        priors = fit_point_priors(results_by_point(used), self._study)
        widths: dict[str, float] = {}
        for key, runs in results_by_point(used).items():
            metric = self._workloads[key.workload].headline_metric
            values = positive_metric_values(runs, metric) if metric else []
            if runs[0].digest in point_digests and metric and len(values) > 1:
                published = estimate_published_value(values, priors.prior_of_point(key, metric))
                widths[runs[0].digest] = _smaller_relative_half_width(
                    published, widths.get(runs[0].digest)
                )
        return widths


def _smaller_relative_half_width(
    published: EstimatedValue, other_relative_half_width: float | None
) -> float:
    """Of a point that was measured with and without some hosts the better known is enough."""
    return (
        published.relative_half_width
        if other_relative_half_width is None
        else min(published.relative_half_width, other_relative_half_width)
    )


def _is_run_done(result: RunResult) -> bool:
    return result.status is RunStatus.DONE


class DecisionGroup(Protocol):
    """Points that are decided on together."""

    def next_points_to_measure(self, result_log: RunResultLog) -> Sequence[Point]:
        """The points to measure (once) in the next block; none when this part is done."""


def decision_groups(study: Study, plan: Plan) -> tuple[DecisionGroup, ...]:
    """Every part of a study."""
    searches = adaptive_searches_of_points(study, plan.points)
    owned = {search.workload.id for search in searches}
    listed = tuple(point for point in plan.points if point.workload not in owned)
    grid = (
        [RepeatUntilPreciseDecisionGroup(study, listed)]
        if study.method.chooses_repeats_by_results and listed
        else []
    )
    return (*grid, *(_decision_group(study, search) for search in searches))


def _decision_group(study: Study, search: SearchSpace) -> DecisionGroup:
    match search.workload.search_goal.objective:
        case Objective.PEAK:
            return PeakSearchDecisionGroup(study, search)
        case Objective.MAX_LOAD if search.axes:
            return ListedLoadDecisionGroup(study, search)
        case Objective.MAX_LOAD:
            return MaxLoadDecisionGroup(study, search)
        case Objective.GRID:
            return LoadCurveDecisionGroup(study, search)


class RepeatUntilPreciseDecisionGroup:
    """Listed points: measured again until their intervals are narrow enough."""

    def __init__(self, study: Study, points: Sequence[Point]) -> None:
        self._repeats = RepeatCountRule(study)
        self._points_by_digest = {item.id for item in study.workloads if item.repeats}
        self._points = points

    def next_points_to_measure(self, result_log: RunResultLog) -> Sequence[Point]:
        """Points with too few runs, or too wide an interval."""
        return self._repeats.points_to_repeat(
            result_log, [p for p in self._points if p.workload not in self._points_by_digest]
        )


class RepeatCountRule:
    """The rule for repeats: at least so many, then until half the interval is below the target.

    An invalid run is made up for where another of its point was sound: else it has no interval.
    """

    def __init__(self, study: Study) -> None:
        self._study = study

    def points_to_repeat(
        self, result_log: RunResultLog, points: Sequence[Point], *, min_repeats: int = 0
    ) -> list[Point]:
        """Those of the points that need another run."""
        method = self._study.method
        min_repeats = max(min_repeats, method.repeats)
        most = max(min_repeats, method.repeats_max)
        # Where the ground moves on and on, runs that do not count must come to an end too.
        alive = [
            p
            for p in points
            if not result_log.has_failed_run(p.digest)
            and len(result_log.runs_of_point(p.digest)) < 2 * most
        ]
        wide = result_log.relative_half_widths_by_point([point.digest for point in alive])
        few = {
            p.digest
            for p in alive
            if result_log.run_count_on_steady_ground(p.digest) < min_repeats
            or self._lacks_second_publishable_run(result_log, p, most)
        }
        vague = {digest for digest, half in wide.items() if half > method.target_half_width}
        return [
            point
            for point in alive
            if point.digest in few
            or (
                point.digest in vague and result_log.run_count_on_steady_ground(point.digest) < most
            )
        ]

    def _lacks_second_publishable_run(
        self, result_log: RunResultLog, point: Point, max_runs: int
    ) -> bool:
        """Whether a point has a sound run but no second, so that it would have no interval."""
        sound = sum(is_publishable(run) for run in result_log.runs_of_point(point.digest))
        wanted = min(2, self._study.method.repeats)
        return 0 < sound < wanted and result_log.run_count_on_steady_ground(point.digest) < max_runs


class LoadCurveDecisionGroup:
    """One curve over load: seeds, then where the curve is least known, then repeats."""

    def __init__(self, study: Study, search: SearchSpace) -> None:
        self._study = study
        self._search = search
        self._repeats = RepeatCountRule(study)
        self._metric = search.workload.rate_metric

    def next_points_to_measure(self, result_log: RunResultLog) -> Sequence[Point]:
        """The next load of the curve; when it is known, repeats of what was measured."""
        points = {place[0]: point for place, point in self._search.point_by_grid_point.items()}
        alive = {
            load: p
            for load, p in points.items()
            if not result_log.has_failed_run_or_lacks_metric(p.digest, self._metric)
        }
        if not alive:
            return ()
        axis = adaptive_curve_from_log(self._study, self._search, result_log)
        load = None if axis is None else axis.next_load()
        if load is not None:
            return (alive[load],)
        measured = [
            point for point in alive.values() if result_log.run_count_on_steady_ground(point.digest)
        ]
        if self._study.method.chooses_repeats_by_results:
            return self._repeats.points_to_repeat(result_log, measured)
        return [
            p
            for p in measured
            if result_log.run_count_on_steady_ground(p.digest) < self._study.method.repeats
        ]


def adaptive_curve_from_log(
    study: Study, search: SearchSpace, result_log: RunResultLog
) -> AdaptiveCurve | None:
    """The curve as far as it is known; None where no load can be measured."""
    metric = search.workload.rate_metric
    places = {place[0]: point for place, point in search.point_by_grid_point.items()}
    alive = {
        load: p
        for load, p in places.items()
        if not result_log.has_failed_run_or_lacks_metric(p.digest, metric)
    }
    if not alive:
        return None
    headline = [load for load in search.workload.search_goal.headline_loads if load in alive]
    axis = AdaptiveCurve(tuple(alive), np.random.default_rng(study.method.seed), headline)
    sd = result_log.pooled_log_sd(metric, [point.digest for point in alive.values()])
    by_digest = {point.digest: load for load, point in alive.items()}
    for digest in dict.fromkeys(
        run.digest for run in result_log.results if run.digest in by_digest
    ):
        values = result_log.metric_values(digest, metric)
        if values:
            axis.add_measurement(
                by_digest[digest], _geometric_mean(values), sd / math.sqrt(len(values))
            )
    return axis


class PeakSearchDecisionGroup:
    """The best of one or two axes, confirmed by repeats."""

    def __init__(self, study: Study, search: SearchSpace) -> None:
        self._search = search
        self._repeats = RepeatCountRule(study)
        self._metric = search.workload.headline_or_rate_metric

    def next_points_to_measure(self, result_log: RunResultLog) -> Sequence[Point]:
        """The next point of the search; when it has ended, a repeat of the best."""
        search = peak_search_from_log(self._search, result_log)
        place = search.next_point()
        if place is not None and not result_log.has_failed_run_or_lacks_metric(
            self._search.point_by_grid_point[place].digest, self._metric
        ):
            return (self._search.point_by_grid_point[place],)
        if not any(
            result_log.metric_values(p.digest, self._metric)
            for p in self._search.point_by_grid_point.values()
        ):
            return ()
        best = self._search.point_by_grid_point[search.best_point().point]
        return self._repeats.points_to_repeat(result_log, [best], min_repeats=CONFIRMING_RUNS)


def peak_search_from_log(search: SearchSpace, result_log: RunResultLog) -> PeakSearch:
    """The search as far as it has come."""
    metric = search.workload.headline_or_rate_metric
    peaks = PeakSearch(search.axes)
    places: dict[str, GridPoint] = {
        point.digest: place for place, point in search.point_by_grid_point.items()
    }
    sd = result_log.pooled_log_sd(metric, places)
    for digest in dict.fromkeys(run.digest for run in result_log.results if run.digest in places):
        for value in result_log.metric_values(digest, metric):
            peaks.add_measurement(places[digest], value, sd)
    return peaks


class MaxLoadDecisionGroup:
    """The highest rate under a latency limit: the maximum, rates beside the limit, the proof."""

    def __init__(self, study: Study, search: SearchSpace) -> None:
        self._study = study
        self._search = search
        self._repeats = RepeatCountRule(study)

    def next_points_to_measure(self, result_log: RunResultLog) -> Sequence[Point]:
        """The next rate of the search; when it has ended, the rate that confirms its answer."""
        (base,) = self._search.point_by_grid_point.values()
        trail = max_load_progress_from_log(self._search, result_log)
        if trail is None:
            return () if result_log.has_failed_run_or_lacks_metric(base.digest, IOPS) else (base,)
        if trail.lost:
            return ()
        if trail.wanted is not None:
            point = self._point_at_fleet_rate(base, trail.wanted)
            return () if result_log.has_failed_run(point.digest) else (point,)
        if (
            not trail.max_load_from_search_runs.is_bounded
            and trail.max_load_from_search_runs.load < trail.saturation / 2
        ):
            return ()  # Even the lowest rate is too much: there is nothing to confirm.
        proof = self._point_at_fleet_rate(base, trail.max_load_from_search_runs.confirmation_load)
        return self._repeats.points_to_repeat(result_log, [proof], min_repeats=CONFIRMING_RUNS)

    def _point_at_fleet_rate(self, base_point: Point, fleet_rate: float) -> Point:
        """The point at that rate of the whole fleet: every job has an equal share of it."""
        jobs = total_job_count(self._study, base_point)
        rate = max(1, round(fleet_rate / jobs))
        return build_point_at(
            self._study,
            base_point.configuration,
            base_point.workload,
            (*base_point.axis_values, (RATE, rate)),
        )


class ListedLoadDecisionGroup:
    """The highest listed load within a limit, confirmed by repeats of it and of the next."""

    def __init__(self, study: Study, search: SearchSpace) -> None:
        self._search = search
        self._repeats = RepeatCountRule(study)

    def next_points_to_measure(self, result_log: RunResultLog) -> Sequence[Point]:
        """The next load of the search; when it has ended, repeats of those beside the limit."""
        progress = ListedLoadProgress(self._search, result_log)
        if progress.wanted is not None:
            point = self._search.point_by_grid_point[(progress.wanted,)]
            return () if result_log.has_failed_run(point.digest) else (point,)
        beside = [load for load in (progress.highest, progress.exceeding) if load is not None]
        points = [self._search.point_by_grid_point[(load,)] for load in beside]
        return self._repeats.points_to_repeat(result_log, points, min_repeats=CONFIRMING_RUNS)


class ListedLoadProgress:
    """A search among listed loads and how far it has come.

    `highest` is the highest load within the limit below the first that exceeds it, `exceeding` that
    one; None where there is none yet. `wanted` is to be measured next, None at the end.
    """

    def __init__(self, search: SearchSpace, result_log: RunResultLog) -> None:
        loads = search.axes[0]
        kept: dict[int, bool] = {}
        for place, load in enumerate(loads):
            runs = result_log.runs_of_point(search.point_by_grid_point[(load,)].digest)
            done = [run for run in runs if _is_run_done(run)]
            if done:
                kept[place] = all(
                    meets_search_criterion_of_workload(search.workload, run) for run in done
                )
        bad = min((place for place, good in kept.items() if not good), default=None)
        end = len(loads) if bad is None else bad
        good = max(
            (place for place, is_kept in kept.items() if is_kept and place < end), default=-1
        )
        self.highest = loads[good] if good >= 0 else None
        self.exceeding = None if bad is None else loads[bad]
        self.runs = sum(
            len(result_log.runs_of_point(point.digest))
            for point in search.point_by_grid_point.values()
        )
        self.wanted: int | None = None
        if end - good > 1:
            place = min(2 * good + 1, end - 1) if bad is None else (good + end) // 2
            self.wanted = loads[max(place, 0)]


class MaxLoadProgress:
    """A max-load search and how far it has come."""

    def __init__(
        self, saturation: float, limit: LatencyLimit, runs: Sequence[LoadRun | None]
    ) -> None:
        """Feed it the runs in their order; None is one that told no latency."""
        self.saturation = saturation
        self._limit_ns = limit.latency_ns
        self.runs = [run for run in runs if run is not None]
        search = MaxLoadSearch(saturation, limit.latency_ns)
        self.wanted = search.next_load()
        self.lost = False
        for run in runs:
            if self.wanted is None:
                break
            if run is None:
                self.lost = True
                break
            search.add_run(run)
            self.wanted = search.next_load()
        self._search = search

    @property
    def max_load_from_search_runs(self) -> MaxLoadEstimate:
        """The answer by the search's own runs; ValueError before it has enough."""
        return self._search.max_load_estimate()

    @property
    def max_load_from_all_runs(self) -> MaxLoadEstimate:
        """The answer by all runs, those that confirm it too."""
        search = MaxLoadSearch(self.saturation, self._limit_ns)
        for run in self.runs:
            search.add_run(run)
        return search.max_load_estimate()


def max_load_progress_from_log(
    search: SearchSpace, result_log: RunResultLog
) -> MaxLoadProgress | None:
    """The search as far as it has come; None before the load without a rate is known."""
    (base,) = search.point_by_grid_point.values()
    limit = search.workload.search_goal.latency_limit
    maxima = result_log.metric_values(base.digest, IOPS)
    if not maxima or limit is None:
        return None
    runs = [
        _load_run_of_result(run, limit)
        for run in result_log.results
        if is_run_of_max_load_search(search, run)
    ]
    return MaxLoadProgress(_geometric_mean(maxima), limit, runs)


def is_run_of_max_load_search(search: SearchSpace, result: RunResult) -> bool:
    """Whether a search for the highest rate decides by a run: one of its load under a rate."""
    (base,) = search.point_by_grid_point.values()
    return result.status is RunStatus.DONE and _is_rate_limited_run_of_point(result, base)


def total_job_count(study: Study, point: Point) -> int:
    """All jobs of a point's hosts together."""
    return sum(
        point.job_on_host(host).jobs_per_client for host in load_host_names_of_point(study, point)
    )


def _is_rate_limited_run_of_point(result: RunResult, base_point: Point) -> bool:
    """Whether a run is of the same behaviour under a rate."""
    own = (result.configuration, result.workload, result.axis_values[:-1])
    same = own == (base_point.configuration, base_point.workload, base_point.axis_values)
    return (
        same
        and len(result.axis_values) > len(base_point.axis_values)
        and result.axis_values[-1][0] == RATE
    )


def _load_run_of_result(result: RunResult, latency_limit: LatencyLimit) -> LoadRun | None:
    load, latency = (
        finite_metric_value(result, IOPS),
        finite_metric_value(result, latency_limit.metric),
    )
    return LoadRun(load, latency) if load and latency else None


def _geometric_mean(values: Sequence[float]) -> float:
    return math.exp(math.fsum(math.log(value) for value in values) / len(values))


def chooses_runs_by_results(study: Study) -> bool:
    """Whether a session of the study makes other runs than its plan lists."""
    return study.method.chooses_repeats_by_results or any(
        item.search_goal.is_adaptive for item in study.workloads
    )


class AdaptiveQueue:
    """Asks for one run after the other; `add_result` what came of each before the next."""

    def __init__(self, study: Study, plan: Plan, stored_results: Iterable[RunResult] = ()) -> None:
        """Runs among the `stored_results` of earlier segments that are done are not made again."""
        self._study = study
        self._parts = decision_groups(study, plan)
        self._log = RunResultLog(study)
        self._stored = {run.key: run for run in stored_results if run.status is RunStatus.DONE}
        self._queue: deque[Point] = deque()
        self._current_run: Counter[str] = Counter()
        self._order = 0
        self._rounds = 0
        self._sentinel = sentinel_point(study)
        self._blocks = deque(_points_by_repeat_sentinel_first(plan, self._sentinel))
        self._points: dict[str, Point] = {}
        self._since: list[RunResult] = []
        self._alarms = 0
        self._remeasured_alarms = False
        self._messages: list[str] = []

    def take_next_run(self) -> PlannedRun | None:
        """The run to make now; None when nothing more is wanted."""
        while (point := self._take_next_point()) is not None:
            self._order += 1
            self._current_run[point.digest] += 1
            self._points[point.digest] = point
            run = PlannedRun(self._order, self._current_run[point.digest], point)
            stored = self._stored.pop((point.digest, run.repeat), None)
            if stored is None:
                return run
            self.add_result(stored)
            self._messages.clear()
        return None

    def add_result(self, result: RunResult) -> None:
        """Take what came of the run that was last asked for."""
        self._log.add_result(result)
        self._since.append(result)
        if self._sentinel is not None and result.digest == self._sentinel.digest:
            self._requeue_if_sentinel_moved()
            self._since.clear()

    def take_new_messages(self) -> Sequence[str]:
        """Sentences since it was last asked."""
        messages, self._messages = tuple(self._messages), []
        return messages

    def _take_next_point(self) -> Point | None:
        if self._sentinel is not None and self._is_sentinel_due(self._sentinel):
            return self._sentinel
        while self._queue or self._try_queue_next_block():
            point = self._queue.popleft()
            if not self._log.has_failed_run(point.digest):
                return point
        return None

    def _try_queue_next_block(self) -> bool:
        """Queue the next block; whether there is one."""
        if self._blocks:
            self._queue.extend(self._blocks.popleft())
            return True
        wanted = [
            point
            for part in self._parts
            for point in part.next_points_to_measure(self._log)
            if not self._log.has_failed_run(point.digest)
        ]
        self._rounds += 1
        if self._study.method.order is RunOrder.RANDOMISED:
            seed = f"{self._study.method.seed} {self._rounds}"
            random.Random(seed).shuffle(wanted)  # noqa: S311 - an order, not a secret
        self._queue.extend(wanted)
        return bool(wanted)

    def _is_sentinel_due(self, sentinel: Point) -> bool:
        """Whether the sentinel is measured now: after so many other runs, or so long."""
        if self._log.has_failed_run(sentinel.digest) or not self._since:
            return False
        method = self._study.method
        each_s = method.settle_s + run_overhead_seconds(method)
        seconds = sum(run.window_s + each_s for run in self._since)
        return len(self._since) >= SENTINEL_EVERY_CELLS or seconds >= SENTINEL_EVERY_S

    def _requeue_if_sentinel_moved(self) -> None:
        """What the sentinel says; where it has moved, what lies between is measured again, once."""
        alarms = self._log.update_sentinel_alarms()
        if len(alarms) <= self._alarms:
            self._remeasured_alarms = False
            return
        self._alarms = len(alarms)
        if self._remeasured_alarms:
            self._messages.append(
                f"{sentinel_alarm_sentence(alarms[-1])} It had been redone before and is left so."
            )
            return
        self._remeasured_alarms = True
        self._queue.extendleft(
            self._points[run.digest]
            for run in reversed(self._since)
            if alarms[-1].last_trusted_order < run.order < alarms[-1].moved_order
        )
        self._messages.append(
            f"{sentinel_alarm_sentence(alarms[-1])} The runs between are made again."
        )


def _points_by_repeat_sentinel_first(plan: Plan, sentinel: Point | None) -> list[list[Point]]:
    """The plan's runs by repeat, each in the plan's order; of the first the sentinel first."""
    blocks: dict[int, list[Point]] = {}
    for run in plan.runs:
        blocks.setdefault(run.repeat, []).append(run.point)
    ordered = list(blocks.values())
    if ordered and sentinel is not None:
        ordered[0].sort(key=lambda point: point.digest != sentinel.digest)
    return ordered


def adaptive_queue_factory(
    study: Study, plan: Plan, stored_results: Sequence[RunResult] = ()
) -> Callable[[], AdaptiveQueue] | None:
    """Makes the session's queue anew at each call; None where the plan lists all runs."""
    if not chooses_runs_by_results(study):
        return None
    return partial(AdaptiveQueue, study, plan, stored_results)
