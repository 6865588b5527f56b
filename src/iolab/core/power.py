"""Power meters: who measures watts, and of what."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from enum import StrEnum
from typing import Final

from iolab.core.metric_spec import BetterDirection, CombineRule, MetricSpec
from iolab.record import Record

MILLIWATTS_PER_WATT: Final = 1000
"""Telemetry counts power in milliwatts."""

NAME_SEPARATOR: Final = ":"
"""A meter's name in telemetry: its boundary, this, and which meter it is."""


class PowerBoundary(StrEnum):
    """What a meter measures, as the first part of its name."""

    NODE = "node"
    """The whole machine at its input, with its drives and fans."""
    PROCESSORS = "processors"
    """Processor packages alone."""
    MEMORY = "memory"
    DRIVE = "drive"
    """Drives alone, by a meter between them and the machine."""
    PART = "part"
    """Any other part."""


REPORTED_BOUNDARIES: Final = (PowerBoundary.NODE, PowerBoundary.PROCESSORS, PowerBoundary.DRIVE)
"""Those of which results have metrics; of the others there are series."""


KERNEL_SENSOR_PREFIX: Final = "hwmon"
RAPL_PACKAGE_PREFIX: Final = "package-"
"""How the names of the kernel's own meters of a machine and of its processors begin."""


_DRIVE_DEVICE: Final = re.compile(r"nvme\d+n\d+|[shv]d[a-z]+")
"""The kernel's names of whole drives."""


def is_meter_summable(boundary: PowerBoundary, name: str) -> bool:
    """Whether a meter of a machine measures something that no other of its kind does.

    RAPL's packages are of a processor each; a meter of drives that has the name of one drive's
    device (`nvme0n1`) is of that one.
    """
    if boundary is PowerBoundary.DRIVE:
        return _DRIVE_DEVICE.fullmatch(name) is not None
    return name.startswith(RAPL_PACKAGE_PREFIX)


def meters_to_sum_for_machine(boundary: PowerBoundary, meter_names: Sequence[str]) -> list[str]:
    """Of one machine's meters at one boundary, in order, those whose sum is the machine's watts.

    The first that the study describes, else all that can be added, else the first of the kernel's.
    """
    addable = [name for name in meter_names if is_meter_summable(boundary, name)]
    others = [name for name in meter_names if name not in addable]
    described = [name for name in others if not name.startswith(KERNEL_SENSOR_PREFIX)]
    return described[:1] or addable or others[:1]


class ExternalMeterKind(StrEnum):
    """How a meter that the kernel does not have is read, by the controller."""

    COMMAND = "command"
    """A program that prints lines of seconds since 1970 and watts."""
    DCMI = "dcmi"
    """A BMC's power reading (IPMI DCMI 1.5, 6.6.1), through ipmitool over lanplus."""
    REDFISH = "redfish"
    SNMP = "snmp"
    """A number of a PDU, through snmpget."""


class MeterSpec(Record, kw_only=True):
    """A meter of one host as its inventory describes it.

    `command` is the argument list of one that is a program. `address` is a host or a URL, `user`
    who logs in there; `password_variable` names the environment variable with the password (with
    SNMP the community). `object_id` is SNMP's, and `scale` the watts of one. `cipher_suite` is
    IPMI's, `ca_file` the certificates that Redfish's must come from.
    """

    name: str
    kind: ExternalMeterKind
    boundary: PowerBoundary = PowerBoundary.NODE
    command: tuple[str, ...] = ()
    address: str = ""
    user: str = ""
    password_variable: str = ""
    object_id: str = ""
    scale: float = 1.0
    cipher_suite: int = 17
    ca_file: str = ""

    @property
    def series_name(self) -> str:
        """Its name in telemetry."""
        return f"{self.boundary.value}{NAME_SEPARATOR}{self.name}"


class MeterSettings(Record):
    """How meters are read: every `interval_s` seconds, and `idle_s` before and after each load."""

    interval_s: float = 1.0
    idle_s: float = 0.0


def meter_interval_s(settings: MeterSettings, meter: MeterSpec) -> float | None:
    """The time between two readings of a meter; None of a program, which has a pace of its own."""
    return None if meter.kind is ExternalMeterKind.COMMAND else settings.interval_s


def _power_metric_specs(boundary: PowerBoundary) -> Iterator[MetricSpec]:
    name, key = boundary.value, f"{boundary.value}_"
    lower, higher = (
        (BetterDirection.LOWER, CombineRule.MEAN),
        (BetterDirection.HIGHER, CombineRule.MEAN),
    )
    yield MetricSpec(f"{key}power_w", f"{name} power", "W", *lower)
    for net, title in (("", ""), ("net_", " net of idle")):
        for unit, rule in (("ops/J", higher), ("J/GB", lower)):
            own = f"{key}{net}{unit.lower().replace('/', '_per_')}"
            label = f"{unit}, {name}{title}"
            is_main = unit == "ops/J" and not net
            yield MetricSpec(own, label, unit, *rule, has_column=is_main)


NODE_POWER_METRIC: Final = f"{PowerBoundary.NODE.value}_power_w"
"""Watts of all machines at their inputs."""

OPERATIONS_PER_JOULE: Final = f"{PowerBoundary.NODE.value}_ops_per_j"
"""Operations that all machines did with a joule at their inputs."""

COMPARED_EFFICIENCIES: Final = (
    *(f"{boundary.value}_ops_per_j" for boundary in REPORTED_BOUNDARIES),
    f"{PowerBoundary.NODE.value}_net_ops_per_j",
)
"""What two sides are compared by where both have it, each boundary by itself."""

POWER_METRICS: Final = tuple(
    spec for boundary in REPORTED_BOUNDARIES for spec in _power_metric_specs(boundary)
)
"""Watts of a fleet, operations a joule (a watt is a joule a second, so this is IOPS/W) and joules
for 10^9 bytes, of each boundary, with all and less what idle takes. Net ones are only there where
idle was measured."""
