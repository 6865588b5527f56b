"""Which files each rank of a model saves, and how large they are: the published layouts.

Sizes are sums of tensors: the model in 16 bits, of the optimizer a master copy and two moments in
32 bits. They follow the published benchmark's formulas to the byte.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from enum import StrEnum
from functools import lru_cache
from types import MappingProxyType
from typing import Final

from msgspec.structs import replace

from iolab.loads.checkpoint.models import ModelShape
from iolab.record import Record

MODEL_BYTES: Final = 2
OPTIMIZER_BYTES: Final = 4 * 3
"""Of each parameter: a master copy and two moments."""

OPTIMIZER_VECTORS: Final = 5
"""Vectors of the hidden size that each rank's optimizer has besides."""

METADATA_BYTES: Final = 200
"""Of each saved item in the metadata of `dcp`, about as PyTorch writes it."""


class CheckpointLayout(StrEnum):
    """How ranks put their state into files."""

    ZERO3 = "zero3"
    """Two files of each rank: its part of the model, and of the optimizer."""
    MEGATRON = "megatron"
    """A file of each layer and tensor-parallel rank by the first copy; an optimizer file a rank."""
    DCP = "dcp"
    """One file of each rank with its part of every tensor, and the metadata by the first."""


class SavedFile(Record):
    """One file of a checkpoint: its number among all of them, its name and its size."""

    number: int
    name: str
    size_bytes: int


class TensorGroup(Record):
    """So many tensors of that size, one after the other in a file."""

    count: int
    size_bytes: int


RankFiles = tuple[SavedFile, ...]
"""The files of one rank, in the order in which they are saved."""


class CheckpointFiles(Record):
    """All files of a checkpoint by rank; `tensor_groups` are those of each file read in parts."""

    files_by_rank: tuple[RankFiles, ...]
    tensor_groups: tuple[TensorGroup, ...] = ()

    @property
    def total_bytes(self) -> int:
        """Of all files."""
        return sum(file.size_bytes for files in self.files_by_rank for file in files)

    @property
    def file_count(self) -> int:
        """How many files there are."""
        return sum(len(files) for files in self.files_by_rank)

    def bytes_of_rank(self, rank: int) -> int:
        """What one rank saves."""
        return sum(file.size_bytes for file in self.files_by_rank[rank])


@lru_cache(maxsize=16)
def plan_checkpoint(
    model: ModelShape, layout: CheckpointLayout, rank_count: int, shrink: int
) -> CheckpointFiles:
    """The files of a checkpoint by so many ranks, every tensor divided by `shrink`.

    The ranks must be a multiple of those that hold one copy, unless the layout is `dcp`.
    """
    return _LAYOUTS[layout](model, rank_count, shrink)


