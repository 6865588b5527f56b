"""Checks over several keys of metadata workloads, and over them and their hosts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, ClassVar, Final

from pydantic import Field

from iolab.core.engine import EngineName
from iolab.core.workload import BY_OPERATIONS, AnyJob, Indicator
from iolab.loads.metadata.workload import (
    MDTEST_ENGINE,
    MDTEST_OPTIONS,
    METADATA_ENGINE,
    MetadataJob,
    Operation,
)
from iolab.study import values
from iolab.study.document import Faults, StudyDocument
from iolab.study.file import ConfigurationTable
from iolab.study.load_tables import LoadTable
from iolab.study.tables import Item, Tables, place, start, with_paths
from iolab.study.target_tables import REPEATS_MAX, Label, Numbers
from iolab.study.values import option_text
from iolab.study.wording import shown, suggestion
from iolab.units import format_bytes, parse_size

METADATA_ENGINES: Final = (METADATA_ENGINE, MDTEST_ENGINE)
"""Engines of metadata operations."""

RANKS_MAX: Final = 4096
FILES_PER_RANK_MAX: Final = 1_000_000
RANK_FILE_BYTES_MAX: Final = 1 << 20
RANK_SHIFT_MAX: Final = (1 << 20) - 1
"""Limits of the wire."""

PHASE_SHORT_S: Final = 10.0
"""Below this a phase sees fewer than two commits of a journal that commits every 5 s, as ext4 does:
what it leaves to be written is not in its rate."""

PHASE_LEAST_S: Final = 0.1
PHASE_MOST_S: Final = 3600.0
"""A phase that is shorter is not judged at all; one of an hour is its own study."""


class MetadataTable(LoadTable):
    """`[[workload]]` of metadata operations."""

    job_type: ClassVar[type[AnyJob]] = MetadataJob
    axes: ClassVar[tuple[str, ...]] = ("ranks", "files_per_rank")

    engine: Annotated[EngineName, values.word(METADATA_ENGINES, "engines")]
    ranks: Annotated[list[Annotated[int, values.whole(1, RANKS_MAX)]], Numbers]
    files_per_rank: Annotated[list[Annotated[int, values.whole(1, FILES_PER_RANK_MAX)]], Numbers]
    rank_shift: Annotated[int, values.whole(0, RANK_SHIFT_MAX)] | None = None
    file_bytes: Annotated[int | str, values.size(0, RANK_FILE_BYTES_MAX, multiple=1)] = 0
    phase_runtime: Annotated[float, values.seconds(PHASE_LEAST_S, PHASE_MOST_S)] | None = None
    iterations: Annotated[int, values.whole(1, REPEATS_MAX)] | None = None
    indicator: Annotated[Indicator, values.word((BY_OPERATIONS,), "indicators")] = BY_OPERATIONS
    mdtest: dict[str, Label] = Field(default_factory=dict)

    def job(self) -> MetadataJob:
        """See `LoadTable`; a shift that is left out is a client's ranks."""
        shift = self.ranks[0] if self.rank_shift is None else self.rank_shift
        return MetadataJob(**MetadataJob.fields_of([*self.first(), ("rank_shift", shift)]))

    @property
    def repeats(self) -> int | None:
        """See `LoadTable`."""
        return self.iterations


TOTAL_RANKS_MAX: Final = 1 << 20
"""Ranks of a fleet, as many as the wire can number."""

BUFFERS_MAX: Final = 1 << 30
"""Contents that the ranks of one host hold in memory, as the wire has it."""


def check_metadata(document: StudyDocument, tables: Tables, faults: Faults) -> None:
    """Add every fault of metadata workloads that no single key shows."""
    clients = _most_clients(tables)
    for item, workload in tables.read("workload", MetadataTable):
        _check_ranks(document, item, workload, clients, faults)
        _check_shift(document, item, workload, faults)
        _check_bytes(document, item, workload, faults)
        if workload.mdtest and workload.engine != MDTEST_ENGINE:
            happened = (
                f"mdtest of {place(document, item.path)} does not go with "
                f"engine = {shown(workload.engine)}."
            )
            do = "Leave it out, or write engine = 'mdtest'."
            faults.add_once(document.where((*item.path, "mdtest")), "mdtest", happened, do)
        if workload.phase_runtime is not None and workload.engine == MDTEST_ENGINE:
            happened = (
                f"phase_runtime of {place(document, item.path)} does not go with "
                f"engine = {shown(workload.engine)}, which needs a number of files."
            )
            do = "Leave it out and set files_per_rank, or write engine = 'metadata'."
            where = document.where((*item.path, "phase_runtime"))
            faults.add_once(where, "phase_runtime", happened, do)
        _check_options(document, item, workload, faults)


def _check_options(
    document: StudyDocument, item: Item, workload: MetadataTable, faults: Faults
) -> None:
    for name, value in workload.mdtest.items():
        origin = document.where((*item.path, "mdtest", name))
        if name not in MDTEST_OPTIONS:
            happened = (
                f"mdtest option {shown(name)} of {place(document, item.path)} is not allowed."
            )
            do = suggestion(name, MDTEST_OPTIONS, "allowed options")
            faults.add_once(origin, name, happened, do)
        elif not MDTEST_OPTIONS[name].fits(option_text(value)):
            happened = f"mdtest option {name} of {place(document, item.path)} is {shown(value)}."
            do = f"Write for example {shown(MDTEST_OPTIONS[name].example)}."
            faults.add_once(origin, name, happened, do)


def _most_clients(tables: Tables) -> int:
    """Hosts of the configuration that has most of them."""
    written = tables.read("configuration", ConfigurationTable)
    return max((len(with_paths(tables, table)) for _, table in written), default=1)


def _check_ranks(
    document: StudyDocument, item: Item, workload: MetadataTable, clients: int, faults: Faults
) -> None:
    total = max(workload.ranks) * clients
    if total > TOTAL_RANKS_MAX:
        happened = (
            f"ranks of {place(document, item.path)} is {max(workload.ranks)}, which makes {total} "
            f"on {clients} clients."
        )
        do = f"Keep ranks x clients at most {TOTAL_RANKS_MAX}."
        faults.add_once(document.where((*item.path, "ranks")), "ranks", happened, do)


def _check_shift(
    document: StudyDocument, item: Item, workload: MetadataTable, faults: Faults
) -> None:
    """With several ranks one shift fits one point; left out, it is each point's own."""
    if workload.rank_shift and len(workload.ranks) > 1:
        happened = (
            f"{start(document, item.path)} has rank_shift = {workload.rank_shift} for several "
            f"ranks, {shown(workload.ranks)}."
        )
        do = "Leave rank_shift out, and it follows ranks; or write 0."
        faults.add_once(document.where((*item.path, "rank_shift")), "rank_shift", happened, do)


def _check_bytes(
    document: StudyDocument, item: Item, workload: MetadataTable, faults: Faults
) -> None:
    buffers = max(workload.ranks) * parse_size(workload.file_bytes)
    if buffers > BUFFERS_MAX:
        happened = (
            f"file_bytes of {place(document, item.path)} is {shown(workload.file_bytes)}, "
            f"which takes {format_bytes(buffers)} of memory for {max(workload.ranks)} ranks."
        )
        do = f"Keep file_bytes x ranks at most {format_bytes(BUFFERS_MAX)}."
        faults.add_once(document.where((*item.path, "file_bytes")), "file_bytes", happened, do)


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
    return min(seconds, job.phase_s)


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
