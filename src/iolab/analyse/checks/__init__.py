"""The checks that results go through, in the order in which they are shown."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from iolab.analyse.checks.arrivals import coordinated_omission
from iolab.analyse.checks.caching import buffered_io, cache_hits, holes, target_in_memory
from iolab.analyse.checks.client import cpu_bound_client, cpu_stolen, thermal_throttling
from iolab.analyse.checks.depth import depth_not_reached, littles_law
from iolab.analyse.checks.duration import (
    hosts_left_out,
    missing_seconds,
    no_common_window,
    percentile_support,
    run_too_short,
)
from iolab.analyse.checks.engine import (
    engine_errors,
    run_unfinished,
    totals_disagree,
)
from iolab.analyse.checks.fleet import bystander_lost, clock_drift, start_skew, uneven_fleet
from iolab.analyse.checks.generator import generator_bound, generator_late, wrong_blocks
from iolab.analyse.checks.guest_bytes import guest_bytes
from iolab.analyse.checks.guests import (
    emulated_guest,
    guest_bound,
    guest_starved,
    limited_disk,
    modelled_disk,
)
from iolab.analyse.checks.idle import device_busy, metadata_idle
from iolab.analyse.checks.key_latency import (
    key_percentiles,
    key_value_cpu,
    key_value_omission,
    key_value_uneven,
    wide_bins,
    writer_rate,
)
from iolab.analyse.checks.key_stores import (
    compaction_debt,
    key_value_idle,
    key_value_target,
    reads_from_memory,
    server_lost,
    start_state,
    store_shape,
    warm_caches,
)
from iolab.analyse.checks.key_values import (
    debug_build,
    key_operations_failed,
    key_value_errors,
    key_value_sums,
    keys_absent,
    seed_shared,
)
from iolab.analyse.checks.moved import bytes_moved
from iolab.analyse.checks.operations import (
    metadata_engine,
    metadata_sums,
    operations_failed,
    phase_incomplete,
    reported_rates,
)
from iolab.analyse.checks.ranks import (
    client_answers,
    metadata_cpu,
    metadata_percentiles,
    phase_too_short,
    ranks_apart,
    ranks_preempted,
)
from iolab.analyse.checks.registry import Check
from iolab.analyse.checks.state import unequal_state
from iolab.analyse.checks.steady import cycle, imprecise, transient
from iolab.analyse.checks.storage import storage_bytes
from iolab.analyse.checks.versions import versions_differ

CHECKS: Final[tuple[Check, ...]] = (
    run_unfinished,
    hosts_left_out,
    versions_differ,
    engine_errors,
    wrong_blocks,
    totals_disagree,
    no_common_window,
    start_skew,
    clock_drift,
    run_too_short,
    missing_seconds,
    transient,
    cycle,
    imprecise,
    percentile_support,
    emulated_guest,
    modelled_disk,
    limited_disk,
    target_in_memory,
    buffered_io,
    cache_hits,
    bytes_moved,
    storage_bytes,
    guest_bytes,
    holes,
    unequal_state,
    depth_not_reached,
    littles_law,
    guest_bound,
    coordinated_omission,
    generator_late,
    uneven_fleet,
    generator_bound,
    cpu_bound_client,
    cpu_stolen,
    guest_starved,
    thermal_throttling,
    device_busy,
    bystander_lost,
)
"""Every check of I/O on files; a result's verdict is the worst of their levels."""

METADATA_CHECKS: Final[tuple[Check, ...]] = (
    run_unfinished,
    hosts_left_out,
    versions_differ,
    replace(engine_errors, judge=metadata_engine),
    operations_failed,
    phase_incomplete,
    replace(totals_disagree, judge=metadata_sums),
    reported_rates,
    ranks_apart,
    phase_too_short,
    replace(percentile_support, judge=metadata_percentiles),
    emulated_guest,
    modelled_disk,
    target_in_memory,
    client_answers,
    ranks_preempted,
    replace(cpu_bound_client, judge=metadata_cpu),
    cpu_stolen,
    guest_starved,
    thermal_throttling,
    replace(device_busy, judge=metadata_idle),
    bystander_lost,
)
"""Every check of metadata load. Where a code is also one of I/O, it asks the same of operations."""

KEY_VALUE_CHECKS: Final[tuple[Check, ...]] = (
    run_unfinished,
    hosts_left_out,
    versions_differ,
    replace(engine_errors, judge=key_value_errors),
    server_lost,
    replace(operations_failed, judge=key_operations_failed),
    keys_absent,
    replace(totals_disagree, judge=key_value_sums),
    debug_build,
    seed_shared,
    no_common_window,
    start_skew,
    clock_drift,
    run_too_short,
    missing_seconds,
    transient,
    cycle,
    imprecise,
    replace(percentile_support, judge=key_percentiles),
    wide_bins,
    emulated_guest,
    modelled_disk,
    replace(target_in_memory, judge=key_value_target),
    start_state,
    warm_caches,
    store_shape,
    compaction_debt,
    reads_from_memory,
    writer_rate,
    replace(coordinated_omission, judge=key_value_omission),
    replace(uneven_fleet, judge=key_value_uneven),
    replace(cpu_bound_client, judge=key_value_cpu),
    cpu_stolen,
    guest_starved,
    thermal_throttling,
    replace(device_busy, judge=key_value_idle),
    bystander_lost,
)
"""Every check of load on a key-value store; again, a code that others have asks the same of it."""

EVERY_CHECK: Final[tuple[Check, ...]] = tuple(
    {made.code: made for made in (*KEY_VALUE_CHECKS, *METADATA_CHECKS, *CHECKS)}.values()
)
"""Each code once."""
