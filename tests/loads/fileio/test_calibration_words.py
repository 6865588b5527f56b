"""What a calibration says of itself: which tone, with which numbers."""

from __future__ import annotations

from dataclasses import replace

import pytest

from iolab.loads.fileio.calibration import rows_of
from iolab.loads.fileio.calibration_model import Calibration, HostCalibration, Trial
from iolab.loads.fileio.calibration_report import Meaning, Tone, meanings, shares_of
from iolab.loads.fileio.checks import BOUND_SHARE
from iolab.loads.fileio.engine_facts import FIO_ENGINE, NATIVE_ENGINE
from iolab.loads.fileio.workload import Access, Job

FIO, NATIVE = FIO_ENGINE, NATIVE_ENGINE
JOB = Job(FIO, Access.RANDREAD, 4096, 32, 1, 1 << 28)
TRIAL = Trial(FIO, 1, 100_000.0, 300_000.0, 290_000.0, 900_000.0, 6000.0)


def trials(
    *, iops: float = 1.0, p99: float = 1.0, cpu: float = 0.5, noise: float = 0.001
) -> tuple[Trial, ...]:
    """Five pairs; native's figures over fio's, which move by `noise` from pair to pair."""
    found: list[Trial] = []
    for pair in range(1, 6):
        off = 1 + noise * (-1) ** pair
        native = replace(
            TRIAL,
            engine=NATIVE,
            pair=pair,
            iops=TRIAL.iops * iops * off,
            lat_ns_p99=TRIAL.lat_ns_p99 * p99 * off,
            cpu_ns_per_io=TRIAL.cpu_ns_per_io * cpu * off,
        )
        found += [replace(TRIAL, pair=pair), native]
    return tuple(found)


def calibration(
    made: tuple[Trial, ...], **ceilings: tuple[float | None, float | None]
) -> Calibration:
    """Hosts by name with the ceilings of fio and native, all with the same runs."""
    told = {FIO: "fio-3.33", NATIVE: "native-0.1.0"}
    hosts = tuple(
        HostCalibration(host, JOB, made, {FIO: fio, NATIVE: native}, told, told)
        for host, (fio, native) in ceilings.items()
    )
    return Calibration(JOB, hosts, made)


def about(found: Calibration) -> dict[str, Meaning]:
    pairs = len(found.trials) // 2
    every = meanings(rows_of(found.trials), shares_of(found), pairs=pairs, hosts=len(found.hosts))
    return {one.about: one for one in every}


def test_engines_that_overlay_at_half_the_cost_on_a_target_that_limits() -> None:
    said = about(calibration(trials(), local=(1e6, 4e6)))
    assert {one.tone for one in said.values()} == {Tone.GOOD}
    assert "within 2.0 %" in said["IOPS"].says
    assert said["latency"].says.count("within 5.0 %") == 2
    assert "50 % less" in said["CPU"].says
    assert "10 % of the 1 M IOPS" in said["limit"].says
    assert "2.5 % of the 4 M IOPS" in said["limit"].says


def test_a_difference_is_said_with_its_side() -> None:
    said = about(calibration(trials(iops=1.2, p99=0.7), local=(1e6, 4e6)))
    assert said["IOPS"].tone is Tone.WARNING
    assert "native has 20 % more IOPS" in said["IOPS"].says
    assert "native has 30 % lower p99" in said["latency"].says
    assert "their own limit" not in said["IOPS"].says
    assert said["limit"].tone is Tone.WARNING


def test_a_difference_at_the_ceiling_is_the_engines_own() -> None:
    said = about(calibration(trials(iops=1.2), local=(150_000, 4e6)))
    assert "their own limit" in said["IOPS"].says
    assert said["limit"].tone is Tone.WARNING
    assert "use native" in said["limit"].says
    both = about(calibration(trials(), local=(150_000, 160_000)))
    assert "more clients" in both["limit"].says
    assert "limit" not in about(calibration(trials(), local=(None, None)))


def test_noise_leaves_it_open_and_says_how_far() -> None:
    said = about(calibration(trials(noise=0.05), local=(1e6, 4e6)))
    assert said["IOPS"].tone is Tone.OPEN
    assert "5 pairs" in said["IOPS"].says


def test_the_host_that_is_nearest_to_its_end_speaks_for_the_fleet() -> None:
    found = calibration(trials(), c1=(1e6, 4e6), c2=(190_000, 3e6), c3=(None, 5e6))
    said = about(found)
    assert "53 % of the 190 k IOPS" in said["limit"].says
    assert "of the 3 M IOPS" in said["limit"].says
    assert "on c2" in said["limit"].says
    assert found.ceilings[FIO] is None
    assert found.ceilings[NATIVE] == pytest.approx(12e6)


def test_the_share_is_that_of_the_check() -> None:
    at = TRIAL.iops / BOUND_SHARE
    (fio, _) = shares_of(calibration(trials(), local=(at, 4e6)))
    assert fio.bound
    (fio, _) = shares_of(calibration(trials(), local=(at * 1.01, 4e6)))
    assert not fio.bound
