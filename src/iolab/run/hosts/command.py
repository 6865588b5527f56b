"""A host reached by an argument prefix that gives its standard input and output.

`ip netns exec NAME`, `ssh HOST`, `kubectl exec -i POD --`, `docker exec -i C`: the
prefix may or may not share our file system, and may join our words with spaces for a shell of its
own (ssh does). One rule serves them all: the agent is pushed into a private folder whose name and
whose file's checksum are checked, and every word after the prefix is plain.
"""

from __future__ import annotations

import asyncio
from pathlib import Path

from iolab.model.host import HostSpec
from iolab.run.hosts.base import agent_binary
from iolab.run.hosts.linked import Link, LinkedHost
from iolab.run.hosts.prefix import Prefix
from iolab.run.hosts.process import start_process
from iolab.run.hosts.push import ProgramLanding, push


class CommandHost(LinkedHost):
    """The agent behind a prefix, pushed when it is not there yet.

    `turns` bounds the hosts that are pushed to at a time, over all that share it.
    """

    def __init__(
        self, spec: HostSpec, agent: Path | None = None, turns: asyncio.Semaphore | None = None
    ) -> None:
        super().__init__(spec)
        self._agent = agent
        self._turns = turns or asyncio.Semaphore(1)

    async def open_link(self) -> Link:
        """Push the agent if need be, and start it."""
        prefix = Prefix(self.name, self.spec.command)
        async with self._turns:
            remote = await push(ProgramLanding(prefix), self._agent or agent_binary())
        return await start_process(self.name, prefix.argv(remote))
