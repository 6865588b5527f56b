"""What a plan writes: known bytes are exact, and speeds of targets are named until measured."""

from __future__ import annotations

import pytest
from bench.synthetic import make_record, make_result
from msgspec.structs import replace

from iolab.core.metric import Metric, RunResult
from iolab.core.run import Point
from iolab.registry import study_kinds
from iolab.study.writes import WriteForecaster, forecast_writes
from tests.cli.command_line import PLAN, SHAPE
from tests.plans import make_plan
from tests.study.studies import load, workload

SETS = ("method.warmup=2s", "method.runtime=8s")
MIB = 1 << 20
RESULT = make_result(make_record(PLAN.runs[0], SHAPE))


def finished(point: Point, rate: float) -> RunResult:
    """A finished run of that point that wrote so many bytes a second."""
    metric = replace(next(iter(RESULT.metrics.values())), value=rate, low=None, high=None)
    assert isinstance(metric, Metric)
    return replace(RESULT, digest=point.digest, metrics={"write_bw_bytes_per_s": metric})


@pytest.mark.parametrize(
    ("extra", "rw", "known", "open_s"),
    [
        ("", "randread", MIB, 0),
        ("", "randwrite", MIB, 10),
        ("rwmixread = 75", "randrw", MIB, 2.5),
        ("rate_iops = 100", "randwrite", MIB + 100 * 4096 * 10, 0),
    ],
)
def test_bytes_that_need_no_speed_are_exact_and_the_rest_is_seconds(
    extra: str, rw: str, known: int, open_s: float
) -> None:
    study = load(workload(extra, rw=rw), *SETS)
    forecast = forecast_writes(study, make_plan(study), study_kinds())
    assert (forecast.known_bytes, forecast.seconds_range_at_target_speed) == (
        known,
        (open_s, open_s),
    )
    assert ("at 1 GB/s" in forecast.forecast_sentence) is (open_s > 0)


def test_what_is_written_until_steady_is_in_the_forecast() -> None:
    device = '[target]\ndevice = "/dev/nvme9n1"\nserial = "S5"\n'
    text = workload("", rw="randwrite") + "[precondition]\nfill = 2\nsteady = true\nround = 60\n"
    study = load(text + device, *SETS, path=None)
    settings = study.precondition
    forecast = forecast_writes(study, make_plan(study), study_kinds())
    least, most = forecast.seconds_range_at_target_speed
    assert (least, most) == (10 + 5 * 60, 10 + settings.rounds_max * 60)
    assert forecast.known_bytes == 2 * MIB


def test_finished_runs_take_the_place_of_speeds_that_nobody_knows() -> None:
    study = load(workload("iodepth = [1, 8]", rw="randwrite"), *SETS)
    plan = make_plan(study)
    first, second = plan.points
    one = forecast_writes(study, plan, study_kinds(), [finished(first, 3e9)])
    assert (one.measured_bytes, one.seconds_range_at_target_speed) == (2 * 30 * 10**9, (0, 0))
    both = [finished(first, 3e9), finished(second, 5e9)]
    two = forecast_writes(study, plan, study_kinds(), both)
    assert (two.measured_bytes, two.measured_runs) == (80 * 10**9, 2)
    other = load(workload(rw="randwrite", bs='"64k"'), *SETS)
    apart = forecast_writes(other, make_plan(other), study_kinds(), both)
    assert (apart.measured_bytes, apart.seconds_range_at_target_speed) == (0, (10, 10))


def test_a_session_learns_from_the_first_run_of_a_kind_alone() -> None:
    study = load(workload("iodepth = [1, 8]", rw="randwrite"), *SETS)
    plan = make_plan(study)
    forecaster = WriteForecaster(study, plan, study_kinds())
    assert forecaster.forecast().depends_on_target_speed
    told = forecaster.add_result(finished(plan.points[0], 1e9))
    assert told is not None
    assert not told.depends_on_target_speed
    assert forecaster.add_result(finished(plan.points[1], 2e9)) is None


def test_nothing_is_forecast_after_the_last_run() -> None:
    study = load(workload(rw="randwrite"), *SETS)
    plan = make_plan(study)
    assert len(plan.runs) == 1
    forecaster = WriteForecaster(study, plan, study_kinds())
    assert forecaster.add_result(finished(plan.points[0], 1e9)) is None
