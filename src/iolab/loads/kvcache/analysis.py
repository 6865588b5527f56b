"""KV-cache load as analysis asks of it: its checks, its requests and its metrics."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import asdict

from iolab.analysis.check import CheckSlot
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
from iolab.analysis.kinds import Facts, LoadAnalysis, shared_checks_with_overrides
from iolab.analysis.sums import sum_operations_in_window
from iolab.analysis.view import HostKindQueries
from iolab.core.metric import Metric
from iolab.core.run import RunRecord
from iolab.core.workload import Direction
from iolab.loads.kvcache.checks import (
    check_capacity_filled,
    check_queue_grows,
    check_requests_late,
    check_reuse_differs,
    check_work_outside,
)
from iolab.loads.kvcache.metrics import (
    PREFIX_KEYS,
    KvCacheView,
    request_metrics,
    request_metrics_with_intervals,
)
from iolab.loads.kvcache.workload import KvOperation

if TYPE_CHECKING:
    from iolab.hosts.rates import CounterSeries


class KvCacheAnalysis(LoadAnalysis[KvCacheView]):
    """Objects are read and written; requests are made of these."""

    checks = shared_checks_with_overrides(
        added_after={
            check_engine_errors: (check_verify_mismatch,),
            check_totals_disagree: (check_reuse_differs, check_capacity_filled),
            check_target_in_memory: (check_buffered_io, check_cache_hits),
            CheckSlot.BYTES: (
                check_line_rate,
                check_unwritten_extents,
                CheckSlot.LATENCY,
                check_queue_grows,
                check_work_outside,
                check_requests_late,
            ),
        },
        # How fast requests come is the trace's: it says nothing of the target.
        excluded=(check_startup_transient, check_periodic_rate, check_wide_interval),
    )
    operation_metrics = (*LoadAnalysis.operation_metrics, *PREFIX_KEYS)

    def directions_of_run(self, record: RunRecord) -> tuple[Direction, ...]:
        """Those of its job."""
        return record.run.point.job.data_directions

    def build_view(
        self,
        record: RunRecord,
        facts: Facts,
        telemetry: tuple[CounterSeries, ...],
        host_kinds: tuple[HostKindQueries, ...],
    ) -> KvCacheView:
        """With what its requests did."""
        view = super().build_view(record, facts, telemetry, host_kinds)
        own = sum_operations_in_window(record, list(KvOperation), view.load.measured_part)
        return KvCacheView(**{**asdict(view), "requests": own})

    def fleet_metrics(self, view: KvCacheView) -> dict[str, Metric]:
        """With those of its requests."""
        return super().fleet_metrics(view) | request_metrics_with_intervals(view)

    def host_metrics(self, view: KvCacheView, index: int) -> dict[str, Metric]:
        """With those of its requests."""
        return super().host_metrics(view, index) | request_metrics(view, [index])
