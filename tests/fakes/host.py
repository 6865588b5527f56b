"""A host in process whose agent follows a script: for tests of sessions, without a machine.

It speaks the real wire through the real channel. Time is the running loop's, so that tests may run
it on a loop whose time jumps.
"""

from __future__ import annotations

import asyncio

from iolab.core.host import HostSpec, HostTransport
from iolab.hosts.host import AgentLink, Host
from iolab.loads.fileio.engines.fio import NULL_FOLDER
from tests.fakes.agent import FakeAgent
from tests.fakes.guests import FakeNodeAgent
from tests.fakes.script import FakeScript


class FakeHost(Host):
    """A scripted host; `agent` shows what it was asked and what it still holds."""

    def __init__(self, name: str = "local", script: FakeScript | None = None) -> None:
        super().__init__(HostSpec(name, HostTransport.LOCAL))
        self.script = script or FakeScript()
        self._fake: FakeLink | None = None

    async def start_agent(self) -> AgentLink:
        """Begin; the agent says hello at once."""
        self._fake = FakeLink(self.script)
        return self._fake

    @property
    def agent(self) -> FakeAgent:
        """The agent of this host; ValueError before it was connected."""
        if self._fake is None:
            raise ValueError("the host was never connected")
        return self._fake.agent

    def asked(self, verb: str) -> list[dict[str, object]]:
        """Every request with that verb, in order."""
        return [request for name, request in self.agent.asked if name == verb]

    @property
    def runs(self) -> list[dict[str, object]]:
        """What ran on the host's own target: not what was to see the generator's limit."""
        return [request for request in self.asked("run") if request["cwd"] != NULL_FOLDER]

    @property
    def left_behind(self) -> list[str]:
        """Processes, folders and file systems that the agent still has, and the link.

        Empty after a good end.
        """
        if self._fake is None:
            return []
        agent = self._fake.agent
        link = [] if self._fake.closed else ["an open link"]
        runs = [f"run {run}" for run in agent.processes]
        return [*runs, *agent.folders, *agent.filesystems, *link]


class FakeLink:
    """Both directions of the wire in memory."""

    def __init__(self, script: FakeScript) -> None:
        self.reader = asyncio.StreamReader()
        made = FakeAgent if script.guests is None else FakeNodeAgent
        self.agent: FakeAgent = made(script, self._say, self._break_off)
        self.closed = False
        self._ended = False
        self.agent.greet()

    @property
    def writer(self) -> FakeLink:
        """This is its own way to the host."""
        return self

    def write(self, piece: bytes) -> None:
        """To the agent."""
        if self._ended:
            raise BrokenPipeError
        self.agent.hear(piece)

    async def drain(self) -> None:
        """Memory takes everything."""

    def close(self) -> None:
        """The end of the lease."""
        self.closed = True
        self.agent.lease_ends()
        self._break_off()

    async def exit_reason(self) -> str:
        """Nothing carries this link, so nobody says anything."""
        return ""

    async def wait_for_exit_or_kill(self) -> None:
        """Nothing to wait for."""
        self.close()

    def _say(self, frame: bytes) -> None:
        if not self._ended:
            self.reader.feed_data(frame)

    def _break_off(self) -> None:
        if not self._ended:
            self._ended = True
            self.reader.feed_eof()
