"""Metadata load in mdtest's terms: its operations, a client's job, and what one phase did there."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any, ClassVar, Final

from msgspec.structs import replace

from iolab.core.engine import FLAG_PATTERN, FOLDERS_PATTERN, EngineName, engine_options_from_rows
from iolab.core.run import HostLoadDetails, HostRun, RunLoadDetails, RunManifest
from iolab.core.workload import AnyJob, Indicator, OperationEnum
from iolab.record import Record

BY_OPERATIONS: Final = Indicator("operations")
"""The rate of each operation: no single figure."""

METADATA_ENGINE: Final = EngineName("metadata")
"""Built into the agent."""

MDTEST_ENGINE: Final = EngineName("mdtest")
"""mdtest under MPI."""

FILES_MIN: Final = 40_000
"""A client's files where phases end by the clock: enough that at 400,000 a second, which one
client's memory answers, a phase still takes the 0.1 s below which it is not judged."""

TIME_LIMIT_FACTOR: Final = 6
"""How many times its time a phase of the agent may last until `files_least` are made."""

PHASE_OVERHEAD_S: Final = 0.5
"""Of each operation's phase: reading the clocks, and the lead to a common start."""

BLOCK_BYTES: Final = 4096
"""The least that most file systems give to a file with contents, and to a folder."""

MDTEST_OPTIONS: Final = engine_options_from_rows(
    (
        "mdtest",
        rf"{FOLDERS_PATTERN}mdtest(?:[.-][A-Za-z0-9.-]{{1,20}})?",
        "/opt/ior/bin/mdtest",
        "mdtest itself; found on PATH when it has no slash",
    ),
    (
        "mpiexec",
        rf"{FOLDERS_PATTERN}mpiexec(?:\.(?:mpich|openmpi|hydra))?",
        "mpiexec.mpich",
        "what starts the ranks; found on PATH when it has no slash",
    ),
    (
        "allow_run_as_root",
        FLAG_PATTERN,
        "1",
        "let Open MPI start ranks as root, which it refuses else",
    ),
    ("fsync", FLAG_PATTERN, "1", "sync each file after it was written (`-y`)"),
    ("random_stat", FLAG_PATTERN, "1", "stat the files in random order (`-R`)"),
)
"""Every allowed option by its name."""


class MetadataOperation(OperationEnum):
    """The operations, each a phase of its own, in the order in which they run."""

    TREE_CREATE = 16
    FILE_CREATE = 17
    FILE_STAT = 18
    FILE_READ = 19
    FILE_REMOVE = 20
    TREE_REMOVE = 21


FILE_OPERATIONS: Final = (
    MetadataOperation.FILE_CREATE,
    MetadataOperation.FILE_STAT,
    MetadataOperation.FILE_READ,
    MetadataOperation.FILE_REMOVE,
)
"""Operations of which each rank does many. Of the trees it does one, and no operation can end while
all ranks are still at theirs: trees have a rate over the whole phase only."""


