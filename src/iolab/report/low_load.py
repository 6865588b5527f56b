"""The latency of each workload at the least load that all configurations have a latency at.

Queues lengthen it least there, and at unlike loads latencies do not compare.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from iolab.analysis.points import finite_metric_value
from iolab.core.metric import Metric, VerdictLevel
from iolab.core.metric_spec import BetterDirection
from iolab.core.workload import Direction, OperationEnum
from iolab.record import Record
from iolab.report.best import code_and_text_of_gravest_check, disagreeing_repeats_text
from iolab.report.numbers import (
    DASH,
    MAYBE_CHANCE,
    NOT_DISTINGUISHABLE,
    NOT_MEASURABLE,
    comparison_tie_text,
    metric_value_text,
)
from iolab.report.phrases import point_place_phrase
from iolab.report.value import ConfigurationFigure, ConfigurationFiguresRow
from iolab.stats.comparison import ComparisonVerdict

if TYPE_CHECKING:
    from iolab.analysis.points import AxisValues, PointSummary
    from iolab.core.workload import AnyJob, Workload
    from iolab.report.brief import Brief

GROUP: Final = "Latency at one load"
"""The title of its rows in the matrix."""

LESS_IS_INVALID: Final = "lower loads are invalid"
"""Beside a load that is not the least that was measured, where no configuration is valid below."""

LEAST_OF_ALL: Final = "the lowest load valid for all"
"""Beside such a load where a lower one is valid for some."""

LEAST_OF_MOST: Final = "the lowest load valid for most"
"""The same where not even this load is valid for all."""

ROWS_SHOWN: Final = 2

_PREFIXES: Final = ("", "read_", "write_")
"""Of the whole load, or else of the first operation that has one."""


class PointLatency(Record):
    """The latency of one point."""

    point: PointSummary
    metric_key: str

    @property
    def metric(self) -> Metric:
        """The latency with its interval."""
        return self.point.metrics[self.metric_key]

    @property
    def latency_ns(self) -> float:
        """The latency alone."""
        return self.metric.value or 0.0

    @property
    def repeats_text(self) -> str:
        """`repeats 35.9 to 78.1 ms` where these disagree and no interval is known; else empty."""
        values = (finite_metric_value(run, self.metric_key) for run in self.point.results)
        return disagreeing_repeats_text(self.metric, values)

    def operation_text(self, job: AnyJob) -> str:
        """What it is of, where that is not the only operation of the load."""
        if self.metric_key.startswith("lat_ns"):
            return "reads and writes together" if len(job.data_directions) > 1 else ""
        own = (
            operation
            for operation in job.operations_for_latency_limit
            if self.metric_key in _mean_and_p99_latency_keys(operation)
        )
        return next((operation.display_name.replace("-", " ") for operation in own), "")


def _mean_and_p99_latency_keys(operation: OperationEnum) -> tuple[str, ...]:
    return tuple(operation.latency_key(name) for name in ("mean", "p99"))


def latencies_at_common_low_load(
    brief: Brief, workload: Workload, latency_name: str
) -> list[PointLatency]:
    """The latency of that name (`lat_ns_p99`) of each configuration at the load to compare at.

    The lowest first.
    """
    found: dict[str, PointLatency] = {}
    points = _points_of_workload(brief, workload)
    common = common_lowest_load_axis_values(points)
    for point in points:
        if not point.is_trusted or point.key.axis_values != common:
            continue
        key = _latency_key(point, workload.job, latency_name)
        if key is not None:
            found.setdefault(point.key.configuration, PointLatency(point, key))
    return sorted(found.values(), key=lambda latency: latency.latency_ns)


def _latency_key(point: PointSummary, job: AnyJob, latency_name: str) -> str | None:
    """The metric of a point's latency: of the operation that the load is judged by, if it has one.

    Else of the whole load, or of the first operation that has one.
    """
    of_operation = [
        f"{operation.key}_"
        for operation in job.operations_for_latency_limit
        if point.metric_value(operation.latency_key("mean")) is not None
    ]
    keys = (f"{prefix}{latency_name}" for prefix in of_operation[:1] or _PREFIXES)
    return next((key for key in keys if point.metric_value(key) is not None), None)


def latency_tie_text(brief: Brief, best: PointLatency, next_best: PointLatency) -> str:
    """Why a comparison of both points does not support the lower latency; empty where it does.

    By their runs, as rates are compared.
    """
    names = best.point.key.configuration, next_best.point.key.configuration
    place = best.point.key.workload, best.point.key.axis_values
    if best.metric_key == next_best.metric_key:
        compared = brief.gains_by_pair.comparison(names, place, best.metric_key)
        if compared is not None:
            return comparison_tie_text(compared, ComparisonVerdict.WORSE)
    high, low = best.metric.high, next_best.metric.low
    is_lower = high is not None and low is not None and high < low
    return "" if is_lower else NOT_DISTINGUISHABLE


def latency_tie_texts_by_configuration(
    brief: Brief, latencies_lowest_first: Sequence[PointLatency]
) -> dict[str, str]:
    """The configurations that the lowest latency is not surely below, each with why."""
    texts = {
        other.point.key.configuration: latency_tie_text(brief, latencies_lowest_first[0], other)
        for other in latencies_lowest_first[1:]
    }
    return {name: text for name, text in texts.items() if text}


def may_read(workload: Workload) -> bool:
    """Whether it reads, also among other operations."""
    directions = workload.job.data_directions
    return not directions or Direction.READ in directions


def low_load_rows(brief: Brief) -> tuple[ConfigurationFiguresRow, ...]:
    """Rows of the matrix: of workloads with several loads, those that only read before others.

    Of a workload with one load the matrix has the latency beside its figure.
    """
    workloads = sorted(brief.study.workloads, key=read_workload_sort_key)
    rows = [row for workload in workloads if (row := _low_load_row(brief, workload)) is not None]
    measured = [row for row in rows if any(figure.amount for figure in row.figures)]
    return tuple(measured[:ROWS_SHOWN] or rows[:1])


def read_workload_sort_key(workload: Workload) -> tuple[bool, bool]:
    """Puts workloads that only read before those that mix, and these before others."""
    directions = workload.job.data_directions
    return not may_read(workload), len(directions) > 1


def _low_load_row(brief: Brief, workload: Workload) -> ConfigurationFiguresRow | None:
    points = _points_of_workload(brief, workload)
    if len({point.key.axis_values for point in points}) < 2:
        return None
    means = latencies_at_common_low_load(brief, workload, "lat_ns_mean")
    lost = _unmeasurable_figure_by_configuration(points)
    if not means and not lost:
        return None
    tails = {
        latency.point.key.configuration: latency
        for latency in latencies_at_common_low_load(brief, workload, "lat_ns_p99")
    }
    ties = latency_tie_texts_by_configuration(brief, means)
    operations = {latency.operation_text(workload.job) for latency in means}
    shared = operations.pop() if len(operations) == 1 else ""
    measured = tuple(
        ConfigurationFigure(
            latency.point.key.configuration,
            f"{metric_value_text(latency.metric)} mean",
            latency.latency_ns,
            _p99_and_doubts_note(
                latency, tails, "" if shared else latency.operation_text(workload.job)
            ),
            ties.get(latency.point.key.configuration, ""),
            _mean_uncertainty_note(latency, ties),
        )
        for latency in means
    )
    known = {figure.configuration for figure in measured}
    figures = (*measured, *(figure for name, figure in lost.items() if name not in known))
    return ConfigurationFiguresRow(
        workload.title,
        figures,
        BetterDirection.LOWER,
        is_undecided=bool(ties),
        scope="; ".join(
            filter(
                None,
                (
                    point_place_phrase(common_lowest_load_axis_values(points)),
                    shared,
                    _why_not_lowest_load_text(points),
                ),
            )
        ),
        group=GROUP,
    )


def _why_not_lowest_load_text(points: Sequence[PointSummary]) -> str:
    """Why the latencies are not of the least load that was measured; empty where they are."""
    at = common_lowest_load_axis_values(points)
    numbers = {name: value for name, value in at if isinstance(value, int)}
    lower = [
        point
        for point in points
        if any(
            isinstance(value, int) and value < numbers.get(name, value)
            for name, value in point.key.axis_values
        )
    ]
    if not lower:
        return ""
    if not any(point.is_trusted and _has_latency(point) for point in lower):
        return LESS_IS_INVALID
    here = [point for point in points if point.key.axis_values == at]
    is_of_all = all(point.is_trusted and _has_latency(point) for point in here)
    owners = {point.key.configuration for point in points}
    is_of_all = is_of_all and {point.key.configuration for point in here} == owners
    return LEAST_OF_ALL if is_of_all else LEAST_OF_MOST


def _unmeasurable_figure_by_configuration(
    points: Sequence[PointSummary],
) -> dict[str, ConfigurationFigure]:
    """The configurations whose runs at that load are invalid or failed, each with why."""
    common = common_lowest_load_axis_values(points)
    lost: dict[str, ConfigurationFigure] = {}
    for point in points:
        owner = point.key.configuration
        if not point.is_trusted and owner not in lost and point.key.axis_values == common:
            _, why = code_and_text_of_gravest_check(point.runs, VerdictLevel.INVALID)
            lost[owner] = ConfigurationFigure(owner, NOT_MEASURABLE, note=why)
    return lost


def _mean_uncertainty_note(latency: PointLatency, ties: Mapping[str, str]) -> str:
    """`repeats 1.28 to 2.35 ms · may be chance`: what is known of the mean itself."""
    is_chance = ties.get(latency.point.key.configuration) == MAYBE_CHANCE
    return " · ".join(filter(None, (latency.repeats_text, MAYBE_CHANCE * is_chance)))


def _p99_and_doubts_note(
    latency: PointLatency, p99_by_configuration: Mapping[str, PointLatency], operation_text: str
) -> str:
    tail = p99_by_configuration.get(latency.point.key.configuration)
    p99 = f"p99 {metric_value_text(tail.metric) if tail else DASH}"
    doubt = (
        VerdictLevel.INDICATIVE.value
        if latency.point.verdict_level is VerdictLevel.INDICATIVE
        else ""
    )
    range_text = tail.repeats_text if tail else ""
    return " · ".join(
        filter(
            None,
            (
                f"{p99} ({range_text})" if range_text else p99,
                operation_text,
                latency.point.left_out_repeats_text,
                doubt,
            ),
        )
    )


def _points_of_workload(brief: Brief, workload: Workload) -> list[PointSummary]:
    return [
        point
        for point in brief.points
        if point.key.workload == workload.id and not point.key.excluded_hosts
    ]


def common_lowest_load_axis_values(points: Sequence[PointSummary]) -> AxisValues:
    """The place of the least load at which most configurations have a trusted latency.

    The least that was measured where none has.
    """
    owners: dict[AxisValues, set[str]] = {point.key.axis_values: set() for point in points}
    for point in points:
        if point.is_trusted and _has_latency(point):
            owners[point.key.axis_values].add(point.key.configuration)
    most = max(map(len, owners.values()), default=0)
    places = [axis for axis, own in owners.items() if len(own) == most]
    loads = {axis: [value for _, value in axis if isinstance(value, int)] for axis in places}
    return min(places, key=loads.__getitem__, default=())


def _has_latency(point: PointSummary) -> bool:
    names = (f"{prefix}lat_ns_mean" for prefix in _PREFIXES)
    return any(point.metric_value(name) is not None for name in names)


def workloads_with_low_load_latency(
    brief: Brief, latency_name: str
) -> Iterator[tuple[Workload, list[PointLatency]]]:
    """Each workload that has a latency at the load to compare at, by its configurations."""
    for workload in brief.study.workloads:
        if ranked := latencies_at_common_low_load(brief, workload, latency_name):
            yield workload, ranked
