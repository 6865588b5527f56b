"""What QEMU counts of a guest's data disk: `query-blockstats`, and its histograms of latency.

Source: https://www.qemu.org/docs/master/interop/qemu-qmp-ref.html, `BlockDeviceStats` and
`BlockLatencyHistogramInfo`. A latency there is from the guest's request to its completion, and so
holds the wait for a bound of IOPS and for every copy of the image.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Annotated, Final

from msgspec import Meta, ValidationError, convert

from iolab.core.run import COUNT_MAX, Count
from iolab.core.workload import Direction
from iolab.errors import HostError
from iolab.guests.guest import BlockCounts, GuestCpuTime
from iolab.guests.machine import DISK_ID
from iolab.hosts.answers import ProcessCpuUseAnswer
from iolab.record import Record, fault_place_and_text
from iolab.text import excerpt
from iolab.units import NS_PER_S

COUNTERS: Final = "query-blockstats"
"""The command whose answer `parse_block_stats` takes."""

HISTOGRAMS: Final = "block-latency-histogram-set"
"""The command, with `HISTOGRAM_ARGUMENTS`, that begins the histograms anew."""

STEPS_PER_OCTAVE: Final = 8
"""Bins of 9 %: fine enough to tell a layer's share, and 10 kB an answer, which QEMU makes in the
thread that serves the guest's I/O."""

LOWEST_NS: Final = 1_000
HIGHEST_NS: Final = 60_000_000_000
"""From less than any request takes to twice the kernel's own limit of one, 30 s."""


def _bin_boundaries_ns() -> Iterator[int]:
    """Each a step above the one before, from the lowest to the first beyond the highest."""
    step = 0
    while (edge := round(LOWEST_NS * 2 ** (step / STEPS_PER_OCTAVE))) < HIGHEST_NS:
        yield edge
        step += 1
    yield HIGHEST_NS


BOUNDARIES_NS: Final = tuple(_bin_boundaries_ns())
"""Ascending. QEMU keeps a bin below the first, between each two, and above the last."""

HISTOGRAM_ARGUMENTS: Final = {
    "id": DISK_ID,
    "boundaries-read": list(BOUNDARIES_NS),
    "boundaries-write": list(BOUNDARIES_NS),
}
"""Reads and writes of the data disk; flushes are in no result."""


class GuestDiskDirectionCounts(Record):
    """Sums of one direction since the guest began, and the bins' since its histograms were set.

    Requests that failed are among `ios`, `total_ns` and the bins, but moved no `bytes`. `bins` are
    one more than the boundaries, or none where no histogram was set.
    """

    ios: int = 0
    bytes: int = 0
    total_ns: int = 0
    bins: tuple[int, ...] = ()


class GuestDiskCounts(Record):
    """What a guest's data disk was served so far."""

    read: GuestDiskDirectionCounts
    write: GuestDiskDirectionCounts


def parse_block_stats(guest_name: str, qmp_reply: object) -> GuestDiskCounts:
    """The data disk's counters out of the answer to COUNTERS. HostError when they are not there."""
    try:
        disks = [disk for disk in convert(qmp_reply, type=_Disks) if disk.qdev == DISK_ID]
    except ValidationError as error:
        where, fault = fault_place_and_text(error)
        raise _unexpected_reply_error(guest_name, f"'{where}' in its counters: {fault}") from None
    if len(disks) != 1:
        raise _unexpected_reply_error(
            guest_name, f"{len(disks)} disks called '{DISK_ID}' instead of one"
        )
    return disks[0].stats.disk_counts(guest_name)


def block_counts_between(
    guest_name: str, before: GuestDiskCounts, after: GuestDiskCounts
) -> tuple[BlockCounts, ...]:
    """What was served between two looks, reads first.

    HostError when a counter fell, as it does when the guest was started anew.
    """
    return (
        _direction_counts_between(guest_name, Direction.READ, before.read, after.read),
        _direction_counts_between(guest_name, Direction.WRITE, before.write, after.write),
    )


