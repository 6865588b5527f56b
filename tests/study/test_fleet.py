"""Storage nodes, hosts' own numbers of jobs, and files handed on from client to client."""

from __future__ import annotations

import pytest

from iolab.core.configuration import Redundancy
from iolab.core.study import Study
from iolab.loads.fileio.workload import Job
from iolab.study.inventory import Inventory
from iolab.study.parse import StudyOverrides
from iolab.study.schedule import expand_points
from iolab.study.targets import data_sets_at_target, monitored_host_specs, targets_of_study
from tests.plans import make_plan, parse_study
from tests.study.studies import FILE, SMALL, told, workload

FLEET = """\
format = 1
[defaults]
numjobs = 3
[[host]]
name = "c[1-2]"
[[host]]
name = "c3"
numjobs = 8
[[host]]
name = "s[1-2]"
role = "storage"
devices = ["/dev/sda", "nvme0n1"]
[[host]]
name = "hv"
role = "hypervisor"
"""


def fleet(text: str, inventory: str = FLEET) -> Study:
    options = StudyOverrides("/mnt/t", inventory=Inventory(inventory, "fleet.toml"))
    return parse_study(text, FILE, options)


def test_hosts_have_devices_and_jobs_of_their_own_and_only_clients_take_the_default() -> None:
    hosts = {spec.name: spec for spec in fleet(SMALL).hosts}
    assert {name: spec.numjobs for name, spec in hosts.items()} == {
        "c1": 3,
        "c2": 3,
        "c3": 8,
        "s1": None,
        "s2": None,
        "hv": None,
    }
    assert hosts["s2"].devices == ("sda", "nvme0n1")
    assert hosts["c1"].devices == ()


def test_every_storage_node_serves_a_configuration_that_names_none() -> None:
    two = SMALL + '[[configuration]]\nid = "a"\n[[configuration]]\nid = "b"\nstorage = ["s[2-2]"]\n'
    study = fleet(two + "redundancy = { write_factor = 3 }\n")
    assert [item.storage for item in study.configurations] == [("s1", "s2"), ("s2",)]
    assert [item.redundancy for item in study.configurations] == [None, Redundancy(3.0, 1.0)]
    assert [spec.name for spec in monitored_host_specs(study, "a")] == ["s1", "s2", "hv"]
    assert [spec.name for spec in monitored_host_specs(study, "b")] == ["s2", "hv"]
    assert {target.host for target in targets_of_study(study)} == {"c1", "c2", "c3"}


def test_a_hosts_own_jobs_take_the_place_of_every_workloads() -> None:
    study = fleet(SMALL)
    plan = make_plan(study)
    point = plan.points[1]
    assert Job.require_type(point.job).iodepth_per_client == 8
    assert [
        Job.require_type(point.job_on_host(name)).iodepth_per_client
        for name in ("c1", "c3", "else")
    ] == [
        24,
        64,
        8,
    ]
    laid_out = {
        t.host: data_sets_at_target(plan, t)[0].bytes_per_host for t in targets_of_study(study)
    }
    assert laid_out == {"c1": 3 << 20, "c2": 3 << 20, "c3": 8 << 20}
    assert plan.demand.layout_bytes_per_host == 8 << 20
    assert plan.demand.free_bytes_needed_per_host > 8 << 20


def test_rated_writes_are_estimated_by_each_hosts_jobs() -> None:
    text = workload("rate_iops = 10", rw="randwrite")
    text += "[method]\nwarmup = 0\nruntime = 10\n"
    budget = make_plan(fleet(text)).demand
    assert budget.write_bytes_estimate == (3 + 3 + 8) * ((1 << 20) + 10 * 10 * 4096)


def test_own_jobs_and_rotation_make_other_points_and_nothing_else_does() -> None:
    plain = FLEET.replace("numjobs = 3\n", "").replace("numjobs = 8\n", "")
    base = [point.digest for point in expand_points(fleet(SMALL, plain))]
    others = [
        [point.digest for point in expand_points(fleet(SMALL))],
        [point.digest for point in expand_points(fleet(SMALL + "[target]\nrotate = 1\n", plain))],
        [point.digest for point in expand_points(fleet(SMALL + "[target]\nrotate = 2\n", plain))],
    ]
    assert len({*base, *(digest for other in others for digest in other)}) == 4 * len(base)
    watched = SMALL + '[[configuration]]\nid = "default"\nstorage = ["s1"]\n'
    assert [point.digest for point in expand_points(fleet(watched, plain))] == base


def test_what_only_writes_is_the_same_under_rotation() -> None:
    text = workload(rw="randwrite")
    rotated = text + "[target]\nrotate = 1\n"
    assert [p.digest for p in expand_points(fleet(text))] == [
        p.digest for p in expand_points(fleet(rotated))
    ]


def test_where_files_are_handed_on_all_clients_have_files_for_the_widest() -> None:
    plan = make_plan(fleet(SMALL + "[target]\nrotate = 1\n"))
    assert {data_set.with_jobs_of_host("c1").numjobs for data_set in plan.data_sets} == {8}
    assert Job.require_type(plan.points[0].job_on_host("c1")).numjobs == 3


@pytest.mark.parametrize(
    ("extra", "message"),
    [
        (
            '[target]\nrotate = 2\n[[host]]\nname = "a"\n[[host]]\nname = "b"\n',
            "s.toml:10: rotate of [target] is 2, but configuration 'default' has 2 clients.",
        ),
        (
            "[target]\nrotate = 1\n",
            "s.toml:10: rotate of [target] is 1, but configuration 'default' has 1 client.",
        ),
        (
            '[[host]]\nname = "s"\nrole = "storage"\n[[host]]\nname = "a"\n'
            '[[configuration]]\nid = "x"\nhosts = ["a", "s"]\n',
            "s.toml:16: hosts of configuration 'x' names 's', which has the role 'storage'",
        ),
        (
            '[[host]]\nname = "a"\n[[configuration]]\nid = "x"\nstorage = ["a", "t"]\n',
            "s.toml:13: storage of configuration 'x' names 'a', which has the role 'client'.",
        ),
        (
            '[[host]]\nname = "a"\n[[host]]\nname = "s"\nrole = "storage"\nnumjobs = 2\n',
            "s.toml:14: Host 's' has numjobs = 2, but the role 'storage'",
        ),
        (
            '[[host]]\nname = "a"\ndevices = ["/dev/mapper/x", "sdb"]\n',
            "s.toml:11: devices of host 'a' is '/dev/mapper/x'.",
        ),
        (
            '[[configuration]]\nid = "x"\nredundancy = { write_factor = 0.5 }\n',
            "s.toml:11: redundancy.write_factor of configuration 'x' is 0.5.",
        ),
        (
            '[[configuration]]\nid = "x"\nredundancy = { read_factor = 1 }\n',
            "s.toml:11: Configuration 'x' has no redundancy.write_factor.",
        ),
    ],
)
def test_what_does_not_fit_a_fleet_is_told_with_its_line(extra: str, message: str) -> None:
    assert any(one.startswith(message) for one in told(workload() + extra))


def test_one_host_with_too_many_files_is_told() -> None:
    text = workload("files = 100\n") + '[[host]]\nname = "a"\nnumjobs = 4000\n'
    assert "makes 400000 files there" in told(text)[0]
