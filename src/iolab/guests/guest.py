"""What a guest is, as a study says it, and what guests cost: time, and room on their nodes."""

from __future__ import annotations

import math
from collections.abc import Iterator
from enum import StrEnum
from typing import ClassVar, Final

from msgspec.structs import asdict

from iolab.core.host import HostTransport
from iolab.core.host_name import HostName
from iolab.core.run import GuestFleetDetails, RunManifest
from iolab.core.study import BootedGuestsConfig, Study
from iolab.core.workload import Direction
from iolab.record import Record
from iolab.study.targets import hypervisors_of_study
from iolab.text import counted_noun
from iolab.units import format_bytes, format_rate_bytes

GUEST_DISK: Final = "/dev/guest-data"
"""The path of its data disk in every guest that we boot."""

GUEST_SERIAL: Final = "data"
"""The serial of that disk."""

_BOOT_SETTINGS: Final = ("boots_at_once", "boot_limit_s", "kernel")

KIT_BYTES: Final = 256 << 20
"""A kernel, a first file system and a disk with programs on each node, measured at half of it."""

KIT_S: Final = 15.0
"""Fetching the kernel's package (62 MB) and making a kit of it; the next session finds it there."""

KVM_TRIAL_S: Final = 6.0
"""A guest that is booted to see whether KVM works: two seconds where it does, or fails at once; up
to fifteen where it hangs."""

BOOT_S: Final = 3.0
"""One guest where it is emulated, on a processor of its own: 1.6 s from power-on to first I/O were
measured on a quiet machine, and twice that with programs on a disk of their own. With KVM less."""

START_S: Final = 3.0
"""What a run's programs take to start where guests are emulated, six of them on two processors:
measured at 2 to 3 s on a quiet machine."""

BOOTS_ASSUMED: Final = 2
"""Guests of a node that boot at a time where nobody said: as many as a small node's processors."""


class Accelerator(StrEnum):
    """What runs a guest's instructions."""

    AUTO = "auto"
    """KVM where it works, else emulation; the result says which it was."""
    KVM = "kvm"
    TCG = "tcg"
    """Emulation: it measures the emulator as much as the storage."""


class GuestDiskKind(StrEnum):
    """What lies behind a guest's data disk."""

    IMAGE = "image"
    """A file on the target of its node, laid out in full."""
    MODELLED = "modelled"
    """No storage at all: every I/O takes a stated time, so that the result is known in advance."""


class Pinning(StrEnum):
    """Which of its node's processors a guest may use."""

    NONE = "none"
    CORES = "cores"
    """As many of its own as it has vCPUs, as long as the node has them."""
    NUMA = "numa"
    """Those of one NUMA node, guest after guest, and memory of that node."""


class GuestSettings(BootedGuestsConfig, Record, tag="vm"):
    """The guests that a session boots on every hypervisor of its study, all alike.

    `latency_ns` is of a modelled disk. `iops_limit` bounds each guest's disk, None does not.
    `replicas` is on how many nodes each image lies, 1 for its own node alone. `boots_at_once` is of
    one node, 0 for as many as it has processors; `boot_limit_s` is what one boot may take.
    `kernel` is the path of a Debian kernel package on the controller, "" to fetch one.
    """

    # What is set, not measured: another limit, or another model of a disk.
    keys_that_must_agree: ClassVar[tuple[str, ...]] = ("disk", "latency_ns", "iops_limit")

    vcpus: int
    memory_bytes: int
    disk_bytes: int
    disk: GuestDiskKind = GuestDiskKind.IMAGE
    latency_ns: int | None = None
    iops_limit: int | None = None
    replicas: int = 1
    accelerator: Accelerator = Accelerator.AUTO
    pinning: Pinning = Pinning.NONE
    boots_at_once: int = 0
    boot_limit_s: float = 150.0
    kernel: str = ""

    @property
    def settings_that_change_results(self) -> dict[str, object]:
        """What changes what is measured on them: not where their kernel came from."""
        return {name: value for name, value in asdict(self).items() if name not in _BOOT_SETTINGS}


class BlockCounts(Record):
    """What the hypervisor served a guest's data disk in one direction between two looks.

    `total_time_ns` is the time that all of them took there, from the guest's request to its
    completion. `bins` are (low ns, high ns, count), ascending, low included and high not; the last
    may reach to 2^63 - 1. Empty where the hypervisor keeps none.
    """

    direction: Direction
    ios: int
    bytes: int
    total_time_ns: int
    bins: tuple[tuple[int, int, int], ...] = ()


