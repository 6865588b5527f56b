"""Two engines in turn on one target of this machine: pairs of short runs, and what each can at all.

The order of a pair is swapped from one to the next, so that a drift of the target favours neither.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from iolab.errors import EngineError, HostError
from iolab.model.calibration import Calibration, Trial
from iolab.model.engine import EngineName
from iolab.model.histogram import BIN_COUNT, Histogram
from iolab.model.host import HostFacts, HostKind, HostSpec, ToolFacts
from iolab.model.native_options import AUTO
from iolab.model.run import DataSet
from iolab.model.sample import ServiceTime
from iolab.model.workload import Access, Job
from iolab.run.ceiling import null_rate
from iolab.run.drive import Ending, drive
from iolab.run.engines.base import NS_PER_S, Command, Engine, EngineReading, OutputReader
from iolab.run.engines.fio import FioEngine
from iolab.run.engines.native import NativeEngine
from iolab.run.engines.native_spec import NULL_BYTES
from iolab.run.folders import CLOSE_LIMIT_S, OPEN_LIMIT_S
from iolab.run.hosts.answers import ScratchAnswer, read_answer, read_facts
from iolab.run.hosts.base import Host
from iolab.run.hosts.reach import open_hosts
from iolab.run.layout import layout_fault
from iolab.run.survey import FACTS_LIMIT_S, tools_of
from iolab.units import format_bytes

ENGINES: Final[tuple[Engine, ...]] = (FioEngine(), NativeEngine())
"""The reference first."""

FOLDER: Final = "iolab-scratch-calibrate"
"""The scratch folder that is made on the target, and removed at the end."""

FIO_NULL_S: Final = 2.0
NATIVE_NULL_S: Final = 1.0
"""How long each engine works on the target that does nothing; fio reports once a second."""

NULL_DEVICE: Final = "null"
NULL_FOLDER: Final = "/dev"

PERCENTS: Final = (50.0, 99.0)


@dataclass(frozen=True, slots=True)
class Wish:
    """What to run: the job but for its engine, so many pairs of so many seconds each."""

    job: Job
    pairs: int
    seconds: float


async def calibrate(path: str, wish: Wish, say: Callable[[str], None]) -> Calibration:
    """Run all pairs on a scratch file below `path`, which is absolute, and the ceilings.

    Nothing of it stays. Raises HostError and EngineError, before anything is written where there is
    no fio or no room.
    """
    spec = HostSpec("local", HostKind.LOCAL, path=path)
    async with open_hosts([spec]) as hosts:
        host = hosts[spec.name]
        await host.connect()
        tools = tools_of(ENGINES)
        told = await host.ask("facts", deadline_s=FACTS_LIMIT_S, path=path, tools=tools)
        refuse_unready(read_facts(host.name, told), path, wish.job)
        opened = await host.ask(
            "scratch_open", deadline_s=OPEN_LIMIT_S, path=path, name=FOLDER, owner=FOLDER
        )
        directory = read_answer(host.name, ScratchAnswer, opened).dir
        try:
            return await _on(_Bench(host, directory, wish, say))
        finally:
            if not host.lost:
                await host.ask("scratch_close", deadline_s=CLOSE_LIMIT_S, dir=directory, keep=False)


def refuse_unready(facts: HostFacts, path: str, job: Job) -> None:
    """Nothing where both engines are there and the scratch files fit.

    Else EngineError or HostError.
    """
    for engine in ENGINES:
        name = engine.name.value
        engine.check(facts.tool(name) or ToolFacts(name, None, None))
    need = _files_of(job).bytes_per_host
    if facts.target is not None and facts.target.free_bytes < need:
        free = format_bytes(facts.target.free_bytes)
        happened = f"{path} has {free} free, the scratch files need {format_bytes(need)}."
        raise HostError(happened, "Make room there, or give a smaller --size or --numjobs.")


@dataclass(frozen=True, slots=True)
class _Bench:
    host: Host
    directory: str
    wish: Wish
    say: Callable[[str], None]


async def _on(bench: _Bench) -> Calibration:
    wish = bench.wish
    data_set = _files_of(wish.job)
    bench.say("Laying out the scratch file.")
    await _lay_out(bench, data_set)
    trials: list[Trial] = []
    readings: dict[EngineName, EngineReading] = {}
    for pair, engine in _turns(wish.pairs):
        bench.say(f"Pair {pair} of {wish.pairs}: {engine.name}.")
        job = _of_engine(wish.job, engine.name)
        command = engine.measure(job, data_set, bench.directory, seconds=wish.seconds, seed=pair)
        reading, ending = await _run(bench, engine, command, engine.reader(job))
        readings[engine.name] = reading
        trials.append(_trial(engine.name, pair, reading, ending))
    ceilings = []
    for engine in ENGINES:
        bench.say(f"The ceiling of {engine.name}.")
        ceilings.append((engine.name, await _ceiling(bench, engine)))
    return Calibration(
        job=wish.job,
        trials=tuple(trials),
        ceilings=tuple(ceilings),
        versions=tuple((name, reading.version) for name, reading in readings.items()),
        methods=tuple((name, _method(wish.job, reading)) for name, reading in readings.items()),
    )


def _turns(pairs: int) -> Iterator[tuple[int, Engine]]:
    """Each pair with its engines, in an order that alternates."""
    for pair in range(1, pairs + 1):
        for engine in ENGINES if pair % 2 else reversed(ENGINES):
            yield pair, engine


def _of_engine(job: Job, engine: EngineName) -> Job:
    """The job by that engine, which asks the kernel in its own best way if it is ours."""
    free = engine is EngineName.NATIVE
    return replace(job, engine=engine, ioengine=AUTO if free else job.ioengine)


def _files_of(job: Job) -> DataSet:
    return DataSet("calibrate", "", job.numjobs, job.files_per_job, job.file_bytes)


async def _lay_out(bench: _Bench, data_set: DataSet) -> None:
    engine = ENGINES[-1]
    command = engine.layout(data_set, bench.directory, direct=True, ioengine=AUTO, seed=0)
    reader = engine.layout_reader(data_set)
    ending = await drive(bench.host, command, asyncio.Event(), _into(reader))
    fault = layout_fault(
        bench.host.name, bench.directory, data_set, engine.name, ending, reader.finish()
    )
    if fault:
        raise fault


def _into(reader: OutputReader) -> Callable[[bytes], None]:
    def hear(piece: bytes) -> None:
        reader.feed(piece)

    return hear


async def _run(
    bench: _Bench, engine: Engine, command: Command, reader: OutputReader
) -> tuple[EngineReading, Ending]:
    ending = await drive(bench.host, command, asyncio.Event(), _into(reader))
    reading = reader.finish()
    said = "; ".join((*reading.faults, *ending.stderr_tail.strip().splitlines()[-2:]))
    if ending.exited.code != 0 or reading.faults or reading.totals is None:
        happened = f"{engine.name} did not make its run ({said or 'it said nothing'})."
        raise EngineError(happened, "Correct what it says and run again.")
    if reading.totals.error:
        happened = f"{engine.name} met errors of the target ({reading.totals.error})."
        raise EngineError(happened, "Look at the kernel's log, and use a sound target.")
    return reading, ending


def _trial(name: EngineName, pair: int, reading: EngineReading, ending: Ending) -> Trial:
    """The whole run: every I/O, over the time that all intervals cover."""
    bins = np.zeros(BIN_COUNT, dtype=np.int64)
    ios, span_ns, waited_ns = 0, 0, 0.0
    for interval in reading.intervals:
        span_ns += interval.span_ns
        for part in interval.directions:
            if isinstance(part.direction, ServiceTime):
                continue
            ios += part.ios
            waited_ns += part.lat_sum_ns
            np.add.at(bins, part.bins.astype(np.int64), part.counts)
    if not ios or not span_ns:
        raise EngineError(f"{name} completed no I/O.", "Ask for longer runs, with --seconds.")
    histogram = Histogram(bins)
    p50, p99 = (histogram.percentile_ns(percent) or 0.0 for percent in PERCENTS)
    cpu_s = ending.exited.user_s + ending.exited.system_s
    return Trial(
        engine=name,
        pair=pair,
        iops=ios * NS_PER_S / span_ns,
        lat_ns_mean=waited_ns / ios,
        lat_ns_p50=p50,
        lat_ns_p99=p99,
        cpu_ns_per_io=cpu_s * NS_PER_S / ios,
    )


async def _ceiling(bench: _Bench, engine: Engine) -> float | None:
    """What the engine makes of the same job where nothing has to be done for it."""
    job = _of_engine(bench.wish.job, engine.name)
    command = engine.null(job, bench.directory, seconds=NATIVE_NULL_S)
    reader = engine.null_reader(job)
    if command is None:
        command = engine.measure(
            _on_null(job), _null_set(job), NULL_FOLDER, seconds=FIO_NULL_S, seed=0
        )
    reading, _ = await _run(bench, engine, command, reader)
    return null_rate(reading.totals) if reading.totals else None


def _on_null(job: Job) -> Job:
    access = Access.RANDWRITE if job.access.random else Access.WRITE
    size = _null_set(job).file_bytes
    return replace(job, access=access, read_percent=None, direct=False, file_bytes=size)


def _null_set(job: Job) -> DataSet:
    """The device of no storage, as one that has a region for each job."""
    size = max(NULL_BYTES // job.block_bytes, 1) * job.block_bytes
    return DataSet("calibrate", "", job.numjobs, 1, size, device=NULL_DEVICE)


def _method(job: Job, reading: EngineReading) -> str:
    generator = reading.totals.generator if reading.totals else None
    return generator.method if generator else job.ioengine
