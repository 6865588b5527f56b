"""Block devices as targets: looked at, taken for this session alone, let go."""

from __future__ import annotations

import hashlib
import posixpath
from collections.abc import Iterable, Iterator
from typing import Final

from msgspec.structs import replace

from iolab.core.host import (
    DeviceFacts,
    DeviceRefusal,
    HostFacts,
    HostSpec,
    HostTransport,
    TargetFacts,
)
from iolab.core.run import ExtentProof
from iolab.core.study import TargetSettings
from iolab.errors import HostError
from iolab.hosts.answers import (
    FilesystemAnswer,
    read_answer,
    read_facts,
)
from iolab.hosts.barrier import gather_hosts
from iolab.hosts.connect import open_hosts
from iolab.hosts.host import Host
from iolab.hosts.message import AgentRefusalError
from iolab.record import Record
from iolab.study.targets import Target
from iolab.targets.work_directory import WorkDirectory, scratch_folder_name
from iolab.text import excerpt

LOOK_LIMIT_S: Final = 60.0
"""Reading some kilobytes at both ends of a device: a disk that sleeps takes seconds to answer."""

RELEASE_LIMIT_S: Final = 60.0
"""Letting a device go writes back what the kernel still holds of it."""

RAW: Final = "raw device"
"""Stands where a file system's type would."""

NO_LIMIT: Final = 2**63 - 1

MAKE_LIMIT_S: Final = 660.0
"""mkfs.xfs discards a device first: terabytes take minutes, and the agent gives it ten."""

UNMOUNT_LIMIT_S: Final = 120.0
"""Unmounting writes back what is dirty."""

FACTS_LIMIT_S: Final = 60.0
"""Reading a host's facts anew, with the mount as the target."""

IMAGE: Final = "fs.img"
"""What the agent calls the image in a scratch folder."""

MOUNT_PARENT: Final = "/run"
"""Where the scratch folder of a device lies, which holds nothing but a mount point. It is in memory
on every Linux host that was installed in the last decade, and empty after a start."""


async def inspect_device(host: Host, target: Target, settings: TargetSettings) -> DeviceFacts:
    """The device with all that speaks against it; HostError when the host cannot tell."""
    try:
        answer = await host.request(
            "device",
            deadline_s=LOOK_LIMIT_S,
            path=target.path,
            serial=target.serial,
            overwrite=_may_overwrite(host, settings),
        )
    except AgentRefusalError as refused:
        missing = DeviceRefusal("missing", refused.reason.rstrip("."))
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
    return read_answer(host.name, DeviceFacts, answer)


async def read_device_serial_by_host(
    host_specs: Iterable[HostSpec], device_path: str
) -> dict[str, str]:
    """The serials of the block devices at a path of each host; HostError where one tells none."""
    settings = TargetSettings(keep_files=False, allow_memory=False)

    async def read_device_serial(host: Host) -> str:
        await host.connect()
        target = Target(host.name, host.name, device_path, (), "")
        device = await inspect_device(host, target, settings)
        if device.serial is None:
            reasons = "; ".join(item.message for item in device.objections)
            message = f"The device {device_path} on host '{host.name}' tells no serial"
            hint = "A block volume needs a serial, a world-wide name or a backing file."
            raise HostError(f"{message}{f' ({reasons})' if reasons else ''}.", hint)
        return device.serial

    async with open_hosts(host_specs) as hosts:
        return dict((await gather_hosts(hosts.values(), read_device_serial)).results_or_raise())


def facts_with_device_as_target(host_facts: HostFacts, device_facts: DeviceFacts) -> HostFacts:
    """The host's facts with the device as the target that they tell of."""
    if not device_facts.name:
        return host_facts
    target = TargetFacts(
        path=device_facts.path,
        fs_type=RAW,
        mount_point="",
        mount_source=device_facts.real_path,
        mount_options="",
        total_bytes=device_facts.size_bytes,
        free_bytes=device_facts.size_bytes,
        free_inodes=NO_LIMIT,
        device=device_facts.name,
        devices=device_facts.devices,
        in_memory=False,
        network=False,
        writable=True,
        memory_backed=device_facts.memory_backed,
        layers=device_facts.layers,
        hidden=device_facts.hidden,
    )
    return replace(host_facts, target=target)


