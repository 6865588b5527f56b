"""Checkpoint load as analysis asks of it: its checks, its phases and its metrics."""

from __future__ import annotations

from typing import TYPE_CHECKING

from iolab.analysis.check import HostKindCheckSlot
from iolab.analysis.checks.line_rate import check_line_rate
from iolab.analysis.checks.run import (
    check_engine_errors,
    check_totals_disagree,
    check_verify_mismatch,
)
from iolab.analysis.checks.time import (
    check_missing_seconds,
    check_no_common_window,
    check_percentile_support,
    check_periodic_rate,
    check_run_too_short,
    check_startup_transient,
    check_wide_interval,
)
from iolab.analysis.kinds import Facts, LoadAnalysis, shared_checks_with_overrides
from iolab.analysis.metrics import host_metrics as io_host_metrics
from iolab.analysis.metrics import metrics_of_host_group
from iolab.analysis.sums import sum_measured_window
from iolab.analysis.view import HostKindQueries
from iolab.core.metric import HostEvenness, Metric
from iolab.core.run import RunRecord
from iolab.core.workload import Direction
from iolab.loads.checkpoint.checks import (
    check_checkpoint_engine_errors,
    check_not_durable,
    check_ranks_missing,
    check_restored_from_memory,
    check_slowest_rank,
    check_work_outside_window,
)
from iolab.loads.checkpoint.metrics import REQUEST_KEYS, CheckpointView, checkpoint_metrics
from iolab.loads.checkpoint.workload import CheckpointJob, PhaseName

if TYPE_CHECKING:
    from iolab.hosts.rates import CounterSeries


class CheckpointAnalysis(LoadAnalysis[CheckpointView]):
    """Two phases that follow each other, each as slow as its slowest rank."""

    checks = shared_checks_with_overrides(
        added_after={
            check_engine_errors: (check_ranks_missing, check_verify_mismatch),
            check_totals_disagree: (check_slowest_rank,),
            HostKindCheckSlot.BYTES: (
                check_line_rate,
                check_not_durable,
                check_work_outside_window,
                check_restored_from_memory,
            ),
        },
        overrides={check_engine_errors: check_checkpoint_engine_errors},
        # A phase ends with its work and has no window; between two of them nothing is done.
        excluded=(
            check_no_common_window,
            check_run_too_short,
            check_missing_seconds,
            check_startup_transient,
            check_periodic_rate,
            check_wide_interval,
            check_percentile_support,
        ),
    )
    operation_metrics = REQUEST_KEYS

    def directions_of_run(self, record: RunRecord) -> tuple[Direction, ...]:
        """Those of its phases."""
        job = CheckpointJob.require_type(record.run.point.job)
        return tuple(sorted(phase.direction for phase in job.phases))

    def build_view(
        self,
        record: RunRecord,
        facts: Facts,
        telemetry: tuple[CounterSeries, ...],
        host_kinds: tuple[HostKindQueries, ...],
    ) -> CheckpointView:
        """All of both phases."""
        load = sum_measured_window(record)
        return CheckpointView(record, facts, load, telemetry, host_kinds=host_kinds)

    def fleet_metrics(self, view: CheckpointView) -> dict[str, Metric]:
        """See `checkpoint_metrics`; with the latencies of requests."""
        hosts = list(range(len(view.hosts)))
        every = metrics_of_host_group(view.load, hosts, self.directions_of_run(view.record))
        return checkpoint_metrics(view) | _request_latencies(every)

    def host_metrics(self, view: CheckpointView, host_index: int) -> dict[str, Metric]:
        """The same of one host's ranks."""
        every = io_host_metrics(view.load, host_index, self.directions_of_run(view.record))
        return checkpoint_metrics(view, [host_index]) | _request_latencies(every)

    def window_s(self, view: CheckpointView) -> float:
        """All phases together."""
        times = [view.phase_rank_times(phase) for phase in PhaseName]
        return sum(found.start_to_last_rank_end_ns for found in times if found is not None) / 1e9

    def evenness_by_phase(self, view: CheckpointView) -> dict[str, HostEvenness]:  # noqa: ARG002
        """None: ranks are told apart, and not their hosts."""
        return {}


def _request_latencies(metrics: dict[str, Metric]) -> dict[str, Metric]:
    return {key: metrics[key] for key in REQUEST_KEYS if key in metrics}
