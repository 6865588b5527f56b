"""The machine of a guest: QEMU's command line, made of what is decided elsewhere."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Mapping
from enum import StrEnum
from typing import Final

from iolab.errors import HostError
from iolab.guests.guest import GUEST_SERIAL, Accelerator, GuestDiskKind, GuestSettings
from iolab.hosts.answers import ClockAnswer, read_answer
from iolab.hosts.clock import CLOCK_LIMIT_S
from iolab.hosts.host import Host
from iolab.record import Record

DISK_ID: Final = "data-disk"
"""What the data disk is called in the hypervisor, where its counters are asked for."""

TOOLS_SERIAL: Final = "tools"
"""The serial of the read-only disk that the guest's programs lie on."""

AGENT_PORT: Final = "agent"
"""The virtio port over which the agent in the guest is spoken to."""

NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,72}")
"""Guests whose sockets can be named after them: no comma, which QEMU would take for the end of the
name, no '/', and with the longer ending within the 80 bytes that an agent takes."""

TRANSLATIONS_MIB: Final = 256
"""Emulated code that is kept. QEMU's own choice is up to a gigabyte for each guest. With 32 the
code of kernel, agent and fio with its libraries is translated again and again: six guests began 1.7
times as far apart."""

JIFFIES_PER_S: Final = 250
"""CONFIG_HZ of Debian's kernels."""

_BARE_MACHINE_OPTIONS: Final = ("-nodefaults", "-no-user-config", "-no-reboot", "-display", "none")
"""Nothing but what is named here, and an end instead of a second boot."""

TSC_SAMPLE_GAP_S: Final = 0.5
"""Between two readings, each within a microsecond: the rate is then off by a few millionths."""

KHZ_MIN: Final = 100_000

KHZ_MAX: Final = 100_000_000
"""No processor's counter is outside; what is comes of a node that speaks nonsense."""


class QemuAio(StrEnum):
    """How QEMU gives a guest's I/O to its node's kernel."""

    NATIVE = "native"
    """io_submit; it needs O_DIRECT, which our images have."""
    IO_URING = "io_uring"
    THREADS = "threads"


class Replica(Record):
    """A copy of a guest's image that another node offers over NBD."""

    address: str
    port: int
    export: str


class QemuMachine(Record):
    """One guest to start. Paths are of its node, absolute or from its scratch folder.

    `accelerator` is decided: KVM or TCG. `image` is None for a modelled disk. `cpus` are the node's
    processors that it may use, empty for all; `memory_numa_node` the NUMA node of its memory, None
    for any. `tsc_khz` is the rate of the node's time stamp counter, which an emulated guest must be
    told, because it measures it wrong, or never, on a busy node. `real_ns` is the session's clock
    at the start. ValueError for what does not fit together.
    """

    guest: str
    settings: GuestSettings
    accelerator: Accelerator
    kernel: str
    initrd: str
    tools: str
    image: str | None = None
    cpus: tuple[int, ...] = ()
    memory_numa_node: int | None = None
    tsc_khz: int | None = None
    real_ns: int = 0
    aio: QemuAio = QemuAio.NATIVE
    replicas: tuple[Replica, ...] = ()

    def __post_init__(self) -> None:
        if not NAME.fullmatch(self.guest):
            raise ValueError(f"a guest cannot be called {self.guest!r}")
        if self.accelerator is Accelerator.AUTO:
            raise ValueError("the accelerator is not decided")
        if self.accelerator is Accelerator.TCG and not self.tsc_khz:
            raise ValueError("an emulated guest needs the rate of the time stamp counter")
        if (self.settings.disk is GuestDiskKind.IMAGE) != (self.image is not None):
            raise ValueError("an image is for a disk of that kind, and for no other")
        if len(self.replicas) != (self.settings.replicas - 1 if self.image else 0):
            raise ValueError("there are not as many replicas as the settings say")


def agent_socket_file_name(guest_name: str) -> str:
    """The socket of a guest's agent port, in its node's scratch folder."""
    return f"{guest_name}.agent"


def monitor_socket_file_name(guest_name: str) -> str:
    """The socket of a guest's QMP monitor, in its node's scratch folder."""
    return f"{guest_name}.qmp"


def qemu_argv(machine: QemuMachine, qemu: str) -> tuple[str, ...]:
    """The command that runs a guest until it ends; `qemu` is the program.

    Its working directory is the scratch folder, where it makes both sockets. The guest's console is
    its standard output.
    """
    return (
        *_taskset_arguments(machine),
        qemu,
        *("-name", f"guest={machine.guest},debug-threads=on"),
        *("-machine", "microvm,memory-backend=memory"),
        *_cpu_arguments(machine),
        *_memory_arguments(machine),
        *_BARE_MACHINE_OPTIONS,
        *("-chardev", "stdio,id=console,signal=off", "-serial", "chardev:console"),
        *_socket_arguments(machine),
        *_tools_disk_arguments(machine),
        *_data_disk_arguments(machine),
        *("-kernel", machine.kernel, "-initrd", machine.initrd),
        *("-append", " ".join(_kernel_command_line(machine))),
    )


def _taskset_arguments(machine: QemuMachine) -> tuple[str, ...]:
    if not machine.cpus:
        return ()
    return ("taskset", "-c", ",".join(str(cpu) for cpu in machine.cpus))


def _cpu_arguments(machine: QemuMachine) -> tuple[str, ...]:
    count = ("-smp", str(machine.settings.vcpus))
    if machine.accelerator is Accelerator.KVM:
        return ("-accel", "kvm", "-cpu", "host", *count)
    return ("-accel", f"tcg,thread=multi,tb-size={TRANSLATIONS_MIB}", "-cpu", "max", *count)


