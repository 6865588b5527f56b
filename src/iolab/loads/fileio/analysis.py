"""I/O on files as analysis asks of it: its checks, its sums and its metrics."""

from __future__ import annotations

from iolab.analysis.check import CheckSlot
from iolab.analysis.checks.bytes import (
    buffered_io,
    bytes_moved,
    cache_hits,
    holes,
    target_in_memory,
)
from iolab.analysis.checks.fleet import uneven_fleet
from iolab.analysis.checks.run import engine_errors, unequal_state
from iolab.analysis.checks.time import burst_credits, transient
from iolab.analysis.kinds import LoadAnalysis, shared_checks
from iolab.analysis.view import RunView
from iolab.core.metric import NodeResult
from iolab.core.run import RunRecord
from iolab.core.workload import Direction
from iolab.loads.fileio.checks import (
    coordinated_omission,
    depth_not_reached,
    files_changed,
    generator_bound,
    generator_late,
    littles_law,
    wrong_blocks,
)
from iolab.loads.fileio.sampled import access_pattern, block_size, latency_contradicted
from iolab.loads.fileio.workload import Job


class FileAnalysis(LoadAnalysis[RunView]):
    """By the directions that the access pattern has."""

    checks = shared_checks(
        after={
            engine_errors: (wrong_blocks, files_changed),
            transient: (burst_credits,),
            target_in_memory: (buffered_io, cache_hits),
            bytes_moved: (block_size, access_pattern),
            CheckSlot.BYTES: (
                holes,
                unequal_state,
                depth_not_reached,
                latency_contradicted,
                littles_law,
                CheckSlot.LATENCY,
                coordinated_omission,
                generator_late,
                uneven_fleet,
                generator_bound,
            ),
        },
    )

    def ways(self, record: RunRecord) -> tuple[Direction, ...]:
        """Those of its job."""
        return Job.require(record.run.point.job).access.directions

    def nodes(self, view: RunView) -> tuple[NodeResult, ...]:
        """As the hosts' kinds know them."""
        return tuple(node for kind in view.host_kinds for node in kind.nodes(view))
