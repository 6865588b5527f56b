"""Copies of guests' images on other nodes: who has which, and the commands that keep them.

A node that has a copy runs `qemu-nbd` on it; the guest's own QEMU writes to all copies at once.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Final

from iolab.core.events import SessionPhase
from iolab.errors import EngineError, HostError
from iolab.guests.guest import GuestSettings
from iolab.guests.hypervisor import Hypervisor
from iolab.guests.machine import QemuAio, Replica
from iolab.guests.problems import QEMU_IMG, QEMU_NBD
from iolab.guests.qemu import QemuRun
from iolab.guests.vm_table import COPIES
from iolab.hosts.barrier import gather_hosts
from iolab.hosts.remote_process import run_and_get_output
from iolab.record import Record
from iolab.session.context import SessionContext
from iolab.study.cost import ASSUMED_WRITE_BYTES_PER_S
from iolab.targets.work_directory import prove_extents, unwritten_or_hole_bytes
from iolab.units import format_bytes

FIRST_PORT: Final = 10810
"""After NBD's own port, which a server of the node's may have; below those the kernel gives out."""

CLIENTS: Final = 2
"""At a time: the guest, and one whose connection a node has not yet seen the end of."""

COPY_LIMIT_S: Final = 60.0

SLOWEST_COPY_BYTES_PER_S: Final = 10e6
"""A copy over a gigabit network that many nodes copy over at the same time."""

SERVER_TRIES: Final = 50

SERVER_RETRY_S: Final = 0.2
"""Ten seconds for a server to listen, on a node under load."""

SERVER_END_S: Final = 2.0
"""For a server that could not have its port to end."""

CONNECTION_REFUSED: Final = "Connection refused"
"""What qemu-img says of a server that does not listen yet."""


class DiskReplica(Record):
    """A copy of the image of a guest, on a node that is not its own."""

    guest: str
    node: str
    replica: Replica

    @property
    def image_file_name(self) -> str:
        """The file's name, in that node's scratch folder."""
        return f"{self.replica.export}.img"


def plan_replicas(
    storage_address_by_node: Mapping[str, str],
    node_by_guest: Mapping[str, str],
    replica_count: int,
    session_id: str,
) -> tuple[DiskReplica, ...]:
    """The copies of a session, guest after guest. ValueError when there are too few nodes.

    `storage_address_by_node` has the storage address of each, `node_by_guest` the node of each;
    `replica_count` counts the image itself. Exports bear the session's id: a port that another
    session's server has is then no copy of ours. The copies are on the nodes that follow a guest's
    own, each guest of a node beginning one further, so that every node has as many as the others
    where that can be.
    """
    names = list(storage_address_by_node)
    if replica_count > len(names):
        raise ValueError(f"{replica_count} replicas need as many nodes, and there are {len(names)}")
    if len(node_by_guest) * (replica_count - 1) > COPIES:
        raise ValueError(f"a session has at most {COPIES} copies of images")
    copies: list[DiskReplica] = []
    before: dict[str, int] = {}
    for guest, own in node_by_guest.items():
        place = names.index(own)
        others = names[place + 1 :] + names[:place]
        turn = before.get(own, 0)
        before[own] = turn + 1
        for copy in range(replica_count - 1):
            node = others[(turn + copy) % len(others)]
            port = FIRST_PORT + len(copies)
            export = f"{guest}-copy{copy + 1}-{session_id}"
            copies.append(
                DiskReplica(guest, node, Replica(storage_address_by_node[node], port, export))
            )
    return tuple(copies)


def nbd_server_command(
    disk_replica: DiskReplica, image_path: str, qemu_nbd: str
) -> tuple[str, ...]:
    """The command that offers a copy until it is killed; it ends at once when the port is taken.

    `image_path` is absolute, for a name with a colon would be a protocol, and is there in its full
    size. It listens on the node's storage address alone.
    """
    if not image_path.startswith("/"):
        raise ValueError(f"the image's path is not absolute: {image_path!r}")
    return (
        *(qemu_nbd, "--persistent", f"--shared={CLIENTS}", "--format=raw"),
        *("--cache=none", f"--aio={QemuAio.NATIVE.value}", "--discard=ignore"),
        f"--bind={disk_replica.replica.address}",
        f"--port={disk_replica.replica.port}",
        f"--export-name={disk_replica.replica.export}",
        image_path,
    )


def nbd_copy_command(disk_replica: DiskReplica, image_path: str, qemu_img: str) -> tuple[str, ...]:
    """The command that makes a copy the same as the image: every byte of it, zeros as well.

    It runs on the guest's own node, before the guest; the copy's server runs already.
    """
    return (
        *(qemu_img, "convert", "-n", "-S", "0", "-t", "none", "-T", "none"),
        *("-f", "raw", "-O", "raw", image_path, nbd_url(disk_replica.replica)),
    )


def nbd_url(replica: Replica) -> str:
    """The copy as an address of NBD."""
    host = f"[{replica.address}]" if ":" in replica.address else replica.address
    return f"nbd://{host}:{replica.port}/{replica.export}"


class ReplicaServers:
    """The copies of a session; `start_and_fill` once, `stop` once."""

    def __init__(
        self, session: SessionContext, nodes: Sequence[Hypervisor], settings: GuestSettings
    ) -> None:
        self._session = session
        self._nodes = {node.name: node for node in nodes}
        self._settings = settings
        self._servers: dict[str, QemuRun] = {}
        addresses = {node.name: node.spec.storage_address for node in nodes}
        guests = {guest: node.name for node in nodes for guest in node.guests}
        self._mirrors = plan_replicas(addresses, guests, settings.replicas, session.session_id)

    async def start_and_fill(self) -> None:
        """Every copy is there and offered, the same as its image. HostError or EngineError else."""
        size = self._settings.disk_bytes
        expected_s = size * len(self._mirrors) / len(self._nodes) / ASSUMED_WRITE_BYTES_PER_S
        detail = f"{len(self._mirrors)} copies of guests' disks on other nodes"
        self._session.begin_session_phase(SessionPhase.LAY_OUT, None, detail, expected_s)
        (await gather_hosts(self._nodes.values(), self._start_nbd_servers)).results_or_raise()
        (
            await gather_hosts(self._nodes.values(), self._copy_images_of_node_to_replicas)
        ).results_or_raise()
        (
            await gather_hosts(self._nodes.values(), self._require_replicas_fully_written)
        ).results_or_raise()
        for node in self._nodes.values():
            node.replicas = {
                guest: tuple(mirror.replica for mirror in self._mirrors if mirror.guest == guest)
                for guest in node.guests
            }

    async def stop(self) -> None:
        """Offer nothing any more; the files go with the nodes' folders."""
        await asyncio.gather(*(server.kill() for server in self._servers.values()))
        self._servers.clear()

    async def _start_nbd_servers(self, node: Hypervisor) -> None:
        for mirror in self._mirrors:
            if mirror.node != node.name:
                continue
            image = f"{node.folder}/{mirror.image_file_name}"
            size = str(self._settings.disk_bytes)
            await run_and_get_output(node.host, ("truncate", "-s", size, image))
            argv = nbd_server_command(mirror, image, QEMU_NBD)
            self._servers[mirror.replica.export] = QemuRun.start(node.host, argv, node.folder)

    async def _copy_images_of_node_to_replicas(self, node: Hypervisor) -> None:
        """Each image of this node's guests to its copies, one after the other."""
        for mirror in self._mirrors:
            if mirror.guest in node.guests:
                await self._fill_replica(node, mirror)

    async def _require_replicas_fully_written(self, node: Hypervisor) -> None:
        """The copies that this node offers are written in full, as images are."""
        paths = [
            f"{node.folder}/{mirror.image_file_name}"
            for mirror in self._mirrors
            if mirror.node == node.name
        ]
        if paths and (holes := unwritten_or_hole_bytes(await prove_extents(node.workdir, paths))):
            message = (
                f"{format_bytes(holes)} of the copies of guests' disks on node '{node.name}' are "
                f"not written."
            )
            raise HostError(message, "See whether something else changes files in that folder.")

    async def _fill_replica(self, node: Hypervisor, disk_replica: DiskReplica) -> None:
        argv = nbd_copy_command(disk_replica, node.images[disk_replica.guest], QEMU_IMG)
        limit_s = COPY_LIMIT_S + self._settings.disk_bytes / SLOWEST_COPY_BYTES_PER_S
        server = self._servers[disk_replica.replica.export]
        for left in reversed(range(SERVER_TRIES)):
            try:
                await run_and_get_output(node.host, argv, limit_s=limit_s)
            except EngineError as fault:
                refused = CONNECTION_REFUSED in fault.message
                # Whoever answered instead of ours has its port, and ours is about to say so.
                if await server.wait_for_exit(SERVER_RETRY_S if refused else SERVER_END_S):
                    raise _nbd_server_error(disk_replica, server) from None
                if not left or not refused:
                    raise
            else:
                return


def _nbd_server_error(disk_replica: DiskReplica, server: QemuRun) -> HostError:
    message = (
        f"The copy of guest '{disk_replica.guest}' cannot be offered on node "
        f"'{disk_replica.node}': "
        f"{server.exit_and_console_text().rstrip('.') or 'it said nothing'}."
    )
    return HostError(message, "Free that port there, or correct the node's storage_address.")
