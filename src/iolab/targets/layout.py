"""Lays a data set out on all hosts: whole files with real contents, proved to be written."""

from __future__ import annotations

import asyncio
import errno
import os
from collections.abc import Sequence
from typing import Final

from msgspec.structs import replace

from iolab.core.engine import EngineName
from iolab.core.events import SessionPhase
from iolab.core.workload import AnyJob, DataSet
from iolab.errors import EngineError, HostError, Interrupted, IolabError
from iolab.hosts.barrier import gather_hosts, run_with_background
from iolab.hosts.device_counters import take_disks_snapshot
from iolab.hosts.engine import Command, ParsedEngineOutput, command_that_verifies_blocks
from iolab.hosts.message import AgentRefusalError
from iolab.hosts.remote_process import CORRECT_HINT, ProcessEnding, exit_fault_text, run_process
from iolab.study.cost import ASSUMED_WRITE_BYTES_PER_S
from iolab.targets.context import TargetContext, contents_seed
from iolab.targets.work_directory import (
    PROVING_METHODS,
    WorkDirectory,
    peer_folder_path,
    prove_extents,
    require_shared_target,
    unwritten_or_hole_bytes,
)
from iolab.text import excerpt
from iolab.units import format_bytes

SHARE: Final = "Give all clients a path on one shared file system, or leave target.rotate out."

LOOK_S: Final = 30.0
"""Between two looks at the devices' counters."""

HUNG_S: Final = 600.0
"""Devices of a target that complete no I/O for so long hang. Linux itself warns of a task that
waits for 120 s; a controller that resets or a cluster that recovers may take minutes."""


def rotated_workdirs(workdirs: Sequence[WorkDirectory], rotate: int) -> tuple[WorkDirectory, ...]:
    """A run's directories: client i works in the folder of client i + rotate, modulo all.

    Raises HostError when so few clients are left that one would read its own.
    """
    if rotate % len(workdirs) == 0:
        message = f"With {len(workdirs)} clients left, rotate = {rotate} gives each its own files."
        raise HostError(message, "Bring the others back, or set another target.rotate.")
    owners = [workdirs[(place + rotate) % len(workdirs)] for place in range(len(workdirs))]
    return tuple(
        replace(workdir, dir=peer_folder_path(workdir, owner), folder_owner_host=owner.name)
        for workdir, owner in zip(workdirs, owners, strict=True)
    )


async def require_rotated_folders_visible(
    workdirs: Sequence[WorkDirectory], rotated: Sequence[WorkDirectory]
) -> None:
    """HostError with every client that does not see the folder whose files it is to read."""
    await require_shared_target(
        workdirs, {workdir.name: (workdir.folder_owner_host,) for workdir in rotated}, hint=SHARE
    )


async def wait_for_hang_and_raise(workdir: WorkDirectory, activity_text: str) -> None:
    """Return never: EngineError once the target's devices have completed nothing for too long.

    A target without a device of its own here, such as NFS, is never told to hang: an engine that
    flushes says nothing for as long as that takes.
    """
    before, still_s = None, 0.0
    while True:
        await asyncio.sleep(LOOK_S)
        if not workdir.devices:
            continue
        snapshot = await take_disks_snapshot(workdir.host)
        now = [snapshot.counts_by_disk.get(name) for name in workdir.devices]
        still_s = still_s + LOOK_S if now == before else 0.0
        before = now
        if still_s >= HUNG_S:
            message = (
                f"{activity_text} on host '{workdir.name}' hangs: {', '.join(workdir.devices)} "
                f"completed no I/O for {HUNG_S:g} s."
            )
            raise EngineError(message, "See that host's kernel log and whether the target answers.")


async def lay_out_data_set_where_missing(
    context: TargetContext, workdirs: Sequence[WorkDirectory], data_set: DataSet, job: AnyJob | None
) -> None:
    """Write every file of the data set on every directory, by the way in which `job` will use them.

    Of a data set that no job works on, for None, that is the session's first engine's own way.

    Raises HostError, EngineError, and Interrupted when the user wanted to stop.

    Files that an earlier session kept, and that are whole, are used as they are, unless they are to
    be verified: nobody knows their last writes any more. Files of a layout that fails stay in the
    scratch folder, which goes with the session.
    """
    present = (
        await gather_hosts(
            workdirs,
            lambda workdir: layout_bytes_if_complete(
                workdir, data_set.with_jobs_of_host(workdir.name)
            ),
        )
    ).results_or_raise()
    block_bytes = _ledger_block_bytes(context, job)
    missing = [
        workdir
        for workdir in workdirs
        if not present[workdir.name]
        or (block_bytes and not context.ledgers.is_complete(workdir, data_set))
    ]
    if not missing:
        return
    most = max(data_set.with_jobs_of_host(workdir.name).bytes_per_host for workdir in missing)
    size = format_bytes(most)
    hosts = "1 host" if len(missing) == 1 else f"each of {len(missing)} hosts"
    expected_s = most / ASSUMED_WRITE_BYTES_PER_S
    context.begin_session_phase(
        SessionPhase.LAY_OUT, None, f"{data_set.id}: {size} on {hosts}", expected_s
    )

    async def write_data_set_on_host(workdir: WorkDirectory) -> None:
        await _write_data_set(context, workdir, data_set.with_jobs_of_host(workdir.name), job)

    (await gather_hosts(missing, write_data_set_on_host)).results_or_raise()


