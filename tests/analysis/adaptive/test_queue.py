"""Which run a queue asks for next, on systems whose truth is known."""

from __future__ import annotations

import math
from collections import Counter
from itertools import pairwise
from statistics import median

import pytest
from msgspec.structs import replace

from iolab.analysis.adaptive import (
    AdaptiveQueue,
    RunResultLog,
    adaptive_curve_from_log,
    chooses_runs_by_results,
    max_load_progress_from_log,
    peak_search_from_log,
    total_job_count,
)
from iolab.analysis.points import results_with_sentinel_checks, sentinel_alarms, sentinel_point
from iolab.core.metric import Metric, RunResult, VerdictLevel
from iolab.core.run import PlannedRun, Point, RunStatus
from iolab.loads.fileio.workload import IoArrivals, Job
from iolab.study.schedule import adaptive_searches_of_points, expand_points
from tests.analysis.adaptive.systems import System, measured, saturating, whole_session
from tests.guests.guest_studies import FLEET
from tests.plans import make_plan
from tests.study.studies import SMALL, load, workload

AXIS = "iodepth = [1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24]\n"
CURVE = workload(f'{AXIS}axis = "adaptive"\nheadline = [15]')
PEAK = workload('iodepth = [1,2,4,8,16,32,64]\nnumjobs = [1,2,4,8]\nobjective = "peak"')
MOST = workload('objective = "max-load"\nlimit = "p99 <= 2ms"')
SOFT = System(saturating(100_000, 1e-4))


def hill(point: Point) -> float:
    """A rate that is largest, 100,000, at depth 16 of four jobs."""
    depth, jobs = (
        math.log2(Job.require_type(point.job).iodepth),
        math.log2(Job.require_type(point.job).numjobs),
    )
    return 1e5 * math.exp(-0.15 * (depth - 4) ** 2 - 0.1 * (jobs - 2) ** 2)


def queue_rate(point: Point) -> float:
    return min(Job.require_type(point.job).rate_iops or math.inf, 1e5)


def queue_p99(point: Point) -> float:
    """300 us at rest, 2 ms at 85,000 a second."""
    return 3e5 / (1 - min(queue_rate(point), 99_990) / 1e5)


HILL = System(hill)
QUEUE = System(queue_rate, queue_p99)
SYSTEMS = {CURVE: SOFT, PEAK: HILL, MOST: QUEUE, SMALL: SOFT}


def test_a_curve_is_known_from_few_loads_within_what_it_claims() -> None:
    study = load(CURVE)
    runs, results = whole_session(study, SOFT)
    search = adaptive_searches_of_points(study, make_plan(study).points)[0]
    axis = adaptive_curve_from_log(study, search, RunResultLog(study, results))
    assert axis is not None
    assert axis.next_load() is None
    points = axis.curve_points()
    assert len(points) == 24
    assert len(runs) <= 12
    assert 15 in axis.measured_loads
    rate = SOFT.rate
    truth = {place[0]: rate(point) for place, point in search.point_by_grid_point.items()}
    errors = [abs(math.log(point.rate / truth[point.load])) for point in points]
    assert max(errors) < 0.02
    held = [point.low <= truth[point.load] <= point.high for point in points]
    assert sum(held) >= 23


def test_a_peak_of_two_axes_is_found_and_confirmed() -> None:
    study = load(PEAK)
    runs, results = whole_session(study, HILL)
    search = adaptive_searches_of_points(study, make_plan(study).points)[0]
    found = peak_search_from_log(search, RunResultLog(study, results)).best_point()
    assert hill(search.point_by_grid_point[found.point]) >= 0.97 * 1e5
    assert found.low <= 1e5 <= found.high
    assert len(runs) <= 24
    best = search.point_by_grid_point[found.point].digest
    assert sum(run.point.digest == best for run in runs) >= 2


def test_the_highest_load_under_a_limit_lies_within_its_interval() -> None:
    study = load(MOST)
    runs, results = whole_session(study, QUEUE)
    trail = max_load_progress_from_log(
        adaptive_searches_of_points(study, make_plan(study).points)[0], RunResultLog(study, results)
    )
    assert trail is not None
    answer = trail.max_load_from_all_runs
    assert answer.low is not None
    assert answer.high is not None
    assert answer.low <= 85_000 <= answer.high
    assert answer.verified is not None
    assert 0.9 * 85_000 < answer.verified < 85_000
    assert len(runs) <= 15
    assert Job.require_type(runs[0].point.job).rate_iops is None
    assert all(Job.require_type(run.point.job).arrivals is IoArrivals.POISSON for run in runs[1:])


