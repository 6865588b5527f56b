"""A calibration: what refuses a host, its figures, and what they mean."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from iolab.core.host import HostFacts, TargetFacts, ToolFacts
from iolab.errors import EngineError, HostError
from iolab.loads.fileio.calibration import calibration_rows, require_ready
from iolab.loads.fileio.calibration_model import Calibration, HostCalibration, Trial
from iolab.loads.fileio.calibration_report import (
    Conclusion,
    ConclusionTone,
    calibration_conclusions,
    nearest_ceiling_shares,
)
from iolab.loads.fileio.checks import CEILING_SHARE
from iolab.loads.fileio.engine_facts import FIO_ENGINE, NATIVE_ENGINE
from iolab.loads.fileio.workload import Access, Job
from iolab.stats.comparison import ComparisonVerdict
from tests.analysis.records import facts_of

ASKED = Job(FIO_ENGINE, Access.RANDREAD, 4096, 32, 2, 1 << 28)
FIO_TOOL = ToolFacts("fio", "/usr/bin/fio", "fio-3.33")


def machine(*tools: ToolFacts, free_bytes: int = 1 << 40) -> HostFacts:
    facts = facts_of()
    assert isinstance(facts.target, TargetFacts)
    return replace(facts, tools=tools, target=replace(facts.target, free_bytes=free_bytes))


@pytest.mark.parametrize(
    "tools",
    [(), (ToolFacts("fio", None, None),), (replace(FIO_TOOL, version="fio-2.1"),)],
)
def test_without_a_fio_that_serves_nothing_begins(tools: tuple[ToolFacts, ...]) -> None:
    with pytest.raises(EngineError, match="fio"):
        require_ready(machine(*tools), "/mnt/t", ASKED)


def test_files_that_do_not_fit_are_not_begun() -> None:
    with pytest.raises(HostError, match=r"/mnt/t has 512 MiB free, .* need 512 MiB") as caught:
        require_ready(machine(FIO_TOOL, free_bytes=(1 << 29) - 1), "/mnt/t", ASKED)
    assert "--size" in caught.value.hint
    require_ready(machine(FIO_TOOL, free_bytes=1 << 29), "/mnt/t", ASKED)


FIO_TRIAL = Trial(FIO_ENGINE, 1, 1000.0, 5000.0, 4000.0, 9000.0, 3000.0)


def native_of(fio: Trial, *, faster: float) -> Trial:
    return replace(
        fio,
        engine=NATIVE_ENGINE,
        iops=fio.iops * faster,
        lat_ns_mean=fio.lat_ns_mean / faster,
        cpu_ns_per_io=fio.cpu_ns_per_io / 2,
    )


def pairs_of(faster: float, drift: float) -> tuple[Trial, ...]:
    """Five pairs on a target that gets slower from pair to pair."""
    found: list[Trial] = []
    for pair in range(1, 6):
        slower = drift**pair
        fio = replace(
            FIO_TRIAL,
            pair=pair,
            iops=FIO_TRIAL.iops / slower,
            lat_ns_mean=FIO_TRIAL.lat_ns_mean * slower,
        )
        # Chance of a tenth of a per cent.
        both = [fio, native_of(fio, faster=faster * (1 + 0.001 * (-1) ** pair))]
        found += both if pair % 2 else both[::-1]
    return tuple(found)


def test_what_both_shared_within_a_pair_is_taken_out() -> None:
    rows = {row.key: row for row in calibration_rows(pairs_of(faster=1.1, drift=1.3))}
    iops = rows["iops"].comparison
    assert iops.ratio == pytest.approx(1.1, rel=0.002)
    assert (iops.verdict, iops.paired) == (ComparisonVerdict.BETTER, True)
    assert rows["lat_ns_mean"].comparison.verdict is ComparisonVerdict.BETTER
    assert rows["cpu_ns_per_io"].comparison.ratio == pytest.approx(0.5)
    assert rows["iops"].fio == pytest.approx(1000 / 1.3**3)


def test_engines_that_agree_are_called_the_same() -> None:
    rows = {row.key: row for row in calibration_rows(pairs_of(faster=1.0, drift=1.0))}
    assert rows["iops"].comparison.verdict is ComparisonVerdict.SAME
    p50 = rows["lat_ns_p50"].comparison
    # Equal values, each known to within a bin: both may be off, to either side.
    assert p50.low == pytest.approx(1 / (1 + 1 / 128) ** 2, abs=1e-3)
    assert p50.high == pytest.approx((1 + 1 / 128) ** 2, abs=1e-3)


JOB = Job(FIO_ENGINE, Access.RANDREAD, 4096, 32, 1, 1 << 28)
TRIAL = Trial(FIO_ENGINE, 1, 100_000.0, 300_000.0, 290_000.0, 900_000.0, 6000.0)


def trials(
    *, iops: float = 1.0, p99: float = 1.0, cpu: float = 0.5, noise: float = 0.001
) -> tuple[Trial, ...]:
    """Five pairs; native's figures over fio's, which move by `noise` from pair to pair."""
    found: list[Trial] = []
    for pair in range(1, 6):
        off = 1 + noise * (-1) ** pair
        native = replace(
            TRIAL,
            engine=NATIVE_ENGINE,
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
    told = {FIO_ENGINE: "fio-3.33", NATIVE_ENGINE: "native-0.1.0"}
    hosts = tuple(
        HostCalibration(host, JOB, made, {FIO_ENGINE: fio, NATIVE_ENGINE: native}, told, told)
        for host, (fio, native) in ceilings.items()
    )
    return Calibration(JOB, hosts, made)


def about(found: Calibration) -> dict[str, Conclusion]:
    pairs = len(found.trials) // 2
    every = calibration_conclusions(
        calibration_rows(found.trials),
        nearest_ceiling_shares(found),
        pairs=pairs,
        hosts=len(found.hosts),
    )
    return {one.about: one for one in every}


def test_engines_that_overlay_at_half_the_cost_on_a_target_that_limits() -> None:
    said = about(calibration(trials(), local=(1e6, 4e6)))
    assert {one.tone for one in said.values()} == {ConclusionTone.GOOD}
    assert "within 2 %" in said["IOPS"].message
    assert said["latency"].message.count("within 5 %") == 2
    assert "50 % less" in said["CPU"].message
    assert "10 % of the 1 M IOPS" in said["limit"].message
    assert "2.5 % of the 4 M IOPS" in said["limit"].message


def test_a_difference_is_said_with_its_side() -> None:
    said = about(calibration(trials(iops=1.2, p99=0.7), local=(1e6, 4e6)))
    assert said["IOPS"].tone is ConclusionTone.WARNING
    assert "native has 20 % more IOPS" in said["IOPS"].message
    assert "native has 30 % lower p99" in said["latency"].message
    assert "their own limit" not in said["IOPS"].message
    assert said["limit"].tone is ConclusionTone.WARNING


def test_a_difference_at_the_ceiling_is_the_engines_own() -> None:
    said = about(calibration(trials(iops=1.2), local=(150_000, 4e6)))
    assert "their own limit" in said["IOPS"].message
    assert said["limit"].tone is ConclusionTone.WARNING
    assert "use native" in said["limit"].message
    both = about(calibration(trials(), local=(150_000, 160_000)))
    assert "more clients" in both["limit"].message
    assert "limit" not in about(calibration(trials(), local=(None, None)))


def test_noise_leaves_it_open_and_says_how_far() -> None:
    said = about(calibration(trials(noise=0.05), local=(1e6, 4e6)))
    assert said["IOPS"].tone is ConclusionTone.OPEN
    assert "5 pairs" in said["IOPS"].message


def test_the_host_that_is_nearest_to_its_end_speaks_for_the_fleet() -> None:
    found = calibration(trials(), c1=(1e6, 4e6), c2=(190_000, 3e6), c3=(None, 5e6))
    said = about(found)
    assert "53 % of the 190 k IOPS" in said["limit"].message
    assert "of the 3 M IOPS" in said["limit"].message
    assert "on c2" in said["limit"].message
    assert found.ceilings[FIO_ENGINE] is None
    assert found.ceilings[NATIVE_ENGINE] == pytest.approx(12e6)


def test_the_share_is_that_of_the_check() -> None:
    at = TRIAL.iops / CEILING_SHARE
    (fio, _) = nearest_ceiling_shares(calibration(trials(), local=(at, 4e6)))
    assert fio.is_generator_bound
    (fio, _) = nearest_ceiling_shares(calibration(trials(), local=(at * 1.01, 4e6)))
    assert not fio.is_generator_bound
