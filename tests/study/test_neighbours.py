"""Events that are loads: what a study may ask for, and what its plan has of it."""

from __future__ import annotations

import pytest

from iolab.core.course import IoLimit
from iolab.core.run import Plan
from iolab.core.study import Study
from iolab.errors import StudyError
from iolab.study.parse import StudyOverrides
from tests.plans import make_plan, parse_study

STUDY = """
format = 1
id = "noise"

[[host]]
name = "a"
path = "/mnt/a"
[[host]]
name = "b"
path = "/mnt/b"

[[workload]]
id = "victim"
engine = "native"
rw = "randread"
bs = "4k"
rate_iops = 100
filesize = "64m"

[[workload]]
id = "noise"
engine = "native"
rw = "randread"
bs = "4k"
numjobs = 4
fleet_rate_iops = 400
filesize = "64m"

[[phase]]
id = "alone"
seconds = "20s"
[[phase]]
id = "neighbour"
seconds = "20s"
[[phase]]
id = "after"
seconds = "20s"

[[event]]
id = "begin"
workload = "noise"
phase = "neighbour"
undo_phase = "after"
HOSTS

[[event]]
id = "limit"
limits = "begin"
io_limit = { read_iops = 200, write_bw = "1m" }
phase = "after"
"""


def planned(hosts: str = "") -> tuple[Study, Plan]:
    study = parse_study(STUDY.replace("HOSTS", hosts), "study.toml", StudyOverrides())
    return study, make_plan(study)


def test_a_neighbour_is_no_point_and_has_files_and_a_share_of_its_rate() -> None:
    study, plan = planned()
    assert [workload.id for workload in study.workloads] == ["victim"]
    assert [point.workload for point in plan.points] == ["victim"]
    (neighbour,) = plan.neighbours
    assert neighbour.hosts == ("a", "b")
    assert neighbour.point.job.target_iops_per_job == 400 / 8
    sets = {item.id: item for item in plan.data_sets}
    assert neighbour.point.data_set in sets
    assert neighbour.point.data_set != plan.points[0].data_set
    assert study.course is not None
    assert study.course.events[1].io_limit == IoLimit(200, write_bytes_per_s=1 << 20)
    assert study.course.event_consent_names(destructive=False) == ()


def test_a_host_that_is_named_makes_the_neighbours_load_alone() -> None:
    _, plan = planned('hosts = ["b"]')
    (neighbour,) = plan.neighbours
    assert neighbour.hosts == ("b",)
    assert neighbour.point.job.target_iops_per_job == 400 / 4
    own = plan.data_set(neighbour.point.data_set)
    shared = plan.data_set(plan.points[0].data_set)
    assert [own.with_jobs_of_host(name).numjobs for name in "ab"] == [0, 4]
    assert [shared.with_jobs_of_host(name).numjobs for name in "ab"] == [1, 0]


@pytest.mark.parametrize(
    ("old", "new", "parts"),
    [
        ('workload = "noise"', 'workload = "nois"', ("'nois'", "'noise'")),
        ("numjobs = 4", "numjobs = [4, 8]", ("numjobs", "4", "8")),
        ("HOSTS", 'hosts = ["a", "b"]', ("no client",)),
        ("HOSTS", 'hosts = ["c"]', ("'c'",)),
        ("HOSTS", 'action = "lose"', ("action and workload",)),
        ("HOSTS", 'expect = "healthy"', ("expect without action",)),
        ('limits = "begin"', 'limits = "limit"', ("'limit'", "no event with a workload")),
        ("io_limit = { read_iops = 200,", "io_limit = { read_iops = 0,", ("read_iops",)),
        ('io_limit = { read_iops = 200, write_bw = "1m" }', "", ("limits without io_limit",)),
        ('io_limit = { read_iops = 200, write_bw = "1m" }', "io_limit = {}", ("empty io_limit",)),
    ],
)
def test_what_cannot_be_meant_is_told_with_its_value(
    old: str, new: str, parts: tuple[str, ...]
) -> None:
    with pytest.raises(StudyError) as raised:
        parse_study(STUDY.replace(old, new).replace("HOSTS", ""), "s.toml", StudyOverrides())
    text = " ".join(f"{fault.message} {fault.hint}" for fault in raised.value.faults)
    for part in parts:
        assert part in text
