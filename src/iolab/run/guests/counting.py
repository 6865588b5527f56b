"""What nodes count of the guests of a run, from before its load until after it.

Nothing that happens here ends a run: what could not be counted is missing in its record.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Final

from iolab.errors import HostError
from iolab.model.event import Notice
from iolab.model.guest import BlockCounts, GuestRun, GuestUse
from iolab.run.crew import Crew
from iolab.run.guests.blocks import COUNTERS, DiskCounts, blocks_between, read_blocks
from iolab.run.guests.hypervisor import Hypervisor, Running
from iolab.run.guests.use import guest_use
from iolab.run.hosts.answers import UseAnswer, read_answer
from iolab.run.telemetry.decode import CounterCollector

LOOK_LIMIT_S: Final = 20.0
"""One look at a guest's counters, on a node under full load."""


@dataclass(slots=True)
class _Counted:
    """One guest in one run; `index` is its node's among the hosts that counters name."""

    name: str
    node: Hypervisor
    index: int
    seq: int = 0
    before: _Look | None = None
    after: _Look | None = None
    told: set[str] = field(default_factory=set)


@dataclass(frozen=True, slots=True)
class _Look:
    """What was counted so far, None for what could not be had."""

    disk: DiskCounts | None
    use: UseAnswer | None


class Counting:
    """The guests of one run; `watching` once."""

    def __init__(
        self,
        crew: Crew,
        guests: Sequence[tuple[str, Hypervisor]],
        counters: CounterCollector,
        places: Mapping[str, int],
    ) -> None:
        self._crew = crew
        self._counters = counters
        self._all = [_Counted(name, node, places[node.name]) for name, node in guests]

    @asynccontextmanager
    async def watching(self) -> AsyncIterator[None]:
        """They are counted before and after what is done within, and at every interval between."""
        await asyncio.gather(*(self._begin(one) for one in self._all))
        following = [asyncio.create_task(self._follow(one)) for one in self._all]
        try:
            yield
        finally:
            for task in following:
                task.cancel()
            await asyncio.gather(*following, return_exceptions=True)
            await asyncio.gather(*(self._end(one) for one in self._all))

    def told(self) -> tuple[GuestRun, ...]:
        """What is to be recorded of them."""
        return tuple(self._told(one) for one in self._all)

    async def _begin(self, one: _Counted) -> None:
        one.before = await self._look(one)

    async def _follow(self, one: _Counted) -> None:
        while True:
            await asyncio.sleep(self._crew.study.telemetry.interval_ms / 1000)
            await self._look(one)

    async def _end(self, one: _Counted) -> None:
        one.after = await self._look(one)

    async def _look(self, one: _Counted) -> _Look:
        """Look at a guest, and keep what was seen as a sample of its node's."""
        running = one.node.running.get(one.name)
        if running is None or one.node.host.lost or running.booted.qemu.ended.is_set():
            return _Look(None, None)
        disk, use = await self._disk(one, running), await self._use(one, running)
        self._keep(one, disk, use)
        return _Look(disk, use)

    async def _disk(self, one: _Counted, running: Running) -> DiskCounts | None:
        if running.monitor is None:
            return None
        try:
            answer = await running.monitor.command(COUNTERS, deadline_s=LOOK_LIMIT_S)
            return read_blocks(one.name, answer)
        except HostError as fault:
            self._say(one, fault)
            return None

    async def _use(self, one: _Counted, running: Running) -> UseAnswer | None:
        try:
            told = await one.node.host.ask(
                "use", deadline_s=LOOK_LIMIT_S, run=running.booted.qemu.id
            )
            return read_answer(one.node.name, UseAnswer, told)
        except HostError as fault:
            self._say(one, fault)
            return None

    def _keep(self, one: _Counted, disk: DiskCounts | None, use: UseAnswer | None) -> None:
        if use is None:
            # Its time is that of the node's clock, which only the node tells.
            return
        one.seq += 1
        read, write = (disk.read, disk.write) if disk else (None, None)
        row = [
            one.name,
            *(read and read.ios, write and write.ios),
            *(read and read.bytes, write and write.bytes),
            *(read and read.total_ns, write and write.total_ns),
            *(use.vcpu_run_ns, use.vcpu_wait_ns),
        ]
        sample = {"seq": one.seq, "real_ns": use.real_ns, "guests": [row]}
        with suppress(ValueError):
            self._counters.add(one.index, sample)

    def _say(self, one: _Counted, fault: HostError) -> None:
        """Each fault of a guest once in a run."""
        if fault.happened not in one.told:
            one.told.add(fault.happened)
            self._crew.tell(Notice(f"{fault.happened} The run goes on without a look at it."))

    def _told(self, one: _Counted) -> GuestRun:
        ground, running = one.node.ground, one.node.running.get(one.name)
        blocks: tuple[BlockCounts, ...] = ()
        use: GuestUse | None = None
        before, after = one.before, one.after
        try:
            if before and after and before.disk and after.disk:
                blocks = blocks_between(one.name, before.disk, after.disk)
            if before and after and before.use and after.use:
                use = guest_use(one.name, before.use, after.use)
        except HostError as fault:
            self._say(one, fault)
        return GuestRun(
            guest=one.name,
            node=one.node.name,
            accelerator=ground.accelerator if ground else None,
            blocks=blocks,
            use=use,
            booted_s=running.booted.seconds if running else None,
        )
