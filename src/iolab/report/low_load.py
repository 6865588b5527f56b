"""The latency of each workload at the least load that was measured, which queues lengthen least."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from iolab.core.metric import Level, Metric
from iolab.core.metric_spec import BetterDirection
from iolab.core.workload import Direction
from iolab.record import Record
from iolab.report.best import gravest_objection_code_and_text
from iolab.report.numbers import DASH, NOT_MEASURABLE, metric_value_text
from iolab.report.phrases import axis_values_phrase
from iolab.report.value import CostCapacityFigure, CostCapacityRow
from iolab.stats.comparison import ComparisonVerdict

if TYPE_CHECKING:
    from iolab.analysis.points import PointSummary
    from iolab.core.workload import AnyJob, Workload
    from iolab.report.brief import Brief

GROUP: Final = "Latency at the least load"
"""The title of its rows in the matrix."""

ROWS_SHOWN: Final = 2

_PREFIXES: Final = ("", "read_", "write_")
"""Of the whole load, or else of the first operation that has one."""


class PointLatency(Record):
    """The latency of one point."""

    point: PointSummary
    key: str

    @property
    def metric(self) -> Metric:
        """The latency with its interval."""
        return self.point.metrics[self.key]

    @property
    def value(self) -> float:
        """Nanoseconds."""
        return self.metric.value or 0.0

    def is_of_several_operations(self, job: AnyJob) -> bool:
        """Whether it is of reads and writes together."""
        return self.key.startswith("lat_ns") and len(job.data_directions) > 1


def least_load_latencies(brief: Brief, workload: Workload, name: str) -> list[PointLatency]:
    """The latency of that name (`lat_ns_p99`) of each configuration at the least load.

    The lowest first.
    """
    found: dict[str, PointLatency] = {}
    points = _points_of_workload(brief, workload)
    least = _least_axis_values(points)
    for point in points:
        if not point.is_trusted or not _is_least_load(point, least):
            continue
        keys = (f"{prefix}{name}" for prefix in _PREFIXES)
        key = next((key for key in keys if point.metric_value(key) is not None), None)
        if key is not None:
            found.setdefault(point.key.configuration, PointLatency(point, key))
    return sorted(found.values(), key=lambda latency: latency.value)


def is_surely_lower(brief: Brief, best: PointLatency, other: PointLatency) -> bool:
    """Whether a comparison of both points supports the lower latency, as `iolab compare` tells."""
    names = best.point.key.configuration, other.point.key.configuration
    place = best.point.key.workload, best.point.key.axis
    if best.key == other.key:
        compared = brief.gains_by_pair.comparison(names, place, best.key)
        if compared is not None:
            return compared.verdict is ComparisonVerdict.WORSE
    high, low = best.metric.high, other.metric.low
    return high is not None and low is not None and high < low


def has_reads(workload: Workload) -> bool:
    """Whether it reads, also among other operations."""
    directions = workload.job.data_directions
    return not directions or Direction.READ in directions


def low_load_rows(brief: Brief) -> tuple[CostCapacityRow, ...]:
    """Rows of the matrix: of workloads with several loads, those that only read before others.

    Of a workload with one load the matrix has the latency beside its figure.
    """
    workloads = sorted(brief.study.workloads, key=_read_workload_sort_key)
    rows = [row for workload in workloads if (row := _low_load_row(brief, workload)) is not None]
    measured = [row for row in rows if any(figure.amount for figure in row.figures)]
    return tuple(measured[:ROWS_SHOWN] or rows[:1])


def _read_workload_sort_key(workload: Workload) -> tuple[bool, bool]:
    directions = workload.job.data_directions
    return not has_reads(workload), len(directions) > 1


def _low_load_row(brief: Brief, workload: Workload) -> CostCapacityRow | None:
    points = _points_of_workload(brief, workload)
    if len({point.key.axis for point in points}) < 2:
        return None
    means = least_load_latencies(brief, workload, "lat_ns_mean")
    lost = _lost_figures(points)
    if not means and not lost:
        return None
    tails = {
        latency.point.key.configuration: latency
        for latency in least_load_latencies(brief, workload, "lat_ns_p99")
    }
    measured = tuple(
        CostCapacityFigure(
            latency.point.key.configuration,
            f"{metric_value_text(latency.metric)} mean",
            latency.value,
            _p99_note(latency, tails, workload.job),
        )
        for latency in means
    )
    known = {figure.configuration for figure in measured}
    figures = (*measured, *(figure for name, figure in lost.items() if name not in known))
    least = _least_axis_values(points)
    at = next(point.key.axis for point in points if _is_least_load(point, least))
    return CostCapacityRow(
        workload.title,
        figures,
        BetterDirection.LOWER,
        is_open=len(means) > 1 and not is_surely_lower(brief, *means[:2]),
        scope=axis_values_phrase(at),
        group=GROUP,
    )


def _lost_figures(points: Sequence[PointSummary]) -> dict[str, CostCapacityFigure]:
    """The configurations whose runs at the least load are invalid or failed, each with why."""
    least = _least_axis_values(points)
    lost: dict[str, CostCapacityFigure] = {}
    for point in points:
        owner = point.key.configuration
        if not point.is_trusted and owner not in lost and _is_least_load(point, least):
            why, _ = gravest_objection_code_and_text(point.runs, Level.INVALID)
            lost[owner] = CostCapacityFigure(owner, NOT_MEASURABLE, note=why)
    return lost


def _p99_note(latency: PointLatency, tails: Mapping[str, PointLatency], job: AnyJob) -> str:
    tail = tails.get(latency.point.key.configuration)
    p99 = f"p99 {metric_value_text(tail.metric) if tail else DASH}"
    several = "reads and writes together" if latency.is_of_several_operations(job) else ""
    doubt = Level.INDICATIVE.value if latency.point.level is Level.INDICATIVE else ""
    return " · ".join(filter(None, (p99, several, latency.point.left_out_repeats_text, doubt)))


def _points_of_workload(brief: Brief, workload: Workload) -> list[PointSummary]:
    return [
        point
        for point in brief.points
        if point.key.workload == workload.id and not point.key.excluded_hosts
    ]


def _least_axis_values(points: Sequence[PointSummary]) -> dict[str, int]:
    """The least number on each axis of numbers of the points."""
    least: dict[str, int] = {}
    for point in points:
        for name, value in point.key.axis:
            if isinstance(value, int):
                least[name] = min(value, least.get(name, value))
    return least


def _is_least_load(point: PointSummary, least: Mapping[str, int]) -> bool:
    """Whether no point has less load on any axis of numbers."""
    return all(not isinstance(value, int) or value <= least[name] for name, value in point.key.axis)


def workloads_with_low_load_latency(
    brief: Brief, name: str
) -> Iterator[tuple[Workload, list[PointLatency]]]:
    """Each workload that has a latency at its least load, with those of its configurations."""
    for workload in brief.study.workloads:
        if ranked := least_load_latencies(brief, workload, name):
            yield workload, ranked
