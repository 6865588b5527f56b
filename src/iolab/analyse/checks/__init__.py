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
    device_busy,
    engine_errors,
    run_unfinished,
    totals_disagree,
)
from iolab.analyse.checks.fleet import bystander_lost, clock_drift, start_skew, uneven_fleet
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
    metadata_idle,
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
    target_in_memory,
    buffered_io,
    cache_hits,
    bytes_moved,
    storage_bytes,
    holes,
    unequal_state,
    depth_not_reached,
    littles_law,
    coordinated_omission,
    uneven_fleet,
    cpu_bound_client,
    cpu_stolen,
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
    target_in_memory,
    client_answers,
    ranks_preempted,
    replace(cpu_bound_client, judge=metadata_cpu),
    cpu_stolen,
    thermal_throttling,
    replace(device_busy, judge=metadata_idle),
    bystander_lost,
)
"""Every check of metadata load. Where a code is also one of I/O, it asks the same of operations."""

EVERY_CHECK: Final[tuple[Check, ...]] = (
    *CHECKS,
    *(made for made in METADATA_CHECKS if made.code not in {check.code for check in CHECKS}),
)
"""Each code once."""
