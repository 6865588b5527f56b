"""How many bins a latency histogram has: 64 a power of two, fio's own (see `core.histogram`)."""

from __future__ import annotations

from typing import Final

BITS: Final = 6
BINS_PER_OCTAVE: Final = 1 << BITS
GROUPS: Final = 29
BIN_COUNT: Final = GROUPS * BINS_PER_OCTAVE
