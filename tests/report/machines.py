"""A machine as an agent would describe it."""

from __future__ import annotations

from msgspec.structs import replace

from iolab.core.host import (
    CpuFacts,
    DiskFacts,
    HostFacts,
    KernelFacts,
    MemoryFacts,
    MemoryModule,
    NicFacts,
    NumaNode,
    TargetFacts,
    ToolFacts,
)

GIB = 1024**3

DISK = DiskFacts(
    name="nvme1n1",
    model="Micron 7450 MTFDKCC7T6TFR",
    serial="2231E6A7B1C2",
    firmware="E2MU200",
    size_bytes=7_681_501_126_656,
    rotational=False,
    scheduler="none",
    logical_block_bytes=512,
    physical_block_bytes=4096,
    pcie_link="8.0 GT/s x4",
    parents=(),
    backing_file=None,
)
TARGET = TargetFacts(
    path="/mnt/target",
    fs_type="xfs",
    mount_point="/mnt/target",
    mount_source="/dev/nvme1n1",
    mount_options="rw,noatime,attr2,inode64",
    total_bytes=7_677_750_067_200,
    free_bytes=7_600_000_000_000,
    free_inodes=1,
    device="nvme1n1",
    devices=("nvme1n1",),
    in_memory=False,
    memory_backed=False,
    network=False,
    writable=True,
)


def facts_of(host: str) -> HostFacts:
    """One NVMe target on a two-socket machine."""
    return HostFacts(
        cpu=CpuFacts(
            model="AMD EPYC 74F3 24-Core Processor",
            sockets=2,
            cores=48,
            threads=96,
            governor="performance",
            max_mhz=4037.0,
            numa=(
                NumaNode(0, "0-23,48-71", 128 * GIB),
                NumaNode(1, "24-47,72-95", 128 * GIB),
            ),
        ),
        memory=MemoryFacts(
            256 * GIB,
            tuple(MemoryModule(f"P0 CH{c}", 32 * GIB, "DDR4", 3200) for c in "ABCDEFGH"),
        ),
        disks=(DISK, replace(DISK, name="nvme0n1", model="Micron 7300", serial="1", firmware="9")),
        nics=(NicFacts("ens1f0np0", "mlx5_core", 200_000, 9000, up=True),),
        kernel=KernelFacts(
            release="6.1.0-31-amd64",
            os="Debian GNU/Linux 12 (bookworm)",
            architecture="x86_64",
            hostname=host,
            boot_id=f"boot of {host}",
            transparent_hugepage="madvise",
            io_uring_disabled=0,
            hypervisor=None,
        ),
        target=TARGET,
        tools=(ToolFacts("fio", "/usr/bin/fio", "fio-3.33"),),
        faults=("DMI is not readable without root.",),
    )
