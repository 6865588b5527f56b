"""Curves, peaks and highest loads of simulated sessions, made when results are read."""

from __future__ import annotations

import math

import pytest
from msgspec.structs import replace

from iolab.analysis.curves import session_load_findings
from iolab.loads.fileio.workload import Job
from iolab.report.phrases import document_of_load_findings, sentences_of_load_findings
from tests.analysis.adaptive.systems import System, whole_session
from tests.analysis.adaptive.test_queue import CURVE, HILL, MOST, PEAK, QUEUE, SOFT
from tests.guests.guest_studies import FLEET
from tests.study.studies import SMALL, load, workload


def test_a_curve_has_every_load_and_tells_which_were_measured() -> None:
    study = load(CURVE)
    runs, results = whole_session(study, SOFT)
    (curve,) = session_load_findings(study, results).curves
    assert [point.load for point in curve.points] == list(range(1, 25))
    measured = {Job.require_type(run.point.job).iodepth for run in runs}
    assert {point.load for point in curve.points if point.is_measured} == measured
    assert curve.knee.low <= 10 <= curve.knee.high
    assert curve.saturation is not None
    assert curve.saturation.low <= 14 <= curve.saturation.high
    assert curve.bounds_crossing_load == pytest.approx(10, rel=0.03)


def test_a_listed_axis_is_a_curve_too_and_a_few_points_are_none() -> None:
    study = load(workload("iodepth = [1, 2, 4, 8, 16]"))
    _, results = whole_session(study, SOFT)
    found = session_load_findings(study, results)
    assert len(found.curves) == 1
    assert all(point.is_measured for point in found.curves[0].points)
    assert session_load_findings(study, results[:3]).curves == ()
    small = load(SMALL)
    assert session_load_findings(small, whole_session(small, SOFT)[1]).curves == ()


@pytest.mark.parametrize("axis", ["", 'axis = "adaptive"\n'])
def test_a_fleet_that_grows_has_a_curve_for_each_depth(axis: str) -> None:
    study = load(FLEET.replace("[1, 2, 3]", str(list(range(1, 9))) + f"\n{axis}".rstrip()))
    four = System(lambda point: float((point.per_node**-4 + 4.0**-4) ** -0.25) * 1000)
    curves = session_load_findings(study, whole_session(study, four)[1]).curves
    assert [
        (curve.axis_name, dict(curve.search.fixed_axis_values)["iodepth"]) for curve in curves
    ] == [
        ("vms_per_node", 1),
        ("vms_per_node", 8),
    ]
    for curve in curves:
        assert [point.load for point in curve.points] == list(range(1, 9))
        assert curve.knee.low <= 4 <= curve.knee.high
        assert curve.bounds_crossing_load == pytest.approx(4, rel=0.05)


def test_findings_are_the_same_whenever_they_are_made() -> None:
    study = load(CURVE)
    _, results = whole_session(study, SOFT)
    assert document_of_load_findings(
        session_load_findings(study, results)
    ) == document_of_load_findings(session_load_findings(study, results))


def test_runs_without_a_host_do_not_enter() -> None:
    study = load(CURVE)
    _, results = whole_session(study, SOFT)
    assert (
        session_load_findings(
            study, [replace(run, excluded_hosts=("c1",)) for run in results]
        ).curves
        == ()
    )


def test_answers_are_told_in_a_sentence_each() -> None:
    for text, system, message in (
        (CURVE, SOFT, ("w (default): ", "values of iodepth measured", "predicted to within")),
        (PEAK, HILL, ("best is iodepth 16, numjobs 4 with 10", "runs of 28 points")),
        (MOST, QUEUE, ("p99 <= 2 ms up to 8", "verified at", "without a rate 9")),
    ):
        study = load(text)
        (line,) = sentences_of_load_findings(
            session_load_findings(study, whole_session(study, system)[1])
        )
        assert all(part in line for part in message), line
        assert line.endswith(".")


def test_a_limit_that_is_never_reached_has_no_interval() -> None:
    study = load(workload('objective = "max-load"\nlimit = "p99 <= 10s"'))
    (found,) = document_of_load_findings(
        session_load_findings(study, whole_session(study, QUEUE)[1])
    )["max_loads"]
    assert (found["bounded"], found["low"], found["high"]) == (False, None, None)
    assert found["iops"] == found["saturation_iops"]
    assert math.isclose(found["limit_ns"], 1e10)
