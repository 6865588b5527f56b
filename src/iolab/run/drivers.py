"""Who prepares and measures a run: one driver for each maker of load."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, Protocol

from iolab.errors import EngineError
from iolab.model.engine import EngineName
from iolab.model.metadata import ReportedRate
from iolab.model.run import PlannedRun
from iolab.run import measure as io_measure
from iolab.run import prepare as io_prepare
from iolab.run.crew import Crew
from iolab.run.evidence import Evidence
from iolab.run.mdtest_driver import MdtestDriver
from iolab.run.metadata import MetadataDriver
from iolab.run.telemetry.decode import CounterCollector


class Driver(Protocol):
    """How a kind of load is made on all hosts of a run; it fills in their evidence.

    Both raise HostError or EngineError when any host fails, with what was gathered until then left
    in the evidence, and both heed a request to stop.
    """

    async def prepare(self, crew: Crew, run: PlannedRun, evidence: Sequence[Evidence]) -> None:
        """All phases before the first that counts; returns early at a request to stop."""

    async def measure(
        self,
        crew: Crew,
        run: PlannedRun,
        evidence: Sequence[Evidence],
        counters: CounterCollector,
    ) -> tuple[ReportedRate, ...]:
        """The load itself, with telemetry; rates of the fleet where the engine prints them."""


class IoDriver:
    """I/O on files, by an engine that runs as one process on each host."""

    async def prepare(self, crew: Crew, run: PlannedRun, evidence: Sequence[Evidence]) -> None:
        """Extents proved, caches dropped, devices watched idle."""
        await io_prepare.prepare(crew, run, evidence)

    async def measure(
        self,
        crew: Crew,
        run: PlannedRun,
        evidence: Sequence[Evidence],
        counters: CounterCollector,
    ) -> tuple[ReportedRate, ...]:
        """One process on each host, all started at one moment."""
        await io_measure.measure(crew, run, evidence, counters)
        return ()


DRIVERS: Final[Mapping[EngineName, Driver]] = {
    EngineName.FIO: IoDriver(),
    EngineName.METADATA: MetadataDriver(),
    EngineName.MDTEST: MdtestDriver(),
}
"""Every maker of load that a run may name."""


def driver_of(run: PlannedRun) -> Driver:
    """The driver of a run's job. EngineError when there is none."""
    engine = run.point.job.engine
    if engine not in DRIVERS:
        known = ", ".join(DRIVERS)
        raise EngineError(f"This iolab cannot drive '{engine}'.", f"Use one of: {known}.")
    return DRIVERS[engine]
