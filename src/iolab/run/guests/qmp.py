"""QEMU's monitor: commands and answers of the protocol that QEMU calls QMP.

A guest may have broken out into its QEMU, so what comes is as untrusted as a host's words. Source:
https://www.qemu.org/docs/master/interop/qmp-spec.html
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from typing import Any, Final, Self

from iolab.errors import HostError
from iolab.run.hosts.base import HostLost
from iolab.run.hosts.channel import Outgoing
from iolab.run.hosts.text import printable, printable_bytes

LINE_LIMIT_BYTES: Final = 1 << 20
"""An answer with two histograms has some 10 kB. No more than what a relay's reader holds."""

GREETING_LIMIT_S: Final = 60.0
"""From the connection to the greeting: a QEMU that starts among many, on processors under load."""

SAID_CHARACTERS: Final = 200
"""Of what QEMU said that go into a sentence."""

_SEE: Final = "See the last words of the guest's console, and run again."


class MonitorRefusal(HostError):
    """A command that QEMU answered with an error; the monitor goes on."""


class Monitor:
    """One guest's monitor. Commands go one after the other; what nobody asked for is dropped.

    Once it is lost it stays lost, and says why.
    """

    def __init__(self, guest: str, reader: asyncio.StreamReader, writer: Outgoing) -> None:
        self._guest = printable(guest)
        self._reader = reader
        self._writer = writer
        self._turn = asyncio.Lock()
        self._last_id = 0
        self._waiting: asyncio.Future[dict[str, Any]] | None = None
        self._lost: HostLost | None = None
        self._listening: asyncio.Task[None] | None = None

    @classmethod
    async def open(
        cls,
        guest: str,
        reader: asyncio.StreamReader,
        writer: Outgoing,
        limit_s: float = GREETING_LIMIT_S,
    ) -> Self:
        """A monitor that takes commands, over a connection to its socket. HostLost without one."""
        monitor = cls(guest, reader, writer)
        try:
            async with asyncio.timeout(limit_s):
                greeting = await monitor._message()
        except TimeoutError:
            raise monitor._give_up(f"said nothing for {limit_s:g} s") from None
        if "QMP" not in greeting:
            said = printable(json.dumps(greeting), SAID_CHARACTERS)
            raise monitor._give_up(f"began with something else than a greeting: {said}")
        monitor._listening = asyncio.create_task(monitor._listen(), name=f"monitor of {guest}")
        try:
            await monitor.command("qmp_capabilities", deadline_s=limit_s)
        except BaseException:
            await monitor.close()
            raise
        return monitor

    async def command(
        self, name: str, arguments: Mapping[str, object] | None = None, *, deadline_s: float
    ) -> object:
        """What QEMU returns, any JSON. MonitorRefusal when it answers with an error.

        HostLost when the monitor is lost, HostError when the answer misses the deadline: it may be
        asked again, and what comes late is dropped.
        """
        try:
            async with asyncio.timeout(deadline_s), self._turn:
                answer = await self._ask(name, arguments or {})
        except TimeoutError:
            happened = f"The hypervisor of guest '{self._guest}' did not answer '{name}' within "
            raise HostError(f"{happened}{deadline_s:g} s.", _SEE) from None
        if "return" in answer:
            return answer["return"]
        error = answer.get("error")
        says = error.get("desc") if isinstance(error, dict) else None
        said = printable(str(says or "it gave no reason"), SAID_CHARACTERS).rstrip(".")
        happened = f"The hypervisor of guest '{self._guest}' refused '{name}': {said}."
        raise MonitorRefusal(happened, "Use a QEMU of at least version 7.2 on its node.")

    async def close(self) -> None:
        """Listen no more, and end the connection; the guest goes on."""
        self._give_up("was closed")
        if self._listening:
            await asyncio.gather(self._listening, return_exceptions=True)

    async def _ask(self, name: str, arguments: Mapping[str, object]) -> dict[str, Any]:
        if self._lost:
            raise HostLost(self._lost.happened, self._lost.do)
        self._last_id += 1
        asked = {"execute": name, "arguments": dict(arguments), "id": self._last_id}
        self._waiting = asyncio.get_running_loop().create_future()
        try:
            self._writer.write(json.dumps(asked).encode() + b"\n")
            await self._writer.drain()
            return await self._waiting
        except OSError:
            raise self._give_up("does not listen any more") from None
        finally:
            self._waiting = None

    async def _listen(self) -> None:
        """Hand answers to who waits; read on even when nobody does, or the node would stall."""
        try:
            while True:
                self._take(await self._message())
        except HostLost:
            # Whoever asks is told.
            pass

    def _take(self, message: dict[str, Any]) -> None:
        if "event" in message:
            return
        number = message.get("id")
        if not isinstance(number, int) or not 0 < number <= self._last_id:
            said = printable(json.dumps(message), SAID_CHARACTERS)
            raise self._give_up(f"answered what was not asked: {said}")
        # An older one is of somebody who was cancelled meanwhile.
        if number == self._last_id and self._waiting and not self._waiting.done():
            self._waiting.set_result(message)

    async def _message(self) -> dict[str, Any]:
        """The next line; HostLost when there is none, or none that makes sense."""
        try:
            line = await self._reader.readline()
        except ValueError:
            raise self._give_up("said a line without an end") from None
        except OSError as fault:
            raise self._give_up(f"broke off: {fault}") from None
        if not line.endswith(b"\n"):
            raise self._give_up("ended")
        try:
            message = json.loads(line) if len(line) <= LINE_LIMIT_BYTES else None
        except (ValueError, RecursionError):
            message = None
        if not isinstance(message, dict):
            said = printable_bytes(line[:SAID_CHARACTERS], SAID_CHARACTERS)
            raise self._give_up(f"said what is not QMP: {said}")
        return message

    def _give_up(self, reason: str) -> HostLost:
        """The monitor is lost, for the first such reason; whoever waits is told."""
        if self._lost is None:
            happened = f"The hypervisor of guest '{self._guest}' {reason.rstrip('.')}."
            self._lost = HostLost(happened, _SEE)
            self._writer.close()
        if self._waiting and not self._waiting.done():
            self._waiting.set_exception(HostLost(self._lost.happened, self._lost.do))
        if self._listening and self._listening is not asyncio.current_task():
            self._listening.cancel()
        return self._lost
