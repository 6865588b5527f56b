"""Metadata load made by the agents: phase by phase, each a barrier over all hosts of a run."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from contextlib import suppress
from typing import Final

from iolab.errors import EngineError, HostError
from iolab.model.event import IntervalSeen, Phase
from iolab.model.metadata import MetadataJob, Operation, ReportedRate
from iolab.model.run import NOT_DROPPED, CacheProof, PlannedRun
from iolab.plan.metadata_cost import operations_of, phase_seconds
from iolab.run.barrier import alongside
from iolab.run.clock import ClockOffset, measure_offset
from iolab.run.crew import Crew
from iolab.run.driver import Driver
from iolab.run.engines.base import Interval
from iolab.run.evidence import Evidence, on_each
from iolab.run.extents import evict
from iolab.run.metadata_phase import measured_phase, perform, wall_limit_s
from iolab.run.metadata_ranks import request_of, shares
from iolab.run.metadata_reading import PhaseReader
from iolab.run.prepare import snapshot, watch_idle
from iolab.run.shared import require_shared, seen_dir
from iolab.run.start import NS_PER_S, Start, start_of
from iolab.run.telemetry.decode import CounterCollector
from iolab.run.watch import Watch

START_ALLOWANCE_S: Final = 0.2
RANK_ALLOWANCE_S: Final = 0.0002
"""From the decision to the start: the request on every host, and a thread with an open folder for
each rank, of which the agent makes ten thousand a second."""

COLD: Final = frozenset({Operation.FILE_STAT, Operation.FILE_READ})
"""Operations that a client could answer from what it has just made: caches are dropped before."""

ATTEMPTS_KEPT_APART: Final = 1000
"""Attempts of a run that have names of their own; later ones use names of the first again."""


class MetadataDriver(Driver):
    """The built-in `metadata` engine; see `Driver`."""

    async def prepare(self, crew: Crew, run: PlannedRun, evidence: Sequence[Evidence]) -> None:
        """See that the hosts can do what a rank shift asks, and that the devices are idle."""
        job = job_of(run)
        sites = [mine.site for mine in evidence]
        needs = {
            sites[share.index].name: [sites[other].name for other in share.others]
            for share in shares(job, len(sites))
        }
        do = (
            "Give all clients one shared file system; or set "
            f"workload.{run.point.workload}.rank_shift=0, and clients work on what they made."
        )
        await require_shared(sites, needs, do=do)
        if not crew.stop.requested:
            await watch_idle(crew, run, evidence)

    async def measure(
        self,
        crew: Crew,
        run: PlannedRun,
        evidence: Sequence[Evidence],
        counters: CounterCollector,
    ) -> tuple[ReportedRate, ...]:
        """All operations in order, as far as no host fails and nobody stops."""
        iteration = _Iteration(crew, run, evidence, counters)
        try:
            await iteration.measure()
        finally:
            iteration.account()
            await iteration.end()
        return ()


def job_of(run: PlannedRun) -> MetadataJob:
    """The run's job; TypeError when it is another kind."""
    job = run.point.job
    if not isinstance(job, MetadataJob):
        raise TypeError(f"{job.engine} does no metadata operations")
    return job