class MetadataJob(AnyJob, Record, tag="metadata"):
    """One client's share of a metadata workload with every number settled.

    Each of the client's `ranks` works in a directory of its own on `files_per_rank` files of
    `file_bytes`. Of the fleet's ranks, numbered over its clients in their order, rank r stats,
    reads and removes what rank (r + `rank_shift`) mod all ranks made (mdtest's `-N`); the usual
    shift is a client's ranks, so that no client works on what it made. `options` are further
    options of mdtest, allow-listed by its engine. With `phase_s` a rank ends a phase on files after
    that many seconds, and `files_per_rank` is the most that it makes; it makes
    `min_files_per_rank` even where that takes up to `TIME_LIMIT_FACTOR` times as long, since later
    phases do each file once only.
    """

    type_tag: ClassVar[str] = "metadata"
    has_warmup: ClassVar[bool] = False
    indicators: ClassVar[Mapping[str, str | None]] = MappingProxyType({BY_OPERATIONS: None})
    field_by_study_key: ClassVar[Mapping[str, str]] = MappingProxyType(
        {"phase_runtime": "phase_s", "mdtest": "options"}
    )

    engine: EngineName
    ranks: int
    files_per_rank: int
    rank_shift: int
    file_bytes: int = 0
    options: tuple[tuple[str, str], ...] = ()
    phase_s: float | None = None

    @property
    def min_files_per_rank(self) -> int:
        """The files that each rank makes at least, where its phases end by the clock."""
        return min(self.files_per_rank, -(-FILES_MIN // self.ranks))

    @property
    def inodes_per_client(self) -> int:
        """What one client's share needs: its files, a folder for each rank, and that of all."""
        return self.ranks * (self.files_per_rank + 1) + 1

    def with_axis_values(self, axis_values: Iterable[tuple[str, int | str]]) -> MetadataJob:
        """The job with the axis values; a shift of a client's ranks follows their number."""
        changes: dict[str, Any] = dict(axis_values)
        if "ranks" in changes and self.rank_shift == self.ranks:
            changes["rank_shift"] = changes["ranks"]
        return replace(self, **changes)

    def adapted_to_separate_targets(self) -> MetadataJob:
        """The job in which each client works on the files that it made."""
        return self if self.engine == MDTEST_ENGINE else replace(self, rank_shift=0)


ASSUMED_OPS_PER_S: Final[Mapping[MetadataOperation, float]] = {
    MetadataOperation.TREE_CREATE: 1000.0,
    MetadataOperation.FILE_CREATE: 5000.0,
    MetadataOperation.FILE_STAT: 50_000.0,
    MetadataOperation.FILE_READ: 20_000.0,
    MetadataOperation.FILE_REMOVE: 5000.0,
    MetadataOperation.TREE_REMOVE: 1000.0,
}
"""One client's rates where nothing was measured: an eighth of what vendors publish of scale-out
file systems for eight clients, stat far below it. Local file systems are faster."""


def operation_count_per_client(job: MetadataJob, operation: MetadataOperation) -> int:
    """How often one client does the operation in one iteration."""
    if operation in (MetadataOperation.TREE_CREATE, MetadataOperation.TREE_REMOVE):
        return job.ranks
    return job.ranks * job.files_per_rank


def expected_phase_seconds(job: MetadataJob, operation: MetadataOperation) -> float:
    """How long one operation's phase may take, by the assumed rates and where its time is over."""
    seconds = operation_count_per_client(job, operation) / ASSUMED_OPS_PER_S[operation]
    if job.phase_s is None or operation in (
        MetadataOperation.TREE_CREATE,
        MetadataOperation.TREE_REMOVE,
    ):
        return seconds
    if operation is not MetadataOperation.FILE_CREATE:
        return min(seconds, job.phase_s)
    least = job.ranks * job.min_files_per_rank / ASSUMED_OPS_PER_S[operation]
    return min(seconds, max(job.phase_s, min(least, TIME_LIMIT_FACTOR * job.phase_s)))


def expected_iteration_seconds(job: MetadataJob) -> float:
    """How long one iteration may take."""
    return sum(
        expected_phase_seconds(job, operation) + PHASE_OVERHEAD_S for operation in MetadataOperation
    )


def written_bytes_per_client(job: MetadataJob) -> int:
    """Contents that one client writes in one iteration."""
    return job.ranks * job.files_per_rank * job.file_bytes


def space_bytes_per_client(job: MetadataJob) -> int:
    """Space that one client's share needs, in whole blocks: contents and folders."""
    blocks = -(-job.file_bytes // BLOCK_BYTES)
    return (job.ranks * job.files_per_rank * blocks + job.ranks + 1) * BLOCK_BYTES


class OperationRun(Record):
    """What one host did in one phase; times are the host's own CLOCK_REALTIME.

    `requested` operations are those done, those failed (`errors` by the name of the errno) and
    those `skipped` because the phase was stopped; in a phase that ends by the clock those that its
    ranks came to were requested. A host's ranks start and end one by one: all of them worked
    between `last_start_real_ns` and `first_end_real_ns`. Times and extremes of the latency are None
    when no rank worked; `preemptions` counts how often a rank lost its processor.
    """

    operation: MetadataOperation
    requested: int
    completed: int
    errors: tuple[tuple[str, int], ...]
    skipped: int
    first_start_real_ns: int | None
    last_start_real_ns: int | None
    first_end_real_ns: int | None
    last_end_real_ns: int | None
    lat_min_ns: int | None
    lat_max_ns: int | None
    preemptions: int


class ReportedRate(Record):
    """A rate over the whole fleet that the engine itself printed, and the seconds it counted.

    mdtest gives this and nothing finer: the time is its own, from the first rank's start to the
    last rank's end as the hosts' clocks tell it, None where the version does not print it.
    """

    operation: MetadataOperation
    ops_per_s: float
    seconds: float | None


class MetadataHostDetails(HostLoadDetails, Record, tag="metadata"):
    """What one host did, phase by phase."""

    phases: tuple[OperationRun, ...]


class ReportedRunRates(RunLoadDetails, Record, tag="metadata"):
    """Rates of the whole fleet as the engine printed them, where it gives nothing finer."""

    rates: tuple[ReportedRate, ...]


def operation_runs_of_host(host: HostRun) -> tuple[OperationRun, ...]:
    """What a host did, phase by phase; nothing where none was told."""
    return host.details.phases if isinstance(host.details, MetadataHostDetails) else ()


def reported_rates_of_run(manifest: RunManifest) -> tuple[ReportedRate, ...]:
    """The rates that the engine printed; none where it gives finer ones."""
    return manifest.details.rates if isinstance(manifest.details, ReportedRunRates) else ()
