"""The log pages of the NVMe drives below a target, read by the host's agent."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from iolab.core.drive import DriveReading, DriveReadingPair
from iolab.hosts.answers import DrivesAnswer, read_answer
from iolab.hosts.host import Host

READ_LIMIT_S: Final = 20.0
"""A drive takes milliseconds for a page; one that is busy with its own affairs may take seconds."""

_NAMESPACE: Final = re.compile(r"nvme\d+n\d+")
"""No partition, and no hidden path of a multipath drive: those move the same bytes."""


def nvme_namespaces(devices: Sequence[str]) -> list[str]:
    """Those of the kernel's device names that are namespaces of NVMe drives."""
    return [name for name in devices if _NAMESPACE.fullmatch(name)]


async def read_drive_logs(host: Host, devices: Sequence[str]) -> tuple[DriveReading, ...]:
    """The pages of the NVMe drives among these devices; the host is not asked where there is none.

    Raises HostError.
    """
    names = nvme_namespaces(devices)
    if not names:
        return ()
    reply = await host.request("drive_logs", deadline_s=READ_LIMIT_S, devices=names)
    return read_answer(host.name, DrivesAnswer, reply).drives


def pair_drive_readings(
    before: Sequence[DriveReading], after: Sequence[DriveReading]
) -> tuple[DriveReadingPair, ...]:
    """Each drive before with the same one after; without where that was not read."""
    later = {reading.device: reading for reading in after}
    return tuple(DriveReadingPair(reading, later.get(reading.device)) for reading in before)
