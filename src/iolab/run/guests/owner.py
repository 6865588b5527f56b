"""All guests of a session: what they stand on, their boots, what a run tells of them, their end."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Final, Protocol

from iolab.errors import HostError
from iolab.model.engine import EngineName
from iolab.model.event import Notice, Phase
from iolab.model.guest import DiskKind, GuestFleet, GuestRun, GuestSettings
from iolab.model.host import HostFacts, HostSpec
from iolab.model.run import DataSet, PlannedRun
from iolab.model.workload import Access, Job
from iolab.plan.guard import check_nodes
from iolab.plan.guest_pins import pins_of
from iolab.plan.guests import booted, makers_of, node_path, nodes_of, participants
from iolab.plan.sameness import changes
from iolab.run.barrier import together
from iolab.run.crew import Crew
from iolab.run.guests.copies import Copies
from iolab.run.guests.counting import Counting
from iolab.run.guests.hypervisor import Hypervisor
from iolab.run.guests.kit import GuestKit, guest_kit
from iolab.run.hosts.base import Host
from iolab.run.hosts.linked import Link
from iolab.run.hosts.vm import VmHost
from iolab.run.kit_shelf import Say
from iolab.run.layout import lay_out
from iolab.run.mend import RESUME, Changed, Reach
from iolab.run.survey import Survey, survey
from iolab.run.telemetry.decode import CounterCollector

IMAGES: Final = "guests"
"""The data set that guests' images are."""

_WRITING: Final = Job(
    engine=EngineName.FIO,
    access=Access.WRITE,
    block_bytes=1 << 20,
    iodepth=1,
    numjobs=1,
    file_bytes=1 << 20,
)
"""How images are laid out: past the page cache, as QEMU uses them."""


class GuestKits(Protocol):
    """Makes what guests boot from, as `guest_kit` does."""

    async def __call__(self, say: Say, /, *, package: str = "") -> GuestKit:
        """The kit, with the kernel in that package file; "" for the newest there is."""


