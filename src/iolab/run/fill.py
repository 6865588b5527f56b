"""Brings targets into a state: purged, written over, run in rounds until they are steady."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from typing import Final

from iolab.errors import EngineError, HostError, Interrupted
from iolab.model.engine import EngineName
from iolab.model.event import Phase
from iolab.model.run import DataSet, EngineTotals, PlannedRun
from iolab.model.state import Purge, RoundsSeries
from iolab.model.workload import Job
from iolab.plan.budget import ASSUMED_WRITE_BYTES_PER_S
from iolab.plan.steady_rounds import judge_rounds
from iolab.run.barrier import alongside, together
from iolab.run.crew import Crew
from iolab.run.drive import Ending, drive
from iolab.run.engines.base import Command, EngineReading, OutputReader
from iolab.run.engines.native_ledger import with_ledger
from iolab.run.hosts.answers import PurgedAnswer, read_answer
from iolab.run.hosts.text import printable
from iolab.run.layout import layout_fault
from iolab.run.site import Site
from iolab.run.streams import seed_of_contents, seed_on
from iolab.units import format_bytes

DISCARD_LIMIT_S: Final = 3600.0
"""Discarding a whole device: seconds on most, an hour on some large ones."""

FORMAT_LIMIT_S: Final = 3600.0
SANITIZE_PAUSE_S: Final = 5.0
SANITIZE_TRIES: Final = 6 * 720
"""Six hours of asking: a block erase takes minutes, an overwriting device much longer."""

SANITIZED: Final = 65535
"""What a sanitize log says of progress when none is under way."""

OUTPUT_LIMIT_BYTES: Final = 1 << 20


async def discard(site: Site, path: str) -> int:
    """Discard every block of a held device; how many bytes. HostError when it cannot."""
    told = await site.host.ask("discard", deadline_s=DISCARD_LIMIT_S, path=path)
    return read_answer(site.name, PurgedAnswer, told).bytes


async def trim(site: Site, folder: str) -> int:
    """Tell the devices below a folder what is free; how many bytes. HostError when it cannot."""
    told = await site.host.ask("trim", deadline_s=DISCARD_LIMIT_S, path=folder)
    return read_answer(site.name, PurgedAnswer, told).bytes


async def erase(crew: Crew, site: Site, purge: Purge) -> None:
    """Format or sanitize a held NVMe device. HostError when nvme-cli fails or it takes too long."""
    device = f"{site.dir}/{site.device}"
    if purge is Purge.NVME_FORMAT:
        # The agent holds the device for itself; --force keeps nvme-cli from wanting the same.
        await _nvme(site, "nvme", "format", device, "--ses=1", "--force")
        return
    await _nvme(site, "nvme", "sanitize", device, "--sanact=2")
    for _ in range(SANITIZE_TRIES):
        await crew.stop.pause(SANITIZE_PAUSE_S)
        told = await _nvme(site, "nvme", "sanitize-log", device, "--output-format=json")
        if _progress(told) == SANITIZED:
            return
        if crew.stop.requested:
            raise Interrupted("The purge was stopped.", "Resume the session to go on.")
    raise HostError(f"{device} on host '{site.name}' is not sanitized after six hours.", _LOOK)


_LOOK: Final = "Look at it with 'nvme sanitize-log' there."


def _progress(text: bytes) -> int | None:
    try:
        document = json.loads(text)
        (first,) = document.values()
        progress = first["sprog"]
    except (ValueError, KeyError, TypeError, AttributeError):
        return None
    return progress if isinstance(progress, int) else None


async def _nvme(site: Site, *argv: str) -> bytes:
    command = Command(argv, "/", b"", " ".join(argv), FORMAT_LIMIT_S, OUTPUT_LIMIT_BYTES)
    said: list[bytes] = []
    ending = await drive(site.host, command, asyncio.Event(), said.append)
    exited = ending.exited
    if exited.code != 0:
        words = printable(ending.stderr_tail.strip() or "it said nothing", 200)
        happened = f"'{' '.join(argv[:2])}' failed on host '{site.name}': {words}."
        raise HostError(happened, "Correct what it says, or choose another precondition.purge.")
    return b"".join(said)


async def write_over(
    crew: Crew, sites: Sequence[Site], data_set: DataSet, passes: float, job: Job
) -> dict[str, int]:
    """Write over what the data set has on all sites at once; bytes by host name.

    Raises HostError, EngineError, and Interrupted when the user wanted to stop.
    """
    most = max(site.holding(data_set).bytes_per_host for site in sites) * passes
    detail = f"{format_bytes(round(most))} on each of {len(sites)} hosts, sequentially in 128 KiB"
    crew.begin(Phase.PRECONDITION, None, detail, most / ASSUMED_WRITE_BYTES_PER_S)
    engine = crew.engines[job.engine]

    async def write(site: Site) -> int:
        mine = site.holding(data_set)
        seed = seed_of_contents(crew.study, site.name)
        command = engine.fill(mine, site.dir, passes, job, seed=seed)
        command = with_ledger(command, crew.ledgers.of(site, data_set) if job.verify else None)
        ending, reading = await _driven(crew, site, command, engine.fill_reader(mine, passes))
        if ending.halted:
            raise Interrupted("The preconditioning was stopped.", "Resume the session to go on.")
        fault = layout_fault(site.name, site.dir, mine, engine.name, ending, reading)
        if fault:
            raise fault
        return _written(reading.totals)

    return dict((await together(sites, write)).complete())


async def run_rounds(
    crew: Crew, sites: Sequence[Site], run: PlannedRun
) -> tuple[RoundsSeries, dict[str, int]]:
    """The run's own job in rounds, on all sites at once, until they are steady or too many.

    The series, and the bytes written by host name. Raises as `write_over`.
    """
    wish = crew.study.precondition
    values: list[float] = []
    written = dict.fromkeys((site.name for site in sites), 0)
    for number in range(1, wish.rounds_max + 1):
        detail = f"{run.point.label}: round {number} of at most {wish.rounds_max}"
        crew.begin(Phase.PRECONDITION, run, detail, wish.round_s)
        totals = await _round(crew, sites, run, number)
        values.append(sum(_iops(one) for one in totals.values()))
        for name, one in totals.items():
            written[name] += _written(one)
        verdict = judge_rounds(values)
        if verdict is not None and verdict.achieved:
            break
    series = RoundsSeries(
        configuration=run.point.configuration,
        workload=run.point.workload,
        label=run.point.label,
        ended_real_ns=crew.clock.real_ns(),
        round_s=wish.round_s,
        iops=tuple(values),
        verdict=judge_rounds(values),
    )
    return series, written


async def _round(
    crew: Crew, sites: Sequence[Site], run: PlannedRun, number: int
) -> dict[str, EngineTotals | None]:
    engine = crew.engine_of(run)
    data_set = crew.plan.data_set(run.point.data_set)

    async def one(site: Site) -> EngineTotals | None:
        job = run.point.io_on(site.name)
        mine = site.holding(data_set)
        seconds = crew.study.precondition.round_s
        seed = seed_on(crew.study, run.point, site.name, number)
        command = engine.measure(job, mine, site.dir, seconds=seconds, seed=seed)
        command = with_ledger(command, crew.ledgers.of(site, data_set) if job.verify else None)
        ending, reading = await _driven(crew, site, command, engine.reader(job))
        if ending.halted:
            raise Interrupted("The preconditioning was stopped.", "Resume the session to go on.")
        fault = round_fault(engine.name, site.name, number, ending, reading)
        if fault:
            raise fault
        return reading.totals

    return dict((await together(sites, one)).complete())


def round_fault(
    engine: EngineName, host: str, number: int, ending: Ending, reading: EngineReading
) -> EngineError | None:
    """Why a round is not what was asked for; None when it is. A failed I/O is enough."""
    exited, totals = ending.exited, reading.totals
    if not exited.code and not exited.signal and totals is not None and not totals.error:
        return None
    errors = totals.generator.errors if totals and totals.generator else ()
    failed = (f"{count} x {name}" for name, count in errors)
    words = printable("; ".join((*reading.faults, *failed, ending.stderr_tail.strip())), 200)
    happened = f"{engine} failed in round {number} on host '{host}': {words.rstrip('; ')}."
    return EngineError(happened, "Correct what it says and run again.")


async def _driven(
    crew: Crew, site: Site, command: Command, reader: OutputReader
) -> tuple[Ending, EngineReading]:
    """One process to its end; halted when the user wants to stop."""
    halt = asyncio.Event()

    work = drive(site.host, command, halt, lambda piece: _drop(reader.feed(piece)))
    ending = await alongside(work, crew.stop.pass_on(halt))
    return ending, reader.finish()


def _drop(_: object) -> None:
    """Intervals of preconditioning are nobody's evidence."""


def _written(totals: EngineTotals | None) -> int:
    return totals.write.bytes if totals is not None and totals.write is not None else 0


def _iops(totals: EngineTotals | None) -> float:
    if totals is None:
        return 0.0
    return sum(one.iops for one in (totals.read, totals.write) if one is not None)
