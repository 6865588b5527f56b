"""Service time of an open loop: from submission to completion, beside the response time in `lat_*`.

An engine that tells both has each I/O in two rows of a record's tables. Where there is none of the
second, what `lat_*` says is service time already, and a result has no such metrics.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from iolab.analysis.metrics import TRIMS, is_supported
from iolab.analysis.sums import DIRECTIONS, LoadSums
from iolab.core.histogram import BIN_COUNT, Histogram
from iolab.core.metric import Metric
from iolab.core.run import RunRecord
from iolab.core.samples import Direction, Floats, Ints, ServiceTime

NANOSECONDS: Final = "ns"

SERVICE_PERCENTILES: Final = (("p50", 50.0), ("p99", 99.0), ("p99_9", 99.9))
"""Those that tell whether a tail is the target's or of waiting for it."""

_WAYS: Final = (ServiceTime.READ, ServiceTime.WRITE, ServiceTime.TRIM)
_PREFIXES: Final[tuple[tuple[str, tuple[Direction, ...]], ...]] = (
    ("", DIRECTIONS),
    ("read_", (Direction.READ,)),
    ("write_", (Direction.WRITE,)),
    ("trim_", (Direction.TRIM,)),
)
_KEYS: Final = ("mean", *(name for name, _ in SERVICE_PERCENTILES))

_UNITS: Final[Mapping[str, str]] = {
    f"{prefix}service_lat_ns_{key}": NANOSECONDS for prefix, _ in _PREFIXES for key in _KEYS
}

SERVICE_UNITS: Final[Mapping[str, str]] = {
    key: unit for key, unit in _UNITS.items() if not key.startswith(TRIMS)
}
"""Every key of service time and its unit."""

SERVICE_TRIM_UNITS: Final[Mapping[str, str]] = {
    key: unit for key, unit in _UNITS.items() if key.startswith(TRIMS)
}
"""Those of trims, where there are any."""

SERVICE_MEAN: Final = "service_lat_ns_mean"
"""One that a result has if and only if its `lat_*` are response times."""


@dataclass(frozen=True, slots=True)
class Service:
    """Service times in the measured window: H hosts, axis 1 is read, write, trim.

    `lat_sum_ns` is (H, 3), `bins` (H, 3, BIN_COUNT).
    """

    lat_sum_ns: Floats
    bins: Ints


def service_of(record: RunRecord, load: LoadSums) -> Service | None:
    """The service times of a record in the window of its load; None where none are told."""
    table = record.intervals
    first, last = int(_WAYS[0]), int(_WAYS[-1])
    told = (table.direction >= first) & (table.direction <= last)
    if not told.any():
        return None
    hosts = len(record.hosts)
    rows = told & load.cut.intervals
    sums = np.zeros((hosts, len(_WAYS)))
    np.add.at(sums, (table.host[rows], table.direction[rows] - first), table.lat_sum_ns[rows])
    bins = np.zeros((hosts, len(_WAYS), BIN_COUNT), dtype=np.int64)
    start = 0
    for part in record.bins.chunks():
        inside = load.cut.bins[start : start + len(part)]
        inside = inside & (part.direction >= first) & (part.direction <= last)
        start += len(part)
        place = (part.host[inside], part.direction[inside] - first, part.bin[inside])
        np.add.at(bins, place, part.count[inside])
    return Service(sums, bins)


def service_metrics(service: Service | None, hosts: Sequence[int]) -> dict[str, Metric]:
    """The metrics of those hosts together, merged bin by bin; no keys where no service is told."""
    if service is None:
        return {}
    trims = bool(service.bins[:, Direction.TRIM].any())
    units = {**SERVICE_UNITS, **SERVICE_TRIM_UNITS} if trims else SERVICE_UNITS
    found = {key: Metric(None, unit) for key, unit in units.items()}
    if not hosts:
        return found
    for prefix, ways in _PREFIXES:
        picked = np.ix_(list(hosts), [int(way) for way in ways])
        histogram = Histogram(service.bins[picked].sum(axis=(0, 1)))
        if not histogram.total:
            continue
        key = f"{prefix}service_lat_ns_"
        mean = float(service.lat_sum_ns[picked].sum()) / histogram.total
        found[f"{key}mean"] = Metric(mean, NANOSECONDS)
        for name, percent in SERVICE_PERCENTILES:
            if is_supported(histogram.total, percent):
                found[f"{key}{name}"] = Metric(histogram.percentile_ns(percent), NANOSECONDS)
    return found


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


@dataclass(frozen=True, slots=True)
class Concurrency:
    """The mean I/Os in flight against those asked for.

    `edge` is what the window's edges may hide or add: an I/O that began before the window counts
    whole, one that ends after it not at all, so up to mean latency / window.
    """

    in_flight: float
    asked: int
    edge: float

    @property
    def rho(self) -> float:
        """In flight over asked."""
        return self.in_flight / self.asked


def concurrency(
    load: LoadSums, host: int, asked: int, service: Service | None = None
) -> Concurrency | None:
    """One host's concurrency; None where it measured no I/O.

    Where `service` times are told, an I/O is in flight from its submission and not from when it was
    due.
    """
    seconds, ios = float(load.seconds[host]), int(load.ios[host].sum())
    if seconds <= 0 or ios == 0:
        return None
    waited_ns = load.lat_sum_ns if service is None else service.lat_sum_ns
    waited_s = float(waited_ns[host].sum()) / 1e9
    return Concurrency(waited_s / seconds, asked, waited_s / ios / seconds)


def good_limit(iodepth: int) -> float:
    """|rho - 1| up to which all is well, for jobs of this depth."""
    return GOOD_DEEP if iodepth >= DEEP else GOOD_SHALLOW


def tolerable_limit(iodepth: int) -> float:
    """|rho - 1| up to which the deviation is small enough to be only said."""
    factor = TOLERABLE_DEEP if iodepth >= DEEP else TOLERABLE
    return good_limit(iodepth) * factor
