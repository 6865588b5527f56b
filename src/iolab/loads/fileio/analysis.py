"""I/O on files as analysis asks of it: its checks, its sums and its metrics."""

from __future__ import annotations

from typing import Final

from iolab.analysis.check import Check, HostQuestion
from iolab.analysis.checks.bytes import (
    buffered_io,
    bytes_moved,
    cache_hits,
    holes,
    target_in_memory,
)
from iolab.analysis.checks.client import (
    client_starved,
    client_throttled,
    cpu_bound_client,
    cpu_stolen,
    thermal_throttling,
)
from iolab.analysis.checks.fleet import (
    bystander_lost,
    clock_drift,
    clock_step,
    start_skew,
    uneven_fleet,
)
from iolab.analysis.checks.idle import device_busy
from iolab.analysis.checks.run import (
    engine_errors,
    run_unfinished,
    totals_disagree,
    unequal_state,
    versions_differ,
)
from iolab.analysis.checks.storage_bytes import storage_bytes
from iolab.analysis.checks.time import (
    burst_credits,
    cycle,
    hosts_left_out,
    imprecise,
    missing_seconds,
    no_common_window,
    percentile_support,
    run_too_short,
    transient,
)
from iolab.analysis.kinds import LoadAnalysis
from iolab.analysis.view import RunView
from iolab.core.metric import NodeResult
from iolab.core.run import RunRecord
from iolab.core.samples import Direction, ways_of
from iolab.loads.fileio.checks import (
    coordinated_omission,
    depth_not_reached,
    generator_bound,
    generator_late,
    littles_law,
    wrong_blocks,
)
from iolab.loads.fileio.sampled import access_pattern, block_size, latency_contradicted

CHECKS: Final[tuple[Check[RunView] | HostQuestion, ...]] = (
    run_unfinished,
    hosts_left_out,
    versions_differ,
    engine_errors,
    wrong_blocks,
    totals_disagree,
    no_common_window,
    start_skew,
    clock_drift,
    clock_step,
    run_too_short,
    missing_seconds,
    transient,
    burst_credits,
    cycle,
    imprecise,
    percentile_support,
    HostQuestion.PROCESSORS_REAL,
    HostQuestion.LIMITS,
    target_in_memory,
    buffered_io,
    cache_hits,
    bytes_moved,
    block_size,
    access_pattern,
    storage_bytes,
    HostQuestion.BYTES,
    holes,
    unequal_state,
    depth_not_reached,
    latency_contradicted,
    littles_law,
    HostQuestion.LATENCY,
    coordinated_omission,
    generator_late,
    uneven_fleet,
    generator_bound,
    cpu_bound_client,
    client_throttled,
    client_starved,
    cpu_stolen,
    HostQuestion.PROCESSORS_FREE,
    thermal_throttling,
    device_busy,
    bystander_lost,
)
"""A result's verdict is the worst of their levels."""


class FileAnalysis(LoadAnalysis[RunView]):
    """By the directions that the access pattern has."""

    checks = CHECKS

    def ways(self, record: RunRecord) -> tuple[Direction, ...]:
        """See `ways_of`."""
        return ways_of(record.run.point.io.access)

    def nodes(self, view: RunView) -> tuple[NodeResult, ...]:
        """As the hosts' kinds know them."""
        return tuple(node for kind in view.host_kinds for node in kind.nodes(view))
