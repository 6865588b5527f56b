"""Language models by the keys and values of a token, as their configurations have them."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from iolab.record import Record


class KvModel(Record):
    """One model: its layers, and the bytes of a token's keys and values in one layer."""

    title: str
    layers: int
    kv_bytes_per_token_and_layer: int

    @property
    def kv_bytes_per_token(self) -> int:
        """Of all layers together."""
        return self.layers * self.kv_bytes_per_token_and_layer


def _grouped_query_attention_model(
    title: str, layers: int, kv_heads: int, head_dim: int
) -> KvModel:
    """Keys and values of each head in bfloat16."""
    return KvModel(title, layers, kv_heads * head_dim * 2 * 2)


MODELS: Final[Mapping[str, KvModel]] = MappingProxyType(
    {
        "llama3-8b": _grouped_query_attention_model("Llama 3 8B", 32, 8, 128),
        "llama3-70b": _grouped_query_attention_model("Llama 3 70B", 80, 8, 128),
        "llama3-405b": _grouped_query_attention_model("Llama 3.1 405B", 126, 8, 128),
        "qwen3-32b": _grouped_query_attention_model("Qwen3 32B", 64, 8, 128),
        # Latent attention keeps one vector of 512 and a position of 64 for all heads.
        "deepseek-v3": KvModel("DeepSeek-V3", 61, 576 * 2),
        "gpt-oss-120b": _grouped_query_attention_model("gpt-oss-120b", 36, 8, 64),
    }
)
"""By the names in study files."""
