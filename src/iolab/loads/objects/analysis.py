"""Load on objects as analysis asks of it: its checks, its operations and its metrics."""

from __future__ import annotations

from collections.abc import Sequence

from iolab.analysis.check import HostKindCheckSlot
from iolab.analysis.checks.bytes import (
    check_bytes_moved,
    check_hidden_layer,
    check_target_in_memory,
)
from iolab.analysis.checks.fleet import check_shared_target
from iolab.analysis.checks.idle import check_device_busy
from iolab.analysis.checks.run import check_engine_errors
from iolab.analysis.kinds import LoadAnalysis, shared_checks_with_overrides
from iolab.analysis.named_operations import OperationsAnalysis
from iolab.core.run import RunRecord
from iolab.core.workload import Direction
from iolab.loads.objects.checks import (
    check_connections_opened,
    check_contents_not_compared,
    check_data_set_in_server_memory,
    check_delayed_acknowledgement,
    check_hot_object,
    check_near_generator_limit,
    check_object_requests_failed,
    check_objects_bytes_moved,
    check_objects_lost,
    check_operations_unsubmitted,
    check_puts_in_memory,
    check_server_clock,
)
from iolab.loads.objects.metric_specs import METRICS
from iolab.loads.objects.metrics import (
    OBJECT_KEYS,
    PERCENTILES,
    TIMED,
    ObjectsView,
    object_metric_values,
)


class ObjectsAnalysis(OperationsAnalysis[ObjectsView]):
    """Contents are read and written; HEAD, LIST and DELETE move none."""

    checks = shared_checks_with_overrides(
        added_after={
            check_engine_errors: (
                check_object_requests_failed,
                check_operations_unsubmitted,
                check_near_generator_limit,
            ),
            HostKindCheckSlot.BYTES: (
                check_data_set_in_server_memory,
                check_hot_object,
                check_connections_opened,
                check_delayed_acknowledgement,
                check_puts_in_memory,
                check_objects_lost,
                check_contents_not_compared,
                check_server_clock,
            ),
        },
        overrides={check_bytes_moved: check_objects_bytes_moved},
        # A store has no file system or device of the clients'.
        excluded=(
            check_target_in_memory,
            check_hidden_layer,
            check_device_busy,
            check_shared_target,
        ),
    )
    view_type, own_metric_specs, percentiles = ObjectsView, METRICS, PERCENTILES
    operations_with_percentile_intervals = TIMED
    operation_keys, omits_operations_not_done = OBJECT_KEYS, True
    operation_metrics = (*LoadAnalysis.operation_metrics, *OBJECT_KEYS)

    def directions_of_run(self, record: RunRecord) -> tuple[Direction, ...]:
        """Those of its job."""
        return record.run.point.job.data_directions

    def metric_values(
        self, view: ObjectsView, host_indexes: Sequence[int]
    ) -> dict[str, float | None]:
        """See `object_metric_values`."""
        return object_metric_values(view, host_indexes)
