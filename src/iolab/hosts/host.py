"""A host as sessions see it: an agent reached over a link, two byte streams and an end."""

from __future__ import annotations

import asyncio
import contextlib
import math
from abc import ABC, abstractmethod
from typing import Final, Protocol

from iolab.core.host import HostFacts, HostSpec
from iolab.core.study import LINK_TIMEOUT_S
from iolab.errors import HostError
from iolab.hosts.answers import ByeAnswer, Leftover, read_answer, read_hello
from iolab.hosts.channel import Channel, FrameWriter
from iolab.hosts.message import Hello, HostLostError, Message, ReplyStream

HELLO_LIMIT_S: Final = 30.0
"""From the start of the agent to its hello: logins over slow links take seconds, not more."""

LEASE: Final = "lease"
"""The verb by which an agent is told how long it may be left alone; agents of tests may lack it."""

WORD_S: Final = 3.0
"""Between two words to an agent, at most; a fifth of the link's timeout where that is less."""

WORDS_UNANSWERED: Final = 10
"""Then the link carries nothing: what was said is still on its way, and more would not help."""

LOOK_S: Final = 1.0
"""Between two looks at the silence. A controller that stood still counts two of them at most: what
the host said meanwhile is yet to be read."""

BYE_LIMIT_S: Final = 10.0
"""An agent without processes and files says bye at once; one with both needs to remove them."""


class AgentLink(Protocol):
    """The byte streams of one agent, and whatever process carries them."""

    @property
    def reader(self) -> asyncio.StreamReader:
        """What the agent says."""

    @property
    def writer(self) -> FrameWriter:
        """What the agent hears; its end is the end of the lease."""

    async def exit_reason(self) -> str:
        """What the carrier said on its standard error and how it ended, for people."""

    async def wait_for_exit_or_kill(self) -> None:
        """Wait for the end of the carrier, and force it when it does not come."""


