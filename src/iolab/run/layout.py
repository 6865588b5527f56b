"""Lays a data set out on all hosts: whole files with real contents, proved to be written."""

from __future__ import annotations

import asyncio
import errno
import os
from collections.abc import Sequence

from iolab.errors import EngineError, HostError, Interrupted, IolabError
from iolab.model.engine import EngineName
from iolab.model.event import Phase
from iolab.model.run import DataSet
from iolab.model.workload import Job
from iolab.plan.budget import ASSUMED_WRITE_BYTES_PER_S
from iolab.run.barrier import alongside, together
from iolab.run.crew import Crew
from iolab.run.drive import Ending, drive
from iolab.run.engines.base import EngineReading
from iolab.run.engines.native_ledger import with_ledger
from iolab.run.extents import PROVING_METHODS, prove, unproved
from iolab.run.hosts.base import Refusal
from iolab.run.hosts.text import printable
from iolab.run.site import Site
from iolab.run.streams import seed_of_contents
from iolab.units import format_bytes


async def lay_out(crew: Crew, sites: Sequence[Site], data_set: DataSet, job: Job) -> None:
    """Write every file of the data set on every site, by the way in which `job` will use them.

    Raises HostError, EngineError, and Interrupted when the user wanted to stop.

    Files that an earlier session kept, and that are whole, are used as they are, unless they are to
    be verified: nobody knows their last writes any more. Files of a layout that fails stay in the
    scratch folder, which goes with the session.
    """
    present = (
        await together(sites, lambda site: present_bytes(site, data_set.on(site.name)))
    ).complete()
    block_bytes = _verified_block(crew, job)
    missing = [
        site
        for site in sites
        if not present[site.name] or (block_bytes and not crew.ledgers.know(site, data_set))
    ]
    if not missing:
        return
    most = max(data_set.on(site.name).bytes_per_host for site in missing)
    size = format_bytes(most)
    hosts = "1 host" if len(missing) == 1 else f"each of {len(missing)} hosts"
    expected_s = most / ASSUMED_WRITE_BYTES_PER_S
    crew.begin(Phase.LAY_OUT, None, f"{data_set.id}: {size} on {hosts}", expected_s)

    async def write(site: Site) -> None:
        await _write(crew, site, data_set.on(site.name), job)

    (await together(missing, write)).complete()


async def present_bytes(site: Site, data_set: DataSet) -> int:
    """The size of the data set's files on a site when they are all there and written, else 0."""
    try:
        proof = await prove(site, site.paths(data_set))
    except Refusal:
        return 0
    whole = proof.size_bytes == data_set.bytes_per_host
    proved = proof.method in PROVING_METHODS and not unproved(proof)
    return proof.size_bytes if whole and proved else 0


def _verified_block(crew: Crew, job: Job) -> int | None:
    """What a ledger of the job's files counts in; None where there is none to be kept.

    Files that clients hand on are written by several, none of which knows of the others' writes.
    """
    return job.block_bytes if job.verify and not crew.study.target.rotate else None


async def _write(crew: Crew, site: Site, data_set: DataSet, job: Job) -> None:
    engine = crew.engines[job.engine]
    block_bytes = _verified_block(crew, job)
    ledger = await crew.ledgers.begin(site, data_set, block_bytes) if block_bytes else None
    command = engine.layout(
        data_set,
        site.dir,
        direct=job.direct,
        ioengine=job.ioengine,
        seed=seed_of_contents(crew.study, site.name),
    )
    command = with_ledger(command, ledger)
    reader = engine.layout_reader(data_set)
    halt = asyncio.Event()

    work = drive(site.host, command, halt, lambda piece: _take(reader.feed(piece)))
    ending = await alongside(work, crew.stop.pass_on(halt))
    if ending.halted:
        raise Interrupted("The layout was stopped.", "Resume the session to go on.")
    fault = layout_fault(site.name, site.dir, data_set, engine.name, ending, reader.finish())
    if fault:
        raise fault
    proof = await prove(site, site.paths(data_set))
    if unproved(proof):
        happened = (
            f"After the layout of {data_set.id} on host '{site.name}', "
            f"{format_bytes(unproved(proof))} of its files are not written."
        )
        raise HostError(happened, "See whether something else changes files in that folder.")
    crew.ledgers.written(site, data_set)


def layout_fault(
    host: str,
    directory: str,
    data_set: DataSet,
    engine: EngineName,
    ending: Ending,
    reading: EngineReading,
) -> IolabError | None:
    """Why a layout is not what was asked for; None when it is."""
    exited = ending.exited
    error = reading.totals.error if reading.totals else 0
    said = "; ".join((*reading.faults, *ending.stderr_tail.strip().splitlines()[-2:]))
    full = os_says(errno.ENOSPC, error, said) or os_says(errno.EDQUOT, error, said)
    if full:
        happened = (
            f"{printable(directory)} on host '{host}' ran full while {data_set.id} "
            f"({format_bytes(data_set.bytes_per_host)}) was laid out."
        )
        do = "Make room there, or set a smaller workload.*.filesize or numjobs."
        return HostError(happened, do)
    if exited.timed_out:
        happened = f"{engine} did not lay {data_set.id} out on host '{host}' in time."
        return EngineError(happened, "See whether the target answers at all, or use smaller files.")
    if exited.signal:
        happened = f"{engine} was killed by signal {exited.signal} on host '{host}' during layout."
        return EngineError(happened, "See that host's kernel log, and run again.")
    if exited.code or error or reading.faults:
        happened = (
            f"{engine} could not lay {data_set.id} out on host '{host}' "
            f"(exit code {exited.code}; {printable(said) or 'it said nothing'})."
        )
        return EngineError(happened, "Correct what it says and run again.")
    return None


def os_says(number: int, error: int, said: str) -> bool:
    """Whether the engine's errno or its words are those of that error of the operating system."""
    return error == number or os.strerror(number) in said


def _take(_: object) -> None:
    """Intervals of a layout are nobody's evidence."""
