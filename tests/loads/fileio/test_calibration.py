"""Two engines held against each other by pairs."""

from __future__ import annotations

from dataclasses import replace

import pytest

from iolab.loads.fileio.calibration import rows_of
from iolab.loads.fileio.calibration_model import Trial
from iolab.loads.fileio.engine_facts import FIO_ENGINE, NATIVE_ENGINE
from iolab.stats.comparison import ComparisonVerdict

FIO = Trial(FIO_ENGINE, 1, 1000.0, 5000.0, 4000.0, 9000.0, 3000.0)


def native_of(fio: Trial, *, faster: float) -> Trial:
    return replace(
        fio,
        engine=NATIVE_ENGINE,
        iops=fio.iops * faster,
        lat_ns_mean=fio.lat_ns_mean / faster,
        cpu_ns_per_io=fio.cpu_ns_per_io / 2,
    )


def pairs(faster: float, drift: float) -> tuple[Trial, ...]:
    """Five pairs on a target that gets slower from pair to pair."""
    found: list[Trial] = []
    for pair in range(1, 6):
        slower = drift**pair
        fio = replace(FIO, pair=pair, iops=FIO.iops / slower, lat_ns_mean=FIO.lat_ns_mean * slower)
        # Chance of a tenth of a per cent.
        both = [fio, native_of(fio, faster=faster * (1 + 0.001 * (-1) ** pair))]
        found += both if pair % 2 else both[::-1]
    return tuple(found)


def test_what_both_shared_within_a_pair_is_taken_out() -> None:
    rows = {row.key: row for row in rows_of(pairs(faster=1.1, drift=1.3))}
    iops = rows["iops"].comparison
    assert iops.ratio == pytest.approx(1.1, rel=0.002)
    assert (iops.verdict, iops.paired) == (ComparisonVerdict.BETTER, True)
    assert rows["lat_ns_mean"].comparison.verdict is ComparisonVerdict.BETTER
    assert rows["cpu_ns_per_io"].comparison.ratio == pytest.approx(0.5)
    assert rows["iops"].fio == pytest.approx(1000 / 1.3**3)


def test_engines_that_agree_are_called_the_same() -> None:
    rows = {row.key: row for row in rows_of(pairs(faster=1.0, drift=1.0))}
    assert rows["iops"].comparison.verdict is ComparisonVerdict.SAME
    p50 = rows["lat_ns_p50"].comparison
    # Equal values, each known to within a bin: both may be off, to either side.
    assert p50.low == pytest.approx(1 / (1 + 1 / 128) ** 2, abs=1e-3)
    assert p50.high == pytest.approx((1 + 1 / 128) ** 2, abs=1e-3)
