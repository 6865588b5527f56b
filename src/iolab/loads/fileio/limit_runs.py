"""What an engine can make on each host at all: the jobs of a run, on a target that does nothing.

Measured once a session for each kind of job and set of hosts, so that a run says how much of its
time the generator itself had.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from iolab.core.bins import BIN_COUNT
from iolab.core.engine import EngineName
from iolab.core.events import Phase
from iolab.core.histogram import Counts, Histogram
from iolab.core.run import EngineTotals, PlannedRun
from iolab.errors import EngineError
from iolab.hosts.barrier import alongside
from iolab.hosts.engine import EngineReading, FileEngine
from iolab.hosts.intervals import SERVICE_TIMES
from iolab.hosts.message import printable
from iolab.hosts.remote_process import Ending, drive
from iolab.loads.fileio.calibration_model import Trial
from iolab.loads.fileio.engine_facts import FILE_ENGINES
from iolab.loads.fileio.generator_limit import kind_of
from iolab.loads.fileio.workload import Job
from iolab.session.context import SessionContext
from iolab.session.driver import HostShare, on_each
from iolab.session.start import idle_meanwhile
from iolab.units import NS_PER_S

WORDS_LIMIT: Final = 200
"""Characters of an engine's own words that are kept."""

LEFT_OUT: Final = "method.generator_limit is false"
"""Why there is no ceiling where the study asks for none: a check that may not look must say so."""

_Kinds = frozenset[tuple[str, Job]]
"""The hosts that look together, which may share processors, each with what of its job decides how
fast its generator can be."""


@dataclass(frozen=True, slots=True)
class GeneratorLimit:
    """I/Os a second; None where there is none, and then why if it should have been had."""

    iops: float | None
    fault: str = ""


class Ceilings:
    """The ceilings that a session knows, each set of hosts' measured when its first run comes."""

    def __init__(self) -> None:
        self._known: dict[_Kinds, Mapping[str, GeneratorLimit]] = {}

    async def see(
        self, session: SessionContext, run: PlannedRun, shares: Sequence[HostShare]
    ) -> None:
        """Give each host's share its ceiling, measured on all at once where it is not known.

        Raises HostError when a host is lost. Measures nothing when the user wants to stop or the
        method leaves it out, and nothing of trims, which have no ceiling.
        """
        if Job.of(run.point.job).access.trims:
            return
        if not session.study.method.generator_limit:
            for mine in shares:
                mine.ceiling_fault = LEFT_OUT
            return
        kinds = {mine.name: kind_of(Job.of(run.point.job_on(mine.name))) for mine in shares}
        who = frozenset(kinds.items())
        if who not in self._known and not session.stop.requested:
            found = await _looked(session, run, kinds, shares)
            if not session.stop.requested:
                self._known[who] = found
        known = self._known.get(who, {})
        for mine in shares:
            ceiling = known.get(mine.name, _STOPPED)
            mine.ceiling_iops, mine.ceiling_fault = ceiling.iops, ceiling.fault


_STOPPED: Final = GeneratorLimit(None)


async def _looked(
    session: SessionContext,
    run: PlannedRun,
    kinds: Mapping[str, Job],
    shares: Sequence[HostShare],
) -> Mapping[str, GeneratorLimit]:
    """What each host's job comes to while all the others' go on, too."""
    engine = session.engine_of(run)
    found: dict[str, GeneratorLimit] = {}

    async def look(mine: HostShare) -> None:
        found[mine.name] = await _measured(session, engine, kinds[mine.name], mine)

    detail = f"{engine.name}'s ceiling, on a null target"
    session.begin(Phase.CEILING, run, detail, FILE_ENGINES[engine.name].look_s)
    async with idle_meanwhile(session, shares):
        await on_each(shares, look)
    return found


async def _measured(
    session: SessionContext, engine: FileEngine[Job], job: Job, mine: HostShare
) -> GeneratorLimit:
    command = engine.null(job, seconds=FILE_ENGINES[engine.name].load_s)
    if command is None:
        return GeneratorLimit(None)
    reader = engine.null_reader(job)
    halt = asyncio.Event()

    def hear(piece: bytes) -> None:
        reader.feed(piece)

    work = drive(mine.workdir.host, command, halt, hear)
    ending = await alongside(work, session.stop.pass_on(halt))
    return generator_limit_of(ending, reader.finish())


def generator_limit_of(ending: Ending, reading: EngineReading) -> GeneratorLimit:
    """What a run on the target that does nothing tells."""
    totals = reading.totals
    rate = null_rate(totals) if totals else None
    if rate is not None and ending.exited.code == 0 and not reading.faults:
        return GeneratorLimit(rate)
    reasons = (*reading.faults, *ending.stderr_tail.strip().splitlines()[-1:])
    return GeneratorLimit(None, printable("; ".join(reasons) or "it told nothing", WORDS_LIMIT))


def null_rate(totals: EngineTotals) -> float | None:
    """I/Os a second on the target that does nothing; None where there were none."""
    ways = [way for way in (totals.read, totals.write) if way]
    measured_ns = totals.generator.measured_ns if totals.generator else 0
    if not measured_ns:
        return sum(way.iops for way in ways) or None
    return sum(way.ios for way in ways) * NS_PER_S / measured_ns or None


PERCENTS: Final = (50.0, 99.0)


@dataclass(frozen=True, slots=True)
class LimitTally:
    """Every I/O of a run on one host: how many, over what time, how long they waited, at what cost.

    `bins` are their latencies in fio's bins.
    """

    ios: int
    span_ns: int
    waited_ns: float
    bins: Counts
    cpu_s: float


def tally_of(name: EngineName, reading: EngineReading, ending: Ending, do: str) -> LimitTally:
    """The whole run, over the time that all its intervals cover.

    EngineError, which says what to `do`, without any I/O.
    """
    bins = np.zeros(BIN_COUNT, dtype=np.int64)
    ios, span_ns, waited_ns = 0, 0, 0.0
    for interval in reading.intervals:
        span_ns += interval.span_ns
        for part in interval.directions:
            if part.direction in SERVICE_TIMES:
                continue
            ios += part.ios
            waited_ns += part.lat_sum_ns
            np.add.at(bins, part.bins.astype(np.int64), part.counts)
    if not ios or not span_ns:
        raise EngineError(f"{name} completed no I/O.", do)
    cpu_s = ending.exited.user_s + ending.exited.system_s
    return LimitTally(ios, span_ns, waited_ns, bins, cpu_s)


def trial_of(engine: EngineName, pair: int, tallies: Sequence[LimitTally]) -> Trial:
    """One host's run, or that of several at once: rates add up, percentiles are those of all I/Os.

    Each host's rate is over its own time, so that none that ended late dilutes the others.
    """
    ios = sum(tally.ios for tally in tallies)
    histogram = Histogram(np.sum([tally.bins for tally in tallies], axis=0))
    p50, p99 = (histogram.percentile_ns(percent) or 0.0 for percent in PERCENTS)
    return Trial(
        engine=engine,
        pair=pair,
        iops=sum(tally.ios * NS_PER_S / tally.span_ns for tally in tallies),
        lat_ns_mean=sum(tally.waited_ns for tally in tallies) / ios,
        lat_ns_p50=p50,
        lat_ns_p99=p99,
        cpu_ns_per_io=sum(tally.cpu_s for tally in tallies) * NS_PER_S / ios,
    )
