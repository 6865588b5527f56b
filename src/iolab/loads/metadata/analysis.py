"""Metadata load as analysis asks of it: its checks, its phases and its metrics."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from iolab.analysis.check import CheckSlot
from iolab.analysis.checks.bytes import bytes_moved, target_is_memory
from iolab.analysis.checks.client import cpu_bound_client
from iolab.analysis.checks.fleet import clock_drift, clock_step, start_skew
from iolab.analysis.checks.idle import device_busy_before_run
from iolab.analysis.checks.run import engine_errors, totals_disagree
from iolab.analysis.checks.storage_bytes import storage_bytes
from iolab.analysis.checks.time import (
    missing_seconds,
    no_common_window,
    percentile_support,
    periodic_rate,
    run_too_short,
    startup_transient,
    wide_interval,
)
from iolab.analysis.evenness import host_spread
from iolab.analysis.kinds import Facts, LoadAnalysis, shared_checks_with_overrides
from iolab.analysis.sums import sum_measured_window
from iolab.analysis.view import HostKindAnswers
from iolab.analysis.window import Window
from iolab.core.metric import Metric, Spread
from iolab.core.run import RunRecord
from iolab.core.samples import Floats
from iolab.loads.metadata.checks import (
    client_cache_hits,
    metadata_counted,
    metadata_cpu,
    metadata_engine,
    metadata_failed,
    metadata_idle,
    metadata_percentiles,
    metadata_sums,
    phase_incomplete,
    phase_too_short,
    rank_skew,
    ranks_preempted,
    reported_rates,
)
from iolab.loads.metadata.metrics import (
    METADATA_KEYS,
    MetadataLoad,
    MetadataView,
    PhaseLoad,
    any_rank_windows,
    metadata_host_metrics,
    metadata_metrics,
    sum_metadata_load,
)

if TYPE_CHECKING:
    from iolab.hosts.rates import CounterSeries


class MetadataAnalysis(LoadAnalysis[MetadataView]):
    """Sums by phase and host."""

    checks = shared_checks_with_overrides(
        added_after={
            engine_errors: (metadata_failed, phase_incomplete),
            totals_disagree: (metadata_counted, reported_rates, rank_skew),
            clock_step: (phase_too_short,),
            target_is_memory: (client_cache_hits, ranks_preempted),
        },
        overrides={
            engine_errors: metadata_engine,
            totals_disagree: metadata_sums,
            percentile_support: metadata_percentiles,
            cpu_bound_client: metadata_cpu,
            device_busy_before_run: metadata_idle,
        },
        excluded=(
            no_common_window,
            start_skew,
            clock_drift,
            run_too_short,
            missing_seconds,
            startup_transient,
            periodic_rate,
            wide_interval,
            CheckSlot.LIMITS,
            bytes_moved,
            storage_bytes,
            CheckSlot.BYTES,
        ),
    )
    operation_metrics = METADATA_KEYS

    def build_view(
        self,
        record: RunRecord,
        facts: Facts,
        telemetry: tuple[CounterSeries, ...],
        host_kinds: tuple[HostKindAnswers, ...],
    ) -> MetadataView:
        """With what its phases did."""
        return MetadataView(
            record,
            facts,
            sum_measured_window(record),
            telemetry,
            host_kinds=host_kinds,
            metadata=sum_metadata_load(record),
        )

    def fleet_metrics(self, view: MetadataView) -> dict[str, Metric]:
        """See `metadata_metrics`."""
        return metadata_metrics(view.record, view.metadata)

    def host_metrics(self, view: MetadataView, index: int) -> dict[str, Metric]:
        """See `metadata_host_metrics`."""
        return metadata_host_metrics(view.metadata, index)

    def window_s(self, view: MetadataView) -> float:
        """The shortest common window of the phases on files."""
        return view.metadata.window_s

    def host_spreads(self, view: MetadataView) -> dict[str, Spread]:
        """By operation."""
        return operation_spreads(view.record, view.metadata)


def operation_spreads(record: RunRecord, load: MetadataLoad) -> dict[str, Spread]:
    """The spread of each phase of metadata load of several hosts, by the operation's key.

    Phases follow each other, so that the hosts of each are a fleet of its own. Rates are operations
    per second in the phase's common window, or where it has none each host's over its own phase.
    """
    spreads: dict[str, Spread] = {}
    for phase in load.phases:
        spans = any_rank_windows(phase.operation_runs, record.hosts)
        spread = host_spread(record.hosts, spans, _phase_rates_by_host(phase, spans))
        if spread is not None:
            spreads[phase.operation.key] = spread
    return spreads


def _phase_rates_by_host(phase: PhaseLoad, spans: Sequence[Window | None]) -> Floats:
    if phase.has_common_window:
        return np.asarray(phase.intervals_inside / phase.seconds)
    return np.array(
        [
            run.completed / span.seconds if run and span and span.end_ns > span.start_ns else 0.0
            for run, span in zip(phase.operation_runs, spans, strict=True)
        ]
    )
