"""What load on objects comes to: operations, their latencies and parts, connections, processors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from iolab.analysis.metrics import (
    latency_statistics,
    metrics_from_values,
    percentiles_with_intervals,
)
from iolab.analysis.sums import OperationSums
from iolab.analysis.view import RunView
from iolab.core.histogram import Histogram
from iolab.core.metric import Metric
from iolab.core.metric_spec import rate_key
from iolab.core.workload import NamedOperation
from iolab.loads.objects.metric_specs import (
    ATTEMPTS,
    CEILING,
    CONNECTIONS_OPENED,
    FAILED_SHARE,
    METRICS,
    OPERATIONS,
    OPERATIONS_PER_CORE,
    THROTTLED_SHARE,
    TLS_SHARE,
    VERIFIED_SHARE,
)
from iolab.loads.objects.workload import (
    ObjectOperation,
    ObjectRequest,
    ObjectsJob,
    ObjectsRun,
    objects_run_of_host,
)
from iolab.record import Record
from iolab.units import NS_PER_S

PERCENTILES: Final = (("p50", 50.0), ("p90", 90.0), ("p99", 99.0), ("p99_9", 99.9))
NAMES: Final = ("mean", *(name for name, _ in PERCENTILES), "max")
THROTTLES: Final = ("SlowDown", "TooManyRequests", "ServiceUnavailable")
"""Classes of errors with which servers say that they have too much to do."""

WHOLE_OPERATIONS: Final[tuple[NamedOperation, ...]] = (
    ObjectOperation.OBJECT_GET,
    ObjectOperation.OBJECT_GET_RANGE,
    ObjectOperation.OBJECT_PUT,
    ObjectOperation.OBJECT_MULTIPART,
    *ObjectRequest,
)
"""Operations that are none of another one's parts or attempts."""

ALL_OPERATIONS: Final[tuple[NamedOperation, ...]] = (*ObjectOperation, *ObjectRequest)

OBJECT_KEYS: Final = (
    *(rate_key(operation.key) for operation in WHOLE_OPERATIONS),
    *(operation.latency_key(name) for operation in ALL_OPERATIONS for name in NAMES),
)
"""Rates of whole operations and latencies of all, in the order shown."""

_FIRST_BYTES: Final = (
    ObjectOperation.OBJECT_GET_FIRST_BYTE,
    ObjectOperation.OBJECT_GET_RANGE_FIRST_BYTE,
)


class ObjectsView(RunView, Record, dict=True):
    """A run with the sums of its operations; axis 1 of these is that of `ALL_OPERATIONS`."""

    operations: OperationSums | None = None

    @property
    def has_load(self) -> bool:
        """Whether any operation was done in the window: HEAD, LIST and DELETE move no contents."""
        return self.operations is not None and bool(self.operations.completed.sum() > 0)

    def completed_count(self, index: int) -> int:
        """Whole operations: HEAD, LIST and DELETE too."""
        return sum(self.operation_count([index], operation) for operation in WHOLE_OPERATIONS)

    @property
    def objects_job(self) -> ObjectsJob:
        """What the hosts were asked to do."""
        return ObjectsJob.require_type(self.job)

    def objects_run(self, index: int) -> ObjectsRun | None:
        """What a host did with its requests in the whole run."""
        return objects_run_of_host(self.hosts[index])

    def operation_count(self, hosts: Sequence[int], operation: NamedOperation) -> int:
        """How many of an operation those hosts did in the window."""
        if self.operations is None:
            return 0
        return int(self.operations.completed[list(hosts), ALL_OPERATIONS.index(operation)].sum())

    def operation_histogram(self, hosts: Sequence[int], operation: NamedOperation) -> Histogram:
        """The latencies of those hosts, merged bin by bin."""
        if self.operations is None:
            raise ValueError("a view without operations")
        place = ALL_OPERATIONS.index(operation)
        return Histogram(self.operations.bins[list(hosts), place].sum(axis=0))


