"""mdtest under MPI: started on the first client, which starts the others; watched on all of them.

The first client's agent holds `mpiexec` and with it every rank there. On the other clients ranks
are children of what mpiexec started by ssh, and go when their connection to it breaks.
"""

from __future__ import annotations

import asyncio
import posixpath
from collections.abc import Coroutine, Mapping, Sequence
from typing import Any, Final

from iolab.errors import EngineError, HostError
from iolab.model.engine import EngineName
from iolab.model.event import Phase
from iolab.model.host import HostKind
from iolab.model.metadata import MetadataJob, ReportedRate
from iolab.model.packed import Packer
from iolab.model.run import PlannedRun
from iolab.run.barrier import alongside, together
from iolab.run.clock import measure_offset
from iolab.run.crew import Crew
from iolab.run.drive import drive
from iolab.run.driver import Driver
from iolab.run.engines.base import Command, EngineReading
from iolab.run.engines.mdtest import (
    INSTALL,
    faults_of,
    measure_command,
    programs_of,
    version_command,
)
from iolab.run.engines.mdtest_output import OUTPUT_LIMIT_BYTES, parse, reported
from iolab.run.engines.mpi import INSTALL as INSTALL_MPI
from iolab.run.engines.mpi import Mpi, Place, mpi_of
from iolab.run.evidence import Evidence, on_each
from iolab.run.hosts.answers import read_facts
from iolab.run.hosts.text import printable
from iolab.run.outcome import ending_fault
from iolab.run.prepare import snapshot, watch_idle
from iolab.run.shared import require_shared
from iolab.run.site import Site
from iolab.run.survey import FACTS_LIMIT_S
from iolab.run.telemetry.decode import CounterCollector
from iolab.run.watch import Watch

_SHARE: Final = "Mount the target at the same path on every client."


class MdtestDriver(Driver):
    """One iteration of mdtest on all clients; see `Driver`."""

    async def prepare(self, crew: Crew, run: PlannedRun, evidence: Sequence[Evidence]) -> None:
        """The target shared at one path, the programs there, the devices watched idle."""
        crew.begin(Phase.PROVE, run, "mdtest and MPI on every client")
        await on_each(evidence, lambda mine: _require_programs(mine, job_of(run)))
        await _require_one_target(evidence)
        if not crew.stop.requested:
            await watch_idle(crew, run, evidence)

    async def measure(
        self,
        crew: Crew,
        run: PlannedRun,
        evidence: Sequence[Evidence],
        counters: CounterCollector,
    ) -> tuple[ReportedRate, ...]:
        """Mdtest from its start to its end; the rates that it prints."""
        job = job_of(run)
        crew.begin(Phase.MEASURE, run, run.point.label)
        halt = asyncio.Event()
        mpi = await _same_mpi(evidence, job, halt)
        first = evidence[0]
        folder = f"mdtest.{run.repeat}.{run.attempt}"
        places = [Place(mine.name, address_of(mine.site), job.ranks) for mine in evidence]
        first.command = measure_command(mpi, job, places, first.site.dir, folder)
        raw = await _watched(crew, evidence, counters, first.command, halt)
        return _rates(evidence, job, raw)


def job_of(run: PlannedRun) -> MetadataJob:
    """The run's job; TypeError for one of another engine."""
    job = run.point.job
    if not isinstance(job, MetadataJob):
        raise TypeError(f"{job.engine} is no metadata load")
    return job


def address_of(site: Site) -> str:
    """Where the other clients find this one: its address for ssh, else its name in the study.

    This machine is `localhost`, which serves as long as it is the only client.
    """
    spec = site.host.spec
    if spec.ssh is not None:
        return spec.ssh.address
    return "localhost" if spec.kind is HostKind.LOCAL else spec.name


async def _require_programs(mine: Evidence, job: MetadataJob) -> None:
    """EngineError when mdtest or mpiexec is not on that host."""
    programs = programs_of(job)
    asked = {
        "mdtest": [programs.mdtest, "-h"],
        "mpiexec": [programs.mpiexec, "--version"],
    }
    told = await mine.site.host.ask(
        "facts", deadline_s=FACTS_LIMIT_S, path=mine.site.dir, tools=asked
    )
    facts = read_facts(mine.name, told)
    for name, words in asked.items():
        tool = facts.tool(name)
        if tool is None or tool.path is None:
            happened = f"There is no {printable(words[0])} on host '{mine.name}'."
            raise EngineError(happened, INSTALL if name == "mdtest" else INSTALL_MPI)


