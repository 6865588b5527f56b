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
from iolab.run.hosts.answers import FileAnswer, read_answer
from iolab.run.hosts.base import Refusal
from iolab.run.hosts.text import printable
from iolab.run.site import Site

MARK: Final = ".iolab-lock"
"""The agent's mark in a folder that it holds."""

MARK_BYTES_MAX: Final = 4096
"""More than the agent ever writes into it."""

MARK_LIMIT_S: Final = 60.0
"""Reading a line over a network file system that others keep busy."""

HOSTS_NAMED: Final = 4
"""Hosts that are named beside the first one; more are counted."""


def seen_dir(site: Site, other: Site) -> str:
    """The other host's scratch folder as this host sees it: beside its own."""
    return posixpath.join(posixpath.dirname(site.dir), posixpath.basename(other.dir))


async def require_shared(
    sites: Sequence[Site], needs: Mapping[str, Sequence[str]], *, do: str
) -> None:
    """Nothing when each host of `needs` sees the folders of the hosts that it names there.

    `sites` are the hosts' own folders. HostError for the first host that does not, which names the
    others and has `do` as its remedy, or for hosts that failed.
    """
    by_name = {site.name: site for site in sites}
    makers = {name: by_name[name] for names in needs.values() for name in names}
    marks = (await together(makers.values(), lambda site: _mark(site, site.dir))).complete()

    async def look(site: Site) -> None:
        for name in needs[site.name]:
            folder = seen_dir(site, by_name[name])
            why = await _otherness(site, folder, marks[name])
            if why is not None:
                blind.append(site.name)
                raise HostError(
                    f"Host '{printable(site.name)}' does not see the files of '{printable(name)}' "
                    f"in {printable(folder)}: the target is not shared "
                    f"({printable(why).rstrip('.')}).",
                    do,
                )

    blind: list[str] = []
    outcomes = await together([by_name[name] for name, names in needs.items() if names], look)
    if not blind:
        outcomes.complete()
        return
    # One pair tells it all: where a target is not shared, many hosts say the same. Nor is any of
    # them at fault by itself, so that none is left out for it.
    first, *others = [name for name in needs if name in blind]
    happened = outcomes.failed[first].happened
    if others:
        happened += f" The same goes for {_named(others)}."
    raise HostError(happened, do)


def _named(hosts: Sequence[str]) -> str:
    more = f" and {len(hosts) - HOSTS_NAMED} more" if len(hosts) > HOSTS_NAMED else ""
    return ", ".join(f"'{printable(name)}'" for name in hosts[:HOSTS_NAMED]) + more


async def _otherness(site: Site, folder: str, mark: FileAnswer) -> str | None:
    """Why what the host sees there is not the folder with that mark; None when it is."""
    try:
        seen = await _mark(site, folder)
    except Refusal as refused:
        return refused.says
    return None if seen == mark else "what it sees there is another folder"


async def _mark(site: Site, folder: str) -> FileAnswer:
    """Size and digest of the mark in a folder, as that host reads it."""
    told = await site.host.ask(
        "get", deadline_s=MARK_LIMIT_S, path=f"{folder}/{MARK}", max_bytes=MARK_BYTES_MAX
    )
    return read_answer(site.name, FileAnswer, told)
