"""Samples of the block layer made by hand."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from iolab.core.block_trace import BioLatencyBin, BlockTrace, DirectionTrace
from iolab.core.histogram import bin_index_of_ns
from tests.analysis.records import DEVICE

WINDOWS: Final = 100
A_WINDOW: Final = 500


def latency_rows(
    windows: Sequence[Sequence[int]], weight: float = 1.0
) -> tuple[tuple[BioLatencyBin, ...], float, float]:
    """Rows, weight and squares of the latencies of each window, by the definition."""
    found = [np.bincount(bin_index_of_ns(list(window))) for window in windows]
    bins = sorted({int(b) for counts in found for b in np.flatnonzero(counts)})
    rows = []
    for b in bins:
        tails = [weight * float(counts[b + 1 :].sum()) for counts in found]
        wholes = [weight * float(counts.sum()) for counts in found]
        rows.append(
            BioLatencyBin(
                bin=b,
                bios=sum(int(counts[b]) for counts in found if b < counts.size),
                weight=weight * sum(int(counts[b]) for counts in found if b < counts.size),
                tail_squares=sum(tail * tail for tail in tails),
                tail_products=sum(t * w for t, w in zip(tails, wholes, strict=True)),
            )
        )
    wholes = [weight * float(counts.sum()) for counts in found]
    return tuple(rows), sum(wholes), sum(whole * whole for whole in wholes)


def way_trace(windows: Sequence[Sequence[int]] = (), **changes: Any) -> DirectionTrace:
    """A sample of random reads of 4 KiB over 4 GiB, of those latencies."""
    windows = windows or [[700_000] * A_WINDOW] * WINDOWS
    rows, weight, squares = latency_rows(windows)
    bios = sum(len(window) for window in windows)
    draw = np.random.default_rng(1)
    told: dict[str, Any] = {
        "bios": bios,
        "windows": len(windows),
        "sizes": ((4096, bios),),
        "sequential": 0,
        "ends": bios * A_WINDOW // 2,
        "sectors": tuple(8 * int(place) for place in draw.integers(1 << 20, size=4096)),
        "censored": 0,
        "timed": bios,
        "lat_max_ns": max(max(window) for window in windows),
        "lat_sum_ns": float(sum(sum(window) for window in windows)),
        "weight": weight,
        "weight_squares": squares,
        "latencies": rows,
    }
    return DirectionTrace(**{**told, **changes})


def trace(read: DirectionTrace | None = None, write: DirectionTrace | None = None) -> BlockTrace:
    """The sample of a device."""
    return BlockTrace(DEVICE, read=read, write=write)
