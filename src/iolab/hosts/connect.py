"""A host whose agent is reached over a link: two byte streams and an end."""

from __future__ import annotations

import asyncio
import contextlib
import math
import os
from abc import abstractmethod
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Final, Protocol

from iolab.core.host import HostSpec
from iolab.core.study import LINK_TIMEOUT_S
from iolab.errors import HostError
from iolab.hosts.agents import agent_binary
from iolab.hosts.answers import read_hello
from iolab.hosts.channel import Channel, Outgoing
from iolab.hosts.host import Hello, Host, HostLost, Message, ReachError, Stream
from iolab.hosts.process import ending, run_here, start_process
from iolab.hosts.push import Prefix, ProgramFiles, push
from iolab.study.inventory import (
    CONTEXT_CHARACTERS,
    PodSelection,
    listing_words,
    read_allocation,
    step_environment,
    step_words,
)
from iolab.study.wording import shown

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


class ConnectedHost(Host):
    """Everything of a host but how its link is made."""

    def __init__(self, spec: HostSpec) -> None:
        super().__init__(spec)
        self._link: Link | None = None
        self._channel: Channel | None = None
        self._hello: Hello | None = None
        self._broken: HostError | None = None
        self._keeping: asyncio.Task[None] | None = None
        self._borne_s: float | None = None
        self.link_timeout_s = LINK_TIMEOUT_S
        """How long agent and controller may hear nothing of each other."""

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
            self._keeping = asyncio.create_task(self._keep(), name=f"lease of {self.name}")
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

    @property
    def silent_s(self) -> float:
        """For how long nothing was heard of the agent; see `Host.silent_s`."""
        return self._channel.silent_s if self._channel and self._keeping else 0.0

    async def bear_silence(self, limit_s: float | None) -> None:
        """See `Host.bear_silence`."""
        self._borne_s = limit_s
        if self._keeping and not self.lost:
            await self._say_lease()

    async def close(self) -> None:
        """Bye while the agent still speaks, then the end of the link by force if need be."""
        if self._keeping:
            self._keeping.cancel()
            await asyncio.gather(self._keeping, return_exceptions=True)
            self._keeping = None
        if self._channel and self._hello and not self.lost:
            with contextlib.suppress(HostError):
                await self.ask("bye", deadline_s=BYE_LIMIT_S)
        if self._channel:
            await self._channel.close()
        if self._link:
            await self._link.end()
            self._link = None

    async def _keep(self) -> None:
        """Be heard every few seconds, and listen, until the host is lost or closed."""
        loop, channel = asyncio.get_running_loop(), self._connected()
        word_s = min(WORD_S, self.link_timeout_s / 5)
        words: set[asyncio.Task[None]] = set()
        looked, spoke = loop.time(), -word_s
        try:
            while not self.lost:
                now = loop.time()
                channel.age(min(now - looked, 2 * LOOK_S))
                looked = now
                if channel.silent_s >= self.link_timeout_s:
                    self.give_up(f"has been silent for {self.link_timeout_s:g} s")
                elif now - spoke >= word_s and len(words) < WORDS_UNANSWERED:
                    word, spoke = asyncio.create_task(self._say_lease()), now
                    words.add(word)
                    word.add_done_callback(words.discard)
                await asyncio.sleep(min(LOOK_S, word_s))
        finally:
            for word in words:
                word.cancel()
            await asyncio.gather(*words, return_exceptions=True)

    async def _say_lease(self) -> None:
        """Tell the agent how long to wait for the next word; its answer is a sign of life."""
        seconds = math.ceil(self._borne_s or self.link_timeout_s)
        stream = self.stream(LEASE, seconds=seconds)
        with contextlib.suppress(HostError):
            async for _ in stream:
                pass

    def _connected(self) -> Channel:
        if self._channel is None:
            reason = f"Host '{self.name}' is not connected."
            raise self._broken or HostLost(reason, "Connect it first.")
        return self._channel


class LocalHost(ConnectedHost):
    """The agent as a subprocess in a session of its own.

    If the controller dies by any means, the agent's standard input ends and it cleans up alone.
    """

    def __init__(self, spec: HostSpec, agent: Path | None = None) -> None:
        super().__init__(spec)
        self._agent = agent

    async def open_link(self) -> Link:
        """Start the agent where it lies."""
        return await start_process(self.name, [str(self._agent or agent_binary())])


