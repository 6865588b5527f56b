"""The checks that every result goes through, in the order in which they are shown."""

from __future__ import annotations

from typing import Final

from iolab.analyse.checks.caching import buffered_io, cache_hits, holes, target_in_memory
from iolab.analyse.checks.client import cpu_bound_client, cpu_stolen, thermal_throttling
from iolab.analyse.checks.depth import depth_not_reached, littles_law
from iolab.analyse.checks.duration import (
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
from iolab.analyse.checks.moved import bytes_moved
from iolab.analyse.checks.registry import Check

CHECKS: Final[tuple[Check, ...]] = (
    run_unfinished,
    engine_errors,
    totals_disagree,
    no_common_window,
    run_too_short,
    missing_seconds,
    percentile_support,
    target_in_memory,
    buffered_io,
    cache_hits,
    bytes_moved,
    holes,
    depth_not_reached,
    littles_law,
    cpu_bound_client,
    cpu_stolen,
    thermal_throttling,
    device_busy,
)
"""Every check; a result's verdict is the worst of their levels."""
