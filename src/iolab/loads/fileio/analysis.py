"""I/O on files as analysis asks of it: its checks, its sums and its metrics."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

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
    cycle,
    hosts_left_out,
    imprecise,
    missing_seconds,
    no_common_window,
    percentile_support,
    run_too_short,
    transient,
)
from iolab.analysis.evenness import spread_of
from iolab.analysis.kinds import WHOLE_RUN, Facts
from iolab.analysis.metrics import fleet_metrics, host_metrics, with_intervals
from iolab.analysis.service_time import service_metrics, service_of
from iolab.analysis.steady import steady_of
from iolab.analysis.sums import measure
from iolab.analysis.view import HostAnswers, RunView
from iolab.core.metric import Metric, NodeResult, Spread
from iolab.core.run import RunRecord
from iolab.loads.fileio.checks import (
    coordinated_omission,
    depth_not_reached,
    generator_bound,
    generator_late,
    littles_law,
    wrong_blocks,
)
from iolab.loads.fileio.sampled import access_pattern, block_size, latency_contradicted

if TYPE_CHECKING:
    from iolab.hosts.rates import Series

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


class FileAnalysis:
    """Sums by host and direction."""

    checks: Final = CHECKS

    def view(
        self,
        record: RunRecord,
        facts: Facts,
        telemetry: tuple[Series, ...],
        host_kinds: tuple[HostAnswers, ...],
    ) -> RunView:
        """With what its seconds say of it, and the service times of an open loop."""
        steady = steady_of(record)
        load = measure(record, steady.window if steady and record.rule else None)
        service = service_of(record, load)
        return RunView(record, facts, load, telemetry, steady, service, host_kinds)

    def fleet(self, view: RunView) -> dict[str, Metric]:
        """See `fleet_metrics`."""
        metrics = fleet_metrics(view.load, view.access)
        found = with_intervals(metrics, view.record, view.load, view.steady)
        shared = list(range(len(view.hosts))) if view.load.shared else []
        return found | service_metrics(view.service, shared)

    def host(self, view: RunView, index: int) -> dict[str, Metric]:
        """See `host_metrics`."""
        found = host_metrics(view.load, index, view.access)
        return found | service_metrics(view.service, [index])

    def window_s(self, view: RunView) -> float:
        """Of the host with the least."""
        return view.load.window_s

    def spreads(self, view: RunView) -> Mapping[str, Spread]:
        """By I/Os."""
        spread = spread_of(view.record, view.load)
        return {} if spread is None else {WHOLE_RUN: spread}

    def nodes(self, view: RunView) -> tuple[NodeResult, ...]:
        """As the hosts' kinds know them."""
        return tuple(node for kind in view.host_kinds for node in kind.nodes(view))
