"""Deltas of devices that come, go, and count backwards."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from iolab.core.run import DeviceDelta
from iolab.hosts.device_counters import (
    busiest_device_activity,
    cpu_busy_share,
    device_deltas,
    disks_snapshot_from_sample,
    parse_core_total_and_idle_ns,
)
from iolab.hosts.message import Message
from iolab.units import NS_PER_S
from tests.fakes.machine import DiskUse, sample


def message(mono_ns: int, *disks: list[Any]) -> Message:
    return Message("sample", {"mono_ns": mono_ns, "disks": list(disks)})


def disk(name: str, read_ios: int, read_bytes: int, write_ios: int, write_bytes: int) -> list[Any]:
    return [name, read_ios, read_bytes, 0, write_ios, write_bytes, 0, 0, 0, 0, 0, 0, 0, None]


def test_a_delta_is_what_moved_in_between() -> None:
    before = disks_snapshot_from_sample(message(0, disk("sda", 10, 4096, 5, 512)))
    after = disks_snapshot_from_sample(message(NS_PER_S, disk("sda", 30, 8192, 6, 1024)))
    expected = DeviceDelta("sda", read_bytes=4096, write_bytes=512, read_ios=20, write_ios=1)
    expected = replace(expected, discard_bytes=0, discard_ios=0, read_time_ns=0, write_time_ns=0)
    assert device_deltas(before, after, ["sda"]) == (expected,)


def test_merges_are_told_beside_the_counts() -> None:
    looks = [
        disks_snapshot_from_sample(
            Message(
                "sample",
                {
                    "mono_ns": 0,
                    "disks": [disk("sda", 10 * at, 0, 10 * at, 0)],
                    "merges": [["sda", 3 * at, 5 * at], ["sdz", 1, 1]],
                },
            )
        )
        for at in (1, 2)
    ]
    (delta,) = device_deltas(looks[0], looks[1], ["sda"])
    assert (delta.read_ios, delta.read_merges, delta.write_merges) == (10, 3, 5)
    with pytest.raises(ValueError, match="merges"):
        disks_snapshot_from_sample(
            Message("sample", {"mono_ns": 0, "disks": [], "merges": [["sda", 1]]})
        )


def test_a_device_that_had_done_nothing_before_counts_from_zero() -> None:
    after = disks_snapshot_from_sample(message(NS_PER_S, disk("sdb", 3, 12288, 0, 0)))
    (delta,) = device_deltas(disks_snapshot_from_sample(message(0)), after, ["sdb"])
    assert (delta.read_ios, delta.read_bytes) == (3, 12288)


def test_a_device_that_went_or_was_replaced_has_no_delta() -> None:
    before = disks_snapshot_from_sample(
        message(0, disk("sda", 10, 10, 10, 10), disk("sdb", 10, 10, 10, 10))
    )
    after = disks_snapshot_from_sample(message(NS_PER_S, disk("sdb", 1, 1, 1, 1)))
    assert device_deltas(before, after, ["sda", "sdb"]) == ()
    assert busiest_device_activity(before, after, ["sda", "sdb"]) is None


def test_the_busiest_device_of_a_stack_decides_not_the_sum() -> None:
    before = disks_snapshot_from_sample(
        message(0, disk("dm-0", 0, 0, 0, 0), disk("sda", 0, 0, 0, 0))
    )
    after = disks_snapshot_from_sample(
        message(2 * NS_PER_S, disk("dm-0", 20, 8000, 0, 0), disk("sda", 10, 8000, 2, 200))
    )
    idle = busiest_device_activity(before, after, ["dm-0", "sda"])
    assert idle is not None
    assert (idle.watched_s, idle.bytes_per_s, idle.ios_per_s) == (2.0, 4100.0, 10.0)


@pytest.mark.parametrize(
    "header",
    [
        {},
        {"mono_ns": 1, "disks": None},
        {"mono_ns": 1, "disks": [["sda", 1]]},
        {"mono_ns": 1, "disks": [[7, 1, 1, 1, 1, 1]]},
        {"mono_ns": 1, "disks": [["sda", -1, 1, 1, 1, 1]]},
        {"mono_ns": 1, "disks": [["sda", 2**63, 1, 1, 1, 1]]},
        {"mono_ns": "1", "disks": []},
        {"mono_ns": True, "disks": []},
    ],
)
def test_a_sample_that_is_none_is_a_value_error(header: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"it has|a row|a counter"):
        disks_snapshot_from_sample(Message("sample", header))


def test_cpu_busy_is_a_share_of_all_cores() -> None:
    before = sample(DiskUse(), 1, 0, 0)["cpu"]
    after = sample(DiskUse(), 2, 10 * NS_PER_S, 0)["cpu"]
    assert cpu_busy_share(
        parse_core_total_and_idle_ns(before), parse_core_total_and_idle_ns(after)
    ) == pytest.approx(0.1)
    assert (
        cpu_busy_share(parse_core_total_and_idle_ns(after), parse_core_total_and_idle_ns(after))
        is None
    )
    assert (
        cpu_busy_share(parse_core_total_and_idle_ns(None), parse_core_total_and_idle_ns(after))
        is None
    )
    assert (
        cpu_busy_share(parse_core_total_and_idle_ns([["x"]]), parse_core_total_and_idle_ns(after))
        is None
    )


def test_discards_are_counted_where_the_kernel_does() -> None:
    def trimmed(ios: int | None, moved: int | None) -> list[Any]:
        return [*disk("sda", 1, 2, 3, 4)[:10], ios, moved, 0, None]

    before, after = (
        disks_snapshot_from_sample(message(0, trimmed(5, 100))),
        disks_snapshot_from_sample(message(1, trimmed(7, 300))),
    )
    (delta,) = device_deltas(before, after, ["sda"])
    assert (delta.discard_ios, delta.discard_bytes) == (2, 200)
    (older,) = device_deltas(
        disks_snapshot_from_sample(message(0, trimmed(None, None))), after, ["sda"]
    )
    assert (older.discard_ios, older.discard_bytes) == (None, None)
    assert device_deltas(after, before, ["sda"]) == ()
