"""What a study's axes are measured for: how it is written, what is refused, what is planned."""

from __future__ import annotations

import pytest

from iolab.core.configuration import AxisSampling, LatencyLimit, Objective
from iolab.core.study import RunOrder
from iolab.loads.fileio.workload import IoArrivals, Job
from iolab.study.load_tables import parse_latency_limit
from iolab.study.schedule import adaptive_searches_of_points, build_point_at
from tests.plans import make_plan
from tests.study.studies import SMALL, load, told, workload

CURVE = workload('iodepth = [1, 2, 3, 4, 6, 8, 12, 16]\naxis = "adaptive"\nheadline = [6]')
PEAK = workload('iodepth = [1, 4, 16]\nnumjobs = [1, 2, 4]\nobjective = "peak"')
MOST = workload('numjobs = 2\nobjective = "max-load"\nlimit = "read p99.9 <= 1.5ms"')


def test_aims_are_read() -> None:
    curve, peak, most = (load(text).workloads[0].search_goal for text in (CURVE, PEAK, MOST))
    assert (curve.axis_sampling, curve.headline_loads, curve.is_adaptive) == (
        AxisSampling.ADAPTIVE,
        (6,),
        True,
    )
    assert peak.objective is Objective.PEAK
    assert most.latency_limit == LatencyLimit("read_lat_ns_p99_9", 1.5e6)
    assert not load(SMALL).workloads[0].search_goal.is_adaptive


@pytest.mark.parametrize(
    ("text", "limit"),
    [
        ("p99 <= 2ms", LatencyLimit("lat_ns_p99", 2e6)),
        (" mean<=500 us ", LatencyLimit("lat_ns_mean", 5e5)),
        ("write p50 <= 1s", LatencyLimit("write_lat_ns_p50", 1e9)),
        ("p99 < 2ms", None),
        ("p98 <= 2ms", None),
        ("p99 <= 0ms", None),
        ("p99 <= 2", None),
    ],
)
def test_a_limit_has_a_latency_and_a_unit(text: str, limit: LatencyLimit | None) -> None:
    assert parse_latency_limit(text) == limit


@pytest.mark.parametrize(
    ("extra", "message"),
    [
        ('axis = "adaptive"', "s.toml:8: Workload 'w' has axis = 'adaptive' and no axis of load."),
        ('iodepth = [1, 2, 4]\naxis = "adaptive"', "but 3 values of iodepth."),
        ('iodepth = [1, 2, 4, 8]\nnumjobs = [1, 2]\naxis = "adaptive"', "iodepth and numjobs."),
        ('iodepth = [1, 2, 4, 8]\naxis = "adaptive"\nheadline = 3', "headline = 3, which iodepth"),
        ("headline = 3", "has headline but no adaptive axis."),
        ('objective = "peak"', "has objective = 'peak' and no axis to search."),
        ('iodepth = [1, 2]\nobjective = "peak"\nindicator = "latency"', "indicator = 'latency'."),
        ('iodepth = [1, 2]\nobjective = "peak"\naxis = "adaptive"', "and objective = 'peak'."),
        ('objective = "max-load"', "has objective = 'max-load' but no limit."),
        ('limit = "p99 <= 2ms"', "has a limit but objective = 'grid'."),
        ('limit = "p99"', "limit of workload 'w' is 'p99'."),
        ('objective = "max-load"\nlimit = "write p99 <= 2ms"', "has a limit on write latency"),
        ('objective = "max-load"\nlimit = "p99 <= 2ms"\nrate_iops = 9', "and rate_iops."),
        ('[method]\nsentinel = "x"', "sentinel is 'x', which is no workload of I/O."),
    ],
)
def test_what_does_not_go_together_is_told_once(extra: str, message: str) -> None:
    (fault,) = told(workload(extra))
    assert message in fault


def test_a_plan_has_the_runs_that_are_certain_and_counts_the_others() -> None:
    curve = make_plan(load(CURVE, "method.repeats=2"))
    assert [Job.require_type(run.point.job).iodepth for run in curve.runs] == [
        1,
        2,
        4,
        6,
        8,
        16,
    ] * 2
    assert [Job.require_type(point.job).iodepth for point in curve.candidate_points] == [3, 12]
    assert curve.extra_run_count == 4
    peak = make_plan(load(PEAK))
    assert (len(peak.runs), len(peak.candidate_points), len(peak.points)) == (5, 4, 9)
    most = make_plan(load(MOST))
    assert (len(most.runs), most.candidate_points, most.extra_run_count) == (1, (), 17)
    assert most.demand.least_seconds is not None
    assert most.demand.least_seconds < most.demand.seconds


def test_other_axes_make_searches_of_their_own() -> None:
    study = load(workload('iodepth = [1, 2, 4, 8]\naxis = "adaptive"', bs='["4k", "8k"]'))
    searches = adaptive_searches_of_points(study, make_plan(study).points)
    assert [search.fixed_axis_values for search in searches] == [(("bs", "4k"),), (("bs", "8k"),)]
    assert all(search.axes == ((1, 2, 4, 8),) for search in searches)


def test_a_rate_made_on_the_way_arrives_at_random_on_the_same_files() -> None:
    study = load(MOST)
    (base,) = make_plan(study).points
    point = build_point_at(study, base.configuration, "w", (("rate_iops", 500),))
    assert Job.require_type(point.job).rate_iops == 500
    assert Job.require_type(point.job).arrivals is IoArrivals.POISSON
    assert point.data_set == base.data_set
    assert point.digest != base.digest


def test_the_adaptive_method_repeats_in_random_order_unless_the_study_says_otherwise() -> None:
    method = load(SMALL, "method.kind=adaptive").method
    assert (method.repeats, method.order, method.chooses_repeats_by_results) == (
        2,
        RunOrder.RANDOMISED,
        True,
    )
    written = load(SMALL, "method.kind=adaptive", "method.repeats=3", "method.order=as-written")
    assert (written.method.repeats, written.method.order) == (3, RunOrder.AS_WRITTEN)
    assert (load(SMALL).method.repeats, load(SMALL).method.order) == (1, RunOrder.AS_WRITTEN)
