"""What an engine can make on each host at all: the jobs of a run, on a target that does nothing.

Measured once a session for each kind of job, so that a run says how much of its time the generator
itself had.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from iolab.model.event import Phase
from iolab.model.run import EngineTotals, PlannedRun
from iolab.model.workload import Job
from iolab.plan.ceilings import LOAD_S, LOOK_S, kind_of
from iolab.run.barrier import alongside
from iolab.run.crew import Crew
from iolab.run.drive import Ending, drive
from iolab.run.engines.base import NS_PER_S, Engine, EngineReading
from iolab.run.evidence import Evidence, on_each
from iolab.run.hosts.text import printable

WORDS_LIMIT: Final = 200
"""Characters of an engine's own words that are kept."""

_Kind = tuple[str, Job]
"""A host, and what of a job decides how fast its generator can be."""


@dataclass(frozen=True, slots=True)
class Ceiling:
    """I/Os a second; None where there is none, and then why if it should have been had."""

    iops: float | None
    fault: str = ""


class Ceilings:
    """The ceilings that a session knows, each measured when its first run comes."""

    def __init__(self) -> None:
        self._known: dict[_Kind, Ceiling] = {}

    async def see(self, crew: Crew, run: PlannedRun, evidence: Sequence[Evidence]) -> None:
        """Give each host's evidence its ceiling, those not known yet measured on all at once.

        Raises HostError when a host is lost. Measures nothing when the user wants to stop.
        """
        engine = crew.engine_of(run)
        kinds = {mine.name: kind_of(run.point.io_on(mine.name)) for mine in evidence}
        new = [mine for mine in evidence if (mine.name, kinds[mine.name]) not in self._known]

        async def look(mine: Evidence) -> None:
            kind = kinds[mine.name]
            found = await _measured(crew, engine, kind, mine)
            if not crew.stop.requested:
                self._known[mine.name, kind] = found

        if new and not crew.stop.requested:
            detail = f"what {engine.name} makes on a target that does nothing"
            crew.begin(Phase.CEILING, run, detail, LOOK_S[engine.name])
            await on_each(new, look)
        for mine in evidence:
            found = self._known.get((mine.name, kinds[mine.name]), _STOPPED)
            mine.ceiling_iops, mine.ceiling_fault = found.iops, found.fault


_STOPPED: Final = Ceiling(None)


async def _measured(crew: Crew, engine: Engine, job: Job, mine: Evidence) -> Ceiling:
    command = engine.null(job, seconds=LOAD_S[engine.name])
    if command is None:
        return Ceiling(None)
    reader = engine.null_reader(job)
    halt = asyncio.Event()

    def hear(piece: bytes) -> None:
        reader.feed(piece)

    work = drive(mine.site.host, command, halt, hear)
    ending = await alongside(work, crew.stop.pass_on(halt))
    return ceiling_of(ending, reader.finish())


def ceiling_of(ending: Ending, reading: EngineReading) -> Ceiling:
    """What a run on the target that does nothing tells."""
    totals = reading.totals
    rate = null_rate(totals) if totals else None
    if rate is not None and ending.exited.code == 0 and not reading.faults:
        return Ceiling(rate)
    said = (*reading.faults, *ending.stderr_tail.strip().splitlines()[-1:])
    return Ceiling(None, printable("; ".join(said) or "it told nothing", WORDS_LIMIT))


def null_rate(totals: EngineTotals) -> float | None:
    """I/Os a second on the target that does nothing; None where there were none."""
    ways = [way for way in (totals.read, totals.write) if way]
    measured_ns = totals.generator.measured_ns if totals.generator else 0
    if not measured_ns:
        return sum(way.iops for way in ways) or None
    return sum(way.ios for way in ways) * NS_PER_S / measured_ns or None
