"""How many bins a latency histogram has: 64 a power of two, fio's own (see `core.histogram`).

And which percentiles of it a result has.
"""

from __future__ import annotations

from typing import Final

BITS: Final = 6
BINS_PER_OCTAVE: Final = 1 << BITS
GROUPS: Final = 29
BIN_COUNT: Final = GROUPS * BINS_PER_OCTAVE

PERCENTILES: Final = (
    ("p50", 50.0),
    ("p99", 99.0),
    ("p99_5", 99.5),
    ("p99_9", 99.9),
    ("p99_99", 99.99),
)
"""The percentiles of a result: (name in a metric's key, percent), in rising order."""

LATENCY_NAMES: Final = ("mean", *(name for name, _ in PERCENTILES), "max")
"""The latencies of a result, as they are called in metrics' keys."""

PERCENTILE_LABELS: Final = {f"lat_ns_{name}": f"p{percent:g}" for name, percent in PERCENTILES}
"""How each is called where it is shown, by the metric's key."""
