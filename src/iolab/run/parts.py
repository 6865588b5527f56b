"""What a session holds on its hosts from its first run to its last."""

from __future__ import annotations

from dataclasses import dataclass

from iolab.run.drivers import Drivers
from iolab.run.guests.owner import Guests
from iolab.run.sites import Sites


@dataclass(frozen=True, slots=True)
class Parts:
    """Folders and files, makers of load, and guests."""

    sites: Sites
    drivers: Drivers
    guests: Guests

    async def leave(self) -> tuple[str, ...]:
        """Nothing of it stays on any host that answers; sentences on what could not be ended."""
        # A server that still runs would write into the folder that is being removed, and what lies
        # in a guest goes before the guest.
        held = await self.drivers.end()
        left = await self.sites.leave()
        return (*held, *left, *await self.guests.end())
