"""Every maker of load: one driver for each, for as long as a session."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from iolab.errors import EngineError
from iolab.model.engine import EngineName
from iolab.model.metadata import ReportedRate
from iolab.model.run import PlannedRun
from iolab.run import measure as io_measure
from iolab.run import prepare as io_prepare
from iolab.run.ceiling import Ceilings
from iolab.run.crew import Crew
from iolab.run.db_bench_driver import DbBenchDriver
from iolab.run.driver import Driver
from iolab.run.evidence import Evidence
from iolab.run.mdtest_driver import MdtestDriver
from iolab.run.metadata import MetadataDriver
from iolab.run.telemetry.decode import CounterCollector
from iolab.run.ycsb_driver import YcsbDriver


class IoDriver(Driver):
    """I/O on files, by an engine that runs as one process on each host."""

    def __init__(self) -> None:
        self._ceilings = Ceilings()

    async def prepare(self, crew: Crew, run: PlannedRun, evidence: Sequence[Evidence]) -> None:
        """The generator's ceiling known, extents proved, caches dropped, devices watched idle."""
        await self._ceilings.see(crew, run, evidence)
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


DRIVERS: Final[Mapping[EngineName, Callable[[], Driver]]] = {
    EngineName.FIO: IoDriver,
    EngineName.NATIVE: IoDriver,
    EngineName.METADATA: MetadataDriver,
    EngineName.MDTEST: MdtestDriver,
    EngineName.DB_BENCH: DbBenchDriver,
    EngineName.YCSB: YcsbDriver,
}
"""Every maker of load that a run may name."""


class Drivers:
    """The drivers of one session, each made when its first run comes."""

    def __init__(self) -> None:
        self._made: dict[EngineName, Driver] = {}

    def of(self, run: PlannedRun) -> Driver:
        """The driver of a run's job. EngineError when there is none."""
        engine = run.point.job.engine
        if engine not in DRIVERS:
            known = ", ".join(DRIVERS)
            raise EngineError(f"This iolab cannot drive '{engine}'.", f"Use one of: {known}.")
        if engine not in self._made:
            self._made[engine] = DRIVERS[engine]()
        return self._made[engine]

    async def end(self) -> tuple[str, ...]:
        """Nothing that a driver held between runs stays; sentences on what could not be ended."""
        faults: list[str] = []
        for driver in self._made.values():
            faults += await driver.end()
        self._made.clear()
        return tuple(faults)
