"""mdtest's table of single ranks (`--saveRankPerformanceDetails`, 4.0 and newer): pure."""

from __future__ import annotations

import csv
import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Final

from iolab.model.metadata import Operation
from iolab.run.engines.mdtest_output import OPERATIONS

ROWS_LIMIT: Final = 1 << 20
"""Rows read: as many as ranks that a fleet can have."""

FAULTS_LIMIT: Final = 8
"""Faults told: a table that is broken once is broken in every row."""


@dataclass(frozen=True, slots=True)
class RankRate:
    """What one rank did in one phase, up to its own end; it then waited for the others."""

    iteration: int
    rank: int
    operation: Operation
    ops_per_s: float
    seconds: float


@dataclass(frozen=True, slots=True)
class RankTable:
    """All ranks of all iterations, and sentences on what could not be read."""

    rates: tuple[RankRate, ...]
    faults: tuple[str, ...]

    def of(self, operation: Operation) -> tuple[RankRate, ...]:
        """Every rank's rate of that operation, iteration by iteration."""
        return tuple(rate for rate in self.rates if rate.operation is operation)


def parse_ranks(text: str) -> RankTable:
    """Read a table, whole or broken off. Never raises.

    A row has no iteration: rank 0 begins the next one. The row `all` is the whole of the last
    iteration, and is left out; trees are not timed by rank.
    """
    lines = [line for line in islice(text.splitlines(), ROWS_LIMIT) if line and "\0" not in line]
    rows = list(csv.reader(lines, quoting=csv.QUOTE_NONE))
    if not rows or rows[0][:2] != ["rank", "items"]:
        return RankTable((), ("mdtest's table of ranks has no heading",))
    columns = _columns(rows[0])
    rates: list[RankRate] = []
    faults: list[str] = []
    iteration = 0
    for number, row in enumerate(rows[1:], 2):
        if row[0] == "all":
            continue
        if not (row[0].isascii() and row[0].isdigit() and len(row[0]) < 10):
            faults.append(f"row {number} of mdtest's table of ranks is of no rank")
            continue
        rank = int(row[0])
        iteration += rank == 0 or iteration == 0
        for operation, place in columns.items():
            cells = row[place : place + 2]
            if cells in ([], [""], ["", ""]):
                continue
            rate, seconds = _pair(cells)
            if rate is None or seconds is None:
                faults.append(f"row {number} of mdtest's table of ranks breaks off")
                break
            rates.append(RankRate(iteration, rank, operation, rate, seconds))
    return RankTable(tuple(rates), tuple(faults[:FAULTS_LIMIT]))


def _columns(heading: Sequence[str]) -> dict[Operation, int]:
    """Where the rate of each operation stands; its time is next to it."""
    places = {name: place for place, name in enumerate(heading)}
    return {
        operation: places[f"rate-{name}"]
        for name, operation in OPERATIONS.items()
        if places.get(f"time-{name}") == places.get(f"rate-{name}", -2) + 1
    }


def _pair(cells: Sequence[str]) -> tuple[float | None, float | None]:
    numbers: list[float | None] = []
    for cell in cells:
        try:
            number = float(cell)
        except ValueError:
            number = math.nan
        numbers.append(number if math.isfinite(number) and number >= 0 else None)
    return (numbers[0], numbers[1]) if len(numbers) == 2 else (None, None)
