"""What QEMU counts of a guest's disk, from answers of a real one."""

from __future__ import annotations

import json
from copy import deepcopy
from typing import Any, Final

import pytest

from iolab.core.workload import Direction
from iolab.errors import HostError
from iolab.guests.blocks import (
    BOUNDARIES_NS,
    HISTOGRAM_ARGUMENTS,
    GuestDiskCounts,
    GuestDiskDirectionCounts,
    block_counts_between,
    parse_block_stats,
)
from iolab.guests.guest import BlockCounts
from tests.recorded import recorded


def told(name: str) -> Any:
    return json.loads(recorded(f"qmp/{name}.json"))


def between(name: str) -> tuple[BlockCounts, ...]:
    before = parse_block_stats("g0", told(f"{name}-before"))
    return block_counts_between("g0", before, parse_block_stats("g0", told(f"{name}-after")))


@pytest.mark.parametrize(
    ("name", "reads", "writes"),
    [("modelled", 569, 583), ("bounded", 951, 1012), ("mirrored", 5466, 5707)],
)
def test_what_fio_did_in_the_guest_is_counted(name: str, reads: int, writes: int) -> None:
    read, write = between(name)
    assert (read.direction, write.direction) == (Direction.READ, Direction.WRITE)
    assert (read.ios, write.ios) == (reads, writes)
    assert (read.bytes, write.bytes) == (4096 * reads, 4096 * writes)


@pytest.mark.parametrize("name", ["modelled", "bounded", "mirrored"])
def test_the_bins_have_every_io_and_the_time_of_all(name: str) -> None:
    for counts in between(name):
        assert sum(count for _, _, count in counts.bins) == counts.ios
        low = sum(low * count for low, _, count in counts.bins)
        high = sum(high * count for _, high, count in counts.bins)
        assert low <= counts.total_time_ns <= high
        assert all(count > 0 for _, _, count in counts.bins)
        edges = [edge for low, high, _ in counts.bins for edge in (low, high)]
        assert edges == sorted(edges)


def test_boundaries_are_an_eighth_of_an_octave_apart() -> None:
    assert (BOUNDARIES_NS[0], BOUNDARIES_NS[8], BOUNDARIES_NS[-1]) == (1_000, 2_000, 60_000_000_000)
    assert list(BOUNDARIES_NS) == sorted(set(BOUNDARIES_NS))
    assert HISTOGRAM_ARGUMENTS["boundaries-read"] == HISTOGRAM_ARGUMENTS["boundaries-write"]


def counts(bins: tuple[int, ...] = (), ios: int = 0) -> GuestDiskCounts:
    return GuestDiskCounts(
        GuestDiskDirectionCounts(ios, 4096 * ios, 1000 * ios, bins), GuestDiskDirectionCounts()
    )


def test_the_outermost_bins_reach_to_the_ends() -> None:
    size = len(BOUNDARIES_NS) + 1
    ends = (1, *(0,) * (size - 2), 2)
    read, write = block_counts_between("g0", counts((0,) * size), counts(ends, 3))
    assert read.bins == ((0, 1_000, 1), (60_000_000_000, 2**63 - 1, 2))
    assert write.bins == ()


def test_histograms_that_began_between_the_looks_are_left_out() -> None:
    size = len(BOUNDARIES_NS) + 1
    read, _ = block_counts_between("g0", counts((), 5), counts((1,) * size, 7))
    assert (read.ios, read.bins) == (2, ())


def test_a_counter_that_fell_is_a_fault() -> None:
    with pytest.raises(HostError, match="'g0' told of fewer reads"):
        block_counts_between("g0", counts((), 5), counts((), 4))


def test_failed_requests_are_ios_without_bytes() -> None:
    answer = told("modelled-after")
    (data,) = (disk for disk in answer if disk["qdev"] == "data-disk")
    before = parse_block_stats("g0", answer)
    data["stats"]["failed_wr_operations"] += 3
    after = parse_block_stats("g0", answer)
    assert after.write.ios == before.write.ios + 3
    assert after.write.bytes == before.write.bytes


def without(key: str) -> Any:
    answer = told("modelled-after")
    for disk in answer:
        del disk["stats"][key]
    return answer


def altered(key: str, value: object) -> Any:
    answer = told("modelled-after")
    for disk in answer:
        disk["stats"][key] = value
    return answer


ODD: Final = {
    "nothing": None,
    "a word": "ok",
    "no disks": [],
    "another disk": [told("modelled-after")[0]],
    "twice": [told("modelled-after")[1]] * 2,
    "no counter": without("rd_bytes"),
    "a text": altered("rd_operations", "569"),
    "below zero": altered("wr_bytes", -1),
    "beyond 64 bits": altered("rd_total_time_ns", 2**64),
    "infinite": altered("rd_operations", float("inf")),
    "other bins": altered("rd_latency_histogram", {"boundaries": [10], "bins": [1, 2]}),
    "too many bins": altered(
        "wr_latency_histogram",
        {"boundaries": list(BOUNDARIES_NS), "bins": [0] * (len(BOUNDARIES_NS) + 2)},
    ),
    "too few bins": altered(
        "wr_latency_histogram", {"boundaries": list(BOUNDARIES_NS), "bins": [0]}
    ),
    "a thousand disks": told("modelled-after") * 500,
}


@pytest.mark.parametrize("answer", ODD.values(), ids=ODD)
def test_what_is_no_answer_is_told_in_two_sentences(answer: object) -> None:
    with pytest.raises(HostError) as fault:
        parse_block_stats("g\x1b0", deepcopy(answer))
    assert "guest 'g\\x1b0' told of " in fault.value.message
    assert fault.value.hint
