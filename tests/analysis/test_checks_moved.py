"""Bytes claimed against bytes moved."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from iolab.analysis.checks.bytes import check_bytes_moved
from iolab.core.host import HostFacts
from iolab.core.metric import CheckResult, VerdictLevel
from iolab.core.run import DeviceDelta
from iolab.core.scenario import EventOutcome, ScenarioOutcome
from tests.analysis.checks_on import INDICATIVE, INVALID, VALID, ask, level
from tests.analysis.records import (
    DEVICE,
    GO_NS,
    JOB,
    MIXED,
    TRIMS,
    WRITES,
    Burst,
    btrfs_over,
    bursts_record,
    disk,
    facts_of,
    healthy,
    with_neighbour,
)
from tests.loads.fileio.test_checks_generator import generated

CLAIMED = 30 * 40_000 * 4096


def moved(read: float = 0.0, write: float = 0.0, device: str = DEVICE) -> DeviceDelta:
    """What a device moved, in shares of what the engine claims."""
    return DeviceDelta(device, round(read * CLAIMED), round(write * CLAIMED), 1, 1)


@pytest.mark.parametrize(
    ("read", "expected"),
    [
        (1.0, VALID),
        (0.981, VALID),
        (0.979, INDICATIVE),
        (0.901, INDICATIVE),
        (0.899, INVALID),
        (0.0, INVALID),
        (1.099, VALID),
        (1.101, INDICATIVE),
        (3.0, INDICATIVE),
    ],
)
def test_reads(read: float, expected: VerdictLevel) -> None:
    assert level(check_bytes_moved, healthy(devices=(moved(read),))) is expected


@pytest.mark.parametrize(
    ("write", "expected"),
    [(1.0, VALID), (0.95, INDICATIVE), (0.5, INVALID), (1.5, INDICATIVE)],
)
def test_writes(write: float, expected: VerdictLevel) -> None:
    assert level(check_bytes_moved, healthy(WRITES, devices=(moved(write=write),))) is expected


def test_missing_reads_are_named_with_their_share() -> None:
    answer = ask(check_bytes_moved, healthy(devices=(moved(0.25),)))
    assert "moved 25 %" in answer.message
    assert "memory" in answer.message
    assert answer.evidence["device_read_bytes"] == CLAIMED // 4
    assert answer.evidence["claimed_read_bytes"] == CLAIMED


def test_reads_of_a_pure_write_are_amplification() -> None:
    answer = ask(check_bytes_moved, healthy(WRITES, devices=(moved(read=0.2, write=1.0),)))
    assert answer.level is INDICATIVE
    assert "read-ahead or others' reads" in answer.message


def test_what_the_engine_read_to_choose_its_way_is_nobody_s_excess() -> None:
    record = healthy(WRITES, devices=(moved(read=0.2, write=1.0),))
    probed = generated(record, probe_reads=100, probe_read_bytes=round(0.15 * CLAIMED))
    answer = ask(check_bytes_moved, probed)
    assert (answer.level, answer.evidence["probed_bytes"]) == (VALID, round(0.15 * CLAIMED))
    fewer = generated(record, probe_reads=100, probe_read_bytes=round(0.05 * CLAIMED))
    assert level(check_bytes_moved, fewer) is INDICATIVE


def test_both_directions_count_in_a_mix() -> None:
    assert level(check_bytes_moved, healthy(MIXED, devices=(moved(0.5, 0.5),))) is VALID
    assert level(check_bytes_moved, healthy(MIXED, devices=(moved(0.5, 0.4),))) is INVALID


def test_a_system_may_write_its_logs() -> None:
    slow = [Burst(ios=10, lat_ns=800_000)]
    record = bursts_record(slow)
    logs = DeviceDelta(DEVICE, 300 * 4096, 30 << 20, 1, 1)
    busy = DeviceDelta(DEVICE, 300 * 4096, (30 << 20) + 4096, 1, 1)
    hosts = record.hosts[0]
    assert (
        level(check_bytes_moved, replace(record, hosts=(replace(hosts, devices=(logs,)),))) is VALID
    )
    noisy = replace(record, hosts=(replace(hosts, devices=(busy,)),))
    assert level(check_bytes_moved, noisy) is INDICATIVE


def test_what_cannot_be_counted_is_not_verified() -> None:
    network = facts_of(device=None, devices=(), fs_type="nfs4", network=True)
    for record, facts in (
        (healthy(devices=()), None),
        (healthy(), {"c1": network}),
        (healthy(), {}),
    ):
        answer = ask(check_bytes_moved, record, facts)
        assert answer.level is INDICATIVE
        assert answer.message.startswith("Could not be checked")


def stack(nearest: str, *leaves: str) -> dict[str, HostFacts]:
    """A target on `nearest`, which stands on the leaves."""
    facts = facts_of(device=nearest, devices=(nearest, *leaves))
    return {"c1": replace(facts, disks=(disk(nearest, *leaves), *(disk(leaf) for leaf in leaves)))}


def test_the_leaves_stand_in_for_a_device_that_is_not_counted() -> None:
    facts = stack("md0", "sda", "sdb")
    leaves = (moved(0.5, device="sda"), moved(0.5, device="sdb"))
    assert level(check_bytes_moved, healthy(devices=leaves), facts) is VALID
    half = (moved(0.5, device="sda"), moved(0.2, device="sdb"))
    assert level(check_bytes_moved, healthy(devices=half), facts) is INVALID
    assert level(check_bytes_moved, healthy(devices=leaves[:1]), facts) is INDICATIVE


def test_a_layer_between_may_answer_from_memory() -> None:
    facts = stack("loop0", "sda")
    for below, expected in ((1.0, VALID), (0.91, VALID), (0.89, INVALID), (0.0, INVALID)):
        devices = (moved(1.0, device="loop0"), moved(below, device="sda"))
        assert level(check_bytes_moved, healthy(devices=devices), facts) is expected


def test_a_layer_between_may_shrink_writes() -> None:
    facts = stack("dm-0", "sda")
    devices = (moved(write=1.0, device="dm-0"), moved(write=0.4, device="sda"))
    assert level(check_bytes_moved, healthy(WRITES, devices=devices), facts) is INDICATIVE
    mirror = (moved(write=1.0, device="dm-0"), moved(write=2.0, device="sda"))
    assert level(check_bytes_moved, healthy(WRITES, devices=mirror), facts) is VALID


def test_a_loop_device_over_an_unknown_file_is_not_verified() -> None:
    facts = facts_of(device="loop0", devices=("loop0",))
    alone = {"c1": replace(facts, disks=(disk("loop0"),))}
    record = healthy(devices=(moved(1.0, device="loop0"),))
    assert level(check_bytes_moved, record, alone) is INDICATIVE
    memory = facts_of(device="loop0", devices=("loop0",), memory_backed=True)
    assert (
        level(check_bytes_moved, record, {"c1": replace(memory, disks=(disk("loop0"),))}) is VALID
    )


@pytest.mark.parametrize(
    "parents",
    [
        # Loop devices over files of one disk, LUKS on disks of their own, volumes of one disk,
        # and one member that is stacked while the other is a disk.
        {"loop0": ("vda",), "loop1": ("vda",)},
        {"dm-0": ("sda",), "dm-1": ("sdb",)},
        {"dm-0": ("sda",), "dm-1": ("sda",)},
        {"md0": ("sda", "sdb"), "md1": ("sdc", "sdd")},
        {"dm-0": ("sda",), "sdb": ()},
    ],
)
def test_members_count_once_wherever_they_lie(parents: dict[str, tuple[str, ...]]) -> None:
    facts = btrfs_over(**parents)
    first, second = parents
    leaves = {leaf for name, below in parents.items() for leaf in (below or (name,))}

    def answer(shares: tuple[float, float], below: float = 1.0) -> CheckResult:
        members = tuple(
            moved(share, device=name) for name, share in zip(parents, shares, strict=True)
        )
        stacked = tuple(
            moved(below / len(leaves), device=leaf) for leaf in sorted(leaves - {first, second})
        )
        return ask(check_bytes_moved, healthy(devices=(*members, *stacked)), facts)

    even = answer((0.5, 0.5))
    assert (even.level, even.evidence["device"]) == (VALID, f"{first}+{second}")
    assert even.evidence["below_read_bytes"] == even.evidence["device_read_bytes"]
    missing = answer((0.5, 0.1))
    assert (missing.level, "moved 60 %" in missing.message) == (INVALID, True)
    assert answer((0.5, 0.5), below=0.2).level is INVALID


def test_a_member_that_took_the_place_of_another_is_not_counted() -> None:
    facts = btrfs_over(sda=(), sdb=())
    members = (moved(0.5, device="sda"), moved(0.2, device="sdb"))
    lost = EventOutcome("lose", "c1", "replace sdb", "degraded", GO_NS, start_real_ns=GO_NS)
    noise = replace(lost, neighbour="noise")
    for event, expected in ((lost, INDICATIVE), (noise, INVALID)):
        record = replace(healthy(devices=members), scenario=ScenarioOutcome((), (event,), ()))
        assert level(check_bytes_moved, record, facts) is expected


def test_a_neighbour_s_bytes_are_claimed_too() -> None:
    noise = Burst(ios=40_000, spans=30)
    both = with_neighbour(healthy(devices=(moved(2.0),)), noise, job=JOB)
    assert level(check_bytes_moved, both, {"c1": facts_of("c1")}) is VALID
    # On another host of that kernel it is on the same device, on another kernel's it is not.
    elsewhere = with_neighbour(healthy(devices=(moved(2.0),)), noise, job=JOB, host="c2")
    same = {"c1": facts_of("c1"), "c2": facts_of("c1")}
    assert level(check_bytes_moved, elsewhere, same) is VALID
    assert level(check_bytes_moved, elsewhere, same | {"c2": facts_of("c2")}) is INDICATIVE
    other = facts_of("c1", device="sdz", devices=("sdz",))
    assert level(check_bytes_moved, elsewhere, same | {"c2": other}) is INDICATIVE


def test_hosts_of_one_kernel_share_a_device() -> None:
    record = bursts_record([Burst()], [Burst()])
    both = tuple(replace(host, devices=(moved(2.0),)) for host in record.hosts)
    record = replace(record, hosts=both)
    one = facts_of("c1")
    assert level(check_bytes_moved, record, {"c1": one, "c2": one}) is VALID
    assert level(check_bytes_moved, record, {"c1": one, "c2": facts_of("c2")}) is INDICATIVE


def test_one_host_that_read_from_memory_is_enough() -> None:
    record = bursts_record([Burst()], [Burst()], job=JOB)
    cached = replace(record.hosts[1], devices=(moved(0.0),))
    answer = ask(check_bytes_moved, replace(record, hosts=(record.hosts[0], cached)))
    assert answer.level is INVALID
    assert answer.evidence["hosts"] == "c2"


@pytest.mark.parametrize(
    ("share", "expected", "message"),
    [
        (1.0, VALID, "moved the"),
        (0.95, INDICATIVE, "discarded 95 %"),
        (0.5, INVALID, "the rest had not reached it"),
        (1.5, INDICATIVE, "others' trims"),
        (None, INDICATIVE, "does not count discards"),
    ],
)
def test_trims_are_held_against_the_discards(
    share: float | None, expected: VerdictLevel, message: str
) -> None:
    discarded = None if share is None else round(share * CLAIMED)
    delta = DeviceDelta(DEVICE, 0, 0, 0, 0, discard_bytes=discarded, discard_ios=discarded)
    answer = ask(check_bytes_moved, healthy(TRIMS, devices=(delta,)))
    assert (answer.level, message in answer.message) == (expected, True), answer.message
    assert answer.evidence["claimed_trim_bytes"] == CLAIMED
    assert answer.evidence["device_discard_bytes"] == discarded


def test_discards_beside_writes_are_the_file_system_s_own() -> None:
    delta = replace(moved(write=1.0), discard_bytes=CLAIMED, discard_ios=9)
    answer = ask(check_bytes_moved, healthy(WRITES, devices=(delta,)))
    assert (answer.level, "claimed_trim_bytes" in answer.evidence) == (VALID, False)
