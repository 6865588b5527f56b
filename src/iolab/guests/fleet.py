"""All guests of a session: what they stand on, their boots, what a run tells of them, their end."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Final, Protocol

from msgspec import Struct, field
from msgspec.structs import replace

from iolab.core.events import Notice, SessionPhase
from iolab.core.host import HostFacts, HostSpec
from iolab.core.run import PlannedRun, RunRecord
from iolab.core.workload import DataSet
from iolab.errors import HostError
from iolab.guests.blocks import (
    COUNTERS,
    GuestDiskCounts,
    block_counts_between,
    guest_cpu_time_between,
    parse_block_stats,
)
from iolab.guests.copies import ReplicaServers
from iolab.guests.guest import (
    BlockCounts,
    GuestCpuTime,
    GuestDiskKind,
    GuestFleet,
    GuestRun,
    GuestSettings,
    booted_guest_settings,
)
from iolab.guests.hosts import (
    booted_guest_specs,
    guest_pins_of_machine,
    hypervisors_grouped_by_machine,
    image_directory,
)
from iolab.guests.hypervisor import Hypervisor, RunningGuest
from iolab.guests.kit.build import GuestKit, build_guest_kit
from iolab.guests.problems import require_capable_nodes
from iolab.hosts.answers import ProcessCpuUseAnswer, read_answer
from iolab.hosts.barrier import gather_hosts
from iolab.hosts.connect import BootableHost
from iolab.hosts.host import AgentLink, Host
from iolab.hosts.kit_cache import Notify
from iolab.hosts.telemetry import CounterCollector
from iolab.record import Record
from iolab.session.context import SessionContext
from iolab.session.discovery import DiscoveredHosts, discover_hosts_and_targets
from iolab.session.reconnect import RESUME, HostChangedError, HostFactory
from iolab.study.readiness import host_change_faults
from iolab.study.targets import hypervisors_of_study, load_host_names, load_host_names_of_point
from iolab.targets.layout import lay_out_data_set_where_missing
from iolab.text import capitalised, counted_noun

LOOK_LIMIT_S: Final = 20.0
"""One look at a guest's counters, on a node under full load."""

IMAGES: Final = "guests"
"""The data set that guests' images are."""


class _SampledGuest(Struct):
    """One guest in one run; `node_index` is its node's among the hosts that counters name."""

    name: str
    node: Hypervisor
    node_index: int
    sample_number: int = 0
    sample_before_run: _GuestSample | None = None
    sample_after_run: _GuestSample | None = None
    reported_fault_texts: set[str] = field(default_factory=set)


class _GuestSample(Record):
    """What was counted so far, None for what could not be had."""

    disk_counts: GuestDiskCounts | None
    cpu_use: ProcessCpuUseAnswer | None


