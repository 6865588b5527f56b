"""Load on a key-value store as analysis asks of it: its checks, its sums and its metrics."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from msgspec.structs import replace

from iolab.analysis.check import HostKindCheckSlot
from iolab.analysis.checks.bytes import (
    check_bytes_moved,
    check_hidden_layer,
    check_target_in_memory,
)
from iolab.analysis.checks.client import check_cpu_bound_client
from iolab.analysis.checks.fleet import check_uneven_fleet
from iolab.analysis.checks.idle import check_device_busy
from iolab.analysis.checks.run import check_engine_errors, check_totals_disagree
from iolab.analysis.checks.storage_bytes import check_storage_bytes
from iolab.analysis.checks.time import check_percentile_support
from iolab.analysis.evenness import host_evenness, host_io_windows
from iolab.analysis.kinds import WHOLE_RUN, Facts, LoadAnalysis, shared_checks_with_overrides
from iolab.analysis.steady import judge_steadiness
from iolab.analysis.sums import sum_measured_window
from iolab.analysis.view import HostKindQueries
from iolab.core.metric import HostEvenness, Metric
from iolab.core.run import RunRecord
from iolab.core.stopping import LSM
from iolab.loads.keyvalue.checks import (
    check_debug_build,
    check_key_operations_counted_by_store,
    check_key_operations_failed,
    check_key_operations_in_flight,
    check_key_value_coordinated_omission,
    check_key_value_cpu_bound_client,
    check_key_value_engine_errors,
    check_key_value_percentile_support,
    check_key_value_totals_disagree,
    check_key_value_uneven_fleet,
    check_keys_absent,
    check_seed_shared,
    check_wide_percentile_bins,
    check_writer_rate,
)
from iolab.loads.keyvalue.metrics import (
    KEY_VALUE_KEYS,
    WHOLE_OPERATION_WEIGHTS,
    KeyValueView,
    key_value_host_metrics,
    key_value_metrics,
    metrics_with_key_value_intervals,
    runtime_window,
    sum_key_value_operations,
)
from iolab.loads.keyvalue.store_checks import (
    check_compaction_debt,
    check_key_value_device_busy,
    check_key_value_hidden_layer,
    check_key_value_target_in_memory,
    check_reads_from_memory,
    check_server_lost,
    check_store_shape_changed,
    check_store_start_state,
    check_warm_caches,
)

if TYPE_CHECKING:
    from iolab.hosts.rates import CounterSeries


class KeyValueAnalysis(LoadAnalysis[KeyValueView]):
    """Sums by host and operation, whatever the engine."""

    checks = shared_checks_with_overrides(
        added_after={
            check_engine_errors: (
                check_server_lost,
                check_key_operations_failed,
                check_keys_absent,
            ),
            check_totals_disagree: (
                check_key_operations_counted_by_store,
                check_debug_build,
                check_seed_shared,
            ),
            check_percentile_support: (check_wide_percentile_bins, check_key_operations_in_flight),
            check_target_in_memory: (
                check_store_start_state,
                check_warm_caches,
                check_store_shape_changed,
                check_compaction_debt,
                check_reads_from_memory,
                check_writer_rate,
                check_key_value_coordinated_omission,
                check_uneven_fleet.override(check_key_value_uneven_fleet),
            ),
        },
        overrides={
            check_engine_errors: check_key_value_engine_errors,
            check_totals_disagree: check_key_value_totals_disagree,
            check_percentile_support: check_key_value_percentile_support,
            check_target_in_memory: check_key_value_target_in_memory,
            check_hidden_layer: check_key_value_hidden_layer,
            check_cpu_bound_client: check_key_value_cpu_bound_client,
            check_device_busy: check_key_value_device_busy,
        },
        excluded=(
            HostKindCheckSlot.LIMITS,
            check_bytes_moved,
            check_storage_bytes,
            HostKindCheckSlot.BYTES,
        ),
    )
    operation_metrics = KEY_VALUE_KEYS

    def build_view(
        self,
        record: RunRecord,
        facts: Facts,
        telemetry: tuple[CounterSeries, ...],
        host_kinds: tuple[HostKindQueries, ...],
    ) -> KeyValueView:
        """With what was done to the store; its seconds are judged as of one that stalls."""
        steady = judge_steadiness(record, LSM, WHOLE_OPERATION_WEIGHTS)
        window = steady.window if steady and record.rule else runtime_window(record)
        keys = sum_key_value_operations(record, window)
        load = replace(sum_measured_window(record, window), seconds=keys.seconds)
        return KeyValueView(
            record,
            facts,
            load,
            telemetry,
            steady,
            host_kinds=host_kinds,
            key_value_sums=keys,
        )

    def fleet_metrics(self, view: KeyValueView) -> dict[str, Metric]:
        """See `key_value_metrics`."""
        load = view.key_value_sums
        metrics = key_value_metrics(load, view.key_value_job)
        return metrics_with_key_value_intervals(metrics, view.record, load, view.steadiness_view)

    def host_metrics(self, view: KeyValueView, host_index: int) -> dict[str, Metric]:
        """See `key_value_host_metrics`."""
        return key_value_host_metrics(view.key_value_sums, host_index, view.key_value_job)

    def evenness_by_phase(self, view: KeyValueView) -> Mapping[str, HostEvenness]:
        """By whole operations."""
        load = view.key_value_sums
        spread = host_evenness(
            view.hosts,
            host_io_windows(view.record, load.measured_part),
            load.whole_operation_rates_by_host,
        )
        return {} if spread is None else {WHOLE_RUN: spread}
