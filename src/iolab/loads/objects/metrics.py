"""What load on objects comes to: operations, their latencies and parts, connections, processors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Final

from iolab.analysis.named_operations import OperationsView
from iolab.core.metric_spec import rate_key
from iolab.core.workload import OperationEnum
from iolab.loads.objects.metric_specs import (
    ATTEMPTS,
    CONNECTIONS_OPENED,
    FAILED_SHARE,
    GENERATOR_LIMIT,
    OPERATIONS,
    OPERATIONS_PER_CORE,
    THROTTLED_SHARE,
    TLS_SHARE,
    VERIFIED_SHARE,
)
from iolab.loads.objects.workload import (
    ContentlessObjectOperation,
    ObjectOperation,
    ObjectsHostDetails,
    ObjectsJob,
    objects_details_of_host,
)
from iolab.record import Record
from iolab.units import NS_PER_S

PERCENTILES: Final = (("p50", 50.0), ("p90", 90.0), ("p99", 99.0), ("p99_9", 99.9))
NAMES: Final = ("mean", *(name for name, _ in PERCENTILES), "max")
THROTTLES: Final = ("SlowDown", "TooManyRequests", "ServiceUnavailable")
"""Classes of errors with which servers say that they have too much to do."""

WHOLE_OPERATIONS: Final[tuple[OperationEnum, ...]] = (
    ObjectOperation.OBJECT_GET,
    ObjectOperation.OBJECT_GET_RANGE,
    ObjectOperation.OBJECT_PUT,
    ObjectOperation.OBJECT_MULTIPART,
    *ContentlessObjectOperation,
)
"""Operations that are none of another one's parts or attempts."""

ALL_OPERATIONS: Final[tuple[OperationEnum, ...]] = (*ObjectOperation, *ContentlessObjectOperation)

OBJECT_KEYS: Final = (
    *(rate_key(operation.key) for operation in WHOLE_OPERATIONS),
    *(operation.latency_key(name) for operation in ALL_OPERATIONS for name in NAMES),
)
"""Rates of whole operations and latencies of all, in the order shown."""

TIMED: Final = (
    *WHOLE_OPERATIONS,
    ObjectOperation.OBJECT_GET_FIRST_BYTE,
    ObjectOperation.OBJECT_GET_RANGE_FIRST_BYTE,
)
"""Operations whose percentiles have intervals."""


class ObjectsView(OperationsView, Record, dict=True):
    """A run with what was done to its objects."""

    operations_in_sums: ClassVar[tuple[OperationEnum, ...]] = ALL_OPERATIONS

    @property
    def has_measured_load(self) -> bool:
        """Whether any operation was done in the window: HEAD, LIST and DELETE move no contents."""
        return bool(self.operation_sums.completed.sum() > 0)

    def measured_whole_operation_count(self, host_index: int) -> int:
        """Whole operations: HEAD, LIST and DELETE too."""
        return sum(self.operation_count([host_index], operation) for operation in WHOLE_OPERATIONS)

    @property
    def objects_job(self) -> ObjectsJob:
        """What the hosts were asked to do."""
        return ObjectsJob.require_type(self.job)

    def details_of_host(self, host_index: int) -> ObjectsHostDetails | None:
        """What a host did with its requests in the whole run."""
        return objects_details_of_host(self.hosts[host_index])


def object_metric_values(view: ObjectsView, host_indexes: Sequence[int]) -> dict[str, float | None]:
    """The values of those hosts together."""
    return {
        **_operation_rates_and_latencies(view, host_indexes),
        **_whole_run_metric_values(
            [run for index in host_indexes if (run := view.details_of_host(index))]
        ),
        GENERATOR_LIMIT.key: _generator_limit_ops_per_s(view, host_indexes),
        OPERATIONS.key: all_operations_per_s(view, host_indexes),
    }


def all_operations_per_s(view: ObjectsView, host_indexes: Sequence[int]) -> float:
    """How many operations those hosts did a second, whatever kind."""
    return sum(view.operation_rate_per_s(host_indexes, operation) for operation in WHOLE_OPERATIONS)


def _operation_rates_and_latencies(
    view: ObjectsView, host_indexes: Sequence[int]
) -> dict[str, float | None]:
    """Rates and latencies of the operations that were done at all."""
    values: dict[str, float | None] = {}
    for operation in ALL_OPERATIONS:
        if view.operation_count(host_indexes, operation):
            if operation in WHOLE_OPERATIONS:
                values[operation.rate_key] = view.operation_rate_per_s(host_indexes, operation)
            values |= view.latency_mean_percentiles_and_max(host_indexes, operation, PERCENTILES)
    return values


def _generator_limit_ops_per_s(view: ObjectsView, host_indexes: Sequence[int]) -> float | None:
    """What those hosts make on null targets; None where one's is not known."""
    limits = [view.hosts[index].generator_limit_iops for index in host_indexes]
    known = [limit for limit in limits if limit is not None]
    return sum(known) if len(known) == len(limits) else None


def _whole_run_metric_values(host_details: Sequence[ObjectsHostDetails]) -> dict[str, float | None]:
    """What the requests of the whole run came to."""
    done, failed = (
        sum(run.done_count for run in host_details),
        sum(run.failed_count for run in host_details),
    )
    attempts = sum(run.attempt_count for run in host_details)
    throttled = sum(run.errors.get(name, 0) for run in host_details for name in THROTTLES)
    cpu_ns = sum(run.cpu_ns for run in host_details)
    read = sum(endpoint.bytes for run in host_details for endpoint in run.endpoints)
    put = sum(run.put_bytes for run in host_details)
    return {
        FAILED_SHARE.key: failed / (done + failed) if done + failed else None,
        THROTTLED_SHARE.key: throttled / attempts if attempts else None,
        ATTEMPTS.key: attempts / (done + failed) if done + failed and attempts else None,
        CONNECTIONS_OPENED.key: float(max((run.opened for run in host_details), default=0)),
        OPERATIONS_PER_CORE.key: done * NS_PER_S / cpu_ns if cpu_ns else None,
        TLS_SHARE.key: sum(run.tls_ns for run in host_details) / cpu_ns if cpu_ns else None,
        VERIFIED_SHARE.key: sum(run.verified_bytes for run in host_details) / (read - put)
        if read > put
        else None,
    }
