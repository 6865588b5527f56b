"""Models whose checkpoints are published: shapes, and how their ranks share them."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from iolab.record import Record

VOCABULARY: Final = 128_256
"""Tokens of all of these models."""

CUSTOM: Final = "custom"
"""What a study calls a model of its own."""


class ModelShape(Record):
    """One model, its tensors' shapes and its published run.

    `tensor_parallel` x `pipeline_parallel` ranks hold one copy of it, and `ranks` all copies.
    """

    title: str
    hidden: int
    ffn: int
    heads: int
    kv_heads: int
    layers: int
    tensor_parallel: int
    pipeline_parallel: int
    ranks: int
    layout: str
    vocabulary: int = VOCABULARY

    @property
    def kv_projection_width(self) -> int:
        """Elements of a token's keys, or values, in one layer."""
        return self.hidden // self.heads * self.kv_heads

    @property
    def ranks_per_model_copy(self) -> int:
        """Ranks that hold one copy."""
        return self.tensor_parallel * self.pipeline_parallel

    @property
    def parameter_count(self) -> int:
        """Of the whole model."""
        h, f = self.hidden, self.ffn
        layer = 2 * h + h * (h + 2 * self.kv_projection_width) + h * h + 3 * h * f
        return 2 * h * self.vocabulary + self.layers * layer + h

    def layer_tensor_elements_per_rank(self, shard_count: int) -> tuple[int, ...]:
        """Elements of a layer's tensors on one of the tensor-parallel ranks.

        Each is split once more into `shard_count`.
        """
        h, f, split = self.hidden, self.ffn, self.tensor_parallel * shard_count
        return (
            h // shard_count,
            h * (h + 2 * self.kv_projection_width) // split,
            h * h // split,
            h // shard_count,
            2 * f * h // split,
            f * h // split,
        )

    def embedding_elements_per_rank(self, shard_count: int) -> int:
        """Elements of the embedding, or of the head, on one of these ranks."""
        return self.hidden * self.vocabulary // (self.tensor_parallel * shard_count)


def custom_model(
    *,
    hidden: int,
    ffn: int,
    heads: int,
    kv_heads: int,
    layers: int,
    vocabulary: int,
    tensor_parallel: int,
    pipeline_parallel: int,
    rank_count: int,
) -> ModelShape:
    """A model of a study's own; with pipeline stages it is laid out as the published ones are."""
    layout = "zero3" if pipeline_parallel == 1 else "megatron"
    return ModelShape(
        "custom model",
        hidden,
        ffn,
        heads,
        kv_heads,
        layers,
        tensor_parallel,
        pipeline_parallel,
        rank_count,
        layout,
        vocabulary,
    )


MODELS: Final[Mapping[str, ModelShape]] = MappingProxyType(
    {
        "llama3-8b": ModelShape("Llama 3 8B", 4096, 14_336, 32, 8, 32, 1, 1, 8, "zero3"),
        # With as many heads as are published, and not the 64 that the model has.
        "llama3-70b": ModelShape("Llama 3 70B", 8192, 28_672, 128, 8, 80, 8, 1, 64, "zero3"),
        "llama3-405b": ModelShape(
            "Llama 3 405B", 16_384, 53_248, 128, 8, 126, 8, 32, 512, "megatron"
        ),
        "llama3-1t": ModelShape(
            "Llama 3 1T (invented)", 25_872, 98_304, 192, 32, 128, 8, 64, 1024, "megatron"
        ),
    }
)
"""By the names in study files."""
