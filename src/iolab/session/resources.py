"""What a session holds on its hosts from its first run to its last."""

from __future__ import annotations

from dataclasses import dataclass

from iolab.session.driver import Drivers
from iolab.session.kinds import BootedHosts
from iolab.targets.work_directories import WorkDirectories


@dataclass(frozen=True, slots=True)
class Resources:
    """Folders and files, makers of load, and hosts that are booted."""

    sites: WorkDirectories
    drivers: Drivers
    booted: BootedHosts

    async def leave(self) -> tuple[str, ...]:
        """Nothing of it stays on any host that answers; sentences on what could not be ended."""
        # A server that still runs would write into the folder that is being removed, and what lies
        # on a booted host goes before the host.
        held = await self.drivers.end()
        left = await self.sites.leave()
        return (*held, *left, *await self.booted.end())
