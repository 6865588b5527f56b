"""A host whose agent is reached over a link: two byte streams and an end."""

from __future__ import annotations

import asyncio
import contextlib
from abc import abstractmethod
from typing import Final, Protocol

from iolab.errors import HostError
from iolab.model.host import HostSpec
from iolab.run.hosts.answers import read_hello
from iolab.run.hosts.base import Hello, Host, HostLost, Message, Stream
from iolab.run.hosts.channel import Channel, Outgoing

HELLO_LIMIT_S: Final = 30.0
"""From the start of the agent to its hello: logins over slow links take seconds, not more."""

LEASE: Final = "lease"
"""The verb by which an agent is told how long it may be left alone; agents of tests may lack it."""

LEASE_S: Final = 60
"""An agent that hears nothing for so long ends by itself: its cable was cut, and no sshd would tell
it for many minutes. Longer than any stall of a busy controller."""

LEASE_RENEWAL_S: Final = 10.0
"""Between two words to an agent that is asked nothing else: five may be lost or late."""

BYE_LIMIT_S: Final = 10.0
"""An agent without processes and files says bye at once; one with both needs to remove them."""


class Link(Protocol):
    """The byte streams of one agent, and whatever process carries them."""

    @property
    def reader(self) -> asyncio.StreamReader:
        """What the agent says."""

    @property
    def writer(self) -> Outgoing:
        """What the agent hears; its end is the end of the lease."""

    async def last_words(self) -> str:
        """What the carrier said on its standard error and how it ended, for people."""

    async def end(self) -> None:
        """Wait for the end of the carrier, and force it when it does not come."""


class LinkedHost(Host):
    """Everything of a host but how its link is made."""

    def __init__(self, spec: HostSpec) -> None:
        super().__init__(spec)
        self._link: Link | None = None
        self._channel: Channel | None = None
        self._hello: Hello | None = None
        self._broken: HostError | None = None
        self._renewing: asyncio.Task[None] | None = None

    @abstractmethod
    async def open_link(self) -> Link:
        """Start the agent. Raises HostError."""

    @property
    def lost(self) -> str | None:
        """Why the host can no longer be spoken to; None while it can."""
        fault = self._broken or (self._channel.lost if self._channel else None)
        return fault.happened if fault else None

    async def connect(self) -> Hello:
        """Start the agent and hear its hello; a failure is remembered and told again."""
        if self._hello:
            return self._hello
        if self._broken:
            raise self._broken
        try:
            self._link = await self.open_link()
            link = self._link
            self._channel = Channel(self.name, link.reader, link.writer, link.last_words)
            hello = read_hello(self.name, await self._channel.hello(HELLO_LIMIT_S))
        except HostError as fault:
            self._broken = fault
            await self.close()
            raise
        self._hello = hello
        if LEASE in hello.capabilities:
            self._renewing = asyncio.create_task(self._renew(), name=f"lease of {self.name}")
        return hello

    async def ask(
        self, verb: str, payload: bytes = b"", *, deadline_s: float, **arguments: object
    ) -> Message:
        """The final answer; see `Host.ask`."""
        stream = self.stream(verb, payload, **arguments)
        answer: Message | None = None
        try:
            async with asyncio.timeout(deadline_s):
                async for message in stream:
                    answer = message
        except TimeoutError:
            raise self.give_up(f"did not answer '{verb}' within {deadline_s:g} s") from None
        finally:
            await stream.aclose()
        if answer is None:
            raise self.give_up(f"gave no answer to '{verb}'")
        return answer

    def stream(self, verb: str, payload: bytes = b"", **arguments: object) -> Stream:
        """A request with all its answers; see `Host.stream`."""
        return self._connected().request(verb, payload, arguments)

    def give_up(self, reason: str) -> HostLost:
        """Break the connection; see `Host.give_up`."""
        return self._connected().give_up(reason)

    async def close(self) -> None:
        """Bye while the agent still speaks, then the end of the link by force if need be."""
        if self._renewing:
            self._renewing.cancel()
            await asyncio.gather(self._renewing, return_exceptions=True)
            self._renewing = None
        if self._channel and self._hello and not self.lost:
            with contextlib.suppress(HostError):
                await self.ask("bye", deadline_s=BYE_LIMIT_S)
        if self._channel:
            await self._channel.close()
        if self._link:
            await self._link.end()
            self._link = None

    async def _renew(self) -> None:
        """Be heard by the agent every few seconds until the host is lost or closed."""
        with contextlib.suppress(HostError):
            while not self.lost:
                stream = self.stream(LEASE, seconds=LEASE_S)
                # The answer may wait behind much output; the agent has heard us all the same.
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(LEASE_RENEWAL_S):
                        async for _ in stream:
                            pass
                await stream.aclose()
                await asyncio.sleep(LEASE_RENEWAL_S)

    def _connected(self) -> Channel:
        if self._channel is None:
            reason = f"Host '{self.name}' is not connected."
            raise self._broken or HostLost(reason, "Connect it first.")
        return self._channel
