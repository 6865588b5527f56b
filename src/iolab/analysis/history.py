"""Many sessions of one study in the order of time: where the level of a point changed. Pure.

Each session gives one value a point, its published one. Runs of one session share the day that they
were measured on, so taking them one by one would call every such day a change.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

import numpy as np

from iolab.analysis.differences import Area, ComparisonSide, Difference, differences
from iolab.analysis.pairs import Place, rates_of
from iolab.core.metric import Level, Metric
from iolab.core.workload import Workload
from iolab.stats.changes import ALPHA, History, find_changes

FALSE_ALARMS: Final = 0.05
"""Share of histories without any change in which some series is called changed."""

_SEED: Final = 1
"""Of the permutations: the same sessions always give the same answer."""


@dataclass(frozen=True, slots=True)
class HistoryValue:
    """One session's value of a series: `session` is its place among the sessions, from 0."""

    session: int
    metric: Metric
    level: Level


@dataclass(frozen=True, slots=True)
class MetricHistory:
    """One metric of one point over the sessions that have a value of it, oldest first.

    Changes in `found` are before the value of that index.
    """

    workload: str
    axis: tuple[tuple[str, int | str], ...]
    metric: str
    values: tuple[HistoryValue, ...]
    found: History


@dataclass(frozen=True, slots=True)
class Tracked:
    """What many sessions tell: `changed[i]` is what session i has otherwise than the one before.

    That of the first session is empty.
    """

    sessions: tuple[ComparisonSide, ...]
    changed: tuple[tuple[Difference, ...], ...]
    series: tuple[MetricHistory, ...]

    @property
    def changes(self) -> int:
        """How many changes there are over all series."""
        return sum(len(one.found.changes) for one in self.series)


def forbidding(sessions: Sequence[ComparisonSide]) -> dict[int, tuple[Difference, ...]]:
    """What keeps sessions from standing in one history with the first, by their place."""
    found: dict[int, tuple[Difference, ...]] = {}
    for place, side in enumerate(sessions[1:], start=1):
        unlike = tuple(
            one
            for one in differences(sessions[0], side)
            if one.forbids or (one.area is Area.STUDY and one.what == "study")
        )
        if unlike:
            found[place] = unlike
    return found


def track(
    sessions: Sequence[ComparisonSide], workloads: Sequence[str] = (), metrics: Sequence[str] = ()
) -> Tracked:
    """Search every series of the sessions, which it puts in the order of time, for changes.

    Without metrics named: the workload's headline figure, or the rate of each operation where no
    single figure is. The chance of a false alarm is shared among all series.
    """
    ordered = tuple(sorted(sessions, key=lambda side: (side.created_real_ns, side.session)))
    places = dict.fromkeys(place for side in ordered for place in side.summaries)
    wanted = [
        (place, metric, values)
        for place in places
        if not workloads or place[0] in workloads
        for metric in metrics or _figures(_workload(ordered, place), ordered, place)
        if (values := _values(ordered, place, metric))
    ]
    alpha = min(ALPHA, FALSE_ALARMS / max(len(wanted), 1))
    return Tracked(
        sessions=ordered,
        changed=((), *(differences(one, other) for one, other in pairwise(ordered))),
        series=tuple(
            MetricHistory(*place, metric, values, _search(values, alpha))
            for place, metric, values in wanted
        ),
    )


def _workload(sessions: Sequence[ComparisonSide], place: Place) -> Workload:
    known: Mapping[str, Workload] = {
        workload.id: workload for side in sessions for workload in side.study.workloads
    }
    return known[place[0]]


def _figures(workload: Workload, sessions: Sequence[ComparisonSide], place: Place) -> list[str]:
    figure = workload.metric
    if figure is not None:
        return [figure]
    known = [side for side in sessions if place in side.summaries]
    trusted = [side for side in known if side.summaries[place].trusted]
    return rates_of(
        dict.fromkeys(key for side in known for key in side.summaries[place].metrics),
        lambda key: all(_values([side], place, key) for side in trusted),
    )


def _values(
    sessions: Sequence[ComparisonSide], place: Place, metric: str
) -> tuple[HistoryValue, ...]:
    """The sessions' values: of points whose runs may be published, and that are not 0."""
    found = []
    for number, side in enumerate(sessions):
        summary = side.summaries.get(place)
        if summary is None or not summary.trusted:
            continue
        seen = summary.metrics.get(metric)
        if seen is not None and seen.value is not None and seen.value > 0:
            found.append(HistoryValue(number, seen, summary.level))
    return tuple(found)


def _search(values: Sequence[HistoryValue], alpha: float) -> History:
    means = [seen.metric.value for seen in values if seen.metric.value is not None]
    return find_changes(means, np.random.default_rng(_SEED), alpha=alpha)
