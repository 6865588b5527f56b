"""A configuration: a named set of clients, target, hardware, capacity and cost."""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from iolab.core.bins import PERCENTILE_LABELS
from iolab.core.host_name import HostName
from iolab.core.object_store import ObjectStore
from iolab.record import Record

LOCAL_HOST: Final = "local"

DEFAULT_CONFIGURATION: Final = "default"
"""What a study has when it names no host and no configuration."""

LATENCY_METRIC_KEYS: Final = {
    "mean": "lat_ns_mean",
    **{label: key for key, label in PERCENTILE_LABELS.items()},
}
"""What a limit may be set to, and the metric that it is."""


class Capacity(Record):
    """Storage bought and storage usable, in decimal terabytes (10^12 bytes)."""

    raw_tb: float | None = None
    usable_tb: float | None = None


class ProcurementCost(Record):
    """Procurement cost by part, in one currency; `kwh_price` is of energy, in the same."""

    currency: str
    servers: float
    network: float
    storage: float
    kwh_price: float | None = None

    @property
    def total(self) -> float:
        """The sum of all parts."""
        return self.servers + self.network + self.storage


class Redundancy(Record):
    """How many bytes the storage's disks move for one byte of a client.

    3 and 1 for threefold replication, 1.5 and 1 for 4 + 2 parity, 1 and 1 without.
    """

    write_factor: float
    read_factor: float = 1.0


class Configuration(Record):
    """What a study compares: `hosts` name hosts of the study, `hardware` is rows of free text.

    `hosts` make the load; `storage` name the storage nodes that serve the target. `redundancy` is
    None where it was not declared: bytes of storage nodes can then not be held against clients'.
    With a `serial` the `path` is a whole block device, all of which is destroyed. With an
    `object_store` it needs no path: its load goes there.
    """

    id: str
    title: str
    hosts: tuple[HostName, ...]
    path: str
    nodes: int | None = None
    capacity: Capacity = Capacity()
    cost: ProcurementCost | None = None
    hardware: tuple[tuple[str, str], ...] = ()
    storage: tuple[HostName, ...] = ()
    redundancy: Redundancy | None = None
    serial: str | None = None
    object_store: ObjectStore | None = None

    @property
    def target_text(self) -> str:
        """Where its load goes, for people."""
        return self.path or (self.object_store.url_text if self.object_store else "")


class Objective(StrEnum):
    """What a workload's points are measured for."""

    GRID = "grid"
    """Every point of its axes, or of an adaptive axis those that tell the others."""
    PEAK = "peak"
    """The point with the highest figure."""
    MAX_LOAD = "max-load"
    """The highest rate at which a latency stays under a limit."""


class AxisSampling(StrEnum):
    """Which values of an axis are measured."""

    LISTED = "listed"
    """All."""
    ADAPTIVE = "adaptive"
    """As many as tell the others."""


def latency_limit_metric_text(metric_key: str) -> str:
    """A limit's metric as studies write it: `read p99`, `prefix-load p99`."""
    way, start, key = metric_key.rpartition("lat_ns_")
    names = [name for name, limited in LATENCY_METRIC_KEYS.items() if limited == f"{start}{key}"]
    return (
        " ".join([*([way.removesuffix("_").replace("_", "-")] if way else []), *names])
        or metric_key
    )


class LatencyLimit(Record):
    """A latency that must not be exceeded: the metric's key and nanoseconds."""

    metric: str
    latency_ns: float


class WorkloadObjective(Record):
    """What a workload is after.

    `headline_loads` are values of an adaptive axis that are measured in any case. `latency_limit`
    belongs to max-load.
    """

    objective: Objective = Objective.GRID
    axis_sampling: AxisSampling = AxisSampling.LISTED
    headline_loads: tuple[int, ...] = ()
    latency_limit: LatencyLimit | None = None

    @property
    def is_adaptive(self) -> bool:
        """Whether results decide which points are measured."""
        return self.objective is not Objective.GRID or self.axis_sampling is AxisSampling.ADAPTIVE


GRID_OBJECTIVE: Final = WorkloadObjective()
"""The axes as they are written."""
