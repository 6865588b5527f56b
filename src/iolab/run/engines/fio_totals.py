"""fio's own figures of a whole run: taken as printed, pooled where fio printed several jobs."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from iolab.model.histogram import Counts, Histogram
from iolab.model.run import DirectionTotals, EngineTotals
from iolab.model.sample import Direction

Block = Mapping[str, Any]

_RANK: Final = re.compile(r"\d{1,3}\.\d+")

DEPTH_LEVELS: Final = ("1", "2", "4", "8", "16", "32", ">=64")
"""Keys of `iodepth_level` in every version."""


def direction_totals(blocks: Sequence[Block], counts: Counts) -> DirectionTotals:
    """One direction over all jobs of a group; `counts` are their pooled latency bins.

    Of a single block the percentiles are fio's own; of several they come from the pooled bins by
    fio's rank rule, since percentiles of parts cannot be pooled.
    """
    weights = [_of(block, "total_ios") for block in blocks]
    latencies = [_inner(block, "lat_ns") for block in blocks]
    used = [lat for lat, weight in zip(latencies, weights, strict=True) if weight] or latencies
    lowest = int(min(_of(lat, "min") for lat in used))
    highest = int(max(_of(lat, "max") for lat in used))
    return DirectionTotals(
        ios=int(sum(weights)),
        bytes=int(sum(_of(block, "io_bytes") for block in blocks)),
        runtime_ms=int(max(_of(block, "runtime") for block in blocks)),
        iops=float(sum(_of(block, "iops") for block in blocks)),
        bw_bytes_per_s=float(sum(_bandwidth(block) for block in blocks)),
        lat_min_ns=lowest,
        lat_max_ns=highest,
        lat_mean_ns=_mean(latencies, weights),
        slat_mean_ns=_mean([_inner(block, "slat_ns") for block in blocks], weights),
        clat_mean_ns=_mean([_inner(block, "clat_ns") for block in blocks], weights),
        percentiles=_percentiles(latencies, Histogram(counts, lowest, highest)),
        short_ios=int(sum(_of(block, "short_ios") for block in blocks)),
        dropped_ios=int(sum(_of(block, "drop_ios") for block in blocks)),
    )


def engine_totals(
    blocks: Sequence[Block],
    ways: Mapping[Direction, DirectionTotals | None],
    *,
    error: int,
    jobs: int,
) -> EngineTotals:
    """The whole run: depth shares weighted by I/Os, CPU as the mean over the printed jobs."""
    weights = [
        sum(_of(_inner(job, way.name.lower()), "total_ios") for way in Direction) for job in blocks
    ]
    depths = [_inner(job, "iodepth_level") for job in blocks]
    shares = tuple((key, _pooled([_of(d, key) for d in depths], weights)) for key in DEPTH_LEVELS)
    return EngineTotals(
        read=ways.get(Direction.READ),
        write=ways.get(Direction.WRITE),
        trim=ways.get(Direction.TRIM),
        depth_percent=shares,
        user_cpu_percent=sum(_of(job, "usr_cpu") for job in blocks) / len(blocks),
        system_cpu_percent=sum(_of(job, "sys_cpu") for job in blocks) / len(blocks),
        error=error,
        jobs=jobs,
    )


def _percentiles(latencies: Sequence[Block], pooled: Histogram) -> tuple[tuple[float, int], ...]:
    own = [_ranked(_inner(latency, "percentile")) for latency in latencies]
    if len(own) == 1:
        return tuple(sorted(own[0].items()))
    ranks = sorted({rank for one in own for rank in one})
    values = ((rank, pooled.percentile_ns(rank)) for rank in ranks)
    return tuple((rank, round(value)) for rank, value in values if value is not None)


def _ranked(percentile: Block) -> dict[float, int]:
    ranks = {key: value for key, value in percentile.items() if _RANK.fullmatch(key)}
    return {float(key): int(value) for key, value in ranks.items() if isinstance(value, int)}


def _bandwidth(block: Block) -> float:
    """Bytes a second: `bw_bytes`, or from bytes and runtime where fio's integer is missing."""
    if "bw_bytes" in block:
        return _of(block, "bw_bytes")
    runtime = _of(block, "runtime")
    return _of(block, "io_bytes") * 1000 / runtime if runtime else 0.0


def _mean(parts: Sequence[Block], weights: Sequence[float]) -> float:
    return _pooled([_of(part, "mean") for part in parts], weights)


def _pooled(values: Sequence[float], weights: Sequence[float]) -> float:
    total = sum(weights)
    if not total:
        return 0.0
    return sum(value * weight for value, weight in zip(values, weights, strict=True)) / total


def _inner(block: Block, key: str) -> Block:
    inner = block.get(key)
    return inner if isinstance(inner, dict) else {}


def _of(block: Block, key: str) -> float:
    value = block.get(key, 0)
    return value if isinstance(value, int | float) and math.isfinite(value) else 0
