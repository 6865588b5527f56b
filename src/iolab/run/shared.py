"""Whether hosts see each other's scratch folders: what one reads there must be what the other does.

Each agent marks the folder that it holds with the session's name, so that no folder of another file
system can look like it.
"""

from __future__ import annotations

import posixpath
from collections.abc import Mapping, Sequence
from typing import Final

from iolab.errors import HostError
from iolab.run.barrier import together
from iolab.run.hosts.base import Refusal
from iolab.run.hosts.text import printable
from iolab.run.site import Site

MARK: Final = ".iolab-lock"
"""The agent's mark in a folder that it holds."""

MARK_BYTES_MAX: Final = 4096
"""More than the agent ever writes into it."""

MARK_LIMIT_S: Final = 60.0
"""Reading a line over a network file system that others keep busy."""


def seen_dir(site: Site, other: Site) -> str:
    """The other host's scratch folder as this host sees it: beside its own."""
    return posixpath.join(posixpath.dirname(site.dir), posixpath.basename(other.dir))


async def require_shared(
    sites: Sequence[Site], needs: Mapping[str, Sequence[str]], *, do: str
) -> None:
    """Nothing when each host of `needs` sees the folders of the hosts that it names there.

    HostError for the first that does not, with `do` as the remedy, or for a host that failed.
    """
    by_name = {site.name: site for site in sites}
    makers = {name: by_name[name] for names in needs.values() for name in names}
    own = await together(makers.values(), lambda site: _mark(site, site.dir))
    marks = own.complete()

    async def look(site: Site) -> None:
        for name in needs[site.name]:
            folder = seen_dir(site, by_name[name])
            if await _mark_or_none(site, folder) != marks[name]:
                happened = (
                    f"Host '{printable(site.name)}' does not see what '{printable(name)}' made in "
                    f"{printable(folder)}: the target is not shared."
                )
                raise HostError(happened, do)

    outcomes = await together([by_name[name] for name, names in needs.items() if names], look)
    for fault in outcomes.failed.values():
        # One pair tells it all: where a target is not shared, every host says the same.
        raise fault


async def _mark_or_none(site: Site, folder: str) -> tuple[object, object] | None:
    try:
        return await _mark(site, folder)
    except Refusal:
        return None


async def _mark(site: Site, folder: str) -> tuple[object, object]:
    """Size and digest of the mark in a folder, as that host reads it."""
    told = await site.host.ask(
        "get", deadline_s=MARK_LIMIT_S, path=f"{folder}/{MARK}", max_bytes=MARK_BYTES_MAX
    )
    return told.header.get("size"), told.header.get("sha256")
