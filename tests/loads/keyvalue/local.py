"""The real agent on this machine, for tests of what is done through it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from iolab.core.host import HostSpec, HostTransport
from iolab.hosts.connect import LocalHost
from iolab.hosts.host import Host

Outcome = TypeVar("Outcome")

LIMIT_S = 60


def on_this_machine(work: Callable[[Host], Awaitable[Outcome]]) -> Outcome:
    """The outcome of the work with a connected host, which is closed again."""

    async def body() -> Outcome:
        host = LocalHost(HostSpec("local", HostTransport.LOCAL))
        try:
            async with asyncio.timeout(LIMIT_S):
                await host.connect()
                return await work(host)
        finally:
            await host.close()

    return asyncio.run(body())