class _QemuHistogram(Record, kw_only=True):
    boundaries: Annotated[list[Count], Meta(max_length=len(BOUNDARIES_NS))]
    bins: Annotated[list[Count], Meta(max_length=len(BOUNDARIES_NS) + 1)]


class _QemuBlockStats(Record, kw_only=True):
    rd_operations: Count
    wr_operations: Count
    failed_rd_operations: Count = 0
    failed_wr_operations: Count = 0
    rd_bytes: Count
    wr_bytes: Count
    rd_total_time_ns: Count
    wr_total_time_ns: Count
    rd_latency_histogram: _QemuHistogram | None = None
    wr_latency_histogram: _QemuHistogram | None = None

    def disk_counts(self, guest_name: str) -> GuestDiskCounts:
        read = GuestDiskDirectionCounts(
            self.rd_operations + self.failed_rd_operations,
            self.rd_bytes,
            self.rd_total_time_ns,
            _require_set_boundaries_and_get_bins(guest_name, self.rd_latency_histogram),
        )
        write = GuestDiskDirectionCounts(
            self.wr_operations + self.failed_wr_operations,
            self.wr_bytes,
            self.wr_total_time_ns,
            _require_set_boundaries_and_get_bins(guest_name, self.wr_latency_histogram),
        )
        return GuestDiskCounts(read, write)


class _QemuDisk(Record, kw_only=True):
    qdev: Annotated[str, Meta(max_length=4096)] = ""
    stats: _QemuBlockStats


_Disks = Annotated[list[_QemuDisk], Meta(max_length=64)]
"""Our guests have two disks."""


def _require_set_boundaries_and_get_bins(
    guest_name: str, histogram: _QemuHistogram | None
) -> tuple[int, ...]:
    if histogram is None:
        return ()
    if (
        tuple(histogram.boundaries) != BOUNDARIES_NS
        or len(histogram.bins) != len(BOUNDARIES_NS) + 1
    ):
        raise _unexpected_reply_error(guest_name, "a histogram with other boundaries than were set")
    return tuple(histogram.bins)


def _direction_counts_between(
    guest_name: str,
    direction: Direction,
    before: GuestDiskDirectionCounts,
    after: GuestDiskDirectionCounts,
) -> BlockCounts:
    bins: tuple[int, ...] = ()
    if before.bins and after.bins:
        bins = tuple(late - early for late, early in zip(after.bins, before.bins, strict=True))
    sums = (after.ios - before.ios, after.bytes - before.bytes, after.total_ns - before.total_ns)
    if min(*sums, *bins, 0) < 0:
        raise _unexpected_reply_error(guest_name, f"fewer {direction.key}s than at the look before")
    edges = pairwise((0, *BOUNDARIES_NS, COUNT_MAX))
    filled = ((*edge, count) for edge, count in zip(edges, bins, strict=False) if count)
    return BlockCounts(direction, *sums, tuple(filled))


def _unexpected_reply_error(guest_name: str, problem: str) -> HostError:
    message = f"The hypervisor of guest '{excerpt(guest_name)}' told of {excerpt(problem)}."
    return HostError(message, "See the last words of the guest's console, and run again.")


def guest_cpu_time_between(
    guest_name: str, before: ProcessCpuUseAnswer, after: ProcessCpuUseAnswer
) -> GuestCpuTime | None:
    """The use between two looks; None where the node's kernel does not count it.

    HostError when it fell, as it does when the guest was started anew or lost a processor.
    """
    readings = [
        [
            reading.real_ns,
            reading.vcpu_run_ns,
            reading.vcpu_wait_ns,
            reading.user_ns,
            reading.system_ns,
        ]
        for reading in (before, after)
    ]
    differences = [
        late - early
        for early, late in zip(*readings, strict=True)
        if early is not None and late is not None
    ]
    if len(differences) < len(readings[0]):
        return None
    if min(differences) < 0:
        message = f"Guest '{excerpt(guest_name)}' had used less time than at the look before."
        raise HostError(message, "See the last words of the guest's console, and run again.")
    wall, run, wait, user, system = (time / NS_PER_S for time in differences)
    return GuestCpuTime(wall_s=wall, vcpu_run_s=run, vcpu_wait_s=wait, cpu_s=user + system)
