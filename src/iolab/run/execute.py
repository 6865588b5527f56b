"""One run from its preparation to its record."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from iolab.errors import EngineError, HostError, IolabError
from iolab.model.configuration import Redundancy
from iolab.model.event import Phase, RunStarted
from iolab.model.metadata import ReportedRate
from iolab.model.rule import RuleSettings
from iolab.model.run import EngineOutput, PlannedRun, RunRecord, RunStatus
from iolab.model.workload import Job
from iolab.run.barrier import together
from iolab.run.clock import measure_offset
from iolab.run.crew import Crew
from iolab.run.driver import Driver
from iolab.run.engines.collect import IntervalCollector
from iolab.run.evidence import Evidence
from iolab.run.onlookers import Onlookers
from iolab.run.parts import Parts
from iolab.run.site import Site
from iolab.run.telemetry.decode import CounterCollector

FAULTS_TOLD: Final = 20
"""Faults that the record of a run tells in one text: a thousand hosts that are lost at once have a
thousand. Each host's own error stands with the host."""


async def execute(
    crew: Crew, run: PlannedRun, sites: Sequence[Site], parts: Parts
) -> RunRecord | None:
    """The record of the run, whether it went well or not.

    A host or an engine that fails makes a failed record with all that was gathered until then. None
    when the user wanted to stop before anything was measured.
    """
    crew.tell(RunStarted(run))
    started_ns = crew.clock.real_ns()
    evidence = [Evidence(site) for site in sites]
    counters = CounterCollector()
    onlookers = Onlookers(crew, run, counters, first=len(evidence), below=parts.guests.below)
    watching = parts.guests.watching(run, counters, onlookers.places)
    reported: tuple[ReportedRate, ...] = ()
    driver: Driver | None = None
    fault: IolabError | None = None
    try:
        driver = parts.drivers.of(run)
        await driver.prepare(crew, run, evidence)
        if crew.stop.requested:
            return None
        async with onlookers.watching(), watching:
            reported = await driver.measure(crew, run, evidence, counters)
    except (HostError, EngineError) as raised:
        fault = raised
    ended_ns = crew.clock.real_ns()
    await read_clocks_again(crew, evidence)
    await settle(crew, run)
    method, rule = crew.study.method, rule_of(crew, run)
    loads = _collected(evidence)
    return RunRecord(
        run=run,
        status=_status(evidence, fault),
        failure=sentence(fault) if fault else None,
        started_real_ns=started_ns,
        ended_real_ns=ended_ns,
        warmup_s=0.0 if rule else method.warmup_s,
        runtime_s=float(rule.longest_s) if rule else method.runtime_s,
        telemetry_interval_ms=crew.study.telemetry.interval_ms,
        hosts=tuple(mine.host_run() for mine in evidence),
        intervals=loads.intervals(),
        bins=loads.bins(),
        counters=counters.table(),
        bystanders=onlookers.told(),
        redundancy=_redundancy(crew, run),
        outputs=outputs_of(run, evidence),
        without=crew.without(run),
        reported=reported,
        rule=rule,
        server=driver.server() if driver else None,
        fleet=parts.guests.told(run),
    )


def rule_of(crew: Crew, run: PlannedRun) -> RuleSettings | None:
    """The rule under which a run is made; metadata load ends when it is done."""
    return crew.study.method.rule if isinstance(run.point.job, Job) else None


async def read_clocks_again(crew: Crew, evidence: Sequence[Evidence]) -> None:
    """Each host's clock after the run: the difference is its drift. Nobody fails for it."""

    async def read(mine: Evidence) -> None:
        if mine.offset is not None and not mine.site.host.lost:
            mine.offset_after = await measure_offset(mine.site.host, crew.clock)

    await together(evidence, read)


async def settle(crew: Crew, run: PlannedRun) -> None:
    """Let the target come to rest before the next run."""
    seconds = crew.study.method.settle_s
    if seconds > 0 and not crew.stop.requested:
        crew.begin(Phase.SETTLE, run, "the target comes to rest", seconds)
        await crew.stop.pause(seconds)


def sentence(fault: IolabError) -> str:
    """What happened, for the record: every fault when there are several, up to a limit."""
    parts = [part.happened for part in fault.faults] or [fault.happened]
    more = len(parts) - FAULTS_TOLD
    return " ".join([*parts[:FAULTS_TOLD], *([f"And {more} more."] if more > 0 else [])])


def outputs_of(run: PlannedRun, evidence: Sequence[Evidence]) -> tuple[EngineOutput, ...]:
    """What each host's engine printed and the files that it left, but for empty ones."""
    name = f"{run.point.job.engine}.stdout"
    found: list[EngineOutput] = []
    for mine in evidence:
        if mine.output is not None:
            found.append(EngineOutput(mine.name, name, mine.output))
        found += [EngineOutput(mine.name, *named) for named in mine.files.items()]
    return tuple(one for one in found if one.content.size_bytes)


def _redundancy(crew: Crew, run: PlannedRun) -> Redundancy | None:
    wanted = run.point.configuration
    return next(item.redundancy for item in crew.study.configurations if item.id == wanted)


def _status(evidence: Sequence[Evidence], fault: IolabError | None) -> RunStatus:
    if fault:
        return RunStatus.FAILED
    if any(mine.stopped_early and not mine.enough for mine in evidence):
        return RunStatus.INTERRUPTED
    return RunStatus.DONE


def _collected(evidence: Sequence[Evidence]) -> IntervalCollector:
    collector = IntervalCollector()
    for index, mine in enumerate(evidence):
        collector.add(index, mine.intervals)
    return collector
