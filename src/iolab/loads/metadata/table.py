"""The table of metadata load in a study file, with every default and limit."""

from typing import Annotated, ClassVar, Final

from pydantic import Field

from iolab.core.engine import EngineName
from iolab.core.workload import AnyJob, Indicator
from iolab.loads.metadata.workload import BY_OPERATIONS, MDTEST_ENGINE, METADATA_ENGINE, MetadataJob
from iolab.study import values
from iolab.study.file import REPEATS_MAX
from iolab.study.load_tables import Label, LoadTable, Numbers

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

PHASE_MIN_S: Final = 0.1
PHASE_MAX_S: Final = 3600.0
"""A phase that is shorter is not judged at all; one of an hour is its own study."""


class MetadataTable(LoadTable):
    """`[[workload]]` of metadata operations."""

    job_type: ClassVar[type[AnyJob]] = MetadataJob
    axes: ClassVar[tuple[str, ...]] = ("ranks", "files_per_rank")

    engine: Annotated[EngineName, values.word_value(METADATA_ENGINES, "engines")]
    ranks: Annotated[list[Annotated[int, values.integer_value(1, RANKS_MAX)]], Numbers]
    files_per_rank: Annotated[
        list[Annotated[int, values.integer_value(1, FILES_PER_RANK_MAX)]], Numbers
    ]
    rank_shift: Annotated[int, values.integer_value(0, RANK_SHIFT_MAX)] | None = None
    file_bytes: Annotated[int | str, values.size_value(0, RANK_FILE_BYTES_MAX, multiple=1)] = 0
    phase_runtime: Annotated[float, values.seconds_value(PHASE_MIN_S, PHASE_MAX_S)] | None = None
    iterations: Annotated[int, values.integer_value(1, REPEATS_MAX)] | None = None
    indicator: Annotated[Indicator, values.word_value((BY_OPERATIONS,), "indicators")] = (
        BY_OPERATIONS
    )
    mdtest: dict[str, Label] = Field(default_factory=dict)

    def build_job(self) -> MetadataJob:
        """See `LoadTable`; a shift that is left out is a client's ranks."""
        shift = self.ranks[0] if self.rank_shift is None else self.rank_shift
        return MetadataJob(
            **MetadataJob.fields_from_keys(
                [*self.non_null_keys_and_values(), ("rank_shift", shift)]
            )
        )

    @property
    def repeats(self) -> int | None:
        """See `LoadTable`."""
        return self.iterations
