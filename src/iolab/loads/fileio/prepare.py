"""What comes before a measurement: extents proved, caches dropped, the devices watched idle."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

from iolab.core.events import Phase
from iolab.core.run import NOT_DROPPED, PlannedRun
from iolab.errors import HostError
from iolab.loads.fileio.workload import Job
from iolab.session.context import SessionContext
from iolab.session.driver import HostShare, on_each
from iolab.session.start import watch_idle
from iolab.targets.extents import evict, proof_of_device, prove, unproved
from iolab.units import format_bytes


async def prepare(session: SessionContext, run: PlannedRun, shares: Sequence[HostShare]) -> None:
    """Every phase before the measurement, each a barrier. Raises HostError when one fails.

    Returns early, between two phases, when the user wants to stop.
    """
    phases: tuple[
        Callable[[SessionContext, PlannedRun, Sequence[HostShare]], Awaitable[None]], ...
    ] = (
        prove_written,
        drop_caches,
        watch_idle,
    )
    for phase in phases:
        if not session.stop.requested:
            await phase(session, run, shares)


async def prove_written(
    session: SessionContext, run: PlannedRun, shares: Sequence[HostShare]
) -> None:
    """Prove that what the job will read was written; a hole would be measured as a fast read."""
    job = Job.of(run.point.job)
    if not job.access.reads:
        return
    data_set = session.plan.data_set(run.point.data_set)
    session.begin(Phase.PROVE, run, f"that {data_set.id} was written")

    async def check(mine: HostShare) -> None:
        numjobs = Job.of(run.point.job_on(mine.name)).numjobs
        if mine.workdir.device:
            mine.extents = proof_of_device(mine.workdir, numjobs * data_set.job_bytes)
        else:
            mine.extents = await prove(mine.workdir, mine.workdir.paths(data_set, numjobs))
        if holes := unproved(mine.extents):
            happened = (
                f"{format_bytes(holes)} of {data_set.id} on host '{mine.name}' were never written: "
                f"reading them would measure holes."
            )
            raise HostError(
                happened, "Let nobody change files in the scratch folder, or fill the device first."
            )

    await on_each(shares, check)


async def drop_caches(
    session: SessionContext, run: PlannedRun, shares: Sequence[HostShare]
) -> None:
    """Drop the pages of the files that the job will read, where the method asks for it."""
    job = Job.of(run.point.job)
    for mine in shares:
        mine.cache = NOT_DROPPED
    if not (session.study.method.drop_caches and job.access.reads):
        return
    data_set = session.plan.data_set(run.point.data_set)
    session.begin(Phase.DROP_CACHES, run, f"pages of {data_set.id}")

    async def drop(mine: HostShare) -> None:
        numjobs = Job.of(run.point.job_on(mine.name)).numjobs
        mine.cache = await evict(mine.workdir, mine.workdir.paths(data_set, numjobs))

    await on_each(shares, drop)
