"""A host: how to reach it, and the facts that become the test configuration tables."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import StrEnum
from typing import Final

from iolab.core.host_name import HostName
from iolab.core.kubernetes import PodFacts
from iolab.core.power import MeterSpec
from iolab.record import Record
from iolab.text import excerpt, list_text
from iolab.units import format_count, format_rate_bytes

SCRATCH_PREFIX: Final = "iolab-scratch"
"""How the name of a session's folder on a target begins, and of whatever else it makes there."""

VIRTUAL: Final = "virtual"
"""The medium of a disk whose own the kernel cannot know."""

VIRTUAL_NAMES: Final = ("vd", "xvd", "nbd", "rbd", "zram", "ram", "loop", "drbd")
"""How disks of virtio, Xen, networks, memory and files are named."""

VIRTUAL_MODELS: Final = ("qemu", "vbox", "virtual disk", "vmware", "iscsi", "elastic block store")
"""Parts of the models that emulated and remote disks tell, in lower case."""

CLOUD_TAGS: Final = {
    "7783-7084-3265-9085-8269-3286-77": "Microsoft Azure",
    "OracleCloud.com": "Oracle Cloud",
    "OpenTelekomCloud": "Open Telekom Cloud",
    "HUAWEICLOUD": "Huawei Cloud",
}
"""Clouds that are known by the asset tag of the chassis; others tell their name as the vendor."""

UNSET_FIRMWARE_TEXTS: Final = frozenset(
    {
        "0",
        "default string",
        "empty",
        "n/a",
        "none",
        "not specified",
        "o.e.m.",
        "oem",
        "system manufacturer",
        "system product name",
        "to be filled by o.e.m.",
        "unknown",
    }
)
"""What boards say whose maker filled nothing in, in lower case."""

LAYERS_LENGTH: Final = 300
"""Of the layers below a target in a sentence: what is longer has long paths."""

EMULATED: Final = "TCG"
"""How the name begins by which QEMU's emulated processors tell their hypervisor."""

READS: Final = "reads"
WRITES: Final = "writes"
BYTES_READ: Final = "bytes read"
BYTES_WRITTEN: Final = "bytes written"
"""What control groups count of a device in a second."""


class HostTransport(StrEnum):
    """How a host's stdin and stdout are reached."""

    LOCAL = "local"
    COMMAND = "command"
    SSH = "ssh"
    SLURM = "slurm"
    VM = "vm"
    """A guest that the session boots on its node."""


class HostRole(StrEnum):
    """What a host does in the study; only clients make load."""

    CLIENT = "client"
    STORAGE = "storage"
    HYPERVISOR = "hypervisor"


class JumpHost(Record):
    """A jump host; None leaves the choice to ~/.ssh/config and to ssh's defaults."""

    address: str
    user: str | None = None
    port: int | None = None

    def __str__(self) -> str:
        user = f"{self.user}@" if self.user else ""
        return f"{user}{self.address}{f':{self.port}' if self.port else ''}"


class SshRoute(Record):
    """How ssh reaches a host; None leaves the choice to ~/.ssh/config and to ssh's defaults.

    `jump` are the hosts on the way, nearest first; `key` and `known_hosts` are paths of files on
    the controller, absolute or below `~/`.
    """

    address: str
    user: str | None = None
    port: int | None = None
    jump: tuple[JumpHost, ...] = ()
    key: str | None = None
    known_hosts: str | None = None


class HypervisorHints(Record):
    """What an inventory knows of a hypervisor beyond what can be asked there: where load may turn.

    Processor cores, NUMA nodes and queues of its storage; None where it is not written.
    """

    cores: int | None = None
    numa_nodes: int | None = None
    queues: int | None = None


NO_HYPERVISOR_HINTS: Final = HypervisorHints()
"""A host of which nothing is written."""


