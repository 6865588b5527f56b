"""The table `[vm]` of a study file, with every default and limit."""

from collections.abc import Mapping
from typing import Annotated, Final

from pydantic import ValidationError

from iolab.guests.guest import (
    Accelerator,
    GuestDiskKind,
    GuestSettings,
    Pinning,
)
from iolab.study import values
from iolab.study.load_tables import StudyTable
from iolab.units import parse_size

RUNS: Final = 256
"""Runs at the same time of a host's agent (`MAX_RUNS` there): each guest's QEMU is one, and each
server of a copy."""

RUNS_RESERVED: Final = 16
"""Of them for all else that is run on a node: images are laid out and copied."""

REQUESTS: Final = 1000
"""Requests under way at the same time to one host."""

REQUESTS_RESERVED: Final = 50
"""Of them for all else that is asked of a node."""

GUEST_REQUESTS: Final = 5
"""Of each guest at most: its QEMU, the ways to its agent and to its monitor, and what is sent over
each or asked about it."""

COPIES: Final = 4096
"""Copies of images of one session: a port each, so that nodes which share an address share none."""

NAME_BYTES: Final = 64
"""Of a guest's name: its kernel takes no longer one."""

VCPUS_MAX: Final = 255
"""As many as QEMU gives a guest that it emulates: one more would need an x2APIC."""

MEMORY_BYTES_MIN: Final = 128 << 20
"""A kernel, its modules and fio with its buffers need more than half of that."""

MEMORY_BYTES_MAX: Final = 1 << 44

MEMORY_BYTES_MULTIPLE: Final = 1 << 20
"""QEMU takes no smaller part of memory."""

DISK_BYTES_MIN: Final = 16 << 20
"""Fewer bytes would be worked through within a second."""

DISK_BYTES_MAX: Final = 1 << 50

DISK_BYTES_MULTIPLE: Final = 4096
"""What images are read and written in at least, past the page cache."""

LATENCY_S_MIN: Final = 1e-6

LATENCY_S_MAX: Final = 10.0
"""Below, nothing is left of it beside the hypervisor's own time; above, guests report an error."""

IOPS_MAX: Final = 100_000_000
"""No disk comes near."""

REPLICAS_MAX: Final = 16
"""More nodes than any volume is mirrored on."""

BOOT_LIMIT_S_MIN: Final = 5.0
BOOT_LIMIT_S_MAX: Final = 3600.0
BOOTS_MAX: Final = 1000

_SETTINGS: Final = GuestSettings(vcpus=1, memory_bytes=0, disk_bytes=0)
"""For the defaults of what need not be written."""

_MIN: Final[Mapping[str, object]] = {"vcpus": 1, "memory": "1g", "disk": DISK_BYTES_MAX}


def max_guests_per_agent(replica_count: int) -> int:
    """How many guests a node may have, where each image lies on so many nodes.

    All nodes have as many, and so each serves as many copies of others as there are of its own.
    """
    by_runs = (RUNS - RUNS_RESERVED) // replica_count
    by_requests = (REQUESTS - REQUESTS_RESERVED) // (GUEST_REQUESTS + replica_count - 1)
    return min(by_runs, by_requests)


Vcpus = Annotated[int, values.integer_value(1, VCPUS_MAX)]
Memory = Annotated[
    int | str, values.size_value(MEMORY_BYTES_MIN, MEMORY_BYTES_MAX, multiple=MEMORY_BYTES_MULTIPLE)
]
Disk = Annotated[
    int | str, values.size_value(DISK_BYTES_MIN, DISK_BYTES_MAX, multiple=DISK_BYTES_MULTIPLE)
]


class VmTable(StudyTable):
    """`[vm]`: the guests that a session boots on every hypervisor, all alike."""

    vcpus: Vcpus
    memory: Memory
    disk: Disk
    disk_kind: Annotated[GuestDiskKind, values.choice_value(GuestDiskKind, "kinds of disk")] = (
        _SETTINGS.disk
    )
    latency: Annotated[float, values.seconds_value(LATENCY_S_MIN, LATENCY_S_MAX)] | None = None
    iops: Annotated[int, values.integer_value(1, IOPS_MAX)] | None = None
    replicas: Annotated[int, values.integer_value(1, REPLICAS_MAX)] = _SETTINGS.replicas
    accel: Annotated[Accelerator, values.choice_value(Accelerator, "accelerators")] = (
        _SETTINGS.accelerator
    )
    pin: Annotated[Pinning, values.choice_value(Pinning, "kinds of pinning")] = _SETTINGS.pinning
    boots: Annotated[int, values.integer_value(1, BOOTS_MAX)] | None = None
    boot_limit: Annotated[float, values.seconds_value(BOOT_LIMIT_S_MIN, BOOT_LIMIT_S_MAX)] = (
        _SETTINGS.boot_limit_s
    )
    kernel: Annotated[str, values.absolute_path_value()] | None = None


def vm_table_with_valid_keys(user_value: object) -> VmTable:
    """What a [vm] that cannot be read counts as, so that its faults bring no others with them."""
    keys = user_value if isinstance(user_value, dict) else {}
    good = {key: value for key, value in keys.items() if _is_valid_value(key, value)}
    return VmTable.model_validate({**_MIN, **good})


def _is_valid_value(key: str, value: object) -> bool:
    try:
        VmTable.model_validate({**_MIN, key: value})
    except ValidationError:
        return False
    return True


def guest_settings_from_table(table: VmTable) -> GuestSettings:
    """The settings that the keys say."""
    return GuestSettings(
        vcpus=table.vcpus,
        memory_bytes=parse_size(table.memory),
        disk_bytes=parse_size(table.disk),
        disk=table.disk_kind,
        latency_ns=None if table.latency is None else round(table.latency * 1e9),
        iops_limit=table.iops,
        replicas=table.replicas,
        accelerator=table.accel,
        pinning=table.pin,
        boots_at_once=table.boots or 0,
        boot_limit_s=table.boot_limit,
        kernel=table.kernel or "",
    )
