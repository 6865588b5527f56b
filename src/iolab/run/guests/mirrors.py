"""Copies of guests' images on other nodes: who has which, and the commands that keep them.

A node that has a copy runs `qemu-nbd` on it; the guest's own QEMU writes to all copies at once.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from iolab.plan.guest_limits import COPIES
from iolab.run.guests.machine import Aio, Replica

FIRST_PORT: Final = 10810
"""After NBD's own port, which a server of the node's may have; below those the kernel gives out."""

CLIENTS: Final = 2
"""At a time: the guest, and one whose connection a node has not yet seen the end of."""


@dataclass(frozen=True, slots=True)
class Mirror:
    """A copy of the image of a guest, on a node that is not its own."""

    guest: str
    node: str
    replica: Replica

    @property
    def image(self) -> str:
        """The file's name, in that node's scratch folder."""
        return f"{self.replica.export}.img"


def mirrors(
    nodes: Mapping[str, str], guests: Mapping[str, str], replicas: int, session: str
) -> tuple[Mirror, ...]:
    """The copies of a session, guest after guest. ValueError when there are too few nodes.

    `nodes` has the storage address of each, `guests` the node of each; `replicas` counts the image
    itself. Exports bear the session's id: a port that another session's server has is then no copy
    of ours. The copies are on the nodes that follow a guest's own, each guest of a node beginning
    one further, so that every node has as many as the others where that can be.
    """
    names = list(nodes)
    if replicas > len(names):
        raise ValueError(f"{replicas} replicas need as many nodes, and there are {len(names)}")
    if len(guests) * (replicas - 1) > COPIES:
        raise ValueError(f"a session has at most {COPIES} copies of images")
    found: list[Mirror] = []
    before: dict[str, int] = {}
    for guest, own in guests.items():
        place = names.index(own)
        others = names[place + 1 :] + names[:place]
        turn = before.get(own, 0)
        before[own] = turn + 1
        for copy in range(replicas - 1):
            node = others[(turn + copy) % len(others)]
            port = FIRST_PORT + len(found)
            export = f"{guest}-copy{copy + 1}-{session}"
            found.append(Mirror(guest, node, Replica(nodes[node], port, export)))
    return tuple(found)


def server_argv(
    mirror: Mirror, image: str, qemu_nbd: str, aio: Aio = Aio.NATIVE
) -> tuple[str, ...]:
    """The command that offers a copy until it is killed; it ends at once when the port is taken.

    `image` is absolute, for a name with a colon would be a protocol, and is there in its full size.
    It listens on the node's storage address alone.
    """
    if not image.startswith("/"):
        raise ValueError(f"the image's path is not absolute: {image!r}")
    return (
        *(qemu_nbd, "--persistent", f"--shared={CLIENTS}", "--format=raw"),
        *("--cache=none", f"--aio={aio.value}", "--discard=ignore"),
        f"--bind={mirror.replica.address}",
        f"--port={mirror.replica.port}",
        f"--export-name={mirror.replica.export}",
        image,
    )


def copy_argv(mirror: Mirror, image: str, qemu_img: str) -> tuple[str, ...]:
    """The command that makes a copy the same as the image: every byte of it, zeros as well.

    It runs on the guest's own node, before the guest; the copy's server runs already.
    """
    return (
        *(qemu_img, "convert", "-n", "-S", "0", "-t", "none", "-T", "none"),
        *("-f", "raw", "-O", "raw", image, nbd_address(mirror.replica)),
    )


def nbd_address(replica: Replica) -> str:
    """The copy as an address of NBD."""
    host = f"[{replica.address}]" if ":" in replica.address else replica.address
    return f"nbd://{host}:{replica.port}/{replica.export}"