def object_metrics(view: ObjectsView, hosts: Sequence[int]) -> dict[str, Metric]:
    """The metrics of those hosts together; none where they had no window in common."""
    values: dict[str, float | None] = {}
    if hosts and view.operations is not None and float(view.load.seconds[list(hosts)].min()) > 0:
        values = {
            **_operation_values(view, hosts),
            **_request_values([run for index in hosts if (run := view.objects_run(index))]),
            CEILING.key: _ceiling_ops_per_s(view, hosts),
        }
    own = {spec.key: Metric(values.get(spec.key), spec.unit) for spec in METRICS}
    return metrics_from_values([key for key in OBJECT_KEYS if key in values], values) | own


def object_metrics_with_intervals(view: ObjectsView) -> dict[str, Metric]:
    """The same of all hosts, percentiles with intervals where the run can tell them."""
    hosts = list(range(len(view.hosts))) if view.load.has_common_window else []
    metrics = object_metrics(view, hosts)
    for operation in (*WHOLE_OPERATIONS, *_FIRST_BYTES):
        if operation.latency_key("p50") in metrics:
            metrics |= percentiles_with_intervals(
                metrics,
                f"{operation.key}_",
                PERCENTILES,
                view.record,
                view.load.measured_part,
                [operation],
            )
    return metrics


def _operation_values(view: ObjectsView, hosts: Sequence[int]) -> dict[str, float | None]:
    """Rates and latencies of the operations that were done at all."""
    sums, picked = view.operations, list(hosts)
    if sums is None:
        return {}
    seconds = view.load.seconds[picked]
    values: dict[str, float | None] = {}
    total = 0.0
    for place, operation in enumerate(ALL_OPERATIONS):
        count = int(sums.completed[picked, place].sum())
        if not count:
            continue
        if operation in WHOLE_OPERATIONS:
            rate = float((sums.completed[picked, place] / seconds).sum())
            values[operation.rate_key] = rate
            total += rate
        statistics = latency_statistics(
            view.operation_histogram(hosts, operation),
            float(sums.lat_sum_ns[picked, place].sum()),
            count,
            PERCENTILES,
        )
        values |= {operation.latency_key(name): value for name, value in statistics.items()}
    return {**values, OPERATIONS.key: total}


def _ceiling_ops_per_s(view: ObjectsView, hosts: Sequence[int]) -> float | None:
    """What those hosts make on null targets; None where one's is not known."""
    ceilings = [view.hosts[index].ceiling_iops for index in hosts]
    known = [ceiling for ceiling in ceilings if ceiling is not None]
    return sum(known) if len(known) == len(ceilings) else None


def _request_values(runs: Sequence[ObjectsRun]) -> dict[str, float | None]:
    """What the requests of the whole run came to."""
    done, failed = sum(run.done for run in runs), sum(run.failed for run in runs)
    attempts = sum(run.attempts for run in runs)
    throttled = sum(run.errors.get(name, 0) for run in runs for name in THROTTLES)
    cpu_ns = sum(run.cpu_ns for run in runs)
    read = sum(endpoint.bytes for run in runs for endpoint in run.endpoints)
    put = sum(run.put_bytes for run in runs)
    return {
        FAILED_SHARE.key: failed / (done + failed) if done + failed else None,
        THROTTLED_SHARE.key: throttled / attempts if attempts else None,
        ATTEMPTS.key: attempts / (done + failed) if done + failed and attempts else None,
        CONNECTIONS_OPENED.key: float(max((run.opened for run in runs), default=0)),
        OPERATIONS_PER_CORE.key: done * NS_PER_S / cpu_ns if cpu_ns else None,
        TLS_SHARE.key: sum(run.tls_ns for run in runs) / cpu_ns if cpu_ns else None,
        VERIFIED_SHARE.key: sum(run.verified_bytes for run in runs) / (read - put)
        if read > put
        else None,
    }
