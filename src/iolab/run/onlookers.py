"""Hosts of a run that make no load: storage nodes and hypervisors, watched while others work.

Nothing that happens to them ends a run or a session. One that is lost is told of once and keeps its
error in every record from then on; it is not reached again before the session is resumed.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass

from iolab.errors import HostError
from iolab.model.event import Notice
from iolab.model.host import HostSpec
from iolab.model.run import Bystander, PlannedRun
from iolab.plan.targets import bystanders_of
from iolab.run.barrier import together
from iolab.run.clock import ClockOffset, measure_offset
from iolab.run.counters import Look, deltas, look_of
from iolab.run.crew import Crew
from iolab.run.hosts.base import Host
from iolab.run.prepare import SNAPSHOT_LIMIT_S
from iolab.run.telemetry.decode import CounterCollector
from iolab.run.watch import Watch


@dataclass(slots=True)
class _Onlooker:
    """One of them in one run."""

    spec: HostSpec
    host: Host
    watch: Watch
    error: str | None = None
    offset: ClockOffset | None = None
    before: Look | None = None
    after: Look | None = None

    @property
    def name(self) -> str:
        return self.spec.name


class Onlookers:
    """All of them in one run; their counters are numbered from `first` on.

    `below` are the devices below the paths of those that have one, by name.
    """

    def __init__(
        self,
        crew: Crew,
        run: PlannedRun,
        counters: CounterCollector,
        *,
        first: int,
        below: Mapping[str, tuple[str, ...]],
    ) -> None:
        self._crew = crew
        self._below = below
        specs = bystanders_of(crew.study, run.point.configuration)
        self.places = {spec.name: first + place for place, spec in enumerate(specs)}
        """The number of each among the hosts that counters name."""
        self._all = [
            _Onlooker(
                spec, host, Watch(crew, host, self.places[spec.name], counters), error=host.lost
            )
            for spec in specs
            if (host := crew.bystanders.get(spec.name)) is not None
        ]

    @asynccontextmanager
    async def watching(self) -> AsyncIterator[None]:
        """Their clocks are read and their disks counted before and after what is done within."""
        await self._on_each(self._living(), self._begin)
        following = asyncio.create_task(self._on_each(self._living(), self._follow))
        try:
            yield
        finally:
            following.cancel()
            await asyncio.gather(following, return_exceptions=True)
            await self._on_each(self._living(), self._end)

    def told(self) -> tuple[Bystander, ...]:
        """What is to be recorded of them."""
        return tuple(
            Bystander(
                host=one.name,
                role=one.spec.role,
                error=one.error,
                devices=deltas(one.before, one.after, self._devices(one.spec))
                if one.before and one.after
                else (),
                clock_offset_ns=one.offset.offset_ns if one.offset else 0,
                clock_error_ns=one.offset.error_ns if one.offset else 0,
            )
            for one in self._all
        )

    def _devices(self, spec: HostSpec) -> tuple[str, ...]:
        """Those that its table names, else those below its path."""
        return spec.devices or self._below.get(spec.name, ())

    def _living(self) -> list[_Onlooker]:
        return [one for one in self._all if one.error is None]

    async def _on_each(
        self, members: Iterable[_Onlooker], work: Callable[[_Onlooker], Awaitable[None]]
    ) -> None:
        async def guarded(one: _Onlooker) -> None:
            try:
                await work(one)
            except HostError as fault:
                one.error = fault.happened
                self._crew.tell(Notice(f"{fault.happened} The run goes on without a look at it."))

        await together(members, guarded)

    async def _begin(self, one: _Onlooker) -> None:
        await one.watch.begin()
        one.offset = await measure_offset(one.host, self._crew.clock)
        one.before = await _look(one.host)

    async def _follow(self, one: _Onlooker) -> None:
        now_ns = self._crew.clock.real_ns()
        await one.watch.follow(now_ns + (one.offset.offset_ns if one.offset else 0))

    async def _end(self, one: _Onlooker) -> None:
        one.after = await _look(one.host)
        await one.watch.end()


async def _look(host: Host) -> Look:
    sample = await host.ask("snapshot", deadline_s=SNAPSHOT_LIMIT_S)
    try:
        return look_of(sample)
    except ValueError as fault:
        raise host.give_up(f"sent a sample that makes no sense: {fault}") from None
