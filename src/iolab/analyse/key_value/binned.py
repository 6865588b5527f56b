"""Latencies in an engine's own bins, of several hosts as one."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

from iolab.model.key_value import BinnedLatency, LatencyBin


def merged(latencies: Sequence[BinnedLatency]) -> BinnedLatency | None:
    """The latencies of one operation together: bins with the same edges add up, exactly.

    None for none at all, and where bins of one overlap those of another with other edges, as
    engines of different versions may have them: no bin says how its latencies lie within it.
    Mean and standard deviation are those of all latencies.
    """
    if not latencies:
        return None
    counts: dict[tuple[int, int], int] = {}
    for one in latencies:
        for held in one.bins:
            edges = (held.low_ns, held.high_ns)
            counts[edges] = counts.get(edges, 0) + held.count
    ordered = sorted(counts)
    if any(after[0] < before[1] for before, after in pairwise(ordered)):
        return None
    used = [one for one in latencies if one.count]
    if not used:
        return latencies[0]
    total = sum(one.count for one in used)
    mean = math.fsum(one.count * one.mean_ns for one in used) / total
    squares = math.fsum(one.count * (one.std_dev_ns**2 + (one.mean_ns - mean) ** 2) for one in used)
    return BinnedLatency(
        operation=latencies[0].operation,
        count=total,
        mean_ns=mean,
        std_dev_ns=math.sqrt(squares / total),
        min_ns=min(one.min_ns for one in used),
        max_ns=max(one.max_ns for one in used),
        resolution_ns=max(one.resolution_ns for one in used),
        bins=tuple(LatencyBin(*edges, counts[edges]) for edges in ordered),
    )
