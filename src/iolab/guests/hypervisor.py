"""One node and what the session has there: a folder with images and a kit, and guests that run.

Whether KVM works is found out by booting a guest with it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Final

from msgspec import Struct

from iolab.core.events import GuestBooted, Notice
from iolab.core.host import HostFacts, HostSpec
from iolab.errors import HostError
from iolab.guests.blocks import HISTOGRAM_ARGUMENTS, HISTOGRAMS
from iolab.guests.guest import Accelerator, GuestDiskKind, GuestSettings
from iolab.guests.hosts import CpuPin
from iolab.guests.kit.build import GuestKit, NodeKitPaths, install_kit_on_node
from iolab.guests.machine import (
    QemuMachine,
    Replica,
    agent_socket_file_name,
    measure_tsc_khz_of_node,
    monitor_socket_file_name,
    qemu_argv,
)
from iolab.guests.problems import QEMU
from iolab.guests.qemu import QemuRun, QmpClient, SocketRelay
from iolab.hosts.channel import FrameWriter
from iolab.hosts.host import AgentLink, Host
from iolab.hosts.kit_cache import Notify
from iolab.record import Record
from iolab.session.context import SessionContext
from iolab.targets.work_directories import open_scratch_folder_with_notice
from iolab.targets.work_directory import CLOSE_LIMIT_S, WorkDirectory, scratch_folder_name

BOOT_TRIES: Final = 2
"""Tries of a guest that says nothing: one start of many was seen to hang that went well again."""

MONITOR_LIMIT_S: Final = 30.0
"""For the QEMU of a guest that spoke already to greet us."""

TRIAL_GUEST: Final = "kvm-trial"
"""The guest with which KVM is tried."""

KVM_LIMIT_S: Final = 15.0
"""From the start to the first word: with KVM that takes a second, on a node under load or with a
slow disk some. Where KVM runs a hundred times slower than emulation it takes minutes."""

SOCKET_LIMIT_S: Final = 60.0
"""For a QEMU to make its sockets: it reads a kernel of 50 MB first, from a disk under load."""

LAST_WORDS_S: Final = 2.0
"""How long a guest that broke off may take to end, so that its end can be told."""

POWER_OFF_LIMIT_S: Final = 15.0
"""From the end of the agent in a guest to that of its QEMU; emulated and under load, seconds."""


class RunningGuest(Struct):
    """A guest that was booted: `monitor` is None where its QEMU could not be spoken to."""

    booted_qemu: BootedQemu
    monitor_relay: SocketRelay | None = None
    monitor: QmpClient | None = None

    async def close_monitor(self) -> None:
        """Speak to its QEMU no more."""
        if self.monitor is not None:
            await self.monitor.close()
        if self.monitor_relay is not None:
            await self.monitor_relay.close_and_wait()


class BootEnvironment(Record):
    """What guests boot from on a node, once all is there; `tsc_khz` where they are emulated."""

    kit: NodeKitPaths
    accelerator: Accelerator
    tsc_khz: int | None = None


class Hypervisor:
    """A node with its guests in their order, each with its pin; `slots` bounds boots at a time."""

    def __init__(
        self,
        session: SessionContext,
        spec: HostSpec,
        facts: HostFacts,
        guests: Mapping[str, CpuPin],
        slots: asyncio.Semaphore,
    ) -> None:
        self._session = session
        self.spec = spec
        self.facts = facts
        self.guests = guests
        self.folder = ""
        self.images: Mapping[str, str] = {}
        self.replicas: Mapping[str, Sequence[Replica]] = {}
        self.running: dict[str, RunningGuest] = {}
        self.boot_environment: BootEnvironment | None = None
        self.is_ready = False
        """Whether guests can be booted there."""
        self.preparation_lock = asyncio.Lock()
        """Whoever makes it ready is alone with it."""
        self._boot_slots = slots

    @property
    def name(self) -> str:
        """The node's name."""
        return self.spec.name

    @property
    def host(self) -> Host:
        """The node."""
        return self._session.monitored_hosts[self.name]

    @property
    def workdir(self) -> WorkDirectory:
        """Its folder, for files that are laid out there."""
        return WorkDirectory(self.host, self.folder, self.facts.target, self.name)

    async def acquire_scratch_folder(self, parent_directory: str) -> None:
        """Take a folder in that path. Raises HostError, busy while another session has it."""
        self.folder = self.folder or await open_scratch_folder_with_notice(
            self._session, self.host, parent_directory, scratch_folder_name(self.name)
        )

    def reset_to_not_set_up(self) -> None:
        """Nothing of the session's is there any more."""
        self.folder, self.images, self.boot_environment, self.is_ready = "", {}, None, False
        self.running.clear()

    async def install_kit_and_choose_accelerator(
        self, kit: GuestKit, settings: GuestSettings, notify: Notify
    ) -> None:
        """Bring the kit, and find out what runs a guest's instructions."""
        paths = await install_kit_on_node(self.host, kit, self.folder, notify)
        wanted = settings.accelerator
        if wanted is Accelerator.AUTO:
            argv = qemu_argv(self._kvm_trial_machine(paths, settings), QEMU)
            async with self._boot_slots:
                why = await kvm_trial_boot_failure(self.host, argv, self.folder, TRIAL_GUEST)
            wanted = Accelerator.TCG if why else Accelerator.KVM
            if why:
                text = f"KVM does not work on node '{self.name}': {why}. Its guests are emulated."
                self._session.emit(Notice(text))
        emulated = wanted is Accelerator.TCG
        self.boot_environment = BootEnvironment(
            paths, wanted, await measure_tsc_khz_of_node(self.host) if emulated else None
        )

    async def boot(self, guest_name: str, settings: GuestSettings) -> AgentLink:
        """Start a guest when its turn comes; one that hangs is tried once more. HostError else."""
        before = self.running.pop(guest_name, None)
        if before is not None:
            await before.close_monitor()
        async with self._boot_slots:
            booted = await self._boot_with_retries(guest_name, settings)
        self._session.emit(GuestBooted(guest_name, self.name, booted.boot_s))
        running = self.running[guest_name] = RunningGuest(booted)
        await self._open_qmp(guest_name, running)
        return GuestLink(booted, running.close_monitor)

    async def kill_guests_and_remove_folder(self) -> None:
        """Remove the folder; its guests are gone. Raises HostError."""
        if self.folder and not self.host.lost_reason:
            folder, self.folder = self.folder, ""
            for running in self.running.values():
                await running.booted_qemu.qemu.kill()
            await self.host.request(
                "scratch_close", deadline_s=CLOSE_LIMIT_S, dir=folder, keep=False
            )

    async def _boot_with_retries(self, guest_name: str, settings: GuestSettings) -> BootedQemu:
        limit_s = settings.boot_limit_s
        for left in reversed(range(BOOT_TRIES)):
            argv = qemu_argv(self._machine_of_guest(guest_name, settings), QEMU)
            try:
                return await boot_qemu(self.host, argv, self.folder, guest_name, limit_s)
            except BootHungError as hung:
                if not left:
                    raise
                self._session.emit(Notice(f"{hung.message} It is restarted."))
        raise AssertionError("the last try returns or raises")

    async def _open_qmp(self, guest_name: str, running: RunningGuest) -> None:
        """Its QEMU's monitor; a guest without one is measured all the same."""
        try:
            wire = await SocketRelay.connect(
                self.host, self.folder, monitor_socket_file_name(guest_name), MONITOR_LIMIT_S
            )
            running.monitor_relay = wire
            running.monitor = await QmpClient.open(guest_name, wire.reader, wire, MONITOR_LIMIT_S)
            await running.monitor.run_command(
                HISTOGRAMS, HISTOGRAM_ARGUMENTS, deadline_s=MONITOR_LIMIT_S
            )
        except HostError as fault:
            text = (
                f"{fault.message} Nothing will be known of guest '{guest_name}' but its own words."
            )
            self._session.emit(Notice(text))

    def _machine_of_guest(self, guest_name: str, settings: GuestSettings) -> QemuMachine:
        ground, pin = self.boot_environment, self.guests[guest_name]
        if ground is None:
            raise ValueError(f"node {self.name} is not prepared")
        return QemuMachine(
            guest=guest_name,
            settings=settings,
            accelerator=ground.accelerator,
            kernel=ground.kit.kernel,
            initrd=ground.kit.initrd,
            tools=ground.kit.tools,
            image=self.images.get(guest_name),
            cpus=pin.cpus,
            memory_numa_node=pin.memory_numa_node,
            tsc_khz=ground.tsc_khz,
            real_ns=self._session.clock.real_ns(),
            replicas=tuple(self.replicas.get(guest_name, ())),
        )

    def _kvm_trial_machine(self, kit: NodeKitPaths, settings: GuestSettings) -> QemuMachine:
        """A guest without a disk of its own, with KVM."""
        bare = GuestSettings(1, settings.memory_bytes, settings.disk_bytes, GuestDiskKind.MODELLED)
        now_ns = self._session.clock.real_ns()
        return QemuMachine(
            TRIAL_GUEST, bare, Accelerator.KVM, kit.kernel, kit.initrd, kit.tools, real_ns=now_ns
        )


