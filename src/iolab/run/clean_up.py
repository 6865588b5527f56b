"""The end of a session: nothing of it stays, however it ended."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from iolab.errors import Interrupted
from iolab.run.drivers import Drivers
from iolab.run.hosts.base import Host
from iolab.run.sites import Sites
from iolab.run.stop import Stop


async def clean_up(
    drivers: Drivers, sites: Sites, hosts: Mapping[str, Host], stop: Stop
) -> tuple[str, ...]:
    """End what drivers hold, leave every folder, close every host; sentences on what failed.

    At a second stop request nothing is waited for: the end of their lease makes the agents kill
    and remove everything by themselves.
    """
    faults: tuple[str, ...] = ()
    if not stop.at_once:
        try:
            faults = await stop.unless_at_once(_leave(drivers, sites))
        except Interrupted:
            faults = ()
    endings = await asyncio.gather(
        *(host.close() for host in hosts.values()), return_exceptions=True
    )
    unclosed = [
        f"Host '{name}' could not be closed: {ending!r}."
        for name, ending in zip(hosts, endings, strict=True)
        if isinstance(ending, BaseException)
    ]
    return (*faults, *unclosed)


async def _leave(drivers: Drivers, sites: Sites) -> tuple[str, ...]:
    # A server that still runs would write into the folder that is being removed.
    held = await drivers.end()
    return (*held, *await sites.leave())
