"""What a comparison of the engines of files measured, as `iolab calibrate` holds and shows it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from iolab.core.engine import EngineName
from iolab.loads.fileio.workload import Job


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
class HostCalibration:
    """One host's part: its runs in their order, and what each engine made of nothing there.

    `versions` are those of the engines, `methods` how each spoke to the kernel. `job` is what that
    host did, which may have another number of jobs than elsewhere.
    """

    host: str
    job: Job
    trials: tuple[Trial, ...]
    ceilings: Mapping[EngineName, float | None]
    versions: Mapping[EngineName, str]
    methods: Mapping[EngineName, str]


@dataclass(frozen=True, slots=True)
class Calibration:
    """All hosts, and their runs together: rates added up, latencies over the I/Os of all.

    All hosts ran one engine at a time, from one moment on.
    """

    job: Job
    hosts: tuple[HostCalibration, ...]
    trials: tuple[Trial, ...]

    @property
    def ceilings(self) -> Mapping[EngineName, float | None]:
        """What each engine made of nothing on all hosts at once; None where one could not."""
        every = [host.ceilings for host in self.hosts]
        return {
            engine: None if None in (parts := [one[engine] for one in every]) else _sum(parts)
            for engine in every[0]
        }


def _sum(parts: list[float | None]) -> float:
    return sum(part for part in parts if part is not None)
