"""What two looks at a host's block devices tell: bytes and I/Os moved between them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from msgspec.structs import replace

from iolab.core.run import DeviceDelta, PreRunActivity
from iolab.hosts.counter_names import DISK
from iolab.hosts.host import Host
from iolab.hosts.message import Message
from iolab.record import Record, default_values, field_names
from iolab.units import NS_PER_S

SNAPSHOT_LIMIT_S: Final = 20.0
"""One look at the counters; a host under full load may be slow to answer."""


class DiskCounts(Record):
    """One device's counters since boot."""

    read_ios: int
    read_bytes: int
    write_ios: int
    write_bytes: int
    discard_ios: int | None = None
    discard_bytes: int | None = None
    read_merges: int | None = None
    write_merges: int | None = None
    read_time_ns: int | None = None
    write_time_ns: int | None = None


_COUNTERS: Final = field_names(DiskCounts)

_NEEDED: Final = tuple(name for name in _COUNTERS if name not in default_values(DiskCounts))

_NO_COUNTS: Final = DiskCounts(*[0] * len(_COUNTERS))
"""Of a device that had done nothing since the boot."""


class HostDisksSnapshot(Record):
    """The devices of a host at one moment of its monotonic clock."""

    mono_ns: int
    counts_by_disk: dict[str, DiskCounts]


def disks_snapshot_from_sample(sample: Message) -> HostDisksSnapshot:
    """The part of a `sample` message that deltas need; ValueError when it is not one."""
    header = sample.header
    rows = header.get("disks")
    if not isinstance(rows, list):
        raise ValueError("it has no list of disks")  # noqa: TRY004 - text of a host, not a bug
    merges = dict(_io_merge_counts_by_device(header.get("merges")))
    disks = {
        name: replace(counts, **merges.get(name, {}))
        for name, counts in (_parse_disk_row(row) for row in rows)
    }
    return HostDisksSnapshot(_require_count(header.get("mono_ns")), disks)


async def take_disks_snapshot(host: Host) -> HostDisksSnapshot:
    """The host's devices now. Raises HostError."""
    devices, _ = await take_disks_snapshot_and_sample(host)
    return devices


async def take_disks_snapshot_and_sample(
    host: Host, inode_count_path: str | None = None
) -> tuple[HostDisksSnapshot, Mapping[str, Any]]:
    """The same and the whole sample, seven times as large, where asked with a path's inodes."""
    sample = await host.request("snapshot", deadline_s=SNAPSHOT_LIMIT_S, inodes_of=inode_count_path)
    try:
        return disks_snapshot_from_sample(sample), sample.header
    except ValueError as fault:
        raise host.end_as_lost(f"sent a malformed sample: {fault}") from None


def device_deltas(
    before: HostDisksSnapshot, after: HostDisksSnapshot, devices: Iterable[str]
) -> tuple[DeviceDelta, ...]:
    """What each device moved in between.

    A device that was left out of the first look had done nothing since boot; one that is not in the
    second is gone, and one that counts backwards was replaced: neither has a delta.
    """
    moved = []
    for name in devices:
        then, now = before.counts_by_disk.get(name, _NO_COUNTS), after.counts_by_disk.get(name)
        if now is None:
            continue
        grown: dict[str, Any] = {
            counter: _difference_if_known(getattr(now, counter), getattr(then, counter))
            for counter in _COUNTERS
        }
        if min(count or 0 for count in grown.values()) >= 0:
            moved.append(DeviceDelta(name, **grown))
    return tuple(moved)


def busiest_device_activity(
    before: HostDisksSnapshot, after: HostDisksSnapshot, devices: Iterable[str]
) -> PreRunActivity | None:
    """The busiest device's rates in between; None when no device is known.

    The busiest, not the sum: devices of one stack all count the same I/O.
    """
    seconds = (after.mono_ns - before.mono_ns) / NS_PER_S
    moved = device_deltas(before, after, devices)
    if not moved or seconds <= 0:
        return None
    return PreRunActivity(
        watched_s=seconds,
        bytes_per_s=max(d.read_bytes + d.write_bytes for d in moved) / seconds,
        ios_per_s=max(d.read_ios + d.write_ios for d in moved) / seconds,
    )


CoreTotalAndIdleNs = tuple[int, int]
"""The time of all cores since the boot, and that of it in which they were idle or waited, in ns."""


def parse_core_total_and_idle_ns(rows: object) -> CoreTotalAndIdleNs | None:
    """Of a sample's `cpu` rows; None when they make no sense."""
    if not isinstance(rows, list):
        return None
    try:
        # core, node, user, nice, system, idle, iowait, irq, softirq, steal
        total = sum([sum(row[2:10]) for row in rows])
        return total, sum([row[5] + row[6] for row in rows])
    except (TypeError, LookupError):
        return None


def cpu_busy_share(
    before: CoreTotalAndIdleNs | None, after: CoreTotalAndIdleNs | None
) -> float | None:
    """Share of all cores' time between two samples that was neither idle nor waiting."""
    if before is None or after is None:
        return None
    (total, idle), (total_then, idle_then) = after, before
    span = total - total_then
    idle_ns = min(max(idle - idle_then, 0), span)
    return 1 - idle_ns / span if span > 0 else None


def _difference_if_known(now: int | None, then: int | None) -> int | None:
    """What was counted in between; None where it is not counted."""
    return None if now is None or then is None else now - then


def _parse_disk_row(row: object) -> tuple[str, DiskCounts]:
    if not isinstance(row, list) or len(row) < 6 or not isinstance(row[0], str):
        raise ValueError("a row of its disks is not one")
    counts = dict(zip(DISK, row[1:], strict=False))
    # What a kernel older than 4.18, which has no such counter, leaves out is left out here.
    known = [name for name in _COUNTERS if name in _NEEDED or counts.get(name) is not None]
    return row[0], DiskCounts(**{name: _require_count(counts[name]) for name in known})


def _io_merge_counts_by_device(rows: object) -> Iterator[tuple[str, dict[str, int]]]:
    """Of each device of a snapshot; an agent need not tell them."""
    for row in rows if isinstance(rows, list) else []:
        if not isinstance(row, list) or len(row) != 3 or not isinstance(row[0], str):
            raise ValueError("a row of its merges is not one")
        yield (
            row[0],
            {"read_merges": _require_count(row[1]), "write_merges": _require_count(row[2])},
        )


def _require_count(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < 2**63:
        raise ValueError("a counter is not a whole number of 63 bits")
    return value
