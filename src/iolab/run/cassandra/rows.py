"""Whether all records are there: every row counted, or so many that a miss would show."""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final

from iolab.errors import EngineError
from iolab.run.cassandra.answers import RowsTold

COUNT_ALL_MAX: Final = 250_000
"""Rows up to which all are counted: a gibibyte of YCSB's usual records is read in seconds."""

COUNTED_RANGES: Final = 64
"""Ranges in which all rows are counted: each query stays well below Cassandra's own time limit."""

SAMPLED_ROWS: Final = 100_000
"""Rows that a sample should hold: it tells the number to within two percent then."""

RANGES: Final = 1 << 16
"""Ranges that a sample is taken from; tokens are spread evenly over them by their hash."""

SIGMAS: Final = 6.0
"""Counts of hashed keys in ranges vary as a Poisson process does: six of its standard deviations
are not met by chance."""

COUNT: Final = "count"
ESTIMATE: Final = "estimate"

Ask = Callable[[int, int], Awaitable[RowsTold]]
"""Counts rows in a sample of ranges: (ranges, sample)."""


@dataclass(frozen=True, slots=True)
class Counted:
    """How many rows there are, how that is known, and how far it may be off."""

    rows: int
    by: str
    error: int = 0

    @property
    def told(self) -> str:
        """The number for people."""
        return f"{self.rows:,}" if self.by == COUNT else f"about {self.rows:,}"

    def agrees_with(self, records: int) -> bool:
        """Whether there may be so many, for all that was counted."""
        return abs(self.rows - records) <= self.error


async def count_rows(ask: Ask, records: int) -> Counted:
    """The rows of a table that should hold so many records."""
    if records <= COUNT_ALL_MAX:
        told = await ask(COUNTED_RANGES, COUNTED_RANGES)
        return Counted(told.rows, COUNT)
    told = await ask(RANGES, sample_of(records))
    scale = told.ranges / told.sample
    error = SIGMAS * scale * math.sqrt(max(told.rows, 1))
    return Counted(round(told.rows * scale), ESTIMATE, math.ceil(error))


def sample_of(records: int) -> int:
    """How many of `RANGES` hold `SAMPLED_ROWS`: a power of two, so that they lie evenly."""
    wanted = RANGES * SAMPLED_ROWS / records
    return min(RANGES, 1 << max(0, math.ceil(math.log2(wanted))))


def require_rows(found: Counted, records: int, table: str, do: str) -> None:
    """EngineError unless the rows are as many as the records; `do` is what to do then."""
    if not found.agrees_with(records):
        happened = f"The table {table} holds {found.told} rows, and should hold {records:,}."
        raise EngineError(happened, do)
