"""What every metric is by its key: unit, which way is better, how hosts and runs make one value.

A key is systematic: `read_lat_ns_p99` is a percentile of the latency of the operation `read`,
`file_create_ops_per_s` a rate of `file_create`, and without an operation it is of the whole load.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from typing import Final

OPS_PER_S: Final = "ops_per_s"
"""The rate of all operations, each counted once."""


class Better(StrEnum):
    """Which way a metric has to go to get better."""

    HIGHER = "higher"
    LOWER = "lower"


class Combine(StrEnum):
    """How several hosts, or runs, make one value."""

    RATE = "rate"
    """Hosts are added within a window that they share."""
    MEAN = "mean"
    """Every operation weighs the same."""
    QUANTILE = "quantile"
    """Read from bins that were merged, and known no better than those."""
    EXTREME = "extreme"
    """The largest one that was seen."""


@dataclass(frozen=True, slots=True)
class MetricSpec:
    """One metric; `operation` is "" of the whole load, `statistic` "" of a rate.

    `over_window` is False for a rate over a whole phase, whatever its hosts have in common.
    """

    key: str
    operation: str
    statistic: str
    unit: str
    better: Better
    combine: Combine
    over_window: bool = True


_KEY: Final = re.compile(
    r"(?:(?P<operation>[a-z_]+?)_)??"
    r"(?:(?P<rate>iops|bw_bytes_per_s|ops_per_s(?P<whole>_whole)?)"
    r"|lat_ns_(?P<statistic>mean|max|p[0-9_]+))"
)

_UNITS: Final = {"iops": "1/s", "bw_bytes_per_s": "bytes/s"}

_OPERATIONS_UNIT: Final = "ops/s"

_COMBINED: Final = {"mean": Combine.MEAN, "max": Combine.EXTREME}


@lru_cache(maxsize=1024)
def spec_of(key: str) -> MetricSpec:
    """The metric with that key; KeyError where there is none."""
    found = _KEY.fullmatch(key)
    if found is None:
        raise KeyError(key)
    operation, rate, statistic = found["operation"] or "", found["rate"], found["statistic"]
    if rate is None:
        combine = _COMBINED.get(statistic, Combine.QUANTILE)
        return MetricSpec(key, operation, statistic, "ns", Better.LOWER, combine)
    return MetricSpec(
        key,
        operation,
        "",
        _UNITS.get(rate, _OPERATIONS_UNIT),
        Better.HIGHER,
        Combine.RATE,
        over_window=found["whole"] is None,
    )


def rate_key(operation: str) -> str:
    """The rate of one operation over the window that all hosts share."""
    return f"{operation}_{OPS_PER_S}"


def whole_rate_key(operation: str) -> str:
    """The rate of one operation over its whole phase."""
    return f"{operation}_{OPS_PER_S}_whole"


def rated_operations(keys: Iterable[str]) -> tuple[str, ...]:
    """The operations that have a rate over a whole phase among those metrics, in their order."""
    specs = (spec_of(key) for key in keys)
    return tuple(one.operation for one in specs if not one.over_window)


def timed_means(keys: Iterable[str]) -> tuple[str, ...]:
    """The metrics that are mean latencies, in their order."""
    return tuple(key for key in keys if spec_of(key).combine is Combine.MEAN)
