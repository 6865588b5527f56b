"""What a cloud volume is provisioned for, by its type and size, without what it may burst to.

From the providers' tables of November 2025, linked in `docs/reference/checks/burst-credits.md`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from iolab.core.host import CloudVolume, HostFacts
from iolab.record import Record
from iolab.units import GIB, MIB

MB: Final = 1_000_000

REACHED_TOLERANCE: Final = 0.1
"""A rate so near to a provisioned limit, as a share, is that limit."""

TIERS: Final[Mapping[str, tuple[int, int, int]]] = {
    "P1": (4, 120, 25),
    "P2": (8, 120, 25),
    "P3": (16, 120, 25),
    "P4": (32, 120, 25),
    "P6": (64, 240, 50),
    "P10": (128, 500, 100),
    "P15": (256, 1100, 125),
    "P20": (512, 2300, 150),
    "P30": (1024, 5000, 200),
    "P40": (2048, 7500, 250),
    "P50": (4096, 7500, 250),
    "P60": (8192, 16_000, 500),
    "P70": (16_384, 18_000, 750),
    "P80": (32_767, 20_000, 900),
}
"""Azure's tiers of Premium SSD: GiB, IOPS, MB/s. A disk has the smallest tier that holds it."""


class ProvisionedLimit(Record):
    """Operations and bytes a second that a volume of that type gives for ever; None is no limit."""

    type: str
    iops: float | None
    bytes_per_s: float | None

    def iops_at(self, mean_io_bytes: float) -> float | None:
        """The operations a second that both limits leave at a mean size."""
        by_bytes = None
        if self.bytes_per_s is not None and mean_io_bytes > 0:
            by_bytes = self.bytes_per_s / mean_io_bytes
        return min((iops for iops in (self.iops, by_bytes) if iops is not None), default=None)


_Limits = Callable[[float], tuple[float | None, float | None]]
"""IOPS and bytes a second by the size in GiB."""


def _gp2_iops_and_bytes_limits(gib: float) -> tuple[float, float]:
    """Three IOPS a GiB; 128 MiB/s up to 170 GiB, of larger ones 250 MiB/s."""
    return min(max(3 * gib, 100.0), 16_000.0), (128 if gib <= 170 else 250) * MIB


def _fixed_limits_function(iops: float, megabytes: float) -> _Limits:
    return lambda _: (iops, megabytes * MB)


LIMITS: Final[Mapping[str, _Limits]] = {
    "gp2": _gp2_iops_and_bytes_limits,
    "gp3": lambda _: (3000.0, 125.0 * MIB),
    "st1": lambda gib: (None, min(40 * gib / 1024, 500.0) * MIB),
    "sc1": lambda gib: (None, min(12 * gib / 1024, 192.0) * MIB),
    **{name: _fixed_limits_function(iops, speed) for name, (_, iops, speed) in TIERS.items()},
}
"""Types of volumes that burst, or that a study may name; of gp3 what every volume has."""

VOLUME_TYPES: Final = tuple(LIMITS)


def provisioned_limit(facts: HostFacts, study_volume_type: str | None) -> ProvisionedLimit | None:
    """What the target's volume is provisioned for; None where its type or its size is not known.

    The study may have `study_volume_type` the type, else the cloud's metadata tell it.
    """
    target = facts.target
    devices = set(target.devices) if target is not None else set()
    sizes = [
        disk.size_bytes / GIB for disk in facts.disks if disk.name in devices and not disk.parents
    ]
    if len(sizes) != 1:
        return None
    kind = study_volume_type or _volume_type_from_cloud_facts(facts, sizes[0])
    if kind not in LIMITS:
        return None
    return ProvisionedLimit(kind, *LIMITS[kind](sizes[0]))


def _volume_type_from_cloud_facts(facts: HostFacts, gib: float) -> str:
    """The type of the only volume of that size that the cloud tells of; else empty."""
    cloud = facts.cloud
    if cloud is None:
        return ""
    fits = [
        volume
        for volume in cloud.volumes
        if volume.size_gib is not None and round(gib) == volume.size_gib
    ]
    return volume_type(fits[0]) if len(fits) == 1 else ""


def volume_type(volume: CloudVolume) -> str:
    """Its type as this table has it: of Azure's Premium SSD the tier that its size makes."""
    if not volume.type.startswith("Premium_") or volume.type.startswith("PremiumV2"):
        return volume.type
    size = volume.size_gib
    if size is None:
        return ""
    return next((name for name, (gib, _, _) in TIERS.items() if size <= gib), "")
