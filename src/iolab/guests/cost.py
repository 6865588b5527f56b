"""What it costs to have guests: their images, their boots, and the first fill of their disks."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Final

from iolab.core.host import HostKind
from iolab.core.study import Study
from iolab.guests.guest import Accelerator, DiskKind, settings_in
from iolab.study.targets import nodes_of
from iolab.units import format_bytes, format_rate_bytes

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


def guests_per_node(study: Study) -> int:
    """How many guests are booted on the node that has most; 0 where none are."""
    counts = [
        sum(spec.node == node.name and spec.kind is HostKind.VM for spec in study.hosts)
        for node in nodes_of(study)
    ]
    return max(counts, default=0) if settings_in(study) is not None else 0


def image_bytes(study: Study, guests: int) -> int:
    """What the images of so many guests a node take on each node, copies for others with them."""
    settings = settings_in(study)
    if settings is None or settings.disk is not DiskKind.IMAGE:
        return 0
    return settings.disk_bytes * settings.replicas * guests


def node_bytes(study: Study) -> int:
    """What guests take of the path of each node, with what they boot from; 0 where none are."""
    each = guests_per_node(study)
    return image_bytes(study, each) + KIT_BYTES if each else 0


def guest_reasons(study: Study, runs: int, rate: float) -> Iterator[tuple[str, float]]:
    """Kits, images, boots and starts, each with its seconds; `rate` is of writing on one node."""
    settings = settings_in(study)
    if settings is None:
        return
    each, nodes = guests_per_node(study), len(nodes_of(study))
    auto = settings.accelerator is Accelerator.AUTO
    yield "make what guests boot from, see whether KVM works", KIT_S + KVM_TRIAL_S * auto
    images = image_bytes(study, each)
    if images:
        says = f"lay out {format_bytes(images)} of guests' disks on each node at "
        yield f"{says}{format_rate_bytes(rate)} (assumed)", images / rate
    turns = math.ceil(each / (settings.boots_at_once or BOOTS_ASSUMED))
    yield f"boot {each} guests on each of {nodes} nodes (assumed)", turns * BOOT_S
    if settings.accelerator is not Accelerator.KVM:
        yield f"{runs} runs: start in guests, where these are emulated (assumed)", runs * START_S
