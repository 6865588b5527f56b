"""Training-read load as analysis asks of it: its checks, its steps and its metrics."""

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
from iolab.analysis.checks.run import check_totals_disagree
from iolab.analysis.checks.time import (
    check_periodic_rate,
    check_startup_transient,
    check_wide_interval,
)
from iolab.analysis.kinds import LoadAnalysis, shared_checks_with_overrides
from iolab.analysis.named_operations import OperationsAnalysis
from iolab.core.workload import Direction
from iolab.loads.training.checks import (
    check_emulator_late,
    check_files_fit_in_memory,
    check_first_epoch,
    check_step_parts,
)
from iolab.loads.training.metric_specs import METRICS
from iolab.loads.training.metrics import (
    LATENCY_KEYS,
    PERCENTILES,
    TIMED,
    TrainingView,
    training_metric_values,
)


class TrainingAnalysis(OperationsAnalysis[TrainingView]):
    """Files are read; batches and steps are made of these."""

    checks = shared_checks_with_overrides(
        added_after={
            check_totals_disagree: (check_step_parts,),
            check_target_in_memory: (
                check_buffered_io,
                check_cache_hits,
                check_files_fit_in_memory,
            ),
            HostKindCheckSlot.BYTES: (
                check_line_rate,
                check_unwritten_extents,
                HostKindCheckSlot.LATENCY,
                check_first_epoch,
                check_emulator_late,
            ),
        },
        # How fast reads come is the accelerators': between epochs they pause.
        excluded=(check_startup_transient, check_periodic_rate, check_wide_interval),
    )
    directions = (Direction.READ,)
    view_type, own_metric_specs, percentiles = TrainingView, METRICS, PERCENTILES
    operations_with_percentile_intervals = TIMED
    operation_keys = LATENCY_KEYS
    operation_metrics = (*LoadAnalysis.operation_metrics, *LATENCY_KEYS)

    def metric_values(
        self, view: TrainingView, host_indexes: Sequence[int]
    ) -> dict[str, float | None]:
        """See `training_metric_values`."""
        return training_metric_values(view, host_indexes)
