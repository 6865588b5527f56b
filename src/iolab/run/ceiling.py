"""What an engine can make on each host at all: the jobs of a run, on a target that does nothing.

Measured once a session for each kind of job, so that a run says how much of its time the generator
itself had.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from iolab.model.run import EngineTotals, PlannedRun
from iolab.model.workload import Job
from iolab.run.barrier import alongside
from iolab.run.crew import Crew
from iolab.run.drive import drive
from iolab.run.engines.base import NS_PER_S, Engine
from iolab.run.evidence import Evidence, on_each

CEILING_S: Final = 0.3
"""Long enough for millions of I/Os, short enough to be had for every kind of job."""

_Kind = tuple[str, Job]
"""A host, and what of a job decides how fast its generator can be."""


class Ceilings:
    """The ceilings that a session knows, each measured when its first run comes."""

    def __init__(self) -> None:
        self._known: dict[_Kind, float | None] = {}

    async def see(self, crew: Crew, run: PlannedRun, evidence: Sequence[Evidence]) -> None:
        """Give each host's evidence its ceiling, None where it could not be had.

        Raises HostError when a host is lost.
        """
        engine = crew.engine_of(run)

        async def look(mine: Evidence) -> None:
            job = run.point.io_on(mine.name)
            kind = (mine.name, _kind_of(job))
            if kind not in self._known:
                self._known[kind] = await _measured(crew, engine, job, mine)
            mine.ceiling_iops = self._known[kind]

        await on_each(evidence, look)


def _kind_of(job: Job) -> Job:
    """The job without what the generator's own speed does not depend on."""
    return replace(
        job,
        rate_iops=None,
        rate_bytes_per_s=None,
        fleet_rate_iops=None,
        arrivals=None,
        file_bytes=0,
        files_per_job=1,
        direct=False,
        verify=False,
    )


async def _measured(crew: Crew, engine: Engine, job: Job, mine: Evidence) -> float | None:
    command = engine.null(job, mine.site.dir, seconds=CEILING_S)
    if command is None:
        return None
    reader = engine.null_reader(job)
    halt = asyncio.Event()

    def hear(piece: bytes) -> None:
        reader.feed(piece)

    work = drive(mine.site.host, command, halt, hear)
    ending = await alongside(work, crew.stop.pass_on(halt))
    totals = reader.finish().totals
    return null_rate(totals) if totals and ending.exited.code == 0 and not ending.halted else None


def null_rate(totals: EngineTotals) -> float | None:
    """I/Os a second on the target that does nothing; None where there were none."""
    ways = [way for way in (totals.read, totals.write) if way]
    measured_ns = totals.generator.measured_ns if totals.generator else 0
    if not measured_ns:
        return sum(way.iops for way in ways) or None
    return sum(way.ios for way in ways) * NS_PER_S / measured_ns or None
