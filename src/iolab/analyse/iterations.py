"""Statistics over the iterations of a point of metadata load: each operation by itself.

An iteration is one repeat of the point, so one run. Only runs that came to their end count. The
standard deviation is that of a sample (n - 1). Latencies of iterations are never averaged: those
shown are of the median iteration by the operation's rate.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from iolab.analyse.metadata.phases import FILE_OPERATIONS
from iolab.analyse.metadata.summary import METADATA_UNITS, rate_key, whole_key
from iolab.model.metadata import Operation
from iolab.model.metric import Level, Metric, Result
from iolab.model.run import RunStatus


@dataclass(frozen=True, slots=True)
class OperationStatistics:
    """One operation over the iterations of a point; rates in operations a second.

    `metric` is the key of the rate: that over the common window where all iterations have it, else
    that over the whole phase. `std_dev` is None of a single iteration. `shown` is the iteration
    whose rate is the median (of two the lower), and `latencies` are its own by name: `mean`, `p50`
    and so on. `level` is the worst verdict of the iterations.
    """

    operation: Operation
    metric: str
    values: tuple[float, ...]
    shown: Result
    latencies: Mapping[str, Metric]
    level: Level

    @property
    def over_window(self) -> bool:
        """Whether the rate is that over the common window."""
        return self.metric == rate_key(self.operation)

    @property
    def n(self) -> int:
        """How many iterations."""
        return len(self.values)

    @property
    def maximum(self) -> float:
        """The highest rate."""
        return max(self.values)

    @property
    def minimum(self) -> float:
        """The lowest rate."""
        return min(self.values)

    @property
    def mean(self) -> float:
        """The arithmetic mean."""
        return math.fsum(self.values) / len(self.values)

    @property
    def std_dev(self) -> float | None:
        """The sample's standard deviation."""
        if len(self.values) < 2:
            return None
        mean = self.mean
        return math.sqrt(math.fsum((v - mean) ** 2 for v in self.values) / (len(self.values) - 1))


@dataclass(frozen=True, slots=True)
class PointStatistics:
    """A point's iterations: those of other hosts (`without`) stand apart.

    `results` are the iterations that count, in their order; `left_out` is how many did not.
    """

    configuration: str
    workload: str
    axis: tuple[tuple[str, int | str], ...]
    digest: str
    without: tuple[str, ...]
    results: tuple[Result, ...]
    left_out: int
    operations: tuple[OperationStatistics, ...]


def is_metadata(result: Result) -> bool:
    """Whether the result is of metadata load: its metrics are those of operations."""
    return whole_key(Operation.FILE_CREATE) in result.metrics


def point_statistics(results: Sequence[Result]) -> tuple[PointStatistics, ...]:
    """Every point of metadata load among the results, in their order."""
    grouped: dict[tuple[str, tuple[str, ...]], list[Result]] = {}
    for result in results:
        if is_metadata(result):
            grouped.setdefault((result.digest, result.without), []).append(result)
    return tuple(_point(group) for group in grouped.values())


def _point(group: Sequence[Result]) -> PointStatistics:
    done = sorted((r for r in group if r.status is RunStatus.DONE), key=lambda r: r.repeat)
    found = [_operation(operation, done) for operation in Operation]
    first = group[0]
    return PointStatistics(
        configuration=first.configuration,
        workload=first.workload,
        axis=first.axis,
        digest=first.digest,
        without=first.without,
        results=tuple(done),
        left_out=len(group) - len(done),
        operations=tuple(one for one in found if one is not None),
    )


def _operation(operation: Operation, done: Sequence[Result]) -> OperationStatistics | None:
    """The operation over the iterations; None where none has a rate of it."""
    over_window = operation in FILE_OPERATIONS and all(
        _value(result, rate_key(operation)) is not None for result in done
    )
    key = rate_key(operation) if over_window else whole_key(operation)
    known = [(value, result) for result in done if (value := _value(result, key)) is not None]
    if not known:
        return None
    ordered = sorted(known, key=lambda pair: pair[0])
    shown = ordered[(len(ordered) - 1) // 2][1]
    prefix = f"{operation.key}_lat_ns_"
    return OperationStatistics(
        operation=operation,
        metric=key,
        values=tuple(value for value, _ in known),
        shown=shown,
        latencies={
            name.removeprefix(prefix): shown.metrics.get(name, Metric(None, unit))
            for name, unit in METADATA_UNITS.items()
            if name.startswith(prefix)
        },
        level=max((result.verdict.level for _, result in known), key=lambda level: level.rank),
    )


def _value(result: Result, key: str) -> float | None:
    metric = result.metrics.get(key)
    return None if metric is None else metric.value
