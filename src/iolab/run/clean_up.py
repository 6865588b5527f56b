"""The end of a session: nothing of it stays, however it ended."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from iolab.errors import Interrupted
from iolab.run.hosts.base import Host
from iolab.run.parts import Parts
from iolab.run.stop import Stop


async def clean_up(parts: Parts, hosts: Mapping[str, Host], stop: Stop) -> tuple[str, ...]:
    """End what the session holds, close every host; sentences on what failed.

    At a second stop request nothing is waited for: the end of their lease makes the agents kill
    and remove everything by themselves.
    """
    faults: tuple[str, ...] = ()
    if not stop.at_once:
        try:
            faults = await stop.unless_at_once(parts.leave())
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
