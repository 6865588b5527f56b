"""Rotation: each client works on the files that another client laid out.

What a client still holds in memory of its own writing can then answer nothing. All clients must see
one file system; that is made sure of before anything is measured.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from iolab.errors import HostError
from iolab.run.barrier import together
from iolab.run.hosts.answers import FileAnswer, read_answer
from iolab.run.hosts.base import Host, Refusal
from iolab.run.hosts.text import printable
from iolab.run.site import Site, scratch_name

LOCK_FILE: Final = ".iolab-lock"
"""The agent's mark in a folder that it holds: it says which session does, so that no folder of
another file system can have it."""

MARK_BYTES_MAX: Final = 4096
"""More than the agent ever writes into the mark."""

MARK_LIMIT_S: Final = 60.0
"""Reading a small file over a network file system that other clients keep busy."""


def rotated(sites: Sequence[Site], rotate: int) -> tuple[Site, ...]:
    """The sites of a run in which client i works in the folder of client i + rotate, modulo all.

    Raises HostError when so few clients are left that one would read its own.
    """
    if rotate % len(sites) == 0:
        happened = f"With {len(sites)} clients left, rotate = {rotate} gives each its own files."
        raise HostError(happened, "Bring the others back, or set another target.rotate.")
    owners = [sites[(place + rotate) % len(sites)] for place in range(len(sites))]
    return tuple(
        replace(mine, dir=_seen_from(mine, owner.name), read_from=owner.name)
        for mine, owner in zip(sites, owners, strict=True)
    )


async def require_shared(own: Sequence[Site], turned: Sequence[Site]) -> None:
    """HostError with every client that does not see the folder whose files it is to read."""
    marks = (await together(own, lambda site: _mark(site.host, site.dir))).complete()

    async def compare(site: Site) -> None:
        await _require_same(site, marks)

    (await together(turned, compare)).complete()


async def _require_same(site: Site, marks: Mapping[str, FileAnswer]) -> None:
    try:
        seen = await _mark(site.host, site.dir)
    except Refusal as refused:
        raise _unseen(site, refused.says) from None
    if seen != marks[site.read_from]:
        raise _unseen(site, f"{site.dir} there is another folder")


def _unseen(site: Site, why: str) -> HostError:
    return HostError(
        f"Host '{site.name}' does not see the files of '{site.read_from}': "
        f"{printable(why).rstrip('.')}.",
        "Give all clients a path on one shared file system, or leave target.rotate out.",
    )


async def _mark(host: Host, folder: str) -> FileAnswer:
    """What the agent wrote into the folder that it holds, as its size and digest."""
    told = await host.ask(
        "get",
        deadline_s=MARK_LIMIT_S,
        path=f"{folder}/{LOCK_FILE}",
        max_bytes=MARK_BYTES_MAX,
    )
    return read_answer(host.name, FileAnswer, told)


def _seen_from(site: Site, owner: str) -> str:
    """Where the folder of another client is, seen from this one, whose mount point may differ."""
    return f"{site.dir.rpartition('/')[0]}/{scratch_name(owner)}"
