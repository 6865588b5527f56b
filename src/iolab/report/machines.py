"""How many machines a target carries: the answer to a question that asks for a number of them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import groupby, pairwise
from typing import Final

from iolab.analysis.bottleneck.decision import WORTHWHILE_GAIN_SHARE
from iolab.analysis.findings import BEND_LOADS_MIN, trusted_curves_by_other_axis_values
from iolab.analysis.points import AxisValues, PointSummary
from iolab.core.metric import VerdictLevel
from iolab.core.study import Study
from iolab.core.workload import HOSTS_AXIS, VMS_PER_NODE_AXIS, Workload
from iolab.record import Record
from iolab.report.best import workload_and_axis_values_title
from iolab.report.numbers import axis_name_text, axis_values_text, metric_value_text
from iolab.text import counted_noun, list_text

MACHINE_AXES: Final = (VMS_PER_NODE_AXIS, HOSTS_AXIS)
"""Axes whose values are numbers of machines."""


def few_usable_counts_text(points: Sequence[PointSummary]) -> str:
    """Why it is not known how many are carried: `only 1 VM per node gave a usable figure`."""
    usable = {
        (name, value)
        for point in points
        if point.is_trusted
        for name, value in point.key.axis_values
        if name in MACHINE_AXES
    }
    if len(usable) == 1:
        ((name, value),) = usable
        is_hosts = name == HOSTS_AXIS
        load = counted_noun(int(value), "host") if is_hosts else axis_values_text(((name, value),))
        return f"only {load} gave a usable figure"
    return "too few of the measured numbers of machines have a usable figure"


class ScalingExtent(Record):
    """How many machines one workload was carried for: its rate grew up to `load` on `axis_name`.

    `did_rate_stop_growing` is False where `load` is the most that was measured. `machine_count`
    are those of all nodes together, `rate_text` is their rate.
    """

    configuration: str
    title: str
    axis_name: str
    load: int
    machine_count: int
    did_rate_stop_growing: bool
    rate_text: str
    verdict_level: VerdictLevel


def scaling_extents(study: Study, points: Sequence[PointSummary]) -> Iterator[ScalingExtent]:
    """A row for each configuration, workload and value of its other axes that has enough loads."""
    for configuration in study.configurations:
        for workload in study.workloads:
            axis = next((item.name for item in workload.sweep if item.name in MACHINE_AXES), None)
            members = [
                point
                for point in points
                if (point.key.configuration, point.key.workload) == (configuration.id, workload.id)
                and not point.key.excluded_hosts
            ]
            if axis is not None and workload.headline_metric is not None:
                for fixed, curve in trusted_curves_by_other_axis_values(members, axis):
                    if len(curve) >= BEND_LOADS_MIN:
                        yield _scaling_extent_of_curve(workload, axis, fixed, curve)


def _scaling_extent_of_curve(
    workload: Workload,
    axis_name: str,
    fixed_axis_values: AxisValues,
    curve_points: Sequence[PointSummary],
) -> ScalingExtent:
    rate = workload.headline_metric or ""
    last = next(
        (
            point
            for point, following in pairwise(curve_points)
            if not _is_gain_worthwhile(point, following, axis_name, rate)
        ),
        None,
    )
    point = curve_points[-1] if last is None else last
    return ScalingExtent(
        configuration=point.key.configuration,
        title=workload_and_axis_values_title(workload, fixed_axis_values),
        axis_name=axis_name,
        load=point.load_on_axis(axis_name),
        machine_count=len(point.runs[0].hosts),
        did_rate_stop_growing=last is not None,
        rate_text=metric_value_text(point.metrics.get(rate)),
        verdict_level=point.verdict_level,
    )


def _is_gain_worthwhile(
    point: PointSummary, next_point: PointSummary, axis_name: str, rate_key: str
) -> bool:
    """Whether the rate grows by more than half in proportion to the machines."""
    low, high = point.metric_value(rate_key), next_point.metric_value(rate_key)
    if not low or not high:
        return False
    return math.log(high / low) >= WORTHWHILE_GAIN_SHARE * math.log(
        next_point.load_on_axis(axis_name) / point.load_on_axis(axis_name)
    )


def scaling_extents_sentence(study: Study, extents: Sequence[ScalingExtent]) -> str:
    """How many machines each configuration carries, by the workload that it carries fewest for."""
    titles = study.configuration_titles
    texts = []
    for owner, rows in groupby(extents, key=lambda row: row.configuration):
        name = titles[owner] if len(study.configurations) > 1 else "The target"
        texts.append(f"{name} carries {_machine_count_where_gain_stops_text(list(rows))}")
    return f"{'; '.join(texts)}."


def _machine_count_where_gain_stops_text(rows: Sequence[ScalingExtent]) -> str:
    """The number of machines of the heaviest workload, then where the others end."""
    fewest = min(rows, key=lambda row: (row.load, not row.did_rate_stop_growing))
    unit = axis_name_text(fewest.axis_name)
    whole = f" ({fewest.machine_count} in all)" if fewest.axis_name == VMS_PER_NODE_AXIS else ""
    doubt = ", indicative" if fewest.verdict_level is VerdictLevel.INDICATIVE else ""
    place = f"{fewest.title}, {fewest.rate_text}{doubt}"
    if not fewest.did_rate_stop_growing:
        return f"at least {fewest.load} {unit}{whole}, the most that were measured ({place})"
    text = f"{fewest.load} {unit}{whole}; beyond, more of them add little throughput ({place})"
    more = sorted({(row.load, row.did_rate_stop_growing) for row in rows} - {(fewest.load, True)})
    others = list_text([f"{'' if limit else 'at least '}{load}" for load, limit in more])
    return f"{text}; for other workloads {others}" if others else text
