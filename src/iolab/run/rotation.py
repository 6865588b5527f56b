"""Rotation: each client works on the files that another client laid out.

What a client still holds in memory of its own writing can then answer nothing. All clients must see
one file system; that is made sure of before anything is measured.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from iolab.errors import HostError
from iolab.run.shared import require_shared, seen_dir
from iolab.run.site import Site

SHARE: Final = "Give all clients a path on one shared file system, or leave target.rotate out."


def rotated(sites: Sequence[Site], rotate: int) -> tuple[Site, ...]:
    """The sites of a run in which client i works in the folder of client i + rotate, modulo all.

    Raises HostError when so few clients are left that one would read its own.
    """
    if rotate % len(sites) == 0:
        happened = f"With {len(sites)} clients left, rotate = {rotate} gives each its own files."
        raise HostError(happened, "Bring the others back, or set another target.rotate.")
    owners = [sites[(place + rotate) % len(sites)] for place in range(len(sites))]
    return tuple(
        replace(mine, dir=seen_dir(mine, owner), read_from=owner.name)
        for mine, owner in zip(sites, owners, strict=True)
    )


async def require_handed_on(own: Sequence[Site], turned: Sequence[Site]) -> None:
    """HostError with every client that does not see the folder whose files it is to read."""
    await require_shared(own, {site.name: (site.read_from,) for site in turned}, do=SHARE)
