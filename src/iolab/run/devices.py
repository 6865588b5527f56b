"""Block devices as targets: looked at, taken for this session alone, let go."""

from __future__ import annotations

import posixpath
from dataclasses import replace
from typing import Final

from iolab.model.host import DeviceFacts, HostFacts, HostKind, Objection, TargetFacts
from iolab.model.study import TargetSettings
from iolab.plan.targets import Target
from iolab.run.hosts.answers import read_device
from iolab.run.hosts.base import Host, Refusal
from iolab.run.site import Site

LOOK_LIMIT_S: Final = 60.0
"""Reading some kilobytes at both ends of a device: a disk that sleeps takes seconds to answer."""

CLOSE_LIMIT_S: Final = 60.0
"""Letting a device go writes back what the kernel still holds of it."""

RAW: Final = "raw device"
"""Stands where a file system's type would."""

NO_LIMIT: Final = 2**63 - 1


async def look_at(host: Host, target: Target, settings: TargetSettings) -> DeviceFacts:
    """The device with all that speaks against it; HostError when the host cannot tell."""
    try:
        told = await host.ask(
            "device",
            deadline_s=LOOK_LIMIT_S,
            path=target.path,
            serial=target.serial,
            overwrite=_may_overwrite(host, settings),
        )
    except Refusal as refused:
        missing = Objection("missing", refused.says.rstrip("."))
        return DeviceFacts(
            target.path,
            real_path=target.path,
            name="",
            serial=None,
            size_bytes=0,
            logical_block_bytes=0,
            discards=False,
            devices=(),
            memory_backed=False,
            objections=(missing,),
        )
    return read_device(host.name, told)


def with_device(facts: HostFacts, device: DeviceFacts) -> HostFacts:
    """The host's facts with the device as the target that they tell of."""
    if not device.name:
        return facts
    target = TargetFacts(
        path=device.path,
        fs_type=RAW,
        mount_point="",
        mount_source=device.real_path,
        mount_options="",
        total_bytes=device.size_bytes,
        free_bytes=device.size_bytes,
        free_inodes=NO_LIMIT,
        device=device.name,
        devices=device.devices,
        in_memory=False,
        network=False,
        writable=True,
        memory_backed=device.memory_backed,
    )
    return replace(facts, target=target)


async def take_device(
    host: Host, target: Target, seen: TargetFacts | None, settings: TargetSettings
) -> Site:
    """The device as a site, held by the host's agent alone. HostError where anything objects."""
    told = await host.ask(
        "device_open",
        deadline_s=LOOK_LIMIT_S,
        path=target.path,
        serial=target.serial,
        overwrite=_may_overwrite(host, settings),
    )
    device = read_device(host.name, told)
    folder, name = posixpath.split(device.real_path)
    image = host.spec.kind is HostKind.VM
    filled = device.size_bytes if image else 0
    return Site(host, folder, seen, target.key, device=name, filled_bytes=filled, image=image)


async def let_go(site: Site, path: str) -> None:
    """Give the device back. HostError when the host cannot."""
    await site.host.ask("device_close", deadline_s=CLOSE_LIMIT_S, path=path)


def _may_overwrite(host: Host, settings: TargetSettings) -> bool:
    """The disk of a guest that the session booted is its own, whatever its bytes look like."""
    return settings.overwrite or host.spec.kind is HostKind.VM
