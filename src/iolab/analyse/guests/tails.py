"""Percentiles of what the hypervisor saw: from its own bins, and known to the width of one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from iolab.analyse.guests.placement import Node
from iolab.analyse.load import DIRECTIONS
from iolab.analyse.percentiles import PERCENTILES, is_supported
from iolab.analyse.summary import NANOSECONDS
from iolab.model.metric import Metric

Bins = Sequence[tuple[int, int, int]]
"""(low ns, high ns, count), ascending, low included and high not."""

OPEN_NS: Final = 2**63 - 1
"""The end of a bin that has none."""


def hypervisor_metrics(node: Node) -> dict[str, Metric]:
    """Percentiles by direction of all guests of a node over the whole run, bins added exactly.

    Keys are those of a result; one without enough I/Os is left out, and all where the hypervisor of
    any guest keeps no bins.
    """
    found: dict[str, Metric] = {}
    if not all(guest.run.blocks for guest in node.guests):
        return found
    for way in DIRECTIONS:
        counts = [one for guest in node.guests for one in guest.run.blocks if one.direction is way]
        bins = merged([one.bins for one in counts])
        if all(one.bins or not one.ios for one in counts):
            total = sum(count for *_, count in bins)
            found |= {
                f"{way.name.lower()}_lat_ns_{name}": bounded(bins, percent)
                for name, percent in PERCENTILES
                if is_supported(total, percent)
            }
    return found


def merged(several: Sequence[Bins]) -> Bins:
    """The bins together; those with the same edges add up."""
    counts: dict[tuple[int, int], int] = {}
    for bins in several:
        for low, high, count in bins:
            counts[low, high] = counts.get((low, high), 0) + count
    return tuple((*edges, count) for edges, count in sorted(counts.items()))


def bounded(bins: Bins, percent: float) -> Metric:
    """The percentile by a straight line through its bin, with the bin's edges and no n.

    In a bin without an end only "more than" is known. ValueError for bins of nothing.
    """
    rank = sum(count for *_, count in bins) * percent / 100
    below = 0
    for low, high, count in bins:
        if count and below + count >= rank:
            if high >= OPEN_NS:
                return Metric(None, NANOSECONDS, low=float(low))
            value = low + (high - low) * (rank - below) / count
            return Metric(value, NANOSECONDS, float(low), float(high))
        below += count
    raise ValueError("no latency has no percentile")