class Host(ABC):
    """A machine with an agent on it. One connection in its life; once lost it stays lost."""

    def __init__(self, spec: HostSpec) -> None:
        self.spec = spec
        self._link: AgentLink | None = None
        self._channel: Channel | None = None
        self._hello: Hello | None = None
        self._broken: HostError | None = None
        self._keeping: asyncio.Task[None] | None = None
        self._borne_s: float | None = None
        self.leftovers_at_close: tuple[Leftover, ...] = ()
        """What its agent could not end or remove, once it was closed."""
        self.open_folders: set[str] = set()
        """Scratch folders that its agent holds, and after the end those that it said nothing of."""
        self.link_timeout_s = LINK_TIMEOUT_S
        """How long agent and controller may hear nothing of each other."""

    @property
    def name(self) -> str:
        """The host's name in the study."""
        return self.spec.name

    @abstractmethod
    async def start_agent(self) -> AgentLink:
        """Start the agent. Raises HostError."""

    async def with_pod_facts(self, facts: HostFacts, _path: str | None) -> HostFacts:
        """The facts with what is known of the host only from outside of it."""
        return facts

    @property
    def lost_reason(self) -> str | None:
        """Why the host can no longer be spoken to, one sentence; None while it can."""
        fault = self._broken or (self._channel.lost if self._channel else None)
        return fault.message if fault else None

    async def connect(self) -> Hello:
        """Start the agent and hear its hello; the same, or its failure, is told again."""
        if self._hello:
            return self._hello
        if self._broken:
            raise self._broken
        try:
            self._link = await self.start_agent()
            link = self._link
            self._channel = Channel(self.name, link.reader, link.writer, link.exit_reason)
            hello = read_hello(self.name, await self._channel.receive_hello(HELLO_LIMIT_S))
        except HostError as fault:
            self._broken = fault
            await self.close()
            raise
        self._hello = hello
        if LEASE in hello.capabilities:
            self._keeping = asyncio.create_task(
                self._renew_lease_and_watch_silence(), name=f"lease of {self.name}"
            )
        return hello

    async def request(
        self, verb: str, payload: bytes = b"", *, deadline_s: float, **arguments: object
    ) -> Message:
        """The final answer to a request; messages before it are dropped.

        Raises AgentRefusalError on an error, else HostLostError. A host that misses the deadline is
        given up, because nobody knows what it is doing.
        """
        stream = self.stream(verb, payload, **arguments)
        answer: Message | None = None
        try:
            async with asyncio.timeout(deadline_s):
                async for message in stream:
                    answer = message
        except TimeoutError:
            raise self.end_as_lost(f"did not answer '{verb}' within {deadline_s:g} s") from None
        finally:
            await stream.aclose()
        if answer is None:
            raise self.end_as_lost(f"gave no answer to '{verb}'")
        if verb == "scratch_open":
            self.open_folders.add(str(answer.header.get("dir")))
        elif verb == "scratch_close":
            self.open_folders.discard(str(arguments.get("dir")))
        return answer

    def stream(self, verb: str, payload: bytes = b"", **arguments: object) -> ReplyStream:
        """A request with all its answers; it is sent when the first one is awaited."""
        return self._require_channel().create_request(verb, payload, arguments)

    def is_working_on(self, request_id: int) -> bool:
        """Whether the final answer to a request is yet to come, also of one that was closed."""
        return self._channel is not None and self._channel.is_unanswered(request_id)

    def end_as_lost(self, reason: str) -> HostLostError:
        """Break the connection, so that the agent's lease ends; the error says why."""
        return self._require_channel().end_as_lost(reason)

    @property
    def silent_s(self) -> float:
        """For how long nothing was heard of the agent, which should speak every few seconds."""
        return self._channel.silent_s if self._channel and self._keeping else 0.0

    async def set_lease_limit(self, limit_s: float | None) -> None:
        """Have the agent wait so long for the next word; as long as usual again with None."""
        self._borne_s = limit_s
        if self._keeping and not self.lost_reason:
            await self._renew_lease()

    async def close(self) -> None:
        """Bye while the agent still speaks, then the end of the link by force if need be."""
        if self._keeping:
            self._keeping.cancel()
            await asyncio.gather(self._keeping, return_exceptions=True)
            self._keeping = None
        if self._channel and self._hello and not self.lost_reason:
            with contextlib.suppress(HostError):
                answer = await self.request("bye", deadline_s=BYE_LIMIT_S)
                self.leftovers_at_close = read_answer(self.name, ByeAnswer, answer).left
                self.open_folders.clear()
        if self._channel:
            await self._channel.close()
        if self._link:
            await self._link.wait_for_exit_or_kill()
            self._link = None

    async def _renew_lease_and_watch_silence(self) -> None:
        """Be heard every few seconds, and listen, until the host is lost or closed."""
        loop, channel = asyncio.get_running_loop(), self._require_channel()
        word_s = min(WORD_S, self.link_timeout_s / 5)
        words: set[asyncio.Task[None]] = set()
        looked, spoke = loop.time(), -word_s
        try:
            while not self.lost_reason:
                now = loop.time()
                channel.add_silence(min(now - looked, 2 * LOOK_S))
                looked = now
                if channel.silent_s >= self.link_timeout_s:
                    self.end_as_lost(f"has been silent for {self.link_timeout_s:g} s")
                elif now - spoke >= word_s and len(words) < WORDS_UNANSWERED:
                    word, spoke = asyncio.create_task(self._renew_lease()), now
                    words.add(word)
                    word.add_done_callback(words.discard)
                await asyncio.sleep(min(LOOK_S, word_s))
        finally:
            for word in words:
                word.cancel()
            await asyncio.gather(*words, return_exceptions=True)

    async def _renew_lease(self) -> None:
        """Tell the agent how long to wait for the next word; its answer is a sign of life."""
        seconds = math.ceil(self._borne_s or self.link_timeout_s)
        stream = self.stream(LEASE, seconds=seconds)
        with contextlib.suppress(HostError):
            async for _ in stream:
                pass

    def _require_channel(self) -> Channel:
        if self._channel is None:
            reason = f"Host '{self.name}' is not connected."
            raise self._broken or HostLostError(reason, "Connect it first.")
        return self._channel
