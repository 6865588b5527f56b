"""mdtest's statistics over iterations, computed again and held against what it prints: pure."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from iolab.model.metadata import Operation
from iolab.run.engines.mdtest_output import TREES, MdtestOutput, Row, Rule, lines_of

ROUNDING: Final = 0.0005
"""mdtest prints three decimals."""


@dataclass(frozen=True, slots=True)
class Spread:
    """Rates over iterations; `std_dev` is that of a sample (n-1), None for a single one."""

    n: int
    maximum: float
    minimum: float
    mean: float
    std_dev: float | None


def spread(rates: Sequence[float]) -> Spread:
    """The statistics of those rates. ValueError for none."""
    if not rates:
        raise ValueError("a spread needs at least one rate")
    std_dev = statistics.stdev(rates) if len(rates) > 1 else None
    return Spread(len(rates), max(rates), min(rates), statistics.fmean(rates), std_dev)


def spread_of(output: MdtestOutput, operation: Operation) -> Spread | None:
    """A summary's line with the standard deviation of a sample, whatever the version divides by.

    None when the line is missing, and for files of 3.3, whose line mixes ranks with iterations: its
    extremes are single ranks', and no deviation over iterations can be had from it.
    """
    row = output.row(operation)
    n = output.iterations
    if row is None or n is None or output.rule is None:
        return None
    if output.rule is Rule.EVERY_RANK and operation not in TREES:
        return None
    std_dev = row.std_dev
    if output.rule is not Rule.SLOWEST_RANK and n > 1:
        # Up to 3.3 mdtest divides by n.
        std_dev *= math.sqrt(n / (n - 1))
    return Spread(n, row.maximum, row.minimum, row.mean, std_dev if n > 1 else None)


def contradictions(output: MdtestOutput) -> tuple[str, ...]:
    """Sentences on where an output disagrees with itself by more than it rounds."""
    return tuple(
        f"mdtest's summary contradicts itself: {words}"
        for row in output.rows
        for words in _of_row(output, row)
    )


def _of_row(output: MdtestOutput, row: Row) -> Iterator[str]:
    name = row.operation.word
    n = output.iterations or 1
    if not row.minimum - ROUNDING * 2 <= row.mean <= row.maximum + ROUNDING * 2:
        yield f"the mean of {name}, {row.mean}, is not between {row.minimum} and {row.maximum}"
        return
    # No sample deviates more than when half of it lies at each end.
    widest = (row.maximum - row.minimum) / 2 * math.sqrt(n / max(n - 1, 1)) + 4 * ROUNDING
    if row.std_dev > widest:
        yield f"{name} deviates by {row.std_dev}, and cannot by more than {widest:.3f}"
    seen = [one.ops_per_s for one in lines_of(output, row.operation)]
    if len(seen) == n:
        yield from _of_lines(output, row, seen)


def _of_lines(output: MdtestOutput, row: Row, seen: Sequence[float]) -> Iterator[str]:
    """The summary against the lines of its iterations."""
    name = row.operation.word
    if row.operation in TREES:
        again = spread(seen)
        divisor_n = output.rule is not Rule.SLOWEST_RANK
        std_dev = (statistics.pstdev(seen) if divisor_n else again.std_dev) or 0.0
        pairs = (
            ("maximum", row.maximum, again.maximum),
            ("minimum", row.minimum, again.minimum),
            ("mean", row.mean, again.mean),
            ("standard deviation", row.std_dev, std_dev),
        )
        for what, printed, computed in pairs:
            if abs(printed - computed) > 3 * ROUNDING:
                yield f"the {what} of {name} is {computed:.3f}, and it prints {printed}"
        return
    if output.rule is Rule.SLOWEST_RANK:
        ranks = output.ranks or 1
        if row.minimum > min(seen) * ranks + ROUNDING * (ranks + 1):
            yield f"{name} has a minimum of {row.minimum}, and rank 0 saw {min(seen)} x {ranks}"
    elif row.maximum < max(seen) - 2 * ROUNDING:
        yield f"{name} has a maximum of {row.maximum}, and rank 0 saw {max(seen)}"
