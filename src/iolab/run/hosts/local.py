"""The machine that the controller runs on: the agent as its child."""

from __future__ import annotations

from pathlib import Path

from iolab.model.host import HostSpec
from iolab.run.hosts.base import agent_binary
from iolab.run.hosts.linked import Link, LinkedHost
from iolab.run.hosts.process import start_process


class LocalHost(LinkedHost):
    """The agent as a subprocess in a session of its own.

    If the controller dies by any means, the agent's standard input ends and it cleans up alone.
    """

    def __init__(self, spec: HostSpec, agent: Path | None = None) -> None:
        super().__init__(spec)
        self._agent = agent

    async def open_link(self) -> Link:
        """Start the agent where it lies."""
        return await start_process(self.name, [str(self._agent or agent_binary())])
