"""Each metadata operation over the iterations of a point, as mdtest sums them up, from results."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from typing import Final

from iolab.analysis.points import is_publishable
from iolab.analysis.stored_results import repeats_disagree_check
from iolab.core.bins import LATENCY_NAMES, PERCENTILES
from iolab.core.metric import CheckResult, Metric, RunResult, VerdictLevel, worst_verdict_level
from iolab.core.run import RunStatus
from iolab.loads.metadata.workload import FILE_OPERATIONS, MetadataOperation
from iolab.record import Record

HEADLINE: Final = MetadataOperation.FILE_CREATE
"""The operation by which the best point is chosen."""


class OperationStatistics(Record):
    """One operation over the iterations of a point; rates in operations a second.

    `rate_key` is the key of the rate: that over the common window where all iterations have it,
    else that over the whole phase. `std_dev` is None of a single iteration. `median_result` is the
    iteration whose rate is the median (of two the lower), and `median_result_latencies` are its own
    by name: `mean`, `p50` and so on, without percentiles for which any iteration did too little.
    `usable_rates` are the rates above 0 of iterations that are not invalid. `verdict_level` is the
    worst verdict of the iterations and of `repeats_disagree_check`.
    """

    operation: MetadataOperation
    rate_key: str
    rates: tuple[float, ...]
    median_result: RunResult
    median_result_latencies: Mapping[str, Metric]
    verdict_level: VerdictLevel
    usable_rates: tuple[float, ...]

    @property
    def repeats_disagree_check(self) -> CheckResult | None:
        """The objection to rates that are too unlike."""
        return repeats_disagree_check(self.usable_rates, self.rate_key)

    @property
    def is_over_common_window(self) -> bool:
        """Whether the rate is that over the common window."""
        return self.rate_key == self.operation.rate_key

    @property
    def highest_supported_percentile(self) -> float:
        """The highest percentile that every iteration supports, 0.0 for none."""
        percents = (
            percent
            for name, percent in PERCENTILES
            if self.median_result_latencies[name].value is not None
        )
        return max(percents, default=0.0)

    @property
    def iteration_count(self) -> int:
        """How many iterations."""
        return len(self.rates)

    @property
    def maximum(self) -> float:
        """The highest rate."""
        return max(self.rates)

    @property
    def minimum(self) -> float:
        """The lowest rate."""
        return min(self.rates)

    @property
    def mean(self) -> float:
        """The arithmetic mean."""
        return statistics.fmean(self.rates)

    @property
    def std_dev(self) -> float | None:
        """The sample's standard deviation."""
        return statistics.stdev(self.rates) if len(self.rates) > 1 else None


class PointStatistics(Record):
    """A point's iterations: those of other hosts (`excluded_hosts`) stand apart.

    `results` are the iterations that count, in their order; `left_out_count` is how many did not.
    """

    configuration: str
    workload: str
    axis_values: tuple[tuple[str, int | str], ...]
    digest: str
    excluded_hosts: tuple[str, ...]
    results: tuple[RunResult, ...]
    left_out_count: int
    operations: tuple[OperationStatistics, ...]


def is_metadata_result(result: RunResult) -> bool:
    """Whether the result is of metadata load: its metrics are those of operations."""
    return MetadataOperation.FILE_CREATE.phase_rate_key in result.metrics


def statistics_of_points(results: Sequence[RunResult]) -> tuple[PointStatistics, ...]:
    """Every point of metadata load among the results, in their order."""
    grouped: dict[tuple[str, tuple[str, ...]], list[RunResult]] = {}
    for result in results:
        if is_metadata_result(result):
            grouped.setdefault((result.digest, result.excluded_hosts), []).append(result)
    return tuple(_statistics_of_point(group) for group in grouped.values())


def _statistics_of_point(results: Sequence[RunResult]) -> PointStatistics:
    done = sorted((r for r in results if r.status is RunStatus.DONE), key=lambda r: r.repeat)
    operations = [_operation_statistics(operation, done) for operation in MetadataOperation]
    first = results[0]
    return PointStatistics(
        configuration=first.configuration,
        workload=first.workload,
        axis_values=first.axis_values,
        digest=first.digest,
        excluded_hosts=first.excluded_hosts,
        results=tuple(done),
        left_out_count=len(results) - len(done),
        operations=tuple(operation for operation in operations if operation is not None),
    )


def _operation_statistics(
    operation: MetadataOperation, done_results: Sequence[RunResult]
) -> OperationStatistics | None:
    """The operation over the iterations; None where none has a rate of it."""
    over_window = operation in FILE_OPERATIONS and all(
        _metric_value(result, operation.rate_key) is not None for result in done_results
    )
    key = operation.rate_key if over_window else operation.phase_rate_key
    rates = [
        (value, result)
        for result in done_results
        if (value := _metric_value(result, key)) is not None
    ]
    if not rates:
        return None
    ordered = sorted(rates, key=lambda pair: pair[0])
    shown = ordered[(len(ordered) - 1) // 2][1]
    keys = {name: operation.latency_key(name) for name in LATENCY_NAMES}
    compared = tuple(value for value, run in rates if value and is_publishable(run))
    levels = [run.verdict.level for _, run in rates]
    disagreement = repeats_disagree_check(compared, key)
    if disagreement and disagreement.level:
        levels.append(disagreement.level)
    return OperationStatistics(
        operation=operation,
        rate_key=key,
        rates=tuple(value for value, _ in rates),
        median_result=shown,
        median_result_latencies={
            name: shown.metrics[latency]
            if all(_metric_value(run, latency) is not None for _, run in rates)
            else Metric(None, "ns")
            for name, latency in keys.items()
        },
        verdict_level=worst_verdict_level(levels),
        usable_rates=compared,
    )


def _metric_value(result: RunResult, metric_key: str) -> float | None:
    metric = result.metrics.get(metric_key)
    return None if metric is None else metric.value


def fastest_creating_point_per_configuration(
    points: Sequence[PointStatistics],
) -> tuple[PointStatistics, ...]:
    """Of each configuration the point that creates most, of those that are not invalid if any."""
    best: dict[tuple[str, tuple[str, ...]], PointStatistics] = {}
    for point in points:
        key = (point.configuration, point.excluded_hosts)
        if key not in best or _creation_rate_order_key(point) > _creation_rate_order_key(best[key]):
            best[key] = point
    return tuple(best.values())


def _creation_rate_order_key(point: PointStatistics) -> tuple[bool, float]:
    create = next(
        (operation for operation in point.operations if operation.operation is HEADLINE), None
    )
    return (
        (False, -1.0)
        if create is None
        else (create.verdict_level is not VerdictLevel.INVALID, create.mean)
    )
