"""Training-read load as analysis asks of it: its checks, its steps and its metrics."""

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
from iolab.analysis.checks.run import check_totals_disagree
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
from iolab.loads.training.checks import (
    check_data_fits_in_memory,
    check_emulator_late,
    check_first_epoch,
    check_step_parts,
)
from iolab.loads.training.metrics import (
    LATENCY_KEYS,
    TrainingView,
    training_metrics,
    training_metrics_with_intervals,
)
from iolab.loads.training.workload import TrainingOperation

if TYPE_CHECKING:
    from iolab.hosts.rates import CounterSeries


class TrainingAnalysis(LoadAnalysis[TrainingView]):
    """Files are read; batches and steps are made of these."""

    checks = shared_checks_with_overrides(
        added_after={
            check_totals_disagree: (check_step_parts,),
            check_target_in_memory: (
                check_buffered_io,
                check_cache_hits,
                check_data_fits_in_memory,
            ),
            CheckSlot.BYTES: (
                check_line_rate,
                check_unwritten_extents,
                CheckSlot.LATENCY,
                check_first_epoch,
                check_emulator_late,
            ),
        },
        # How fast reads come is the accelerators': between epochs they pause.
        excluded=(check_startup_transient, check_periodic_rate, check_wide_interval),
    )
    directions = (Direction.READ,)
    operation_metrics = (*LoadAnalysis.operation_metrics, *LATENCY_KEYS)

    def build_view(
        self,
        record: RunRecord,
        facts: Facts,
        telemetry: tuple[CounterSeries, ...],
        host_kinds: tuple[HostKindQueries, ...],
    ) -> TrainingView:
        """With what its steps consist of."""
        view = super().build_view(record, facts, telemetry, host_kinds)
        own = sum_operations_in_window(record, list(TrainingOperation), view.load.measured_part)
        return TrainingView(**{**asdict(view), "steps": own})

    def fleet_metrics(self, view: TrainingView) -> dict[str, Metric]:
        """With those of its steps."""
        return super().fleet_metrics(view) | training_metrics_with_intervals(view)

    def host_metrics(self, view: TrainingView, index: int) -> dict[str, Metric]:
        """With those of its steps."""
        return super().host_metrics(view, index) | training_metrics(view, [index])
