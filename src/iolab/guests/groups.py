"""The points of a fleet of guests, apart by all that makes them another load: one group a mix."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from iolab.analysis.points import AxisValues, PointSummary, finite_metric_value
from iolab.core.metric import RunResult, VerdictLevel
from iolab.core.run import Plan
from iolab.core.study import Study
from iolab.core.workload import Workload
from iolab.record import Record
from iolab.report.best import (
    BestPointHeadline,
    best_point_headline,
    median_result,
    workload_and_axis_values_title,
)
from iolab.report.numbers import axis_values_text
from iolab.text import counted_noun

if TYPE_CHECKING:
    from iolab.core.run import RunKey

AXIS: Final = "vms_per_node"
DEPTH: Final = "iodepth"
"""Lines of one chart differ in it: published curves have one for light and one for heavy use."""

RATE: Final = "iops"

READ_PERCENT: Final = 70
NODE_DEPTH: Final = 8
"""The load at which published briefs show one node from inside, where a session has it."""

RUNS_MAX: Final = 32
"""Runs of guests whose manifests are read for what the nodes told: each has every guest in it."""


class GuestScalingGroup(Record):
    """The points of one mix: they differ in guests a node, depth and configuration alone.

    `node_count` is how many nodes have guests, 1 where configurations differ in it.
    """

    workload: Workload
    other_axis_values: AxisValues
    points: tuple[PointSummary, ...]
    node_count: int

    @property
    def title(self) -> str:
        """`Random 70/30 4 KiB`, or with what is held of its axes."""
        return workload_and_axis_values_title(self.workload, self.other_axis_values)

    def points_of_configuration(self, configuration_id: str) -> tuple[PointSummary, ...]:
        """The points of one configuration."""
        return tuple(point for point in self.points if point.key.configuration == configuration_id)


def is_swept_over_guests(workload: Workload) -> bool:
    """Whether a workload is swept over guests a node."""
    return any(axis.name == AXIS for axis in workload.sweep)


def guest_scaling_groups(
    study: Study, points: Iterable[PointSummary]
) -> tuple[GuestScalingGroup, ...]:
    """The groups of all workloads that are swept over guests, in the study's order."""
    every_point = list(points)
    nodes = guest_node_count_or_one(study)
    groups = []
    for workload in study.workloads:
        if not is_swept_over_guests(workload):
            continue
        by_others: dict[AxisValues, list[PointSummary]] = {}
        for point in every_point:
            if point.key.workload == workload.id:
                by_others.setdefault(_axis_values_without_guests(point.key.axis_values), []).append(
                    point
                )
        groups += [
            GuestScalingGroup(workload, others, tuple(members), nodes)
            for others, members in by_others.items()
        ]
    return tuple(groups)


def _axis_values_without_guests(axis_values: AxisValues) -> AxisValues:
    return tuple(pair for pair in axis_values if pair[0] not in {AXIS, DEPTH})


def guest_node_count_or_one(study: Study) -> int:
    """How many nodes the guests live on, 1 where configurations differ in it or none is known."""
    nodes = {spec.name: spec.hypervisor for spec in study.hosts}
    counts = {
        len({node for host in configuration.hosts if (node := nodes.get(host, ""))})
        for configuration in study.configurations
    }
    return max(counts.pop(), 1) if len(counts) == 1 else 1


def guest_count_per_node_or_zero(axis_values: AxisValues) -> int:
    """How many guests of each node made the load, 0 where that is not varied."""
    value = dict(axis_values).get(AXIS, 0)
    return value if isinstance(value, int) else 0


def guest_count(result: RunResult) -> int:
    """How many guests made the load of a run."""
    return sum(len(node.guests) for node in result.nodes) or len(result.hosts)


def scaling_group_headlines(
    scaling_group: GuestScalingGroup, study: Study
) -> tuple[BestPointHeadline, ...]:
    """The best point of each configuration that has any, under the group's own name."""
    key = scaling_group.workload.headline_or_rate_metric
    name = " ".join(
        [scaling_group.workload.id, *(str(value) for _, value in scaling_group.other_axis_values)]
    )
    named = replace(scaling_group.workload, id=name, title=scaling_group.title)
    return tuple(
        best_point_headline(
            named, configuration, scaling_group.points_of_configuration(configuration.id), key
        )
        for configuration in study.configurations
        if scaling_group.points_of_configuration(configuration.id)
    )


def run_with_median_rate(point: PointSummary) -> RunResult | None:
    """The run that stands for a point: the median one; None where none has a rate."""
    runs = [
        run
        for run in point.results or point.left_out_results
        if finite_metric_value(run, RATE) is not None
    ]
    return median_result(runs, RATE) if runs else None


def points_with_fewest_and_most_guests(points: Sequence[PointSummary]) -> list[PointSummary]:
    """The points with the fewest and the most guests, in that order."""
    shown = sorted(
        (p for p in points if run_with_median_rate(p)),
        key=lambda p: guest_count_per_node_or_zero(p.key.axis_values),
    )
    return shown if len(shown) < 3 else [shown[0], shown[-1]]


def points_by_configuration_and_depth(
    points: Iterable[PointSummary],
) -> Mapping[tuple[str, object], list[PointSummary]]:
    """The points by configuration and depth, which are the lines of a chart."""
    by_line: dict[tuple[str, object], list[PointSummary]] = {}
    for point in points:
        depth = dict(point.key.axis_values).get(DEPTH)
        by_line.setdefault((point.key.configuration, depth), []).append(point)
    return by_line


def runs_needing_manifests(
    groups: Iterable[GuestScalingGroup], results: Sequence[RunResult]
) -> tuple[RunKey, ...]:
    """The runs whose nodes are told of: of each line those with the fewest and most guests.

    Of guests that are not varied, the runs in their order.
    """
    runs = [
        run
        for group in groups
        for points in points_by_configuration_and_depth(group.points).values()
        for point in reversed(points_with_fewest_and_most_guests(points))
        if (run := run_with_median_rate(point)) is not None
    ]
    runs = runs or [run for run in results if run.nodes]
    return tuple(dict.fromkeys((run.digest, run.repeat) for run in runs))[:RUNS_MAX]


def run_shown_in_node_timeline(plan: Plan, points: Iterable[PointSummary]) -> RunResult | None:
    """The run that shows a node from inside: of those that are not invalid, if there are any.

    As published at the most guests, else of the most; of several the one that is trusted most.
    """
    written = {point.digest: point.job.study_values_by_key for point in plan.points}
    runs = [
        run for point in points if (run := run_with_median_rate(point)) is not None and run.nodes
    ]

    def timeline_priority_key(result: RunResult) -> tuple[bool, bool, int, int]:
        return (
            result.verdict.level is not VerdictLevel.INVALID,
            _is_published_mix_and_depth(written.get(result.digest, {})),
            guest_count(result),
            -result.verdict.level.rank,
        )

    return max(runs, key=timeline_priority_key, default=None)


def _is_published_mix_and_depth(study_values: Mapping[str, object]) -> bool:
    return (study_values.get("rwmixread"), study_values.get("iodepth")) == (
        READ_PERCENT,
        NODE_DEPTH,
    )


def guest_count_and_axis_values_text(result: RunResult, other_axis_values: AxisValues = ()) -> str:
    """`96 VMs, iodepth 8`."""
    axis = tuple(
        pair for pair in result.axis_values if pair not in other_axis_values and pair[0] != AXIS
    )
    return ", ".join(
        part for part in (counted_noun(guest_count(result), "VM"), axis_values_text(axis)) if part
    )
