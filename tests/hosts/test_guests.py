"""Counters of guests, which their node tells each at a moment of its own."""

from __future__ import annotations

import pytest

from iolab.hosts.counter_names import GUEST
from tests.hosts.samples import SECOND, START, sample, series


def told(seq: int, at_s: float, guest: str, **counts: int | None) -> dict[str, object]:
    """What a node tells of one guest."""
    row = [guest, *(counts.get(metric, 0) for metric in GUEST)]
    return {"seq": seq, "real_ns": START + round(at_s * SECOND), "guests": [row]}


def test_rates_of_a_guest_are_over_the_time_between_its_own_looks() -> None:
    found = series(
        sample(0, 0.0, disks={"sda": {}}),
        told(0, 0.1, "vm1"),
        told(0, 0.3, "vm2"),
        sample(1, 1.0, disks={"sda": {"read_ios": 10}}),
        told(1, 2.1, "vm1", read_ios=100, read_bytes=409_600, read_ns=10**8, vcpu_run_ns=SECOND),
        told(1, 1.3, "vm2", write_ios=50, write_ns=10**9, vcpu_wait_ns=SECOND // 2),
    )
    values = {key: one.value.tolist() for key, one in found.items()}
    assert values["guest", "vm1", "read_iops"] == [50.0]
    assert values["guest", "vm1", "read_bytes_per_s"] == [204_800.0]
    assert values["guest", "vm1", "read_lat_ns"] == [1e6]
    assert values["guest", "vm1", "vcpu_run_share"] == [0.5]
    assert values["guest", "vm2", "write_iops"] == [50.0]
    assert values["guest", "vm2", "write_lat_ns"] == [2e7]
    assert values["guest", "vm2", "vcpu_wait_share"] == [0.5]
    assert values["disk", "sda", "read_iops"] == [10.0]
    assert found["guest", "vm2", "read_iops"].real_ns.tolist() == [START + 1_300_000_000]


def test_a_guest_whose_processors_nobody_counts_has_a_disk_all_the_same() -> None:
    alone = {"vcpu_run_ns": None, "vcpu_wait_ns": None}
    found = series(told(0, 0.0, "vm1", **alone), told(1, 1.0, "vm1", read_ios=7, **alone))
    assert found["guest", "vm1", "read_iops"].value.tolist() == [7.0]
    assert ("guest", "vm1", "vcpu_run_share") not in found


def test_a_guest_that_was_booted_anew_gives_no_rate_over_that_step() -> None:
    found = series(
        *(told(at, at, "vm1", read_ios=count) for at, count in enumerate((100, 200, 5, 25)))
    )
    assert found["guest", "vm1", "read_iops"].value.tolist() == pytest.approx([100.0, 20.0])