class GuestCounters:
    """The guests of one run; `collect` once."""

    def __init__(
        self,
        session: SessionContext,
        guests: Sequence[tuple[str, Hypervisor]],
        counters: CounterCollector,
        host_index_by_name: Mapping[str, int],
    ) -> None:
        self._session = session
        self._counters = counters
        self._guests = [
            _SampledGuest(name, node, host_index_by_name[node.name]) for name, node in guests
        ]

    @asynccontextmanager
    async def collect(self) -> AsyncIterator[None]:
        """They are counted before and after what is done within, and at every interval between."""
        await asyncio.gather(*(self._keep_sample_before_run(guest) for guest in self._guests))
        following = [
            asyncio.create_task(self._sample_periodically(guest)) for guest in self._guests
        ]
        try:
            yield
        finally:
            for task in following:
                task.cancel()
            await asyncio.gather(*following, return_exceptions=True)
            await asyncio.gather(*(self._keep_sample_after_run(guest) for guest in self._guests))

    def guest_runs(self) -> tuple[GuestRun, ...]:
        """What is to be recorded of them."""
        return tuple(self._guest_run(guest) for guest in self._guests)

    async def _keep_sample_before_run(self, guest: _SampledGuest) -> None:
        guest.sample_before_run = await self._sample_guest(guest)

    async def _sample_periodically(self, guest: _SampledGuest) -> None:
        while True:
            await asyncio.sleep(self._session.study.telemetry.interval_ms / 1000)
            await self._sample_guest(guest)

    async def _keep_sample_after_run(self, guest: _SampledGuest) -> None:
        guest.sample_after_run = await self._sample_guest(guest)

    async def _sample_guest(self, guest: _SampledGuest) -> _GuestSample:
        """Look at a guest, and keep what was seen as a sample of its node's."""
        running = guest.node.running.get(guest.name)
        if (
            running is None
            or guest.node.host.lost_reason
            or running.booted_qemu.qemu.ended.is_set()
        ):
            return _GuestSample(None, None)
        disk, use = (
            await self._read_disk_counts(guest, running),
            await self._read_cpu_use(guest, running),
        )
        self._add_to_counters(guest, disk, use)
        return _GuestSample(disk, use)

    async def _read_disk_counts(
        self, guest: _SampledGuest, running: RunningGuest
    ) -> GuestDiskCounts | None:
        if running.monitor is None:
            return None
        try:
            answer = await running.monitor.run_command(COUNTERS, deadline_s=LOOK_LIMIT_S)
            return parse_block_stats(guest.name, answer)
        except HostError as fault:
            self._notify_fault_once_per_run(guest, fault)
            return None

    async def _read_cpu_use(
        self, guest: _SampledGuest, running: RunningGuest
    ) -> ProcessCpuUseAnswer | None:
        try:
            answer = await guest.node.host.request(
                "use", deadline_s=LOOK_LIMIT_S, run=running.booted_qemu.qemu.run_id
            )
            return read_answer(guest.node.name, ProcessCpuUseAnswer, answer)
        except HostError as fault:
            self._notify_fault_once_per_run(guest, fault)
            return None

    def _add_to_counters(
        self,
        guest: _SampledGuest,
        disk_counts: GuestDiskCounts | None,
        cpu_use: ProcessCpuUseAnswer | None,
    ) -> None:
        if cpu_use is None:
            # Its time is that of the node's clock, which only the node tells.
            return
        guest.sample_number += 1
        read, write = (disk_counts.read, disk_counts.write) if disk_counts else (None, None)
        row = [
            guest.name,
            *(read and read.ios, write and write.ios),
            *(read and read.bytes, write and write.bytes),
            *(read and read.total_ns, write and write.total_ns),
            *(cpu_use.vcpu_run_ns, cpu_use.vcpu_wait_ns),
        ]
        sample = {"seq": guest.sample_number, "real_ns": cpu_use.real_ns, "guests": [row]}
        with suppress(ValueError):
            self._counters.add(guest.node_index, sample)

    def _notify_fault_once_per_run(self, guest: _SampledGuest, fault: HostError) -> None:
        """Each fault of a guest once in a run."""
        if fault.message not in guest.reported_fault_texts:
            guest.reported_fault_texts.add(fault.message)
            self._session.emit(Notice(f"{fault.message} The run goes on without a look at it."))

    def _guest_run(self, guest: _SampledGuest) -> GuestRun:
        ground, running = guest.node.boot_environment, guest.node.running.get(guest.name)
        blocks: tuple[BlockCounts, ...] = ()
        use: GuestCpuTime | None = None
        before, after = guest.sample_before_run, guest.sample_after_run
        try:
            if before and after and before.disk_counts and after.disk_counts:
                blocks = block_counts_between(guest.name, before.disk_counts, after.disk_counts)
            if before and after and before.cpu_use and after.cpu_use:
                use = guest_cpu_time_between(guest.name, before.cpu_use, after.cpu_use)
        except HostError as fault:
            self._notify_fault_once_per_run(guest, fault)
        return GuestRun(
            guest=guest.name,
            node=guest.node.name,
            accelerator=ground.accelerator if ground else None,
            blocks=blocks,
            use=use,
            booted_s=running.booted_qemu.boot_s if running else None,
        )


class GuestKitFactory(Protocol):
    """Makes what guests boot from, as `build_guest_kit` does."""

    async def __call__(self, notify: Notify, /, *, package: str = "") -> GuestKit:
        """The kit, with the kernel in that package file; "" for the newest there is."""


