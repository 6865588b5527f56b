"""Latencies that the block layer, the device's counters or the engine's own sums contradict."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace

from iolab.core.metric import VerdictLevel
from iolab.core.run import DeviceDelta, DirectionTotals, RunRecord
from iolab.loads.fileio.checks import check_littles_law
from iolab.loads.fileio.sampled_checks import check_latency_contradicted
from iolab.loads.fileio.workload import AccessPattern
from tests.analysis.checks_on import INDICATIVE, INVALID, VALID, ask, level
from tests.analysis.records import DEVICE, JOB, Burst, btrfs_over, bursts_record, healthy
from tests.analysis.traces import A_WINDOW, WINDOWS, trace, way_trace

MS = 1_000_000
FAST, SLOW = 800_000, 8 * MS
"""Of the engine: 99 % of the first, 1 % of the second."""


def run(windows: Sequence[Sequence[int]], fast: int = FAST, slow: int = SLOW) -> RunRecord:
    """An engine that tells 99 % fast and 1 % slow reads, and what the device took."""
    bursts = [Burst(ios=39_600, lat_ns=fast), Burst(ios=400, lat_ns=slow, first_seq=100)]
    record = bursts_record(bursts)
    (host,) = record.hosts
    return replace(record, hosts=(replace(host, trace=trace(read=way_trace(windows))),))


def scattered(share: float, slow: int = SLOW - 100_000) -> list[list[int]]:
    """Windows in which so many are slow, wherever chance puts them."""
    draw = np.random.default_rng(5)
    return [
        [slow if draw.random() < share else FAST - 100_000 for _ in range(A_WINDOW)]
        for _ in range(WINDOWS)
    ]


def stalled(windows: int, slow: int = SLOW - 100_000) -> list[list[int]]:
    """So many windows of nothing but slow ones."""
    quick = [[FAST - 100_000] * A_WINDOW] * (WINDOWS - windows)
    return [*quick, *[[slow] * A_WINDOW] * windows]


@pytest.mark.parametrize(
    ("windows", "expected"),
    [
        (scattered(0.01), VALID),
        (scattered(0.0), VALID),
        # Nine in a hundred are slow, where the engine says one.
        (scattered(0.09), INVALID),
        # Stalls come together: of a hundred windows a few may be slow by chance.
        (stalled(1), VALID),
        (stalled(4), VALID),
        (stalled(60), INVALID),
        # What no I/O of the engine took is no matter of chance, but of who it was.
        (scattered(0.0005, slow=20 * MS), INVALID),
        (scattered(0.00004, slow=20 * MS), VALID),
    ],
)
def test_the_device_is_never_slower_than_the_engine(
    windows: list[list[int]], expected: VerdictLevel
) -> None:
    assert level(check_latency_contradicted, run(windows)) is expected


def test_what_contradicts_what_is_said_with_its_numbers() -> None:
    answer = ask(check_latency_contradicted, run(scattered(0.0005, slow=20 * MS)))
    count = int(answer.evidence["slower_bios"] or 0)
    assert 10 <= count <= 40
    assert "no reads took longer than 8" in answer.message
    assert f"for {count} of 50 k" in answer.message


def test_one_stall_longer_than_any_io_is_indicative() -> None:
    assert level(check_latency_contradicted, run(stalled(1, slow=20 * MS))) is INDICATIVE


def test_all_latencies_made_shorter_are_found_at_the_median() -> None:
    answer = ask(check_latency_contradicted, run(scattered(0.01), fast=500_000, slow=5 * MS))
    assert answer.level is INVALID
    assert answer.evidence["percent"] in (50.0, 90.0)


def test_a_queue_is_not_blamed_for_times_that_are_wrong() -> None:
    idle = bursts_record([Burst(lat_ns=536_000)])
    (host,) = idle.hosts
    slower = replace(host, trace=trace(read=way_trace(scattered(0.01))))
    answer = ask(check_littles_law, replace(idle, hosts=(slower,)))
    assert answer.level is INDICATIVE
    assert "latencies told are shorter" in answer.message
    assert "queue full" in ask(check_littles_law, idle).message


def counted(time_ns: float, ios: int = 1_200_000, **changes: Any) -> tuple[DeviceDelta, ...]:
    delta = DeviceDelta(
        DEVICE, ios * 4096, 0, ios, 0, read_merges=0, read_time_ns=round(ios * time_ns)
    )
    return (replace(delta, **changes),)


@pytest.mark.parametrize(
    ("devices", "expected"),
    [
        (counted(700_000), VALID),
        (counted(900_000), INDICATIVE),
        (counted(1_200_000), INVALID),
        # Not only this load's, not each one of it, or not counted.
        (counted(1_200_000, ios=1_300_000), VALID),
        (counted(1_200_000, read_merges=5), VALID),
        (counted(1_200_000, read_time_ns=None), VALID),
        ((), VALID),
    ],
)
def test_without_a_sample_the_means_are_held_against_each_other(
    devices: tuple[DeviceDelta, ...], expected: VerdictLevel | None
) -> None:
    assert level(check_latency_contradicted, healthy(devices=devices)) is expected


def test_the_means_of_all_members_are_held_against_the_engine_s() -> None:
    over = btrfs_over(loop0=("vda",), loop1=("vda",))
    (half,) = counted(1_200_000, ios=600_000)
    for second_ns, expected in ((200_000, VALID), (1_200_000, INVALID)):
        second = replace(half, device="loop1", read_time_ns=600_000 * second_ns)
        devices = (replace(half, device="loop0"), second, replace(half, device="vda"))
        assert level(check_latency_contradicted, healthy(devices=devices), over) is expected


def test_a_sample_of_a_member_is_none_of_all() -> None:
    record = run(scattered(0.09))
    assert level(check_latency_contradicted, record) is INVALID
    answer = ask(check_latency_contradicted, record, btrfs_over(nvme0n1=(), nvme1n1=()))
    assert (answer.level, "lies over several devices" in answer.message) == (VALID, True)
    # On layers of one device it is one of all.
    assert level(check_latency_contradicted, record, btrfs_over(nvme0n1=("sda", "sdb"))) is INVALID


@pytest.mark.parametrize(
    ("record", "reason"),
    [
        (run(scattered(1.0)[:4]), "Only"),
        (healthy(replace(JOB, direct=False)), "page cache"),
        (healthy(devices=()), "is not known"),
        (
            healthy(replace(JOB, access=AccessPattern.RANDWRITE, options=(("fsync", "1"),))),
            "Flushed",
        ),
    ],
    ids=["few", "buffered", "no device", "flushed"],
)
def test_without_the_device_the_engine_s_own_figures_are_judged(
    record: RunRecord, reason: str
) -> None:
    answer = ask(check_latency_contradicted, record)
    assert answer.level is VALID
    assert "histogram" in answer.message
    assert reason in answer.message


def test_no_latency_is_said_of_runs_without_one_alone() -> None:
    record = healthy()
    empty = replace(record.bins, count=record.bins.count * 0)
    answer = ask(check_latency_contradicted, replace(record, bins=empty))
    assert (answer.level, answer.message) == (None, "No latency was measured.")


def told(**changes: Any) -> RunRecord:
    """The healthy run with other figures of the engine's own."""
    record = healthy()
    totals = record.hosts[0].totals
    assert totals
    assert isinstance(totals.read, DirectionTotals)
    changed = replace(totals, read=replace(totals.read, **changes))
    return replace(record, hosts=(replace(record.hosts[0], totals=changed),))


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"percentiles": ((50.0, 800_000), (99.0, 801_000))}, VALID),
        ({"percentiles": ((50.0, 800_000), (99.0, 500_000))}, INVALID),
        ({"lat_max_ns": 400_000}, INVALID),
        ({"lat_max_ns": 4_000_000}, INVALID),
    ],
)
def test_percentiles_and_extremes_are_those_of_the_bins(
    changes: dict[str, Any], expected: VerdictLevel | None
) -> None:
    assert level(check_latency_contradicted, told(**changes)) is expected