class CommandHost(ConnectedHost):
    """The agent behind a prefix, pushed when it is not there yet.

    `turns` bounds the hosts that are pushed to at a time, over all that share it.
    """

    def __init__(
        self, spec: HostSpec, agent: Path | None = None, turns: asyncio.Semaphore | None = None
    ) -> None:
        super().__init__(spec)
        self._agent = agent
        self._turns = turns or asyncio.Semaphore(1)

    def prefix(self) -> Prefix:
        """The words that reach the host. Raises HostError."""
        return Prefix(self.name, self.spec.command)

    async def open_link(self) -> Link:
        """Push the agent if need be, and start it."""
        prefix = self.prefix()
        async with self._turns:
            remote = await push(ProgramFiles(prefix), self._agent)
        return await start_process(self.name, prefix.argv(remote), prefix.environment)


_SLURM_HELP: Final = "See with 'squeue' and 'sinfo -N' that the job still runs and the node is up."


class SlurmHost(CommandHost):
    """The agent as a job step. When srun goes, slurmstepd ends the agent's input: its lease."""

    def __init__(
        self,
        spec: HostSpec,
        turns: asyncio.Semaphore,
        agent: Path | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(spec, agent, turns)
        self._environment = os.environ if environment is None else environment

    def prefix(self) -> Prefix:
        """That of a job step on the node. Raises HostError."""
        allocation = read_allocation(self._environment)
        if self.name not in allocation.nodes:
            happened = f"Host {shown(self.name)} is no node of Slurm job {allocation.job}."
            raise HostError(happened, f"Run in a job that has it, as by 'salloc -w {self.name}'.")
        environment = step_environment(self._environment)
        return Prefix(self.name, step_words(allocation.job, self.name), environment)

    async def open_link(self) -> Link:
        """Push the agent if need be, and start it."""
        try:
            return await super().open_link()
        except ReachError as fault:
            raise ReachError(fault.happened, _SLURM_HELP) from None


LOOK_UP_LIMIT_S: Final = 30.0
"""More than the 20 s that kubectl is told to wait for its cluster; a plugin that asks for a
password waits for ever."""

LISTING_BYTES: Final = 64 << 20
"""A pod is described in about 10 kB; of a thousand pods there is room for six times as much."""

_KUBECTL_HELP: Final = "Try the same with 'kubectl get pods' by hand."


async def look_up_pods(
    selection: PodSelection, limit_s: float = LOOK_UP_LIMIT_S
) -> tuple[str | None, str]:
    """The name of kubectl's context (None inside a cluster, where there is none), and its pods.

    The second is the JSON for `pods_inventory`. HostError with kubectl's own words.
    """
    code, output, _ = await _answer(("kubectl", "config", "current-context"), limit_s)
    context = output.decode("utf-8", "replace").strip() if code == 0 else ""
    if not context.isprintable() or len(context) > CONTEXT_CHARACTERS:
        raise HostError("The name of kubectl's context cannot be written down.", "Rename it.")
    code, output, stderr = await _answer(listing_words(selection), limit_s)
    if code != 0:
        raise HostError(f"kubectl cannot list the pods ({ending(code, stderr)}).", _KUBECTL_HELP)
    if len(output) > LISTING_BYTES:
        raise HostError(f"kubectl's list has more than {LISTING_BYTES} bytes.", "Select fewer.")
    return context or None, output.decode("utf-8", "replace")


async def _answer(words: tuple[str, ...], limit_s: float) -> tuple[int | None, bytes, bytes]:
    """Exit code, output and errors of a command that is asked nothing."""
    try:
        return await run_here(words, limit_s=limit_s, output_bytes=LISTING_BYTES + 1)
    except TimeoutError:
        happened = f"'{words[0]} {words[1]}' did not answer within {limit_s:g} s."
        raise HostError(happened, _KUBECTL_HELP) from None
    except OSError as error:
        raise HostError(f"'{words[0]}' does not start ({error.strerror}).", _KUBECTL_HELP) from None


Boot = Callable[[HostSpec], Awaitable[Link]]
"""Starts a host and gives the way to the agent on it. Raises HostError."""


GUEST_TIMEOUT_S: Final = 60.0
"""An emulated guest may stand still for long, and ends with its node's agent whatever it hears."""


class BootedHost(ConnectedHost):
    """A host that the session boots; somebody who can takes care of it first, by setting `boot`."""

    def __init__(self, spec: HostSpec) -> None:
        super().__init__(spec)
        self.boot: Boot | None = None
        self.link_timeout_s = GUEST_TIMEOUT_S

    async def open_link(self) -> Link:
        """Boot it."""
        if self.boot is None:
            happened = f"The guest '{self.name}' has not been given a node to run on."
            raise HostError(happened, "This is a fault of iolab; please report it.")
        return await self.boot(self.spec)