async def take_device(
    host: Host, target: Target, target_facts: TargetFacts | None, settings: TargetSettings
) -> WorkDirectory:
    """The device, held by the host's agent alone. HostError where anything objects."""
    answer = await host.request(
        "device_open",
        deadline_s=LOOK_LIMIT_S,
        path=target.path,
        serial=target.serial,
        overwrite=_may_overwrite(host, settings),
    )
    device = read_answer(host.name, DeviceFacts, answer)
    folder, name = posixpath.split(device.real_path)
    image = host.spec.transport is HostTransport.VM
    filled = device.size_bytes if image else 0
    return WorkDirectory(
        host,
        folder,
        target_facts,
        target.key,
        device=name,
        filled_bytes=filled,
        is_guest_disk=image,
    )


async def release_device(workdir: WorkDirectory, device_path: str) -> None:
    """Give the device back. HostError when the host cannot."""
    await workdir.host.request("device_close", deadline_s=RELEASE_LIMIT_S, path=device_path)


def _may_overwrite(host: Host, settings: TargetSettings) -> bool:
    """The disk of a guest that the session booted is its own, whatever its bytes look like."""
    return settings.overwrite or host.spec.transport is HostTransport.VM


class CreatedFileSystem(Record):
    """A file system as a work directory, and the host's facts with it as the target.

    `notices` are what the user should know of it.
    """

    workdir: WorkDirectory
    facts: HostFacts
    notices: tuple[str, ...] = ()


def mount_parent_and_name(target: Target) -> tuple[str, str]:
    """The parent and the name of the scratch folder in which a target's file system is mounted."""
    name = scratch_folder_name(target.host)
    if target.serial is None:
        return target.path, name
    # Two devices of one host have two folders.
    return MOUNT_PARENT, f"{name}-{hashlib.sha256(target.path.encode()).hexdigest()[:8]}"


def file_system_image_path(target: Target) -> str:
    """Where the image of a target's file system lies, if it has one."""
    parent, name = mount_parent_and_name(target)
    return f"{parent.rstrip('/')}/{name}/{IMAGE}"


async def make_or_reopen_file_system(
    host: Host, scratch: str, target: Target, settings: TargetSettings, host_facts: HostFacts
) -> CreatedFileSystem:
    """Make one in a scratch folder that is held; `host_facts` are the host's without it.

    HostError when the host refuses, which says why, or is lost.
    """
    made = await _request_file_system(host, scratch, target, settings)
    answer = await host.request("facts", deadline_s=FACTS_LIMIT_S, path=made.dir, tools={})
    answered = read_facts(host.name, answer)
    host_facts = replace(host_facts, target=answered.target, disks=answered.disks)
    workdir = WorkDirectory(
        host, made.dir, answered.target, target.key, outer_scratch_folder=scratch
    )
    return CreatedFileSystem(
        workdir, host_facts, tuple(_notes_on_kept_and_buffered_filesystem(host.name, made))
    )


def _notes_on_kept_and_buffered_filesystem(
    host_name: str, filesystem: FilesystemAnswer
) -> Iterator[str]:
    where = f"{excerpt(filesystem.dir)} on '{excerpt(host_name)}'"
    if filesystem.kept:
        yield f"The XFS that an earlier session kept is mounted again at {where}."
    if not filesystem.direct:
        yield (
            f"The image of the XFS at {where} takes no direct I/O: what is read from it may come "
            f"from the page cache of the file system below."
        )


async def recreate_file_system(
    workdir: WorkDirectory, target: Target, settings: TargetSettings
) -> None:
    """A new and empty one in the place of a work directory's."""
    await workdir.host.request(
        "filesystem_close", deadline_s=UNMOUNT_LIMIT_S, dir=workdir.outer_scratch_folder
    )
    await _request_file_system(workdir.host, workdir.outer_scratch_folder, target, settings)


async def allocated_image_bytes(host: Host, image: str) -> int:
    """What an image that an earlier session kept has of its disk; 0 where there is none."""
    try:
        answer = await host.request("extents", deadline_s=FACTS_LIMIT_S, paths=[image])
    except AgentRefusalError:
        return 0
    proof = read_answer(host.name, ExtentProof, answer)
    return proof.written_bytes + proof.unwritten_bytes


async def _request_file_system(
    host: Host, scratch: str, target: Target, settings: TargetSettings
) -> FilesystemAnswer:
    on_device = target.serial is not None
    answer = await host.request(
        "filesystem_open",
        deadline_s=MAKE_LIMIT_S,
        dir=scratch,
        image_bytes=None if on_device else settings.image_bytes,
        path=target.path if on_device else None,
        serial=target.serial,
        overwrite=settings.overwrite,
    )
    return read_answer(host.name, FilesystemAnswer, answer)