@pytest.mark.parametrize("text", SYSTEMS, ids=["curve", "peak", "max-load", "grid"])
@pytest.mark.parametrize("method", ["fixed", "adaptive"])
def test_a_session_that_was_ended_anywhere_goes_on_with_the_same_run(
    text: str, method: str
) -> None:
    study = load(text, f"method.kind={method}")
    runs, results = whole_session(study, SYSTEMS[text])
    for ended in range(0, len(runs), max(1, len(runs) // 8)):
        again, _ = whole_session(study, SYSTEMS[text], results[:ended])
        assert again == runs[ended:]
    assert whole_session(study, SYSTEMS[text], results)[0] == []


def test_repeats_are_made_in_blocks_until_intervals_are_narrow() -> None:
    study = load(workload(AXIS), "method.kind=adaptive", "method.repeats_max=4")
    runs, _ = whole_session(study, SOFT)
    plain = [run for run in runs if run.point.digest != sentinel_digest(study.text)]
    first = [run.point.digest for run in plain[:23]]
    assert len(set(first)) == 23
    assert first != sorted(first, key=[point.digest for point in expand_points(study)].index)
    assert {run.repeat for run in plain[:46]} == {1, 2}
    assert 46 <= len(plain) <= 4 * 23


def sentinel_digest(text: str) -> str:
    point = sentinel_point(load(text, "method.kind=adaptive"))
    assert point is not None
    return point.digest


def test_the_sentinel_comes_first_and_after_every_eight_others() -> None:
    study = load(workload(AXIS), "method.kind=adaptive")
    runs, _ = whole_session(study, SOFT)
    places = [i for i, run in enumerate(runs) if run.point.digest == sentinel_digest(study.text)]
    assert places[0] == 0
    gaps = [later - former - 1 for former, later in pairwise(places)]
    assert max(gaps) == 8


def test_a_sentinel_that_moved_has_the_runs_before_it_made_again_once() -> None:
    study = load(workload(AXIS), "method.kind=adaptive")
    queue = AdaptiveQueue(study, make_plan(study))
    results: list[RunResult] = []
    said: list[str] = []
    while (run := queue.take_next_run()) is not None:
        said += queue.take_new_messages()
        result = measured(run, SOFT)
        if run.order > 30:
            slower = result.metrics["iops"].value or 0.0
            result = replace(result, metrics={"iops": Metric(slower * 0.8, "1/s")})
        results.append(result)
        queue.add_result(result)
    (alarm,) = sentinel_alarms(results, study)
    assert alarm.log_ratio == pytest.approx(math.log(0.8), abs=0.03)
    assert len(said) == 1
    assert said[0].startswith("The sentinel jumped by -")
    doubted = [r.digest for r in results if alarm.last_trusted_order < r.order < alarm.moved_order]
    after = [r.digest for r in results if r.order > alarm.moved_order][: len(doubted)]
    assert after == doubted
    marked = [
        r
        for r in results_with_sentinel_checks(results, study)
        if r.verdict.level is VerdictLevel.INDICATIVE
    ]
    assert [r.digest for r in marked] == doubted
    assert alarm.last_trusted_order < median(r.order for r in marked) < alarm.moved_order
    assert results_with_sentinel_checks(
        results_with_sentinel_checks(results, study), study
    ) == results_with_sentinel_checks(results, study)


def test_runs_in_doubt_count_where_a_point_has_no_others() -> None:
    study = load(workload("iodepth = [1, 2, 4]"), "method.kind=adaptive")
    sentinel, again, once = expand_points(study)
    log = RunResultLog(study)
    for order, point, rate in (
        (1, sentinel, 1000.0),
        (2, sentinel, 1000.0),
        (3, again, 555.0),
        (4, once, 333.0),
        (5, sentinel, 800.0),
        (6, again, 500.0),
    ):
        result = measured(PlannedRun(order, order, point), SOFT)
        log.add_result(replace(result, metrics={"iops": Metric(rate, "1/s")}))
    (alarm,) = log.update_sentinel_alarms()
    assert (alarm.last_trusted_order, alarm.moved_order) == (2, 5)
    assert log.metric_values(again.digest, "iops") == [500.0]
    assert log.metric_values(once.digest, "iops") == [333.0]
    assert (
        log.run_count_on_steady_ground(again.digest),
        log.run_count_on_steady_ground(once.digest),
    ) == (1, 0)


def test_a_point_that_failed_is_not_asked_for_again_and_ends_no_search() -> None:
    for text, system in SYSTEMS.items():
        study = load(text)
        queue = AdaptiveQueue(study, make_plan(study))
        asked = []
        while (run := queue.take_next_run()) is not None:
            asked.append(run)
            status = RunStatus.FAILED if run.order % 3 == 2 else RunStatus.DONE
            queue.add_result(replace(measured(run, system), status=status))
        failed = [run.point.digest for run in asked if run.order % 3 == 2]
        assert failed
        for digest in failed:
            orders = [run.order for run in asked if run.point.digest == digest]
            assert [order % 3 == 2 for order in orders].index(True) == len(orders) - 1


def test_an_invalid_run_is_made_up_for_where_another_was_sound() -> None:
    study = load(workload("iodepth = [1, 2, 4]"), "method.kind=adaptive", "method.repeats_max=4")
    spoilt, hopeless = (point.digest for point in expand_points(study)[1:])
    queue = AdaptiveQueue(study, make_plan(study))
    made: Counter[str] = Counter()
    while (run := queue.take_next_run()) is not None:
        made[run.point.digest] += 1
        result = measured(run, SOFT, noise=0.0)
        if run.point.digest == hopeless or (run.point.digest, run.repeat) == (spoilt, 1):
            result = replace(result, verdict=replace(result.verdict, level=VerdictLevel.INVALID))
        queue.add_result(result)
    assert (made[spoilt], made[hopeless]) == (3, 2)


def test_a_plan_without_searches_and_of_the_fixed_method_is_walked() -> None:
    assert not chooses_runs_by_results(load(SMALL))
    assert chooses_runs_by_results(load(SMALL, "method.kind=adaptive"))
    assert chooses_runs_by_results(load(PEAK))
    assert sentinel_point(load(SMALL)) is None


def test_the_jobs_of_a_point_are_those_of_the_guests_that_take_part() -> None:
    study = load(FLEET, "workload.w.numjobs=2")
    assert [total_job_count(study, point) for point in expand_points(study)] == [4, 8, 12, 4, 8, 12]
    small = load(SMALL)
    assert {total_job_count(small, point) for point in expand_points(small)} == {1}


def test_one_workload_that_searches_is_enough_for_results_to_decide() -> None:
    plain = '\n[[workload]]\nid = "plain"\nrw = "randread"\nbs = "4k"\nfilesize = "64m"\n'
    assert chooses_runs_by_results(load(MOST + plain))
    assert not chooses_runs_by_results(load(SMALL + plain))
