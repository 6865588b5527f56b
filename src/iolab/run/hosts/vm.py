"""A guest that the session boots on its node, spoken to over the node's own agent."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from iolab.errors import HostError
from iolab.model.host import HostSpec
from iolab.run.hosts.linked import Link, LinkedHost

Boot = Callable[[HostSpec], Awaitable[Link]]
"""Starts a guest and gives the way to the agent in it. Raises HostError."""


class VmHost(LinkedHost):
    """The agent in a guest. Somebody who can boot it takes care of it first, by setting `boot`."""

    def __init__(self, spec: HostSpec) -> None:
        super().__init__(spec)
        self.boot: Boot | None = None

    async def open_link(self) -> Link:
        """Boot the guest."""
        if self.boot is None:
            happened = f"The guest '{self.name}' has not been given a node to run on."
            raise HostError(happened, "This is a fault of iolab; please report it.")
        return await self.boot(self.spec)
