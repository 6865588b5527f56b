"""I/O on files as analysis asks of it: its checks, its sums and its metrics."""

from __future__ import annotations

from iolab.analysis.check import HostKindCheckSlot
from iolab.analysis.checks.bytes import (
    check_buffered_io,
    check_bytes_moved,
    check_cache_hits,
    check_target_in_memory,
    check_unwritten_extents,
)
from iolab.analysis.checks.fleet import check_uneven_fleet
from iolab.analysis.checks.run import (
    check_engine_errors,
    check_unequal_state,
    check_verify_mismatch,
)
from iolab.analysis.checks.scenario import SCENARIO_CHECKS
from iolab.analysis.checks.time import check_burst_credits, check_startup_transient
from iolab.analysis.kinds import LoadAnalysis, shared_checks_with_overrides
from iolab.analysis.view import RunView
from iolab.core.metric import HypervisorResult
from iolab.core.run import RunRecord
from iolab.core.workload import Direction
from iolab.loads.fileio.checks import (
    check_coordinated_omission,
    check_depth_not_reached,
    check_files_changed,
    check_generator_late,
    check_littles_law,
    check_near_generator_limit,
)
from iolab.loads.fileio.sampled_checks import (
    check_access_pattern,
    check_block_size,
    check_latency_contradicted,
)
from iolab.loads.fileio.workload import Job


class FileAnalysis(LoadAnalysis[RunView]):
    """By the directions that the access pattern has."""

    checks = shared_checks_with_overrides(
        added_after={
            check_engine_errors: (check_verify_mismatch, check_files_changed, *SCENARIO_CHECKS),
            check_startup_transient: (check_burst_credits,),
            check_target_in_memory: (check_buffered_io, check_cache_hits),
            check_bytes_moved: (check_block_size, check_access_pattern),
            HostKindCheckSlot.BYTES: (
                check_unwritten_extents,
                check_unequal_state,
                check_depth_not_reached,
                check_latency_contradicted,
                check_littles_law,
                HostKindCheckSlot.LATENCY,
                check_coordinated_omission,
                check_generator_late,
                check_uneven_fleet,
                check_near_generator_limit,
            ),
        },
    )

    def directions_of_run(self, record: RunRecord) -> tuple[Direction, ...]:
        """Those of its job."""
        return Job.require_type(record.run.point.job).access.directions

    def hypervisor_results(self, view: RunView) -> tuple[HypervisorResult, ...]:
        """As the hosts' kinds know them."""
        return tuple(node for kind in view.host_kinds for node in kind.hypervisor_results(view))
