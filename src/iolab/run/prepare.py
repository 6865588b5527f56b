"""What comes before a measurement: extents proved, caches dropped, the devices watched idle."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Final

from iolab.errors import HostError
from iolab.model.event import Phase
from iolab.model.run import NOT_DROPPED, PlannedRun
from iolab.run.counters import Look, idle_proof, look_of
from iolab.run.crew import Crew
from iolab.run.evidence import Evidence, on_each
from iolab.run.extents import evict, proof_of_device, prove, unproved
from iolab.run.site import Site
from iolab.units import format_bytes

IDLE_WATCH_S: Final = 1.0
"""How long the devices are watched before the start: a second shows anybody who is busy there."""

SNAPSHOT_LIMIT_S: Final = 20.0
"""One look at the counters; a host under full load may be slow to answer."""


async def prepare(crew: Crew, run: PlannedRun, evidence: Sequence[Evidence]) -> None:
    """Every phase before the measurement, each a barrier. Raises HostError when one fails.

    Returns early, between two phases, when the user wants to stop.
    """
    phases: tuple[Callable[[Crew, PlannedRun, Sequence[Evidence]], Awaitable[None]], ...] = (
        prove_written,
        drop_caches,
        watch_idle,
    )
    for phase in phases:
        if not crew.stop.requested:
            await phase(crew, run, evidence)


async def prove_written(crew: Crew, run: PlannedRun, evidence: Sequence[Evidence]) -> None:
    """Prove that what the job will read was written; a hole would be measured as a fast read."""
    job = run.point.io
    if not job.access.reads:
        return
    data_set = crew.plan.data_set(run.point.data_set)
    crew.begin(Phase.PROVE, run, f"that {data_set.id} was written")

    async def check(mine: Evidence) -> None:
        numjobs = run.point.io_on(mine.name).numjobs
        if mine.site.device:
            mine.extents = proof_of_device(mine.site, numjobs * data_set.job_bytes)
        else:
            mine.extents = await prove(mine.site, mine.site.paths(data_set, numjobs))
        if holes := unproved(mine.extents):
            happened = (
                f"{format_bytes(holes)} of {data_set.id} on host '{mine.name}' were never written: "
                f"reading them would measure holes."
            )
            raise HostError(
                happened, "Let nobody change files in the scratch folder, or fill the device first."
            )

    await on_each(evidence, check)


async def drop_caches(crew: Crew, run: PlannedRun, evidence: Sequence[Evidence]) -> None:
    """Drop the pages of the files that the job will read, where the method asks for it."""
    job = run.point.io
    for mine in evidence:
        mine.cache = NOT_DROPPED
    if not (crew.study.method.drop_caches and job.access.reads):
        return
    data_set = crew.plan.data_set(run.point.data_set)
    crew.begin(Phase.DROP_CACHES, run, f"pages of {data_set.id}")

    async def drop(mine: Evidence) -> None:
        numjobs = run.point.io_on(mine.name).numjobs
        mine.cache = await evict(mine.site, mine.site.paths(data_set, numjobs))

    await on_each(evidence, drop)


async def watch_idle(crew: Crew, run: PlannedRun, evidence: Sequence[Evidence]) -> None:
    """See whether the target's devices are busy with somebody else's I/O."""
    known = [mine for mine in evidence if mine.site.devices]
    if not known:
        return
    crew.begin(Phase.IDLE, run, "is anybody else busy there", IDLE_WATCH_S)

    async def watch(mine: Evidence) -> None:
        before = await snapshot(mine.site)
        await asyncio.sleep(IDLE_WATCH_S)
        mine.idle = idle_proof(before, await snapshot(mine.site), mine.site.devices)

    await on_each(known, watch)


async def snapshot(site: Site) -> Look:
    """The host's devices now. Raises HostError."""
    sample = await site.host.ask("snapshot", deadline_s=SNAPSHOT_LIMIT_S)
    try:
        return look_of(sample)
    except ValueError as fault:
        raise site.host.give_up(f"sent a sample that makes no sense: {fault}") from None
