"""Removes, by a new agent, what an agent that was lost has left on its host."""

from __future__ import annotations

import asyncio
import shlex
from typing import Final

from iolab.core.host import HostKind
from iolab.errors import HostError, Interrupted
from iolab.hosts.host import Host
from iolab.session.context import SessionContext
from iolab.session.reconnect import Reach
from iolab.targets.work_directories import CLOSE_LIMIT_S, open_folder

SWEEP_LIMIT_S: Final = 60.0
"""For a host that answers again: the end of the lost agent's lease, and the removal of its files.
A host that is gone should not be waited for longer by somebody who wants the results."""


async def sweep(session: SessionContext, reach: Reach | None) -> tuple[str, ...]:
    """Leave no folder on hosts that were lost; a sentence on each that is left."""
    lost = {name: folders for name, folders in session.taken.items() if _was_lost(session, name)}
    swept = await asyncio.gather(*(_sweep(session, reach, name, lost[name]) for name in lost))
    return tuple(sentence for sentences in swept for sentence in sentences)


def _was_lost(session: SessionContext, name: str) -> bool:
    host = session.everyone.get(name)
    # A guest's disk goes with the guest.
    if host is None or host.spec.kind is HostKind.VM:
        return False
    return bool(host.lost) or name in session.mended


async def _sweep(
    session: SessionContext, reach: Reach | None, name: str, folders: set[tuple[str, str]]
) -> tuple[str, ...]:
    left = sorted(folders)
    host = session.everyone[name]
    fresh: Host | None = (
        reach(host.spec) if host.lost and reach and not session.stop.at_once else None
    )
    try:
        async with asyncio.timeout(SWEEP_LIMIT_S):
            if fresh is not None:
                await host.close()
                await fresh.connect()
            there = fresh or host
            while left and not there.lost:
                path, folder = left[0]
                opened = await open_folder(session, there, path, folder)
                where = str(opened.header.get("dir"))
                await there.ask("scratch_close", deadline_s=CLOSE_LIMIT_S, dir=where, keep=False)
                left.pop(0)
    except (HostError, Interrupted, TimeoutError):
        pass
    finally:
        if fresh is not None:
            await fresh.close()
    return tuple(_sentence(host, path, folder) for path, folder in left)


def _sentence(host: Host, path: str, folder: str) -> str:
    which = "" if host.spec.kind is HostKind.LOCAL else " --hosts HOSTS"
    at = f"{path.rstrip('/')}/{folder}"
    return (
        f"Host '{host.name}' may still have {at}: "
        f"'iolab clean{which} --path {shlex.quote(path)}' removes it once the host answers."
    )
