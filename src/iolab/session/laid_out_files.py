"""Files that were laid out, before a run: proved to be written, and dropped from the page cache."""

from __future__ import annotations

from collections.abc import Sequence

from iolab.core.events import SessionPhase
from iolab.core.run import CACHE_NOT_DROPPED, PlannedRun
from iolab.core.workload import Direction
from iolab.errors import HostError
from iolab.session.context import SessionContext
from iolab.session.driver import HostRunInProgress, run_on_each_host
from iolab.targets.work_directory import (
    device_extent_proof,
    drop_host_and_file_caches,
    prove_extents,
    unwritten_or_hole_bytes,
)
from iolab.units import format_bytes


async def prove_extents_written(
    session: SessionContext, run: PlannedRun, host_runs: Sequence[HostRunInProgress]
) -> None:
    """Prove that what the job will read was written; a hole would be measured as a fast read."""
    if Direction.READ not in run.point.job.data_directions:
        return
    data_set = session.plan.data_set(run.point.data_set)
    session.begin_session_phase(SessionPhase.PROVE, run, f"that {data_set.id} was written")

    async def prove_extents_of_host(host_run: HostRunInProgress) -> None:
        numjobs = run.point.job_on_host(host_run.name).jobs_per_client
        if host_run.workdir.device:
            host_run.extents = device_extent_proof(
                host_run.workdir, numjobs * data_set.bytes_per_job
            )
        else:
            host_run.extents = await prove_extents(
                host_run.workdir, host_run.workdir.data_set_paths(data_set, numjobs)
            )
        if holes := unwritten_or_hole_bytes(host_run.extents):
            message = (
                f"{format_bytes(holes)} of {data_set.id} on host '{host_run.name}' were never "
                "written: reading them would measure holes."
            )
            raise HostError(
                message, "Let nobody change files in the scratch folder, or fill the device first."
            )

    await run_on_each_host(host_runs, prove_extents_of_host)


async def drop_caches(
    session: SessionContext, run: PlannedRun, host_runs: Sequence[HostRunInProgress]
) -> None:
    """Drop the pages of the files that the job will read, where the method asks for it."""
    reads = Direction.READ in run.point.job.data_directions
    for host_run in host_runs:
        host_run.cache_drop = CACHE_NOT_DROPPED
    if not (session.study.method.drop_caches and reads):
        return
    data_set = session.plan.data_set(run.point.data_set)
    session.begin_session_phase(SessionPhase.DROP_CACHES, run, f"pages of {data_set.id}")

    async def drop_caches_of_host(host_run: HostRunInProgress) -> None:
        numjobs = run.point.job_on_host(host_run.name).jobs_per_client
        host_run.cache_drop = await drop_host_and_file_caches(
            host_run.workdir, host_run.workdir.data_set_paths(data_set, numjobs)
        )

    await run_on_each_host(host_runs, drop_caches_of_host)
