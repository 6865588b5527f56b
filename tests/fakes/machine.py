"""A machine that does not exist: facts and counters for hosts in tests. Pure."""

from __future__ import annotations

from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from iolab.core.host import (
    CpuFacts,
    DiskFacts,
    HostFacts,
    KernelFacts,
    MemoryFacts,
    NicFacts,
    NumaNode,
    TargetFacts,
    ToolFacts,
)

DEVICE: Final = "nvme0n1"
LOOP: Final = "loop7"
CORES: Final = 4
MEMORY_BYTES: Final = 16 << 30


class DiskUse(Struct):
    """What the machine's one disk has done since boot, in I/Os and bytes."""

    read_ios: int = 1000
    read_bytes: int = 4_096_000
    write_ios: int = 500
    write_bytes: int = 2_048_000


def machine_facts(path: str | None, *, free_bytes: int = 1 << 40) -> HostFacts:
    """A four-core machine with one NVMe disk under `path`."""
    return HostFacts(
        cpu=CpuFacts(
            model="Example CPU 4C",
            sockets=1,
            cores=CORES,
            threads=CORES,
            governor="performance",
            max_mhz=3000.0,
            numa=(NumaNode(0, f"0-{CORES - 1}", MEMORY_BYTES),),
        ),
        memory=MemoryFacts(MEMORY_BYTES, ()),
        disks=(
            DiskFacts(
                name=DEVICE,
                model="Example NVMe 1TB",
                serial="E0001",
                firmware="1.0",
                size_bytes=1 << 40,
                rotational=False,
                scheduler="none",
                logical_block_bytes=512,
                physical_block_bytes=4096,
                pcie_link="8.0 GT/s x4",
                parents=(),
                backing_file=None,
            ),
        ),
        nics=(NicFacts("eth0", "example", 25000, 9000, up=True),),
        kernel=KernelFacts(
            release="6.1.0",
            os="Example Linux 12",
            architecture="x86_64",
            hostname="example",
            boot_id="00000000-0000-0000-0000-000000000001",
            transparent_hugepage="madvise",
            io_uring_disabled=0,
            hypervisor=None,
        ),
        target=None if path is None else _target(path, free_bytes),
        tools=(ToolFacts("fio", "/usr/bin/fio", "fio-3.33"),),
        faults=(),
    )


def _target(path: str, free_bytes: int) -> TargetFacts:
    return TargetFacts(
        path=path,
        fs_type="xfs",
        mount_point="/mnt",
        mount_source=f"/dev/{DEVICE}",
        mount_options="rw,noatime",
        total_bytes=1 << 40,
        free_bytes=free_bytes,
        free_inodes=1_000_000,
        device=DEVICE,
        devices=(DEVICE,),
        in_memory=False,
        memory_backed=False,
        network=False,
        writable=True,
    )


def on_loop(facts: HostFacts) -> HostFacts:
    """The same machine with an XFS of the session's own, in an image on its disk, as the target."""
    if facts.target is None:
        return facts
    devices = (LOOP, *facts.target.devices)
    target = replace(facts.target, device=LOOP, devices=devices, mount_point=facts.target.path)
    disk = replace(facts.disks[0], name=LOOP, parents=facts.target.devices)
    return replace(facts, target=target, disks=(*facts.disks, disk))


def device_facts(path: str, objections: tuple[str, ...]) -> dict[str, object]:
    """The `device` message of the machine's one disk, with objections of these words."""
    return {
        "is": "device",
        "path": path,
        "real_path": f"/dev/{DEVICE}",
        "name": DEVICE,
        "serial": "E0001",
        "size_bytes": 1 << 40,
        "logical_block_bytes": 512,
        "discards": True,
        "devices": [DEVICE],
        "memory_backed": False,
        "signatures": [],
        "objections": [{"code": word, "message": f"{DEVICE} is {word}"} for word in objections],
    }


def sample(disk: DiskUse, seq: int, mono_ns: int, real_ns: int) -> dict[str, object]:
    """The `sample` message of a machine that is a tenth busy."""
    busy, idle = mono_ns // 10, mono_ns - mono_ns // 10
    return {
        "seq": seq,
        "mono_ns": mono_ns,
        "real_ns": real_ns,
        "boot_ns": mono_ns,
        "cpu": [[core, 0, busy, 0, 0, idle, 0, 0, 0, 0] for core in range(CORES)],
        "disks": [
            [
                DEVICE,
                disk.read_ios,
                disk.read_bytes,
                disk.read_ios * 200_000,
                disk.write_ios,
                disk.write_bytes,
                disk.write_ios * 300_000,
                0,
                busy,
                busy,
                0,
                0,
                0,
                35_000,
            ]
        ],
        "nics": [["eth0", mono_ns // 1000, seq, 0, mono_ns // 2000, seq, 0]],
        "memory": {
            "total_bytes": MEMORY_BYTES,
            "free_bytes": MEMORY_BYTES // 2,
            "available_bytes": MEMORY_BYTES // 2,
            "page_cache_bytes": 1 << 30,
            "dirty_bytes": 0,
            "writeback_bytes": 0,
        },
        "pressure": {
            "cpu_some_ns": 0,
            "io_some_ns": mono_ns // 20,
            "io_full_ns": mono_ns // 50,
            "memory_some_ns": 0,
            "memory_full_ns": None,
        },
        "thermal": {"throttle_events": 0},
        "agent": {"cpu_ns": mono_ns // 10_000, "rss_bytes": 2_000_000},
    }