def _zero3_checkpoint_files(model: ModelShape, rank_count: int, shrink: int) -> CheckpointFiles:
    copies = rank_count // model.ranks_per_model_copy
    layer = sum(
        _shrunk_element_count(n, shrink) for n in model.layer_tensor_elements_per_rank(copies)
    )
    ends = 2 * _shrunk_element_count(model.embedding_elements_per_rank(copies), shrink)
    norm = _shrunk_element_count(model.hidden // copies, shrink)
    model_bytes = MODEL_BYTES * (model.layers * layer + ends + norm)
    optimizer = _optimizer_file_bytes(model, rank_count, shrink)
    return _number_files(
        (
            (f"{_zero_shard_name(model, rank)}_model_states.pt", model_bytes),
            (f"{_zero_shard_name(model, rank)}_optim_states.pt", optimizer),
        )
        for rank in range(rank_count)
    )


def _megatron_checkpoint_files(model: ModelShape, rank_count: int, shrink: int) -> CheckpointFiles:
    optimizer = _optimizer_file_bytes(model, rank_count, shrink)
    return _number_files(
        (
            *(
                _layer_file_names_and_sizes(model, rank, shrink)
                if rank < model.ranks_per_model_copy
                else ()
            ),
            (f"{_zero_shard_name(model, rank)}_optim_states.pt", optimizer),
        )
        for rank in range(rank_count)
    )


def _layer_file_names_and_sizes(
    model: ModelShape, rank: int, shrink: int
) -> Iterator[tuple[str, int]]:
    """The layers of a rank's stage; the first has the embedding, the last norm and head."""
    tensor, stage = rank % model.tensor_parallel, rank // model.tensor_parallel
    layer = MODEL_BYTES * sum(
        _shrunk_element_count(n, shrink) for n in model.layer_tensor_elements_per_rank(1)
    )
    embedding = MODEL_BYTES * _shrunk_element_count(model.embedding_elements_per_rank(1), shrink)
    norm = MODEL_BYTES * _shrunk_element_count(model.hidden, shrink)
    each, more = divmod(model.layers, model.pipeline_parallel)
    first = stage * each + min(stage, more)
    sizes = {1 + nth: layer for nth in range(first, first + each + (stage < more))}
    if stage == 0:
        sizes = {0: embedding, **sizes}
    if stage == model.pipeline_parallel - 1:
        sizes |= {model.layers + 1: norm, model.layers + 2: embedding}
    for number, size in sizes.items():
        yield f"layer_{number}-model_{tensor}_model_states.pt", size


def _dcp_checkpoint_files(model: ModelShape, rank_count: int, shrink: int) -> CheckpointFiles:
    """Every tensor is split over all ranks along its first dimension."""
    whole = replace(model, tensor_parallel=1)
    layer = [
        _shrunk_element_count(n, shrink) for n in whole.layer_tensor_elements_per_rank(rank_count)
    ]
    ends = [_shrunk_element_count(whole.embedding_elements_per_rank(rank_count), shrink)] * 2
    norm = _shrunk_element_count(model.hidden // rank_count, shrink)
    elements = [*layer * model.layers, *ends, norm]
    items = (
        *(TensorGroup(1, MODEL_BYTES * count) for count in elements),
        *(TensorGroup(3, OPTIMIZER_BYTES // 3 * count) for count in elements),
    )
    size = sum(item.count * item.size_bytes for item in items)
    metadata = METADATA_BYTES * sum(item.count for item in items) * rank_count
    checkpoint = _number_files(
        (
            (f"__{rank}_0.distcp", size),
            *(((".metadata", metadata),) if rank == 0 else ()),
        )
        for rank in range(rank_count)
    )
    return CheckpointFiles(checkpoint.files_by_rank, items)


def _zero_shard_name(model: ModelShape, rank: int) -> str:
    copy, place = divmod(rank, model.ranks_per_model_copy)
    return f"zero_pp_rank_{copy}_mp_rank_{place}"


def _optimizer_file_bytes(model: ModelShape, rank_count: int, shrink: int) -> int:
    elements = model.parameter_count // rank_count + OPTIMIZER_VECTORS * model.hidden
    return OPTIMIZER_BYTES * _shrunk_element_count(elements, shrink)


def _shrunk_element_count(element_count: int, shrink: int) -> int:
    return max(element_count // shrink, 1)


def _number_files(files_by_rank: Iterator[tuple[tuple[str, int], ...]]) -> CheckpointFiles:
    numbered, number = [], 0
    for files in files_by_rank:
        own = tuple(SavedFile(number + nth, *file) for nth, file in enumerate(files))
        numbered.append(own)
        number += len(own)
    return CheckpointFiles(tuple(numbered))


_LAYOUTS: Final[Mapping[CheckpointLayout, Callable[[ModelShape, int, int], CheckpointFiles]]] = (
    MappingProxyType(
        {
            CheckpointLayout.ZERO3: _zero3_checkpoint_files,
            CheckpointLayout.MEGATRON: _megatron_checkpoint_files,
            CheckpointLayout.DCP: _dcp_checkpoint_files,
        }
    )
)
