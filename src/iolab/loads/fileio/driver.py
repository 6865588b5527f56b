"""How I/O on files is made in a session."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Final

from iolab.core.run import PlannedRun
from iolab.hosts.engine import Command, FileEngine, OutputReader, with_ledger
from iolab.loads.fileio import prepare as io_prepare
from iolab.loads.fileio.engines.fio import FioEngine
from iolab.loads.fileio.engines.native import NativeEngine
from iolab.loads.fileio.limit_runs import Ceilings
from iolab.loads.fileio.workload import Job
from iolab.session.context import SessionContext
from iolab.session.driver import HostShare
from iolab.session.kinds import LoadSession
from iolab.session.process_driver import ProcessDriver
from iolab.targets.seeds import seed_on, turn_of


class IoDriver(ProcessDriver):
    """I/O on files that are laid out, by an engine that runs as one process on each host."""

    def __init__(self, engine: FileEngine[Job]) -> None:
        self._files = engine
        self._ceilings = Ceilings()

    async def prepare(
        self, session: SessionContext, run: PlannedRun, shares: Sequence[HostShare]
    ) -> None:
        """The generator's ceiling known, extents proved, caches dropped, devices watched idle."""
        await self._ceilings.see(session, run, shares)
        await io_prepare.prepare(session, run, shares)

    def command(self, session: SessionContext, run: PlannedRun, mine: HostShare) -> Command:
        """See `ProcessDriver`: on the host's own files, held against what was written there."""
        _, longest_s = session.study.method.load_s
        job, data_set = (
            Job.of(run.point.job_on(mine.name)),
            session.plan.data_set(run.point.data_set),
        )
        command = self._files.measure(
            job,
            mine.workdir.holding(data_set),
            mine.workdir.dir,
            seconds=longest_s,
            seed=seed_on(session.study, run.point, mine.name, run.repeat),
            later=turn_of(session.study, run.point, mine.name),
        )
        ledger = session.ledgers.of(mine.workdir, data_set) if job.verify else None
        return with_ledger(self._files, command, ledger)

    def reader(self, run: PlannedRun, mine: HostShare) -> OutputReader:
        """See `ProcessDriver`."""
        return self._files.reader(Job.of(run.point.job_on(mine.name)))


_ENGINES: Final[tuple[FileEngine[Job], ...]] = (FioEngine(), NativeEngine())

FILE_IO: Final = LoadSession(
    drivers={engine.name: partial(IoDriver, engine) for engine in _ENGINES}, engines=_ENGINES
)
