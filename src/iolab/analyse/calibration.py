"""How far two engines agree on one target: ratios of pairs, with their intervals. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from iolab.analyse.method.quantiles import BIN_ERROR
from iolab.analyse.method.ratio import Better, Comparison, compare_paired
from iolab.model.calibration import Trial
from iolab.model.engine import EngineName

BIN_ALLOWANCE: Final = 2 * BIN_ERROR
"""What a ratio of percentiles may be off, a log ratio: both are known to their bins only."""


@dataclass(frozen=True, slots=True)
class Row:
    """One figure of both engines: geometric means over their runs, and native over fio.

    `unit` is 1/s or ns.
    """

    key: str
    unit: str
    fio: float
    native: float
    comparison: Comparison


def rows_of(trials: Sequence[Trial]) -> tuple[Row, ...]:
    """Every figure of the pairs, in the order in which it is shown."""
    return tuple(
        _row(key, unit, better, trials, allowance) for key, unit, better, allowance in _FIGURES
    )


_FIGURES: Final = (
    ("iops", "1/s", Better.HIGHER, 0.0),
    ("lat_ns_mean", "ns", Better.LOWER, 0.0),
    ("lat_ns_p50", "ns", Better.LOWER, BIN_ALLOWANCE),
    ("lat_ns_p99", "ns", Better.LOWER, BIN_ALLOWANCE),
    ("cpu_ns_per_io", "ns", Better.LOWER, 0.0),
)


def _row(key: str, unit: str, better: Better, trials: Sequence[Trial], allowance: float) -> Row:
    fio, native = (
        [getattr(one, key) for one in sorted(trials, key=_pair) if one.engine is engine]
        for engine in (EngineName.FIO, EngineName.NATIVE)
    )
    comparison = compare_paired(fio, native, better, allowance=allowance)
    return Row(key, unit, _middle(fio), _middle(native), comparison)


def _pair(trial: Trial) -> int:
    return trial.pair


def _middle(values: Sequence[float]) -> float:
    return math.exp(sum(map(math.log, values)) / len(values))
