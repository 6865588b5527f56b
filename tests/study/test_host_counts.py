"""The axis of a growing number of hosts."""

from __future__ import annotations

from iolab.core.workload import Axis
from iolab.study.schedule import expand_points
from iolab.study.targets import load_host_names_of_point
from tests.guests.guest_studies import NODES, VM
from tests.plans import make_plan
from tests.study.studies import load, told, workload

HOSTS = '[[host]]\nname = "c1"\n[[host]]\nname = "c2"\nnumjobs = 8\n[[host]]\nname = "c3"\n'


def test_each_point_is_made_by_the_first_hosts_of_its_configuration() -> None:
    more = '[[configuration]]\nid = "a"\n[[configuration]]\nid = "b"\nhosts = ["c3", "c1"]\n'
    study = load(workload("hosts = [1, 2]\n" + HOSTS + more))
    points = expand_points(study)
    assert [
        (p.configuration, p.axis_values, load_host_names_of_point(study, p)) for p in points
    ] == [
        ("a", (("hosts", 1),), ("c1",)),
        ("a", (("hosts", 2),), ("c1", "c2")),
        ("b", (("hosts", 1),), ("c3",)),
        ("b", (("hosts", 2),), ("c3", "c1")),
    ]
    assert len({point.digest for point in points}) == 4


def test_one_number_is_told_of_every_point_and_none_is_all_of_them() -> None:
    (one,) = expand_points(study := load(workload("hosts = 2\n" + HOSTS)))
    assert study.workloads[0].sweep == (Axis("hosts", (2,)),)
    assert load_host_names_of_point(study, one) == ("c1", "c2")
    (every,) = expand_points(study := load(workload(HOSTS)))
    assert (every.axis_values, every.host_count) == ((), 0)
    assert load_host_names_of_point(study, every) == ("c1", "c2", "c3")


def test_every_host_has_the_files_that_any_point_asks_of_it() -> None:
    for order in ("[1, 3]", "[3, 1]"):
        (files,) = make_plan(load(workload(f"hosts = {order}\n" + HOSTS))).data_sets
        assert [files.with_jobs_of_host(name).numjobs for name in ("c1", "c2", "c3")] == [1, 8, 1]


def test_what_is_written_is_estimated_by_who_writes() -> None:
    def written(hosts: str) -> int:
        text = workload(f"rate_iops = 100\nhosts = {hosts}\n" + HOSTS, rw="randwrite")
        return make_plan(load(text)).demand.write_bytes_estimate

    # Files are laid out on all three hosts before: one of 1 MiB for each job.
    assert written("[1, 3]") - written("3") == (written("3") - (10 << 20)) / 10


def test_more_hosts_than_a_configuration_has_are_told_with_their_line() -> None:
    more = '[[configuration]]\nid = "b"\nhosts = ["c3", "c1"]\n'
    (fault,) = told(workload("hosts = [1, 3]\n" + HOSTS + more))
    assert fault.startswith("s.toml:8: Workload 'w' has hosts = 3, but")
    assert "'b' has 2 clients. Give at most 2." in fault
    (fault,) = told(workload("hosts = [1, 2]\n"))
    assert "'default' has 1 client. Give at most 1." in fault


def test_a_rotation_fits_the_smallest_point() -> None:
    (fault,) = told(workload("hosts = [1, 3]\n[target]\nrotate = 1\n" + HOSTS))
    assert "rotate of [target] is 1, but" in fault


def test_guests_are_counted_by_node() -> None:
    (fault,) = told(workload("hosts = [1, 2]\n" + NODES + VM))
    assert fault.startswith("s.toml:8: Workload 'w' has hosts, but")
    assert "vms_per_node" in fault
