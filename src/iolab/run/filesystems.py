"""File systems of the session's own: an XFS that a host's agent makes, and what it tells of it.

The agent mounts it inside the scratch folder, where only its runs see it; it goes with the agent.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

from iolab.model.host import HostFacts
from iolab.model.study import TargetSettings
from iolab.plan.targets import Target
from iolab.run.hosts.answers import (
    ExtentsAnswer,
    FilesystemAnswer,
    read_answer,
    read_facts,
)
from iolab.run.hosts.base import Host, Refusal
from iolab.run.hosts.text import printable
from iolab.run.site import Site, scratch_name

MAKE_LIMIT_S: Final = 660.0
"""mkfs.xfs discards a device first: terabytes take minutes, and the agent gives it ten."""

CLOSE_LIMIT_S: Final = 120.0
"""Unmounting writes back what is dirty."""

FACTS_LIMIT_S: Final = 60.0
"""Reading a host's facts anew, with the mount as the target."""

IMAGE: Final = "fs.img"
"""What the agent calls the image in a scratch folder."""

MOUNT_PARENT: Final = "/run"
"""Where the scratch folder of a device lies, which holds nothing but a mount point. It is in memory
on every Linux host that was installed in the last decade, and empty after a start."""


@dataclass(frozen=True, slots=True)
class Made:
    """A file system as a site, and the host's facts with it as the target.

    `said` is what the user should know of it.
    """

    site: Site
    facts: HostFacts
    said: tuple[str, ...] = ()


def folder_of(target: Target) -> tuple[str, str]:
    """The parent and the name of the scratch folder in which a target's file system is mounted."""
    name = scratch_name(target.host)
    if target.serial is None:
        return target.path, name
    # Two devices of one host have two folders.
    return MOUNT_PARENT, f"{name}-{hashlib.sha256(target.path.encode()).hexdigest()[:8]}"


def image_of(target: Target) -> str:
    """Where the image of a target's file system lies, if it has one."""
    parent, name = folder_of(target)
    return f"{parent.rstrip('/')}/{name}/{IMAGE}"


async def make_file_system(
    host: Host, scratch: str, target: Target, settings: TargetSettings, facts: HostFacts
) -> Made:
    """Make one in a scratch folder that is held; `facts` are the host's without it.

    HostError when the host refuses, which says why, or is lost.
    """
    made = await _open(host, scratch, target, settings)
    told = await host.ask("facts", deadline_s=FACTS_LIMIT_S, path=made.dir, tools={})
    seen = read_facts(host.name, told)
    facts = replace(facts, target=seen.target, disks=seen.disks)
    site = Site(host, made.dir, seen.target, target.key, scratch=scratch)
    return Made(site, facts, tuple(_notes(host.name, made)))


def _notes(host: str, made: FilesystemAnswer) -> Iterator[str]:
    where = f"{printable(made.dir)} on '{printable(host)}'"
    if made.kept:
        yield f"The XFS that an earlier session kept is mounted again at {where}."
    if not made.direct:
        yield (
            f"The image of the XFS at {where} takes no direct I/O: what is read from it may come "
            f"from the page cache of the file system below."
        )


async def make_again(site: Site, target: Target, settings: TargetSettings) -> None:
    """A new and empty one in the place of a site's."""
    await site.host.ask("filesystem_close", deadline_s=CLOSE_LIMIT_S, dir=site.scratch)
    await _open(site.host, site.scratch, target, settings)


async def allocated_bytes(host: Host, image: str) -> int:
    """What an image that an earlier session kept has of its disk; 0 where there is none."""
    try:
        told = await host.ask("extents", deadline_s=FACTS_LIMIT_S, paths=[image])
    except Refusal:
        return 0
    proof = read_answer(host.name, ExtentsAnswer, told)
    return proof.written_bytes + proof.unwritten_bytes


async def _open(
    host: Host, scratch: str, target: Target, settings: TargetSettings
) -> FilesystemAnswer:
    on_device = target.serial is not None
    told = await host.ask(
        "filesystem_open",
        deadline_s=MAKE_LIMIT_S,
        dir=scratch,
        image_bytes=None if on_device else settings.image_bytes,
        path=target.path if on_device else None,
        serial=target.serial,
        overwrite=settings.overwrite,
    )
    return read_answer(host.name, FilesystemAnswer, told)
