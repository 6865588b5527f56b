"""Two engines held against each other on one target: their runs, in pairs."""

from __future__ import annotations

from dataclasses import dataclass

from iolab.model.engine import EngineName
from iolab.model.workload import Job


@dataclass(frozen=True, slots=True)
class Trial:
    """One run of one engine; latencies and CPU time in ns, CPU for each I/O."""

    engine: EngineName
    pair: int
    iops: float
    lat_ns_mean: float
    lat_ns_p50: float
    lat_ns_p99: float
    cpu_ns_per_io: float


@dataclass(frozen=True, slots=True)
class Calibration:
    """All runs in their order, and what each engine made on the target that does nothing.

    `versions` are those of the engines, `methods` how each spoke to the kernel.
    """

    job: Job
    trials: tuple[Trial, ...]
    ceilings: tuple[tuple[EngineName, float | None], ...]
    versions: tuple[tuple[EngineName, str], ...]
    methods: tuple[tuple[EngineName, str], ...]
