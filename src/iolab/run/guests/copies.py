"""Copies of guests' images on other nodes, made the same, and offered until the session ends."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final

from iolab.errors import EngineError, HostError
from iolab.model.event import Phase
from iolab.model.guest import GuestSettings
from iolab.plan.budget import ASSUMED_WRITE_BYTES_PER_S
from iolab.plan.guest_guard import QEMU_IMG, QEMU_NBD
from iolab.run.barrier import together
from iolab.run.crew import Crew
from iolab.run.extents import prove, unproved
from iolab.run.guests.hypervisor import Hypervisor
from iolab.run.guests.mirrors import Mirror, copy_argv, mirrors, server_argv
from iolab.run.guests.qemu import QemuRun
from iolab.run.key_value.processes import told
from iolab.units import format_bytes

COPY_LIMIT_S: Final = 60.0
SLOWEST_COPY_BYTES_PER_S: Final = 10e6
"""A copy over a gigabit network that many nodes copy over at the same time."""

SERVER_TRIES: Final = 50
SERVER_RETRY_S: Final = 0.2
"""Ten seconds for a server to listen, on a node under load."""

SERVER_END_S: Final = 2.0
"""For a server that could not have its port to end."""


class Copies:
    """The copies of a session; `make` once, `end` once."""

    def __init__(self, crew: Crew, nodes: Sequence[Hypervisor], settings: GuestSettings) -> None:
        self._crew = crew
        self._nodes = {node.name: node for node in nodes}
        self._settings = settings
        self._servers: dict[str, QemuRun] = {}
        addresses = {node.name: node.spec.storage_address for node in nodes}
        guests = {guest: node.name for node in nodes for guest in node.guests}
        self._mirrors = mirrors(addresses, guests, settings.replicas, crew.session_id)

    async def make(self) -> None:
        """Every copy is there and offered, the same as its image. HostError or EngineError else."""
        size = self._settings.disk_bytes
        expected_s = size * len(self._mirrors) / len(self._nodes) / ASSUMED_WRITE_BYTES_PER_S
        detail = f"{len(self._mirrors)} copies of guests' disks on other nodes"
        self._crew.begin(Phase.LAY_OUT, None, detail, expected_s)
        (await together(self._nodes.values(), self._offer)).complete()
        (await together(self._nodes.values(), self._copy)).complete()
        (await together(self._nodes.values(), self._prove)).complete()
        for node in self._nodes.values():
            node.replicas = {
                guest: tuple(one.replica for one in self._mirrors if one.guest == guest)
                for guest in node.guests
            }

    async def end(self) -> None:
        """Offer nothing any more; the files go with the nodes' folders."""
        await asyncio.gather(*(server.kill() for server in self._servers.values()))
        self._servers.clear()

    async def _offer(self, node: Hypervisor) -> None:
        for mirror in self._mirrors:
            if mirror.node != node.name:
                continue
            image = f"{node.folder}/{mirror.image}"
            size = str(self._settings.disk_bytes)
            await told(node.host, ("truncate", "-s", size, image))
            argv = server_argv(mirror, image, QEMU_NBD)
            self._servers[mirror.replica.export] = QemuRun.start(node.host, argv, node.folder)

    async def _copy(self, node: Hypervisor) -> None:
        """Each image of this node's guests to its copies, one after the other."""
        for mirror in self._mirrors:
            if mirror.guest in node.guests:
                await self._fill(node, mirror)

    async def _prove(self, node: Hypervisor) -> None:
        """The copies that this node offers are written in full, as images are."""
        paths = [f"{node.folder}/{one.image}" for one in self._mirrors if one.node == node.name]
        if paths and (holes := unproved(await prove(node.site, paths))):
            happened = (
                f"{format_bytes(holes)} of the copies of guests' disks on node '{node.name}' are "
                f"not written."
            )
            raise HostError(happened, "See whether something else changes files in that folder.")

    async def _fill(self, node: Hypervisor, mirror: Mirror) -> None:
        argv = copy_argv(mirror, node.images[mirror.guest], QEMU_IMG)
        limit_s = COPY_LIMIT_S + self._settings.disk_bytes / SLOWEST_COPY_BYTES_PER_S
        server = self._servers[mirror.replica.export]
        for left in reversed(range(SERVER_TRIES)):
            try:
                await told(node.host, argv, limit_s=limit_s)
            except EngineError as fault:
                refused = REFUSED in fault.happened
                # Whoever answered instead of ours has its port, and ours is about to say so.
                if await server.gone(SERVER_RETRY_S if refused else SERVER_END_S):
                    raise _not_offered(mirror, server) from None
                if not left or not refused:
                    raise
            else:
                return


def _not_offered(mirror: Mirror, server: QemuRun) -> HostError:
    happened = (
        f"The copy of guest '{mirror.guest}' cannot be offered on node '{mirror.node}': "
        f"{server.words().rstrip('.') or 'it said nothing'}."
    )
    return HostError(happened, "Free that port there, or correct the node's storage_address.")


REFUSED: Final = "Connection refused"
"""What qemu-img says of a server that does not listen yet."""