class HostSpec(Record):
    """A machine reached: `command_prefix` reaches a `command` host, `path` is its target.

    `ssh` is how an `ssh` host is reached, None for the other kinds. `devices` are the block devices
    that carry the target there, empty to find them below its path; a storage node, which has no
    path, names those that serve the target. `numjobs` takes the place of every workload's on this
    host, None for the workload's own. With a `serial` the `path` is a whole block device.
    `hypervisor` is the hypervisor that a guest lives on, "" for a host that is none. A hypervisor's
    `path` is where its guests' images go, `storage_address` where it offers them to other nodes.
    `meters` measure its power, besides those that its kernel has.
    """

    name: HostName
    transport: HostTransport
    role: HostRole = HostRole.CLIENT
    command_prefix: tuple[str, ...] = ()
    path: str | None = None
    ssh: SshRoute | None = None
    devices: tuple[str, ...] = ()
    numjobs: int | None = None
    serial: str | None = None
    hypervisor: HostName = ""
    storage_address: str = ""
    hypervisor_hints: HypervisorHints = NO_HYPERVISOR_HINTS
    meters: tuple[MeterSpec, ...] = ()


class NumaNode(Record):
    """One NUMA node with its CPUs (kernel list form, `0-7,16`) and memory."""

    id: int
    cpus: str
    memory_bytes: int


class CpuFacts(Record):
    """The processors of a host; cores and threads count what is online.

    `allowed_cores` is how many of the threads the agent may use, `quota_cores` how many processors
    the quotas of its control groups allow; None without a limit, or where it is not known.
    """

    model: str
    sockets: int
    cores: int
    threads: int
    governor: str | None
    max_mhz: float | None
    numa: tuple[NumaNode, ...]
    allowed_cores: int | None = None
    quota_cores: float | None = None

    @property
    def usable_core_limit(self) -> float | None:
        """How many cores a load may use where that is fewer than there are; None without one."""
        limits = [cores for cores in (self.allowed_cores, self.quota_cores) if cores is not None]
        least = min(limits, default=None)
        return None if least is None or least >= self.threads else float(least)


class MemoryModule(Record):
    """One populated DRAM slot as DMI tells it."""

    slot: str
    size_bytes: int
    type: str
    speed_mts: int | None


class MemoryFacts(Record):
    """Memory of a host; modules are empty where DMI is not readable.

    `limit_bytes` is what its control groups allow a load, page cache included; None without a
    limit.
    """

    total_bytes: int
    modules: tuple[MemoryModule, ...]
    limit_bytes: int | None = None

    @property
    def usable_bytes(self) -> int:
        """What a load and its page cache can have."""
        limit = self.limit_bytes
        return self.total_bytes if limit is None else min(limit, self.total_bytes)


class DiskFacts(Record):
    """One block device. `parents` are the devices below it (md, dm, loop backing device).

    Larger I/Os than `max_io_bytes` are split by the kernel; None where it does not tell.
    """

    name: str
    model: str | None
    serial: str | None
    firmware: str | None
    size_bytes: int
    rotational: bool
    scheduler: str | None
    logical_block_bytes: int
    physical_block_bytes: int
    pcie_link: str | None
    parents: tuple[str, ...]
    backing_file: str | None
    max_io_bytes: int | None = None

    @property
    def medium_kind(self) -> str:
        """`virtual` where the kernel cannot know what lies below, whose default is `rotational`."""
        model = (self.model or "").lower()
        if self.name.startswith(VIRTUAL_NAMES) or any(word in model for word in VIRTUAL_MODELS):
            return VIRTUAL
        return "rotational" if self.rotational else "solid state"


class NicFacts(Record):
    """One network port; speed is None where the kernel does not know it."""

    name: str
    driver: str | None
    speed_mbit_s: int | None
    mtu: int
    up: bool

    @property
    def has_hardware(self) -> bool:
        """Whether a device is behind it: the speed of a bridge, tunnel or veth is made up.

        A bond has none either; its ports stand for it.
        """
        return self.driver is not None


class KernelFacts(Record):
    """The operating system and the settings that change storage results."""

    release: str
    os: str
    architecture: str
    hostname: str
    boot_id: str
    transparent_hugepage: str | None
    io_uring_disabled: int | None
    hypervisor: str | None

    def boot_id_or_host(self, host_name: str) -> str:
        """What hosts of one kernel share, its boot; the name of a host that tells none."""
        return self.boot_id or host_name


