"""Points, their digests and files, and the order and cost of their runs."""

from __future__ import annotations

import random
import sys

import pytest

from iolab.core.run import Plan
from iolab.core.study import Study
from iolab.core.workload import DataSet
from iolab.loads.fileio.engine_facts import FILE_ENGINES, FIO_ENGINE
from iolab.loads.fileio.workload import Job
from iolab.study.cost import (
    ASSUMED_WRITE_BYTES_PER_S,
    RUN_OVERHEAD_S,
    SESSION_OVERHEAD_S,
    with_free_space_margin,
)
from iolab.study.schedule import expand_points
from tests.plans import make_plan
from tests.study.studies import SMALL, load, workload

TWO_HOSTS = (
    SMALL + '[[host]]\nname = "a"\n[[host]]\nname = "b"\n'
    '[[configuration]]\nid = "one"\nhosts = ["a"]\n[[configuration]]\nid = "both"\n'
)
# The digests of SMALL's points, as the first version of the format made them.
STABLE = ["62ebc852b71ef154", "109610c93f6931b5", "f88480171a6aa9ba"]


def labels(plan: Plan) -> list[str]:
    return [run.point.title_text for run in plan.runs]


def test_several_lists_are_a_product_and_the_first_axis_is_slowest() -> None:
    study = load(workload("iodepth = [1, 8]\nnumjobs = [2, 1]", bs='["4k", "8k"]'))
    points = expand_points(study)
    assert [point.axis_values for point in points][:3] == [
        (("bs", "4k"), ("iodepth", 1), ("numjobs", 2)),
        (("bs", "4k"), ("iodepth", 1), ("numjobs", 1)),
        (("bs", "4k"), ("iodepth", 8), ("numjobs", 2)),
    ]
    assert len(points) == 8
    assert Job.require_type(points[-1].job).block_bytes == 8192
    assert (Job.require_type(points[-1].job).iodepth, Job.require_type(points[-1].job).numjobs) == (
        8,
        1,
    )


def test_every_axis_reaches_the_job() -> None:
    text = workload("rwmixread = [70, 30]\nrate_iops = [10, 20]", rw="randrw").replace(
        'filesize = "1m"', 'filesize = ["1m", 2097152]'
    )
    last = expand_points(load(text))[-1]
    assert last.axis_values == (("rwmixread", 30), ("filesize", 2097152), ("rate_iops", 20))
    assert (
        Job.require_type(last.job).read_percent,
        Job.require_type(last.job).file_bytes,
        Job.require_type(last.job).rate_iops,
    ) == (30, 2 << 20, 20)


def test_a_mixed_workload_without_a_share_reads_half() -> None:
    assert Job.require_type(expand_points(load(workload(rw="rw")))[0].job).read_percent == 50
    assert Job.require_type(expand_points(load(workload(rw="read")))[0].job).read_percent is None


def test_as_written_runs_block_by_block() -> None:
    plan = make_plan(load(SMALL, "method.repeats=2"))
    assert labels(plan) == ["rand-read iodepth=1", "rand-read iodepth=8", "mix"] * 2
    assert [run.order for run in plan.runs] == [1, 2, 3, 4, 5, 6]
    assert [run.repeat for run in plan.runs] == [1, 1, 1, 2, 2, 2]


def test_randomised_shuffles_each_block_by_the_seed() -> None:
    many = workload("iodepth = [1, 2, 3, 4, 5, 6, 7, 8]")
    sets = ("method.order=randomised", "method.repeats=2", "method.seed=7")
    plan = make_plan(load(many, *sets))
    assert labels(plan) == labels(make_plan(load(many, *sets)))
    assert sorted(labels(plan)[:8]) == sorted(labels(plan)[8:]) == sorted(labels(plan)[:8])
    assert labels(plan)[:8] != labels(plan)[8:]
    assert labels(plan) != labels(make_plan(load(many, *sets[:2], "method.seed=8")))
    # The documented recipe, so that an order can be had again by hand.
    block = list(expand_points(load(many)))
    random.Random(7).shuffle(block)  # noqa: S311
    assert [run.point.axis_values for run in plan.runs[:8]] == [
        point.axis_values for point in block
    ]


def test_points_share_files_of_one_size() -> None:
    plan = make_plan(load(SMALL, "workload.mix.numjobs=4"))
    assert plan.data_sets == (DataSet("s1m", "default", 4, 1, 1 << 20),)
    assert {point.data_set for point in plan.points} == {"s1m"}


@pytest.mark.parametrize(
    ("assignment", "ids"),
    [
        ("workload.mix.filesize=1536k", {"s1m", "s1536k"}),
        ("workload.mix.filesize=2g", {"s1m", "s2g"}),
        ("workload.mix.files=4", {"s1m", "s1mx4"}),
        ("workload.mix.contents=zeros", {"s1m", "s1mc"}),
        ("workload.mix.contents=random", {"s1m"}),
        ("workload.mix.fio.dedupe_percentage=50", {"s1m", "s1mc"}),
    ],
)
def test_files_that_differ_have_sets_of_their_own(assignment: str, ids: set[str]) -> None:
    assert {item.id for item in make_plan(load(SMALL, assignment)).data_sets} == ids


def test_a_set_of_odd_size_names_its_bytes() -> None:
    study = load(workload(bs='"512"').replace('"1m"', "1536"))
    assert make_plan(study).data_sets[0].id == "s1536b"


def test_configurations_have_sets_of_their_own_that_are_found_by_id() -> None:
    plan = make_plan(load(TWO_HOSTS))
    assert [item.id for item in plan.data_sets] == ["s1m-one", "s1m-both"]
    for point in plan.points:
        assert plan.data_set(point.data_set).configuration == point.configuration