class Guests:
    """The guests of a session, of a study that boots some, or uses some, or has none.

    `raise_up` before the first guest is reached, `watching` and `told` for each run, `end` once.
    """

    def __init__(self, crew: Crew, kits: GuestKits = guest_kit) -> None:
        self._crew = crew
        self._kits = kits
        self._nodes: dict[str, Hypervisor] = {}
        self._copies: Copies | None = None
        self._counting: Counting | None = None
        self._reach: Reach | None = None
        self.below: dict[str, tuple[str, ...]] = {}
        """The block devices below the path of each node that has one."""
        for host in crew.hosts.values():
            self._adopt(host)

    @property
    def are_booted(self) -> bool:
        """Whether there are guests to boot."""
        return self._crew.study.guests is not None

    async def raise_up(self, nodes: Survey) -> None:
        """Everything up to the boots: folders, what guests boot from, images, KVM tried.

        `nodes` is what they told. Raises HostError or EngineError, with every fault that is
        known beforehand and nothing done then, and Interrupted at a stop request.
        """
        settings, crew = self._crew.study.guests, self._crew
        if settings is None:
            return
        check_nodes(crew.study, crew.plan, nodes.facts, nodes.probes, owner=crew.owner)
        self._nodes = self._hypervisors(nodes.facts, settings)
        await crew.stop.unless_requested(self._raise_up(settings, list(self._nodes.values())))

    def reaching(self, reach: Reach | None) -> Reach | None:
        """The same way to reach hosts anew, after which guests are booted anew."""
        self._reach = reach
        if reach is None:
            return None

        def reached(spec: HostSpec) -> Host:
            return self._adopt(reach(spec))

        return reached

    def see_nodes(self, facts: Mapping[str, HostFacts]) -> None:
        """Take what nodes told of themselves, whoever booted the guests on them."""
        names = {spec.name for spec in nodes_of(self._crew.study)} & facts.keys()
        seen = {name: facts[name].target for name in names}
        self.below = {name: target.devices for name, target in seen.items() if target is not None}

    @asynccontextmanager
    async def watching(
        self, run: PlannedRun, counters: CounterCollector, places: Mapping[str, int]
    ) -> AsyncIterator[None]:
        """What nodes count of their guests is collected while what is done within lasts.

        `places` are the numbers of the nodes among the hosts that counters name.
        """
        guests = [
            (name, self._nodes[node])
            for name, node in self._placed(run)
            if node in self._nodes and node in places
        ]
        self._counting = Counting(self._crew, guests, counters, places)
        async with self._counting.watching():
            yield

    def told(self, run: PlannedRun) -> GuestFleet | None:
        """What is to be recorded of the guests of a run; None where no host of it is one."""
        placed = self._placed(run)
        if not placed:
            return None
        # A run that came to nothing before its load was not counted.
        counting, self._counting = self._counting, None
        counted = {one.guest: one for one in counting.told()} if counting else {}
        every = participants(self._crew.study, run.point.configuration, 0)
        taking = {name for name, _ in placed}
        left_out = self._crew.left_out
        return GuestFleet(
            guests=tuple(counted.get(name) or GuestRun(name, node) for name, node in placed),
            settings=self._crew.study.guests,
            per_node=run.point.per_node or max(Counter(node for _, node in placed).values()),
            idle=tuple(name for name in every if name not in taking | left_out),
        )

    async def end(self) -> tuple[str, ...]:
        """Every guest says bye, and what they stood on is removed; sentences on what failed."""
        guests = [host for host in self._crew.hosts.values() if isinstance(host, VmHost)]
        await asyncio.gather(*(host.close() for host in guests), return_exceptions=True)
        faults: list[str] = []
        if self._copies is not None:
            await self._copies.end()
        outcomes = await together(self._nodes.values(), lambda node: node.end())
        faults += [str(fault) for fault in outcomes.failed.values()]
        self._nodes = {}
        return tuple(faults)

    def _adopt(self, host: Host) -> Host:
        if isinstance(host, VmHost):
            host.boot = self._boot
        return host

    async def _boot(self, spec: HostSpec) -> Link:
        settings, node = self._crew.study.guests, self._nodes.get(spec.node)
        if settings is None or node is None:
            happened = f"Guest '{spec.name}' has no node that was made ready for it."
            raise HostError(happened, "This is a fault of iolab; please report it.")
        return await self._crew.stop.unless_requested(self._boot_on(node, spec.name, settings))

    async def _boot_on(self, node: Hypervisor, guest: str, settings: GuestSettings) -> Link:
        """Boot a guest; first of all its node is made ready again, if it was lost."""
        async with node.door:
            if node.host.lost:
                await self._reach_again(node)
            if not node.ready:
                await self._raise_up(settings, [node])
        return await node.boot(guest, settings)

    async def _reach_again(self, node: Hypervisor) -> None:
        """The node anew, and still what it was, with nothing of ours on it. HostError else."""
        why, crew = node.host.lost or "", self._crew
        if self._reach is None or self._copies is not None:
            # Other nodes' guests write to copies there.
            raise HostError(why, RESUME)
        await node.host.close()
        host = crew.bystanders[node.name] = self._reach(node.spec)
        node.begin_anew()
        seen = await survey(crew.study, {node.name: host}, tuple(crew.engines.values()))
        if faults := changes({node.name: node.facts}, seen.facts):
            # Lost it stays: no other guest is booted there either.
            await host.close()
            happened = f"Node '{node.name}' was lost and came back as another."
            raise Changed(happened, "Put it back as it was, and resume the session.", faults)
        crew.tell(Notice(f"{why} Node '{node.name}' is reached again."))

    def _hypervisors(
        self, facts: Mapping[str, HostFacts], settings: GuestSettings
    ) -> dict[str, Hypervisor]:
        """The nodes; those that are one machine share its processors and its turns to boot."""
        study = self._crew.study
        machines: dict[str, list[HostSpec]] = {}
        for spec in nodes_of(study):
            machines.setdefault(facts[spec.name].kernel.boot_id or spec.name, []).append(spec)
        found: dict[str, Hypervisor] = {}
        for nodes in machines.values():
            cpu = facts[nodes[0].name].cpu
            here = [[guest.name for guest in booted(study, spec.name)] for spec in nodes]
            given = pins_of(cpu, here, settings.vcpus, settings.pinning)
            turns = asyncio.Semaphore(settings.boots_at_once or max(cpu.threads, 1))
            for spec, names in zip(nodes, here, strict=True):
                mine = {guest: given[guest] for guest in names}
                found[spec.name] = Hypervisor(self._crew, spec, facts[spec.name], mine, turns)
        return {spec.name: found[spec.name] for spec in nodes_of(study)}

    async def _raise_up(self, settings: GuestSettings, nodes: list[Hypervisor]) -> None:
        crew = self._crew

        async def take(node: Hypervisor) -> None:
            await node.take(node_path(crew.study, node.spec) or "")

        async def prepare(node: Hypervisor) -> None:
            await node.prepare(kit, settings)

        (await together(nodes, take)).complete()
        count = sum(len(node.guests) for node in nodes)
        crew.begin(Phase.BOOT, None, f"{count} guests on {len(nodes)} nodes")
        kit = await self._kits(self._say, package=settings.kernel)
        (await together(nodes, prepare)).complete()
        if settings.disk is DiskKind.IMAGE:
            await self._lay_out_images(settings, nodes)
        for node in nodes:
            node.ready = True

    async def _lay_out_images(self, settings: GuestSettings, nodes: list[Hypervisor]) -> None:
        """An image for each guest, every byte of it written, and its copies on other nodes."""
        counts = tuple((node.name, len(node.guests)) for node in nodes)
        images = DataSet(
            id=IMAGES,
            configuration="",
            numjobs=max(count for _, count in counts),
            files_per_job=1,
            file_bytes=settings.disk_bytes,
            host_numjobs=counts,
        )
        await lay_out(self._crew, [node.site for node in nodes], images, _WRITING)
        for node in nodes:
            paths = node.site.paths(images.on(node.name))
            node.images = dict(zip(node.guests, paths, strict=True))
        if settings.replicas > 1:
            self._copies = Copies(self._crew, nodes, settings)
            await self._copies.make()

    def _placed(self, run: PlannedRun) -> list[tuple[str, str]]:
        """The guests that make a run's load, each with its node."""
        study = self._crew.study
        names = makers_of(study, run.point)
        specs = [study.host(name) for name in names if name not in self._crew.left_out]
        return [(spec.name, spec.node) for spec in specs if spec.node]

    def _say(self, text: str) -> None:
        self._crew.tell(Notice(f"{text[:1].upper()}{text[1:]}."))