async def kvm_trial_boot_failure(
    node: Host, argv: Sequence[str], folder: str, guest_name: str
) -> str | None:
    """Why a guest with that command does not boot; None when it does, and it is gone again.

    Raises HostError when the node is lost.
    """
    try:
        booted = await boot_qemu(node, argv, folder, guest_name, KVM_LIMIT_S)
    except BootHungError:
        return f"a guest did not boot within {KVM_LIMIT_S:g} s"
    except HostError as fault:
        if node.lost_reason:
            raise
        return fault.message.rpartition(": ")[2].rstrip(".")
    await booted.qemu.kill()
    await booted.relay.close_and_wait()
    return None


class BootHungError(HostError):
    """A guest that neither spoke in time nor ended: another try may go well."""


class BootedQemu(Record):
    """A guest that spoke: its QEMU, the way to the agent in it, and how long it took."""

    qemu: QemuRun
    relay: SocketRelay
    boot_s: float


class GuestLink:
    """The link of a guest's host; `close_others` ends what else is open to it."""

    def __init__(self, booted: BootedQemu, close_others: Callable[[], Awaitable[None]]) -> None:
        self._booted = booted
        self._close_others = close_others
        self.reader = booted.relay.reader
        self.writer: FrameWriter = booted.relay
        """The way to the agent; its end is the end of the lease, and the guest powers off."""

    async def exit_reason(self) -> str:
        """How its QEMU ended and what the console said last."""
        await self._booted.qemu.wait_for_exit(LAST_WORDS_S)
        return self._booted.qemu.exit_and_console_text()

    async def wait_for_exit_or_kill(self) -> None:
        """Wait until the guest has powered off; kill it when it does not."""
        await self._booted.relay.close_and_wait()
        await self._close_others()
        await self._booted.qemu.wait_for_exit(POWER_OFF_LIMIT_S)
        await self._booted.qemu.kill()