def digests(study: Study) -> list[str]:
    return [point.digest for point in expand_points(study)]


def test_digests_are_stable_over_versions() -> None:
    # Stored sessions are found by these; a change of digest breaks every resume.
    assert digests(load(SMALL)) == STABLE
    assert digests(load(SMALL, "method.runtime=1s", path="/elsewhere")) == STABLE


def test_digests_differ_where_the_load_differs() -> None:
    base = digests(load(SMALL))
    assert len(set(base)) == len(base)
    for assignment in ("workload.*.bs=8k", "workload.*.numjobs=2", "workload.*.direct=false"):
        assert not set(base) & set(digests(load(SMALL, assignment)))
    assert len(set(digests(load(TWO_HOSTS)))) == 6


def test_the_digest_of_a_plan_tells_plans_apart() -> None:
    sets = [
        "method.runtime=9s",
        "method.repeats=2",
        "method.order=randomised",
        "telemetry.interval=2s",
    ]
    found = {make_plan(load(SMALL, assignment)).digest for assignment in sets}
    assert len(found | {make_plan(load(SMALL)).digest}) == 5
    assert make_plan(load(SMALL)).digest == make_plan(load(SMALL + "# more\n")).digest


def test_the_digest_of_a_plan_knows_its_targets() -> None:
    found = {
        make_plan(load(SMALL)).digest,
        make_plan(load(SMALL, path="/mnt/u")).digest,
        make_plan(load(SMALL, "host.local.path=/mnt/v")).digest,
    }
    assert len(found) == 3


def test_the_budget_says_where_the_time_goes() -> None:
    study = load(SMALL, "method.warmup=5s", "method.runtime=30s", "method.settle=2s")
    budget = make_plan(study).demand
    layout = (1 << 20) / ASSUMED_WRITE_BYTES_PER_S
    assert [round(seconds, 6) for _, seconds in budget.time_items] == [
        SESSION_OVERHEAD_S,
        round(layout, 6),
        105.0,
        3 * RUN_OVERHEAD_S,
        2 * FILE_ENGINES[FIO_ENGINE].generator_limit_measurement_s,
        5.0,
    ]
    assert budget.seconds == pytest.approx(sum(seconds for _, seconds in budget.time_items))
    assert "1 MiB on each host at 200 MB/s (assumed)" in budget.time_items[1][0]


@pytest.mark.parametrize(
    ("settle_s", "watch_s", "waits_s"),
    [(0, 1, 3 * 1), (2, 5, 3 * 5), (5, 5, 3 * 5), (5, 1, 1 + 2 * 5), (5, 0, 2 * 5), (0, 0, 0)],
)
def test_a_target_rests_while_it_is_watched_idle_and_not_before_the_first_run(
    settle_s: float, watch_s: float, waits_s: float
) -> None:
    def planned_s(settle_s: float, watch_s: float) -> float:
        sets = (f"method.settle={settle_s}s", f"method.idle_watch={watch_s}s")
        return make_plan(load(SMALL, *sets)).demand.seconds

    assert planned_s(settle_s, watch_s) - planned_s(0, 0) == pytest.approx(waits_s)


def test_the_budget_counts_the_idle_around_a_load_that_meters_are_read_in() -> None:
    metered = make_plan(load(SMALL + '\n[meters]\nidle = "30s"\n')).demand
    text, seconds = metered.time_items[-1]
    assert text == "3 runs: meters of idle machines, 30 s before and after"
    assert seconds == 180
    assert metered.seconds - make_plan(load(SMALL)).demand.seconds == pytest.approx(180)


def test_the_budget_counts_bytes_on_each_host_and_on_all() -> None:
    reading = TWO_HOSTS.replace("randrw", "randread").replace("rwmixread = 70\n", "")
    budget = make_plan(load(reading)).demand
    # Host a is in both configurations, so both data sets lie there at once.
    assert budget.layout_bytes_per_host == 2 << 20
    assert budget.write_bytes_estimate == 3 << 20
    assert budget.free_bytes_needed_per_host == with_free_space_margin(2 << 20)


def test_writing_runs_are_estimated_by_rate_share_and_limit() -> None:
    sets = ("method.warmup=0", "method.runtime=10s")
    mixed = make_plan(load(workload("rwmixread = 75", rw="randrw"), *sets)).demand
    assert (mixed.write_bytes_estimate, mixed.open_write_s) == (1 << 20, 0.25 * 10)
    slow = make_plan(load(workload("rate_iops = 100\nnumjobs = 2", rw="randwrite"), *sets)).demand
    assert slow.write_bytes_estimate == (2 << 20) + 100 * 2 * 4096 * 10
    assert slow.open_write_s == 0


def test_spare_space_is_a_share_and_a_floor() -> None:
    assert with_free_space_margin(0) == 64 << 20
    assert with_free_space_margin(100 << 30) == (105 << 30) + (64 << 20)


def calls_to_plan(points: int) -> int:
    """How many functions of Python are called for a plan of that many points."""
    depths = ", ".join(map(str, range(1, points + 1)))
    study = load(SMALL, f"workload.mix.iodepth={depths}")
    count = 0

    def count_calls(_: object, event: str, __: object) -> None:
        nonlocal count
        count += event == "call"

    sys.setprofile(count_calls)
    try:
        plan = make_plan(study)
    finally:
        sys.setprofile(None)
    assert len(plan.runs) >= points
    return count


def test_the_work_of_a_plan_grows_with_its_points_and_not_with_their_square() -> None:
    few, many = calls_to_plan(100), calls_to_plan(800)
    assert many < 8 * few * 1.5