async def layout_bytes_if_complete(workdir: WorkDirectory, data_set: DataSet) -> int:
    """The size of the data set's files there when all of them are written, else 0."""
    try:
        proof = await prove_extents(workdir, workdir.data_set_paths(data_set))
    except AgentRefusalError:
        return 0
    whole = proof.size_bytes == data_set.bytes_per_host
    proved = proof.method in PROVING_METHODS and not unwritten_or_hole_bytes(proof)
    return proof.size_bytes if whole and proved else 0


def _ledger_block_bytes(context: TargetContext, job: AnyJob | None) -> int | None:
    """What a ledger of the job's files counts in; None where there is none to be kept.

    Files that clients hand on are written by several, none of which knows of the others' writes.
    """
    if job is None or not job.verify or context.study.target.rotate:
        return None
    return job.io_alignment_bytes


async def _write_data_set(
    context: TargetContext, workdir: WorkDirectory, data_set: DataSet, job: AnyJob | None
) -> None:
    engine = context.engines[job.layout_engine] if job else next(iter(context.engines.values()))
    own_job = job if job and job.layout_engine == job.engine else None
    block_bytes = _ledger_block_bytes(context, job)
    ledger = (
        await context.ledgers.begin_ledger(workdir, data_set, block_bytes) if block_bytes else None
    )
    seed = contents_seed(context.study, workdir.name)
    command = engine.build_layout_command(data_set, workdir.dir, own_job, seed=seed)
    command = command_that_verifies_blocks(engine, command, ledger)
    reader = engine.create_layout_reader(data_set)
    halt = asyncio.Event()

    work = run_process(workdir.host, command, halt, reader.feed)
    watched = run_with_background(
        work, wait_for_hang_and_raise(workdir, f"The layout of {data_set.id}")
    )
    ending = await run_with_background(watched, context.stop.forward_to_event(halt))
    if ending.was_halted:
        raise Interrupted("The layout was stopped.", "Resume the session to go on.")
    fault = layout_error(
        workdir.name, workdir.dir, data_set, command, engine.name, ending, reader.finish()
    )
    if fault:
        raise fault
    proof = await prove_extents(workdir, workdir.data_set_paths(data_set))
    if unwritten_or_hole_bytes(proof):
        message = (
            f"After the layout of {data_set.id} on host '{workdir.name}', "
            f"{format_bytes(unwritten_or_hole_bytes(proof))} of its files are not written."
        )
        raise HostError(message, "See whether something else changes files in that folder.")
    context.ledgers.mark_complete(workdir, data_set)


def layout_error(
    host_name: str,
    directory: str,
    data_set: DataSet,
    command: Command,
    engine_name: EngineName,
    ending: ProcessEnding,
    reading: ParsedEngineOutput,
) -> IolabError | None:
    """Why a layout is not what was requested; None when it is."""
    error = reading.totals.error if reading.totals else 0
    reason = "; ".join((*reading.faults, ending.stderr_tail))
    if is_os_error(errno.ENOSPC, error, reason) or is_os_error(errno.EDQUOT, error, reason):
        message = (
            f"{excerpt(directory)} on host '{host_name}' ran full while {data_set.id} "
            f"({format_bytes(data_set.bytes_per_host)}) was laid out."
        )
        hint = "Make room there, or set a smaller workload.*.filesize or numjobs."
        return HostError(message, hint)
    how = exit_fault_text(ending, command, output_faults=reading.faults)
    if how is None and (error or reading.faults):
        how = f"failed ({excerpt('; '.join(reading.faults)) or os.strerror(error)})"
    if how is None:
        return None
    message = f"{engine_name} could not lay {data_set.id} out on host '{host_name}': it {how}."
    return EngineError(message, CORRECT_HINT)


def is_os_error(expected_errno: int, reported_errno: int, output: str) -> bool:
    """Whether the engine's errno or its words are those of that error of the operating system."""
    return reported_errno == expected_errno or os.strerror(expected_errno) in output
