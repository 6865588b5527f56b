"""Write amplification of each layer between a load and the flash of its drives, as metrics."""

from __future__ import annotations

from typing import Final

from iolab.core.metric_spec import BetterDirection, CombineRule, MetricSpec

RATIO_UNIT: Final = "x"
"""The unit of an amplification: a ratio of bytes."""


def _write_amplification_spec(layer: str, *, has_column: bool = False) -> MetricSpec:
    label = f"{layer} write amplification".lstrip()
    lower, mean = BetterDirection.LOWER, CombineRule.MEAN
    key = label.replace(" ", "_")
    return MetricSpec(key, label, RATIO_UNIT, lower, mean, has_column=has_column)


ENGINE_WRITE_AMPLIFICATION: Final = _write_amplification_spec("engine")
"""What an engine with a log and compaction wrote over what the application gave it."""

BLOCK_WRITE_AMPLIFICATION: Final = _write_amplification_spec("block")
"""What the block layer wrote over what engine or application did: a file system's journal."""

HOST_WRITE_AMPLIFICATION: Final = _write_amplification_spec("host")
"""What drives counted as written by hosts over what the block layer wrote: 1 without others."""

MEDIA_WRITE_AMPLIFICATION: Final = _write_amplification_spec("media", has_column=True)
"""What flash wrote over what the block layer did."""

WRITE_AMPLIFICATION: Final = _write_amplification_spec("", has_column=True)
"""What flash wrote over what the application did."""

WEAR_METRICS: Final = (
    ENGINE_WRITE_AMPLIFICATION,
    BLOCK_WRITE_AMPLIFICATION,
    HOST_WRITE_AMPLIFICATION,
    MEDIA_WRITE_AMPLIFICATION,
    WRITE_AMPLIFICATION,
)
"""Of all drives of a run together."""
