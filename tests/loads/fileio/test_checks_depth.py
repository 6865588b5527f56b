"""Queue depth and Little's law."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from iolab.core.metric import VerdictLevel
from iolab.core.run import RunRecord
from iolab.core.workload import Direction
from iolab.loads.fileio.checks import (
    check_coordinated_omission,
    check_depth_not_reached,
    check_littles_law,
    fio_depth_level_key,
)
from iolab.loads.fileio.workload import Job
from tests.analysis.checks_on import INDICATIVE, INVALID, VALID, ask, level
from tests.analysis.records import JOB, MIXED, Burst, bursts_record, engine_totals, healthy


def at_depth(iodepth: int, **percent: float) -> RunRecord:
    """A healthy run at that depth whose engine counted those levels (`d8=99.0`)."""
    shares = tuple((name.removeprefix("d"), value) for name, value in percent.items())
    totals = replace(engine_totals(None, None), depth_percent=shares)
    return healthy(replace(JOB, iodepth=iodepth), totals=totals)


@pytest.mark.parametrize(
    ("iodepth", "name"),
    [(1, "1"), (2, "2"), (3, "2"), (8, "8"), (12, "8"), (63, "32"), (64, ">=64"), (256, ">=64")],
)
def test_depths_are_counted_under_the_power_of_two_below(iodepth: int, name: str) -> None:
    assert fio_depth_level_key(iodepth) == name


@pytest.mark.parametrize(
    ("share", "expected"),
    [(100.0, VALID), (90.0, VALID), (89.9, INDICATIVE), (10.0, INDICATIVE), (9.9, INVALID)],
)
def test_the_share_at_the_asked_depth_decides(share: float, expected: VerdictLevel) -> None:
    assert level(check_depth_not_reached, at_depth(8, d1=100 - share, d8=share)) is expected


def test_a_synchronous_engine_never_reaches_a_depth() -> None:
    answer = ask(check_depth_not_reached, at_depth(32, d1=100.0, d32=0.0))
    assert answer.level is INVALID
    assert "asked: 32" in answer.message


def test_an_engine_that_tells_no_depths_leaves_it_open() -> None:
    assert level(check_depth_not_reached, at_depth(8)) is INDICATIVE
    assert level(check_depth_not_reached, healthy(totals=None)) is INDICATIVE


@pytest.mark.parametrize(
    "paced", [replace(JOB, rate_iops=100), replace(JOB, options=(("thinktime", "100us"),))]
)
def test_a_paced_load_is_not_meant_to_fill_its_queue(paced: Job) -> None:
    record = at_depth(8, d1=100.0)
    point = replace(record.run.point, job=paced)
    record = replace(record, run=replace(record.run, point=point))
    assert level(check_depth_not_reached, record) is None
    assert level(check_littles_law, record) is None


def in_flight(mean: float, iodepth: int = 8) -> RunRecord:
    """A run with that many I/Os in flight for every one asked, at 0.1 ms each."""
    job = replace(JOB, iodepth=iodepth, numjobs=1)
    ios = round(mean * iodepth * 10_000)
    return bursts_record([Burst(ios=ios, lat_ns=100_000)], job=job)


@pytest.mark.parametrize(
    ("rho", "iodepth", "expected"),
    [
        (1.0, 8, VALID),
        (0.981, 8, VALID),
        (1.019, 8, VALID),
        (0.979, 8, INDICATIVE),
        (1.021, 8, INDICATIVE),
        (1.051, 8, INVALID),
        (0.94, 8, INDICATIVE),
        (0.501, 8, INDICATIVE),
        (0.499, 8, INVALID),
        (0.951, 1, VALID),
        (0.949, 1, INDICATIVE),
        (1.09, 1, INDICATIVE),
        (1.11, 1, INVALID),
    ],
)
def test_the_ratio_decides(rho: float, iodepth: int, expected: VerdictLevel) -> None:
    answer = ask(check_littles_law, in_flight(rho, iodepth))
    assert answer.level is expected
    assert answer.evidence["rho"] == pytest.approx(rho, rel=1e-4)


def test_both_directions_share_the_queue() -> None:
    # 32 in flight: reads take 0.4 ms, writes 1.2 ms, half each: 40 000 IOPS x 0.8 ms.
    halves = [
        Burst(ios=20_000, lat_ns=400_000),
        Burst(ios=20_000, lat_ns=1_200_000, direction=Direction.WRITE),
    ]
    answer = ask(check_littles_law, bursts_record(halves, job=MIXED))
    assert answer.evidence["rho"] == pytest.approx(1.0)
    assert answer.level is VALID


def test_slow_ios_at_the_edges_are_granted() -> None:
    # 1.5 s each over 30 s: an I/O that straddles an edge may weigh 5 % either way.
    slow = bursts_record([Burst(ios=22, lat_ns=1_500_000_000)], job=JOB)
    answer = ask(check_littles_law, slow)
    assert answer.evidence["edge"] == pytest.approx(0.05)
    assert answer.evidence["rho"] == pytest.approx(1.03, abs=0.01)
    assert answer.level is VALID


def test_one_bad_host_is_found_among_good_ones() -> None:
    record = bursts_record([Burst()], [Burst(ios=15_000)], [Burst()])
    answer = ask(check_littles_law, record)
    assert answer.level is INVALID
    assert answer.evidence["host"] == "c2"
    assert "on c2" in answer.message


@pytest.mark.parametrize(
    ("options", "loop"),
    [
        ((), "Closed loop"),
        # Without a time to think or a rate these change nothing.
        ((("thinktime", "0"), ("thinktime_blocks", "8")), "Closed loop"),
        ((("rate_process", "poisson"),), "Closed loop"),
        ((("thinktime", "100us"),), "Paced by think time"),
    ],
)
def test_a_load_is_paced_by_what_makes_it_wait_alone(
    options: tuple[tuple[str, str], ...], loop: str
) -> None:
    record = healthy(replace(JOB, options=options))
    answer = ask(check_littles_law, record)
    assert (answer.level is VALID) is (loop == "Closed loop")
    assert ask(check_coordinated_omission, record).message.startswith(loop)
