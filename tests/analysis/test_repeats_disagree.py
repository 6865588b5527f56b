"""Repeats of a point that do not tell of one thing, planted into results that are in order."""

from __future__ import annotations

import pytest
from bench.synthetic import Shape, make_plan, make_record, make_result, make_study
from msgspec.structs import replace

from iolab.analysis.points import summarise_points
from iolab.analysis.stored_results import REPEATS_CHECK_CODE, results_with_repeat_checks
from iolab.core.metric import Metric, RunResult, VerdictLevel

SHAPE = Shape(points=1, seconds=2, hosts=2, cores=2, disks=1, nics=1)
STUDY = make_study(SHAPE)
ONE = make_result(make_record(make_plan(SHAPE).runs[0], SHAPE))


def repeats(*iops: float) -> list[RunResult]:
    return [
        replace(ONE, repeat=number, metrics={**ONE.metrics, "iops": Metric(value, "IO/s")})
        for number, value in enumerate(iops, start=1)
    ]


def level(*iops: float) -> VerdictLevel | None:
    marked = results_with_repeat_checks(repeats(*iops), STUDY)
    found = {
        check.level
        for run in marked
        for check in run.verdict.checks
        if check.code == REPEATS_CHECK_CODE
    }
    assert len(found) <= 1
    return next(iter(found), None)


@pytest.mark.parametrize(
    ("iops", "expected"),
    [
        ((251, 30_000, 47_000), VerdictLevel.INVALID),
        ((1000, 2000), VerdictLevel.INVALID),
        ((1000, 1300), VerdictLevel.INDICATIVE),
        ((1000, 1150, 1210), None),
        ((1000, 1001), None),
        ((1000,), None),
    ],
)
def test_repeats_are_held_against_each_other(iops: tuple[float, ...], expected: object) -> None:
    assert level(*iops) == expected


def test_repeats_that_agree_change_no_verdict() -> None:
    marked = results_with_repeat_checks(repeats(1000, 1010), STUDY)
    assert marked == tuple(repeats(1000, 1010))


def test_a_point_of_repeats_that_disagree_is_not_trusted_and_has_no_interval() -> None:
    (point,) = summarise_points(
        results_with_repeat_checks(repeats(251, 30_000, 47_000), STUDY), STUDY
    )
    assert not point.is_trusted
    assert point.metrics["iops"].low is None


def test_a_run_that_is_invalid_already_does_not_count() -> None:
    odd, *others = repeats(251, 1000, 1010)
    bad = replace(odd, verdict=replace(odd.verdict, level=VerdictLevel.INVALID))
    marked = results_with_repeat_checks([bad, *others], STUDY)
    assert marked == (bad, *others)


def test_results_that_were_marked_are_not_marked_again() -> None:
    once = results_with_repeat_checks(repeats(1000, 1300), STUDY)
    assert results_with_repeat_checks(once, STUDY) == once
