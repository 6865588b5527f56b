"""Columnar evidence of a run: intervals of load, their latency bins, and counters of the hosts.

Each table is a set of numpy columns of one length; nothing here is a Python object per I/O, second
or device. `host` columns index the run's host names.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Names = npt.NDArray[np.object_]


class Direction(IntEnum):
    """Which way an I/O goes; the number stands in files."""

    READ = 0
    WRITE = 1
    TRIM = 2


@dataclass(frozen=True, slots=True)
class IntervalTable:
    """What each host completed in each interval and direction.

    One row a (host, seq, direction): `seq` counts a host's intervals from 0, `end_real_ns` is the
    host's own clock at the interval's end, `span_ns` its length, `ios` and `bytes` what completed,
    `lat_sum_ns` the sum of their latencies (submission to completion).
    """

    host: Ints
    seq: Ints
    end_real_ns: Ints
    span_ns: Ints
    direction: Ints
    ios: Ints
    bytes: Ints
    lat_sum_ns: Floats

    def __len__(self) -> int:
        return int(self.host.size)


@dataclass(frozen=True, slots=True)
class BinTable:
    """Sparse latency bins: `count` I/Os of (host, seq, direction) fell into `bin`.

    The sum over all intervals is the run's whole histogram, exactly.
    """

    host: Ints
    seq: Ints
    direction: Ints
    bin: Ints
    count: Ints

    def __len__(self) -> int:
        return int(self.host.size)


@dataclass(frozen=True, slots=True)
class CounterTable:
    """Telemetry as the kernel counts it, one value a row; rates are derived, never stored.

    `scope` is cpu, disk, nic, memory, pressure, thermal or agent; `name` the core, device or port;
    `metric` the counter's name with its unit last (see docs/reference/telemetry.md). CPU rows are
    named `<core>@<numa node>`.
    """

    host: Ints
    seq: Ints
    real_ns: Ints
    scope: Names
    name: Names
    metric: Names
    value: Ints

    def __len__(self) -> int:
        return int(self.host.size)


def no_intervals() -> IntervalTable:
    """A table of no interval."""
    none = np.zeros(0, dtype=np.int64)
    return IntervalTable(none, none, none, none, none, none, none, np.zeros(0))


def no_bins() -> BinTable:
    """A table of no bin."""
    none = np.zeros(0, dtype=np.int64)
    return BinTable(none, none, none, none, none)


def no_counters() -> CounterTable:
    """A table of no counter."""
    none = np.zeros(0, dtype=np.int64)
    names = np.zeros(0, dtype=np.object_)
    return CounterTable(none, none, none, names, names, names, none)
