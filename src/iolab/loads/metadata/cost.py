"""What metadata load costs: its time by assumed rates, its bytes, its space."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from iolab.loads.metadata.workload import OVERTIME, MetadataJob, Operation

ASSUMED_OPS_PER_S: Final[Mapping[Operation, float]] = {
    Operation.TREE_CREATE: 1000.0,
    Operation.FILE_CREATE: 5000.0,
    Operation.FILE_STAT: 50_000.0,
    Operation.FILE_READ: 20_000.0,
    Operation.FILE_REMOVE: 5000.0,
    Operation.TREE_REMOVE: 1000.0,
}
"""One client's rates where nothing was measured: an eighth of what vendors publish of scale-out
file systems for eight clients, stat far below it. Local file systems are faster."""

PHASE_OVERHEAD_S: Final = 0.5
"""Of each operation's phase: reading the clocks, and the lead to a common start."""

BLOCK_BYTES: Final = 4096
"""The least that most file systems give to a file with contents, and to a folder."""


def operations_of(job: MetadataJob, operation: Operation) -> int:
    """How often one client does the operation in one iteration."""
    if operation in (Operation.TREE_CREATE, Operation.TREE_REMOVE):
        return job.ranks
    return job.ranks * job.files_per_rank


def phase_seconds(job: MetadataJob, operation: Operation) -> float:
    """How long one operation's phase may take, by the assumed rates and where its time is over."""
    seconds = operations_of(job, operation) / ASSUMED_OPS_PER_S[operation]
    if job.phase_s is None or operation in (Operation.TREE_CREATE, Operation.TREE_REMOVE):
        return seconds
    if operation is not Operation.FILE_CREATE:
        return min(seconds, job.phase_s)
    least = job.ranks * job.files_least / ASSUMED_OPS_PER_S[operation]
    return min(seconds, max(job.phase_s, min(least, OVERTIME * job.phase_s)))


def iteration_seconds(job: MetadataJob) -> float:
    """How long one iteration may take."""
    return sum(phase_seconds(job, operation) + PHASE_OVERHEAD_S for operation in Operation)


def written_bytes_of(job: MetadataJob) -> int:
    """Contents that one client writes in one iteration."""
    return job.ranks * job.files_per_rank * job.file_bytes


def space_of(job: MetadataJob) -> int:
    """Space that one client's share needs, in whole blocks: contents and folders."""
    blocks = -(-job.file_bytes // BLOCK_BYTES)
    return (job.ranks * job.files_per_rank * blocks + job.ranks + 1) * BLOCK_BYTES
