"""A result's metrics: rates added over hosts, latencies from merged bins.

A host's rate is its I/Os over the time its intervals cover; the fleet's rate is the sum of its
hosts' rates, all within one window. The mean latency is the sum of all latencies over the number of
I/Os, so that every I/O weighs the same; percentiles come from histograms merged bin by bin.
Neither is ever averaged over hosts.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np

from iolab.analyse.load import DIRECTIONS, Load
from iolab.analyse.percentiles import PERCENTILES, is_supported
from iolab.model.histogram import UPPER_NS, Histogram
from iolab.model.metric import Metric
from iolab.model.sample import Direction, ways_of
from iolab.model.workload import Access

PER_SECOND: Final = "1/s"
BYTES_PER_SECOND: Final = "bytes/s"
NANOSECONDS: Final = "ns"

_LATENCIES: Final = ("lat_ns_mean", *(f"lat_ns_{name}" for name, _ in PERCENTILES), "lat_ns_max")
_SCOPES: Final[tuple[tuple[str, tuple[Direction, ...]], ...]] = (
    ("", DIRECTIONS),
    ("read_", (Direction.READ,)),
    ("write_", (Direction.WRITE,)),
    ("trim_", (Direction.TRIM,)),
)
"""Prefix of a key and the directions that it speaks of."""

TRIMS: Final = "trim_"
"""Begins the keys that only results of trims have."""

_UNITS: Final[Mapping[str, str]] = {
    **{f"{prefix}iops": PER_SECOND for prefix, _ in _SCOPES},
    **{f"{prefix}bw_bytes_per_s": BYTES_PER_SECOND for prefix, _ in _SCOPES},
    **{f"{prefix}{key}": NANOSECONDS for prefix, _ in _SCOPES for key in _LATENCIES},
}

METRIC_UNITS: Final[Mapping[str, str]] = {
    key: unit for key, unit in _UNITS.items() if not key.startswith(TRIMS)
}
"""Every metric key of a result and its unit, in the order in which they are shown."""

TRIM_UNITS: Final[Mapping[str, str]] = {
    key: unit for key, unit in _UNITS.items() if key.startswith(TRIMS)
}
"""Those that results of trims have besides."""


def no_metrics(access: Access) -> dict[str, Metric]:
    """Every metric of such load without a value."""
    units = {**METRIC_UNITS, **TRIM_UNITS} if access.trims else METRIC_UNITS
    return {key: Metric(None, unit) for key, unit in units.items()}


def fleet_metrics(load: Load, access: Access) -> dict[str, Metric]:
    """The metrics of all hosts together; without a common window none has a value."""
    if not load.shared:
        return no_metrics(access)
    return _metrics(load, list(range(len(load.seconds))), access)


def host_metrics(load: Load, host: int, access: Access) -> dict[str, Metric]:
    """The metrics of one host."""
    return _metrics(load, [host], access)


def group_metrics(load: Load, hosts: list[int], access: Access) -> dict[str, Metric]:
    """The metrics of some hosts together, merged as those of all; none without a common window."""
    return _metrics(load, hosts, access) if load.shared and hosts else no_metrics(access)


def _metrics(load: Load, hosts: list[int], access: Access) -> dict[str, Metric]:
    found = no_metrics(access)
    if float(load.seconds[hosts].min()) > 0:
        used = ways_of(access)
        for prefix, directions in _SCOPES:
            ways = [int(direction) for direction in directions if direction in used]
            for key, value in _scope(load, hosts, ways).items() if ways else ():
                found[f"{prefix}{key}"] = Metric(value, _UNITS[f"{prefix}{key}"])
    return found


def _scope(load: Load, hosts: list[int], ways: list[int]) -> dict[str, float | None]:
    """Rates and latencies of those hosts and directions, by key without prefix."""
    picked = np.ix_(hosts, ways)
    seconds = load.seconds[hosts]
    total = int(load.ios[picked].sum())
    histogram = load.histogram(hosts, ways)
    mean = float(load.lat_sum_ns[picked].sum()) / total if total else None
    percentiles = {
        f"lat_ns_{name}": histogram.percentile_ns(percent)
        if is_supported(histogram.total, percent)
        else None
        for name, percent in PERCENTILES
    }
    return {
        "iops": float((load.ios[picked].sum(axis=1) / seconds).sum()),
        "bw_bytes_per_s": float((load.bytes[picked].sum(axis=1) / seconds).sum()),
        "lat_ns_mean": mean,
        **percentiles,
        "lat_ns_max": _largest_ns(histogram),
    }


def _largest_ns(histogram: Histogram) -> float | None:
    """The upper edge of the last bin in use, never above the engine's own maximum.

    The engine tells its maximum for the whole run only; where nothing was cut away the two meet and
    the value is exact, else it is at most one bin (1.6 %) above the true maximum of the window.
    """
    used = np.flatnonzero(histogram.counts)
    if used.size == 0:
        return None
    edge = float(UPPER_NS[used[-1]])
    return edge if histogram.max_ns is None else min(edge, float(histogram.max_ns))
