"""Metadata load as analysis asks of it: its checks, its phases and its metrics."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from iolab.analysis.check import HostKindCheckSlot
from iolab.analysis.checks.bytes import check_bytes_moved, check_target_in_memory
from iolab.analysis.checks.client import check_cpu_bound_client
from iolab.analysis.checks.fleet import check_clock_drift, check_clock_step, check_start_skew
from iolab.analysis.checks.idle import check_device_busy
from iolab.analysis.checks.run import check_engine_errors, check_totals_disagree
from iolab.analysis.checks.storage_bytes import check_storage_bytes
from iolab.analysis.checks.time import (
    check_missing_seconds,
    check_no_common_window,
    check_percentile_support,
    check_periodic_rate,
    check_run_too_short,
    check_startup_transient,
    check_wide_interval,
)
from iolab.analysis.evenness import host_evenness
from iolab.analysis.kinds import Facts, LoadAnalysis, shared_checks_with_overrides
from iolab.analysis.sums import sum_measured_window
from iolab.analysis.view import HostKindQueries
from iolab.analysis.window import Window
from iolab.core.metric import HostEvenness, Metric
from iolab.core.run import RunRecord
from iolab.core.samples import Floats
from iolab.loads.metadata.checks import (
    check_client_answers,
    check_metadata_cpu_bound_client,
    check_metadata_device_busy,
    check_metadata_engine_errors,
    check_metadata_operations_counted,
    check_metadata_operations_failed,
    check_metadata_percentile_support,
    check_metadata_totals_disagree,
    check_phase_incomplete,
    check_phase_too_short,
    check_rank_skew,
    check_ranks_preempted,
    check_reported_rates,
)
from iolab.loads.metadata.metrics import (
    METADATA_KEYS,
    MetadataPhaseSums,
    MetadataSums,
    MetadataView,
    any_rank_busy_windows,
    metadata_host_metrics,
    metadata_metrics,
    sum_metadata_phases,
)

if TYPE_CHECKING:
    from iolab.hosts.rates import CounterSeries


class MetadataAnalysis(LoadAnalysis[MetadataView]):
    """Sums by phase and host."""

    checks = shared_checks_with_overrides(
        added_after={
            check_engine_errors: (check_metadata_operations_failed, check_phase_incomplete),
            check_totals_disagree: (
                check_metadata_operations_counted,
                check_reported_rates,
                check_rank_skew,
            ),
            check_clock_step: (check_phase_too_short,),
            check_target_in_memory: (check_client_answers, check_ranks_preempted),
        },
        overrides={
            check_engine_errors: check_metadata_engine_errors,
            check_totals_disagree: check_metadata_totals_disagree,
            check_percentile_support: check_metadata_percentile_support,
            check_cpu_bound_client: check_metadata_cpu_bound_client,
            check_device_busy: check_metadata_device_busy,
        },
        excluded=(
            check_no_common_window,
            check_start_skew,
            check_clock_drift,
            check_run_too_short,
            check_missing_seconds,
            check_startup_transient,
            check_periodic_rate,
            check_wide_interval,
            HostKindCheckSlot.LIMITS,
            check_bytes_moved,
            check_storage_bytes,
            HostKindCheckSlot.BYTES,
        ),
    )
    operation_metrics = METADATA_KEYS

    def build_view(
        self,
        record: RunRecord,
        facts: Facts,
        telemetry: tuple[CounterSeries, ...],
        host_kinds: tuple[HostKindQueries, ...],
    ) -> MetadataView:
        """With what its phases did."""
        return MetadataView(
            record,
            facts,
            sum_measured_window(record),
            telemetry,
            host_kinds=host_kinds,
            metadata_sums=sum_metadata_phases(record),
        )

    def fleet_metrics(self, view: MetadataView) -> dict[str, Metric]:
        """See `metadata_metrics`."""
        return metadata_metrics(view.record, view.metadata_sums)

    def host_metrics(self, view: MetadataView, host_index: int) -> dict[str, Metric]:
        """See `metadata_host_metrics`."""
        return metadata_host_metrics(view.metadata_sums, host_index)

    def window_s(self, view: MetadataView) -> float:
        """The shortest common window of the phases on files."""
        return view.metadata_sums.shortest_common_window_s

    def evenness_by_phase(self, view: MetadataView) -> dict[str, HostEvenness]:
        """By operation."""
        return host_evenness_by_operation(view.record, view.metadata_sums)


def host_evenness_by_operation(
    record: RunRecord, metadata_sums: MetadataSums
) -> dict[str, HostEvenness]:
    """The spread of each phase of metadata load of several hosts, by the operation's key.

    Phases follow each other, so that the hosts of each are a fleet of its own. Rates are operations
    per second in the phase's common window, or where it has none each host's over its own phase.
    """
    spreads: dict[str, HostEvenness] = {}
    for phase in metadata_sums.phases:
        spans = any_rank_busy_windows(phase.operation_runs, record.hosts)
        spread = host_evenness(record.hosts, spans, _phase_rates_by_host(phase, spans))
        if spread is not None:
            spreads[phase.operation.key] = spread
    return spreads


def _phase_rates_by_host(phase: MetadataPhaseSums, spans: Sequence[Window | None]) -> Floats:
    if phase.has_common_window:
        return np.asarray(phase.completed_in_window / phase.window_seconds)
    return np.array(
        [
            run.completed / span.seconds if run and span and span.end_ns > span.start_ns else 0.0
            for run, span in zip(phase.operation_runs, spans, strict=True)
        ]
    )