async def _require_one_target(evidence: Sequence[Evidence]) -> None:
    """HostError unless every client sees the first one's folder under the same path."""
    first = evidence[0].site
    for mine in evidence:
        if posixpath.dirname(mine.site.dir) != posixpath.dirname(first.dir):
            happened = (
                f"mdtest works below one path on all clients, and '{mine.name}' has its target at "
                f"{posixpath.dirname(mine.site.dir)}, '{first.name}' at "
                f"{posixpath.dirname(first.dir)}."
            )
            raise HostError(happened, _SHARE)
    sites = [mine.site for mine in evidence]
    needs = {site.name: [first.name] for site in sites[1:]}
    if needs:
        await require_shared(sites, needs, do=_SHARE)


async def _same_mpi(evidence: Sequence[Evidence], job: MetadataJob, halt: asyncio.Event) -> Mpi:
    """The MPI of all clients. EngineError when they differ: their ranks would not meet."""

    async def ask(mine: Evidence) -> Mpi:
        words = bytearray()
        command = version_command(programs_of(job), mine.site.dir)
        await drive(mine.site.host, command, halt, words.extend)
        return mpi_of(words.decode("utf-8", "replace"))

    found = (await together(evidence, ask)).complete()
    _require_equal(found)
    return found[evidence[0].name]


def _require_equal(found: Mapping[str, Mpi]) -> None:
    first, mpi = next(iter(found.items()))
    for name, other in found.items():
        if other != mpi:
            happened = f"The MPIs differ: {mpi} on '{first}', {other} on '{name}'."
            raise EngineError(happened, "Install the same MPI in the same version on all clients.")


async def _watched(
    crew: Crew,
    evidence: Sequence[Evidence],
    counters: CounterCollector,
    command: Command,
    halt: asyncio.Event,
) -> bytes:
    """What mdtest prints while every client is watched; also kept packed, however it ends."""
    watches = {
        mine.name: Watch(crew, mine.site.host, index, counters)
        for index, mine in enumerate(evidence)
    }
    first = evidence[0]
    packer, raw = Packer(OUTPUT_LIMIT_BYTES), bytearray()

    async def get_ready(mine: Evidence) -> None:
        await watches[mine.name].begin()
        mine.offset = await measure_offset(mine.site.host, crew.clock)
        mine.before = await snapshot(mine.site)

    async def look_again(mine: Evidence) -> None:
        mine.after = await snapshot(mine.site)
        mine.offset_after = await measure_offset(mine.site.host, crew.clock)

    def take(piece: bytes) -> None:
        packer.add(piece)
        raw.extend(piece)

    async def load() -> None:
        try:
            first.ending = await drive(first.site.host, command, halt, take)
        finally:
            first.output = packer.finish()
        await on_each(evidence, look_again)

    async def beside() -> None:
        await _any_ends([_follow(mine, watches[mine.name]) for mine in evidence])

    try:
        await on_each(evidence, get_ready)
        heeding = alongside(load(), crew.stop.pass_on(halt))
        await alongside(heeding, beside())
    finally:
        await asyncio.gather(*(watch.end() for watch in watches.values()))
    return bytes(raw)


async def _follow(mine: Evidence, watch: Watch) -> None:
    """Telemetry until cancelled; a host that is lost is told of in its evidence."""
    try:
        await watch.follow(0)
    except HostError as fault:
        mine.error = fault.happened
        raise


async def _any_ends(works: Sequence[Coroutine[Any, Any, None]]) -> None:
    """All at once until the first one ends or fails, which ends the others."""
    tasks = [asyncio.ensure_future(work) for work in works]
    try:
        ended, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in ended:
            task.result()
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _rates(evidence: Sequence[Evidence], job: MetadataJob, raw: bytes) -> tuple[ReportedRate, ...]:
    """What mdtest printed, held against what was asked for; EngineError when it is not that."""
    first = evidence[0]
    output = parse(raw)
    ranks = job.ranks * len(evidence)
    faults = faults_of(output, job, ranks)
    for mine in evidence:
        told = faults if mine is first else ()
        mine.reading = EngineReading(output.version, None, None, (), None, told)
    fault = ending_fault(EngineName.MDTEST, first)
    if fault:
        first.error = first.error or fault.happened
        raise fault
    return reported(output)
