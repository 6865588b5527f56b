"""How I/O on files is made in a session."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from iolab.core.run import PlannedRun
from iolab.core.workload import FIO_ENGINE, NATIVE_ENGINE
from iolab.hosts.telemetry import CounterCollector
from iolab.loads.fileio import measure as io_measure
from iolab.loads.fileio import prepare as io_prepare
from iolab.loads.fileio.engines.fio import FioEngine
from iolab.loads.fileio.engines.native import NativeEngine
from iolab.loads.fileio.limit_runs import Ceilings
from iolab.session.context import Crew
from iolab.session.driver import Driver, Evidence
from iolab.session.kinds import LoadSession


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
    ) -> None:
        """One process on each host, all started at one moment."""
        await io_measure.measure(crew, run, evidence, counters)


FILE_IO: Final = LoadSession(
    drivers={FIO_ENGINE: IoDriver, NATIVE_ENGINE: IoDriver},
    engines=(FioEngine(), NativeEngine()),
)
