"""The table of checkpoint load in a study file, with every default and limit."""

from typing import Annotated, ClassVar, Final

from pydantic import Field

from iolab.core.engine import EngineName
from iolab.core.workload import AnyJob, Indicator
from iolab.loads.checkpoint.layouts import CheckpointLayout
from iolab.loads.checkpoint.models import CUSTOM, MODELS, VOCABULARY, ModelShape, custom_model
from iolab.loads.checkpoint.workload import (
    BY_RESTORE_TIME,
    BY_SAVE_TIME,
    CHECKPOINT_ENGINE,
    CheckpointJob,
    SaveDurability,
)
from iolab.study import values
from iolab.study.file import REPEATS_MAX, Flag
from iolab.study.load_tables import LoadTable, Numbers, Sizes

RANKS_MAX: Final = 65_536
SHRINK_MAX: Final = 1 << 20
REQUEST_ALIGNMENT: Final = 4096
REQUEST_BYTES_MAX: Final = 1 << 30
IN_FLIGHT_MAX: Final = 64
"""Limits of the engine."""

WIDTH_MAX: Final = 1 << 20
LAYERS_MAX: Final = 1 << 14
VOCABULARY_MAX: Final = 1 << 24
"""Of a model; the published ones have at most 98,304, 128 and 128,256."""

SHAPE_KEYS: Final = ("hidden", "ffn", "heads", "kv_heads", "layers")
"""What a model of a study's own must have, and may have besides."""
PARALLEL_KEYS: Final = ("vocabulary", "tensor_parallel", "pipeline_parallel")

Width = Annotated[int, values.integer_value(1, WIDTH_MAX)]
Ranks = Annotated[int, values.integer_value(1, RANKS_MAX)]
RequestSize = Annotated[
    int | str,
    values.size_value(REQUEST_ALIGNMENT, REQUEST_BYTES_MAX, multiple=REQUEST_ALIGNMENT),
]
RequestSizes = Annotated[list[RequestSize], Sizes]
InFlight = Annotated[list[Annotated[int, values.integer_value(1, IN_FLIGHT_MAX)]], Numbers]


class CheckpointTable(LoadTable):
    """`[[workload]]` with `engine = "checkpoint"`."""

    job_type: ClassVar[type[AnyJob]] = CheckpointJob
    axes: ClassVar[tuple[str, ...]] = (
        "write_size",
        "writes_in_flight",
        "read_size",
        "reads_in_flight",
    )

    engine: Annotated[EngineName, values.word_value((CHECKPOINT_ENGINE,), "engines")]
    model: Annotated[str, values.word_value((*MODELS, CUSTOM), "models")] = "llama3-8b"
    hidden: Width | None = None
    ffn: Width | None = None
    heads: Width | None = None
    kv_heads: Width | None = None
    layers: Annotated[int, values.integer_value(1, LAYERS_MAX)] | None = None
    vocabulary: Annotated[int, values.integer_value(1, VOCABULARY_MAX)] | None = None
    tensor_parallel: Ranks | None = None
    pipeline_parallel: Ranks | None = None
    layout: Annotated[CheckpointLayout, values.choice_value(CheckpointLayout, "layouts")] | None = (
        None
    )
    ranks: Ranks | None = None
    shrink: Annotated[int, values.integer_value(1, SHRINK_MAX)] = 1
    saves: Annotated[int, values.integer_value(1, REPEATS_MAX)] | None = None
    restore: Flag = True
    restore_ranks: Ranks | None = None
    rank_shift: Annotated[int, values.integer_value(0, RANKS_MAX - 1)] | None = None
    write_size: RequestSizes = Field(default=["32m"])
    writes_in_flight: InFlight = Field(default=[1])
    read_size: RequestSizes = Field(default=["128m"])
    reads_in_flight: InFlight = Field(default=[4])
    durable: Annotated[
        SaveDurability, values.choice_value(SaveDurability, "kinds of durability")
    ] = SaveDurability.FSYNC
    direct: Flag = True
    verify: Flag = True
    indicator: (
        Annotated[Indicator, values.word_value((BY_SAVE_TIME, BY_RESTORE_TIME), "indicators")]
        | None
    ) = None

    def build_job(self) -> CheckpointJob:
        """See `LoadTable`; layout and ranks are the published ones where nothing else is said."""
        derived = ("layout", "ranks", "restore_ranks")
        entries = [
            (key, value) for key, value in self.non_null_keys_and_values() if key not in derived
        ]
        ranks = self.ranks or self.model_shape.ranks
        restore_ranks = (self.restore_ranks or ranks) if self.restore else 0
        entries += [("layout", self.effective_layout), ("ranks", ranks)]
        entries.append(("restore_ranks", restore_ranks))
        return CheckpointJob(**CheckpointJob.fields_from_keys(entries))

    @property
    def model_shape(self) -> ModelShape:
        """The model of that name."""
        if self.model in MODELS:
            return MODELS[self.model]
        tensor, pipeline = self.tensor_parallel or 1, self.pipeline_parallel or 1
        # Of a table with faults other parts of a study ask as well, before it is refused.
        return custom_model(
            hidden=self.hidden or 1,
            ffn=self.ffn or 1,
            heads=self.heads or 1,
            kv_heads=self.kv_heads or 1,
            layers=self.layers or 1,
            vocabulary=self.vocabulary or VOCABULARY,
            tensor_parallel=tensor,
            pipeline_parallel=pipeline,
            rank_count=self.ranks or tensor * pipeline,
        )

    @property
    def effective_layout(self) -> CheckpointLayout:
        """The one that is written, else the published one."""
        return self.layout or CheckpointLayout(self.model_shape.layout)

    @property
    def headline_indicator(self) -> Indicator:
        """See `LoadTable`."""
        return self.indicator or BY_SAVE_TIME

    @property
    def repeats(self) -> int | None:
        """See `LoadTable`: each save is a run, with its restore."""
        return self.saves