class GuestCpuTime(Record):
    """What a guest's processors had of its node's: seconds that they ran and that they waited.

    `vcpu_wait_s` were ready and on no processor, summed over all vCPUs; `cpu_s` is of the whole
    hypervisor process, `wall_s` the time between the two looks.
    """

    wall_s: float
    vcpu_run_s: float
    vcpu_wait_s: float
    cpu_s: float


class GuestRun(Record):
    """One guest in one run, as its node saw it.

    Of a guest that we only use, the node that it lives on is all that is known: `accelerator` and
    `use` are None and `blocks` is empty. `booted_s` is from its start to its first word.
    """

    guest: HostName
    node: HostName
    accelerator: Accelerator | None = None
    blocks: tuple[BlockCounts, ...] = ()
    use: GuestCpuTime | None = None
    booted_s: float | None = None


class GuestFleet(GuestFleetDetails, Record, tag="vm"):
    """The guests that made a run's load, `settings` those of guests that we booted, else None.

    `per_node` is how many of each node took part; `idle` are guests that were up and had no part.
    """

    # What is set, not measured: another limit, or another model of a disk.
    keys_that_must_agree: ClassVar[tuple[str, ...]] = ("disk", "latency_ns", "iops_limit")

    guests: tuple[GuestRun, ...]
    settings: GuestSettings | None = None
    per_node: int = 0
    idle: tuple[HostName, ...] = ()

    def guest_runs_on_node(self, node_name: str) -> tuple[GuestRun, ...]:
        """The guests of a node."""
        return tuple(guest for guest in self.guests if guest.node == node_name)

    @property
    def nodes(self) -> tuple[str, ...]:
        """The nodes that have guests, in the order of their first."""
        return tuple(dict.fromkeys(guest.node for guest in self.guests))


def booted_guest_settings_of_run(manifest: RunManifest) -> GuestSettings | None:
    """As what a run's guests were booted; None of guests that the session only used, or of none."""
    fleet = guest_fleet_of_run(manifest)
    return None if fleet is None else fleet.settings


def guest_fleet_of_run(manifest: RunManifest) -> GuestFleet | None:
    """The guests that made a run's load; None where hosts are no guests."""
    return manifest.fleet if isinstance(manifest.fleet, GuestFleet) else None


def booted_guest_settings(study: Study) -> GuestSettings | None:
    """The guests that a study boots; None where there are none to boot."""
    return study.guests if isinstance(study.guests, GuestSettings) else None


def max_booted_guests_per_node(study: Study) -> int:
    """How many guests are booted on the node that has most; 0 where none are."""
    counts = [
        sum(
            spec.hypervisor == node.name and spec.transport is HostTransport.VM
            for spec in study.hosts
        )
        for node in hypervisors_of_study(study)
    ]
    return max(counts, default=0) if booted_guest_settings(study) is not None else 0


def image_bytes_per_node(study: Study, guest_count: int) -> int:
    """What the images of so many guests a node take on each node, copies for others with them."""
    settings = booted_guest_settings(study)
    if settings is None or settings.disk is not GuestDiskKind.IMAGE:
        return 0
    return settings.disk_bytes * settings.replicas * guest_count


def guest_space_bytes_per_node(study: Study) -> int:
    """What guests take of the path of each node, with what they boot from; 0 where none are."""
    each = max_booted_guests_per_node(study)
    return image_bytes_per_node(study, each) + KIT_BYTES if each else 0


def guest_plan_steps_and_seconds(
    study: Study, run_count: int, write_bytes_per_s: float
) -> Iterator[tuple[str, float]]:
    """Kits, images, boots and starts, each with its seconds; writes are of one node."""
    settings = booted_guest_settings(study)
    if settings is None:
        return
    each, nodes = max_booted_guests_per_node(study), len(hypervisors_of_study(study))
    auto = settings.accelerator is Accelerator.AUTO
    yield "make what guests boot from, see whether KVM works", KIT_S + KVM_TRIAL_S * auto
    images = image_bytes_per_node(study, each)
    if images:
        message = f"lay out {format_bytes(images)} of guests' disks on each node at "
        yield (
            f"{message}{format_rate_bytes(write_bytes_per_s)} (assumed)",
            images / write_bytes_per_s,
        )
    turns = math.ceil(each / (settings.boots_at_once or BOOTS_ASSUMED))
    yield f"boot {each} guests on each of {nodes} nodes (assumed)", turns * BOOT_S
    if settings.accelerator is not Accelerator.KVM:
        yield (
            f"{counted_noun(run_count, 'run')}: start in guests, which are emulated (assumed)",
            run_count * START_S,
        )