class _Iteration:
    """One run: every phase once, over one tree for each rank."""

    def __init__(
        self,
        crew: Crew,
        run: PlannedRun,
        evidence: Sequence[Evidence],
        counters: CounterCollector,
    ) -> None:
        self._crew = crew
        self._run = run
        self._evidence = evidence
        self._job = job_of(run)
        self._shares = shares(self._job, len(evidence))
        attempt = min(run.attempt, ATTEMPTS_KEPT_APART) - 1
        self._number = run.order * ATTEMPTS_KEPT_APART + attempt
        self._share_of = {
            mine.name: share for mine, share in zip(evidence, self._shares, strict=True)
        }
        self._watches = {
            mine.name: Watch(crew, mine.site.host, index, counters)
            for index, mine in enumerate(evidence)
        }
        self._followers: dict[str, asyncio.Task[None]] = {}
        self._first_offsets: dict[str, ClockOffset] = {}
        self._began_ns = 0
        self._halt = asyncio.Event()

    async def measure(self) -> None:
        """Watch, load, and look again. Raises HostError or EngineError when a host failed."""
        await on_each(self._evidence, self._get_ready)
        failure: HostError | EngineError | None = None
        try:
            await alongside(self._phases(), self._crew.stop.pass_on(self._halt))
            await on_each(self._evidence, self._look_again)
        except (HostError, EngineError) as raised:
            failure = raised
        if any(mine.unclean for mine in self._evidence) and self._must_remove():
            await self._remove()
        if failure:
            raise failure

    def account(self) -> None:
        """Fill in what is known only at the end, however it came."""
        for mine in self._evidence:
            whole = len(mine.phases) == len(Operation) and not any(p.skipped for p in mine.phases)
            mine.halted = not whole and mine.error is None
            # The run's offset is the one at its beginning: what was read later tells of drift.
            mine.offset = self._first_offsets.get(mine.name, mine.offset)

    async def end(self) -> None:
        """Call the telemetry off."""
        for task in self._followers.values():
            task.cancel()
        await asyncio.gather(*self._followers.values(), return_exceptions=True)
        await asyncio.gather(*(watch.end() for watch in self._watches.values()))

    async def _get_ready(self, mine: Evidence) -> None:
        hello = await mine.site.host.connect()
        mine.engine_version = f"iolab-agent {hello.version}"
        asked = self._request(mine, Operation.FILE_STAT)
        mine.asked = json.dumps({**asked, "phase": [one.word for one in Operation]}, indent=1)
        mine.cache = NOT_DROPPED
        await self._watches[mine.name].begin()
        mine.before = await snapshot(mine.site)

    async def _look_again(self, mine: Evidence) -> None:
        mine.after = await snapshot(mine.site)

    async def _phases(self) -> None:
        for operation in Operation:
            if operation in COLD and self._crew.study.method.drop_caches:
                await self._drop_caches(operation)
            if self._halt.is_set():
                return
            await self._phase(operation)

    async def _drop_caches(self, operation: Operation) -> None:
        """Drop what the hosts remember of files and folders; the proof holds for all drops."""
        self._crew.begin(Phase.DROP_CACHES, self._run, f"before {operation.word}")

        async def drop(mine: Evidence) -> None:
            before = mine.cache
            # No file's pages are in question, only the kernel's own memory of names and inodes.
            proof = await evict(mine.site, ())
            if before is not None and before.asked:
                kept = tuple(name for name in proof.methods if name in before.methods)
                proof = CacheProof(True, None, None, kept)  # noqa: FBT003 - the proof's own field
            mine.cache = proof

        await on_each(self._evidence, drop)

    async def _phase(self, operation: Operation) -> None:
        seconds = phase_seconds(self._job, operation)
        self._crew.begin(Phase.MEASURE, self._run, operation.word, seconds)
        await on_each(self._evidence, self._read_clock)
        allowance_s = START_ALLOWANCE_S + self._job.ranks * RANK_ALLOWANCE_S
        start = start_of(self._crew, self._evidence, allowance_s)
        self._follow(start)

        async def one(mine: Evidence) -> None:
            try:
                await alongside(self._load(mine, operation, start), self._followed(mine))
            except (HostError, EngineError):
                # A run without one of its hosts answers nothing: the others need not go on.
                self._halt.set()
                raise

        await on_each(self._evidence, one)

    async def _read_clock(self, mine: Evidence) -> None:
        mine.offset = await measure_offset(mine.site.host, self._crew.clock)
        self._first_offsets.setdefault(mine.name, mine.offset)

    def _follow(self, start: Start) -> None:
        """From the first start on, telemetry is collected without a break."""
        if self._followers:
            return
        self._began_ns = start.real_ns
        self._followers = {
            mine.name: asyncio.create_task(
                self._watches[mine.name].follow(start.on(mine)), name=f"telemetry of {mine.name}"
            )
            for mine in self._evidence
        }

    async def _followed(self, mine: Evidence) -> None:
        await asyncio.shield(self._followers[mine.name])

    async def _load(self, mine: Evidence, operation: Operation, start: Start) -> None:
        share = self._share_of[mine.name]
        reader = PhaseReader(self._job, share, operation, first_seq=len(mine.intervals))
        offset_ns = start.on(mine) - start.real_ns
        mine.unclean = operation is not Operation.TREE_REMOVE or mine.unclean
        try:
            told = await measured_phase(
                mine.site.host,
                self._request(mine, operation),
                start,
                start.on(mine),
                self._halt,
                reader,
                lambda interval: self._show(mine, interval, offset_ns),
                operations=operations_of(self._job, operation),
            )
            try:
                phase = reader.finish(told)
            except ValueError as fault:
                words = f"sent a measured phase that makes no sense: {fault}"
                raise mine.site.host.give_up(words) from None
        finally:
            mine.intervals.extend(reader.intervals)
        mine.phases.append(phase)
        if operation is Operation.TREE_REMOVE:
            mine.unclean = any(one.errors or one.skipped for one in mine.phases)

    def _show(self, mine: Evidence, interval: Interval, offset_ns: int) -> None:
        self._crew.tell(
            IntervalSeen(
                host=mine.name,
                run=self._run,
                elapsed_s=(interval.end_real_ns - offset_ns - self._began_ns) / NS_PER_S,
                iops=interval.iops,
                bw_bytes_per_s=interval.bw_bytes_per_s,
                lat_ns_mean=interval.lat_ns_mean,
            )
        )

    def _must_remove(self) -> bool:
        """A stop leaves everything to the end of the scratch folder, unless that is to be kept."""
        return self._crew.study.target.keep_files or not self._crew.stop.requested

    async def _remove(self) -> None:
        """Remove what this run made and left, uncounted, so that the next one finds its room.

        What cannot be removed now goes with the scratch folder, if that goes.
        """
        halt = asyncio.Event()

        async def remove(mine: Evidence, operation: Operation) -> None:
            if mine.site.host.lost:
                return
            with suppress(HostError):
                await perform(
                    mine.site.host,
                    self._request(mine, operation, shifted=False),
                    halt,
                    lambda _: None,
                    limit_s=wall_limit_s(operations_of(self._job, operation)),
                )

        async def everywhere() -> None:
            for operation in (Operation.FILE_REMOVE, Operation.TREE_REMOVE):
                await asyncio.gather(*(remove(mine, operation) for mine in self._evidence))

        if self._crew.study.target.keep_files:
            await everywhere()
        else:
            await alongside(everywhere(), self._crew.stop.pass_on(halt))

    def _request(
        self, mine: Evidence, operation: Operation, *, shifted: bool = True
    ) -> dict[str, object]:
        share = self._share_of[mine.name]
        dirs = {one: seen_dir(mine.site, self._evidence[one].site) for one in share.others}
        dirs[share.index] = mine.site.dir
        return request_of(
            self._job, share, dirs, operation, iteration=self._number, shifted=shifted
        )
