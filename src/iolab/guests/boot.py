"""One boot of a guest: from the start of its QEMU to the first word of the agent in it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Final

from iolab.errors import HostError
from iolab.guests.machine import agent_socket
from iolab.guests.qemu import QemuRun, Relay
from iolab.hosts.channel import Outgoing
from iolab.hosts.host import Host

SOCKET_LIMIT_S: Final = 60.0
"""For a QEMU to make its sockets: it reads a kernel of 50 MB first, from a disk under load."""

LAST_WORDS_S: Final = 2.0
"""How long a guest that broke off may take to end, so that its end can be told."""

POWER_OFF_LIMIT_S: Final = 15.0
"""From the end of the agent in a guest to that of its QEMU; emulated and under load, seconds."""


class BootHung(HostError):
    """A guest that neither spoke in time nor ended: another try may go well."""


@dataclass(frozen=True, slots=True)
class Booted:
    """A guest that spoke: its QEMU, the way to the agent in it, and how long it took."""

    qemu: QemuRun
    relay: Relay
    seconds: float


class GuestLink:
    """The link of a guest's host; `leave` ends what else is open to it."""

    def __init__(self, booted: Booted, leave: Callable[[], Awaitable[None]]) -> None:
        self._booted = booted
        self._leave = leave
        self.reader = booted.relay.reader
        self.writer: Outgoing = booted.relay
        """The way to the agent; its end is the end of the lease, and the guest powers off."""

    async def last_words(self) -> str:
        """How its QEMU ended and what the console said last."""
        await self._booted.qemu.gone(LAST_WORDS_S)
        return self._booted.qemu.words()

    async def end(self) -> None:
        """Wait until the guest has powered off; kill it when it does not."""
        await self._booted.relay.end()
        await self._leave()
        await self._booted.qemu.gone(POWER_OFF_LIMIT_S)
        await self._booted.qemu.kill()


async def boot(node: Host, argv: Sequence[str], folder: str, guest: str, limit_s: float) -> Booted:
    """Start a guest and wait for its first word; its socket is in `folder`.

    Raises BootHung when there is none in time, HostError when it ends; nothing of it is left then.
    """
    began_s = asyncio.get_running_loop().time()
    qemu = QemuRun.start(node, argv, folder)
    relay: Relay | None = None
    try:
        async with asyncio.timeout(limit_s):
            relay = await _connected(node, qemu, folder, guest)
            await _first_of(relay.spoke, relay.ended, qemu.ended)
        await _require(relay.spoke, node, qemu, guest)
        return Booted(qemu, relay, asyncio.get_running_loop().time() - began_s)
    except BaseException as fault:
        said = qemu.words()
        if relay is not None:
            await relay.end()
        await qemu.kill()
        if isinstance(fault, TimeoutError):
            raise _hung(node, said, guest, limit_s) from None
        raise


async def _connected(node: Host, qemu: QemuRun, folder: str, guest: str) -> Relay:
    """The way to the agent; HostError when the QEMU ends before it is there."""
    connecting = asyncio.create_task(
        Relay.to(node, folder, agent_socket(guest), SOCKET_LIMIT_S), name=f"the way to {guest}"
    )
    ending = asyncio.create_task(qemu.ended.wait())
    try:
        await asyncio.wait({connecting, ending}, return_when=asyncio.FIRST_COMPLETED)
        if connecting.done():
            return connecting.result()
        raise await _ended(node, qemu, guest)
    finally:
        ending.cancel()
        if not connecting.done():
            connecting.cancel()
        await asyncio.gather(connecting, ending, return_exceptions=True)


async def _first_of(*events: asyncio.Event) -> None:
    """Wait until one of them is set."""
    waiting = [asyncio.create_task(event.wait()) for event in events]
    try:
        await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in waiting:
            task.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)


async def _require(spoke: asyncio.Event, node: Host, qemu: QemuRun, guest: str) -> None:
    if not spoke.is_set():
        raise await _ended(node, qemu, guest)


async def _ended(node: Host, qemu: QemuRun, guest: str) -> HostError:
    await qemu.gone(LAST_WORDS_S)
    words = qemu.words() or "it said nothing"
    happened = f"Guest '{guest}' did not boot on node '{node.name}': {words.rstrip('.')}."
    return HostError(happened, "Correct what it says, or leave that node out.")


def _hung(node: Host, said: str, guest: str, limit_s: float) -> BootHung:
    last = f" Its console said last: {said.rstrip('.')}." if said else ""
    happened = f"Guest '{guest}' on node '{node.name}' said nothing for {limit_s:g} s.{last}"
    return BootHung(happened, "Raise vm.boot_limit, or boot fewer at a time with vm.boots.")