def _memory_arguments(machine: QemuMachine) -> tuple[str, ...]:
    size = machine.settings.memory_bytes
    backend: dict[str, object] = {"qom-type": "memory-backend-ram", "id": "memory", "size": size}
    if machine.memory_numa_node is not None:
        backend |= {"host-nodes": [machine.memory_numa_node], "policy": "bind"}
    return ("-object", _json_option(backend), "-m", f"{size}B")


def _socket_arguments(machine: QemuMachine) -> tuple[str, ...]:
    listen = "server=on,wait=off"
    return (
        *("-chardev", f"socket,id=agent,path={agent_socket_file_name(machine.guest)},{listen}"),
        *("-device", "virtio-serial-device"),
        *("-device", f"virtserialport,chardev=agent,name={AGENT_PORT}"),
        *("-chardev", f"socket,id=monitor,path={monitor_socket_file_name(machine.guest)},{listen}"),
        *("-mon", "chardev=monitor,mode=control"),
    )


def _tools_disk_arguments(machine: QemuMachine) -> tuple[str, ...]:
    # Through the page cache, which all guests of the node share: no I/O of it while they measure.
    file = {"driver": "file", "filename": machine.tools}
    node = {"driver": "raw", "node-name": "tools", "read-only": True, "file": file}
    disk = {"driver": "virtio-blk-device", "drive": "tools", "serial": TOOLS_SERIAL}
    return ("-blockdev", _json_option(node), "-device", _json_option(disk))


def _data_disk_arguments(machine: QemuMachine) -> tuple[str, ...]:
    disk = {
        "driver": "virtio-blk-device",
        "id": DISK_ID,
        "drive": "data",
        "serial": GUEST_SERIAL,
        "num-queues": machine.settings.vcpus,
        # An image without holes stays one.
        "discard": False,
        "write-zeroes": False,
        # A guest with an error in its I/O says so; one that is stopped says nothing.
        "rerror": "report",
        "werror": "report",
    }
    return (*_data_disk_blockdev_arguments(machine), "-device", _json_option(disk))


def _data_disk_blockdev_arguments(machine: QemuMachine) -> tuple[str, ...]:
    """The block node `data`, with its bound of IOPS above whatever lies below."""
    iops = machine.settings.iops_limit
    below = _data_disk_backend(machine)
    if iops is None:
        return ("-blockdev", _json_option({"node-name": "data", **below}))
    group = {"qom-type": "throttle-group", "id": "bound", "limits": {"iops-total": iops}}
    bounded = {"driver": "throttle", "node-name": "data", "throttle-group": "bound", "file": below}
    return ("-object", _json_option(group), "-blockdev", _json_option(bounded))


def _data_disk_backend(machine: QemuMachine) -> dict[str, object]:
    if machine.image is None:
        return {
            "driver": "null-co",
            "size": machine.settings.disk_bytes,
            "latency-ns": machine.settings.latency_ns or 0,
            "read-zeroes": True,
        }
    local: dict[str, object] = {
        "driver": "file",
        "filename": machine.image,
        "aio": machine.aio.value,
        "cache": {"direct": True},
    }
    if not machine.replicas:
        return local
    copies = [local, *map(_replica_backend, machine.replicas)]
    # Reads are of the first, the local one; a write is done when all copies have it.
    return {
        "driver": "quorum",
        "read-pattern": "fifo",
        "vote-threshold": len(copies),
        "children": copies,
    }


def _replica_backend(replica: Replica) -> dict[str, object]:
    server = {"type": "inet", "host": replica.address, "port": str(replica.port)}
    return {"driver": "nbd", "server": server, "export": replica.export}


def _kernel_command_line(machine: QemuMachine) -> tuple[str, ...]:
    words = (
        *("quiet", "console=ttyS0", "panic=-1", "reboot=t", "cryptomgr.notests"),
        # Else one of fio's libraries, with 130 MiB of zeroes that it never touches, is refused.
        "sysctl.vm.overcommit_memory=1",
        f"iolab.real_ns={machine.real_ns}",
        f"iolab.name={machine.guest}",
    )
    if machine.accelerator is Accelerator.KVM or not machine.tsc_khz:
        return words
    khz = machine.tsc_khz
    jiffy = khz * 1000 // JIFFIES_PER_S
    return (*words, f"tsc_early_khz={khz}", "tsc=reliable", f"lpj={jiffy}")


def _json_option(option: Mapping[str, object]) -> str:
    """JSON, which QEMU reads where a comma in a path would end an option's value."""
    return json.dumps(option, separators=(",", ":"))


async def measure_tsc_khz_of_node(node: Host) -> int:
    """How many thousand times a second it counts. HostError when the node does not tell."""
    first = await _read_clock(node)
    await asyncio.sleep(TSC_SAMPLE_GAP_S)
    later = await _read_clock(node)
    passed_ns = later.mono_ns - first.mono_ns
    if first.tsc is not None and later.tsc is not None and passed_ns > 0:
        khz = round((later.tsc - first.tsc) * 1_000_000 / passed_ns)
        if KHZ_MIN <= khz <= KHZ_MAX:
            return khz
    message = f"Node '{node.name}' does not tell how fast its time stamp counter is."
    raise HostError(message, "Emulate guests on another node, or give this one KVM.")


async def _read_clock(node: Host) -> ClockAnswer:
    message = await node.request("clock", deadline_s=CLOCK_LIMIT_S)
    return read_answer(node.name, ClockAnswer, message)
