"""The measured phase: one absolute start for all hosts, engines and telemetry listened to."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final

from iolab.errors import EngineError, HostError
from iolab.model.event import IntervalSeen, Phase
from iolab.model.packed import BLOCK_BYTES, Packer
from iolab.model.run import PlannedRun
from iolab.run.barrier import alongside
from iolab.run.clock import measure_offset
from iolab.run.crew import Crew
from iolab.run.drive import drive
from iolab.run.engines.base import Interval, OutputReader
from iolab.run.engines.log import IntervalLog
from iolab.run.evidence import Evidence, on_each
from iolab.run.outcome import engine_fault
from iolab.run.prepare import snapshot
from iolab.run.start import NS_PER_S, Start, start_of
from iolab.run.telemetry.decode import CounterCollector
from iolab.run.watch import Watch

START_ALLOWANCE_S: Final = 0.5
"""From the decision to the start: a look at the counters and the request on every host."""

OUTPUT_KEPT_BYTES: Final = 512 << 20
"""Packed output of all hosts of a run that is kept in memory: half an hour of a hundred hosts that
print 30 kB a second, or three minutes of a thousand. Each host has an equal part of it; the rest is
cut off, and the manifest says so."""

FIRST_BLOCKS: Final = 8
"""Hosts print at the same moments; their first blocks are of so many sizes, so that they are not
packed at the same moments too."""


async def measure(
    crew: Crew, run: PlannedRun, evidence: Sequence[Evidence], counters: CounterCollector
) -> None:
    """Run the engines on all hosts at once and fill in their evidence.

    Raises HostError or EngineError when any host failed; the others are then stopped, and what they
    had measured is kept. The user's wish to stop ends all engines early without an error.
    """
    method = crew.study.method
    crew.begin(Phase.MEASURE, run, run.point.label, method.warmup_s + method.runtime_s)
    watches = {
        mine.name: Watch(crew, mine.site.host, index, counters)
        for index, mine in enumerate(evidence)
    }
    packers = {
        mine.name: Packer(
            OUTPUT_KEPT_BYTES // len(evidence),
            BLOCK_BYTES * (1 + index % FIRST_BLOCKS) // FIRST_BLOCKS,
        )
        for index, mine in enumerate(evidence)
    }
    halt = asyncio.Event()

    async def get_ready(mine: Evidence) -> None:
        await watches[mine.name].begin()
        mine.offset = await measure_offset(mine.site.host, crew.clock)

    async def one(mine: Evidence) -> None:
        try:
            await _one_host(crew, run, mine, watches[mine.name], packers[mine.name], start, halt)
        except (HostError, EngineError):
            # A run without one of its hosts answers nothing: the others need not go on.
            halt.set()
            raise

    async def heed() -> None:
        await crew.stop.wait()
        halt.set()
        await asyncio.Event().wait()

    try:
        await on_each(evidence, get_ready)
        start = start_of(crew, evidence, START_ALLOWANCE_S)
        await alongside(on_each(evidence, one), heed())
    finally:
        await asyncio.gather(*(watch.end() for watch in watches.values()))


async def _one_host(
    crew: Crew,
    run: PlannedRun,
    mine: Evidence,
    watch: Watch,
    packer: Packer,
    start: Start,
    halt: asyncio.Event,
) -> None:
    engine = crew.engine_of(run)
    method = crew.study.method
    mine.command = engine.measure(
        run.point.io_on(mine.name),
        mine.site.holding(crew.plan.data_set(run.point.data_set)),
        mine.site.dir,
        seconds=method.warmup_s + method.runtime_s,
        # Each repeat draws other offsets, and every host of a repeat the same.
        seed=method.seed + run.repeat - 1,
    )
    reader = engine.reader(run.point.io_on(mine.name))
    go_ns = start.on(mine)
    try:
        await alongside(
            _load(crew, run, mine, packer, reader, go_ns, start.lead_s, halt),
            watch.follow(go_ns),
        )
    finally:
        mine.output = packer.finish()
        mine.reading = reader.finish()
        mine.intervals = IntervalLog.of(mine.reading.intervals)
    fault = engine_fault(engine.name, mine)
    if fault:
        raise fault


async def _load(
    crew: Crew,
    run: PlannedRun,
    mine: Evidence,
    packer: Packer,
    reader: OutputReader,
    go_ns: int,
    lead_s: float,
    halt: asyncio.Event,
) -> None:
    """The engine between two looks at the devices."""
    if mine.command is None:
        raise ValueError("the command is made before the load")
    elapsed = _Elapsed(crew, run, mine.name)

    def take(piece: bytes) -> None:
        packer.add(piece)
        elapsed.show(reader.feed(piece))

    mine.before = await snapshot(mine.site)
    mine.ending = await drive(
        mine.site.host,
        mine.command,
        halt,
        take,
        start_at_real_ns=go_ns,
        lead_s=lead_s,
    )
    mine.after = await snapshot(mine.site)


class _Elapsed:
    """Tells a host's intervals to the live view, with the time since its first one began."""

    def __init__(self, crew: Crew, run: PlannedRun, host: str) -> None:
        self._crew = crew
        self._run = run
        self._host = host
        self._ns = 0

    def show(self, intervals: Sequence[Interval]) -> None:
        for one in intervals:
            self._ns += one.span_ns
            self._crew.tell(
                IntervalSeen(
                    host=self._host,
                    run=self._run,
                    elapsed_s=self._ns / NS_PER_S,
                    iops=one.iops,
                    bw_bytes_per_s=one.bw_bytes_per_s,
                    lat_ns_mean=one.lat_ns_mean,
                )
            )