async def boot_qemu(
    node: Host, argv: Sequence[str], folder: str, guest_name: str, limit_s: float
) -> BootedQemu:
    """Start a guest and wait for its first word; its socket is in `folder`.

    Raises BootHungError when there is none in time, HostError when it ends; nothing of it is left
    then.
    """
    began_s = asyncio.get_running_loop().time()
    qemu = QemuRun.start(node, argv, folder)
    relay: SocketRelay | None = None
    try:
        async with asyncio.timeout(limit_s):
            relay = await _connect_to_agent(node, qemu, folder, guest_name)
            await _wait_for_first_of_events(relay.has_received, relay.ended, qemu.ended)
        await _require_first_message(relay.has_received, node, qemu, guest_name)
        return BootedQemu(qemu, relay, asyncio.get_running_loop().time() - began_s)
    except BaseException as fault:
        console = qemu.exit_and_console_text()
        if relay is not None:
            await relay.close_and_wait()
        await qemu.kill()
        if isinstance(fault, TimeoutError):
            raise _boot_hung_error(node, console, guest_name, limit_s) from None
        raise


async def _connect_to_agent(node: Host, qemu: QemuRun, folder: str, guest_name: str) -> SocketRelay:
    """The way to the agent; HostError when the QEMU ends before it is there."""
    connecting = asyncio.create_task(
        SocketRelay.connect(node, folder, agent_socket_file_name(guest_name), SOCKET_LIMIT_S),
        name=f"the way to {guest_name}",
    )
    ending = asyncio.create_task(qemu.ended.wait())
    try:
        await asyncio.wait({connecting, ending}, return_when=asyncio.FIRST_COMPLETED)
        if connecting.done():
            return connecting.result()
        raise await _qemu_ended_error(node, qemu, guest_name)
    finally:
        ending.cancel()
        if not connecting.done():
            connecting.cancel()
        await asyncio.gather(connecting, ending, return_exceptions=True)


async def _wait_for_first_of_events(*events: asyncio.Event) -> None:
    """Wait until one of them is set."""
    waiting = [asyncio.create_task(event.wait()) for event in events]
    try:
        await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in waiting:
            task.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)


async def _require_first_message(
    first_message_event: asyncio.Event, node: Host, qemu: QemuRun, guest_name: str
) -> None:
    if not first_message_event.is_set():
        raise await _qemu_ended_error(node, qemu, guest_name)


async def _qemu_ended_error(node: Host, qemu: QemuRun, guest_name: str) -> HostError:
    await qemu.wait_for_exit(LAST_WORDS_S)
    words = qemu.exit_and_console_text() or "it said nothing"
    message = f"Guest '{guest_name}' did not boot on node '{node.name}': {words.rstrip('.')}."
    return HostError(message, "Correct what it says, or leave that node out.")


def _boot_hung_error(node: Host, console: str, guest_name: str, limit_s: float) -> BootHungError:
    last = f" Its console said last: {console.rstrip('.')}." if console else ""
    message = f"Guest '{guest_name}' on node '{node.name}' said nothing for {limit_s:g} s.{last}"
    return BootHungError(message, "Raise vm.boot_limit, or boot fewer at a time with vm.boots.")
