"""Claimed I/Os against claimed bytes, and against the device's own count."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace

from iolab.core.host import HostFacts
from iolab.core.metric import VerdictLevel
from iolab.core.run import DeviceDelta, RunRecord
from iolab.core.workload import Direction
from iolab.loads.fileio.sampled_checks import block_bytes_and_io_shares, check_block_size
from iolab.loads.fileio.workload import AccessPattern, Job
from tests.analysis.checks_on import INDICATIVE, INVALID, VALID, ask, level
from tests.analysis.records import (
    DEVICE,
    JOB,
    MIXED,
    WRITES,
    Burst,
    btrfs_over,
    facts_of,
    healthy,
    with_neighbour,
)

IOS = 30 * 40_000
BYTES = IOS * 4096


def claiming(record: RunRecord, bytes_per_io: float) -> RunRecord:
    """The record with I/Os of another size."""
    table = record.intervals
    return replace(
        record, intervals=replace(table, bytes=(table.ios * bytes_per_io).astype(np.int64))
    )


def counted(ios: float, merges: float | None = 0.0, moved: float = 1.0) -> tuple[DeviceDelta, ...]:
    """A device that did so many reads, in shares of those claimed."""
    joined = None if merges is None else round(merges * IOS)
    return (DeviceDelta(DEVICE, round(moved * BYTES), 0, round(ios * IOS), 0, read_merges=joined),)


def facts(max_io_bytes: int | None = 1 << 20) -> dict[str, HostFacts]:
    known = facts_of()
    disks = tuple(replace(disk, max_io_bytes=max_io_bytes) for disk in known.disks)
    return {"c1": replace(known, disks=disks)}


def split(text: str, job: Job = JOB, **options: str) -> Job:
    return replace(job, options=(("bssplit", text), *options.items()))


@pytest.mark.parametrize("job", [JOB, WRITES, MIXED])
def test_exactly_the_block_size_is_valid(job: Job) -> None:
    assert level(check_block_size, healthy(job)) is VALID


@pytest.mark.parametrize("bytes_per_io", [2048, 512, 8192, 4095])
def test_any_other_size_of_a_fixed_block_is_invalid(bytes_per_io: int) -> None:
    answer = ask(check_block_size, claiming(healthy(), bytes_per_io))
    assert answer.level is INVALID
    assert f"{bytes_per_io:,} B" in answer.message
    assert "4 KiB" in answer.message
    assert answer.evidence["claimed_run_ios"] == IOS


def test_what_was_cut_short_is_granted() -> None:
    record = healthy()
    totals = record.hosts[0].totals
    assert totals
    assert totals.read
    short = replace(totals, read=replace(totals.read, short_ios=IOS))
    host = replace(record.hosts[0], totals=short)
    assert level(check_block_size, claiming(replace(record, hosts=(host,)), 4095)) is VALID


@pytest.mark.parametrize(
    ("text", "norandommap", "mean", "expected"),
    [
        ("4k/50:64k/50", "1", 34 << 10, VALID),
        ("4k/50:64k/50", "1", 30 << 10, INVALID),
        ("4k/50:64k/50", "1", 38 << 10, INVALID),
        # fio's map of visited blocks cuts blocks.
        ("4k/50:64k/50", "0", 30 << 10, VALID),
        ("4k/50:64k/50", "0", 38 << 10, INVALID),
        ("4k/50:64k/50", "0", 3 << 10, INVALID),
        ("8k/100", "1", 8 << 10, VALID),
        ("8k/100", "1", 4 << 10, INVALID),
    ],
)
def test_mixed_sizes_have_a_mean(
    text: str, norandommap: str, mean: int, expected: VerdictLevel
) -> None:
    job = split(text, norandommap=norandommap)
    record = claiming(healthy(job), mean)
    found = counted(1.0, moved=mean / 4096)
    record = replace(record, hosts=(replace(record.hosts[0], devices=found),))
    assert level(check_block_size, record) is expected


def test_reads_and_writes_have_sizes_of_their_own() -> None:
    job = split("4k/60:64k,128k", replace(JOB, access=AccessPattern.RANDRW, read_percent=50))
    assert block_bytes_and_io_shares(job, Direction.READ) == ((4096, 0.6), (65536, 0.4))
    assert block_bytes_and_io_shares(job, Direction.WRITE) == ((131072, 1.0),)


@pytest.mark.parametrize(
    ("devices", "expected"),
    [
        (counted(1.0), VALID),
        (counted(0.25, merges=0.75), VALID),
        (counted(0.985), VALID),
        (counted(0.95), INDICATIVE),
        (counted(0.5), INVALID),
        (counted(0.4, merges=0.1), INVALID),
        # Without merges fewer I/Os mean nothing.
        (counted(0.5, merges=None), VALID),
        # What came from memory is said of bytes.
        (counted(0.5, moved=0.5), VALID),
        (counted(0.0, moved=0.0), VALID),
        (counted(1.9), VALID),
        (counted(3.0), INDICATIVE),
        (counted(8.0), INVALID),
        # Others' I/Os bring bytes along.
        (counted(8.0, moved=1.5), VALID),
    ],
)
def test_the_device_counts_too(devices: tuple[DeviceDelta, ...], expected: VerdictLevel) -> None:
    assert level(check_block_size, healthy(devices=devices), facts()) is expected


def test_all_members_of_a_file_system_count() -> None:
    over = btrfs_over(loop0=("vda",), loop1=("vda",))

    def devices(first: float, second: float) -> tuple[DeviceDelta, ...]:
        below = replace(counted(first + second)[0], device="vda")
        first_half, second_half = counted(first, moved=0.5)[0], counted(second, moved=0.5)[0]
        return replace(first_half, device="loop0"), replace(second_half, device="loop1"), below

    assert level(check_block_size, healthy(devices=devices(0.5, 0.5)), over) is VALID
    answer = ask(check_block_size, healthy(devices=devices(4.0, 4.0)), over)
    assert (answer.level, "loop0+loop1" in answer.message) == (INVALID, True)


def test_a_neighbour_s_ios_are_claimed_too() -> None:
    noise = Burst(ios=9 * 40_000)
    record = healthy(devices=counted(10.0, moved=10.0))
    assert level(check_block_size, with_neighbour(record, noise, job=JOB), facts()) is VALID
    # What neither of them claims is found beside a neighbour too.
    more = healthy(devices=counted(50.0, moved=10.0))
    assert level(check_block_size, with_neighbour(more, noise, job=JOB), facts()) is INVALID
    # Blocks of a neighbour that the device takes in parts are no small ones of the run.
    large = replace(JOB, block_bytes=4 << 20)
    assert level(check_block_size, with_neighbour(more, noise, job=large), facts()) is VALID


@pytest.mark.parametrize(
    ("job", "limit"),
    [
        (JOB, None),
        (JOB, 2048),
        (replace(JOB, options=(("fsync", "1"),)), 1 << 20),
        (replace(JOB, direct=False), 1 << 20),
    ],
)
def test_more_device_ios_have_other_causes(job: Job, limit: int | None) -> None:
    assert level(check_block_size, healthy(job, devices=counted(8.0)), facts(limit)) is VALID


def test_layers_split_by_limits_of_their_own() -> None:
    known: dict[str, Any] = {"device": "dm-0", "devices": ("dm-0",)}
    told = facts_of(**known)
    disks = tuple(replace(disk, name="dm-0", max_io_bytes=1 << 20) for disk in told.disks)
    devices = tuple(replace(delta, device="dm-0") for delta in counted(8.0))
    answer = ask(check_block_size, healthy(devices=devices), {"c1": replace(told, disks=disks)})
    assert answer.level is INDICATIVE