@pytest.mark.parametrize(("share", "expected"), [(1.0, VALID), (0.67, INVALID), (1.5, INVALID)])
def test_the_sum_of_latencies_is_that_of_the_bins(
    share: float, expected: VerdictLevel | None
) -> None:
    record = healthy()
    table = replace(record.intervals, lat_sum_ns=record.intervals.lat_sum_ns * share)
    assert level(check_latency_contradicted, replace(record, intervals=table)) is expected


def test_a_sample_without_ends_tells_no_times() -> None:
    record = run(scattered(0.09))
    (host,) = record.hosts
    assert host.trace
    assert host.trace.read
    for censored, expected in ((16_000, INVALID), (17_000, VALID)):
        read = replace(host.trace.read, censored=censored)
        hosts = (replace(host, trace=replace(host.trace, read=read)),)
        assert level(check_latency_contradicted, replace(record, hosts=hosts)) is expected


def test_ends_that_may_be_others_accuse_nobody() -> None:
    record = run(scattered(0.0005, slow=20 * MS))
    (host,) = record.hosts
    assert host.trace
    assert host.trace.read
    slower = sum(row.bios for row in host.trace.read.latencies[-1:])
    for censored, expected in ((20 * slower - 200, INVALID), (20 * slower, VALID)):
        read = replace(host.trace.read, censored=censored)
        hosts = (replace(host, trace=replace(host.trace, read=read)),)
        assert level(check_latency_contradicted, replace(record, hosts=hosts)) is expected, censored
