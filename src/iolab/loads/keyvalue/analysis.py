"""Load on a key-value store as analysis asks of it: its checks, its sums and its metrics."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from msgspec.structs import replace

from iolab.analysis.check import CheckSlot
from iolab.analysis.checks.bytes import bytes_moved, hidden_layer, target_is_memory
from iolab.analysis.checks.client import cpu_bound_client
from iolab.analysis.checks.fleet import uneven_fleet
from iolab.analysis.checks.idle import device_busy_before_run
from iolab.analysis.checks.run import engine_errors, totals_disagree
from iolab.analysis.checks.storage_bytes import storage_bytes
from iolab.analysis.checks.time import percentile_support
from iolab.analysis.evenness import host_io_windows, host_spread
from iolab.analysis.kinds import WHOLE_RUN, Facts, LoadAnalysis, shared_checks_with_overrides
from iolab.analysis.steady import judge_steadiness
from iolab.analysis.sums import sum_measured_window
from iolab.analysis.view import HostKindAnswers
from iolab.core.metric import Metric, Spread
from iolab.core.run import RunRecord
from iolab.core.stopping import LSM
from iolab.loads.keyvalue.checks import (
    debug_build,
    key_operations_counted,
    key_operations_failed,
    key_percentiles,
    key_value_cpu,
    key_value_errors,
    key_value_omission,
    key_value_sums,
    key_value_uneven,
    keys_absent,
    shared_seed,
    wide_latency_bins,
    writer_rate,
)
from iolab.loads.keyvalue.metrics import (
    KEY_VALUE_KEYS,
    WHOLE_OPERATION_WEIGHTS,
    KeyValueView,
    fixed_length_window,
    key_value_host_metrics,
    key_value_metrics,
    sum_key_value_load,
    with_key_value_intervals,
)
from iolab.loads.keyvalue.store_checks import (
    compaction_debt,
    database_shape,
    database_start_state,
    key_value_idle,
    key_value_layers,
    key_value_target,
    reads_from_memory,
    server_died,
    warm_caches,
)

if TYPE_CHECKING:
    from iolab.hosts.rates import CounterSeries


class KeyValueAnalysis(LoadAnalysis[KeyValueView]):
    """Sums by host and operation, whatever the engine."""

    checks = shared_checks_with_overrides(
        added_after={
            engine_errors: (server_died, key_operations_failed, keys_absent),
            totals_disagree: (key_operations_counted, debug_build, shared_seed),
            percentile_support: (wide_latency_bins,),
            target_is_memory: (
                database_start_state,
                warm_caches,
                database_shape,
                compaction_debt,
                reads_from_memory,
                writer_rate,
                key_value_omission,
                uneven_fleet.override(key_value_uneven),
            ),
        },
        overrides={
            engine_errors: key_value_errors,
            totals_disagree: key_value_sums,
            percentile_support: key_percentiles,
            target_is_memory: key_value_target,
            hidden_layer: key_value_layers,
            cpu_bound_client: key_value_cpu,
            device_busy_before_run: key_value_idle,
        },
        excluded=(CheckSlot.LIMITS, bytes_moved, storage_bytes, CheckSlot.BYTES),
    )
    operation_metrics = KEY_VALUE_KEYS

    def build_view(
        self,
        record: RunRecord,
        facts: Facts,
        telemetry: tuple[CounterSeries, ...],
        host_kinds: tuple[HostKindAnswers, ...],
    ) -> KeyValueView:
        """With what was done to the store; its seconds are judged as of one that stalls."""
        steady = judge_steadiness(record, LSM, WHOLE_OPERATION_WEIGHTS)
        window = steady.window if steady and record.rule else fixed_length_window(record)
        keys = sum_key_value_load(record, window)
        load = replace(sum_measured_window(record, window), seconds=keys.seconds)
        return KeyValueView(
            record,
            facts,
            load,
            telemetry,
            steady,
            host_kinds=host_kinds,
            key_value_load=keys,
        )

    def fleet_metrics(self, view: KeyValueView) -> dict[str, Metric]:
        """See `key_value_metrics`."""
        load = view.key_value_load
        metrics = key_value_metrics(load, view.key_value_job)
        return with_key_value_intervals(metrics, view.record, load, view.steadiness_view)

    def host_metrics(self, view: KeyValueView, index: int) -> dict[str, Metric]:
        """See `key_value_host_metrics`."""
        return key_value_host_metrics(view.key_value_load, index, view.key_value_job)

    def window_s(self, view: KeyValueView) -> float:
        """Of the host with the least."""
        return view.load.window_s

    def host_spreads(self, view: KeyValueView) -> Mapping[str, Spread]:
        """By whole operations."""
        load = view.key_value_load
        spread = host_spread(
            view.hosts, host_io_windows(view.record, load.measured_part), load.fleet_rates
        )
        return {} if spread is None else {WHOLE_RUN: spread}
