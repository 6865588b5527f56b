"""A host reached by ssh: one connection, the agent pushed once, started, and let go."""

from __future__ import annotations

import logging
from pathlib import Path

from iolab.model.host import HostSpec, SshRoute
from iolab.run.hosts.base import agent_binary
from iolab.run.hosts.linked import Link, LinkedHost
from iolab.run.hosts.push import push
from iolab.run.hosts.ssh.landing import landing_on
from iolab.run.hosts.ssh.link import SshRunner
from iolab.run.hosts.ssh.login import Logins

# What asyncssh has to say is said by our errors; without a handler it would go to the terminal.
logging.getLogger("asyncssh").addHandler(logging.NullHandler())


class SshHost(LinkedHost):
    """The agent behind ssh. When the connection breaks, sshd ends the agent's input: its lease."""

    def __init__(self, spec: HostSpec, logins: Logins, agent: Path | None = None) -> None:
        super().__init__(spec)
        self._logins = logins
        self._agent = agent

    async def open_link(self) -> Link:
        """Log in, push the agent if need be, and start it."""
        agent = self._agent or agent_binary()
        entry = await self._logins.enter(self.name, self.spec.ssh or SshRoute(self.name))
        try:
            runner = SshRunner(self.name, entry.connection, self._logins.limits)
            async with landing_on(runner) as landing:
                remote = await push(landing, agent)
            link = await runner.start(remote)
        except BaseException:
            await entry.leave()
            raise
        link.leave = entry.leave
        return link