class SessionGuests:
    """The guests of a session, of a study that boots some, or uses some, or has none.

    `set_up_nodes_for_boots` before the first guest is reached, `sample_counters` and
    `with_booted_host_details` for each run, `shut_down_and_list_failures` once.
    """

    def __init__(self, session: SessionContext, kits: GuestKitFactory) -> None:
        self._session = session
        self._kits = kits
        self._nodes: dict[str, Hypervisor] = {}
        self._copies: ReplicaServers | None = None
        self._counting: GuestCounters | None = None
        self._reach: HostFactory | None = None
        self.path_devices_by_node: Mapping[str, tuple[str, ...]] = {}
        """The block devices below the path of each node that has one."""
        for host in session.hosts.values():
            self._set_boot_function(host)

    @property
    def has_guests_to_boot(self) -> bool:
        """Whether there are guests to boot."""
        return booted_guest_settings(self._session.study) is not None

    async def set_up_nodes_for_boots(self, discovered_nodes: DiscoveredHosts) -> None:
        """Everything up to the boots: folders, what guests boot from, images, KVM tried.

        `discovered_nodes` is what they told. Raises HostError or EngineError, with every fault that
        is known beforehand and nothing done then, and Interrupted at a stop request.
        """
        settings, session = booted_guest_settings(self._session.study), self._session
        if settings is None:
            return
        require_capable_nodes(
            session.study,
            session.plan,
            discovered_nodes.facts_by_target,
            discovered_nodes.probes_by_target,
            owner=session.folder_owner_text,
        )
        self._nodes = self._create_hypervisors(discovered_nodes.facts_by_target, settings)
        await session.stop.run_unless_stopped(
            self._set_up_nodes(settings, list(self._nodes.values()))
        )

    def set_and_wrap_reconnect_host_factory(
        self, host_factory: HostFactory | None
    ) -> HostFactory | None:
        """The same way to reach hosts anew, after which guests are booted anew."""
        self._reach = host_factory
        if host_factory is None:
            return None

        def create_booted_host(spec: HostSpec) -> Host:
            return self._set_boot_function(host_factory(spec))

        return create_booted_host

    def set_path_devices_from_facts(self, facts_by_host: Mapping[str, HostFacts]) -> None:
        """Take what nodes told of themselves, whoever booted the guests on them."""
        names = {
            spec.name for spec in hypervisors_of_study(self._session.study)
        } & facts_by_host.keys()
        targets = {name: facts_by_host[name].target for name in names}
        self.path_devices_by_node = {
            name: target.devices for name, target in targets.items() if target is not None
        }

    @asynccontextmanager
    async def sample_counters(
        self, run: PlannedRun, counters: CounterCollector, host_index_by_name: Mapping[str, int]
    ) -> AsyncIterator[None]:
        """What nodes count of their guests is collected while what is done within lasts.

        `host_index_by_name` are the numbers of the nodes among the hosts that counters name.
        """
        guests = [
            (name, self._nodes[node])
            for name, node in self._guest_node_pairs(run)
            if node in self._nodes and node in host_index_by_name
        ]
        self._counting = GuestCounters(self._session, guests, counters, host_index_by_name)
        async with self._counting.collect():
            yield

    def with_booted_host_details(self, record: RunRecord) -> RunRecord:
        """The record of a run with its guests, where hosts of it are guests."""
        run = record.run
        placed = self._guest_node_pairs(run)
        if not placed:
            return record
        # A run that came to nothing before its load was not counted.
        counting, self._counting = self._counting, None
        counted = {run.guest: run for run in counting.guest_runs()} if counting else {}
        every = load_host_names(self._session.study, run.point.configuration, 0)
        taking = {name for name, _ in placed}
        left_out = self._session.excluded_host_names
        fleet = GuestFleet(
            guests=tuple(counted.get(name) or GuestRun(name, node) for name, node in placed),
            settings=booted_guest_settings(self._session.study),
            per_node=run.point.per_node or max(Counter(node for _, node in placed).values()),
            idle=tuple(name for name in every if name not in taking | left_out),
        )
        return replace(record, fleet=fleet)

    async def shut_down_and_list_failures(self) -> tuple[str, ...]:
        """Every guest says bye, and what they stood on is removed; sentences on what failed."""
        guests = [host for host in self._session.hosts.values() if isinstance(host, BootableHost)]
        await asyncio.gather(*(host.close() for host in guests), return_exceptions=True)
        faults: list[str] = []
        if self._copies is not None:
            await self._copies.stop()
        outcomes = await gather_hosts(
            self._nodes.values(), lambda node: node.kill_guests_and_remove_folder()
        )
        faults += [str(fault) for fault in outcomes.errors.values()]
        self._nodes = {}
        return tuple(faults)

    def _set_boot_function(self, host: Host) -> Host:
        if isinstance(host, BootableHost):
            host.boot = self._boot_guest
        return host

    async def _boot_guest(self, spec: HostSpec) -> AgentLink:
        settings, node = (
            booted_guest_settings(self._session.study),
            self._nodes.get(spec.hypervisor),
        )
        if settings is None or node is None:
            message = f"Guest '{spec.name}' has no node that was made ready for it."
            raise HostError(message, "This is a fault of iolab; please report it.")
        return await self._session.stop.run_unless_stopped(
            self._boot_on_node(node, spec.name, settings)
        )

    async def _boot_on_node(
        self, node: Hypervisor, guest_name: str, settings: GuestSettings
    ) -> AgentLink:
        """Boot a guest; first of all its node is made ready again, if it was lost."""
        async with node.preparation_lock:
            if node.host.lost_reason:
                await self._reconnect_and_report_node(node)
            if not node.is_ready:
                await self._set_up_nodes(settings, [node])
        return await node.boot(guest_name, settings)

    async def _reconnect_and_report_node(self, node: Hypervisor) -> None:
        """The node anew, and still what it was, with nothing of ours on it. HostError else."""
        why, session = node.host.lost_reason or "", self._session
        if self._reach is None or self._copies is not None:
            # Other nodes' guests write to copies there.
            raise HostError(why, RESUME)
        await node.host.close()
        host = session.monitored_hosts[node.name] = self._reach(node.spec)
        node.reset_to_not_set_up()
        discovery = await discover_hosts_and_targets(
            session.study, {node.name: host}, session.discovery_queries
        )
        if faults := host_change_faults({node.name: node.facts}, discovery.facts_by_target):
            # Lost it stays: no other guest is booted there either.
            await host.close()
            session.held_folders_by_host.pop(node.name, None)  # What lies there is not ours.
            message = f"Node '{node.name}' was lost and came back as another."
            raise HostChangedError(
                message, "Put it back as it was, and resume the session.", faults
            )
        session.emit(Notice(f"{why} Node '{node.name}' is reached again."))

    def _create_hypervisors(
        self, facts_by_host: Mapping[str, HostFacts], settings: GuestSettings
    ) -> dict[str, Hypervisor]:
        """The nodes; those that are one machine share its processors and its turns to boot."""
        study = self._session.study
        hypervisors: dict[str, Hypervisor] = {}
        for nodes in hypervisors_grouped_by_machine(study, facts_by_host):
            cpu = facts_by_host[nodes[0].name].cpu
            guests_by_node = [
                [guest.name for guest in booted_guest_specs(study, spec.name)] for spec in nodes
            ]
            pins_by_guest = guest_pins_of_machine(
                cpu, guests_by_node, settings.vcpus, settings.pinning
            )
            turns = asyncio.Semaphore(settings.boots_at_once or max(cpu.threads, 1))
            for spec, names in zip(nodes, guests_by_node, strict=True):
                pins = {guest: pins_by_guest[guest] for guest in names}
                hypervisors[spec.name] = Hypervisor(
                    self._session, spec, facts_by_host[spec.name], pins, turns
                )
        return {spec.name: hypervisors[spec.name] for spec in hypervisors_of_study(study)}

    async def _set_up_nodes(self, settings: GuestSettings, nodes: list[Hypervisor]) -> None:
        session = self._session

        async def acquire_node_folder(node: Hypervisor) -> None:
            await node.acquire_scratch_folder(image_directory(session.study, node.spec) or "")

        async def install_kit_on_node(node: Hypervisor) -> None:
            await node.install_kit_and_choose_accelerator(kit, settings, self._notify)

        (await gather_hosts(nodes, acquire_node_folder)).results_or_raise()
        count = sum(len(node.guests) for node in nodes)
        session.begin_session_phase(
            SessionPhase.BOOT,
            None,
            f"{counted_noun(count, 'guest')} on {counted_noun(len(nodes), 'node')}",
        )
        kit = await self._kits(self._notify, package=settings.kernel)
        (await gather_hosts(nodes, install_kit_on_node)).results_or_raise()
        if settings.disk is GuestDiskKind.IMAGE:
            await self._lay_out_images(settings, nodes)
        for node in nodes:
            node.is_ready = True

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
        await lay_out_data_set_where_missing(
            self._session, [node.workdir for node in nodes], images, None
        )
        for node in nodes:
            paths = node.workdir.data_set_paths(images.with_jobs_of_host(node.name))
            node.images = dict(zip(node.guests, paths, strict=True))
        if settings.replicas > 1:
            self._copies = ReplicaServers(self._session, nodes, settings)
            await self._copies.start_and_fill()

    def _guest_node_pairs(self, run: PlannedRun) -> list[tuple[str, str]]:
        """The guests that make a run's load, each with its node."""
        study = self._session.study
        names = load_host_names_of_point(study, run.point)
        specs = [
            study.host(name) for name in names if name not in self._session.excluded_host_names
        ]
        return [(spec.name, spec.hypervisor) for spec in specs if spec.hypervisor]

    def _notify(self, text: str) -> None:
        self._session.emit(Notice(f"{capitalised(text)}."))


class GuestSessionKind(Record):
    """Guests in sessions; see `HostSessionKind`. `kit_factory` makes what they boot from."""

    kit_factory: GuestKitFactory = build_guest_kit

    def create_booted_hosts(self, session: SessionContext) -> SessionGuests:
        """The guests of a session."""
        return SessionGuests(session, self.kit_factory)
