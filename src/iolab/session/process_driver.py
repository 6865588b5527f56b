"""Load of one process on each host: one absolute start for all, engines and telemetry heard."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import partial
from typing import Any, Final

from iolab.core.compressed import BLOCK_BYTES, Packer
from iolab.core.events import IntervalSeen, Phase
from iolab.core.run import PlannedRun
from iolab.hosts.engine import Command, Engine, OutputReader
from iolab.hosts.intervals import IntervalLog
from iolab.hosts.telemetry import CounterCollector
from iolab.session.block_trace import traced
from iolab.session.context import SessionContext
from iolab.session.driver import Driver, HostShare
from iolab.session.early_stop import EarlyStop
from iolab.session.exit_faults import engine_fault
from iolab.session.start import Go, drive_between_looks, load_at_once, watch_idle
from iolab.session.start_time import NS_PER_S
from iolab.targets.seeds import seed_on

OUTPUT_KEPT_BYTES: Final = 512 << 20
"""Packed output of all hosts of a run that is kept in memory: half an hour of a hundred hosts that
print 30 kB a second, or three minutes of a thousand. Each host has an equal part of it; the rest is
cut off, and the manifest says so."""

FIRST_BLOCKS: Final = 8
"""Hosts print at the same moments; their first blocks are of so many sizes, so that they are not
packed at the same moments too."""


class ProcessDriver(Driver):
    """Makes the load of an engine that runs as one process on each host."""

    def __init__(self, engine: Engine[Any]) -> None:
        self.engine = engine

    async def prepare(
        self, session: SessionContext, run: PlannedRun, evidence: Sequence[HostShare]
    ) -> None:
        """The devices are watched idle."""
        await watch_idle(session, run, evidence)

    async def measure(
        self,
        session: SessionContext,
        run: PlannedRun,
        evidence: Sequence[HostShare],
        counters: CounterCollector,
    ) -> None:
        """Run the engine on all hosts at once and fill in their evidence.

        Raises HostError or EngineError when any host failed; the others are then stopped, and what
        they had measured is kept. The user's wish to stop ends all engines early without an error,
        as does the run's own rule.
        """
        _, longest_s = session.study.method.load_s
        session.begin(Phase.MEASURE, run, run.point.label, longest_s)
        halt = asyncio.Event()
        looking = EarlyStop(session, run, evidence, halt)
        listeners = {}
        for index, mine in enumerate(evidence):
            packer = Packer(
                OUTPUT_KEPT_BYTES // len(evidence),
                BLOCK_BYTES * (1 + index % FIRST_BLOCKS) // FIRST_BLOCKS,
            )
            listeners[mine.name] = partial(_Listener, session, run, mine, packer, looking)

        async def one(mine: HostShare, go: Go) -> None:
            command = mine.command = self.command(session, run, mine)
            listener = listeners[mine.name](self.reader(run, mine))
            try:
                async with traced(mine, command.wall_limit_s):
                    await drive_between_looks(mine, command, go, halt, listener.hear)
            finally:
                listener.finish()
            fault = engine_fault(run.point.job.engine, mine)
            if fault:
                raise fault

        await load_at_once(session, evidence, counters, one, halt)

    def command(self, session: SessionContext, run: PlannedRun, mine: HostShare) -> Command:
        """The process of one host."""
        _, longest_s = session.study.method.load_s
        return self.engine.command(
            run.point.job,
            mine.site.dir,
            seconds=longest_s,
            seed=seed_on(session.study, run.point, mine.name, run.repeat),
        )

    def reader(self, run: PlannedRun, mine: HostShare) -> OutputReader:  # noqa: ARG002 - of all
        """What reads the output of that process."""
        return self.engine.reader(run.point.job)


class _Listener:
    """Hears what one host's process prints: kept, read, shown, and looked at.

    The live view gets each interval with the time since the host's first one began.
    """

    def __init__(
        self,
        session: SessionContext,
        run: PlannedRun,
        mine: HostShare,
        packer: Packer,
        looking: EarlyStop,
        reader: OutputReader,
    ) -> None:
        self.mine = mine
        self._session = session
        self._run = run
        self._packer = packer
        self._looking = looking
        self._reader = reader
        self._elapsed_ns = 0

    def hear(self, piece: bytes) -> None:
        """Take the next bytes of standard output."""
        self._packer.add(piece)
        intervals = self._reader.feed(piece)
        for one in intervals:
            self._elapsed_ns += one.span_ns
            self._session.tell(
                IntervalSeen(
                    host=self.mine.name,
                    run=self._run,
                    elapsed_s=self._elapsed_ns / NS_PER_S,
                    iops=one.iops,
                    bw_bytes_per_s=one.bw_bytes_per_s,
                    lat_ns_mean=one.lat_ns_mean,
                    bins=one.latency_bins,
                )
            )
        self._looking.take(self.mine, intervals)

    def finish(self) -> None:
        """The output has ended, well or not."""
        self.mine.output = self._packer.finish()
        self.mine.reading = self._reader.finish()
        self.mine.intervals = IntervalLog.of(self.mine.reading.intervals)
