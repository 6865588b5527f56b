"""I/O on files as analysis asks of it: its checks, its sums and its metrics."""

from __future__ import annotations

from iolab.analysis.check import CheckSlot
from iolab.analysis.checks.bytes import (
    buffered_io,
    bytes_moved,
    cache_hits,
    target_is_memory,
    unwritten_extents,
)
from iolab.analysis.checks.fleet import uneven_fleet
from iolab.analysis.checks.run import engine_errors, unequal_state
from iolab.analysis.checks.time import burst_credits, startup_transient
from iolab.analysis.kinds import LoadAnalysis, shared_checks_with_overrides
from iolab.analysis.view import RunView
from iolab.core.metric import NodeResult
from iolab.core.run import RunRecord
from iolab.core.workload import Direction
from iolab.loads.fileio.checks import (
    coordinated_omission,
    depth_not_reached,
    files_changed,
    generator_late,
    littles_law,
    near_generator_ceiling,
    verify_mismatch,
)
from iolab.loads.fileio.sampled_checks import access_pattern, block_size, latency_contradicted
from iolab.loads.fileio.workload import Job


class FileAnalysis(LoadAnalysis[RunView]):
    """By the directions that the access pattern has."""

    checks = shared_checks_with_overrides(
        added_after={
            engine_errors: (verify_mismatch, files_changed),
            startup_transient: (burst_credits,),
            target_is_memory: (buffered_io, cache_hits),
            bytes_moved: (block_size, access_pattern),
            CheckSlot.BYTES: (
                unwritten_extents,
                unequal_state,
                depth_not_reached,
                latency_contradicted,
                littles_law,
                CheckSlot.LATENCY,
                coordinated_omission,
                generator_late,
                uneven_fleet,
                near_generator_ceiling,
            ),
        },
    )

    def directions_of_run(self, record: RunRecord) -> tuple[Direction, ...]:
        """Those of its job."""
        return Job.require_type(record.run.point.job).access.directions

    def node_results(self, view: RunView) -> tuple[NodeResult, ...]:
        """As the hosts' kinds know them."""
        return tuple(node for kind in view.host_kinds for node in kind.nodes(view))
