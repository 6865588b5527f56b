"""The points of workloads on key-value stores, apart by all that makes them other operations.

Operations on another block size are other operations: each combination of values but those of the
main axis is told by itself, as published briefs do.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from iolab.analyse.key_value.summary import WHOLE_KEY, is_key_value
from iolab.analyse.points import Axis, PointSummary, summarise
from iolab.model.metric import Result
from iolab.model.study import Study
from iolab.model.workload import Workload
from iolab.report.figures.choose import main_axis
from iolab.report.headline import Headline, headline_of
from iolab.report.key_value.measures import group_name, key_workloads


@dataclass(frozen=True, slots=True)
class Group:
    """The points of a workload that differ in nothing but the main `axis` and configuration.

    `axis` is "" where nothing that is a number varies.
    """

    workload: Workload
    others: Axis
    axis: str
    points: tuple[PointSummary, ...]

    @property
    def title(self) -> str:
        """`Random reads, block_size 4k`."""
        return group_name(self.workload, self.others)


def groups_of(workload: Workload, points: Sequence[PointSummary]) -> tuple[Group, ...]:
    """A workload's points, apart by every axis but the main one."""
    axis = main_axis([point.key.axis for point in points]) or _only_axis(points)
    found: dict[Axis, list[PointSummary]] = {}
    for point in points:
        others = tuple(pair for pair in point.key.axis if pair[0] != axis)
        found.setdefault(others, []).append(point)
    return tuple(Group(workload, others, axis, tuple(of)) for others, of in found.items())


def _only_axis(points: Sequence[PointSummary]) -> str:
    """Where nothing varies but the configuration: the load at which they are compared."""
    names = [name for point in points for name, _ in point.key.axis]
    several = len({point.key.configuration for point in points}) > 1
    return next((name for name in _LOADS if several and name in names), "")


_LOADS: Final = ("threads", "rate")


def key_groups(study: Study, results: Sequence[Result]) -> tuple[Group, ...]:
    """The groups of all workloads on key-value stores, in the study's order."""
    found = [result for result in results if is_key_value(result)]
    return groups_in(study, summarise(found, study))


def groups_in(study: Study, points: Sequence[PointSummary]) -> tuple[Group, ...]:
    """The same of points that are known already, which may be of other loads too."""
    return tuple(
        group
        for workload in key_workloads(study)
        for group in groups_of(workload, [p for p in points if p.key.workload == workload.id])
    )


def group_headlines(group: Group, study: Study) -> tuple[Headline, ...]:
    """The point with the most operations of each configuration that has any."""
    own = {
        one.id: [point for point in group.points if point.key.configuration == one.id]
        for one in study.configurations
    }
    return tuple(
        headline_of(group.workload, one, own[one.id], WHOLE_KEY)
        for one in study.configurations
        if own[one.id]
    )


def key_headlines(study: Study, results: Sequence[Result]) -> tuple[Headline, ...]:
    """The best point of each group and configuration."""
    groups = key_groups(study, results)
    return tuple(headline for group in groups for headline in group_headlines(group, study))