class MachineFacts(Record):
    """What the firmware (DMI) calls the machine; None where it does not tell."""

    vendor: str | None
    product: str | None
    asset_tag: str | None

    @property
    def vendor_and_product_text(self) -> str | None:
        """Cloud or maker, then product: on Amazon EC2 the instance type. None where untold."""
        vendor, product = (
            "" if (text or "").lower() in UNSET_FIRMWARE_TEXTS else (text or "")
            for text in (self.vendor, self.product)
        )
        vendor = CLOUD_TAGS.get(self.asset_tag or "", vendor)
        if product.startswith(vendor):
            vendor = ""
        return f"{vendor} {product}".strip() or None


UNKNOWN_MACHINE: Final = MachineFacts(vendor=None, product=None, asset_tag=None)


class CloudVolume(Record):
    """A volume as a cloud's metadata service tells of it: its type in that cloud's words."""

    name: str
    type: str
    size_gib: int | None


class CloudFacts(Record):
    """What a cloud's metadata service tells of a machine, where it was asked."""

    provider: str
    instance_type: str | None
    zone: str | None
    volumes: tuple[CloudVolume, ...]

    @property
    def summary_text(self) -> str:
        """All of it in a line."""
        words = [
            f"{volume.name} {volume.type}".strip()
            + (f" {volume.size_gib} GiB" if volume.size_gib else "")
            for volume in self.volumes
        ]
        parts = (self.provider, self.instance_type, self.zone, *words)
        return ", ".join(part for part in parts if part)


class TargetFacts(Record):
    """The file system under a path.

    `device` is the block device nearest the file system (whose counters see what the file system
    asks), `devices` are all devices below it down to the leaves, nearest first; both are empty
    where there is none (network and memory file systems). `in_memory` is true for tmpfs and alike;
    `memory_backed` for a file system on a block device whose blocks are memory of the host (zram, a
    RAM disk, a loop device over a file in tmpfs). `layers` are what the path is on in words, down
    to storage or memory, or to the one that hides what is below (`hidden`).
    """

    path: str
    fs_type: str
    mount_point: str
    mount_source: str
    mount_options: str
    total_bytes: int
    free_bytes: int
    free_inodes: int
    device: str | None
    devices: tuple[str, ...]
    in_memory: bool
    network: bool
    writable: bool
    memory_backed: bool
    layers: tuple[str, ...] = ()
    hidden: bool = False

    @property
    def layers_or_fs_type_text(self) -> str:
        """The layers in one line, nearest first; where none is known the type of file system."""
        return excerpt(" on ".join(self.layers), LAYERS_LENGTH) or self.fs_type


class TargetFaultCode(StrEnum):
    """Why nothing is known of a target's directory."""

    MISSING = "missing"
    UNREACHABLE = "unreachable"
    NO_DIRECTORY = "no-directory"
    NO_MOUNT = "no-mount"
    NOT_FOR_FILES = "not-for-files"


class TargetFault(Record):
    """What is wrong with a target's directory, and that in words, as those of the kernel.

    Of a file system that is not for files `message` is its type.
    """

    code: TargetFaultCode
    message: str


class TargetProbe(Record):
    """What trying the target told: `direct_error` is None when an O_DIRECT write and read worked.

    `held_by` names the session that holds the target, None when it is free; `other_user` one of
    another user, whose sessions stop nobody. `movable_by` says who
    but root and the agent's user could move what is made there. `mount_error` and
    `memory_error` are why the host cannot have a file system of the session's own and cannot bound
    memory, None when it can or was not asked.
    """

    direct_error: str | None
    direct_align_bytes: int | None
    held_by: str | None
    mount_error: str | None = None
    memory_error: str | None = None
    other_user: str | None = None
    movable_by: str | None = None


class DeviceRefusal(Record):
    """A reason why a device may not be written: a word, and half a sentence with the value."""

    code: str
    message: str


class DeviceFacts(Record):
    """A whole block device that is to be a target; `name` is empty where there is none.

    `devices` are the device and all below it. With any of the `objections` it is not written to.
    """

    path: str
    real_path: str
    name: str
    serial: str | None
    size_bytes: int
    logical_block_bytes: int
    discards: bool
    devices: tuple[str, ...]
    memory_backed: bool
    objections: tuple[DeviceRefusal, ...]
    layers: tuple[str, ...] = ()
    hidden: bool = False


