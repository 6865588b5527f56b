"""The sentinel of a session: one point measured again and again, and what its runs say. Pure.

Every run of the sentinel's point counts, those that its repeats ask for too. When two in a row
differ, or all of them drift, by more than runs of the study do, the runs since the last sentinel
that was as before are in doubt.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Final

from iolab.analyse.method.sentinel import Movement, watch
from iolab.analyse.points import FIGURES, positive_values
from iolab.model.metric import CheckResult, Level, Result, Verdict
from iolab.model.run import Point, RunStatus
from iolab.model.study import Study
from iolab.model.workload import Job
from iolab.plan.sweep import expand

CODE: Final = "sentinel-moved"

SD_UNKNOWN: Final = 0.01
SD_UNKNOWN_DF: Final = 3
"""How far runs differ before anything is known of it, and how many runs' worth that is."""


@dataclass(frozen=True, slots=True)
class Alarm:
    """The sentinel moved: by `change`, a log ratio, between the runs of these orders.

    The runs after `after` and before `at` are in doubt; `at` itself is the new state of the ground.
    """

    movement: Movement
    change: float
    after: int
    at: int


def sentinel_of(study: Study) -> Point | None:
    """The point that a study measures again and again; None for the fixed method."""
    able = [item for item in study.workloads if isinstance(item.job, Job)]
    wanted = [item for item in able if item.id == study.method.sentinel] or able
    if not study.method.sequential or not wanted:
        return None
    points = [point for point in expand(study) if point.workload == wanted[0].id]
    headline = wanted[0].aim.headline
    chosen = [p for p in points if headline and headline[0] in dict(p.axis).values()]
    return (chosen or points)[0]


def alarms(results: Sequence[Result], study: Study) -> tuple[Alarm, ...]:
    """Every time that the sentinel moved. Results of one session, in any order."""
    point = sentinel_of(study)
    if point is None:
        return ()
    metric = next(FIGURES[item.indicator] for item in study.workloads if item.id == point.workload)
    found: list[Alarm] = []
    series: list[float] = []
    last = 0
    ordered = sorted((r for r in results if r.order), key=lambda result: result.order)
    for index, result in enumerate(ordered):
        values = positive_values([result], metric) if result.digest == point.digest else []
        if not values or result.status is not RunStatus.DONE:
            continue
        series += values
        seen = watch(series, spread_of(ordered[: index + 1], metric))
        if seen.movement is not Movement.STILL:
            found.append(Alarm(seen.movement, seen.change, last, result.order))
            series = values
        last = result.order
    return tuple(found)


def spread_of(results: Sequence[Result], metric: str) -> float:
    """The standard deviation of ln of a metric between runs of a point, pooled over all points.

    Neighbouring runs are compared, so that ground that moves adds little to it.
    """
    runs: dict[str, list[float]] = {}
    for result in results:
        if result.status is RunStatus.DONE:
            runs.setdefault(result.digest, []).extend(positive_values([result], metric))
    total, df = SD_UNKNOWN**2 * SD_UNKNOWN_DF, SD_UNKNOWN_DF
    for values in runs.values():
        squares = sorted(math.log(b / a) ** 2 / 2 for a, b in pairwise(values))
        # The largest step may be the very move that is looked for.
        kept = squares[:-1] if len(squares) > 1 else []
        total += sum(kept)
        df += len(kept)
    return math.sqrt(total / df)


def mark_moved(results: Sequence[Result], study: Study) -> tuple[Result, ...]:
    """The results; those that were measured while the sentinel moved say so, and are indicative."""
    found = alarms(results, study)
    if not found:
        return tuple(results)
    return tuple(
        _marked(result, next((a for a in found if a.after < result.order < a.at), None))
        for result in results
    )


def told(alarm: Alarm) -> str:
    """The alarm as a sentence."""
    how = "jumped" if alarm.movement is Movement.JUMPED else "drifted"
    percent = 100 * math.expm1(alarm.change)
    return f"The sentinel {how} by {percent:+.1f} % between runs {alarm.after} and {alarm.at}."


def _marked(result: Result, alarm: Alarm | None) -> Result:
    if alarm is None or any(check.code == CODE for check in result.verdict.checks):
        return result
    evidence = {"change": alarm.change, "after": alarm.after, "at": alarm.at}
    says = f"{told(alarm)} What this run measured may not be what the others did."
    check = CheckResult(CODE, Level.INDICATIVE, says, evidence)
    verdict = result.verdict
    level = max(verdict.level, check.level, key=lambda one: one.rank)
    return replace(result, verdict=Verdict(level, (*verdict.checks, check)))
