"""KV-cache load as analysis asks of it: its checks, its requests and its metrics."""

from __future__ import annotations

from collections.abc import Sequence

from iolab.analysis.check import HostKindCheckSlot
from iolab.analysis.checks.bytes import (
    check_buffered_io,
    check_cache_hits,
    check_target_in_memory,
    check_unwritten_extents,
)
from iolab.analysis.checks.line_rate import check_line_rate
from iolab.analysis.checks.run import (
    check_engine_errors,
    check_totals_disagree,
    check_verify_mismatch,
)
from iolab.analysis.checks.time import (
    check_periodic_rate,
    check_startup_transient,
    check_wide_interval,
)
from iolab.analysis.kinds import LoadAnalysis, shared_checks_with_overrides
from iolab.analysis.named_operations import OperationsAnalysis
from iolab.core.run import RunRecord
from iolab.core.workload import Direction
from iolab.loads.kvcache.checks import (
    check_capacity_not_filled,
    check_queue_grows,
    check_requests_late,
    check_reuse_differs,
    check_work_outside_window,
)
from iolab.loads.kvcache.metric_specs import METRICS
from iolab.loads.kvcache.metrics import (
    PREFIX_KEYS,
    PREFIX_PERCENTILES,
    KvCacheView,
    request_metric_values,
)
from iolab.loads.kvcache.workload import KvCacheOperation


class KvCacheAnalysis(OperationsAnalysis[KvCacheView]):
    """Objects are read and written; requests are made of these."""

    checks = shared_checks_with_overrides(
        added_after={
            check_engine_errors: (check_verify_mismatch,),
            check_totals_disagree: (check_reuse_differs, check_capacity_not_filled),
            check_target_in_memory: (check_buffered_io, check_cache_hits),
            HostKindCheckSlot.BYTES: (
                check_line_rate,
                check_unwritten_extents,
                HostKindCheckSlot.LATENCY,
                check_queue_grows,
                check_work_outside_window,
                check_requests_late,
            ),
        },
        # How fast requests come is the trace's: it says nothing of the target.
        excluded=(check_startup_transient, check_periodic_rate, check_wide_interval),
    )
    view_type, own_metric_specs, percentiles = KvCacheView, METRICS, PREFIX_PERCENTILES
    operations_with_percentile_intervals, operation_keys = (
        (KvCacheOperation.PREFIX_LOAD,),
        PREFIX_KEYS,
    )
    operation_metrics = (*LoadAnalysis.operation_metrics, *PREFIX_KEYS)

    def directions_of_run(self, record: RunRecord) -> tuple[Direction, ...]:
        """Those of its job."""
        return record.run.point.job.data_directions

    def metric_values(
        self, view: KvCacheView, host_indexes: Sequence[int]
    ) -> dict[str, float | None]:
        """See `request_metric_values`."""
        return request_metric_values(view, host_indexes)
