"""Load whose named operations are made of reads and writes, or counted beside them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar, TypeVar

from msgspec.structs import asdict

from iolab.analysis.kinds import Facts, LoadAnalysis
from iolab.analysis.metrics import (
    latency_statistics,
    metrics_or_unknown_by_key,
    percentiles_with_intervals,
)
from iolab.analysis.sums import OperationSums, sum_operations_in_window
from iolab.analysis.view import HostKindQueries, RunView
from iolab.core.histogram import Histogram
from iolab.core.metric import Metric
from iolab.core.metric_spec import MetricSpec
from iolab.core.run import RunRecord
from iolab.core.workload import OperationEnum
from iolab.record import Record

if TYPE_CHECKING:
    from iolab.hosts.rates import CounterSeries

Percentiles = Sequence[tuple[str, float]]
"""Names in keys, and per cent."""


class OperationsView(RunView, Record, dict=True):
    """A run with the sums of its operations; axis 1 of these is that of `operations_in_sums`."""

    operations_in_sums: ClassVar[tuple[OperationEnum, ...]] = ()
    operations: OperationSums | None = None

    @property
    def operation_sums(self) -> OperationSums:
        """The sums; ValueError of a view without."""
        if self.operations is None:
            raise ValueError("a view without operations")
        return self.operations

    def were_all_hosts_measured(self, host_indexes: Sequence[int]) -> bool:
        """Whether each of those hosts was measured."""
        return bool(host_indexes) and float(self.load.seconds[list(host_indexes)].min()) > 0

    def operation_count(self, host_indexes: Sequence[int], operation: OperationEnum) -> int:
        """How many of an operation those hosts did in the window."""
        place = self.operations_in_sums.index(operation)
        return int(self.operation_sums.completed[list(host_indexes), place].sum())

    def operation_rate_per_s(self, host_indexes: Sequence[int], operation: OperationEnum) -> float:
        """How many of an operation those hosts did a second, together."""
        place, picked = self.operations_in_sums.index(operation), list(host_indexes)
        return float(
            (self.operation_sums.completed[picked, place] / self.load.seconds[picked]).sum()
        )

    def operation_latency_sum_ns(
        self, host_indexes: Sequence[int], operation: OperationEnum
    ) -> float:
        """The time that all of an operation took on those hosts together."""
        place = self.operations_in_sums.index(operation)
        return float(self.operation_sums.lat_sum_ns[list(host_indexes), place].sum())

    def operation_histogram(
        self, host_indexes: Sequence[int], operation: OperationEnum
    ) -> Histogram:
        """The latencies of those hosts, merged bin by bin."""
        place = self.operations_in_sums.index(operation)
        return Histogram(self.operation_sums.bins[list(host_indexes), place].sum(axis=0))

    def latency_mean_percentiles_and_max(
        self, host_indexes: Sequence[int], operation: OperationEnum, percentiles: Percentiles
    ) -> dict[str, float | None]:
        """Mean, percentiles and maximum of an operation's latencies, by their keys."""
        statistics = latency_statistics(
            self.operation_histogram(host_indexes, operation),
            self.operation_latency_sum_ns(host_indexes, operation),
            self.operation_count(host_indexes, operation),
            percentiles,
        )
        return {operation.latency_key(name): value for name, value in statistics.items()}


ViewT = TypeVar("ViewT", bound=OperationsView)


class OperationsAnalysis(LoadAnalysis[ViewT], ABC):
    """A kind of load with metrics of its operations beside those of reads and writes.

    `own_metric_specs` are its own metrics, `operation_keys` its rates and latencies, of which those
    without one of the operation are left out with `omits_operations_not_done`. The percentiles of
    `operations_with_percentile_intervals` have intervals.
    """

    view_type: type[ViewT]
    own_metric_specs: Sequence[MetricSpec]
    operation_keys: Sequence[str]
    omits_operations_not_done: bool = False
    percentiles: Percentiles
    operations_with_percentile_intervals: Sequence[OperationEnum]

    @abstractmethod
    def metric_values(self, view: ViewT, host_indexes: Sequence[int]) -> dict[str, float | None]:
        """The values of those hosts together, each of which was measured."""

    def build_view(
        self,
        record: RunRecord,
        facts: Facts,
        telemetry: tuple[CounterSeries, ...],
        host_kinds: tuple[HostKindQueries, ...],
    ) -> ViewT:
        """With what its operations did."""
        view = super().build_view(record, facts, telemetry, host_kinds)
        operations = self.view_type.operations_in_sums
        own = sum_operations_in_window(record, operations, view.load.measured_part)
        return self.view_type(**{**asdict(view), "operations": own})

    def fleet_metrics(self, view: ViewT) -> dict[str, Metric]:
        """With those of its operations, percentiles with intervals where the run can tell them."""
        hosts = list(range(len(view.hosts))) if view.load.has_common_window else []
        metrics = self._own_and_operation_metrics(view, hosts)
        for operation in self.operations_with_percentile_intervals:
            if operation.latency_key("p50") in metrics:
                metrics |= percentiles_with_intervals(
                    metrics,
                    f"{operation.key}_",
                    self.percentiles,
                    view.record,
                    view.load.measured_part,
                    [operation],
                )
        return super().fleet_metrics(view) | metrics

    def host_metrics(self, view: ViewT, host_index: int) -> dict[str, Metric]:
        """With those of its operations."""
        return super().host_metrics(view, host_index) | self._own_and_operation_metrics(
            view, [host_index]
        )

    def _own_and_operation_metrics(
        self, view: ViewT, host_indexes: Sequence[int]
    ) -> dict[str, Metric]:
        """Its own metrics, without values where those hosts had no window in common."""
        values = (
            self.metric_values(view, host_indexes)
            if view.were_all_hosts_measured(host_indexes)
            else {}
        )
        own = {spec.key: Metric(values.get(spec.key), spec.unit) for spec in self.own_metric_specs}
        keys = [
            key
            for key in self.operation_keys
            if key in values or not self.omits_operations_not_done
        ]
        return metrics_or_unknown_by_key(keys, values) | own