class CgroupDeviceIoLimit(Record):
    """What control groups allow a load to ask of one device in a second; None without a limit."""

    device: str
    read_iops: int | None = None
    write_iops: int | None = None
    read_bytes_per_s: int | None = None
    write_bytes_per_s: int | None = None

    @property
    def nouns_and_limits(self) -> tuple[tuple[str, int | None], ...]:
        """What is counted, with the most of it in a second."""
        return (
            (READS, self.read_iops),
            (WRITES, self.write_iops),
            (BYTES_READ, self.read_bytes_per_s),
            (BYTES_WRITTEN, self.write_bytes_per_s),
        )

    @property
    def device_and_io_limits_phrase(self) -> str:
        """Every limit in a line."""
        texts = []
        for counted, limit in self.nouns_and_limits:
            noun, _, verb = counted.partition(" ")
            if limit:
                texts.append(
                    f"{format_rate_bytes(limit)} {verb}"
                    if verb
                    else f"{format_count(limit)} {noun}/s"
                )
        return f"{self.device}: at most {list_text(texts)}"


class ToolFacts(Record):
    """One tool: the path it was found at and the first line of its version, None if missing.

    `fault` is how it failed to print its version, with its own words: what a program prints when it
    fails is no version.
    """

    name: str
    path: str | None
    version: str | None
    fault: str | None = None


class HostFacts(Record):
    """Everything a report's test configuration tables say of one host."""

    cpu: CpuFacts
    memory: MemoryFacts
    disks: tuple[DiskFacts, ...]
    nics: tuple[NicFacts, ...]
    kernel: KernelFacts
    target: TargetFacts | None
    tools: tuple[ToolFacts, ...]
    faults: tuple[str, ...]
    """What could not be read and why, one sentence each."""
    machine: MachineFacts = UNKNOWN_MACHINE
    cloud: CloudFacts | None = None
    target_fault: TargetFault | None = None
    pod: PodFacts | None = None
    """Of a host that is a pod, what its cluster tells of it."""
    io_limits: tuple[CgroupDeviceIoLimit, ...] = ()

    @property
    def target_cgroup_io_limits(self) -> tuple[CgroupDeviceIoLimit, ...]:
        """The limits of the devices below the target."""
        devices = self.target.devices if self.target else ()
        return tuple(limit for limit in self.io_limits if limit.device in devices)

    def tool_facts(self, name: str) -> ToolFacts | None:
        """The tool of that name, None when it was not asked for."""
        return next((tool for tool in self.tools if tool.name == name), None)


def is_emulator(hypervisor: str | None) -> bool:
    """Whether processors that tell of this hypervisor are emulated in software."""
    return (hypervisor or "").upper().startswith(EMULATED)


class HostProgram(Record):
    """A program by which a kind of load is made, as `iolab doctor` looks for it on clients.

    It is on a host that has `name` on its PATH. `version_argv_by_tool` are the commands that tell
    versions, by their programs. `version_text` says what hosts must have alike,
    `unequal_versions_hint` what to do where they have not. `fault_of_facts` says what is wrong with
    it on a host, and is None where load is as well made by something else; `install_hint` is what
    to do then.
    """

    name: str
    title: str
    version_argv_by_tool: Mapping[str, Sequence[str]]
    version_text: Callable[[HostFacts], str]
    unequal_versions_hint: str
    fault_of_facts: Callable[[HostFacts], str | None] | None = None
    install_hint: str = ""

    def is_installed(self, facts: HostFacts) -> bool:
        """Whether it is on the PATH of that host."""
        tool = facts.tool_facts(self.name)
        return tool is not None and tool.path is not None


def version_argv_by_tool(programs: Iterable[HostProgram]) -> dict[str, list[str]]:
    """What hosts are asked for those programs: each with the command that tells its version."""
    return {
        name: list(argv)
        for program in programs
        for name, argv in program.version_argv_by_tool.items()
    }
