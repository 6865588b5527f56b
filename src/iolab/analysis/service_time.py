"""Service time of an open loop: from submission to completion, beside the response time in `lat_*`.

An engine that tells both has each I/O in two rows of a record's tables. Where there is none of the
second, what `lat_*` says is service time already, and a result has no such metrics.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from iolab.analysis.metrics import (
    key_prefixes_and_directions,
    latency_statistics,
    metrics_or_unknown_by_key,
)
from iolab.analysis.sums import DIRECTIONS, LoadSums, OperationSums, sum_operations_in_window
from iolab.core.histogram import Histogram
from iolab.core.metric import Metric
from iolab.core.run import RunRecord
from iolab.core.workload import Direction, ServiceTimeDirection
from iolab.record import Record

SERVICE_PERCENTILES: Final = (("p50", 50.0), ("p99", 99.0), ("p99_9", 99.9))
"""Those that tell whether a tail is the target's or of waiting for it."""

_SCOPES: Final = key_prefixes_and_directions(DIRECTIONS)
_KEYS: Final = tuple(
    f"{prefix}service_lat_ns_{name}"
    for prefix, _ in _SCOPES
    for name in ("mean", *(name for name, _ in SERVICE_PERCENTILES))
)

SERVICE_KEYS: Final = tuple(key for key in _KEYS if not key.startswith("trim_"))
"""Every key of service time."""

SERVICE_TRIM_KEYS: Final = tuple(key for key in _KEYS if key.startswith("trim_"))
"""Those of trims, where there are any."""

DEEP: Final = 4
"""From this depth a job hides its own gaps between I/Os, so the limits are tighter."""

GOOD_DEEP: Final = 0.02
"""|rho - 1| that is well within what engines lose between I/Os, at depth 4 and more."""

GOOD_SHALLOW: Final = 0.05
"""The same below depth 4, where every gap counts in full."""

TOLERABLE: Final = 2.0
"""Factor of the above up to which the deviation only needs saying; for shallow ones 10 %."""

TOLERABLE_DEEP: Final = 2.5
"""The same for deep ones: 5 %."""


def sum_service_times(record: RunRecord, load_sums: LoadSums) -> OperationSums | None:
    """The service times of a record in the window of its load; None where it has none."""
    if not np.isin(record.intervals.direction, list(ServiceTimeDirection)).any():
        return None
    return sum_operations_in_window(record, list(ServiceTimeDirection), load_sums.measured_part)


def service_latency_metrics(
    service: OperationSums | None, host_indexes: Sequence[int]
) -> dict[str, Metric]:
    """The metrics of those hosts together, merged bin by bin; no keys where there is no service."""
    if service is None:
        return {}
    values: dict[str, float | None] = {}
    for prefix, ways in _SCOPES if host_indexes else ():
        picked = np.ix_(list(host_indexes), ways)
        histogram = Histogram(service.bins[picked].sum(axis=(0, 1)))
        waited, total = float(service.lat_sum_ns[picked].sum()), histogram.total
        for name, value in latency_statistics(
            histogram, waited, total, SERVICE_PERCENTILES
        ).items():
            values[f"{prefix}service_lat_ns_{name}"] = value
    trims = bool(service.bins[:, Direction.TRIM].any())
    return metrics_or_unknown_by_key(
        (*SERVICE_KEYS, *SERVICE_TRIM_KEYS) if trims else SERVICE_KEYS, values
    )


class HostConcurrency(Record):
    """The mean I/Os in flight against those asked for.

    `window_edge_tolerance_share` is what the window's edges may hide or add: an I/O that began
    before the window counts whole, one that ends after it not at all, so up to mean latency /
    window.
    """

    in_flight: float
    requested_depth: int
    window_edge_tolerance_share: float

    @property
    def reached_depth_share(self) -> float:
        """In flight over asked."""
        return self.in_flight / self.requested_depth


def host_concurrency(
    load_sums: LoadSums, host_index: int, requested_depth: int, service: OperationSums | None = None
) -> HostConcurrency | None:
    """One host's concurrency; None where it measured no I/O.

    Where `service` times are told, an I/O is in flight from its submission and not from when it was
    due.
    """
    seconds, ios = float(load_sums.seconds[host_index]), int(load_sums.ios[host_index].sum())
    if seconds <= 0 or ios == 0:
        return None
    waited_ns = load_sums.lat_sum_ns if service is None else service.lat_sum_ns
    waited_s = float(waited_ns[host_index].sum()) / 1e9
    return HostConcurrency(waited_s / seconds, requested_depth, waited_s / ios / seconds)


def max_valid_relative_concurrency_deviation(iodepth: int) -> float:
    """|rho - 1| up to which all is well, for jobs of this depth."""
    return GOOD_DEEP if iodepth >= DEEP else GOOD_SHALLOW


def max_indicative_relative_concurrency_deviation(iodepth: int) -> float:
    """|rho - 1| up to which the deviation is small enough to be only said."""
    factor = TOLERABLE_DEEP if iodepth >= DEEP else TOLERABLE
    return max_valid_relative_concurrency_deviation(iodepth) * factor
