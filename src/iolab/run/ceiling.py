"""What an engine can make on each host at all: the jobs of a run, on a target that does nothing.

Measured once a session for each kind of job and set of hosts, so that a run says how much of its
time the generator itself had.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
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

_Kinds = frozenset[tuple[str, Job]]
"""The hosts that look together, which may share processors, each with what of its job decides how
fast its generator can be."""


@dataclass(frozen=True, slots=True)
class Ceiling:
    """I/Os a second; None where there is none, and then why if it should have been had."""

    iops: float | None
    fault: str = ""


class Ceilings:
    """The ceilings that a session knows, each set of hosts' measured when its first run comes."""

    def __init__(self) -> None:
        self._known: dict[_Kinds, Mapping[str, Ceiling]] = {}

    async def see(self, crew: Crew, run: PlannedRun, evidence: Sequence[Evidence]) -> None:
        """Give each host's evidence its ceiling, measured on all at once where it is not known.

        Raises HostError when a host is lost. Measures nothing when the user wants to stop, and
        nothing of trims, which have no ceiling.
        """
        if run.point.io.access.trims:
            return
        kinds = {mine.name: kind_of(run.point.io_on(mine.name)) for mine in evidence}
        who = frozenset(kinds.items())
        if who not in self._known and not crew.stop.requested:
            found = await _looked(crew, run, kinds, evidence)
            if not crew.stop.requested:
                self._known[who] = found
        known = self._known.get(who, {})
        for mine in evidence:
            ceiling = known.get(mine.name, _STOPPED)
            mine.ceiling_iops, mine.ceiling_fault = ceiling.iops, ceiling.fault


_STOPPED: Final = Ceiling(None)


async def _looked(
    crew: Crew, run: PlannedRun, kinds: Mapping[str, Job], evidence: Sequence[Evidence]
) -> Mapping[str, Ceiling]:
    """What each host's job comes to while all the others' go on, too."""
    engine = crew.engine_of(run)
    found: dict[str, Ceiling] = {}

    async def look(mine: Evidence) -> None:
        found[mine.name] = await _measured(crew, engine, kinds[mine.name], mine)

    detail = f"what {engine.name} makes on a target that does nothing"
    crew.begin(Phase.CEILING, run, detail, LOOK_S[engine.name])
    await on_each(evidence, look)
    return found


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
